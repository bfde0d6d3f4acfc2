// What layers ask of Variables: which were made when, and which are read.
#pragma once
#include <cstdint>

#include "stet/core/variable.h"

namespace stet {

/// The id of the Variable that was made last, by any thread.
std::uint64_t latest_variable_id();

/// While it lives, `told` is called for every Variable that is read on this thread; it may throw. The innermost counts.
class VariableWatch {
 public:
  using Told = void (*)(const Variable&, Where);
  explicit VariableWatch(Told told);
  ~VariableWatch();
  VariableWatch(const VariableWatch&) = delete;
  VariableWatch& operator=(const VariableWatch&) = delete;

 private:
  Told before_;
};

}  // namespace stet
