// Layers compared with what Keras's give: tests/oracle/keras/layer_cases.py makes the values.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "expect_error.h"
#include "keras_values.h"
#include "stet/stet.h"

namespace stet {

struct LayerCheck {
  bool training = false;
  bool lengths = false;    // axis 1 may have any size too
  bool any_order = false;  // of the weights: Keras lists some of a wrapped layer first
  double tolerance = 1e-5;
};

/// One file of cases, each compared with a layer in every way that layers are used.
class LayerCases {
 public:
  explicit LayerCases(const std::string& family) : values_(family) {}

  /// Names, shapes, values and gradients are Keras's; traced at five sizes and in a functional model it gives the same.
  void check(const std::string& name, const keras::Layer& layer, LayerCheck how = {}) {
    SCOPED_TRACE(name);
    const KerasCase& one = values_.at(name);
    ++count_;
    keras::Tensors inputs;
    for (int i = 0; one.has(numbered("x", i)); ++i) {
      inputs.push_back(one[numbered("x", i)]);
      if (one.has(numbered("mask", i))) inputs.back() = keras::with_mask(inputs.back(), one[numbered("mask", i)]);
    }
    layer.call_many(inputs);  // builds it
    ASSERT_NO_FATAL_FAILURE(set_weights(one, layer, how));
    ASSERT_NO_FATAL_FAILURE(compare_values(one, layer, inputs, how));
    ASSERT_NO_FATAL_FAILURE(set_weights(one, layer, how));
    ASSERT_NO_FATAL_FAILURE(compare_traced(one, layer, inputs, how));
    ASSERT_NO_FATAL_FAILURE(set_weights(one, layer, how));
    ASSERT_NO_FATAL_FAILURE(compare_model(one, layer, inputs, how));
  }

  /// A case that is compared in another way.
  const KerasCase& at(const std::string& name) {
    ++count_;
    return values_.at(name);
  }

  /// Cases that no test has asked for.
  std::vector<std::string> left() const {
    ::testing::Test::RecordProperty("cases_compared", count_);
    std::ostringstream difference;
    difference << compared_.largest();
    ::testing::Test::RecordProperty("largest_difference", difference.str());
    return values_.left();
  }

 private:
  static std::string numbered(const char* what, std::size_t i) { return what + std::to_string(i); }

  /// The weights in Keras's order.
  static std::vector<keras::Weight> weights_of(const KerasCase& one, const keras::Layer& layer, LayerCheck how) {
    std::vector<keras::Weight> weights = layer.weights(), sorted = weights;
    if (!how.any_order) return weights;
    for (const keras::Weight& weight : weights)
      for (std::size_t i = 0; i < weights.size(); ++i)
        if (one.has(numbered("weight_", i) + "_" + last_name(weight))) sorted[i] = weight;
    return sorted;
  }
  static std::string last_name(const keras::Weight& weight) { return weight.path.substr(weight.path.rfind('/') + 1); }

  static void set_weights(const KerasCase& one, const keras::Layer& layer, LayerCheck how) {
    const std::vector<keras::Weight> weights = weights_of(one, layer, how);
    ASSERT_EQ(static_cast<int>(weights.size()), one["weights"].item<int>());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const std::string key = numbered("weight_", i) + "_" + last_name(weights[i]);
      ASSERT_TRUE(one.has(key)) << "Keras has no " << key;
      ASSERT_EQ(weights[i].variable.shape().sizes(), one[key].shape().sizes()) << key;
      if (one.has("c")) {
        EXPECT_EQ(weights[i].variable.trainable(), one.has(numbered("dweight_", i))) << key;
      }
      weights[i].variable.assign(one[key]);
    }
  }

  void compare_values(const KerasCase& one, const keras::Layer& layer, const keras::Tensors& inputs, LayerCheck how) {
    const bool gradients = one.has("c"), of_inputs = one.has("dx0");
    GradientTape tape;
    if (of_inputs)
      for (const Tensor& x : inputs) tape.watch(x);
    const Tensor y = layer(inputs, {.training = how.training});
    ASSERT_NO_FATAL_FAILURE(compared_.close(y, one["y"], how.tolerance, "y"));
    ASSERT_EQ(keras::mask_of(y).defined(), one.has("y_mask"));
    if (one.has("y_mask")) {
      ASSERT_NO_FATAL_FAILURE(compared_.close(keras::mask_of(y), one["y_mask"], 0, "y_mask"));
    }
    std::vector<GradientTape::Source> sources;
    std::vector<std::string> names;
    for (std::size_t i = 0; of_inputs && i < inputs.size(); ++i) {
      sources.emplace_back(inputs[i]);
      names.push_back(numbered("dx", i));
    }
    const std::vector<keras::Weight> weights = weights_of(one, layer, how);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (one.has(numbered("after_", i))) {
        ASSERT_NO_FATAL_FAILURE(compared_.close(weights[i].variable.read(), one[numbered("after_", i)], how.tolerance,
                                                numbered("after_", i)));
      }
      if (!one.has(numbered("dweight_", i))) continue;
      sources.emplace_back(weights[i].variable);
      names.push_back(numbered("dweight_", i));
    }
    if (!gradients || sources.empty()) return;
    const std::vector<Tensor> got = tape.gradient(sum(y * one["c"]), sources, {.unconnected = "zero"});
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NO_FATAL_FAILURE(compared_.close(got[i], one[names[i]], how.tolerance, names[i]));
  }

  /// The first sample and multiples of it, so many of them; and twice as long for odd numbers.
  static keras::Tensors resized(const keras::Tensors& inputs, std::int64_t samples, bool longer) {
    keras::Tensors out;
    for (const Tensor& x : inputs) {
      auto grown = [&](const Tensor& t) {
        std::vector<Tensor> copies;
        for (std::int64_t i = 0; i < samples; ++i) {
          const Tensor first = t[{Range{0, 1}}];
          copies.push_back(is_floating(t.dtype()) ? first * (1 + 0.25 * static_cast<double>(i)) : first);
        }
        Tensor many = concat(copies, 0);
        return longer ? concat({many, many}, 1) : many;
      };
      out.push_back(grown(x));
      if (keras::mask_of(x).defined()) out.back() = keras::with_mask(out.back(), grown(keras::mask_of(x)));
    }
    return out;
  }

  /// Every element by another number: the sum of what normalisations give has no slope to compare.
  static Tensor weighted(const Tensor& y) {
    return y * reshape(cos(cast(arange(y.shape().element_count()), y.dtype())), y.shape());
  }

  void compare_traced(const KerasCase& one, const keras::Layer& layer, const keras::Tensors& inputs, LayerCheck how) {
    std::vector<bool> masked;
    for (const Tensor& x : inputs) masked.push_back(keras::mask_of(x).defined());
    Function f = function("f(inputs, masks)", [&](std::vector<Tensor> given, std::vector<Tensor> masks) {
      std::size_t next = 0;
      for (std::size_t i = 0; i < given.size(); ++i)
        if (masked[i]) given[i] = keras::with_mask(given[i], masks[next++]);
      return weighted(layer(given, {.training = how.training}));
    });
    for (std::int64_t samples : {2, 3, 1, 5, 4}) {
      const keras::Tensors some = resized(inputs, samples, how.lengths && samples % 2 == 1);
      const Tensor eager = weighted(layer(some, {.training = how.training}));
      if (how.training) set_weights(one, layer, how);
      std::vector<Tensor> masks;
      for (const Tensor& x : some)
        if (keras::mask_of(x).defined()) masks.push_back(keras::mask_of(x));
      const Tensor traced = f(some, masks);
      if (how.training) set_weights(one, layer, how);
      ASSERT_NO_FATAL_FAILURE(expect_close(traced, eager, 2e-6, "traced for " + std::to_string(samples)));
    }
    ASSERT_EQ(f.trace_count(), 1);
  }

  void compare_model(const KerasCase& one, const keras::Layer& layer, const keras::Tensors& inputs, LayerCheck how) {
    if (one.has("mask0") || one.has("mask1")) return;  // an Input brings no mask along
    std::vector<keras::KerasTensor> places;
    for (const Tensor& x : inputs) {
      std::vector<std::int64_t> sizes = x.shape().sizes();
      std::vector<DimSpec> sample(sizes.begin() + 1, sizes.end());
      if (how.lengths && inputs.size() == 1) sample[0] = dyn;
      places.push_back(keras::Input(ShapeSpec(sample), {.dtype = x.dtype()}));
    }
    keras::KerasTensor y = layer(places);
    ASSERT_EQ(y.rank(), one["y"].rank());
    keras::Model model(places, {y});
    ASSERT_NO_FATAL_FAILURE(
        compared_.close(model(inputs, {.training = how.training}), one["y"], how.tolerance, "model"));
  }

  KerasValues values_;
  KerasComparison compared_;
  int count_ = 0;
};

class LayerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    random::seed(3);
    keras::clear_session();
  }
};
constexpr LayerCheck any_length{.lengths = true};
constexpr LayerCheck in_training{.training = true};

}  // namespace stet
