#include "stet/core/signature.h"

#include <ostream>

#include "stet/base/text.h"

namespace stet {

std::string ShapeSpec::str() const {
  std::vector<std::string> sizes;
  for (const DimSpec& dim : dims)
    sizes.push_back(dim.size ? std::to_string(*dim.size) : dim.name.empty() ? "?" : dim.name);
  return text("[", joined(sizes, ","), "]");
}

std::string TensorSpec::str() const { return text(dtype, shape); }

std::ostream& operator<<(std::ostream& out, const ShapeSpec& shape) { return out << shape.str(); }
std::ostream& operator<<(std::ostream& out, const TensorSpec& spec) { return out << spec.str(); }

}  // namespace stet
