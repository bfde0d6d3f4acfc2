// NumPy's files: .npy holds one array, .npz several by name.
//
// NumPy's types and ours: bool, int8 to int64, uint8, float16 to float64 are the same. uint16 and uint32 become i32 and
// i64, and so does uint64 where its values fit. bf16 is written as two bytes without a type (V2), as ml_dtypes does
// with NumPy's save, and read from it. Arrays of Python objects are refused: to read one is to run what it says.
#pragma once
#include <map>
#include <string>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/tensor.h"

namespace stet::data {

/// The array in a .npy file of any version and byte order, row-major also if the file is not. A file that is damaged or
/// not NPY, and types that there are none for here, are a UserError.
STET_API Tensor read_npy(const std::string& path, Where where = Where::here());
/// Overwrites a file of that name, at once and completely.
STET_API void write_npy(const std::string& path, const Tensor& tensor, Where where = Where::here());

/// The arrays in a .npz file, by name, as numpy.savez and savez_compressed write them.
STET_API std::map<std::string, Tensor> read_npz(const std::string& path, Where where = Where::here());
/// As numpy.savez: not compressed.
STET_API void write_npz(const std::string& path, const std::map<std::string, Tensor>& tensors,
                        Where where = Where::here());

}  // namespace stet::data
