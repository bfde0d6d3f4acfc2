// Layers to configs and back: every layer of the library, what Keras itself wrote, and what is wrong with a file.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "stet/keras/config.h"
#include "stet/stet.h"
#include "tests/public/expect_error.h"
#include "tests/public/keras_layer_table.h"

namespace stet::keras {
namespace {

using files::parse_json;
using files::to_text;
using layer_table::given;
using layer_table::LayerRow;

Fields::Place writing() { return {.call = "save", .where = Where::here()}; }
const files::Reading from_file{"load_model", "m.keras/config.json", {"user.cpp", 7}};
Fields::Place reading() { return {.reading = &from_file, .call = "", .where = from_file.where}; }

Json written(const Layer& layer) {
  Fields::Place place = writing();
  return to_config(layer, place);
}
Layer read(const Json& entry) {
  Fields::Place place = reading();
  return layer_from_config(entry, place);
}
Json json(const std::string& text) { return parse_json(text, from_file); }

// --- every layer

/// Those that have no config, and why.
const std::map<std::string, std::string> without_config = {
    {"Lambda", "it is code"},
    {"Sequential", "models are tested with files"},
    {"Model", "models are tested with files"},
};

class LayerConfig : public ::testing::TestWithParam<LayerRow> {};

TEST_P(LayerConfig, MakesTheSameLayerAgain) {
  const LayerRow& row = GetParam();
  if (without_config.contains(row.class_name)) GTEST_SKIP() << without_config.at(row.class_name);
  random::seed(5);
  const Layer layer = row.make();
  const Tensors inputs = given(row, 0), expected = layer.call_many(inputs);
  const Json config = written(layer);
  EXPECT_EQ(*config.find("class_name"), Json(row.class_name));
  EXPECT_EQ(json(to_text(config)), config) << "as a text";
  const Layer again = read(json(to_text(config)));
  EXPECT_EQ(again.name(), layer.name());
  again.call_many(inputs);  // makes the weights
  again.set_weights(layer.get_weights());
  EXPECT_EQ(to_text(written(again), true), to_text(config, true));
  for (std::size_t round : {0u, 3u}) {
    const Tensors some = given(row, round), before = layer.call_many(some), now = again.call_many(some);
    ASSERT_EQ(now.size(), before.size());
    for (std::size_t i = 0; i < now.size(); ++i) {
      ASSERT_EQ(now[i].dtype(), before[i].dtype());
      ASSERT_EQ(now[i].shape().sizes(), before[i].shape().sizes());
      EXPECT_TRUE(all(now[i] == before[i]).item<bool>()) << "result " << i << " in round " << round;
    }
  }
}

TEST_P(LayerConfig, KeepsWhetherItIsTrained) {
  if (without_config.contains(GetParam().class_name)) GTEST_SKIP() << without_config.at(GetParam().class_name);
  const Layer layer = GetParam().make();
  layer.set_trainable(false);
  const Json config = written(layer);
  if (!config.find("config")->find("trainable")) GTEST_SKIP() << "Keras's has no such argument";
  const Layer again = read(config);
  EXPECT_FALSE(again.trainable());
  EXPECT_EQ(written(again), config);
}

INSTANTIATE_TEST_SUITE_P(Keras, LayerConfig, ::testing::ValuesIn(layer_table::rows()),
                         [](const auto& row) { return row.param.class_name; });

TEST(LayerConfigs, ClassesOfFilesAreThoseOfTheTable) {
  std::set<std::string> rows;
  for (const LayerRow& row : layer_table::rows()) rows.insert(row.class_name);
  rows.insert("InputLayer");
  for (const auto& [name, entry] : Registry<Layer>::entries()) {
    if (std::string(entry.module) != "keras.layers") continue;  // models
    EXPECT_TRUE(rows.contains(name) || name == "StringLookup" || name == "TextVectorization") << name;
  }
  for (const std::string& name : rows)
    if (!without_config.contains(name)) {
      EXPECT_TRUE(Registry<Layer>::entries().contains(name)) << name;
    }
}

// --- what Keras wrote

std::vector<Json> from_keras() {
  std::filesystem::path path = std::filesystem::path(__FILE__).parent_path() / "../oracle/keras/layer_configs.json";
  if (!std::filesystem::exists(path)) path = "tests/oracle/keras/layer_configs.json";
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  return *json(text).if_list();
}

/// Members of Keras's that are not written, with the one value that they may have.
struct LeftOut {
  const char *class_name, *member, *value, *why;
};
const LeftOut left_out[] = {
    {"", "quantization_config", "null", "newer versions have it, and older ones refuse it"},
    {"", "input_axes", "null", "the same"},
    {"", "output_axes", "null", "the same"},
    {"BatchNormalization", "renorm", "false", "the same"},
    {"BatchNormalization", "renorm_clipping", "null", "the same"},
    {"BatchNormalization", "renorm_momentum", "0.99", "the same"},
    {"MultiHeadAttention", "use_gate", "false", "the same"},
    {"MultiHeadAttention", "sliding_window", "null", "the same"},
    {"GroupQueryAttention", "use_gate", "false", "the same"},
    {"GroupQueryAttention", "sliding_window", "null", "the same"},
    {"InputLayer", "ragged", "false", "the same"},
    {"InputLayer", "optional", "false", "the same"},
    {"IntegerLookup", "vocabulary_size", "", "the vocabulary tells"},
};
/// What is written and Keras leaves out.
const LeftOut besides[] = {
    {"SimpleRNN", "seed", "", "Keras forgets it, and takes it"},
};

bool may_miss(const LeftOut* begin, const LeftOut* end, const std::string& class_name, const Json::Member& member) {
  return std::any_of(begin, end, [&](const LeftOut& one) {
    return member.first == one.member && (!*one.class_name || class_name == one.class_name) &&
           (!*one.value || to_text(member.second) == one.value);
  });
}

/// The name of a dtype policy, which Keras writes in two forms.
Json plain_policy(const Json& value) {
  const Json* kind = value.find("class_name");
  return kind && *kind == Json("DTypePolicy") ? *value.find("config")->find("name") : value;
}
std::optional<double> number(const Json& value) {
  if (const std::int64_t* integer = value.if_integer()) return static_cast<double>(*integer);
  if (const double* real = value.if_real()) return *real;
  return std::nullopt;
}

/// Where they differ; empty: nowhere. Members of objects may have any order, and 3 is 3.0.
std::string difference(const Json& expected, const Json& found, const std::string& class_name, const std::string& at) {
  const Json a = plain_policy(expected), b = plain_policy(found);
  if (number(a) && number(b)) return *number(a) == *number(b) ? "" : at + ": " + to_text(a) + ", " + to_text(b);
  if (a.if_list() && b.if_list() && a.if_list()->size() == b.if_list()->size()) {
    for (std::size_t i = 0; i < a.if_list()->size(); ++i)
      if (std::string inner = difference((*a.if_list())[i], (*b.if_list())[i], class_name, at + "[]"); !inner.empty())
        return inner;
    return "";
  }
  if (!a.if_object() || !b.if_object()) return a == b ? "" : at + ": " + to_text(a) + ", " + to_text(b);
  const Json* named = a.find("class_name");
  const std::string inside = named && named->if_string() ? *named->if_string() : class_name;
  for (const auto& member : *a.if_object()) {
    const Json* other = b.find(member.first);
    if (!other && may_miss(std::begin(left_out), std::end(left_out), inside, member)) continue;
    if (!other) return at + "." + member.first + " is missing: " + to_text(member.second);
    if (std::string inner = difference(member.second, *other, inside, at + "." + member.first); !inner.empty())
      return inner;
  }
  for (const auto& member : *b.if_object())
    if (!a.find(member.first) && !may_miss(std::begin(besides), std::end(besides), inside, member))
      return at + "." + member.first + " is new: " + to_text(member.second);
  return "";
}

/// What is read otherwise than it stands there, and so written otherwise.
void change_what_is_known_to_change(Json& entry) {
  const Json name = *entry.find("class_name");
  Json& config = entry["config"];
  // A number of samples is no limit here.
  if (name == Json("InputLayer")) (*config["batch_shape"].if_list())[0] = nullptr;
  // null is -1.
  if (name == Json("Reshape"))
    for (Json& size : *config["target_shape"].if_list())
      if (size.is_null()) size = -1;
}

TEST(LayerConfigs, OfKerasAreReadAndWrittenAsTheyWere) {
  std::set<std::string> seen;
  for (Json entry : from_keras()) {
    const std::string& name = *entry.find("class_name")->if_string();
    if (name == "StringLookup" || name == "TextVectorization") continue;  // below
    seen.insert(name);
    Layer layer;
    ASSERT_NO_THROW(layer = read(entry)) << to_text(entry);
    change_what_is_known_to_change(entry);
    EXPECT_EQ(difference(entry, written(layer), "", name), "") << to_text(entry) << "\n" << to_text(written(layer));
  }
  for (const auto& [name, make] : Registry<Layer>::entries())
    if (!without_config.contains(name) && std::string(make.module) == "keras.layers" && name != "StringLookup" &&
        name != "TextVectorization") {
      EXPECT_TRUE(seen.contains(name)) << "make_layer_configs.py has no " << name;
    }
}

/// For check_layer_configs.py: that Keras reads what is written.
TEST(LayerConfigs, DISABLED_AreWrittenForKeras) {
  std::ofstream file("layer_configs_of_stet.json");
  const char* between = "[\n";
  auto add = [&](const Layer& layer) {
    file << between << to_text(written(layer));
    between = ",\n";
  };
  for (const Json& entry : from_keras())
    if (const Json& name = *entry.find("class_name"); name != Json("StringLookup") && name != Json("TextVectorization"))
      add(read(entry));
  for (const LayerRow& row : layer_table::rows())
    if (!without_config.contains(row.class_name)) add(row.make());
  file << "\n]\n";
}

// --- what changes after a layer was made

TEST(LayerConfigs, HaveWhatAdaptFound) {
  Discretization bins({.num_bins = 3, .epsilon = 0.1, .output_mode = "one_hot"});
  EXPECT_TRUE(written(bins).find("config")->find("bin_boundaries")->is_null());
  bins.adapt(tensor({1.f, 2.f, 3.f, 4.f, 5.f, 6.f}));
  const Discretization again = Discretization::from_body(read(written(bins)).body());
  EXPECT_EQ(again.bin_boundaries(), bins.bin_boundaries());
  EXPECT_EQ(written(again), written(bins));
  EXPECT_NO_THROW(again.adapt(tensor({1.f, 2.f})));  // it may find others

  IntegerLookup lookup({.output_mode = "tf_idf"});
  EXPECT_TRUE(written(lookup).find("config")->find("vocabulary")->is_null());
  EXPECT_NO_THROW(read(written(lookup)));
  lookup.adapt(tensor({7, 7, 7, 9, 9, 4}));
  const Json config = written(lookup);
  EXPECT_EQ(to_text(*config.find("config")->find("vocabulary")), "[7, 9, 4]");
  const IntegerLookup same = IntegerLookup::from_body(read(config).body());
  EXPECT_EQ(same.get_vocabulary(), lookup.get_vocabulary());
  const Tensor x = tensor({{4, 7, 7}, {1, 9, 2}});
  const std::vector<float> before = lookup(x).to_vector<float>(), now = same(x).to_vector<float>();
  for (std::size_t i = 0; i < now.size(); ++i) EXPECT_FLOAT_EQ(now[i], before[i]);
}

TEST(LayerConfigs, HaveNoPathsOfVocabularies) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "layer_config_vocabulary.txt";
  std::ofstream(path) << "5\n3\n";
  const IntegerLookup lookup({.vocabulary = path.string()});
  std::filesystem::remove(path);
  EXPECT_EQ(to_text(*written(lookup).find("config")->find("vocabulary")), "[5, 3]");
}

TEST(LayerConfigs, HaveTheNameAndTheStateOfNow) {
  Dense layer(3, {.name = "mine"});
  EXPECT_EQ(*written(layer).find("config")->find("name"), Json("mine"));
  EXPECT_EQ(*written(layer).find("config")->find("trainable"), Json(true));
  layer.set_trainable(false);
  EXPECT_EQ(*written(layer).find("config")->find("trainable"), Json(false));
}

TEST(LayerConfigs, OfLayersInsideAreKept) {
  LSTM frozen(3, {.return_sequences = true, .name = "lstm"});
  frozen.set_trainable(false);
  const Bidirectional both(frozen, {.merge_mode = "none"});
  const Json config = written(both), &inner = *config.find("config");
  EXPECT_TRUE(inner.find("merge_mode")->is_null());
  const Json &forward = *inner.find("layer")->find("config"), &backward = *inner.find("backward_layer")->find("config");
  EXPECT_EQ(*forward.find("name"), Json("forward_lstm"));
  EXPECT_EQ(*forward.find("go_backwards"), Json(false));
  EXPECT_EQ(*forward.find("trainable"), Json(false));
  EXPECT_EQ(*backward.find("name"), Json("backward_lstm"));
  EXPECT_EQ(*backward.find("go_backwards"), Json(true));
  EXPECT_EQ(*backward.find("zero_output_for_mask"), Json(true));  // as Keras does with sequences
  EXPECT_EQ(*backward.find("trainable"), Json(false));
  EXPECT_EQ(written(read(config)), config);

  // Cells of your own have no config but what they write, wherever they stand.
  struct Keeps : CustomCell {
    std::vector<std::int64_t> state_size() const override { return {2}; }
    CellStep step(const Tensor&, const Tensors& states, const Context&) override { return {states[0], states}; }
  };
  const std::string error = error_of([] { written(RNN(Keeps{}, {.name = "rnn"})); });
  EXPECT_CONTAINS(error, "save: RNN 'rnn', Keeps 'keeps");
  EXPECT_CONTAINS(error, ": Keeps is a class of your own that has no get_config()");
  EXPECT_CONTAINS(error, "give load_model() a factory, {.custom_layers = {{\"Keeps\", …}}}; or save the weights alone");
}

// --- what cannot be written

TEST(LayerConfigs, AreNotMadeOfCode) {
  EXPECT_CONTAINS(error_of([] { written(Lambda([](Tensor x) { return x * 2; }, {.name = "twice"})); }),
                  "save: Lambda 'twice': Lambda 'twice' is made from code of your own");
  EXPECT_CONTAINS(error_of([] { written(Dense(3, {.activation = [](Tensor x) { return x * 2; }, .name = "d"})); }),
                  "save: Dense 'd': its activation is a function that has no name");
  EXPECT_CONTAINS(
      error_of([] {
        written(Dense(3, {.kernel_initializer = [](const Shape& shape, DType dtype) { return zeros(shape, dtype); },
                          .name = "d"}));
      }),
      "save: Dense 'd': its kernel_initializer is made from code of your own");
  struct Own : CustomLayer {
    Tensor call(const Tensor& x, const Context&) override { return x; }
  };
  EXPECT_CONTAINS(error_of([] { written(TimeDistributed(Own{}, {.name = "t"})); }),
                  "save: TimeDistributed 't', Own 'own");
}

// --- what is wrong with a file

std::string entry(const std::string& class_name, const std::string& config) {
  return "{\"module\": \"keras.layers\", \"class_name\": \"" + class_name + "\", \"config\": {" + config +
         "}, \"registered_name\": null}";
}
std::string error_of_entry(const std::string& text) {
  return error_of([&] { read(json(text)); });
}

struct Wrong {
  std::string class_name, config, error;
};
const std::string file = "load_model: 'm.keras/config.json': ";
const std::string again = "\n  at user.cpp:7\n  fix: write the file again, with the library that it comes from";

TEST(WrongLayerConfigs, SayWhatAndWhere) {
  const std::string dense = R"("units": 3, "kernel_initializer": )";
  const Wrong all[] = {
      // Missing, and of another kind
      {"Dense", "", "Dense: it has no 'units'" + again},
      {"Dense", R"("units": null)", "Dense: it has no 'units'" + again},
      {"Dense", R"("units": "3")", "Dense: its 'units' is a string where an integer should stand" + again},
      {"Dense", R"("units": 2.5)", "Dense: its 'units' is a number where an integer should stand" + again},
      {"Dense", R"("units": 3, "use_bias": 1)", "Dense: its 'use_bias' is an integer where true or false should stand"},
      {"Dense", R"("units": 3, "name": [1])", "Dense: its 'name' is a list where a string should stand"},
      {"Dropout", R"("rate": true)", "Dropout: its 'rate' is true or false where a number should stand"},
      {"Dropout", R"("rate": 0.5, "noise_shape": 3)",
       "Dropout: its 'noise_shape' is an integer where a list of sizes should stand"},
      {"Dropout", R"("rate": 0.5, "noise_shape": ["x"])",
       "Dropout: its 'noise_shape' is a string where a size, or null for one that varies, should stand"},
      {"Conv2D", R"("filters": 2, "kernel_size": ["a"])",
       "Conv2D: its 'kernel_size' is a string where a list of integers should stand"},
      {"ZeroPadding2D", R"("padding": [[1, 2, 3], 4])",
       "ZeroPadding2D: its 'padding' is a list where a pair of numbers should stand"},
      {"ZeroPadding2D", R"("padding": "same")",
       "ZeroPadding2D: its 'padding' is a string where a number, or lists of them for every axis, should stand"},
      {"RandomZoom", R"("height_factor": [1])",
       "RandomZoom: its 'height_factor' is a list where a number, or a lower and an upper one, should stand"},
      {"RandomZoom", R"("height_factor": null)", "RandomZoom: it has no 'height_factor'"},
      {"RandomContrast", R"("factor": 0.5, "value_range": [1])",
       "RandomContrast: its 'value_range' is a list where a pair of numbers should stand"},
      {"Rescaling", R"("scale": [[1], [2, 3]])",
       "Rescaling: its 'scale' is a list where an array of numbers should stand"},
      {"Rescaling", R"("scale": null)", "Rescaling: it has no 'scale'"},
      {"Hashing", R"("num_bins": 3, "mask_value": [])",
       "Hashing: its 'mask_value' is a list where an integer or a string should stand"},
      {"Hashing", R"("num_bins": 3, "salt": [1, 2, 3])",
       "Hashing: its 'salt' is a list where an integer or two should stand"},
      {"Hashing", R"("num_bins": 3, "dtype": "int32")",
       "Hashing: its 'dtype' is \"int32\" with an output_mode of \"int\"; known is \"int64\""},
      {"BatchNormalization", R"("renorm_clipping": 3)",
       "BatchNormalization: its 'renorm_clipping' is an integer where an object with rmax, rmin and dmax should stand"},
      {"BatchNormalization", R"("renorm_clipping": {"rmax": "x"})",
       "BatchNormalization, renorm_clipping: its 'rmax' is a string where a number should stand"},
      {"BatchNormalization", R"("renorm_clipping": {"dmin": 1.0})",
       "BatchNormalization, renorm_clipping: 'dmin' is given, which renorm_clipping does not have here"},
      {"InputLayer", R"("batch_shape": [])",
       "InputLayer: its 'batch_shape' is a list where the sizes of a batch should stand"},
      {"InputLayer", R"("batch_shape": [null, -3])", "InputLayer: Input: a size of -3"},
      {"InputLayer", R"("batch_shape": [null], "dtype": "string")",
       "InputLayer: its 'dtype' is 'string'\n  at user.cpp:7\n  fix: strings are host data: make numbers of them "
       "before the "
       "model, with StringLookup or TextVectorization"},
      {"InputLayer", R"("batch_shape": [null], "sparse": true)",
       "InputLayer: its 'sparse' is true; known is false\n  at user.cpp:7\n  fix: save the model with that value"},
      // What stet does not have
      {"Dense", R"("units": 3, "lora_rank": 4)",
       "Dense: 'lora_rank' is given, which Dense does not have here\n  at user.cpp:7\n  fix: save the model without "
       "it; or load "
       "the weights alone, into a model made here"},
      {"Add", R"("activity_regularizer": "l2")", "Add: 'activity_regularizer' is given, which Add does not have here"},
      {"BatchNormalization", R"("synchronized": true)",
       "BatchNormalization: its 'synchronized' is true; known is false"},
      {"Flatten", R"("data_format": "channels_first")",
       "Flatten: its 'data_format' is \"channels_first\"; known is \"channels_last\""},
      {"ConvLSTM2D", R"("filters": 2, "kernel_size": 2, "data_format": "channels_first")",
       "ConvLSTM2D: its 'data_format' is \"channels_first\"; known is \"channels_last\""},
      {"Dense", R"("units": 3, "dtype": {"class_name": "QuantizedDTypePolicy", "config": {}})",
       "Dense: there is no dtype policy 'QuantizedDTypePolicy' here"},
      {"Dense", R"("units": 3, "dtype": "float8")", "Dense: there is no dtype policy 'float8'"},
      {"Dense", R"("units": 3, "activation": "swash")", "Dense: there is no activation 'swash'"},
      {"Dense", R"("units": 3, "activation": {"class_name": "PReLU", "config": {"name": "p"}})",
       "Dense: PReLU 'p' is given as an activation\n  at user.cpp:7\n  fix: ReLU, LeakyReLU, ELU, Softmax, Activation "
       "and layers of your own without weights are taken"},
      {"Dense", R"("units": 3, "activation": {"class_name": "Foo", "config": {}})",
       "Dense, activation: there is no layer 'Foo' here"},
      {"Dense", R"("units": 3, "activation": 3)",
       "Dense: its 'activation' is an integer where the name of an activation should stand"},
      // Code, and files
      {"Lambda", R"("function": {"class_name": "__lambda__", "config": {"code": "4wEAAAA="}})",
       "Lambda: a Lambda is code, which is not loaded from files\n  at user.cpp:7\n  fix: make the model here and load "
       "the "
       "weights alone; or save it without the Lambda"},
      {"IntegerLookup", R"("vocabulary": "/etc/passwd")",
       "IntegerLookup: its 'vocabulary' is a string where a list of integers should stand"},
      {"StringLookup", R"("vocabulary": ["a"])",
       "StringLookup: it takes strings, which are no tensors here\n  at user.cpp:7\n  fix: make a keras::StringLookup "
       "with the "
       "vocabulary of the file, and call it before the model"},
      {"TextVectorization", "",
       "TextVectorization: it takes strings, which are no tensors here\n  at user.cpp:7\n  fix: make a "
       "keras::TextVectorization "
       "with the vocabulary of the file, and call it before the model"},
      // More than a file may ask for
      {"IntegerLookup", R"("num_oov_indices": 5000000)",
       "IntegerLookup: its 'num_oov_indices' is 5000000, where a file may ask for 4194304 at most\n  at user.cpp:7\n  "
       "fix: "
       "make the object here, and load the weights alone"},
      {"IntegerLookup", R"("output_mode": "tf_idf", "max_tokens": 5000000)",
       "IntegerLookup: its 'max_tokens' is 5000000, where a file may ask for 4194304 at most"},
      {"Rescaling", R"("scale": [[[[[[[[[[1]]]]]]]]]])", "Rescaling: "},
      // What constructors refuse
      {"Dense", R"("units": -3)", "Dense: Dense: -3 units\n  at user.cpp:7\n  fix: a layer has at least one output"},
      {"Conv2D", R"("filters": 2, "kernel_size": [1, 2, 3])", "Conv2D: Conv2D: "},
      {"ConvLSTM1D", R"("filters": 2, "kernel_size": [1, 2])", "ConvLSTM1D: ConvLSTM1D: 2 numbers as kernel_size"},
      {"Discretization", R"("num_bins": 3, "bin_boundaries": [2.0, 1.0])",
       "Discretization: Discretization: bin_boundaries[1] is 1 after 2"},
      {"Reshape", R"("target_shape": [null, -1])", "Reshape: Reshape: a target of [-1,-1]"},
      {"Dot", R"("axes": [])", "Dot: Dot: axes that are not one number or two from 1 on"},
      {"EinsumDense", R"("equation": "ab", "output_shape": [2])", "EinsumDense: EinsumDense: the equation 'ab'"},
      {"Normalization", R"("mean": 1.0)", "Normalization: Normalization: one of mean and variance"},
      {"StackedRNNCells", R"("cells": [])", "StackedRNNCells: StackedRNNCells: there are no cells"},
      // Inside of others
      {"Dense", dense + R"({"module": "keras.initializers", "class_name": "Constant", "config": {"value": "x"}})",
       "Dense, kernel_initializer, Constant: its 'value' is a string where a number should stand"},
      {"Dense", dense + R"({"module": "keras.initializers", "class_name": "Foo", "config": {}})",
       "Dense, kernel_initializer: there is no initializer 'Foo' of keras.initializers here"},
      {"Dense", dense + R"({"module": "os", "class_name": "system", "config": {}})",
       "Dense, kernel_initializer: there is no initializer 'system' of os here"},
      {"Dense", dense + "\"foo\"", "Dense, kernel_initializer: there is no initializer 'foo'"},
      {"TimeDistributed", "\"layer\": " + entry("Dense", R"("units": "x")"),
       "TimeDistributed, layer, Dense: its 'units' is a string where an integer should stand"},
      {"TimeDistributed", R"("layer": "Dense")",
       "TimeDistributed, layer: a layer is a string where an object with 'class_name' and 'config' should stand"},
      {"RNN", "\"cell\": " + entry("Dense", R"("units": 3, "name": "d")"),
       "RNN: its 'cell' is Dense 'd', which is no cell\n  at user.cpp:7\n  fix: a cell is an LSTMCell, GRUCell, "
       "SimpleRNNCell "
       "or StackedRNNCells"},
      {"RNN", R"("cell": [])",
       "RNN, cell: a layer is a list where an object with 'class_name' and 'config' should stand"},
      {"StackedRNNCells",
       "\"cells\": [" + entry("LSTMCell", R"("units": 2)") + ", " + entry("Add", "\"name\": \"a\"") + "]",
       "StackedRNNCells: its cells[1] is Add 'a', which is no cell"},
      {"Bidirectional", "\"layer\": " + entry("Dense", R"("units": 3, "name": "d")"),
       "Bidirectional: Bidirectional around Dense 'd'"},
      {"Bidirectional",
       "\"layer\": " + entry("LSTM", R"("units": 3)") + ", \"backward_layer\": " + entry("LSTM", "\"units\": 3"),
       "Bidirectional: Bidirectional: both layers go the same way"},
  };
  for (const Wrong& one : all)
    EXPECT_EQ(error_of_entry(entry(one.class_name, one.config)).rfind(file + one.error, 0), 0u)
        << "expected " << one.error << "\nfound " << error_of_entry(entry(one.class_name, one.config));
}

TEST(WrongLayerConfigs, NameNoOtherClasses) {
  const std::string advice =
      "\n  at user.cpp:7\n  fix: if it is a class of your own, give load_model() a factory for it in .custom_layers; "
      "files may name classes of Keras's that stet has: docs/keras_names.md lists them";
  EXPECT_EQ(error_of_entry(entry("Foo", "")), file + "there is no layer 'Foo' of keras.layers here" + advice);
  EXPECT_EQ(error_of_entry(R"({"module": "os", "class_name": "Dense", "config": {"units": 3}})"),
            file + "there is no layer 'Dense' of os here" + advice);
  EXPECT_EQ(error_of_entry(
                R"({"module": null, "class_name": "Dense", "config": {"units": 3}, "registered_name": "my>Dense"})"),
            file + "there is no layer 'Dense' here" + advice);
  EXPECT_EQ(error_of_entry(R"({"class_name": "Dense"})"),
            file + "a layer is an object where an object with 'class_name' and 'config' should stand" + again);
  EXPECT_EQ(error_of_entry("3"),
            file + "a layer is an integer where an object with 'class_name' and 'config' should stand" + again);
  EXPECT_EQ(error_of_entry("null").rfind(file + "a layer is null where", 0), 0u);
}

TEST(WrongLayerConfigs, AreNotDeep) {
  std::string deep = entry("Dense", R"("units": 3)");
  for (int i = 0; i < 20; ++i) deep = entry("TimeDistributed", "\"layer\": " + deep);
  EXPECT_NO_THROW(read(json(deep)));
  for (int i = 0; i < 20; ++i) deep = entry("TimeDistributed", "\"layer\": " + deep);
  EXPECT_CONTAINS(error_of_entry(deep), "load_model: 'm.keras/config.json': ");
}

/// All places of a value where others stand.
void collect(Json& value, std::vector<Json*>& out) {
  out.push_back(&value);
  if (Json::List* list = value.if_list())
    for (Json& item : *list) collect(item, out);
  if (Json::Object* object = value.if_object())
    for (auto& [name, member] : *object) collect(member, out);
}

TEST(WrongLayerConfigs, AreErrorsWhateverStandsThere) {
  const std::vector<Json> entries = from_keras();
  const std::vector<Json> values = {
      nullptr,
      true,
      false,
      -1,
      0,
      1,
      2,
      1000003,
      std::int64_t{1} << 40,
      std::numeric_limits<std::int64_t>::max(),
      std::numeric_limits<std::int64_t>::min(),
      0.5,
      -2.5,
      1e300,
      std::nan(""),
      std::numeric_limits<double>::infinity(),
      "",
      "x",
      "int",
      "tf_idf",
      "same",
      "relu",
      "float64",
      "/etc/passwd",
      std::string(1000, 'a'),
      Json(Json::List{}),
      Json(Json::Object{}),
      Json(Json::List{0}),
      Json(Json::List{1, 2}),
      Json(Json::List{3, 2, 1}),
      Json(Json::List{-1, -1, -1, -1, -1, -1, -1, -1, -1}),
      Json(Json::List{Json(Json::List{}), Json(Json::List{1})}),
      Json(Json::List{nullptr, 1}),
      Json(Json::List{"a", "b"}),
  };
  std::mt19937 random(7);
  auto below = [&](std::size_t count) { return random() % count; };
  std::size_t refused = 0, made = 0;
  for (int turn = 0; turn < 20000; ++turn) {
    Json entry = entries[below(entries.size())];
    for (std::size_t changes = 1 + below(3); changes > 0; --changes) {
      std::vector<Json*> places;
      collect(entry, places);
      Json& place = *places[below(places.size())];
      if (below(8) == 0)
        place = Json(entries[below(entries.size())]);
      else if (Json::Object* object = place.if_object(); object && !object->empty() && below(2) == 0)
        object->erase(object->begin() + static_cast<std::ptrdiff_t>(below(object->size())));
      else
        place = Json(values[below(values.size())]);
    }
    try {
      const Layer layer = read(entry);
      ++made;
      written(layer);
    } catch (const UserError& error) {
      ++refused;
      ASSERT_EQ(std::string(error.what()).rfind(file, 0), 0u) << error.what() << "\n" << to_text(entry);
    } catch (const std::exception& error) {
      FAIL() << error.what() << "\n" << to_text(entry);
    }
  }
  EXPECT_GT(refused, 5000u);
  EXPECT_GT(made, 1000u);
}

TEST(LayerConfigs, AreReadAndWrittenByManyThreads) {
  const std::vector<Json> entries = from_keras();
  const Discretization shared({.num_bins = 4});
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      try {
        for (std::size_t i = static_cast<std::size_t>(thread); i < entries.size(); i += 2) {
          const Json& name = *entries[i].find("class_name");
          if (name == Json("StringLookup") || name == Json("TextVectorization")) continue;
          const Layer layer = read(entries[i]);
          if (written(read(written(layer))) != written(layer)) ++wrong;
          if (thread == 0) shared.adapt(tensor({1.f, 2.f, static_cast<float>(i)}));
          written(shared);
        }
      } catch (...) {
        wrong += 1000;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace stet::keras
