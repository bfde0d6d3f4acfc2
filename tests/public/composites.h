// What tests of composites ask: values, one trace for all sizes with the same bits as eagerly, gradients by
// differences.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "expect_error.h"
#include "stet/stet.h"

namespace stet {

using Tensors = std::vector<Tensor>;
using Numbers = std::vector<double>;
using Sizes = std::vector<std::int64_t>;

inline constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
inline constexpr double infinity = std::numeric_limits<double>::infinity();

inline Numbers numbers_of(const Tensor& t) { return cast(t, f64).to_vector<double>(); }

/// f64 in the given shape.
inline Tensor real(const Numbers& values, const Shape& shape) { return tensor(values, shape); }
/// 0, 1, … in f64, shifted, in the given shape.
inline Tensor counting(const Sizes& sizes, double first = 0) {
  std::int64_t count = 1;
  for (std::int64_t size : sizes) count *= size;
  return reshape(cast(arange(count), f64) + first, sizes);
}
/// Values without a pattern, none equal to another, in the given shape.
inline Tensor uneven(const Sizes& sizes, double seed = 0) { return sin(counting(sizes, seed) * 1.7 + 0.3) * 3; }

inline void expect_values(const Tensor& t, const Numbers& expected, const Sizes& sizes, double tolerance = 1e-12) {
  EXPECT_EQ(t.shape().sizes(), sizes);
  Numbers found = numbers_of(t);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(expected[i]) || std::isinf(expected[i]))
      EXPECT_TRUE(std::isnan(expected[i]) ? std::isnan(found[i]) : found[i] == expected[i]) << i << " " << found[i];
    else
      EXPECT_NEAR(found[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << "element " << i;
  }
}

/// Traced at all sizes with one trace: dtypes, shapes and bits of the eager run.
inline void expect_one_trace(const std::function<Tensors(Tensors)>& body, const std::vector<Tensors>& calls,
                             int traces = 1) {
  Function f = function("composite(xs)", body);
  for (std::size_t n = 0; n < calls.size(); ++n) {
    Tensors eager = body(calls[n]), traced = f(calls[n]);
    ASSERT_EQ(eager.size(), traced.size());
    for (std::size_t i = 0; i < eager.size(); ++i) {
      EXPECT_EQ(eager[i].dtype(), traced[i].dtype());
      ASSERT_EQ(eager[i].shape().sizes(), traced[i].shape().sizes()) << "call " << n << ", result " << i;
      Numbers a = numbers_of(eager[i]), b = numbers_of(traced[i]);
      for (std::size_t e = 0; e < a.size(); ++e)
        ASSERT_TRUE(a[e] == b[e] || (std::isnan(a[e]) && std::isnan(b[e])))
            << "call " << n << ", result " << i << ", element " << e << ": " << a[e] << " eagerly, " << b[e];
    }
  }
  EXPECT_EQ(f.trace_count(), traces) << f.explain();
}

/// The gradients by each of `sources` (f64) against central differences, eagerly; and traced the same.
inline void expect_gradient(const std::function<Tensor(Tensors)>& body, const Tensors& sources,
                            double tolerance = 1e-7) {
  auto target = [&](const Tensors& at) {
    Tensor y = body(at);
    return sum(y * reshape(cos(cast(arange(y.size()), y.dtype())), y.shape()));
  };
  auto gradients = [&](Tensors at) {
    GradientTape tape;
    for (const Tensor& source : at) tape.watch(source);
    Tensors out = tape.gradient(target(at), at);
    for (std::size_t i = 0; i < out.size(); ++i)
      if (!out[i].defined()) out[i] = zeros_like(at[i]);
    return out;
  };
  Tensors found = gradients(sources);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    Numbers values = sources[i].to_vector<double>(), derived = numbers_of(found[i]);
    EXPECT_EQ(found[i].shape().sizes(), sources[i].shape().sizes());
    ASSERT_EQ(values.size(), derived.size());
    for (std::size_t e = 0; e < values.size(); ++e) {
      auto moved = [&](double by) {
        Numbers changed = values;
        changed[e] += by;
        Tensors at = sources;
        at[i] = tensor(changed, sources[i].shape());
        return target(at).item<double>();
      };
      const double step = 1e-5, expected = (moved(step) - moved(-step)) / (2 * step);
      EXPECT_NEAR(derived[e], expected, tolerance * std::max(1.0, std::abs(expected)))
          << "source " << i << ", element " << e;
    }
  }
  Function traced = function("gradients(xs)", gradients);
  Tensors again = traced(sources);
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(numbers_of(again[i]), numbers_of(found[i])) << i;
}

}  // namespace stet
