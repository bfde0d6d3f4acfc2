// The first use of an op in a fresh process: with an empty object cache, when LLVM compiles it, and with a filled one.
//
//   first_use            the parent: starts itself again for every sample and prints the table
//   first_use add|sum|matmul   one sample: nanoseconds of the first call, its operands already made
#include <cstring>

#include "bench/process.h"
#include "stet/stet.h"

namespace {

constexpr int processes = 10;

int sample(const char* op) {
  // Made from memory, not by an op: nothing is compiled before the clock runs.
  std::vector<float> values(64 * 64, 1.f);
  stet::Tensor a = stet::tensor(values, stet::Shape{64, 64}), b = stet::tensor(values, stet::Shape{64, 64});
  double begin = bench::now_ns();
  stet::Tensor result = std::strcmp(op, "add") == 0   ? a + b
                        : std::strcmp(op, "sum") == 0 ? stet::sum(a, {-1})
                                                      : stet::matmul(a, b);
  double end = bench::now_ns();
  std::printf("%.0f\n", end - begin);
  return result.defined() ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1) return sample(arguments[1]);
  bench::print_head();
  bench::Folder folder;
  struct Goal {
    const char *op, *name;
    double cold_ms, warm_ms;
  };
  for (const Goal& goal :
       {Goal{"add", "add", 15, 2}, Goal{"sum", "sum of rows", 15, 2}, Goal{"matmul", "matmul", 25, 3}}) {
    bench::print_cold_and_warm(std::string("first ") + goal.name, folder, {"first_use", goal.op}, processes, 1e-6,
                               goal.cold_ms, goal.warm_ms);
  }
}
