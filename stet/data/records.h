// Datasets of byte strings that several files hold one after the other. Not a public header.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stet/core/tensor.h"
#include "stet/data/dataset.h"
#include "stet/data/stream.h"

namespace stet::data {

/// u8[n]; UserError where there is no memory.
Tensor byte_tensor(std::string_view bytes, const files::Reading& reading);

/// Reads the records of one file.
class RecordReader {
 public:
  virtual ~RecordReader() = default;
  /// False at the end.
  virtual bool next(Tensor& out) = 0;
};

/// Every file is looked for now, and read when its records are needed.
StagePointer records_of(const char* call, std::vector<std::string> paths,
                        std::function<std::unique_ptr<RecordReader>(const std::string& path)> open, Where where);

}  // namespace stet::data
