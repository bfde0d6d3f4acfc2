// `using namespace stet` beside every C header: names of ops must not collide with the C library's.
#include <assert.h>
#include <complex.h>
#include <ctype.h>
#include <errno.h>
#include <fenv.h>
#include <float.h>
#include <gtest/gtest.h>
#include <inttypes.h>
#include <iso646.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <tgmath.h>
#include <time.h>
#include <uchar.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "stet/stet.h"

using namespace stet;

TEST(Headers, OpsResolveBesideTheCLibrary) {
  Tensor x = tensor({-1.5f, 2.25f});
  EXPECT_EQ(abs(x).to_vector<float>(), (std::vector<float>{1.5f, 2.25f}));
  EXPECT_EQ(round(x).to_vector<float>(), (std::vector<float>{-2, 2}));
  EXPECT_EQ(floor(x).to_vector<float>(), (std::vector<float>{-2, 2}));
  EXPECT_EQ(ceil(x).to_vector<float>(), (std::vector<float>{-1, 3}));
  EXPECT_EQ(sqrt(x * x).to_vector<float>(), (std::vector<float>{1.5f, 2.25f}));
  EXPECT_EQ(exp(x * 0).to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(pow(x, 2).to_vector<float>(), (std::vector<float>{2.25f, 5.0625f}));
  EXPECT_EQ(tanh(x - x).to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(log(x - x + 1).to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(sin(x - x).to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(cos(x - x).to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(erf(x - x).to_vector<float>(), (std::vector<float>{0, 0}));
  // Every name that the C library has too, of tensors and of numbers.
  Tensor half = tensor({0.5f, 0.5f}), y = tensor({2.0f, 3.0f});
  for (const Tensor& t : {acos(half), acosh(y), asin(half),     asinh(x),   atan(x),    atan2(x, y), atanh(half),
                          cbrt(x),    ceil(x),  copysign(x, y), cosh(x),    erf(x),     erfc(x),     exp2(x),
                          expm1(x),   floor(x), fmax(x, y),     fmin(x, y), fmod(x, y), hypot(x, y), isfinite(x),
                          isinf(x),   isnan(x), lgamma(y),      log10(y),   log1p(y),   log2(y),     nextafter(x, y),
                          pow(y, x),  round(x), signbit(x),     sinh(x),    tan(x),     trunc(x)})
    EXPECT_EQ(t.shape(), x.shape());
  for (double number :
       {acos(0.5),           acosh(2.0),      asin(0.5),   asinh(1.0),          atan(1.0),      atan2(1.0, 2.0),
        atanh(0.5),          cbrt(8.0),       ceil(0.5),   copysign(1.0, -1.0), cosh(1.0),      erf(1.0),
        erfc(1.0),           exp2(1.0),       expm1(1.0),  floor(0.5),          fmax(1.0, 2.0), fmin(1.0, 2.0),
        fmod(5.0, 3.0),      hypot(3.0, 4.0), lgamma(3.5), log10(2.0),          log1p(1.0),     log2(3.0),
        nextafter(1.0, 2.0), pow(2.0, 3.0),   round(0.7),  sinh(1.0),           tan(1.0),       trunc(1.5)})
    EXPECT_TRUE(std::isfinite(number));
  EXPECT_EQ(fmax(x, 0.0f).to_vector<float>(), (std::vector<float>{0, 2.25f}));  // a number beside a tensor
  EXPECT_EQ(abs(-3), 3);                                                        // the C library's
  EXPECT_EQ(std::abs(-3.5), 3.5);
}
