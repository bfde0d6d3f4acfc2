#include "stet/core/signature.h"

#include <ostream>

namespace stet {

std::ostream& operator<<(std::ostream& out, const ShapeSpec& shape) {
  out << "[";
  const char* between = "";
  for (const DimSpec& dim : shape.dims) {
    out << between;
    if (dim.size)
      out << *dim.size;
    else
      out << (dim.name.empty() ? std::string("?") : dim.name);
    between = ",";
  }
  return out << "]";
}

std::ostream& operator<<(std::ostream& out, const TensorSpec& spec) { return out << spec.dtype << spec.shape; }

}  // namespace stet
