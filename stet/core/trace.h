// Trace: a graph in the making. While one is open on a thread, the door records ops instead of running them.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "stet/base/inside.h"
#include "stet/core/in.h"
#include "stet/core/structure.h"
#include "stet/core/tape.h"
#include "stet/core/tensor.h"
#include "stet/core/variable.h"
#include "stet/ir/graph.h"

namespace stet {

/// What traced tensors hold on to: after the end of its trace, a tensor knows that it has leaked, and the trace knows
/// which of its tensors are still there.
struct TraceLife {
  class Trace* trace = nullptr;  // null when it has ended
  std::string function = {};
  std::mutex guard = {};  // of what follows: a leaked tensor may end on any thread
  std::unordered_map<ValueId, int> alive = {};
};

/// The inside of a tensor that stands for a value of a graph.
struct TracedValue {
  TracedValue(std::shared_ptr<TraceLife> l, ValueId i, Shape s) : life(std::move(l)), id(i), shape(std::move(s)) {
    std::lock_guard lock(life->guard);
    ++life->alive[id];
  }
  TracedValue(const TracedValue&) = delete;
  TracedValue& operator=(const TracedValue&) = delete;
  ~TracedValue() {
    std::lock_guard lock(life->guard);
    if (--life->alive[id] == 0) life->alive.erase(id);
  }

  std::shared_ptr<TraceLife> life;
  ValueId id;
  Shape shape;
};

/// A Variable that a traced function uses.
struct TracedVariable {
  Variable variable;
  ValueId initial;  // its value when the call begins
  ValueId current;  // its value at this point of the program
  bool written = false;
};

/// The nth reading of a Variable while it had this value, in one run of a scope.
struct Reading {
  std::uint64_t variable;
  ValueId value;
  int nth;
  auto operator<=>(const Reading&) const = default;
};
using ReadingCounts = std::map<std::pair<std::uint64_t, ValueId>, int>;  // by Variable and value

class RecordingScope;  // base/dim_inside.h
class OpenScope;

enum class Effects : bool;  // host_code_run.h
class ForkScope;            // fork.h
struct InnerScope;
struct FlatLoop;  // flat_loop.h
struct FlatTurn;

/// Values and tensors: a value of the graph is one tensor and the other way round, so that tapes, which tell tensors
/// apart, and the graph speak of the same things. What is one value to a program and two to a tape (a Variable read
/// twice, a tensor that is watched from here on) is two values, one an alias of the other.
class Trace {
 public:
  /// `yes_first`: which side of a decision is run first. It must not matter, so the comparing run turns it around (and
  /// runs sides more often).
  explicit Trace(std::string function, bool yes_first = true);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// A tensor argument, its sizes symbols of symbols() with their values in this call as hints.
  Tensor add_argument(ValueType type) { return tensor_of(graph.add_input(std::move(type))); }
  /// An op of the program.
  Tensor record(const OpDef& op, std::span<const Tensor> operands, AttributesView attributes, Where where);
  /// The same with all its results.
  void record(const OpDef& op, std::span<const Tensor> operands, AttributesView attributes, Where where,
              std::span<Tensor> results);
  /// A C++ number as a scalar of the program.
  Tensor number_value(DType dtype, const void* element);
  /// A size as a scalar of the program.
  Tensor size_value(const Dim& size, DType dtype, Where where);
  /// What the Variable holds here, as a value of its own: gradients end there, and are the Variable's.
  Tensor read(const Variable& variable);
  /// The same without being a reading that tapes know of: what assign_add adds to.
  Tensor current_value(const Variable& variable);
  /// Its value from here on; gives it back.
  Tensor write(const Variable& variable, const Tensor& value, Where where);
  /// Of a trace without Variables of its own: the tensor is what this one held at the beginning.
  void note_variable(std::uint64_t variable, const Tensor& value);
  /// A reading of a Variable that has this value here.
  Tensor read_value(ValueId value, std::uint64_t variable, bool trainable);
  /// Another value with the same elements.
  Tensor alias(std::span<const Tensor> operands, AliasAttributes attributes);
  /// From here on a captured tensor is a value of its own, which a tape may follow.
  void note_watched(const Tensor& tensor, Where where);
  /// The graph's value for a tensor: traced here, or an eager one, which becomes a constant or a hidden input.
  ValueId lift(const Tensor& tensor, Where where);
  /// The one tensor for a value; of a captured one, the captured tensor itself.
  Tensor tensor_of(ValueId id);
  /// Runs `body` as a fork scope: once for every path through its decisions about tensors. See fork.h.
  Leaves run_scope(const std::function<Leaves()>& body, Where where);
  /// Records a loop: its body is run once. See flat_loop.h.
  FlatTurn run_loop(const FlatLoop& loop);
  /// Another loop with the inputs of this one that also stacks these values of its body. Gives their stacks; `turns`
  /// receives their length.
  std::vector<Tensor> stack_also(const LoopAttributes& loop, std::span<const Tensor> inputs,
                                 const std::vector<ValueId>& values, Dim& turns);
  /// What is recorded now belongs to a turn of a gradient: what loops inside of it did has been done. See
  /// TurnOfGradient.
  int turns_of_gradients = 0;
  /// The outcome of a condition on the path that is being run.
  bool decide(const Tensor& condition);
  /// What was recorded, without what went into branches and what no result needs. Ends the recording.
  Graph finished();
  /// After finished(): the lines of tensors that somebody outside still holds, each once.
  std::vector<Where> left_behind();

  /// Variables may be made in the first run of a function only: made in every run, they would keep nothing.
  void note_created(const Variable& variable, Where where);
  bool may_create = false;
  bool is_audit = false;
  std::vector<Variable> created;
  std::vector<Fact> apart;  // sizes of sides that differ: see other_sizes()

  const std::string& function() const { return life_->function; }
  bool yes_first() const { return yes_first_; }
  /// Sides are run more than once each: how often must not matter either.
  bool repeats_sides() const { return !yes_first_; }
  RecordingScope& symbols() { return *symbols_; }
  Graph graph;
  // In the order of the graph's inputs after the arguments: Variables and captured tensors as they were met.
  struct HiddenInput {
    Variable variable;  // or
    Tensor captured;    // dense
    Tensor as_met;      // as tapes know it
  };
  std::vector<HiddenInput> hidden;
  const std::vector<std::uint64_t>& variable_order() const { return variable_order_; }
  TracedVariable& variable(std::uint64_t id) { return variables_.at(id); }

 private:
  friend class ForkScope;
  friend class BranchBuilder;
  friend class LoopRecorder;
  /// What these nodes compute as a child graph; constants come along. Results may be inputs.
  Graph closed(std::span<const ValueId> inputs, std::span<const ValueId> nodes, std::span<const ValueId> results) const;
  TracedVariable& state_of_variable(const Variable& variable);
  /// Every node goes through here: on the part of a path that is run again, it must be the node of the last time.
  ValueId append(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes, Where where);
  ValueId capture(const Tensor& tensor, Where where);
  ValueId add_captured(const Tensor& tensor, const Tensor& dense);
  /// Host code that is run again makes its constants anew: those with equal elements are one value. -1: the first one.
  ValueId& constant_like(const Tensor& dense);
  ValueId plain_reading(ValueId value, std::uint64_t variable, Attributes attributes);
  void know_as(ValueId id, const Tensor& tensor);
  /// Tapes that forgot what happened inside of a scope learn of the readings of Variables that stand before it.
  void note_readings(const std::set<ValueId>& readings);
  /// What a scope that forked leaves behind: writes to Variables, and one record on the tapes outside of it.
  void publish(const InnerScope& forked);
  /// The nodes went into a branch: nothing outside of it may use them.
  void bury(const std::vector<ValueId>& nodes);

  std::shared_ptr<TraceLife> life_;
  std::shared_ptr<RecordingScope> symbols_;
  class Carrier;  // of checks that no op has: each gets a node, which stands on the path where it was stated
  std::unique_ptr<Carrier> carrier_;
  bool applying_ = false;  // an op to its operands: what is stated meanwhile is the op's
  const bool yes_first_;
  ForkScope* innermost_ = nullptr;
  struct CheckRange {
    std::size_t begin, known;  // from `known` on the scope of sizes knows them too
    std::size_t end;
  };
  std::unordered_map<ValueId, CheckRange> checks_of_;   // by node, of graph.checks
  std::vector<char> buried_;                            // by node: it lies inside a branch that has been closed
  std::vector<Tensor> tensors_;                         // by value
  std::unordered_map<std::string, ValueId> constants_;  // numbers, by type and bytes
  struct MadeConstant {
    ValueId id;
    Tensor elements;
  };
  std::unordered_multimap<std::size_t, MadeConstant> made_constants_;  // while tracing, by hash
  std::unordered_map<std::uint64_t, TracedVariable> variables_;
  std::unordered_map<std::uint64_t, ValueId> first_value_;  // of each Variable: no scope holds it inside
  std::vector<std::uint64_t> variable_order_;               // as first used
  std::unordered_map<const TensorNode*, ValueId> captured_;
  std::set<ValueId> met_;                                                // captured ones that this path has used
  std::map<std::pair<std::uint64_t, ValueId>, ValueId> plain_readings_;  // without tapes, on this path
  std::vector<Tensor> alive_;                     // captured ones, so that their addresses stay theirs
  std::map<const TensorNode*, ValueId> watched_;  // captured ones, on this path
  ReadingCounts readings_;                        // on this path
};

/// While it lives, a turn of a loop's gradient is recorded.
class TurnOfGradient {
 public:
  explicit TurnOfGradient(Trace& trace) : trace_(trace) { ++trace_.turns_of_gradients; }
  ~TurnOfGradient() { --trace_.turns_of_gradients; }
  TurnOfGradient(const TurnOfGradient&) = delete;
  TurnOfGradient& operator=(const TurnOfGradient&) = delete;

 private:
  Trace& trace_;
};

/// The trace open on this thread, or null.
Trace* current_trace();
/// The same, also from within an InitScope.
Trace* trace_in_progress();
/// Opens a trace on this thread; tapes from outside do not see what is recorded.
class OpenTrace {
 public:
  explicit OpenTrace(Trace& trace);
  ~OpenTrace();
  OpenTrace(const OpenTrace&) = delete;
  OpenTrace& operator=(const OpenTrace&) = delete;

 private:
  Trace* open_;
  Trace* running_;
  std::unique_ptr<OpenScope> sizes_;
  HiddenTapes tapes_;
};

}  // namespace stet
