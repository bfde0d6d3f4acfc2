// What stands around the bytes of a record in a TFRecord file, and of an event in TensorBoard's files. Not a public
// header.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "stet/files/file.h"

namespace stet::data {

/// Before the record: its length (u64) and a checksum of that (u32). After it: a checksum of its bytes.
struct RecordFrame {
  static constexpr std::size_t head_bytes = 12, foot_bytes = 4;

  explicit RecordFrame(std::string_view record) {
    const std::uint64_t length = record.size();
    std::memcpy(head.data(), &length, sizeof length);
    const std::uint32_t of_length = checksum({head.data(), sizeof length}), of_record = checksum(record);
    std::memcpy(head.data() + sizeof length, &of_length, sizeof of_length);
    std::memcpy(foot.data(), &of_record, sizeof of_record);
  }
  /// Checksums of data that hold checksums themselves are weak; the format turns and shifts them against that.
  static std::uint32_t checksum(std::string_view bytes) {
    const std::uint32_t sum = files::crc32c({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
    return ((sum >> 15) | (sum << 17)) + 0xA282EAD8;
  }

  std::array<char, head_bytes> head;
  std::array<char, foot_bytes> foot;
};

}  // namespace stet::data
