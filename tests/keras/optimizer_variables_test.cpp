// Variables of optimizers in the order in which Keras stores them: names and shapes as in
// tests/oracle/keras/optimizer_variables.json, for every optimizer and what changes what it keeps.
#include "stet/keras/optimizer_variables.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "object_configs.h"
#include "stet/stet.h"

namespace stet::keras {
namespace {

std::vector<std::int64_t> sizes_of(const Json& shape) {
  std::vector<std::int64_t> out;
  for (const Json& size : *shape.if_list()) out.push_back(*size.if_integer());
  return out;
}

/// "kernel_momentum", whoever's it is: Keras writes "adam/kernel_momentum", here it is "adam/kernel/momentum".
std::string plain_name(std::string name) {
  if (const std::size_t slash = name.find('/'); slash != std::string::npos) name = name.substr(slash + 1);
  std::ranges::replace(name, '/', '_');
  return name;
}
bool fits(const std::string& here, const std::string& theirs, const std::string& class_name) {
  if (here == theirs || (here == "iterations" && theirs == "iteration")) return true;
  if (here == "u_product") return theirs.starts_with("variable");  // Keras numbers what has no name
  if (class_name != "Adafactor") return false;
  // Keras calls both the rows and the columns by the variable's name alone.
  return here == theirs + "_rows" || here == theirs + "_columns" || here == "unused";
}

std::vector<Variable> variables_of(const Json& listed) {
  std::vector<Variable> out;
  for (const Json& one : *listed.if_list()) {
    const Json::List& parts = *one.if_list();
    out.emplace_back(ones(Shape(sizes_of(parts[1])), f32), VariableOptions{.name = *parts[0].if_string()});
  }
  return out;
}

TEST(OptimizerVariables, StandInKerasOrderBeforeTheFirstStepAndAfterIt) {
  const Json stored = stored_json("optimizer_variables.json");
  ASSERT_EQ(stored.if_list()->size(), 65U);
  std::set<std::string> classes;
  for (const Json& one : *stored.if_list()) {
    const std::string class_name = *one.find("entry")->find("class_name")->if_string();
    SCOPED_TRACE(files::to_text(*one.find("entry")));
    classes.insert(class_name);
    for (bool stepped : {false, true}) {
      Optimizer optimizer = object_of<Optimizer>(*one.find("entry"), "optimizer");
      std::vector<Variable> trainable = variables_of(*one.find("trainable"));
      if (stepped) {
        // In another order, so that slots are made in another order.
        std::vector<Variable> turned(trainable.rbegin(), trainable.rend());
        std::vector<Tensor> gradients;
        for (const Variable& variable : turned) gradients.push_back(ones(variable.shape(), f32));
        optimizer.apply_gradients(gradients, turned);
      }
      std::vector<Variable> ours = variables_in_keras_order(optimizer, trainable);
      const Json::List& theirs = *one.find("variables")->if_list();
      ASSERT_EQ(ours.size(), theirs.size());
      std::set<std::uint64_t> ids;
      for (std::size_t i = 0; i < ours.size(); ++i) {
        const Json::List& parts = *theirs[i].if_list();
        const std::string expected = plain_name(*parts[0].if_string());
        EXPECT_TRUE(fits(plain_name(ours[i].name()), expected, class_name))
            << i << ": " << ours[i].name() << ", " << expected;
        EXPECT_EQ(ours[i].shape(), Shape(sizes_of(parts[1]))) << i << ": " << expected;
        EXPECT_EQ(is_floating(ours[i].dtype()), parts[2] == Json("float32")) << i << ": " << expected;
        EXPECT_TRUE(ids.insert(ours[i].id()).second) << i;
      }
      // Those that exist are given, not others like them.
      for (const Variable& variable : optimizer.variables())
        EXPECT_TRUE(ids.contains(variable.id())) << variable.name();
    }
  }
  EXPECT_EQ(classes.size(), 15U);
}

// --- values: three steps here and in Keras come to the same, and steps go on from what Keras stored

std::vector<Variable> resumed_weights() {
  auto weight = [](const Shape& shape, const char* name) { return Variable(full(shape, 0.5, f32), {.name = name}); };
  return {weight({2, 3}, "kernel"), weight({2, 2}, "square"), weight({3}, "bias")};
}
void make_step(const Optimizer& optimizer, const std::vector<Variable>& weights, int number) {
  std::vector<Tensor> gradients;
  for (const Variable& weight : weights) {
    std::int64_t count = 1;
    for (int axis = 0; axis < weight.shape().rank(); ++axis) count *= weight.shape()[axis].value();
    gradients.push_back(reshape(cast(sin(cast(arange(count), f64) * (0.7 * number) + 1), f32), weight.shape()));
  }
  optimizer.apply_gradients(gradients, weights);
}
std::vector<double> elements_of(const Json& stored) {
  std::vector<double> out;
  for (const Json& one : *stored.if_list()) out.push_back(*one.if_real());
  return out;
}
/// Keras takes 1 - beta^t in f32: the first of its steps, up to 0.5 long here, have five digits.
void expect_near(const Variable& ours, const Json& stored) {
  std::vector<double> here = ours.read().to_vector<double>(), theirs = elements_of(stored);
  ASSERT_EQ(here.size(), theirs.size()) << ours.name();
  for (std::size_t i = 0; i < here.size(); ++i)
    EXPECT_NEAR(here[i], theirs[i], 5e-6 + 1e-5 * std::abs(theirs[i])) << ours.name() << " " << i;
}

TEST(OptimizerVariables, HaveKerasValuesAndGoOnFromThem) {
  const Json stored = stored_json("optimizer_variables.json");
  for (const Json& one : *stored.if_list()) {
    SCOPED_TRACE(files::to_text(*one.find("entry")));
    const Json& resume = *one.find("resume");
    const Json::List &then = *resume.find("weights")->if_list(), &variables = *resume.find("variables")->if_list(),
                     &later = *resume.find("later")->if_list();

    Optimizer own = object_of<Optimizer>(*one.find("entry"), "optimizer");
    std::vector<Variable> weights = resumed_weights();
    for (int number = 1; number <= 3; ++number) make_step(own, weights, number);
    std::vector<Variable> ours = variables_in_keras_order(own, weights);
    ASSERT_EQ(ours.size(), variables.size());
    for (std::size_t i = 0; i < weights.size(); ++i) expect_near(weights[i], then[i]);
    for (std::size_t i = 0; i < ours.size(); ++i)
      if (!ours[i].name().ends_with("/unused")) expect_near(ours[i], variables[i]);

    Optimizer loaded = object_of<Optimizer>(*one.find("entry"), "optimizer");
    weights = resumed_weights();
    auto load = [](const Variable& to, const Json& from) {
      to.assign(cast(reshape(tensor(elements_of(from)), to.shape()), to.dtype()));
    };
    for (std::size_t i = 0; i < weights.size(); ++i) load(weights[i], then[i]);
    ours = variables_in_keras_order(loaded, weights);
    for (std::size_t i = 0; i < ours.size(); ++i) load(ours[i], variables[i]);
    for (int number = 4; number <= 5; ++number) make_step(loaded, weights, number);
    for (std::size_t i = 0; i < weights.size(); ++i) expect_near(weights[i], later[i]);
  }
}

// --- here and here

std::vector<Tensor> gradients_at(int step) {
  auto of = [&](std::vector<std::int64_t> sizes, double scale) {
    std::int64_t count = 1;
    for (std::int64_t size : sizes) count *= size;
    return reshape(cast(sin(arange(count) * 0.7 * step) * scale, f32), Shape(sizes));
  };
  return {of({3, 4}, 1), of({4}, 2)};
}
std::vector<Variable> two_weights() {
  return {Variable(full({3, 4}, 0.5, f32), {.name = "kernel"}), Variable(full({4}, -0.5, f32), {.name = "bias"})};
}

/// Steps that go on from what was stored are those of an optimizer that was never stored.
TEST(OptimizerVariables, LoadedIntoAFreshOptimizerGoOnAsIfNothingHadBeen) {
  const Json stored = stored_json("optimizer_variables.json");
  for (const Json& one : *stored.if_list()) {
    SCOPED_TRACE(files::to_text(*one.find("entry")));
    Optimizer first = object_of<Optimizer>(*one.find("entry"), "optimizer");
    std::vector<Variable> weights = two_weights(), loaded = two_weights();
    for (int step = 1; step <= 3; ++step) first.apply_gradients(gradients_at(step), weights);

    Optimizer second = object_of<Optimizer>(*one.find("entry"), "optimizer");
    for (std::size_t i = 0; i < weights.size(); ++i) loaded[i].assign(weights[i].read());
    std::vector<Variable> from = variables_in_keras_order(first, weights),
                          to = variables_in_keras_order(second, loaded);
    ASSERT_EQ(from.size(), to.size());
    for (std::size_t i = 0; i < from.size(); ++i) {
      ASSERT_EQ(from[i].dtype(), to[i].dtype());
      to[i].assign(from[i].read());
    }
    for (int step = 4; step <= 6; ++step) {
      first.apply_gradients(gradients_at(step), weights);
      second.apply_gradients(gradients_at(step), loaded);
    }
    for (std::size_t i = 0; i < weights.size(); ++i)
      EXPECT_EQ(weights[i].read().to_vector<float>(), loaded[i].read().to_vector<float>());
  }
}

TEST(OptimizerVariables, OfAnOptimizerOfYourOwnStandAsTheyWereMade) {
  struct Own : CustomOptimizer {
    Own() : CustomOptimizer("own", 0.5, {.use_ema = true}) {}
    void build(const Variable& variable) override { slot(variable, "first"); }
    void update_step(const Tensor& gradient, const Variable& variable, const Tensor& rate) override {
      slot(variable, "second").assign_add(gradient);
      variable.assign_sub(rate * gradient);
    }
  };
  auto names = [](const std::vector<Variable>& variables) {
    std::vector<std::string> out;
    for (const Variable& variable : variables) out.push_back(variable.name());
    return out;
  };
  Optimizer optimizer = std::make_shared<Own>();
  std::vector<Variable> weights = two_weights();
  EXPECT_EQ(names(variables_in_keras_order(optimizer, weights)),
            (std::vector<std::string>{"own/iterations", "own/learning_rate", "own/kernel/average", "own/bias/average",
                                      "own/kernel/first", "own/bias/first"}));
  optimizer.apply_gradients(gradients_at(1), weights);
  EXPECT_EQ(names(variables_in_keras_order(optimizer, weights)),
            (std::vector<std::string>{"own/iterations", "own/learning_rate", "own/kernel/average", "own/bias/average",
                                      "own/kernel/first", "own/bias/first", "own/kernel/second", "own/bias/second"}));
}

TEST(OptimizerVariables, OfNoVariablesAreTheOptimizersOwn) {
  EXPECT_EQ(variables_in_keras_order(Adam(), {}).size(), 2U);
  EXPECT_EQ(variables_in_keras_order(Nadam(), {}).size(), 3U);
  EXPECT_EQ(variables_in_keras_order(LossScaleOptimizer(Adam()), {}).size(), 6U);
}

}  // namespace
}  // namespace stet::keras
