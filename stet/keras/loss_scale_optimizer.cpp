// LossScaleOptimizer, and optimizers by name.
#include <string_view>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/call.h"
#include "stet/core/scope.h"
#include "stet/keras/optimizer_state.h"
#include "stet/keras/optimizers.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

class LossScaleBody : public LibraryOptimizer {
 public:
  LossScaleBody(Optimizer inner, LossScaleOptimizerOptions options)
      : LibraryOptimizer("LossScaleOptimizer", 0, {.name = options.name.empty() ? "lossscaleoptimizer" : options.name}),
        inner_(std::move(inner)),
        options_(std::move(options)) {}

  void update_step(const Tensor&, const Variable&, const Tensor&) override {}  // apply() leaves it to the inner one
  const Optimizer* wrapped() const override { return &inner_; }
  Tensor scale_loss(const Tensor& loss, Where where) const override {
    return multiply(In(loss, where), cast(In(scale(), where), loss.dtype()));
  }

  void apply(const std::vector<Tensor>& gradients, const std::vector<Variable>& variables, Where where) override {
    Variable count = this->count();
    Tensor finite;
    std::vector<Tensor> unscaled;
    {
      Frame frame("apply_gradients", where);
      finite = all(isfinite(gradients.front()));
      for (std::size_t i = 1; i < gradients.size(); ++i) finite = finite & all(isfinite(gradients[i]));
      for (const Tensor& g : gradients) unscaled.push_back(g / cast(scale(), g.dtype()));
    }
    cond(
        finite,
        [&] {
          inner_.apply_gradients(unscaled, variables, where);
          Frame frame("apply_gradients", where);
          Tensor grows = count == options_.dynamic_growth_steps - 1;
          scale().assign(stet::where(grows, scale() * 2, scale()));
          count.assign(stet::where(grows, 0, count + 1));
        },
        [&] {
          Frame frame("apply_gradients", where);
          scale().assign(scale() * 0.5);
          count.assign(zeros({}, i64));
        },
        where);
  }

  std::vector<Variable> slots_in_keras_order(const std::vector<Variable>&) const override { return {count(), scale()}; }

 private:
  Variable count() const { return slot("step_counter", 0, i64); }
  Variable scale() const { return slot("dynamic_scale", options_.initial_scale, f32); }

  const Optimizer inner_;
  const LossScaleOptimizerOptions options_;
};

struct LossScaleRecipe {
  static constexpr const char *module = "keras.optimizers", *class_name = "LossScaleOptimizer";
  Optimizer inner = {};
  LossScaleOptimizerOptions options = {};
  void fields(Fields& f) {
    constexpr const char* name = "inner_optimizer";
    f("name", options.name);
    f.required(name);
    if (f.reading()) {
      f.place().path.emplace_back(name);
      inner = from_config<Optimizer>(*f.take(name), "optimizer", f.place());
      f.place().path.pop_back();
    } else {
      f.put(name, to_config(inner.optimizer_body(name, f.where()).recipe(), text("its ", name), f.place()));
    }
    f("initial_scale", options.initial_scale);
    f("dynamic_growth_steps", options.dynamic_growth_steps);
  }
  Optimizer make(Where where) const { return LossScaleOptimizer(inner, options, where); }
};
const Savable<LossScaleRecipe> savable_loss_scale;

struct NamedOptimizer {
  std::string_view name;
  Optimizer (*make)();
};
template <class T>
Optimizer made() {
  return T();
}
constexpr NamedOptimizer named_optimizers[] = {
    {"adadelta", made<Adadelta>},
    {"adafactor", made<Adafactor>},
    {"adagrad", made<Adagrad>},
    {"adam", made<Adam>},
    {"adamax", made<Adamax>},
    {"adamw", made<AdamW>},
    {"ftrl", made<Ftrl>},
    {"lamb", made<Lamb>},
    {"lion", made<Lion>},
    {"muon", made<Muon>},
    {"nadam", made<Nadam>},
    {"rmsprop", made<RMSprop>},
    {"schedulefreeadamw", made<ScheduleFreeAdamW>},
    {"sgd", made<SGD>},
};

}  // namespace

LossScaleOptimizer::LossScaleOptimizer(Optimizer inner_optimizer, LossScaleOptimizerOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<LossScaleBody>(inner_optimizer, options)}) {
  CustomOptimizer& inner = inner_optimizer.optimizer_body("LossScaleOptimizer", where);
  if (inner.state().options.loss_scale_factor)
    throw UserError(error_text(text("LossScaleOptimizer: ", inner.description(), " has a loss_scale_factor of its own"),
                               where, "leave it out: the scale is found"));
  check_option(options.initial_scale > 0, "LossScaleOptimizer", "initial_scale", options.initial_scale,
               "it is more than 0", where);
  check_option(options.dynamic_growth_steps >= 1, "LossScaleOptimizer", "dynamic_growth_steps",
               static_cast<double>(options.dynamic_growth_steps), "it is 1 or more", where);
  options.name = name();
  note_recipe(*this, LossScaleRecipe{inner_optimizer, options});
}

Optimizer::Optimizer(const char* name, Where where) {
  const std::string wanted = lower_case(name);
  std::string known;
  for (const NamedOptimizer& one : named_optimizers) {
    if (one.name == wanted) {
      *this = one.make();
      return;
    }
    known += text(known.empty() ? "" : ", ", one.name);
  }
  throw UserError(
      error_text(text("there is no optimizer '", name, "'"), where, text("one of ", known, "; or an object")));
}

}  // namespace stet::keras
