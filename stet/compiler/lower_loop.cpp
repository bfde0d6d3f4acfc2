// A loop becomes one step that runs the program of its body again and again.
#include "stet/base/dim_inside.h"
#include "stet/compiler/lowering.h"
#include "stet/compiler/plan_updates.h"
#include "stet/runtime/loop_step.h"

namespace stet {
namespace {

/// The count of a loop, or 0 if it is less.
Place not_negative(LowerCall& call, int count) {
  Place to = call.temporary(DType::i64, Shape());
  Place operands[] = {{count, dense_layout(Shape())}};
  DType dtypes[] = {DType::i64};
  AxisMap axes[] = {identity_axes(0)};
  call.map(Shape(), operands, dtypes, axes,
           scalar::maximum(operand(0, DType::i64), constant(std::int64_t{0}, DType::i64)), to, "turns");
  return to;
}

}  // namespace

void Lowering::lower_loop(LowerCall& call, ValueId id) {
  const Node& node = graph_.node(id);
  const auto& loop = node.attributes.as<LoopAttributes>();
  LoopParts parts;
  parts.reverse = loop.reverse;
  parts.body = lower(*loop.body, *program->device);
  // A turn may write what it leaves over what it began with.
  std::vector<Update> updates;
  for (int i = 0; i < loop.carried; ++i) updates.push_back({i, i});
  plan_updates(*parts.body, updates);
  if (loop.condition) parts.condition = lower(*loop.condition, *program->device);

  for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
    int buffer = call.dense(i).buffer;
    if (i < loop.first_carried())
      parts.count = buffer;
    else if (i < loop.first_sequence())
      parts.carried.push_back(buffer);
    else if (i < loop.first_captured())
      parts.sequences.push_back(buffer);
    else
      parts.captured.push_back(buffer);
  }
  const bool stacks = static_cast<int>(node.results.size()) > loop.carried;
  // The number of turns is a size from here on, which stacked results have.
  std::optional<Place> taken;
  if (loop.count == LoopAttributes::by_size)
    parts.turns = loop.turns;
  else if (loop.count == LoopAttributes::by_value && stacks)
    call.bind_late(loop.turns, not_negative(call, parts.count));
  else if (stacks)
    taken = call.temporary(DType::i64, Shape());
  if (taken) parts.turns_taken = taken->buffer;
  std::vector<Place> results = tuple_places(id);
  for (std::size_t r = 0; r < results.size(); ++r)
    (static_cast<int>(r) < loop.carried ? parts.next : parts.stacked).push_back(results[r].buffer);
  call.step(std::make_unique<LoopStep>(std::move(parts)));
  if (taken) call.bind_late(loop.turns, *taken);
}

}  // namespace stet
