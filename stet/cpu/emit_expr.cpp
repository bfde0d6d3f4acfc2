#include "stet/cpu/emit_expr.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/ir/expand_math.h"

namespace stet::cpu {

namespace {

bool is_short_float(DType d) { return d == DType::f16 || d == DType::bf16; }
bool is_unsigned(DType d) { return d == DType::u8 || d == DType::bool_; }

/// Conversions and operations of one width. Values are in their computed types; f16 and bf16 are computed with in f32.
class Emission {
 public:
  Emission(LlvmBuilder& b, int lanes) : b_(b), lanes_(lanes) {}

  Type type(DType d) const { return b_.vector(b_.computed(d), lanes_); }
  Type integers(int bits) const { return b_.vector(b_.integer(bits), lanes_); }
  Value constant(const ExprNode&);
  Value cast(Value, DType from, DType to);
  Value bitcast(Value value, DType to) { return b_.bitcast(value, type(to)); }
  Value floating(const ExprNode&, std::span<const Value> arguments);
  Value integral(const ExprNode&, std::span<const Value> arguments);
  Value compare(Primitive, DType, Value x, Value y);
  Value select(Value condition, DType, Value x, Value y);
  /// What `rare` gives if the condition holds in any lane, else the usual values.
  std::vector<Value> if_any(Value condition, std::span<const Value> usual,
                            const std::function<std::vector<Value>()>& rare);
  /// f16 or bf16 to f32 and back.
  Value widen(Value, DType from);
  Value narrow(Value, DType to);

 private:
  Value integer_constant(DType d, std::int64_t value) { return b_.constant(type(d), value); }
  Value round_to_odd(Value f64_value);
  Value to_integer(Value floating_value, DType to);
  Value from_integer(Value integer_value, DType from, DType to);
  Value resized(Value integer_value, DType from, DType to);
  Value extreme(const ExprNode&, Value x, Value y);
  /// f64 as a mantissa from 1 to 2 and an exponent; of 0 and what is not finite they mean nothing.
  struct Parts {
    Value mantissa, exponent;
  };
  Parts parts(Value positive);
  Value power_of_two(Value exponent);  // of one from -1022 to 1023
  Value remainder(Value x, Value y);
  Value modulo(Value x, Value y);
  Value floor_divide(const ExprNode&, Value x, Value y);
  Value quotient(DType, Value x, Value y, bool constant_divisor);
  Value shift(const ExprNode&, Value x, Value count);

  LlvmBuilder& b_;
  int lanes_;
};

Value Emission::constant(const ExprNode& node) {
  if (!is_floating(node.dtype)) return b_.constant(type(node.dtype), value_of(node.bits, node.dtype).integer);
  // By its bits, so that every NaN and -0 arrives as it is.
  Value bits = b_.constant(integers(8 * size_of(node.dtype)), static_cast<std::int64_t>(node.bits));
  return LLVMConstBitCast(bits, type(node.dtype));
}

// --- Casts

Value Emission::widen(Value value, DType from) {
  if (from == DType::f16) return LLVMBuildFPExt(b_.raw(), value, type(DType::f32), "");
  Value bits = LLVMBuildZExt(b_.raw(), value, integers(32), "");
  return b_.bitcast(LLVMBuildShl(b_.raw(), bits, b_.constant(integers(32), 16), ""), type(DType::f32));
}

Value Emission::narrow(Value value, DType to) {
  if (to == DType::f16) return LLVMBuildFPTrunc(b_.raw(), value, type(DType::f16), "");
  // Not LLVM's truncation: the instruction it uses flushes subnormals, and without it there is a library call.
  Type words = integers(32);
  Value bits = b_.bitcast(value, words), sixteen = b_.constant(words, 16);
  Value last = b_.bit_and(LLVMBuildLShr(b_.raw(), bits, sixteen, ""), b_.constant(words, 1));
  Value rounded = b_.add(b_.add(bits, b_.constant(words, 0x7fff)), last);
  Value quiet = b_.bit_or(bits, b_.constant(words, 0x400000));
  Value chosen = b_.select(b_.fcompare(LLVMRealUNO, value, value), quiet, rounded);
  return LLVMBuildTrunc(b_.raw(), LLVMBuildLShr(b_.raw(), chosen, sixteen, ""), type(DType::bf16), "");
}

/// f64 to f32, the last bit set where inexact: rounding again to a shorter type is then as good as rounding once.
Value Emission::round_to_odd(Value value) {
  Type words = integers(32);
  Value rounded = LLVMBuildFPTrunc(b_.raw(), value, type(DType::f32), "");
  Value back = LLVMBuildFPExt(b_.raw(), rounded, type(DType::f64), "");
  Value bits = b_.bitcast(rounded, words), one = b_.constant(words, 1);
  Value inexact = b_.fcompare(LLVMRealONE, back, value);
  Value even = b_.compare(LLVMIntEQ, b_.bit_and(bits, one), b_.zero(words));
  auto magnitude = [&](Value v) { return b_.intrinsic("llvm.fabs", {type(DType::f64)}, {v}); };
  Value away = b_.fcompare(LLVMRealOGT, magnitude(back), magnitude(value));
  Value step = b_.select(away, b_.constant(words, -1), one);
  Value odd = b_.select(b_.bit_and(inexact, even), b_.add(bits, step), bits);
  return b_.bitcast(odd, type(DType::f32));
}

Value Emission::to_integer(Value value, DType to) {
  const char* name = is_unsigned(to) ? "llvm.fptoui.sat" : "llvm.fptosi.sat";
  return b_.intrinsic(name, {type(to), LlvmBuilder::type_of(value)}, {value});
}

Value Emission::from_integer(Value value, DType from, DType to) {
  if (!is_short_float(to)) {
    if (is_unsigned(from)) return LLVMBuildUIToFP(b_.raw(), value, type(to), "");
    return LLVMBuildSIToFP(b_.raw(), value, type(to), "");
  }
  if (size_of(from) < 4) return narrow(from_integer(value, from, DType::f32), to);
  if (from == DType::i64) {
    // Bits that no double holds are or-ed into one that it does, which keeps them on their side of every tie.
    Type words = type(from);
    Value low = b_.constant(words, 0xffff), zero = b_.zero(words);
    Value dropped = b_.compare(LLVMIntNE, b_.bit_and(value, low), zero);
    Value sticky = b_.select(dropped, b_.constant(words, 0x10000), zero);
    Value coarse = b_.bit_or(b_.bit_and(value, b_.bit_not(low)), sticky);
    Value size = b_.intrinsic("llvm.abs", {words}, {value, b_.constant(b_.boolean(), 0)});
    Value large = b_.compare(LLVMIntUGE, size, b_.constant(words, std::int64_t{1} << 48));
    value = b_.select(large, coarse, value);
  }
  return narrow(round_to_odd(from_integer(value, from, DType::f64)), to);
}

Value Emission::resized(Value value, DType from, DType to) {
  if (size_of(to) == size_of(from)) return value;
  if (size_of(to) < size_of(from)) return LLVMBuildTrunc(b_.raw(), value, type(to), "");
  if (is_unsigned(from)) return LLVMBuildZExt(b_.raw(), value, type(to), "");
  return LLVMBuildSExt(b_.raw(), value, type(to), "");
}

Value Emission::cast(Value value, DType from, DType to) {
  if (from == to) return value;
  if (is_short_float(from)) return cast(widen(value, from), DType::f32, to);
  if (from == DType::bool_) {
    Value one = constant(*stet::constant(1, to)), zero = b_.zero(type(to));
    return select(value, to, one, zero);
  }
  if (is_floating(from)) {
    if (to == DType::bool_) return b_.fcompare(LLVMRealUNE, value, b_.zero(type(from)));
    if (!is_floating(to)) return to_integer(value, to);
    if (to == DType::f64) return LLVMBuildFPExt(b_.raw(), value, type(to), "");
    if (to == DType::f32) return LLVMBuildFPTrunc(b_.raw(), value, type(to), "");
    return narrow(from == DType::f64 ? round_to_odd(value) : value, to);
  }
  if (to == DType::bool_) return b_.compare(LLVMIntNE, value, b_.zero(type(from)));
  return is_floating(to) ? from_integer(value, from, to) : resized(value, from, to);
}

// --- Floating arithmetic

/// NaN wins; the first argument wins a tie. `select(y < x, y, x)` is one instruction, which gives x for a NaN.
Value Emission::extreme(const ExprNode& node, Value x, Value y) {
  bool least = node.primitive == Primitive::minimum;
  auto never_nan = [](Expr e) { return e.constant() && !std::isnan(*e.constant()); };
  if (never_nan(node.arguments[0]) && !never_nan(node.arguments[1]))
    return b_.select(b_.fcompare(least ? LLVMRealOGE : LLVMRealOLE, y, x), x, y);
  Value chosen = b_.select(b_.fcompare(least ? LLVMRealOLT : LLVMRealOGT, y, x), y, x);
  if (never_nan(node.arguments[1])) return chosen;
  return b_.select(b_.fcompare(LLVMRealUNO, y, y), y, chosen);
}

Value Emission::power_of_two(Value exponent) {
  Type words = type(DType::i64);
  Value biased = b_.add(exponent, b_.constant(words, 1023));
  return b_.bitcast(LLVMBuildShl(b_.raw(), biased, b_.constant(words, 52), ""), type(DType::f64));
}

Emission::Parts Emission::parts(Value positive) {
  Type reals = type(DType::f64), words = type(DType::i64);
  Value tiny = b_.fcompare(LLVMRealOLT, positive, b_.real(reals, 0x1p-1022));
  Value normal = b_.select(tiny, b_.fmultiply(positive, b_.real(reals, 0x1p54)), positive);
  Value bits = b_.bitcast(normal, words);
  Value biased = LLVMBuildLShr(b_.raw(), bits, b_.constant(words, 52), "");
  Value bias = b_.select(tiny, b_.constant(words, 1023 + 54), b_.constant(words, 1023));
  Value fraction = b_.bit_and(bits, b_.constant(words, (std::int64_t{1} << 52) - 1));
  Value one = b_.constant(words, std::int64_t{1023} << 52);
  return {b_.bitcast(b_.bit_or(fraction, one), reals), b_.subtract(biased, bias)};
}

/// What is left of x, with its sign, when |y| was taken from it as often as it goes; exact, of any two finite numbers.
/// Beside 0 and what is not finite the result means nothing.
Value Emission::remainder(Value x, Value y) {
  Type reals = type(DType::f64), words = type(DType::i64);
  auto magnitude = [&](Value v) { return b_.intrinsic("llvm.fabs", {reals}, {v}); };
  Value a = magnitude(x), b = magnitude(y), infinity = b_.real(reals, HUGE_VAL), zero = b_.zero(words);
  Parts over = parts(a), under = parts(b);
  Value usual = b_.bit_and(b_.fcompare(LLVMRealOLT, a, infinity), b_.fcompare(LLVMRealOLT, b, infinity));
  usual = b_.bit_and(usual, b_.fcompare(LLVMRealOGE, a, b));
  usual = b_.bit_and(usual, b_.fcompare(LLVMRealOGT, b, b_.real(reals, 0)));
  Value shift = b_.select(usual, b_.subtract(over.exponent, under.exponent), zero);
  Value longest = lanes_ == 1 ? shift : b_.intrinsic("llvm.vector.reduce.smax", {words}, {shift});
  // The mantissa moves up 51 bits at a time and is reduced: each quotient has digits enough to be exact, and what is
  // left is a multiple of the mantissas' last bit. Mostly there is one turn.
  constexpr int most = 51;
  Value state[] = {over.mantissa, shift};
  std::vector<Value> end = b_.loop(
      b_.index(0), b_.add(longest, b_.index(1)), b_.index(most), state, [&](Value, std::span<const Value> carried) {
        Value step = b_.minimum(carried[1], b_.constant(words, most));
        Value moved = b_.fmultiply(carried[0], power_of_two(step));
        Value quotient = b_.intrinsic("llvm.floor", {reals}, {b_.fdivide(moved, under.mantissa)});
        // Rounding is monotone, so the quotient is the floor or one more; either way the rest is exact.
        Value rest = b_.fma(LLVMBuildFNeg(b_.raw(), quotient, ""), under.mantissa, moved);
        Value below = b_.fcompare(LLVMRealOLT, rest, b_.real(reals, 0));
        rest = b_.select(below, b_.fadd(rest, under.mantissa), rest);
        return std::vector<Value>{rest, b_.subtract(carried[1], step)};
      });
  // Back to the exponent of y in two factors, as one of them may not be a normal number.
  Value half = LLVMBuildAShr(b_.raw(), under.exponent, b_.constant(words, 1), "");
  Value left = b_.fmultiply(end[0], power_of_two(half));
  left = b_.fmultiply(left, power_of_two(b_.subtract(under.exponent, half)));
  return b_.intrinsic("llvm.copysign", {reals}, {b_.select(usual, left, a), x});
}

/// Modulo as `evaluate` states it. All types go through f64.
Value Emission::modulo(Value given_x, Value given_y) {
  Type given = LlvmBuilder::type_of(given_x), reals = type(DType::f64);
  bool widened = given != reals;
  Value x = widened ? LLVMBuildFPExt(b_.raw(), given_x, reals, "") : given_x;
  Value y = widened ? LLVMBuildFPExt(b_.raw(), given_y, reals, "") : given_y;
  Value zero = b_.real(reals, 0);
  Value rest = remainder(x, y);
  Value opposite = b_.bit_xor(b_.fcompare(LLVMRealOLT, rest, zero), b_.fcompare(LLVMRealOLT, y, zero));
  Value none = b_.fcompare(LLVMRealOEQ, rest, zero);
  Value signed_zero = b_.intrinsic("llvm.copysign", {reals}, {zero, y});
  Value usual = b_.select(none, signed_zero, b_.select(opposite, b_.fadd(rest, y), rest));
  // NaN where x is not finite, y is 0 or one of them is NaN: then x * 0 / y is, and elsewhere it is not.
  Value nothing = b_.fdivide(b_.fmultiply(x, zero), y);
  Value out = b_.select(b_.fcompare(LLVMRealUNO, nothing, nothing), nothing, usual);
  return widened ? LLVMBuildFPTrunc(b_.raw(), out, given, "") : out;
}

Value Emission::floating(const ExprNode& node, std::span<const Value> v) {
  Type type = LlvmBuilder::type_of(v[0]);
  auto unary = [&](const char* name) { return b_.intrinsic(name, {type}, {v[0]}); };
  switch (node.primitive) {
    case Primitive::add:
      return b_.fadd(v[0], v[1]);
    case Primitive::subtract:
      return b_.fsubtract(v[0], v[1]);
    case Primitive::multiply:
      return b_.fmultiply(v[0], v[1]);
    case Primitive::divide:
      return b_.fdivide(v[0], v[1]);
    case Primitive::modulo:
      return modulo(v[0], v[1]);
    case Primitive::minimum:
    case Primitive::maximum:
      return extreme(node, v[0], v[1]);
    case Primitive::negate:
      return LLVMBuildFNeg(b_.raw(), v[0], "");
    case Primitive::absolute:
      return unary("llvm.fabs");
    case Primitive::floor:
      return unary("llvm.floor");
    case Primitive::ceil:
      return unary("llvm.ceil");
    case Primitive::round:
      return unary("llvm.roundeven");
    case Primitive::sqrt:
      return unary("llvm.sqrt");
    case Primitive::fma:
      return b_.fma(v[0], v[1], v[2]);
    default:
      throw InternalError(text("emit_expr: primitive ", static_cast<int>(node.primitive), " of floating values"));
  }
}

// --- Integer arithmetic

/// The quotient rounded down, of divisors other than 0 and -1.
Value Emission::quotient(DType d, Value x, Value y, bool constant_divisor) {
  if (lanes_ > 1 && !constant_divisor && size_of(d) <= 4) {
    // There is no vector division of integers, but a floating one whose digits suffice: a quotient of integers that is
    // not an integer is further from the next one than the rounding error.
    DType real = size_of(d) == 4 ? DType::f64 : DType::f32;
    Value ratio = b_.fdivide(from_integer(x, d, real), from_integer(y, d, real));
    Value whole = b_.intrinsic("llvm.floor", {type(real)}, {ratio});
    return resized(LLVMBuildFPToSI(b_.raw(), whole, type(DType::i32), ""), DType::i32, d);
  }
  if (is_unsigned(d)) return LLVMBuildUDiv(b_.raw(), x, y, "");
  Value truncated = LLVMBuildSDiv(b_.raw(), x, y, "");
  Value rest = b_.subtract(x, b_.multiply(truncated, y));
  Value zero = b_.zero(type(d));
  Value opposite = b_.compare(LLVMIntSLT, b_.bit_xor(rest, y), zero);
  Value low = b_.bit_and(opposite, b_.compare(LLVMIntNE, rest, zero));
  return b_.select(low, b_.subtract(truncated, integer_constant(d, 1)), truncated);
}

Value Emission::floor_divide(const ExprNode& node, Value x, Value y) {
  DType d = node.dtype;
  Value zero = b_.zero(type(d));
  if (node.arguments[1].is(Primitive::constant)) {
    std::int64_t divisor = value_of(node.arguments[1]->bits, d).integer;
    if (divisor == 0) return zero;
    if (divisor == -1) return LLVMBuildNeg(b_.raw(), x, "");
    if (divisor > 0 && std::has_single_bit(static_cast<std::uint64_t>(divisor))) {
      Value count = integer_constant(d, std::countr_zero(static_cast<std::uint64_t>(divisor)));
      return is_unsigned(d) ? LLVMBuildLShr(b_.raw(), x, count, "") : LLVMBuildAShr(b_.raw(), x, count, "");
    }
    return quotient(d, x, y, true);
  }
  // Division by 0 and of the lowest integer by -1 trap: both divisors are replaced and the results put in afterwards.
  Value by_zero = b_.compare(LLVMIntEQ, y, zero), one = integer_constant(d, 1);
  if (is_unsigned(d)) return b_.select(by_zero, zero, quotient(d, x, b_.select(by_zero, one, y), false));
  Value by_minus_one = b_.compare(LLVMIntEQ, y, integer_constant(d, -1));
  Value safe = b_.select(b_.bit_or(by_zero, by_minus_one), one, y);
  Value negated = b_.select(by_minus_one, LLVMBuildNeg(b_.raw(), x, ""), quotient(d, x, safe, false));
  return b_.select(by_zero, zero, negated);
}

Value Emission::shift(const ExprNode& node, Value x, Value count) {
  DType d = node.dtype;
  Value shifted = node.primitive == Primitive::shift_left ? LLVMBuildShl(b_.raw(), x, count, "")
                                                          : LLVMBuildLShr(b_.raw(), x, count, "");
  Value width = integer_constant(d, 8 * size_of(d));
  if (auto known = node.arguments[1].constant(); known && *known >= 0 && *known < 8 * size_of(d)) return shifted;
  // LLVM leaves other counts undefined; a select may throw away what is.
  return b_.select(b_.compare(LLVMIntULT, count, width), shifted, b_.zero(type(d)));
}

Value Emission::integral(const ExprNode& node, std::span<const Value> v) {
  DType d = node.dtype;
  auto extreme = [&](const char* of_signed, const char* of_unsigned) {
    return b_.intrinsic(is_unsigned(d) ? of_unsigned : of_signed, {type(d)}, {v[0], v[1]});
  };
  switch (node.primitive) {
    case Primitive::add:
      return b_.add(v[0], v[1]);
    case Primitive::subtract:
      return b_.subtract(v[0], v[1]);
    case Primitive::multiply:
      return b_.multiply(v[0], v[1]);
    case Primitive::divide:
      return floor_divide(node, v[0], v[1]);
    case Primitive::modulo: {
      Value rest = b_.subtract(v[0], b_.multiply(floor_divide(node, v[0], v[1]), v[1]));
      Value zero = b_.zero(type(d));
      return b_.select(b_.compare(LLVMIntEQ, v[1], zero), zero, rest);
    }
    case Primitive::minimum:
      return d == DType::bool_ ? b_.bit_and(v[0], v[1]) : extreme("llvm.smin", "llvm.umin");
    case Primitive::maximum:
      return d == DType::bool_ ? b_.bit_or(v[0], v[1]) : extreme("llvm.smax", "llvm.umax");
    case Primitive::negate:
      return LLVMBuildNeg(b_.raw(), v[0], "");
    case Primitive::absolute:
      if (is_unsigned(d)) return v[0];
      return b_.intrinsic("llvm.abs", {type(d)}, {v[0], b_.constant(b_.boolean(), 0)});
    case Primitive::logical_and:
      return b_.bit_and(v[0], v[1]);
    case Primitive::logical_or:
      return b_.bit_or(v[0], v[1]);
    case Primitive::logical_xor:
      return b_.bit_xor(v[0], v[1]);
    case Primitive::logical_not:
      return b_.bit_not(v[0]);
    case Primitive::shift_left:
    case Primitive::shift_right:
      return shift(node, v[0], v[1]);
    default:
      throw InternalError(text("emit_expr: primitive ", static_cast<int>(node.primitive), " of integers"));
  }
}

// --- Comparison and choice

Value Emission::compare(Primitive primitive, DType d, Value x, Value y) {
  if (is_floating(d)) {
    LLVMRealPredicate how = primitive == Primitive::less         ? LLVMRealOLT
                            : primitive == Primitive::less_equal ? LLVMRealOLE
                                                                 : LLVMRealOEQ;
    return b_.fcompare(how, x, y);
  }
  if (primitive == Primitive::equal) return b_.compare(LLVMIntEQ, x, y);
  if (is_unsigned(d)) return b_.compare(primitive == Primitive::less ? LLVMIntULT : LLVMIntULE, x, y);
  return b_.compare(primitive == Primitive::less ? LLVMIntSLT : LLVMIntSLE, x, y);
}

Value Emission::select(Value condition, DType d, Value x, Value y) {
  if (!is_short_float(d)) return b_.select(condition, x, y);
  // As integers: the code generator knows more about their vectors.
  Type bits = integers(16);
  return b_.bitcast(b_.select(condition, b_.bitcast(x, bits), b_.bitcast(y, bits)), type(d));
}

std::vector<Value> Emission::if_any(Value condition, std::span<const Value> usual,
                                    const std::function<std::vector<Value>()>& rare) {
  Value any =
      lanes_ == 1 ? condition : b_.intrinsic("llvm.vector.reduce.or", {LlvmBuilder::type_of(condition)}, {condition});
  Value turns = b_.select(any, b_.index(1), b_.index(0));
  return b_.loop(b_.index(0), turns, b_.index(1), usual, [&](Value, std::span<const Value>) { return rare(); });
}

/// The nodes of an expression in order, each once.
class ExprEmitter {
 public:
  ExprEmitter(LlvmBuilder& b, int lanes, const std::function<Value(int)>& operand,
              const std::function<Value(int)>& loop_index)
      : emission_(b, lanes), operand_(operand), loop_index_(loop_index) {}

  Value emit(Expr root) {
    roots_.push_back(root);
    return needed(root);
  }

 private:
  /// Emits what is not yet, arguments first, but for what only a rare choice needs.
  Value needed(Expr root) {
    std::vector<Expr> pending{root};
    while (!pending.empty()) {
      Expr top = pending.back();
      std::size_t before = pending.size();
      if (!values_.contains(&*top)) {
        for (int i = top->argument_count; i-- > 0;)
          if (!(i == 1 && is_rare(top)) && !values_.contains(&*top->arguments[i])) pending.push_back(top->arguments[i]);
        if (pending.size() > before) continue;
        if (is_rare(top))
          choose_rarely(top, root);
        else
          values_[&*top] = node_value(*top);
      }
      pending.pop_back();
    }
    return values_.at(&*root);
  }

  static bool is_rare(Expr e) { return e.is(Primitive::select_rarely); }

  /// A block that is entered if any lane takes the rare side, for all choices by the condition that can be made now.
  void choose_rarely(Expr first, Expr root) {
    std::vector<Expr> choices{first};
    for (Expr e : topological(root)) {
      if (!is_rare(e) || e == first || e->arguments[0] != first->arguments[0] || values_.contains(&*e)) continue;
      // One whose usual side waits for a choice itself is made later, in a block of its own.
      std::vector<Expr> below = topological(e->arguments[2]);
      if (std::any_of(below.begin(), below.end(), is_rare)) continue;
      needed(e->arguments[2]);
      choices.push_back(e);
    }
    std::vector<Value> usual;
    for (Expr e : choices) usual.push_back(value(*e, 2));
    std::vector<Value> chosen = emission_.if_any(value(*first, 0), usual, [&] {
      // What is computed here is not known outside.
      auto outer_values = values_, outer_widened = widened_;
      std::vector<Value> rare;
      for (Expr e : choices) {
        Value other = needed(e->arguments[1]);
        rare.push_back(emission_.select(value(*e, 0), e.dtype(), other, value(*e, 2)));
      }
      values_ = std::move(outer_values);
      widened_ = std::move(outer_widened);
      return rare;
    });
    for (std::size_t i = 0; i < choices.size(); ++i) values_[&*choices[i]] = chosen[i];
  }

  Value node_value(const ExprNode& node) {
    switch (node.primitive) {
      case Primitive::operand:
        return operand_(node.number);
      case Primitive::index:
        return loop_index_(node.number);
      case Primitive::constant:
        return emission_.constant(node);
      default:
        break;
    }
    DType of = node.arguments[0].dtype();
    switch (node.primitive) {
      case Primitive::cast:
        return emission_.cast(value(node, 0), of, node.dtype);
      case Primitive::bitcast:
        return emission_.bitcast(value(node, 0), node.dtype);
      case Primitive::select:
        return emission_.select(value(node, 0), node.dtype, value(node, 1), value(node, 2));
      case Primitive::less:
      case Primitive::less_equal:
      case Primitive::equal:
        return emission_.compare(node.primitive, of, wide(node, 0), wide(node, 1));
      default:
        break;
    }
    Value arguments[3] = {};
    for (int i = 0; i < node.argument_count; ++i) arguments[i] = wide(node, i);
    std::span<const Value> given(arguments, node.argument_count);
    if (!is_floating(node.dtype)) return emission_.integral(node, given);
    Value result = emission_.floating(node, given);
    return is_short_float(node.dtype) ? emission_.narrow(result, node.dtype) : result;
  }

  Value value(const ExprNode& node, int argument) const { return values_.at(&*node.arguments[argument]); }

  /// The argument as it is computed with: f16 and bf16 as f32, converted once.
  Value wide(const ExprNode& node, int argument) {
    Expr e = node.arguments[argument];
    if (!is_short_float(e.dtype())) return value(node, argument);
    auto [at, fresh] = widened_.try_emplace(&*e, nullptr);
    if (fresh) at->second = emission_.widen(value(node, argument), e.dtype());
    return at->second;
  }

  Emission emission_;
  const std::function<Value(int)>& operand_;
  const std::function<Value(int)>& loop_index_;
  std::vector<Expr> roots_;  // hold the nodes that the tables are keyed by
  std::unordered_map<const ExprNode*, Value> values_, widened_;
};

}  // namespace

std::vector<Value> emit_exprs(LlvmBuilder& b, std::span<const Expr> exprs, int lanes,
                              const std::function<Value(int)>& operand, const std::function<Value(int)>& loop_index) {
  ExprEmitter emitter(b, lanes, operand, loop_index);
  std::vector<Value> results;
  for (Expr expr : exprs) results.push_back(emitter.emit(simplify(expand_math(simplify(expr)))));
  return results;
}

Value emit_expr(LlvmBuilder& b, Expr expr, int lanes, const std::function<Value(int)>& operand,
                const std::function<Value(int)>& loop_index) {
  return emit_exprs(b, std::span(&expr, 1), lanes, operand, loop_index)[0];
}

Value from_storage(LlvmBuilder& b, DType dtype, Value stored) {
  if (dtype != DType::bool_) return stored;
  return b.compare(LLVMIntNE, stored, b.zero(LlvmBuilder::type_of(stored)));
}

Value to_storage(LlvmBuilder& b, DType dtype, Value computed) {
  if (dtype != DType::bool_) return computed;
  int lanes = LlvmBuilder::lanes_of(computed);
  return LLVMBuildZExt(b.raw(), computed, b.vector(b.integer(8), lanes), "");
}

}  // namespace stet::cpu
