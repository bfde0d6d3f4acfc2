// Running combinations against a plain loop in long double, or exact integers.
//
// Bound, per element: as many roundings as a value goes through, which is never more than the elements before it, nor
// than a block of rows and the number of blocks together (4096 in these tests).
#include "stet/cpu/scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/runtime/parallel.h"
#include "tests/cpu/kernel_harness.h"
#include "tests/sampling.h"

namespace stet::cpu {
namespace {

using Count = std::int64_t;

enum class Dot { sum, product, maximum, minimum, log_sum };
constexpr Dot dots[] = {Dot::sum, Dot::product, Dot::maximum, Dot::minimum, Dot::log_sum};

Expr log_add(Expr x, Expr y) {
  Expr larger = scalar::maximum(x, y), smaller = scalar::minimum(x, y);
  Expr usual = larger + scalar::log(1 + scalar::exp(smaller - larger));
  return scalar::select(scalar::equal(smaller, larger), larger + 0.6931471805599453, usual);
}

Expr lowest(DType d) {
  return is_floating(d) ? constant(-std::numeric_limits<double>::infinity(), d) : constant(row(d).lowest, d);
}
Expr highest(DType d) {
  return is_floating(d) ? constant(std::numeric_limits<double>::infinity(), d) : constant(row(d).highest, d);
}

ScanSpec spec_of(Dot dot, DType stored, DType result, DType accumulator, bool reverse = false, bool exclusive = false) {
  Expr x = operand(0, accumulator), y = operand(1, accumulator);
  ScanSpec spec{.stored = stored, .result = result, .reverse = reverse, .exclusive = exclusive};
  switch (dot) {
    case Dot::sum:
      spec.combine = x + y;
      spec.identity = constant(0, accumulator);
      break;
    case Dot::product:
      spec.combine = x * y;
      spec.identity = constant(1, accumulator);
      break;
    case Dot::maximum:
      spec.combine = scalar::maximum(x, y);
      spec.identity = lowest(accumulator);
      break;
    case Dot::minimum:
      spec.combine = scalar::minimum(x, y);
      spec.identity = highest(accumulator);
      break;
    case Dot::log_sum:
      spec.combine = log_add(x, y);
      spec.identity = lowest(accumulator);
      break;
  }
  return spec;
}

double random_unit(Count i) {
  auto x = static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15 + 0x1234567;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

/// Elements whose running combination stays in range: products come back to 1 with every second row.
GuardedMemory elements(Dot dot, DType dtype, Count outer, Count length, Count inner) {
  return GuardedMemory::filled(dtype, outer * length * inner, [&](Count i) {
    Count position = i / inner % length;
    double unit = random_unit(i);
    if (dot == Dot::product) {
      if (!is_floating(dtype)) return std::floor(unit * 4) * 2 + (dtype == DType::u8 ? 1 : -3);
      double first = 0.75 + random_unit(position % 2 == 0 ? i : i - inner) / 2;
      return position % 2 == 0 ? first : 1 / first;
    }
    if (is_floating(dtype)) return dot == Dot::log_sum ? 6 * unit - 3 : 2 * unit - 1;
    if (dtype == DType::bool_)
      return unit < (dot == Dot::maximum ? 0.01 : dot == Dot::minimum ? 0.99 : 0.5) ? 1.0 : 0.0;
    return std::floor(unit * 200) - (dtype == DType::u8 ? 0 : 100);
  });
}

double epsilon(DType d) {
  switch (d) {
    case DType::f16:
      return 0x1p-10;
    case DType::bf16:
      return 0x1p-7;
    case DType::f32:
      return 0x1p-23;
    default:
      return 0x1p-52;
  }
}

/// The plain loop. Calls see(position in memory, value, sum of magnitudes, how many were combined) in the scan's order.
template <class See>
void plain_scan(const ScanSpec& spec, Dot dot, const GuardedMemory& x, Count outer, Count length, Count inner,
                See see) {
  DType accumulator = spec.combine.dtype();
  for (Count line = 0; line < outer * inner; ++line) {
    ScalarValue identity = value_of(spec.identity->bits, accumulator);
    long double real = identity.real, magnitudes = 0;
    Count integer = identity.integer;
    for (Count p = 0; p < length; ++p) {
      Count at = (line / inner * length + (spec.reverse ? length - 1 - p : p)) * inner + line % inner;
      if (spec.exclusive) see(at, real, integer, magnitudes, p);
      ScalarValue next = convert(x.value(at), spec.stored, accumulator);
      auto a = static_cast<std::uint64_t>(integer), c = static_cast<std::uint64_t>(next.integer);
      switch (dot) {
        case Dot::sum:
          real += next.real;
          integer = static_cast<Count>(a + c);
          break;
        case Dot::product:
          real *= next.real;
          integer = static_cast<Count>(a * c);
          break;
        case Dot::maximum:
          real = std::max<long double>(real, next.real);
          integer = std::max(integer, next.integer);
          break;
        case Dot::minimum:
          real = std::min<long double>(real, next.real);
          integer = std::min(integer, next.integer);
          break;
        case Dot::log_sum: {
          long double larger = std::max<long double>(real, next.real), smaller = std::min<long double>(real, next.real);
          real = larger + std::log1p(std::exp(smaller - larger));
          break;
        }
      }
      magnitudes += std::fabs(next.real);
      if (!spec.exclusive) see(at, real, integer, magnitudes, p + 1);
    }
  }
}

ScanArguments arguments_of(const GuardedMemory& x, GuardedMemory& y, Count outer, Count length, Count inner) {
  return {.outer = outer,
          .length = length,
          .inner = inner,
          .from = x.data(),
          .to = y.data(),
          .from_extent = x.count(),
          .to_extent = y.count()};
}

std::string words(const ScanSpec& spec, Count outer, Count length, Count inner) {
  return text(spec.combine.str(), " ", spec.stored, " to ", spec.result, spec.reverse ? " reverse" : "",
              spec.exclusive ? " exclusive" : "", " [", outer, ", ", length, ", ", inner, "]");
}

/// Every element of y within its bound, and nothing else written.
void expect_right(const ScanSpec& spec, Dot dot, const GuardedMemory& x, const GuardedMemory& y, Count outer,
                  Count length, Count inner) {
  Count wrong = 0, seen = 0;
  DType accumulator = spec.combine.dtype();
  bool exact = dot == Dot::maximum || dot == Dot::minimum;
  plain_scan(spec, dot, x, outer, length, inner,
             [&](Count at, long double real, Count integer, long double magnitudes, Count count) {
               ++seen;
               if (wrong > 3) return;
               if (!is_floating(accumulator)) {
                 ScalarValue want = convert(value_of(bits_of({.integer = integer}, accumulator), accumulator),
                                            accumulator, spec.result);
                 if (y.bits(at) == bits_of(want, spec.result)) return;
                 ++wrong;
                 ADD_FAILURE() << at << " is " << y.real(at) << ", not " << integer;
                 return;
               }
               auto roundings = static_cast<long double>(std::min<Count>(count, 4096));
               long double scale = dot == Dot::product ? std::fabs(real)
                                   : dot == Dot::sum   ? magnitudes
                                                       : 4 * std::max<long double>(1, std::fabs(real));
               long double bound = exact ? 0 : roundings * epsilon(accumulator) * scale;
               if (size_of(spec.result) < size_of(accumulator)) bound += epsilon(spec.result) * std::fabs(real);
               long double got = y.real(at);
               if (got == real || std::fabs(got - real) <= bound) return;
               ++wrong;
               ADD_FAILURE() << at << " is " << y.real(at) << ", not " << static_cast<double>(real) << " +- "
                             << static_cast<double>(bound);
             });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(seen, outer * length * inner);
  EXPECT_TRUE(y.guards_intact());
  EXPECT_TRUE(x.guards_intact());
}

void run_and_check(const ScanKernel& kernel, Dot dot, Count outer, Count length, Count inner) {
  const ScanSpec& spec = kernel.spec();
  SCOPED_TRACE(words(spec, outer, length, inner));
  GuardedMemory x = elements(dot, spec.stored, outer, length, inner), y(spec.result, x.count());
  kernel.run(arguments_of(x, y, outer, length, inner));
  expect_right(spec, dot, x, y, outer, length, inner);
}

class ThreadCount {
 public:
  explicit ThreadCount(int count) : before_(thread_count()) { set_thread_count(count); }
  ~ThreadCount() { set_thread_count(before_); }

 private:
  int before_;
};

/// What is stored, what the result is, and what is computed in.
struct Types {
  DType stored, result, accumulator;
};
constexpr Types sums[] = {{bool_, i32, i32}, {bool_, i64, i64}, {u8, i32, i32},    {u8, u8, u8},    {i8, i32, i32},
                          {i8, i64, i64},    {i16, i32, i32},   {i16, i16, i16},   {i32, i32, i32}, {i32, i64, i64},
                          {i64, i64, i64},   {f16, f16, f32},   {bf16, bf16, f32}, {f16, f32, f32}, {f32, f32, f32},
                          {f32, f32, f64},   {f32, f64, f64},   {f64, f64, f64}};
constexpr Types extremes[] = {{bool_, bool_, bool_}, {u8, u8, u8},    {i8, i8, i8},    {i16, i16, i16},
                              {i32, i32, i32},       {i64, i64, i64}, {f16, f16, f16}, {bf16, bf16, f32},
                              {f32, f32, f32},       {f64, f64, f64}};

TEST(Scan, EveryTypeAndCombination) {
  int variant = 0;
  for (Dot dot : dots) {
    bool extreme = dot == Dot::maximum || dot == Dot::minimum;
    for (const Types& types : extreme ? std::span<const Types>(extremes) : std::span<const Types>(sums)) {
      if (dot == Dot::log_sum && !is_floating(types.accumulator)) continue;
      // All four ways for the common types, one after the other for the rest.
      bool all = full_tests() && (types.stored == f32 || types.stored == i64);
      ++variant;
      for (int way = 0; way < 4; ++way) {
        if (!all && way != (variant + static_cast<int>(full_tests() ? 0 : test_seed() % 4)) % 4) continue;
        ScanKernel kernel(spec_of(dot, types.stored, types.result, types.accumulator, way % 2 == 1, way / 2 == 1));
        for (Count length : {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 1000}) {
          run_and_check(kernel, dot, 3, length, 1);
          run_and_check(kernel, dot, 1, length, 5);
        }
        run_and_check(kernel, dot, 2, 100, 77);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Scan, EveryShape) {
  for (Dot dot : {Dot::sum, Dot::maximum})
    for (int way = 0; way < 4; ++way) {
      ScanKernel kernel(spec_of(dot, f32, f32, f32, way % 2 == 1, way / 2 == 1));
      for (Count outer : {0, 1, 3})
        for (Count inner : {0, 1, 2, 15, 16, 17, 100})
          for (Count length : {0, 1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 1000})
            run_and_check(kernel, dot, outer, length, inner);
      if (HasFailure()) return;
    }
}

TEST(Scan, SeveralLinesToAVector) {
  for (Dot dot : {Dot::sum, Dot::product, Dot::maximum})
    for (DType d : {i8, i32, f32, f64})
      for (int way = 0; way < 4; ++way) {
        ScanKernel kernel(spec_of(dot, d, d, d, way % 2 == 1, way / 2 == 1));
        for (Count length = 1; length <= 17; ++length)
          for (Count outer : {1, 2, 7, 40}) run_and_check(kernel, dot, outer, length, 1);
        for (Count length : {21, 22, 32, 63, 64}) run_and_check(kernel, dot, 7, length, 1);
        if (HasFailure()) return;
      }
}

/// The ways to scan (exclusive or not, forwards or backwards) that a run visits: all four, or one.
std::vector<std::size_t> visited_ways(const std::string& what) { return chosen(what, 4, 1); }

TEST(Scan, LinesOfALongCombination) {
  for (std::size_t way : visited_ways("long combination")) {
    ScanKernel kernel(spec_of(Dot::log_sum, f32, f32, f32, way % 2 == 1, way / 2 == 1));
    ScanKernel half(spec_of(Dot::log_sum, f16, f16, f32, way % 2 == 1, way / 2 == 1));
    for (Count outer : {1, 2, 15, 16, 17, 100, 3000})
      for (Count length : {1, 2, 10, 32, 33}) {
        run_and_check(kernel, Dot::log_sum, outer, length, 1);
        if (outer < 20) run_and_check(half, Dot::log_sum, outer, length, 1);
      }
    for (Count inner : {2, 3, 4, 5})
      for (Count length : {1, 32, 33, 48, 500}) {
        run_and_check(kernel, Dot::log_sum, 3, length, inner);
        run_and_check(half, Dot::log_sum, 1, length, inner);
      }
    if (HasFailure()) return;
  }
}

TEST(Scan, LongLines) {
  for (Dot dot : dots)
    for (std::size_t way : visited_ways("long lines" + std::to_string(static_cast<int>(dot)))) {
      ScanKernel kernel(spec_of(dot, f32, f32, f32, way % 2 == 1, way / 2 == 1));
      run_and_check(kernel, dot, 3, 70001, 1);
      run_and_check(kernel, dot, 1, 70001, 2);
      if (dot == Dot::sum) run_and_check(kernel, dot, 1, 1'000'003, 1);
      if (way == 0) run_and_check(kernel, dot, 3, 10001, 17);
      if (HasFailure()) return;
    }
  ScanKernel integers(spec_of(Dot::sum, i64, i64, i64)), narrow(spec_of(Dot::sum, u8, i32, i32));
  run_and_check(integers, Dot::sum, 1, 1'000'003, 1);
  run_and_check(narrow, Dot::sum, 1, 1'000'003, 1);
  run_and_check(narrow, Dot::sum, 1, 20'000, 100);
  run_and_check(ScanKernel(spec_of(Dot::sum, f32, f32, f32)), Dot::sum, 1, 10, 300'001);
}

TEST(Scan, AllWaysToShareTheWorkAreTaken) {
  ScanSpec spec = spec_of(Dot::sum, f32, f32, f32);
  EXPECT_EQ(scan_method(spec, 3, 100, 1), ScanMethod::alone);
  EXPECT_EQ(scan_method(spec, 1000, 1000, 1), ScanMethod::lines);
  EXPECT_EQ(scan_method(spec, 1, 1000, 1000), ScanMethod::lines);
  EXPECT_EQ(scan_method(spec, 64, 512, 64), ScanMethod::lines);
  EXPECT_EQ(scan_method(spec, 100, 70001, 1), ScanMethod::lines);
  EXPECT_EQ(scan_method(spec, 1, 1'000'003, 1), ScanMethod::blocks);
  EXPECT_EQ(scan_method(spec, 3, 70001, 1), ScanMethod::blocks);
  EXPECT_EQ(scan_method(spec, 1, 70001, 17), ScanMethod::blocks);
}

TEST(Scan, BitsDoNotDependOnThreads) {
  std::uint64_t number = 0;
  struct Size {
    Count outer, length, inner;
  };
  for (Dot dot : {Dot::sum, Dot::log_sum})
    for (int way : {0, 3})
      for (Size s : {Size{1, 300'001, 1},
                     {3, 70'001, 1},
                     {20, 40'001, 1},
                     {200, 1000, 1},
                     {1, 70'001, 2},
                     {1, 20'001, 17},
                     {2, 5000, 100},
                     {30, 3000, 20},
                     {1, 300, 3000}}) {
        if (!visits("threads of scans", number++, 3)) continue;
        ScanKernel kernel(spec_of(dot, f32, f32, f32, way % 2 == 1, way / 2 == 1));
        SCOPED_TRACE(words(kernel.spec(), s.outer, s.length, s.inner));
        GuardedMemory x = elements(dot, f32, s.outer, s.length, s.inner), one(f32, x.count());
        {
          ThreadCount threads(1);
          kernel.run(arguments_of(x, one, s.outer, s.length, s.inner));
        }
        for (int count : {2, 3}) {
          ThreadCount threads(count);
          for (int again = 0; again < 3; ++again) {
            GuardedMemory several(f32, x.count());
            kernel.run(arguments_of(x, several, s.outer, s.length, s.inner));
            EXPECT_EQ(std::memcmp(one.data(), several.data(), one.byte_count()), 0) << count << " threads";
            EXPECT_TRUE(several.guards_intact());
          }
        }
      }
}

TEST(Scan, ALineHasTheSameBitsInEveryBatch) {
  constexpr Count length = 70'001;
  ScanKernel kernel(spec_of(Dot::sum, f32, f32, f32));
  for (Count inner : {1, 5})
    for (Count outer : {2, 20}) {
      GuardedMemory x = elements(Dot::sum, f32, outer, length, inner), y(f32, x.count());
      kernel.run(arguments_of(x, y, outer, length, inner));
      for (Count line : {Count{0}, outer - 1}) {
        GuardedMemory one(f32, length * inner), alone(f32, length * inner);
        std::memcpy(one.data(), x.data() + line * length * inner * 4, one.byte_count());
        kernel.run(arguments_of(one, alone, 1, length, inner));
        EXPECT_EQ(std::memcmp(alone.data(), y.data() + line * length * inner * 4, alone.byte_count()), 0);
      }
    }
}

TEST(Scan, SumsAreAtLeastAsGoodAsFromLeftToRight) {
  for (DType d : {f32, f64})
    for (Count inner : {1, 3})
      for (Count length : {1000, 70'001, 1'000'003}) {
        if (inner > 1 && length > 100'000) continue;
        ScanKernel kernel(spec_of(Dot::sum, d, d, d));
        SCOPED_TRACE(words(kernel.spec(), 1, length, inner));
        GuardedMemory x = GuardedMemory::filled(d, length * inner, [](Count i) { return random_unit(i); }),
                      y(d, x.count());
        kernel.run(arguments_of(x, y, 1, length, inner));
        std::vector<long double> exact(static_cast<std::size_t>(x.count()));
        plain_scan(
            kernel.spec(), Dot::sum, x, 1, length, inner,
            [&](Count at, long double real, Count, long double, Count) { exact[static_cast<std::size_t>(at)] = real; });
        long double ours = 0, plain = 0;
        for (Count column = 0; column < inner; ++column) {
          ScalarValue running{};
          for (Count i = 0; i < length; ++i) {
            Count at = i * inner + column;
            running.real = value_of(bits_of({.real = running.real + x.real(at)}, d), d).real;
            long double want = exact[static_cast<std::size_t>(at)];
            plain = std::max(plain, std::fabs(running.real - want));
            ours = std::max(ours, std::fabs(y.real(at) - want));
          }
        }
        EXPECT_LE(ours, plain);
      }
}

TEST(Scan, NanAndInfinityGoWhereTheCombinationSays) {
  double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  for (Count inner : {1, 3})
    for (Count length : {1, 16, 40, 500})
      for (Dot dot : dots)
        for (Count where : {Count{0}, length / 2, length - 1}) {
          ScanKernel kernel(spec_of(dot, f32, f32, f32));
          SCOPED_TRACE(text(words(kernel.spec(), 1, length, inner), " at ", where));
          GuardedMemory x = elements(dot, f32, 1, length, inner), y(f32, x.count()), plain(f32, x.count());
          kernel.run(arguments_of(x, plain, 1, length, inner));
          Count at = where * inner + inner / 2;
          x.set(at, {.real = nan});
          kernel.run(arguments_of(x, y, 1, length, inner));
          for (Count i = 0; i < x.count(); ++i) {
            if (i % inner == inner / 2 && i >= at)
              EXPECT_TRUE(std::isnan(y.real(i))) << i;
            else
              EXPECT_EQ(y.bits(i), plain.bits(i)) << i;
          }
          x.set(at, {.real = infinity});
          kernel.run(arguments_of(x, y, 1, length, inner));
          for (Count i = at; dot != Dot::minimum && i < x.count(); i += inner) EXPECT_EQ(y.real(i), infinity) << i;
          x.set(at, {.real = -infinity});
          kernel.run(arguments_of(x, y, 1, length, inner));
          bool taken = dot == Dot::sum || dot == Dot::minimum || dot == Dot::product;
          for (Count i = at; taken && i < x.count(); i += inner) EXPECT_EQ(y.real(i), -infinity) << i;
          for (Count i = at; dot == Dot::log_sum && where > 0 && i < x.count(); i += inner)
            EXPECT_TRUE(std::isfinite(y.real(i))) << i;
        }
}

TEST(Scan, TheIdentityLeavesEveryBitAlone) {
  // The sum's identity as it is in bits: -0.
  for (Count inner : {1, 2}) {
    ScanSpec spec = spec_of(Dot::sum, f32, f32, f32);
    spec.identity = constant(-0.0, f32);
    GuardedMemory x = GuardedMemory::filled(f32, 300 * inner, [](Count) { return -0.0; }), y(f32, x.count());
    ScanKernel(spec).run(arguments_of(x, y, 1, 300, inner));
    for (Count i = 0; i < x.count(); ++i) EXPECT_EQ(y.bits(i), 0x80000000u) << i;
  }
}

TEST(Scan, ElementsStayInOrder) {
  // The latest that is not 0: associative, not commutative.
  Expr before = operand(0, i32), next = operand(1, i32);
  ScanSpec spec{.stored = i32,
                .result = i32,
                .combine = scalar::select(scalar::equal(next, 0), before, next),
                .identity = constant(0, i32)};
  for (bool reverse : {false, true})
    for (Count inner : {1, 3})
      for (Count length : {1, 17, 129, 1000, 50'001}) {
        spec.reverse = reverse;
        SCOPED_TRACE(words(spec, 2, length, inner));
        GuardedMemory x = GuardedMemory::filled(
            i32, 2 * length * inner, [](Count i) { return random_unit(i) < 0.2 ? static_cast<double>(i) : 0; });
        GuardedMemory y(i32, x.count());
        ScanKernel(spec).run(arguments_of(x, y, 2, length, inner));
        Count wrong = 0;
        for (Count line = 0; line < 2 * inner; ++line) {
          Count latest = 0;
          for (Count p = 0; p < length; ++p) {
            Count at = (line / inner * length + (reverse ? length - 1 - p : p)) * inner + line % inner;
            if (Count here = x.value(at).integer; here != 0) latest = here;
            wrong += y.value(at).integer != latest;
          }
        }
        EXPECT_EQ(wrong, 0);
      }
}

TEST(Scan, MayOverwriteItsOperand) {
  struct Size {
    Count outer, length, inner;
  };
  for (int way = 0; way < 4; ++way)
    for (Size s : {Size{1, 100'001, 1}, {5, 333, 1}, {1, 10'001, 3}, {2, 300, 100}}) {
      ScanKernel kernel(spec_of(Dot::sum, i32, i32, i32, way % 2 == 1, way / 2 == 1));
      SCOPED_TRACE(words(kernel.spec(), s.outer, s.length, s.inner));
      GuardedMemory x = elements(Dot::sum, i32, s.outer, s.length, s.inner), y(i32, x.count());
      kernel.run(arguments_of(x, y, s.outer, s.length, s.inner));
      kernel.run(arguments_of(x, x, s.outer, s.length, s.inner));
      EXPECT_TRUE(x.same(y));
    }
}

TEST(Scan, StoresAroundTheCacheGiveTheSameBits) {
  for (DType result : {f32, f64})
    for (int way = 0; way < 4; ++way)
      for (Count length : {16, 128, 144, 1024}) {
        ScanSpec spec = spec_of(Dot::sum, f32, result, result, way % 2 == 1, way / 2 == 1);
        SCOPED_TRACE(words(spec, 2, length, 1));
        GuardedMemory x = elements(Dot::sum, f32, 2, length, 1), around(result, x.count()), through(result, x.count());
        GuardedMemory row(result, 1);
        ScanNumbers numbers{length, 1, 0, length, 0, 1, 0, {}};
        for (GuardedMemory* to : {&around, &through}) {
          void* buffers[] = {x.data(), to->data(), row.data(), row.data()};
          CodeRequest request = scan_code(spec, ScanShape::lines, {.nontemporal = to == &around});
          KernelStatus status;
          EXPECT_EQ(reinterpret_cast<KernelFunction>(load_code(request))(buffers, &numbers.length, 0, 2, &status), 0);
        }
        EXPECT_EQ(std::memcmp(around.data(), through.data(), around.byte_count()), 0);
        EXPECT_TRUE(around.guards_intact());
        expect_right(spec, Dot::sum, x, around, 2, length, 1);
      }
}

TEST(Scan, ResultsLargerThanTheCache) {
  // 64 MB in and 64 MB out are more than the last cache of most machines holds.
  ScanKernel kernel(spec_of(Dot::maximum, u8, u8, u8));
  constexpr Count length = 64'000'003;
  GuardedMemory x(u8, length), y(u8, length);
  std::memset(x.data(), 3, x.byte_count());
  x.data()[length / 2] = 200;
  kernel.run(arguments_of(x, y, 1, length, 1));
  EXPECT_TRUE(y.guards_intact());
  auto count = [&](Count begin, Count end, unsigned char value) {
    return std::count(y.data() + begin, y.data() + end, value);
  };
  EXPECT_EQ(count(0, length / 2, 3), length / 2);
  EXPECT_EQ(count(length / 2, length, 200), length - length / 2);
}

TEST(Scan, CheckedCodeGivesTheSameBits) {
  std::uint64_t number = 0;
  for (Dot dot : {Dot::sum, Dot::log_sum})
    for (int way = 0; way < 4; ++way)
      for (Count inner : {1, 3, 40})
        for (Count length : {1, 20, 33, 300, inner == 40 ? 5000 : 40'001}) {
          if (!visits("checked scans", number++, 3)) continue;
          ScanSpec spec = spec_of(dot, f32, f32, f32, way % 2 == 1, way / 2 == 1);
          SCOPED_TRACE(words(spec, 2, length, inner));
          GuardedMemory x = elements(dot, f32, 2, length, inner), plain(f32, x.count()), checked(f32, x.count());
          ScanKernel(spec, false).run(arguments_of(x, plain, 2, length, inner));
          ScanKernel(spec, true).run(arguments_of(x, checked, 2, length, inner));
          EXPECT_EQ(std::memcmp(plain.data(), checked.data(), plain.byte_count()), 0);
          EXPECT_TRUE(checked.guards_intact());
        }
}

TEST(Scan, CheckedCodeFindsWhatIsOutside) {
  for (bool reverse : {false, true})
    for (ScanShape shape : {ScanShape::lines, ScanShape::strided, ScanShape::columns, ScanShape::across})
      for (int buffer : {scan_operand, scan_result}) {
        ScanSpec spec = spec_of(Dot::sum, f32, f32, f32, reverse);
        Count columns = shape == ScanShape::lines ? 1 : 3, length = 300;
        Count inner = shape == ScanShape::columns || shape == ScanShape::strided ? 3 : 1;
        Count lines = shape == ScanShape::strided ? 3 : 1;
        GuardedMemory x = elements(Dot::sum, f32, 1, length, columns), y(f32, x.count()), row(f32, columns);
        void* buffers[] = {x.data(), y.data(), row.data(), row.data()};
        ScanNumbers numbers{length, inner, 0, length, 0, columns, 0, {x.count(), y.count(), columns, columns}};
        auto function = reinterpret_cast<KernelFunction>(load_code(scan_code(spec, shape, {.checked = true})));
        KernelStatus status;
        EXPECT_EQ(function(buffers, &numbers.length, 0, lines, &status), 0);
        --numbers.extents[buffer];
        EXPECT_EQ(function(buffers, &numbers.length, 0, lines, &status), bounds_check_base + buffer);
        EXPECT_EQ(status.check, bounds_check_base + buffer);
        EXPECT_LT(status.value, x.count());
        EXPECT_TRUE(y.guards_intact());
      }
}

TEST(Scan, WrongCallsAreFound) {
  ScanSpec good = spec_of(Dot::sum, f32, f32, f32), spec = good;
  GuardedMemory x(f32, 10), y(f32, 10);
  EXPECT_THROW(ScanKernel(good).run(arguments_of(x, y, 1, 11, 1)), InternalError);
  EXPECT_THROW(ScanKernel(good).run(arguments_of(x, y, 1, -1, 1)), InternalError);
  EXPECT_THROW(ScanKernel(good).run(arguments_of(x, y, Count{1} << 40, Count{1} << 40, 1)), InternalError);
  spec.identity = constant(0, f64);
  EXPECT_THROW(ScanKernel{spec}, InternalError);
  spec.identity = operand(0, f32);
  EXPECT_THROW(ScanKernel{spec}, InternalError);
  spec = good;
  spec.combine = operand(0, f32) + operand(2, f32);
  EXPECT_THROW(ScanKernel{spec}, InternalError);
  spec.combine = Expr();
  EXPECT_THROW(ScanKernel{spec}, InternalError);
  spec = good;
  spec.combine = scalar::cast(operand(0, f64), f32) + operand(1, f32);
  EXPECT_THROW(ScanKernel{spec}, InternalError);
}

TEST(Scan, SeveralThreadsMayCallAtOnce) {
  ScanKernel kernel(spec_of(Dot::sum, i64, i64, i64));
  constexpr Count length = 200'001;
  GuardedMemory x = elements(Dot::sum, i64, 1, length, 1), want(i64, length);
  kernel.run(arguments_of(x, want, 1, length, 1));
  std::vector<int> same(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < same.size(); ++t)
    threads.emplace_back([&, t] {
      GuardedMemory mine(i64, length);
      for (int again = 0; again < 10; ++again) kernel.run(arguments_of(x, mine, 1, length, 1));
      same[t] = mine.same(want);
    });
  for (std::thread& thread : threads) thread.join();
  for (int equal : same) EXPECT_TRUE(equal);
}

TEST(Scan, CodeCanBeLoadedBeforehand) {
  ScanKernel kernel(spec_of(Dot::product, f64, f64, f64));
  EXPECT_TRUE(kernel.code_requests(0, 10, 1).empty());
  EXPECT_EQ(kernel.code_requests(1, 10, 1).size(), 1u);
  std::vector<CodeRequest> requests = kernel.code_requests(1, 100'000, 1);
  EXPECT_EQ(requests.size(), 2u);
  std::vector<Code> code = shared_code(requests);
  auto before = code_statistics();
  GuardedMemory x = elements(Dot::product, f64, 1, 100'000, 1), y(f64, x.count());
  kernel.run(arguments_of(x, y, 1, 100'000, 1));
  auto after = code_statistics();
  EXPECT_EQ(after.compiled + after.loaded, before.compiled + before.loaded);
}

}  // namespace
}  // namespace stet::cpu
