#include "stet/files/safetensors.h"

#include <algorithm>
#include <cstring>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/source.h"

namespace stet::fuzz {
namespace {

/// The header is as long as it says again: up to its last brace.
void mend(std::string& bytes, Random& random) {
  std::size_t brace = bytes.rfind('}');
  if (bytes.size() < 8 || brace == std::string::npos || brace < 8) return;
  std::uint64_t length = brace + 1 - 8;
  std::memcpy(bytes.data(), &length, 8);
  // And the data as the last tensor wants it, if it was so before.
  if (random.one_in(2)) bytes.resize(brace + 1 + std::min<std::size_t>(bytes.size(), 728));
}

const FuzzFormat format({
    .name = "safetensors",
    .seeds =
        [] {
          return std::vector<std::string>{stored_file("tests/oracle/files/all.safetensors"),
                                          stored_file("tests/oracle/files/none.safetensors")};
        },
    .load =
        [](const FuzzFile& file) {
          files::SafetensorsReader reader(source_of(file));
          for (const files::SafetensorsEntry& entry : reader.tensors()) {
            files::Bytes data(static_cast<std::size_t>(entry.bytes));
            reader.read(entry, data);
          }
        },
    .mend = mend,
});

}  // namespace
}  // namespace stet::fuzz
