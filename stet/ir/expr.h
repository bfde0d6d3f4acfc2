// Expr: a scalar computation. The body of every elementwise op, of every fused kernel and of every epilogue.
//
// Expressions are typed, immutable, counted and hash-consed: equal expressions are the same pointer, as long as anyone
// holds one. (So a table over expressions that come and go is keyed by Expr, never by the pointer alone.) An operand is
// "the element of input i at this position"; an index is the position along a loop. The meaning of each primitive is
// the reference evaluation below; code generators must agree with it (maps: within the ULP bounds tested).
//
// Numerics: integer arithmetic wraps; integer division and modulo by 0 give 0; float to integer saturates, NaN gives 0;
// minimum and maximum propagate NaN and give the first of equal arguments (of -0 and 0 too); nothing is contracted or
// reassociated, `fma` is explicit. Arithmetic of f16 and bf16 is that of f32, rounded to the type after every node.
// Floating modulo is exact but for one rounding where the signs differ; by 0 it is NaN. An integer power wraps; of a
// negative exponent it is the quotient rounded towards zero (0, or +-1 of +-1).
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stet/base/dtype.h"

namespace stet {

enum class Primitive : std::uint8_t {
  operand,   // number: which
  index,     // number: which loop; i64
  constant,  // bits
  add,
  subtract,
  multiply,
  divide,  // floating: IEEE; integers: floor division
  modulo,  // sign of the divisor, integers and floating
  minimum,
  maximum,
  power,
  negate,
  absolute,
  floor,
  ceil,
  round /* half to even */,
  sqrt,
  exp,
  log,
  sin,
  cos,
  tanh,
  erf,
  erfc,
  exp2,
  expm1,  // exp(x) - 1
  log2,
  log10,
  erfinv,
  log_gamma,  // of |gamma(x)|
  digamma,    // the derivative of log_gamma
  atan2,      // the angle of the point (second, first)
  fma,        // x * y + z, rounded once
  less,
  less_equal,
  equal,  // any type -> bool
  logical_and,
  logical_or,
  logical_xor,  // bool and integers, bitwise
  logical_not,  // bool: not; integers: complement
  shift_left,
  shift_right,    // integers; zeros come in on both sides: all bits where the count is negative or not below the width
  select,         // bool, a, b
  cast,           // to this node's dtype; bool from number is "!= 0"
  bitcast,        // same size, f32 <-> i32, f64 <-> i64, f16/bf16 <-> i16
  select_rarely,  // as select; where no lane takes the second argument, code need not compute it
};

struct ExprNode;

/// A value of 64 bits: the bits of an element of any type (floating as the bit pattern of its own type, f16/bf16 too).
using ScalarBits = std::uint64_t;

class Expr {
 public:
  Expr() = default;  // undefined
  Expr(const Expr& other) : node_(other.node_) { retain(); }
  Expr(Expr&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  Expr& operator=(Expr other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~Expr() {
    if (node_) release();
  }
  bool defined() const { return node_ != nullptr; }
  const ExprNode& operator*() const { return *node_; }
  const ExprNode* operator->() const { return node_; }
  bool operator==(const Expr& other) const { return node_ == other.node_; }  // the same expression

  DType dtype() const;
  bool is(Primitive) const;
  /// Value of a constant, as double or as integer.
  std::optional<double> constant() const;
  /// Highest operand number + 1.
  int operand_count() const;
  /// Number of distinct nodes.
  int size() const;
  /// "max(x0, 0)" with operands x0, x1, … and loops i0, i1, …; readable; types shown at casts and operands where
  /// `typed`.
  std::string str(bool typed = false) const;

 private:
  friend struct ExprTable;
  explicit Expr(const ExprNode* counted) : node_(counted) {}
  void retain() const;
  void release();
  const ExprNode* node_ = nullptr;
};

/// How many Exprs hold a node; a copy of the node has none.
class ExprHolders {
 public:
  ExprHolders() = default;
  ExprHolders(const ExprHolders&) {}
  ExprHolders& operator=(const ExprHolders&) { return *this; }
  mutable std::atomic<std::uint32_t> count{0};
};

struct ExprNode {
  Primitive primitive;
  DType dtype;
  std::uint8_t argument_count = 0;
  bool custom_derivative = false;  // see with_derivative
  Expr arguments[3] = {};
  ScalarBits bits = 0;   // constant
  int number = 0;        // operand, index
  Expr derivative = {};  // with_derivative: d(arguments[0]) / d(arguments[1]), where argument_count is 1
  std::size_t hash = 0;
  std::uint64_t id = 0;  // in order of creation: arguments have smaller ids
  ExprHolders holders = {};
};

inline void Expr::retain() const {
  if (node_) node_->holders.count.fetch_add(1, std::memory_order_relaxed);
}

/// Nodes that anyone holds.
std::size_t live_expressions();

// --- Building. Literals take the other operand's type: `x * 2` for an f32 x is an f32 product.

Expr operand(int number, DType);
Expr loop_index(int loop);
Expr constant(double, DType);
Expr constant(std::int64_t, DType);
inline Expr constant(int value, DType dtype) { return constant(static_cast<std::int64_t>(value), dtype); }
Expr constant_bits(ScalarBits, DType);

/// The general builder: checks argument count and types (InternalError), folds nothing, interns.
Expr make(Primitive, std::span<const Expr> arguments, DType result);

/// A C++ number in a row's body, typed by what it meets.
struct Literal {
  double real;
  std::int64_t integer;
  bool integral;
  Literal(int v) : real(v), integer(v), integral(true) {}
  Literal(std::int64_t v) : real(static_cast<double>(v)), integer(v), integral(true) {}
  Literal(double v) : real(v), integer(0), integral(false) {}
  Expr as(DType) const;
};

Expr operator+(Expr, Expr);
Expr operator+(Expr, Literal);
Expr operator+(Literal, Expr);
Expr operator-(Expr, Expr);
Expr operator-(Expr, Literal);
Expr operator-(Literal, Expr);
Expr operator*(Expr, Expr);
Expr operator*(Expr, Literal);
Expr operator*(Literal, Expr);
Expr operator/(Expr, Expr);
Expr operator/(Expr, Literal);
Expr operator/(Literal, Expr);
Expr operator-(Expr);
Expr operator<(Expr, Expr);
Expr operator<(Expr, Literal);
Expr operator<(Literal, Expr);
Expr operator<=(Expr, Expr);
Expr operator<=(Expr, Literal);
Expr operator<=(Literal, Expr);

namespace scalar {
Expr modulo(Expr, Expr);
Expr minimum(Expr, Expr);
Expr minimum(Expr, Literal);
Expr maximum(Expr, Expr);
Expr maximum(Expr, Literal);
Expr power(Expr, Expr);
Expr abs(Expr);
Expr floor(Expr);
Expr ceil(Expr);
Expr round(Expr);
Expr sqrt(Expr);
Expr exp(Expr);
Expr log(Expr);
Expr sin(Expr);
Expr cos(Expr);
Expr tanh(Expr);
Expr erf(Expr);
Expr erfc(Expr);
Expr exp2(Expr);
Expr expm1(Expr);
Expr log2(Expr);
Expr log10(Expr);
Expr erfinv(Expr);
Expr log_gamma(Expr);
Expr digamma(Expr);
Expr atan2(Expr y, Expr x);
Expr fma(Expr, Expr, Expr);
Expr equal(Expr, Expr);
Expr equal(Expr, Literal);
Expr logical_and(Expr, Expr);
Expr logical_or(Expr, Expr);
Expr logical_xor(Expr, Expr);
Expr logical_not(Expr);
Expr shift_left(Expr, int count);  // from 0 to the width less 1 (InternalError)
Expr shift_left(Expr, Expr count);
Expr shift_right(Expr, int count);
Expr shift_right(Expr, Expr count);
Expr select(Expr condition, Expr a, Expr b);
Expr select(Expr condition, Expr a, Literal b);
Expr select(Expr condition, Literal a, Expr b);
Expr select_rarely(Expr condition, Expr a, Expr b);
Expr cast(Expr, DType);  // itself if it has that type
Expr bitcast(Expr, DType);
/// `value`, whose derivative with respect to `operand` (the row's only operand that matters) is stated instead of
/// derived: for bodies that are careful about overflow and would differentiate badly. Substitution carries it along
/// (the chain rule goes through `operand`). To all but `derivative`, the node is a cast of `value` to its own type.
Expr with_derivative(Expr value, Expr operand, Expr derivative);
/// The same of several operands.
struct Partial {
  Expr operand, derivative;
};
Expr with_derivatives(Expr value, std::span<const Partial>);
}  // namespace scalar

// --- Meaning

/// Reference evaluation in double precision (integers exactly, in i64 wrapped to their type). `operands` are the bits
/// of the inputs' elements; `indices` the loop positions. Intermediate floating values of f32, f16 and bf16 nodes are
/// kept in double *unless* `round_each`, which rounds every node to its dtype. The result is a double for floating
/// dtypes, an exact integer otherwise.
struct ScalarValue {
  double real = 0;
  std::int64_t integer = 0;
};
/// The value of an element's bits, and the bits of a value (rounded to the dtype, nearest even; integers wrapped).
ScalarValue value_of(ScalarBits, DType);
ScalarBits bits_of(ScalarValue, DType);
/// What `cast` does: rounds once to nearest even, wraps between integers, saturates from floating to integer.
ScalarValue convert(ScalarValue, DType from, DType to);
/// Whether an expression of this primitive is replaced by a polynomial when compiled (ir/expand_math.h), so that its
/// compiled value may differ from evaluate's in the last bits.
bool is_transcendental(Primitive);
/// One node applied to the values of its arguments; not of leaves. See evaluate for `round_each`.
ScalarValue apply(const ExprNode&, std::span<const ScalarValue> arguments, bool round_each);

ScalarValue evaluate(Expr, std::span<const ScalarValue> operands, std::span<const std::int64_t> indices = {},
                     bool round_each = false);

/// d(expr)/d(operand `number`), of the expr's dtype. Piecewise functions take the derivative of the chosen piece;
/// maximum and minimum split ties in halves (0.5), as JAX does; floor, round, comparisons and integer expressions have
/// derivative 0; casts between floating types pass it on. abs has derivative 0 at 0.
Expr derivative(Expr, int number);

/// Every operand i replaced by replacements[i] (same dtype, InternalError otherwise).
Expr substitute(Expr, std::span<const Expr> replacements);
/// Every loop index renumbered.
Expr renumber_loops(Expr, std::span<const int> loops);
/// Algebraic simplification that keeps every bit of every finite and non-finite result: constant folding, x*1, x-0,
/// double negation, cast chains that lose nothing, select on constants, not(not(x)). Not x*0, not x+0 (of -0).
/// Stated derivatives are dropped: simplify what is compiled, differentiate what is not.
Expr simplify(Expr);
/// All nodes in dependency order (arguments first).
std::vector<Expr> topological(Expr);
/// Structural checks of types and argument counts; InternalError with the offending node.
void verify(Expr);

}  // namespace stet
