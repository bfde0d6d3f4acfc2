// The inside of a Dim. Private to base/.
//
// A Polynomial is a sum of terms, a term a coefficient times a product of atoms, an atom a symbol, a floor-division or
// modulo of two Dims, or max(p, 0) of a Dim p. The canonical form: atoms of a monomial ascend; terms stand by
// descending degree and then in ascending order of their atoms; no coefficient is 0; a polynomial is never just a
// constant. The order on monomials is the graded reverse lexicographic one with later symbols greater, and is therefore
// fit to rewrite with (prove.cpp).
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stet/base/dim_inside.h"

namespace stet {

/// The part of a scope that outlives it for as long as a Dim refers to it.
struct SymbolTable {
  struct Row {
    std::string name;
    std::optional<std::int64_t> hint;
    std::optional<std::int64_t> upper_bound;
  };
  std::atomic<SymbolScope*> scope{nullptr};
  std::string function;  // whose trace it is; empty for what is no trace
  std::vector<Row> rows;
  std::mutex knowledge_lock;  // passes may ask for proofs on two threads
};
using TablePointer = std::shared_ptr<SymbolTable>;

struct Quotient;

struct Atom {
  int symbol = -1;
  std::shared_ptr<const Quotient> quotient;  // null for a symbol
};

/// numerator // divisor, numerator % divisor (a constant divisor is > 1), or max(numerator, 0) (with divisor 1).
///
/// The numerator of max(p, 0) is primitive (its coefficients have no common factor) with a positive leading
/// coefficient, because max(-p, 0) is max(p, 0) - p. So min(a, b), which is a - max(a - b, 0), has one form, too.
struct Quotient {
  enum class Form : std::uint8_t { floor, modulo, positive } form;
  Dim numerator;
  Dim divisor;
  std::size_t hash;
  int weight;
  int depth;
};

using Monomial = std::vector<Atom>;

struct Term {
  std::int64_t coefficient;
  Monomial monomial;
};

using Terms = std::vector<Term>;

class Polynomial {
 public:
  Polynomial(Terms terms, TablePointer table);

  const Terms terms;
  const TablePointer table;
  std::size_t hash = 0;
  int weight = 0;  // of its atoms and terms, all the way down
  int depth = 1;   // of nested quotients
  Where taken;     // by host code, if it is known; no part of the value
  mutable std::atomic<std::int64_t> references{1};
};

/// Thrown inside base/ where a number leaves 64 bits; those who know the operands make a message of it.
struct SizeOverflow {};
std::int64_t checked_add(std::int64_t, std::int64_t);
std::int64_t checked_multiply(std::int64_t, std::int64_t);
/// For a divisor > 0.
std::int64_t floor_divide(std::int64_t, std::int64_t);
std::int64_t floor_modulo(std::int64_t, std::int64_t);

/// Three-way structural order, of Dims over one table.
int compare(const Atom&, const Atom&);
int compare(const Monomial&, const Monomial&);
int compare(const Dim&, const Dim&);
bool same_terms(const Terms&, const Terms&);

Terms terms_of(const Dim&);
/// Sorts, merges like terms and drops zeros.
void normalize(Terms&);
/// The Dim of normalized terms.
Dim make_dim(Terms, const TablePointer&);
Dim dim_of(const Atom&, const TablePointer&);
/// Null for constants.
TablePointer table_of(const Dim&);
inline const Polynomial* polynomial_of(const Dim& dim) { return Inside::polynomial(dim); }
/// The table of both; TraceError if they have two.
TablePointer common_table(const Dim&, const Dim&);
Terms scaled(const Terms&, std::int64_t factor);
Terms sum_of(const Terms&, const Terms&);
Terms product_of(const Terms&, const Terms&);
/// monomial / divisor; nothing if it does not divide.
std::optional<Monomial> divided(const Monomial& monomial, const Monomial& divisor);
std::int64_t constant_part(const Terms&);
/// The greatest term in the order on monomials. Not of an empty polynomial.
const Term& leading_term(const Terms&);
/// The greatest common divisor of all coefficients but the constant's; 0 if there are none.
std::int64_t content_without_constant(const Terms&);
/// The Dim with every atom replaced.
Dim replace_atoms(const Dim&, const std::function<Dim(const Atom&)>&);
SizedText by_zero_text(const Dim& dividend, bool is_modulo);
/// max(dim, 0).
Dim positive_part(const Dim&);
/// The same operation of other operands: `/` and `%` with 0 for the constant divisor 0, as evaluation has it.
Dim applied(Quotient::Form, const Dim& numerator, const Dim& divisor);
/// The size as the lines of errors name it: "size x_0 of 'f', taken at a.cpp:12,".
std::string origin_text(const Dim&);

/// Ends at the extremes of int64 stand for no bound.
struct Interval {
  static constexpr std::int64_t none_below = INT64_MIN, none_above = INT64_MAX;
  std::int64_t low = none_below;
  std::int64_t high = none_above;

  Interval plus(const Interval&) const;
  Interval times(const Interval&) const;
  Interval intersected(const Interval&) const;
};

/// What is known of some polynomials without constant part, beyond what their form says.
using KnownBounds = std::function<Interval(const Terms&)>;
/// Bounds of a Dim: by its form (symbols are >= 0 and within their own bounds) and by `known`, which may be empty.
Interval bounds(const Dim&, const KnownBounds& known);
Interval bounds(const Terms&, const SymbolTable*, const KnownBounds& known);

std::shared_ptr<const Knowledge> knowledge_of(const SymbolScope&);

}  // namespace stet
