// The floating remainder is exact whatever the quotient.
#include <bit>
#include <cmath>
#include <random>

#include "expect_error.h"

using namespace stet;

namespace {

template <class T>
struct Case {
  T x, y, numpy;
};

template <class T>
void expect_all(const std::vector<Case<T>>& cases) {
  std::vector<T> x, y, wanted;
  for (const Case<T>& one : cases) {
    x.push_back(one.x);
    y.push_back(one.y);
    wanted.push_back(one.numpy);
  }
  EXPECT_EQ(mod(tensor(x), tensor(y)).template to_vector<T>(), wanted);
  for (const Case<T>& one : cases) EXPECT_EQ(mod(tensor(one.x), tensor(one.y)).template item<T>(), one.numpy) << one.x;
}

TEST(Modulo, of_large_quotients_is_that_of_numpy) {
  expect_all<float>({{1e20f, 3, 2},
                     {-1e20f, 3, 1},
                     {1e20f, -3, -1},
                     {3.4028235e38f, 1e-45f, 0},
                     {3.4028235e38f, 0.1f, 0.05000001937150955f},
                     {1e30f, 7, 1},
                     {16777216, 0.3f, 0.03333336114883423f},
                     {5, 1e-40f, 4.2249148699393235e-41f},
                     {-1e-45f, 1e30f, 1e30f},
                     {1e38f, 9.1e37f, 8.99999474306677e+36f}});
  expect_all<double>({{1e20, 3, 1},  // 1e20 itself is not 2 modulo 3 but its nearest float is
                      {-1e300, 7, 6},
                      {1.7976931348623157e308, 5e-324, 0},
                      {1.7976931348623157e308, 3, 2},
                      {1e308, -0.1, -0.03906711615670008},
                      {0x1p1000, 0x3p-1000, 9.332636185032189e-302},
                      {1e-310, 3e-320, 4.125e-321},
                      {9007199254740992.0, 3, 2},
                      {6.305039478318695e+16, -11, -2}});
}

/// By the C library's fmod, which is exact.
template <class T>
T reference(T x, T y) {
  T rest = std::fmod(x, y);
  if (rest == 0) return std::copysign(T{0}, y);
  return (rest < 0) != (y < 0) ? rest + y : rest;
}

template <class T, class Bits>
void compare_random_bits() {
  std::mt19937_64 generator(5);
  std::vector<T> x, y;
  for (int i = 0; i < 4000; ++i) {
    x.push_back(std::bit_cast<T>(static_cast<Bits>(generator())));
    y.push_back(std::bit_cast<T>(static_cast<Bits>(generator())));
  }
  for (T special : {T{0}, -T{0}, std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(),
                    std::numeric_limits<T>::quiet_NaN(), T{1}, std::numeric_limits<T>::denorm_min()})
    for (T other :
         {T{0}, -T{0}, std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(), T{3}, T{-2}}) {
      x.push_back(special), y.push_back(other);
      x.push_back(other), y.push_back(special);
    }
  std::vector<T> got = mod(tensor(x), tensor(y)).template to_vector<T>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    T wanted = reference(x[i], y[i]);
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(got[i])) << x[i] << " % " << y[i];
    } else {
      EXPECT_EQ(std::bit_cast<Bits>(got[i]), std::bit_cast<Bits>(wanted)) << x[i] << " % " << y[i];
    }
  }
}

TEST(Modulo, of_any_two_floats_is_exact) { compare_random_bits<float, std::uint32_t>(); }
TEST(Modulo, of_any_two_doubles_is_exact) { compare_random_bits<double, std::uint64_t>(); }

TEST(Modulo, is_exact_inside_fused_code) {
  Function f = function("f(x, y)", [](Tensor x, Tensor y) { return sum((x * 2) % y + 1); });
  Tensor x = tensor({5e19f, 3.5f, -5e19f}), y = tensor({3.f, 3.f, 3.f});
  EXPECT_EQ(f(x, y).item<float>(), 2.f + 1 + 1 + 1 + 1 + 1);
}

}  // namespace
