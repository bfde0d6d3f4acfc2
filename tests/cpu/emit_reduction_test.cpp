// Generated reductions of hand-made kernels against their meaning, short and long.
#include <gtest/gtest.h>

#include <limits>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/cpu/emit_kernel.h"
#include "stet/cpu/kernel_step.h"
#include "stet/runtime/parallel.h"
#include "tests/cpu/kernel_harness.h"
#include "tests/sampling.h"

namespace stet::cpu {
namespace {

using Buffers = std::vector<GuardedMemory>;
constexpr double infinity = std::numeric_limits<double>::infinity(),
                 not_a_number = std::numeric_limits<double>::quiet_NaN();

double small(std::int64_t i) { return static_cast<double>(i * 37 % 23) - 11; }

bool is_position(Combine combine) { return combine == Combine::argmax || combine == Combine::argmin; }

/// x [rows, columns] combined along its columns (a row kernel) or along its rows (a column kernel).
Kernel reduction(Combine combine, DType type, std::int64_t rows, std::int64_t columns, bool along_columns) {
  DType accumulator = compute_type(type), stored = is_position(combine) ? DType::i64 : accumulator;
  Kernel kernel;
  kernel.name = "reduction";
  kernel.combine = combine;
  kernel.body = scalar::cast(operand(0, type), accumulator);
  kernel.loops = {{rows, !along_columns}, {columns, along_columns}};
  kernel.operands = {memory(type, 0, 0, {columns, 1})};
  kernel.result = memory(stored, 1, 0, along_columns ? std::vector<Dim>{1, 0} : std::vector<Dim>{0, 1});
  kernel.buffer_count = 2;
  return kernel;
}

Buffers memory_for(const Kernel& kernel, DType type, std::int64_t rows, std::int64_t columns, bool along_columns,
                   double (*value)(std::int64_t)) {
  Buffers out;
  out.push_back(GuardedMemory::filled(type, rows * columns, value));
  out.emplace_back(kernel.result.dtype, along_columns ? rows : columns);
  return out;
}

void expect_meaning(const Kernel& kernel, const Buffers& given) {
  Buffers expected = given;
  KernelReference(kernel, expected).run();
  for (bool checked : {false, true}) {
    Buffers got = given;
    ASSERT_EQ(launch(kernel, got, {.checked = checked}).check, 0) << kernel.str();
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(got[i].same(expected[i])) << "checked " << checked << " buffer " << i << "\n" << kernel.str();
      ASSERT_TRUE(got[i].guards_intact()) << "checked " << checked << " buffer " << i << "\n" << kernel.str();
    }
  }
}

constexpr Combine combines[] = {Combine::sum,     Combine::product, Combine::maximum,
                                Combine::minimum, Combine::argmax,  Combine::argmin};

TEST(EmitReduction, EveryCombineOfEveryType) {
  std::uint64_t number = 0;
  for (Combine combine : combines)
    for (const DTypeRow& type : dtype_table) {
      if (type.dtype == DType::bool_ && (combine == Combine::sum || combine == Combine::product)) continue;
      for (bool along_columns : {true, false})
        for (std::int64_t rows : {3, 70})
          for (std::int64_t columns : {2, 16, 67, 300}) {
            if (!visits("reductions", number++, 4)) continue;
            // Products of powers of two, so that floating ones are exact.
            auto value = combine == Combine::product
                             ? [](std::int64_t i) { return i % 9 == 0   ? -2.0
                                                           : i % 9 == 4 ? 0.5
                                                                        : 1.0; }
                             : small;
            if (combine == Combine::product && !is_floating(type.dtype))
              value = [](std::int64_t i) { return double(i % 5 + 1); };
            Kernel kernel = reduction(combine, type.dtype, rows, columns, along_columns);
            expect_meaning(kernel, memory_for(kernel, type.dtype, rows, columns, along_columns, value));
          }
    }
}

TEST(EmitReduction, EveryLengthFrom0To130) {
  for (Combine combine : {Combine::sum, Combine::maximum, Combine::argmin})
    for (bool along_columns : {true, false})
      for (std::int64_t n = 0; n <= 130; ++n) {
        std::int64_t rows = along_columns ? 2 : n, columns = along_columns ? n : 2;
        Kernel kernel = reduction(combine, f32, rows, columns, along_columns);
        expect_meaning(kernel, memory_for(kernel, f32, rows, columns, along_columns, small));
        if (along_columns) continue;
        Kernel wide = reduction(combine, f32, 3, n, false);
        expect_meaning(wide, memory_for(wide, f32, 3, n, false, small));
      }
}

TEST(EmitReduction, NothingCombinedIsTheIdentity) {
  for (DType type : {u8, i32, f32, f64})
    for (bool along_columns : {true, false}) {
      std::int64_t rows = along_columns ? 5 : 0, columns = along_columns ? 0 : 5;
      double expected[] = {0, 1, is_floating(type) ? -infinity : double(row(type).lowest),
                           is_floating(type) ? infinity : double(row(type).highest)};
      for (int i = 0; i < 4; ++i) {
        Kernel kernel = reduction(combines[i], type, rows, columns, along_columns);
        Buffers buffers = memory_for(kernel, type, rows, columns, along_columns, small);
        ASSERT_EQ(launch(kernel, buffers).check, 0);
        for (std::int64_t at = 0; at < 5; ++at) EXPECT_EQ(buffers[1].real(at), expected[i]) << name(combines[i]);
      }
    }
}

/// The reduction of these values, as a row and as a column, at several places among lanes.
void expect_reduced(Combine combine, std::vector<double> values, double expected) {
  for (std::size_t padding : {0u, 1u, 17u, 100u}) {
    std::vector<double> all = values;
    double filler = combine == Combine::maximum || combine == Combine::argmax ? -infinity : infinity;
    all.insert(all.end(), padding, filler);
    auto n = static_cast<std::int64_t>(all.size());
    for (DType type : {f32, f64, f16})
      for (bool along_columns : {true, false}) {
        Kernel kernel = reduction(combine, type, along_columns ? 1 : n, along_columns ? n : 1, along_columns);
        Buffers buffers;
        buffers.push_back(
            GuardedMemory::filled(type, n, [&](std::int64_t i) { return all[static_cast<std::size_t>(i)]; }));
        buffers.emplace_back(kernel.result.dtype, 1);
        ASSERT_EQ(launch(kernel, buffers).check, 0);
        double got = buffers[1].real(0);
        EXPECT_TRUE(got == expected || (got != got && expected != expected))
            << name(combine) << " " << name(type) << " padding " << padding << " row " << along_columns << ": " << got
            << ", not " << expected;
      }
  }
}

TEST(EmitReduction, NaNWins) {
  for (std::size_t at : {0u, 1u, 15u, 16u, 40u, 49u}) {
    std::vector<double> values(50, 1);
    values[30] = infinity;
    values[31] = -infinity;
    values[at] = not_a_number;
    for (Combine combine : {Combine::maximum, Combine::minimum}) expect_reduced(combine, values, not_a_number);
    expect_reduced(Combine::argmax, values, static_cast<double>(at));
    expect_reduced(Combine::argmin, values, static_cast<double>(at));
    values[at < 45 ? 45 : 2] = not_a_number;  // the first one counts
    expect_reduced(Combine::argmax, values, static_cast<double>(std::min<std::size_t>(at, at < 45 ? 45 : 2)));
  }
}

TEST(EmitReduction, TheFirstOfEqualExtremesIsThePosition) {
  std::vector<double> values(70, 0);
  for (std::size_t at : {3u, 19u, 35u, 69u}) values[at] = 5;
  expect_reduced(Combine::argmax, values, 3);
  values[3] = 0;
  expect_reduced(Combine::argmax, values, 19);
  expect_reduced(Combine::argmin, values, 0);
  // All equal, and all as low as can be.
  expect_reduced(Combine::argmax, std::vector<double>(40, 7), 0);
  expect_reduced(Combine::argmax, std::vector<double>(40, -infinity), 0);
  expect_reduced(Combine::argmin, std::vector<double>(40, infinity), 0);
}

TEST(EmitReduction, KeptAndReducedLoopsInEveryOrder) {
  // The last loop kept or reduced, with kept and reduced ones before it.
  std::int64_t extents[] = {3, 4, 2, 21};
  for (unsigned mask = 1; mask < 16; ++mask) {
    Kernel kernel;
    kernel.name = "mixed";
    kernel.combine = Combine::sum;
    kernel.body = operand(0, f32) * operand(1, f32) + scalar::cast(loop_index(1), f32);
    std::vector<Dim> result(4, Dim(0));
    std::int64_t kept = 1;
    for (int i = 3; i >= 0; --i)
      if (!(mask >> i & 1)) {
        result[static_cast<std::size_t>(i)] = kept;
        kept *= extents[i];
      }
    for (int i = 0; i < 4; ++i) kernel.loops.push_back({extents[i], (mask >> i & 1) != 0});
    kernel.operands = {memory(f32, 0, 0, {168, 42, 21, 1}), memory(f32, 1, 0, {1, 3, 0, 0})};
    kernel.epilogue = operand(0, f32) / operand(1, f32) + operand(2, f32);
    kernel.epilogue_operands = {number_access(f32, 4), memory(f32, 2, 0, result)};
    kernel.result = memory(f32, 3, 0, result);
    kernel.buffer_count = 4;
    expect_meaning(kernel, {GuardedMemory::filled(f32, 504, small), GuardedMemory::filled(f32, 12, small),
                            GuardedMemory::filled(f32, kept, small), GuardedMemory(f32, kept)});
  }
}

TEST(EmitReduction, ChunksOfRowsAndOfColumnsMakeTheWhole) {
  for (bool along_columns : {true, false}) {
    std::int64_t rows = 45, columns = 83, total = along_columns ? rows : columns;
    Kernel kernel = reduction(Combine::sum, f32, rows, columns, along_columns);
    Buffers whole = memory_for(kernel, f32, rows, columns, along_columns,
                               [](std::int64_t i) { return std::sin(static_cast<double>(i)); }),
            parts = whole;
    launch(kernel, whole);
    for (std::int64_t begin = 0; begin < total; begin += 32)
      launch(kernel, parts, {}, begin, std::min(total, begin + 32));
    EXPECT_TRUE(parts[1].same(whole[1]));
    EXPECT_TRUE(parts[1].guards_intact());
  }
}

TEST(EmitReduction, CheckedModeCatchesAccessesOfReductions) {
  for (bool along_columns : {true, false})
    for (std::size_t wrong : {0u, 1u, 2u}) {
      Kernel kernel = reduction(Combine::sum, f32, 9, 33, along_columns);
      kernel.result.buffer = 2;
      kernel.epilogue = operand(0, f32) + operand(1, f32);
      kernel.epilogue_operands = {kernel.result};
      kernel.epilogue_operands[0].buffer = 1;
      kernel.buffer_count = 3;
      std::int64_t kept = along_columns ? 9 : 33;
      Buffers buffers{GuardedMemory::filled(f32, 297, small), GuardedMemory::filled(f32, kept, small),
                      GuardedMemory(f32, kept)};
      std::vector<std::int64_t> extents{297, kept, kept};
      extents[wrong] -= 1;
      KernelStatus status = launch(kernel, buffers, {.checked = true}, 0, launch_positions(kernel), extents);
      EXPECT_EQ(status.check, bounds_check_base + static_cast<std::int64_t>(wrong));
      for (const GuardedMemory& memory : buffers) EXPECT_TRUE(memory.guards_intact());
    }
}

// --- long reductions, cut into blocks

struct LongReduction {
  std::vector<Loop> loops;
  std::vector<Dim> strides;
  const char* name;
};

TEST(EmitReduction, LongReductionsAgainstDoublePrecision) {
  const LongReduction shapes[] = {
      {{{100003, true}}, {1}, "one long row"},
      {{{3, false}, {70001, true}}, {70001, 1}, "long rows"},
      {{{9001, true}, {5, false}}, {5, 1}, "long columns"},
      {{{20011, true}, {130, false}}, {130, 1}, "long and wide columns"},
      {{{2, false}, {300, true}, {401, true}}, {300 * 401, 401, 1}, "two reduced loops"},
      {{{2, false}, {4500, true}, {7, false}}, {4500 * 7, 7, 1}, "a reduced loop between kept ones"},
      {{{5, true}, {2, false}, {20000, true}}, {40000, 20000, 1}, "reduced loops around a kept one"},
      {{{40000, true}, {3, true}, {2, false}}, {6, 2, 1}, "two reduced loops, kept last"},
  };
  int threads = thread_count();
  bool before = checked_kernels();
  std::uint64_t number = 0;
  for (const LongReduction& shape : shapes)
    for (Combine combine : {Combine::sum, Combine::maximum})
      for (bool checked : {false, true}) {
        if (!visits("long reductions", number++, 3)) continue;
        SCOPED_TRACE(testing::Message() << shape.name << " " << name(combine) << " checked " << checked);
        Kernel kernel;
        kernel.name = shape.name;
        kernel.loops = shape.loops;
        kernel.combine = combine;
        kernel.body = operand(0, f32);
        kernel.operands = {memory(f32, 0, 0, shape.strides)};
        std::vector<Dim> result(shape.loops.size(), Dim(0));
        std::int64_t kept = 1, reduced = 1, all = 1;
        for (std::size_t i = shape.loops.size(); i-- > 0;) {
          std::int64_t extent = shape.loops[i].extent.constant();
          all *= extent;
          if (shape.loops[i].reduced) {
            reduced *= extent;
          } else {
            result[i] = kept;
            kept *= extent;
          }
        }
        kernel.epilogue = operand(0, f32) * operand(1, f32);
        kernel.epilogue_operands = {memory(f32, 1, 0, result)};
        kernel.result = memory(f32, 2, 0, result);
        kernel.buffer_count = 3;
        set_checked_kernels(checked);
        KernelStep step({kernel, {0, 1, 2}, {all, kept, kept}, {}});
        step.hold_code(shared_code(step.code_requests()));
        GuardedMemory x =
            GuardedMemory::filled(f32, all, [](std::int64_t i) { return std::sin(double(i % 99991)) + 0.1; });
        GuardedMemory factor = GuardedMemory::filled(f32, kept, [](std::int64_t i) { return i % 2 ? 0.5 : 2.0; });
        std::vector<double> sums(static_cast<std::size_t>(kept), combine == Combine::sum ? 0 : -infinity),
            magnitudes(sums.size(), 0);
        for (std::int64_t flat = 0; flat < all; ++flat) {
          std::int64_t rest = flat, place = 0;
          for (std::size_t i = shape.loops.size(); i-- > 0;) {
            std::int64_t extent = shape.loops[i].extent.constant();
            place += rest % extent * result[i].constant();
            rest /= extent;
          }
          auto at = static_cast<std::size_t>(place);
          sums[at] = combine == Combine::sum ? sums[at] + x.real(flat) : std::max(sums[at], x.real(flat));
          magnitudes[at] += std::abs(x.real(flat));
        }
        GuardedMemory one(f32, kept), two(f32, kept);
        std::unique_ptr<BoundStep> bound = step.bind(Bindings());
        for (int count : {1, 2}) {
          set_thread_count(count);
          GuardedMemory& to = count == 1 ? one : two;
          void* table[] = {x.data(), factor.data(), to.data()};
          bound->run(table);
          EXPECT_TRUE(to.guards_intact());
        }
        for (std::int64_t i = 0; i < kept; ++i) {
          auto at = static_cast<std::size_t>(i);
          // Lanes and blocks keep the error far below that of a plain loop: 64 units of the sum of magnitudes.
          double bound_on_error = combine == Combine::sum ? 64 * 0x1p-24 * magnitudes[at] * factor.real(i) : 0;
          EXPECT_NEAR(one.real(i), sums[at] * factor.real(i), bound_on_error) << i;
          EXPECT_EQ(one.bits(i), two.bits(i)) << i;
        }
      }
  set_thread_count(threads);
  set_checked_kernels(before);
}

TEST(EmitReduction, LongIntegerSumsWrapAndPositionsAreNotCut) {
  int count = 200000;
  for (Combine combine : {Combine::sum, Combine::product, Combine::argmax}) {
    Kernel kernel = reduction(combine, i32, 1, count, true);
    KernelStep step({kernel, {0, 1}, {count, 1}, {}});
    step.hold_code(shared_code(step.code_requests()));
    Buffers buffers = memory_for(kernel, i32, 1, count, true, [](std::int64_t i) {
      return i == 150001 ? 2147483647.0 : double(i * 7919 % 2000003) + 1;
    });
    Buffers expected = buffers;
    KernelReference(kernel, expected).run();
    void* table[] = {buffers[0].data(), buffers[1].data()};
    step.bind(Bindings())->run(table);
    EXPECT_EQ(buffers[1].bits(0), expected[1].bits(0)) << name(combine);
  }
}

TEST(EmitReduction, ABadIndexInALongReductionIsReported) {
  std::int64_t n = 100000;
  Kernel kernel;
  kernel.name = "gathered sum";
  kernel.combine = Combine::sum;
  kernel.loops = {{n, true}};
  Access x = memory(f32, 1, 0, {0});
  x.indirections = {{.operand = 0, .stride = 1, .extent = 10, .check = 1}};
  kernel.operands = {memory(i64, 0, 0, {1}), x};
  kernel.body = operand(1, f32);
  kernel.result = memory(f32, 2, 0, {0});
  kernel.buffer_count = 3;
  KernelStep step({kernel, {0, 1, 2}, {n, 10, 1}, {{"indices", 10}}});
  step.hold_code(shared_code(step.code_requests()));
  GuardedMemory indices =
      GuardedMemory::filled(i64, n, [](std::int64_t i) { return i == 77777 || i == 99999 ? 12 : 3; });
  GuardedMemory values = GuardedMemory::filled(f32, 10, small), sum(f32, 1);
  void* table[] = {indices.data(), values.data(), sum.data()};
  try {
    step.bind(Bindings())->run(table);
    ADD_FAILURE() << "nothing was reported";
  } catch (const Problem& problem) {
    EXPECT_EQ(problem.text(), "'indices' holds index 12 at position 77777, out of range: allowed are 0 to 9");
  }
}

}  // namespace
}  // namespace stet::cpu
