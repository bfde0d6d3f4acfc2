#include "stet/keras/added_losses.h"

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

}  // namespace

LossesOfCall::LossesOfCall(const CustomLayer& layer) : layer_(layer.object_id()), around_(innermost()) {
  innermost() = this;
}
LossesOfCall::~LossesOfCall() { innermost() = around_; }

std::vector<Tensor> LossesOfCall::with(std::vector<Tensor> results) const {
  for (const Added& one : added_) results.push_back(one.loss);
  return results;
}

std::vector<Tensor> LossesOfCall::taken(std::vector<Tensor> given) {
  const std::size_t results = given.size() - added_.size();
  for (std::size_t i = 0; i < added_.size(); ++i) added_[i].loss = given[results + i];
  given.resize(results);
  if (around_) {
    around_->added_.insert(around_->added_.end(), added_.begin(), added_.end());
  } else {
    std::vector<KeptTensor> kept;
    for (const Added& one : added_) kept.push_back({layer_, one.layer, one.loss});
    keep_tensors(layer_, kept);
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

std::vector<LossesOfCall::Added> LossesOfCall::latest() {
  std::vector<Added> out;
  for (const KeptTensor& one : kept_tensors()) out.push_back({one.tag, one.tensor});
  return out;
}

}  // namespace stet::keras
