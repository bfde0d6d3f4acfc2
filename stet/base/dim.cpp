#include "stet/base/dim.h"

#include <algorithm>
#include <ostream>

#include "stet/base/error.h"
#include "stet/base/polynomial.h"
#include "stet/base/text.h"

namespace stet {

void Dim::retain(const Polynomial* polynomial) { polynomial->references.fetch_add(1, std::memory_order_relaxed); }

void Dim::release(const Polynomial* polynomial) {
  if (polynomial->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete polynomial;
}

SymbolScope* Inside::scope(const Dim& dim) { return dim.polynomial_ ? dim.polynomial_->table->scope.load() : nullptr; }

void Inside::not_constant(const Dim& dim) { throw InternalError(text("size ", dim, " was taken for a constant")); }

std::int64_t Dim::pinned_value(Where where) const {
  const Where line = where.known() ? where : polynomial_->taken;
  if (SymbolScope* owner = polynomial_->table->scope.load()) return owner->pin(*this, line);
  throw TraceError(error_text(text(origin_text(*this), " belongs to a trace that has ended"), line,
                              "take the size from a tensor of this call; a number that outlives a trace is int(size), "
                              "which becomes part of the trace"));
}

void Dim::does_not_fit(std::size_t bytes) const {
  throw Problem(text("size ", *this, " does not fit in an integer of ", bytes * 8, " bits"),
                "use std::int64_t, or value()");
}

Where taken_at(const Dim& dim) { return dim.is_constant() ? Where{} : Inside::polynomial(dim)->taken; }

Dim taken_at(const Dim& dim, Where where) {
  if (dim.is_constant() || !where.known()) return dim;
  const Polynomial& from = *Inside::polynomial(dim);
  auto* own = new Polynomial(from.terms, from.table);
  own->taken = where;
  return Inside::adopted(own);
}

std::string origin_text(const Dim& dim) {
  if (dim.is_constant()) return text("size ", dim);
  const std::string& function = Inside::polynomial(dim)->table->function;
  const std::string line = at_line(taken_at(dim), ", taken at ");
  return text("size ", dim, function.empty() ? "" : text(" of '", function, "'"), line, line.empty() ? "" : ",");
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
  if (polynomial_of(a) == polynomial_of(b)) return true;
  return polynomial_of(a)->hash == polynomial_of(b)->hash && polynomial_of(a)->table == polynomial_of(b)->table &&
         compare(a, b) == 0;
}

std::size_t Inside::hash(const Dim& dim) {
  if (dim.polynomial_) return dim.polynomial_->hash;
  return static_cast<std::size_t>(static_cast<std::uint64_t>(dim.constant_) * 0x9e3779b97f4a7c15ull) ^ 0x5bd1e995u;
}

namespace {

constexpr __int128 widest = static_cast<__int128>(~static_cast<unsigned __int128>(0) >> 1);

/// In 128 bits, because a sum may fit where its parts do not.
template <class ValueOfSymbol>
__int128 evaluate_widely(const Dim& dim, const ValueOfSymbol& value_of_symbol) {
  if (dim.is_constant()) return dim.constant();
  __int128 sum = 0;
  for (const Term& term : polynomial_of(dim)->terms) {
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
        if (atom.quotient->form == Quotient::Form::positive) {
          factor = std::max<__int128>(numerator, 0);
        } else if (divisor != 0) {
          __int128 modulo = numerator % divisor;
          if (modulo != 0 && (modulo < 0) != (divisor < 0)) modulo += divisor;
          factor = atom.quotient->form == Quotient::Form::modulo ? modulo : (numerator - modulo) / divisor;
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
  for (const Term& term : polynomial_of(dim)->terms) {
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

std::optional<std::int64_t> Inside::hint(const Dim& dim) {
  if (dim.is_constant()) return dim.constant();
  const auto& rows = dim.polynomial_->table->rows;
  for (const int symbol : dim.symbols())
    if (!rows[static_cast<std::size_t>(symbol)].hint) return std::nullopt;
  return stet::evaluate(dim, [&](int symbol) { return *rows[static_cast<std::size_t>(symbol)].hint; });
}

std::int64_t Inside::evaluate(const Dim& dim, const Bindings& bindings) {
  if (dim.is_constant()) return dim.constant();
  return stet::evaluate(dim, [&](int symbol) {
    const std::optional<std::int64_t> value = bindings.find(symbol);
    if (!value) throw InternalError(text("symbol ", symbol, " of size ", dim, " is not bound"));
    return *value;
  });
}

Dim Inside::substitute(const Dim& dim, std::span<const Dim> replacements) {
  return replace_atoms(dim, [&](const Atom& atom) -> Dim {
    if (atom.quotient)
      return applied(atom.quotient->form, atom.quotient->numerator.substitute(replacements),
                     atom.quotient->divisor.substitute(replacements));
    if (static_cast<std::size_t>(atom.symbol) >= replacements.size())
      throw InternalError(text("symbol ", atom.symbol, " of size ", dim, " has no replacement"));
    return replacements[static_cast<std::size_t>(atom.symbol)];
  });
}

std::optional<int> Inside::as_symbol(const Dim& dim) {
  if (dim.is_constant()) return std::nullopt;
  const Terms& terms = dim.polynomial_->terms;
  if (terms.size() != 1 || terms[0].coefficient != 1 || terms[0].monomial.size() != 1 || terms[0].monomial[0].quotient)
    return std::nullopt;
  return terms[0].monomial[0].symbol;
}

namespace {

void collect_divisions(const Dim& dim, std::vector<Division>& found) {
  if (dim.is_constant() || polynomial_of(dim)->depth < 2) return;
  for (const Term& term : polynomial_of(dim)->terms)
    for (const Atom& atom : term.monomial) {
      if (!atom.quotient) continue;
      const auto& [form, numerator, divisor, hash, weight, depth] = *atom.quotient;
      collect_divisions(numerator, found);
      collect_divisions(divisor, found);
      if (!divisor.is_constant() && std::none_of(found.begin(), found.end(), [&, &by = divisor](const Division& other) {
            return identical(other.divisor, by);
          }))
        found.push_back({divisor, by_zero_text(numerator, form == Quotient::Form::modulo)});
    }
}

}  // namespace

std::vector<Division> symbolic_divisions(const Dim& dim) {
  std::vector<Division> found;
  collect_divisions(dim, found);
  return found;
}

std::vector<int> Inside::symbols(const Dim& dim) {
  std::vector<int> found;
  collect_symbols(dim, found);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

namespace {

/// As an operand of // or %: in parentheses unless it is one word.
std::string operand_text(const Dim& dim) {
  return dim.as_symbol() || (dim.is_constant() && dim.constant() >= 0) ? Inside::str(dim) : text('(', dim, ')');
}

std::string atom_text(const Atom& atom, const SymbolTable& table, bool is_factor) {
  if (!atom.quotient) return table.rows[static_cast<std::size_t>(atom.symbol)].name;
  const Quotient& quotient = *atom.quotient;
  if (quotient.form == Quotient::Form::positive) return text("max(", quotient.numerator, ", 0)");
  const std::string inner =
      text(operand_text(quotient.numerator), quotient.form == Quotient::Form::modulo ? " % " : " // ",
           operand_text(quotient.divisor));
  return is_factor ? text('(', inner, ')') : inner;
}

/// a - max(a - b, 0) as "min(a, b)", which says more.
std::optional<std::string> minimum_text(const Dim& dim) {
  const Terms& terms = polynomial_of(dim)->terms;
  const Term* found = nullptr;
  for (const Term& term : terms) {
    const bool is_positive = term.monomial.size() == 1 && term.monomial[0].quotient &&
                             term.monomial[0].quotient->form == Quotient::Form::positive;
    if (!is_positive) continue;
    if (found || term.coefficient != -1) return std::nullopt;
    found = &term;
  }
  if (!found || terms.size() == 1) return std::nullopt;
  const Dim larger = dim + dim_of(found->monomial[0], polynomial_of(dim)->table);
  return text("min(", larger, ", ", larger - found->monomial[0].quotient->numerator, ")");
}

}  // namespace

std::string Inside::str(const Dim& dim) {
  if (dim.is_constant()) return std::to_string(dim.constant());
  if (const auto minimum = minimum_text(dim)) return *minimum;
  std::string out;
  bool first = true;
  for (const Term& term : dim.polynomial_->terms) {
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
      out += atom_text(term.monomial[i], *dim.polynomial_->table, is_factor);
    }
    first = false;
  }
  return out;
}

void append_text(std::string& out, const Dim& dim) { out += Inside::str(dim); }

std::ostream& operator<<(std::ostream& out, const Dim& dim) { return out << Inside::str(dim); }

std::string size_text(const Dim& dim) {
  const std::optional<std::int64_t> hint = dim.hint();
  return hint ? std::to_string(*hint) : Inside::str(dim);
}

namespace {

template <class SizeText>
std::string filled(const SizedText& message, SizeText size_text_of) {
  std::string out;
  std::size_t begin = 0, next = 0;
  for (std::size_t at; next < message.sizes.size() && (at = message.text.find("{}", begin)) != std::string::npos;) {
    out += message.text.substr(begin, at - begin);
    out += size_text_of(message.sizes[next++]);
    begin = at + 2;
  }
  return out + message.text.substr(begin);
}

}  // namespace

std::string SizedText::now() const {
  return filled(*this, [](const Dim& dim) { return size_text(dim); });
}

void test(const SizeCheck& check, const Bindings& bindings) {
  if (check.fact.holds(bindings)) return;
  constexpr char between = '\n';  // no part of a problem's text
  SizedText both(check.problem + between + check.advice);
  both.sizes = check.sizes;
  const std::string said = filled(both, [&](const Dim& dim) {
    for (const int symbol : dim.symbols())
      if (!bindings.find(symbol)) return Inside::str(dim);
    return std::to_string(dim.evaluate(bindings));
  });
  const std::size_t end = said.find(between);
  Problem problem(said.substr(0, end), said.substr(end + 1));
  problem.found_by(check.op, check.where);
  throw problem;
}

bool test_if_known(const SizeCheck& check, const Bindings& bindings) {
  for (const Dim* dim : {&check.fact.left, &check.fact.right})
    for (int symbol : dim->symbols())
      if (!bindings.find(symbol)) return false;
  test(check, bindings);
  return true;
}

}  // namespace stet
