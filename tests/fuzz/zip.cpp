#include "stet/files/zip.h"

#include <zlib.h>

#include <cstring>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/source.h"

namespace stet::fuzz {
namespace {

template <class T>
T number(const std::string& bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}
template <class T>
void put(std::string& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

/// Checksums of entries, the place of the directory, and what local headers repeat of it, agree again.
void mend(std::string& bytes, Random& random) {
  std::size_t end = bytes.rfind("PK\x05\x06"), directory = bytes.find("PK\x01\x02");
  if (end == std::string::npos || directory == std::string::npos || end + 22 > bytes.size() || directory > end) return;
  put(bytes, end + 12, static_cast<std::uint32_t>(end - directory));
  put(bytes, end + 16, static_cast<std::uint32_t>(directory));
  const bool local_is_right = random.one_in(2);
  for (std::size_t at = directory; at + 46 <= end && number<std::uint32_t>(bytes, at) == 0x02014b50;) {
    std::size_t local = number<std::uint32_t>(bytes, at + 42);
    if (local + 30 <= bytes.size()) {
      if (local_is_right)
        for (std::size_t field = 0; field < 20; ++field) bytes[at + 8 + field] = bytes[local + 6 + field];
      else
        for (std::size_t field = 0; field < 20; ++field) bytes[local + 6 + field] = bytes[at + 8 + field];
      std::size_t data =
          local + 30 + number<std::uint16_t>(bytes, local + 26) + number<std::uint16_t>(bytes, local + 28);
      std::size_t size = number<std::uint32_t>(bytes, at + 20);
      if (number<std::uint16_t>(bytes, at + 10) == 0 && data <= bytes.size() && size <= bytes.size() - data) {
        auto sum =
            static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()) + data, size));
        put(bytes, at + 16, sum);
        put(bytes, local + 14, sum);
      }
    }
    at += 46 + number<std::uint16_t>(bytes, at + 28) + number<std::uint16_t>(bytes, at + 30) +
          number<std::uint16_t>(bytes, at + 32);
  }
}

const FuzzFormat format({
    .name = "zip",
    .seeds =
        [] {
          std::vector<std::string> seeds;
          for (const char* name : {"stored", "small", "zip64", "streamed"})
            seeds.push_back(stored_file(std::string("tests/oracle/files/") + name + ".zip"));
          return seeds;
        },
    .load =
        [](const FuzzFile& file) {
          files::ZipReader zip(source_of(file));
          for (const files::ZipEntry& entry : zip.entries()) {
            zip.read(entry);
            zip.open(entry);
          }
        },
    .mend = mend,
    .memory_per_byte = 2200,  // what deflate can do, twice: memory grows by doubling
});

}  // namespace
}  // namespace stet::fuzz
