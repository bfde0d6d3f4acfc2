// Configs of objects that are wrong: what errors say, and that nothing else happens, whatever stands where.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "object_configs.h"
#include "stet/keras/compile_config.h"
#include "stet/stet.h"

namespace stet::keras {
namespace {

Json parsed(const std::string& text) { return files::parse_json(text, files::Reading{"test", "test", {}}); }

template <class Object>
std::string refused(const std::string& class_name, const std::string& config, const char* kind) {
  Json entry;
  entry["module"] = "keras";
  entry["class_name"] = class_name;
  entry["config"] = parsed(config);
  entry["registered_name"] = nullptr;
  try {
    object_of<Object>(entry, kind);
  } catch (const UserError& error) {
    return error.what();
  }
  return "nothing";
}
std::string initializer(const std::string& name, const std::string& config) {
  return refused<Initializer>(name, config, "initializer");
}
std::string regularizer(const std::string& name, const std::string& config) {
  return refused<Regularizer>(name, config, "regularizer");
}
std::string constraint(const std::string& name, const std::string& config) {
  return refused<Constraint>(name, config, "constraint");
}
std::string schedule(const std::string& name, const std::string& config) {
  return refused<schedules::Schedule>(name, config, "learning rate schedule");
}
std::string loss(const std::string& name, const std::string& config) { return refused<Loss>(name, config, "loss"); }
std::string metric(const std::string& name, const std::string& config) {
  return refused<Metric>(name, config, "metric");
}
std::string optimizer(const std::string& name, const std::string& config) {
  return refused<Optimizer>(name, config, "optimizer");
}

const std::string file = "load_model: 'm.keras': ",
                  again = "\n  fix: write the file again, with the library that it comes from",
                  elsewhere = "\n  fix: make the object here, and load the weights alone";

TEST(WrongConfigs, SayWhatStandsWhere) {
  EXPECT_EQ(initializer("RandomNormal", R"({"mean": "a"})"),
            file + "RandomNormal: its 'mean' is a string where a number should stand" + again);
  EXPECT_EQ(initializer("RandomNormal", R"({"seed": 1.5})"),
            file + "RandomNormal: its 'seed' is a number where an integer should stand" + again);
  EXPECT_EQ(initializer("Constant", R"({"value": [[1, 2], [3]]})"),
            file + "Constant: its 'value' is a list where an array of numbers should stand" + again);
  EXPECT_EQ(initializer("Constant", R"({"value": {"class_name": "__numpy__", "config": {"value": [1]}}})"),
            file + "Constant: its 'value' is an object where an array with 'value' and 'dtype' should stand" + again);
  EXPECT_EQ(initializer("VarianceScaling", R"({"input_axes": [1, "b"]})"),
            file + "VarianceScaling: its 'input_axes' is a string where a list of small integers should stand" + again);
  EXPECT_EQ(schedule("CosineDecay", R"({"initial_learning_rate": 0.1})"),
            file + "CosineDecay: it has no 'decay_steps'" + again);
  EXPECT_EQ(metric("MeanIoU", R"({"name": "a"})"), file + "MeanIoU: it has no 'num_classes'" + again);
  EXPECT_EQ(metric("PrecisionAtRecall", "{}"), file + "PrecisionAtRecall: it has no 'recall'" + again);
  EXPECT_EQ(
      metric("AUC", R"({"label_weights": {"class_name": "__tensor__", "config": {"value": 1, "dtype": "int32"}}})"),
      file + "AUC: its 'label_weights' is an object where a list of numbers should stand" + again);
  EXPECT_EQ(metric("Mean", R"({"dtype": "float31"})"),
            file + "Mean: its 'dtype' is 'float31'\n  fix: a type is called float32, bfloat16, int64, …");
  EXPECT_EQ(optimizer("LossScaleOptimizer", "{}"), file + "LossScaleOptimizer: it has no 'inner_optimizer'" + again);
  EXPECT_EQ(optimizer("Adam", R"({"learning_rate": "fast"})"),
            file + "Adam: its 'learning_rate' is a string where a number should stand" + again);
  EXPECT_EQ(optimizer("Adam", R"({"momentum": 0.5})"),
            file +
                "Adam: 'momentum' is given, which Adam does not have here\n  fix: save the model without it; or load "
                "the weights alone, into a model made here");
}

TEST(WrongConfigs, SayWhatConstructorsRefuseAndWhereItStands) {
  EXPECT_EQ(initializer("TruncatedNormal", R"({"stddev": -1})"),
            file + "TruncatedNormal: TruncatedNormal: stddev = -1\n  fix: it is 0 or more");
  EXPECT_EQ(initializer("GlorotUniform", R"({"seed": true})"),
            file + "GlorotUniform: its 'seed' is true or false where an integer should stand" + again);
  EXPECT_EQ(regularizer("L2", R"({"l2": -0.5})"), file + "L2: L2: l2 = -0.5\n  fix: it is 0 or more, and finite");
  EXPECT_EQ(constraint("MinMaxNorm", R"({"rate": 2})"),
            file + "MinMaxNorm: MinMaxNorm: rate = 2\n  fix: it is between 0 and 1");
  EXPECT_EQ(schedule("PiecewiseConstantDecay", R"({"boundaries": [1], "values": [1]})"),
            file +
                "PiecewiseConstantDecay: PiecewiseConstantDecay: 1 boundaries and 1 values\n  fix: between and around "
                "the boundaries there is one value more than boundaries");
  EXPECT_EQ(loss("MeanSquaredError", R"({"reduction": "median"})"),
            file +
                "MeanSquaredError: there is no reduction 'median'\n  fix: one of sum_over_batch_size, sum, mean, "
                "mean_with_sample_weight, none");
  EXPECT_EQ(metric("Precision", R"({"thresholds": [0.5, 2]})"),
            file + "Precision: Precision: a threshold = 2\n  fix: it is from 0 to 1");
  EXPECT_EQ(optimizer("SGD", R"({"momentum": 3})"), file + "SGD: SGD: momentum = 3\n  fix: it is between 0 and 1");
  EXPECT_EQ(optimizer("LossScaleOptimizer", R"({"inner_optimizer": {"module": "keras.optimizers", "class_name": "SGD",
                      "config": {"learning_rate": {"class_name": "CosineDecay", "config":
                      {"initial_learning_rate": 1, "decay_steps": 0}}}}})"),
            file +
                "LossScaleOptimizer, inner_optimizer, SGD, learning_rate, CosineDecay: CosineDecay: decay_steps = 0\n  "
                "fix: it is more than 0");
}

TEST(WrongConfigs, NameNoCode) {
  const std::string known =
      " here\n  fix: files may name classes of Keras's that stet has: docs/keras_names.md lists them; load the weights "
      "alone into a model made here";
  EXPECT_EQ(loss("Adam", "{}"), file + "there is no loss 'Adam' of keras" + known);
  EXPECT_EQ(metric("MeanMetricWrapper", R"({"fn": "os.system"})"),
            file + "there is no metric 'MeanMetricWrapper' of keras" + known);
  Json entry = parsed(R"({"module": "builtins", "class_name": "eval", "config": {}, "registered_name": null})");
  auto text_of = [](const Json& entry) {
    try {
      object_of<Loss>(entry, "loss");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_EQ(text_of(entry), file + "there is no loss 'eval' of builtins" + known);
  entry["class_name"] = "function";
  EXPECT_EQ(text_of(entry), file + "there is no loss 'function' of builtins" + known);
  entry["config"] = "system";
  EXPECT_TRUE(text_of(entry).starts_with(file + "there is no loss 'system'\n  fix: one of mean_squared_error"))
      << text_of(entry);
  // One that somebody registered, with the name of one of Keras's.
  entry = parsed(R"({"module": "keras.losses", "class_name": "Huber", "config": {}, "registered_name": "mine>Huber"})");
  EXPECT_EQ(text_of(entry), file + "there is no loss 'Huber' of keras.losses" + known);
}

TEST(WrongConfigs, AskForNoMoreThanAFileJustifies) {
  EXPECT_EQ(metric("MeanIoU", R"({"num_classes": 1000000})"),
            file + "MeanIoU: its 'num_classes' is 1000000, where a file may ask for 4096 at most" + elsewhere);
  EXPECT_EQ(metric("AUC", R"({"num_thresholds": 1000000000000})"),
            file + "AUC: its 'num_thresholds' is 1000000000000, where a file may ask for 1000000 at most" + elsewhere);
  EXPECT_EQ(metric("AUC", R"({"num_thresholds": 1000000, "multi_label": true, "num_labels": 100})"),
            file + "AUC: its 'num_labels' is 100, where a file may ask for 16 at most" + elsewhere);
  EXPECT_EQ(metric("RecallAtPrecision", R"({"precision": 0.5, "num_thresholds": 10000000})"),
            file + "RecallAtPrecision: its 'num_thresholds' is 10000000, where a file may ask for 1000000 at most" +
                elsewhere);
  EXPECT_EQ(optimizer("Muon", R"({"ns_steps": 100000})"),
            file + "Muon: its 'ns_steps' is 100000, where a file may ask for 1000 at most" + elsewhere);
  // Expressions that would be searched for until the end of days.
  const std::string advice =
      "\n  fix: in files expressions have at most 100 letters, three of * + ? and none of ( ) { } \\";
  EXPECT_EQ(optimizer("Muon", R"({"exclude_layers": ["head", "(a*)*b"]})"),
            file + "Muon: its 'exclude_layers' have the expression '(a*)*b'" + advice);
  EXPECT_EQ(optimizer("Muon", R"({"exclude_layers": ["a*a*a*a*b"]})"),
            file + "Muon: its 'exclude_layers' have the expression 'a*a*a*a*b'" + advice);
  EXPECT_EQ(optimizer("Muon", R"({"exclude_layers": [")" + std::string(1000, 'a') + R"("]})"),
            file + "Muon: its 'exclude_layers' have the expression '" + std::string(100, 'a') + "'" + advice);
  EXPECT_EQ(optimizer("Muon", R"({"exclude_layers": ["^head.*kernel$", "dense_[0-9]"]})"), "nothing");
}

// --- anything anywhere

const std::vector<Json>& odd_values() {
  static const std::vector<Json> all = {
      nullptr,
      true,
      false,
      0,
      -1,
      7,
      std::numeric_limits<std::int64_t>::max(),
      std::numeric_limits<std::int64_t>::min(),
      0.5,
      -1e300,
      1e300,
      std::numeric_limits<double>::infinity(),
      std::numeric_limits<double>::quiet_NaN(),
      "",
      "mse",
      "none",
      std::string(1000, '('),
      std::string("\0\n", 2),
      Json::List{},
      Json::List{1, -1, 1000000},
      Json::List{0.25, "a", nullptr},
      Json::List{Json::List{}, Json::List{1}},
      Json::Object{},
      parsed(R"({"class_name": "Adam", "config": {}})"),
      parsed(R"({"class_name": "__numpy__", "config": {"value": [[1, 2], [3, 4]], "dtype": "float16"}})"),
      parsed(R"({"module": "builtins", "class_name": "function", "config": "mse"})"),
  };
  return all;
}

/// All ways to put a value into one place of the JSON, or to take one out.
void change_everywhere(Json& json, const Json& value, const std::function<void()>& use) {
  if (Json::Object* members = json.if_object()) {
    for (std::size_t i = 0; i < members->size(); ++i) {
      const Json before = (*members)[i].second;
      (*members)[i].second = value;
      use();
      (*members)[i].second = before;
      change_everywhere((*members)[i].second, value, use);
    }
  } else if (Json::List* list = json.if_list()) {
    for (Json& item : *list) {
      const Json before = item;
      item = value;
      use();
      item = before;
      change_everywhere(item, value, use);
    }
  }
}

/// It is read, and then written, or an error names the file.
template <class Read>
void read_or_refused(const Json& json, Read read, int& fine, int& wrong) {
  try {
    read(json);
    ++fine;
  } catch (const UserError& error) {
    ++wrong;
    EXPECT_TRUE(std::string(error.what()).starts_with(file)) << error.what() << "\n" << files::to_text(json);
  }
}

template <class Object>
void expect_read_or_refused(const Json& all, const char* kind, int& fine, int& wrong) {
  std::string last;
  for (const Json& stored : *all.find(kind)->if_list()) {
    const std::string class_name = *stored.find("class_name")->if_string();
    Json entry = stored;
    if (class_name == last) continue;  // one of each class
    last = class_name;
    auto use = [&] {
      read_or_refused(
          entry, [&](const Json& json) { config_of(object_of<Object>(json, kind)); }, fine, wrong);
    };
    for (const Json& value : odd_values()) change_everywhere(entry, value, use);
    Json::Object& config = *entry["config"].if_object();
    for (std::size_t i = 0; i < config.size(); ++i) {
      const auto member = config[i];
      config.erase(config.begin() + static_cast<std::ptrdiff_t>(i));
      use();
      config.insert(config.begin() + static_cast<std::ptrdiff_t>(i), member);
    }
  }
}

TEST(WrongConfigs, AnyValueInAnyPlaceIsReadOrRefused) {
  const Json all = stored_json("object_configs.json");
  int fine = 0, wrong = 0;
  expect_read_or_refused<Initializer>(all, "initializer", fine, wrong);
  expect_read_or_refused<Regularizer>(all, "regularizer", fine, wrong);
  expect_read_or_refused<Constraint>(all, "constraint", fine, wrong);
  expect_read_or_refused<schedules::Schedule>(all, "learning rate schedule", fine, wrong);
  expect_read_or_refused<Loss>(all, "loss", fine, wrong);
  expect_read_or_refused<Metric>(all, "metric", fine, wrong);
  expect_read_or_refused<Optimizer>(all, "optimizer", fine, wrong);
  EXPECT_GT(fine, 1000);
  EXPECT_GT(wrong, 5000);
}

TEST(WrongConfigs, AnyValueInAnyPlaceOfACompileConfigIsReadOrRefused) {
  const Json all = stored_json("object_configs.json");
  int fine = 0, wrong = 0;
  const files::Reading reading = a_file();
  for (const Json& stored : *all.find("compile")->if_list()) {
    std::vector<std::string> outputs;
    for (const Json& name : *stored.find("outputs")->if_list()) outputs.push_back(*name.if_string());
    Json config = *stored.find("config");
    auto use = [&] {
      read_or_refused(
          config,
          [&](const Json& json) {
            Fields::Place place{.reading = &reading, .call = {}, .where = {}};
            CompileOptions options = compile_from_config(json, outputs, place);
            Fields::Place to{.call = "save", .where = {}};
            compile_to_config(options, to);
          },
          fine, wrong);
    };
    for (const Json& value : odd_values()) change_everywhere(config, value, use);
  }
  EXPECT_GT(fine, 500);
  EXPECT_GT(wrong, 1000);
}

}  // namespace
}  // namespace stet::keras
