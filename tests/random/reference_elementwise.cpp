// Elementwise rows by their own call, eagerly, alone and in f64: what the tests of ops hold to NumPy's values and to
// differences. What programs add to it (tracing, fusion, tapes, types) is still the interpreter's.
#include "reference_rows.h"
#include "rows.h"

namespace stet::random_programs {
namespace {

/// The row at its operands; where `by` names operands, its derivative by them, one after the other.
Tensor derivative(const Row& row, const std::vector<Tensor>& x, std::span<const std::size_t> by) {
  if (by.empty())
    return x.size() == 1 ? row.one(x[0]) : x.size() == 2 ? row.two(x[0], x[1]) : row.three(x[0], x[1], x[2]);
  GradientTape tape;
  for (const Tensor& operand : x)
    if (is_floating(operand.dtype())) tape.watch(operand);
  Tensor slope = tape.gradient(sum(derivative(row, x, by.subspan(1))), x[by[0]]);
  return slope.defined() ? slope : zeros_like(x[by[0]]);
}
std::vector<double> numbers(const Tensor& t) { return cast(t, DType::f64).to_vector<double>(); }

/// Where a step of 1e-3 either way is no straight line, a jump or a kink is near.
void refuse_steps(const Row& row, const std::vector<Tensor>& x, const std::vector<double>& at) {
  for (std::size_t k = 0; k < x.size(); ++k) {
    if (!is_floating(x[k].dtype())) continue;
    Tensor step = (abs(x[k]) + 1) * 1e-3;
    std::vector<Tensor> up = x, down = x;
    up[k] = x[k] + step;
    down[k] = x[k] - step;
    std::vector<double> above = numbers(derivative(row, up, {})), below = numbers(derivative(row, down, {}));
    for (std::size_t i = 0; i < at.size(); ++i)
      if (!(std::abs(above[i] - 2 * at[i] + below[i]) <= 1e-4 * (1 + std::abs(at[i]))))
        throw TooNear{"a step of " + row.name};
  }
}

struct Expansion {
  const Row& row;
  const std::vector<Tensor>& x;
  const std::vector<std::vector<Real>>& offsets;  // of each operand's elements, without their plain values

  /// Adds the terms of Taylor's series, which ends: a product of more infinitesimals than there are is 0.
  void add(std::vector<Real>& out, std::vector<std::size_t> by, std::vector<Real> factors) const {
    std::size_t order = by.size();
    std::size_t same = 0;
    while (same < order && by[order - 1 - same] == by[order - 1]) ++same;
    if (order > 0) {
      std::vector<double> slopes = numbers(derivative(row, x, by));
      for (std::size_t i = 0; i < out.size(); ++i) {
        factors[i] = factors[i] * offsets[by.back()][i] * Real(1 / static_cast<double>(same));
        out[i] = out[i] + Real(slopes[i]) * factors[i];
      }
    }
    if (order == levels) return;
    for (std::size_t k = order ? by.back() : 0; k < x.size(); ++k) {
      if (offsets[k].empty()) continue;
      by.push_back(k);
      add(out, by, factors);
      by.pop_back();
    }
  }
};

}  // namespace

Array evaluate_elementwise(const std::string& name, const Statement& s, const std::vector<Array>& given) {
  const Row& called = row(name);
  if (called.arity == 0) throw NotWritten{name};
  std::vector<Array> in = given;
  if (static_cast<int>(in.size()) < called.arity) {
    in.push_back(Array::scalar(in[0].real ? s.reals[0] : std::trunc(s.reals[0])));
    in.back().real = in[0].real;
    in.back().dtype = in[0].dtype;
  }
  std::vector<std::int64_t> sizes = in[0].sizes;
  for (const Array& a : in) sizes = broadcast_sizes(sizes, a.sizes);
  std::vector<Tensor> x;
  std::vector<std::vector<Real>> offsets;
  bool depends = false;
  for (Array& a : in) {
    std::vector<Real> elements = broadcast_elements(a, sizes), rest;
    std::vector<double> plain_elements;
    for (const Real& element : elements) plain_elements.push_back(plain(element));
    if (a.real && a.depends)
      for (const Real& element : elements) rest.push_back(element - Real(plain(element)));
    depends = depends || !rest.empty();
    x.push_back(cast(tensor(plain_elements), a.real ? DType::f64 : a.dtype));
    offsets.push_back(std::move(rest));
  }
  Array out;
  out.sizes = sizes;
  Tensor value = derivative(called, x, {});
  out.real = is_floating(value.dtype());
  out.dtype = out.real ? in[0].dtype : value.dtype();
  std::vector<double> at = numbers(value);
  refuse_steps(called, x, at);
  for (double v : at) out.values.emplace_back(v);
  if (!out.real || !depends || at.empty()) return out;
  for (std::size_t k = 0; k < x.size(); ++k) {
    if (offsets[k].empty()) continue;
    std::size_t by[] = {k};
    std::vector<double> slopes = numbers(derivative(called, x, by));
    // Whether a slope of zeros is one that a tape follows is not said.
    if (std::all_of(slopes.begin(), slopes.end(), [](double v) { return v == 0; })) out.uncertain |= in[k].depends;
  }
  Expansion{called, x, offsets}.add(out.values, {}, std::vector<Real>(at.size(), Real(1)));
  return out;
}

}  // namespace stet::random_programs
