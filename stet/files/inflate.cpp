#include "stet/files/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <new>

namespace stet::files {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 18;

class Stream {
 public:
  explicit Stream(Wrapped wrapped) {
    if (inflateInit2(&stream_, wrapped == Wrapped::zlib ? 15 : -15) != Z_OK) throw std::bad_alloc();
  }
  ~Stream() { inflateEnd(&stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  z_stream* operator->() { return &stream_; }
  z_stream* get() { return &stream_; }

 private:
  z_stream stream_{};
};

}  // namespace

Bytes inflated(const Source& packed, std::uint64_t size, Wrapped wrapped,
               const std::function<void(const char* reason, std::uint64_t at)>& fail) {
  Stream stream(wrapped);
  Bytes bytes;
  Bytes block(static_cast<std::size_t>(std::min<std::uint64_t>(packed.size(), block_bytes)));
  std::uint64_t taken = 0;
  std::size_t made = 0;
  auto at = [&] { return taken - stream->avail_in; };
  for (int status = Z_OK; status != Z_STREAM_END;) {
    if (stream->avail_in == 0) {
      if (taken == packed.size()) fail("has packed data that is cut off", taken);
      auto part = static_cast<std::size_t>(std::min<std::uint64_t>(packed.size() - taken, block_bytes));
      packed.read(taken, block.data(), part, "packed data");
      taken += part;
      stream->next_in = reinterpret_cast<unsigned char*>(block.data());
      stream->avail_in = static_cast<unsigned>(part);
    }
    if (made == bytes.size()) {
      if (made > size) fail("unpacks to more than it says", at());
      // One byte of room behind the end, so that a stream which goes on is seen.
      bytes.resize(static_cast<std::size_t>(
          std::min<std::uint64_t>(size + 1, std::max<std::uint64_t>(2 * std::uint64_t{made}, block_bytes))));
    }
    auto room = static_cast<unsigned>(std::min<std::size_t>(bytes.size() - made, std::size_t{1} << 30));
    stream->next_out = reinterpret_cast<unsigned char*>(bytes.data()) + made;
    stream->avail_out = room;
    status = ::inflate(stream.get(), Z_NO_FLUSH);
    made += room - stream->avail_out;
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
      fail("has packed data that is damaged", at());
  }
  if (made != size) fail(made > size ? "unpacks to more than it says" : "unpacks to less than it says", at());
  if (at() != packed.size()) fail("has more bytes behind its packed data", at());
  bytes.resize(made);
  return bytes;
}

}  // namespace stet::files
