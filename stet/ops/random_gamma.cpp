// Gamma numbers, and what is made of them.
//
// A gamma number with shape alpha is one with shape alpha + 8 times the product of u_i^(1 / (alpha + i)), i = 0 … 7, of
// uniform u_i; and one whose shape is 8 or more is a smooth function of a normal number (random_coefficients.h says how
// close: 1e-9). So there is no rejection and no branch, a draw takes a fixed number of words, and it is a smooth
// function of alpha: gradients of any order are its derivatives with the same words.
#include <cmath>
#include <limits>

#include "stet/base/inside.h"
#include "stet/compiler/lower.h"
#include "stet/core/gradient.h"
#include "stet/ir/graph.h"
#include "stet/ops/random_coefficients.h"
#include "stet/ops/random_words.h"
#include "stet/ops/samples.h"
#include "stet/ops/saved_rows.h"
#include "stet/ops/table.h"

namespace stet {
namespace {

constexpr const char* operand_names[] = {"seed", "counter", "alpha"};
constexpr int factors = static_cast<int>(gamma_least);

struct GammaAttributes {
  bool logarithm = false;  // of the number: of small shapes, the numbers themselves are below what a type holds
  int derivative = 0;      // which one with respect to alpha
  STET_ATTRIBUTES(logarithm, derivative)
};

constexpr int most_derivatives = 6;  // each is several times as long as the one before

Expr gamma_body(DType type, bool logarithm) {
  Expr key = operand(0, DType::i64), counter = operand(1, DType::i64) + loop_index(0);
  Expr alpha = scalar::abs(operand(2, type));
  // Ten uniform numbers: the first ten words, and in f64 as many more for the bits below. So both types draw alike.
  constexpr int uniforms = factors + 2;
  std::vector<Expr> words;
  for (int block = 0; block * 4 < (type == DType::f64 ? 2 * uniforms : uniforms); ++block)
    for (const Expr& word : philox(counter, key, block)) words.push_back(word);
  std::size_t used = 0;
  auto next = [&] {
    Expr above = words[used], below = type == DType::f64 ? words[used + uniforms] : above;
    ++used;
    return unit_interval({above, below, below, below}, 0, type);
  };
  Expr first = next(), second = next();
  Expr z = normal_pair(first, second)[0];
  Expr shrinking = scalar::log(1 - next()) / alpha;
  for (int i = 1; i < factors; ++i) shrinking = shrinking + scalar::log(1 - next()) / (alpha + i);
  Expr large = alpha + factors;
  Expr s = z / scalar::sqrt(large) * (1 / gamma_unit), d = gamma_least / large;
  Expr root;
  for (int order = static_cast<int>(std::size(gamma_terms)) - 1; order >= 0; --order) {
    Expr row = polynomial(s, std::span(gamma_terms[order].begin(), gamma_terms[order].end()));
    root = root.defined() ? scalar::fma(root, d, row) : row;
  }
  return logarithm ? shrinking + scalar::log(large) + scalar::log(root) * 3
                   : large * (root * root * root) * scalar::exp(shrinking);
}

void infer_gamma(InferCall& call) {
  const DType type = call.dtype(2);
  call.require(type == DType::f32 || type == DType::f64, text("'alpha' is ", type, ", not f32 or f64"), "cast it");
  for (int i = 0; i < 2; ++i)
    call.require(call.dtype(i) == DType::i64 && call.rank(i) == 0,
                 text("operand ", i, " is ", call.in(i).str(), ", not a scalar of i64"));
  const int derivative = call.attributes<GammaAttributes>().derivative;
  call.require(derivative >= 0 && derivative <= most_derivatives,
               text("there is no derivative ", derivative, " of a gamma number"));
  call.result(type, call.shape(2));
}

void lower_gamma(LowerCall& call) {
  const auto& attributes = call.attributes<GammaAttributes>();
  Kernel kernel;
  kernel.name = "random_gamma";
  kernel.body = gamma_body(call.out().dtype, attributes.logarithm);
  for (int i = 0; i < attributes.derivative; ++i) kernel.body = derivative(kernel.body, 2);
  kernel.loops = {{call.out().shape.element_count(), false}};
  for (int i = 0; i < 2; ++i) kernel.operands.push_back(LowerCall::access(call.place(i), call.in(i).dtype, {}, 1));
  auto flat = [&](const Place& place) {
    return Access{.source = Access::memory,
                  .dtype = call.out().dtype,
                  .buffer = place.buffer,
                  .address = {place.layout.offset, {1}},
                  .guards = {},
                  .indirections = {}};
  };
  kernel.operands.push_back(flat(call.dense(2)));
  kernel.result = flat(call.result());
  call.kernel(std::move(kernel));
}

}  // namespace

constinit const AttributeCodec gamma_codec = attribute_codec<GammaAttributes>;

constinit const OpDef random_gamma_row{
    .name = "random_gamma",
    .kind = Kind::random,
    .summary = "Gamma random numbers with a shape for each; its sign does not matter.",
    .operands = operand_names,
    .infer = infer_gamma,
    .lower = lower_gamma,
    .gradient =
        [](GradientCall& g) {
          if (!g.wants(2)) return;
          GammaAttributes next = g.attributes<GammaAttributes>();
          ++next.derivative;
          g.set(2, g.d() * call(random_gamma_row, {g.in(0), g.in(1), g.in(2)}, view_of(next)));
        },
    .samples =
        [](SampleList& s) {
          s.rounded(Rounding::functions)
              .add({{{}, 1000}, {{}, 1000000}, {{3, 40}, -1, Draw::factors}}, GammaAttributes{})
              .add({{{}, 1000}, {{}, 1000000}, {{17}, -1, Draw::factors}}, GammaAttributes{true, 0})
              .add({{{}, 1000}, {{}, 1000000}, {{}, -1, Draw::factors}}, GammaAttributes{})
              .add({{{}, 1000}, {{}, 1000000}, {{0, 4}, -1, Draw::factors}}, GammaAttributes{});
        }};

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Shapes as the row takes them, NaN where they are not positive.
Tensor shapes_of(const In& alpha, DType type, const Shape& shape) {
  Tensor typed = cast(alpha, type);
  Expr x = operand(0, type), checked = scalar::select(0 < x, x, constant(std::nan(""), type));
  if (!alpha.is_number()) typed = call_map(checked, std::array{In(typed, alpha.where())});
  return fitted(In(typed, alpha.where()), type, shape);
}

/// Gamma numbers (or logarithms of them) in the type that they are computed in.
Tensor gamma_drawn(Reservation& reserved, const Tensor& alpha, const Shape& shape, bool logarithm, Where where) {
  Tensor each = alpha.rank() == shape.rank() ? alpha : broadcast_to(In(alpha, where), shape);
  return reserved.draw(random_gamma_row, shape, {In(each, where)}, view_of(GammaAttributes{logarithm, 0}));
}

struct Typed {
  DType dtype, type;  // of the result, of the computation
};
Typed typed(const char* name, random::DrawOptions options, std::initializer_list<In> parameters, Where where) {
  DType dtype = drawn_type(name, options.dtype, parameters, where);
  return {dtype, compute_type(dtype)};
}

}  // namespace

namespace random {

Tensor Source::gamma(const Shape& shape, In alpha, DrawOptions options, Where where) const {
  const char* const name = "random::gamma";
  Frame frame(name, where);
  check_number(name, "alpha", alpha, 0, infinity, true, where);
  auto [dtype, type] = typed(name, options, {alpha}, where);
  Tensor shapes = shapes_of(alpha, type, shape);
  Reservation reserved(*this, shape.element_count(), where);
  return cast(In(gamma_drawn(reserved, shapes, shape, false, where), where), dtype);
}

Tensor Source::gamma(const Shape& shape, In alpha, In beta, DrawOptions options, Where where) const {
  const char* const name = "random::gamma";
  Frame frame(name, where);
  check_number(name, "alpha", alpha, 0, infinity, true, where);
  check_number(name, "beta", beta, 0, infinity, true, where);
  auto [dtype, type] = typed(name, options, {alpha, beta}, where);
  Tensor shapes = shapes_of(alpha, type, shape), rates = fitted(beta, type, shape);
  Reservation reserved(*this, shape.element_count(), where);
  Tensor drawn = gamma_drawn(reserved, shapes, shape, false, where);
  Expr rate = operand(1, type);
  Expr value = scalar::select(0 < rate, operand(0, type) / rate, constant(std::nan(""), type));
  return call_map(scalar::cast(value, dtype), std::array{In(drawn, where), In(rates, where)});
}

Tensor Source::beta(const Shape& shape, In a, In b, DrawOptions options, Where where) const {
  const char* const name = "random::beta";
  Frame frame(name, where);
  check_number(name, "a", a, 0, infinity, true, where);
  check_number(name, "b", b, 0, infinity, true, where);
  auto [dtype, type] = typed(name, options, {a, b}, where);
  Tensor first = shapes_of(a, type, shape), second = shapes_of(b, type, shape);
  Reservation reserved(*this, shape.element_count() * 2, where);
  // x / (x + y) of two gamma numbers, by their logarithms: small shapes give numbers that no type holds.
  Tensor x = gamma_drawn(reserved, first, shape, true, where), y = gamma_drawn(reserved, second, shape, true, where);
  return cast(In(sigmoid(x - y), where), dtype);
}

Tensor Source::dirichlet(const Shape& shape, In alpha, DrawOptions options, Where where) const {
  const char* const name = "random::dirichlet";
  Frame frame(name, where);
  if (shape.rank() == 0) refuse(name, "a scalar has no axis that sums to 1", where, "the last axis is that of classes");
  check_number(name, "alpha", alpha, 0, infinity, true, where);
  auto [dtype, type] = typed(name, options, {alpha}, where);
  Tensor shapes = shapes_of(alpha, type, shape);
  Reservation reserved(*this, shape.element_count(), where);
  return cast(In(softmax(gamma_drawn(reserved, shapes, shape, true, where)), where), dtype);
}

Tensor Source::chi2(const Shape& shape, In freedom, DrawOptions options, Where where) const {
  const char* const name = "random::chi2";
  Frame frame(name, where);
  check_number(name, "freedom", freedom, 0, infinity, true, where);
  auto [dtype, type] = typed(name, options, {freedom}, where);
  Tensor halves = shapes_of(freedom, type, shape) / 2;
  Reservation reserved(*this, shape.element_count(), where);
  return cast(In(gamma_drawn(reserved, halves, shape, false, where) * 2, where), dtype);
}

Tensor Source::student_t(const Shape& shape, In freedom, DrawOptions options, Where where) const {
  const char* const name = "random::student_t";
  Frame frame(name, where);
  check_number(name, "freedom", freedom, 0, infinity, true, where);
  auto [dtype, type] = typed(name, options, {freedom}, where);
  Tensor halves = shapes_of(freedom, type, shape) / 2;
  Reservation reserved(*this, shape.element_count() * 2, where);
  Tensor z = reserved.normal(shape, type), logs = gamma_drawn(reserved, halves, shape, true, where);
  // The root of (freedom / 2) / gamma, by logarithms, which small freedoms need.
  return cast(In(z * exp((log(halves) - logs) * 0.5), where), dtype);
}

}  // namespace random

}  // namespace stet
