#include "stet/base/text.h"
#include "stet/core/size_words.h"
#include "stet/keras/layer_state.h"

namespace stet::keras {

std::string described(const Shape& shape) {
  std::vector<std::string> sizes;
  for (const Dim& dim : shape) sizes.push_back(size_now(dim));
  return text("[", joined(sizes, ","), "]");
}
std::string described(const Tensor& tensor) {
  return tensor.defined() ? text(tensor.dtype(), described(tensor.shape())) : "an undefined tensor";
}

}  // namespace stet::keras
