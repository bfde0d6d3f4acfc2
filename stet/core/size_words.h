// Sizes in messages and summaries of layers. Nothing may be decided by these words, which are not recorded, but what
// holds of a size in all calls: size_always() and is_always().
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "stet/base/dim.h"
#include "stet/core/signature.h"

namespace stet {

/// The size in the call being traced: "3"; "?" if it depends on values.
std::string size_now(const Dim& size);
/// The size in all calls that the trace serves, as far as its facts fix it: "3"; otherwise "None".
std::string size_always(const Dim& size);
/// Whether size_always() is this number.
bool is_always(const Dim& size, std::int64_t number);

/// The size as a promise: a number if it is the same in every call, the name of one that is the same by form, or `dyn`.
DimSpec size_promised(const Dim& size, const std::map<std::string, Dim>& named);

}  // namespace stet
