// Numbers with infinitesimals e0, e1, e2 (each squares to 0): what a function of them carries along are its exact
// derivatives, mixed ones included. One infinitesimal for each tape that is open.
#pragma once
#include <cmath>

namespace stet::random_programs {

template <int L>
struct Hyper {
  Hyper<L - 1> v{}, d{};  // v + d * e(L-1)
  Hyper() = default;
  Hyper(double x) : v(x) {}
  Hyper(Hyper<L - 1> value, Hyper<L - 1> derivative) : v(value), d(derivative) {}
};
template <>
struct Hyper<0> {
  double v = 0;
  Hyper() = default;
  Hyper(double x) : v(x) {}
};

inline constexpr int levels = 3;
using Real = Hyper<levels>;

inline double plain(const Hyper<0>& x) { return x.v; }
template <int L>
double plain(const Hyper<L>& x) {
  return plain(x.v);
}

inline Hyper<0> operator+(Hyper<0> a, Hyper<0> b) { return a.v + b.v; }
inline Hyper<0> operator-(Hyper<0> a, Hyper<0> b) { return a.v - b.v; }
inline Hyper<0> operator*(Hyper<0> a, Hyper<0> b) { return a.v * b.v; }
inline Hyper<0> inverse(Hyper<0> a) { return 1 / a.v; }
template <int L>
Hyper<L> operator+(const Hyper<L>& a, const Hyper<L>& b) {
  return {a.v + b.v, a.d + b.d};
}
template <int L>
Hyper<L> operator-(const Hyper<L>& a, const Hyper<L>& b) {
  return {a.v - b.v, a.d - b.d};
}
template <int L>
Hyper<L> operator*(const Hyper<L>& a, const Hyper<L>& b) {
  return {a.v * b.v, a.v * b.d + a.d * b.v};
}
template <int L>
Hyper<L> inverse(const Hyper<L>& a) {
  Hyper<L - 1> i = inverse(a.v);
  return {i, (Hyper<L - 1>(0) - a.d) * i * i};
}
template <int L>
Hyper<L> operator/(const Hyper<L>& a, const Hyper<L>& b) {
  return a * inverse(b);
}

// A function with its derivative, in terms of functions of the same number.
#define STET_HYPER(name, value, derivative)          \
  inline Hyper<0> name(Hyper<0> x) { return value; } \
  template <int L>                                   \
  Hyper<L> name(const Hyper<L>& a) {                 \
    using H = Hyper<L - 1>;                          \
    const H& x = a.v;                                \
    return {name(x), a.d * (derivative)};            \
  }
STET_HYPER(exponential, std::exp(x.v), exponential(x))
STET_HYPER(logarithm, std::log(x.v), inverse(x))
STET_HYPER(root, std::sqrt(x.v), H(0.5) * inverse(root(x)))
STET_HYPER(hyperbolic_tangent, std::tanh(x.v), H(1) - hyperbolic_tangent(x) * hyperbolic_tangent(x))
STET_HYPER(error_function, std::erf(x.v), H(2 / std::sqrt(M_PI)) * exponential(H(0) - x * x))
STET_HYPER(logistic_function, 1 / (1 + std::exp(-x.v)), logistic_function(x) * (H(1) - logistic_function(x)))
#undef STET_HYPER
inline Hyper<0> sine(Hyper<0> x, int turn) { return std::sin(x.v + turn * M_PI / 2); }
template <int L>
Hyper<L> sine(const Hyper<L>& a, int turn) {
  return {sine(a.v, turn), a.d * sine(a.v, turn + 1)};
}

// The infinitesimal of one level: added, and taken out.
inline Hyper<0> with_infinitesimal(Hyper<0> x, int) { return x; }
template <int L>
Hyper<L> with_infinitesimal(Hyper<L> x, int level) {
  if (level == L - 1)
    x.d = x.d + Hyper<L - 1>(1);
  else
    x.v = with_infinitesimal(x.v, level);
  return x;
}
inline Hyper<0> derivative_at(Hyper<0>, int) { return 0; }
template <int L>
Hyper<L> derivative_at(const Hyper<L>& x, int level) {
  if (level == L - 1) return {x.d, Hyper<L - 1>(0)};
  return {derivative_at(x.v, level), derivative_at(x.d, level)};
}

}  // namespace stet::random_programs
