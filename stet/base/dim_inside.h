// What answers about sizes without a record: for base/, ir/, runtime/, cpu/, compiler/ and core/. No header that ops/,
// data/, keras/ or users include may include this one (cmake/check-layers.sh looks): what they do may depend on a size
// only through a fact, a check or a decision that the trace knows of.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "stet/base/bindings.h"
#include "stet/base/dim.h"
#include "stet/base/inside.h"

namespace stet {

enum class Proof : std::uint8_t { no, yes, unknown };

class Shape;
struct SymbolTable;
struct Knowledge;  // defined in prove.cpp

/// Behind the members of Dim and Shape that record nothing.
struct STET_API Inside {
  static bool is_constant(const Dim& dim) { return !dim.polynomial_; }
  static std::int64_t constant(const Dim& dim) {
    if (dim.polynomial_) not_constant(dim);
    return dim.constant_;
  }
  static const Polynomial* polynomial(const Dim& dim) { return dim.polynomial_; }
  /// Takes over one reference.
  static Dim adopted(const Polynomial* polynomial) { return Dim(polynomial); }
  static SymbolScope* scope(const Dim&);
  static std::optional<std::int64_t> hint(const Dim&);
  static std::int64_t evaluate(const Dim&, const Bindings&);
  static Dim substitute(const Dim&, std::span<const Dim> replacements);
  static std::optional<int> as_symbol(const Dim&);
  static std::vector<int> symbols(const Dim&);
  /// "4", "s0", "2*s0*s1 + 1", "s0 // 2", "(s0 + 3) % 8", "max(s0 - 1, 0)"; names as given to SymbolScope::symbol.
  static std::string str(const Dim&);
  static std::size_t hash(const Dim&);

  static bool is_constant(const Shape&);
  static Shape substitute(const Shape&, std::span<const Dim> replacements);
  static std::vector<std::int64_t> evaluate(const Shape&, const Bindings&);
  static std::string str(const Shape&);
  static std::size_t hash(const Shape&);

 private:
  [[noreturn]] static void not_constant(const Dim&);
};

/// Same canonical form.
STET_API bool identical(const Dim&, const Dim&);
STET_API bool identical(const Shape&, const Shape&);
/// The Dim q with q * divisor identical to dividend; nothing if there is none. Unlike `/` it cancels symbols, so its
/// answer stands also where the divisor turns out to be 0 (reshape [s0, 784] to [s0, -1] is [s0, 784] even if empty).
STET_API std::optional<Dim> exact_quotient(const Dim& dividend, const Dim& divisor);
/// The Dim rewritten by the equalities among its scope's facts and checks, as far as they are used to prove: equal in
/// every run, and often shorter (a pinned symbol becomes its constant).
STET_API Dim simplified(const Dim&);
/// Is the relation true for all sizes (symbols are >= 0 and within their bounds) that obey the scope's facts and have
/// passed its checks? Uses them as equations to rewrite with and as bounds. `unknown` is a value, not an error: also
/// for Dims of two scopes, or of a scope that has ended and took its facts along.
STET_API Proof prove(const Dim&, Relation, const Dim&);
inline Proof prove_equal(const Dim& a, const Dim& b) { return prove(a, Relation::equal, b); }
/// The same by form alone, for all sizes: the answer is the same wherever in a trace, and in whatever order of its
/// paths, it is asked for.
STET_API Proof prove_by_form(const Dim&, Relation, const Dim&);
/// Whether the relation holds between two integers.
STET_API bool holds(std::int64_t, Relation, std::int64_t);

/// The same size, which remembers the line where host code took it: what facts and errors name where a line cannot be
/// passed (conversions, operators).
STET_API Dim taken_at(const Dim&, Where);
STET_API Where taken_at(const Dim&);
/// A division inside of a Dim whose divisor is not a constant: a call where it is 0 is a Problem.
struct Division {
  Dim divisor;
  SizedText by_zero;  // "size 4 cannot be divided by 0"
};
STET_API std::vector<Division> symbolic_divisions(const Dim&);
/// Tests a check with the sizes of a call; throws its Problem.
STET_API void test(const SizeCheck&, const Bindings&);
/// Tests it if all of its sizes are known; those of late sizes are while the program runs. False if they are not.
STET_API bool test_if_known(const SizeCheck&, const Bindings&);

/// Where symbols live. A trace is one; so is the eager path's one-node graph. Not thread-safe: one thread traces.
class STET_API SymbolScope {
 public:
  /// `function`: the traced one's name. Its sizes may be asked for only while the scope is open (OpenScope).
  explicit SymbolScope(std::string function = {});
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
  const std::string& function() const;
  /// Whether the symbols of a Dim, if it has any, are of this scope.
  bool owns(const Dim&) const;
  /// TraceError, naming where the size is from, unless its symbols are of this scope.
  void refuse_foreign(const Dim&, Where used) const;

  /// An op needs this relation. True if it is proven, or became a fact, or is a run-time check (late symbol); false if
  /// it cannot hold, and then the op reports its Problem. (Where only the hints refute it, a recording scope keeps the
  /// opposite as a fact: what follows, were the Problem caught, holds for such sizes only.)
  virtual bool require(const Dim&, Relation, const Dim&, const Reason&) = 0;
  /// An op needs this relation, but no trace is to be specialised on it (divisibility, emptiness): tested by every
  /// call, this one too, so no hint is looked at. False if no call can pass. By default the same as require().
  virtual bool check(const Dim&, Relation, const Dim&, const Reason&, const SizedText& problem,
                     const SizedText& advice);
  /// Host code asked. Proven, or answered by the hints and recorded as a fact.
  virtual bool decide(const Dim&, Relation, const Dim&, const Reason&) = 0;
  /// Host code wants the integer: the hint, recorded as a fact `dim == hint`.
  virtual std::int64_t pin(const Dim&, Where) = 0;
  /// Sizes were declared to be unknown: what is accepted may not depend on those of the first call.
  virtual bool sizes_are_unknown() const { return false; }

  /// What prove() may use. Equalities only are used for rewriting; intervals for bounds.
  std::span<const Fact> facts() const { return facts_; }
  /// Relations to be checked when their symbols are bound: at launch, or of late symbols when their op has run.
  std::span<const SizeCheck> checks() const { return checks_; }
  bool has_check(const Fact&) const;

 protected:
  /// Adds what is not there yet.
  void add_fact(Fact);
  void add_check(SizeCheck);
  void drop_checks_from(std::size_t count);

 private:
  friend struct Inside;
  friend std::shared_ptr<const Knowledge> knowledge_of(const SymbolScope&);
  std::vector<Fact> facts_;
  std::vector<SizeCheck> checks_;
  std::unordered_multimap<std::size_t, std::size_t> fact_places_, check_places_;  // by hash
  std::uint64_t dropped_ = 0;  // how often something was: what was learned is then no longer true
  std::shared_ptr<SymbolTable> table_;
  mutable std::shared_ptr<Knowledge> knowledge_;  // what prove() made of facts_ and checks_
};

/// Checks belong to the op that needs them, and are tested where it runs. One that is stated outside of any op, by a
/// composite or a layer, would be believed and never tested: whoever records the trace gives it an op of its own.
class STET_API CheckCarrier {
 public:
  /// Whether what is stated now is stated outside of any op.
  virtual bool takes_checks() const = 0;
  virtual void carry(const SizeCheck&) = 0;

 protected:
  ~CheckCarrier() = default;
};

/// Records what it is asked: the scope of traces and of the eager path.
class STET_API RecordingScope : public SymbolScope {
 public:
  using SymbolScope::SymbolScope;
  /// Null: all checks stay with the scope.
  void set_carrier(CheckCarrier* carrier) { carrier_ = carrier; }
  bool require(const Dim&, Relation, const Dim&, const Reason&) override;
  bool check(const Dim&, Relation, const Dim&, const Reason&, const SizedText& problem,
             const SizedText& advice) override;
  bool decide(const Dim&, Relation, const Dim&, const Reason&) override;
  std::int64_t pin(const Dim&, Where) override;
  bool sizes_are_unknown() const override { return declared_unknown_; }
  /// Drops the latest checks: they were made on one side of a branch, and count there only.
  void keep_checks(std::size_t count) { drop_checks_from(count); }
  /// A check that was dropped holds again.
  void know_check(SizeCheck check) { add_check(std::move(check)); }
  /// States a check as it is.
  void state(SizeCheck check);
  /// From here on host code may not decide by sizes or read them (TraceError): they were declared to be unknown.
  void declare_unknown() { declared_unknown_ = true; }

 private:
  bool declared_unknown_ = false;
  CheckCarrier* carrier_ = nullptr;
  /// Facts are about sizes that exist: a divisor is not 0.
  void require_divisors(const Dim&, const Reason&);
};

/// While it lives, host code on this thread may ask about the sizes of this scope's symbols, and of no other trace's.
class STET_API OpenScope {
 public:
  explicit OpenScope(const SymbolScope&);
  ~OpenScope();
  OpenScope(const OpenScope&) = delete;
  OpenScope& operator=(const OpenScope&) = delete;

 private:
  const SymbolScope* outer_;
};

}  // namespace stet
