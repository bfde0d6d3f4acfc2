#include "stet/base/polynomial.h"

#include <algorithm>
#include <numeric>

#include "stet/base/error.h"
#include "stet/base/text.h"

namespace stet {
namespace {

// Beyond these a size is no size any more, and recursion over it, or its printed form, could run away.
constexpr int max_weight = 2000;
constexpr int max_depth = 100;
constexpr std::int64_t max_merged_divisor = std::int64_t{1} << 31;

std::size_t mixed(std::size_t seed, std::size_t value) {
  std::uint64_t x = seed ^ (value + 0x9e3779b97f4a7c15ull + (static_cast<std::uint64_t>(seed) << 6) + (seed >> 2));
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ull;
  x ^= x >> 32;
  return static_cast<std::size_t>(x);
}

[[noreturn]] void too_complicated() {
  throw Problem("a size computed here is too complicated an expression of other sizes",
                "read one of the sizes as an integer with value(), or compute it with tensors");
}

int weight_of(const Dim& dim) { return dim.is_constant() ? 1 : polynomial_of(dim)->weight; }
int depth_of(const Dim& dim) { return dim.is_constant() ? 0 : polynomial_of(dim)->depth; }

Atom make_atom(Quotient::Form form, const Dim& numerator, const Dim& divisor) {
  const int weight = 1 + weight_of(numerator) + weight_of(divisor);
  const int depth = 1 + std::max(depth_of(numerator), depth_of(divisor));
  if (weight > max_weight || depth > max_depth) too_complicated();
  const std::size_t hash = mixed(mixed(11 + 2 * static_cast<std::size_t>(form), numerator.hash()), divisor.hash());
  return {-1, std::make_shared<const Quotient>(Quotient{form, numerator, divisor, hash, weight, depth})};
}

}  // namespace

Polynomial::Polynomial(Terms normalized, TablePointer symbols)
    : terms(std::move(normalized)), table(std::move(symbols)) {
  hash = 17;
  for (const Term& term : terms) {
    hash = mixed(hash, static_cast<std::size_t>(term.coefficient));
    weight += 1;
    for (const Atom& atom : term.monomial) {
      hash = mixed(hash, atom.quotient ? atom.quotient->hash : static_cast<std::size_t>(atom.symbol) + 101);
      weight += atom.quotient ? atom.quotient->weight : 1;
      if (atom.quotient) depth = std::max(depth, atom.quotient->depth);
    }
    if (weight > max_weight) too_complicated();
  }
}

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t result;
  if (__builtin_add_overflow(a, b, &result)) throw SizeOverflow{};
  return result;
}

std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) throw SizeOverflow{};
  return result;
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

std::int64_t floor_modulo(std::int64_t a, std::int64_t b) { return a % b + (a % b < 0 ? b : 0); }

int compare(const Atom& a, const Atom& b) {
  if (!a.quotient || !b.quotient) {
    if (a.quotient || b.quotient) return a.quotient ? 1 : -1;
    return a.symbol == b.symbol ? 0 : a.symbol < b.symbol ? -1 : 1;
  }
  if (a.quotient == b.quotient) return 0;
  if (a.quotient->form != b.quotient->form) return a.quotient->form < b.quotient->form ? -1 : 1;
  if (const int order = compare(a.quotient->divisor, b.quotient->divisor)) return order;
  return compare(a.quotient->numerator, b.quotient->numerator);
}

int compare(const Monomial& a, const Monomial& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (const int order = compare(a[i], b[i])) return order;
  return 0;
}

int compare(const Dim& a, const Dim& b) {
  if (a.is_constant() || b.is_constant()) {
    if (!a.is_constant() || !b.is_constant()) return a.is_constant() ? -1 : 1;
    return a.constant() == b.constant() ? 0 : a.constant() < b.constant() ? -1 : 1;
  }
  if (polynomial_of(a) == polynomial_of(b)) return 0;
  const Terms &left = polynomial_of(a)->terms, &right = polynomial_of(b)->terms;
  if (left.size() != right.size()) return left.size() < right.size() ? -1 : 1;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (const int order = compare(left[i].monomial, right[i].monomial)) return order;
    if (left[i].coefficient != right[i].coefficient) return left[i].coefficient < right[i].coefficient ? -1 : 1;
  }
  return 0;
}

bool same_terms(const Terms& a, const Terms& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Term& left, const Term& right) {
    return left.coefficient == right.coefficient && compare(left.monomial, right.monomial) == 0;
  });
}

Terms terms_of(const Dim& dim) {
  if (!dim.is_constant()) return polynomial_of(dim)->terms;
  if (dim.constant() == 0) return {};
  return {{dim.constant(), {}}};
}

void normalize(Terms& terms) {
  std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) {
    if (a.monomial.size() != b.monomial.size()) return a.monomial.size() > b.monomial.size();
    return compare(a.monomial, b.monomial) < 0;
  });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (kept > 0 && compare(terms[kept - 1].monomial, terms[i].monomial) == 0) {
      terms[kept - 1].coefficient = checked_add(terms[kept - 1].coefficient, terms[i].coefficient);
      continue;
    }
    if (kept > 0 && terms[kept - 1].coefficient == 0) --kept;
    if (kept != i) terms[kept] = std::move(terms[i]);
    ++kept;
  }
  if (kept > 0 && terms[kept - 1].coefficient == 0) --kept;
  terms.resize(kept);
}

Dim make_dim(Terms terms, const TablePointer& table) {
  if (terms.empty()) return 0;
  if (terms.size() == 1 && terms[0].monomial.empty()) return terms[0].coefficient;
  return Inside::adopted(new Polynomial(std::move(terms), table));
}

Dim dim_of(const Atom& atom, const TablePointer& table) { return make_dim({{1, {atom}}}, table); }

TablePointer table_of(const Dim& dim) { return dim.is_constant() ? nullptr : polynomial_of(dim)->table; }

TablePointer common_table(const Dim& a, const Dim& b) {
  if (a.is_constant()) return table_of(b);
  if (!b.is_constant() && polynomial_of(a)->table != polynomial_of(b)->table)
    throw TraceError(error_text(text(origin_text(a), " and ", origin_text(b), " belong to two different traces"),
                                Where{}, "use only sizes of tensors of the trace that is running"));
  return table_of(a);
}

Terms scaled(const Terms& terms, std::int64_t factor) {
  if (factor == 0) return {};
  Terms result = terms;
  for (Term& term : result) term.coefficient = checked_multiply(term.coefficient, factor);
  return result;
}

Terms sum_of(const Terms& a, const Terms& b) {
  Terms result = a;
  result.insert(result.end(), b.begin(), b.end());
  normalize(result);
  return result;
}

Terms product_of(const Terms& a, const Terms& b) {
  if (a.size() * b.size() > 2 * max_weight) too_complicated();
  Terms result;
  result.reserve(a.size() * b.size());
  for (const Term& left : a) {
    for (const Term& right : b) {
      if (left.monomial.size() + right.monomial.size() > max_weight) too_complicated();
      Term& term = result.emplace_back(Term{checked_multiply(left.coefficient, right.coefficient), {}});
      term.monomial.resize(left.monomial.size() + right.monomial.size());
      std::merge(left.monomial.begin(), left.monomial.end(), right.monomial.begin(), right.monomial.end(),
                 term.monomial.begin(), [](const Atom& x, const Atom& y) { return compare(x, y) < 0; });
    }
  }
  normalize(result);
  return result;
}

std::optional<Monomial> divided(const Monomial& monomial, const Monomial& divisor) {
  if (divisor.size() > monomial.size()) return std::nullopt;
  Monomial rest;
  std::size_t used = 0;
  for (const Atom& atom : monomial) {
    if (used < divisor.size() && compare(atom, divisor[used]) == 0) {
      ++used;
    } else {
      rest.push_back(atom);
    }
  }
  if (used < divisor.size()) return std::nullopt;
  return rest;
}

std::int64_t constant_part(const Terms& terms) {
  return terms.empty() || !terms.back().monomial.empty() ? 0 : terms.back().coefficient;
}

const Term& leading_term(const Terms& terms) {
  std::size_t last = 0;
  while (last + 1 < terms.size() && terms[last + 1].monomial.size() == terms[0].monomial.size()) ++last;
  return terms[last];
}

std::int64_t content_without_constant(const Terms& terms) {
  std::int64_t content = 0;
  for (const Term& term : terms) {
    if (term.coefficient == INT64_MIN) throw SizeOverflow{};
    if (!term.monomial.empty()) content = std::gcd(content, term.coefficient);
  }
  return content;
}

Dim replace_atoms(const Dim& dim, const std::function<Dim(const Atom&)>& replacement) {
  if (dim.is_constant()) return dim;
  Dim sum = 0;
  for (const Term& term : polynomial_of(dim)->terms) {
    Dim product = term.coefficient;
    for (const Atom& atom : term.monomial) product = product * replacement(atom);
    sum = sum + product;
  }
  return sum;
}

Dim applied(Quotient::Form form, const Dim& numerator, const Dim& divisor) {
  if (form == Quotient::Form::positive) return positive_part(numerator);
  if (divisor.is_constant(0)) return 0;
  return form == Quotient::Form::modulo ? numerator % divisor : numerator / divisor;
}

namespace {

/// The result of an operation on sizes that host code took somewhere was taken there as well.
template <class Compute>
Dim guarded(const Dim& a, const char* sign, const Dim& b, Compute compute) {
  try {
    const Where taken = taken_at(a).known() ? taken_at(a) : taken_at(b);
    return taken.known() ? taken_at(compute(), taken) : compute();
  } catch (const SizeOverflow&) {
    throw Problem(text("size ", a, ' ', sign, ' ', b, " is too large"), "sizes must stay below 2^62");
  }
}

[[noreturn]] void by_zero(const Dim& dividend, bool is_modulo) {
  throw Problem(by_zero_text(dividend, is_modulo).now());
}

/// Coefficients as divisor * quotient + remainder, 0 <= remainder < divisor.
struct Split {
  Terms quotient, remainder;
};

Split split(const Terms& terms, std::int64_t divisor) {
  Split result;
  for (const Term& term : terms) {
    const std::int64_t quotient = floor_divide(term.coefficient, divisor);
    const std::int64_t remainder = floor_modulo(term.coefficient, divisor);
    if (quotient != 0) result.quotient.push_back({quotient, term.monomial});
    if (remainder != 0) result.remainder.push_back({remainder, term.monomial});
  }
  return result;
}

/// terms // divisor, coefficient by coefficient; the constant's remainder falls away.
Terms floor_divided(const Terms& terms, std::int64_t divisor) { return split(terms, divisor).quotient; }

/// If exactly one term is a plain `x // a` with constant a: its position.
std::optional<std::size_t> only_floor_division(const Terms& terms) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const Term& term = terms[i];
    if (term.coefficient != 1 || term.monomial.size() != 1 || !term.monomial[0].quotient) continue;
    const Quotient& quotient = *term.monomial[0].quotient;
    if (quotient.form != Quotient::Form::floor || !quotient.divisor.is_constant()) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

struct Division {
  Terms dividend;
  std::int64_t divisor;
};

/// (x // a + p) // b as (x + a * p) // (a * b), if it has this form and the numbers stay small enough to compute with.
std::optional<Division> without_inner_division(const Terms& dividend, std::int64_t divisor) {
  const auto position = only_floor_division(dividend);
  if (!position) return std::nullopt;
  const Quotient& inner = *dividend[*position].monomial[0].quotient;
  Terms others = dividend;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(*position));
  try {
    const std::int64_t product = checked_multiply(inner.divisor.constant(), divisor);
    if (product > max_merged_divisor) return std::nullopt;
    return Division{sum_of(terms_of(inner.numerator), scaled(others, inner.divisor.constant())), product};
  } catch (const SizeOverflow&) {
    return std::nullopt;
  }
}

/// For divisor > 1. What divides is pulled out, common factors are cancelled, and a division of a division becomes
/// one, so that each way to write a size ends in one form: (s - 3) / 2 + 1 and (s + 1) / 2 - 1 are identical.
Dim divide_by_constant(const Terms& dividend, std::int64_t divisor, const TablePointer& table) {
  Split parts = split(dividend, divisor);
  const Dim whole = make_dim(parts.quotient, table);
  const std::int64_t common = std::gcd(content_without_constant(parts.remainder), divisor);
  const Terms rest = floor_divided(parts.remainder, common);
  divisor /= common;
  if (divisor == 1) return whole;  // only a constant was left, below the divisor
  const Interval range = bounds(rest, table.get(), {});
  if (range.low != Interval::none_below && range.high != Interval::none_above &&
      floor_divide(range.low, divisor) == floor_divide(range.high, divisor))
    return whole + Dim(floor_divide(range.low, divisor));
  if (const auto merged = without_inner_division(rest, divisor))
    return whole + divide_by_constant(merged->dividend, merged->divisor, table);
  return whole + dim_of(make_atom(Quotient::Form::floor, make_dim(rest, table), divisor), table);
}

/// Modulo atoms whose divisor is a multiple of `divisor` replaced by their numerators, which are congruent.
Dim without_inner_modulo(const Dim& dim, std::int64_t divisor) {
  const TablePointer table = table_of(dim);
  return replace_atoms(dim, [&](const Atom& atom) {
    if (atom.quotient && atom.quotient->form == Quotient::Form::modulo && atom.quotient->divisor.is_constant() &&
        atom.quotient->divisor.constant() % divisor == 0)
      return atom.quotient->numerator;
    return dim_of(atom, table);
  });
}

bool has_inner_modulo(const Terms& terms, std::int64_t divisor) {
  for (const Term& term : terms)
    for (const Atom& atom : term.monomial)
      if (atom.quotient && atom.quotient->form == Quotient::Form::modulo && atom.quotient->divisor.is_constant() &&
          atom.quotient->divisor.constant() % divisor == 0)
        return true;
  return false;
}

/// For divisor > 1.
Dim modulo_by_constant(const Terms& dividend, std::int64_t divisor, const TablePointer& table) {
  Terms rest = split(dividend, divisor).remainder;
  while (has_inner_modulo(rest, divisor))
    rest = split(terms_of(without_inner_modulo(make_dim(rest, table), divisor)), divisor).remainder;
  // (g * p + c) % (g * m) is g * ((p + c // g) % m) + c % g.
  const std::int64_t common = std::gcd(content_without_constant(rest), divisor);
  const std::int64_t left_over = constant_part(rest) % common;
  rest = floor_divided(rest, common);
  divisor /= common;
  if (divisor == 1) return left_over;
  if (common > 1) return Dim(common) * modulo_by_constant(rest, divisor, table) + left_over;
  const Interval range = bounds(rest, table.get(), {});
  if (range.low >= 0 && range.high < divisor) return make_dim(rest, table);
  return dim_of(make_atom(Quotient::Form::modulo, make_dim(rest, table), divisor), table);
}

}  // namespace

SizedText by_zero_text(const Dim& dividend, bool is_modulo) {
  return sized_text("size ", dividend, " cannot be ", is_modulo ? "taken modulo" : "divided by", " 0");
}

Dim positive_part(const Dim& dim) {
  if (dim.is_constant()) return std::max<std::int64_t>(dim.constant(), 0);
  const TablePointer table = table_of(dim);
  Terms terms = polynomial_of(dim)->terms;
  const std::int64_t content = std::gcd(content_without_constant(terms), constant_part(terms));
  if (content > 1) {
    for (Term& term : terms) term.coefficient /= content;
    return Dim(content) * positive_part(make_dim(std::move(terms), table));
  }
  const Interval range = bounds(terms, table.get(), {});
  if (range.low >= 0) return dim;
  if (range.high <= 0) return 0;
  if (leading_term(terms).coefficient < 0) return positive_part(Dim(0) - dim) + dim;
  // max(max(p, 0) - c, 0) is max(p - c, 0) for c >= 0: a slice of a slice.
  const Atom* only = terms[0].monomial.size() == 1 && terms[0].coefficient == 1 ? &terms[0].monomial[0] : nullptr;
  const bool is_shifted = terms.size() == 1 || (terms.size() == 2 && terms[1].monomial.empty());
  if (only && is_shifted && only->quotient && only->quotient->form == Quotient::Form::positive &&
      constant_part(terms) <= 0)
    return positive_part(only->quotient->numerator + constant_part(terms));
  return dim_of(make_atom(Quotient::Form::positive, dim, 1), table);
}

Dim larger_of(const Dim& a, const Dim& b) {
  return guarded(a, "or", b, [&] { return b + positive_part(a - b); });
}

Dim smaller_of(const Dim& a, const Dim& b) {
  return guarded(a, "or", b, [&] { return a - positive_part(a - b); });
}

Dim Dim::add(const Dim& a, const Dim& b) {
  return guarded(a, "+", b, [&] { return make_dim(sum_of(terms_of(a), terms_of(b)), common_table(a, b)); });
}

Dim Dim::subtract(const Dim& a, const Dim& b) {
  return guarded(a, "-", b, [&] {
    if (a.is_constant() && b.is_constant()) throw SizeOverflow{};
    return make_dim(sum_of(terms_of(a), scaled(terms_of(b), -1)), common_table(a, b));
  });
}

Dim Dim::multiply(const Dim& a, const Dim& b) {
  return guarded(a, "*", b, [&] { return make_dim(product_of(terms_of(a), terms_of(b)), common_table(a, b)); });
}

namespace {

/// Factor > 0 with both Dims multiples of it; the second is not constant.
std::int64_t common_factor(const Dim& a, const Dim& b) {
  std::int64_t factor = 0;
  for (const Dim* dim : {&a, &b}) {
    const Terms terms = terms_of(*dim);
    factor = std::gcd(factor, std::gcd(content_without_constant(terms), constant_part(terms)));
  }
  return factor;
}

}  // namespace

Dim Dim::divide(const Dim& a, const Dim& b) {
  const TablePointer table = common_table(a, b);
  return guarded(a, "//", b, [&]() -> Dim {
    if (!b.is_constant()) {
      if (a.is_constant() && a.constant() == 0) return 0;
      const std::int64_t factor = common_factor(a, b);
      return dim_of(make_atom(Quotient::Form::floor, *exact_quotient(a, factor), *exact_quotient(b, factor)), table);
    }
    std::int64_t divisor = b.constant();
    if (divisor == 0) by_zero(a, false);
    if (divisor == INT64_MIN) throw SizeOverflow{};
    const Terms dividend = divisor < 0 ? scaled(terms_of(a), -1) : terms_of(a);
    if (divisor < 0) divisor = -divisor;
    return divisor == 1 ? make_dim(dividend, table) : divide_by_constant(dividend, divisor, table);
  });
}

Dim Dim::modulo(const Dim& a, const Dim& b) {
  const TablePointer table = common_table(a, b);
  return guarded(a, "%", b, [&]() -> Dim {
    if (!b.is_constant()) {
      if (a.is_constant() && a.constant() == 0) return 0;
      // Right also if the divisor turns out to be 0, because then the dividend is 0, too.
      if (exact_quotient(a, b)) return 0;
      const std::int64_t factor = common_factor(a, b);
      return Dim(factor) *
             dim_of(make_atom(Quotient::Form::modulo, *exact_quotient(a, factor), *exact_quotient(b, factor)), table);
    }
    const std::int64_t divisor = b.constant();
    if (divisor == 0) by_zero(a, true);
    if (divisor == INT64_MIN) throw SizeOverflow{};
    if (divisor == 1 || divisor == -1) return 0;
    if (divisor > 0) return modulo_by_constant(terms_of(a), divisor, table);
    return Dim(0) - modulo_by_constant(scaled(terms_of(a), -1), -divisor, table);
  });
}

std::optional<Dim> exact_quotient(const Dim& dividend, const Dim& divisor) {
  if (divisor.is_constant() && divisor.constant() == 0) return std::nullopt;
  const TablePointer table = common_table(dividend, divisor);
  const Terms by = terms_of(divisor);
  const Term& leading = leading_term(by);
  Terms rest = terms_of(dividend), quotient;
  try {
    // Each step takes away the greatest term that is left, so there are as many steps as the quotient has terms.
    while (!rest.empty() && quotient.size() < max_weight) {
      const Term& greatest = leading_term(rest);
      const auto monomial = divided(greatest.monomial, leading.monomial);
      if (greatest.coefficient == INT64_MIN || leading.coefficient == INT64_MIN) return std::nullopt;
      if (!monomial || greatest.coefficient % leading.coefficient != 0) return std::nullopt;
      const Term term{greatest.coefficient / leading.coefficient, *monomial};
      rest = sum_of(rest, scaled(product_of({term}, by), -1));
      quotient.push_back(term);
    }
    if (!rest.empty()) return std::nullopt;
    normalize(quotient);
    return make_dim(std::move(quotient), table);
  } catch (const SizeOverflow&) {
    return std::nullopt;
  } catch (const Problem&) {  // too complicated
    return std::nullopt;
  }
}

namespace {

std::int64_t saturated(__int128 value) {
  return value <= INT64_MIN ? INT64_MIN : value >= INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(value);
}

bool is_unbounded(std::int64_t end) { return end == Interval::none_below || end == Interval::none_above; }

std::int64_t end_product(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (is_unbounded(a) || is_unbounded(b)) return (a < 0) == (b < 0) ? Interval::none_above : Interval::none_below;
  return saturated(static_cast<__int128>(a) * b);
}

Interval quotient_bounds(const Quotient& quotient, const KnownBounds& known) {
  const Interval numerator = bounds(quotient.numerator, known);
  if (quotient.form == Quotient::Form::positive)
    return {std::max<std::int64_t>(numerator.low, 0), std::max<std::int64_t>(numerator.high, 0)};
  const bool is_modulo = quotient.form == Quotient::Form::modulo;
  if (!quotient.divisor.is_constant()) {
    const Interval divisor = bounds(quotient.divisor, known);
    if (numerator.low < 0 || divisor.low < 0) return {};
    if (!is_modulo) return {0, numerator.high};
    const std::int64_t below =
        divisor.high == Interval::none_above ? divisor.high : std::max<std::int64_t>(divisor.high - 1, 0);
    return {0, std::min(numerator.high, below)};
  }
  const std::int64_t divisor = quotient.divisor.constant();
  if (is_modulo) return {0, numerator.low >= 0 ? std::min(numerator.high, divisor - 1) : divisor - 1};
  return {numerator.low == Interval::none_below ? numerator.low : floor_divide(numerator.low, divisor),
          numerator.high == Interval::none_above ? numerator.high : floor_divide(numerator.high, divisor)};
}

Interval atom_bounds(const Atom& atom, const SymbolTable* table, const KnownBounds& known) {
  Interval result;
  if (atom.quotient) {
    result = quotient_bounds(*atom.quotient, known);
  } else {
    result = {0, table->rows[static_cast<std::size_t>(atom.symbol)].upper_bound.value_or(Interval::none_above)};
  }
  return known ? result.intersected(known({{1, {atom}}})) : result;
}

}  // namespace

Interval Interval::plus(const Interval& other) const {
  Interval result;
  if (low != none_below && other.low != none_below) result.low = saturated(static_cast<__int128>(low) + other.low);
  if (high != none_above && other.high != none_above) result.high = saturated(static_cast<__int128>(high) + other.high);
  return result;
}

Interval Interval::times(const Interval& other) const {
  const auto [least, greatest] = std::minmax({end_product(low, other.low), end_product(low, other.high),
                                              end_product(high, other.low), end_product(high, other.high)});
  return {least, greatest};
}

Interval Interval::intersected(const Interval& other) const {
  return {std::max(low, other.low), std::min(high, other.high)};
}

Interval bounds(const Terms& terms, const SymbolTable* table, const KnownBounds& known) {
  Interval sum{0, 0};
  for (const Term& term : terms) {
    Interval product{1, 1};
    for (const Atom& atom : term.monomial) product = product.times(atom_bounds(atom, table, known));
    if (known && term.monomial.size() > 1) product = product.intersected(known({{1, term.monomial}}));
    sum = sum.plus(product.times({term.coefficient, term.coefficient}));
  }
  if (!known || terms.size() < 2) return sum;
  // The polynomial as a whole, without its constant and common factor, may be known as well.
  const std::int64_t constant = constant_part(terms);
  std::int64_t content = content_without_constant(terms);
  if (content == 0) return sum;
  if (leading_term(terms).coefficient < 0) content = -content;
  Terms primitive;
  for (const Term& term : terms)
    if (!term.monomial.empty()) primitive.push_back({term.coefficient / content, term.monomial});
  const Interval whole = known(primitive).times({content, content});
  return sum.intersected(whole.plus({constant, constant}));
}

Interval bounds(const Dim& dim, const KnownBounds& known) {
  if (dim.is_constant()) return {dim.constant(), dim.constant()};
  return bounds(polynomial_of(dim)->terms, polynomial_of(dim)->table.get(), known);
}

}  // namespace stet
