// Activations by name, with parameters, and as layers.
#include "keras_layer_cases.h"

namespace stet {
namespace {

LayerCases& cases() {
  static LayerCases* const cases = new LayerCases("activations");
  return *cases;
}
class KerasActivations : public LayerTest {};

TEST_F(KerasActivations, ByName) {
  for (const char* name : {"celu",           "elu",          "exponential", "gelu",        "glu",
                           "hard_shrink",    "hard_sigmoid", "hard_silu",   "hard_swish",  "hard_tanh",
                           "leaky_relu",     "linear",       "log_sigmoid", "log_softmax", "mish",
                           "relu",           "relu6",        "selu",        "sigmoid",     "silu",
                           "soft_shrink",    "softmax",      "softplus",    "softsign",    "sparse_plus",
                           "sparse_sigmoid", "squareplus",   "swish",       "tanh",        "tanh_shrink"})
    cases().check(std::string("by_name_") + name, keras::Activation(name));
  EXPECT_CONTAINS(error_of([] { keras::Activation("rellu"); }), "there is no activation 'rellu'");
  EXPECT_CONTAINS(error_of([] { keras::Activation("rellu"); }), "one of celu, elu, exponential");
}

TEST_F(KerasActivations, Layers) {
  cases().check("relu_layer", keras::ReLU(), any_length);
  cases().check("relu_most", keras::ReLU({.max_value = 1}), any_length);
  cases().check("relu_six", keras::ReLU({.max_value = 6}), any_length);
  cases().check("relu_slope", keras::ReLU({.negative_slope = 0.2}), any_length);
  cases().check("relu_threshold", keras::ReLU({.threshold = 0.5}), any_length);
  cases().check("relu_everything", keras::ReLU({.max_value = 1.5, .negative_slope = 0.2, .threshold = 0.5}),
                any_length);
  cases().check("leaky_relu", keras::LeakyReLU(), any_length);
  cases().check("leaky_relu_slope", keras::LeakyReLU(0.1), any_length);
  cases().check("prelu", keras::PReLU());
  cases().check("prelu_shared", keras::PReLU({.shared_axes = {1, 2}}), any_length);
  cases().check("elu", keras::ELU(), any_length);
  cases().check("elu_alpha", keras::ELU(0.5), any_length);
  cases().check("softmax", keras::Softmax(), any_length);
  cases().check("softmax_axis", keras::Softmax(1), any_length);
  cases().check("softmax_axes", keras::Softmax({1, 2}), any_length);
  cases().check("softmax_masked", keras::Softmax(), any_length);
}

TEST_F(KerasActivations, Functions) {
  auto same = [](const char* name, Tensor (*f)(const Tensor&)) {
    const KerasCase& one = cases().at(std::string("function_") + name);
    expect_close(f(one["x"]), one["y"], 1e-6, name);
  };
  same("threshold", [](const Tensor& x) { return keras::activations::threshold(x, 0.6, -1.0); });
  same("hard_shrink", [](const Tensor& x) { return keras::activations::hard_shrink(x, 0.9); });
  same("soft_shrink", [](const Tensor& x) { return keras::activations::soft_shrink(x, 0.9); });
  same("squareplus", [](const Tensor& x) { return keras::activations::squareplus(x, 1.0); });
  EXPECT_EQ(cases().left(), std::vector<std::string>{});
}

/// What Keras gives for it does not add up to 1, so it is compared with its definition: x less the number that makes
/// the sum of what is positive 1.
TEST_F(KerasActivations, SparsemaxIsAProjection) {
  const Tensor x = tensor({{0.5f, 0.f, -1.f}, {3.f, 0.f, 1.f}, {2.f, 2.f, 2.f}, {0.f, 0.3f, 0.4f}});
  const float third = 1.f / 3;
  const Tensor y = tensor({{0.75f, 0.25f, 0.f}, {1.f, 0.f, 0.f}, {third, third, third}, {0.1f, 0.4f, 0.5f}});
  keras::Activation layer("sparsemax");
  Function f = function("f(x)", [&](Tensor t) { return layer(t); });
  GradientTape tape;
  tape.watch(x);
  const Tensor got = layer(x);
  // Of those that are positive: less the mean of theirs.
  const Tensor c = tensor({{1.f, 3.f, 7.f}, {1.f, 3.f, 7.f}, {1.f, 3.f, 8.f}, {1.f, 3.f, 8.f}});
  const Tensor slope = tensor({{-1.f, 1.f, 0.f}, {0.f, 0.f, 0.f}, {-3.f, -1.f, 4.f}, {-3.f, -1.f, 4.f}});
  expect_close(tape.gradient(sum(got * c), x), slope, 1e-6, "slope");
  expect_close(got, y, 1e-6, "y");
  expect_close(f(x), y, 1e-6, "traced");
  expect_close(f(x[{Range{0, 2}}]), y[{Range{0, 2}}], 1e-6, "traced for two");
  EXPECT_EQ(f.trace_count(), 1);
  expect_close(keras::activations::sparsemax(transpose(x), 0), transpose(y), 1e-6, "axis 0");
}

TEST_F(KerasActivations, SaysWhatIsWrong) {
  EXPECT_CONTAINS(error_of([] { keras::ReLU({.threshold = -1}); }),
                  "ReLU: max_value, negative_slope or threshold is negative");
  EXPECT_CONTAINS(error_of([] { keras::LeakyReLU(-0.5); }), "LeakyReLU: a negative_slope of -0.5");
  EXPECT_CONTAINS(error_of([] { keras::PReLU({.shared_axes = {0}}); }), "PReLU: the shared axis 0");
  keras::PReLU built({.name = "slopes"});
  built(ones({2, 3}));
  EXPECT_CONTAINS(error_of([&] {
                    built(ones({2, 4}));
                  }),
                  "PReLU 'slopes': its input f32[2,4] has 4 values; it was built for 3");
}

}  // namespace
}  // namespace stet
