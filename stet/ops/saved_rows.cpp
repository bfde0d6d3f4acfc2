#include "stet/ops/saved_rows.h"

#include <array>

#include "stet/base/error.h"
#include "stet/core/exported_names.h"
#include "stet/ir/graph.h"
#include "stet/ops/ops.h"
#include "stet/ops/table.h"

namespace stet {
namespace {

/// What a trace knows of a reduction: fusion has not put anything into it.
struct PlainReduction {
  std::vector<int> axes;
  bool keepdims = false;
  STET_ATTRIBUTES(axes, keepdims)
};
constexpr AttributeCodec reduce_codec = {
    .type = &attribute_type<ReduceAttributes>,
    .write =
        [](SavedWriter& to, const void* data) {
          const auto& v = *static_cast<const ReduceAttributes*>(data);
          if (v.body.defined() || !v.operand_axes.empty()) throw InternalError("export: a reduction that was fused");
          PlainReduction plain{v.axes, v.keepdims};
          attribute_codec<PlainReduction>.write(to, &plain);
        },
    .read =
        [](SavedReader& from) {
          const Attributes read = attribute_codec<PlainReduction>.read(from);
          const auto& plain = read.as<PlainReduction>();
          ReduceAttributes v;
          v.axes = plain.axes;
          v.keepdims = plain.keepdims;
          return Attributes(view_of(v));
        },
};

/// … and of a product, nor anything behind it.
struct PlainProduct {
  bool transpose_left = false, transpose_right = false;
  STET_ATTRIBUTES(transpose_left, transpose_right)
};
constexpr AttributeCodec product_codec = {
    .type = &attribute_type<ContractAttributes>,
    .write =
        [](SavedWriter& to, const void* data) {
          const auto& v = *static_cast<const ContractAttributes*>(data);
          if (v.epilogue.defined()) throw InternalError("export: a product that was fused");
          PlainProduct plain{v.transpose_left, v.transpose_right};
          attribute_codec<PlainProduct>.write(to, &plain);
        },
    .read =
        [](SavedReader& from) {
          const Attributes read = attribute_codec<PlainProduct>.read(from);
          const auto& plain = read.as<PlainProduct>();
          ContractAttributes v;
          v.transpose_left = plain.transpose_left;
          v.transpose_right = plain.transpose_right;
          return Attributes(view_of(v));
        },
};

constexpr const AttributeCodec* scan_codec = &attribute_codec<ScanAttributes>;

}  // namespace

std::span<const SavedRow> saved_rows() {
  static constexpr SavedRow rows[] = {{&matmul_row, &product_codec},
                                      {&conv_row, &conv_codec},
                                      {&conv_input_row, &conv_codec},
                                      {&conv_filter_row, &conv_codec},
                                      {&dynamic_slice_row, &dynamic_slice_codec},
                                      {&dynamic_update_slice_row},
                                      {&gather_row, &gather_codec},
                                      {&take_along_axis_row, &gather_codec},
                                      {&one_hot_row, &one_hot_codec},
                                      {&nonzero_row},
                                      {&reshape_row, &reshape_codec},
                                      {&transpose_row, &transpose_codec},
                                      {&broadcast_to_row, &reshape_codec},
                                      {&slice_row, &slice_codec},
                                      {&reverse_row, &reverse_codec},
                                      {&concat_row, &concat_codec, true},
                                      {&band_part_row, &band_codec},
                                      {&cholesky_row},
                                      {&triangular_solve_row, &triangular_codec},
                                      {&solve_row},
                                      {&lu_row},
                                      {&det_row},
                                      {&slogdet_row},
                                      {&adjugate_row},
                                      {&qr_row},
                                      {&qr_complete_row},
                                      {&pad_row, &pad_codec},
                                      {&max_pool_row, &pool_codec},
                                      {&pool_pick_row, &pool_codec},
                                      {&pool_place_row, &pool_codec},
                                      {&average_pool_row, &pool_codec},
                                      {&pool_spread_row, &pool_codec},
                                      {&extract_patches_row, &patch_codec},
                                      {&random_gamma_row, &gamma_codec},
                                      {&uniform_row, &random_codec},
                                      {&normal_row, &random_codec},
                                      {&randint_row, &random_codec},
                                      {&random_bits_row, &random_codec},
                                      {&sum_row, &reduce_codec},
                                      {&mean_row, &reduce_codec},
                                      {&prod_row, &reduce_codec},
                                      {&max_row, &reduce_codec},
                                      {&min_row, &reduce_codec},
                                      {&argmax_row, &reduce_codec},
                                      {&argmin_row, &reduce_codec},
                                      {&any_row, &reduce_codec},
                                      {&all_row, &reduce_codec},
                                      {&cumsum_row, scan_codec},
                                      {&cumprod_row, scan_codec},
                                      {&cummax_row, scan_codec},
                                      {&cummin_row, scan_codec},
                                      {&logcumsumexp_row, scan_codec},
                                      {&scatter_update_row, &scatter_codec},
                                      {&scatter_add_row, &scatter_codec},
                                      {&scatter_multiply_row, &scatter_codec},
                                      {&scatter_min_row, &scatter_codec},
                                      {&scatter_max_row, &scatter_codec},
                                      {&put_along_axis_row, &scatter_codec},
                                      {&sort_row, &sort_codec},
                                      {&top_k_row, &top_k_codec},
                                      {&searchsorted_row, &search_codec},
                                      {&svd_row},
                                      {&svd_full_row},
                                      {&svdvals_row},
                                      {&eigh_row},
                                      {&eigvalsh_row},
                                      {&pinv_row, &pinv_codec}};
  return rows;
}

Variable exported::process_generator() { return random::default_generator().variable(); }

const SavedRow* find_saved_row(std::string_view name) {
  for (const SavedRow& saved : saved_rows())
    if (name == saved.row->name) return &saved;
  return nullptr;
}

}  // namespace stet
