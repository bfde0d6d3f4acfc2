// GradientTape: remembers the ops that run while it lives, and walks them backwards.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/structure.h"
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

/// The tensors of any structure, and where in it they stand: what is differentiated, and the gradients that come in.
class TensorList {
 public:
  TensorList() = default;
  TensorList(std::initializer_list<Tensor> list) : TensorList(std::vector<Tensor>(list)) {}
  template <structure::Known T>
  TensorList(const T& nest) {
    Leaves leaves;
    structure::Of<T>::write(nest, leaves);
    add(leaves);
  }
  std::vector<Tensor> tensors;      // of Variables, what they hold
  std::vector<std::string> places;  // "", "[1]", ".loss"

 private:
  STET_API void add(const Leaves& leaves);
};

/// The type of the gradients of a T: T itself with a Tensor for each Variable. An aggregate stays what it is.
template <class T>
struct GradientOf {
  using type = T;
};
template <>
struct GradientOf<Variable> {
  using type = Tensor;
};
template <>
struct GradientOf<Scalar> {
  using type = Tensor;
};
template <class... T>
struct GradientOf<std::tuple<T...>> {
  using type = std::tuple<typename GradientOf<T>::type...>;
};
template <class A, class B>
struct GradientOf<std::pair<A, B>> {
  using type = std::pair<typename GradientOf<A>::type, typename GradientOf<B>::type>;
};
template <class T>
struct GradientOf<std::vector<T>> {
  using type = std::vector<typename GradientOf<T>::type>;
};
template <class T, std::size_t count>
struct GradientOf<std::array<T, count>> {
  using type = std::array<typename GradientOf<T>::type, count>;
};
template <class T>
struct GradientOf<std::optional<T>> {
  using type = std::optional<typename GradientOf<T>::type>;
};

/// The tensors and Variables among leaves.
STET_API std::vector<Source> sources_of(const Leaves& leaves);
/// The leaves with these instead of the tensors and Variables.
STET_API Leaves with_tensors(Leaves leaves, std::vector<Tensor> tensors);
/// UserError if a Variable is among the leaves of a result: it stands in an aggregate, where a tensor has no place.
STET_API void refuse_variables(const Leaves& leaves, Where where);
/// The structure of `sources` with these tensors.
template <class T>
typename GradientOf<T>::type gradients_like(const T& sources, std::vector<Tensor> gradients, Where where) {
  using Result = typename GradientOf<T>::type;
  Leaves leaves;
  structure::Of<T>::write(sources, leaves);
  leaves = with_tensors(std::move(leaves), std::move(gradients));
  LeafReader reader(leaves);
  Result out = structure::Of<Result>::read(reader);
  Leaves check;
  structure::Of<Result>::write(out, check);
  refuse_variables(check, where);
  return out;
}
}  // namespace inside

/// The structure of the gradients with respect to a T: T with a Tensor for every Variable.
template <class T>
using GradientsOf = typename inside::GradientOf<std::remove_cvref_t<T>>::type;

struct GradientTapeOptions {
  bool persistent = false;      // gradient() may be called more than once
  bool watch_variables = true;  // trainable Variables are watched when they are read; false: after watch() only
};

struct GradientOptions {
  /// Weights of the targets' elements, of their structure, types and shapes; an undefined one, and none at all, is
  /// ones.
  inside::TensorList output_gradients = {};
  /// What the gradient is where no target depends on a source: "none", an undefined tensor, or "zero", zeros.
  std::string unconnected = "none";
};

/// Records on the thread that made it, from its making to its end. Trainable Variables are watched by themselves,
/// tensors after watch(). Gradients are ops like any other: a tape around another records them, which gives second
/// derivatives. It keeps of every op what the op's gradient reads, and lets go of it as gradient() goes back.
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
  /// From here on, readings of the Variable are recorded, whether it is trainable or not.
  void watch(const Variable& variable, Where where = Where::here());
  void watch(std::initializer_list<Source> sources, Where where = Where::here());
  /// All tensors and Variables of a structure.
  template <structure::Known T>
  void watch(const T& nest, Where where = Where::here()) {
    inside::Leaves leaves;
    structure::Of<T>::write(nest, leaves);
    watch_leaves(leaves, where);
  }

  /// d(sum of all targets' elements, weighted by the output gradients)/d(source), of the source's shape and type. A
  /// tape that is not persistent stops recording and gives gradients once; a second time is a UserError. The targets
  /// are a Tensor, a list in braces, or any structure of tensors.
  template <structure::Known T>
  GradientsOf<T> gradient(const inside::TensorList& targets, const T& sources, const GradientOptions& options = {},
                          Where where = Where::here()) {
    inside::Leaves leaves;
    structure::Of<T>::write(sources, leaves);
    return inside::gradients_like(sources, gradients(targets, inside::sources_of(leaves), options, where), where);
  }
  Tensor gradient(const inside::TensorList& targets, const inside::Source& source, const GradientOptions& options = {},
                  Where where = Where::here());
  std::vector<Tensor> gradient(const inside::TensorList& targets, std::initializer_list<inside::Source> sources,
                               const GradientOptions& options = {}, Where where = Where::here());
  std::vector<Tensor> gradient(const inside::TensorList& targets, const std::vector<Source>& sources,
                               const GradientOptions& options = {}, Where where = Where::here());

  /// The derivative of every element of the target by every element of the source, of the shape
  /// [target's…, source's…]: one walk back for each element of the target. Traced, their number is read, and so part of
  /// the trace. Counts as a gradient.
  Tensor jacobian(const Tensor& target, const inside::Source& source, const GradientOptions& options = {},
                  Where where = Where::here());
  /// The same of rows that do not depend on each other, along the first axis of both: of target [b, m…] and source
  /// [b, n…] the shape [b, m…, n…], by one walk back for each of the m. Traced, one trace serves every b.
  Tensor batch_jacobian(const Tensor& target, const inside::Source& source, const GradientOptions& options = {},
                        Where where = Where::here());

  /// While it lives, its tape, which must outlive it, records nothing.
  class STET_API Stopped {
   public:
    ~Stopped();
    Stopped(const Stopped&) = delete;
    Stopped& operator=(const Stopped&) = delete;

   private:
    friend class GradientTape;
    explicit Stopped(GradientTape& tape);
    GradientTape& tape_;
  };
  [[nodiscard]] Stopped stop_recording() { return Stopped(*this); }
  /// As if the tape had just been made: it forgets what it recorded and watched, and may give its gradients again.
  void reset();

  struct State;
  State& state() { return *state_; }

 private:
  void watch_leaves(const inside::Leaves& leaves, Where where);
  std::vector<Tensor> gradients(const inside::TensorList& targets, const std::vector<Source>& sources,
                                const GradientOptions& options, Where where);
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
  std::uint64_t resets, asked;
};
std::vector<TapeMark> mark_tapes();
void return_tapes_to(const std::vector<TapeMark>& marks);
/// The tape records no more, and other threads may have it: it can only be asked for gradients.
void close_tape(GradientTape& tape);
/// The gradients of several targets, each weighted by a tensor of its type and shape (undefined: does not count).
std::vector<Tensor> gradients_of(GradientTape& tape, const std::vector<Tensor>& targets,
                                 const std::vector<Tensor>& weights, const std::vector<inside::Source>& sources);

// Tensors with the elements of another one, which tapes tell apart from it; values of their own in a trace.

/// Gradients pass through.
Tensor same_value(const Tensor& tensor);
/// To those who look at what code uses from outside (ReadingNotes): the tensor was made here, though by no op.
void note_made(const Tensor& tensor);
/// Gradients do not pass.
Tensor detached(const Tensor& tensor);
/// What was read from a Variable: gradients end there, and tapes know them to be the Variable's, if it is trainable.
Tensor reading_of(const Tensor& held, std::uint64_t variable, bool trainable);
/// `value` for which `reading` gets the gradients: that of a Variable whose value it is.
Tensor attached_to(const Tensor& value, const Tensor& reading);
/// The tapes that record and watch the Variable follow this reading of it, once each.
void note_reading(const Tensor& reading, std::uint64_t variable, bool trainable = true);
/// Some tape that records follows what is read from the Variable.
bool tapes_follow_variable(std::uint64_t variable, bool trainable);

}  // namespace stet
