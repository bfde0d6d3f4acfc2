// Dim: the size of one dimension, an integer or a polynomial in symbols.
//
// A symbol stands for a size that is known only when a program runs. Polynomials are kept canonical (terms sorted, like
// terms merged, floor-division, modulo and max(…, 0) as atoms), so that two Dims built in different ways from the same
// symbols are identical. Dims are values: immutable, counted, cheap to copy; a constant Dim never allocates.
//
// Whoever asks about a size leaves a record. Ops state needs (require, check) and take decisions (decide); host code
// compares (core/dim_host.h) and reads (value). What answers without a record (the size in this call, what is
// identical, what can be proved) is for the inside of the library: those members compile only where dim_inside.h is
// included, which no header that users, ops/, data/ or keras/ see does.
#pragma once
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/text.h"
#include "stet/base/where.h"

namespace stet {

enum class Relation : std::uint8_t { equal, not_equal, less, less_equal };

class SymbolScope;  // dim_inside.h
class Polynomial;   // polynomial.h
class Bindings;     // bindings.h
struct Inside;      // dim_inside.h

class Dim {
 public:
  template <std::integral I>
  requires(!std::same_as<I, bool>) Dim(I value) : constant_(static_cast<std::int64_t>(value)) {}
  Dim(const Dim& other) : constant_(other.constant_), polynomial_(other.polynomial_) {
    if (polynomial_) retain(polynomial_);
  }
  Dim(Dim&& other) noexcept : constant_(other.constant_), polynomial_(std::exchange(other.polynomial_, nullptr)) {}
  Dim& operator=(Dim other) noexcept {
    std::swap(constant_, other.constant_);
    std::swap(polynomial_, other.polynomial_);
    return *this;
  }
  ~Dim() {
    if (polynomial_) release(polynomial_);
  }

  /// The size as an integer. Of a constant, itself; a symbol is pinned to its size in this call: the trace then serves
  /// only calls with this size. TraceError for a size of another trace, and for one that depends on values.
  std::int64_t value(Where where = Where::here()) const { return polynomial_ ? pinned_value(where) : constant_; }
  /// As value(), pinning, in another type. The line that facts name is the one where the size was taken.
  template <std::integral I>
  requires(!std::same_as<I, bool>) explicit operator I() const {
    const std::int64_t integer = value(Where{});
    const I narrowed = static_cast<I>(integer);
    if (static_cast<std::int64_t>(narrowed) != integer || (narrowed < I{}) != (integer < 0)) does_not_fit(sizeof(I));
    return narrowed;
  }
  template <std::floating_point F>
  explicit operator F() const {
    return static_cast<F>(value(Where{}));
  }

  /// value() as text. `<<` writes symbols by their names and pins nothing.
  std::string str(Where where = Where::here()) const { return std::to_string(value(where)); }

  // Arithmetic throws Problem where a coefficient or constant leaves 64 bits, or an expression grows beyond what any
  // size needs; TraceError if the symbols of the operands belong to two scopes.
  friend Dim operator+(const Dim& a, const Dim& b) {
    std::int64_t result;
    if (!a.polynomial_ && !b.polynomial_ && !__builtin_add_overflow(a.constant_, b.constant_, &result)) return result;
    return add(a, b);
  }
  friend Dim operator-(const Dim& a, const Dim& b) {
    std::int64_t result;
    if (!a.polynomial_ && !b.polynomial_ && !__builtin_sub_overflow(a.constant_, b.constant_, &result)) return result;
    return subtract(a, b);
  }
  friend Dim operator*(const Dim& a, const Dim& b) {
    std::int64_t result;
    if (!a.polynomial_ && !b.polynomial_ && !__builtin_mul_overflow(a.constant_, b.constant_, &result)) return result;
    return multiply(a, b);
  }
  /// Floor division and the modulo that goes with it (sign of the divisor), as sizes need them. By constant zero:
  /// throws Problem. By a symbol: where a call's size makes it 0, the op or question that uses the result is that
  /// Problem; what is inside the library sees 0, so `s * t / s` does not cancel (see exact_quotient).
  friend Dim operator/(const Dim& a, const Dim& b) {
    if (!a.polynomial_ && !b.polynomial_ && a.constant_ >= 0 && b.constant_ > 0) return a.constant_ / b.constant_;
    return divide(a, b);
  }
  friend Dim operator%(const Dim& a, const Dim& b) {
    if (!a.polynomial_ && !b.polynomial_ && a.constant_ >= 0 && b.constant_ > 0) return a.constant_ % b.constant_;
    return modulo(a, b);
  }

  // --- Answers without a record. They compile only with dim_inside.h.

  template <class I = Inside>
  bool is_constant() const {
    return I::is_constant(*this);
  }
  /// Is this very integer.
  template <class I = Inside>
  bool is_constant(std::int64_t value) const {
    return I::is_constant(*this) && I::constant(*this) == value;
  }
  /// The integer of a constant Dim; InternalError for another.
  template <class I = Inside>
  std::int64_t constant() const {
    return I::constant(*this);
  }
  /// The scope that its symbols belong to; null for a constant, and after the scope has ended.
  template <class I = Inside>
  SymbolScope* scope() const {
    return I::scope(*this);
  }
  /// The value under hints (each symbol's size in the call being traced); nothing if a symbol has no hint.
  template <class I = Inside>
  std::optional<std::int64_t> hint() const {
    return I::hint(*this);
  }
  /// The value with every symbol bound. InternalError if a symbol is not. Division by zero gives 0, overflow throws
  /// UserError("size … is too large").
  template <class I = Inside>
  std::int64_t evaluate(const Bindings& bindings) const {
    return I::evaluate(*this, bindings);
  }
  /// Every symbol replaced, by its index in `replacements` (of another scope, or constants).
  template <class I = Inside>
  Dim substitute(std::span<const Dim> replacements) const {
    return I::substitute(*this, replacements);
  }
  /// The index of the symbol if this Dim is just one symbol.
  template <class I = Inside>
  std::optional<int> as_symbol() const {
    return I::as_symbol(*this);
  }
  /// Indices of all symbols in it, ascending.
  template <class I = Inside>
  std::vector<int> symbols() const {
    return I::symbols(*this);
  }
  template <class I = Inside>
  std::size_t hash() const {
    return I::hash(*this);
  }

 private:
  friend struct Inside;
  explicit Dim(const Polynomial* adopted) : polynomial_(adopted) {}
  STET_API static void retain(const Polynomial*);
  STET_API static void release(const Polynomial*);
  STET_API std::int64_t pinned_value(Where) const;
  [[noreturn]] STET_API void does_not_fit(std::size_t bytes) const;
  STET_API static Dim add(const Dim&, const Dim&);
  STET_API static Dim subtract(const Dim&, const Dim&);
  STET_API static Dim multiply(const Dim&, const Dim&);
  STET_API static Dim divide(const Dim&, const Dim&);
  STET_API static Dim modulo(const Dim&, const Dim&);

  std::int64_t constant_ = 0;
  const Polynomial* polynomial_ = nullptr;
};

/// The larger and the smaller of two sizes, as a size: nothing is asked.
STET_API Dim larger_of(const Dim&, const Dim&);
STET_API Dim smaller_of(const Dim&, const Dim&);

/// A constant as a number, a symbol by its name.
STET_API std::ostream& operator<<(std::ostream&, const Dim&);
STET_API void append_text(std::string& out, const Dim&);
/// For messages alone: the size in the call being traced ("3"), a size that depends on values by its name.
STET_API std::string size_text(const Dim&);

namespace inside {

/// Who asked for a fact, and where.
struct Reason {
  const char* asker = "";  // an op's or layer's name
  std::string what = {};   // "inner sizes"
  Where where = {};
};

/// Something a trace learned about its symbols and relies on.
struct Fact {
  Dim left;
  Relation relation;
  Dim right;
  Reason reason;

  STET_API std::string str() const;  // "s0 == s1"
  STET_API bool holds(const Bindings&) const;
};

/// A message with sizes in it, as text for every call: each "{}" of `text` stands for one of `sizes`.
struct SizedText {
  SizedText() = default;
  SizedText(std::string plain) : text(std::move(plain)) {}
  SizedText(const char* plain) : text(plain) {}

  std::string text = {};
  std::vector<Dim> sizes = {};

  /// With the sizes of the call being traced.
  STET_API std::string now() const;
};
/// The parts of a message joined, Dims (and Shapes, with shape.h) among them kept as sizes.
template <class... Parts>
SizedText sized_text(const Parts&... parts);

/// A relation to be tested with the sizes of each call, and what is said where it does not hold: each "{}" in the
/// problem, then in the advice, stands for one of `sizes`.
struct SizeCheck {
  SizeCheck(Fact need, const SizedText& what, const SizedText& remedy)
      : fact(std::move(need)), problem(what.text), advice(remedy.text), sizes(what.sizes) {
    sizes.insert(sizes.end(), remedy.sizes.begin(), remedy.sizes.end());
  }

  Fact fact;
  std::string problem, advice;
  std::vector<Dim> sizes;
  std::string op = {};  // of a traced program: as Problem::found_by
  Where where = {};
};

/// States a need on Dims of any origin: constants are compared, symbols ask their scope, where the need becomes a fact.
/// False if it cannot hold in this call; the op then reports its Problem. TraceError for Dims of two scopes, or of one
/// that has ended.
STET_API bool require(const Dim&, Relation, const Dim&, const Reason&);
/// States a need that no trace is to be specialised on (divisibility, emptiness): constants are compared (false: the op
/// reports `problem`), of symbols it is a condition that every call tests with its sizes.
STET_API bool check(const Dim&, Relation, const Dim&, const Reason&, const SizedText& problem = {},
                    const SizedText& advice = {});
/// Decides by sizes what is recorded: the answer becomes a fact. TraceError where the size is not known: it depends on
/// values, or a signature says that it is unknown.
STET_API bool decide(const Dim&, Relation, const Dim&, const Reason&);

// --- sized_text

inline void append_sized(SizedText& out, const Dim& part) {
  out.text += "{}";
  out.sizes.push_back(part);
}
template <class Part>
void append_sized(SizedText& out, const Part& part) {
  append_text(out.text, part);
}
template <class... Parts>
SizedText sized_text(const Parts&... parts) {
  SizedText out;
  (append_sized(out, parts), ...);
  return out;
}

}  // namespace inside

}  // namespace stet
