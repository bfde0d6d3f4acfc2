// Models of layers that were called on tensors which do not exist yet, layers of several tensors, and masks.
#include <gtest/gtest.h>

#include "expect_error.h"
#include "stet/stet.h"

namespace stet {
namespace {

using keras::KerasTensor;
using keras::Tensors;

std::vector<double> numbers(const Tensor& x) { return cast(x, f64).to_vector<double>(); }
Tensor counting(const Shape& shape) { return reshape(cast(arange(shape.element_count()), f32), shape); }

/// The sum of what it is given, and how many there were.
struct Sum : keras::CustomLayer {
  Tensors call_many(const Tensors& inputs, const keras::Context&) override {
    Tensor total = inputs[0];
    for (std::size_t i = 1; i < inputs.size(); ++i) total = total + inputs[i];
    return {total, cast(tensor(static_cast<std::int64_t>(inputs.size())), f32)};
  }
};

struct Twice : keras::CustomLayer {
  Tensor call(const Tensor& x, const keras::Context& context) override { return context.training ? x * 2 : x; }
};

class Functional : public ::testing::Test {
 protected:
  void SetUp() override {
    random::seed(3);
    keras::clear_session();
  }
};

TEST_F(Functional, ModelOfOneInputAndOutput) {
  keras::Input x({4});
  KerasTensor h = keras::Dense(8, {.activation = relu})(x);
  EXPECT_EQ(h.spec().str(), "f32[batch,8]");
  keras::Model model(x, keras::Dense(3)(h));
  EXPECT_TRUE(model.built());
  EXPECT_EQ(model.name(), "functional");
  EXPECT_EQ(model.weights().size(), 4u);
  EXPECT_EQ(model.weights()[0].path, "functional/dense/kernel");
  Tensor y = model(counting({2, 4}));
  EXPECT_EQ(y.shape().sizes(), (std::vector<std::int64_t>{2, 3}));
  // The same as its layers by hand.
  Tensor by_hand = model.get_layer("dense_1")(model.get_layer(0)(counting({2, 4})));
  EXPECT_EQ(numbers(y), numbers(by_hand));
}

TEST_F(Functional, IsTrainedInOneTrace) {
  keras::Input x({4});
  keras::Model model(x, keras::Dense(1)(keras::Dense(16, {.activation = tanh})(x)));
  model.compile({.optimizer = keras::Adam(1e-2), .loss = keras::losses::MeanSquaredError()});
  Tensor data = random::normal({100, 4}), labels = sum(data, {1}, {.keepdims = true});
  keras::History history = model.fit(data, labels, {.epochs = 20, .verbose = 0});
  EXPECT_LT(history["loss"].back(), history["loss"].front() / 4);
  EXPECT_EQ(model.train_function().trace_count(), 1);
  EXPECT_EQ(model.predict(data).shape().sizes(), (std::vector<std::int64_t>{100, 1}));
}

TEST_F(Functional, SeveralInputsOutputsAndSharedLayers) {
  keras::Input a({3}, {.name = "a"}), b({3}, {.name = "b"});
  keras::Dense shared(2, {.use_bias = false, .name = "shared"});
  KerasTensor left = shared(a), right = shared(b);
  std::vector<KerasTensor> sums = keras::Layer(Sum{}).call_many({left, right});
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[1].spec().str(), "f32[]");
  keras::Model model({a, b}, {sums[0], left * 2 - right, sums[1]});
  EXPECT_EQ(model.weights().size(), 1u);
  Tensor p = counting({2, 3}), q = ones({2, 3});
  Tensors out = model.call_many({p, q});
  Tensor u = shared(p), v = shared(q);
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(numbers(out[0]), numbers(u + v));
  EXPECT_EQ(numbers(out[1]), numbers(u * 2 - v));
  EXPECT_EQ(numbers(out[2]), (std::vector<double>{2}));
  EXPECT_CONTAINS(error_of([&] { shared.output(); }), "output: Dense 'shared' was called 2 times");
  EXPECT_EQ(numbers(keras::Model(b, shared.output(1))(q)), numbers(v));
  // Traced, for two batch sizes.
  Function f = function("f(p, q)", [&](Tensor x, Tensor y) { return model({x, y}); });
  EXPECT_EQ(numbers(f(p, q)), numbers(u + v));
  EXPECT_EQ(f(ones({5, 3}), ones({5, 3})).shape().sizes(), (std::vector<std::int64_t>{5, 2}));
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_F(Functional, ModelsAreLayersOfModels) {
  keras::Input x({4});
  keras::Model encoder(x, keras::Dense(2)(x), {.name = "encoder"});
  keras::Sequential decoder({keras::Dense(4)}, {.name = "decoder"});
  keras::Input image({4});
  keras::Model both(image, decoder(encoder(image)), {.name = "both"});
  std::vector<std::string> paths;
  for (const keras::Weight& weight : both.weights()) paths.push_back(weight.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"both/encoder/dense/kernel", "both/encoder/dense/bias",
                                             "both/decoder/dense_1/kernel", "both/decoder/dense_1/bias"}));
  EXPECT_EQ(numbers(both(counting({3, 4}))), numbers(decoder(encoder(counting({3, 4})))));
}

TEST_F(Functional, PartsOfAModelAreModels) {
  keras::Input x({4});
  keras::Model model(x, keras::Dense(3)(keras::Dense(5, {.name = "features"})(x)));
  keras::Model features(model.inputs(), {model.get_layer("features").output()});
  Tensor batch = counting({2, 4});
  EXPECT_EQ(numbers(features(batch)), numbers(model.get_layer("features")(batch)));
  // From the middle on.
  KerasTensor middle = model.get_layer("features").output();
  keras::Model head(middle, model.outputs()[0]);
  EXPECT_EQ(numbers(head(features(batch))), numbers(model(batch)));
}

TEST_F(Functional, TrainingIsInherited) {
  keras::Input x({2});
  keras::Model model(x, keras::Layer(Twice{})(x));
  keras::Model fixed(x, keras::Layer(Twice{})(x, {.training = true}));
  EXPECT_EQ(numbers(model(ones({1, 2}))), (std::vector<double>{1, 1}));
  EXPECT_EQ(numbers(model(ones({1, 2}), {.training = true})), (std::vector<double>{2, 2}));
  EXPECT_EQ(numbers(fixed(ones({1, 2}))), (std::vector<double>{2, 2}));
}

TEST_F(Functional, SizesThatVaryStaySo) {
  keras::Input x({dyn("steps"), 3});
  KerasTensor h = keras::Dense(5)(x);
  EXPECT_EQ(h.spec().str(), "f32[batch,steps,5]");
  keras::Model model(x, h + h);
  Function f = function("f(x)", [&](Tensor t) { return model(t); });
  for (std::int64_t steps : {2, 7, 1})
    EXPECT_EQ(f(ones({4, steps, 3})).shape().sizes(), (std::vector<std::int64_t>{4, steps, 5}));
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_F(Functional, SaysWhatIsWrong) {
  keras::Input a({3}), b({3});
  KerasTensor sum = a + b;
  EXPECT_CONTAINS(error_of([&] { keras::Model(a, sum); }),
                  "Model: an output depends on the Input 'input_layer_1', which is not among the inputs");
  keras::Model model({a, b}, {sum});
  EXPECT_CONTAINS(error_of([&] { model(ones({2, 3})); }), "takes 2 tensors and was given 1");
  EXPECT_CONTAINS(error_of([&] { model.get_layer("no"); }), "has no layer 'no'");
  EXPECT_CONTAINS(error_of([&] { keras::Dense(2)(KerasTensor()); }), "a KerasTensor is undefined");
  EXPECT_CONTAINS(error_of([&] {
                    keras::Dense({2})({ones({2, 3}), ones({2, 3})});
                  }),
                  "takes one tensor and was given 2");
  EXPECT_CONTAINS(error_of([&] {
                    keras::Input c({2});
                    keras::Dense first(4, {.name = "same"}), second(4, {.name = "same"});
                    keras::Model(c, second(first(c)));
                  }),
                  "two layers are called 'same'");
  EXPECT_CONTAINS(error_of([&] { keras::Dense(2).output(); }), "was not called on a KerasTensor");
  struct Nothing : keras::CustomLayer {};
  EXPECT_CONTAINS(error_of([&] { keras::Layer(Nothing{})(ones({1})); }), "says nowhere what it gives");
}

// --- masks

struct NoZeros : keras::CustomLayer {
  Tensor call(const Tensor& x, const keras::Context&) override { return x; }
  Tensors compute_mask(const Tensors& inputs, const Tensors&) override { return {any(inputs[0] != 0, {-1})}; }
};
struct MaskedMean : keras::CustomLayer {
  Tensor call(const Tensor& x, const keras::Context& context) override {
    if (!context.mask().defined()) return mean(x, {1});
    Tensor weights = expand_dims(cast(context.mask(), x.dtype()), -1);
    return sum(x * weights, {1}) / sum(weights, {1});
  }
};

TEST_F(Functional, MasksTravelWithTensors) {
  Tensor x = tensor({{{1.f}, {3.f}, {0.f}}, {{5.f}, {0.f}, {0.f}}});
  keras::Layer no_zeros = NoZeros{}, masked_mean = MaskedMean{};
  // By hand, through a layer that passes masks on, and in models.
  Tensor marked = keras::Dropout(0.5)(no_zeros(x));
  EXPECT_EQ(numbers(keras::mask_of(marked)), (std::vector<double>{1, 1, 0, 1, 0, 0}));
  EXPECT_EQ(numbers(masked_mean(marked)), (std::vector<double>{2, 5}));
  EXPECT_FALSE(keras::mask_of(marked * 2).defined());  // ops drop them
  keras::Sequential sequential{no_zeros, keras::Activation(relu), masked_mean};
  keras::Input in({dyn, 1});
  keras::Model functional(in, masked_mean(keras::Activation(relu)(no_zeros(in))));
  Function traced = function("traced(x)", [&](Tensor t) { return functional(t); });
  for (const Tensor& got : {sequential(x), functional(x), traced(x)})
    EXPECT_EQ(numbers(got), (std::vector<double>{2, 5}));
  // Given by the caller.
  Tensor first = tensor({{true, false, false}, {true, false, false}});
  EXPECT_EQ(numbers(masked_mean(x, {.mask = first})), (std::vector<double>{1, 5}));
  EXPECT_EQ(numbers(masked_mean(keras::with_mask(x, first))), (std::vector<double>{1, 5}));
  EXPECT_CONTAINS(error_of([&] { keras::with_mask(x, ones({2, 3})); }), "with_mask: a mask f32[2,3] of f32[2,3,1]");
}

TEST_F(Functional, LossesLeaveOutStepsThatAreMasked) {
  Tensor labels = zeros({2, 3, 1}), predictions = tensor({{{1.f}, {2.f}, {9.f}}, {{3.f}, {9.f}, {9.f}}});
  Tensor mask = tensor({{true, true, false}, {true, false, false}});
  keras::losses::MeanSquaredError mean_loss;
  EXPECT_NEAR(mean_loss(labels, keras::with_mask(predictions, mask)).item<float>(), (1 + 4 + 9) / 3.0, 1e-5);
  keras::losses::MeanSquaredError sum_loss({.reduction = "sum"});
  EXPECT_NEAR(sum_loss(labels, keras::with_mask(predictions, mask)).item<float>(), 14, 1e-5);
  EXPECT_NEAR(mean_loss(labels, predictions).item<float>(), (14 + 3 * 81) / 6.0, 1e-4);
  // Beside a class that is ignored: what either leaves out does not count.
  Tensor logits = reshape(cast(arange(12), f32) * 0.3f, {2, 3, 2}), classes = tensor({{1, 0, 0}, {-1, 1, 1}});
  keras::losses::SparseCategoricalCrossentropy ignoring({.from_logits = true, .ignore_class = -1});
  Tensor each = -log_softmax(logits);
  EXPECT_NEAR(ignoring(classes, keras::with_mask(logits, mask)).item<float>(),
              (each.item<float>({0, 0, 1}) + each.item<float>({0, 1, 0})) / 2, 1e-5);
}

TEST_F(Functional, LayersComputeInAnotherTypeThanTheirWeightsHave) {
  keras::Dense layer(3, {.dtype = "mixed_bfloat16"});
  Tensor y = layer(ones({2, 4}));
  EXPECT_EQ(y.dtype(), bf16);
  EXPECT_EQ(layer.weights()[0].variable.dtype(), f32);
  keras::set_dtype_policy("mixed_float16");
  keras::Dense other(3);
  keras::set_dtype_policy("float32");
  EXPECT_EQ(other(ones({2, 4})).dtype(), f16);
  EXPECT_EQ(keras::Dense(3)(ones({2, 4})).dtype(), f32);
  EXPECT_EQ(keras::DTypePolicy("mixed_bfloat16").name(), "mixed_bfloat16");
  EXPECT_CONTAINS(error_of([] { keras::Dense(3, {.dtype = "float8"}); }), "there is no dtype policy 'float8'");
  EXPECT_CONTAINS(error_of([] { keras::Dense(3, {.dtype = i32}); }), "a layer cannot compute in i32");
}

TEST_F(Functional, ACallThatIsRefusedDoesNotCountAsTheFirst) {
  keras::Dense layer(3);
  EXPECT_CONTAINS(error_of([&] { layer(ones({4})); }), "has no batch axis");
  EXPECT_EQ(layer(ones({2, 4})).shape().sizes(), (std::vector<std::int64_t>{2, 3}));
}

TEST_F(Functional, GradientsPassTensorsWithMasks) {
  keras::Layer no_zeros = NoZeros{}, masked_mean = MaskedMean{};
  auto slope = [&](Tensor x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(sum(masked_mean(no_zeros(x * 1))), x);
  };
  Tensor x = tensor({{{1.f}, {3.f}, {0.f}}});
  EXPECT_EQ(numbers(slope(x)), (std::vector<double>{0.5, 0.5, 0}));
  Function traced = function("traced(x)", slope);
  EXPECT_EQ(numbers(traced(x)), (std::vector<double>{0.5, 0.5, 0}));
}

TEST_F(Functional, TheSummarySaysWhatIsConnectedToWhat) {
  keras::clear_session();
  keras::Input left({4}, {.name = "left"}), right({3}, {.name = "right"});
  keras::Dense twin(5, {.name = "twin"});
  auto both = keras::Dense(5)(keras::Concatenate()({twin(left), right}));
  auto sum_of = keras::Add()({both, twin(left)});
  keras::Model model({left, right},
                     {keras::Dense(3, {.name = "kind"})(sum_of), keras::Dense(2, {.name = "size"})(sum_of)});
  // As Keras prints it, but all inputs stand first, and a long line widens its column.
  EXPECT_EQ(model.summary_text(), R"(Model: "functional"
┏━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━┓
┃ Layer (type)        ┃ Output Shape      ┃    Param # ┃ Connected to      ┃
┡━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━┩
│ left (InputLayer)   │ (None, 4)         │          0 │ -                 │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ right (InputLayer)  │ (None, 3)         │          0 │ -                 │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ twin (Dense)        │ (None, 5)         │         25 │ left[0][0],       │
│                     │                   │            │ left[0][0]        │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ concatenate         │ (None, 8)         │          0 │ twin[0][0],       │
│ (Concatenate)       │                   │            │ right[0][0]       │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ dense (Dense)       │ (None, 5)         │         45 │ concatenate[0][0] │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ add (Add)           │ (None, 5)         │          0 │ dense[0][0],      │
│                     │                   │            │ twin[1][0]        │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ kind (Dense)        │ (None, 3)         │         18 │ add[0][0]         │
├─────────────────────┼───────────────────┼────────────┼───────────────────┤
│ size (Dense)        │ (None, 2)         │         12 │ add[0][0]         │
└─────────────────────┴───────────────────┴────────────┴───────────────────┘
 Total params: 100 (400.00 B)
 Trainable params: 100 (400.00 B)
 Non-trainable params: 0 (0.00 B)
)");
  // A chain has no such column.
  keras::Model chain(left, keras::Dense(2)(keras::Dense(3)(left)));
  EXPECT_EQ(chain.summary_text().find("Connected to"), std::string::npos) << chain.summary_text();
  EXPECT_CONTAINS(chain.summary_text(), "│ left (InputLayer)               │ (None, 4)              │             0 │");
  // One layer twice is none.
  keras::Model twice(left, keras::Dense(4, {.name = "again"})(left));
  keras::Layer again = twice.get_layer("again");
  EXPECT_CONTAINS(keras::Model(left, again(again(left))).summary_text(), "again[0][0]");
}

}  // namespace
}  // namespace stet
