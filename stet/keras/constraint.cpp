#include "stet/keras/constraint.h"

#include <string_view>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/call.h"
#include "stet/keras/config.h"
#include "stet/keras/constrained.h"
#include "stet/keras/layer_state.h"

namespace stet::keras {
namespace {

struct NamedConstraint {
  std::string_view name, class_name;
  Constraint (*make)();
};
constexpr NamedConstraint named_constraints[] = {
    {"max_norm", "MaxNorm", [] { return Constraint(constraints::MaxNorm()); }},
    {"min_max_norm", "MinMaxNorm", [] { return Constraint(constraints::MinMaxNorm()); }},
    {"non_neg", "NonNeg", [] { return Constraint(constraints::NonNeg()); }},
    {"unit_norm", "UnitNorm", [] { return Constraint(constraints::UnitNorm()); }},
};

/// By the ids of Variables. Never destroyed: layers may be, later.
struct Constrained {
  Lock guard;
  std::map<std::uint64_t, Constraint> of;
};
Constrained& constrained() {
  static auto* const all = new Constrained;
  return *all;
}

}  // namespace

Constraint::Constraint(const char* name, Where where) {
  std::string known;
  for (const NamedConstraint& one : named_constraints) {
    if (one.name == name || one.class_name == name) {
      *this = one.make();
      return;
    }
    known += text(known.empty() ? "" : ", ", one.name);
  }
  throw UserError(
      error_text(text("there is no constraint '", name, "'"), where, text("one of ", known, "; or a function")));
}

Tensor Constraint::operator()(const Tensor& weight, Where where) const {
  if (!rule_) throw UserError(error_text("the constraint is undefined", where, "give it a name or a callable"));
  Tensor allowed = rule_(weight);
  if (!allowed.defined() || allowed.dtype() != weight.dtype() || allowed.rank() != weight.rank())
    throw UserError(error_text(
        text("the constraint gave ", allowed.defined() ? described(allowed) : std::string("an undefined tensor"),
             " for a weight of ", described(weight)),
        where, "give a tensor of the weight's type and shape"));
  return allowed;
}

Constraint constraint_of(const Variable& variable) {
  std::lock_guard lock(constrained().guard);
  auto found = constrained().of.find(variable.id());
  return found == constrained().of.end() ? Constraint() : found->second;
}

ConstrainedWeight::ConstrainedWeight(const Variable& variable, Constraint constraint) : id_(variable.id()) {
  std::lock_guard lock(constrained().guard);
  constrained().of[id_] = std::move(constraint);
}
ConstrainedWeight::~ConstrainedWeight() {
  if (id_ == 0) return;
  std::lock_guard lock(constrained().guard);
  constrained().of.erase(id_);
}

namespace constraints {
namespace {

constexpr double epsilon = 1e-7;  // Keras's own, so that norms of 0 stay

Tensor norms(const Tensor& weight, const Axes& axes) { return sqrt(sum(square(weight), axes, {.keepdims = true})); }

// --- recipes

/// "axis": a number, or a list.
void axis_field(Fields& f, Axes& axis) {
  WindowSizes sizes = axis.axes.size() == 1 ? WindowSizes(axis.axes[0]) : WindowSizes(axis.axes);
  f("axis", sizes);
  if (sizes.given()) axis = Axes(sizes.numbers());
}

struct MaxNormRecipe {
  static constexpr const char *module = "keras.constraints", *class_name = "MaxNorm";
  double max_value = 2;
  MaxNormOptions options = {};
  void fields(Fields& f) {
    f("max_value", max_value);
    axis_field(f, options.axis);
  }
  Constraint make(Where where) const { return MaxNorm(max_value, options, where); }
};
struct NonNegRecipe {
  static constexpr const char *module = "keras.constraints", *class_name = "NonNeg";
  void fields(Fields&) {}
  Constraint make(Where) const { return NonNeg(); }
};
struct UnitNormRecipe {
  static constexpr const char *module = "keras.constraints", *class_name = "UnitNorm";
  UnitNormOptions options = {};
  void fields(Fields& f) { axis_field(f, options.axis); }
  Constraint make(Where where) const { return UnitNorm(options, where); }
};
struct MinMaxNormRecipe {
  static constexpr const char *module = "keras.constraints", *class_name = "MinMaxNorm";
  MinMaxNormOptions options = {};
  void fields(Fields& f) {
    f("min_value", options.min_value);
    f("max_value", options.max_value);
    f("rate", options.rate);
    axis_field(f, options.axis);
  }
  Constraint make(Where where) const { return MinMaxNorm(options, where); }
};
const SavableAll<MaxNormRecipe, NonNegRecipe, UnitNormRecipe, MinMaxNormRecipe> savable_constraints;

}  // namespace

MaxNorm::MaxNorm(double max_value, MaxNormOptions options, Where where)
    : Constraint([=](const Tensor& weight) {
        Frame frame("MaxNorm", where);
        Tensor norm = norms(weight, options.axis);
        return weight * (minimum(norm, max_value) / (epsilon + norm));
      }) {
  if (!(max_value >= 0))
    throw UserError(error_text(text("MaxNorm: max_value = ", max_value), where, "a norm is 0 or more"));
  note_recipe(*this, MaxNormRecipe{max_value, options});
}

NonNeg::NonNeg() : Constraint([](const Tensor& weight) { return maximum(weight, 0); }) {
  note_recipe(*this, NonNegRecipe{});
}

UnitNorm::UnitNorm(UnitNormOptions options, Where where)
    : Constraint([=](const Tensor& weight) {
        Frame frame("UnitNorm", where);
        return weight / (epsilon + norms(weight, options.axis));
      }) {
  note_recipe(*this, UnitNormRecipe{options});
}

MinMaxNorm::MinMaxNorm(MinMaxNormOptions options, Where where)
    : Constraint([=](const Tensor& weight) {
        Frame frame("MinMaxNorm", where);
        Tensor norm = norms(weight, options.axis);
        Tensor wanted = options.rate * clip(norm, options.min_value, options.max_value) + (1 - options.rate) * norm;
        return weight * (wanted / (epsilon + norm));
      }) {
  if (!(options.min_value >= 0 && options.min_value <= options.max_value))
    throw UserError(error_text(text("MinMaxNorm: norms from ", options.min_value, " to ", options.max_value), where,
                               "0 <= min_value <= max_value"));
  if (!(options.rate >= 0 && options.rate <= 1))
    throw UserError(error_text(text("MinMaxNorm: rate = ", options.rate), where, "it is between 0 and 1"));
  note_recipe(*this, MinMaxNormRecipe{options});
}

}  // namespace constraints
}  // namespace stet::keras
