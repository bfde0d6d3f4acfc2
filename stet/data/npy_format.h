// The NPY format, wherever its bytes are. Not a public header.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "stet/core/tensor.h"
#include "stet/files/file.h"

namespace stet::data {

/// Where an array is read from.
struct NpyBytes {
  std::uint64_t size;
  /// Checked against the size before.
  std::function<void(std::uint64_t offset, void* to, std::size_t count)> read;
};

Tensor decode_npy(const NpyBytes& bytes, const files::Reading& reading);
/// What stands before the elements of a dense tensor.
std::string npy_header(const Tensor& tensor);
/// The tensor as it is written: dense, on the host. UserError if it is none that can be.
Tensor npy_tensor(const Tensor& tensor, const char* call, const std::string& path, Where where);

}  // namespace stet::data
