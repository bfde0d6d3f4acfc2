// What a Keras user does wrong, and what is said: the layer, both shapes, the user's line, the remedy.
#include <limits>

#include "expect_error.h"

namespace stet {
namespace {

/// A text holds all of these parts, and the user's file.
void expect_parts(const std::string& told, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_CONTAINS(told, part);
  EXPECT_CONTAINS(told, "keras_wrong_uses_test.cpp:");
}
#define EXPECT_SAYS(code, ...) expect_parts(error_of([&] { code; }), {__VA_ARGS__})

/// What is written on stderr meanwhile.
template <class F>
std::string warnings_of(F f) {
  testing::internal::CaptureStderr();
  f();
  return testing::internal::GetCapturedStderr();
}

struct KerasWrongUses : testing::Test {
  KerasWrongUses() { keras::clear_session(); }
  const Tensor images = ones({8, 28, 28}), rows = ones({8, 4}), classes = cast(zeros({8}), i64);
  const keras::FitOptions silent{.verbose = 0};

  static keras::Sequential model(keras::LossesByOutput loss, keras::MetricsByOutput metrics = {},
                                 keras::ActivationFunction activation = {}) {
    keras::Sequential out{keras::Input({4}), keras::Dense(3, {.activation = activation})};
    out.compile({.loss = loss, .metrics = metrics});
    return out;
  }
};

TEST_F(KerasWrongUses, AxesThatAreMissing) {
  EXPECT_SAYS((keras::Sequential{keras::Input({28, 28}), keras::Conv2D(8, 3)}),
              "Conv2D 'conv2d': its input f32[batch,28,28] has 3 axes",
              "fix: it takes [batch, height, width, channels]; one sample is a batch of size 1: expand_dims(x, 0); "
              "images without channels get them with keras::Reshape({height, width, 1})",
              "in layer sequential/conv2d, given f32[batch,28,28]");
  EXPECT_SAYS(keras::Conv2D(8, 3)(images), "its input f32[8,28,28] has 3 axes");
  EXPECT_SAYS(keras::Conv1D(8, 3)(rows), "sequences of numbers get channels with keras::Reshape({steps, 1})");
  EXPECT_SAYS(keras::Conv3D(8, 3)(ones({1, 4, 4, 4})), "get them with keras::Reshape({depth, height, width, 1})");
  EXPECT_SAYS((keras::Sequential{keras::Input({5, 3}), keras::LSTM(3), keras::LSTM(2)}),
              "LSTM 'lstm_1': its input f32[batch,3] has 2 axes",
              "a recurrent layer before it gives a sequence with .return_sequences = true",
              "in layer sequential_1/lstm_1, given f32[batch,3]");
  EXPECT_SAYS(keras::Dense(3)(ones({4})), "Dense 'dense': its input f32[4] has 1 axis: it has no batch axis");
  EXPECT_SAYS(keras::Concatenate()({keras::Input({4}), keras::Input({3, 2})}),
              "Concatenate: f32[batch,4] and f32[batch,3,2] have different numbers of axes",
              "keras::Flatten() or keras::Reshape({…}) makes them fit");
}

TEST_F(KerasWrongUses, SizesThatDoNotFit) {
  keras::Dense dense(3);
  dense(rows);
  EXPECT_SAYS(dense(ones({8, 5})), "Dense 'dense': its input f32[8,5] has 5 values per sample; it was built for 4",
              "fix: give it [batch, …, 4]");
  EXPECT_SAYS(keras::Add()({keras::Input({4}), keras::Input({3})}), "sizes 4 and 3 of axis -1 do not broadcast");
  EXPECT_SAYS((keras::Sequential{keras::Input({4, 4}), keras::Reshape({5, 5})}),
              "has 16 values per sample; the target [5,5] has 25");
  // Windows larger than what there is.
  for (const keras::Layer& layer : {keras::Layer(keras::Conv2D(3, 5)), keras::Layer(keras::DepthwiseConv2D(5)),
                                    keras::Layer(keras::MaxPooling2D(5)), keras::Layer(keras::AveragePooling2D(5))})
    EXPECT_SAYS(layer(ones({1, 4, 4, 2})), "of its input f32[1,4,4,2] nothing is left: f32[1,0,0,",
                "fix: give it larger samples, or let it have a smaller window or stride, or .padding = \"same\"");
  EXPECT_SAYS((keras::Sequential{keras::Input({4, 1}), keras::Conv1D(2, 3, {.dilation_rate = 2})}),
              "of its input f32[batch,4,1] nothing is left: f32[batch,0,2]");
  EXPECT_EQ(keras::Conv2D(3, 5)(ones({0, 8, 8, 2})).shape().sizes(), (std::vector<std::int64_t>{0, 4, 4, 3}));
  EXPECT_EQ(keras::GlobalMaxPooling1D()(ones({2, 1, 3})).shape().sizes(), (std::vector<std::int64_t>{2, 3}));
}

TEST_F(KerasWrongUses, Masks) {
  EXPECT_SAYS(keras::LSTM(4)(ones({2, 5, 3}), {.mask = ones({2, 4}) > 0}),
              "LSTM 'lstm': the mask bool[2,4] does not fit its input f32[2,5,3]",
              "fix: a mask is bool and has the first axes of its tensor: [batch, steps]");
  EXPECT_SAYS(keras::GRU(4)(ones({2, 5, 3}), {.mask = ones({2, 5})}),
              "GRU 'gru': the mask f32[2,5] does not fit its input f32[2,5,3]");
}

TEST_F(KerasWrongUses, LabelsAndLosses) {
  const keras::Loss of_logits = keras::losses::SparseCategoricalCrossentropy({.from_logits = true});
  EXPECT_SAYS(model(of_logits).fit(rows, classes + 3, silent),
              "sparse_categorical_crossentropy: label 3 of sample 0 is not one of the 3 classes",
              "labels are class numbers: 0, 1, … up to the number of classes less one");
  EXPECT_SAYS(model("categorical_crossentropy").fit(rows, classes, silent),
              "categorical_crossentropy: labels i64[8] and predictions f32[8,3] differ in shape",
              "integer classes are for what is called Sparse…");
  EXPECT_SAYS(model(of_logits).fit(rows, ones({8, 3}), silent), "labels f32[8,3] do not fit predictions f32[8,3]",
              "one-hot labels are for what is called Categorical… alone");
  EXPECT_SAYS(model("mse").fit(rows, ones({8, 2}), silent),
              "mean_squared_error: labels f32[8,2] and predictions f32[8,3] differ in shape");
  EXPECT_SAYS(model("mse").fit(rows, ones({7, 3}), silent), "x f32[8,4] has 8 samples, y f32[7,3] has 7");
  EXPECT_SAYS(model("mse").fit(rows, ones({8, 3}), {.verbose = 0, .validation_data = {ones({8, 5}), ones({8, 3})}}),
              "the model takes f32[batch,4] and was given f32[8,5]");
  EXPECT_SAYS(model("mean_square_error"), "there is no loss 'mean_square_error'", "mean_squared_error (mse)");
}

TEST_F(KerasWrongUses, LogitsAndProbabilities) {
  using keras::losses::BinaryCrossentropy;
  using keras::losses::SparseCategoricalCrossentropy;
  const keras::Loss of_logits = SparseCategoricalCrossentropy({.from_logits = true});
  auto warned = [&](const keras::Sequential& model, const Tensor& y) {
    return warnings_of([&] {
      model.fit(rows, y, silent);
      model.evaluate(rows, y);
      model.fit(rows[range(0, 5)], y[range(0, 5)], silent);
    });
  };
  const std::string twice = warned(model(of_logits, {}, softmax), classes);
  expect_parts(twice,
               {"stet: sparse_categorical_crossentropy takes logits (from_logits = true), and Dense 'dense' gives "
                "probabilities (softmax), at ",
                "\n  fix: leave out the layer's activation, or the loss's from_logits\n"});
  EXPECT_EQ(twice.find("stet:"), twice.rfind("stet:")) << twice;  // once
  expect_parts(warned(model("sparse_categorical_crossentropy"), classes),
               {"stet: sparse_categorical_crossentropy takes probabilities, and Dense 'dense_1' has no activation, at ",
                "\n  fix: give the loss {.from_logits = true}, or the layer .activation = softmax, or sigmoid\n"});
  keras::Sequential apart{keras::Input({4}), keras::Dense(3), keras::Activation("sigmoid")};
  apart.compile({.loss = BinaryCrossentropy({.from_logits = true})});
  expect_parts(warned(apart, ones({8, 3})), {"Activation 'activation' gives probabilities (sigmoid)"});

  EXPECT_EQ(warned(model(of_logits), classes), "");
  EXPECT_EQ(warned(model("sparse_categorical_crossentropy", {}, softmax), classes), "");
  EXPECT_EQ(warned(model("sparse_categorical_crossentropy", {}, "softmax"), classes), "");
  EXPECT_EQ(warned(model("binary_crossentropy", {}, sigmoid), ones({8, 3})), "");
  EXPECT_EQ(warned(model("mse", {}, softmax), ones({8, 3})), "");
  EXPECT_EQ(warned(model("mse"), ones({8, 3})), "");
  // An op behind the layer makes something else of it.
  keras::Sequential scaled{keras::Input({4}), keras::Dense(3), keras::Lambda([](Tensor x) { return softmax(x); })};
  scaled.compile({.loss = "sparse_categorical_crossentropy"});
  EXPECT_EQ(warned(scaled, classes), "");
}

TEST_F(KerasWrongUses, Metrics) {
  EXPECT_SAYS(model("mse", {keras::metrics::SparseTopKCategoricalAccuracy({.k = 2})}).fit(rows, ones({8, 3}), silent),
              "labels f32[8,3]", "predictions f32[8,3]");
  const keras::Loss of_logits = keras::losses::SparseCategoricalCrossentropy({.from_logits = true});
  EXPECT_SAYS(model(of_logits, {keras::metrics::F1Score()}).fit(rows, classes, silent), "i64[8]", "f32[8,3]");
  EXPECT_SAYS(model("mse", {"accuracies"}), "there is no metric 'accuracies'");
}

TEST_F(KerasWrongUses, WhatIsNotThereYet) {
  keras::Sequential unbuilt{keras::Dense(3)};
  EXPECT_SAYS(unbuilt.summary(), "summary: Sequential 'sequential' is not built, its shapes are not known",
              "call it on a batch, fit it, or start it with keras::Input({…})");
  EXPECT_SAYS(unbuilt.set_weights({ones({4, 3}), ones({3})}),
              "set_weights: Sequential 'sequential' is not built: it has no weights yet",
              "call it on a batch, or start a model with keras::Input({…})");
  EXPECT_SAYS(unbuilt.fit(rows, rows), "fit: Sequential 'sequential' is not compiled", "call compile(");
  EXPECT_SAYS(unbuilt.get_layer("conv"), "has no layer 'conv'", "it has dense");
  EXPECT_SAYS(keras::Model(keras::Input({4}), keras::Dense(2)(keras::Input({3}, {.name = "other"}))),
              "Model: an output depends on the Input 'other', which is not among the inputs",
              "list all of them: Model({a, b}, outputs)");
}

TEST_F(KerasWrongUses, Options) {
  EXPECT_SAYS(keras::Dense(3, {.activation = "relux"}), "there is no activation 'relux'", "fix: one of celu, elu,");
  EXPECT_SAYS(keras::Dense(0), "Dense: 0 units");
  EXPECT_SAYS(keras::Dropout(1.5), "Dropout: a rate of 1.5", "it is a probability, from 0 to 1");
  EXPECT_SAYS(keras::Adam(-1), "Adam: a learning rate of -1");
  EXPECT_SAYS(keras::Conv2D(3, 3, {.padding = "causal"}), "padding", "causal");
  // As files may have it: the columns of all gates would be more than numbers have room for.
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_SAYS(keras::LSTM{most}, "LSTM: 9223372036854775807 units", "fix: a tensor has at most 2^62 elements");
  EXPECT_SAYS(keras::GRU{most}, "GRU: 9223372036854775807 units", "fix: a tensor has at most 2^62 elements");
  EXPECT_SAYS(keras::ConvLSTM1D(most, 3), "ConvLSTM1D: 9223372036854775807 filters", "at most 2^62 elements");
  EXPECT_SAYS(keras::Embedding(10, 4)(tensor({{1, 12}})), "holds index 12", "allowed are 0 to 9", "in layer embedding");
}

}  // namespace
}  // namespace stet
