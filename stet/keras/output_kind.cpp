#include "stet/keras/output_kind.h"

#include <algorithm>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/scope.h"

namespace stet::keras {
namespace {
thread_local OutputKinds* current = nullptr;
}

OutputKinds::OutputKinds() : outer_(std::exchange(current, this)) {}
OutputKinds::~OutputKinds() { current = outer_; }

void OutputKinds::note(const Tensor& tensor, Kind kind, const CustomLayer& layer, const char* activation) {
  if (current && tracing()) current->known_.push_back({tensor, kind, layer.description(), activation});
}

std::string OutputKinds::warning(const Loss& loss, const Tensor& predictions, Where where) {
  using Takes = CustomLoss::Takes;
  const Takes takes = static_cast<const CustomLoss&>(*loss.body()).takes();
  if (!current || takes == Takes::anything) return {};
  auto found = std::find_if(current->known_.rbegin(), current->known_.rend(),
                            [&](const Known& one) { return one.tensor.node() == predictions.node(); });
  if (found == current->known_.rend()) return {};
  if (takes == Takes::logits && found->kind == Kind::probabilities)
    return text("stet: ", loss.name(), " takes logits (from_logits = true), and ", found->layer,
                " gives probabilities (", found->activation, ")", at_line(where, ", at "),
                "\n  fix: leave out the layer's activation, or the loss's from_logits\n");
  if (takes == Takes::probabilities && found->kind == Kind::logits)
    return text("stet: ", loss.name(), " takes probabilities, and ", found->layer, " has no activation",
                at_line(where, ", at "),
                "\n  fix: give the loss {.from_logits = true}, or the layer .activation = softmax, or sigmoid\n");
  return {};
}

}  // namespace stet::keras
