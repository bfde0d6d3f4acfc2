// Sizes in messages and summaries. Nothing may be decided by these texts: they are not recorded.
#include "stet/base/text.h"
#include "stet/keras/layer_state.h"

namespace stet::keras {

std::string described(const Dim& size) {
  std::optional<std::int64_t> hint = size.hint();
  return hint ? text(*hint) : "?";
}
std::string described(const Shape& shape) {
  std::vector<std::string> sizes;
  for (const Dim& dim : shape) sizes.push_back(described(dim));
  return text("[", joined(sizes, ","), "]");
}
std::string described(const Tensor& tensor) {
  return tensor.defined() ? text(tensor.dtype(), described(tensor.shape())) : "an undefined tensor";
}

std::string summarised(const Dim& size) {
  Dim known = simplified(size);
  return known.is_constant() ? text(known.constant()) : "None";
}

}  // namespace stet::keras
