#include "stet/core/differentiate.h"

#include <algorithm>

#include "stet/base/dim_inside.h"
#include "stet/base/inside.h"
#include "stet/base/text.h"
#include "stet/core/batch.h"
#include "stet/core/call.h"
#include "stet/core/flat_loop.h"
#include "stet/core/gradient.h"
#include "stet/core/tape_state.h"
#include "stet/core/trace.h"

namespace stet::inside {

Leaves without_gradient(Leaves leaves) {
  for (Leaf& leaf : leaves)
    if (leaf.kind == Leaf::tensor && leaf.value.defined() && is_floating(leaf.value.dtype()))
      leaf.value = detached(leaf.value);
  return leaves;
}

void check_number(int number, std::size_t count, const char* what, Where where) {
  if (number < 0 || static_cast<std::size_t>(number) >= count)
    throw UserError(error_text(text(what, ": there is no argument ", number, ", the function has ", count), where,
                               "arguments are counted from 0"));
}

bool is_forward(const std::string& mode, const char* what, Where where) {
  if (mode == "forward") return true;
  if (mode == "reverse") return false;
  throw UserError(error_text(text(what, ": the mode is \"", mode, "\""), where, "it is \"reverse\" or \"forward\""));
}

namespace {

bool is_source(const Leaf& leaf) { return leaf.kind == Leaf::tensor || leaf.kind == Leaf::variable; }
bool is_floating_source(const Leaf& leaf) {
  if (leaf.kind == Leaf::variable) return leaf.state.defined() && is_floating(leaf.state.dtype());
  return leaf.kind == Leaf::tensor && leaf.value.defined() && is_floating(leaf.value.dtype());
}
bool floats(const Tensor& tensor) { return tensor.defined() && is_floating(tensor.dtype()); }

Shape shape_of(const Source& source) {
  return source.variable.defined() ? source.variable.shape() : source.tensor.shape();
}
DType type_of(const Source& source) {
  return source.variable.defined() ? source.variable.dtype() : source.tensor.dtype();
}
bool is_differentiable(const Source& source) {
  return source.variable.defined() ? is_floating(source.variable.dtype()) : floats(source.tensor);
}
/// UserError unless `given` has the type and shape of what it belongs to.
void check_type(const Tensor& given, DType dtype, const Shape& shape, const std::string& what, Where where) {
  bool fits = given.dtype() == dtype && given.rank() == shape.rank();
  for (int axis = 0; fits && axis < shape.rank(); ++axis) try {
      fits = require(given.dim(axis), Relation::equal, shape[axis], {"vjp", "size of a gradient", where});
    } catch (const Problem&) {
      fits = false;
    }
  if (!fits)
    throw UserError(error_text(text(what, " is ", type_text(given), ", not ", dtype, shape), where,
                               "it has the dtype and the shape of what it belongs to"));
}

void check_count(std::size_t given, std::size_t needed, const char* what, const char* things, Where where) {
  if (given != needed)
    throw UserError(
        error_text(text(what, ": ", given, " ", things, " for ", needed, needed == 1 ? " tensor" : " tensors"), where,
                   "give one for each, undefined for 0"));
}

}  // namespace

Linearized::Linearized(const char* what, const ArgumentLeaves& arguments, const std::vector<int>& chosen,
                       const HostBody& f, bool once, Where where)
    : what_(what),
      tape_(std::make_shared<GradientTape>(GradientTapeOptions{.persistent = !once, .watch_variables = false})) {
  Leaves given = arguments.leaves;
  for (int number : chosen) {
    bool any = false;
    for (std::size_t i = 0; i < given.size(); ++i) {
      Leaf& leaf = given[i];
      if (arguments.owners[i] != number || !is_source(leaf)) continue;
      places_.push_back(text("argument ", number, leaf.path));
      if (is_floating_source(leaf)) {
        any = true;
        // A tensor of its own: the same one may be another argument as well, or be used by the function.
        if (leaf.kind == Leaf::tensor) leaf.value = same_value(leaf.value);
        leaf.kind == Leaf::tensor ? tape_->watch(leaf.value, where) : tape_->watch(leaf.state, where);
      }
      leaf.kind == Leaf::tensor ? sources_.emplace_back(leaf.value) : sources_.emplace_back(leaf.state);
    }
    if (!any)
      throw UserError(error_text(text(what, ": there is no floating tensor in argument ", number), where,
                                 "only floating tensors have gradients; choose another argument, or cast it first"));
  }
  try {
    value_ = f(given);
  } catch (...) {
    close_tape(*tape_);
    throw;
  }
  close_tape(*tape_);
}

std::vector<Tensor> Linearized::tensors() const {
  std::vector<Tensor> out;
  for (const Source& source : sources_of(value_)) out.push_back(source.tensor);
  return out;
}

namespace {
std::vector<TapeSource> named(const std::vector<Source>& sources) {
  std::vector<TapeSource> out;
  for (const Source& source : sources)
    out.push_back(is_differentiable(source) ? tape_source(source, {}) : TapeSource{});
  return out;
}
}  // namespace

std::vector<Tensor> Linearized::pulled(const std::vector<Tensor>& ds, Where where) const {
  std::vector<Tensor> values = tensors();
  check_count(ds.size(), values.size(), what_, "gradients", where);
  Frame frame(what_, where);
  Accumulator gradients;
  GradientTape::State& tape = tape_->state();
  PausedTape paused(tape);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!ds[i].defined() || !floats(values[i])) continue;
    check_type(ds[i], values[i].dtype(), values[i].shape(), text(what_, ": the gradient of result ", i), where);
    if (tape.tracks(values[i])) gradients.add(identity_of(*values[i].node()), ds[i]);
  }
  std::vector<Tensor> out = walk_back(tape, named(sources_), gradients, !tape.persistent && !trace_in_progress());
  for (std::size_t i = 0; i < out.size(); ++i)
    if (!is_differentiable(sources_[i]))
      out[i] = Tensor::no_gradient();
    else if (!out[i].defined())
      out[i] = zeros(shape_of(sources_[i]), type_of(sources_[i]));
  return out;
}

std::vector<Tensor> Linearized::pushed(const std::vector<Tensor>& tangents, Where where) const {
  check_count(tangents.size(), sources_.size(), what_, "tangents", where);
  Frame frame(what_, where);
  std::vector<Tensor> moving;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    moving.push_back(is_differentiable(sources_[i]) ? tangents[i] : Tensor());
    if (moving[i].defined())
      check_type(moving[i], type_of(sources_[i]), shape_of(sources_[i]), text(what_, ": the tangent of ", places_[i]),
                 where);
  }
  std::vector<Tensor> values = tensors(), asked;
  for (const Tensor& value : values)
    if (floats(value)) asked.push_back(value);
  std::vector<Tensor> found = tangents_of(tape_->state(), asked, named(sources_), moving), out;
  std::size_t next = 0;
  for (const Tensor& value : values) {
    out.emplace_back();
    if (!floats(value)) continue;
    out.back() = found[next].defined() ? found[next] : zeros_like(value);
    ++next;
  }
  return out;
}

std::vector<Tensor> Linearized::gradients_of_scalar(Where where) const {
  const bool begins = !value_.empty() && value_[0].kind == Leaf::tensor && value_[0].value.defined();
  if (!begins || value_[0].value.rank() != 0 || !floats(value_[0].value))
    throw UserError(error_text(
        text(what_, ": the function gives ", begins ? type_text(value_[0].value) : std::string("no tensor first"),
             ", not a floating tensor without axes"),
        where, "sum or mean it; for derivatives of every element use jacobian or vjp"));
  std::vector<Tensor> ds(tensors().size());
  ds[0] = ones_like(value_[0].value);
  return pulled(ds, where);
}

namespace {

/// Columns: how the value changes along every element of a source, for all of them at once.
Tensor forward_jacobian(const Linearized& function, const std::vector<Source>& sources, std::size_t which,
                        const Tensor& value, const char* what, Where where) {
  const Shape from = shape_of(sources[which]), to = value.shape();
  std::vector<Dim> sizes(to.begin(), to.end());
  sizes.insert(sizes.end(), from.begin(), from.end());
  if (sizes.size() > static_cast<std::size_t>(max_rank))
    throw UserError(error_text(text(what, ": the result would have ", sizes.size(), " axes"), where,
                               text("a tensor has at most ", max_rank, "; reshape the argument or the result first")));
  auto moved_along = [&](const Tensor& tangent) {
    std::vector<Tensor> tangents(sources.size());
    tangents[which] = tangent;
    return function.pushed(tangents, where)[0];
  };
  if (from.rank() == 0) return moved_along(ones(from, type_of(sources[which])));
  Dim count = from.element_count();
  std::vector<Dim> units{count};
  units.insert(units.end(), from.begin(), from.end());
  FlatLoop ways;
  ways.name = what;
  ways.where = where;
  ways.turns = count;
  ways.sequences = {core_ops.reshape(In(core_ops.identity(count, type_of(sources[which]))), units)};
  ways.at_once = true;
  ways.body = [&](std::span<const Tensor>, std::span<const Tensor> elements, const Tensor&) {
    return FlatTurn{{}, {moved_along(elements[0])}};
  };
  Tensor columns = run_flat_loop(ways).stacked[0];
  return core_ops.reshape(In(moved_axis(columns, 0, to.rank())), sizes);
}

}  // namespace

std::vector<Tensor> Linearized::jacobians(bool batched, bool forward, Where where) const {
  std::vector<Tensor> values = tensors(), out;
  if (values.size() != 1 || !floats(values[0]))
    throw UserError(error_text(
        text(what_, ": the function gives ",
             values.size() == 1 ? type_text(values[0]) : text(values.size(), " tensors"), ", not one floating tensor"),
        where, "differentiate a function that gives one of them"));
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (!is_differentiable(sources_[i]))
      out.push_back(Tensor::no_gradient());
    else if (forward)
      out.push_back(forward_jacobian(*this, sources_, i, values[0], what_, where));
    else if (batched)
      out.push_back(tape_->batch_jacobian(values[0], sources_[i], {.unconnected = "zero"}, where));
    else
      out.push_back(tape_->jacobian(values[0], sources_[i], {.unconnected = "zero"}, where));
  }
  return out;
}

namespace {

/// The gradient by the chosen arguments, as a function of all of them.
HostBody gradient_body(const char* what, std::vector<int> owners, std::vector<int> chosen, HostBody f, Where where) {
  return [=](const Leaves& leaves) {
    Linearized inner(what, {leaves, owners}, chosen, f, true, where);
    Leaves out;
    for (const Tensor& gradient : inner.gradients_of_scalar(where)) structure::Of<Tensor>::write(gradient, out);
    return out;
  };
}

}  // namespace

std::vector<Tensor> second_derivatives(const char* what, const ArgumentLeaves& arguments,
                                       const std::vector<int>& chosen, const HostBody& f, bool forward, Where where) {
  Linearized gradient(what, arguments, chosen, gradient_body(what, arguments.owners, chosen, f, where), false, where);
  return gradient.jacobians(false, forward, where);
}

std::vector<Tensor> hessian_products(const char* what, const ArgumentLeaves& arguments, const HostBody& f,
                                     const std::vector<Tensor>& tangents, Where where) {
  std::vector<int> all;
  for (int number = 0; number <= (arguments.owners.empty() ? -1 : arguments.owners.back()); ++number)
    all.push_back(number);
  Linearized gradient(what, arguments, all, gradient_body(what, arguments.owners, all, f, where), false, where);
  return gradient.pushed(tangents, where);
}

}  // namespace stet::inside
