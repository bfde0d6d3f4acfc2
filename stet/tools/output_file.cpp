#include "stet/tools/output_file.h"

#include <iostream>

namespace stet::tools {

class OutputFile::Buffer : public std::streambuf {
 public:
  explicit Buffer(files::Output& file) : file_(file) {}

 protected:
  std::streamsize xsputn(const char* from, std::streamsize count) override {
    file_.write(from, static_cast<std::size_t>(count));
    return count;
  }
  int overflow(int character) override {
    const char one = static_cast<char>(character);
    if (character != traits_type::eof()) file_.write(&one, 1);
    return traits_type::not_eof(character);
  }

 private:
  files::Output& file_;
};

OutputFile::OutputFile(const std::string& path, const std::string& call) {
  if (path == "-") return;
  file_ = std::make_unique<files::Output>(path, call, Where());
  buffer_ = std::make_unique<Buffer>(*file_);
  stream_ = std::make_unique<std::ostream>(buffer_.get());
  stream_->exceptions(std::ios::badbit);  // so that what write() throws gets through
}

OutputFile::~OutputFile() = default;

std::ostream& OutputFile::stream() { return stream_ ? *stream_ : std::cout; }

void OutputFile::commit() {
  if (file_)
    file_->commit();
  else
    std::cout.flush();
}

}  // namespace stet::tools
