// Random well-typed expressions over all primitives and dtypes, and inputs that are hard on them.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "stet/ir/expr.h"

namespace stet {

/// Operand numbers of the random expressions: two of every dtype.
inline constexpr int random_operand_count = 2 * dtype_count;
inline DType random_operand_dtype(int number) { return dtype_table[number / 2].dtype; }

inline bool exact_primitive(Primitive p, DType d) {
  // A floating power and the transcendental functions are exact to some units only.
  return !is_transcendental(p) || (p == Primitive::power && !is_floating(d));
}

/// The dtypes that a primitive of one argument type takes; empty for select, cast, bitcast and leaves.
inline std::vector<DType> argument_dtypes(Primitive p) {
  std::vector<DType> out;
  for (const DTypeRow& row : dtype_table) {
    DType d = row.dtype;
    bool number = d != bool_;
    bool fits = false;
    if (p >= Primitive::add && p <= Primitive::absolute) fits = number;
    if (p == Primitive::minimum || p == Primitive::maximum) fits = true;
    if (p >= Primitive::floor && p <= Primitive::fma) fits = is_floating(d);
    if (p >= Primitive::less && p <= Primitive::equal) fits = true;
    if (p >= Primitive::logical_and && p <= Primitive::logical_not) fits = !is_floating(d);
    if (p == Primitive::shift_left || p == Primitive::shift_right) fits = is_integer(d);
    if (fits) out.push_back(d);
  }
  return out;
}

inline int argument_count(Primitive p) {
  if (p == Primitive::fma || p == Primitive::select) return 3;
  bool unary = (p >= Primitive::negate && p <= Primitive::digamma) || p == Primitive::logical_not ||
               p == Primitive::cast || p == Primitive::bitcast;
  return unary ? 1 : 2;
}

inline bool is_comparison(Primitive p) { return p >= Primitive::less && p <= Primitive::equal; }
inline bool is_shift(Primitive p) { return p == Primitive::shift_left || p == Primitive::shift_right; }

/// Bits of values where arithmetic goes wrong first.
inline std::vector<ScalarBits> hard_values(DType d) {
  std::vector<ScalarBits> out;
  if (is_floating(d)) {
    for (double v : {0.0,
                     -0.0,
                     1.0,
                     -1.0,
                     0.5,
                     -0.5,
                     1.5,
                     2.5,
                     -2.5,
                     3.0,
                     7.0,
                     -7.0,
                     127.5,
                     255.0,
                     256.0,
                     1e-30,
                     1e30,
                     -1e30,
                     65504.0,
                     65520.0,
                     2147483648.0,
                     -2147483648.0,
                     1e19,
                     double(INFINITY),
                     -double(INFINITY),
                     double(NAN),
                     5e-324,
                     1e-45,
                     6e-8,
                     1.0009765625,
                     1.00390625})
      out.push_back(bits_of({.real = v}, d));
    // Beside the middle of two f16 or bf16 by less than an f32 can see: rounding twice goes wrong.
    for (double unit : {0x1p-11, 0x1p-8, 0x1p-25, 0x1p-134})
      for (double low : {0.0, unit < 0x1p-20 ? 0.0 : 1.0})
        for (double sign : {1.0, -1.0})
          for (double odd : {1.0, 3.0}) out.push_back(bits_of({.real = sign * (low + odd * unit * (1 + 0x1p-36))}, d));
    // NaNs whose bits are all ones, or none but the last: adding to them to round them makes another number.
    ScalarBits ones = (ScalarBits{1} << (8 * size_of(d) - 1)) - 1, infinity = bits_of({.real = INFINITY}, d);
    out.insert(out.end(), {ones, infinity + 1});
    out.push_back(1);  // the smallest subnormal
    return out;
  }
  std::int64_t low = row(d).lowest, high = row(d).highest;
  for (std::int64_t v : {std::int64_t{0}, std::int64_t{1}, std::int64_t{-1}, std::int64_t{2}, std::int64_t{-2},
                         std::int64_t{3}, std::int64_t{-3}, std::int64_t{7}, std::int64_t{100}, low, low + 1, high,
                         high - 1, std::int64_t{65536}, (std::int64_t{1} << 62) + (std::int64_t{1} << 54) + 1})
    out.push_back(bits_of({.integer = v}, d));
  return out;
}

class RandomExprs {
 public:
  explicit RandomExprs(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  ScalarBits bits(DType d) {
    std::vector<ScalarBits> hard = hard_values(d);
    switch (below(3)) {
      case 0:
        return hard[below(hard.size())];
      case 1:
        return bits_of(convert({.real = static_cast<double>(below(4001)) / 100 - 20}, f64, d), d);
      default: {
        ScalarBits raw = d == bool_ ? random_() & 1 : random_();
        return size_of(d) == 8 ? raw : raw & ((ScalarBits{1} << (8 * size_of(d))) - 1);
      }
    }
  }

  /// An expression of about `nodes` nodes. Floating powers and transcendental functions only where allowed.
  Expr expr(int nodes, bool transcendental) {
    std::vector<std::vector<Expr>> pool(dtype_count);
    auto& rng = *this;
    auto of = [&](DType d) -> std::vector<Expr>& { return pool[static_cast<std::size_t>(d)]; };
    for (int i = 0; i < random_operand_count; ++i)
      of(random_operand_dtype(i)).push_back(operand(i, random_operand_dtype(i)));
    of(i64).push_back(loop_index(0));
    auto pick = [&](DType d) {
      if (rng.below(8) == 0) return constant_bits(rng.bits(d), d);
      std::vector<Expr>& from = of(d);
      // The youngest more often, so that expressions grow deep.
      std::size_t reach = std::min<std::size_t>(from.size(), rng.below(2) ? 3 : from.size());
      return from[from.size() - 1 - rng.below(reach)];
    };
    Expr last;
    for (int i = 0; i < nodes;) {
      auto p =
          static_cast<Primitive>(static_cast<int>(Primitive::add) + rng.below(static_cast<int>(Primitive::bitcast) -
                                                                              static_cast<int>(Primitive::add) + 1));
      Expr made = node(p, pick, transcendental);
      if (!made.defined()) continue;
      of(made.dtype()).push_back(made);
      last = made;
      ++i;
    }
    return last;
  }

 private:
  template <class Pick>
  Expr node(Primitive p, const Pick& pick, bool transcendental) {
    DType any = dtype_table[below(dtype_count)].dtype, other = dtype_table[below(dtype_count)].dtype;
    if (p == Primitive::select) return scalar::select(pick(bool_), pick(any), pick(any));
    if (p == Primitive::cast) return scalar::cast(pick(any), other);
    if (p == Primitive::bitcast)
      return any != bool_ && other != bool_ && size_of(any) == size_of(other) ? scalar::bitcast(pick(any), other)
                                                                              : Expr();
    std::vector<DType> dtypes = argument_dtypes(p);
    DType d = dtypes[below(dtypes.size())];
    if (!transcendental && !exact_primitive(p, d)) return Expr();
    Expr arguments[3] = {pick(d), pick(d), pick(d)};
    if (is_shift(p) && below(2))
      arguments[1] = constant(static_cast<int>(below(static_cast<std::uint64_t>(8 * size_of(d)))), d);
    return make(p, std::span(arguments, static_cast<std::size_t>(argument_count(p))), is_comparison(p) ? bool_ : d);
  }

  std::mt19937_64 random_;
};

/// Equal bits, or both NaN.
inline bool same_bits(ScalarBits a, ScalarBits b, DType d) {
  if (a == b) return true;
  return is_floating(d) && std::isnan(value_of(a, d).real) && std::isnan(value_of(b, d).real);
}

/// Whether a NaN's bits are looked at: which NaN an operation gives is not part of its meaning.
inline bool looks_into_nan(Expr expr, std::span<const ScalarValue> operands, std::span<const std::int64_t> indices) {
  for (Expr e : topological(expr))
    if (e.is(Primitive::bitcast) && is_floating(e->arguments[0].dtype()) &&
        std::isnan(evaluate(e->arguments[0], operands, indices, true).real))
      return true;
  return false;
}

}  // namespace stet
