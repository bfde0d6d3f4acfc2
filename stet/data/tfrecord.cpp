#include "stet/data/tfrecord.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/tensor_node.h"
#include "stet/data/record_frame.h"
#include "stet/data/records.h"
#include "stet/files/file.h"

namespace stet::data {
namespace {

constexpr std::size_t head_bytes = RecordFrame::head_bytes;

template <class T>
T number_at(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

bool head_is_right(const char* head) { return number_at<std::uint32_t>(head + 8) == RecordFrame::checksum({head, 8}); }

using Compression = Stream::Compression;

std::optional<Compression> compression_called(const std::string& name) {
  if (name == "NONE" || name.empty()) return Compression::none;
  if (name == "GZIP") return Compression::gzip;
  if (name == "ZLIB") return Compression::zlib;
  return std::nullopt;
}

/// By the first bytes. What begins as a record does is a record, whatever else it looks like.
Compression detected(const std::string& path, Where where) {
  files::Input input(path, "tfrecord", where);
  char head[head_bytes] = {};
  const auto have = static_cast<std::size_t>(std::min<std::uint64_t>(input.size(), head_bytes));
  input.read(0, head, have, "header");
  if (have == head_bytes && head_is_right(head)) return Compression::none;
  const auto first = static_cast<unsigned char>(head[0]), second = static_cast<unsigned char>(head[1]);
  if (have > 2 && first == 0x1F && second == 0x8B) return Compression::gzip;
  if (have > 2 && (first & 15) == 8 && first >> 4 <= 7 && (first * 256 + second) % 31 == 0) return Compression::zlib;
  return Compression::none;
}

class TFRecordReader : public RecordReader {
 public:
  TFRecordReader(const std::string& path, std::optional<Compression> compression, Where where)
      : stream_(path, "tfrecord", where, compression ? *compression : detected(path, where)) {}

  bool next(Tensor& out) override {
    if (stream_.at_end()) return false;
    const std::uint64_t begin = stream_.at();
    char head[head_bytes];
    stream_.read_all(head, head_bytes, "record's header");
    if (!head_is_right(head))
      stream_.fail(number_ == 0 ? "is not a TFRecord file: the first record's length has a wrong checksum"
                                : text("the length of record ", number_, " has a wrong checksum").c_str(),
                   begin);
    const auto length = number_at<std::uint64_t>(head);
    const std::uint64_t most = stream_.most_left();
    if (length > most || most - length < 4)
      stream_.fail(text("ends in record ", number_, ", which has ", length, " bytes"), begin);
    Buffer buffer = record(length, begin);
    char sum[4];
    stream_.read_all(sum, 4, "record's checksum");
    const std::string_view bytes(reinterpret_cast<const char*>(buffer.data()), static_cast<std::size_t>(length));
    if (number_at<std::uint32_t>(sum) != RecordFrame::checksum(bytes))
      stream_.fail(text("record ", number_, " has a wrong checksum"), begin);
    ++number_;
    const auto size = static_cast<std::int64_t>(length);
    out = dense_tensor(DType::u8, {&size, 1}, std::move(buffer));
    return true;
  }

 private:
  /// Memory grows with what arrives, where a compressed file only claims to hold so much.
  Buffer record(std::uint64_t length, std::uint64_t begin) {
    const files::Reading& reading = stream_.input().reading();
    constexpr std::uint64_t believed = std::uint64_t{1} << 24;
    std::uint64_t room = stream_.compressed() ? std::min(length, believed) : length, done = 0;
    Buffer buffer = memory_for_file(reading, room);
    for (;;) {
      const auto part = static_cast<std::size_t>(room - done);
      const std::size_t got = stream_.read(buffer.data() + done, part);
      if (got < part) stream_.fail(text("ends in record ", number_, ", which has ", length, " bytes"), begin);
      done = room;
      if (done == length) return buffer;
      room = length - room < room ? length : room * 2;
      Buffer larger = memory_for_file(reading, room);
      std::memcpy(larger.data(), buffer.data(), static_cast<std::size_t>(done));
      buffer = std::move(larger);
    }
  }

  Stream stream_;
  std::int64_t number_ = 0;
};

}  // namespace

Dataset<Tensor> tfrecord(const Paths& paths, TFRecordOptions options, Where where) {
  std::optional<Compression> compression;
  if (options.compression != "auto") {
    compression = compression_called(options.compression);
    if (!compression)
      throw UserError(error_text(text("tfrecord: compression \"", options.compression, "\" is not known"), where,
                                 "\"auto\", \"NONE\", \"GZIP\" or \"ZLIB\""));
  }
  return Dataset<Tensor>(records_of(
      "tfrecord", paths.list,
      [compression, where](const std::string& path) {
        return std::make_unique<TFRecordReader>(path, compression, where);
      },
      where));
}

// --- writing

struct TFRecordWriter::State {
  State(const std::string& path, Where where) : output(path, "TFRecordWriter", where), path(path) {}
  ~State() {
    if (deflating) deflateEnd(&deflate);
  }
  void put(const void* bytes, std::size_t count) {
    if (!deflating) return output.write(bytes, count);
    deflate.next_in = static_cast<Bytef*>(const_cast<void*>(bytes));
    while (count > 0) {
      const std::size_t part = std::min(count, std::size_t{1} << 30);
      deflate.avail_in = static_cast<uInt>(part);
      compress(Z_NO_FLUSH);
      count -= part;
    }
  }
  void compress(int flush) {
    unsigned char piece[1 << 14];
    do {
      deflate.next_out = piece;
      deflate.avail_out = sizeof piece;
      ::deflate(&deflate, flush);
      output.write(piece, sizeof piece - deflate.avail_out);
    } while (deflate.avail_out == 0);
  }

  files::Output output;
  std::string path;
  z_stream deflate{};
  bool deflating = false, closed = false;
  bool broken = false;  // a record was not written completely
  std::int64_t count = 0;
  int exceptions = std::uncaught_exceptions();
};

TFRecordWriter::TFRecordWriter(const std::string& path, TFRecordWriterOptions options, Where where) {
  std::optional<Compression> compression = compression_called(options.compression);
  if (!compression)
    throw UserError(error_text(text("TFRecordWriter: compression \"", options.compression, "\" is not known"), where,
                               "\"NONE\", \"GZIP\" or \"ZLIB\""));
  state_ = std::make_unique<State>(path, where);
  if (*compression != Compression::none) {
    if (deflateInit2(&state_->deflate, Z_DEFAULT_COMPRESSION, Z_DEFLATED, *compression == Compression::gzip ? 31 : 15,
                     8, Z_DEFAULT_STRATEGY) != Z_OK)
      throw UserError(error_text("TFRecordWriter: there is no memory to compress with", where, "free memory"));
    state_->deflating = true;
  }
}

TFRecordWriter::TFRecordWriter(TFRecordWriter&&) noexcept = default;

TFRecordWriter& TFRecordWriter::operator=(TFRecordWriter&& other) noexcept {
  TFRecordWriter old(std::move(*this));  // and is closed
  state_ = std::move(other.state_);
  return *this;
}

TFRecordWriter::~TFRecordWriter() {
  if (!state_ || state_->closed || std::uncaught_exceptions() > state_->exceptions) return;
  try {
    close();
  } catch (...) {
    // close() would have told.
  }
}

void TFRecordWriter::write(const BytesView& record, Where where) {
  if (!state_ || state_->closed)
    throw UserError(error_text(text("TFRecordWriter: '", state_ ? state_->path : "", "' is closed"), where,
                               "write all records before close()"));
  const RecordFrame frame(record.characters());
  state_->broken = true;
  state_->put(frame.head.data(), frame.head.size());
  state_->put(record.bytes().data(), record.size());
  state_->put(frame.foot.data(), frame.foot.size());
  state_->broken = false;
  ++state_->count;
}

std::int64_t TFRecordWriter::count() const { return state_ ? state_->count : 0; }

void TFRecordWriter::close(Where where) {
  if (!state_ || state_->closed) return;
  state_->closed = true;
  if (state_->broken)
    throw UserError(error_text(text("TFRecordWriter: '", state_->path, "': a record could not be written"), where,
                               "there is no file; write all of it again"));
  if (state_->deflating) state_->compress(Z_FINISH);
  state_->output.commit();
}

}  // namespace stet::data
