// SymbolScope and the scope that records.
#include <algorithm>

#include "stet/base/dim.h"
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

void append_once(std::vector<Fact>& facts, Fact fact) {
  const bool is_there = std::any_of(facts.begin(), facts.end(), [&](const Fact& other) {
    return other.relation == fact.relation && identical(other.left, fact.left) && identical(other.right, fact.right);
  });
  if (is_there) return;
  fact.reason.asker = kept(fact.reason.asker);  // it may be the name of a function that ends before
  fact.reason.where = kept(fact.reason.where);
  facts.push_back(std::move(fact));
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

[[noreturn]] void ended(const Dim& dim) {
  throw TraceError(error_text(text("size ", dim, " belongs to a trace that has ended"), Where{},
                              "take sizes from the tensors that a function returns, not from inside its trace"));
}

/// The scope that two Dims, not both constant, belong to.
SymbolScope& common_scope(const Dim& a, const Dim& b) {
  common_table(a, b);
  const Dim& symbolic = a.is_constant() ? b : a;
  SymbolScope* scope = symbolic.scope();
  if (!scope) ended(symbolic);
  return *scope;
}

}  // namespace

std::string Fact::str() const { return text(left, ' ', sign_of(relation), ' ', right); }

bool Fact::holds(const Bindings& bindings) const {
  return stet::holds(left.evaluate(bindings), relation, right.evaluate(bindings));
}

SymbolScope::SymbolScope() : table_(std::make_shared<SymbolTable>()) { table_->scope = this; }

SymbolScope::~SymbolScope() { table_->scope = nullptr; }

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

bool SymbolScope::check(const Dim& left, Relation relation, const Dim& right, const Reason& reason) {
  return require(left, relation, right, reason);
}

bool RecordingScope::settle(const Dim& left, Relation relation, const Dim& right, Reason reason,
                            std::vector<Fact>& confirmed) {
  const Proof proof = prove(left, relation, right);
  if (proof != Proof::unknown) return proof == Proof::yes;
  const std::optional<std::int64_t> left_hint = left.hint(), right_hint = right.hint();
  if (!left_hint || !right_hint) {
    append_once(checks_, {left, relation, right, std::move(reason)});
    return true;
  }
  if (stet::holds(*left_hint, relation, *right_hint)) {
    append_once(confirmed, {left, relation, right, std::move(reason)});
    return true;
  }
  append_once(facts_, opposite_of(left, relation, right, std::move(reason)));
  return false;
}

bool RecordingScope::require(const Dim& left, Relation relation, const Dim& right, const Reason& reason) {
  return settle(left, relation, right, reason, facts_);
}

bool RecordingScope::check(const Dim& left, Relation relation, const Dim& right, const Reason& reason) {
  return settle(left, relation, right, reason, checks_);
}

bool RecordingScope::decide(const Dim& left, Relation relation, const Dim& right, Where where) {
  const Proof proof = prove(left, relation, right);
  if (proof != Proof::unknown) return proof == Proof::yes;
  for (const Dim* dim : {&left, &right})
    if (!dim->hint())
      late(*dim, text("host code cannot ask whether ", left, ' ', sign_of(relation), ' ', right), where);
  if (declared_unknown_)
    unknown(left.is_constant() ? right : left,
            text("host code cannot ask whether ", left, ' ', sign_of(relation), ' ', right), where);
  return settle(left, relation, right, Reason{"host code", "comparison of sizes", where}, facts_);
}

std::int64_t RecordingScope::pin(const Dim& dim, Where where) {
  const Dim known = simplified(dim);
  if (known.is_constant()) return known.constant();
  const std::optional<std::int64_t> hint = dim.hint();
  if (!hint) late(dim, "host code cannot read it as an integer", where);
  if (declared_unknown_) unknown(dim, "host code cannot read it as an integer", where);
  if (prove_equal(dim, *hint) != Proof::yes)
    append_once(facts_, {dim, Relation::equal, *hint, Reason{"host code", "size read as an integer", where}});
  return *hint;
}

bool require(const Dim& left, Relation relation, const Dim& right, const Reason& reason) {
  if (left.is_constant() && right.is_constant()) return holds(left.constant(), relation, right.constant());
  return common_scope(left, right).require(left, relation, right, reason);
}

bool check(const Dim& left, Relation relation, const Dim& right, const Reason& reason) {
  if (left.is_constant() && right.is_constant()) return holds(left.constant(), relation, right.constant());
  return common_scope(left, right).check(left, relation, right, reason);
}

}  // namespace stet
