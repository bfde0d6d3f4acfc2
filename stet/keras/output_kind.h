// What the last layer of a model gives, as far as losses care: logits or probabilities. One taken for the other trains
// badly and says nothing; a step that is traced says it once. Not a public header.
#pragma once
#include <string>
#include <vector>

#include "stet/base/where.h"
#include "stet/core/tensor.h"
#include "stet/keras/loss.h"

namespace stet::keras {

/// For the time of a step on this thread: what its layers gave, while it is traced.
class OutputKinds {
 public:
  enum class Kind { logits, probabilities };
  struct Known {
    Tensor tensor;
    Kind kind;
    std::string layer;       // "Dense 'dense_1'"
    std::string activation;  // "softmax"; of logits: ""
  };

  OutputKinds();
  ~OutputKinds();
  OutputKinds(const OutputKinds&) = delete;
  OutputKinds& operator=(const OutputKinds&) = delete;

  /// Nothing happens outside of a step, or in one that is not traced.
  static void note(const Tensor& tensor, Kind kind, const CustomLayer& layer, const char* activation);
  /// What a loss is told of predictions that it takes for something else; "" if nothing is known against them.
  static std::string warning(const Loss& loss, const Tensor& predictions, Where where);

 private:
  std::vector<Known> known_;
  OutputKinds* outer_;
};

}  // namespace stet::keras
