// fit() and its kin on models of several inputs and outputs, and with weights of samples and classes: reports and
// weights after training as Keras has them, one trace for all batches, and what is said when something does not fit.
#include "expect_error.h"
#include "keras_values.h"

namespace stet {
namespace {

using keras::Batch;
using keras::CompileOptions;

KerasValues& values() {
  static KerasValues of_fit("fit");
  return of_fit;
}

/// The error says all of these, and the user's file.
template <class F, class... Part>
void expect_says(F f, const Part&... parts) {
  const std::string error = error_of(f);
  for (const std::string& part : {std::string(parts)...}) EXPECT_CONTAINS(error, part);
  EXPECT_CONTAINS(error, "keras_fit_outputs_test.cpp");
}
#define EXPECT_ERROR(code, ...) expect_says([&] { code; }, __VA_ARGS__)

keras::Model two_by_two() {
  keras::Input left({4}, {.name = "left"}), right({3}, {.name = "right"});
  auto both = keras::Concatenate()({keras::Dense(5, {.activation = tanh, .name = "of_left"})(left), right});
  return keras::Model({left, right}, {keras::Dense(3, {.activation = "softmax", .name = "kind"})(both),
                                      keras::Dense(2, {.name = "size"})(both)});
}
keras::Model one_by_one() {
  keras::Input left({4}, {.name = "left"});
  return keras::Model(left, keras::Dense(3, {.activation = "softmax", .name = "kind"})(left));
}

struct KerasFitOutputs : testing::Test {
  KerasFitOutputs() { keras::clear_session(); }
  const KerasCase data = values().at("data");
  const Tensor left = data["left"], right = data["right"], kind = data["kind"], size = data["size"];
  const Tensor kind_weight = data["kind_weight"], size_weight = data["size_weight"];
  const keras::LossesByOutput losses{{"kind", "sparse_categorical_crossentropy"}, {"size", "mse"}};

  static void start(const keras::Model& model, const KerasCase& known, CompileOptions options) {
    std::vector<Tensor> before;
    for (std::size_t i = 0; i < model.weights().size(); ++i) before.push_back(known["before_" + std::to_string(i)]);
    model.set_weights(before);
    options.optimizer = keras::SGD(0.1);
    model.compile(options);
  }
  static void expect_weights(const keras::Model& model, const KerasCase& known) {
    std::vector<Tensor> after = model.get_weights();
    for (std::size_t i = 0; i < after.size(); ++i)
      expect_close(after[i], known["after_" + std::to_string(i)], known.name() + " weight " + std::to_string(i));
  }
  /// Just the reports that Keras has, and equal ones.
  static void expect_reports(const std::map<std::string, Tensor>& reports, const KerasCase& known) {
    for (const std::string& key : known.keys())
      EXPECT_TRUE(!key.starts_with("report_") || reports.contains(key.substr(7))) << known.name() << " " << key;
    for (const auto& [name, value] : reports) {
      ASSERT_TRUE(known.has("report_" + name)) << known.name() << " reports " << name;
      expect_close(value, known["report_" + name], known.name() + " report " + name);
    }
  }
  static void expect_close(const Tensor& a, const Tensor& b, const std::string& what) {
    stet::expect_close(a, b, 1e-5, what);
  }
  static std::map<std::string, Tensor> by_epoch(const keras::History& history) {
    std::map<std::string, Tensor> out;
    for (const auto& [name, numbers] : history.values) out[name] = cast(tensor(numbers), f32);
    return out;
  }
  static std::map<std::string, Tensor> as_tensors(const keras::Results& results) {
    std::map<std::string, Tensor> out;
    for (const auto& [name, number] : results) out[name] = tensor(static_cast<float>(number));
    return out;
  }

  void compare_fit(const char* name, const keras::Model& model, const CompileOptions& options, const keras::Data& data,
                   keras::FitOptions fit = {}) {
    SCOPED_TRACE(name);
    const KerasCase known = values().at(name);
    start(model, known, options);
    fit.batch_size = 4;
    fit.epochs = 2;
    fit.shuffle = false;
    fit.verbose = 0;
    expect_reports(by_epoch(model.fit(data, fit)), known);
    expect_weights(model, known);
    EXPECT_EQ(model.train_function().trace_count(), 1);
  }
};

TEST_F(KerasFitOutputs, ReportsAndWeightsAreThoseOfKeras) {
  compare_fit("in_order", two_by_two(), {.loss = {"sparse_categorical_crossentropy", "mse"}},
              {{left, right}, {kind, size}});
  compare_fit("by_name", two_by_two(), {.loss = losses, .metrics = {{"kind", {"accuracy"}}, {"size", {"mae", "mse"}}}},
              {{{"right", right}, {"left", left}}, {{"size", size}, {"kind", kind}}});
  compare_fit("loss_weights", two_by_two(), {.loss = losses, .loss_weights = {{"kind", 0.5}, {"size", 2}}},
              {{left, right}, {kind, size}});
  compare_fit(
      "loss_weights_in_order", two_by_two(),
      {.loss = {"sparse_categorical_crossentropy", "mse"}, .loss_weights = {0.3, 1.5}, .metrics = {"accuracy", "mae"}},
      {{left, right}, {kind, size}});
  compare_fit("validation", two_by_two(), {.loss = losses, .metrics = {{"kind", {"accuracy"}}}},
              {{left, right}, {kind, size}}, {.validation_split = 0.3});
  compare_fit("one_loss_for_all", two_by_two(), {.loss = "mse"}, {{left, right}, {one_hot(kind, 3), size}});
}

TEST_F(KerasFitOutputs, WeightsOfSamplesAndClassesCountAsInKeras) {
  const CompileOptions weighted{.loss = losses,
                                .metrics = {{"kind", {"accuracy"}}},
                                .weighted_metrics = {{"kind", {"accuracy"}}, {"size", {"mae"}}}};
  compare_fit("weights_by_output", two_by_two(), weighted, {{left, right}, {kind, size}, {kind_weight, size_weight}});
  compare_fit("one_weight_for_all", two_by_two(), {.loss = losses, .weighted_metrics = {{"size", {"mae"}}}},
              {{left, right}, {kind, size}}, {.sample_weight = kind_weight});
  compare_fit("class_weight", one_by_one(),
              {.loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}, .weighted_metrics = {"accuracy"}},
              {left, kind}, {.class_weight = {{0, 0.5}, {2, 3}}});
  // Labels in a column, and as floating numbers, mean the same.
  compare_fit("class_weight", one_by_one(),
              {.loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}, .weighted_metrics = {"accuracy"}},
              {left, cast(reshape(kind, {10, 1}), f32)}, {.class_weight = {{0, 0.5}, {2, 3}}});
  compare_fit("class_weight_one_hot", one_by_one(),
              {.loss = "categorical_crossentropy", .weighted_metrics = {"accuracy"}}, {left, one_hot(kind, 3)},
              {.class_weight = {{0, 0.5}, {1, 2}, {2, 3}}});
  const CompileOptions options{.loss = "sparse_categorical_crossentropy", .weighted_metrics = {"accuracy"}};
  compare_fit("class_and_sample_weight", one_by_one(), options, {left, kind, kind_weight});
  // Keras takes one of both; here they are multiplied.
  const Tensor table = tensor({0.5F, 1.0F, 3.0F});
  compare_fit("class_and_sample_weight", one_by_one(), options, {left, kind, kind_weight / gather(table, kind)},
              {.class_weight = {{0, 0.5}, {2, 3}}});
  // Classes above the last one that is named weigh 1 too.
  const Tensor first_alone = tensor({0.5F, 1.0F, 1.0F});
  compare_fit("class_and_sample_weight", one_by_one(), options, {left, kind, kind_weight / gather(first_alone, kind)},
              {.class_weight = {{0, 0.5}}});
}

TEST_F(KerasFitOutputs, SingleBatchesAreThoseOfKeras) {
  const CompileOptions options{.loss = losses, .metrics = {{"kind", {"accuracy"}}}};
  {
    const KerasCase known = values().at("train_on_batch");
    keras::Model model = two_by_two();
    start(model, known, options);
    const Range first = range(0, 4), rest = range(4, 10);
    model.train_on_batch({left[first], right[first]}, {kind[first], size[first]});
    expect_reports(as_tensors(model.train_on_batch({left[rest], right[rest]}, {kind[rest], size[rest]})), known);
    expect_weights(model, known);
    EXPECT_EQ(model.train_function().trace_count(), 1);
  }
  {
    const KerasCase known = values().at("train_on_batch_class_weight");
    keras::Model model = one_by_one();
    start(model, known, {.loss = "sparse_categorical_crossentropy"});
    expect_reports(as_tensors(model.train_on_batch(left, kind, {.class_weight = {{0, 0.5}, {2, 3}}})), known);
    expect_weights(model, known);
  }
  for (const char* name : {"test_on_batch", "evaluate"}) {
    const KerasCase known = values().at(name);
    keras::Model model = two_by_two();
    start(model, known, {.loss = losses, .weighted_metrics = {{"size", {"mae"}}}});
    expect_reports(
        as_tensors(std::string(name) == "evaluate"
                       ? model.evaluate({left, right}, {kind, size}, {.batch_size = 4, .sample_weight = size_weight})
                       : model.test_on_batch({left, right}, {kind, size}, {.sample_weight = size_weight})),
        known);
    expect_weights(model, known);
  }
}

struct Sides {
  Tensor right, left;
  STET_FIELDS(right, left)
};
struct Answers {
  Tensor size, kind;
  STET_FIELDS(size, kind)
};

TEST_F(KerasFitOutputs, ADatasetGivesTuplesOrNamedFields) {
  const KerasCase known = values().at("by_name");
  const CompileOptions options{.loss = losses, .metrics = {{"kind", {"accuracy"}}, {"size", {"mae", "mse"}}}};
  keras::Model model = two_by_two();
  start(model, known, options);
  auto tuples = data::from_tensor_slices(std::tuple{left, right}, std::tuple{kind, size}).batch(4);
  expect_reports(by_epoch(model.fit(tuples, {.epochs = 2, .verbose = 0})), known);
  expect_weights(model, known);

  keras::Model again = two_by_two();
  start(again, known, options);
  auto fields = data::from_tensor_slices(Sides{right, left}, Answers{size, kind}).batch(4);
  expect_reports(by_epoch(again.fit(fields, {.epochs = 2, .verbose = 0})), known);
  expect_weights(again, known);
  EXPECT_EQ(again.train_function().trace_count(), 1);
  std::vector<Tensor> all = again.predict_many(fields), direct = again.call_many({left, right});
  ASSERT_EQ(all.size(), 2U);
  expect_close(all[0], direct[0], "kind");
  expect_close(all[1], direct[1], "size");
}

TEST_F(KerasFitOutputs, PredictGivesAllOutputsOfAllSamples) {
  keras::Model model = two_by_two();
  std::vector<Tensor> direct = model.call_many({left, right});
  for (std::int64_t batch_size : {1, 3, 4, 10, 64}) {
    std::vector<Tensor> all = model.predict_many({left, right}, {.batch_size = batch_size});
    ASSERT_EQ(all.size(), 2U);
    expect_close(all[0], direct[0], "kind");
    expect_close(all[1], direct[1], "size");
  }
  EXPECT_EQ(model.predict_function().trace_count(), 1);
  expect_close(model.predict_many({{"right", right}, {"left", left}})[1], direct[1], "by name");
  keras::Model one = one_by_one();
  expect_close(one.predict_on_batch(left), one.predict(left, {.batch_size = 3}), "one batch");
}

/// A model of one's own with two outputs, which have no names.
struct Two : keras::CustomModel {
  keras::Dense a{3}, b{2};
  STET_MEMBERS(a, b)
  keras::Tensors call_many(const keras::Tensors& inputs, const keras::Context&) override {
    return {a(inputs[0]), b(inputs[1])};
  }
};
struct NamedTwo : Two {
  keras::ModelNames names() const override { return {{"left", "right"}, {"kind", "size"}}; }
};

TEST_F(KerasFitOutputs, AModelOfOnesOwnHasOutputsByNumberOrGivesThemNames) {
  keras::Model model = Two();
  model.compile({.optimizer = keras::SGD(0.01), .loss = "mse", .metrics = {"mae", "mae"}});
  keras::History history =
      model.fit({left, right}, {one_hot(kind, 3), size}, {.batch_size = 3, .epochs = 3, .verbose = 0});
  std::vector<std::string> names;
  for (const auto& [name, _] : history.values) names.push_back(name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"loss", "output_1_loss", "output_1_mae", "output_2_loss", "output_2_mae"}));
  EXPECT_EQ(model.train_function().trace_count(), 1);
  EXPECT_LT(history["loss"][2], history["loss"][0]);

  keras::Model named = NamedTwo();
  named.compile({.optimizer = keras::SGD(0.01), .loss = {{"size", "mse"}}, .metrics = {{"size", {"mae"}}}});
  // Labels of the output that is trained alone.
  history = named.fit({{"left", left}, {"right", right}}, {{"size", size}}, {.verbose = 0});
  EXPECT_EQ(history.values.size(), 2U);
  EXPECT_EQ(history.values.count("size_mae"), 1U);
  EXPECT_EQ(named.fit({left, right}, size, {.verbose = 0}).values.size(), 2U);
}

TEST_F(KerasFitOutputs, SeveralStepsRunBetweenTwoLooksAtCallbacks) {
  std::vector<std::string> told;
  keras::Model model = one_by_one();
  model.compile({.optimizer = keras::SGD(0.1), .loss = "sparse_categorical_crossentropy", .steps_per_execution = 2});
  keras::LambdaCallback watch(
      {.on_train_batch_begin = [&](std::int64_t number) { told.push_back("begin " + std::to_string(number)); },
       .on_train_batch_end = [&](std::int64_t number,
                                 const keras::BatchLogs&) { told.push_back("end " + std::to_string(number)); }});
  keras::History history =
      model.fit(left, kind, {.batch_size = 2, .epochs = 1, .verbose = 0, .callbacks = {watch}, .shuffle = false});
  EXPECT_EQ(told, (std::vector<std::string>{"begin 0", "end 1", "begin 2", "end 3", "begin 4", "end 4"}));
  EXPECT_EQ(model.optimizer().iterations().read().item<std::int64_t>(), 5);
  told.clear();
  model.fit(left, kind, {.batch_size = 2, .epochs = 1, .verbose = 0, .callbacks = {watch}, .steps_per_epoch = 3});
  EXPECT_EQ(told, (std::vector<std::string>{"begin 0", "end 1", "begin 2", "end 2"}));
  EXPECT_EQ(model.optimizer().iterations().read().item<std::int64_t>(), 8);
  EXPECT_ERROR(model.compile({.loss = "mse", .steps_per_execution = 0}), "compile: steps_per_execution = 0",
               "it is 1 or more");
}

TEST_F(KerasFitOutputs, WhatDoesNotFitIsSaid) {
  keras::Model model = two_by_two();
  auto compile = [&](CompileOptions options) { model.compile(options); };
  EXPECT_ERROR(compile({.loss = {"mse", "mse", "mse"}}), "compile: there are 3 losses for 2 outputs",
               "give one for every output, in their order, or by their names: {{\"name\", …}, …}");
  EXPECT_ERROR(compile({.loss = {{"colour", "mse"}}}),
               "compile: losses are given for 'colour', which is none of the model's outputs",
               "they are 'kind', 'size'");
  EXPECT_ERROR(compile({.loss = {{"size", "mse"}, {"size", "mae"}}}), "compile: there are two losses of 'size'");
  EXPECT_ERROR(compile({.loss = "mse", .loss_weights = {1.0}}), "compile: there are 1 loss_weights for 2 outputs");
  EXPECT_ERROR(compile({.loss = {{"size", "mse"}}, .loss_weights = {{"kind", 2}}}),
               "compile: there is a weight for the loss of 'kind', which has none");
  EXPECT_ERROR(compile({.loss = "mse", .metrics = {"mae", "mse", "mae"}}),
               "compile: there are 3 metrics for 2 outputs");
  EXPECT_ERROR(compile({.loss = "mse", .metrics = {{"kind", {"mae", "mae"}}}}),
               "compile: there are two metrics 'kind_mae'");
  keras::Metric shared = "mae";
  EXPECT_ERROR(compile({.loss = "mse", .metrics = {shared, shared}}),
               "compile: one metric 'mae' is to gather from several places, the last of them output 'size'",
               "make one for each");
  EXPECT_ERROR(compile({.loss = "mse", .metrics = {keras::Metric(), "mae"}}),
               "compile: a metric of metrics is undefined");

  model.compile({.loss = losses});
  EXPECT_ERROR(model.fit({left, right}, kind, {.verbose = 0}),
               "the model gives 2 outputs, and the data has 1 tensor of labels");
  EXPECT_ERROR(model.fit({left, right}, {{"kind", kind}}, {.verbose = 0}),
               "the data has no labels for output 'size', which the loss needs");
  EXPECT_ERROR(model.fit(left, {kind, size}, {.verbose = 0}), "takes 2 tensors and was given 1");
  EXPECT_ERROR(model.fit({left, right[range(0, 5)]}, {kind, size}, {.verbose = 0}),
               "x[0] f32[10,4] has 10 samples, x[1] f32[5,3] has 5");
  EXPECT_ERROR(model.fit({{"left", left}}, {kind, size}, {.verbose = 0}),
               "the data has no x of 'right', which is one of the model's inputs", "they are 'left', 'right'");
  EXPECT_ERROR(model.fit({{"left", left}, {"righ", right}}, {kind, size}, {.verbose = 0}),
               "the data gives x of 'righ', which is none of the model's inputs");
  EXPECT_ERROR(model.fit({{"left", left}, {"left", right}}, {kind, size}, {.verbose = 0}),
               "the data gives x of 'left' twice");
  EXPECT_ERROR(model.fit({left, right}, {{"kind", kind}, {"sise", size}}, {.verbose = 0}),
               "the data gives y of 'sise', which is none of the model's outputs", "they are 'kind', 'size'");
  EXPECT_ERROR(model.predict({left, right}), "gives 2 outputs", "predict_many() gives all of them");
  EXPECT_ERROR(model.fit({left, right}, {kind, size}, {.verbose = 0, .class_weight = {{0, 2}}}),
               "class_weight: there are 2 tensors of labels");
  EXPECT_ERROR(model.fit({{left, right}, {kind, size}, {kind_weight, kind_weight, kind_weight}}, {.verbose = 0}),
               "the model gives 2 outputs, and the data has 3 tensors of sample weights");

  keras::Model one = one_by_one();
  one.compile({.loss = "sparse_categorical_crossentropy"});
  EXPECT_ERROR(one.fit(left, ones({10, 2, 2}), {.verbose = 0, .class_weight = {{0, 2}}}),
               "class_weight: the labels are f32[10,2,2]");
  EXPECT_ERROR(one.fit(left, kind, {.verbose = 0, .class_weight = {{-1, 2}}}),
               "class_weight: there is a weight of class -1", "classes are counted from 0");
  EXPECT_ERROR(one.fit({left}, {.verbose = 0, .class_weight = {{0, 2}}}), "class_weight: the data has no labels");
  EXPECT_ERROR(one.fit(data::from_tensor_slices(left, kind).batch(2), {.verbose = 0, .sample_weight = kind_weight}),
               "sample_weight beside a Dataset", "let its elements be (x, y, sample_weight)");
  EXPECT_ERROR(one.fit(keras::Data(left, kind, kind_weight), {.verbose = 0, .sample_weight = kind_weight}),
               "the data has weights, and sample_weight gives others");
  EXPECT_ERROR(one.train_on_batch(left[range(0, 0)], kind[range(0, 0)]), "the batch is empty");
  EXPECT_ERROR(one_by_one().train_on_batch(left, kind), "train_on_batch: ", "is not compiled");

  keras::Model own = Two();
  own.compile({.loss = {{"kind", "mse"}}});
  EXPECT_ERROR(own.fit({left, right}, {kind, size}, {.verbose = 0}),
               "compile: losses are given by name ('kind'), and the model's outputs have no names");
  EXPECT_ERROR(own.fit({{"left", left}, {"right", right}}, {kind, size}, {.verbose = 0}),
               "the data gives x by name ('left', 'right'), and the model's inputs have no names");
}

TEST_F(KerasFitOutputs, zAllThatKerasMadeIsCompared) { EXPECT_EQ(values().left(), std::vector<std::string>()); }

}  // namespace
}  // namespace stet
