// Proofs about sizes, by what a scope has learned.
//
// A question `a relation b` is one about the sign of a - b. Three things answer it: the canonical form (a difference
// that is a constant), the equalities among the facts used as rewriting rules, and intervals; a max(p, 0) is seen as
// two cases, p and 0. Rules replace the
// greatest monomial of an equation by the rest of it, so each step makes the polynomial smaller in a well-founded
// order; steps are counted all the same, because quotients that contain symbols are atoms of that order. Where this
// gives up the answer is `unknown`, which costs at most a fact that follows from others.
#include <algorithm>
#include <atomic>
#include <numeric>
#include <unordered_map>

#include "stet/base/error.h"
#include "stet/base/polynomial.h"

namespace stet {
namespace {

constexpr int max_steps = 64;

/// A polynomial that is 0, with a positive leading coefficient.
using Equation = Terms;

std::size_t hash_of(const Atom& atom) {
  return atom.quotient ? atom.quotient->hash : static_cast<std::size_t>(atom.symbol);
}

/// Equations, found by their leading monomials.
class EquationSet {
 public:
  bool empty() const { return by_atom_.empty(); }
  /// Adds `zero == 0`, and rewrites with it those that are there.
  void add(const Dim& zero, const TablePointer& table);
  /// One step: the first term that an equation's leading monomial divides is replaced. With `may_scale` the whole is
  /// multiplied by a positive number where coefficients do not divide, which keeps its sign but not its value.
  bool rewrite_once(Terms& terms, bool may_scale) const;

 private:
  void insert(Equation equation);
  void erase(std::size_t position);

  std::vector<Equation> equations_;                                     // empty where one was erased
  std::unordered_map<std::size_t, std::vector<std::size_t>> by_atom_;   // of the first atom of the leading monomial
  std::unordered_map<std::size_t, std::vector<std::size_t>> mentions_;  // of any atom; those erased stay listed
};

/// What comparisons say of a polynomial without constant part, primitive, with a positive leading coefficient.
struct KnownRange {
  Terms polynomial;
  Interval range;
  std::vector<std::int64_t> excluded;
};

}  // namespace

struct Knowledge {
  std::size_t facts = 0, checks = 0;  // how many of the scope's this was made of
  std::uint64_t dropped = 0;          // as the scope counted when it was
  EquationSet equations;
  std::vector<KnownRange> as_stated;
  std::vector<KnownRange> rewritten;  // by the equations
  std::vector<Fact> comparisons;      // all but the equations: what is rewritten when these change
};

namespace {

/// The terms as factor * polynomial + constant, the polynomial as KnownRange has it. Factor 0: terms are a constant.
struct PrimitiveForm {
  std::int64_t factor = 0;
  std::int64_t constant = 0;
  Terms polynomial;
};

PrimitiveForm primitive_form(const Terms& terms) {
  PrimitiveForm form;
  form.constant = constant_part(terms);
  form.factor = content_without_constant(terms);
  if (form.factor == 0) return form;
  if (leading_term(terms).coefficient < 0) form.factor = -form.factor;
  for (const Term& term : terms)
    if (!term.monomial.empty()) form.polynomial.push_back({term.coefficient / form.factor, term.monomial});
  return form;
}

const KnownRange* find(const std::vector<KnownRange>& ranges, const Terms& polynomial) {
  for (const KnownRange& known : ranges)
    if (same_terms(known.polynomial, polynomial)) return &known;
  return nullptr;
}

bool EquationSet::rewrite_once(Terms& terms, bool may_scale) const {
  for (const Term& term : terms) {
    if (term.coefficient == INT64_MIN) continue;
    for (std::size_t i = 0; i < term.monomial.size(); ++i) {
      const auto candidates = by_atom_.find(hash_of(term.monomial[i]));
      if (candidates == by_atom_.end()) continue;
      for (const std::size_t position : candidates->second) {
        const Equation& equation = equations_[position];
        const Term& leading = leading_term(equation);
        const auto rest = divided(term.monomial, leading.monomial);
        if (!rest) continue;
        const std::int64_t common = std::gcd(term.coefficient, leading.coefficient);
        const std::int64_t scale = leading.coefficient / common;
        if (scale != 1 && !may_scale) continue;
        const Terms factor{{checked_multiply(term.coefficient / common, -1), *rest}};
        terms = sum_of(scaled(terms, scale), product_of(factor, equation));
        return true;
      }
    }
  }
  return false;
}

/// f(atom) for every atom of the terms, those inside of quotients too.
template <class F>
void for_each_atom(const Terms& terms, const F& f) {
  for (const Term& term : terms)
    for (const Atom& atom : term.monomial) {
      f(atom);
      if (!atom.quotient) continue;
      for (const Dim* operand : {&atom.quotient->numerator, &atom.quotient->divisor})
        if (!operand->is_constant()) for_each_atom(polynomial_of(*operand)->terms, f);
    }
}

/// Whether a rule with this leading monomial has something to replace, inside of quotients too.
bool is_touched(const Terms& terms, const Monomial& leading) {
  return std::any_of(terms.begin(), terms.end(), [&](const Term& term) {
    if (divided(term.monomial, leading)) return true;
    return std::any_of(term.monomial.begin(), term.monomial.end(), [&](const Atom& atom) {
      if (!atom.quotient) return false;
      for (const Dim* operand : {&atom.quotient->numerator, &atom.quotient->divisor})
        if (!operand->is_constant() && is_touched(polynomial_of(*operand)->terms, leading)) return true;
      return false;
    });
  });
}

void EquationSet::insert(Equation equation) {
  for_each_atom(equation, [&](const Atom& atom) {
    std::vector<std::size_t>& places = mentions_[hash_of(atom)];
    if (places.empty() || places.back() != equations_.size()) places.push_back(equations_.size());
  });
  by_atom_[hash_of(leading_term(equation).monomial.front())].push_back(equations_.size());
  equations_.push_back(std::move(equation));
}

void EquationSet::erase(std::size_t position) {
  const auto entry = by_atom_.find(hash_of(leading_term(equations_[position]).monomial.front()));
  std::erase(entry->second, position);
  if (entry->second.empty()) by_atom_.erase(entry);
  equations_[position].clear();
}

Dim rewrite(const Dim& dim, const EquationSet& equations, bool may_scale, int& steps);

/// The Dim with its quotients' operands rewritten. A quotient that is itself the leading monomial of an equation is
/// left to that equation.
Dim rewrite_operands(const Dim& dim, const EquationSet& equations, int& steps) {
  const TablePointer table = table_of(dim);
  bool has_quotient = false;
  for (const Term& term : polynomial_of(dim)->terms)
    for (const Atom& atom : term.monomial) has_quotient = has_quotient || atom.quotient;
  if (!has_quotient) return dim;
  return replace_atoms(dim, [&](const Atom& atom) {
    if (!atom.quotient) return dim_of(atom, table);
    const Dim numerator = rewrite(atom.quotient->numerator, equations, false, steps);
    const Dim divisor = rewrite(atom.quotient->divisor, equations, false, steps);
    return applied(atom.quotient->form, numerator, divisor);
  });
}

Dim rewrite(const Dim& dim, const EquationSet& equations, bool may_scale, int& steps) {
  if (equations.empty()) return dim;
  const TablePointer table = table_of(dim);
  Dim result = dim;
  while (!result.is_constant() && steps > 0) {
    Terms terms = polynomial_of(result)->terms;
    while (steps > 0 && equations.rewrite_once(terms, may_scale)) --steps;
    const Dim outside = make_dim(std::move(terms), table);
    if (outside.is_constant()) return outside;
    Dim inside = rewrite_operands(outside, equations, steps);
    if (identical(inside, outside)) return inside;
    --steps;
    result = std::move(inside);
  }
  return result;
}

/// x % n as x - n * (x // n), so that a quotient and a modulo of one division are seen together. Only for constant n:
/// by 0 both give 0.
Dim without_modulo(const Dim& dim) {
  const TablePointer table = table_of(dim);
  return replace_atoms(dim, [&](const Atom& atom) {
    if (!atom.quotient || atom.quotient->form != Quotient::Form::modulo || !atom.quotient->divisor.is_constant())
      return dim_of(atom, table);
    const Dim numerator = without_modulo(atom.quotient->numerator);
    return numerator - atom.quotient->divisor * (numerator / atom.quotient->divisor);
  });
}

/// What runs out of bounds or grows too large is not learned; everything else stays true. Whether it succeeded.
template <class Learn>
bool learn_if_possible(Learn learn) {
  try {
    learn();
    return true;
  } catch (const SizeOverflow&) {
    return false;
  } catch (const Problem&) {
    return false;
  }
}

/// The primitive equation `dim == 0`; empty if the Dim is a constant.
Equation equation_of(const Dim& dim) {
  if (dim.is_constant()) return {};
  Terms terms = polynomial_of(dim)->terms;
  std::int64_t common = std::gcd(content_without_constant(terms), constant_part(terms));
  if (leading_term(terms).coefficient < 0) common = -common;
  for (Term& term : terms) term.coefficient /= common;
  return terms;
}

void EquationSet::add(const Dim& zero, const TablePointer& table) {
  std::vector<Dim> waiting{zero};
  for (int rounds = max_steps; !waiting.empty(); --rounds) {
    Dim next = waiting.back();
    waiting.pop_back();
    int steps = max_steps;
    learn_if_possible([&] { next = rewrite(next, *this, true, steps); });
    Equation equation;
    if (!learn_if_possible([&] { equation = equation_of(next); }) || equation.empty()) continue;
    const Monomial leading = leading_term(equation).monomial;
    // Out of rounds the others stay as they are: true, and better known than lost.
    const auto mentioning = mentions_.find(hash_of(leading.front()));
    const std::vector<std::size_t> touched =
        mentioning == mentions_.end() || rounds <= 0 ? std::vector<std::size_t>() : mentioning->second;
    for (const std::size_t i : touched) {
      if (!is_touched(equations_[i], leading)) continue;
      waiting.push_back(make_dim(equations_[i], table));
      erase(i);
    }
    insert(std::move(equation));
  }
}

/// Learns from `difference relation 0`.
void add_range(std::vector<KnownRange>& ranges, const Dim& difference, Relation relation) {
  const PrimitiveForm form = primitive_form(terms_of(difference));
  if (form.factor == 0) return;
  auto known = std::find_if(ranges.begin(), ranges.end(),
                            [&](const KnownRange& other) { return same_terms(other.polynomial, form.polynomial); });
  if (known == ranges.end()) known = ranges.insert(known, KnownRange{form.polynomial, {}, {}});
  // factor * p + constant <= limit
  const std::int64_t magnitude = form.factor < 0 ? -form.factor : form.factor;
  const auto at_most = [&](std::int64_t limit) {
    const std::int64_t end = floor_divide(checked_add(limit, checked_multiply(form.constant, -1)), magnitude);
    known->range = known->range.intersected(form.factor > 0 ? Interval{Interval::none_below, end}
                                                            : Interval{-end, Interval::none_above});
  };
  const std::int64_t point = checked_multiply(form.constant, -1);
  switch (relation) {
    case Relation::less:
      return at_most(-1);
    case Relation::less_equal:
      return at_most(0);
    case Relation::equal:
      if (point % magnitude == 0) known->range = known->range.intersected({point / form.factor, point / form.factor});
      return;
    case Relation::not_equal:
      if (point % magnitude == 0) known->excluded.push_back(point / form.factor);
      return;
  }
}

/// An excluded value at the end of a range makes it shorter.
void tighten(std::vector<KnownRange>& ranges) {
  for (KnownRange& known : ranges) {
    std::sort(known.excluded.begin(), known.excluded.end());
    // Sizes themselves are never negative.
    const bool is_symbol = known.polynomial.size() == 1 && known.polynomial[0].monomial.size() == 1 &&
                           !known.polynomial[0].monomial[0].quotient;
    if (is_symbol) known.range.low = std::max<std::int64_t>(known.range.low, 0);
    for (const std::int64_t value : known.excluded)
      if (value == known.range.low) ++known.range.low;
    for (auto value = known.excluded.rbegin(); value != known.excluded.rend(); ++value)
      if (*value == known.range.high) --known.range.high;
  }
}

Dim rewritten(const Dim& dim, const EquationSet& equations, bool may_scale) {
  int steps = max_steps;
  return rewrite(without_modulo(dim), equations, may_scale, steps);
}

void learn(Knowledge& knowledge, const Fact& fact, const TablePointer& table) {
  learn_if_possible([&] {
    const Dim difference = fact.left - fact.right;
    if (fact.relation == Relation::equal) {
      knowledge.equations.add(without_modulo(difference), table);
    } else {
      add_range(knowledge.as_stated, difference, fact.relation);
    }
  });
  if (fact.relation != Relation::equal) knowledge.comparisons.push_back(fact);
}

/// After the equations are there: the comparisons seen through them.
void learn_rewritten(Knowledge& knowledge) {
  knowledge.rewritten.clear();
  for (const Fact& fact : knowledge.comparisons)
    learn_if_possible([&] {
      add_range(knowledge.rewritten, rewritten(fact.left - fact.right, knowledge.equations, true), fact.relation);
    });
  tighten(knowledge.as_stated);
  tighten(knowledge.rewritten);
}

Proof answer(bool value) { return value ? Proof::yes : Proof::no; }

Proof opposite(Proof proof) { return proof == Proof::unknown ? proof : answer(proof == Proof::no); }

/// Is the polynomial never 0, by divisibility or because the comparisons exclude it?
bool is_never_zero(const Terms& difference, const std::vector<KnownRange>& ranges) {
  const PrimitiveForm form = primitive_form(difference);
  if (form.factor == 0) return form.constant != 0;
  if (form.constant % form.factor != 0) return true;
  const KnownRange* known = find(ranges, form.polynomial);
  return known && std::binary_search(known->excluded.begin(), known->excluded.end(), -(form.constant / form.factor));
}

/// `difference relation 0` for relations other than not_equal.
Proof compare_with_zero(const Dim& difference, Relation relation, const std::vector<KnownRange>& ranges) {
  if (difference.is_constant()) return answer(holds(difference.constant(), relation, 0));
  const KnownBounds known_bounds = [&](const Terms& polynomial) {
    const KnownRange* known = find(ranges, polynomial);
    return known ? known->range : Interval{};
  };
  const Interval range = bounds(difference, ranges.empty() ? KnownBounds{} : known_bounds);
  const bool never_zero = range.low > 0 || range.high < 0 || is_never_zero(polynomial_of(difference)->terms, ranges);
  switch (relation) {
    case Relation::equal:
      if (never_zero) return Proof::no;
      return range.low == 0 && range.high == 0 ? Proof::yes : Proof::unknown;
    case Relation::less:
      if (range.low >= 0) return Proof::no;
      return range.high < 0 || (range.high == 0 && never_zero) ? Proof::yes : Proof::unknown;
    case Relation::less_equal:
      if (range.low > 0 || (range.low == 0 && never_zero)) return Proof::no;
      return range.high <= 0 ? Proof::yes : Proof::unknown;
    case Relation::not_equal:
      break;
  }
  return Proof::unknown;
}

/// The first max(p, 0) among the atoms; null if there is none.
const Atom* positive_atom(const Dim& dim) {
  if (dim.is_constant() || polynomial_of(dim)->depth < 2) return nullptr;
  for (const Term& term : polynomial_of(dim)->terms)
    for (const Atom& atom : term.monomial)
      if (atom.quotient && atom.quotient->form == Quotient::Form::positive) return &atom;
  return nullptr;
}

Dim with_atom(const Dim& dim, const Atom& atom, const Dim& by) {
  const TablePointer table = table_of(dim);
  return replace_atoms(dim, [&](const Atom& other) { return compare(atom, other) == 0 ? by : dim_of(other, table); });
}

/// `difference relation 0`, given that the conditions are not negative.
Proof compare_under(const Dim& difference, Relation relation, const std::vector<Dim>& conditions,
                    const std::vector<KnownRange>& ranges) {
  const Proof alone = compare_with_zero(difference, relation, ranges);
  if (alone != Proof::unknown || relation == Relation::equal) return alone;
  for (const Dim& condition : conditions) {
    if (compare_with_zero(difference + condition, relation, ranges) == Proof::yes) return Proof::yes;
    if (compare_with_zero(difference - condition, relation, ranges) == Proof::no) return Proof::no;
  }
  return Proof::unknown;
}

constexpr int most_cases = 3;    // atoms looked at: each makes two cases of one
constexpr int most_weight = 40;  // of what is looked at so closely: sizes are short

/// The same, with each max(p, 0) once as p, where p >= 0, and once as 0, where -p >= 0.
Proof compare_by_cases(const Dim& difference, Relation relation, const std::vector<Dim>& conditions,
                       const std::vector<KnownRange>& ranges, int depth = 0) {
  const Proof whole = compare_under(difference, relation, conditions, ranges);
  if (whole != Proof::unknown || depth == most_cases || difference.is_constant()) return whole;
  if (polynomial_of(difference)->weight > most_weight) return whole;
  const Atom* found = positive_atom(difference);
  if (!found) return whole;
  const Atom atom = *found;
  const Dim inner = atom.quotient->numerator;
  std::optional<Proof> common;
  for (const bool is_positive : {true, false}) {
    std::vector<Dim> more;
    for (const Dim& condition : conditions) more.push_back(with_atom(condition, atom, is_positive ? inner : Dim(0)));
    more.push_back(is_positive ? inner : Dim(0) - inner);
    const Proof one =
        compare_by_cases(with_atom(difference, atom, is_positive ? inner : Dim(0)), relation, more, ranges, depth + 1);
    if (one == Proof::unknown || (common && *common != one)) return Proof::unknown;
    common = one;
  }
  return *common;
}

Proof prove_difference(const Dim& difference, Relation relation, const Knowledge* knowledge) {
  if (difference.is_constant()) return answer(holds(difference.constant(), relation, 0));
  static const Knowledge nothing;
  const Proof by_form = compare_by_cases(difference, relation, {}, (knowledge ? knowledge : &nothing)->as_stated);
  if (by_form != Proof::unknown || !knowledge) return by_form;
  return compare_by_cases(rewritten(difference, knowledge->equations, true), relation, {}, knowledge->rewritten);
}

Proof prove_with(const Dim& a, Relation relation, const Dim& b, const Knowledge* knowledge) {
  if (a.is_constant() && b.is_constant()) return answer(holds(a.constant(), relation, b.constant()));
  if (!a.is_constant() && !b.is_constant() && polynomial_of(a)->table != polynomial_of(b)->table) return Proof::unknown;
  if (relation == Relation::not_equal) return opposite(prove_with(a, Relation::equal, b, knowledge));
  if (identical(a, b)) return answer(relation != Relation::less);
  try {
    return prove_difference(a - b, relation, knowledge);
  } catch (const SizeOverflow&) {
    return Proof::unknown;
  } catch (const Problem&) {
    return Proof::unknown;
  }
}

}  // namespace

std::shared_ptr<const Knowledge> knowledge_of(const SymbolScope& scope) {
  const std::lock_guard lock(scope.table_->knowledge_lock);
  std::shared_ptr<Knowledge>& current = scope.knowledge_;
  if (!current || current->dropped != scope.dropped_) {
    current = std::make_shared<Knowledge>();
    current->dropped = scope.dropped_;
  }
  if (current->facts == scope.facts().size() && current->checks == scope.checks().size()) return current;
  // Another thread may be reading, then this is a copy. While a function is traced there is none.
  if (current.use_count() > 1) current = std::make_shared<Knowledge>(*current);
  std::atomic_thread_fence(std::memory_order_acquire);
  for (const Fact& fact : scope.facts().subspan(current->facts)) learn(*current, fact, scope.table_);
  for (const SizeCheck& check : scope.checks().subspan(current->checks)) learn(*current, check.fact, scope.table_);
  current->facts = scope.facts().size();
  current->checks = scope.checks().size();
  learn_rewritten(*current);
  return current;
}

Proof prove(const Dim& a, Relation relation, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return answer(holds(a.constant(), relation, b.constant()));
  const SymbolScope* scope = (a.is_constant() ? b : a).scope();
  const std::shared_ptr<const Knowledge> knowledge = scope ? knowledge_of(*scope) : nullptr;
  return prove_with(a, relation, b, knowledge.get());
}

Proof prove_by_form(const Dim& a, Relation relation, const Dim& b) { return prove_with(a, relation, b, nullptr); }

Dim simplified(const Dim& dim) {
  const SymbolScope* scope = dim.scope();
  if (!scope) return dim;
  try {
    const std::shared_ptr<const Knowledge> knowledge = knowledge_of(*scope);
    int steps = max_steps;
    return rewrite(dim, knowledge->equations, false, steps);
  } catch (const SizeOverflow&) {
    return dim;
  } catch (const Problem&) {
    return dim;
  }
}

}  // namespace stet
