// Protocol buffers, written: a message is its fields, one after the other. Not a public header.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace stet::files {

/// A message in the making. Fields that were not written have their defaults.
class Proto {
 public:
  /// int32, int64, bool and enumerations; negative ones take ten bytes.
  Proto& integer(unsigned field, std::int64_t value) {
    key(field, varint);
    number(static_cast<std::uint64_t>(value));
    return *this;
  }
  Proto& real(unsigned field, double value) {
    static_assert(std::endian::native == std::endian::little);
    key(field, fixed64);
    char room[sizeof value];
    std::memcpy(room, &value, sizeof value);
    bytes_.append(room, sizeof value);
    return *this;
  }
  /// Strings, bytes, and numbers that are packed.
  Proto& bytes(unsigned field, std::string_view value) {
    key(field, delimited);
    number(value.size());
    bytes_ += value;
    return *this;
  }
  Proto& message(unsigned field, const Proto& value) { return bytes(field, value.bytes_); }

  /// Outside of a field: an element of a packed list.
  Proto& number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
    return *this;
  }

  const std::string& str() const& { return bytes_; }
  std::string str() && { return std::move(bytes_); }

 private:
  enum Wire : unsigned { varint = 0, fixed64 = 1, delimited = 2 };
  void key(unsigned field, Wire wire) { number(field << 3 | wire); }
  std::string bytes_;
};

}  // namespace stet::files
