#include "stet/data/text_lines.h"

#include <cstring>
#include <memory>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/data/records.h"

namespace stet::data {
namespace {

class LineReader : public RecordReader {
 public:
  LineReader(const std::string& path, std::uint64_t most, Where where)
      : stream_(path, "text_lines", where), most_(most) {}

  bool next(Tensor& out) override {
    return keeping(stream_.input().reading(), [&] { return next_line(out); });
  }

 private:
  bool next_line(Tensor& out) {
    if (stream_.at_end()) return false;
    const std::uint64_t begin = stream_.at();
    ++line_;
    rest_.clear();
    for (;;) {
      std::span<const char> ahead = stream_.window();
      const void* end = ahead.empty() ? nullptr : std::memchr(ahead.data(), '\n', ahead.size());
      const std::size_t part =
          end ? static_cast<std::size_t>(static_cast<const char*>(end) - ahead.data()) : ahead.size();
      if (rest_.size() + part > most_)
        stream_.fail(text("line ", line_, " is longer than ", most_, " bytes"), begin,
                     "give a larger max_line_bytes if it is text");
      std::string_view line(ahead.data(), part);
      const bool whole = end || ahead.empty();
      if (!whole || !rest_.empty()) rest_ += line;
      if (whole) {
        if (!rest_.empty()) line = rest_;
        if (end && line.ends_with('\r')) line.remove_suffix(1);
        out = byte_tensor(line, stream_.input().reading());
        stream_.skip(end ? part + 1 : part);
        return true;
      }
      stream_.skip(part);
    }
  }

  Stream stream_;
  std::uint64_t most_;
  std::int64_t line_ = 0;
  std::string rest_;  // of a line that goes on behind the window
};

}  // namespace

Dataset<Tensor> text_lines(const Paths& paths, TextLinesOptions options, Where where) {
  if (options.max_line_bytes < 0)
    throw UserError(error_text(text("text_lines: max_line_bytes is ", options.max_line_bytes), where,
                               "give the length of the longest line, or more"));
  const auto most = static_cast<std::uint64_t>(options.max_line_bytes);
  return Dataset<Tensor>(records_of(
      "text_lines", paths.list,
      [most, where](const std::string& path) { return std::make_unique<LineReader>(path, most, where); }, where));
}

}  // namespace stet::data
