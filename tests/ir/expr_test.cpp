#include "stet/ir/expr.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/ir/expand_math.h"
#include "tests/ir/random_expr.h"
#include "tests/sampling.h"

namespace stet {
namespace {

using namespace scalar;

Expr x_of(DType d) { return operand(0, d); }
Expr y_of(DType d) { return operand(1, d); }

// --- Building

TEST(Expr, EqualExpressionsAreTheSame) {
  Expr a = exp(x_of(f32)) + 1, b = exp(x_of(f32)) + 1;
  EXPECT_EQ(a, b);
  EXPECT_EQ(&*a, &*b);
  EXPECT_NE(a, exp(x_of(f64)) + 1);
  EXPECT_NE(constant(0.0, f32), constant(-0.0, f32));
  EXPECT_EQ(constant(3, u8), constant(259, u8));
  EXPECT_EQ(cast(a, f32), a);
}

TEST(Expr, InterningIsThreadSafe) {
  std::vector<Expr> made(8);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < made.size(); ++t)
    threads.emplace_back([&made, t] {
      Expr sum = operand(3, f64);
      for (int i = 0; i < 2000; ++i) sum = sum * 0.5 + static_cast<double>(i);
      made[t] = sum;
    });
  for (std::thread& thread : threads) thread.join();
  for (Expr e : made) EXPECT_EQ(e, made[0]);
}

TEST(Expr, LiteralsTakeTheOtherType) {
  EXPECT_EQ((x_of(f16) * 2)->arguments[1].dtype(), f16);
  EXPECT_EQ((1 - x_of(i32)).dtype(), i32);
  EXPECT_EQ((x_of(f32) * 0.1)->arguments[1].constant(), static_cast<double>(0.1f));
  EXPECT_EQ((x_of(f32) < 2).dtype(), bool_);
}

TEST(Expr, WrongTypesAreInternalErrors) {
  EXPECT_THROW(x_of(f32) + y_of(f64), InternalError);
  EXPECT_THROW(exp(x_of(i32)), InternalError);
  EXPECT_THROW(x_of(bool_) + y_of(bool_), InternalError);
  EXPECT_THROW(select(x_of(i32), x_of(i32), y_of(i32)), InternalError);
  EXPECT_THROW(bitcast(x_of(f32), i64), InternalError);
  EXPECT_THROW(shift_left(x_of(i32), 32), InternalError);
  EXPECT_THROW(logical_and(x_of(f32), y_of(f32)), InternalError);
  EXPECT_THROW(Expr() + x_of(f32), InternalError);
  EXPECT_THROW(operand(-1, f32), InternalError);
  Expr one[] = {x_of(f32)};
  EXPECT_THROW(make(Primitive::add, one, f32), InternalError);
}

TEST(Expr, Text) {
  Expr x = x_of(f32), y = y_of(f32);
  EXPECT_EQ(maximum(x, 0).str(), "max(x0, 0)");
  EXPECT_EQ((x - (y - 1) * 0.5).str(), "x0 - (x1 - 1) * 0.5");
  EXPECT_EQ((-(x * y)).str(), "-(x0 * x1)");
  EXPECT_EQ(select(x < y, x, 2).str(), "select(x0 < x1, x0, 2)");
  EXPECT_EQ(cast(x, i32).str(true), "i32(x0:f32)");
  EXPECT_EQ((x * 2).str(true), "x0:f32 * 2:f32");
  EXPECT_EQ((exp(x) / (exp(x) + 1)).str(), "t0 = exp(x0); t0 / (t0 + 1)");
  EXPECT_EQ((x - -1.0).str(), "x0 - -1");
  EXPECT_EQ(shift_right(bitcast(x, i32), 23).str(), "bitcast_i32(x0) >> 23");
  EXPECT_EQ(loop_index(2).str(), "i2");
  EXPECT_EQ(constant(1, bool_).str(), "true");
  EXPECT_EQ(Expr().str(), "undefined");
}

TEST(Expr, SizeOperandsAndOrder) {
  Expr e = fma(x_of(f32), operand(4, f32), exp(x_of(f32)));
  EXPECT_EQ(e.operand_count(), 5);
  EXPECT_EQ(e.size(), 4);
  std::vector<Expr> order = topological(e);
  EXPECT_EQ(order.back(), e);
  for (std::size_t i = 0; i < order.size(); ++i)
    for (int k = 0; k < order[i]->argument_count; ++k)
      EXPECT_LT(std::find(order.begin(), order.end(), order[i]->arguments[k]) - order.begin(), std::ptrdiff_t(i));
  verify(e);
}

TEST(Expr, LongExpressionsNeedNoStack) {
  Expr e = x_of(f64);
  for (int i = 0; i < 50'000; ++i) e = e * 0.5 + x_of(f64);
  ScalarValue values[] = {{.real = 1}};
  EXPECT_DOUBLE_EQ(evaluate(e, values).real, 2);
  EXPECT_DOUBLE_EQ(evaluate(derivative(e, 0), values).real, 2);
  Expr replacement[] = {y_of(f64)};
  EXPECT_EQ(substitute(e, replacement).operand_count(), 2);
  EXPECT_GT(simplify(e).str().size(), 500'000u);
  verify(expand_math(e));
}

TEST(Expr, Substitution) {
  Expr e = x_of(f32) * y_of(f32) + cast(loop_index(0), f32);
  Expr replacements[] = {exp(operand(2, f32)), x_of(f32)};
  EXPECT_EQ(substitute(e, replacements), exp(operand(2, f32)) * x_of(f32) + cast(loop_index(0), f32));
  int loops[] = {3};
  EXPECT_EQ(renumber_loops(e, loops), x_of(f32) * y_of(f32) + cast(loop_index(3), f32));
  Expr wrong[] = {x_of(f64), y_of(f32)};
  EXPECT_THROW(substitute(e, wrong), InternalError);
  EXPECT_THROW(substitute(e, std::span(replacements, 1)), InternalError);
}

// --- Meaning

double real(Expr e, std::vector<double> operands, bool round_each = true) {
  std::vector<ScalarValue> values;
  for (double v : operands) values.push_back({.real = v});
  return evaluate(e, values, {}, round_each).real;
}
std::int64_t integer(Expr e, std::vector<std::int64_t> operands) {
  std::vector<ScalarValue> values;
  for (std::int64_t v : operands) values.push_back({.integer = v});
  return evaluate(e, values, {}, true).integer;
}

TEST(ExprMeaning, IntegersOfEveryType) {
  for (DType d : {u8, i8, i16, i32, i64}) {
    Expr x = x_of(d), y = y_of(d);
    std::int64_t low = row(d).lowest, high = row(d).highest;
    EXPECT_EQ(integer(x + y, {high, 1}), low) << name(d);
    EXPECT_EQ(integer(x - y, {low, 1}), high) << name(d);
    EXPECT_EQ(integer(x * y, {high, 2}), d == u8 ? 254 : -2) << name(d);
    EXPECT_EQ(integer(x / y, {7, 0}), 0) << name(d);
    EXPECT_EQ(integer(modulo(x, y), {7, 0}), 0) << name(d);
    EXPECT_EQ(integer(x / y, {7, 2}), 3) << name(d);
    EXPECT_EQ(integer(modulo(x, y), {7, 4}), 3) << name(d);
    EXPECT_EQ(integer(minimum(x, y), {3, 4}), 3) << name(d);
    EXPECT_EQ(integer(maximum(x, y), {3, 4}), 4) << name(d);
    EXPECT_EQ(integer(power(x, y), {3, 4}), 81) << name(d);
    EXPECT_EQ(integer(power(x, y), {2, 8 * size_of(d)}), 0) << name(d);
    EXPECT_EQ(integer(-x, {low}), low) << name(d);
    EXPECT_EQ(integer(abs(x), {low}), low) << name(d);
    EXPECT_EQ(integer(logical_not(x), {low}), high) << name(d);
    EXPECT_EQ(integer(logical_and(x, y), {6, 3}), 2) << name(d);
    EXPECT_EQ(integer(logical_or(x, y), {6, 3}), 7) << name(d);
    EXPECT_EQ(integer(logical_xor(x, y), {6, 3}), 5) << name(d);
    EXPECT_EQ(integer(shift_left(x, 1), {high}), d == u8 ? 254 : -2) << name(d);
    EXPECT_EQ(integer(shift_right(x, 8 * size_of(d) - 1), {d == u8 ? 128 : low}), 1) << name(d);
    for (std::int64_t count : {std::int64_t{8 * size_of(d)}, std::int64_t{100}, std::int64_t{-1}}) {
      if (d == u8 && count < 0) continue;
      EXPECT_EQ(integer(shift_left(x, y), {high, count}), 0) << name(d) << " by " << count;
      EXPECT_EQ(integer(shift_right(x, y), {low, count}), 0) << name(d) << " by " << count;
    }
    EXPECT_EQ(integer(shift_left(x, y), {3, 2}), 12) << name(d);
    EXPECT_EQ(integer(shift_right(x, y), {13, 2}), 3) << name(d);
    EXPECT_EQ(integer(x < y, {low, high}), 1) << name(d);
    EXPECT_EQ(integer(x <= y, {3, 3}), 1) << name(d);
    EXPECT_EQ(integer(equal(x, y), {3, 4}), 0) << name(d);
    EXPECT_EQ(integer(select(x < y, x, y), {3, 4}), 3) << name(d);
    EXPECT_EQ(integer(cast(x, bool_), {2}), 1) << name(d);
    if (d == u8) continue;
    EXPECT_EQ(integer(x / y, {-7, 2}), -4) << name(d);
    EXPECT_EQ(integer(modulo(x, y), {-7, 2}), 1) << name(d);
    EXPECT_EQ(integer(modulo(x, y), {7, -4}), -1) << name(d);
    EXPECT_EQ(integer(x / y, {low, -1}), low) << name(d);
    EXPECT_EQ(integer(modulo(x, y), {low, -1}), 0) << name(d);
    EXPECT_EQ(integer(power(x, y), {-1, -3}), -1) << name(d);
    EXPECT_EQ(integer(power(x, y), {2, -1}), 0) << name(d);
  }
}

TEST(ExprMeaning, FloatingOfEveryType) {
  const double infinity = INFINITY, nan = NAN;
  for (DType d : {f16, bf16, f32, f64}) {
    Expr x = x_of(d), y = y_of(d), z = operand(2, d);
    EXPECT_EQ(real(x + y, {1.5, 2}), 3.5) << name(d);
    EXPECT_EQ(real(x / y, {1, 0}), infinity) << name(d);
    EXPECT_TRUE(std::isnan(real(x / y, {0, 0}))) << name(d);
    EXPECT_EQ(real(modulo(x, y), {5.5, 2}), 1.5) << name(d);
    EXPECT_EQ(real(modulo(x, y), {-5.5, 2}), 0.5) << name(d);
    EXPECT_EQ(real(modulo(x, y), {5.5, -2}), -0.5) << name(d);
    EXPECT_EQ(real(modulo(x, y), {-1, infinity}), infinity) << name(d);
    EXPECT_TRUE(std::isnan(real(modulo(x, y), {1, 0}))) << name(d);
    EXPECT_TRUE(std::isnan(real(minimum(x, y), {nan, 1}))) << name(d);
    EXPECT_TRUE(std::isnan(real(maximum(x, y), {1, nan}))) << name(d);
    EXPECT_TRUE(std::signbit(real(maximum(x, y), {-0.0, 0.0}))) << name(d);
    EXPECT_EQ(real(floor(x), {-0.5}), -1) << name(d);
    EXPECT_TRUE(std::signbit(real(ceil(x), {-0.5}))) << name(d);
    EXPECT_EQ(real(round(x), {2.5}), 2) << name(d);
    EXPECT_EQ(real(round(x), {3.5}), 4) << name(d);
    EXPECT_EQ(real(sqrt(x), {2.25}), 1.5) << name(d);
    EXPECT_EQ(real(fma(x, y, z), {2, 3, 4}), 10) << name(d);
    EXPECT_EQ(real(power(x, y), {2, 3}), 8) << name(d);
    EXPECT_EQ(real(exp(x), {0}), 1) << name(d);
    EXPECT_EQ(real(log(x), {1}), 0) << name(d);
    EXPECT_EQ(real(sin(x), {0}), 0) << name(d);
    EXPECT_EQ(real(cos(x), {0}), 1) << name(d);
    EXPECT_EQ(real(tanh(x), {100}), 1) << name(d);
    EXPECT_EQ(real(erf(x), {100}), 1) << name(d);
    EXPECT_EQ(real(erfc(x), {-100}), 2) << name(d);
    EXPECT_EQ(real(-x, {1}), -1) << name(d);
    EXPECT_EQ(real(abs(x), {-1}), 1) << name(d);
  }
}

TEST(ExprMeaning, Casts) {
  auto to = [](double v, DType from, DType d) {
    ScalarValue values[] = {{.real = v}};
    return evaluate(cast(operand(0, from), d), values, {}, true).integer;
  };
  EXPECT_EQ(to(300, f32, u8), 255);
  EXPECT_EQ(to(-1, f32, u8), 0);
  EXPECT_EQ(to(-1e30, f32, i32), INT32_MIN);
  EXPECT_EQ(to(1e30, f64, i64), INT64_MAX);
  EXPECT_EQ(to(NAN, f64, i64), 0);
  EXPECT_EQ(to(-2.9, f64, i8), -2);
  EXPECT_EQ(to(NAN, f32, bool_), 1);
  EXPECT_EQ(integer(cast(x_of(i32), i8), {200}), -56);
  EXPECT_EQ(integer(bitcast(bitcast(x_of(i32), f32), i32), {0x7f7fffff}), 0x7f7fffff);
  // 2^62 + 2^54 + 1 lies above a tie of bf16; the 1 does not fit a double.
  ScalarValue big[] = {{.integer = (std::int64_t{1} << 62) + (std::int64_t{1} << 54) + 1}};
  EXPECT_EQ(evaluate(cast(x_of(i64), bf16), big, {}, true).real, 0x1p62 + 0x1p55);
}

TEST(ExprMeaning, ShortTypesRoundOnceToTheNearest) {
  std::mt19937_64 random(3);
  for (DType d : {f16, bf16}) {
    for (int i = 0; i < 200'000; ++i) {
      // A value of the type or the middle of two neighbours, give or take a little that f32 cannot see.
      auto bits = static_cast<ScalarBits>(random() % (d == f16 ? 0x7bff : 0x7f7f));
      double low = value_of(bits, d).real, high = value_of(bits + 1, d).real, middle = (low + high) / 2;
      double below = std::nextafter(middle, 0), above = std::nextafter(middle, INFINITY);
      EXPECT_EQ(bits_of({.real = below}, d), bits);
      EXPECT_EQ(bits_of({.real = above}, d), bits + 1);
      EXPECT_EQ(bits_of({.real = middle}, d), bits + (bits & 1));
      EXPECT_EQ(bits_of({.real = -low}, d), bits | 0x8000);
    }
    EXPECT_TRUE(std::isnan(value_of(bits_of({.real = NAN}, d), d).real));
  }
  EXPECT_EQ(value_of(bits_of({.real = 65519.9999}, f16), f16).real, 65504);
  EXPECT_EQ(value_of(bits_of({.real = 65520}, f16), f16).real, INFINITY);
}

TEST(ExprMeaning, RoundingEachNodeOrNone) {
  Expr e = (x_of(f32) + 1e-9) - 1;
  EXPECT_EQ(real(e, {1}, true), 0);
  EXPECT_GT(real(e, {1}, false), 0);
}

// --- Simplification

TEST(ExprSimplify, Rules) {
  Expr x = x_of(f32), i = x_of(i32), c = operand(2, bool_);
  EXPECT_EQ(simplify(x * 1), x);
  EXPECT_EQ(simplify(x - 0), x);
  EXPECT_EQ(simplify(x + constant(-0.0, f32)), x);
  EXPECT_EQ(simplify(x + 0), x + 0) << "of -0 it is 0";
  EXPECT_EQ(simplify(x * 0), x * 0) << "of infinity it is NaN";
  EXPECT_EQ(simplify(x - x), x - x);
  EXPECT_EQ(simplify(i + 0), i);
  EXPECT_EQ(simplify(i * 0), constant(0, i32));
  EXPECT_EQ(simplify(-(-x)), x);
  EXPECT_EQ(simplify(abs(-x)), abs(x));
  EXPECT_EQ(simplify(abs(-x_of(u8))), -x_of(u8));
  EXPECT_EQ(simplify(x / 4), x * 0.25);
  EXPECT_EQ(simplify(x / 3), x / 3);
  EXPECT_EQ(simplify(constant(2, f32) + 3), constant(5, f32));
  EXPECT_EQ(simplify(exp(constant(1, f32))), exp(constant(1, f32))) << "the compiled value may differ in the last bit";
  EXPECT_EQ(simplify(cast(cast(x_of(f16), f32), f16)), x_of(f16));
  EXPECT_EQ(simplify(cast(cast(x, f16), f32)), cast(cast(x, f16), f32));
  EXPECT_EQ(simplify(cast(cast(i, f64), i8)), cast(cast(i, f64), i8)) << "saturates, where i32 to i8 wraps";
  EXPECT_EQ(simplify(logical_not(logical_not(c))), c);
  EXPECT_EQ(simplify(logical_not(x < 1)), logical_not(x < 1));
  EXPECT_EQ(simplify(logical_not(i < 1)), 1 <= i);
  EXPECT_EQ(simplify(select(constant(1, bool_), x, x * 2)), x);
  EXPECT_EQ(simplify(select(c, x, x)), x);
  EXPECT_EQ(simplify(with_derivative(x * 1, x, x)), x);
}

TEST(ExprSimplify, KeepsEveryBit) {
  RandomExprs random(full_tests() ? 9 : seeded("expressions"));
  const int count = full_tests() ? 20'000 : 4000;
  int compared = 0;
  for (int i = 0; i < count; ++i) {
    Expr e = random.expr(2 + i % 25, true), s = simplify(e);
    verify(s);
    EXPECT_EQ(simplify(s), s) << s.str(true);
    for (int k = 0; k < 4; ++k) {
      std::vector<ScalarValue> operands;
      for (int n = 0; n < random_operand_count; ++n)
        operands.push_back(value_of(random.bits(random_operand_dtype(n)), random_operand_dtype(n)));
      std::int64_t indices[] = {k};
      if (looks_into_nan(e, operands, indices)) continue;
      ScalarBits before = bits_of(evaluate(e, operands, indices, true), e.dtype());
      ScalarBits after = bits_of(evaluate(s, operands, indices, true), e.dtype());
      ASSERT_TRUE(same_bits(before, after, e.dtype())) << e.str(true) << "\n" << s.str(true);
      ++compared;
    }
  }
  EXPECT_GT(compared, count / 2);
}

// --- Derivatives

struct DerivativeRow {
  const char* name;
  std::function<Expr(Expr, Expr)> build;
  std::vector<std::pair<double, double>> points;
};

std::vector<DerivativeRow> derivative_rows() {
  std::vector<std::pair<double, double>> all{{0.3, 0.7}, {-1.2, 0.45}, {2.3, -1.5}}, positive{{0.3, 0.7}, {2.3, -1.5}};
  return {
      {"add", [](Expr x, Expr y) { return x + y; }, all},
      {"subtract", [](Expr x, Expr y) { return y - x; }, all},
      {"multiply", [](Expr x, Expr y) { return x * y * x; }, all},
      {"divide", [](Expr x, Expr y) { return x / y; }, all},
      {"modulo", [](Expr x, Expr y) { return modulo(x, y); }, all},
      {"minimum", [](Expr x, Expr y) { return minimum(x, y * y); }, all},
      {"maximum", [](Expr x, Expr y) { return maximum(x * 2, y); }, all},
      {"power", [](Expr x, Expr y) { return power(x, y); }, positive},
      {"power 2", [](Expr x, Expr) { return power(x, constant(2, f64)); }, all},
      {"power 3", [](Expr x, Expr) { return power(x, constant(3, f64)); }, all},
      {"power 0", [](Expr x, Expr) { return power(x, constant(0, f64)); }, all},
      {"negate", [](Expr x, Expr) { return -x; }, all},
      {"absolute", [](Expr x, Expr) { return abs(x); }, all},
      {"floor", [](Expr x, Expr y) { return floor(x) + y; }, all},
      {"ceil", [](Expr x, Expr y) { return ceil(x) * y; }, all},
      {"round", [](Expr x, Expr) { return round(x); }, all},
      {"sqrt", [](Expr x, Expr) { return sqrt(x); }, positive},
      {"exp", [](Expr x, Expr y) { return exp(x * y); }, all},
      {"log", [](Expr x, Expr) { return log(x); }, positive},
      {"sin", [](Expr x, Expr) { return sin(x); }, all},
      {"cos", [](Expr x, Expr) { return cos(x); }, all},
      {"tanh", [](Expr x, Expr) { return tanh(x); }, all},
      {"erf", [](Expr x, Expr) { return erf(x); }, all},
      {"erfc", [](Expr x, Expr) { return erfc(x); }, all},
      {"exp2", [](Expr x, Expr) { return exp2(x); }, all},
      {"expm1", [](Expr x, Expr) { return expm1(x); }, all},
      {"log2", [](Expr x, Expr) { return log2(x); }, positive},
      {"log10", [](Expr x, Expr) { return log10(x); }, positive},
      {"erfinv", [](Expr, Expr y) { return erfinv(y * 0.5); }, all},
      {"log_gamma", [](Expr x, Expr) { return log_gamma(x); }, all},
      {"digamma", [](Expr x, Expr) { return digamma(x); }, all},
      {"atan2", [](Expr x, Expr y) { return atan2(x, y); }, all},
      {"fma", [](Expr x, Expr y) { return fma(x, y, x); }, all},
      {"select", [](Expr x, Expr y) { return select(x < y, x * 2, y * y); }, all},
      {"cast", [](Expr x, Expr) { return cast(cast(x, f32) * 3, f64); }, all},
      {"mask", [](Expr x, Expr y) { return cast(x < y, f64) * x; }, all},
      {"sigmoid", [](Expr x, Expr) { return 1 / (exp(-x) + 1); }, all},
  };
}

TEST(ExprDerivative, AgreesWithDifferences) {
  for (const DerivativeRow& row : derivative_rows())
    for (int order : {1, 2})
      for (int number : {0, 1}) {
        Expr e = row.build(x_of(f64), y_of(f64));
        if (order == 2) e = derivative(e, 0);
        Expr d = derivative(e, number);
        EXPECT_EQ(d.dtype(), f64);
        for (auto [x, y] : row.points) {
          double h = 1e-5, dx = number == 0 ? h : 0, dy = number == 1 ? h : 0;
          double difference = (real(e, {x + dx, y + dy}, false) - real(e, {x - dx, y - dy}, false)) / (2 * h);
          EXPECT_NEAR(real(d, {x, y}, false), difference, 1e-6 * (1 + std::abs(difference)))
              << row.name << " order " << order << " by x" << number << " at " << x << ", " << y << ": " << d.str();
        }
      }
}

TEST(ExprDerivative, TiesAndEdges) {
  Expr x = x_of(f64), y = y_of(f64);
  EXPECT_EQ(real(derivative(maximum(x, y), 0), {2, 2}), 0.5);
  EXPECT_EQ(real(derivative(minimum(x, y), 1), {2, 2}), 0.5);
  EXPECT_EQ(real(derivative(maximum(x, 0), 0), {0}), 0.5);
  EXPECT_EQ(real(derivative(abs(x), 0), {0}), 0);
  EXPECT_EQ(real(derivative(power(x, y), 0), {0, 0}), 0);
  EXPECT_EQ(real(derivative(power(x, y), 1), {0, 2}), 0);
  EXPECT_EQ(real(derivative(atan2(x, y), 0), {0, 0}), 0);
  EXPECT_EQ(real(derivative(atan2(x, y), 1), {0, 0}), 0);
  EXPECT_EQ(real(derivative(atan2(x, y), 0), {1e200, 1e200}), 0.5e-200) << "squares that overflow";
  EXPECT_EQ(derivative(x, 1), constant(0.0, f64));
  EXPECT_EQ(derivative(x, 0), constant(1.0, f64));
  EXPECT_EQ(derivative(cast(cast(x, i32), f64), 0), constant(0.0, f64));
  EXPECT_THROW(derivative(x_of(i32), 0), InternalError);
}

TEST(ExprDerivative, StatedBySeveralOperands) {
  Expr x = x_of(f64), y = y_of(f64);
  const Partial partials[] = {{x, y * 5}, {y, x * x}};
  Expr e = with_derivatives(x + y, partials);
  EXPECT_EQ(real(e, {2, 3}), 5);
  EXPECT_EQ(real(derivative(e, 0), {2, 3}), 15);
  EXPECT_EQ(real(derivative(e, 1), {2, 3}), 4);
  EXPECT_EQ(real(derivative(derivative(e, 1), 0), {2, 3}), 4);
  Expr inside[] = {x * 7, x};
  EXPECT_EQ(real(derivative(substitute(e, inside), 0), {2}), 7 * 10 + 14 * 14);
  EXPECT_EQ(simplify(e), x + y);
}

TEST(ExprDerivative, StatedInsteadOfDerived) {
  Expr x = x_of(f64);
  Expr e = with_derivative(log(exp(x) + 1), x, 1 / (exp(-x) + 1));
  EXPECT_EQ(real(e, {0.5}), std::log(std::exp(0.5) + 1));
  EXPECT_EQ(derivative(e, 0), 1 / (exp(-x) + 1));
  EXPECT_EQ(real(derivative(e, 0), {1000}), 1) << "where the derived one is infinity / infinity";
  // The chain rule goes through the operand, also of what is put in its place.
  Expr inside[] = {y_of(f64) * 3};
  Expr substituted = substitute(e, inside);
  EXPECT_EQ(substituted.str(), log(exp(y_of(f64) * 3) + 1).str());
  EXPECT_NEAR(real(derivative(substituted, 1), {0, 0.2}), 3 / (1 + std::exp(-0.6)), 1e-12);
  EXPECT_EQ(derivative(substituted, 0), constant(0.0, f64));
  // It is part of larger expressions, and does not show where nobody differentiates.
  EXPECT_NEAR(real(derivative(e * e, 0), {0.5}), 2 * real(e, {0.5}) / (1 + std::exp(-0.5)), 1e-12);
  EXPECT_EQ(topological(e).size(), topological(log(exp(x) + 1)).size() + 1);
  EXPECT_EQ(simplify(e), log(exp(x) + 1));
  EXPECT_THROW(with_derivative(x, x, x_of(f32)), InternalError);
}

// --- Expansion

std::vector<Expr> transcendental(Expr x, Expr y) {
  return {exp(x),  log(x),   sin(x),  cos(x),   tanh(x),      erf(x),     erfc(x),    power(x, y),
          exp2(x), expm1(x), log2(x), log10(x), log_gamma(x), digamma(x), atan2(x, y)};
}

TEST(ExpandMath, LeavesOnlyArithmetic) {
  for (DType d : {f16, bf16, f32, f64}) {
    Expr x = x_of(d), y = y_of(d);
    for (Expr e : transcendental(x, y)) {
      Expr expanded = expand_math(e);
      verify(expanded);
      EXPECT_EQ(expanded.dtype(), d);
      for (Expr node : topological(expanded)) {
        EXPECT_FALSE(is_transcendental(node->primitive)) << e.str(true);
        EXPECT_FALSE(node.is(Primitive::modulo)) << e.str(true);
      }
    }
  }
  EXPECT_EQ(expand_math(x_of(i32) + 1), x_of(i32) + 1);
}

TEST(ExpandMath, IsCloseToTheReference) {
  for (DType d : {f16, bf16, f32, f64}) {
    double unit = d == f64 ? 0x1p-52 : d == f32 ? 0x1p-23 : d == f16 ? 0x1p-10 : 0x1p-7;
    Expr x = x_of(d), y = y_of(d);
    for (Expr e : transcendental(x, y))
      for (double v : {0.125, 0.75, 1.0, 2.5, 4.0}) {
        double expected = real(e, {v, -1.5}), got = real(expand_math(e), {v, -1.5});
        EXPECT_NEAR(got, expected, 4 * unit * std::abs(expected)) << e.str(true) << " at " << v;
      }
  }
}

}  // namespace
}  // namespace stet
