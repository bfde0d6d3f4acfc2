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
  EXPECT_EQ(abs(-3), 3);  // the C library's
  EXPECT_EQ(std::abs(-3.5), 3.5);
}
