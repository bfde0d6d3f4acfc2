// Composites: ordinary functions of ops. Errors name them and their caller's line (Frame).
#include "stet/core/call.h"
#include "stet/core/tape.h"
#include "stet/ops/ops.h"

namespace stet {

#ifdef STET_DECLARATIONS
/// exp(x) / sum(exp(x)) along an axis, without overflow.
STET_API Tensor softmax(In x, int axis);
STET_API Tensor log_softmax(In x, int axis);
/// Along the last axis; overloads of their own, so that they can be given as activations.
STET_API Tensor softmax(In x);
STET_API Tensor log_softmax(In x);
struct LayerNormOptions {
  double epsilon = 1e-3;
};
/// (x - mean) / sqrt(variance + epsilon) over the last axis, times `gamma`, plus `beta`.
STET_API Tensor layer_norm(In x, In gamma, In beta, LayerNormOptions options = {});
/// -log(softmax(logits)[label]) per sample: `labels` are integers [...], `logits` [..., classes].
STET_API Tensor sparse_cross_entropy(In labels, In logits);
#endif

namespace {

/// x less its largest element along the axis: exponents of it do not overflow, and at least one is 1. What it is used
/// for does not depend on the shift, so no tape sees where it came from: its gradients would cancel out, at a cost.
Tensor shifted_below_zero(In x, int axis) {
  Tensor largest = [&] {
    HiddenTapes unseen;
    return detached(max(x, axis, {.keepdims = true}));
  }();
  return x - largest;
}

}  // namespace

Tensor softmax(In x, int axis) {
  Frame frame("softmax", x.where());
  Tensor shifted = exp(shifted_below_zero(x, axis));
  return shifted / sum(shifted, axis, {.keepdims = true});
}

Tensor log_softmax(In x, int axis) {
  Frame frame("log_softmax", x.where());
  Tensor shifted = shifted_below_zero(x, axis);
  return shifted - log(sum(exp(shifted), axis, {.keepdims = true}));
}

Tensor softmax(In x) { return softmax(x, -1); }
Tensor log_softmax(In x) { return log_softmax(x, -1); }

Tensor layer_norm(In x, In gamma, In beta, LayerNormOptions options) {
  Frame frame("layer_norm", x.where());
  Tensor centred = x - mean(x, -1, {.keepdims = true});
  Tensor variance = mean(square(centred), -1, {.keepdims = true});
  return centred * rsqrt(variance + options.epsilon) * gamma + beta;
}

namespace {
constexpr const char* about_labels = "labels are class numbers: 0, 1, … up to the number of classes less one";
constexpr IndexWords label_of_sample{"label", "of sample", "classes", about_labels},
    label_of_many{"label", "at flat position", "classes", about_labels};
}  // namespace

Tensor sparse_cross_entropy(In labels, In logits) {
  const bool one_axis = labels.kind() == In::Kind::tensor && labels.tensor().defined() && labels.tensor().rank() == 1;
  Frame frame("sparse_cross_entropy", logits.where(), one_axis ? &label_of_sample : &label_of_many);
  In operands[] = {labels, logits};
  const char* names[] = {"labels", "logits"};
  auto fail = [&](const char* problem, const char* advice) {
    throw_user_error("sparse_cross_entropy", names, operands, Problem(problem, advice), frame_where());
  };
  for (const In& operand : operands)
    if (operand.kind() != In::Kind::tensor || !operand.tensor().defined())
      fail("labels and logits must be tensors", "");
  const Tensor &y = labels.tensor(), &z = logits.tensor();
  if (z.rank() != y.rank() + 1)
    fail("logits must have one axis more than labels", "logits are [..., classes], labels [...]");
  if (!is_integer(y.dtype()))
    fail("labels must be integers", "cast(labels, i64), or use one_hot labels with another loss");
  for (int axis = 0; axis < y.rank(); ++axis)
    if (!require(y.dim(axis), Relation::equal, z.dim(axis), {"sparse_cross_entropy", "samples", frame_where()}))
      fail("labels and logits have different numbers of samples", "logits are [..., classes], labels [...]");
  // One row per sample; the label's column is picked by a gather from the flat tensor, so a label that is not a class
  // is an error, not a zero.
  Tensor log_probability = log_softmax(logits);
  Dim classes = z.dim(-1), samples = y.size();
  Tensor flat = reshape(log_probability, {samples * classes});
  Tensor label = reshape(y, {samples});
  Tensor checked = gather(arange(classes), label);
  Tensor picked = gather(flat, arange(samples) * classes + checked);
  Shape result = y.shape();
  return reshape(-picked, std::vector<Dim>(result.begin(), result.end()));
}

}  // namespace stet
