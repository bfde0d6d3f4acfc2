// The graph of a trace as TensorFlow's GraphDef, which TensorBoard draws. Not a public header.
#pragma once
#include <string>

#include "stet/core/function.h"

namespace stet::reporting {

/// As it was recorded, before anything is fused. Names are of the parts of the program (NameScope) and of public
/// functions, "sequential/dense/matmul": TensorBoard makes a box of each. UserError if there is no such trace.
std::string graph_def_of(const FunctionBase& function, int trace, const char* call, Where where);

}  // namespace stet::reporting
