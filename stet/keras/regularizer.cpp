#include "stet/keras/regularizer.h"

#include <cmath>
#include <string_view>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/call.h"
#include "stet/core/dim_host.h"
#include "stet/keras/config.h"
#include "stet/keras/layer_state.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

struct NamedRegularizer {
  std::string_view name, class_name;
  Regularizer (*make)();
};
constexpr NamedRegularizer named_regularizers[] = {
    {"l1", "L1", [] { return Regularizer(regularizers::L1()); }},
    {"l1l2", "L1L2", [] { return Regularizer(regularizers::L1L2()); }},
    {"l2", "L2", [] { return Regularizer(regularizers::L2()); }},
    {"orthogonal_regularizer", "OrthogonalRegularizer",
     [] { return Regularizer(regularizers::OrthogonalRegularizer()); }},
};

}  // namespace

Regularizer::Regularizer(const char* name, Where where) {
  std::string known;
  for (const NamedRegularizer& one : named_regularizers) {
    if (one.name == name || one.class_name == name) {
      *this = one.make();
      return;
    }
    known += text(known.empty() ? "" : ", ", one.name);
  }
  throw UserError(
      error_text(text("there is no regularizer '", name, "'"), where, text("one of ", known, "; or a function")));
}

Tensor Regularizer::operator()(const Tensor& x, Where where) const {
  if (!rule_) throw UserError(error_text("the regularizer is undefined", where, "give it a name or a callable"));
  Tensor penalty = rule_(x);
  if (!penalty.defined() || penalty.rank() != 0)
    throw UserError(error_text(
        text("the regularizer gave ", penalty.defined() ? described(penalty) : std::string("an undefined tensor"),
             " for ", described(x)),
        where, "a penalty is one number: take the sum"));
  return penalty;
}

namespace regularizers {
namespace {

double checked(double factor, const char* regularizer, const char* option, Where where) {
  if (!(factor >= 0) || std::isinf(factor))
    throw UserError(error_text(text(regularizer, ": ", option, " = ", factor), where, "it is 0 or more, and finite"));
  return factor;
}

// --- recipes

struct L1Recipe {
  static constexpr const char *module = "keras.regularizers", *class_name = "L1";
  double l1 = 0.01;
  void fields(Fields& f) { f("l1", l1); }
  Regularizer make(Where where) const { return L1(l1, where); }
};
struct L2Recipe {
  static constexpr const char *module = "keras.regularizers", *class_name = "L2";
  double l2 = 0.01;
  void fields(Fields& f) { f("l2", l2); }
  Regularizer make(Where where) const { return L2(l2, where); }
};
struct L1L2Recipe {
  static constexpr const char *module = "keras.regularizers", *class_name = "L1L2";
  L1L2Options options = {};
  void fields(Fields& f) {
    f("l1", options.l1);
    f("l2", options.l2);
  }
  Regularizer make(Where where) const { return L1L2(options, where); }
};
struct OrthogonalRecipe {
  static constexpr const char *module = "keras.regularizers", *class_name = "OrthogonalRegularizer";
  double factor = 0.01;
  OrthogonalRegularizerOptions options = {};
  void fields(Fields& f) {
    f("factor", factor);
    f("mode", options.mode);
  }
  Regularizer make(Where where) const { return OrthogonalRegularizer(factor, options, where); }
};
const SavableAll<L1Recipe, L2Recipe, L1L2Recipe, OrthogonalRecipe> savable_regularizers;

}  // namespace

L1::L1(double l1, Where where) : Regularizer([=](const Tensor& x) { return l1 * sum(abs(x)); }) {
  checked(l1, "L1", "l1", where);
  note_recipe(*this, L1Recipe{l1});
}

L2::L2(double l2, Where where) : Regularizer([=](const Tensor& x) { return l2 * sum(square(x)); }) {
  checked(l2, "L2", "l2", where);
  note_recipe(*this, L2Recipe{l2});
}

L1L2::L1L2(L1L2Options options, Where where)
    : Regularizer([=](const Tensor& x) {
        if (options.l1 == 0 && options.l2 == 0) return zeros({}, x.dtype());
        if (options.l1 == 0) return options.l2 * sum(square(x));
        if (options.l2 == 0) return options.l1 * sum(abs(x));
        return options.l1 * sum(abs(x)) + options.l2 * sum(square(x));
      }) {
  checked(options.l1, "L1L2", "l1", where);
  checked(options.l2, "L1L2", "l2", where);
  note_recipe(*this, L1L2Recipe{options});
}

OrthogonalRegularizer::OrthogonalRegularizer(double factor, OrthogonalRegularizerOptions options, Where where)
    : Regularizer([=](const Tensor& x) {
        if (x.rank() != 2)
          throw UserError(error_text(text("OrthogonalRegularizer: ", described(x), " is no matrix"), where,
                                     "reshape it to two axes in a regularizer of your own"));
        const bool rows = options.mode == "rows";
        // Keras's normalisation: vectors shorter than 1e-7 are not made longer.
        Tensor unit = l2_normalize(x, rows ? 1 : 0, {.epsilon = 1e-14});
        Tensor cosines = rows ? matmul(unit, unit, {.transpose_b = true}) : matmul(unit, unit, {.transpose_a = true});
        const Dim count = x.dim(rows ? 0 : 1);
        Tensor others = cosines * (1 - eye(count, {.dtype = x.dtype()}));
        // One vector has no pair, and no penalty.
        Tensor pairs = maximum(cast(count, x.dtype()) * (cast(count, x.dtype()) - 1) / 2, 1);
        return factor * 0.5 * sum(abs(others)) / pairs;
      }) {
  checked(factor, "OrthogonalRegularizer", "factor", where);
  if (options.mode != "rows" && options.mode != "columns")
    throw UserError(error_text(text("OrthogonalRegularizer: there is no mode '", options.mode, "'"), where,
                               "one of rows, columns"));
  note_recipe(*this, OrthogonalRecipe{factor, options});
}

}  // namespace regularizers
}  // namespace stet::keras
