// Labels and predictions of one column. Not a public header.
#pragma once
#include "stet/base/where.h"
#include "stet/core/tensor.h"

namespace stet::keras {

/// Has the last axis one element? In a trace the answer becomes a fact, which `asker` asked for.
bool single_column(const Tensor& t, const char* asker, Where where);

}  // namespace stet::keras
