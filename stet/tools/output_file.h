// A file that a command writes as a stream: whole, or not at all.
#pragma once
#include <memory>
#include <ostream>
#include <streambuf>
#include <string>

#include "stet/files/file.h"

namespace stet::tools {

/// `path` "-" is stdout. UserError if it cannot be written, at the time when that is found out.
class OutputFile {
 public:
  OutputFile(const std::string& path, const std::string& call);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  std::ostream& stream();
  /// What was written stands there under its name; without this nothing does.
  void commit();

 private:
  class Buffer;
  std::unique_ptr<files::Output> file_;  // null: stdout
  std::unique_ptr<Buffer> buffer_;
  std::unique_ptr<std::ostream> stream_;
};

}  // namespace stet::tools
