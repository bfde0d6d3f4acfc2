#include "stet/base/dim.h"

#include <algorithm>

#include "stet/base/error.h"
#include "stet/base/polynomial.h"
#include "stet/base/text.h"

namespace stet {

void Dim::retain(const Polynomial* polynomial) { polynomial->references.fetch_add(1, std::memory_order_relaxed); }

void Dim::release(const Polynomial* polynomial) {
  if (polynomial->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete polynomial;
}

SymbolScope* Dim::scope() const { return is_constant() ? nullptr : polynomial_->table->scope.load(); }

std::int64_t Dim::pinned_value(Where where) const {
  SymbolScope* owner = scope();
  if (!owner)
    throw TraceError(error_text(text("size ", *this, " belongs to a trace that has ended"), where,
                                "take sizes from the tensors that a function returns, not from inside its trace"));
  return owner->pin(*this, where);
}

void Dim::does_not_fit(std::size_t bytes) const {
  throw Problem(text("size ", *this, " does not fit in an integer of ", bytes * 8, " bits"),
                "use std::int64_t, or value()");
}

bool holds(std::int64_t a, Relation relation, std::int64_t b) {
  switch (relation) {
    case Relation::equal:
      return a == b;
    case Relation::not_equal:
      return a != b;
    case Relation::less:
      return a < b;
    case Relation::less_equal:
      return a <= b;
  }
  return false;
}

bool identical(const Dim& a, const Dim& b) {
  if (a.is_constant() || b.is_constant()) return a.is_constant() && b.is_constant() && a.constant() == b.constant();
  if (a.polynomial() == b.polynomial()) return true;
  return a.polynomial()->hash == b.polynomial()->hash && a.polynomial()->table == b.polynomial()->table &&
         compare(a, b) == 0;
}

std::size_t Dim::hash() const {
  if (polynomial_) return polynomial_->hash;
  return static_cast<std::size_t>(static_cast<std::uint64_t>(constant_) * 0x9e3779b97f4a7c15ull) ^ 0x5bd1e995u;
}

namespace {

constexpr __int128 widest = static_cast<__int128>(~static_cast<unsigned __int128>(0) >> 1);

/// In 128 bits, because a sum may fit where its parts do not.
template <class ValueOfSymbol>
__int128 evaluate_widely(const Dim& dim, const ValueOfSymbol& value_of_symbol) {
  if (dim.is_constant()) return dim.constant();
  __int128 sum = 0;
  for (const Term& term : dim.polynomial()->terms) {
    __int128 product = term.coefficient;
    for (const Atom& atom : term.monomial) {
      __int128 factor = 0;
      if (!atom.quotient) {
        factor = value_of_symbol(atom.symbol);
      } else {
        const __int128 numerator = evaluate_widely(atom.quotient->numerator, value_of_symbol);
        const __int128 divisor = evaluate_widely(atom.quotient->divisor, value_of_symbol);
        // A quarter of the range leaves room for the sums and differences below.
        for (const __int128 operand : {numerator, divisor})
          if (operand < widest / -4 || operand > widest / 4) throw SizeOverflow{};
        if (divisor != 0) {
          __int128 modulo = numerator % divisor;
          if (modulo != 0 && (modulo < 0) != (divisor < 0)) modulo += divisor;
          factor = atom.quotient->is_modulo ? modulo : (numerator - modulo) / divisor;
        }
      }
      if (__builtin_mul_overflow(product, factor, &product)) throw SizeOverflow{};
    }
    if (__builtin_add_overflow(sum, product, &sum)) throw SizeOverflow{};
  }
  return sum;
}

template <class ValueOfSymbol>
std::int64_t evaluate(const Dim& dim, const ValueOfSymbol& value_of_symbol) {
  try {
    const __int128 result = evaluate_widely(dim, value_of_symbol);
    if (result < INT64_MIN || result > INT64_MAX) throw SizeOverflow{};
    return static_cast<std::int64_t>(result);
  } catch (const SizeOverflow&) {
    throw Problem(text("size ", dim, " is too large"), "sizes must stay below 2^62");
  }
}

void collect_symbols(const Dim& dim, std::vector<int>& found) {
  if (dim.is_constant()) return;
  for (const Term& term : dim.polynomial()->terms) {
    for (const Atom& atom : term.monomial) {
      if (atom.quotient) {
        collect_symbols(atom.quotient->numerator, found);
        collect_symbols(atom.quotient->divisor, found);
      } else {
        found.push_back(atom.symbol);
      }
    }
  }
}

}  // namespace

std::optional<std::int64_t> Dim::hint() const {
  if (is_constant()) return constant_;
  const auto& rows = polynomial_->table->rows;
  for (const int symbol : symbols())
    if (!rows[static_cast<std::size_t>(symbol)].hint) return std::nullopt;
  return stet::evaluate(*this, [&](int symbol) { return *rows[static_cast<std::size_t>(symbol)].hint; });
}

std::int64_t Dim::evaluate(const Bindings& bindings) const {
  if (is_constant()) return constant_;
  return stet::evaluate(*this, [&](int symbol) {
    const std::optional<std::int64_t> value = bindings.find(symbol);
    if (!value) throw InternalError(text("symbol ", symbol, " of size ", *this, " is not bound"));
    return *value;
  });
}

Dim Dim::substitute(std::span<const Dim> replacements) const {
  return replace_atoms(*this, [&](const Atom& atom) -> Dim {
    if (atom.quotient)
      return quotient_or_zero(atom.quotient->is_modulo, atom.quotient->numerator.substitute(replacements),
                              atom.quotient->divisor.substitute(replacements));
    if (static_cast<std::size_t>(atom.symbol) >= replacements.size())
      throw InternalError(text("symbol ", atom.symbol, " of size ", *this, " has no replacement"));
    return replacements[static_cast<std::size_t>(atom.symbol)];
  });
}

std::optional<int> Dim::as_symbol() const {
  if (is_constant()) return std::nullopt;
  const Terms& terms = polynomial_->terms;
  if (terms.size() != 1 || terms[0].coefficient != 1 || terms[0].monomial.size() != 1 || terms[0].monomial[0].quotient)
    return std::nullopt;
  return terms[0].monomial[0].symbol;
}

std::vector<int> Dim::symbols() const {
  std::vector<int> found;
  collect_symbols(*this, found);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

namespace {

/// As an operand of // or %: in parentheses unless it is one word.
std::string operand_text(const Dim& dim) {
  return dim.as_symbol() || (dim.is_constant() && dim.constant() >= 0) ? dim.str() : text('(', dim, ')');
}

std::string atom_text(const Atom& atom, const SymbolTable& table, bool is_factor) {
  if (!atom.quotient) return table.rows[static_cast<std::size_t>(atom.symbol)].name;
  const std::string inner = text(operand_text(atom.quotient->numerator), atom.quotient->is_modulo ? " % " : " // ",
                                 operand_text(atom.quotient->divisor));
  return is_factor ? text('(', inner, ')') : inner;
}

}  // namespace

std::string Dim::str() const {
  if (is_constant()) return std::to_string(constant_);
  std::string out;
  bool first = true;
  for (const Term& term : polynomial_->terms) {
    const bool negative = term.coefficient < 0;
    out += first ? (negative ? "-" : "") : (negative ? " - " : " + ");
    // The magnitude of the least integer does not fit in the signed type.
    const std::uint64_t magnitude =
        negative ? 0 - static_cast<std::uint64_t>(term.coefficient) : static_cast<std::uint64_t>(term.coefficient);
    const bool shows_magnitude = magnitude != 1 || term.monomial.empty();
    if (shows_magnitude) out += std::to_string(magnitude);
    const bool is_factor = shows_magnitude || term.monomial.size() > 1 || (first && negative);
    for (std::size_t i = 0; i < term.monomial.size(); ++i) {
      if (i > 0 || shows_magnitude) out += '*';
      out += atom_text(term.monomial[i], *polynomial_->table, is_factor);
    }
    first = false;
  }
  return out;
}

}  // namespace stet
