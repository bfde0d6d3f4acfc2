// TFRecord files: records of any bytes, each with checksums. What the records of TensorFlow's own files hold is in
// example.h.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/tensor.h"
#include "stet/data/bytes_view.h"
#include "stet/data/dataset.h"
#include "stet/data/paths.h"

namespace stet::data {

struct TFRecordOptions {
  /// "auto" looks at each file; "NONE", "GZIP" or "ZLIB".
  std::string compression = "auto";
};
/// The records of files, one file after the other, each as u8[n]. Files may be larger than memory. A record whose
/// checksum is wrong, or that its file does not hold, is a UserError where it would have come.
STET_API Dataset<Tensor> tfrecord(const Paths& paths, TFRecordOptions options = {}, Where where = Where::here());

struct TFRecordWriterOptions {
  std::string compression = "NONE";  // or "GZIP", "ZLIB"
};
/// Writes a file of records. It stands under its name once it is closed, and is complete then.
class STET_API TFRecordWriter {
 public:
  explicit TFRecordWriter(const std::string& path, TFRecordWriterOptions options = {}, Where where = Where::here());
  /// Closes it, unless an exception is on its way: then there is no file. Only close() tells of problems.
  ~TFRecordWriter();
  TFRecordWriter(TFRecordWriter&&) noexcept;
  TFRecordWriter& operator=(TFRecordWriter&&) noexcept;

  void write(const BytesView& record, Where where = Where::here());
  /// How many records were written.
  std::int64_t count() const;
  /// Puts the file in its place. Then write() is a UserError, and another close() does nothing.
  void close(Where where = Where::here());

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stet::data
