// SymbolScope and the scope that records.
#include <algorithm>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/kept_where.h"
#include "stet/base/polynomial.h"
#include "stet/base/text.h"

namespace stet {
namespace {

const char* sign_of(Relation relation) {
  switch (relation) {
    case Relation::equal:
      return "==";
    case Relation::not_equal:
      return "!=";
    case Relation::less:
      return "<";
    case Relation::less_equal:
      return "<=";
  }
  return "?";
}

/// What holds if `left relation right` does not.
Fact opposite_of(const Dim& left, Relation relation, const Dim& right, Reason reason) {
  switch (relation) {
    case Relation::equal:
      return {left, Relation::not_equal, right, std::move(reason)};
    case Relation::not_equal:
      return {left, Relation::equal, right, std::move(reason)};
    case Relation::less:
      return {right, Relation::less_equal, left, std::move(reason)};
    case Relation::less_equal:
      return {right, Relation::less, left, std::move(reason)};
  }
  throw InternalError("unknown relation");
}

/// The place of an equal one, if there is any.
template <class Facts, class FactOf>
bool is_there(const Facts& facts, const std::unordered_multimap<std::size_t, std::size_t>& places, std::size_t hash,
              const Fact& fact, FactOf fact_of) {
  const auto [first, last] = places.equal_range(hash);
  return std::any_of(first, last, [&](const auto& place) {
    const Fact& other = fact_of(facts[place.second]);
    return other.relation == fact.relation && identical(other.left, fact.left) && identical(other.right, fact.right);
  });
}

/// A fact outlives the call that brings it: the names in it may be those of a function or a library that ends before.
void keep_reason(Fact& fact) {
  fact.reason.asker = kept(fact.reason.asker);
  fact.reason.where = kept(fact.reason.where);
}

std::size_t hash_of(const Fact& fact) {
  return fact.left.hash() * 31 + fact.right.hash() * 7 + static_cast<std::size_t>(fact.relation);
}

[[noreturn]] void late(const Dim& dim, const std::string& wish, Where where) {
  throw TraceError(
      error_text(text("size ", dim, " depends on values and is not known while tracing, so ", wish), where,
                 "use the size as a Dim in ops; to decide by it, compare a tensor of it: cond(tensor(size) > 4, …)"));
}

[[noreturn]] void unknown(const Dim& dim, const std::string& wish, Where where) {
  throw TraceError(error_text(text("size ", dim, " is unknown by the function's signature, so ", wish), where,
                              "give the size in the signature, leave the signature out, or use the size as a Dim"));
}

// Whose sizes host code on this thread may ask about.
[[gnu::tls_model("initial-exec")]] constinit thread_local const SymbolScope* this_thread_scope = nullptr;

/// A size of a trace, at a place where another one runs, or none.
[[noreturn]] void foreign(const Dim& dim, const std::string& here, Where used) {
  const SymbolScope* owner = dim.scope();
  const std::string& mine = polynomial_of(dim)->table->function;
  const bool has_ended = !owner || mine.empty();
  throw TraceError(error_text(
      text(origin_text(dim), has_ended ? " belongs to a trace that has ended" : " belongs to another trace",
           here.empty() ? "" : text(" and not to that of '", here, "'"), at_line(used, "; it is used at ")),
      {},
      "take the size from a tensor of this call; a number that outlives a trace is int(size), which becomes part of "
      "the trace"));
}

/// The scope that two Dims, not both constant, belong to. Host code may ask it.
SymbolScope& common_scope(const Dim& a, const Dim& b, Where where) {
  common_table(a, b);
  const Dim& symbolic = a.is_constant() ? b : a;
  SymbolScope* scope = symbolic.scope();
  if (!scope) foreign(symbolic, {}, where);
  return *scope;
}

/// Of two sizes, the line where the first was taken, unless a better one is known.
Reason with_line(const Reason& reason, const Dim& a, const Dim& b) {
  Reason out = reason;
  if (!out.where.known()) out.where = taken_at(a).known() ? taken_at(a) : taken_at(b);
  return out;
}

}  // namespace

std::string Fact::str() const { return text(left, ' ', sign_of(relation), ' ', right); }

bool Fact::holds(const Bindings& bindings) const {
  return stet::holds(left.evaluate(bindings), relation, right.evaluate(bindings));
}

OpenScope::OpenScope(const SymbolScope& scope) : outer_(std::exchange(this_thread_scope, &scope)) {}
OpenScope::~OpenScope() { this_thread_scope = outer_; }

SymbolScope::SymbolScope(std::string function) : table_(std::make_shared<SymbolTable>()) {
  table_->scope = this;
  table_->function = std::move(function);
}

SymbolScope::~SymbolScope() { table_->scope = nullptr; }

const std::string& SymbolScope::function() const { return table_->function; }

bool SymbolScope::owns(const Dim& dim) const { return dim.is_constant() || table_of(dim) == table_; }

void SymbolScope::refuse_foreign(const Dim& dim, Where used) const {
  if (!owns(dim)) foreign(dim, table_->function, used);
}

void SymbolScope::add_fact(Fact fact) {
  const std::size_t hash = hash_of(fact);
  if (is_there(facts_, fact_places_, hash, fact, [](const Fact& one) -> const Fact& { return one; })) return;
  keep_reason(fact);
  fact_places_.emplace(hash, facts_.size());
  facts_.push_back(std::move(fact));
}

bool SymbolScope::has_check(const Fact& fact) const {
  return is_there(checks_, check_places_, hash_of(fact), fact,
                  [](const SizeCheck& one) -> const Fact& { return one.fact; });
}

void SymbolScope::add_check(SizeCheck check) {
  if (has_check(check.fact)) return;
  keep_reason(check.fact);
  check_places_.emplace(hash_of(check.fact), checks_.size());
  checks_.push_back(std::move(check));
}

void SymbolScope::drop_checks_from(std::size_t count) {
  if (count >= checks_.size()) return;
  checks_.erase(checks_.begin() + static_cast<std::ptrdiff_t>(count), checks_.end());
  std::erase_if(check_places_, [&](const auto& place) { return place.second >= count; });
  ++dropped_;
}

Dim SymbolScope::symbol(std::string name, std::optional<std::int64_t> hint, std::optional<std::int64_t> upper_bound) {
  if (hint && *hint < 0) throw InternalError(text("symbol ", name, " has the negative hint ", *hint));
  if (upper_bound && *upper_bound < 0) throw InternalError(text("symbol ", name, " has a negative bound"));
  const int index = symbol_count();
  if (name.empty()) name = text('s', index);
  table_->rows.push_back({std::move(name), hint, upper_bound});
  return dim_of(Atom{index, nullptr}, table_);
}

Dim SymbolScope::symbol_at(int symbol) const {
  if (symbol < 0 || symbol >= symbol_count()) throw InternalError(text("there is no symbol ", symbol));
  return dim_of(Atom{symbol, nullptr}, table_);
}

int SymbolScope::symbol_count() const { return static_cast<int>(table_->rows.size()); }

const std::string& SymbolScope::symbol_name(int symbol) const {
  if (symbol < 0 || symbol >= symbol_count()) throw InternalError(text("there is no symbol ", symbol));
  return table_->rows[static_cast<std::size_t>(symbol)].name;
}

std::optional<std::int64_t> SymbolScope::symbol_hint(int symbol) const {
  if (symbol < 0 || symbol >= symbol_count()) throw InternalError(text("there is no symbol ", symbol));
  return table_->rows[static_cast<std::size_t>(symbol)].hint;
}

bool SymbolScope::check(const Dim& left, Relation relation, const Dim& right, const Reason& reason, const SizedText&,
                        const SizedText&) {
  return require(left, relation, right, reason);
}

namespace {

/// Sizes of a trace are asked for while it runs, on its thread. What is no trace (the eager path) has no such time.
void ensure_open(const SymbolScope& scope, const Dim& left, const Dim& right, Where where) {
  if (this_thread_scope == &scope) return;
  const Dim& symbolic = left.is_constant() ? right : left;
  if (symbolic.is_constant() || polynomial_of(symbolic)->table->function.empty()) return;
  foreign(symbolic, this_thread_scope ? this_thread_scope->function() : std::string(), where);
}

}  // namespace

void RecordingScope::state(SizeCheck check) {
  if (carrier_ && carrier_->takes_checks())
    carrier_->carry(check);
  else
    add_check(std::move(check));
}

bool RecordingScope::require(const Dim& left, Relation relation, const Dim& right, const Reason& given) {
  const Proof proof = prove(left, relation, right);
  if (proof == Proof::no) return false;
  const std::optional<std::int64_t> left_hint = left.hint(), right_hint = right.hint();
  const bool late = !left_hint || !right_hint;
  // By form: which checks are carried must not depend on what was learned elsewhere before.
  const bool carried =
      late && carrier_ && carrier_->takes_checks() && prove_by_form(left, relation, right) != Proof::yes;
  if (proof == Proof::yes && !carried) return true;
  const Reason reason = with_line(given, left, right);
  ensure_open(*this, left, right, reason.where);
  if (late) {
    const char* misfit = relation == Relation::equal ? " do not agree" : " do not fit";
    state({{left, relation, right, reason},
           sized_text(reason.what, reason.what.empty() ? "" : ": ", "sizes ", left, " and ", right, misfit),
           "one of them depends on values; traced code repeats only sizes of 1 that it knows of beforehand"});
    return true;
  }
  if (stet::holds(*left_hint, relation, *right_hint)) {
    add_fact({left, relation, right, reason});
    return true;
  }
  add_fact(opposite_of(left, relation, right, reason));
  return false;
}

bool RecordingScope::check(const Dim& left, Relation relation, const Dim& right, const Reason& given,
                           const SizedText& problem, const SizedText& advice) {
  const Proof proof = prove_by_form(left, relation, right);
  if (proof != Proof::unknown) return proof == Proof::yes;
  const Reason reason = with_line(given, left, right);
  ensure_open(*this, left, right, reason.where);
  const Fact fact{left, relation, right, reason};
  state({fact,
         problem.text.empty() ? SizedText(text(reason.what, ": ", fact, " does not hold for these sizes")) : problem,
         advice});
  return true;
}

void RecordingScope::require_divisors(const Dim& dim, const Reason& reason) {
  for (const Division& division : symbolic_divisions(dim))
    if (!require(division.divisor, Relation::not_equal, 0, reason))
      throw UserError(error_text(division.by_zero.now(), reason.where, {}));
}

bool RecordingScope::decide(const Dim& left, Relation relation, const Dim& right, const Reason& given) {
  const Reason reason = with_line(given, left, right);
  ensure_open(*this, left, right, reason.where);
  const Proof proof = prove(left, relation, right);
  if (proof != Proof::unknown) return proof == Proof::yes;
  const auto wish = [&] {
    return text(reason.asker, " cannot ask whether ", left, ' ', sign_of(relation), ' ', right);
  };
  for (const Dim* dim : {&left, &right})
    if (!dim->hint()) late(*dim, wish(), reason.where);
  if (declared_unknown_) unknown(left.is_constant() ? right : left, wish(), reason.where);
  for (const Dim* dim : {&left, &right}) require_divisors(*dim, reason);
  return require(left, relation, right, reason);
}

std::int64_t RecordingScope::pin(const Dim& dim, Where where) {
  ensure_open(*this, dim, dim, where);
  const Dim known = simplified(dim);
  if (known.is_constant()) return known.constant();
  const std::optional<std::int64_t> hint = dim.hint();
  if (!hint) late(dim, "host code cannot read it as an integer", where);
  if (declared_unknown_) unknown(dim, "host code cannot read it as an integer", where);
  const Reason reason{"host code", "size read as an integer", where};
  require_divisors(dim, reason);
  if (prove_equal(dim, *hint) != Proof::yes) add_fact({dim, Relation::equal, *hint, reason});
  return *hint;
}

bool inside::require(const Dim& left, Relation relation, const Dim& right, const Reason& reason) {
  if (left.is_constant() && right.is_constant()) return holds(left.constant(), relation, right.constant());
  return common_scope(left, right, reason.where).require(left, relation, right, reason);
}

bool inside::check(const Dim& left, Relation relation, const Dim& right, const Reason& reason, const SizedText& problem,
                   const SizedText& advice) {
  if (left.is_constant() && right.is_constant()) return holds(left.constant(), relation, right.constant());
  return common_scope(left, right, reason.where).check(left, relation, right, reason, problem, advice);
}

bool inside::decide(const Dim& left, Relation relation, const Dim& right, const Reason& reason) {
  if (left.is_constant() && right.is_constant()) return holds(left.constant(), relation, right.constant());
  return common_scope(left, right, reason.where).decide(left, relation, right, reason);
}

}  // namespace stet
