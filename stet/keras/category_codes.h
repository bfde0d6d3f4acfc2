// What layers that give numbers of categories share: how the numbers are written. Not a public header.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "stet/base/dtype.h"
#include "stet/base/where.h"
#include "stet/core/tensor.h"
#include "stet/keras/strings.h"

namespace stet::keras {

/// UserError unless it is "one_hot", "multi_hot" or "count"; `with_int`: or "int"; `with_tf_idf`: or "tf_idf".
void require_output_mode(const char* layer, const std::string& mode, bool with_int, bool with_tf_idf, Where where);

struct CategoryCodes {
  const char* layer;
  std::string mode;    // "int": the numbers as they are
  std::int64_t depth;  // how many categories there are
  DType dtype;         // of the others
};
/// Numbers from 0 to depth - 1, i64, in another form; -1 is left out. "one_hot" has a new last axis, or the last one
/// instead if its size is 1; "multi_hot" and "count" have one entry per category for all of the last axis. `weights`:
/// what each counts, broadcast; undefined: 1.
Tensor coded(const Tensor& numbers, const CategoryCodes& how, const Tensor& weights, Where where);

/// UserError unless it holds integers; as i64.
Tensor integers(const std::string& layer, const Tensor& x, Where where);

/// A number for each of the strings, in their shape: [], [n] or [rows, length]. With `ragged`, rows that are shorter
/// than the longest end in -1; otherwise they are a UserError.
Tensor in_shape_of(const Strings& strings, const std::vector<std::int64_t>& numbers, bool ragged,
                   const std::string& layer, Where where);

/// UserError unless all of them are UTF-8.
void require_utf8(const Strings& strings, const std::string& layer, Where where);

}  // namespace stet::keras
