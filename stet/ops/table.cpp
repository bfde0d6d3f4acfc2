#include "stet/ops/table.h"

namespace stet {

std::vector<const OpDef*> all_rows() {
  std::vector<const OpDef*> out;
  for (const OpDef& row : elementwise_rows()) out.push_back(&row);
  for (const OpDef& row : cast_rows()) out.push_back(&row);
  for (const OpDef* row : {&sum_row,     &mean_row,    &prod_row,      &max_row,          &min_row,    &argmax_row,
                           &argmin_row,  &reshape_row, &transpose_row, &broadcast_to_row, &slice_row,  &reverse_row,
                           &concat_row,  &gather_row,  &one_hot_row,   &scatter_add_row,  &matmul_row, &conv2d_row,
                           &uniform_row, &normal_row,  &randint_row,   &nonzero_row})
    out.push_back(row);
  return out;
}

}  // namespace stet
