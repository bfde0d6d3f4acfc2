#include "stet/core/variable_overlay.h"

#include <mutex>
#include <utility>

#include "stet/core/variable_state.h"

namespace stet {
namespace {

[[gnu::tls_model("initial-exec")]] constinit thread_local VariableOverlay* innermost = nullptr;

}  // namespace

VariableOverlay* VariableOverlay::current() { return innermost; }

VariableOverlay::VariableOverlay(Functions functions)
    : outer_(std::exchange(innermost, this)), functions_(outer_ && outer_->functions_ == eager ? eager : functions) {}
VariableOverlay::~VariableOverlay() { innermost = outer_; }

void VariableOverlay::write(const Variable& variable, Tensor value) {
  auto [place, added] = written_.insert_or_assign(variable.id(), std::move(value));
  if (added) order_.push_back(variable);
}

Tensor VariableOverlay::find(std::uint64_t variable) const {
  for (const VariableOverlay* one = this; one; one = one->outer_)
    for (const auto* values : {&one->written_, &one->shown_})
      if (auto found = values->find(variable); found != values->end()) return found->second;
  return {};
}

void VariableOverlay::commit() {
  for (const Variable& variable : order_) {
    Tensor& value = written_.at(variable.id());
    if (outer_) {
      outer_->write(variable, value);
      continue;
    }
    VariableState& state = standing_in(state_of(variable));
    std::lock_guard lock(state.guard);
    state.value = value;
  }
  order_.clear();
  written_.clear();
}

}  // namespace stet
