#include "stet/ir/attributes.h"

#include <algorithm>

#include "stet/base/dim_inside.h"

namespace stet::attribute {

std::size_t hash(const Dim& v) { return v.hash(); }
std::size_t hash(const Shape& v) { return v.hash(); }

bool equal(const Dim& a, const Dim& b) { return identical(a, b); }
bool equal(const Shape& a, const Shape& b) { return identical(a, b); }

bool is_symbolic(const Dim& v) { return !v.is_constant(); }
bool is_symbolic(const Shape& v) { return !v.is_constant(); }
bool is_symbolic(const std::vector<Dim>& v) {
  return std::any_of(v.begin(), v.end(), [](const Dim& dim) { return !dim.is_constant(); });
}

}  // namespace stet::attribute
