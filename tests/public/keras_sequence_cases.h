// Layers of several tensors compared with what Keras's give: tests/oracle/keras/sequence_cases.py makes the values.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "expect_error.h"
#include "keras_values.h"
#include "stet/stet.h"

namespace stet {

using LayerCall = std::function<keras::Tensors(const keras::Tensors&)>;

struct SequenceCheck {
  LayerCall call = {};                       // otherwise the layer, on all inputs
  std::vector<std::vector<int>> steps = {};  // by input, axes besides the first that may have any size
  bool any_batch = true;                     // otherwise it was built for one size
  bool model = false;                        // it can be called on KerasTensors as it is
  double tolerance = 2e-5;
};

/// One file of cases, each compared with a layer in every way that layers are used.
class SequenceCases {
 public:
  explicit SequenceCases(const std::string& family) : values_(family) {}
  /// Names, shapes, values and gradients are Keras's; traced at five sizes, and in a functional model, it gives the
  /// same.
  void check(const std::string& name, const keras::Layer& layer, SequenceCheck how = {}) {
    SCOPED_TRACE(name);
    const KerasCase& one = values_.at(name);
    ++count_;
    if (!how.call) how.call = [layer](const keras::Tensors& inputs) { return layer.call_many(inputs); };
    keras::Tensors inputs;
    for (std::size_t i = 0; one.has(numbered("x", i)); ++i) inputs.push_back(one[numbered("x", i)]);
    how.call(inputs);  // builds it
    ASSERT_NO_FATAL_FAILURE(set_weights(one, layer));
    auto all = [&](const keras::Tensors& given) { return with_gradients(one, layer, given, how); };
    ASSERT_NO_FATAL_FAILURE(compare(one, all(inputs), how, "eager "));
    Function traced = function("traced(inputs)", all);
    ASSERT_NO_FATAL_FAILURE(compare(one, traced(inputs), how, "traced "));
    ASSERT_NO_FATAL_FAILURE(compare_sizes(layer, inputs, how));
    if (how.model) {
      ASSERT_NO_FATAL_FAILURE(compare_model(one, layer, inputs, how));
    }
  }

  std::vector<std::string> left() const { return values_.left(); }
  /// For the reader of a test's output.
  void report() const {
    std::printf("compared %d cases, %d tensors; the largest difference is %.2g\n", count_, compared_.tensors(),
                compared_.largest());
  }

 private:
  static std::string numbered(const char* what, std::size_t i) { return what + std::to_string(i); }

  static void set_weights(const KerasCase& one, const keras::Layer& layer) {
    const std::vector<keras::Weight> weights = layer.weights();
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const std::string& path = weights[i].path;
      // Numbers of names depend on what was made before.
      const std::string named = std::regex_replace(path.substr(path.find('/') + 1), std::regex("_[0-9]+(/|$)"), "$1");
      const std::string key = numbered("weight_", i) + ":" + named;
      ASSERT_TRUE(one.has(key)) << "Keras has no " << key;
      ASSERT_EQ(weights[i].variable.shape().sizes(), one[key].shape().sizes()) << key;
      weights[i].variable.assign(one[key]);
    }
    ASSERT_FALSE(one.has(numbered("dweight_", weights.size()))) << "Keras has more weights";
  }

  /// y0, y1, …, dx of floating inputs, dweight_0, …
  static std::vector<Tensor> with_gradients(const KerasCase& one, const keras::Layer& layer,
                                            const keras::Tensors& inputs, const SequenceCheck& how) {
    GradientTape tape;
    std::vector<GradientTape::Source> sources;
    for (const Tensor& x : inputs)
      if (is_floating(x.dtype())) {
        tape.watch(x);
        sources.emplace_back(x);
      }
    keras::Tensors out = how.call(inputs);
    Tensor total = zeros({});
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (!is_floating(out[i].dtype())) out[i] = cast(out[i], f32);
      total = total + sum(out[i] * one[numbered("c", i)]);
    }
    for (const keras::Weight& weight : layer.weights()) sources.emplace_back(weight.variable);
    if (sources.empty()) return out;
    for (const Tensor& d : tape.gradient(total, sources, {.unconnected = "zero"})) out.push_back(d);
    return out;
  }

  void compare(const KerasCase& one, const std::vector<Tensor>& got, const SequenceCheck& how, const std::string& way) {
    std::vector<std::string> names;
    for (const char* what : {"y", "dx", "dweight_"})
      for (std::size_t i = 0; i < 12; ++i)
        if (one.has(numbered(what, i))) names.push_back(numbered(what, i));
    ASSERT_EQ(got.size(), names.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NO_FATAL_FAILURE(compared_.close(got[i], one[names[i]], how.tolerance, way + names[i]));
  }

  /// The same samples and steps again, as many of them.
  static Tensor resized(Tensor x, int axis, std::int64_t size) {
    const std::int64_t now = x.shape().sizes()[static_cast<std::size_t>(axis)];
    return gather(x, arange(Dim(size)) % now, axis);
  }

  void compare_sizes(const keras::Layer& layer, const keras::Tensors& inputs, const SequenceCheck& how) {
    Function f = function("f(inputs)", [&](std::vector<Tensor> given) { return how.call(given); });
    int number = 0;
    for (std::int64_t batch : {2, 3, 1, 5, 4}) {
      const std::int64_t more = std::vector<std::int64_t>{0, 3, -1, 5, 2}[static_cast<std::size_t>(number++)];
      keras::Tensors some;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        some.push_back(how.any_batch ? resized(inputs[i], 0, batch) : inputs[i]);
        if (i >= how.steps.size()) continue;
        for (int axis : how.steps[i])
          some.back() = resized(some.back(), axis, inputs[i].shape().sizes()[static_cast<std::size_t>(axis)] + more);
      }
      const keras::Tensors eager = how.call(some), traced = f(some);
      ASSERT_EQ(eager.size(), traced.size());
      for (std::size_t i = 0; i < eager.size(); ++i)
        ASSERT_NO_FATAL_FAILURE(expect_close(traced[i], eager[i], 2e-6, "traced for " + std::to_string(batch)));
    }
    ASSERT_EQ(f.trace_count(), 1) << layer.name() << f.explain();
  }

  void compare_model(const KerasCase& one, const keras::Layer& layer, const keras::Tensors& inputs,
                     const SequenceCheck& how) {
    std::vector<keras::KerasTensor> places;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::vector<std::int64_t> sizes = inputs[i].shape().sizes();
      std::vector<DimSpec> sample(sizes.begin() + 1, sizes.end());
      if (i < how.steps.size())
        for (int axis : how.steps[i])
          sample[static_cast<std::size_t>(axis - 1)] =
              dyn("steps" + std::to_string(sizes[static_cast<std::size_t>(axis)]));
      places.push_back(keras::Input(ShapeSpec(sample), {.dtype = inputs[i].dtype()}));
    }
    keras::Model model(places, layer.call_many(places));
    keras::Tensors got = model.call_many(inputs);
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NO_FATAL_FAILURE(
          compared_.close(got[i], one[numbered("y", i)], how.tolerance, "model " + numbered("y", i)));
  }

  KerasValues values_;
  KerasComparison compared_;
  int count_ = 0;
};

}  // namespace stet
