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

#include "stet/base/inside.h"
#include "stet/base/lock.h"
#include "stet/core/called_graph.h"
#include "stet/core/recorded_function.h"
#include "stet/core/structure.h"
#include "stet/core/trace.h"
#include "stet/core/traced_run.h"
#include "stet/core/variable_state.h"
#include "stet/ir/graph.h"
#include "stet/runtime/program.h"

namespace stet {

/// What a trace was made for, leaf by leaf; sizes of tensors are the program's business.
struct LeafKey {
  Leaf::Kind kind = Leaf::tensor;
  DType dtype = DType::f32;
  int rank = 0;
  std::uint64_t bits = 0;    // number: its value; count: elements; object and Variable: identity; tensor: 1 if weak
  Device* device = nullptr;  // of a tensor; null: the host
  bool operator==(const LeafKey&) const = default;
};
std::vector<LeafKey> keys_of(const Leaves& leaves);
constexpr int no_tensor_rank = -1;  // in a key: the tensor is undefined
/// What stands for a size among the inputs of a program: a tensor of this length, of which nobody reads an element.
Tensor size_tensor(std::int64_t size);
/// The inputs that leaves bring: tensors that are defined, and sizes. `dense`: packed, as programs take them.
std::vector<Tensor> inputs_of(const Leaves& leaves, bool dense, Where where);
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

struct Entry : TracedRun {
  explicit Entry(TracedRun run);
  ~Entry();
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  /// Where its calls are counted when it ends.
  std::shared_ptr<class LedgerAccount> account;
  /// Moves what was captured to the device that the arguments lie on; UserError for a Variable that lies elsewhere.
  void move_hidden(Device& device, const std::string& function);
  std::vector<LeafKey> key;
  std::vector<std::string> types;  // of the leaves, for people: "f32[x_0,5]"
  std::shared_ptr<Program> program;
  std::vector<std::vector<std::int64_t>> hidden_sizes;
  CallVariables variables;
  double trace_milliseconds = 0, compile_milliseconds = 0;
  TraceStory story;
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> next_audit{UINT64_MAX};  // the number of the next call that is audited
  bool runs_host_code = false;                        // while a call holds its Variables
  std::atomic<bool> stale = false;                    // an audit said so, and it serves on
  bool audit_is_due() const {
    return calls.load(std::memory_order_relaxed) + 1 >= next_audit.load(std::memory_order_relaxed);
  }

  /// The symbols' values if a call fits: same leaves, and sizes that obey the facts. `tensors` are the tensors among
  /// the leaves, dense.
  std::optional<Bindings> accepts(const std::vector<LeafKey>& key, const std::vector<Tensor>& tensors) const;
  /// The facts about sizes that a call with the same leaves does not obey.
  std::vector<Fact> broken_facts(const std::vector<Tensor>& tensors) const;
  std::shared_ptr<const BoundProgram> bound_to(const Bindings& bindings) {
    return recent_.bound_to(*program, bindings);
  }
  std::shared_ptr<const BoundProgram> latest_bound() const { return recent_.latest(); }
  /// Whether tensors of these sizes obey the facts; leaves are not looked at.
  bool fits(const std::vector<std::vector<std::int64_t>>& sizes) const;
  /// Of memory that it takes now, roughly: the graph, the program with its code, what it captured, and the bound plans.
  std::size_t bytes() const;
  /// Finds out what of that stays the same.
  void measure();
  /// The trace as tapes see it, made when it is first asked for.
  std::shared_ptr<CalledGraph> under_tapes(const std::string& function);
  std::vector<GradientPairFacts> pairs() const;
  /// What the Variables that it uses hold at one moment.
  std::vector<Tensor> variable_values() const;
  /// The Variables that a call holds while host code runs inside of it.
  std::vector<const VariableState*> held() const;
  /// Fills in what calls need of Variables and captured tensors.
  void collect_hidden();

 private:
  RecentBindings recent_;
  std::size_t bytes_but_for_plans_ = 0;
  mutable Lock under_tapes_guard_;
  std::shared_ptr<CalledGraph> under_tapes_;
};

/// Runs the program on the memory of dense tensors, holding the Variables from launch to commit. When it throws,
/// nothing has changed.
void run_compiled(const Entry& entry, const BoundProgram& bound, std::span<const Tensor* const> tensors,
                  ResultTensors& results);
/// Runs a program on dense tensors, all results in fresh memory.
std::vector<Tensor> run_fresh(const Program& program, const BoundProgram& bound, std::span<const Tensor> inputs);
/// The same where tapes are open, which see one op. `given` are the tensors as tapes know them.
void run_under_tape(Entry& entry, const std::string& function, const std::vector<Tensor>& given, ResultTensors& results,
                    Where where);

}  // namespace stet
