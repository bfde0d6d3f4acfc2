#include <cstring>

#include "stet/files/file.h"
#include "tests/fuzz/tensors.h"

namespace stet::fuzz {
namespace {

std::uint32_t checksum(const char* bytes, std::size_t count) {
  const std::uint32_t sum = files::crc32c({reinterpret_cast<const std::byte*>(bytes), count});
  return (sum >> 15 | sum << 17) + 0xA282EAD8;
}

/// Checksums of as many records as there are.
void mend(std::string& bytes, Random&) {
  for (std::size_t at = 0; at + 16 <= bytes.size();) {
    std::uint64_t length;
    std::memcpy(&length, bytes.data() + at, 8);
    std::uint32_t sum = checksum(bytes.data() + at, 8);
    std::memcpy(bytes.data() + at + 8, &sum, 4);
    if (length > bytes.size() - at - 16) return;
    sum = checksum(bytes.data() + at + 12, length);
    std::memcpy(bytes.data() + at + 12 + length, &sum, 4);
    at += 16 + length;
  }
}

const FuzzFormat format({
    .name = "tfrecord",
    .seeds =
        [] {
          warm_up();
          std::vector<std::string> seeds;
          for (const char* name : {"", "GZIP", "ZLIB"})
            seeds.push_back(stored_reader_file(std::string("examples") + name + ".tfrecord"));
          return seeds;
        },
    .load =
        [](const FuzzFile& file) {
          within_memory((1 << 20) + 1100 * file.bytes().size(), [&] {
            for (Tensor record : data::tfrecord(file.path())) try {
                data::Example::parse(record).serialize();
              } catch (const UserError&) {
                // It speaks of the record, not of the file.
              }
          });
        },
    .mend = mend,
    .memory_per_byte = 40'000,
});

const FuzzFormat lines({
    .name = "text",
    .seeds =
        [] {
          return std::vector<std::string>{"one\ntwo\r\n\nfour", stored_reader_file("csv.gz")};
        },
    .load =
        [](const FuzzFile& file) {
          within_memory((1 << 20) + 1100 * file.bytes().size(), [&] { read_through(data::text_lines(file.path())); });
        },
    .memory_per_byte = 2200,
});

}  // namespace
}  // namespace stet::fuzz
