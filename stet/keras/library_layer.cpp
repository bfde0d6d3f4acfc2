#include "stet/keras/library_layer.h"

#include <algorithm>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/call.h"
#include "stet/core/size_words.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/output_kind.h"
#include "stet/ops/ops.h"

namespace stet::keras {

LibraryLayer::LibraryLayer(const char* class_name, std::string name, Takes takes, DTypePolicy policy, Finish finish)
    : CustomLayer(std::move(name)), takes_(takes), policy_(policy), finish_(std::move(finish)), shown_(class_name) {
  state().shown_class = class_name;
}

bool LibraryLayer::fits(const std::vector<int>& ranks) const {
  if (takes_.inputs > 0 && static_cast<int>(ranks.size()) < takes_.inputs) return false;
  const auto checked = std::min(ranks.size(), static_cast<std::size_t>(takes_.checked));
  return std::all_of(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(checked),
                     [&](int rank) { return rank >= takes_.least && rank <= takes_.most; });
}

Tensors LibraryLayer::taken(const Tensors& inputs, Where where) {
  const auto count = static_cast<int>(inputs.size());
  if (takes_.inputs == 1 && count != 1)
    refuse(text(" takes one tensor and was given ", count),
           "give it one; layers that merge are called on a list: Add()({a, b})", where);
  if (takes_.inputs > 1 && count < takes_.inputs)
    refuse(text(" takes at least ", takes_.inputs, " tensors and was given ", count),
           "give them as a list: layer({a, b})", where);
  Tensors given;
  for (const Tensor& input : inputs) {
    given.push_back(input);
    if (!input.defined()) continue;
    const bool checked = static_cast<int>(given.size()) <= takes_.checked;
    if (checked && (input.rank() < takes_.least || input.rank() > takes_.most))
      refuse(text(": its input ", described(input), " has ", input.rank(), input.rank() == 1 ? " axis" : " axes",
                  input.rank() == 1 && takes_.least == 2 ? ": it has no batch axis" : ""),
             text("it takes ", takes_.layout,
                  input.rank() + 1 == takes_.least ? "; one sample is a batch of size 1: expand_dims(x, 0)" : "",
                  input.rank() + 1 == takes_.least && *takes_.advice ? text("; ", takes_.advice) : ""),
             where);
    if (takes_.cast && is_floating(input.dtype()) && input.dtype() != compute_dtype())
      given.back() = cast(In(input, where), compute_dtype());
  }
  return given;
}

void note_probabilities(const ActivationFunction& activation, const Tensor& result, const CustomLayer& layer) {
  if (activation.is(softmax)) OutputKinds::note(result, OutputKinds::Kind::probabilities, layer, "softmax");
  if (activation.is(sigmoid)) OutputKinds::note(result, OutputKinds::Kind::probabilities, layer, "sigmoid");
}

void LibraryLayer::refuse_nothing(const Tensors& inputs, const Tensors& results, Where where) {
  auto is_empty = [](const Tensor& t) {
    for (int axis = 1; t.defined() && axis < t.rank(); ++axis)
      if (is_always(t.dim(axis), 0)) return true;
    return false;
  };
  if (std::none_of(results.begin(), results.end(), is_empty) || std::any_of(inputs.begin(), inputs.end(), is_empty))
    return;
  refuse(text(": of its input ", described(inputs[0]), " nothing is left: ", described(results[0])),
         "give it larger samples, or let it have a smaller window or stride, or .padding = \"same\"", where);
}

Tensors LibraryLayer::call_many(const Tensors& inputs, const Context& context) {
  const Where where = context.where;
  const Tensors given = taken(inputs, where);
  Tensors results;
  {
    Frame frame(shown_, where);
    results = run_many(given, context);
  }
  if (finish_.activation.defined()) results[0] = finish_.activation(results[0], where);
  note_probabilities(finish_.activation, results[0], *this);
  refuse_nothing(given, results, where);
  if (!finish_.activity_regularizer.defined()) return results;
  for (const Tensor& y : results) {
    if (!y.defined()) continue;
    Tensor penalty = finish_.activity_regularizer(y, where);
    Frame frame(shown_, where);
    if (y.rank() > 0) penalty = penalty / maximum(cast(y.dim(0), penalty.dtype()), 1);  // no samples, no penalty
    add_loss(penalty, where);
  }
  return results;
}

void LibraryLayer::build_many(const std::vector<Shape>& inputs) {
  std::vector<int> ranks;
  for (const Shape& shape : inputs) ranks.push_back(shape.rank());
  if (!fits(ranks)) return;  // the call says what is wrong
  make_weights_for(inputs);
  made_ = true;
}

void LibraryLayer::refuse(const std::string& what, const std::string& fix, Where where) {
  if (!made_) state().built.store(false, std::memory_order_release);
  throw UserError(error_text(description() + what, where, fix));
}

Tensor LibraryLayer::run(const Tensor&, const Context&) { throw InternalError(text(shown_, " has no run()")); }
Tensors LibraryLayer::run_many(const Tensors& inputs, const Context& context) { return {run(inputs[0], context)}; }
void LibraryLayer::make_weights(const Shape&) {}
void LibraryLayer::make_weights_for(const std::vector<Shape>& inputs) { make_weights(inputs[0]); }

Variable LibraryLayer::weight(std::string_view name, const Shape& shape, const WeightRule& rule) {
  return add_weight(name, shape,
                    {.initializer = rule.initializer.defined() ? rule.initializer : Initializer(rule.otherwise),
                     .trainable = rule.trainable,
                     .dtype = variable_dtype(),
                     .regularizer = rule.regularizer,
                     .constraint = rule.constraint});
}

void LibraryLayer::draws_from(const Variable& generator) {
  std::lock_guard lock(state().guard);
  state().generator = generator;
}

Tensor LibraryLayer::in_compute_type(const Variable& weight) const {
  Tensor value = weight.read();
  return value.dtype() == compute_dtype() ? value : cast(value, compute_dtype());
}

void LibraryLayer::require_size(const Tensor& x, int axis, const Dim& size, const char* what, Where where) const {
  if (inside::require(x.dim(axis), Relation::equal, size, {shown_, text(what, " of '", name(), "'"), where})) return;
  throw UserError(error_text(text(description(), ": its input ", described(x), " has ", size_now(x.dim(axis)), " ",
                                  what, "; it was built for ", size),
                             where, text("give it as many as in its first call")));
}

namespace {

class PlainLayerBody : public LibraryLayer {
 public:
  explicit PlainLayerBody(PlainLayer what)
      : LibraryLayer(what.class_name, what.name, what.takes, what.policy), what_(std::move(what)) {
    draws_from(what_.generator);
  }
  bool supports_masking() const override { return what_.supports_masking; }
  Tensors compute_mask(const Tensors& inputs, const Tensors& masks) override {
    return what_.compute_mask ? what_.compute_mask(inputs, masks) : LibraryLayer::compute_mask(inputs, masks);
  }

 protected:
  Tensors run_many(const Tensors& inputs, const Context& context) override {
    return {what_.call ? what_.call(inputs[0], context) : what_.call_many(inputs, context)};
  }

 private:
  const PlainLayer what_;
};

}  // namespace

Layer plain_layer(PlainLayer what) { return Layer(std::make_shared<PlainLayerBody>(std::move(what))); }

}  // namespace stet::keras
