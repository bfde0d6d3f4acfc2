#include "stet/data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
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
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
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

  // Grown as data arrives: a header that lies about its size costs no memory.
  constexpr std::size_t block = std::size_t{1} << 24;
  std::vector<unsigned char> data;
  auto wanted = static_cast<std::size_t>(bytes);
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
