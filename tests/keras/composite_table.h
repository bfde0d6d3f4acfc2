// The composites and losses that tests/keras/composites_test.cpp runs through, with the operands they are given. Each
// line has a reference of the same name in tests/oracle/composites/*.py.
#pragma once
#include <limits>

#include "stet/keras/losses.h"
#include "tests/ops/oracle.h"

namespace stet::op_test {

using Tensors = std::vector<Tensor>;

/// How an operand is drawn; composite_operand in tests/oracle/make_values.py says it in Python.
enum class Operand {
  values,         // within 8.5 of 0
  shifted,        // the same, but nowhere equal to another operand's values
  small,          // within 2.1 of 0
  gapped,         // values, some of them NaN, but none that is the first of its line
  probabilities,  // between 0 and 1
  mask,           // bool
  parameter,      // of the last axis, within 2.1 of 0
  scale,          // of the last axis, between 0 and 1
  labels,         // of all axes but the last: positions along it
};

struct Composite {
  const char* name;
  std::vector<Operand> operands;
  Tensor (*call)(const Tensors&);
  bool of_nothing = true;  // takes tensors without elements
};

inline bool has_gradient(Operand kind) { return kind != Operand::labels && kind != Operand::mask; }

inline Sizes operand_sizes(Operand kind, const Sizes& sizes) {
  if (kind == Operand::parameter || kind == Operand::scale) return {sizes.back()};
  return kind == Operand::labels ? Sizes(sizes.begin(), sizes.end() - 1) : sizes;
}

inline Tensor drawn_operand(Operand kind, std::uint64_t k, const Sizes& sizes, DType dtype) {
  Sizes shape = operand_sizes(kind, sizes);
  Values out;
  for (std::int64_t i = 0; i < count_of(shape); ++i) {
    std::uint64_t bits = drawn(static_cast<std::uint64_t>(i), k);
    if (kind == Operand::labels) {
      out.push_back(static_cast<Value>(bits % static_cast<std::uint64_t>(sizes.back())));
    } else if (kind == Operand::mask) {
      out.push_back(bits % 3 != 0);
    } else if (kind == Operand::probabilities || kind == Operand::scale) {
      out.push_back(static_cast<Value>(bits % 199 + 28) / 256);
    } else if (kind == Operand::gapped && i % sizes.back() != 0 && bits % 3 == 0) {
      out.push_back(std::numeric_limits<Value>::quiet_NaN());
    } else {
      Value scale = kind == Operand::parameter || kind == Operand::small ? 1 : 4;
      Value shift = kind == Operand::shifted ? Value{1} / 64 : 0;
      out.push_back(drawn_element(Draw::plain, i, static_cast<int>(k), dtype, 1) * scale + shift);
    }
  }
  DType type = kind == Operand::labels ? DType::i64 : kind == Operand::mask ? DType::bool_ : dtype;
  return make_tensor(type, out, shape);
}

inline const std::vector<Composite>& composites() {
  using enum Operand;
  using X = const Tensors&;
  namespace losses = keras::losses;
  static constexpr keras::losses::CrossentropyFunctionOptions logits{.from_logits = true};
  static const std::vector<Composite> table = {
      {"softmax", {values}, [](X x) { return softmax(x[0]); }},
      {"softmax_first", {values}, [](X x) { return softmax(x[0], 0); }, false},  // an empty axis has no largest element
      {"log_softmax", {values}, [](X x) { return log_softmax(x[0]); }},
      // statistics
      {"var", {values}, [](X x) { return var(x[0], -1); }},
      {"var_of_all", {values}, [](X x) { return var(x[0]) + 0 * sum(x[0], -1); }},
      {"stddev", {values}, [](X x) { return stddev(x[0], -1); }},
      {"norm_1", {shifted}, [](X x) { return norm(x[0], -1, {.ord = 1}); }},
      {"norm_2", {shifted}, [](X x) { return norm(x[0], -1); }},
      {"norm_3", {shifted}, [](X x) { return norm(x[0], -1, {.ord = 3}); }},
      {"norm_infinite", {shifted}, [](X x) { return norm(x[0], -1, {.ord = INFINITY}); }},
      {"logsumexp", {values}, [](X x) { return logsumexp(x[0], -1); }},
      {"average", {values, probabilities}, [](X x) { return average(x[0], x[1], -1); }},
      {"average_of_axis", {values, scale}, [](X x) { return average(x[0], x[1], -1); }},
      {"nansum", {gapped}, [](X x) { return nansum(x[0], -1); }},
      {"nanmean", {gapped}, [](X x) { return nanmean(x[0], -1); }},
      {"nanvar", {gapped}, [](X x) { return nanvar(x[0], -1); }},
      {"nanstd", {gapped}, [](X x) { return nanstd(x[0], -1); }},
      // normalisations
      {"layer_norm", {values, parameter, parameter}, [](X x) { return layer_norm(x[0], x[1], x[2]); }},
      {"rms_norm", {values, parameter}, [](X x) { return rms_norm(x[0], x[1]); }},
      {"batch_norm",
       {values, parameter, scale, parameter, parameter},
       [](X x) { return batch_norm(x[0], x[1], x[2], x[3], x[4]); }},
      {"batch_norm_plain", {values, parameter, scale}, [](X x) { return batch_norm(x[0], x[1], x[2]); }},
      {"batch_norm_of_batch",
       {values},
       [](X x) {
         auto [mean, variance] = batch_statistics(x[0]);
         return batch_norm(x[0], mean, variance);
       },
       false},  // the mean of nothing is NaN
      {"group_norm", {values, parameter, parameter}, [](X x) { return group_norm(x[0], 1, x[1], x[2]); }},
      {"l2_normalize", {values}, [](X x) { return l2_normalize(x[0]); }},
      {"cosine_similarity", {values, shifted}, [](X x) { return cosine_similarity(x[0], x[1]); }},
      // attention
      {"masked_softmax", {values, mask}, [](X x) { return masked_softmax(x[0], x[1]); }},
      {"attention",
       {small, small, small},
       [](X x) { return scaled_dot_product_attention(x[0], x[1], x[2]); },
       false},  // there is at least one key
      {"attention_causal",
       {small, small, small},
       [](X x) { return scaled_dot_product_attention(x[0], x[1], x[2], {.causal = true}); },
       false},
      {"attention_scaled",
       {small, small, small},
       [](X x) { return scaled_dot_product_attention(x[0], x[1], x[2], {.scale = 0.5}); },
       false},
      // losses
      {"sparse_cross_entropy", {labels, values}, [](X x) { return sparse_cross_entropy(x[0], x[1]); }},
      {"sparse_cross_entropy_smoothed",
       {labels, values},
       [](X x) { return sparse_cross_entropy(x[0], x[1], {.label_smoothing = 0.125}); }},
      {"softmax_cross_entropy", {probabilities, values}, [](X x) { return softmax_cross_entropy(x[0], x[1]); }},
      {"softmax_cross_entropy_smoothed",
       {probabilities, values},
       [](X x) { return softmax_cross_entropy(x[0], x[1], {.label_smoothing = 0.125}); }},
      {"sigmoid_cross_entropy", {probabilities, values}, [](X x) { return sigmoid_cross_entropy(x[0], x[1]); }},
      {"sigmoid_cross_entropy_smoothed",
       {probabilities, values},
       [](X x) { return sigmoid_cross_entropy(x[0], x[1], {.label_smoothing = 0.125}); }},
      {"huber", {values, shifted}, [](X x) { return huber(x[0], x[1]); }},
      {"huber_3", {values, shifted}, [](X x) { return huber(x[0], x[1], {.delta = 3}); }},
      {"kl_divergence", {probabilities, probabilities}, [](X x) { return kl_divergence(x[0], x[1]); }},
      {"mean_squared_error", {values, shifted}, [](X x) { return mean_squared_error(x[0], x[1]); }},
      {"mean_absolute_error", {values, shifted}, [](X x) { return mean_absolute_error(x[0], x[1]); }},
      {"poisson_loss", {probabilities, probabilities}, [](X x) { return poisson_loss(x[0], x[1]); }},
      {"poisson_loss_of_log",
       {probabilities, small},
       [](X x) { return poisson_loss(x[0], x[1], {.log_input = true}); }},
      // losses of Keras
      {"sparse_categorical_crossentropy",
       {labels, probabilities},
       [](X x) { return losses::sparse_categorical_crossentropy(x[0], x[1]); }},
      {"categorical_crossentropy",
       {probabilities, probabilities},
       [](X x) { return losses::categorical_crossentropy(x[0], x[1]); }},
      {"categorical_crossentropy_logits",
       {probabilities, values},
       [](X x) { return losses::categorical_crossentropy(x[0], x[1], logits); }},
      {"binary_crossentropy",
       {probabilities, probabilities},
       [](X x) { return losses::binary_crossentropy(x[0], x[1]); }},
      {"binary_crossentropy_logits",
       {probabilities, values},
       [](X x) { return losses::binary_crossentropy(x[0], x[1], logits); }},
      {"keras_mean_squared_error", {values, shifted}, [](X x) { return losses::mean_squared_error(x[0], x[1]); }},
      {"keras_mean_absolute_error", {values, shifted}, [](X x) { return losses::mean_absolute_error(x[0], x[1]); }},
  };
  return table;
}

}  // namespace stet::op_test
