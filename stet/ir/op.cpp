#include "stet/ir/op.h"

#include <string_view>

#include "stet/base/dim_inside.h"
#include "stet/ir/layout.h"

namespace stet {

const char* name(Kind kind) {
  static constexpr const char* names[] = {"structure", "map",    "reduce", "layout", "index",
                                          "contract",  "window", "scan",   "sort",   "random",
                                          "late",      "branch", "loop",   "linalg", "rows"};
  return names[static_cast<int>(kind)];
}

const char* name(Combine combine) {
  static constexpr const char* names[] = {"none", "sum", "product", "maximum", "minimum", "argmax", "argmin"};
  return names[static_cast<int>(combine)];
}

std::string op_text(const Caller& caller, const char* op) {
  return caller.name && std::string_view(caller.name) != op ? text(caller.name, ": ", op) : std::string(op);
}

bool identical(const ValueType& a, const ValueType& b) { return a.dtype == b.dtype && identical(a.shape, b.shape); }

void InferCall::require_equal(const Dim& a, const Dim& b, const std::string& what, const std::string& advice) {
  if (!stet::require(a, Relation::equal, b, reason(what)))
    throw Problem(text(what, " ", size_text(a), " and ", size_text(b), " differ"), advice);
}

void InferCall::check(const Dim& left, Relation relation, const Dim& right, const SizedText& problem,
                      const SizedText& advice) {
  // By form: which checks a program has must not depend on what was learned elsewhere before.
  Proof proof = prove_by_form(left, relation, right);
  if (proof == Proof::yes) return;
  if (proof == Proof::no) throw Problem(problem.now(), advice.now());
  checks_.emplace_back(Fact{left, relation, right, reason("size check")}, problem, advice);
}

bool InferCall::always(const Dim& left, Relation relation, const Dim& right) {
  return prove_by_form(left, relation, right) == Proof::yes;
}

void InferCall::check_sizes(std::span<const Dim> sizes) {
  for (const Dim& size : sizes)
    if (!always(0, Relation::less_equal, size))
      check(0, Relation::less_equal, size, sized_text("size ", size, " is negative"), "sizes are 0 or more");
}

bool ViewCall::is_one(const Dim& size) { return size.is_constant(1) || prove_equal(size, 1) == Proof::yes; }
bool ViewCall::same(const Dim& a, const Dim& b) { return identical(a, b) || prove_equal(a, b) == Proof::yes; }

Dim InferCall::late(const char* name, const Dim& upper_bound) {
  if (!scope) return 0;
  std::optional<std::int64_t> bound;
  if (upper_bound.is_constant()) bound = upper_bound.constant();
  return scope->symbol(name, std::nullopt, bound);
}

namespace {

DType promoted_type(std::span<const DType> operands) {
  DType type = operands[0];
  for (DType d : operands.subspan(1)) type = promote(type, d);
  return type;
}

[[noreturn]] void refuse(const OpDef& row, DType type, const char* advice) {
  throw Problem(text(row.name, " does not take ", type), advice);
}

}  // namespace

DType operand_type(const OpDef& row, std::span<const DType> operands) {
  switch (row.dtypes.result) {
    case DTypeRule::selected:
      return promoted_type(operands.subspan(1));
    case DTypeRule::floating:
      return floating_type(promoted_type(operands));
    case DTypeRule::logical: {
      DType type = promoted_type(operands);
      if (is_floating(type)) refuse(row, type, "compare first (x > 0), or cast to bool or an integer type");
      if (type == DType::bool_ && !row.dtypes.accepts_bool) refuse(row, type, "cast(x, i32) first");
      return type;
    }
    default: {
      DType type = promoted_type(operands);
      if (type == DType::bool_ && !row.dtypes.accepts_bool) refuse(row, type, "cast(x, i32) first");
      return type;
    }
  }
}

MapInstance instantiate(const OpDef& row, std::span<const DType> operands) {
  DType type = operand_type(row, operands);
  DType computed = row.dtypes.widens ? compute_type(type) : type;
  std::vector<Expr> inputs;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Expr input = operand(static_cast<int>(i), operands[i]);
    bool condition = row.dtypes.result == DTypeRule::selected && i == 0;
    // First to the type of the op: an integer beside f16 or bf16 is rounded to it, as every operand of that type is.
    inputs.push_back(condition ? scalar::cast(input, DType::bool_) : scalar::cast(scalar::cast(input, type), computed));
  }
  Expr body = row.body(inputs.data());
  DType result = row.dtypes.result == DTypeRule::compared ? DType::bool_
                 : row.dtypes.result == DTypeRule::fixed  ? body.dtype()
                                                          : type;
  return {scalar::cast(body, result), result};
}

}  // namespace stet
