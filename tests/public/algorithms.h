// What tests of whole algorithms ask: bits and values of structures of results, and differences of a plain reference.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "stet/stet.h"

namespace stet {

using Reals = std::vector<double>;
using Integers = std::vector<std::int64_t>;

inline Reals reals(const Tensor& x) { return cast(x, f64).to_vector<double>(); }
inline Integers integers(const Tensor& x) { return cast(x, i64).to_vector<std::int64_t>(); }

/// Numbers of both signs without a pattern in them, f64: the same for tensors and for plain references.
inline Reals wave(std::int64_t count, double phase = 0) {
  Reals out;
  for (std::int64_t i = 0; i < count; ++i)
    out.push_back(std::sin(1.7 * static_cast<double>(i) + phase) + 0.5 * std::cos(static_cast<double>(i * i) + phase));
  return out;
}
inline Tensor shaped(const Reals& values, std::vector<Dim> sizes) {
  return values.empty() ? zeros(Shape(sizes), f64) : reshape(tensor(values), sizes);
}

/// The same type, sizes and bits.
inline void expect_bits(const Tensor& got, const Tensor& expected, const char* what = "") {
  ASSERT_EQ(got.dtype(), expected.dtype()) << what;
  ASSERT_EQ(got.shape().str(), expected.shape().str()) << what;
  if (!is_floating(got.dtype())) {
    EXPECT_EQ(integers(got), integers(expected)) << what;
    return;
  }
  Reals a = reals(got), b = reals(expected);
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(std::memcmp(&a[i], &b[i], sizeof(double)), 0)
        << what << " element " << i << ": " << a[i] << " and " << b[i] << " differ by " << a[i] - b[i];
}

/// Every element within tolerance * (1 + |expected|).
inline void expect_close(const Tensor& got, const Reals& expected, double tolerance, const char* what = "") {
  Reals values = reals(got);
  ASSERT_EQ(values.size(), expected.size()) << what;
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << what << " element " << i;
}
inline void expect_agree(const Tensor& got, const Tensor& expected, double tolerance, const char* what = "") {
  ASSERT_EQ(got.shape().str(), expected.shape().str()) << what;
  expect_close(got, reals(expected), tolerance, what);
}

/// Derivatives of a plain function by central differences of fourth order.
inline Reals differences(const std::function<double(const Reals&)>& f, const Reals& x, double step = 1e-3) {
  Reals out;
  for (std::size_t i = 0; i < x.size(); ++i) {
    auto at = [&](double moved) {
      Reals other = x;
      other[i] += moved;
      return f(other);
    };
    out.push_back((8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step));
  }
  return out;
}

}  // namespace stet
