// What tests of composites ask: values, gradients by central differences, one trace for all sizes.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "stet/stet.h"

namespace stet {

using TensorFunction = std::function<Tensor(Tensor)>;

inline std::vector<double> doubles_of(const Tensor& t) { return cast(t, f64).to_vector<double>(); }

/// Within `tolerance` of the larger of 1 and the value; NaN and infinities are themselves.
inline void expect_values(const Tensor& got, const std::vector<double>& expected, double tolerance = 1e-12) {
  std::vector<double> values = doubles_of(got);
  ASSERT_EQ(values.size(), expected.size()) << got;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(expected[i]) || std::isinf(expected[i])) {
      EXPECT_EQ(std::isnan(values[i]), std::isnan(expected[i])) << "element " << i << " of " << got;
      if (std::isinf(expected[i])) {
        EXPECT_EQ(values[i], expected[i]) << "element " << i;
      }
    } else {
      EXPECT_NEAR(values[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << "element " << i;
    }
  }
}

/// The gradient of the sum of f's elements.
inline Tensor gradient_of(const TensorFunction& f, const Tensor& x) {
  GradientTape tape;
  tape.watch(x);
  Tensor y = f(x);
  Tensor d = tape.gradient(y, x);
  return d.defined() ? d : zeros_like(x);
}
/// The same of sum(gradient * weights), where weights count up: every element of the Hessian matters.
inline Tensor second_gradient_of(const TensorFunction& f, const Tensor& x) {
  return gradient_of(
      [&](Tensor v) {
        Tensor d = gradient_of([&](Tensor w) { return square(f(w)); }, v);
        return d * (reshape(cast(arange(d.size()), d.dtype()), d.shape()) + 1);
      },
      x);
}

/// Of a tensor of f64: gradients, and gradients of gradients, are differences.
inline void expect_gradients(const TensorFunction& f, const Tensor& x, double tolerance = 2e-6) {
  auto differences = [&](const TensorFunction& g) {
    std::vector<double> at = doubles_of(x), out;
    for (std::size_t i = 0; i < at.size(); ++i) {
      auto shifted = [&](double h) {
        std::vector<double> moved = at;
        moved[i] += h;
        return cast(sum(g(reshape(tensor(moved), x.shape()))), f64).item<double>();
      };
      const double h = 1e-4;
      out.push_back((8 * (shifted(h) - shifted(-h)) - (shifted(2 * h) - shifted(-2 * h))) / (12 * h));
    }
    return out;
  };
  {
    SCOPED_TRACE("first derivatives");
    expect_values(gradient_of(f, x), differences(f), tolerance);
  }
  SCOPED_TRACE("second derivatives");
  auto weighted = [&](Tensor v) {
    Tensor d = gradient_of([&](Tensor w) { return square(f(w)); }, v);
    return d * (reshape(cast(arange(d.size()), d.dtype()), d.shape()) + 1);
  };
  expect_values(second_gradient_of(f, x), differences(weighted), tolerance);
}

/// f and its gradient, eagerly and in one trace for all inputs.
inline void expect_one_trace(const TensorFunction& f, const std::vector<Tensor>& inputs, double tolerance = 1e-5) {
  auto both = [f](Tensor x) { return std::vector<Tensor>{f(x), gradient_of(f, x)}; };
  Function traced = function("traced(x)", [both](Tensor x) { return both(x); });
  for (const Tensor& x : inputs) {
    std::vector<Tensor> eager = both(x), got = traced(x);
    for (std::size_t i = 0; i < 2; ++i) {
      SCOPED_TRACE(i == 0 ? "value" : "gradient");
      EXPECT_EQ(got[i].shape().str(), eager[i].shape().str());
      EXPECT_EQ(got[i].dtype(), eager[i].dtype());
      expect_values(got[i], doubles_of(eager[i]), tolerance);
    }
  }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
}

}  // namespace stet
