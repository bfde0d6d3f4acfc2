// The way back over a tape: gradients and Jacobians.
#include <algorithm>
#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/base/inside.h"
#include "stet/base/text.h"
#include "stet/core/batch.h"
#include "stet/core/call.h"
#include "stet/core/flat_loop.h"
#include "stet/core/gradient.h"
#include "stet/core/name_scope.h"
#include "stet/core/tape.h"
#include "stet/core/tape_state.h"
#include "stet/core/trace.h"

namespace stet {

void Accumulator::add(std::uint64_t at, const Tensor& gradient) {
  Tensor& sum = gradients_[at].sum;
  sum = sum.defined() ? core_ops.add(In(sum), In(gradient)) : gradient;
}
void Accumulator::add(std::uint64_t at, const Shape& shape, GradientBlock block) {
  Gradient& gradient = gradients_[at];
  gradient.shape = shape;
  gradient.blocks.push_back(std::move(block));
}
Tensor Accumulator::take(std::uint64_t at, bool keep) {
  Tensor out = find(at);
  if (!keep) gradients_.erase(at);
  return out;
}
Tensor Accumulator::find(std::uint64_t at) {
  auto found = gradients_.find(at);
  if (found == gradients_.end()) return {};
  if (!found->second.blocks.empty()) {
    Tensor blocks = core_ops.assembled(found->second.shape, std::exchange(found->second.blocks, {}));
    add(at, blocks);
  }
  return found->second.sum;
}

TapeSource tape_source(const Source& source, Where where) {
  if (source.variable.defined()) return {0, source.variable.id()};
  return {identity_of(defined_node(source.tensor, "gradient", where)), 0};
}

namespace {

GradientCall call_gradient(const TapeRecord& record, const std::vector<Tensor>& inputs, std::vector<Tensor> ds,
                           std::vector<bool> wanted) {
  if (!record.op->gradient && record.op->kind != Kind::map && record.op->kind != Kind::branch &&
      record.op->kind != Kind::loop)
    throw UserError(error_text(text("gradient: ", record.op->name, " has no gradient"), frame_where(),
                               "leave it out of what the target is computed from, or take its result as a constant"));
  std::vector<Tensor> outputs;
  for (const TapeValue& output : record.outputs) outputs.push_back(output.tensor);
  GradientCall call(*record.op, inputs, record.attributes.view(), std::move(outputs), std::move(ds), std::move(wanted));
  if (record.op->gradient)
    record.op->gradient(call);
  else if (record.op->kind == Kind::branch)
    branch_gradient(call);
  else if (record.op->kind == Kind::loop)
    loop_gradient(call);
  else
    map_gradient(call);
  return call;
}

std::vector<Tensor> inputs_of(const TapeRecord& record) {
  std::vector<Tensor> out;
  for (const TapeValue& input : record.inputs) out.push_back(input.tensor);
  return out;
}

/// Which input gets all of an alias's gradient.
std::size_t behind(const TapeRecord& alias) {
  return alias.attributes.as<AliasAttributes>().kind == AliasAttributes::attached ? 1 : 0;
}

/// Under which number a tensor's gradient is summed up: of what was read from a Variable, the Variable's, so that a
/// loop that reads it in every turn keeps one sum and not one for each turn. Unless the reading itself is asked for.
class Sums {
 public:
  Sums(const GradientTape::State& tape, const std::unordered_set<std::uint64_t>& asked) {
    for (const GradientTape::State::Reading& reading : tape.reads)
      if (!asked.contains(reading.tensor)) variables_[reading.tensor] = of_variable(reading.variable);
  }
  static std::uint64_t of_variable(std::uint64_t variable) { return variable | std::uint64_t{1} << 63; }
  std::uint64_t of(std::uint64_t tensor) const {
    auto found = variables_.find(tensor);
    return found == variables_.end() ? tensor : found->second;
  }

 private:
  std::unordered_map<std::uint64_t, std::uint64_t> variables_;
};

/// One record backwards.
void propagate(const TapeRecord& record, std::vector<Tensor> ds, const Sums& sums, Accumulator& gradients) {
  if (record.op == &alias_row) {
    const std::size_t to = behind(record);
    if (record.followed[to]) gradients.add(sums.of(record.inputs[to].identity), ds[0]);
    return;
  }
  const std::vector<Tensor> inputs = inputs_of(record);
  GradientCall call = call_gradient(record, inputs, std::move(ds), record.followed);
  for (std::size_t i = 0; i < record.inputs.size(); ++i)
    if (call.results()[i].defined()) gradients.add(sums.of(record.inputs[i].identity), call.results()[i]);
  for (auto& [number, block] : call.blocks()) {
    auto at = static_cast<std::size_t>(number);
    gradients.add(sums.of(record.inputs[at].identity), inputs[at].shape(), std::move(block));
  }
}

}  // namespace

std::vector<Tensor> gradients_of_record(const TapeRecord& record, std::vector<Tensor> ds, std::vector<bool> wanted) {
  const std::vector<Tensor> inputs = inputs_of(record);
  GradientCall call = call_gradient(record, inputs, std::move(ds), std::move(wanted));
  Accumulator sums;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (call.results()[i].defined()) sums.add(i, call.results()[i]);
  for (auto& [number, block] : call.blocks())
    sums.add(static_cast<std::uint64_t>(number), inputs[static_cast<std::size_t>(number)].shape(), std::move(block));
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < inputs.size(); ++i) out.push_back(sums.find(i));
  return out;
}

std::vector<Tensor> walk_back(GradientTape::State& tape, const std::vector<TapeSource>& sources, Accumulator& gradients,
                              bool frees) {
  std::unordered_set<std::uint64_t> asked;
  for (const TapeSource& source : sources) asked.insert(source.tensor);
  const Sums sums(tape, asked);
  for (std::size_t i = tape.records.size(); i-- > 0;) {
    TapeRecord taken;
    if (frees) {
      taken = std::move(tape.records.back());
      tape.records.pop_back();
    }
    const TapeRecord& record = frees ? taken : tape.records[i];
    std::vector<Tensor> ds;
    bool any = false;
    for (const TapeValue& output : record.outputs) {
      ds.push_back(gradients.take(output.identity, asked.contains(output.identity)));
      any = any || ds.back().defined();
    }
    if (!any) continue;
    NameScope scope(record.name_scope ? text("gradients/", *record.name_scope) : std::string("gradients"));
    propagate(record, std::move(ds), sums, gradients);
  }
  // A reading that is a target, or asked for, has a sum of its own.
  for (const GradientTape::State::Reading& reading : tape.reads)
    if (Tensor d = gradients.find(reading.tensor); d.defined()) gradients.add(Sums::of_variable(reading.variable), d);
  std::vector<Tensor> out;
  for (const TapeSource& source : sources)
    out.push_back(gradients.find(source.variable != 0 ? Sums::of_variable(source.variable) : source.tensor));
  return out;
}

namespace {

/// "" of the only target, " [1]" of one in a structure.
std::string place_of(const inside::TensorList& targets, std::size_t number) {
  return targets.places[number].empty() ? "" : text(" ", targets.places[number]);
}

void check_targets(const inside::TensorList& targets, const char* what, Where where) {
  if (targets.tensors.empty())
    throw UserError(error_text(text(what, ": there is no tensor among the targets"), where,
                               "differentiate a floating tensor, such as a loss"));
  for (std::size_t i = 0; i < targets.tensors.size(); ++i) {
    const TensorNode& node = defined_node(targets.tensors[i], what, where);
    if (!is_floating(node.dtype))
      throw UserError(error_text(
          text(what, ": the target", place_of(targets, i), " ", node.dtype, node.shape(), " is not floating"), where,
          "differentiate a floating tensor, such as a loss"));
  }
}

bool same_type(const Tensor& a, const Tensor& b, Where where) {
  if (a.dtype() != b.dtype() || a.rank() != b.rank()) return false;
  for (int axis = 0; axis < a.rank(); ++axis) try {
      if (!require(a.dim(axis), Relation::equal, b.dim(axis), {"gradient", "size of an output gradient", where}))
        return false;
    } catch (const Problem&) {
      return false;
    }
  return true;
}

/// The weight of every target.
std::vector<Tensor> weights_of(const inside::TensorList& targets, const inside::TensorList& given, Where where) {
  const std::vector<Tensor>& weights = given.tensors;
  if (!weights.empty() && weights.size() != targets.tensors.size())
    throw UserError(error_text(text("gradient: ", targets.tensors.size(), " targets have ", weights.size(),
                                    weights.size() == 1 ? " output gradient" : " output gradients"),
                               where, "give one for each target, undefined for ones, or none at all"));
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < targets.tensors.size(); ++i) {
    const Tensor& target = targets.tensors[i];
    const bool is_given = !weights.empty() && weights[i].defined();
    if (is_given && !same_type(weights[i], target, where))
      throw UserError(error_text(text("gradient: the output gradient", place_of(targets, i), " ", type_text(weights[i]),
                                      " is not of its target's type ", type_text(target)),
                                 where, "it has the target's dtype and shape; cast or broadcast it first"));
    out.push_back(is_given ? weights[i] : ones_like(target));
  }
  return out;
}

/// "zero" or "none".
bool zeros_where_unconnected(const std::string& option, Where where) {
  if (option == "zero") return true;
  if (option == "none") return false;
  throw UserError(error_text(text("gradient: unconnected is \"", option, "\""), where, "it is \"none\" or \"zero\""));
}

void begin(GradientTape::State& tape, const char* what, Where where) {
  if (tape.spent && !tape.persistent)
    throw UserError(error_text(text(what, ": this tape has given its gradients already"), where,
                               "make it GradientTape tape({.persistent = true}), or ask for all gradients at once"));
  tape.spent = true;
  ++tape.asked;
}

Tensor zeros_of(const Source& source) {
  return source.variable.defined() ? zeros(source.variable.shape(), source.variable.dtype())
                                   : zeros_like(source.tensor);
}
Shape shape_of(const Source& source) {
  return source.variable.defined() ? source.variable.shape() : source.tensor.shape();
}
DType type_of_source(const Source& source) {
  return source.variable.defined() ? source.variable.dtype() : source.tensor.dtype();
}

/// Traced tensors have no memory, and a scope may be run again from before: nothing is freed there.
bool may_free(const GradientTape::State& tape) { return !tape.persistent && !trace_in_progress(); }

}  // namespace

std::vector<Tensor> GradientTape::gradients(const inside::TensorList& targets, const std::vector<Source>& sources,
                                            const GradientOptions& options, Where where) {
  State& tape = *state_;
  check_targets(targets, "gradient", where);
  const bool zeros = zeros_where_unconnected(options.unconnected, where);
  std::vector<TapeSource> named;
  for (const Source& source : sources) named.push_back(tape_source(source, where));
  Frame frame("gradient", where);
  PausedTape paused(tape);
  std::vector<Tensor> weights = weights_of(targets, options.output_gradients, where);
  begin(tape, "gradient", where);
  Accumulator gradients;
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (tape.tracks(targets.tensors[i])) gradients.add(identity_of(*targets.tensors[i].node()), weights[i]);
  std::vector<Tensor> out = walk_back(tape, named, gradients, may_free(tape));
  for (std::size_t i = 0; i < out.size(); ++i)
    if (!out[i].defined()) out[i] = zeros ? zeros_of(sources[i]) : Tensor::no_gradient();
  return out;
}

Tensor GradientTape::gradient(const inside::TensorList& targets, const Source& source, const GradientOptions& options,
                              Where where) {
  return gradients(targets, {source}, options, where)[0];
}
std::vector<Tensor> GradientTape::gradient(const inside::TensorList& targets, std::initializer_list<Source> sources,
                                           const GradientOptions& options, Where where) {
  return gradients(targets, sources, options, where);
}
std::vector<Tensor> GradientTape::gradient(const inside::TensorList& targets, const std::vector<Source>& sources,
                                           const GradientOptions& options, Where where) {
  return gradients(targets, sources, options, where);
}

std::vector<Tensor> gradients_of(GradientTape& tape, const std::vector<Tensor>& targets,
                                 const std::vector<Tensor>& weights, const std::vector<Source>& sources) {
  GradientTape::State& state = tape.state();
  state.spent = true;
  PausedTape paused(state);
  Accumulator gradients;
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (weights[i].defined() && state.tracks(targets[i])) gradients.add(identity_of(*targets[i].node()), weights[i]);
  std::vector<TapeSource> named;
  for (const Source& source : sources) named.push_back(tape_source(source, {}));
  return walk_back(state, named, gradients, may_free(state));
}

// --- Jacobians

namespace {

Shape joined_shape(const Shape& a, const Shape& b, int skipped, const char* what, Where where) {
  std::vector<Dim> out(a.begin(), a.end());
  for (int axis = skipped; axis < b.rank(); ++axis) out.push_back(b[axis]);
  if (out.size() > static_cast<std::size_t>(max_rank))
    throw UserError(error_text(text(what, ": the result would have ", out.size(), " axes, of the target's ", a.rank(),
                                    " and the source's ", b.rank()),
                               where,
                               text("a tensor has at most ", max_rank, "; reshape the target or the source first")));
  return Shape(out);
}

/// The derivatives of every element of the target: as many ways back over the tape, all of them at once. Of a batch
/// (`rows` is 1) the first axis is in all of them.
Tensor jacobian_of(GradientTape::State& tape, const Tensor& target, const TapeSource& source, const Shape& source_shape,
                   DType dtype, int rows, bool* connected, const char* what, Where where) {
  const Shape shape = target.shape();
  const Shape whole = joined_shape(shape, source_shape, rows, what, where);
  *connected = false;
  auto walk = [&](const Tensor& weight) {
    Accumulator gradients;
    if (tape.tracks(target)) gradients.add(identity_of(*target.node()), weight);
    Tensor d = walk_back(tape, {source}, gradients, false)[0];
    *connected = d.defined();
    return d;
  };
  if (shape.rank() == rows) {  // one way back
    Tensor d = walk(ones_like(target));
    return *connected ? d : zeros(whole, dtype);
  }
  Dim count = 1;
  std::vector<Dim> sizes;
  for (int axis = 0; axis < rows; ++axis) sizes.push_back(1);
  for (int axis = rows; axis < shape.rank(); ++axis) {
    sizes.push_back(shape[axis]);
    count = count * shape[axis];
  }
  std::vector<Dim> units{count}, repeated{count};
  units.insert(units.end(), sizes.begin(), sizes.end());
  repeated.insert(repeated.end(), shape.begin(), shape.end());
  Tensor weights = core_ops.reshape(In(core_ops.identity(count, target.dtype())), units);
  if (rows > 0) weights = core_ops.broadcast_to(In(weights), Shape(repeated));
  FlatLoop walks;
  walks.name = what;
  walks.where = where;
  walks.turns = count;
  walks.sequences = {weights};
  walks.at_once = true;
  walks.body = [&](std::span<const Tensor>, std::span<const Tensor> elements, const Tensor&) {
    Tensor d = walk(elements[0]);
    return *connected ? FlatTurn{{}, {d}} : FlatTurn{};
  };
  std::vector<Tensor> found = run_flat_loop(walks).stacked;
  if (!*connected) return zeros(whole, dtype);
  return core_ops.reshape(In(moved_axis(found[0], 0, rows)), std::vector<Dim>(whole.begin(), whole.end()));
}

}  // namespace

Tensor GradientTape::jacobian(const Tensor& target, const Source& source, const GradientOptions& options, Where where) {
  check_targets(target, "jacobian", where);
  const bool zeros = zeros_where_unconnected(options.unconnected, where);
  const TapeSource named = tape_source(source, where);
  begin(*state_, "jacobian", where);
  Frame frame("jacobian", where);
  PausedTape paused(*state_);
  bool connected = false;
  Tensor out =
      jacobian_of(*state_, target, named, shape_of(source), type_of_source(source), 0, &connected, "jacobian", where);
  return connected || zeros ? out : Tensor::no_gradient();
}

Tensor GradientTape::batch_jacobian(const Tensor& target, const Source& source, const GradientOptions& options,
                                    Where where) {
  check_targets(target, "batch_jacobian", where);
  const bool zeros = zeros_where_unconnected(options.unconnected, where);
  const TapeSource named = tape_source(source, where);
  const Shape shape = shape_of(source);
  bool fits = target.rank() > 0 && shape.rank() > 0;
  if (fits) try {
      fits = require(target.dim(0), Relation::equal, shape[0], {"batch_jacobian", "the batch", where});
    } catch (const Problem&) {
      fits = false;
    }
  if (!fits)
    throw UserError(error_text(text("batch_jacobian: the target ", type_text(target), " and the source ",
                                    type_of_source(source), shape, " have no first axis in common"),
                               where, "both are batches: of [b, m] and [b, n] the result is [b, m, n]"));
  begin(*state_, "batch_jacobian", where);
  Frame frame("batch_jacobian", where);
  PausedTape paused(*state_);
  bool connected = false;
  Tensor out =
      jacobian_of(*state_, target, named, shape, type_of_source(source), 1, &connected, "batch_jacobian", where);
  return connected || zeros ? out : Tensor::no_gradient();
}

}  // namespace stet
