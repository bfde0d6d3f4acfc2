#include "tests/fuzz/tensors.h"

namespace stet::fuzz {
namespace {

/// The header is as long as it says again: up to its last brace.
void mend(std::string& bytes, Random&) {
  const std::size_t brace = bytes.rfind('}');
  if (bytes.size() < 10 || brace == std::string::npos || brace < 10 || bytes[6] != 1) return;
  const std::size_t length = brace + 1 - 10;
  bytes[8] = static_cast<char>(length & 255);
  bytes[9] = static_cast<char>(length >> 8);
}

const FuzzFormat format({
    .name = "npy",
    .seeds =
        [] {
          std::vector<std::string> seeds;
          for (const char* name :
               {"float32", "int16_big", "uint64_big", "bool", "fortran", "version2", "version3", "empty"})
            seeds.push_back(stored_reader_file(std::string(name) + ".npy"));
          return seeds;
        },
    .load =
        [](const FuzzFile& file) {
          within_memory((1 << 16) + 4 * file.bytes().size(), [&] { data::read_npy(file.path()); });
        },
    .mend = mend,
});

const FuzzFormat archives({
    .name = "npz",
    .seeds =
        [] {
          return std::vector<std::string>{stored_reader_file("plain.npz"), stored_reader_file("compressed.npz")};
        },
    .load =
        [](const FuzzFile& file) {
          within_memory((1 << 20) + 2200 * file.bytes().size(), [&] { data::read_npz(file.path()); });
        },
    .memory_per_byte = 2200,
});

}  // namespace
}  // namespace stet::fuzz
