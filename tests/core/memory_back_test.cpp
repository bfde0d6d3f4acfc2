// What traces took comes back when they are forgotten: expressions, code, and all the rest.
#include <gtest/gtest.h>
#include <malloc.h>

#include "stet/cpu/jit.h"
#include "stet/ir/expr.h"
#include "stet/stet.h"

namespace stet {
namespace {

struct Taken {
  std::size_t expressions = live_expressions();
  std::uint64_t functions = cpu::code_statistics().in_memory;
  std::size_t heap = mallinfo2().uordblks;
};

TEST(MemoryBack, TracesThatWereForgottenLeaveNothing) {
  on_retrace([](const RetraceEvent&) {});
  Tensor x = ones({8});
  Taken before;
  {
    // Other kernels in every trace.
    Function f = function("f(x, n)",
                          [](Tensor x, int n) {
                            for (int i = 0; i < 8; ++i) x = n >> i & 1 ? abs(x) + 1 : x * 2;
                            return x;
                          },
                          {.max_traces = 4});
    for (int n = 0; n < 100; ++n) f(x, n);
    Taken early;
    for (int n = 100; n < 250; ++n) f(x, n);
    Taken late;
    // 64 functions that were loaded last stay for a while.
    EXPECT_LE(late.functions, before.functions + 64 + 8);
    EXPECT_LE(late.expressions, early.expressions + 200);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    EXPECT_LE(late.heap, early.heap + 150'000);
#endif
    f.clear();
  }
  cpu::forget_loaded_code();
  Taken after;
  EXPECT_LE(after.expressions, before.expressions + 100);  // those of eager programs
  on_retrace({});
}

TEST(MemoryBack, ExpressionsGoWhenNobodyHoldsThem) {
  std::size_t before = live_expressions();
  {
    Expr x = operand(0, DType::f32), sum = x;
    for (int i = 0; i < 100'000; ++i) sum = sum + constant(1.0 / (i + 3), DType::f32);  // a long chain
    EXPECT_GE(live_expressions(), before + 100'000);
    EXPECT_EQ(sum, sum);
    Expr again = operand(0, DType::f32);
    EXPECT_EQ(again, x);
  }
  EXPECT_EQ(live_expressions(), before);
}

}  // namespace
}  // namespace stet
