// What layers ask of Variables: which were made when, and which are used.
#pragma once
#include <cstdint>

#include "stet/core/variable.h"

namespace stet {

/// The id of the Variable that was made last, by any thread.
std::uint64_t latest_variable_id();

/// While it lives, `read` is called for every Variable that is read on this thread, and `assigned` for every one that
/// is given a value; they may throw. The innermost counts.
class VariableWatch {
 public:
  using Told = void (*)(const Variable&, Where);
  VariableWatch(Told read, Told assigned);
  ~VariableWatch();
  VariableWatch(const VariableWatch&) = delete;
  VariableWatch& operator=(const VariableWatch&) = delete;

 private:
  Told read_before_, assigned_before_;
};

}  // namespace stet
