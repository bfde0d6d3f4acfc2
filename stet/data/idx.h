// IDX files: the format of MNIST and Fashion-MNIST.
#pragma once
#include <string>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/tensor.h"

namespace stet::data {

/// The tensor in an IDX file, plain or compressed with gzip. A file that is missing, cut off, too long or not IDX is a
/// UserError; nothing is allocated on a header's word alone.
STET_API Tensor read_idx(const std::string& path, Where where = Where::here());

}  // namespace stet::data
