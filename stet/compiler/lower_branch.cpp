// A branch becomes one step that runs the program of the chosen child. Where the children's results differ in size, a
// step before it tells the sizes, so that the program can make room for them; where a child finds them out, the step
// itself tells them, and brings the memory.
#include <algorithm>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/compiler/lowering.h"
#include "stet/runtime/branch_step.h"

namespace stet {

void Lowering::lower_branch(LowerCall& call, ValueId id) {
  const Node& node = graph_.node(id);
  const auto& branch = node.attributes.as<BranchAttributes>();
  Device& device = *program->device;
  BranchPrograms programs{lower(*branch.yes, device), lower(*branch.no, device)};
  int condition = call.dense(0).buffer;

  std::vector<int> inputs, results;
  for (std::size_t i = 1; i < node.inputs.size(); ++i) inputs.push_back(call.dense(static_cast<int>(i)).buffer);

  // A size that a side finds out while it runs is known only then.
  auto found_inside = [](const Program& program, const Dim& dim) {
    std::vector<int> symbols = dim.symbols();
    return std::any_of(program.late.begin(), program.late.end(), [&](const LateSize& late) {
      return std::find(symbols.begin(), symbols.end(), late.symbol) != symbols.end();
    });
  };
  bool found_out = false;  // while a side runs
  std::vector<BranchSizes::Size> known;
  std::vector<LateBranchStep::Size> late;
  std::vector<std::pair<Dim, Place>> symbols;
  for (std::size_t r = 0; r < node.results.size(); ++r)
    for (int axis = 0; axis < node.results[r].shape.rank(); ++axis) {
      const Dim& dim = node.results[r].shape[axis];
      auto size = [&](const GraphPointer& child) {
        return child->raises ? Dim(0) : child->type(child->results[r]).shape[axis];
      };
      Dim yes = size(branch.yes), no = size(branch.no);
      if (!dim.as_symbol() || identical(dim, yes) || identical(dim, no)) continue;
      Place place = call.temporary(DType::i64, Shape());
      found_out = found_out || found_inside(*programs.yes, yes) || found_inside(*programs.no, no);
      known.push_back({yes, no, place.buffer});
      late.push_back({r, static_cast<std::size_t>(axis), place.buffer});
      symbols.emplace_back(dim, place);
    }
  for (const Place& place : tuple_places(id)) results.push_back(place.buffer);
  if (found_out)
    call.step(std::make_unique<LateBranchStep>(programs, condition, inputs, results, std::move(late)));
  else if (!known.empty())
    call.step(std::make_unique<BranchSizes>(device, condition, std::move(known)));
  for (const auto& [symbol, place] : symbols) call.bind_late(symbol, place);
  if (found_out) return;
  call.step(std::make_unique<BranchStep>(std::move(programs), condition, std::move(inputs), std::move(results)));
}

}  // namespace stet
