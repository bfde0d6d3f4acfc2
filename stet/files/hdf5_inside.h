// What the reader and the writer of HDF5 share about its blocks. Not a public header.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace stet::files::hdf5 {

inline constexpr unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
/// An address of nothing.
inline constexpr std::uint64_t undefined = ~std::uint64_t{0};
inline constexpr std::size_t most_axes = 32;
inline constexpr std::size_t longest_path = 1024;

enum MessageType : std::uint16_t {
  nil = 0x00,
  dataspace = 0x01,
  link_info = 0x02,
  datatype = 0x03,
  fill_value = 0x05,
  link = 0x06,
  external_files = 0x07,
  layout = 0x08,
  group_info = 0x0A,
  filters = 0x0B,
  attribute = 0x0C,
  continuation = 0x10,
  symbol_table = 0x11,
  attribute_info = 0x15,
  last_known = 0x17,
};

enum Class : unsigned {
  fixed_point = 0,
  floating_point = 1,
  time = 2,
  characters = 3,
  bit_field = 4,
  opaque = 5,
  compound = 6,
  reference = 7,
  enumeration = 8,
  variable_length = 9,
  array = 10,
  complex = 11,
};

enum FilterId : unsigned { deflate = 1, shuffle = 2, fletcher32 = 3 };

/// Bob Jenkins's lookup3, with which newer blocks end.
std::uint32_t lookup3(std::span<const std::byte> bytes);
std::uint32_t fletcher(std::span<const std::byte> bytes);

}  // namespace stet::files::hdf5
