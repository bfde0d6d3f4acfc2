// Dim: the size of one dimension, an integer or a polynomial in symbols.
//
// A symbol stands for a size that is known only when a program runs. Polynomials are kept canonical (terms sorted, like
// terms merged, floor-division and modulo as atoms), so that two Dims built in different ways from the same symbols are
// identical. Dims are values: immutable, counted, cheap to copy; a constant Dim never allocates.
//
// There is no == and no < here. Code below core/ either asks a question that never records anything (identical, prove)
// or states a need (SymbolScope::require). Comparisons by host code make facts and live in core/.
#pragma once
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"

namespace stet {

enum class Proof : std::uint8_t { no, yes, unknown };
enum class Relation : std::uint8_t { equal, not_equal, less, less_equal };

class SymbolScope;
struct SymbolTable;
class Polynomial;  // defined in polynomial.h
struct Knowledge;  // defined in prove.cpp
class Bindings;

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

  bool is_constant() const { return !polynomial_; }
  /// Is this very integer.
  bool is_constant(std::int64_t value) const { return !polynomial_ && constant_ == value; }
  /// The integer of a constant Dim.
  std::int64_t constant() const { return constant_; }
  /// The size as an integer. Of a constant, itself; a symbol is pinned to its hint by the scope (SymbolScope::pin).
  std::int64_t value(Where where = Where::here()) const { return is_constant() ? constant_ : pinned_value(where); }
  template <std::integral I>
  requires(!std::same_as<I, bool>) explicit operator I() const {
    const std::int64_t integer = value(Where{});
    const I narrowed = static_cast<I>(integer);
    if (static_cast<std::int64_t>(narrowed) != integer || (narrowed < I{}) != (integer < 0)) does_not_fit(sizeof(I));
    return narrowed;
  }

  /// The scope that its symbols belong to; null for a constant, and after the scope has ended.
  STET_API SymbolScope* scope() const;
  /// The value under hints (each symbol's size in the call being traced); nothing if a symbol has no hint.
  STET_API std::optional<std::int64_t> hint() const;
  /// The value with every symbol bound. InternalError if a symbol is not. Division by zero gives 0, overflow throws
  /// UserError("size … is too large").
  STET_API std::int64_t evaluate(const Bindings& bindings) const;
  /// Every symbol replaced, by its index in `replacements` (of another scope, or constants).
  STET_API Dim substitute(std::span<const Dim> replacements) const;
  /// The index of the symbol if this Dim is just one symbol.
  STET_API std::optional<int> as_symbol() const;
  /// Indices of all symbols in it, ascending.
  STET_API std::vector<int> symbols() const;
  /// "4", "s0", "2*s0*s1 + 1", "s0 // 2", "(s0 + 3) % 8"; names as given to SymbolScope::symbol.
  STET_API std::string str() const;
  STET_API std::size_t hash() const;

  // Arithmetic throws Problem where a coefficient or constant leaves 64 bits, or an expression grows beyond what any
  // size needs; TraceError if the symbols of the operands belong to two scopes.
  friend Dim operator+(const Dim& a, const Dim& b) {
    std::int64_t result;
    if (a.is_constant() && b.is_constant() && !__builtin_add_overflow(a.constant_, b.constant_, &result)) return result;
    return add(a, b);
  }
  friend Dim operator-(const Dim& a, const Dim& b) {
    std::int64_t result;
    if (a.is_constant() && b.is_constant() && !__builtin_sub_overflow(a.constant_, b.constant_, &result)) return result;
    return subtract(a, b);
  }
  friend Dim operator*(const Dim& a, const Dim& b) {
    std::int64_t result;
    if (a.is_constant() && b.is_constant() && !__builtin_mul_overflow(a.constant_, b.constant_, &result)) return result;
    return multiply(a, b);
  }
  /// Floor division and the modulo that goes with it (sign of the divisor), as sizes need them. By constant zero:
  /// throws Problem. By a symbol: gives 0 when the symbol turns out to be 0, so `s * t / s` does not cancel (see
  /// exact_quotient).
  friend Dim operator/(const Dim& a, const Dim& b) {
    if (a.is_constant() && b.is_constant() && a.constant_ >= 0 && b.constant_ > 0) return a.constant_ / b.constant_;
    return divide(a, b);
  }
  friend Dim operator%(const Dim& a, const Dim& b) {
    if (a.is_constant() && b.is_constant() && a.constant_ >= 0 && b.constant_ > 0) return a.constant_ % b.constant_;
    return modulo(a, b);
  }

  const Polynomial* polynomial() const { return polynomial_; }
  /// Takes over one reference.
  explicit Dim(const Polynomial* adopted) : polynomial_(adopted) {}

 private:
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

/// Same canonical form. Never records.
STET_API bool identical(const Dim&, const Dim&);
/// The Dim q with q * divisor identical to dividend; nothing if there is none. Unlike `/` it cancels symbols, so its
/// answer stands also where the divisor turns out to be 0 (reshape [s0, 784] to [s0, -1] is [s0, 784] even if empty).
STET_API std::optional<Dim> exact_quotient(const Dim& dividend, const Dim& divisor);
/// The Dim rewritten by the equalities among its scope's facts and checks, as far as they are used to prove: equal in
/// every run, and often shorter (a pinned symbol becomes its constant). Never records.
STET_API Dim simplified(const Dim&);
/// Is the relation true for all sizes (symbols are >= 0 and within their bounds) that obey the scope's facts and have
/// passed its checks? Uses them as equations to rewrite with and as bounds; never records. `unknown` is a value, not an
/// error: also for Dims of two scopes, or of a scope that has ended and took its facts along.
STET_API Proof prove(const Dim&, Relation, const Dim&);
inline Proof prove_equal(const Dim& a, const Dim& b) { return prove(a, Relation::equal, b); }
/// Whether the relation holds between two integers.
STET_API bool holds(std::int64_t, Relation, std::int64_t);

/// Values of symbols by index.
class Bindings {
 public:
  Bindings() = default;
  explicit Bindings(std::vector<std::int64_t> values) : values_(std::move(values)) {}
  void bind(int symbol, std::int64_t value) {
    if (static_cast<std::size_t>(symbol) >= values_.size())
      values_.resize(static_cast<std::size_t>(symbol) + 1, unbound);
    values_[static_cast<std::size_t>(symbol)] = value;
  }
  std::optional<std::int64_t> find(int symbol) const {
    if (static_cast<std::size_t>(symbol) >= values_.size() || values_[static_cast<std::size_t>(symbol)] == unbound)
      return std::nullopt;
    return values_[static_cast<std::size_t>(symbol)];
  }

  bool operator==(const Bindings&) const = default;

 private:
  static constexpr std::int64_t unbound = INT64_MIN;
  std::vector<std::int64_t> values_;
};

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

/// Where symbols live. A trace is one; so is the eager path's one-node graph. Not thread-safe: one thread traces.
class STET_API SymbolScope {
 public:
  SymbolScope();
  virtual ~SymbolScope();
  SymbolScope(const SymbolScope&) = delete;
  SymbolScope& operator=(const SymbolScope&) = delete;

  /// A new symbol. Without a hint it is *late*: its value exists only when the op that makes it has run.
  Dim symbol(std::string name, std::optional<std::int64_t> hint, std::optional<std::int64_t> upper_bound = {});
  int symbol_count() const;
  /// The symbol with this index, again.
  Dim symbol_at(int symbol) const;
  const std::string& symbol_name(int symbol) const;
  std::optional<std::int64_t> symbol_hint(int symbol) const;

  /// An op needs this relation. True if it is proven, or became a fact, or is a run-time check (late symbol); false if
  /// it cannot hold, and then the op reports its Problem. (Where only the hints refute it, a recording scope keeps the
  /// opposite as a fact: what follows, were the Problem caught, holds for such sizes only.)
  virtual bool require(const Dim&, Relation, const Dim&, const Reason&) = 0;
  /// An op needs this relation, but no trace is to be specialised on it (divisibility, emptiness): as require(), but
  /// what the hints confirm goes to checks() instead of facts(). By default the same as require().
  virtual bool check(const Dim&, Relation, const Dim&, const Reason&);
  /// Host code asked. Proven, or answered by the hints and recorded as a fact.
  virtual bool decide(const Dim&, Relation, const Dim&, Where) = 0;
  /// Host code wants the integer: the hint, recorded as a fact `dim == hint`.
  virtual std::int64_t pin(const Dim&, Where) = 0;

  /// What prove() may use. Equalities only are used for rewriting; intervals for bounds.
  std::span<const Fact> facts() const { return facts_; }
  /// Relations to be checked when their symbols are bound: at launch, or of late symbols when their op has run.
  std::span<const Fact> checks() const { return checks_; }

 protected:
  std::vector<Fact> facts_;
  std::vector<Fact> checks_;

 private:
  friend class Dim;
  friend std::shared_ptr<const Knowledge> knowledge_of(const SymbolScope&);
  std::shared_ptr<SymbolTable> table_;
  mutable std::shared_ptr<const Knowledge> knowledge_;  // what prove() made of facts_ and checks_
};

/// Records what it is asked: the scope of traces and of the eager path.
class STET_API RecordingScope : public SymbolScope {
 public:
  bool require(const Dim&, Relation, const Dim&, const Reason&) override;
  bool check(const Dim&, Relation, const Dim&, const Reason&) override;
  bool decide(const Dim&, Relation, const Dim&, Where) override;
  std::int64_t pin(const Dim&, Where) override;
  /// Drops the latest checks: they were made on one side of a branch, and count there only.
  void keep_checks(std::size_t count) {
    if (count < checks_.size()) checks_.erase(checks_.begin() + static_cast<std::ptrdiff_t>(count), checks_.end());
  }
  /// From here on host code may not decide by sizes or read them (TraceError): they were declared to be unknown.
  void declare_unknown() { declared_unknown_ = true; }

 private:
  bool declared_unknown_ = false;
  bool settle(const Dim&, Relation, const Dim&, Reason, std::vector<Fact>& confirmed);
};

/// States a need on Dims of any origin: constants are compared, symbols ask their scope. TraceError if they belong to
/// two scopes, or to one that has ended.
STET_API bool require(const Dim&, Relation, const Dim&, const Reason&);
/// The same by SymbolScope::check.
STET_API bool check(const Dim&, Relation, const Dim&, const Reason&);

}  // namespace stet
