#include "stet/keras/added_losses.h"

#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/kept_tensors.h"
#include "stet/keras/layer_state.h"

namespace stet::keras {
namespace {

LossesOfCall*& innermost() {
  constinit thread_local LossesOfCall* call = nullptr;
  return call;
}
/// Calls from outside of layers keep nothing.
bool& drops() {
  constinit thread_local bool dropped = false;
  return dropped;
}

}  // namespace

LossesOfCall::LossesOfCall(const CustomLayer& layer) : layer_(layer), trace_(keeping_trace()), around_(innermost()) {
  innermost() = this;
}
LossesOfCall::~LossesOfCall() { innermost() = around_; }

LossesDropped::LossesDropped() : around_(std::exchange(innermost(), nullptr)), dropped_(std::exchange(drops(), true)) {}
LossesDropped::~LossesDropped() {
  innermost() = around_;
  drops() = dropped_;
}

std::vector<Tensor> LossesOfCall::with(std::vector<Tensor> results) const {
  for (const Added& one : added_) results.push_back(one.loss);
  return results;
}

std::vector<Tensor> LossesOfCall::taken(std::vector<Tensor> given, Where where) {
  const std::size_t results = given.size() - added_.size();
  for (std::size_t i = 0; i < added_.size(); ++i) added_[i].loss = given[results + i];
  given.resize(results);
  if (around_) {
    if (!added_.empty() && around_->trace_ != trace_)
      throw UserError(error_text(
          text(layer_.description(), " adds losses inside a function that is traced on its own, in the call of ",
               around_->layer_.description()),
          where, "call the layer outside of that function, or return the loss from it and add it there"));
    around_->added_.insert(around_->added_.end(), added_.begin(), added_.end());
  } else if (!drops()) {
    std::vector<KeptTensor> kept;
    for (const Added& one : added_) kept.push_back({layer_.object_id(), one.layer, one.loss});
    keep_tensors(layer_.object_id(), kept);
  }
  return given;
}

void LossesOfCall::add(const CustomLayer& layer, const Tensor& loss, Where where) {
  LossesOfCall* call = innermost();
  if (!call)
    throw UserError(
        error_text(text("add_loss: ", layer.description(), " is not being called"), where, "add losses inside call()"));
  if (!loss.defined() || loss.rank() != 0 || !is_floating(loss.dtype()))
    throw UserError(error_text(text("add_loss: ", layer.description(), " adds ",
                                    loss.defined() ? described(loss) : std::string("an undefined tensor")),
                               where, "a loss is one floating number: take the mean"));
  call->added_.push_back({layer.object_id(), loss});
}

void LossesOfCall::add(const Added& one) { innermost()->added_.push_back(one); }

std::vector<LossesOfCall::Added> LossesOfCall::latest() {
  std::vector<Added> out;
  for (const KeptTensor& one : kept_tensors()) out.push_back({one.tag, one.tensor});
  return out;
}

}  // namespace stet::keras
