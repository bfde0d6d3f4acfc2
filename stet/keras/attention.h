// Attention: each query gets a mean of values, weighted by how well its key fits.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stet/keras/functional.h"
#include "stet/keras/layer.h"
#include "stet/keras/policy.h"

namespace stet::keras {

/// What calls of attention layers take besides queries and values. A query that may attend to nothing gets 0 (and then
/// the bias of what comes after).
struct AttentionCallOptions {
  Tensor key = {};             // none: the values
  Tensor attention_mask = {};  // [batch, queries, keys], or with heads before the queries: what may be attended to
  std::optional<bool> training = {};
  bool use_causal_mask = false;  // query i attends to keys 0 to i
};
struct SymbolicAttentionCallOptions {
  KerasTensor key = {};
  KerasTensor attention_mask = {};
  std::optional<bool> training = {};
  bool use_causal_mask = false;
};

/// What attention layers have in common: `Tensor y = layer(query, value, {.key = key});`, or called as layers on a list
/// {query, value}, {query, value, key} or {query, value, key, attention_mask}. Masks that come along with the inputs
/// leave out keys, and queries; the result has that of the queries.
class STET_API AttentionLayer : public Layer {
 public:
  Tensor operator()(const Tensor& query, const Tensor& value, AttentionCallOptions options = {},
                    Where where = Where::here()) const;
  Tensor operator()(const Tensors& inputs, CallOptions options = {}, Where where = Where::here()) const;
  KerasTensor operator()(const KerasTensor& query, const KerasTensor& value, SymbolicAttentionCallOptions options = {},
                         Where where = Where::here()) const;
  KerasTensor operator()(const std::vector<KerasTensor>& inputs, CallOptions options = {},
                         Where where = Where::here()) const;
  /// The result, and the weights of the means: `auto [y, scores] = layer.with_scores(query, value);`
  std::pair<Tensor, Tensor> with_scores(const Tensor& query, const Tensor& value, AttentionCallOptions options = {},
                                        Where where = Where::here()) const;
  std::pair<KerasTensor, KerasTensor> with_scores(const KerasTensor& query, const KerasTensor& value,
                                                  SymbolicAttentionCallOptions options = {},
                                                  Where where = Where::here()) const;
  STET_HANDLE(AttentionLayer, Layer)

 protected:
  template <class Body>
  explicit AttentionLayer(std::shared_ptr<Body> body) : Layer(std::move(body)) {}
};

struct MultiHeadAttentionOptions {
  std::optional<std::int64_t> value_dim = {};  // none: key_dim
  double dropout = 0;                          // of the scores, in training
  bool use_bias = true;
  std::vector<std::int64_t> output_shape = {};      // of a result without batch and steps; none: as a query
  std::vector<int> attention_axes = {};             // none: all but the first and the last
  std::optional<std::int64_t> sliding_window = {};  // query i attends to keys nearer than this
  Initializer kernel_initializer = {};              // none: "glorot_uniform"
  Initializer bias_initializer = {};                // none: "zeros"
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};  // of what each of the products with kernels gives
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  bool use_gate = false;                   // what the heads give is multiplied by a sigmoid of the query
  std::optional<std::uint64_t> seed = {};  // of what dropout draws from; none: the process's generator
  std::string name = {};
  DTypePolicy dtype = {};
};
/// softmax(q · k / sqrt(key_dim)) v for every head, where q, k and v are products of query [batch, queries, features],
/// key and value [batch, keys, features] with kernels; the heads' results are multiplied with one more. The scores are
/// [batch, heads, queries, keys].
class STET_API MultiHeadAttention : public AttentionLayer {
 public:
  MultiHeadAttention(std::int64_t num_heads, std::int64_t key_dim, MultiHeadAttentionOptions options = {},
                     Where where = Where::here());
  STET_HANDLE(MultiHeadAttention, AttentionLayer)
};

struct GroupQueryAttentionOptions {
  double dropout = 0;
  bool use_bias = true;
  std::optional<std::int64_t> sliding_window = {};
  Initializer kernel_initializer = {};
  Initializer bias_initializer = {};
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};  // of what each of the products with kernels gives, and of the result
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  bool use_gate = false;
  std::optional<std::uint64_t> seed = {};  // of what dropout draws from; none: the process's generator
  std::string name = {};
  DTypePolicy dtype = {};
};
/// The same with fewer heads of keys and values than of queries: each serves num_query_heads / num_key_value_heads of
/// them.
class STET_API GroupQueryAttention : public AttentionLayer {
 public:
  GroupQueryAttention(std::int64_t head_dim, std::int64_t num_query_heads, std::int64_t num_key_value_heads,
                      GroupQueryAttentionOptions options = {}, Where where = Where::here());
  STET_HANDLE(GroupQueryAttention, AttentionLayer)
};

struct AttentionLayerOptions {
  bool use_scale = false;          // a trained factor of the scores
  std::string score_mode = "dot";  // "concat": a trained factor times the sum of tanh(query + key)
  double dropout = 0;
  std::optional<std::uint64_t> seed = {};
  Regularizer activity_regularizer = {};  // of the output, divided by the number of samples
  std::string name = {};
  DTypePolicy dtype = {};
};
/// softmax(query · key) value, without kernels: query [batch, queries, features], value and key
/// [batch, keys, features]. The scores are [batch, queries, keys].
class STET_API Attention : public AttentionLayer {
 public:
  explicit Attention(AttentionLayerOptions options = {}, Where where = Where::here());
  STET_HANDLE(Attention, AttentionLayer)
};

struct AdditiveAttentionOptions {
  bool use_scale = true;  // trained factors of the features
  double dropout = 0;
  std::optional<std::uint64_t> seed = {};
  Regularizer activity_regularizer = {};  // of the output, divided by the number of samples
  std::string name = {};
  DTypePolicy dtype = {};
};
/// The same with scores sum(scale * tanh(query + key)) over the features.
class STET_API AdditiveAttention : public AttentionLayer {
 public:
  explicit AdditiveAttention(AdditiveAttentionOptions options = {}, Where where = Where::here());
  STET_HANDLE(AdditiveAttention, AttentionLayer)
};

}  // namespace stet::keras
