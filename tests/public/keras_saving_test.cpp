// Models and weights in files: what Keras saved is loaded and gives the same, what stet saved is loaded again.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "expect_error.h"
#include "keras_layer_table.h"
#include "keras_values.h"
#include "stet/stet.h"

namespace stet {
namespace {

namespace fs = std::filesystem;
using keras::KerasTensor;
using keras::Tensors;

KerasValues& stored() {
  static KerasValues values("models");
  return values;
}
std::string stored_path(const std::string& name) {
  const fs::path path = fs::path(__FILE__).parent_path() / "../oracle/keras/models" / (name + ".keras");
  return fs::exists(path) ? path.string() : "tests/oracle/keras/models/" + name + ".keras";
}
std::vector<std::string> stored_names() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(fs::path(stored_path("dense")).parent_path()))
    out.push_back(entry.path().stem().string());
  std::sort(out.begin(), out.end());
  return out;
}

/// A folder of the test's own, which is gone afterwards.
class Saving : public ::testing::Test {
 protected:
  void SetUp() override {
    random::seed(11);
    keras::clear_session();
    folder_ = fs::temp_directory_path() / ("stet_saving_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  fs::path folder_;
};

/// Tensors of a case called x0, x1, …
Tensors numbered(const KerasCase& one, const std::string& name) {
  Tensors out;
  while (one.has(name + std::to_string(out.size()))) out.push_back(one[name + std::to_string(out.size())]);
  return out;
}

void expect_near(const Tensor& found, const Tensor& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(found.shape().sizes(), expected.shape().sizes()) << what;
  const std::vector<double> a = cast(found, f64).to_vector<double>(), b = cast(expected, f64).to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], tolerance * (1 + std::abs(b[i]))) << what << " at " << i;
}
void expect_outputs(const keras::Model& model, const KerasCase& one, const std::string& name, const std::string& what) {
  const Tensors found = model.call_many(numbered(one, "x")), expected = numbered(one, name);
  ASSERT_EQ(found.size(), expected.size()) << what;
  const bool rough = one.name().find("float16") != std::string::npos;
  for (std::size_t i = 0; i < found.size(); ++i)
    expect_near(found[i], expected[i], rough ? 1e-2 : 1e-5, what + " " + name + std::to_string(i));
}
void train(const keras::Model& model, const KerasCase& one, const std::string& what) {
  const keras::Results results = model.train_on_batch(numbered(one, "x"), numbered(one, "labels"));
  EXPECT_NEAR(results.at("loss"), one["loss"].item<float>(), 2e-5) << what;
}

// --- files of Keras

class StoredModels : public Saving, public ::testing::WithParamInterface<std::string> {};

TEST_P(StoredModels, GiveWhatTheyGaveInKeras) {
  const KerasCase& one = stored().at(GetParam());
  keras::Model model = keras::load_model(stored_path(GetParam()));
  expect_outputs(model, one, "y", "loaded");

  // For check_models.py, which loads them in Keras.
  if (const char* folder = std::getenv("STET_SAVED_MODELS")) {
    fs::create_directories(folder);
    model.save((fs::path(folder) / (GetParam() + ".keras")).string());
  }

  // And once more through a file of our own.
  model.save(path("again.keras"));
  keras::clear_session();
  keras::Model again = keras::load_model(path("again.keras"));
  expect_outputs(again, one, "y", "saved and loaded");
  ASSERT_EQ(again.weights().size(), model.weights().size());

  if (!one.has("labels0")) return;
  train(model, one, "loaded");
  expect_outputs(model, one, "after", "loaded and trained");
  train(again, one, "saved and loaded");
  expect_outputs(again, one, "after", "saved, loaded and trained");
}

INSTANTIATE_TEST_SUITE_P(Keras, StoredModels, ::testing::ValuesIn(stored_names()),
                         [](const auto& tested) { return tested.param; });

TEST(StoredModelCases, AreAllLoaded) {
  const std::vector<std::string> names = stored_names();
  for (const std::string& name : names) stored().at(name);
  EXPECT_EQ(stored().left(), std::vector<std::string>());
  EXPECT_GT(names.size(), 100u);
}

// --- models made here

template <class F>
void expect_error(F f, const std::string& part) {
  EXPECT_CONTAINS(error_of(f), part);
}
std::vector<double> numbers(const Tensor& x) { return cast(x, f64).to_vector<double>(); }
std::vector<std::vector<double>> values(const keras::Model& model) {
  std::vector<std::vector<double>> out;
  for (const Tensor& weight : model.get_weights()) out.push_back(numbers(weight));
  return out;
}
std::vector<std::string> paths(const keras::Model& model) {
  std::vector<std::string> out;
  for (const keras::Weight& weight : model.weights()) out.push_back(weight.path);
  return out;
}
Tensor counting(const Shape& shape) { return sin(reshape(cast(arange(shape.element_count()), f32), shape)); }
std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

keras::Sequential small() {
  return {keras::Input({4}), keras::Dense(3, {.activation = "relu"}), keras::Dropout(0.5), keras::Dense(2)};
}

/// Layers of the table that no file holds.
const std::set<std::string> not_saved = {"Lambda",  // code
                                         "SimpleRNNCell", "LSTMCell", "GRUCell",
                                         "StackedRNNCells"};  // layers of their own in no model of Keras's

TEST_F(Saving, EveryLayerInAFunctionalModel) {
  for (const layer_table::LayerRow& row : layer_table::rows()) {
    if (not_saved.contains(row.class_name)) continue;
    SCOPED_TRACE(row.class_name);
    std::vector<keras::Input> inputs;
    std::vector<KerasTensor> tensors;
    for (const std::string& text : row.inputs) {
      const layer_table::Described what = layer_table::described(text);
      ShapeSpec shape;
      for (std::size_t axis = 1; axis < what.sizes.size(); ++axis)
        shape.dims.push_back(std::isdigit(what.sizes[axis][0]) ? DimSpec(std::stoll(what.sizes[axis]))
                                                               : DimSpec(dyn(what.sizes[axis])));
      inputs.emplace_back(shape, keras::InputOptions{.dtype = what.dtype});
      tensors.push_back(inputs.back());
    }
    keras::Model model(tensors, row.make().call_many(tensors));
    const Tensors given = layer_table::given(row, 1);
    const Tensors expected = model.call_many(given);
    model.save(path("m.keras"));
    keras::Model loaded = keras::load_model(path("m.keras"));
    EXPECT_EQ(values(loaded), values(model));
    const Tensors found = loaded.call_many(given);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(numbers(found[i]), numbers(expected[i]));
  }
}

TEST_F(Saving, KeepsNamesFlagsAndPaths) {
  keras::Sequential inner({keras::Dense(3, {.name = "a"}), keras::Dense(3, {.name = "b"})}, {.name = "inner"});
  keras::Sequential model({keras::Input({4}, {.name = "given"}), inner, keras::Dense(2, {.name = "last"})},
                          {.name = "outer"});
  inner.get_layer("a").set_trainable(false);
  model.save(path("m.keras"));
  keras::Model loaded = keras::load_model(path("m.keras"));
  EXPECT_EQ(loaded.name(), "outer");
  EXPECT_EQ(paths(loaded), paths(model));
  EXPECT_EQ(paths(loaded)[0], "outer/inner/a/kernel");
  EXPECT_EQ(loaded.trainable_variables().size(), 4u);
  EXPECT_TRUE(loaded.get_layer("inner").trainable());
  EXPECT_EQ(loaded.summary_text(), model.summary_text());
}

TEST_F(Saving, GoesOnWithTraining) {
  keras::Sequential model = small();
  const Tensor x = random::normal({32, 4}), y = random::normal({32, 2});
  model.compile({.optimizer = keras::Adam(0.01), .loss = "mse", .metrics = {"mae"}});
  model.fit(x, y, {.epochs = 2, .verbose = 0, .shuffle = false});
  model.save(path("m.keras"));
  keras::Model loaded = keras::load_model(path("m.keras"));
  EXPECT_EQ(loaded.optimizer().iterations().read().item<std::int64_t>(), 2);
  EXPECT_EQ(loaded.evaluate(x, y), model.evaluate(x, y));
  keras::Model uncompiled = keras::load_model(path("m.keras"), {.compile = false});
  expect_error([&] { uncompiled.evaluate(x, y); }, "is not compiled");
  // The same numbers are dropped from here on.
  for (const keras::Model& one : {keras::Model(model), loaded}) {
    random::seed(5);
    one.fit(x, y, {.epochs = 3, .verbose = 0, .shuffle = false});
  }
  EXPECT_EQ(values(loaded), values(model));
}

TEST_F(Saving, TheSameModelIsTheSameFile) {
  keras::Sequential model = small();
  model.save(path("a.keras"));
  model.save(path("b.keras"));
  EXPECT_EQ(contents(path("a.keras")), contents(path("b.keras")));
  model.save(path("a.keras"));  // over what is there
  EXPECT_EQ(contents(path("a.keras")), contents(path("b.keras")));
}

TEST_F(Saving, OfAModelCutOutOfAnother) {
  keras::Input x({4});
  KerasTensor first = keras::Dense(3)(x), second = keras::Dense(5)(first);
  keras::Model whole(x, second);
  keras::Model part(first, keras::Dense(2)(second));
  part.save(path("m.keras"));
  keras::Model loaded = keras::load_model(path("m.keras"));
  EXPECT_EQ(loaded.weights().size(), 4u);
  EXPECT_EQ(numbers(loaded(counting({2, 3}))), numbers(part(counting({2, 3}))));
}

TEST_F(Saving, WithoutAnInputRemembersWhatItWasBuiltFor) {
  keras::Sequential model{keras::Dense(3), keras::Dense(2)};
  model.predict(counting({5, 4}));
  model.save(path("m.keras"));
  keras::Model loaded = keras::load_model(path("m.keras"));
  EXPECT_TRUE(loaded.built());
  EXPECT_EQ(numbers(loaded(counting({2, 4}))), numbers(model(counting({2, 4}))));
}

TEST_F(Saving, WithoutAnInputRemembersItsType) {
  for (const Tensor& x : {tensor({{0, 1}, {3, 2}}), cast(tensor({{0, 1}, {3, 2}}), i64),
                          tensor({{0.f, 1.f}, {3.f, 2.f}}), tensor({{true, false}})}) {
    SCOPED_TRACE(text(x.dtype()));
    keras::Sequential model;
    if (!is_floating(x.dtype()) && x.dtype() != bool_) model.add(keras::CategoryEncoding(4));
    model.add(keras::Dense(2));
    const std::vector<double> expected = numbers(model(x));
    model.save(path("m.keras"));
    EXPECT_EQ(numbers(keras::load_model(path("m.keras"))(x)), expected);
  }
}

TEST_F(Saving, SizesThatVaryMayBeTheSameOfAllInputs) {
  keras::Input x({dyn("steps"), 3}), y({dyn("steps"), 3});
  keras::Model model({x, y}, {keras::Add()({x, y})});
  model.save(path("m.keras"));
  keras::Model loaded = keras::load_model(path("m.keras"));
  EXPECT_EQ(numbers(loaded(Tensors{counting({2, 5, 3}), counting({2, 5, 3})})), numbers(counting({2, 5, 3}) * 2));
  // And they may differ.
  keras::Input z({dyn, 3}), w({dyn, 3});
  keras::Model pair({z, w}, {keras::Concatenate(1)({z, w})});
  pair.save(path("m.keras"));
  EXPECT_EQ(keras::load_model(path("m.keras"))(Tensors{counting({2, 5, 3}), counting({2, 4, 3})}).shape().sizes(),
            (std::vector<std::int64_t>{2, 9, 3}));
}

TEST_F(Saving, OneLayerOfTwoModelsStaysOne) {
  keras::Dense shared(4, {.name = "shared"});
  keras::Input a({4}), b({4}), x({4});
  keras::Model first(a, shared(a), {.name = "first"});
  keras::Model second(b, keras::Dense(4)(shared(b)), {.name = "second"});
  keras::Sequential third({keras::TimeDistributed(shared)}, {.name = "third"});
  KerasTensor y = second(first(x));
  keras::Model model(x, keras::Add()({y, shared(y), keras::Flatten()(third(keras::Reshape({1, 4})(y)))}));
  model.save(path("m.keras"));
  keras::Model loaded = keras::load_model(path("m.keras"));
  EXPECT_EQ(loaded.weights().size(), 4u);
  EXPECT_EQ(values(loaded), values(model));
  EXPECT_EQ(numbers(loaded(counting({3, 4}))), numbers(model(counting({3, 4}))));
}

// --- weights alone

/// A model of one's own, with members of all kinds.
struct Own : keras::CustomModel {
  keras::Dense first = keras::Dense(3);
  std::vector<keras::Dense> blocks = {keras::Dense(3), keras::Dense(3)};
  keras::LayerNormalization last;
  Variable factor = Variable(tensor(2.f));
  STET_MEMBERS(first, blocks, last, factor)
  Tensor call(const Tensor& x, const keras::Context&) override {
    Tensor y = first(x);
    for (const keras::Dense& block : blocks) y = block(y);
    return last(y) * factor;
  }
};

TEST_F(Saving, WeightsOfAModelOfOnesOwn) {
  keras::Model one = keras::make<Own>(), other = keras::make<Own>();
  const Tensor x = counting({2, 4});
  const std::vector<double> expected = numbers(one(x));
  other(x);
  for (const char* name : {"m.weights.h5", "m.safetensors"}) {
    SCOPED_TRACE(name);
    one.save_weights(path(name));
    other.set_weights([&] {
      std::vector<Tensor> zeros;
      for (const Tensor& weight : other.get_weights()) zeros.push_back(zeros_like(weight));
      return zeros;
    }());
    other.load_weights(path(name));
    EXPECT_EQ(values(other), values(one));
    EXPECT_EQ(numbers(other(x)), expected);
  }
}

TEST_F(Saving, WeightsOfKerasFiles) {
  keras::Sequential model = small(), other = small();
  model.save(path("m.keras"));
  other.load_weights(path("m.keras"));
  EXPECT_EQ(values(other), values(model));
}

TEST_F(Saving, WeightsThatDoNotFitAreListedAndNothingChanges) {
  keras::Sequential model = small();
  keras::Sequential wider{keras::Input({4}), keras::Dense(5, {.name = "wide"}), keras::Dense(2), keras::Dense(1)};
  const auto before = values(wider);
  model.save_weights(path("m.weights.h5"));
  expect_error([&] { wider.load_weights(path("m.weights.h5")); },
               "its weights are not those of Sequential 'sequential_1'\n"
               "  missing     dense_3/kernel f32[2,1]: layers/dense_2/vars/0\n"
               "  missing     dense_3/bias f32[1]: layers/dense_2/vars/1\n"
               "  other type  wide/kernel is f32[4,5], and f32[4,3] in the file: layers/dense/vars/0\n");
  EXPECT_EQ(values(wider), before);
  wider.save_weights(path("wider.weights.h5"));
  expect_error([&] { model.load_weights(path("wider.weights.h5")); }, "  unexpected  layers/dense_2/vars/0 f32[2,1]\n");
  model.save_weights(path("m.safetensors"));
  expect_error([&] { wider.load_weights(path("m.safetensors")); }, "missing     wide/kernel f32[4,5]: wide/kernel");
  EXPECT_EQ(values(wider), before);
  // What fits is the bias of the second layer.
  wider.load_weights(path("m.weights.h5"), {.skip_mismatch = true});
  EXPECT_EQ(values(wider)[3], values(model)[3]);
  EXPECT_EQ(values(wider)[0], before[0]);
}

TEST_F(Saving, WeightsOfOneNameAreNotWritten) {
  keras::Sequential one({keras::Input({2}), keras::Dense(2, {.name = "b/c"})}, {.name = "a"});
  keras::Sequential other({keras::Input({2}), keras::Dense(2, {.name = "c"})}, {.name = "a/b"});
  keras::Sequential both({keras::Input({2}), one, other}, {.name = "both"});
  const std::string text = error_of([&] { both.save_weights(path("m.safetensors")); });
  EXPECT_CONTAINS(text, "m.safetensors': two weights of Sequential 'both' are called 'a/b/c/kernel'");
  EXPECT_CONTAINS(text, "fix: give the layers different names");
  EXPECT_FALSE(fs::exists(path("m.safetensors")));
  both.save_weights(path("m.weights.h5"));  // goes by their order
  both.load_weights(path("m.weights.h5"));
}

TEST_F(Saving, NotMoreThanTenAreListed) {
  keras::Sequential many{keras::Input({2})};
  for (int i = 0; i < 8; ++i) many.add(keras::Dense(2));
  keras::Sequential few{keras::Input({2}), keras::Dense(2)};
  few.save_weights(path("m.weights.h5"));
  expect_error([&] { many.load_weights(path("m.weights.h5")); }, "  missing     and 4 more\n");
}

TEST_F(Saving, WeightsOfPyTorchByNames) {
  // As PyTorch has them: kernels [outputs, inputs].
  keras::Sequential source({keras::Input({4}), keras::Dense(4, {.name = "fc1.weight"})});
  struct Torch : keras::CustomModel {
    Variable linear, convolution, bias;
    STET_MEMBERS(linear, convolution, bias)
    Tensor call(const Tensor& x, const keras::Context&) override { return x + 0 * sum(linear.read()); }
  };
  auto torch = keras::make<Torch>();
  torch->linear = Variable(counting({6, 4}));
  torch->convolution = Variable(counting({5, 3, 2, 2}));
  torch->bias = Variable(counting({6}));
  torch(zeros({1}));
  torch.save_weights(path("torch.safetensors"));

  keras::Input x({4}), image({8, 8, 3});
  keras::Model model({x, image}, {keras::Dense(6, {.name = "fc"})(x), keras::Conv2D(5, 2, {.name = "conv"})(image)});
  model.load_weights(path("torch.safetensors"),
                     {.names = {.names = {{"linear", "fc/kernel"}, {"bias", "fc/bias"}, {"convolution", "conv/kernel"}},
                                .layout = keras::NameMap::pytorch}});
  EXPECT_EQ(numbers(model.get_layer("fc").get_weights()[0]), numbers(transpose(counting({6, 4}))));
  EXPECT_EQ(numbers(model.get_layer("conv").get_weights()[0]),
            numbers(transpose(counting({5, 3, 2, 2}), {2, 3, 1, 0})));
  expect_error(
      [&] {
        model.load_weights(path("torch.safetensors"), {.names = {.names = {{"linear", "fc/kernel"}}}});
      },
      "fc/kernel is f32[4,6], and f32[6,4] in the file: linear");
  expect_error(
      [&] {
        model.load_weights(path("torch.safetensors"), {.names = {.names = {{"linear", "fc/weight"}}}});
      },
      "the name map gives 'linear' to 'fc/weight', and Functional 'functional' has no such weight");
  expect_error(
      [&] {
        model.load_weights(path("torch.safetensors"), {.names = {.names = {{"lin", "fc/kernel"}}}});
      },
      "missing     fc/kernel f32[4,6]: lin");
  expect_error(
      [&] {
        model.load_weights(path("torch.safetensors"),
                           {.names = {.names = {{"linear", "fc/kernel"}, {"bias", "fc/kernel"}}}});
      },
      "the name map names 'fc/kernel' twice");
}

TEST_F(Saving, HeadsOfPyTorchAreSplit) {
  struct Torch : keras::CustomModel {
    Variable in, out;
    STET_MEMBERS(in, out)
    Tensor call(const Tensor& x, const keras::Context&) override { return x + 0 * sum(in.read()); }
  };
  auto torch = keras::make<Torch>();
  torch->in = Variable(counting({6, 4}));   // [heads * size, features]
  torch->out = Variable(counting({4, 6}));  // [features, heads * size]
  torch(zeros({1}));
  torch.save_weights(path("torch.safetensors"));
  keras::Input x({5, 4});
  keras::Model model(x, keras::MultiHeadAttention(2, 3, {.use_bias = false, .name = "heads"})(x, x));
  model.load_weights(path("torch.safetensors"),
                     {.names = {.names = {{"in", "heads/query/kernel"}, {"out", "heads/attention_output/kernel"}},
                                .layout = keras::NameMap::pytorch}});
  int found = 0;
  for (const keras::Weight& weight : model.weights()) {
    const bool query = weight.path.ends_with("query/kernel"), out = weight.path.ends_with("attention_output/kernel");
    if (!query && !out) continue;
    ++found;
    EXPECT_EQ(numbers(weight.variable.read()), numbers(transpose(counting(query ? Shape{6, 4} : Shape{4, 6}))));
  }
  EXPECT_EQ(found, 2);
}

TEST_F(Saving, AttentionAlongAxesThatAreNot) {
  // Found by changed files.
  for (int axis : {0, 2, 7, -1, -3})
    expect_error(
        [&] {
          keras::MultiHeadAttention(2, 3, {.attention_axes = {axis}})(counting({2, 5, 4}), counting({2, 5, 4}));
        },
        "attention_axes name axis " + std::to_string(axis) + " of a query with 3 axes");
  expect_error(
      [&] {
        keras::MultiHeadAttention(2, 3, {.attention_axes = {1, 1}})(counting({2, 5, 4}), counting({2, 5, 4}));
      },
      "attention_axes name axis 1");
}

// --- what cannot be done

TEST_F(Saving, WrongCallsSayWhatToDo) {
  keras::Sequential model = small();
  expect_error([&] { model.save(path("m.h5")); }, "does not end in .keras");
  expect_error([&] { model.save_weights(path("m.h5")); }, "ends in neither .weights.h5 nor .safetensors");
  expect_error([&] { model.load_weights(path("m.h5")); }, "it is of Keras 2: load it there");
  expect_error([&] { keras::load_model(path("m.h5")); }, "does not end in .keras");
  expect_error([&] { model.load_weights(path("none.weights.h5")); }, "none.weights.h5");
  expect_error([&] { keras::load_model(path("none.keras")); }, "none.keras");
  expect_error([&] { model.save(path("none/m.keras")); }, "none/");
  expect_error(
      [&] {
        model.load_weights(path("m.weights.h5"), {.names = {.names = {{"a", "b"}}}});
      },
      "names are given for a file that is not .safetensors");
  model.save(path("m.keras"));
  expect_error([&] { model.save(path("m.keras"), {.overwrite = false}); }, "m.keras' is there already");
  expect_error([&] { keras::load_model(path("m.keras"), {.limits = {.file_bytes = 100}}); },
               "and at most 100 are allowed");
  expect_error([&] { keras::load_model(path("m.keras"), {.limits = {.config_bytes = 100}}); },
               "and at most 100 are allowed");
  expect_error([&] { keras::load_model(path("m.keras"), {.limits = {.depth = 3}}); }, "config.json");
  expect_error([&] { keras::load_model(path("m.keras"), {.limits = {.layers = 4}}); },
               "it has more than 4 layers, counted as often as they are called");

  keras::Sequential unbuilt{keras::Dense(3)};
  expect_error([&] { unbuilt.save(path("u.keras")); }, "save: Sequential 'sequential_1' is not built");
  expect_error([&] { unbuilt.save_weights(path("u.weights.h5")); }, "is not built");
  expect_error([&] { unbuilt.load_weights(path("m.keras")); }, "is not built");
  EXPECT_FALSE(fs::exists(path("u.keras")));
}

TEST_F(Saving, CodeIsNotSaved) {
  keras::Model own = keras::make<Own>();
  own(counting({2, 4}));
  expect_error([&] { own.save(path("m.keras")); },
               "save: Own 'own': Own is a class of your own that has no get_config()");
  keras::Sequential lambda{keras::Input({4}), keras::Lambda([](Tensor x) { return x * 2; })};
  expect_error([&] { lambda.save(path("m.keras")); }, "Lambda 'lambda'");
  struct Scale : keras::CustomLayer {
    Tensor call(const Tensor& x, const keras::Context&) override { return x * 3; }
  };
  keras::Sequential layer{keras::Input({4}), Scale{}};
  expect_error([&] { layer.save(path("m.keras")); }, "Scale is a class of your own that has no get_config()");
  keras::Sequential loss = small();
  loss.compile({.loss = keras::Loss([](Tensor y, Tensor p) { return mean(y - p); })});
  expect_error([&] { loss.save(path("m.keras")); }, "{.include_optimizer = false} saves the model");
  loss.save(path("m.keras"), {.include_optimizer = false});
  EXPECT_TRUE(keras::load_model(path("m.keras")).built());

  keras::Input x({4});
  keras::Model fixed(x, keras::Dropout(0.5)(x, {.training = true}));
  expect_error([&] { fixed.save(path("f.keras")); }, "Dropout 'dropout_1' is called with training = true");
}

}  // namespace
}  // namespace stet
