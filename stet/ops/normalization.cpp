// Normalisations: functions of ops. f16 and bf16 are computed in f32; results have the type of `x`.
#include "stet/ops/composite.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- normalisation

struct LayerNormOptions {
  double epsilon = 1e-3;
};
/// (x - mean) / sqrt(variance + epsilon) over the last axis, times `gamma`, plus `beta`.
/// Names: torch.nn.functional.layer_norm, keras.layers.LayerNormalization
/// Example: layer_norm(tensor({{1.f, 3.f}}), 1.f, 0.f, {.epsilon = 0})
STET_API Tensor layer_norm(In x, In gamma, In beta, LayerNormOptions options = {});
struct RmsNormOptions {
  double epsilon = 1e-6;
};
/// x / sqrt(mean(square(x)) + epsilon) over the last axis, times `gamma`.
/// Example: rms_norm(tensor({3.f, -3.f}), tensor({1.f, 2.f}))
/// Names: torch.nn.functional.rms_norm, keras.ops.rms_normalization
STET_API Tensor rms_norm(In x, In gamma, RmsNormOptions options = {});
struct BatchNormOptions {
  double epsilon = 1e-3;
};
/// (x - mean) / sqrt(variance + epsilon), times `scale`, plus `offset`: statistics and parameters broadcast against `x`
/// (those of the last axis, with channels last). The derivative goes through `mean` and `variance` too.
/// Example: batch_norm(tensor({{1.f, 5.f}, {3.f, 5.f}}), tensor({2.f, 5.f}), tensor({1.f, 4.f}), {.epsilon = 0})
/// Names: tf.nn.batch_normalization, torch.nn.functional.batch_norm
STET_API Tensor batch_norm(In x, In mean, In variance, BatchNormOptions options = {});
STET_API Tensor batch_norm(In x, In mean, In variance, In offset, In scale, BatchNormOptions options = {});
/// Mean and variance of every position of `axis` (the channels) over all other axes, as batch_norm takes them: of
/// size x.dim(axis) for the last axis, otherwise with sizes 1 in the place of the others.
/// Example: batch_statistics(tensor({{1.f, 5.f}, {3.f, 5.f}})).first
STET_API std::pair<Tensor, Tensor> batch_statistics(In x, int axis = -1);
struct GroupNormOptions {
  double epsilon = 1e-3;
};
/// `x` is [batch, ..., channels]. The channels are cut into `groups` equal parts; every sample's part is normalised
/// over its channels and the axes between, then multiplied by `gamma` and added to `beta`, which are [channels].
/// Example: group_norm(tensor({{1.f, 3.f, 10.f, 30.f}}), 2, 1.f, 0.f, {.epsilon = 0})
/// Names: torch.nn.functional.group_norm, keras.layers.GroupNormalization
STET_API Tensor group_norm(In x, std::int64_t groups, In gamma, In beta, GroupNormOptions options = {});
/// The same with every channel a group of its own: over the axes between batch and channels.
/// Example: instance_norm(tensor({{{1.f}, {3.f}}}), 1.f, 0.f, {.epsilon = 0})
/// Names: torch.nn.functional.instance_norm
STET_API Tensor instance_norm(In x, In gamma, In beta, GroupNormOptions options = {});
struct L2NormalizeOptions {
  double epsilon = 1e-12;  // of the squared length
};
/// x / sqrt(max(sum(square(x)), epsilon)) along an axis: vectors of length 1, and 0 where they are shorter than
/// sqrt(epsilon) beyond measure. The derivative at 0 is 1 / sqrt(epsilon).
/// Example: l2_normalize(tensor({{3.f, 4.f}, {0.f, 0.f}}))
/// Names: tf.math.l2_normalize, torch.nn.functional.normalize
STET_API Tensor l2_normalize(In x, const Axes& axes = -1, L2NormalizeOptions options = {});
/// The cosine of the angle between vectors along an axis; 0 if one of them is 0.
/// Example: cosine_similarity(tensor({1.f, 0.f}), tensor({1.f, 1.f}))
/// Names: torch.nn.functional.cosine_similarity
STET_API Tensor cosine_similarity(In x, In y, int axis = -1, L2NormalizeOptions options = {});
#endif

namespace {

constexpr ReduceOptions keep{.keepdims = true};

/// Less the mean over axes, with variance 1 over them.
Tensor standardised(const Tensor& x, const Axes& axes, double epsilon) {
  Tensor centred = x - mean(x, axes, keep);
  return centred * rsqrt(mean(square(centred), axes, keep) + epsilon);
}

Tensor unit_length(const Tensor& x, const Axes& axes, double epsilon) {
  return x * rsqrt(maximum(sum(square(x), axes, keep), epsilon));
}

/// In the type of operand 0, where it is a floating one.
Tensor finished(const Composite& call, const Tensor& result) { return in_type(result, floating_type(call[0].dtype())); }

}  // namespace

Tensor layer_norm(In x, In gamma, In beta, LayerNormOptions options) {
  Frame frame("layer_norm", x.where());
  Tensor centred = x - mean(x, -1, {.keepdims = true});
  Tensor variance = mean(square(centred), -1, {.keepdims = true});
  return centred * rsqrt(variance + options.epsilon) * gamma + beta;
}

Tensor rms_norm(In x, In gamma, RmsNormOptions options) {
  Composite call("rms_norm", {"x", "gamma"}, {x, gamma});
  Tensor wide = widened(call[0]);
  return finished(call, wide * rsqrt(mean(square(wide), -1, keep) + options.epsilon) * call[1]);
}

Tensor batch_norm(In x, In mean, In variance, BatchNormOptions options) {
  Composite call("batch_norm", {"x", "mean", "variance"}, {x, mean, variance});
  return finished(call, (widened(call[0]) - call[1]) * rsqrt(widened(call[2]) + options.epsilon));
}

Tensor batch_norm(In x, In mean, In variance, In offset, In scale, BatchNormOptions options) {
  Composite call("batch_norm", {"x", "mean", "variance", "offset", "scale"}, {x, mean, variance, offset, scale});
  // One factor and one difference per channel: x itself is read by a product and a sum.
  Tensor factor = rsqrt(widened(call[2]) + options.epsilon) * call[4];
  return finished(call, (widened(call[0]) - call[1]) * factor + call[3]);
}

std::pair<Tensor, Tensor> batch_statistics(In x, int axis) {
  Composite call("batch_statistics", {"x"}, {x});
  const int channels = call.axes(0, axis)[0], rank = call[0].rank();
  std::vector<int> others;
  for (int k = 0; k < rank; ++k)
    if (k != channels) others.push_back(k);
  return moments(call[0], others, {.keepdims = channels + 1 < rank});
}

Tensor group_norm(In x, std::int64_t groups, In gamma, In beta, GroupNormOptions options) {
  Composite call("group_norm", {"x", "gamma", "beta"}, {x, gamma, beta});
  call.require(call[0].rank() >= 2, text("'x' has rank ", call[0].rank(), ", not 2 or more"),
               "it is [batch, ..., channels]");
  call.require(groups > 0, text("there are ", groups, " groups"), "give at least one");
  Tensor wide = widened(call[0]);
  const Shape shape = wide.shape();
  const Dim channels = shape[shape.rank() - 1];
  call.require(require(channels % groups, Relation::equal, 0, {"group_norm", "channels of a group", frame_where()}),
               text("the ", size_text(channels), " channels are no multiple of the ", groups, " groups"),
               "make 'groups' a divisor of the size of the last axis");
  Dim between = 1;
  for (int axis = 1; axis + 1 < shape.rank(); ++axis) between = between * shape[axis];
  Tensor cut = reshape(wide, {shape[0], between, groups, channels / groups});
  Tensor normalised = reshape(standardised(cut, {1, 3}, options.epsilon), shape);
  return finished(call, normalised * call[1] + call[2]);
}

Tensor instance_norm(In x, In gamma, In beta, GroupNormOptions options) {
  Composite call("instance_norm", {"x", "gamma", "beta"}, {x, gamma, beta});
  call.require(call[0].rank() >= 3, text("'x' has rank ", call[0].rank(), ", not 3 or more"),
               "it is [batch, ..., channels]");
  std::vector<int> between;
  for (int axis = 1; axis + 1 < call[0].rank(); ++axis) between.push_back(axis);
  return finished(call, standardised(widened(call[0]), between, options.epsilon) * call[1] + call[2]);
}

Tensor l2_normalize(In x, const Axes& axes, L2NormalizeOptions options) {
  Composite call("l2_normalize", {"x"}, {x});
  return finished(call, unit_length(widened(call[0]), axes, options.epsilon));
}

Tensor cosine_similarity(In x, In y, int axis, L2NormalizeOptions options) {
  Composite call("cosine_similarity", {"x", "y"}, {x, y});
  call.require_same_shape(0, 1, "reshape or broadcast_to one of them first");
  return finished(call, sum(unit_length(widened(call[0]), axis, options.epsilon) *
                                unit_length(widened(call[1]), axis, options.epsilon),
                            axis));
}

}  // namespace stet
