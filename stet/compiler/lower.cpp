#include "stet/compiler/lower.h"

#include <algorithm>
#include <unordered_map>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/compiler/lower_contract.h"
#include "stet/compiler/lower_reduce.h"
#include "stet/compiler/lower_rows.h"
#include "stet/compiler/lowering.h"

namespace stet {
namespace {

/// Elements between the first and the last that a strided input reaches, inclusive.
Dim reached_elements(const Shape& shape, const std::vector<Dim>& strides) {
  Dim last = 0;
  for (int axis = 0; axis < shape.rank(); ++axis)
    last = last + (shape[axis] - 1) * strides[static_cast<std::size_t>(axis)];
  return last + 1;
}

/// A loop nest needs a loop, even over a single element.
void ensure_loop(Kernel& kernel) {
  if (!kernel.loops.empty()) return;
  kernel.loops.push_back({Dim(1), false});
  auto still = [](Access& access) {
    if (access.source == Access::memory) access.address.strides.assign(1, Dim(0));
    for (Guard& guard : access.guards) guard.position.strides.assign(1, Dim(0));
  };
  for (Access& access : kernel.operands) still(access);
  for (Access& access : kernel.epilogue_operands) still(access);
  auto still_result = [&](Access& result) {
    still(result);
    result.address.strides[0] = 1;
  };
  still_result(kernel.result);
  for (FurtherResult& one : kernel.further) still_result(one.to);
}

/// Buffers of the program become 0, 1, … of the kernel.
std::vector<int> number_buffers(Kernel& kernel) {
  std::vector<int> buffers;
  auto renumber = [&](Access& access) {
    if (access.source == Access::number) return;
    auto at = std::find(buffers.begin(), buffers.end(), access.buffer);
    int number = static_cast<int>(at - buffers.begin());
    if (at == buffers.end()) buffers.push_back(access.buffer);
    access.buffer = number;
  };
  for (Access& access : kernel.operands) renumber(access);
  for (Access& access : kernel.epilogue_operands) renumber(access);
  renumber(kernel.result);
  for (FurtherResult& one : kernel.further) renumber(one.to);
  kernel.buffer_count = static_cast<int>(buffers.size());
  return buffers;
}

}  // namespace

std::vector<int> walking_loops(const AxisMap& axes, int operand_rank) {
  std::vector<int> loops(static_cast<std::size_t>(operand_rank), -1);
  for (int loop = 0; loop < axes.rank; ++loop)
    if (int axis = axes.axes[static_cast<std::size_t>(loop)]; axis >= 0) loops[static_cast<std::size_t>(axis)] = loop;
  return loops;
}

Lines lines_of(const Shape& shape, int axis) {
  Lines out{1, shape[axis], 1};
  for (int k = 0; k < axis; ++k) out.outer = out.outer * shape[k];
  for (int k = axis + 1; k < shape.rank(); ++k) out.inner = out.inner * shape[k];
  return out;
}

AxisMap identity_axes(int rank) {
  AxisMap out;
  out.rank = rank;
  for (int axis = 0; axis < rank; ++axis) out.axes[static_cast<std::size_t>(axis)] = static_cast<std::int8_t>(axis);
  return out;
}

// --- Lowering

Lowering::Lowering(const Graph& graph, Device& device)
    : program(std::make_shared<Program>()), graph_(graph), readers_(users(graph)), places_(graph.nodes.size()) {
  program->device = &device;
  program->scope = graph.scope;
  program->checks = graph.checks;
  program->raises = graph.raises;
  for (ValueId id : graph.inputs) {
    const Node& node = graph.node(id);
    const auto& input = node.attributes.as<InputAttributes>();
    program->inputs.push_back({node.type().dtype, node.type().shape, input.strides});
    Layout layout = input.strides.empty() ? dense_layout(node.type().shape) : Layout{0, input.strides};
    Dim elements =
        input.strides.empty() ? node.type().shape.element_count() : reached_elements(node.type().shape, input.strides);
    places_[static_cast<std::size_t>(id)] = {add_buffer(ProgramBuffer::input, node.type().dtype, elements), layout};
  }
  for (ValueId id : graph.results) {
    const ValueType& type = graph.type(id);
    int buffer = add_buffer(ProgramBuffer::result, type.dtype, type.shape.element_count());
    result_.emplace(id, program->results.size());
    program->results.push_back({type.dtype, type.shape, buffer});
  }
  for (ValueId id = 0; id < static_cast<ValueId>(graph.nodes.size()); ++id)
    if (graph.node(id).op == &part_row) parts_[graph.node(id).inputs[0]].push_back(id);
  program->in_place.assign(program->results.size(), -1);
}

int Lowering::add_buffer(ProgramBuffer::Role role, DType dtype, const Dim& elements) {
  program->buffers.push_back({role, dtype, elements});
  return static_cast<int>(program->buffers.size()) - 1;
}

Place Lowering::place_for(ValueId id) {
  Place& place = places_[static_cast<std::size_t>(id)];
  if (place.buffer >= 0) return place;
  const ValueType& type = graph_.type(id);
  place.layout = dense_layout(type.shape);
  auto result = result_.find(id);
  place.buffer = result != result_.end() ? program->results[result->second].buffer
                                         : add_buffer(ProgramBuffer::temporary, type.dtype, type.shape.element_count());
  return place;
}

std::vector<Place> Lowering::read_places(ValueId id) {
  const Node& node = graph_.node(id);
  if (node.results.size() == 1) return {place_for(id)};
  std::vector<Place> out(node.results.size());
  for (ValueId part : parts_[id]) {
    Place& place = out[static_cast<std::size_t>(graph_.node(part).attributes.as<PartAttributes>().number)];
    if (place.buffer < 0)
      place = place_for(part);
    else
      places_[static_cast<std::size_t>(part)] = place;
  }
  return out;
}

std::vector<Place> Lowering::tuple_places(ValueId id) {
  const Node& node = graph_.node(id);
  std::vector<Place> out = read_places(id);
  for (std::size_t i = 0; i < out.size(); ++i)
    if (out[i].buffer < 0)
      out[i] = {add_buffer(ProgramBuffer::temporary, node.results[i].dtype, node.results[i].shape.element_count()),
                dense_layout(node.results[i].shape)};
  return out;
}

void Lowering::lower_map(LowerCall& call) {
  const auto& map = call.attributes<MapAttributes>();
  Place to[] = {call.result()};
  lower_maps(call, map.axes, std::span(&map.body, 1), to);
}

void Lowering::lower_maps(LowerCall& call, ValueId id) {
  const auto& maps = call.attributes<MapsAttributes>();
  lower_maps(call, maps.axes, maps.bodies, tuple_places(id));
}

void Lowering::lower_maps(LowerCall& call, std::span<const AxisMap> axes, std::span<const Expr> bodies,
                          std::span<const Place> to) {
  std::vector<Place> operands;
  std::vector<DType> dtypes;
  for (std::size_t k = 0; k < call.node().inputs.size(); ++k) {
    operands.push_back(call.place(static_cast<int>(k)));
    dtypes.push_back(call.in(static_cast<int>(k)).dtype);
  }
  call.maps(call.out().shape, operands, dtypes, axes, bodies, to, call.node().label);
}

void Lowering::lower_size(LowerCall& call) {
  Kernel kernel;
  kernel.name = "size";
  kernel.body = operand(0, DType::i64);
  Access number;
  number.source = Access::number;
  number.dtype = DType::i64;
  number.address.offset = call.attributes<SizeAttributes>().size;
  kernel.operands = {number};
  kernel.result = LowerCall::access(call.result(), DType::i64, {}, 0);
  call.kernel(std::move(kernel));
}

void Lowering::lower_scan(LowerCall& call) {
  const auto& attributes = call.attributes<ScanAttributes>();
  const OpDef& row = *call.node().op;
  ScanSpec spec;
  spec.stored = call.in(0).dtype;
  spec.result = call.out().dtype;
  DType accumulator = row.accumulator(spec.stored);
  spec.combine = row.combine_scanned(operand(0, accumulator), operand(1, accumulator));
  spec.identity = row.identity(accumulator);
  spec.reverse = attributes.reverse;
  spec.exclusive = attributes.exclusive;
  int from = call.dense(0).buffer;
  call.step(
      call.target().scan(std::move(spec), lines_of(call.in(0).shape, attributes.axis), from, call.result().buffer));
}

void Lowering::run() {
  for (ValueId id = 0; id < static_cast<ValueId>(graph_.nodes.size()); ++id) {
    const Node& node = graph_.node(id);
    LowerCall call(*this, graph_, id);
    if (node.op == &input_row || node.op == &part_row) continue;  // a part was placed with its tuple
    const std::size_t first_step = program->steps.size();
    if (node.op == &constant_row) {
      int buffer = add_buffer(ProgramBuffer::constant, node.type().dtype, node.type().shape.element_count());
      ProgramBuffer& constant = program->buffers.back();
      constant.bytes = node.attributes.as<ConstantAttributes>().bytes;
      if (Device& device = *program->device; !device.is_host()) {
        constant.memory = device.allocate(constant.bytes.size());
        device.copy_in(constant.memory.data(), constant.bytes.data(), constant.bytes.size());
      }
      places_[static_cast<std::size_t>(id)] = {buffer, dense_layout(node.type().shape)};
    } else if (node.op == &size_row) {
      lower_size(call);
    } else if (node.op == &maps_row) {
      lower_maps(call, id);
    } else if (node.op->lower) {
      node.op->lower(call);
    } else if (node.op->kind == Kind::map) {
      lower_map(call);
    } else if (node.op->kind == Kind::reduce) {
      lower_reduce(call);
    } else if (node.op->kind == Kind::contract) {
      lower_contract(call);
    } else if (node.op->kind == Kind::scan) {
      lower_scan(call);
    } else if (node.op->kind == Kind::layout) {
      lower_view(call, id);
    } else if (node.op->kind == Kind::branch) {
      lower_branch(call, id);
    } else if (node.op->kind == Kind::loop) {
      lower_loop(call, id);
    } else if (node.op->kind == Kind::rows) {
      lower_rows(call, tuple_places(id));
    } else {
      throw InternalError(text("no lowering for ", node.op->name));
    }
    note_origin(id, first_step);
  }
  copy_results();
}

void Lowering::note_origin(ValueId id, std::size_t first_step) {
  if (program->steps.size() == first_step) return;
  const Node& node = graph_.node(id);
  auto origin = std::make_shared<StepOrigin>(StepOrigin{ops_of(node), node.name_scope, {}, node.where});
  if (node.apart) origin->apart = node.apart;
  for (ValueId value = id; origin->apart.empty() && value >= 0;) {
    const std::vector<int>& readers = readers_[static_cast<std::size_t>(value)];
    if (readers.empty()) break;
    value = readers[0];
    if (value < 0)
      origin->apart = "it is a result";
    else if (graph_.node(value).op != &part_row)
      origin->apart = text(label_of(graph_.node(value)), " reads it from memory");
  }
  for (std::size_t s = first_step; s < program->steps.size(); ++s) program->steps[s]->origin = origin;
}

void Lowering::lower_view(LowerCall& call, ValueId id) {
  const Shape& shape = call.in(0).shape;
  auto view_of_layout = [&](const Layout& layout) {
    return call.node().op->view({shape, layout, call.out().shape, call.node().attributes.view()});
  };
  std::optional<Layout> view = view_of_layout(call.place(0).layout);
  Place from = call.place(0);
  if (!view) {
    // Only of dense memory is it a view.
    from = call.dense(0);
    view = view_of_layout(from.layout);
    if (!view) throw InternalError(text(call.node().op->name, " is no view of dense memory"));
  }
  places_[static_cast<std::size_t>(id)] = {from.buffer, *view};
}

/// A result must be a dense buffer of its own: inputs, constants, views and values returned twice are copied.
void Lowering::copy_results() {
  for (std::size_t r = 0; r < graph_.results.size(); ++r) {
    ValueId id = graph_.results[r];
    const Place& place = places_[static_cast<std::size_t>(id)];
    int buffer = program->results[r].buffer;
    if (place.buffer == buffer) continue;
    const ValueType& type = graph_.type(id);
    LowerCall call(*this, graph_, id);
    Place to{buffer, dense_layout(type.shape)};
    Place operands[] = {place};
    DType dtypes[] = {type.dtype};
    AxisMap axes[] = {identity_axes(type.shape.rank())};
    call.map(type.shape, operands, dtypes, axes, operand(0, type.dtype), to, "copy");
  }
}

// --- LowerCall

const Place& LowerCall::place(int number) const {
  return lowering_.places_[static_cast<std::size_t>(node().inputs[static_cast<std::size_t>(number)])];
}

Place LowerCall::dense(int number) {
  const Place& given = place(number);
  const ValueType& type = in(number);
  std::vector<Dim> strides = dense_strides(type.shape);
  bool is_dense = given.layout.offset.is_constant(0);
  for (std::size_t axis = 0; axis < strides.size(); ++axis)
    is_dense &=
        identical(strides[axis], given.layout.strides[axis]) || type.shape[static_cast<int>(axis)].is_constant(1);
  if (is_dense) return given;
  Place to = temporary(type.dtype, type.shape);
  Place operands[] = {given};
  DType dtypes[] = {type.dtype};
  AxisMap axes[] = {identity_axes(type.shape.rank())};
  map(type.shape, operands, dtypes, axes, operand(0, type.dtype), to, "pack");
  return to;
}

Place LowerCall::result() { return lowering_.place_for(id_); }

std::vector<Place> LowerCall::results() { return lowering_.read_places(id_); }

Place LowerCall::temporary(DType dtype, const Shape& shape) {
  return {lowering_.add_buffer(ProgramBuffer::temporary, dtype, shape.element_count()), dense_layout(shape)};
}

const Dim& LowerCall::elements(const Place& place) const {
  return lowering_.program->buffers[static_cast<std::size_t>(place.buffer)].elements;
}

Access LowerCall::access(const Place& place, DType dtype, std::span<const int> loops, std::size_t loop_count) {
  Access out;
  out.dtype = dtype;
  out.buffer = place.buffer;
  out.address.offset = place.layout.offset;
  out.address.strides.assign(loop_count, Dim(0));
  for (std::size_t axis = 0; axis < loops.size(); ++axis)
    if (loops[axis] >= 0) out.address.strides[static_cast<std::size_t>(loops[axis])] = place.layout.strides[axis];
  return out;
}

void LowerCall::kernel(Kernel given, std::vector<KernelCheck> checks) {
  ensure_loop(given);
  // A kernel that adds to memory keeps its loops: merged lanes could meet in one place.
  KernelLaunch launch{given.accumulate ? std::move(given) : collapse_loops(given), {}, {}, std::move(checks)};
  launch.buffers = number_buffers(launch.kernel);
  for (int buffer : launch.buffers)
    launch.buffer_extents.push_back(lowering_.program->buffers[static_cast<std::size_t>(buffer)].elements);
  for (KernelCheck& check : launch.checks) check = this->check(check.operand.c_str(), check.extent);
  step(target().kernel(std::move(launch)));
}

KernelCheck LowerCall::check(const char* operand, const Dim& extent) const {
  return {operand, extent, node().op->name, node().caller, node().where};
}

void LowerCall::map(const Shape& space, std::span<const Place> operands, std::span<const DType> dtypes,
                    std::span<const AxisMap> axes, Expr body, const Place& to, const char* name) {
  maps(space, operands, dtypes, axes, std::span(&body, 1), std::span(&to, 1), name);
}

void LowerCall::maps(const Shape& space, std::span<const Place> operands, std::span<const DType> dtypes,
                     std::span<const AxisMap> axes, std::span<const Expr> bodies, std::span<const Place> to,
                     const char* name) {
  Kernel kernel;
  kernel.name = name;
  kernel.body = bodies[0];
  for (const Dim& extent : space) kernel.loops.push_back({extent, false});
  for (std::size_t k = 0; k < operands.size(); ++k) {
    std::vector<int> loops = walking_loops(axes[k], static_cast<int>(operands[k].layout.strides.size()));
    kernel.operands.push_back(access(operands[k], dtypes[k], loops, kernel.loops.size()));
  }
  std::vector<int> loops;
  for (int axis = 0; axis < space.rank(); ++axis) loops.push_back(axis);
  kernel.result = access(to[0], bodies[0].dtype(), loops, kernel.loops.size());
  for (std::size_t i = 1; i < bodies.size(); ++i)
    kernel.further.push_back({bodies[i], access(to[i], bodies[i].dtype(), loops, kernel.loops.size())});
  this->kernel(std::move(kernel));
}

Device& LowerCall::device() const { return *lowering_.program->device; }

const Target& LowerCall::target() const { return lowering_.program->device->target(); }

void LowerCall::step(std::unique_ptr<Step> step) { lowering_.program->steps.push_back(std::move(step)); }

void LowerCall::bind_late(const Dim& symbol, const Place& place) {
  lowering_.program->late.push_back(
      {static_cast<int>(lowering_.program->steps.size()) - 1, place.buffer, *symbol.as_symbol()});
}

std::shared_ptr<Program> lower(const Graph& graph, Device& device) {
  Lowering lowering(graph, device);
  lowering.run();
  return lowering.program;
}

void provide_code(Program& program) {
  std::vector<Step*> all;
  std::vector<Program*> open{&program};
  while (!open.empty()) {
    Program& next = *open.back();
    open.pop_back();
    for (const std::unique_ptr<Step>& step : next.steps) {
      all.push_back(step.get());
      for (Step* part : step->parts()) all.push_back(part);
      for (Program* child : step->children()) open.push_back(child);
    }
  }
  program.device->target().provide_code(all);
}

}  // namespace stet
