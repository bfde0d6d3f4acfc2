// A step that runs machine code: what it asks for is compiled together with the code of the steps beside it.
#pragma once
#include <vector>

#include "stet/cpu/jit.h"

namespace stet::cpu {

class CodeStep {
 public:
  virtual ~CodeStep() = default;
  /// The code it needs for sizes like the hinted ones; what other sizes need is fetched when they are bound.
  virtual std::vector<CodeRequest> code_requests() const = 0;
  /// What it asked for, in the same order.
  virtual void hold_code(std::vector<Code> code) = 0;
};

}  // namespace stet::cpu
