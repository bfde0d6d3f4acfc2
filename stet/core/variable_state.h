// The inside of a Variable. Private to core/.
#pragma once
#include <cstdint>
#include <string>

#include "stet/base/lock.h"
#include "stet/core/variable.h"

namespace stet {

struct VariableState {
  std::uint64_t id = 0;
  std::string name;
  bool trainable = true;
  DType dtype = DType::f32;
  Shape shape;
  SharedLock guard;
  Tensor value;  // dense; under guard
};

/// The state behind a defined Variable.
VariableState& state_of(const Variable& variable);

}  // namespace stet
