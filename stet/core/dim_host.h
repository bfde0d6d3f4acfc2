// What host code may ask of sizes: == != < <= > >=. An answer about a symbol becomes a fact of the trace, with the line
// that asked. Included by <stet/stet.h>, never by base/, ir/, runtime/, cpu/ or compiler/ (a test looks).
#pragma once
#include <concepts>

#include "stet/base/dim.h"
#include "stet/base/shape.h"

namespace stet {

namespace inside {

/// An integer beside a Dim in a comparison, with its line.
struct DimNumber {
  Dim dim;
  Where where;
  template <std::integral I>
  requires(!std::same_as<I, bool>) DimNumber(I value, Where w = Where::here()) : dim(value), where(w) {}
};

/// Compares integers, or asks the symbols' scope.
STET_API bool compare(const Dim& left, Relation relation, const Dim& right, Where where);

}  // namespace inside

#define STET_DIM_COMPARISON(op, relation, first, second)              \
  inline bool operator op(const Dim& a, const inside::DimNumber& n) { \
    const Dim& b = n.dim;                                             \
    return inside::compare(first, relation, second, n.where);         \
  }                                                                   \
  inline bool operator op(const inside::DimNumber& n, const Dim& b) { \
    const Dim& a = n.dim;                                             \
    return inside::compare(first, relation, second, n.where);         \
  }                                                                   \
  template <std::same_as<Dim> D>                                      \
  bool operator op(const D& a, const D& b) {                          \
    return inside::compare(first, relation, second, Where{});         \
  }
STET_DIM_COMPARISON(==, Relation::equal, a, b)
STET_DIM_COMPARISON(!=, Relation::not_equal, a, b)
STET_DIM_COMPARISON(<, Relation::less, a, b)
STET_DIM_COMPARISON(<=, Relation::less_equal, a, b)
STET_DIM_COMPARISON(>, Relation::less, b, a)
STET_DIM_COMPARISON(>=, Relation::less_equal, b, a)
#undef STET_DIM_COMPARISON

/// Same rank and equal sizes.
STET_API bool operator==(const Shape& a, const Shape& b);

}  // namespace stet
