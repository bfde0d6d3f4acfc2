#include "stet/data/idx.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "stet/base/text.h"
#include "stet/core/tensor_node.h"
#include "stet/data/stream.h"
#include "stet/files/source.h"

namespace stet::data {
namespace {

std::optional<DType> element_type(unsigned char code) {
  switch (code) {
    case 0x08:
      return DType::u8;
    case 0x09:
      return DType::i8;
    case 0x0B:
      return DType::i16;
    case 0x0C:
      return DType::i32;
    case 0x0D:
      return DType::f32;
    case 0x0E:
      return DType::f64;
    default:
      return std::nullopt;
  }
}

/// What a gzip file says of its length, decompressed (modulo 2^32, and of its last part only); else the file's length.
std::uint32_t stated_length(const Stream& stream) {
  const files::Input& input = stream.input();
  if (!stream.compressed() || input.size() < 4) return static_cast<std::uint32_t>(input.size());
  unsigned char last[4];
  input.read(input.size() - 4, last, 4, "length");
  return std::uint32_t{last[0]} | std::uint32_t{last[1]} << 8 | std::uint32_t{last[2]} << 16 |
         std::uint32_t{last[3]} << 24;
}

/// How long it is, decompressed: by reading it.
std::uint64_t length_by_reading(const Stream& stream) {
  const files::Reading& reading = stream.input().reading();
  Stream again(reading.path, reading.call, reading.where);
  while (!again.at_end()) again.skip(again.window().size());
  return again.at();
}

}  // namespace

Tensor read_idx(const std::string& path, Where where) {
  Stream file(path, "read_idx", where);
  unsigned char magic[4];
  file.read_all(magic, 4, "header");
  std::optional<DType> dtype = element_type(magic[2]);
  if (magic[0] != 0 || magic[1] != 0 || !dtype || magic[3] > max_rank)
    file.fail("is not an IDX file", 0, "IDX files begin with two zero bytes, a type and a rank");
  std::vector<std::int64_t> sizes;
  for (int axis = 0; axis < magic[3]; ++axis) {
    unsigned char word[4];
    file.read_all(word, 4, "header");
    sizes.push_back(std::int64_t{word[0]} << 24 | word[1] << 16 | word[2] << 8 | word[3]);
  }
  const auto width = static_cast<std::size_t>(size_of(*dtype));
  std::uint64_t wanted = 0;
  if (!files::bytes_of(sizes, width, wanted)) file.fail("declares sizes whose product is too large", 4);

  // Whether the data is all there is found out before there is memory for it: a file that lies about its size costs
  // none.
  const std::uint64_t header = file.at();
  auto cut_off = [&](std::uint64_t end) {
    file.fail(text("ends in its data, of which ", header + wanted - end, " bytes are missing"), end);
  };
  if (!file.compressed() && file.input().size() < header + wanted) cut_off(file.input().size());
  if (file.compressed() &&
      (wanted > file.most_left() || stated_length(file) != static_cast<std::uint32_t>(header + wanted)))
    if (std::uint64_t end = length_by_reading(file); end < header + wanted) cut_off(end);
  Buffer buffer = memory_for_file(file.input().reading(), wanted);
  std::byte* data = buffer.data();
  if (std::size_t got = file.read(data, wanted); got < wanted) cut_off(file.at());
  if (!file.at_end()) file.fail("has more data than its header says", file.at());
  if (width > 1)
    for (std::size_t at = 0; at < wanted; at += width) std::reverse(data + at, data + at + width);
  return dense_tensor(*dtype, sizes, std::move(buffer));
}

}  // namespace stet::data
