#include "stet/keras/added_losses.h"

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/base/thread_end.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"
#include "stet/core/trace_end.h"
#include "stet/keras/layer_state.h"

namespace stet::keras {
namespace {

/// Of calls that have ended.
struct Kept {
  std::uint64_t entry;  // the layer that was called, of which the adding one is a part
  const Trace* trace;   // that ran
  LossesOfCall::Added added;
};
struct OfThread {
  LossesOfCall* innermost = nullptr;
  std::vector<Kept> kept;
};
OfThread& of_thread() {
  constinit thread_local OfThread* losses = nullptr;
  return losses ? *losses : make_for_this_thread(losses);
}

/// A later trace may stand where an earlier one stood: its values tell them apart.
bool belongs_to(const Kept& kept, const Trace* trace) {
  if (kept.trace != trace) return false;
  const TensorNode& node = defined_node(kept.added.loss, "losses", {});
  return !node.traced || node.traced->life->trace == trace;
}

/// Values of a trace end with it, and those of traces inside it have.
void forget_values_of(const Trace& ended) {
  std::erase_if(of_thread().kept, [&](const Kept& one) {
    const TensorNode& node = defined_node(one.added.loss, "losses", {});
    return one.trace == &ended || (node.traced && !node.traced->life->trace);
  });
}

}  // namespace

LossesOfCall::LossesOfCall(const CustomLayer& layer) : layer_(layer.object_id()), around_(of_thread().innermost) {
  of_thread().innermost = this;
}
LossesOfCall::~LossesOfCall() { of_thread().innermost = around_; }

std::vector<Tensor> LossesOfCall::with(const Tensor& result) const {
  std::vector<Tensor> out{result};
  for (const Added& one : added_) out.push_back(one.loss);
  return out;
}

Tensor LossesOfCall::taken(std::vector<Tensor> given) {
  for (std::size_t i = 0; i < added_.size(); ++i) added_[i].loss = given[i + 1];
  if (around_) {
    around_->added_.insert(around_->added_.end(), added_.begin(), added_.end());
  } else {
    std::vector<Kept>& kept = of_thread().kept;
    const Trace* trace = current_trace();
    std::erase_if(kept, [&](const Kept& one) { return one.entry == layer_ || !belongs_to(one, trace); });
    if (trace && !added_.empty()) set_trace_end(forget_values_of);
    for (const Added& one : added_) kept.push_back({layer_, trace, one});
  }
  return given[0];
}

void LossesOfCall::add(const CustomLayer& layer, const Tensor& loss, Where where) {
  LossesOfCall* call = of_thread().innermost;
  if (!call)
    throw UserError(
        error_text(text("add_loss: ", layer.description(), " is not being called"), where, "add losses inside call()"));
  if (!loss.defined() || loss.rank() != 0 || !is_floating(loss.dtype()))
    throw UserError(error_text(text("add_loss: ", layer.description(), " adds ",
                                    loss.defined() ? described(loss) : std::string("an undefined tensor")),
                               where, "a loss is one floating number: take the mean"));
  call->added_.push_back({layer.object_id(), loss});
}

std::vector<LossesOfCall::Added> LossesOfCall::latest() {
  std::vector<Added> out;
  for (const Kept& one : of_thread().kept)
    if (belongs_to(one, current_trace())) out.push_back(one.added);
  return out;
}

}  // namespace stet::keras
