// The file of exported functions. Not a public header.
//
// Everything is stored with the lowest byte first. A header of 128 bytes, then the head, then the elements of tensors,
// each tensor at the next multiple of 64 bytes, with zeros between. All bytes are covered by checksums (CRC-32C): the
// header by its own, the head by one in the header, the elements of each tensor by one in the head.
//
//   header   magic (8), version (4), the oldest reader that understands it (4), bytes of the head (8), bytes of the
//            file (8), checksum of the head (4), zeros (4), who wrote it (24), zeros (60), checksum of the header (4)
//   head     names of ops and primitives, names of source files, Variables, tensors, functions
//
// A file of a newer version may be read as long as it says so; an op that this library does not have is refused by its
// name.
#pragma once
#include <array>
#include <cstdint>

namespace stet::exported {

constexpr std::array<char, 8> magic = {'\x89', 's', 't', 'e', 't', 'f', 'n', '\n'};
constexpr std::uint32_t version = 1, oldest_reader = 1;
constexpr std::uint64_t alignment = 64;

struct Header {
  std::array<char, 8> magic = exported::magic;
  std::uint32_t version = exported::version, oldest_reader = exported::oldest_reader;
  std::uint64_t head_bytes = 0, file_bytes = 0;
  std::uint32_t head_checksum = 0, zero = 0;
  std::array<char, 24> writer = {};
  std::array<char, 60> zeros = {};
  std::uint32_t checksum = 0;  // of what stands before
};
static_assert(sizeof(Header) == 128);

constexpr std::uint64_t aligned(std::uint64_t offset) { return (offset + alignment - 1) / alignment * alignment; }

}  // namespace stet::exported
