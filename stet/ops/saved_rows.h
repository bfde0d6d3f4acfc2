// How the attributes of each row are written into files and read again: defined where the attributes are. Private to
// ops/.
#pragma once
#include "stet/core/saved_rows.h"

namespace stet {

extern const AttributeCodec pad_codec, gather_codec, one_hot_codec, conv_codec, pool_codec, patch_codec, sort_codec,
    top_k_codec, search_codec, dynamic_slice_codec, reshape_codec, transpose_codec, slice_codec, reverse_codec,
    concat_codec, gamma_codec, scatter_codec, pinv_codec, band_codec, triangular_codec, random_codec;

}  // namespace stet
