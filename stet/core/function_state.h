// What is behind a Function. Private to core/.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stet/core/function.h"
#include "stet/core/function_entry.h"
#include "stet/core/handle.h"
#include "stet/core/hit.h"
#include "stet/core/host_function.h"
#include "stet/core/retrace.h"
#include "stet/core/trace_cache.h"

namespace stet {

struct FunctionBase::State : inside::Body {
  const std::uint64_t id = next_function_id();
  std::string name;
  std::size_t arity = 0;
  ArgumentNames arguments;
  FunctionOptions options;
  HostFunction host{name, arguments, options};
  TraceCache cache{name, options, host.where};

  std::string description() const override { return "Function '" + name + "'"; }
  /// Of its spans.
  recording::Name recorded_name();

  /// Sizes become integers, and numbers what the signature promises; UserError for what cannot be.
  void prepare_arguments(Leaves& leaves, const std::vector<int>& owners, Where call_where) const;
  /// Against the promise; UserError naming argument and both types.
  void check_signature(const Leaves& leaves, const std::vector<int>& owners, Where call_where) const;
  /// Traces and compiles.
  std::shared_ptr<Entry> make_entry(const MissedCall& call);
  /// Runs the host code again, if it is time, and does what on_stale says; the trace that serves the call.
  std::shared_ptr<Entry> audited(std::shared_ptr<Entry> entry, MissedCall call);
  /// Runs the call through a trace that accepts it.
  void serve(const std::shared_ptr<Entry>& entry, const MissedCall& call, std::uint64_t epoch,
             inside::CallResults& results);

 private:
  std::atomic<recording::Name> recorded_{0};
};

/// A call as it is looked up: packed inputs, and what its trace is kept by.
struct LookedUp {
  LookedUp(const Leaves& leaves, bool dense, Where where);
  std::vector<Tensor> tensors;
  std::vector<LeafKey> key;
};

TraceInfo info_of(const Entry& entry);
/// What a run does for these sizes.
TraceCost cost_of(Entry& entry, const Bindings& bindings);
/// The graph in the language of Graphviz.
std::string dot_of(const Graph& graph, const std::string& name);

}  // namespace stet
