// Composites: ordinary functions of ops. Errors name them and their caller's line (Frame).
#include "stet/ops/composite.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- normalisation

/// exp(x) / sum(exp(x)) along an axis, without overflow.
/// Names: scipy.special.softmax, tf.nn.softmax, keras.ops.softmax, torch.nn.functional.softmax, jax.nn.softmax
/// Example: softmax(tensor({{1.f, 1.f}, {0.f, 200.f}}), 1)
STET_API Tensor softmax(In x, int axis);
/// log(softmax(x)) along an axis, without underflow.
/// Names: scipy.special.log_softmax, tf.nn.log_softmax, keras.ops.log_softmax, torch.nn.functional.log_softmax
/// Example: log_softmax(tensor({{0.f, 0.f}, {0.f, 100.f}}), 1)
STET_API Tensor log_softmax(In x, int axis);
/// Along the last axis; overloads of their own, so that they can be given as activations.
/// Example: softmax(tensor({{0.f, 0.f}, {200.f, 0.f}}))
STET_API Tensor softmax(In x);
STET_API Tensor log_softmax(In x);
#endif

namespace {

/// x less its largest element along the axis: exponents of it do not overflow, and at least one is 1.
Tensor shifted_below_zero(In x, int axis) { return x - unseen_largest(x, axis); }

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

}  // namespace stet
