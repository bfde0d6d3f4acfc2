// The regularizers and constraints that layers take for their weights, activity regularizers and seeds, beside Keras's:
// tests/oracle/keras/make_weight_options.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <regex>

#include "expect_error.h"
#include "keras_values.h"
#include "stet/stet.h"

using namespace stet;
using keras::constraints::MaxNorm, keras::constraints::MinMaxNorm, keras::constraints::NonNeg,
    keras::constraints::UnitNorm;
using keras::regularizers::L1, keras::regularizers::L2;

namespace {

KerasValues& values() {
  static KerasValues all("weight_options");
  return all;
}
KerasComparison compared;
int cases = 0;

/// The path without the layer's own name and the numbers of names, as the cases have it.
std::string plain(const std::string& path) {
  return std::regex_replace(path.substr(path.find('/') + 1), std::regex("_[0-9]+(/|$)"), "$1");
}
std::string numbered(const char* what, std::size_t i) { return what + std::to_string(i); }

Tensor sorted_losses(const std::vector<Tensor>& losses) { return losses.empty() ? zeros({0}) : sort(stack(losses)); }

/// The layer's weights in the order of the case.
std::vector<Variable> weights_of(const KerasCase& one, const keras::Layer& layer) {
  std::map<std::string, Variable> by_path;
  for (const keras::Weight& weight : layer.weights()) by_path[plain(weight.path)] = weight.variable;
  std::vector<Variable> out;
  for (std::size_t i = 0; i < by_path.size(); ++i)
    for (const auto& [path, variable] : by_path)
      if (one.has(numbered("weight_", i) + ":" + path)) out.push_back(variable);
  EXPECT_EQ(out.size(), by_path.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    for (const auto& [path, variable] : by_path)
      if (variable.id() == out[i].id()) out[i].assign(one[numbered("weight_", i) + ":" + path]);
  return out;
}

/// What the layer adds is what Keras's adds, eagerly and traced for two sizes of batches; and a step of SGD down all of
/// it leaves the weights where Keras's step does.
void check(const std::string& name, const keras::Layer& layer, bool training = false) {
  SCOPED_TRACE(name);
  const KerasCase& one = values().at(name);
  ++cases;
  keras::Tensors inputs;
  for (std::size_t i = 0; one.has(numbered("x", i)); ++i) inputs.push_back(one[numbered("x", i)]);
  layer.call_many(inputs);  // builds it
  const std::vector<Variable> weights = weights_of(one, layer);
  const Tensor expected = sort(one["losses"]);
  const Tensor y = layer.call_many(inputs, {.training = training})[0];
  compared.close(y, one["y"], 2e-5, "y");
  ASSERT_EQ(layer.losses().size(), static_cast<std::size_t>(expected.size()));
  compared.close(sorted_losses(layer.losses()), expected, 2e-5, "losses");
  weights_of(one, layer);

  Function losses = function("losses(inputs)", [&](std::vector<Tensor> given) {
    layer.call_many(given, {.training = training});
    return sorted_losses(layer.losses());
  });
  auto doubled = [](keras::Tensors all) {
    for (Tensor& x : all) x = concat({x, x}, 0);
    return all;
  };
  compared.close(losses(inputs), expected, 2e-5, "traced losses");
  compared.close(losses(doubled(inputs)), expected, 2e-5, "traced losses of twice as many samples");
  EXPECT_EQ(losses.trace_count(), 1);
  weights_of(one, layer);

  keras::Optimizer optimizer = keras::SGD(0.125);
  Function step = function("step(inputs)", [&](std::vector<Tensor> given) {
    GradientTape tape;
    Tensor total = sum(layer.call_many(given, {.training = training})[0] * one["c"]);
    for (const Tensor& loss : layer.losses()) total = total + loss;
    const std::vector<Variable> trained = layer.trainable_variables();
    optimizer.apply_gradients(tape.gradient(total, trained), trained);
    return total;
  });
  step(inputs);
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (one.has(numbered("after_", i)))
      compared.close(weights[i].read(), one[numbered("after_", i)], 2e-5, weights[i].name());
}

class KerasWeightOptions : public ::testing::Test {
 protected:
  void SetUp() override {
    random::seed(3);
    keras::clear_session();
  }
};

/// The options of the cases, for every struct that has fields of these names.
template <class Options>
Options given(Options options = {}) {
  if constexpr (requires { options.kernel_regularizer; }) {
    options.kernel_regularizer = L2(0.1);
    options.kernel_constraint = MaxNorm(0.5);
  }
  if constexpr (requires { options.bias_regularizer; }) {
    options.bias_regularizer = L1(0.2);
    options.bias_constraint = NonNeg();
  }
  if constexpr (requires { options.depthwise_regularizer; }) {
    options.depthwise_regularizer = L1(0.1);
    options.depthwise_constraint = UnitNorm();
  }
  if constexpr (requires { options.pointwise_regularizer; }) {
    options.pointwise_regularizer = L2(0.4);
    options.pointwise_constraint = MaxNorm(0.25);
  }
  if constexpr (requires { options.recurrent_regularizer; }) {
    options.recurrent_regularizer = L1(0.05);
    options.recurrent_constraint = MinMaxNorm({.min_value = 0.2, .max_value = 0.6, .rate = 0.5});
  }
  if constexpr (requires { options.beta_regularizer; }) {
    options.beta_regularizer = L1(0.1);
    options.gamma_regularizer = L2(0.2);
    options.beta_constraint = NonNeg();
    options.gamma_constraint = MinMaxNorm({.min_value = 0.1, .max_value = 0.5});
  }
  if constexpr (requires { options.activity_regularizer; }) options.activity_regularizer = L2(0.3);
  return options;
}

TEST_F(KerasWeightOptions, Products) {
  check("dense", keras::Dense(3, given<keras::DenseOptions>({.activation = "tanh"})));
  check("einsum_dense",
        keras::EinsumDense("abc,cd->abd", {dyn, 3}, given<keras::EinsumDenseOptions>({.bias_axes = "d"})));
  check("embedding", keras::Embedding(5, 3,
                                      {.embeddings_regularizer = L2(0.1),
                                       .embeddings_constraint = UnitNorm({.axis = 1}),
                                       .activity_regularizer = L2(0.3)}));
  check("prelu",
        keras::PReLU({.alpha_regularizer = L2(0.1), .alpha_constraint = NonNeg(), .activity_regularizer = L2(0.3)}));
}

TEST_F(KerasWeightOptions, Convolutions) {
  check("conv1d", keras::Conv1D(3, 2, given<keras::ConvolutionOptions>()));
  check("conv2d", keras::Conv2D(3, 2, given<keras::ConvolutionOptions>({.activation = relu})));
  check("conv2d channels_first",
        keras::Conv2D(3, 2, given<keras::ConvolutionOptions>({.data_format = "channels_first"})));
  check("conv3d", keras::Conv3D(2, 2, given<keras::ConvolutionOptions>()));
  check("depthwise1d", keras::DepthwiseConv1D(2, given<keras::DepthwiseConvolutionOptions>({.depth_multiplier = 2})));
  check("depthwise2d", keras::DepthwiseConv2D(2, given<keras::DepthwiseConvolutionOptions>()));
  check("separable1d", keras::SeparableConv1D(3, 2, given<keras::SeparableConvolutionOptions>()));
  check("separable2d", keras::SeparableConv2D(3, 2, given<keras::SeparableConvolutionOptions>()));
  check("conv1d_transpose", keras::Conv1DTranspose(3, 2, given<keras::TransposedConvolutionOptions>({.strides = 2})));
  check("conv2d_transpose", keras::Conv2DTranspose(3, 2, given<keras::TransposedConvolutionOptions>()));
  check("conv3d_transpose", keras::Conv3DTranspose(2, 2, given<keras::TransposedConvolutionOptions>()));
}

TEST_F(KerasWeightOptions, Normalisations) {
  check("batch_normalization", keras::BatchNormalization(given<keras::BatchNormalizationOptions>()), true);
  check("layer_normalization", keras::LayerNormalization(given<keras::LayerNormalizationOptions>()));
  check("group_normalization", keras::GroupNormalization(2, given<keras::GroupNormalizationOptions>()));
  check("rms_normalization", keras::RMSNormalization(given<keras::RMSNormalizationOptions>()));
}

TEST_F(KerasWeightOptions, Sequences) {
  keras::SimpleRNNOptions simple = given<keras::SimpleRNNOptions>();
  simple.activity_regularizer = {};
  check("simple_rnn", keras::SimpleRNN(3, simple));
  check("lstm", keras::LSTM(2, given<keras::LSTMOptions>({.return_sequences = true, .return_state = true})));
  check("gru", keras::GRU(3, given<keras::GRUOptions>()));
  check("rnn", keras::RNN(keras::LSTMCell(2, given<keras::LSTMCellOptions>()), {.activity_regularizer = L2(0.3)}));
  check("stacked",
        keras::RNN(std::vector<keras::RNNCell>{keras::GRUCell(2, given<keras::GRUCellOptions>()),
                                               keras::SimpleRNNCell(3, given<keras::SimpleRNNCellOptions>())}));
  check("bidirectional", keras::Bidirectional(keras::LSTM(2, given<keras::LSTMOptions>())));
  keras::DenseOptions weights_only = given<keras::DenseOptions>();
  weights_only.activity_regularizer = {};
  check("time_distributed", keras::TimeDistributed(keras::Dense(3, weights_only)));
  check("conv_lstm1d", keras::ConvLSTM1D(2, 2, given<keras::ConvLSTMOptions>()));
  check("conv_lstm2d", keras::ConvLSTM2D(2, 2, given<keras::ConvLSTMOptions>()));
}

TEST_F(KerasWeightOptions, Attention) {
  check("multi_head_attention", keras::MultiHeadAttention(2, 3, given<keras::MultiHeadAttentionOptions>()));
  check("group_query_attention", keras::GroupQueryAttention(3, 4, 2, given<keras::GroupQueryAttentionOptions>()));
  check("attention", keras::Attention(given<keras::AttentionLayerOptions>({.use_scale = true})));
  check("additive_attention", keras::AdditiveAttention(given<keras::AdditiveAttentionOptions>()));
}

TEST_F(KerasWeightOptions, SimpleRNNHasAnActivityRegularizer) {
  // Keras 3.15 takes it, and forgets it.
  keras::SimpleRNN rnn(3, {.activity_regularizer = L2(0.3)});
  const Tensor y = rnn(random::normal({2, 4, 2}));
  ASSERT_EQ(rnn.losses().size(), 1u);
  expect_close(rnn.losses()[0], 0.3f * sum(square(y)) / 2, 1e-6, "its penalty");
}

// --- losses that leave loops and functions

TEST_F(KerasWeightOptions, WhatALayerAddsAtEveryStepCounts) {
  // Keras on JAX loses it.
  keras::TimeDistributed steps(keras::Dense(2, {.activity_regularizer = L2(1)}));
  const Tensor x = random::normal({4, 3, 2}), y = steps(x);
  ASSERT_EQ(steps.losses().size(), 1u);
  expect_close(steps.losses()[0], sum(square(y)) / 4, 1e-6, "eagerly");
  Function traced = function("traced(x)", [&](Tensor given) {
    steps(given);
    return steps.losses().at(0);
  });
  expect_close(traced(x), sum(square(y)) / 4, 1e-6, "traced");
  const Tensor longer = random::normal({2, 7, 2});
  expect_close(traced(longer), sum(square(steps(longer))) / 2, 1e-6, "traced for other sizes");
  EXPECT_EQ(traced.trace_count(), 1);
}

struct AddingCell : keras::CustomCell {
  keras::Dense inner{2, {.activity_regularizer = L2(1)}};
  STET_MEMBERS(inner)
  std::vector<std::int64_t> state_size() const override { return {2}; }
  keras::CellStep step(const Tensor& x, const keras::Tensors& states, const keras::Context&) override {
    const Tensor h = inner(x) + states[0];
    return {h, {h}};
  }
};

TEST_F(KerasWeightOptions, WhatACellAddsAtEveryStepCounts) {
  auto cell = keras::make<AddingCell>();
  keras::RNN rnn{keras::RNNCell(std::static_pointer_cast<AddingCell>(cell.body()))};
  const Tensor x = random::normal({4, 3, 2});
  rnn(x);
  const Tensor expected = sum(square(matmul(x, cell->inner.weights()[0].variable))) / 4;  // its bias is 0
  ASSERT_EQ(rnn.losses().size(), 1u);
  expect_close(rnn.losses()[0], expected, 1e-6, "eagerly");
  Function traced = function("traced(x)", [&](Tensor given) {
    rnn(given);
    return rnn.losses().at(0);
  });
  expect_close(traced(x), expected, 1e-6, "traced");
  EXPECT_EQ(traced(random::normal({2, 5, 2})).rank(), 0);
  EXPECT_EQ(traced.trace_count(), 1);
}

TEST_F(KerasWeightOptions, SpectralNormalizationAddsWhatItsCallAdds) {
  keras::SpectralNormalization layer(keras::Dense(2, {.bias_initializer = "ones", .activity_regularizer = L2(1)}));
  const Tensor y = layer(ones({2, 3}));
  ASSERT_EQ(layer.losses().size(), 1u) << "and not what building it would";
  expect_close(layer.losses()[0], sum(square(y)) / 2, 1e-6, "its penalty");
}

/// Calls its layer inside a function of its own.
struct Wrapping : keras::CustomLayer {
  keras::Dense inner;
  Function<Tensor(Tensor)> called;
  explicit Wrapping(keras::Dense dense)
      : inner(dense), called(function("called(x)", [dense](Tensor x) { return dense(x); })) {}
  STET_MEMBERS(inner)
  Tensor call(const Tensor& x, const keras::Context&) override { return called(x); }
};

TEST_F(KerasWeightOptions, LossesLeaveAFunctionInsideALayerWhereItIsTraced) {
  keras::Sequential model{Wrapping(keras::Dense(2, {.activity_regularizer = L2(10)}))};
  model.compile({.optimizer = keras::SGD(0), .loss = "mse"});
  const Tensor x = ones({4, 3}), y = model.predict(x);
  const double penalty = (10 * sum(square(y)) / 4).item<double>();
  EXPECT_NEAR(model.fit(x, y, {.verbose = 0})["loss"][0], penalty, 1e-4);
  EXPECT_NEAR(model.evaluate(x, y)["loss"], penalty, 1e-4);
}

TEST_F(KerasWeightOptions, LossesDoNotSilentlyStayInAFunctionThatIsTracedOnItsOwn) {
  keras::Layer fine = Wrapping(keras::Dense(2)), adds = Wrapping(keras::Dense(2, {.activity_regularizer = "l2"}));
  EXPECT_EQ(fine(ones({1, 2})).rank(), 2);
  const std::string error = error_of([&] { adds(ones({1, 2})); });
  EXPECT_CONTAINS(error,
                  "Dense 'dense_1' adds losses inside a function that is traced on its own, in the call of Wrapping "
                  "'wrapping_1'");
  EXPECT_CONTAINS(error, "keras_weight_options_test.cpp:");
  EXPECT_CONTAINS(error, "fix: call the layer outside of that function, or return the loss from it and add it there");
  EXPECT_CONTAINS(error, "in layer wrapping_1/inner, given f32[1,2]");
}

// --- errors of the user's own functions, and seeds

TEST_F(KerasWeightOptions, ErrorsOfRulesNameTheirLines) {
  keras::Conv1D wrong_rank(2, 1, {.activity_regularizer = [](const Tensor& y) { return square(y); }});
  EXPECT_CONTAINS(error_of([&] { wrong_rank(ones({1, 3, 2})); }), "the regularizer gave f32[1,3,2] for f32[1,3,2]");
  const int line = __LINE__ + 1;
  keras::Conv1D broken(2, 1, {.activation = [](Tensor x) { return matmul(x, ones({7, 7})); }});
  const std::string error = error_of([&] { broken(ones({1, 3, 2})); });
  EXPECT_CONTAINS(error, "matmul: inner sizes 2 and 7 do not agree");
  EXPECT_CONTAINS(error, "keras_weight_options_test.cpp:" + std::to_string(line));
  EXPECT_CONTAINS(error_of([] { keras::LSTM(2, {.recurrent_regularizer = "l3"}); }), "there is no regularizer 'l3'");
  EXPECT_CONTAINS(error_of([] { keras::Embedding(3, 2, {.embeddings_constraint = "tiny"}); }),
                  "there is no constraint 'tiny'");
}

template <class Make>
void expect_seeded(Make make, const keras::Tensors& inputs) {
  auto drawn = [&](std::optional<std::uint64_t> seed) {
    random::seed(1);
    const keras::Layer layer = make(seed);
    layer.call_many(inputs);  // the weights are those of random::seed(1)
    random::seed(2 + seed.value_or(0));
    return layer.call_many(inputs, {.training = true})[0].template to_vector<float>();
  };
  EXPECT_EQ(drawn(7), drawn(7));
  EXPECT_NE(drawn(7), drawn(8));
  random::seed(1);
  const keras::Layer layer = make(7);
  layer.call_many(inputs);
  const std::vector<float> first = layer.call_many(inputs, {.training = true})[0].template to_vector<float>();
  EXPECT_NE(layer.call_many(inputs, {.training = true})[0].template to_vector<float>(), first) << "every call draws";
  EXPECT_EQ(first, drawn(7)) << "whatever the process's generator has given";
}

TEST_F(KerasWeightOptions, Seeds) {
  const Tensor x = random::normal({3, 4, 5}), images = random::normal({2, 3, 4, 4, 1});
  using Seed = std::optional<std::uint64_t>;
  expect_seeded([](Seed seed) { return keras::SimpleRNN(3, {.dropout = 0.5, .seed = seed}); }, {x});
  expect_seeded([](Seed seed) { return keras::LSTM(3, {.recurrent_dropout = 0.5, .seed = seed}); }, {x});
  expect_seeded([](Seed seed) { return keras::GRU(3, {.dropout = 0.5, .recurrent_dropout = 0.5, .seed = seed}); }, {x});
  expect_seeded([](Seed seed) { return keras::RNN(keras::LSTMCell(3, {.dropout = 0.5, .seed = seed})); }, {x});
  expect_seeded([](Seed seed) { return keras::ConvLSTM2D(2, 2, {.dropout = 0.5, .seed = seed}); }, {images});
  expect_seeded([](Seed seed) { return keras::MultiHeadAttention(2, 3, {.dropout = 0.5, .seed = seed}); }, {x, x});
  expect_seeded([](Seed seed) { return keras::GroupQueryAttention(3, 2, 1, {.dropout = 0.5, .seed = seed}); }, {x, x});
  expect_seeded([](Seed seed) { return keras::Attention({.dropout = 0.5, .seed = seed}); }, {x, x});
  expect_seeded([](Seed seed) { return keras::AdditiveAttention({.dropout = 0.5, .seed = seed}); }, {x, x});
}

TEST_F(KerasWeightOptions, EveryCaseWasCompared) {
  std::vector<std::string> left;
  for (const std::string& name : values().left())
    if (!name.starts_with("transfer")) left.push_back(name);  // keras_trainable_test.cpp
  EXPECT_EQ(left, std::vector<std::string>());
  std::printf("compared %d cases; the largest difference is %.2g\n", cases, compared.largest());
}

}  // namespace
