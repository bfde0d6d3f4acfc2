// Every layer of the library in every way that layers are used, one trace each: called in a traced function at five
// sizes of the batch and of all lengths, in a functional model, by predict() and under a tape. Values are compared with
// Keras's by the tests of the families; here everything is compared with the layer called eagerly.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "keras_layer_table.h"
#include "keras_values.h"
#include "stet/stet.h"

namespace stet {
namespace {

using namespace layer_table;

std::vector<keras::KerasTensor> places(const LayerRow& row) {
  std::vector<keras::KerasTensor> out;
  for (const std::string& text : row.inputs) {
    const Described what = described(text);
    std::vector<DimSpec> sample;
    for (std::size_t i = 1; i < what.sizes.size(); ++i)
      sample.push_back(std::isdigit(what.sizes[i][0]) ? DimSpec(std::stoll(what.sizes[i])) : dyn(what.sizes[i]));
    out.push_back(keras::Input(ShapeSpec(sample), {.dtype = what.dtype}));
  }
  return out;
}

void expect_same(const Tensors& got, const Tensors& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].dtype(), expected[i].dtype()) << what;
    ASSERT_NO_FATAL_FAILURE(expect_close(got[i], expected[i], 2e-6, what));
  }
}

class EveryLayer : public ::testing::TestWithParam<LayerRow> {
 protected:
  void SetUp() override {
    random::seed(5);
    keras::clear_session();
    layer = GetParam().make();
    layer.call_many(given(GetParam(), 0));  // builds it
  }
  std::string round_name(std::size_t round) const { return "round " + std::to_string(round); }
  keras::Layer layer;
};

TEST_P(EveryLayer, IsTracedOnceForAllSizes) {
  Function traced = function("traced(inputs)", [&](std::vector<Tensor> inputs) { return layer.call_many(inputs); });
  for (std::size_t round = 0; round < 5; ++round) {
    const Tensors inputs = given(GetParam(), round);
    ASSERT_NO_FATAL_FAILURE(expect_same(traced(inputs), layer.call_many(inputs), round_name(round)));
  }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
  // In training layers draw, and change weights: that it is one trace, and what comes out is finite.
  Function training = function("training(inputs)",
                               [&](std::vector<Tensor> inputs) { return layer.call_many(inputs, {.training = true}); });
  for (std::size_t round = 0; round < 5; ++round)
    for (const Tensor& y : training(given(GetParam(), round)))
      EXPECT_TRUE(all(isfinite(cast(y, f32))).item<bool>()) << round_name(round);
  EXPECT_EQ(training.trace_count(), 1) << training.explain();
}

TEST_P(EveryLayer, IsPartOfAModelThatPredicts) {
  const std::vector<keras::KerasTensor> inputs = places(GetParam());
  keras::Model model(inputs, layer.call_many(inputs));
  for (std::size_t round = 0; round < 5; ++round) {
    const Tensors some = given(GetParam(), round), eager = layer.call_many(some);
    ASSERT_NO_FATAL_FAILURE(expect_same(model.call_many(some), eager, round_name(round)));
    if (some.size() > 1 || eager.size() > 1) continue;  // predict() takes and gives one tensor
    // Batches of two samples, and one with a single sample for odd numbers.
    ASSERT_NO_FATAL_FAILURE(expect_same({model.predict(some[0], {.batch_size = 2})}, eager, "predict"));
    EXPECT_EQ(model.predict_function().trace_count(), 1) << model.predict_function().explain();
  }
}

TEST_P(EveryLayer, HasTheGradientsOfEagerCallsInOneTrace) {
  auto gradients = [&](const std::vector<Tensor>& inputs) {
    GradientTape tape;
    std::vector<GradientTape::Source> sources;
    for (const Tensor& x : inputs)
      if (is_floating(x.dtype())) {
        tape.watch(x);
        sources.emplace_back(x);
      }
    for (const Variable& weight : layer.trainable_variables()) sources.emplace_back(weight);
    Tensor total = zeros({});
    for (const Tensor& y : layer.call_many(inputs)) total = total + sum(sin(cast(y, f32)));
    return tape.gradient(total, sources, {.unconnected = "zero"});
  };
  const Tensors first = given(GetParam(), 0), result = layer.call_many(first);
  const auto floating = [](const Tensor& x) { return is_floating(x.dtype()); };
  if (std::ranges::none_of(result, floating) ||
      (std::ranges::none_of(first, floating) && layer.trainable_variables().empty()))
    GTEST_SKIP() << "nothing to differentiate";
  Function traced = function("gradients(inputs)", gradients);
  for (std::size_t round : {1, 3}) {
    const Tensors inputs = given(GetParam(), round), eager = gradients(inputs), got = traced(inputs);
    ASSERT_EQ(got.size(), eager.size());
    double largest = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_NO_FATAL_FAILURE(expect_close(got[i], eager[i], 1e-5, round_name(round)));
      largest = std::max(largest, static_cast<double>(max(abs(got[i])).item<float>()));
    }
    EXPECT_GT(largest, 1e-3) << "nothing has a slope";
  }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
}

INSTANTIATE_TEST_SUITE_P(Keras, EveryLayer, ::testing::ValuesIn(rows()),
                         [](const auto& row) { return row.param.class_name; });

/// What the headers declare: the classes that are Layers, by the names of their bases.
std::set<std::string> layers_in_headers() {
  std::filesystem::path folder = std::filesystem::path(__FILE__).parent_path() / "../../stet/keras";
  if (!std::filesystem::exists(folder)) folder = "stet/keras";
  std::set<std::pair<std::string, std::string>> bases;  // a name may be that of a layer and of an initializer
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".h") continue;
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const std::regex declaration(R"(class\s+STET_API\s+(\w+)\s*:\s*public\s+(\w+))");
    for (std::sregex_iterator at(text.begin(), text.end(), declaration), end; at != end; ++at)
      bases.emplace((*at)[1], (*at)[2]);
  }
  std::set<std::string> out{"Layer"};
  for (std::size_t before = 0; before != out.size();) {
    before = out.size();
    for (const auto& [name, base] : bases)
      if (out.contains(base)) out.insert(name);
  }
  out.erase("Layer");
  return out;
}

TEST(EveryLayerTable, HasAllLayersOfTheHeaders) {
  const std::set<std::string> declared = layers_in_headers();
  ASSERT_GT(declared.size(), 90u) << "the headers were not found";
  std::set<std::string> in_table = not_called;
  for (const LayerRow& row : rows()) {
    EXPECT_TRUE(in_table.insert(row.class_name).second) << row.class_name << " is there twice";
    const keras::Layer made = row.make();
    const std::string shown = dynamic_cast<const keras::CustomLayer&>(*made.body()).class_name();
    EXPECT_TRUE(shown == row.class_name || row.class_name == "Model") << row.class_name << " makes a " << shown;
  }
  for (const std::string& name : declared)
    EXPECT_TRUE(in_table.contains(name)) << "stet/keras has the layer " << name << ", which rows() does not have";
  for (const std::string& name : in_table)
    EXPECT_TRUE(declared.contains(name)) << "rows() has " << name << ", which stet/keras does not have";
}

}  // namespace
}  // namespace stet
