// Attention layers, compared with Keras's.
#include <gtest/gtest.h>

#include "keras_sequence_cases.h"
#include "stet/stet.h"

namespace stet {
namespace {

using keras::AttentionCallOptions;
using keras::AttentionLayer;
using keras::KerasTensor;
using keras::Tensors;

std::vector<double> numbers(const Tensor& x) { return cast(x, f64).to_vector<double>(); }

class KerasAttention : public ::testing::Test {
 protected:
  void SetUp() override {
    random::seed(3);
    keras::clear_session();
  }
};

/// What calls of the cases are given.
LayerCall with_scores(const AttentionLayer& layer) {
  return [layer](const Tensors& in) {
    auto [y, scores] = layer.with_scores(in[0], in[1]);
    return Tensors{y, scores};
  };
}
LayerCall causal(const AttentionLayer& layer) {
  return [layer](const Tensors& in) { return Tensors{layer(in[0], in[1], {.use_causal_mask = true})}; };
}
LayerCall with_attention_mask(const AttentionLayer& layer, bool causal = false) {
  return [layer, causal](const Tensors& in) {
    return Tensors{layer(in[0], in[1], {.attention_mask = in[2], .use_causal_mask = causal})};
  };
}
/// Masks that come along with query and value.
LayerCall with_masks(const AttentionLayer& layer, bool scores = true) {
  return [layer, scores](const Tensors& in) {
    Tensor query = keras::with_mask(in[0], in[2]), value = keras::with_mask(in[1], in[3]);
    if (!scores) return Tensors{layer(query, value, {.use_causal_mask = true})};
    auto [y, weights] = layer.with_scores(query, value);
    return Tensors{y, weights};
  };
}
LayerCall with_value_mask(const AttentionLayer& layer) {
  return [layer](const Tensors& in) {
    auto [y, weights] = layer.with_scores(in[0], keras::with_mask(in[1], in[2]));
    return Tensors{y, weights};
  };
}

SequenceCases& cases() {
  static auto* const all = new SequenceCases("attention");
  return *all;
}
const std::vector<std::vector<int>> lengths{{1}, {1}, {1}}, with_mask_lengths{{1}, {1}, {1, 2}},
    with_masks_lengths{{1}, {1}, {1}, {1}};

TEST_F(KerasAttention, HeadsAreKerass) {
  auto make = [](keras::MultiHeadAttentionOptions options) { return keras::MultiHeadAttention(2, 3, options); };
  const SequenceCheck plain{.steps = lengths, .model = true};
  cases().check("heads", make({}), plain);
  cases().check("heads_key", make({}), plain);
  cases().check("heads_no_bias", make({.use_bias = false}), plain);
  cases().check("heads_output_shape", make({.output_shape = {2, 3}}), plain);
  cases().check("heads_window", make({.sliding_window = 2}), plain);
  auto check = [](const std::string& name, const AttentionLayer& layer, auto call, const auto& steps) {
    cases().check(name, layer, {.call = call(layer), .steps = steps});
  };
  auto masked = [](const AttentionLayer& layer) { return with_attention_mask(layer); };
  check("heads_value_dim", make({.value_dim = 4}), with_scores, lengths);
  check("heads_gate", make({.value_dim = 5, .use_gate = true}), with_scores, lengths);
  check("heads_scores", make({}), with_scores, lengths);
  check("heads_causal", make({}), causal, lengths);
  check("heads_mask", make({}), masked, with_mask_lengths);
  check("heads_mask_by_head", make({}), masked, std::vector<std::vector<int>>{{1}, {1}, {2, 3}});
  check(
      "heads_mask_causal", make({}), [](const AttentionLayer& layer) { return with_attention_mask(layer, true); },
      with_mask_lengths);
  check("heads_value_mask", make({}), with_value_mask, lengths);
  check("heads_two_axes", make({}), with_scores, std::vector<std::vector<int>>{{1, 2}, {1, 2}});
  check("heads_axes", make({.attention_axes = {1}}), with_scores, lengths);
  check("heads_axes_last", make({.attention_axes = {2}}), with_scores, std::vector<std::vector<int>>{{1, 2}, {1, 2}});
}

TEST_F(KerasAttention, GroupsAreKerass) {
  auto make = [](keras::GroupQueryAttentionOptions options) { return keras::GroupQueryAttention(3, 4, 2, options); };
  const SequenceCheck plain{.steps = lengths, .model = true};
  cases().check("group", make({}), plain);
  cases().check("group_key", make({}), plain);
  cases().check("group_gate", make({.sliding_window = 3, .use_gate = true}), plain);
  keras::GroupQueryAttention scores = make({.use_bias = false}), ahead = make({}), mask = make({}), masks = make({});
  cases().check("group_scores", scores, {.call = with_scores(scores), .steps = lengths});
  cases().check("group_causal", ahead, {.call = causal(ahead), .steps = lengths});
  cases().check("group_mask", mask, {.call = with_attention_mask(mask), .steps = with_mask_lengths});
  cases().check("group_masks", masks, {.call = with_masks(masks), .steps = with_masks_lengths});
}

TEST_F(KerasAttention, WithoutKernelsIsKerass) {
  auto scored = [](const std::string& name, const AttentionLayer& layer) {
    cases().check(name, layer, {.call = with_scores(layer), .steps = lengths});
  };
  scored("dot", keras::Attention());
  scored("dot_scale", keras::Attention({.use_scale = true}));
  scored("concat", keras::Attention({.score_mode = "concat"}));
  scored("concat_scale", keras::Attention({.use_scale = true, .score_mode = "concat"}));
  scored("additive", keras::AdditiveAttention());
  cases().check("dot_key", keras::Attention(), {.steps = lengths, .model = true});
  cases().check("additive_no_scale", keras::AdditiveAttention({.use_scale = false}), {.steps = lengths, .model = true});
  keras::Attention ahead, masked({.use_scale = true}), nothing, masked_ahead;
  keras::AdditiveAttention additive;
  cases().check("dot_causal", ahead, {.call = causal(ahead), .steps = lengths});
  cases().check("dot_masks", masked, {.call = with_masks(masked), .steps = with_masks_lengths});
  cases().check("dot_nothing", nothing, {.call = with_masks(nothing), .steps = with_masks_lengths});
  cases().check("dot_masks_causal", masked_ahead,
                {.call = with_masks(masked_ahead, false), .steps = with_masks_lengths});
  cases().check("additive_masks", additive, {.call = with_masks(additive), .steps = with_masks_lengths});
  EXPECT_EQ(cases().left(), std::vector<std::string>());
  cases().report();
}

TEST_F(KerasAttention, ResultsHaveTheMaskOfTheQueries) {
  Tensor query = keras::with_mask(ones({1, 3, 4}), tensor({{true, true, false}})), value = ones({1, 2, 4});
  for (const AttentionLayer& layer : std::vector<AttentionLayer>{
           keras::MultiHeadAttention(2, 3), keras::GroupQueryAttention(3, 2, 1), keras::Attention()}) {
    Tensor y = layer(query, value);
    ASSERT_TRUE(keras::mask_of(y).defined()) << layer.name();
    EXPECT_EQ(numbers(keras::mask_of(y)), (std::vector<double>{1, 1, 0}));
    auto [again, scores] = layer.with_scores(query, value);
    EXPECT_TRUE(keras::mask_of(again).defined());
    EXPECT_FALSE(keras::mask_of(scores).defined());
  }
}

TEST_F(KerasAttention, NothingToAttendToGivesZeros) {
  keras::MultiHeadAttention layer(2, 3, {.use_bias = false});
  Tensor none = zeros({1, 2, 3}) != 0;
  auto [y, scores] = layer.with_scores(ones({1, 2, 4}), ones({1, 3, 4}), {.attention_mask = none});
  EXPECT_EQ(numbers(y), std::vector<double>(8, 0));
  EXPECT_EQ(numbers(scores), std::vector<double>(12, 0));
}

TEST_F(KerasAttention, CausalCallsInModels) {
  keras::Input tokens({dyn("steps")}, {.dtype = i64});
  KerasTensor x = keras::Embedding(11, 8, {.mask_zero = true})(tokens);
  keras::MultiHeadAttention attention(2, 4);
  auto [y, scores] = attention.with_scores(x, x, {.use_causal_mask = true});
  EXPECT_EQ(y.spec().str(), "f32[batch,steps,8]");
  EXPECT_EQ(scores.spec().str(), "f32[batch,2,steps,steps]");
  keras::Model model({tokens}, {y, scores});
  Tensors out = model.call_many({cast(tensor({{3, 5, 7, 0}}), i64)});
  // Each attends to those before it and itself, and nothing to the padding.
  std::vector<double> weights = numbers(out[1][{0, 0}]);
  for (int i = 0; i < 3; ++i) {
    double total = 0;
    for (int j = 0; j < 4; ++j) {
      const double weight = weights[static_cast<std::size_t>(4 * i + j)];
      if (j > i) {
        EXPECT_EQ(weight, 0);
      }
      total += weight;
    }
    EXPECT_NEAR(total, 1, 1e-6);
  }
  EXPECT_EQ(numbers(keras::mask_of(out[0])), (std::vector<double>{1, 1, 1, 0}));
}

TEST_F(KerasAttention, DropoutKeepsTheMean) {
  for (const AttentionLayer& layer :
       std::vector<AttentionLayer>{keras::Attention({.dropout = 0.4}), keras::AdditiveAttention({.dropout = 0.4})}) {
    Tensor query = zeros({50, 20, 2}), value = ones({50, 30, 2});
    auto [y, scores] = layer.with_scores(query, value, {.training = true});
    EXPECT_NEAR(mean(y).item<float>(), 1, 0.02);
    EXPECT_NEAR(mean(cast(scores == 0, f32)).item<float>(), 0.4, 0.02);
    EXPECT_NEAR(mean(layer(query, value)).item<float>(), 1, 1e-5);
  }
  // Scores that are given back are those before dropout; the result varies.
  keras::MultiHeadAttention heads(2, 3, {.dropout = 0.5});
  Tensor x = random::normal({4, 6, 5});
  auto [y, scores] = heads.with_scores(x, x, {.training = true});
  EXPECT_NEAR(max(abs(sum(scores, -1) - 1)).item<float>(), 0, 1e-5);
  EXPECT_GT(max(abs(y - heads(x, x, {.training = true}))).item<float>(), 1e-3);
  EXPECT_EQ(numbers(heads(x, x)), numbers(heads(x, x)));
}

TEST_F(KerasAttention, SaysWhatIsWrong) {
  EXPECT_CONTAINS(error_of([] { keras::MultiHeadAttention(0, 3); }), "MultiHeadAttention: num_heads of 0");
  EXPECT_CONTAINS(error_of([] { keras::MultiHeadAttention(2, -1); }), "MultiHeadAttention: key_dim of -1");
  EXPECT_CONTAINS(error_of([] { keras::MultiHeadAttention(2, 1, {.dropout = 1}); }),
                  "MultiHeadAttention: a dropout of 1");
  EXPECT_CONTAINS(error_of([] { keras::MultiHeadAttention(2, 1, {.sliding_window = 0}); }),
                  "MultiHeadAttention: sliding_window of 0");
  EXPECT_CONTAINS(error_of([] { keras::GroupQueryAttention(3, 4, 3); }),
                  "GroupQueryAttention: 4 heads of queries share 3 of keys");
  EXPECT_CONTAINS(error_of([] { keras::Attention({.score_mode = "sum"}); }), "Attention: there is no score_mode 'sum'");
  keras::MultiHeadAttention layer(2, 3);
  EXPECT_CONTAINS(error_of([&] {
                    layer(zeros({2, 3}), zeros({2, 3}));
                  }),
                  "MultiHeadAttention 'multi_head_attention': its input f32[2,3] has 2 axes");
  EXPECT_CONTAINS(error_of([&] {
                    layer.call_many(Tensors{zeros({2, 3, 4})});
                  }),
                  "takes at least 2 tensors and was given 1");
  layer(zeros({2, 3, 4}), zeros({2, 5, 4}));
  EXPECT_CONTAINS(error_of([&] {
                    layer(zeros({2, 3, 4}), zeros({2, 5, 4}), {.key = zeros({2, 6, 4})});
                  }),
                  "there are 5 values, f32[2,5,4], and 6 keys, f32[2,6,4]");
  EXPECT_CONTAINS(error_of([&] {
                    layer(zeros({2, 3, 4}), zeros({2, 5, 5}));
                  }),
                  "its input f32[2,5,5] has 5 inputs; it was built for 4");
  EXPECT_CONTAINS(error_of([&] { layer(zeros({2, 3, 4}), zeros({2, 5, 2, 4})); }), "have different numbers of axes");
}

}  // namespace
}  // namespace stet
