// Generated code of hand-made kernels against their meaning: accesses, guards, indirections, tails, chunks, checks.
// Reductions have a file of their own.
#include "stet/cpu/emit_kernel.h"

#include <gtest/gtest.h>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/cpu/kernel_step.h"
#include "stet/ir/graph.h"
#include "tests/cpu/kernel_harness.h"

namespace stet::cpu {
namespace {

using Buffers = std::vector<GuardedMemory>;

double small(std::int64_t i) { return static_cast<double>(i * 37 % 23) - 11; }

/// Runs the kernel in all ways and compares with the reference; the last buffer is the result's.
void expect_meaning(const Kernel& kernel, const Buffers& given) {
  Buffers expected = given;
  KernelReference(kernel, expected).run();
  for (bool checked : {false, true}) {
    Buffers got = given;
    KernelStatus status = launch(kernel, got, {.checked = checked});
    ASSERT_EQ(status.check, 0) << "checked " << checked << " value " << status.value << "\n" << kernel.str();
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(got[i].same(expected[i])) << "checked " << checked << " buffer " << i << "\n" << kernel.str();
      EXPECT_TRUE(got[i].guards_intact()) << "checked " << checked << " buffer " << i << "\n" << kernel.str();
    }
  }
}

Kernel map_of(Expr body, std::vector<Loop> loops, std::vector<Access> operands, Access result) {
  Kernel kernel;
  kernel.name = "test";
  kernel.body = body;
  kernel.loops = std::move(loops);
  kernel.operands = std::move(operands);
  kernel.result = std::move(result);
  for (const Access& access : kernel.operands)
    if (access.source == Access::memory) kernel.buffer_count = std::max(kernel.buffer_count, access.buffer + 1);
  kernel.buffer_count = std::max(kernel.buffer_count, kernel.result.buffer + 1);
  return kernel;
}

/// An operand of a type, as the body's operand `number` doubled (or itself, of bool).
Expr doubled(int number, DType dtype) {
  Expr x = operand(number, dtype);
  return dtype == DType::bool_ ? x : x + x;
}

TEST(EmitKernel, EveryStrideOfEveryType) {
  for (const DTypeRow& type : dtype_table)
    for (std::int64_t stride : {0, 1, 3, -1, -2})
      for (std::int64_t n : {1, 2, 15, 16, 17, 130}) {
        std::int64_t magnitude = stride < 0 ? -stride : stride;
        std::int64_t reach = (n - 1) * magnitude + 1;
        Kernel kernel =
            map_of(doubled(0, type.dtype), {{n, false}}, {memory(type.dtype, 0, stride < 0 ? reach - 1 : 0, {stride})},
                   memory(type.dtype, 1, 0, {1}));
        expect_meaning(kernel, {GuardedMemory::filled(type.dtype, reach, small), GuardedMemory(type.dtype, n)});
      }
}

TEST(EmitKernel, SeveralResultsOfSeveralTypesAndPlaces) {
  Expr x = operand(0, f32), y = operand(1, f32), z = operand(2, i64);
  for (std::int64_t rows : {1, 3})
    for (std::int64_t n : {1, 15, 16, 17, 130}) {
      Kernel kernel = map_of(x + y, {{rows, false}, {n, false}},
                             {memory(f32, 0, 0, {n, 1}), memory(f32, 1, 0, {0, 1}), memory(i64, 2, 0, {n, 1})},
                             memory(f32, 3, 0, {n, 1}));
      kernel.further = {{(x + y) * x, memory(f32, 4, 0, {1, rows})},  // transposed
                        {x < y, memory(DType::bool_, 5, 0, {n, 1})},
                        {z + loop_index(0), memory(i64, 6, 2, {n, 1})},
                        {scalar::cast(scalar::exp(x) + y, DType::f16), memory(DType::f16, 7, 0, {2 * n, 2})}};
      kernel.buffer_count = 8;
      std::int64_t all = rows * n;
      expect_meaning(
          kernel, {GuardedMemory::filled(f32, all, small), GuardedMemory::filled(f32, n, small),
                   GuardedMemory::filled(i64, all, small), GuardedMemory(f32, all), GuardedMemory(f32, all),
                   GuardedMemory(DType::bool_, all), GuardedMemory(i64, all + 2), GuardedMemory(DType::f16, 2 * all)});
    }
}

TEST(EmitKernel, ResultsMayLieWhereOperandsLay) {
  // Each is read by every body, and overwritten by one.
  Expr m = operand(0, f32), v = operand(1, f32), d = operand(2, f32);
  for (std::int64_t n : {1, 16, 33, 130}) {
    Kernel kernel =
        map_of(m + (d - m) * 0.5, {{n, false}},
               {memory(f32, 0, 0, {1}), memory(f32, 1, 0, {1}), memory(f32, 2, 0, {1})}, memory(f32, 0, 0, {1}));
    kernel.further = {{v + d * m, memory(f32, 1, 0, {1})}, {m * v - d, memory(f32, 2, 0, {1})}};
    expect_meaning(kernel, {GuardedMemory::filled(f32, n, small),
                            GuardedMemory::filled(f32, n, [](std::int64_t i) { return small(i + 5); }),
                            GuardedMemory::filled(f32, n, [](std::int64_t i) { return small(i + 9); })});
  }
}

TEST(EmitKernel, StridedResultsLeaveTheGapsAlone) {
  for (DType type : {DType::u8, DType::i16, DType::f32, DType::f64})
    for (std::int64_t stride : {2, 5, -3}) {
      std::int64_t n = 37, magnitude = stride < 0 ? -stride : stride, reach = (n - 1) * magnitude + 1;
      Kernel kernel = map_of(doubled(0, type), {{n, false}}, {memory(type, 0, 0, {1})},
                             memory(type, 1, stride < 0 ? reach - 1 : 0, {stride}));
      expect_meaning(kernel, {GuardedMemory::filled(type, n, small), GuardedMemory(type, reach)});
    }
}

TEST(EmitKernel, ThreeLoopsWithBroadcastTransposedAndReversedOperands) {
  std::int64_t a = 3, b = 5, c = 19;
  Expr x = operand(0, f32), y = operand(1, f32), z = operand(2, f32), w = operand(3, f32);
  Kernel kernel = map_of(x * y + z - w, {{a, false}, {b, false}, {c, false}},
                         {memory(f32, 0, 0, {b * c, c, 1}), memory(f32, 1, 0, {1, 0, a}),
                          memory(f32, 2, b - 1, {0, -1, 0}), memory(f32, 3, c * b - 1, {0, -c, -1})},
                         memory(f32, 4, 0, {b * c, c, 1}));
  expect_meaning(kernel, {GuardedMemory::filled(f32, a * b * c, small), GuardedMemory::filled(f32, a * c, small),
                          GuardedMemory::filled(f32, b, small), GuardedMemory::filled(f32, b * c, small),
                          GuardedMemory(f32, a * b * c)});
}

TEST(EmitKernel, TypesOfDifferentWidths) {
  // The widest type decides the lanes; narrow ones are loaded and stored in parts of a register.
  Expr sum = scalar::cast(operand(0, u8), f64) + scalar::cast(operand(1, i16), f64) + operand(2, f64);
  for (DType to : {u8, i32, f16, f64}) {
    Kernel kernel =
        map_of(scalar::cast(sum, to), {{45, false}},
               {memory(u8, 0, 0, {1}), memory(i16, 1, 0, {1}), memory(f64, 2, 0, {1})}, memory(to, 3, 0, {1}));
    expect_meaning(
        kernel, {GuardedMemory::filled(u8, 45, [](std::int64_t i) { return i; }), GuardedMemory::filled(i16, 45, small),
                 GuardedMemory::filled(f64, 45, small), GuardedMemory(to, 45)});
  }
}

TEST(EmitKernel, NumbersAsOperandsOfEveryType) {
  for (const DTypeRow& type : dtype_table)
    for (std::int64_t value : {0, 1, 7, 259, -3}) {
      Kernel kernel = map_of(operand(0, type.dtype), {{21, false}}, {number_access(type.dtype, value)},
                             memory(type.dtype, 0, 0, {1}));
      expect_meaning(kernel, {GuardedMemory(type.dtype, 21)});
    }
}

TEST(EmitKernel, LoopIndicesInTheBody) {
  Expr body = loop_index(0) * 100 + loop_index(1);
  expect_meaning(map_of(body, {{4, false}, {21, false}}, {}, memory(i64, 0, 0, {21, 1})), {GuardedMemory(i64, 84)});
}

// --- tails and chunks

TEST(EmitKernel, EveryLengthFrom0To130) {
  for (DType type : {DType::bool_, DType::i16, DType::f32, DType::f64}) {
    for (std::int64_t n = 0; n <= 130; ++n) {
      // The length is a number of the kernel, but for 0 and 1: the code is the same for all others.
      Kernel kernel = map_of(doubled(0, type), {{n, false}}, {memory(type, 0, 0, {1})}, memory(type, 1, 0, {1}));
      expect_meaning(kernel, {GuardedMemory::filled(type, n, small), GuardedMemory(type, n)});
    }
  }
}

TEST(EmitKernel, ChunksWithUnalignedEndsMakeTheWhole) {
  std::int64_t n = 1000;
  Kernel kernel = map_of(operand(0, f32) * operand(1, f32), {{n, false}},
                         {memory(f32, 0, 0, {1}), memory(f32, 1, 0, {3})}, memory(f32, 2, 0, {1}));
  Buffers given{GuardedMemory::filled(f32, n, small), GuardedMemory::filled(f32, 3 * n, small), GuardedMemory(f32, n)};
  Buffers whole = given;
  launch(kernel, whole);
  for (std::int64_t step : {1, 7, 63, 64, 65, 333, 999}) {
    Buffers parts = given;
    for (std::int64_t begin = 0; begin < n; begin += step) launch(kernel, parts, {}, begin, std::min(n, begin + step));
    EXPECT_TRUE(parts[2].same(whole[2])) << step;
    EXPECT_TRUE(parts[2].guards_intact()) << step;
  }
  // Only what was asked for is written.
  Buffers middle = given;
  launch(kernel, middle, {}, 333, 666);
  for (std::int64_t i = 0; i < n; ++i)
    EXPECT_EQ(middle[2].bits(i), i >= 333 && i < 666 ? whole[2].bits(i) : given[2].bits(i)) << i;
}

TEST(EmitKernel, ChunksOfRowsMakeTheWhole) {
  std::int64_t a = 3, b = 7, c = 21;
  Kernel kernel =
      map_of(operand(0, f32) + operand(1, f32), {{a, false}, {b, false}, {c, false}},
             {memory(f32, 0, 0, {1, a, a * b}), memory(f32, 1, 0, {0, c, 1})}, memory(f32, 2, 0, {b * c, c, 1}));
  Buffers given{GuardedMemory::filled(f32, a * b * c, small), GuardedMemory::filled(f32, b * c, small),
                GuardedMemory(f32, a * b * c)};
  Buffers whole = given, parts = given;
  launch(kernel, whole);
  for (std::int64_t begin = 0; begin < a * b; begin += 4) launch(kernel, parts, {}, begin, std::min(a * b, begin + 4));
  EXPECT_TRUE(parts[2].same(whole[2]));
}

TEST(EmitKernel, StoringAroundTheCacheGivesTheSameBits) {
  for (DType type : {DType::u8, DType::f16, DType::f32, DType::f64})
    for (std::int64_t n : {5, 64, 1000}) {
      Kernel kernel = map_of(doubled(0, type), {{n, false}}, {memory(type, 0, 0, {1})}, memory(type, 1, 0, {1}));
      Buffers ordinary{GuardedMemory::filled(type, n, small), GuardedMemory(type, n)}, around = ordinary;
      launch(kernel, ordinary);
      launch(kernel, around, {.checked = false, .nontemporal = true});
      EXPECT_TRUE(around[1].same(ordinary[1]));
      EXPECT_TRUE(around[1].guards_intact());
    }
}

// --- guards

TEST(EmitKernel, GuardsReadZeroOutside) {
  // A window that hangs over both ends, contiguous and strided, and one that both loops move.
  std::int64_t n = 20;
  for (std::int64_t stride : {1, 2}) {
    Access x = memory(f32, 0, -3, {stride});
    x.guards = {{{-3, {stride}}, n}};
    expect_meaning(map_of(operand(0, f32) + 1, {{40, false}}, {x}, memory(f32, 1, 0, {1})),
                   {GuardedMemory::filled(f32, n, small), GuardedMemory(f32, 40)});
  }
  std::int64_t h = 4, w = 9;
  Access image = memory(f32, 0, -w - 1, {w, 1});
  image.guards = {{{-1, {1, 0}}, h}, {{-1, {0, 1}}, w}};
  expect_meaning(map_of(operand(0, f32), {{h + 2, false}, {w + 2, false}}, {image}, memory(f32, 1, 0, {w + 2, 1})),
                 {GuardedMemory::filled(f32, h * w, small), GuardedMemory(f32, (h + 2) * (w + 2))});
}

TEST(EmitKernel, GuardedOperandsThatStandStillAlongTheLastLoop) {
  std::int64_t n = 6;
  Access x = memory(f32, 0, -2, {1, 0});
  x.guards = {{{-2, {1, 0}}, n}};
  expect_meaning(map_of(operand(0, f32), {{n + 4, false}, {33, false}}, {x}, memory(f32, 1, 0, {33, 1})),
                 {GuardedMemory::filled(f32, n, small), GuardedMemory(f32, (n + 4) * 33)});
}

TEST(EmitKernel, GuardsOfAnEmptyBufferTouchNothing) {
  Access still = memory(f32, 0, 0, {1, 0}), moving = memory(f32, 0, 0, {0, 1});
  still.guards = {{{0, {1, 0}}, 0}};
  moving.guards = {{{0, {0, 1}}, 0}};
  for (const Access& x : {still, moving}) {
    Kernel kernel = map_of(operand(0, f32), {{3, false}, {17, false}}, {x}, memory(f32, 1, 0, {17, 1}));
    NumberLayout layout = number_layout(kernel, false);
    std::vector<std::int64_t> numbers;
    for (const Dim& dim : kernel.numbers()) numbers.push_back(dim.constant());
    numbers.resize(static_cast<std::size_t>(layout.total));
    std::vector<float> out(51, 5.f);
    void* pointers[] = {nullptr, out.data()};  // a wrong load would be a crash
    KernelStatus status;
    auto function = reinterpret_cast<KernelFunction>(load_code(kernel_code(kernel, {})));
    EXPECT_EQ(function(pointers, numbers.data(), 0, 3, &status), 0);
    EXPECT_EQ(out, std::vector<float>(51, 0.f));
  }
}

// --- indirections

/// result[i, j] = x[indices[i or j]…]
Kernel gather_kernel(DType index_type, std::int64_t rows, std::int64_t columns, std::int64_t extent, bool along_rows) {
  Access indices = memory(index_type, 0, 0, along_rows ? std::vector<Dim>{1, 0} : std::vector<Dim>{0, 1});
  Access x = memory(f32, 1, 0, along_rows ? std::vector<Dim>{0, 1} : std::vector<Dim>{extent, 0});
  x.indirections = {{.operand = 0, .stride = along_rows ? Dim(columns) : Dim(1), .extent = extent, .check = 1}};
  return map_of(operand(1, f32), {{rows, false}, {columns, false}}, {indices, x}, memory(f32, 2, 0, {columns, 1}));
}

TEST(EmitKernel, IndirectionsOfEveryIndexType) {
  for (DType type : {u8, i8, i16, i32, i64})
    for (bool along_rows : {true, false}) {
      std::int64_t rows = 9, columns = 37, extent = 100;
      Kernel kernel = gather_kernel(type, rows, columns, extent, along_rows);
      std::int64_t indices = along_rows ? rows : columns;
      expect_meaning(kernel, {GuardedMemory::filled(type, indices, [&](std::int64_t i) { return i * 31 % extent; }),
                              GuardedMemory::filled(f32, along_rows ? extent * columns : rows * extent, small),
                              GuardedMemory(f32, rows * columns)});
    }
}

TEST(EmitKernel, IndirectionsWithStridesAndTwoOfThem) {
  // x[i[a], j[b]] with an x of [6, 5] whose rows are 7 apart.
  Access first = memory(i64, 0, 0, {1, 0}), second = memory(i32, 1, 0, {0, 1}), x = memory(f64, 2, 0, {0, 0});
  x.indirections = {{.operand = 0, .stride = 7, .extent = 6, .check = 1},
                    {.operand = 1, .stride = 1, .extent = 5, .check = 2}};
  Kernel kernel = map_of(operand(2, f64), {{8, false}, {19, false}}, {first, second, x}, memory(f64, 3, 0, {19, 1}));
  expect_meaning(kernel, {GuardedMemory::filled(i64, 8, [](std::int64_t i) { return i % 6; }),
                          GuardedMemory::filled(i32, 19, [](std::int64_t i) { return i % 5; }),
                          GuardedMemory::filled(f64, 42, small), GuardedMemory(f64, 152)});
}

TEST(EmitKernel, IndicesOutOfRangeAreReportedBeforeAnythingIsTouched) {
  for (bool along_rows : {true, false})
    for (std::int64_t wrong : {std::int64_t{10}, std::int64_t{-1}, std::int64_t{1} << 40, INT64_MIN, INT64_MAX}) {
      std::int64_t rows = 9, columns = 37, extent = 10, at = along_rows ? 4 : 21;
      Kernel kernel = gather_kernel(i64, rows, columns, extent, along_rows);
      Buffers buffers{GuardedMemory::filled(i64, along_rows ? rows : columns, [](std::int64_t i) { return i % 10; }),
                      GuardedMemory::filled(f32, along_rows ? extent * columns : rows * extent, small),
                      GuardedMemory(f32, rows * columns)};
      buffers[0].set(at, {.integer = wrong});
      KernelStatus status = launch(kernel, buffers);
      EXPECT_EQ(status.check, 1);
      EXPECT_EQ(status.value, wrong);
      EXPECT_EQ(status.position, at);
      EXPECT_TRUE(buffers[2].guards_intact());
    }
}

TEST(EmitKernel, TheFirstOfSeveralBadIndicesIsReported) {
  Kernel kernel = gather_kernel(i32, 1, 50, 10, false);
  Buffers buffers{GuardedMemory::filled(i32, 50, [](std::int64_t i) { return i >= 33 ? 99 : 3; }),
                  GuardedMemory::filled(f32, 10, small), GuardedMemory(f32, 50)};
  KernelStatus status = launch(kernel, buffers);
  EXPECT_EQ(status.position, 33);
  EXPECT_EQ(status.value, 99);
}

TEST(EmitKernel, LanesBeyondTheEndAreNotChecked) {
  // 3 of 8 or 16 lanes exist; what lies behind the indices is no index.
  Kernel kernel = gather_kernel(i64, 1, 3, 10, false);
  Buffers buffers{GuardedMemory::filled(i64, 3, [](std::int64_t i) { return i; }),
                  GuardedMemory::filled(f32, 10, small), GuardedMemory(f32, 3)};
  EXPECT_EQ(launch(kernel, buffers).check, 0);
}

// --- accumulate

Kernel scatter_kernel(DType type, std::int64_t rows, std::int64_t columns, std::int64_t extent) {
  Access to = memory(type, 2, 0, {0, 1});
  to.indirections = {{.operand = 0, .stride = Dim(columns), .extent = extent, .check = 1}};
  Kernel kernel = map_of(operand(1, type), {{rows, false}, {columns, false}},
                         {memory(i64, 0, 0, {1, 0}), memory(type, 1, 0, {columns, 1})}, to);
  kernel.accumulate = true;
  return kernel;
}

TEST(EmitKernel, AccumulateAddsToWhatIsThere) {
  for (DType type : {u8, i8, i16, i32, i64, f32, f64})
    for (std::int64_t columns : {1, 5, 64, 71})
      expect_meaning(
          scatter_kernel(type, 12, columns, 4),
          {GuardedMemory::filled(i64, 12, [](std::int64_t i) { return i * i % 4; }),
           GuardedMemory::filled(type, 12 * columns, small), GuardedMemory::filled(type, 4 * columns, small)});
}

TEST(EmitKernel, AccumulateReportsABadIndex) {
  Buffers buffers{GuardedMemory::filled(i64, 12, [](std::int64_t i) { return i == 7 ? 4 : 0; }),
                  GuardedMemory::filled(f32, 60, small), GuardedMemory::filled(f32, 20, small)};
  KernelStatus status = launch(scatter_kernel(f32, 12, 5, 4), buffers);
  EXPECT_EQ(status.check, 1);
  EXPECT_EQ(status.value, 4);
  EXPECT_EQ(status.position, 7);
  EXPECT_TRUE(buffers[2].guards_intact());
}

// --- checked mode

/// Extents that say one element less than the kernel reaches in `buffer`: checked code must say so.
void expect_caught(const Kernel& kernel, Buffers buffers, std::size_t buffer) {
  std::vector<std::int64_t> extents;
  for (const GuardedMemory& memory : buffers) extents.push_back(memory.count());
  extents[buffer] -= 1;
  KernelStatus status = launch(kernel, buffers, {.checked = true}, 0, launch_positions(kernel), extents);
  EXPECT_EQ(status.check, bounds_check_base + static_cast<std::int64_t>(buffer)) << kernel.str();
  for (const GuardedMemory& memory : buffers) EXPECT_TRUE(memory.guards_intact());
  if (buffer + 1 == buffers.size()) {
    // The element that does not exist was not written.
    GuardedMemory untouched(buffers[buffer].dtype(), buffers[buffer].count());
    EXPECT_EQ(buffers[buffer].bits(extents[buffer]), untouched.bits(0)) << kernel.str();
  }
}

TEST(EmitKernel, CheckedModeCatchesEveryClassOfAccess) {
  std::int64_t n = 37;
  auto filled = [](std::int64_t count) { return GuardedMemory::filled(f32, count, small); };
  auto one_loop = [&](Access x, Access to) {
    return map_of(operand(0, f32), {{n, false}}, {std::move(x)}, std::move(to));
  };
  expect_caught(one_loop(memory(f32, 0, 0, {1}), memory(f32, 1, 0, {1})), {filled(n), GuardedMemory(f32, n)}, 0);
  expect_caught(one_loop(memory(f32, 0, 0, {1}), memory(f32, 1, 0, {1})), {filled(n), GuardedMemory(f32, n)}, 1);
  expect_caught(one_loop(memory(f32, 0, 0, {2}), memory(f32, 1, 0, {1})), {filled(2 * n - 1), GuardedMemory(f32, n)},
                0);
  expect_caught(one_loop(memory(f32, 0, 0, {1}), memory(f32, 1, 0, {2})), {filled(n), GuardedMemory(f32, 2 * n - 1)},
                1);
  expect_caught(one_loop(memory(f32, 0, n - 1, {-1}), memory(f32, 1, 0, {1})), {filled(n), GuardedMemory(f32, n)}, 0);
  expect_caught(one_loop(memory(f32, 0, 4, {0}), memory(f32, 1, 0, {1})), {filled(5), GuardedMemory(f32, n)}, 0);
  // A guard that lets one element too many through.
  Access guarded = memory(f32, 0, 0, {1});
  guarded.guards = {{{0, {1}}, n}};
  expect_caught(one_loop(guarded, memory(f32, 1, 0, {1})), {filled(n), GuardedMemory(f32, n)}, 0);
  // An index that is in the range of the check, but not of the memory.
  Kernel gather = gather_kernel(i64, 1, n, 10, false);
  expect_caught(gather,
                {GuardedMemory::filled(i64, n, [](std::int64_t) { return 9; }), filled(10), GuardedMemory(f32, n)}, 1);
}

TEST(EmitKernel, CheckedModeCatchesNegativeAddresses) {
  Kernel kernel = map_of(operand(0, f32), {{37, false}}, {memory(f32, 0, 35, {-1})}, memory(f32, 1, 0, {1}));
  Buffers buffers{GuardedMemory::filled(f32, 37, small), GuardedMemory(f32, 37)};
  KernelStatus status = launch(kernel, buffers, {.checked = true});
  EXPECT_EQ(status.check, bounds_check_base);
  EXPECT_EQ(status.value, -1);
}

TEST(EmitKernel, AStepReportsAWrongStrideAsOurBug) {
  bool before = checked_kernels();
  set_checked_kernels(true);
  // As if lowering had taken the wrong axis's stride.
  Kernel kernel =
      map_of(operand(0, f32), {{4, false}, {5, false}}, {memory(f32, 0, 0, {5, 4})}, memory(f32, 1, 0, {5, 1}));
  KernelStep step({kernel, {0, 1}, {20, 20}, {}});
  step.hold_code(shared_code(step.code_requests()));
  GuardedMemory x = GuardedMemory::filled(f32, 20, small), y(f32, 20);
  void* table[] = {x.data(), y.data()};
  try {
    step.bind(Bindings())->run(table);
    ADD_FAILURE() << "nothing was caught";
  } catch (const InternalError& error) {
    EXPECT_TRUE(
        std::string(error.what()).starts_with("generated code touches element 21 outside buffer 0\nkernel test\n"))
        << error.what();
  }
  EXPECT_TRUE(y.guards_intact());
  set_checked_kernels(before);
}

TEST(EmitKernel, AStepReportsABadIndexAsAProblem) {
  Kernel kernel = gather_kernel(i64, 3, 4, 10, true);
  KernelStep step({kernel, {0, 1, 2}, {3, 40, 12}, {{"indices", 10}}});
  step.hold_code(shared_code(step.code_requests()));
  GuardedMemory indices = GuardedMemory::filled(i64, 3, [](std::int64_t i) { return i * 5; });
  GuardedMemory x = GuardedMemory::filled(f32, 40, small), y(f32, 12);
  void* table[] = {indices.data(), x.data(), y.data()};
  try {
    step.bind(Bindings())->run(table);
    ADD_FAILURE() << "nothing was caught";
  } catch (const Problem& problem) {
    EXPECT_EQ(problem.text(), "'indices' holds index 10 at position 2, out of range: allowed are 0 to 9");
  }
}

TEST(EmitKernel, AStepHasAtMostSixteenBuffers) {
  auto with_operands = [](int count) {
    Expr sum = operand(0, f32);
    std::vector<Access> operands;
    std::vector<int> buffers;
    for (int i = 0; i < count; ++i) {
      if (i) sum = sum + operand(i, f32);
      operands.push_back(memory(f32, i, 0, {1}));
      buffers.push_back(i);
    }
    buffers.push_back(count);
    return KernelStep({map_of(sum, {{9, false}}, operands, memory(f32, count, 0, {1})),
                       buffers,
                       std::vector<Dim>(buffers.size(), Dim(9)),
                       {}});
  };
  KernelStep most = with_operands(15);
  most.hold_code(shared_code(most.code_requests()));
  Buffers buffers;
  for (int i = 0; i < 15; ++i)
    buffers.push_back(GuardedMemory::filled(f32, 9, [&](std::int64_t at) { return at + i; }));
  buffers.emplace_back(f32, 9);
  std::vector<void*> table;
  for (GuardedMemory& memory : buffers) table.push_back(memory.data());
  most.bind(Bindings())->run(table.data());
  for (std::int64_t i = 0; i < 9; ++i) EXPECT_EQ(buffers[15].real(i), 15 * static_cast<double>(i) + 105);
  EXPECT_THROW(with_operands(16), InternalError);
}

TEST(EmitKernel, MoreElementsThanCanBeCountedIsAProblem) {
  std::int64_t huge = std::int64_t{1} << 40;
  Kernel kernel = map_of(operand(0, f32), {{huge, false}, {huge, false}}, {memory(f32, 0, 0, {0, 0})},
                         memory(f32, 1, 0, {huge, 1}));
  KernelStep step({kernel, {0, 1}, {}, {}});
  EXPECT_THROW(step.bind(Bindings()), Problem);
  kernel.loops.insert(kernel.loops.begin(), {Dim(0), false});
  for (Access* access : {&kernel.operands[0], &kernel.result})
    access->address.strides.insert(access->address.strides.begin(), Dim(0));
  KernelStep empty({kernel, {0, 1}, {}, {}});
  EXPECT_NO_THROW(empty.bind(Bindings())->run(std::vector<void*>(2, nullptr).data()));
}

}  // namespace
}  // namespace stet::cpu
