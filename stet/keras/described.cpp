#include "stet/base/text.h"
#include "stet/core/size_words.h"
#include "stet/keras/layer_state.h"

namespace stet::keras {

std::string described(const Shape& shape) {
  std::vector<std::string> sizes;
  for (const Dim& dim : shape) {
    // What is built from the types of its inputs has no call yet, and sizes that nobody gave.
    const bool made_up = only_building() && size_always(dim) == "None";
    sizes.push_back(!made_up ? size_now(dim) : sizes.empty() ? "batch" : "?");
  }
  return text("[", joined(sizes, ","), "]");
}
std::string described(const Tensor& tensor) {
  return tensor.defined() ? text(tensor.dtype(), described(tensor.shape())) : "an undefined tensor";
}

}  // namespace stet::keras
