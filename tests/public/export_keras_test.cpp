// Models as files: inference without the layers, bit for bit.
#include "exported_files.h"

using namespace stet;

namespace {

class ExportKeras : public ::testing::Test {
 protected:
  void SetUp() override {
    random::seed(3);
    keras::clear_session();
  }
  Folder folder;

  /// Exported, loaded, and compared at several batch sizes, 0 and 1 among them.
  ExportedFunction check(const keras::Model& model, const std::function<Tensor(std::int64_t)>& batch) {
    model.export_to(folder / "m.stet");
    ExportedFunction loaded = load_function(folder / "m.stet");
    for (std::int64_t size : {5, 1, 0, 17, 32}) {
      Tensor x = batch(size);
      SCOPED_TRACE(size);
      EXPECT_SAME_BITS(loaded({x})[0], function("model(x)", [=](Tensor v) { return model(v); })(x));
    }
    EXPECT_EQ(loaded.trace_count(), 1);
    return loaded;
  }
};

Tensor normal(std::initializer_list<Dim> sizes) { return random::stateless_normal(Shape(sizes), {1, 2}); }

TEST_F(ExportKeras, NamesAreTheModels) {
  keras::Input x({4}, {.name = "features"});
  keras::Model model(
      x, keras::Dense(3, {.activation = softmax, .name = "classes"})(keras::Dense(8, {.name = "hidden"})(x)));
  ExportedFunction loaded = check(model, [](std::int64_t n) { return normal({n, 4}); });
  EXPECT_EQ(loaded.name(), "serve");
  EXPECT_EQ(loaded.inputs()[0].name, "features");
  EXPECT_EQ(loaded.inputs()[0].str(), "f32[batch,4]");
  EXPECT_EQ(loaded.outputs()[0].name, "classes");
  EXPECT_EQ(loaded.outputs()[0].str(), "f32[batch,3]");
  ASSERT_EQ(loaded.variables().size(), 4u);
  EXPECT_EQ(loaded.variables()[0].name(), "functional/hidden/kernel");
  EXPECT_EQ(loaded.variables()[3].name(), "functional/classes/bias");
}

TEST_F(ExportKeras, NormalisationAndDropoutInInference) {
  keras::Sequential model{keras::Input({6}),
                          keras::Dense(16),
                          keras::BatchNormalization(),
                          keras::Activation("relu"),
                          keras::Dropout(0.5),
                          keras::LayerNormalization(),
                          keras::Dense(2)};
  model.compile({.optimizer = keras::Adam(1e-2), .loss = keras::losses::MeanSquaredError()});
  model.fit(normal({64, 6}), normal({64, 2}), {.epochs = 2, .verbose = 0});
  ExportedFunction loaded = check(model, [](std::int64_t n) { return normal({n, 6}); });
  // Nothing of what training alone needs.
  EXPECT_EQ(loaded.variables().size(), model.weights().size());
}

TEST_F(ExportKeras, Convolutions) {
  keras::Sequential model{keras::Input({8, 8, 1}), keras::Conv2D(4, {3, 3}, {.activation = relu}),
                          keras::MaxPooling2D({2, 2}), keras::Flatten(), keras::Dense(3)};
  check(model, [](std::int64_t n) { return normal({n, 8, 8, 1}); });
}

TEST_F(ExportKeras, TextsOfAnyLength) {
  keras::Input words({dyn}, {.dtype = i64, .name = "words"});
  auto h = keras::Embedding(50, 8)(words);
  h = keras::LSTM(6)(h);
  keras::Model model(words, keras::Dense(2)(h));
  model.export_to(folder / "m.stet");
  ExportedFunction loaded = load_function(folder / "m.stet");
  Function direct = function("model(x)", [=](Tensor v) { return model(v); });
  for (auto [batch, length] : std::vector<std::pair<int, int>>{{3, 7}, {1, 1}, {4, 30}, {0, 5}}) {
    Tensor x = random::stateless_randint({batch, length}, {1, 5}, 0, 50);
    EXPECT_SAME_BITS(loaded({x})[0], direct(x));
  }
  EXPECT_EQ(loaded.trace_count(), 1);
  std::string error = error_of([&] { loaded({tensor({{std::int64_t{50}}})}); });
  EXPECT_CONTAINS(error, "50");
}

TEST_F(ExportKeras, Transformer) {
  keras::Input words({dyn("length")}, {.dtype = i64});
  auto h = keras::Embedding(20, 8)(words);
  auto attended = keras::MultiHeadAttention(2, 4)({h, h});
  h = keras::LayerNormalization()(h + attended);
  h = keras::LayerNormalization()(h + keras::Dense(8)(keras::Dense(16, {.activation = gelu})(h)));
  keras::Model model(words, keras::Dense(20)(h));
  model.export_to(folder / "m.stet");
  ExportedFunction loaded = load_function(folder / "m.stet");
  Function direct = function("model(x)", [=](Tensor v) { return model(v); });
  for (auto [batch, length] : std::vector<std::pair<int, int>>{{3, 7}, {1, 1}, {2, 12}}) {
    Tensor x = random::stateless_randint({batch, length}, {1, 5}, 0, 20);
    EXPECT_SAME_BITS(loaded({x})[0], direct(x));
  }
}

TEST_F(ExportKeras, SeveralInputsAndOutputs) {
  keras::Input a({3}, {.name = "a"}), b({2}, {.name = "b"});
  auto h = keras::Concatenate()({a, b});
  keras::Model model({a, b}, {keras::Dense(2, {.name = "first"})(h), keras::Dense(1, {.name = "second"})(h)});
  model.export_to(folder / "m.stet");
  ExportedFunction loaded = load_function(folder / "m.stet");
  keras::Tensors expected = function("model(v, w)", [=](Tensor v, Tensor w) {
    return model.call_many({v, w});
  })(normal({4, 3}), normal({4, 2}));
  std::map<std::string, Tensor> given = loaded.call({{"a", normal({4, 3})}, {"b", normal({4, 2})}});
  EXPECT_SAME_BITS(given.at("first"), expected[0]);
  EXPECT_SAME_BITS(given.at("second"), expected[1]);
}

TEST_F(ExportKeras, ATrainingStepWithAnOptimizer) {
  keras::Sequential model{keras::Input({3}), keras::Dense(4, {.activation = tanh}), keras::Dense(1)};
  keras::Adam adam(1e-2);
  Function step = function("step(x, y)", [=](Tensor x, Tensor y) {
    GradientTape tape;
    Tensor loss = mean(square(model(x, {.training = true}) - y));
    std::vector<Variable> weights = model.trainable_variables();
    adam.apply_gradients(tape.gradient(loss, weights), weights);
    return loss;
  });
  export_function(folder / "step.stet", step, {f32, {dyn("n"), 3}}, {f32, {dyn("n"), 1}});
  ExportedFunction loaded = load_function(folder / "step.stet");
  for (int i = 0; i < 12; ++i) {
    Tensor x = random::stateless_normal({5 + i % 3, 3}, {i, 1}), y = random::stateless_normal({5 + i % 3, 1}, {i, 2});
    EXPECT_SAME_BITS(loaded({x, y})[0], step(x, y));
  }
  EXPECT_EQ(loaded.trace_count(), 1);
}

struct Custom : keras::CustomModel {
  keras::Dense inner{2};
  Tensor call(const Tensor& x, const keras::Context&) override { return inner(x) * 2; }
  STET_MEMBERS(inner)
};

TEST_F(ExportKeras, WhatAModelTakesMustBeKnown) {
  keras::Sequential model{keras::Dense(2)};
  std::string error = error_of([&] { model.export_to(folder / "m.stet"); });
  EXPECT_CONTAINS(error, "export_to: Sequential 'sequential' has no Input that says what it takes");
  EXPECT_CONTAINS(error,
                  "begin it with keras::Input, or say it here: {.input_signature = {{f32, {dyn(\"batch\"), …}}}}");
  model.export_to(folder / "m.stet", {.input_signature = {{f32, {dyn("batch"), 3}}}});
  EXPECT_SAME_BITS(load_function(folder / "m.stet")({normal({4, 3})})[0], model(normal({4, 3})));
  keras::Model custom = Custom();
  custom.export_to(folder / "c.stet", {.input_signature = {{f32, {dyn("batch"), 3}, "x"}}});
  ExportedFunction loaded = load_function(folder / "c.stet");
  EXPECT_EQ(loaded.inputs()[0].name, "x");
  EXPECT_EQ(loaded.outputs()[0].name, "output");
  EXPECT_SAME_BITS(loaded({normal({4, 3})})[0], custom(normal({4, 3})));
}

}  // namespace
