// Layers as a user sees them: weights, calls, members.
#include <gtest/gtest.h>

#include <cmath>

#include "custom_parts.h"
#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;

namespace {

using Floats = std::vector<float>;

std::vector<std::string> paths(const keras::Layer& layer) {
  std::vector<std::string> out;
  for (const keras::Weight& weight : layer.weights()) out.push_back(weight.path);
  return out;
}
Floats values(const Variable& variable) { return variable.read().to_vector<float>(); }

TEST(KerasInitializer, UniformStaysWithinItsFormula) {
  for (auto [name, limit] : {std::pair{"glorot_uniform", std::sqrt(6.0 / (300 + 200))},
                             std::pair{"he_uniform", std::sqrt(6.0 / 300)}, std::pair{"random_uniform", 0.05}}) {
    Tensor w = keras::Initializer(name)({300, 200}, f32);
    double largest = max(abs(w)).item<double>(), variance = mean(square(w)).item<double>();
    EXPECT_LE(largest, limit) << name;
    EXPECT_GT(largest, 0.99 * limit) << name;
    EXPECT_NEAR(variance, limit * limit / 3, 0.02 * limit * limit / 3) << name;
    EXPECT_NEAR(mean(w).item<double>(), 0, 0.01 * limit) << name;
  }
}

TEST(KerasInitializer, NormalHasItsDeviation) {
  struct Case {
    const char* name;
    double stddev;
    bool cut;
  };
  for (auto [name, stddev, cut] : {Case{"glorot_normal", std::sqrt(2.0 / (300 + 200)), true},
                                   Case{"he_normal", std::sqrt(2.0 / 300), true}, Case{"random_normal", 0.05, false}}) {
    Tensor w = keras::Initializer(name)({300, 200}, f32);
    EXPECT_NEAR(std::sqrt(mean(square(w)).item<double>()), stddev, 0.02 * stddev) << name;
    double largest = max(abs(w)).item<double>();
    if (cut)
      EXPECT_LE(largest, 2 * stddev / 0.87962566103423978 + 1e-6) << name;
    else
      EXPECT_GT(largest, 3 * stddev) << name;
  }
}

TEST(KerasInitializer, FansOfFilters) {
  // A filter [3, 3, 8, 16]: 72 inputs and 144 outputs meet in one value.
  Tensor w = keras::Initializer("glorot_uniform")({3, 3, 8, 16}, f32);
  double limit = std::sqrt(6.0 / (72 + 144));
  EXPECT_LE(max(abs(w)).item<double>(), limit);
  EXPECT_GT(max(abs(w)).item<double>(), 0.98 * limit);
}

TEST(KerasInitializer, NamesAndCallables) {
  EXPECT_EQ(keras::Initializer("zeros")({2}, f32).to_vector<float>(), Floats(2, 0));
  EXPECT_EQ(keras::Initializer("ones")({2}, f32).to_vector<float>(), Floats(2, 1));
  keras::Initializer sevens = [](const Shape& shape, DType dtype) { return full(shape, 7, dtype); };
  EXPECT_EQ(sevens({2}, f32).to_vector<float>(), Floats(2, 7));
  std::string error = error_of([] { keras::Dense(3, {.kernel_initializer = "glorot"}); });
  EXPECT_CONTAINS(error, "there is no initializer 'glorot'");
  EXPECT_CONTAINS(error, "glorot_normal, glorot_uniform, he_normal, he_uniform, ");
  EXPECT_CONTAINS(error, "keras_layer_test.cpp:");
  keras::Initializer wrong = [](const Shape&, DType dtype) { return ones({3}, dtype); };
  EXPECT_CONTAINS(error_of([&] { wrong({2}, f32); }), "the initializer gave f32[3] for a weight of f32[2]");
}

TEST(KerasLayer, DenseIsAProductAndASum) {
  keras::Dense dense(2, {.activation = relu,
                         .kernel_initializer =
                             [](const Shape&, DType) {
                               return tensor({{1.f, -2.f}, {3.f, 4.f}, {-5.f, 6.f}});
                             },
                         .bias_initializer =
                             [](const Shape&, DType) {
                               return tensor({0.5f, -1.f});
                             }});
  Tensor y = dense(tensor({{1.f, 2.f, 3.f}, {0.f, 1.f, 0.f}}));
  EXPECT_EQ(y.to_vector<float>(), (Floats{0, 23, 3.5, 3}));
  EXPECT_EQ(dense.count_params(), 8);
  // Also over more axes than one.
  EXPECT_EQ(dense(zeros({4, 5, 3})).shape(), Shape({4, 5, 2}));
  keras::Dense without(2, {.use_bias = false});
  without(ones({1, 3}));
  EXPECT_EQ(without.count_params(), 6);
}

TEST(KerasLayer, DenseCastsFloatingInputs) {
  keras::Dense dense(2);
  EXPECT_EQ(dense(ones({1, 3}, f64)).dtype(), f32);
  keras::Dense wide(2, {.dtype = f64});
  EXPECT_EQ(wide(ones({1, 3})).dtype(), f64);
}

TEST(KerasLayer, ActivationsByOpFunctionAndName) {
  Tensor x = tensor({{-1.f, 2.f}});
  EXPECT_EQ(keras::Activation(relu)(x).to_vector<float>(), (Floats{0, 2}));
  EXPECT_EQ(keras::Activation("relu")(x).to_vector<float>(), (Floats{0, 2}));
  EXPECT_EQ(keras::Activation([](Tensor t) { return t * 3; })(x).to_vector<float>(), (Floats{-3, 6}));
  EXPECT_EQ(keras::Activation(softmax)(x).to_vector<float>(), softmax(x).to_vector<float>());
  std::string error = error_of([] { keras::Dense(2, {.activation = "rellu"}); });
  EXPECT_CONTAINS(error, "there is no activation 'rellu'");
  EXPECT_CONTAINS(error, "selu, sigmoid");
  EXPECT_CONTAINS(error, "keras_layer_test.cpp:");
}

TEST(KerasLayer, FlattenKeepsTheBatch) {
  keras::Flatten flatten;
  EXPECT_EQ(flatten(zeros({4, 2, 3})).shape(), Shape({4, 6}));
  EXPECT_EQ(flatten(zeros({0, 2, 3})).shape(), Shape({0, 6}));
  EXPECT_EQ(flatten(zeros({4})).shape(), Shape({4, 1}));
}

TEST(KerasLayer, DropoutOnlyInTraining) {
  random::seed(3);
  keras::Dropout dropout(0.25);
  Tensor x = ones({1000, 10});
  EXPECT_EQ(dropout(x).to_vector<float>(), Floats(10000, 1));
  Tensor y = dropout(x, {.training = true});
  EXPECT_NEAR(mean(y).item<double>(), 1, 0.02);
  EXPECT_NEAR(mean(y == 0).item<double>(), 0.25, 0.02);
  EXPECT_NEAR(max(y).item<double>(), 1 / 0.75, 1e-6);
  // Also a traced function draws anew.
  Function f = function("f(x)", [=](Tensor t) { return dropout(t, {.training = true}); });
  EXPECT_NE(f(x).to_vector<float>(), f(x).to_vector<float>());
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(keras::Dropout(1)(x, {.training = true}).to_vector<float>(), Floats(10000, 0));
  EXPECT_CONTAINS(error_of([] { keras::Dropout(1.5); }), "Dropout: a rate of 1.5");
}

TEST(KerasLayer, NamesAreNumbered) {
  keras::clear_session();
  keras::Dense a(1), b(1), c(1, {.name = "head"}), d(1);
  EXPECT_EQ(a.name(), "dense");
  EXPECT_EQ(b.name(), "dense_1");
  EXPECT_EQ(c.name(), "head");
  EXPECT_EQ(d.name(), "dense_2");
  EXPECT_EQ(keras::Sequential{}.name(), "sequential");
  EXPECT_EQ(keras::Sequential({keras::Dense(1)}, {.name = "tower"}).name(), "tower");
}

TEST(KerasLayer, EagerAndTracedWeightsAgree) {
  auto first_weights = [](bool traced) {
    random::seed(11);
    keras::Sequential model{keras::Dense(4, {.activation = relu}),
                            keras::Dense(3, {.kernel_initializer = "he_normal"})};
    if (traced)
      function("f(x)", [=](Tensor x) { return model(x); })(ones({2, 5}));
    else
      model(ones({2, 5}));
    Floats out;
    for (const Variable& variable : model.trainable_variables())
      for (float value : values(variable)) out.push_back(value);
    return out;
  };
  Floats eager = first_weights(false);
  EXPECT_EQ(eager.size(), 5u * 4 + 4 + 4 * 3 + 3);
  EXPECT_EQ(eager, first_weights(true));
}

TEST(KerasLayer, BatchesOfAnySizeShareATrace) {
  keras::Sequential model{keras::Flatten(), keras::Dense(4, {.activation = relu}), keras::Dense(3)};
  Function f = function("f(x)", [=](Tensor x) { return model(x); });
  for (int batch : {5, 1, 0, 32, 7}) EXPECT_EQ(f(ones({batch, 2, 3})).shape(), Shape({batch, 3}));
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(KerasLayer, SequentialWithInputHasItsWeightsAtOnce) {
  keras::clear_session();
  keras::Sequential model{keras::Input({28, 28}), keras::Flatten(), keras::Dense(128, {.activation = relu}),
                          keras::Dense(10)};
  EXPECT_TRUE(model.built());
  EXPECT_EQ(model.count_params(), 784 * 128 + 128 + 128 * 10 + 10);
  EXPECT_EQ(paths(model), (std::vector<std::string>{"sequential/dense/kernel", "sequential/dense/bias",
                                                    "sequential/dense_1/kernel", "sequential/dense_1/bias"}));
  EXPECT_EQ(model.trainable_variables()[0].name(), "sequential/dense/kernel");
  std::string error = error_of([&] { model(ones({32, 28, 27})); });
  EXPECT_CONTAINS(error, "the model takes f32[batch,28,28] and was given f32[32,28,27]");
  EXPECT_CONTAINS(error, "keras_layer_test.cpp:");
  EXPECT_EQ(model(ones({2, 28, 28}, u8)).shape(), Shape({2, 10}));
  // Also with sizes that vary.
  keras::Sequential steps{keras::Input({dyn, 8}), keras::Dense(3)};
  EXPECT_EQ(steps.count_params(), 27);
  EXPECT_EQ(steps(ones({2, 5, 8})).shape(), Shape({2, 5, 3}));
}

TEST(KerasLayer, SequentialNestsAndGrows) {
  keras::clear_session();
  keras::Sequential inner{keras::Dense(4), keras::Dense(2)};
  keras::Sequential outer{keras::Input({3}), inner, keras::Dense(1)};
  EXPECT_EQ(paths(outer),
            (std::vector<std::string>{"sequential_1/sequential/dense/kernel", "sequential_1/sequential/dense/bias",
                                      "sequential_1/sequential/dense_1/kernel", "sequential_1/sequential/dense_1/bias",
                                      "sequential_1/dense_2/kernel", "sequential_1/dense_2/bias"}));
  keras::Sequential grown;
  grown.add(keras::Input({3}));
  grown.add(keras::Dense(2));
  grown.add(keras::Dense(1));
  EXPECT_EQ(grown.count_params(), 8 + 3);
  EXPECT_CONTAINS(error_of([&] { grown.add(keras::Input({3})); }), "an Input stands after another layer");
}

TEST(KerasLayer, WrongWidthNamesTheLayer) {
  keras::clear_session();
  keras::Sequential model{keras::Dense(4), keras::Dense(3)};
  model(ones({2, 5}));
  std::string error = error_of([&] { model(ones({2, 6})); });
  EXPECT_CONTAINS(error, "Dense 'dense': its input f32[2,6] has 6 values per sample; it was built for 5");
  EXPECT_CONTAINS(error, "keras_layer_test.cpp:");
  EXPECT_CONTAINS(error, "in layer sequential/dense, given f32[2,6]");
  // While it is traced, sizes are those of the call.
  Function f = function("f(x)", [=](Tensor x) { return model(x); });
  EXPECT_CONTAINS(error_of([&] { f(ones({2, 6})); }), "its input f32[2,6] has 6 values per sample");
  EXPECT_CONTAINS(error_of([&] { model(ones({5})); }), "has no batch axis");
  EXPECT_CONTAINS(error_of([&] { model(Tensor()); }), "its input is an undefined tensor");
  EXPECT_CONTAINS(error_of([&] { keras::Layer()(ones({2, 2})); }), "the layer is undefined");
  EXPECT_CONTAINS(error_of([] { keras::Dense(0); }), "Dense: 0 units");
}

// --- custom layers, as in a user's program

struct Block : keras::CustomLayer {
  keras::Dense a{64, {.activation = relu}}, b{64, {.activation = softmax}};
  keras::Layer scale = Scale{1.f};
  std::vector<keras::Layer> more{keras::Dense(10), keras::Dropout(0.5)};
  STET_MEMBERS(a, b, scale, more)
  Tensor call(const Tensor& x, const keras::Context& c) override {
    Tensor h = scale(b(a(x)), {.training = c.training});
    for (auto& l : more) h = l(h);
    return h + x;
  }
};

TEST(KerasCustomLayer, MembersGivePaths) {
  keras::clear_session();
  auto block = keras::make<Block>();
  EXPECT_EQ(block(ones({2, 10})).shape(), Shape({2, 10}));
  EXPECT_EQ(paths(block), (std::vector<std::string>{"block/a/kernel", "block/a/bias", "block/b/kernel", "block/b/bias",
                                                    "block/scale/gamma", "block/more/0/kernel", "block/more/0/bias"}));
  EXPECT_EQ(block.trainable_variables()[4].name(), "block/scale/gamma");
  EXPECT_EQ(block->a.count_params(), 11 * 64);
  Function f = function("f(x)", [=](Tensor x) { return block(x, {.training = true}); });
  f(ones({3, 10}));
  f(ones({4, 10}));
  EXPECT_EQ(f.trace_count(), 1);
  keras::Sequential model{keras::Input({10}), keras::make<Block>(), Scale{2.f}, keras::Dense(1)};
  EXPECT_EQ(model(ones({3, 10})).shape(), Shape({3, 1}));
  EXPECT_EQ(paths(model).front(), "sequential/block_1/a/kernel");
}

struct Forgetful : keras::CustomLayer {
  keras::Dense listed{2}, forgotten{2};
  STET_MEMBERS(listed)
  Tensor call(const Tensor& x, const keras::Context&) override { return forgotten(listed(x)); }
};

TEST(KerasCustomLayer, AnUnlistedLayerIsAnError) {
  keras::clear_session();
  keras::Layer layer = Forgetful{};
  std::string error = error_of([&] { layer(ones({1, 2})); });
  EXPECT_CONTAINS(error, "Dense 'dense_1' is used inside Forgetful 'forgetful', which does not list it");
  EXPECT_CONTAINS(error, "STET_MEMBERS");
  EXPECT_CONTAINS(error, "keras_layer_test.cpp:");
  Function f = function("f(x)", [=](Tensor x) { return layer(x); });
  EXPECT_CONTAINS(error_of([&] { f(ones({1, 2})); }), "which does not list it");
}

TEST(KerasCustomLayer, SharesItsWeightsWithCopies) {
  keras::Layer scale = Scale{2.f}, copy = scale;
  scale(ones({1, 3}));
  ASSERT_EQ(copy.trainable_variables().size(), 1u);
  copy.trainable_variables()[0].assign(full({3}, 5));
  EXPECT_EQ(scale(ones({1, 3}), {.training = true}).to_vector<float>(), Floats(3, 5));
  static_assert(!std::is_constructible_v<keras::Layer, Scale&>);
  static_assert(std::is_constructible_v<keras::Layer, Scale>);
}

struct Broken : keras::CustomLayer {
  int attempts = 0;
  Variable w;
  void build(const Shape& in) override {
    w = add_weight("w", {in[-1]});
    if (++attempts == 1) throw UserError("not yet");
  }
  Tensor call(const Tensor& x, const keras::Context&) override { return x * w; }
};

TEST(KerasCustomLayer, AFailedBuildIsStartedAnew) {
  keras::Layer layer = Broken{};
  EXPECT_CONTAINS(error_of([&] { layer(ones({1, 2})); }), "not yet");
  EXPECT_FALSE(layer.built());
  EXPECT_EQ(layer.count_params(), 0);
  layer(ones({1, 3}));
  EXPECT_EQ(layer.count_params(), 3);
}

TEST(KerasLayer, HandlesAreArguments) {
  keras::Dense one(2), other(2);
  Function f = function("f(x, layer)", [](Tensor x, keras::Layer layer) { return layer(x); });
  Function g = function("g(x, layer)", [](Tensor x, keras::Dense layer) { return layer(x); });
  std::vector<std::string> explanations;
  on_retrace([&](const RetraceEvent& event) { explanations.push_back(event.explanation); });
  EXPECT_EQ(f(ones({2, 3}), one).to_vector<float>(), one(ones({2, 3})).to_vector<float>());
  EXPECT_EQ(g(ones({2, 3}), one).to_vector<float>(), one(ones({2, 3})).to_vector<float>());
  f(ones({4, 3}), one);
  EXPECT_EQ(f.trace_count(), 1);
  f(ones({4, 3}), other);
  EXPECT_EQ(f.trace_count(), 2);
  on_retrace({});
  ASSERT_EQ(explanations.size(), 1u);
  EXPECT_CONTAINS(explanations[0], "another object");
}

}  // namespace
