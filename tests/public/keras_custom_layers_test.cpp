// Models with layers of users' own classes in files: what they write of themselves, and the factories that make them
// again. The files of tests/oracle/keras/custom are Keras's, make_custom.py.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "expect_error.h"
#include "stet/stet.h"

namespace stet {
namespace {

namespace fs = std::filesystem;
using keras::LayerConfig;
using keras::LayerFactories;

/// Has values of most kinds, a layer inside, and a weight.
struct Scale : keras::CustomLayer {
  double factor;
  keras::Layer inner;
  keras::ActivationFunction activation;
  Variable gamma;
  explicit Scale(double factor, keras::Layer inner = {}, keras::ActivationFunction activation = {},
                 std::string name = {})
      : CustomLayer(std::move(name)), factor(factor), inner(inner), activation(activation) {}
  STET_MEMBERS(inner)
  void build(const Shape& input) override { gamma = add_weight("gamma", {input[-1]}, {.initializer = "ones"}); }
  Tensor call(const Tensor& x, const keras::Context&) override {
    Tensor y = activation(x * gamma * factor);
    return inner.defined() ? inner(y) : y;
  }
  void get_config(LayerConfig& config) const override {
    config.set("factor", factor);
    if (inner.defined()) config.set("inner", inner);
    config.set("activation", activation);
  }
};
/// Registered in a package, as Keras calls it.
struct Shift : keras::CustomLayer {
  int by = 1;
  explicit Shift(int by) : by(by) {}
  Tensor call(const Tensor& x, const keras::Context&) override { return x + by; }
  void get_config(LayerConfig& config) const override { config.set("by", by); }
  std::string registered_name() const override { return "my>Shift"; }
};
/// A model: its members' names, not their order, say where Keras keeps their weights.
struct Net : keras::CustomModel {
  std::int64_t n;
  keras::Dense zed, hidden = keras::Dense(4, {.activation = "tanh"});
  std::vector<keras::Dense> blocks = {keras::Dense(4), keras::Dense(4)};
  keras::Dense _last = keras::Dense(2);
  explicit Net(std::int64_t n) : n(n), zed(n) {}
  STET_MEMBERS(zed, hidden, blocks, _last)
  Tensor call(const Tensor& x, const keras::Context&) override {
    Tensor y = hidden(x);
    for (const keras::Dense& block : blocks) y = block(y);
    return _last(zed(y));
  }
  void get_config(LayerConfig& config) const override { config.set("n", n); }
};

LayerFactories factories() {
  return {{"Scale",
           [](const LayerConfig& config) {
             return Scale(config.get<double>("factor"), config.get<keras::Layer>("inner", {}),
                          config.get<keras::ActivationFunction>("activation"));
           }},
          {"my>Shift", [](const LayerConfig& config) { return Shift(config.get<int>("by")); }},
          {"Net", [](const LayerConfig& config) { return keras::make<Net>(config.get<std::int64_t>("n")); }}};
}

std::string stored_path(const std::string& name) {
  const fs::path path = fs::path(__FILE__).parent_path() / "../oracle/keras/custom" / name;
  return fs::exists(path) ? path.string() : "tests/oracle/keras/custom/" + name;
}

class CustomLayers : public ::testing::Test {
 protected:
  void SetUp() override {
    random::seed(11);
    keras::clear_session();
    folder_ = fs::temp_directory_path() / ("stet_custom_layers_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  /// Without the folder, which has another name each time.
  template <class F>
  std::string told(F f) const {
    std::string text = error_of(f);
    for (std::size_t at; (at = text.find(folder_.string() + "/")) != std::string::npos;)
      text.erase(at, folder_.string().size() + 1);
    const std::size_t line = text.find("\n  at "), fix = text.find("\n  fix: ");
    return line == std::string::npos ? text : text.substr(0, line) + text.substr(std::min(fix, text.size()));
  }
  fs::path folder_;
};

std::vector<double> numbers(const Tensor& x) { return cast(x, f64).to_vector<double>(); }
void expect_near(const Tensor& found, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(found.shape().sizes(), expected.shape().sizes()) << what;
  const std::vector<double> a = numbers(found), b = numbers(expected);
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-5 * (1 + std::abs(b[i]))) << what << " " << i;
}

// --- files of Keras

class StoredCustom : public CustomLayers, public ::testing::WithParamInterface<std::string> {};

TEST_P(StoredCustom, GiveWhatTheyGaveInKeras) {
  std::map<std::string, Tensor> stored = data::read_npz(stored_path(GetParam() + ".npz"));
  keras::Model model = keras::load_model(stored_path(GetParam() + ".keras"), {.custom_layers = factories()});
  expect_near(model(stored["x"]), stored["y"], "loaded");
  model.save(path("again.keras"));
  if (const char* folder = std::getenv("STET_SAVED_MODELS")) {  // for make_custom.py check
    fs::create_directories(folder);
    model.save((fs::path(folder) / (GetParam() + ".keras")).string());
    model.save_weights((fs::path(folder) / (GetParam() + ".weights.h5")).string());
  }
  keras::clear_session();
  keras::Model again = keras::load_model(path("again.keras"), {.custom_layers = factories()});
  expect_near(again(stored["x"]), stored["y"], "saved and loaded");
  for (const keras::Model& one : {model, again}) {
    EXPECT_EQ(one.optimizer().iterations().read().item<std::int64_t>(), 1);
    EXPECT_NEAR(one.train_on_batch(stored["x"], stored["labels"]).at("loss"), stored["loss"].item<float>(), 1e-4);
    expect_near(one(stored["x"]), stored["after"], "after a step");
  }
}
INSTANTIATE_TEST_SUITE_P(Keras, StoredCustom, ::testing::Values("seq", "func", "net"),
                         [](const auto& tested) { return tested.param; });

TEST_F(CustomLayers, WeightsOfASubclassedModelOfKeras) {
  std::map<std::string, Tensor> stored = data::read_npz(stored_path("net.npz"));
  keras::Model net = keras::make<Net>(3);
  net(stored["x"]);
  net.load_weights(stored_path("net.weights.h5"));
  expect_near(net(stored["x"]), stored["y"], "weights alone");
}

TEST_F(CustomLayers, AreNamedAsInKeras) {
  struct My_Layer2D : Shift {
    using Shift::Shift;
  };
  EXPECT_EQ(keras::Layer(My_Layer2D(1)).name(),
            "my__layer2d");  // to_snake_case("My_Layer2D"), with which files are made
}

// --- what is written, and read

/// Values of all kinds.
struct All : keras::CustomLayer {
  std::map<std::string, double>* seen = nullptr;
  Tensor call(const Tensor& x, const keras::Context&) override { return x; }
  void get_config(LayerConfig& config) const override {
    config.set("flag", true);
    config.set("small", -3);
    config.set("large", std::int64_t{1} << 60);
    config.set("single", 0.1f);
    config.set("real", 1e300);
    config.set("text", "größer / \"\\\n");
    config.set("type", bf16);
    config.set("ints", std::vector<int>{1, 2});
    config.set("longs", std::vector<std::int64_t>{});
    config.set("reals", std::vector<double>{0.5, -1});
    config.set("texts", std::vector<std::string>{"a", "é"});
    config.set("tensor", tensor({{1.f, 2.f}, {3.f, 4.f}}));
    config.set("policy", keras::DTypePolicy("mixed_bfloat16"));
    config.set("function", keras::ActivationFunction("gelu"));
    config.set("initializer", keras::Initializer("he_normal"));
    config.set("regularizer", keras::Regularizer(keras::regularizers::L2(0.25)));
    config.set("constraint", keras::Constraint());
    config.set("layer", keras::Layer(keras::Dense(3, {.name = "in/side"})));
    config.set("layers", std::vector<keras::Layer>{keras::ReLU(), Shift(5)});
  }
};

TEST_F(CustomLayers, ValuesOfAllKindsComeBack) {
  keras::Sequential model({keras::Input({2}), All{}, keras::Dense(1)});
  model.save(path("m.keras"));
  int made = 0;
  LayerFactories own = factories();
  own["All"] = [&](const LayerConfig& config) {
    ++made;
    EXPECT_TRUE(config.get<bool>("flag"));
    EXPECT_EQ(config.get<int>("small"), -3);
    EXPECT_EQ(config.get<std::int64_t>("large"), std::int64_t{1} << 60);
    EXPECT_EQ(config.get<float>("single"), 0.1f);
    EXPECT_EQ(config.get<double>("real"), 1e300);
    EXPECT_EQ(config.get<std::string>("text"), "größer / \"\\\n");
    EXPECT_EQ(config.get<DType>("type"), bf16);
    EXPECT_EQ(config.get<std::vector<int>>("ints"), (std::vector<int>{1, 2}));
    EXPECT_EQ(config.get<std::vector<std::int64_t>>("longs"), (std::vector<std::int64_t>{}));
    EXPECT_EQ(config.get<std::vector<double>>("reals"), (std::vector<double>{0.5, -1}));
    EXPECT_EQ(config.get<std::vector<std::string>>("texts"), (std::vector<std::string>{"a", "é"}));
    EXPECT_EQ(numbers(config.get<Tensor>("tensor")), (std::vector<double>{1, 2, 3, 4}));
    EXPECT_EQ(config.get<keras::DTypePolicy>("policy").name(), "mixed_bfloat16");
    EXPECT_EQ(config.get<keras::ActivationFunction>("function").known_name(), "gelu");
    EXPECT_TRUE(config.get<keras::Initializer>("initializer").defined());
    EXPECT_TRUE(config.get<keras::Regularizer>("regularizer").defined());
    EXPECT_FALSE(config.get<keras::Constraint>("constraint").defined());
    EXPECT_FALSE(config.has("constraint"));
    EXPECT_EQ(config.get<keras::Layer>("layer").name(), "in/side");
    std::vector<keras::Layer> layers = config.get<std::vector<keras::Layer>>("layers");
    EXPECT_EQ(layers.size(), 2u);
    EXPECT_EQ(numbers(layers[1](zeros({1}))), (std::vector<double>{5}));
    EXPECT_EQ(config.get<std::string>("name"), "all");
    EXPECT_TRUE(config.get<bool>("trainable"));
    EXPECT_FALSE(config.has("nothing"));
    EXPECT_EQ(config.get<int>("nothing", 7), 7);
    return All{};
  };
  keras::load_model(path("m.keras"), {.custom_layers = own});
  EXPECT_EQ(made, 1);
}

TEST_F(CustomLayers, NamesFlagsAndSharingComeBack) {
  keras::Input x({4});
  keras::Layer shared = Scale(2, {}, {}, "größe 1");
  keras::Layer frozen = Scale(3, keras::Dense(4, {.name = "deep"}));
  frozen.set_trainable(false);
  keras::Layer half = Scale(4, keras::Dense(4));
  dynamic_cast<Scale&>(*half.body()).inner.set_trainable(false);
  keras::KerasTensor a = shared(x), b = shared(a);
  keras::Sequential inside({keras::Input({4}), Scale(5), shared}, {.name = "inside"});
  keras::Model model(x, inside(half(frozen(a + b))));
  model.save(path("m.keras"));
  keras::clear_session();
  keras::Model again = keras::load_model(path("m.keras"), {.custom_layers = factories()});
  std::vector<std::string> before, after;
  for (const keras::Weight& weight : model.weights())
    before.push_back(weight.path + (weight.trainable ? "" : " frozen"));
  for (const keras::Weight& weight : again.weights())
    after.push_back(weight.path + (weight.trainable ? "" : " frozen"));
  EXPECT_EQ(after, before);
  EXPECT_EQ(before.size(), 8u);
  const Tensor values = random::normal({3, 4});
  EXPECT_EQ(numbers(again(values)), numbers(model(values)));
  model.save(path("n.keras"));
}

TEST_F(CustomLayers, CellsAndWrappers) {
  struct Minimal : keras::CustomCell {
    std::int64_t units;
    Variable kernel, recurrent_kernel;
    explicit Minimal(std::int64_t units) : units(units) {}
    std::vector<std::int64_t> state_size() const override { return {units}; }
    void build(const Shape& input) override {
      kernel = add_weight("kernel", {input[-1], units});
      recurrent_kernel = add_weight("recurrent_kernel", {units, units});
    }
    keras::CellStep step(const Tensor& x, const keras::Tensors& states, const keras::Context&) override {
      Tensor h = tanh(matmul(x, kernel) + matmul(states[0], recurrent_kernel));
      return {h, {h}};
    }
    void get_config(LayerConfig& config) const override { config.set("units", units); }
  };
  keras::Sequential model({keras::Input({5, 3}), keras::RNN(Minimal(4), {.return_sequences = true}),
                           keras::TimeDistributed(Scale(2, keras::Dense(2)))});
  model.save(path("m.keras"));
  LayerFactories own = factories();
  own["Minimal"] = [](const LayerConfig& config) { return Minimal(config.get<std::int64_t>("units")); };
  keras::Model again = keras::load_model(path("m.keras"), {.custom_layers = own});
  const Tensor x = random::normal({2, 5, 3});
  EXPECT_EQ(numbers(again(x)), numbers(model(x)));
}

TEST_F(CustomLayers, AModelOfSeveralInputsIsBuiltForThem) {
  struct Two : keras::CustomModel {
    keras::Embedding words = keras::Embedding(7, 3);
    keras::Dense numbers = keras::Dense(3);
    STET_MEMBERS(words, numbers)
    keras::Tensors call_many(const keras::Tensors& inputs, const keras::Context&) override {
      return {mean(words(inputs[0]), {1}) + numbers(inputs[1])};
    }
    void get_config(LayerConfig&) const override {}
  };
  keras::Model model = keras::make<Two>();
  const keras::Tensors x = {tensor({{1, 2, 6}, {0, 0, 3}}), random::normal({2, 4})};
  model(x);
  model.save(path("m.keras"));
  keras::Model again = keras::load_model(
      path("m.keras"), {.custom_layers = {{"Two", [](const LayerConfig&) { return keras::make<Two>(); }}}});
  EXPECT_EQ(numbers(again(x)), numbers(model(x)));
}

TEST_F(CustomLayers, AreCountedWithAllThatTheyHold) {
  keras::Layer inside = Scale(1, keras::Sequential({keras::Input({4}), keras::Dense(4), keras::Dense(4)}));
  keras::Sequential model({keras::Input({4}), Scale(2, inside)});
  model.save(path("m.keras"));
  // The model, its Input, two of Scale's, the model inside and three in it.
  auto load = [&](std::int64_t layers) {
    keras::load_model(path("m.keras"), {.custom_layers = factories(), .limits = {.layers = layers}});
  };
  load(8);
  EXPECT_CONTAINS(told([&] { load(7); }), "it has more than 7 layers");
}

// --- classes that are there already

TEST_F(CustomLayers, AFactoryComesBeforeAClassOfTheLibrary) {
  keras::Sequential model({keras::Input({4}), keras::Dropout(0.5), keras::Dense(1)});
  model.save(path("m.keras"));
  double rate = 0;
  keras::Model again =
      keras::load_model(path("m.keras"), {.custom_layers = {{"Dropout", [&](const LayerConfig& config) {
                                                               rate = config.get<double>("rate");
                                                               for (const char* name : {"seed", "noise_shape"})
                                                                 config.ignore(name);
                                                               return Shift(1);
                                                             }}}});
  EXPECT_EQ(rate, 0.5);
  EXPECT_EQ(again.layers()[0].name(), "dropout");
}

// --- what is told

TEST_F(CustomLayers, WithoutAConfigOrAFactoryIsToldWhatToDo) {
  struct Bare : keras::CustomLayer {
    Tensor call(const Tensor& x, const keras::Context&) override { return x * 3; }
  };
  keras::Sequential bare({keras::Input({4}), Bare{}}, {.name = "m"});
  EXPECT_EQ(
      told([&] { bare.save(path("m.keras")); }),
      "save: Sequential 'm', layers[1], Bare 'bare': Bare is a class of your own that has no get_config()\n"
      "  fix: override get_config(keras::LayerConfig&) in it to write what it is made from, and give load_model() "
      "a factory, {.custom_layers = {{\"Bare\", …}}}; or save the weights alone");
  struct BareModel : keras::CustomModel {
    Tensor call(const Tensor& x, const keras::Context&) override { return x * 3; }
  };
  keras::Model model = keras::make<BareModel>();
  model(zeros({1, 1}));
  EXPECT_CONTAINS(told([&] { model.save(path("m.keras")); }),
                  "save: BareModel 'bare_model': BareModel is a class of your own that has no get_config()");
  EXPECT_FALSE(fs::exists(path("m.keras")));

  keras::Sequential scaled({keras::Input({4}), Scale(2)}, {.name = "m"});
  scaled.save(path("m.keras"));
  const std::string unknown =
      "load_model: 'm.keras/config.json': Sequential, layers[1]: there is no layer 'Scale' here\n"
      "  fix: if it is a class of your own, give load_model() a factory for it in .custom_layers; files may name "
      "classes "
      "of Keras's that stet has: docs/keras_names.md lists them";
  EXPECT_EQ(told([&] { keras::load_model(path("m.keras")); }), unknown);
  EXPECT_EQ(
      told([&] {
        keras::load_model(path("m.keras"), {.custom_layers = {{"scale", [](const LayerConfig&) { return Scale(1); }}}});
      }),
      unknown);
}

TEST_F(CustomLayers, WrongConfigsAreTold) {
  struct Wrong : keras::CustomLayer {
    std::function<void(LayerConfig&)> write;
    Tensor call(const Tensor& x, const keras::Context&) override { return x; }
    void get_config(LayerConfig& config) const override { write(config); }
  };
  auto saved = [&](std::function<void(LayerConfig&)> write) {
    Wrong wrong;
    wrong.write = std::move(write);
    keras::Sequential model({keras::Input({4}), std::move(wrong)}, {.name = "m"});
    std::string text = told([&] { model.save(path("m.keras")); });
    const std::string head = "save: Sequential 'm', layers[1], Wrong 'wrong";
    EXPECT_TRUE(text.starts_with(head)) << text;
    return text.substr(std::min(text.size(), text.find(": ", head.size()) + 2));
  };
  EXPECT_EQ(saved([](LayerConfig& config) { config.set("name", "x"); }),
            "get_config() sets 'name'\n  fix: that is written without its doing");
  EXPECT_EQ(saved([](LayerConfig& config) {
              config.set("a", 1);
              config.set("a", 2);
            }),
            "get_config() sets 'a' twice\n  fix: give each value a name of its own");
  EXPECT_EQ(saved([](LayerConfig& config) { config.get<int>("a"); }),
            "get_config() asks for 'a'\n  fix: factories read values");
  EXPECT_EQ(saved([](LayerConfig& config) { config.set("f", keras::ActivationFunction([](Tensor x) { return x; })); }),
            "its f is a function that has no name\n"
            "  fix: a file holds no code: give the activation by its name, or save the weights alone");
  EXPECT_EQ(saved([](LayerConfig& config) {
              config.set("inner", keras::Layer(keras::Lambda([](Tensor x) { return x; }, {.name = "l"})));
            }),
            "Lambda 'l' is made from code of your own\n"
            "  fix: a file holds no code: use a class of Keras's, or save the weights alone");
  EXPECT_EQ(saved([](LayerConfig&) { zeros({2}) + zeros({3}); }).substr(0, 4), "add:");
}

TEST_F(CustomLayers, WrongFactoriesAreTold) {
  keras::Sequential model({keras::Input({4}), Scale(2, keras::Dense(3)), Shift(1), Shift(2)}, {.name = "m"});
  model.save(path("m.keras"));
  auto loaded = [&](const std::string& name, keras::LayerFactory factory) {
    LayerFactories own = factories();
    own[name] = std::move(factory);
    std::string text = told([&] { keras::load_model(path("m.keras"), {.custom_layers = own}); });
    const std::string head = "load_model: 'm.keras/config.json': Sequential, ";
    return text.starts_with(head) ? text.substr(head.size()) : text;
  };
  EXPECT_EQ(loaded("Scale", {}), "layers[1], Scale: its factory is empty\n  fix: give a function that makes the layer");
  EXPECT_EQ(loaded("Scale", [](const LayerConfig&) { return keras::Layer(); }),
            "layers[1], Scale: its factory gives an undefined layer\n  fix: let it return the layer that it makes");
  EXPECT_EQ(loaded("Scale", [](const LayerConfig& config) { return Scale(config.get<double>("factory")); }),
            "layers[1], Scale: it has no 'factory'\n"
            "  fix: get_config() of its class should set it; or give a value for where it is missing: "
            "config.get<…>(\"factory\", …)");
  EXPECT_EQ(loaded("Scale", [](const LayerConfig& config) { return Scale(config.get<int>("inner")); }),
            "layers[1], Scale: its 'inner' is an object where an integer should stand\n"
            "  fix: write the file again, with the library that it comes from");
  EXPECT_EQ(loaded("Scale", [](const LayerConfig& config) { return Scale(config.get<double>("factor")); }),
            "layers[1], Scale: 'inner' is given, which its factory does not read\n"
            "  fix: read it, config.get<…>(\"inner\"), or say that it is of no use: config.ignore(\"inner\")");
  keras::Layer kept;
  EXPECT_EQ(loaded("my>Shift",
                   [&](const LayerConfig& config) {
                     config.ignore("by");
                     if (!kept.defined()) kept = Shift(1);
                     return kept;
                   }),
            "layers[3], Shift: its factory gives Shift 'shift', which was there before\n"
            "  fix: let it make a new layer at each call: this one's weights would be overwritten");
  EXPECT_EQ(loaded("Scale", [](const LayerConfig&) -> keras::Layer { return keras::Dense(-1); }).substr(0, 25),
            "layers[1], Scale: Dense: ");
  EXPECT_THROW(loaded("Scale", [](const LayerConfig&) -> keras::Layer { throw std::runtime_error("mine"); }),
               std::runtime_error);
  // Another layer than the file's weights are of.
  EXPECT_CONTAINS(loaded("Scale",
                         [](const LayerConfig& config) {
                           for (const char* name : {"inner", "activation"}) config.ignore(name);
                           return Scale(config.get<double>("factor"));
                         }),
                  "unexpected  layers/scale/inner/vars/0 f32[4,3]");
  // More weights than the file has are not made.
  EXPECT_CONTAINS(loaded("Scale",
                         [](const LayerConfig& config) {
                           for (const char* name : {"inner", "activation"}) config.ignore(name);
                           return Scale(config.get<double>("factor"), keras::Dense(1'000'000'000));
                         }),
                  "is not in the file, whose weights have 19 elements in all");
}

TEST_F(CustomLayers, AnErrorThatAFactoryCatchesLeavesNothing) {
  keras::Sequential model({keras::Input({4}), Scale(2), Scale(3)}, {.name = "m"});
  model.save(path("m.keras"));
  int made = 0;
  keras::LayerFactory careful = [&](const LayerConfig& config) {
    try {
      config.get<double>("not there");
    } catch (const UserError&) {
    }
    if (++made == 2) zeros({2}) + zeros({3});
    return Scale(config.get<double>("factor"), {}, config.get<keras::ActivationFunction>("activation"));
  };
  const std::string text = told([&] { keras::load_model(path("m.keras"), {.custom_layers = {{"Scale", careful}}}); });
  EXPECT_CONTAINS(text, "config.json': Sequential, layers[2], Scale: add: ");
  made = 5;
  EXPECT_TRUE(keras::load_model(path("m.keras"), {.custom_layers = {{"Scale", careful}}}).built());
}

TEST_F(CustomLayers, AModelThatCannotBeBuiltFromItsFileSaysSo) {
  /// Asks for values of its input: it cannot be traced.
  struct Host : keras::CustomModel {
    keras::Dense dense = keras::Dense(2);
    STET_MEMBERS(dense)
    Tensor call(const Tensor& x, const keras::Context&) override {
      return x.to_vector<float>()[0] > 1 ? dense(x) * 2 : dense(x);
    }
    void get_config(LayerConfig&) const override {}
  };
  keras::Model model = keras::make<Host>();
  const Tensor x = random::normal({2, 4});
  model(x);
  model.save(path("m.keras"));
  EXPECT_EQ(
      told([&] {
        keras::load_model(path("m.keras"),
                          {.custom_layers = {{"Host", [](const LayerConfig&) { return keras::make<Host>(); }}}});
      }),
      "load_model: 'm.keras/config.json': Host 'host' cannot be built from what the file says of its input, so its "
      "weights have no place\n"
      "  fix: call it on a batch in its factory, which makes its weights");
  keras::Model again = keras::load_model(path("m.keras"), {.custom_layers = {{"Host", [](const LayerConfig&) {
                                                                                keras::Model host = keras::make<Host>();
                                                                                host(zeros({1, 4}));
                                                                                return host;
                                                                              }}}});
  EXPECT_EQ(numbers(again(x)), numbers(model(x)));
}

// --- activations that are layers

TEST_F(CustomLayers, ActivationsThatAreLayers) {
  const Tensor x = tensor({{-2.f, 1.f}});
  keras::Dense dense(2, {.activation = keras::LeakyReLU(0.25), .kernel_initializer = "identity"});
  EXPECT_EQ(numbers(dense(x)), (std::vector<double>{-0.5, 1}));

  keras::Sequential model({keras::Input({3, 2}), keras::Conv1D(4, 1, {.activation = keras::ReLU({.max_value = 0.5})}),
                           keras::SimpleRNN(2, {.activation = keras::ELU(0.5)}), dense,
                           keras::Dense(2, {.activation = keras::make<Shift>(3)}),
                           keras::Activation(keras::Softmax())});
  model.compile({.loss = "mse"});
  const Tensor input = random::normal({5, 3, 2});
  model.fit(input, ones({5, 2}), {.verbose = 0});  // inside a trace, and under a tape
  model.save(path("m.keras"));
  keras::Model again = keras::load_model(path("m.keras"), {.custom_layers = factories()});
  EXPECT_EQ(numbers(again(input)), numbers(model(input)));
  EXPECT_EQ(again.weights().size(), model.weights().size());

  const std::string advice =
      "\n  fix: ReLU, LeakyReLU, ELU, Softmax, Activation and layers of your own without weights are taken; let other "
      "layers follow the one that should be activated";
  EXPECT_EQ(told([&] { keras::Dense(2, {.activation = keras::PReLU()}); }),
            "PReLU 'p_re_lu' is given as an activation" + advice);
  EXPECT_EQ(told([&] { keras::Dense(2, {.activation = keras::Dropout(0.5)}); }),
            "Dropout 'dropout' is given as an activation" + advice);
  EXPECT_CONTAINS(told([&] { keras::Dense(2, {.activation = keras::Layer()}); }), "undefined");
  keras::Dense weighted(2, {.activation = keras::make<Scale>(2.)});
  EXPECT_CONTAINS(told([&] { weighted(x); }), "Scale 'scale' is an activation, and has weights");
}

}  // namespace
}  // namespace stet
