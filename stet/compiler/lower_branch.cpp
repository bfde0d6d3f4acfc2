// A branch becomes one step that runs the program of the chosen child. Where the children's results differ in size, a
// step before it tells the sizes, so that the program can make room for them.
#include "stet/base/error.h"
#include "stet/compiler/lowering.h"
#include "stet/runtime/branch_step.h"

namespace stet {

std::vector<Place> Lowering::tuple_places(ValueId id) {
  const Node& node = graph_.node(id);
  if (node.results.size() == 1) return {place_for(id)};
  std::vector<Place> out(node.results.size());
  for (ValueId user = id + 1; user < static_cast<ValueId>(graph_.nodes.size()); ++user)
    if (graph_.node(user).op == &part_row && graph_.node(user).inputs[0] == id) {
      Place& place = out[static_cast<std::size_t>(graph_.node(user).attributes.as<PartAttributes>().number)];
      if (place.buffer < 0)
        place = place_for(user);
      else
        places_[static_cast<std::size_t>(user)] = place;
    }
  for (std::size_t i = 0; i < out.size(); ++i)
    if (out[i].buffer < 0)
      out[i] = {add_buffer(ProgramBuffer::temporary, node.results[i].dtype, node.results[i].shape.element_count()),
                dense_layout(node.results[i].shape)};
  return out;
}

void Lowering::lower_branch(LowerCall& call, ValueId id) {
  const Node& node = graph_.node(id);
  const auto& branch = node.attributes.as<BranchAttributes>();
  BranchPrograms programs{lower(*branch.yes), lower(*branch.no)};
  int condition = call.dense(0).buffer;

  std::vector<BranchSizes::Size> late;
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
      late.push_back({yes, no, place.buffer});
      symbols.emplace_back(dim, place);
    }
  if (!late.empty()) {
    call.step(std::make_unique<BranchSizes>(condition, std::move(late)));
    for (const auto& [symbol, place] : symbols) call.bind_late(symbol, place);
  }

  std::vector<int> inputs, results;
  for (std::size_t i = 1; i < node.inputs.size(); ++i) inputs.push_back(call.dense(static_cast<int>(i)).buffer);
  for (const Place& place : tuple_places(id)) results.push_back(place.buffer);
  call.step(std::make_unique<BranchStep>(std::move(programs), condition, std::move(inputs), std::move(results)));
}

}  // namespace stet
