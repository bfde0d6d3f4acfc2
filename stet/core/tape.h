// GradientTape: remembers the ops that run while it lives, and walks them backwards.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/tensor.h"
#include "stet/core/variable.h"

namespace stet {

struct OpDef;
struct AttributesView;

namespace inside {
/// What a gradient is taken with respect to.
class Source {
 public:
  Source(const Tensor& t) : tensor(t) {}
  Source(const Variable& v) : variable(v) {}
  Tensor tensor;
  Variable variable;
};
}  // namespace inside

struct GradientTapeOptions {
  bool persistent = false;  // gradient() may be called more than once
};

/// Records on the thread that made it, from its making to its end. Trainable Variables are watched by themselves,
/// tensors after watch(). Gradients are ops like any other: a tape around another records them, which gives second
/// derivatives.
///
///   GradientTape tape;
///   Tensor loss = mean(square(matmul(x, w) - y));
///   Tensor dw = tape.gradient(loss, w);
class STET_API GradientTape {
 public:
  /// A Tensor or a Variable: what gradients of both kinds are asked for with, as in std::vector<GradientTape::Source>.
  using Source = inside::Source;
  [[nodiscard]] explicit GradientTape(GradientTapeOptions options = {});
  ~GradientTape();
  GradientTape(const GradientTape&) = delete;
  GradientTape& operator=(const GradientTape&) = delete;

  /// From here on, what is computed from the tensor is recorded. Only floating tensors have gradients (UserError).
  void watch(const Tensor& tensor, Where where = Where::here());

  /// d(sum of target)/d(source), of the source's shape and type; undefined where the target does not depend on it. A
  /// tape that is not persistent stops recording and gives gradients once; a second time is a UserError.
  Tensor gradient(const Tensor& target, const inside::Source& source, Where where = Where::here());
  std::vector<Tensor> gradient(const Tensor& target, std::initializer_list<inside::Source> sources,
                               Where where = Where::here());
  std::vector<Tensor> gradient(const Tensor& target, const std::vector<Source>& sources, Where where = Where::here());
  std::vector<Tensor> gradient(const Tensor& target, const std::vector<Variable>& sources, Where where = Where::here());
  std::vector<Tensor> gradient(const Tensor& target, const std::vector<Tensor>& sources, Where where = Where::here());

  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// --- for the door and for Variable

/// While it lives, the tapes that were open before it see nothing: a trace is not seen by tapes outside of it.
class HiddenTapes {
 public:
  HiddenTapes();
  ~HiddenTapes();
  HiddenTapes(const HiddenTapes&) = delete;
  HiddenTapes& operator=(const HiddenTapes&) = delete;

 private:
  std::size_t hidden_before_;
};
/// Some tape of this thread records.
bool tapes_open();
/// How many tapes of this thread record, and how many of them follow what is computed from the tensor.
std::size_t recording_tapes();
std::size_t tapes_following(const Tensor& tensor);
/// Tells the open tapes of an op that has run. `output` is what call() returns.
void tell_tapes(const OpDef& op, std::vector<Tensor> inputs, const AttributesView& attributes,
                std::vector<Tensor> outputs);
/// The state of the tapes that see what happens now, and the way back to it: code that is run again starts from there.
struct TapeMark {
  GradientTape::State* tape;
  std::size_t records, watched, reads;
  bool recording, spent;
};
std::vector<TapeMark> mark_tapes();
void return_tapes_to(const std::vector<TapeMark>& marks);
/// The gradients of several targets, each weighted by a tensor of its type and shape (undefined: does not count).
std::vector<Tensor> gradients_of(GradientTape& tape, const std::vector<Tensor>& targets,
                                 const std::vector<Tensor>& weights, const std::vector<inside::Source>& sources);

// Tensors with the elements of another one, which tapes tell apart from it; values of their own in a trace.

/// Gradients pass through.
Tensor same_value(const Tensor& tensor);
/// Gradients do not pass.
Tensor detached(const Tensor& tensor);
/// What was read from a Variable: gradients end there, and tapes know them to be the Variable's, if it is trainable.
Tensor reading_of(const Tensor& held, std::uint64_t variable, bool trainable);
/// `value` for which `reading` gets the gradients: that of a Variable whose value it is.
Tensor attached_to(const Tensor& value, const Tensor& reading);
/// The tapes that record follow this reading of a Variable, once each.
void note_reading(const Tensor& reading, std::uint64_t variable);

}  // namespace stet
