// The memory of tensors, as files take it. Not a public header.
#pragma once
#include <cstddef>
#include <span>

#include "stet/base/where.h"
#include "stet/core/tensor.h"

namespace stet::keras {

/// The elements of a dense tensor.
std::span<const std::byte> bytes_of(const Tensor& tensor, Where where);

}  // namespace stet::keras
