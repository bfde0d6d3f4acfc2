// What compile() was given, as Keras writes it into a model's config and back.
#include "stet/keras/compile_config.h"

#include <gtest/gtest.h>

#include "object_configs.h"
#include "stet/stet.h"

namespace stet::keras {
namespace {

CompileOptions read(const Json& config, const std::vector<std::string>& outputs) {
  const files::Reading file = a_file();
  Fields::Place place{.reading = &file, .call = {}, .where = {}};
  CompileOptions options = compile_from_config(config, outputs, place);
  EXPECT_TRUE(place.path.empty());
  return options;
}
Json written(const CompileOptions& options) {
  Fields::Place place{.call = "save", .where = {}};
  Json config = compile_to_config(options, place);
  EXPECT_TRUE(place.path.empty());
  return config;
}
Json parsed(const std::string& text) { return files::parse_json(text, files::Reading{"test", "test", {}}); }

/// What Keras says otherwise of the same: as it is written here.
Json as_here(Json config, std::size_t number) {
  config["jit_compile"] = "auto";  // there is nothing else here
  // Functions of Keras's are their names.
  if (number == 3) {
    config["loss"] = "mean_squared_error";
    config["metrics"] = Json::List{"mean_absolute_error", "acc"};
  }
  // Lists of lists, in the order of outputs, are lists by name; of one output, a list.
  if (number == 5) config["metrics"] = Json::List{"mse", "mae"};
  if (number == 7) config["metrics"] = parsed(R"({"first": ["mse"], "second": ["mae"]})");
  if (number == 8) config["metrics"] = parsed(R"({"first": ["mse", "mae"], "second": []})");
  if (number == 9) config["metrics"] = parsed(R"({"first": ["mse", "mae"], "second": []})");
  if (number == 9) config["weighted_metrics"] = parsed(R"({"first": [], "second": ["mse"]})");
  // One metric of an output is a list of one.
  if (number == 10) config["metrics"]["second"] = Json::List{"mae"};
  return config;
}

TEST(CompileConfig, IsReadAsKerasWroteItAndWrittenAgain) {
  const Json all = stored_json("object_configs.json");
  const Json::List& stored = *all.find("compile")->if_list();
  ASSERT_EQ(stored.size(), 12U);
  for (std::size_t i = 0; i < stored.size(); ++i) {
    SCOPED_TRACE(files::to_text(stored[i]));
    std::vector<std::string> outputs;
    for (const Json& name : *stored[i].find("outputs")->if_list()) outputs.push_back(*name.if_string());
    CompileOptions options = read(*stored[i].find("config"), outputs);
    Json config = written(options);
    EXPECT_TRUE(same_config(config, as_here(*stored[i].find("config"), i)));
    EXPECT_EQ(written(read(config, outputs)), config);
    // It compiles a model with such outputs.
    KerasTensor x = Input({2}, {.name = "x"});
    std::vector<KerasTensor> results;
    for (const std::string& name : outputs) results.push_back(Dense(2, {.name = name})(x));
    Model({x}, results).compile(options);
  }
}

/// For tests/oracle/keras/check_written_configs.py, which has Keras read them.
TEST(CompileConfig, DISABLED_WriteForKeras) {
  const Json all = stored_json("object_configs.json");
  Json::List out;
  for (const Json& stored : *all.find("compile")->if_list()) {
    std::vector<std::string> outputs;
    for (const Json& name : *stored.find("outputs")->if_list()) outputs.push_back(*name.if_string());
    out.push_back(Json::Object{{"outputs", *stored.find("outputs")},
                               {"given", *stored.find("config")},
                               {"config", written(read(*stored.find("config"), outputs))}});
  }
  std::ofstream("written_compile_configs.json") << files::to_text(out);
}

TEST(CompileConfig, KeepsWhatWasGivenForEveryOutput) {
  CompileOptions options{.optimizer = SGD(0.5),
                         .loss = {{"a", losses::Huber({.delta = 2})}, {"b", Loss()}},
                         .loss_weights = {{"a", 0.5}},
                         .metrics = {{"a", {"mse", metrics::AUC("area")}}},
                         .weighted_metrics = {{"b", {metrics::Precision("p")}}},
                         .run_eagerly = true,
                         .steps_per_execution = 4};
  CompileOptions again = read(written(options), {"a", "b"});
  ASSERT_EQ(again.loss.by_name().size(), 2U);
  EXPECT_EQ(again.loss.by_name()[0].loss.name(), "huber_loss");
  EXPECT_FALSE(again.loss.by_name()[1].loss.defined());
  EXPECT_EQ(again.loss_weights.by_name()[0].weight, 0.5);
  ASSERT_EQ(again.metrics.by_name()[0].metrics.size(), 2U);
  EXPECT_EQ(again.metrics.by_name()[0].metrics[1].name(), "area");
  EXPECT_EQ(again.weighted_metrics.by_name()[0].output, "b");
  EXPECT_TRUE(again.run_eagerly);
  EXPECT_EQ(again.steps_per_execution, 4);
  EXPECT_EQ(again.optimizer.learning_rate().read().item<float>(), 0.5F);
}

TEST(CompileConfig, ALoadedModelTrainsAsTheOneThatWasSaved) {
  auto train = [](const CompileOptions& options) {
    Sequential model({Dense(3, {.activation = "softmax", .kernel_initializer = "ones"})});
    model.compile(options);
    Tensor x = reshape(cast(sin(arange(24)), f32), {8, 3}), y = arange(8) % 3;
    return model.fit(x, y, {.epochs = 2, .verbose = 0, .shuffle = false}).values;
  };
  auto options = [] {
    return CompileOptions{.optimizer = Adam(schedules::ExponentialDecay(0.1, 2, 0.5), {.clipnorm = 1}),
                          .loss = "sparse_categorical_crossentropy",
                          .metrics = {"accuracy", metrics::SparseTopKCategoricalAccuracy({.k = 2})}};
  };
  EXPECT_EQ(train(options()), train(read(written(options()), {})));
}

TEST(CompileConfig, WhatIsMadeFromCodeIsNoPartOfAFile) {
  auto refused = [](const CompileOptions& options) {
    try {
      written(options);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  struct Own : CustomOptimizer {
    Own() : CustomOptimizer("own", 0.5) {}
    void update_step(const Tensor&, const Variable&, const Tensor&) override {}
  };
  const std::string advice = "\n  fix: a file holds no code: use a class of Keras's, or save the weights alone";
  auto function = [](Tensor a, Tensor b) { return square(a - b); };
  EXPECT_EQ(refused({.optimizer = std::make_shared<Own>()}),
            "save: optimizer: optimizer 'own' is made from code of your own" + advice);
  EXPECT_EQ(refused({.optimizer = SGD([](const Tensor& step) { return cast(step, f32); })}),
            "save: optimizer: its learning_rate is made from code of your own" + advice);
  EXPECT_EQ(refused({.optimizer = LossScaleOptimizer(std::make_shared<Own>())}),
            "save: optimizer: its inner_optimizer is made from code of your own" + advice);
  EXPECT_EQ(refused({.loss = Loss(function, {.name = "mine"})}),
            "save: loss: the loss 'mine' is made from code of your own" + advice);
  EXPECT_EQ(refused({.loss = {{"a", Loss(function)}}}),
            "save: loss, 'a': the loss 'loss_function' is made from code of your own" + advice);
  EXPECT_EQ(refused({.metrics = {Metric("mine", function)}}),
            "save: metrics: the metric 'mine' is made from code of your own" + advice);
  EXPECT_EQ(refused({.weighted_metrics = {{"a", {metrics::MeanMetricWrapper(function)}}}}),
            "save: weighted_metrics, 'a': the metric 'mean_metric_wrapper' is made from code of your own" + advice);
}

TEST(CompileConfig, WrongOnesSayWhatStandsWhere) {
  auto refused = [](const std::string& text, std::vector<std::string> outputs = {}) {
    try {
      read(parsed(text), outputs);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  const std::string file = "load_model: 'm.keras': compile_config",
                    again = "\n  fix: write the file again, with the library that it comes from";
  EXPECT_EQ(refused("[]"), file + ": a list stands where an object should stand" + again);
  EXPECT_EQ(refused("{}"), file + ": it has no 'optimizer'" + again);
  EXPECT_EQ(refused(R"({"optimizer": 3})"),
            file +
                ", optimizer: an optimizer is an integer where an object with 'class_name' and 'config' should stand" +
                again);
  EXPECT_TRUE(refused(R"({"optimizer": "adamm"})")
                  .starts_with(file + ", optimizer: there is no optimizer 'adamm'\n  fix: one of adadelta, adafactor"))
      << refused(R"({"optimizer": "adamm"})");
  EXPECT_TRUE(refused(R"({"optimizer": "adam", "loss": ["mse", "nse"]})")
                  .starts_with(file + ", loss, [1]: there is no loss 'nse'\n  fix: one of mean_squared_error (mse)"))
      << refused(R"({"optimizer": "adam", "loss": ["mse", "nse"]})");
  EXPECT_EQ(refused(R"({"optimizer": "adam", "loss": 1})"),
            file + ", loss: an integer stands where a loss, a list of losses or losses by output should stand" + again);
  EXPECT_EQ(refused(R"({"optimizer": "adam", "loss_weights": {"a": "b"}})"),
            file + ", loss_weights, 'a': a string stands where a number should stand" + again);
  EXPECT_EQ(refused(R"({"optimizer": "adam", "metrics": "mse"})"),
            file + ", metrics: a string stands where a list of metrics, or metrics by output should stand" + again);
  EXPECT_EQ(refused(R"({"optimizer": "adam", "metrics": [["mse", ["mse"]]]})"),
            file + ", metrics, [0], [1]: a list stands where a metric should stand" + again);
  EXPECT_EQ(refused(R"({"optimizer": "adam", "metrics": ["mse"]})", {"a", "b"}),
            file + ", metrics: there are metrics for 1 outputs, and the model has 2" + again);
  EXPECT_EQ(refused(R"({"optimizer": "adam", "steps_per_execution": 0})"),
            file + ": its 'steps_per_execution' is 0\n  fix: it is 1 or more");
  EXPECT_EQ(refused(R"({"optimizer": "adam", "callbacks": ["a"]})"),
            file +
                ": 'callbacks' is given, which compile_config does not have here\n  fix: save the model without "
                "it; or load the weights alone, into a model made here");
}

}  // namespace
}  // namespace stet::keras
