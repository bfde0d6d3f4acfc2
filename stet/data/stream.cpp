#include "stet/data/stream.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "stet/base/text.h"

namespace stet::data {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 17;

bool is_gzip(const unsigned char* bytes) { return bytes[0] == 0x1F && bytes[1] == 0x8B; }

}  // namespace

/// The state of a decompression, and the piece of the file that it is at.
struct Stream::Inflating {
  Inflating(bool gzip, const files::Reading& reading) : gzip(gzip), piece(std::size_t{1} << 16) {
    if (inflateInit2(&state, gzip ? 15 + 16 : 15) != Z_OK)
      reading.fail("there is no memory to decompress it", "free memory");
  }
  ~Inflating() { inflateEnd(&state); }
  z_stream state{};
  bool gzip;
  bool ended = false;
  std::vector<unsigned char> piece;
};

Stream::Stream(std::string path, std::string call, Where where, Compression compression)
    : input_(std::move(path), std::move(call), where) {
  unsigned char first[2] = {};
  if (compression == Compression::detect) {
    if (input_.size() >= 2) input_.read(0, first, 2, "header");
    compression = is_gzip(first) ? Compression::gzip : Compression::none;
  }
  if (compression != Compression::none)
    inflating_ = std::make_unique<Inflating>(compression == Compression::gzip, input_.reading());
}

Stream::~Stream() = default;

void Stream::fail(const std::string& reason, std::uint64_t offset, const std::string& advice) const {
  if (compressed()) input_.reading().fail(text(reason, ", at byte ", offset, " of what it decompresses to"), advice);
  input_.reading().fail(reason, offset, advice);
}

std::uint64_t Stream::most_left() const {
  const std::uint64_t in_file = input_.size() - file_at_;
  if (!inflating_) return in_file + (filled_ - at_);
  return deflate_bound(in_file + inflating_->state.avail_in) + (filled_ - at_);
}

std::size_t Stream::inflate(char* to, std::size_t count) {
  z_stream& state = inflating_->state;
  state.next_out = reinterpret_cast<Bytef*>(to);
  state.avail_out = static_cast<uInt>(count);
  while (state.avail_out > 0 && !inflating_->ended) {
    if (state.avail_in == 0) {
      const auto part =
          static_cast<std::size_t>(std::min<std::uint64_t>(inflating_->piece.size(), input_.size() - file_at_));
      if (part == 0) input_.reading().fail("ends in its compressed data", input_.size());
      input_.read(file_at_, inflating_->piece.data(), part, "compressed data");
      file_at_ += part;
      state.next_in = inflating_->piece.data();
      state.avail_in = static_cast<uInt>(part);
    }
    const int result = ::inflate(&state, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) input_.reading().fail("there is no memory to decompress it", "free memory");
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      input_.reading().fail(text("does not decompress", state.msg ? text(" (", state.msg, ")") : std::string()),
                            file_at_ - state.avail_in);
    if (result != Z_STREAM_END) continue;
    const std::uint64_t end = file_at_ - state.avail_in;
    unsigned char next[2] = {};
    if (end == input_.size()) {
      inflating_->ended = true;
    } else if (inflating_->gzip && input_.size() - end >= 2 &&
               (input_.read(end, next, 2, "next part"), is_gzip(next))) {
      // Another part: a gzip file may be put together from several.
      if (inflateReset(&state) != Z_OK) input_.reading().fail("does not decompress", end);
    } else {
      input_.reading().fail("has more behind its compressed data", end);
    }
  }
  return count - state.avail_out;
}

void Stream::fill() {
  if (buffer_.empty()) buffer_.resize(buffer_bytes);
  before_ += filled_;
  at_ = filled_ = 0;
  if (inflating_) {
    filled_ = inflate(buffer_.data(), buffer_.size());
    return;
  }
  const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(buffer_.size(), input_.size() - file_at_));
  if (part == 0) return;
  input_.read(file_at_, buffer_.data(), part, "contents");
  file_at_ += part;
  filled_ = part;
}

std::size_t Stream::read(void* to, std::size_t count) {
  auto* out = static_cast<char*>(to);
  std::size_t done = 0;
  while (done < count) {
    if (at_ == filled_ && !inflating_ && count - done >= buffer_bytes) {
      // Straight to where it goes.
      before_ += filled_;
      at_ = filled_ = 0;
      const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(count - done, input_.size() - file_at_));
      if (part == 0) break;
      input_.read(file_at_, out + done, part, "contents");
      file_at_ += part;
      before_ += part;
      done += part;
      continue;
    }
    std::span<const char> ahead = window();
    if (ahead.empty()) break;
    const std::size_t part = std::min(ahead.size(), count - done);
    std::memcpy(out + done, ahead.data(), part);
    skip(part);
    done += part;
  }
  return done;
}

void Stream::read_all(void* to, std::size_t count, const char* what) {
  if (read(to, count) != count) fail(text("ends in its ", what), at());
}

Buffer memory_for_file(const files::Reading& reading, std::uint64_t bytes) {
  try {
    return Buffer::allocate(static_cast<std::size_t>(bytes));
  } catch (const Problem& problem) {
    reading.fail(problem.text(), "free memory, or read it on a larger machine");
  }
}

}  // namespace stet::data
