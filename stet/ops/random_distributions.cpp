// Distributions that are maps of uniform and normal numbers, and choices. A parameter that is a number is checked; in
// the maps, a parameter out of range gives NaN.
#include <cmath>
#include <limits>

#include "stet/base/inside.h"
#include "stet/ops/random_coefficients.h"
#include "stet/ops/random_words.h"
#include "stet/ops/table.h"

namespace stet {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Tensor map_of(const Expr& body, std::initializer_list<Tensor> operands, Where where) {
  std::vector<In> ins;
  for (const Tensor& operand : operands) ins.push_back(In(operand, where));
  return call_map(body, ins);
}

Expr x_of(int number, DType type) { return operand(number, type); }
Expr nan_of(DType type) { return constant(std::nan(""), type); }

/// The middle of the cell of [-1, 1) that a uniform number of [0, 1) stands for; exact, and never -1, 0 or 1.
Expr symmetric(Expr u) { return (u * 2 - 1) + (u.dtype() == DType::f64 ? 0x1p-53 : 0x1p-24); }
/// An exponential number with rate 1, above 0: u = 0 stands for the cell that begins there.
Expr waiting_time(Expr u) { return scalar::maximum(-scalar::log(1 - u), u.dtype() == DType::f64 ? 0x1p-54 : 0x1p-25); }
Expr gumbel_of(Expr u) { return -scalar::log(waiting_time(u)); }

/// location + scale * standard, NaN where the scale is negative; rounded once.
Expr placed(Expr standard, Expr location, Expr scale, DType dtype) {
  Expr value = location + scale * standard;
  return scalar::cast(scalar::select(0 <= scale, value, nan_of(value.dtype())), dtype);
}

/// uniform_row's value with bounds for each element.
Expr between(Expr u, Expr low, Expr high, DType dtype) {
  Expr value = low + u * (high - low);
  value = scalar::select(value < high, value, low);
  value = scalar::select(low <= high, value, nan_of(value.dtype()));
  Expr rounded = scalar::cast(value, dtype);
  if (dtype == value.dtype()) return rounded;
  return scalar::select(high <= scalar::cast(rounded, value.dtype()), scalar::cast(low, dtype), rounded);
}

/// The quantile of (1 + w) / 2.
Expr truncated(Expr w) {
  Expr bounded = w * truncated_bound;
  return w * polynomial(-scalar::log(1 - bounded * bounded), std::span(truncated_terms.begin(), truncated_terms.end()));
}

/// What a location and a scale make of a function of uniform numbers.
Tensor located(const random::Source& from, const char* name, const Shape& shape, In location, In scale,
               random::DrawOptions options, Expr (*standard)(Expr), const char* location_name, const char* scale_name,
               Where where) {
  Frame frame(name, where);
  check_number(name, location_name, location, -infinity, infinity, false, where);
  check_number(name, scale_name, scale, 0, infinity, false, where);
  const DType dtype = drawn_type(name, options.dtype, {location, scale}, where), type = compute_type(dtype);
  Tensor centre = fitted(location, type, shape), spread = fitted(scale, type, shape);
  Reservation reserved(from, shape.element_count(), where);
  return map_of(placed(standard(x_of(0, type)), x_of(1, type), x_of(2, type), dtype),
                {reserved.uniform(shape, type), centre, spread}, where);
}

// --- Poisson

/// How many terms of a Poisson distribution with a rate below poisson_least leave out less than 1e-13.
constexpr int most_terms = 84;

/// The number of terms of the distribution function that are not above u: exact inversion.
Expr poisson_by_inversion(Expr u, Expr rate) {
  Expr term = scalar::exp(-rate), sum = term, count = scalar::cast(sum <= u, DType::f64);
  for (int k = 1; k < most_terms; ++k) {
    term = term * (rate * (1.0 / k));
    sum = sum + term;
    count = count + scalar::cast(sum <= u, DType::f64);
  }
  return count;
}

/// The quantile function at a normal number: see random_coefficients.h.
Expr poisson_by_quantile(Expr z, Expr rate) {
  Expr large = scalar::maximum(rate, poisson_least);
  Expr s = z / scalar::sqrt(large) * (1 / poisson_unit), d = poisson_least / large;
  Expr value;
  for (int order = static_cast<int>(std::size(poisson_terms)) - 1; order >= 0; --order) {
    Expr row = polynomial(s, std::span(poisson_terms[order].begin(), poisson_terms[order].end()));
    value = value.defined() ? scalar::fma(value, d, row) : row;
  }
  return scalar::floor(scalar::maximum(large * value, 0));
}

void check_normal(const char* name, const random::NormalOptions& options, Where where) {
  if (!(options.stddev >= 0))
    refuse(name, text("stddev ", options.stddev, " is not 0 or more"), where, "a spread is not negative");
}

/// Axes but the last as one, which may be none: [rows, last].
Tensor as_rows(const Tensor& x, Where where) {
  Dim rows = 1;
  for (int axis = 0; axis + 1 < x.rank(); ++axis) rows = rows * x.dim(axis);
  return reshape(In(x, where), {rows, x.dim(-1)});
}

/// Positions along the last axis of `p` [rows, classes], chosen in proportion to it: [rows, count].
Tensor chosen(Reservation& reserved, const Tensor& p, const Dim& count, Where where) {
  Tensor sums = cumsum(In(p, where), 1);
  Dim classes = p.dim(1);
  Tensor total = slice(In(sums, where), {0, classes - 1}, {p.dim(0), 1});
  Tensor at = reserved.uniform({p.dim(0), count}, DType::f64) * total;
  return minimum(searchsorted(In(sums, where), In(at, where), {.right = true}), In(classes - 1, where));
}

const Tensor& tensor_of(const In& operand, const char* name, const char* parameter, int rank, Where where) {
  if (operand.kind() != In::Kind::tensor || !operand.tensor().defined() || operand.tensor().rank() < rank)
    refuse(name, text(parameter, " must be a tensor with ", rank, " axis or more"), where,
           "give what is to be chosen from along an axis");
  return operand.tensor();
}

}  // namespace

namespace random {

Tensor Source::uniform(const Shape& shape, UniformOptions options, Where where) const {
  const char* const name = "random::uniform";
  if (!(options.minval <= options.maxval))
    refuse(name, text("minval ", options.minval, " is not below maxval ", options.maxval), where, "swap them");
  Frame frame(name, where);
  RandomAttributes attributes{{shape.begin(), shape.end()}, options.dtype};
  Tensor low = scalar_of(options.minval, options.dtype), high = scalar_of(options.maxval, options.dtype);
  Reservation reserved(*this, shape.element_count(), where);
  return reserved.draw(uniform_row, shape, {In(low, where), In(high, where)}, view_of(attributes));
}

Tensor Source::uniform(const Shape& shape, In low, In high, DrawOptions options, Where where) const {
  const char* const name = "random::uniform";
  Frame frame(name, where);
  const DType dtype = drawn_type(name, options.dtype, {low, high}, where), type = compute_type(dtype);
  Tensor from = fitted(low, type, shape), to = fitted(high, type, shape);
  Reservation reserved(*this, shape.element_count(), where);
  return map_of(between(x_of(0, type), x_of(1, type), x_of(2, type), dtype), {reserved.uniform(shape, type), from, to},
                where);
}

Tensor Source::normal(const Shape& shape, NormalOptions options, Where where) const {
  check_normal("random::normal", options, where);
  Frame frame("random::normal", where);
  RandomAttributes attributes{{shape.begin(), shape.end()}, options.dtype};
  Tensor mean = scalar_of(options.mean, options.dtype), deviation = scalar_of(options.stddev, options.dtype);
  Reservation reserved(*this, shape.element_count(), where);
  return reserved.draw(normal_row, shape, {In(mean, where), In(deviation, where)}, view_of(attributes));
}

Tensor Source::normal(const Shape& shape, In mean, In stddev, DrawOptions options, Where where) const {
  const char* const name = "random::normal";
  Frame frame(name, where);
  check_number(name, "stddev", stddev, 0, infinity, false, where);
  const DType dtype = drawn_type(name, options.dtype, {mean, stddev}, where), type = compute_type(dtype);
  Tensor centre = fitted(mean, type, shape), spread = fitted(stddev, type, shape);
  Reservation reserved(*this, shape.element_count(), where);
  return map_of(placed(x_of(0, type), x_of(1, type), x_of(2, type), dtype),
                {reserved.normal(shape, type), centre, spread}, where);
}

Tensor Source::truncated_normal(const Shape& shape, NormalOptions options, Where where) const {
  check_normal("random::truncated_normal", options, where);
  return truncated_normal(shape, In(options.mean, where), In(options.stddev, where), {.dtype = options.dtype}, where);
}

Tensor Source::truncated_normal(const Shape& shape, In mean, In stddev, DrawOptions options, Where where) const {
  return located(
      *this, "random::truncated_normal", shape, mean, stddev, options,
      [](Expr u) { return truncated(symmetric(std::move(u))); }, "mean", "stddev", where);
}

Tensor Source::randint(const Shape& shape, std::int64_t low, std::int64_t high, RandintOptions options,
                       Where where) const {
  const char* const name = "random::randint";
  if (low >= high) refuse(name, text("low ", low, " is not below high ", high), where, "high is excluded");
  if (is_integer(options.dtype) && (low < row(options.dtype).lowest || high - 1 > row(options.dtype).highest))
    refuse(name, text(low, " to ", high, " does not fit into ", options.dtype), where, "choose a wider dtype");
  Frame frame(name, where);
  RandomAttributes attributes{{shape.begin(), shape.end()}, options.dtype};
  Tensor first(low), end(high);
  Reservation reserved(*this, shape.element_count(), where);
  return reserved.draw(randint_row, shape, {In(first, where), In(end, where)}, view_of(attributes));
}

Tensor Source::bits(const Shape& shape, RandintOptions options, Where where) const {
  Frame frame("random::bits", where);
  RandomAttributes attributes{{shape.begin(), shape.end()}, options.dtype};
  Reservation reserved(*this, shape.element_count(), where);
  return reserved.draw(random_bits_row, shape, {}, view_of(attributes));
}

Tensor Source::bernoulli(const Shape& shape, In p, BernoulliOptions options, Where where) const {
  const char* const name = "random::bernoulli";
  Frame frame(name, where);
  check_number(name, "p", p, 0, 1, false, where);
  // 53 bits, whatever the type of p is: with 24, what is less likely than 2^-24 would be as likely as that.
  Tensor probability = fitted(p, DType::f64, shape);
  Reservation reserved(*this, shape.element_count(), where);
  Expr u = x_of(0, DType::f64), bound = x_of(1, DType::f64);
  Expr value = scalar::cast(u < bound, DType::f64);
  if (is_floating(options.dtype))
    value = scalar::select(scalar::logical_and(0 <= bound, bound <= 1), value, nan_of(DType::f64));
  else
    value = scalar::select(bound <= 1, value, 0);
  return map_of(scalar::cast(value, options.dtype), {reserved.uniform(shape, DType::f64), probability}, where);
}

Tensor Source::categorical(In logits, const CategoricalOptions& options, Where where) const {
  const char* const name = "random::categorical";
  Frame frame(name, where);
  const Tensor& given = tensor_of(logits, name, options.probabilities ? "probabilities" : "logits", 1, where);
  const DType type = compute_type(drawn_type(name, {}, {logits}, where));
  Tensor weights = cast(In(given, where), type);
  if (options.probabilities) weights = log(In(weights, where));
  Shape shape;
  for (int axis = 0; axis + 1 < given.rank(); ++axis) shape.push_back(given.dim(axis));
  if (options.samples) {
    shape.push_back(*options.samples);
    weights = expand_dims(In(weights, where), -2);
  }
  shape.push_back(given.dim(-1));
  Reservation reserved(*this, shape.element_count(), where);
  Tensor noisy = map_of(gumbel_of(x_of(0, type)) + x_of(1, type), {reserved.uniform(shape, type), weights}, where);
  return cast(argmax(In(noisy, where), -1), options.dtype);
}

Tensor Source::gumbel(const Shape& shape, In location, In scale, DrawOptions options, Where where) const {
  return located(*this, "random::gumbel", shape, location, scale, options, gumbel_of, "location", "scale", where);
}

Tensor Source::exponential(const Shape& shape, In rate, DrawOptions options, Where where) const {
  const char* const name = "random::exponential";
  Frame frame(name, where);
  check_number(name, "rate", rate, 0, infinity, true, where);
  const DType dtype = drawn_type(name, options.dtype, {rate}, where), type = compute_type(dtype);
  Tensor rates = fitted(rate, type, shape);
  Reservation reserved(*this, shape.element_count(), where);
  Expr r = x_of(1, type), value = scalar::select(0 < r, waiting_time(x_of(0, type)) / r, nan_of(type));
  return map_of(scalar::cast(value, dtype), {reserved.uniform(shape, type), rates}, where);
}

Tensor Source::laplace(const Shape& shape, In location, In scale, DrawOptions options, Where where) const {
  auto standard = [](Expr u) {
    Expr w = symmetric(std::move(u)), size = -scalar::log(1 - scalar::abs(w));
    return scalar::select(w < 0, -size, size);
  };
  return located(*this, "random::laplace", shape, location, scale, options, standard, "location", "scale", where);
}

Tensor Source::logistic(const Shape& shape, In location, In scale, DrawOptions options, Where where) const {
  auto standard = [](Expr u) {
    Expr w = symmetric(std::move(u));
    return scalar::log(1 + w) - scalar::log(1 - w);
  };
  return located(*this, "random::logistic", shape, location, scale, options, standard, "location", "scale", where);
}

Tensor Source::poisson(const Shape& shape, In rate, CountOptions options, Where where) const {
  const char* const name = "random::poisson";
  Frame frame(name, where);
  check_number(name, "rate", rate, 0, infinity, false, where);
  Tensor rates = fitted(rate, DType::f64, shape);
  // What one number decides is not drawn; the counters are the same.
  Reservation reserved(*this, shape.element_count() * 2, where);
  const bool known = rate.is_number();
  const double number = rate.kind() == In::Kind::real ? rate.real() : static_cast<double>(known ? rate.integer() : 0);
  Expr r = x_of(1, DType::f64), invalid = is_floating(options.dtype) ? nan_of(DType::f64) : constant(-1, DType::f64);
  auto result = [&](const Expr& value) { return scalar::cast(scalar::select(0 <= r, value, invalid), options.dtype); };
  if (known && number < poisson_least)
    return map_of(result(poisson_by_inversion(x_of(0, DType::f64), r)), {reserved.uniform(shape, DType::f64), rates},
                  where);
  Tensor u = known ? rates : reserved.uniform(shape, DType::f64);
  if (known) reserved.skip(shape.element_count());
  Tensor z = reserved.normal(shape, DType::f64);
  Expr large = poisson_by_quantile(x_of(0, DType::f64), r);
  if (known) return map_of(result(large), {z, rates}, where);
  Expr small = poisson_by_inversion(x_of(2, DType::f64), r);
  return map_of(result(scalar::select(r < poisson_least, small, large)), {z, rates, u}, where);
}

Tensor Source::multinomial(const Dim& trials, In p, CountOptions options, Where where) const {
  const char* const name = "random::multinomial";
  Frame frame(name, where);
  const Tensor& given = tensor_of(p, name, "p", 1, where);
  Tensor rows = as_rows(cast(In(given, where), DType::f64), where);
  const Dim count = rows.dim(0), classes = rows.dim(1);
  Reservation reserved(*this, count * trials, where);
  Tensor first = reshape(arange(count) * classes, {count, 1});
  Tensor at = reshape(chosen(reserved, rows, trials, where) + first, {count * trials});
  Tensor counts =
      scatter_add(zeros({count * classes}, DType::i64), at, broadcast_to(tensor(std::int64_t{1}), {count * trials}));
  return cast(reshape(counts, given.shape()), options.dtype);
}

Tensor Source::permutation(const Dim& count, Where where) const {
  Frame frame("random::permutation", where);
  Reservation reserved(*this, count, where);
  return argsort(In(reserved.bits({count}), where), 0);
}

Tensor Source::shuffle(In x, ShuffleOptions options, Where where) const {
  Frame frame("random::shuffle", where);
  const Tensor& given = tensor_of(x, "random::shuffle", "x", 1, where);
  Tensor order = permutation(given.dim(options.axis, where), where);
  return gather(x, In(order, where), options.axis);
}

Tensor Source::choice(In x, const Dim& count, const ChoiceOptions& options, Where where) const {
  const char* const name = "random::choice";
  Frame frame(name, where);
  const Tensor& given = tensor_of(x, name, "x", 1, where);
  const Dim size = given.dim(options.axis, where);
  Tensor weights;
  if (options.p.defined()) {
    weights = cast(In(options.p, where), DType::f64);
    if (weights.rank() != 1 ||
        !require(weights.dim(0), Relation::equal, size, {"random::choice", "probabilities", where}))
      refuse(name, "p must have one probability for each slice along the axis", where, "p is [size of the axis]");
  }
  Reservation reserved(*this, options.replace ? count : size, where);
  Tensor positions;
  if (options.replace && weights.defined()) {
    positions = reshape(chosen(reserved, reshape(weights, {1, size}), count, where), {count});
  } else if (options.replace) {
    // Below 2^53 slices every one is as likely, up to 2^-53.
    Tensor at = cast(floor(reserved.uniform({count}, DType::f64) * cast(In(size, where), DType::f64)), DType::i64);
    positions = minimum(at, In(size - 1, where));
  } else if (weights.defined()) {
    // The largest of log p with Gumbel noise are as if chosen one after the other.
    Expr noisy = gumbel_of(x_of(0, DType::f64)) + scalar::log(x_of(1, DType::f64));
    positions = top_k(map_of(noisy, {reserved.uniform({size}, DType::f64), weights}, where), count, 0).positions;
  } else {
    positions = top_k(In(reserved.bits({size}), where), count, 0).positions;
  }
  return gather(x, In(positions, where), options.axis);
}

}  // namespace random

}  // namespace stet
