// .keras files that are not as they should be: what is said of each, and that nothing is taken for what they claim.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "stet/files/hdf5.h"
#include "stet/files/json.h"
#include "stet/files/zip.h"
#include "stet/stet.h"

namespace stet {
namespace {

namespace fs = std::filesystem;
using files::Json;

struct NamedWeight {
  std::string path;
  std::vector<std::int64_t> sizes;
};

class ModelFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    keras::clear_session();
    path_ = (fs::temp_directory_path() / ("stet_model_files_" + std::to_string(::getpid()) + ".keras")).string();
  }
  void TearDown() override { fs::remove(path_); }

  /// A file with this configuration, and weights of zeros.
  void write(const std::string& config, const std::vector<NamedWeight>& weights = {},
             const std::vector<std::pair<std::string, std::string>>& assets = {}) {
    files::Hdf5Writer h5;
    h5.group("vars");
    for (const NamedWeight& one : weights) {
      std::int64_t count = 1;
      for (std::int64_t size : one.sizes) count *= size;
      h5.dataset(one.path, DType::f32, one.sizes, [count](const files::Sink& sink) {
        const std::vector<float> zeros(static_cast<std::size_t>(count));
        sink(std::as_bytes(std::span(zeros)));
      });
    }
    files::Output output(path_, "test", {});
    files::ZipWriter zip(output);
    zip.add("config.json", config);
    zip.begin("model.weights.h5", h5.size());
    h5.write([&](std::span<const std::byte> part) { zip.write(part); });
    zip.end();
    for (const auto& [name, contents] : assets) zip.add(name, contents);
    zip.finish();
    output.commit();
  }

  /// What loading it says, or "loaded".
  std::string said(keras::LoadOptions options = {}) const {
    try {
      keras::load_model(path_, options);
    } catch (const UserError& error) {
      return error.what();
    }
    return "loaded";
  }
  void expect_said(const std::string& part) const {
    const std::string all = said();
    EXPECT_NE(all.find(part), std::string::npos) << all;
    EXPECT_NE(all.find("load_model: '" + path_), std::string::npos) << all;
    EXPECT_NE(all.find("\n  fix: "), std::string::npos) << all;
  }

  std::string path_;
};

std::string dense(const std::string& name, const std::string& units, const std::string& more = "") {
  return R"({"module": "keras.layers", "class_name": "Dense", "config": {"name": ")" + name + R"(", "units": )" +
         units + more + R"(}, "registered_name": null})";
}
std::string input(const std::string& sizes = "[null, 4]", const std::string& name = "input") {
  return R"({"module": "keras.layers", "class_name": "InputLayer", "config": {"name": ")" + name +
         R"(", "batch_shape": )" + sizes + R"(, "dtype": "float32"}, "registered_name": null})";
}
std::string sequential(const std::string& layers) {
  return R"({"module": "keras", "class_name": "Sequential", "config": {"name": "s", "layers": [)" + layers +
         R"(]}, "registered_name": null})";
}
/// An entry of a functional model.
std::string called(std::string entry, const std::string& name, const std::string& nodes) {
  entry.pop_back();
  return entry + R"(, "name": ")" + name + R"(", "inbound_nodes": [)" + nodes + "]}";
}
std::string tensor_of(const std::string& layer, int node = 0, int result = 0) {
  return R"({"class_name": "__keras_tensor__", "config": {"shape": [null, 4], "dtype": "float32", "keras_history": [")" +
         layer + "\", " + std::to_string(node) + ", " + std::to_string(result) + "]}}";
}
std::string node(const std::string& args, const std::string& kwargs = "{}") {
  return R"({"args": [)" + args + R"(], "kwargs": )" + kwargs + "}";
}
std::string functional(const std::string& layers, const std::string& inputs, const std::string& outputs) {
  return R"({"module": "keras.src.models.functional", "class_name": "Functional", "config": {"name": "f", "layers": [)" +
         layers + R"(], "input_layers": )" + inputs + R"(, "output_layers": )" + outputs +
         R"(}, "registered_name": "Functional"})";
}
const std::string input_a = called(input("[null, 4]", "a"), "a", "");
const std::vector<NamedWeight> dense_weights = {{"layers/dense/vars/0", {4, 3}}, {"layers/dense/vars/1", {3}}};

TEST_F(ModelFiles, WhatIsWrongInCompileConfigIsNamedOnce) {
  std::string config = sequential(input() + ", " + dense("d", "1"));
  config.pop_back();
  write(config + R"(, "compile_config": {"optimizer": "adam", "loss": 3}})",
        {{"layers/dense/vars/0", {4, 1}}, {"layers/dense/vars/1", {1}}});
  expect_said("config.json': compile_config, loss: ");
}

TEST_F(ModelFiles, AreLoadedWhereTheyAreRight) {
  write(sequential(input() + "," + dense("d", "3")), dense_weights);
  EXPECT_EQ(said(), "loaded");
  write(functional(input_a + "," + called(dense("d", "3"), "d", node(tensor_of("a"))), R"(["a", 0, 0])",
                   R"(["d", 0, 0])"),
        dense_weights);
  EXPECT_EQ(said(), "loaded");
}

TEST_F(ModelFiles, ThatAskForMoreWeightsThanTheyHaveTakeNoMemory) {
  write(sequential(input() + "," + dense("d", "1000000000000")), dense_weights);
  expect_said(
      "the weight 'kernel' f32[4,1000000000000] of Dense 'd' is not in the file, whose weights have 15 elements");
  write(sequential(input() + "," + dense("d", "4611686018427387904")), dense_weights);
  expect_said("[4,4611686018427387904] is too large");
  write(sequential(input("[null, 1000000000000]") + "," + dense("d", "3")), dense_weights);
  expect_said("is not in the file");
  write(sequential(input() + "," + dense("d", "3") + "," + dense("e", "3")), dense_weights);
  expect_said("of Dense 'e' is not in the file");
}

TEST_F(ModelFiles, OfOtherWeightsAreListed) {
  write(sequential(input() + "," + dense("d", "3")),
        {{"layers/dense/vars/0", {3, 4}}, {"layers/dense/vars/1", {3}}, {"layers/other/vars/0", {2}}});
  expect_said(
      "  other type  d/kernel is f32[4,3], and f32[3,4] in the file: layers/dense/vars/0\n"
      "  unexpected  layers/other/vars/0 f32[2]");
}

TEST_F(ModelFiles, NameClassesOfAClosedList) {
  write(sequential(R"({"module": "keras.layers", "class_name": "Lambda", "config": {"name": "l", "function":
      {"class_name": "__lambda__", "config": {"code": "4wEAAAA="}}}, "registered_name": null})"));
  expect_said("Lambda");
  write(sequential(
      R"({"module": "os", "class_name": "system", "config": {"command": "true"}, "registered_name": null})"));
  expect_said("there is no layer 'system' of os here");
  write(sequential(
      R"({"module": "mine", "class_name": "Dense", "config": {"units": 3}, "registered_name": "mine>Dense"})"));
  expect_said("there is no layer 'Dense' of mine here");
  write(sequential(dense("d", "3", R"(, "activation": {"module": "builtins", "class_name": "eval", "config": "x"})")));
  expect_said("activation");
  write(R"({"module": "keras.layers", "class_name": "Dense", "config": {"units": 3}, "registered_name": null})");
  expect_said("it is a Dense, no model");
}

TEST_F(ModelFiles, OfWrongKindsSayWhere) {
  for (const char* config : {"", "{", "[]", "3", "null", R"({"class_name": "Sequential"})"}) {
    write(config);
    EXPECT_NE(said().find("config.json"), std::string::npos) << config << ": " << said();
  }
  write(sequential(input() + "," + dense("d", "\"three\"")));
  expect_said("layers[1], Dense: its 'units' is a string where an integer should stand");
  write(sequential(input() + "," + dense("d", "-3")));
  expect_said("-3 units");
  write(sequential(input() + "," + dense("d", "3") + "," + dense("d", "3")), dense_weights);
  expect_said("two layers are called 'd'");
  write(sequential(dense("d", "3") + "," + input()));
  expect_said("an Input stands after another layer");
}

TEST_F(ModelFiles, OfWrongGraphsSayWhere) {
  const std::string inputs = R"(["a", 0, 0])", outputs = R"(["d", 0, 0])";
  auto graph = [&](const std::string& nodes) {
    write(functional(input_a + "," + called(dense("d", "3"), "d", nodes), inputs, outputs), dense_weights);
  };
  graph(node(tensor_of("b")));
  expect_said("layers[1] 'd': a tensor comes from 'b', and no layer is called so");
  graph(node(tensor_of("a", 1)));
  expect_said("a tensor comes from call 1 of 'a', which is called 1 time");
  graph(node(tensor_of("a", 0, 1)));
  expect_said("a tensor is result 1 of 'a', which gives 1");
  graph(node(tensor_of("a", 0, -1)));
  expect_said("a tensor is result -1 of 'a'");
  graph(node(tensor_of("d")));
  expect_said("'d' is called on what it gives itself");
  graph(node(""));
  expect_said("'d' is called on no tensor");
  graph(node("3"));
  expect_said("its call is given an integer as an argument where tensors should stand");
  graph(node(tensor_of("a"), R"({"strange": true})"));
  expect_said("its call has an argument 'strange', which calls do not take here");
  graph("3");
  expect_said("a call has no 'args'");
  graph("");
  expect_said("a tensor comes from call 0 of 'd', which is called 0 times");

  write(functional(input_a, inputs, "3"));
  expect_said("output_layers: they are an integer");
  write(functional(input_a, "[]", inputs));
  expect_said("Model: there are no inputs");
  write(functional(input_a + "," + input_a, inputs, inputs));
  expect_said("two layers are called 'a'");
  write(functional(input_a + "," +
                       called(R"({"module": "keras.src.ops.numpy", "class_name": "Roll", "config": {"name": "r"},
                                  "registered_name": "Roll"})",
                              "r", node(tensor_of("a"))),
                   inputs, R"(["r", 0, 0])"));
  expect_said("there is no operation 'Roll' of keras.src.ops.numpy here");
  auto operation = [&](const std::string& args) {
    write(functional(input_a + "," +
                         called(R"({"module": "keras.src.ops.numpy", "class_name": "Add", "config": {"name": "r"},
                                    "registered_name": "Add"})",
                                "r", node(args)),
                     inputs, R"(["r", 0, 0])"));
  };
  operation(tensor_of("a") + ", 2.5");
  EXPECT_EQ(said(), "loaded");
  operation("2, " + tensor_of("a"));
  EXPECT_EQ(said(), "loaded");
  operation(tensor_of("a"));
  expect_said("it is given 1 tensors and 0 numbers");
  operation("1, 2");
  expect_said("it is given 0 tensors and 2 numbers");
  operation(tensor_of("a") + ", \"x\"");
  expect_said("it is given a string where a tensor or a number should stand");
}

TEST_F(ModelFiles, OfManyLayersAreReadOnce) {
  // Each after the next: whoever goes over the list again for every layer is not done in time.
  std::string layers = input_a, last = "a";
  std::vector<std::string> entries;
  for (int i = 0; i < 300; ++i) {
    const std::string name = "d" + std::to_string(i);
    entries.push_back(called(R"({"module": "keras.layers", "class_name": "ReLU", "config": {"name": ")" + name +
                                 R"("}, "registered_name": null})",
                             name, node(tensor_of(last))));
    last = name;
  }
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) layers += "," + *entry;
  write(functional(layers, R"(["a", 0, 0])", "[\"" + last + "\", 0, 0]"));
  EXPECT_EQ(said(), "loaded");
  EXPECT_NE(said({.limits = {.layers = 300}}).find("it has more than 300 layers"), std::string::npos);
}

TEST_F(ModelFiles, ThatCallModelsInModelsVeryOftenAreRefused) {
  // Ten calls on each of twelve levels.
  std::string inner =
      R"({"module": "keras.layers", "class_name": "ReLU", "config": {"name": "r"}, "registered_name": null})";
  for (int level = 0; level < 12; ++level) {
    const std::string name = "l" + std::to_string(level);
    std::string nodes = node(tensor_of("a"));
    for (int call = 0; call < 9; ++call) nodes += "," + node(tensor_of(name, call));
    inner = functional(input_a + "," + called(inner, name, nodes), R"(["a", 0, 0])",
                       "[\"" + name + "\", " + (level == 0 ? "9" : "10") + ", 0]");
  }
  write(inner);
  expect_said("it has more than 10000 layers, counted as often as they are called");
}

TEST_F(ModelFiles, VocabulariesOfTheirOwnFiles) {
  const std::string lookup =
      R"({"module": "keras.layers", "class_name": "IntegerLookup", "config": {"name": "l", "vocabulary": null,
          "num_oov_indices": 1, "oov_token": -1}, "registered_name": null})";
  const std::string whole = sequential(
      R"({"module": "keras.layers", "class_name": "InputLayer", "config": {"name": "i", "batch_shape": [null, 3],
          "dtype": "int64"}, "registered_name": null},)" +
      lookup);
  const std::string name = "assets/layers/integer_lookup/vocabulary.txt";
  write(whole, {}, {{name, "-1\n7\n5\n"}});
  keras::Model model = keras::load_model(path_);
  EXPECT_EQ(model(tensor({{5, 6, 7}})).to_vector<std::int64_t>(), (std::vector<std::int64_t>{2, 0, 1}));
  write(whole, {}, {{name, "-1\nseven"}});
  expect_said("a token is no integer, at byte 3");
  write(sequential(R"({"module": "keras.layers", "class_name": "IntegerLookup", "config": 3})"), {}, {{name, "-1\n7"}});
  expect_said("a layer is an object where an object with 'class_name' and 'config' should stand");
}

TEST_F(ModelFiles, OfOtherKinds) {
  {
    files::Output output(path_, "test", {});
    output.write(std::string_view("no archive at all, whatever its name says"));
    output.commit();
  }
  expect_said("");
  auto archive = [&](const char* name, const char* contents) {
    files::Output output(path_, "test", {});
    files::ZipWriter zip(output);
    zip.add(name, contents);
    zip.finish();
    output.commit();
  };
  archive("model.weights.h5", "x");
  expect_said("it has no config.json");
  archive("config.json", "{}");
  expect_said("it has no model.weights.h5");
}

}  // namespace
}  // namespace stet
