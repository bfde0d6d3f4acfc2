#include "stet/data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "stet/base/text.h"

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

class IdxFile {
 public:
  IdxFile(const std::string& path, Where where)
      : path_(path), where_(where), file_(gzopen(path.c_str(), "rb"), gzclose) {
    if (!file_) fail(text("cannot be opened: ", errno ? std::strerror(errno) : "out of memory"), "check the path");
    gzbuffer(file_.get(), 1 << 18);
  }

  [[noreturn]] void fail(const std::string& what, const std::string& advice) const {
    throw UserError(error_text(text("read_idx: '", path_, "' ", what), where_, advice));
  }

  /// Up to `count` bytes; fewer at the end of the file.
  std::size_t read(void* to, std::size_t count) {
    std::size_t done = 0;
    while (done < count) {
      auto part = static_cast<unsigned>(std::min<std::size_t>(count - done, 1 << 30));
      int got = gzread(file_.get(), static_cast<char*>(to) + done, part);
      if (got < 0) fail("is damaged: it does not decompress", "fetch it again");
      if (got == 0) {
        // Also when all data has come: the checksum behind it is part of the file.
        int problem = Z_OK;
        gzerror(file_.get(), &problem);
        if (problem == Z_BUF_ERROR) fail("is cut off", "fetch it again");
        break;
      }
      done += static_cast<std::size_t>(got);
    }
    return done;
  }
  /// What is still to come, in bytes. Reads it and goes back: for a file that seems not to hold what it should.
  std::int64_t rest() {
    z_off_t here = gztell(file_.get());
    std::vector<unsigned char> block(1 << 16);
    std::int64_t count = 0;
    while (std::size_t got = read(block.data(), block.size())) count += static_cast<std::int64_t>(got);
    if (gzseek(file_.get(), here, SEEK_SET) != here) fail("cannot be read twice", "fetch it again");
    return count;
  }
  /// The last four bytes of the file, which of a compressed one state how long it is uncompressed (modulo 2^32, and of
  /// its last part only); else its length.
  std::uint32_t stated_length() const {
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> raw(std::fopen(path_.c_str(), "rb"), std::fclose);
    unsigned char last[4] = {};
    if (!raw) return 0;
    if (gzdirect(file_.get()))
      return std::fseek(raw.get(), 0, SEEK_END) ? 0 : static_cast<std::uint32_t>(std::ftell(raw.get()));
    if (std::fseek(raw.get(), -4, SEEK_END) || std::fread(last, 1, 4, raw.get()) != 4) return 0;
    return std::uint32_t{last[0]} | std::uint32_t{last[1]} << 8 | std::uint32_t{last[2]} << 16 |
           std::uint32_t{last[3]} << 24;
  }
  void read_all(void* to, std::size_t count, const char* what) {
    if (read(to, count) != count) fail(text("is cut off in its ", what), "fetch it again");
  }

 private:
  std::string path_;
  Where where_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
};

}  // namespace

Tensor read_idx(const std::string& path, Where where) {
  IdxFile file(path, where);
  unsigned char magic[4];
  file.read_all(magic, 4, "header");
  std::optional<DType> dtype = element_type(magic[2]);
  if (magic[0] != 0 || magic[1] != 0 || !dtype || magic[3] > max_rank)
    file.fail("is not an IDX file", "IDX files begin with two zero bytes, a type and a rank");
  std::vector<std::int64_t> sizes;
  std::int64_t bytes = size_of(*dtype);
  bool overflow = false;
  for (int axis = 0; axis < magic[3]; ++axis) {
    unsigned char word[4];
    file.read_all(word, 4, "header");
    sizes.push_back(std::int64_t{word[0]} << 24 | word[1] << 16 | word[2] << 8 | word[3]);
    overflow |= __builtin_mul_overflow(bytes, sizes.back(), &bytes);
  }
  if (overflow) file.fail("declares sizes whose product is too large", "fetch it again");

  // Whether the data is all there is found out before there is memory for it, and then memory grows as data arrives: a
  // file that lies about its size costs none.
  auto wanted = static_cast<std::size_t>(bytes);
  std::size_t header = 4 + 4 * sizes.size();
  if (file.stated_length() != static_cast<std::uint32_t>(header + wanted) && file.rest() < bytes)
    file.fail("is cut off in its data", "fetch it again");
  constexpr std::size_t block = std::size_t{1} << 24;
  std::vector<unsigned char> data;
  while (data.size() < wanted) {
    std::size_t part = std::min(block, wanted - data.size()), before = data.size();
    data.resize(before + part);
    file.read_all(data.data() + before, part, "data");
  }
  unsigned char more;
  if (file.read(&more, 1) != 0) file.fail("has more data than its header says", "fetch it again");
  auto width = static_cast<std::size_t>(size_of(*dtype));
  if (width > 1)
    for (std::size_t at = 0; at < wanted; at += width)
      std::reverse(data.begin() + static_cast<std::ptrdiff_t>(at),
                   data.begin() + static_cast<std::ptrdiff_t>(at + width));
  return creation::copied(*dtype, data.data(), wanted / width, Shape(sizes), where);
}

}  // namespace stet::data
