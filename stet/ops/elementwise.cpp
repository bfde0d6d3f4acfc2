// The table of maps: bodies, rows, callables. Constant-initialised: nothing runs before main.
#include "stet/core/call.h"
#include "stet/core/gradient.h"
#include "stet/core/tensor_node.h"
#include "stet/ir/graph.h"
#include "stet/ops/elementwise_bodies.h"
#include "stet/ops/ops.h"
#include "stet/ops/table.h"

namespace stet {
namespace body {

#define STET_UNARY(name, dtypes, domain, summary, ...) \
  [[maybe_unused]] static Expr name(Expr x) { return __VA_ARGS__; }
#define STET_BINARY(name, dtypes, domain, summary, ...) \
  [[maybe_unused]] static Expr name(Expr x, Expr y) { return __VA_ARGS__; }
#define STET_TERNARY(name, dtypes, domain, summary, ...) \
  [[maybe_unused]] static Expr name(Expr x, Expr y, Expr z) { return __VA_ARGS__; }
#include "stet/ops/elementwise.def"

}  // namespace body

namespace {

constexpr DTypeRule promoted{DTypeRule::promoted, false}, floating{DTypeRule::floating}, compared{DTypeRule::compared},
    logical{DTypeRule::logical}, integral{DTypeRule::logical, false}, selected{DTypeRule::selected},
    stored{DTypeRule::floating, true, false};
constexpr Domain reals{-10, 10}, without_zero{-10, 10, true}, small_integers{-2, 3}, halves{-4, 4};
constexpr Domain between(double low, double high) { return {low, high}; }

constexpr const char* operand_names[] = {"x", "y", "z"};
constexpr std::span<const char* const> names(std::size_t count) { return {operand_names, count}; }

enum RowNumber : int {
#define STET_UNARY(name, ...) number_of_##name,
#define STET_BINARY STET_UNARY
#define STET_TERNARY STET_UNARY
#include "stet/ops/elementwise.def"
};

#define STET_ROW(count, name_, dtypes_, domain_, summary_, body_) \
  {.name = #name_,                                                \
   .kind = Kind::map,                                             \
   .summary = summary_,                                           \
   .operands = names(count),                                      \
   .gradient = map_gradient,                                      \
   .arity = count,                                                \
   .body = body_,                                                 \
   .dtypes = dtypes_,                                             \
   .domain = domain_},
#define STET_UNARY(name, d, t, s, ...) STET_ROW(1, name, d, t, s, [](const Expr* e) { return body::name(e[0]); })
#define STET_BINARY(name, d, t, s, ...) \
  STET_ROW(2, name, d, t, s, ([](const Expr* e) { return body::name(e[0], e[1]); }))
#define STET_TERNARY(name, d, t, s, ...) \
  STET_ROW(3, name, d, t, s, ([](const Expr* e) { return body::name(e[0], e[1], e[2]); }))
constinit const OpDef table[] = {
#include "stet/ops/elementwise.def"
};

/// cast is a map like the others, with one row per type to cast to.
template <DType to>
constexpr OpDef cast_row_to() {
  return {.name = "cast",
          .kind = Kind::map,
          .summary = "The same values in another type.",
          .operands = names(1),
          .gradient = map_gradient,
          .arity = 1,
          .body = [](const Expr* e) { return scalar::cast(e[0], to); },
          .dtypes = {DTypeRule::fixed},
          .domain = reals};
}
constinit const OpDef cast_table[dtype_count] = {
    cast_row_to<DType::bool_>(), cast_row_to<DType::u8>(),  cast_row_to<DType::i8>(),  cast_row_to<DType::i16>(),
    cast_row_to<DType::i32>(),   cast_row_to<DType::i64>(), cast_row_to<DType::f16>(), cast_row_to<DType::bf16>(),
    cast_row_to<DType::f32>(),   cast_row_to<DType::f64>()};

}  // namespace

std::span<const OpDef> elementwise_rows() { return table; }
std::span<const OpDef> cast_rows() { return cast_table; }

Tensor cast(In x, DType dtype) {
  // A number goes the whole way, also to its own type: what comes out is no number any more.
  bool same = x.kind() == In::Kind::tensor && x.tensor().defined() && x.tensor().dtype() == dtype;
  if (same && !x.tensor().node()->weak) return x.tensor();
  return call(cast_table[static_cast<int>(dtype)], {x});
}

#define STET_UNARY(name, ...) \
  Tensor name(In x) { return call(table[number_of_##name], {x}); }
#define STET_BINARY(name, ...) \
  Tensor name(In x, In y) { return call(table[number_of_##name], {x, y}); }
#define STET_TERNARY(name, ...) \
  Tensor name(In x, In y, In z) { return call(table[number_of_##name], {x, y, z}); }
#include "stet/ops/elementwise.def"

}  // namespace stet
