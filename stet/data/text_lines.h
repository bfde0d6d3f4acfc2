// Text files as datasets of lines.
#pragma once
#include <cstdint>
#include <string>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/tensor.h"
#include "stet/data/dataset.h"
#include "stet/data/paths.h"

namespace stet::data {

struct TextLinesOptions {
  std::int64_t max_line_bytes = std::int64_t{1} << 26;  // a longer line is an error: the file is no text
};
/// The lines of files, one file after the other, each as its bytes, u8[n], without its end (LF or CRLF). A file may be
/// compressed with gzip, and larger than memory. Empty lines count; a last line needs no end.
STET_API Dataset<Tensor> text_lines(const Paths& paths, TextLinesOptions options = {}, Where where = Where::here());

}  // namespace stet::data
