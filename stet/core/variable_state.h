// The inside of a Variable. Private to core/.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "stet/base/lock.h"
#include "stet/core/variable.h"

namespace stet {

struct VariableState {
  std::uint64_t id = 0;
  std::string name;
  bool trainable = true;
  bool generator = false;      // what a random generator keeps: StandIns
  bool made_in_trace = false;  // all calls of the function share it
  DType dtype = DType::f32;
  Shape shape;
  SharedLock guard;
  Tensor value;  // dense; under guard
};

/// The state behind a defined Variable.
VariableState& state_of(const Variable& variable);

/// TraceError where the value of this moment would be frozen into a trace: inside an InitScope of a run that is kept.
/// The run that makes Variables is thrown away, so that their first values may follow from others there.
void refuse_in_init_scope(const VariableState& variable, const char* what, Where where);

/// The Variables that a call of this thread holds while host code runs inside of it (host_call): whoever used one would
/// wait for the call to end, which waits for him.
class HeldVariables {
 public:
  /// None held: nothing is said.
  HeldVariables(std::vector<const VariableState*> held, const std::string& function);
  ~HeldVariables();
  HeldVariables(const HeldVariables&) = delete;
  HeldVariables& operator=(const HeldVariables&) = delete;

  /// Such a call is around this.
  static bool any() { return innermost != nullptr; }
  /// UserError if a call around this holds it.
  static void refuse(const VariableState& state, const char* what, Where where) {
    if (innermost) refuse_held(state, what, where);
  }

 private:
  static void refuse_held(const VariableState& state, const char* what, Where where);
  [[gnu::tls_model("initial-exec")]] static constinit thread_local const HeldVariables* innermost;

  const std::vector<const VariableState*> held_;
  const std::string& function_;
  const HeldVariables* const outer_;
};

/// While one is `current`, this thread uses other states wherever it would use those of random generators: reads and
/// writes, eager or by compiled calls, go there. Traces still know the Variables. So the elements of datasets have
/// numbers of their own.
class StandIns {
 public:
  /// The same one as long as it is current; `generator` itself where none stands in.
  virtual VariableState& instead_of(VariableState& generator) = 0;
  // initial-exec: one load on the way of every call.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local StandIns* current;

 protected:
  ~StandIns() = default;
};
/// The state that this thread uses.
inline VariableState& standing_in(VariableState& state) {
  return state.generator && StandIns::current ? StandIns::current->instead_of(state) : state;
}

}  // namespace stet
