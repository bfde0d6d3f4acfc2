#include "stet/keras/initializer.h"

#include <cmath>
#include <string_view>
#include <vector>

#include "stet/base/text.h"
#include "stet/core/dim_host.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

enum class Distribution { constant, uniform, normal, truncated_normal, orthogonal };
enum class Fan { none, in, average };

/// value: of a constant; the half width or standard deviation without a fan; otherwise the scale of the variance.
struct NamedRule {
  std::string_view name;
  Distribution distribution;
  Fan fan;
  double value;
};
constexpr NamedRule named_rules[] = {
    {"glorot_normal", Distribution::truncated_normal, Fan::average, 1},
    {"glorot_uniform", Distribution::uniform, Fan::average, 1},
    {"he_normal", Distribution::truncated_normal, Fan::in, 2},
    {"he_uniform", Distribution::uniform, Fan::in, 2},
    {"lecun_normal", Distribution::truncated_normal, Fan::in, 1},
    {"lecun_uniform", Distribution::uniform, Fan::in, 1},
    {"ones", Distribution::constant, Fan::none, 1},
    {"orthogonal", Distribution::orthogonal, Fan::none, 1},
    {"random_normal", Distribution::normal, Fan::none, 0.05},
    {"random_uniform", Distribution::uniform, Fan::none, 0.05},
    {"truncated_normal", Distribution::truncated_normal, Fan::none, 0.05},
    {"uniform", Distribution::uniform, Fan::none, 0.05},
    {"zeros", Distribution::constant, Fan::none, 0},
};

/// How many inputs and outputs meet in one weight: the last two axes are in and out, the others a receptive field.
double fan_of(Fan fan, const Shape& sizes) {
  double in = 1, out = 1;
  if (sizes.rank() == 1) {
    in = out = static_cast<double>(sizes[0]);
  } else if (sizes.rank() >= 2) {
    double field = 1;
    for (int i = 0; i + 2 < sizes.rank(); ++i) field *= static_cast<double>(sizes[i]);
    in = field * static_cast<double>(sizes[-2]);
    out = field * static_cast<double>(sizes[-1]);
  }
  return std::max(1.0, fan == Fan::in ? in : (in + out) / 2);
}

/// Normal numbers within two standard deviations: those outside are drawn again, from streams beside the first.
Tensor truncated_normal(const Shape& shape, random::StreamSeed stream, double stddev, DType dtype) {
  Tensor drawn = random::stateless_normal(shape, stream, {.dtype = dtype});
  const bool empty = shape.element_count() == 0;
  for (std::uint64_t again = 1; !empty && max(abs(drawn)).item<double>() > 2; ++again) {
    random::StreamSeed next{
        static_cast<std::int64_t>(static_cast<std::uint64_t>(stream[0]) + again * 0x9e3779b97f4a7c15u), stream[1]};
    drawn = where(abs(drawn) > 2, random::stateless_normal(shape, next, {.dtype = dtype}), drawn);
  }
  return drawn * stddev;
}

/// Orthogonal columns, or rows where there are fewer, of a matrix whose columns are those of the last axis.
Tensor orthogonal(const Shape& shape, random::StreamSeed stream, DType dtype) {
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < shape.rank(); ++i) rows *= shape[i].value();
  const std::int64_t columns = shape.rank() == 0 ? 1 : shape[-1].value();
  const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  Tensor drawn = random::stateless_normal({std::max(rows, columns), std::min(rows, columns)}, stream, {.dtype = wide});
  auto [q, r] = linalg::qr(drawn);
  q = q * where(diagonal(r) < 0, -1, 1);  // so that all of them are equally likely
  return cast(reshape(rows < columns ? transpose(q) : q, shape), dtype);
}

Tensor draw(const NamedRule& rule, const Shape& shape, DType dtype) {
  if (rule.distribution == Distribution::constant) return full(shape, rule.value, dtype);
  random::StreamSeed stream = random::next_initial_stream();
  double variance = rule.fan == Fan::none ? 0 : rule.value / fan_of(rule.fan, shape);
  switch (rule.distribution) {
    case Distribution::uniform: {
      double limit = rule.fan == Fan::none ? rule.value : std::sqrt(3 * variance);
      return random::stateless_uniform(shape, stream, {.minval = -limit, .maxval = limit, .dtype = dtype});
    }
    case Distribution::orthogonal:
      return orthogonal(shape, stream, dtype);
    case Distribution::normal:
      return random::stateless_normal(shape, stream, {.stddev = rule.value, .dtype = dtype});
    default: {
      // Cutting at two deviations narrows the distribution by this factor; as in Keras, variance scaling makes up for
      // it.
      constexpr double deviation_left = 0.87962566103423978;
      double stddev = rule.fan == Fan::none ? rule.value : std::sqrt(variance) / deviation_left;
      return truncated_normal(shape, stream, stddev, dtype);
    }
  }
}

}  // namespace

Initializer::Initializer(const char* name, Where where) {
  std::string known;
  for (const NamedRule& rule : named_rules) {
    if (rule.name == name) {
      rule_ = [&rule](const Shape& shape, DType dtype) { return draw(rule, shape, dtype); };
      return;
    }
    known += text(known.empty() ? "" : ", ", rule.name);
  }
  throw UserError(error_text(text("there is no initializer '", name, "'"), where, text("one of ", known)));
}

Tensor Initializer::operator()(const Shape& shape, DType dtype, Where where) const {
  if (!rule_) throw UserError(error_text("the initializer is undefined", where, "give it a name or a callable"));
  Tensor value = rule_(shape, dtype);
  if (!value.defined() || value.dtype() != dtype || !(value.shape() == shape))
    throw UserError(error_text(
        text("the initializer gave ", value.defined() ? text(value.dtype(), value.shape()) : "an undefined tensor",
             " for a weight of ", dtype, shape),
        where, "make the tensor of the shape and type that it is called with"));
  return value;
}

}  // namespace stet::keras
