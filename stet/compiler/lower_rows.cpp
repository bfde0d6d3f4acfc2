#include "stet/compiler/lower_rows.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/short_array.h"
#include "stet/compiler/pipeline.h"
#include "stet/compiler/rows.h"

namespace stet {
namespace {

/// What an expression costs beside reading an element from the cache, roughly.
int cost_of(Expr body) {
  int cost = 0;
  for (Expr part : topological(body)) switch (part->primitive) {
      case Primitive::operand:
      case Primitive::index:
      case Primitive::constant:
      case Primitive::cast:
        break;
      case Primitive::add:
      case Primitive::subtract:
      case Primitive::multiply:
      case Primitive::fma:
      case Primitive::maximum:
      case Primitive::minimum:
      case Primitive::negate:
      case Primitive::absolute:
      case Primitive::less:
      case Primitive::less_equal:
      case Primitive::equal:
      case Primitive::logical_and:
      case Primitive::logical_or:
      case Primitive::logical_not:
      case Primitive::select:
        cost += 1;
        break;
      default:
        cost += 6;
    }
  return cost;
}

/// From a child graph to a RowKernel.
///
/// A value's *level* is the first stage that can compute it: a reduction of what stage s can compute is a value for
/// stage s + 1. What a later stage needs again is computed again, or kept: written to a line by the first stage and
/// read by the later one. Results are lines anyway; what is expensive is kept in a result's memory where it is not
/// written yet, or in scratch.
class RowLowering {
 public:
  RowLowering(LowerCall& call, const std::vector<Place>& results)
      : call_(call),
        rows_(call.attributes<RowsAttributes>()),
        child_(*rows_.child),
        space_{rows_.space, rows_.outer},
        values_(child_.nodes.size()) {
    for (std::size_t r = 0; r < child_.results.size(); ++r) at(child_.results[r]).to = results[r];
  }

  RowKernel run() {
    kernel_.name = call_.node().label;
    for (int axis = 0; axis < space_.outer; ++axis) kernel_.outer.push_back(space_.shape[axis]);
    kernel_.length = 1;
    for (int axis = space_.outer; axis < space_.shape.rank(); ++axis)
      kernel_.length = kernel_.length * space_.shape[axis];
    find_levels();
    find_uses();
    place_lines();
    add_operands();
    build();
    return collapse_loops(kernel_);
  }

 private:
  struct RowValue {
    RowRole role = RowRole::none;
    int level = 0;
    std::set<int> uses;         // stages that compute it, or read what was kept of it
    bool kept = false;          // later stages read it
    std::optional<Place> to;    // of a result
    int kept_in = -1;           // a buffer of the program, or scratch if it is negative: -1 - its number
    int number = -1;            // of a value for rows: in expressions
    int kept_operand = -1;      // of a kept value: the operand that reads it
    std::map<int, Expr> exprs;  // of a full value: by stage
  };
  RowValue& at(ValueId id) { return values_[static_cast<std::size_t>(id)]; }
  const Node& node(ValueId id) const { return child_.node(id); }
  bool is_input(ValueId id) const { return node(id).op == &input_row; }
  static bool is_reduce(const Node& node) { return node.op->kind == Kind::reduce; }

  Expr body_of(const Node& node) const {
    if (node.op == &map_row) return node.attributes.as<MapAttributes>().body;
    const auto& reduce = node.attributes.as<ReduceAttributes>();
    if (reduce.body.defined()) return reduce.body;
    DType first = child_.type(node.inputs[0]).dtype;
    return scalar::cast(operand(0, first), node.op->accumulator(first));
  }

  void find_levels() {
    for (ValueId id = 0; id < static_cast<ValueId>(child_.nodes.size()); ++id) {
      if (is_input(id)) continue;
      RowValue& value = at(id);
      value.role = row_role(child_, id, space_);
      for (ValueId input : node(id).inputs) value.level = std::max(value.level, at(input).level);
      if (is_reduce(node(id))) ++value.level;
      stages_ = std::max(stages_, value.level + 1);
    }
  }

  /// Users come after what they use: from the last value to the first, all uses of one are known.
  void find_uses() {
    for (ValueId id = static_cast<ValueId>(child_.nodes.size()) - 1; id >= 0; --id) {
      RowValue& value = at(id);
      if (is_input(id)) continue;
      if (is_reduce(node(id))) {
        for (ValueId input : node(id).inputs) at(input).uses.insert(value.level - 1);
        continue;
      }
      if (value.role == RowRole::row) continue;  // computed once, where it can be
      if (value.to) value.uses.insert(value.level);
      value.kept = !value.uses.empty() && *value.uses.rbegin() > value.level &&
                   (value.to || cost_of(body_of(node(id))) >= dear_);
      if (value.kept) value.uses.insert(value.level);
      for (int stage : value.uses)
        if (!value.kept || stage == value.level)
          for (ValueId input : node(id).inputs) at(input).uses.insert(stage);
    }
  }

  /// Where kept values lie: in their result, in another's that is written later, or in scratch.
  void place_lines() {
    std::set<ValueId> lent;
    for (ValueId id = 0; id < static_cast<ValueId>(child_.nodes.size()); ++id) {
      RowValue& value = at(id);
      if (!value.kept) continue;
      if (value.to) {
        value.kept_in = value.to->buffer;
        continue;
      }
      DType dtype = child_.type(id).dtype;
      auto lends = [&](ValueId other) {
        const RowValue& result = at(other);
        return result.to && result.role == RowRole::full && !result.kept && child_.type(other).dtype == dtype &&
               result.level > value.level && *value.uses.rbegin() <= result.level && !lent.contains(other);
      };
      auto found = std::find_if(child_.results.begin(), child_.results.end(), lends);
      if (found != child_.results.end()) {
        lent.insert(*found);
        value.kept_in = at(*found).to->buffer;
      } else {
        kernel_.scratch.push_back(dtype);
        value.kept_in = -static_cast<int>(kernel_.scratch.size());
      }
    }
  }

  /// A dense line in a buffer: the same place in every row of scratch.
  Access line(int buffer, DType dtype) const {
    Access out;
    out.dtype = dtype;
    out.buffer = buffer;
    out.address.strides.assign(kernel_.outer.size() + 1, Dim(0));
    out.address.strides.back() = 1;
    if (buffer < 0) return out;
    std::vector<Dim> dense = dense_strides(space_.shape);
    for (std::size_t i = 0; i < kernel_.outer.size(); ++i) out.address.strides[i] = dense[i];
    return out;
  }

  /// How a node reads its input: what there is one of for each row does not move along it.
  AxisMap read_axes(ValueId id, std::size_t k) const {
    AxisMap axes = input_axes(child_, node(id), k);
    if (node(id).op == &map_row && values_[static_cast<std::size_t>(id)].role == RowRole::row)
      axes.rank = std::min(axes.rank, space_.outer);
    return axes;
  }

  /// The operand that reads an input of the child, `axes` of the space or of values for rows.
  int operand_of(ValueId input, const AxisMap& axes) {
    for (std::size_t k = 0; k < read_.size(); ++k)
      if (read_[k].first == input && read_[k].second == axes) return static_cast<int>(k);
    int number = node(input).attributes.as<InputAttributes>().number;
    DType dtype = child_.type(input).dtype;
    int rank = child_.type(input).shape.rank();
    std::vector<int> loops = walking_loops(axes, rank);
    Access access = row_access(call_.place(number), dtype, loops);
    const Dim& step = access.address.strides.back();
    if (!step.is_constant(0) && !step.is_constant(1)) access = row_access(call_.dense(number), dtype, loops);
    kernel_.operands.push_back(access);
    read_.emplace_back(input, axes);
    return static_cast<int>(kernel_.operands.size()) - 1;
  }

  /// The axes of a row are walked as one.
  Access row_access(const Place& place, DType dtype, const std::vector<int>& loops) {
    Access access = LowerCall::access(place, dtype, loops, static_cast<std::size_t>(space_.shape.rank()));
    std::vector<Dim>& strides = access.address.strides;
    for (int axis = space_.outer; axis + 1 < space_.shape.rank(); ++axis)
      if (!identical(strides[static_cast<std::size_t>(axis)],
                     strides[static_cast<std::size_t>(axis) + 1] * space_.shape[axis + 1]))
        throw InternalError("the axes of a row are not walked as one");
    strides[static_cast<std::size_t>(space_.outer)] = strides.back();
    strides.resize(static_cast<std::size_t>(space_.outer) + 1, Dim(0));
    return access;
  }

  /// All operands first: values are numbered after them.
  void add_operands() {
    for (ValueId id = 0; id < static_cast<ValueId>(child_.nodes.size()); ++id) {
      const Node& one = node(id);
      if (is_input(id) || one.op->kind == Kind::layout) continue;
      for (std::size_t k = 0; k < one.inputs.size(); ++k)
        if (is_input(one.inputs[k])) operand_of(one.inputs[k], read_axes(id, k));
      if (is_reduce(one) && one.op->divides_by_count) count_ = 0;
    }
    for (RowValue& value : values_)
      if (value.kept) {
        auto id = static_cast<ValueId>(&value - values_.data());
        kernel_.operands.push_back(line(value.kept_in, child_.type(id).dtype));
        value.kept_operand = static_cast<int>(kernel_.operands.size()) - 1;
      }
    if (count_ < 0) return;
    Access number;
    number.source = Access::number;
    number.dtype = DType::i64;
    number.address.offset = kernel_.length;
    kernel_.operands.push_back(number);
    count_ = static_cast<int>(kernel_.operands.size()) - 1;
  }

  /// An input of a node at a stage: what its body's operand stands for.
  Expr input_expr(ValueId id, std::size_t k, int stage) {
    ValueId input = node(id).inputs[k];
    DType dtype = child_.type(input).dtype;
    if (is_input(input)) return operand(operand_of(input, read_axes(id, k)), dtype);
    if (at(input).role == RowRole::row) return operand(at(input).number, dtype);
    return full_expr(input, stage);
  }
  Expr over_inputs(ValueId id, int stage) {
    std::vector<Expr> inputs;
    for (std::size_t k = 0; k < node(id).inputs.size(); ++k) inputs.push_back(input_expr(id, k, stage));
    return substitute(body_of(node(id)), inputs);
  }
  Expr full_expr(ValueId id, int stage) {
    RowValue& value = at(id);
    if (value.kept && stage > value.level) return operand(value.kept_operand, child_.type(id).dtype);
    auto known = value.exprs.find(stage);
    if (known == value.exprs.end()) known = value.exprs.emplace(stage, over_inputs(id, stage)).first;
    return known->second;
  }

  void build() {
    kernel_.stages.resize(static_cast<std::size_t>(stages_));
    int next = static_cast<int>(kernel_.operands.size());
    for (int s = 0; s < stages_; ++s) {
      RowKernel::Stage& stage = kernel_.stages[static_cast<std::size_t>(s)];
      auto add_scalar = [&](Expr value, std::optional<Access> to) {
        stage.scalars.push_back({value, std::move(to)});
        return next++;
      };
      // Values for rows that this stage can compute: what was combined before it, and maps of them.
      for (ValueId id = 0; id < static_cast<ValueId>(child_.nodes.size()); ++id) {
        RowValue& value = at(id);
        if (is_input(id) || value.role != RowRole::row || value.level != s) continue;
        if (node(id).op->kind == Kind::layout)
          value.number = at(node(id).inputs[0]).number;
        else if (is_reduce(node(id)))
          value.number = finish_reduction(id, add_scalar);
        else
          value.number = add_scalar(simplify(over_inputs(id, s)), stored_once(value, child_.type(id).dtype));
      }
      // Then the walk. What stands still along the row in its expressions is computed before it.
      std::unordered_map<const ExprNode*, int> hoisted;
      std::vector<Expr> held;
      auto hoist = [&](Expr body) { return hoisted_from(simplify(body), hoisted, held, add_scalar); };
      std::vector<ValueId> reduced;
      for (ValueId id = 0; id < static_cast<ValueId>(child_.nodes.size()); ++id)
        if (!is_input(id) && is_reduce(node(id)) && at(id).level == s + 1) {
          stage.reductions.push_back({node(id).op->combine, hoist(over_inputs(id, s))});
          reduced.push_back(id);
        }
      for (ValueId id = 0; id < static_cast<ValueId>(child_.nodes.size()); ++id) {
        RowValue& value = at(id);
        if (is_input(id) || value.role != RowRole::full || value.level != s || (!value.to && !value.kept)) continue;
        int buffer = value.to ? value.to->buffer : value.kept_in;
        stage.lines.push_back({hoist(full_expr(id, s)), line(buffer, child_.type(id).dtype)});
      }
      for (ValueId id : reduced) at(id).number = next++;
    }
  }

  std::optional<Access> stored_once(const RowValue& value, DType dtype) const {
    if (!value.to) return std::nullopt;
    Access out;
    out.dtype = dtype;
    out.buffer = value.to->buffer;
    for (int axis = 0; axis < space_.outer; ++axis)
      out.address.strides.push_back(value.to->layout.strides[static_cast<std::size_t>(axis)]);
    out.address.strides.push_back(Dim(0));
    return out;
  }

  /// The value of a reduction from what was combined.
  template <class AddScalar>
  int finish_reduction(ValueId id, const AddScalar& add_scalar) {
    const Node& reduce = node(id);
    bool position = reduce.op->combine == Combine::argmax || reduce.op->combine == Combine::argmin;
    Expr combined = operand(at(id).number, position ? DType::i64 : body_of(reduce).dtype()), value = combined;
    if (reduce.op->divides_by_count) value = value / scalar::cast(operand(count_, DType::i64), combined.dtype());
    value = scalar::cast(value, reduce.type().dtype);
    if (value == combined && !at(id).to) return at(id).number;
    return add_scalar(value, stored_once(at(id), reduce.type().dtype));
  }

  bool stands_still(Expr leaf) const {
    if (leaf.is(Primitive::constant)) return true;
    if (leaf.is(Primitive::index)) return leaf->number < space_.outer;
    auto number = static_cast<std::size_t>(leaf->number);
    return number >= kernel_.operands.size() || !RowKernel::moves(kernel_.operands[number]);
  }

  /// `body` with every largest part that stands still along the row replaced by a scalar.
  template <class AddScalar>
  Expr hoisted_from(Expr body, std::unordered_map<const ExprNode*, int>& hoisted, std::vector<Expr>& held,
                    const AddScalar& add_scalar) {
    struct Part {
      Expr expr;
      bool still = false, constant = false;
    };
    std::unordered_map<const ExprNode*, Part> done;
    auto take = [&](const Part& part, Expr original) {
      if (!part.still || part.constant || original->argument_count == 0) return part.expr;
      auto known = hoisted.find(&*original);
      if (known == hoisted.end()) {
        held.push_back(original);  // so that no other takes its place
        known = hoisted.emplace(&*original, add_scalar(original, std::nullopt)).first;
      }
      return operand(known->second, original.dtype());
    };
    for (Expr part : topological(body)) {
      Part next{part, true, true};
      if (part->argument_count == 0) {
        next.still = stands_still(part);
        next.constant = part.is(Primitive::constant);
      } else {
        for (int i = 0; i < part->argument_count; ++i) {
          const Part& argument = done.at(&*part->arguments[i]);
          next.still &= argument.still;
          next.constant &= argument.constant;
        }
        if (!next.still) {
          std::vector<Expr> arguments;
          for (int i = 0; i < part->argument_count; ++i)
            arguments.push_back(take(done.at(&*part->arguments[i]), part->arguments[i]));
          next.expr = make(part->primitive, arguments, part.dtype());
        }
      }
      done[&*part] = next;
    }
    return take(done.at(&*body), body);
  }

  static constexpr int dear_ = 6;

  LowerCall& call_;
  const RowsAttributes& rows_;
  const Graph& child_;
  const RowSpace space_;
  std::vector<RowValue> values_;  // by node of the child
  std::vector<std::pair<ValueId, AxisMap>> read_;
  RowKernel kernel_;
  int stages_ = 1;
  int count_ = -1;  // the operand that is the length of a row
};

/// Buffers of the program become 0, 1, … of the kernel, and scratch the last ones.
std::vector<int> number_buffers(RowKernel& kernel) {
  std::vector<int> buffers;
  std::vector<Access*> scratch;
  auto renumber = [&](Access& access) {
    if (access.source == Access::number) return;
    if (access.buffer < 0) {
      scratch.push_back(&access);
      return;
    }
    auto at = std::find(buffers.begin(), buffers.end(), access.buffer);
    int number = static_cast<int>(at - buffers.begin());
    if (at == buffers.end()) buffers.push_back(access.buffer);
    access.buffer = number;
  };
  for (Access& access : kernel.operands) renumber(access);
  for (RowKernel::Stage& stage : kernel.stages) {
    for (RowKernel::Scalar& one : stage.scalars)
      if (one.to) renumber(*one.to);
    for (RowKernel::Line& one : stage.lines) renumber(one.to);
  }
  for (Access* access : scratch) access->buffer = static_cast<int>(buffers.size()) - 1 - access->buffer;
  kernel.buffer_count = static_cast<int>(buffers.size() + kernel.scratch.size());
  return buffers;
}

/// What the child's own program reads: a buffer from an element on.
struct ProgramOperand {
  int buffer = 0;
  DType dtype = DType::f32;
  Dim offset = 0;
};

/// Row by row, or the child's own steps: sizes decide, so that the bits of a result follow from them alone.
class RowsOrProgram : public Step {
 public:
  RowsOrProgram(std::unique_ptr<Step> rows, std::vector<Dim> outer, Dim length, Graph child, Device& device,
                std::vector<ProgramOperand> inputs, std::vector<int> results)
      : rows_(std::move(rows)),
        outer_(std::move(outer)),
        length_(std::move(length)),
        child_(std::move(child)),
        device_(device),
        inputs_(std::move(inputs)),
        results_(std::move(results)) {
    reads = rows_->reads;
    for (const ProgramOperand& input : inputs_) reads.push_back(input.buffer);
    writes = results_;
  }

  std::unique_ptr<BoundStep> bind(const Bindings& bindings) const override;
  std::string str() const override { return rows_->str(); }
  Dim flops() const override { return rows_->flops(); }
  std::vector<Step*> parts() const override { return {rows_.get()}; }

 private:
  /// Few long rows leave threads without work; of many short ones a vector holds several.
  bool worth_it(const Bindings& bindings) const {
    constexpr double few_elements = 16384, few_rows = 16, short_row = 16;
    double rows = 1, length = static_cast<double>(length_.evaluate(bindings));
    for (const Dim& extent : outer_) rows *= static_cast<double>(extent.evaluate(bindings));
    return rows * length <= few_elements || (rows >= few_rows && length >= short_row);
  }

  std::unique_ptr<Step> rows_;
  std::vector<Dim> outer_;
  Dim length_;
  Graph child_;
  Device& device_;
  std::vector<ProgramOperand> inputs_;
  std::vector<int> results_;
  mutable std::once_flag made_;
  mutable std::shared_ptr<Program> program_;  // for sizes that want it, made when they come
};

class BoundChild : public BoundStep {
 public:
  struct Input {
    int buffer;
    std::int64_t offset;  // in bytes
  };
  BoundChild(std::shared_ptr<const BoundProgram> program, std::vector<Input> inputs, const std::vector<int>& results)
      : program_(std::move(program)), inputs_(std::move(inputs)), results_(results) {}
  void run(void* const* table) const override {
    ShortArray<void*, 16> inputs(inputs_.size()), results(results_.size());
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      inputs[i] = static_cast<std::byte*>(table[inputs_[i].buffer]) + inputs_[i].offset;
    for (std::size_t r = 0; r < results_.size(); ++r) results[r] = table[results_[r]];
    program_->run_into(inputs.data(), results.data());
  }

 private:
  std::shared_ptr<const BoundProgram> program_;
  std::vector<Input> inputs_;
  std::vector<int> results_;
};

std::unique_ptr<BoundStep> RowsOrProgram::bind(const Bindings& bindings) const {
  if (worth_it(bindings)) return rows_->bind(bindings);
  std::call_once(made_, [&] {
    std::shared_ptr<Program> program = lower(merge_maps(child_), device_);
    provide_code(*program);
    program_ = std::move(program);
  });
  std::vector<BoundChild::Input> inputs;
  for (const ProgramOperand& input : inputs_)
    inputs.push_back({input.buffer, input.offset.evaluate(bindings) * size_of(input.dtype)});
  return std::make_unique<BoundChild>(program_->bind(bindings), std::move(inputs), results_);
}

/// The child with inputs that lie as those of the node do, and where they begin.
std::vector<ProgramOperand> lay_inputs(LowerCall& call, Graph& child) {
  std::vector<ProgramOperand> out;
  for (std::size_t k = 0; k < child.inputs.size(); ++k) {
    const Place& place = call.place(static_cast<int>(k));
    const ValueType& type = call.in(static_cast<int>(k));
    out.push_back({place.buffer, type.dtype, place.layout.offset});
    std::vector<Dim> dense = dense_strides(type.shape);
    bool is_dense = true;
    for (std::size_t axis = 0; axis < dense.size(); ++axis)
      is_dense &= identical(dense[axis], place.layout.strides[axis]);
    if (is_dense) continue;
    InputAttributes attributes{static_cast<int>(k), place.layout.strides};
    child.nodes[static_cast<std::size_t>(child.inputs[k])].attributes = Attributes(view_of(attributes));
  }
  return out;
}

}  // namespace

void lower_rows(LowerCall& call, const std::vector<Place>& results) {
  const auto& rows = call.attributes<RowsAttributes>();
  Graph child = *rows.child;
  std::vector<ProgramOperand> inputs = lay_inputs(call, child);
  std::vector<int> buffers;
  for (const Place& place : results) buffers.push_back(place.buffer);
  RowLaunch launch{RowLowering(call, results).run(), {}, {}};
  launch.buffers = number_buffers(launch.kernel);
  for (int buffer : launch.buffers) launch.buffer_extents.push_back(call.elements({buffer, {}}));
  std::vector<Dim> outer = launch.kernel.outer;
  Dim length = launch.kernel.length;
  call.step(std::make_unique<RowsOrProgram>(call.target().rows(std::move(launch)), std::move(outer), std::move(length),
                                            std::move(child), call.device(), std::move(inputs), std::move(buffers)));
}

}  // namespace stet
