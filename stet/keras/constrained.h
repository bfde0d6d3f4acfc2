// Which Variables have constraints, for optimizers, which are given Variables only. Not a public header.
#pragma once
#include <cstdint>
#include <utility>

#include "stet/keras/constraint.h"

namespace stet::keras {

/// While it lives, constraint_of(variable) is `constraint`.
class ConstrainedWeight {
 public:
  ConstrainedWeight(const Variable& variable, Constraint constraint);
  ConstrainedWeight(ConstrainedWeight&& other) noexcept : id_(std::exchange(other.id_, 0)) {}
  ConstrainedWeight& operator=(ConstrainedWeight&&) = delete;
  ~ConstrainedWeight();

 private:
  std::uint64_t id_;
};

}  // namespace stet::keras
