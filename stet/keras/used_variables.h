// Which Variables a step of a model uses: what must be kept to go on with it. Not a public header.
#pragma once
#include <cstdint>
#include <map>
#include <utility>

#include "stet/core/variable.h"

namespace stet::keras {

/// While it lives, it notes the Variables that are read or assigned on this thread where layers are watched; so do
/// those around it.
class UsedVariables {
 public:
  UsedVariables() : outer_(std::exchange(innermost(), this)) {}
  ~UsedVariables() { innermost() = outer_; }
  UsedVariables(const UsedVariables&) = delete;
  UsedVariables& operator=(const UsedVariables&) = delete;

  static void note(const Variable& variable) {
    for (UsedVariables* one = innermost(); one; one = one->outer_) one->all_.try_emplace(variable.id(), variable);
  }
  const std::map<std::uint64_t, Variable>& all() const { return all_; }

 private:
  static UsedVariables*& innermost() {
    constinit thread_local UsedVariables* one = nullptr;
    return one;
  }
  UsedVariables* outer_;
  std::map<std::uint64_t, Variable> all_;  // by id: in the order they were made
};

}  // namespace stet::keras
