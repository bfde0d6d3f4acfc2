#include "stet/keras/library_layer.h"

#include <algorithm>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/call.h"
#include "stet/core/size_words.h"
#include "stet/keras/layer_state.h"
#include "stet/ops/ops.h"

namespace stet::keras {

LibraryLayer::LibraryLayer(const char* class_name, std::string name, Takes takes, DTypePolicy policy)
    : CustomLayer(std::move(name)), takes_(takes), policy_(policy), shown_(class_name) {
  state().shown_class = class_name;
}

bool LibraryLayer::fits(const std::vector<int>& ranks) const {
  if (takes_.inputs > 0 && static_cast<int>(ranks.size()) < takes_.inputs) return false;
  return std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return rank >= takes_.least && rank <= takes_.most; });
}

Tensors LibraryLayer::call_many(const Tensors& inputs, const Context& context) {
  const auto count = static_cast<int>(inputs.size());
  if (takes_.inputs == 1 && count != 1)
    refuse(text(description(), " takes one tensor and was given ", count), context.where,
           "give it one; layers that merge are called on a list: Add()({a, b})");
  if (takes_.inputs > 1 && count < takes_.inputs)
    refuse(text(description(), " takes at least ", takes_.inputs, " tensors and was given ", count), context.where,
           "give them as a list: layer({a, b})");
  Tensors given;
  for (const Tensor& input : inputs) {
    given.push_back(input);
    if (!input.defined()) continue;
    if (input.rank() < takes_.least || input.rank() > takes_.most)
      refuse(text(description(), ": its input ", described(input), " has ", input.rank(),
                  input.rank() == 1 ? " axis" : " axes"),
             context.where,
             text("it takes ", takes_.layout,
                  input.rank() + 1 == takes_.least ? "; one sample is a batch of size 1: expand_dims(x, 0)" : ""));
    if (is_floating(input.dtype()) && input.dtype() != compute_dtype())
      given.back() = cast(In(input, context.where), compute_dtype());
  }
  Frame frame(shown_, context.where);
  return run_many(given, context);
}

void LibraryLayer::build_many(const std::vector<Shape>& inputs) {
  std::vector<int> ranks;
  for (const Shape& shape : inputs) ranks.push_back(shape.rank());
  if (!fits(ranks)) return;  // the call says what is wrong
  make_weights_for(inputs);
  has_weights_ = true;
}

void LibraryLayer::refuse(const std::string& what, Where where, const std::string& advice) {
  if (!has_weights_) state().built.store(false);  // by a call that fits
  throw UserError(error_text(what, where, advice));
}

Tensor LibraryLayer::run(const Tensor&, const Context&) { throw InternalError(text(shown_, " has no run()")); }
Tensors LibraryLayer::run_many(const Tensors& inputs, const Context& context) { return {run(inputs[0], context)}; }
void LibraryLayer::make_weights(const Shape&) {}
void LibraryLayer::make_weights_for(const std::vector<Shape>& inputs) { make_weights(inputs[0]); }

Variable LibraryLayer::weight(std::string_view name, const Shape& shape, const Initializer& given,
                              const char* otherwise, bool trainable) {
  return add_weight(name, shape,
                    {.initializer = given.defined() ? given : Initializer(otherwise),
                     .trainable = trainable,
                     .dtype = variable_dtype()});
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
      : LibraryLayer(what.class_name, what.name, what.takes, what.policy), what_(std::move(what)) {}
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
