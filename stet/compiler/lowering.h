// The state of a lowering: which value lies where. Private to the compiler.
#pragma once
#include <unordered_map>
#include <vector>

#include "stet/compiler/lower.h"

namespace stet {

class Lowering {
 public:
  Lowering(const Graph& graph, Device& device);
  void run();

  std::shared_ptr<Program> program;

 private:
  friend class LowerCall;
  int add_buffer(ProgramBuffer::Role role, DType dtype, const Dim& elements);
  /// The place a node writes its result to: the program's result, or a temporary.
  Place place_for(ValueId id);
  void lower_map(LowerCall& call);
  void lower_maps(LowerCall& call, ValueId id);
  void lower_maps(LowerCall& call, std::span<const AxisMap> axes, std::span<const Expr> bodies,
                  std::span<const Place> to);
  void lower_size(LowerCall& call);
  void lower_scan(LowerCall& call);
  void lower_view(LowerCall& call, ValueId id);
  void lower_branch(LowerCall& call, ValueId id);
  void lower_loop(LowerCall& call, ValueId id);
  /// Where each value of a tuple goes: to its part() node's place; buffer -1 where nobody reads it.
  std::vector<Place> read_places(ValueId id);
  /// The same with memory for all of them.
  std::vector<Place> tuple_places(ValueId id);
  void copy_results();
  /// The steps from there on are the node's.
  void note_origin(ValueId id, std::size_t first_step);

  const Graph& graph_;
  const std::vector<std::vector<int>> readers_;
  std::vector<Place> places_;                                // by value
  std::unordered_map<ValueId, std::size_t> result_;          // by value: the first result that it is
  std::unordered_map<ValueId, std::vector<ValueId>> parts_;  // by tuple: its part() nodes, in order
};

}  // namespace stet
