// One trace of a function: what it was made for, its program, and how a call runs it. Private to core/.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stet/base/lock.h"
#include "stet/core/structure.h"
#include "stet/core/trace.h"
#include "stet/core/variable_state.h"
#include "stet/ir/graph.h"
#include "stet/runtime/program.h"

namespace stet {

/// What a trace was made for, leaf by leaf; sizes of tensors are the program's business.
struct LeafKey {
  Leaf::Kind kind = Leaf::tensor;
  DType dtype = DType::f32;
  int rank = 0;
  std::uint64_t bits = 0;  // number: its value; count: elements; object and Variable: identity
  bool operator==(const LeafKey&) const = default;
};
std::vector<LeafKey> keys_of(const Leaves& leaves);
/// A leaf as explanations name it: "f32[3,5]", "Dense 'dense_1'", "0.5".
std::string described(const Leaf& leaf);

/// The Variables that a trace uses, as its calls need them.
struct CallVariables {
  struct Held {
    VariableState* state;
    bool exclusive;
  };
  std::vector<VariableState*> inputs;  // by hidden input; null where it is a captured tensor
  std::vector<VariableState*> written;
  std::vector<Held> locks;  // by id, so that calls cannot wait for each other in a circle
};

struct Entry {
  std::vector<LeafKey> key;
  std::vector<std::string> types;  // of the leaves, for people: "f32[x_0,5]"
  Graph graph;
  std::shared_ptr<Program> program;
  std::vector<Trace::HiddenInput> hidden;
  std::vector<std::vector<std::int64_t>> hidden_sizes;
  Leaves result_form;                   // counts and numbers as they are; tensors to be filled in
  std::vector<Variable> written, used;  // in the order of the program
  CallVariables variables;
  std::vector<Where> left_behind;  // where tensors were made that host code kept
  double trace_milliseconds = 0, compile_milliseconds = 0;
  std::size_t bytes = 0;  // of memory that it takes, roughly: measure() fills it in
  std::atomic<std::uint64_t> calls{0};

  /// The symbols' values if a call fits: same leaves, and sizes that obey the facts. `tensors` are the tensors among
  /// the leaves, dense.
  std::optional<Bindings> accepts(const std::vector<LeafKey>& key, const std::vector<Tensor>& tensors) const;
  /// The facts about sizes that a call with the same leaves does not obey.
  std::vector<Fact> broken_facts(const std::vector<Tensor>& tensors) const;
  /// The program bound to these sizes: binding evaluates every size and plans memory, so the last few are kept.
  std::shared_ptr<const BoundProgram> bound_to(const Bindings& bindings);
  /// Whether tensors of these sizes obey the facts; leaves are not looked at.
  bool fits(const std::vector<std::vector<std::int64_t>>& sizes) const;
  /// Fills in `variables`, when the others are known.
  void collect_variables();
  /// Fills in `bytes`: the graph, the program with its code, what it captured, and as many bound plans as are kept.
  void measure();

 private:
  static constexpr std::size_t most_recent = 8;
  Lock recent_guard_;
  std::vector<std::pair<Bindings, std::shared_ptr<const BoundProgram>>> recent_;  // the latest last
};

/// Runs the program on the memory of dense tensors, holding the Variables from launch to commit. When it throws,
/// nothing has changed.
void run_compiled(const Entry& entry, const BoundProgram& bound, std::span<const Tensor* const> tensors,
                  ResultTensors& results);
/// Sends the trace's graph through the door op by op, so that tapes see what they need. Holds the Variables alike.
void run_under_tape(const Entry& entry, const std::vector<Tensor>& tensors, ResultTensors& results, Where where);
/// Both traces captured the same: Variables by identity, tensors by their bytes.
bool same_captures(const Entry& a, const Entry& b);

}  // namespace stet
