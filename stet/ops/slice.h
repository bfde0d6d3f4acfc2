#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "stet/core/in.h"

namespace stet {

/// slice(), with the positions that were asked for as messages name them; empty for axes without one.
Tensor indexed_slice(In x, const std::vector<Dim>& begin, const std::vector<Dim>& size,
                     const std::vector<std::int64_t>& step, const std::vector<std::string>& index);

}  // namespace stet
