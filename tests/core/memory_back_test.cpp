// What traces took comes back when they are forgotten: expressions, code, and all the rest.
#include <gtest/gtest.h>
#include <malloc.h>

#include "stet/cpu/jit.h"
#include "stet/stet.h"

namespace stet {
namespace {

struct Taken {
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
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    EXPECT_LE(late.heap, early.heap + 500'000);
#endif
    f.clear();
  }
  cpu::forget_loaded_code();
  EXPECT_LE(Taken().functions, before.functions);
  on_retrace({});
}

}  // namespace
}  // namespace stet
