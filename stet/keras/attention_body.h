// What attention layers share. Not a public header.
#pragma once
#include <optional>

#include "stet/keras/attention.h"
#include "stet/keras/library_layer.h"
#include "stet/keras/noise_source.h"

namespace stet::keras {

/// What calls say besides tensors.
struct AttentionArguments : CallArguments {
  bool use_causal_mask = false, return_attention_scores = false;
};
AttentionArguments attention_arguments(const Context& context);

/// bool [1, queries, keys]: keys that come no later than the query.
Tensor causal_mask(const Dim& queries, const Dim& keys);
/// The same for keys that are nearer than `window`.
Tensor window_mask(const Dim& queries, const Dim& keys, std::int64_t window);
/// a & b; of an undefined one, the other.
Tensor both(const Tensor& a, const Tensor& b);
/// In training, some of them become 0 and the others larger.
Tensor dropped(const Tensor& x, double rate, const NoiseSource& source, const Context& context);
/// UserError unless it is a probability that leaves something.
void require_dropout(const char* layer, double rate, Where where);
/// UserError unless values and keys are as many.
void require_lengths(const CustomLayer& layer, const Tensor& value, const Tensor& key, int axis, Where where);

}  // namespace stet::keras
