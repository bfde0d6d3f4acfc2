#include "stet/keras/category_codes.h"

#include <algorithm>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/dim_host.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/spatial.h"
#include "stet/keras/utf8.h"
#include "stet/ops/ops.h"

namespace stet::keras {

void require_output_mode(const char* layer, const std::string& mode, bool with_int, bool with_tf_idf, Where where) {
  std::vector<const char*> known;
  if (with_int) known.push_back("int");
  known.insert(known.end(), {"one_hot", "multi_hot", "count"});
  if (with_tf_idf) known.push_back("tf_idf");
  require_name(layer, "output_mode", mode, known, where);
}

Tensor coded(const Tensor& numbers, const CategoryCodes& how, const Tensor& weights, Where where) {
  if (how.mode == "int") return numbers;
  Tensor at = numbers.rank() == 0 ? expand_dims(numbers, 0) : numbers;
  if (how.mode == "one_hot") {
    if (at.rank() > 1 && inside::decide(at.dim(-1), Relation::equal, 1,
                                        {how.layer, "whether the last axis is one of categories", where}))
      at = squeeze(at, -1);
    return one_hot(at, how.depth, {.dtype = how.dtype});
  }
  // Into a row that has a place more than there are categories, for what is left out.
  std::vector<Dim> sizes;
  for (int axis = 0; axis + 1 < at.rank(); ++axis) sizes.push_back(at.dim(axis));
  std::vector<Dim> begin(sizes.size() + 1, Dim(0)), kept = sizes;
  sizes.push_back(how.depth + 1);
  kept.push_back(how.depth);
  const bool counts = how.mode != "multi_hot";
  const DType type = weights.defined() ? weights.dtype() : DType::f32;
  const Tensor amounts = broadcast_to(counts && weights.defined() ? weights : cast(1, type), at.shape());
  const Tensor filled = put_along_axis(zeros(Shape(sizes), type), stet::where(at < 0, how.depth, at), amounts, -1,
                                       {.combine = counts ? ScatterCombine::add : ScatterCombine::update});
  return cast(slice(filled, begin, kept), how.dtype);
}

Tensor integers(const std::string& layer, const Tensor& x, Where where) {
  if (!is_integer(x.dtype()))
    throw UserError(error_text(text(layer, ": its input ", described(x), " holds no integers"), where,
                               "cast(x, i64), or keras::Input(shape, {.dtype = i64}) for a model"));
  return x.dtype() == DType::i64 ? x : cast(x, DType::i64);
}

Tensor in_shape_of(const Strings& strings, const std::vector<std::int64_t>& numbers, bool ragged,
                   const std::string& layer, Where where) {
  if (strings.rank() == 0) return reshape(tensor(numbers), std::vector<Dim>{});
  if (strings.rank() == 1) return tensor(numbers);
  const auto& lengths = strings.lengths();
  const std::size_t longest = lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
  std::vector<std::int64_t> rows;
  std::size_t next = 0;
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    if (lengths[row] != longest && !ragged)
      throw UserError(
          error_text(text(layer, ": row ", row, " has ", lengths[row], " strings, and the longest ", longest), where,
                     "rows of a tensor have one length: fill them up with the mask_token"));
    for (std::size_t i = 0; i < longest; ++i) rows.push_back(i < lengths[row] ? numbers[next++] : -1);
  }
  return reshape(tensor(rows), {static_cast<std::int64_t>(lengths.size()), static_cast<std::int64_t>(longest)});
}

void require_utf8(const Strings& strings, const std::string& layer, Where where) {
  for (std::size_t i = 0; i < strings.values().size(); ++i)
    if (const auto wrong = first_invalid_byte(strings.values()[i]))
      throw UserError(
          error_text(text(layer, ": string ", i, " is not UTF-8: byte ", *wrong), where, "convert it to UTF-8 before"));
}

}  // namespace stet::keras
