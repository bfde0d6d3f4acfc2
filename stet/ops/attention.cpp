// Attention, and the softmax that it is made of.
#include <limits>

#include "stet/core/tape.h"
#include "stet/ops/composite.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- attention

/// softmax of the elements that `mask` (bool, broadcast against `x`) keeps; the others are 0, whatever they are. Lines
/// of which nothing is kept are 0 throughout, with derivatives of 0.
/// Example: masked_softmax(tensor({{1.f, 1.f, 9.f}, {1.f, 2.f, 3.f}}), tensor({{1, 1, 0}, {0, 0, 0}}) == 1)
STET_API Tensor masked_softmax(In x, In mask, int axis = -1);
struct AttentionOptions {
  Tensor mask =
      {};  // broadcast against [..., queries, keys]: bool (false: do not attend), or floating, added to the scores
  bool causal = false;               // query i attends to keys 0 to i
  std::optional<double> scale = {};  // of the scores; 1 / sqrt(depth) unless told
};
/// softmax(query key' * scale) value over the last two axes, in front of which axes (batch, heads) broadcast: `query`
/// [..., queries, depth], `key` [..., keys, depth], `value` [..., keys, features], the result [..., queries, features].
/// A query that attends to nothing gets zeros, and its derivatives are 0. There is at least one key; all scores are in
/// memory at once.
/// Example: scaled_dot_product_attention(tensor({{1.f}, {1.f}}), tensor({{2.f}, {2.f}}), tensor({{1.f}, {3.f}}))
/// Names: torch.nn.functional.scaled_dot_product_attention, jax.nn.dot_product_attention
STET_API Tensor scaled_dot_product_attention(In query, In key, In value, const AttentionOptions& options = {});
#endif

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr ReduceOptions keep{.keepdims = true};

/// softmax of scores of which some, or all, may be -inf: those get 0.
Tensor softmax_of_some(const Tensor& scores, int axis) {
  // The result does not depend on the shift, so no tape sees where it came from.
  Tensor largest = [&] {
    HiddenTapes unseen;
    return detached(max(scores, axis, keep));
  }();
  Tensor nothing = equal(largest, -infinity);
  Tensor weights = exp(scores - where(nothing, 0, largest));
  return weights / where(nothing, 1, sum(weights, axis, keep));
}

/// [queries, keys]: which keys come no later than the query.
Tensor not_after(const Dim& queries, const Dim& keys) {
  return greater_equal(expand_dims(arange(queries), 1), arange(keys));
}

void check_attention(const Composite& call, const AttentionOptions& options) {
  static constexpr const char* names[] = {"query", "key", "value"};
  for (std::size_t i : {0, 1, 2}) {
    call.require(call[i].rank() >= 2, text("'", names[i], "' has rank ", call[i].rank(), ", not 2 or more"),
                 "it is [..., length, depth]");
    call.require(is_floating(call[i].dtype()), text("'", names[i], "' is ", call[i].dtype(), ", not floating"),
                 "cast it first");
    call.require(call[i].dtype() == call[0].dtype(),
                 text("'query' is ", call[0].dtype(), " and '", names[i], "' is ", call[i].dtype()),
                 "cast one of them first");
  }
  call.require_equal(call[0].dim(-1), call[1].dim(-1), "depths of 'query' and 'key'");
  call.require_equal(call[1].dim(-2), call[2].dim(-2), "lengths of 'key' and 'value'");
  if (options.mask.defined())
    call.require(options.mask.dtype() == DType::bool_ || is_floating(options.mask.dtype()),
                 text("the mask is ", options.mask.dtype(), ", neither bool nor floating"),
                 "mask != 0 keeps what is not zero");
}

}  // namespace

Tensor masked_softmax(In x, In mask, int axis) {
  Composite call("masked_softmax", {"x", "mask"}, {x, mask});
  call.require(call[1].dtype() == DType::bool_, text("the mask is ", call[1].dtype(), ", not bool"),
               "mask != 0 keeps what is not zero");
  Tensor kept = where(call[1], widened(call[0]), -infinity);
  return in_type(softmax_of_some(kept, axis), floating_type(call[0].dtype()));
}

Tensor scaled_dot_product_attention(In query, In key, In value, const AttentionOptions& options) {
  Composite call("scaled_dot_product_attention", {"query", "key", "value"}, {query, key, value});
  check_attention(call, options);
  Tensor q = widened(call[0]), k = widened(call[1]), v = widened(call[2]);
  // The queries are scaled, of which there are fewer elements than of scores.
  q = options.scale ? q * *options.scale : q * rsqrt(cast(q.dim(-1), q.dtype()));
  Tensor scores = matmul(q, k, {.transpose_b = true});
  const Tensor& mask = options.mask;
  if (mask.defined())
    scores = mask.dtype() == DType::bool_ ? where(mask, scores, -infinity) : scores + in_type(mask, scores.dtype());
  if (options.causal) scores = where(not_after(q.dim(-2), k.dim(-2)), scores, -infinity);
  return in_type(matmul(softmax_of_some(scores, -1), v), call[0].dtype());
}

}  // namespace stet
