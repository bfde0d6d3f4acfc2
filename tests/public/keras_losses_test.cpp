// Every loss against values and derivatives that Keras computed, eagerly and in traces that serve two batch sizes; and
// what is said about wrong uses.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <limits>
#include <map>

#include "expect_error.h"
#include "keras_values.h"
#include "stet/stet.h"

using namespace stet;
using keras::Loss;
namespace losses = keras::losses;

namespace {

using Losses = std::map<std::string, Loss>;

/// The variants that every loss of numbers has.
template <class L>
void add_numbers(Losses& all, const std::string& name) {
  const std::pair<const char*, const char*> variants[] = {
      {"", "sum_over_batch_size"},
      {"/weights", "sum_over_batch_size"},
      {"/sum", "sum"},
      {"/mean", "mean"},
      {"/mean_with_sample_weight", "mean_with_sample_weight"},
      {"/none", "none"},
      {"/none_unweighted", "none"},
      {"/steps", "sum_over_batch_size"},
      {"/steps_weights", "sum_over_batch_size"},
      {"/steps_weights_column", "mean_with_sample_weight"},
      {"/steps_weights_trailing", "none"},
      {"/weight_of_all", "sum_over_batch_size"},
      {"/weights_column", "none"},
      {"/no_weight_at_all", "mean_with_sample_weight"},
      {"/integer_labels", "sum_over_batch_size"},
  };
  for (const auto& [suffix, reduction] : variants) all[name + suffix] = L({.reduction = reduction});
}

template <class L>
void add_binary(Losses& all, const std::string& name) {
  for (const char* suffix : {"", "/weights", "/certain", "/vectors"}) all[name + suffix] = L();
  for (const char* suffix : {"/logits", "/integer_labels"}) all[name + suffix] = L({.from_logits = true});
  all[name + "/smoothing"] = L({.label_smoothing = 0.2});
  all[name + "/logits_smoothing"] = L({.from_logits = true, .label_smoothing = 0.1});
  all[name + "/axis_0"] = L({.axis = 0});
  all[name + "/axis_1"] = L({.axis = 1, .reduction = "none"});
  all[name + "/soft_labels"] = L({.from_logits = true, .reduction = "sum"});
}

template <class L>
void add_categorical(Losses& all, const std::string& name) {
  for (const char* suffix : {"", "/weights", "/unscaled", "/certain", "/steps"}) all[name + suffix] = L();
  all[name + "/logits"] = L({.from_logits = true});
  all[name + "/smoothing"] = L({.label_smoothing = 0.2});
  all[name + "/logits_smoothing"] = L({.from_logits = true, .label_smoothing = 0.1});
  all[name + "/soft_labels"] = L({.from_logits = true, .reduction = "sum"});
  all[name + "/axis_1"] = L({.axis = 1});
  all[name + "/axis_1_logits"] = L({.from_logits = true, .axis = 1, .reduction = "none"});
}

void add_sparse(Losses& all) {
  using L = losses::SparseCategoricalCrossentropy;
  const std::string name = "SparseCategoricalCrossentropy";
  for (const char* suffix : {"", "/column", "/float_labels", "/unscaled"}) all[name + suffix] = L();
  for (const char* suffix : {"/logits", "/weights", "/steps"}) all[name + suffix] = L({.from_logits = true});
  all[name + "/certain"] = L({.reduction = "none"});
  all[name + "/axis_1"] = L({.from_logits = true, .reduction = "none", .axis = 1});
  all[name + "/axis_1_probabilities"] = L({.axis = 1});
  for (const char* reduction : {"sum_over_batch_size", "sum", "mean_with_sample_weight", "none"})
    for (const char* kind : {"/ignore_", "/ignore_weights_"})
      all[name + kind + reduction] = L({.from_logits = true, .ignore_class = 3, .reduction = reduction});
  all[name + "/ignore_negative"] = L({.from_logits = true, .ignore_class = -1});
  all[name + "/ignore_probabilities"] = L({.ignore_class = 3});
  all[name + "/ignore_all"] = L({.from_logits = true, .ignore_class = 3});
}

Losses all_losses() {
  Losses all;
  add_numbers<losses::MeanSquaredError>(all, "MeanSquaredError");
  add_numbers<losses::MeanAbsoluteError>(all, "MeanAbsoluteError");
  add_numbers<losses::MeanAbsolutePercentageError>(all, "MeanAbsolutePercentageError");
  add_numbers<losses::MeanSquaredLogarithmicError>(all, "MeanSquaredLogarithmicError");
  add_numbers<losses::LogCosh>(all, "LogCosh");
  add_numbers<losses::Huber>(all, "Huber");
  add_numbers<losses::CosineSimilarity>(all, "CosineSimilarity");
  add_numbers<losses::Poisson>(all, "Poisson");
  for (const char* suffix : {"/labels_vector", "/predictions_vector", "/vectors"})
    all["MeanSquaredError" + std::string(suffix)] = losses::MeanSquaredError();
  all["MeanAbsolutePercentageError/zeros"] = losses::MeanAbsolutePercentageError();
  all["MeanSquaredLogarithmicError/negative"] = losses::MeanSquaredLogarithmicError();
  all["LogCosh/far"] = losses::LogCosh();
  all["Poisson/zeros"] = losses::Poisson();
  all["Huber/delta_0.1"] = losses::Huber({.delta = 0.1});
  all["Huber/delta_2.5"] = losses::Huber({.delta = 2.5});
  all["CosineSimilarity/axis_0"] = losses::CosineSimilarity({.axis = 0});
  all["CosineSimilarity/axis_1"] = losses::CosineSimilarity({.axis = 1, .reduction = "none"});
  all["CosineSimilarity/zero_vector"] = losses::CosineSimilarity();
  for (const char* suffix : {"", "/binary"}) {
    all["Hinge" + std::string(suffix)] = losses::Hinge();
    all["SquaredHinge" + std::string(suffix)] = losses::SquaredHinge();
  }
  all["Hinge/mixed"] = losses::Hinge({.reduction = "none"});
  all["SquaredHinge/mixed"] = losses::SquaredHinge({.reduction = "none"});
  all["CategoricalHinge"] = losses::CategoricalHinge();
  all["CategoricalHinge/steps"] = losses::CategoricalHinge({.reduction = "sum"});
  add_binary<losses::BinaryCrossentropy>(all, "BinaryCrossentropy");
  add_binary<losses::BinaryFocalCrossentropy>(all, "BinaryFocalCrossentropy");
  all["BinaryCrossentropy/far_logits"] = losses::BinaryCrossentropy({.from_logits = true, .reduction = "none"});
  all["BinaryFocalCrossentropy/balanced"] = losses::BinaryFocalCrossentropy({.apply_class_balancing = true});
  all["BinaryFocalCrossentropy/balanced_alpha_gamma"] =
      losses::BinaryFocalCrossentropy({.apply_class_balancing = true, .alpha = 0.7, .gamma = 3.5, .from_logits = true});
  all["BinaryFocalCrossentropy/gamma_0"] = losses::BinaryFocalCrossentropy({.gamma = 0});
  add_categorical<losses::CategoricalCrossentropy>(all, "CategoricalCrossentropy");
  add_categorical<losses::CategoricalFocalCrossentropy>(all, "CategoricalFocalCrossentropy");
  all["CategoricalFocalCrossentropy/alpha_gamma"] = losses::CategoricalFocalCrossentropy({.alpha = 0.6, .gamma = 0.5});
  all["CategoricalFocalCrossentropy/gamma_3_logits"] =
      losses::CategoricalFocalCrossentropy({.gamma = 3, .from_logits = true});
  add_sparse(all);
  all["CategoricalGeneralizedCrossEntropy/q_0.1"] = losses::CategoricalGeneralizedCrossEntropy({.q = 0.1});
  all["CategoricalGeneralizedCrossEntropy/q_0.5"] = losses::CategoricalGeneralizedCrossEntropy();
  all["CategoricalGeneralizedCrossEntropy/q_0.9"] = losses::CategoricalGeneralizedCrossEntropy({.q = 0.9});
  for (const char* suffix : {"", "/steps"}) all["KLDivergence" + std::string(suffix)] = losses::KLDivergence();
  all["KLDivergence/zeros"] = losses::KLDivergence({.reduction = "none"});
  for (const char* suffix : {"", "/weights"}) all["CTC" + std::string(suffix)] = losses::CTC();
  all["CTC/none"] = losses::CTC({.reduction = "none"});
  for (const char* suffix : {"", "/weight_of_all", "/weights_of_scalar"}) {
    all["Dice" + std::string(suffix)] = losses::Dice();
    all["Tversky" + std::string(suffix)] = losses::Tversky();
  }
  all["Dice/axis"] = losses::Dice({.axis = {1, 2, 3}});
  all["Tversky/axis"] = losses::Tversky({.axis = {1, 2, 3}});
  all["Dice/axis_last"] = losses::Dice({.reduction = "none", .axis = {-1}});
  all["Tversky/axis_last"] = losses::Tversky({.reduction = "none", .axis = {-1}});
  all["Tversky/alpha_beta"] = losses::Tversky({.alpha = 0.3, .beta = 0.7, .axis = {1, 2}});
  for (const char* suffix : {"", "/lonely"}) all["Circle" + std::string(suffix)] = losses::Circle();
  all["Circle/lonely_none"] = losses::Circle({.reduction = "none"});
  all["Circle/weights"] = losses::Circle({.gamma = 10, .margin = 0.25});
  all["Circle/diagonal"] = losses::Circle({.gamma = 16, .remove_diagonal = false});
  all["Circle/sum"] = losses::Circle({.gamma = 16, .reduction = "sum"});
  return all;
}

/// The loss, and the derivatives of the sum of what it gives.
std::pair<Tensor, Tensor> with_gradient(const Loss& loss, const Tensor& y, const Tensor& p, const Tensor& weight) {
  GradientTape tape;
  tape.watch(p);
  Tensor value = loss(y, p, weight);
  Tensor gradient = tape.gradient(sum(value), p);
  return {value, gradient};
}

/// The batch twice over.
Tensor twice(const Tensor& t) { return t.defined() && t.rank() > 0 ? concat({t, t}, 0) : t; }

double largest = 0;
void compare(const Tensor& got, const Tensor& expected, double tolerance, const std::string& what) {
  expect_close(got, expected, tolerance, what);
  if (got.size() == 0) return;
  Tensor a = cast(got, f64), b = cast(expected, f64);
  Tensor difference = where(a == b, 0.0, abs(a - b) / maximum(1.0, abs(b)));
  largest = std::max(largest, max(difference).item<double>());
}

TEST(KerasLosses, AsKerasHasThem) {
  KerasValues values("losses");
  int compared = 0;
  std::vector<FunctionBase> kept;  // else many functions made on one line would end, and stet would advise against it
  for (const auto& [name, loss] : all_losses()) {
    const KerasCase& one = values.at(name);
    const Tensor y = one["y_true"], p = one["y_pred"],
                 weight = one.has("sample_weight") ? one["sample_weight"] : Tensor();
    auto [value, gradient] = with_gradient(loss, y, p, weight);
    compare(value, one["loss"], 3e-6, name);
    if (one.has("gradient")) compare(gradient, one["gradient"], 3e-6, name + ", gradient");

    Function traced = function("traced(y, p)", [loss = loss](Tensor labels, Tensor predictions) {
      return with_gradient(loss, labels, predictions, Tensor());
    });
    Function weighted =
        function("weighted(y, p, weight)", [loss = loss](Tensor labels, Tensor predictions, Tensor weights) {
          return with_gradient(loss, labels, predictions, weights);
        });
    kept.insert(kept.end(), {traced, weighted});
    for (bool larger : {false, true}) {
      Tensor labels = larger ? twice(y) : y, predictions = larger ? twice(p) : p,
             weights = larger ? twice(weight) : weight;
      auto [expected, expected_gradient] = with_gradient(loss, labels, predictions, weights);
      auto [got, got_gradient] =
          weight.defined() ? weighted(labels, predictions, weights) : traced(labels, predictions);
      expect_close(got, expected, 1e-6, name + ", traced");
      expect_close(got_gradient, expected_gradient, 1e-6, name + ", gradient, traced");
    }
    EXPECT_EQ(traced.trace_count() + weighted.trace_count(), 1) << name;
    ++compared;
  }
  const KerasCase& reference = values.at("circle/reference");
  compare(losses::circle(reference["y_true"], reference["y_pred"],
                         {.ref_labels = reference["ref_labels"],
                          .ref_embeddings = reference["ref_embeddings"],
                          .remove_diagonal = false,
                          .gamma = 20,
                          .margin = 0.3}),
          reference["loss"], 3e-6, "circle/reference");
  EXPECT_EQ(values.left(), std::vector<std::string>());
  std::cout << compared + 1 << " losses, largest relative difference " << largest << "\n";
}

TEST(KerasLosses, ByNameAsKerasResolvesThem) {
  Tensor y = tensor({{0.f, 1.f, 0.f}, {1.f, 0.f, 0.f}}), p = tensor({{0.2f, 0.5f, 0.3f}, {0.6f, 0.1f, 0.3f}});
  const std::pair<std::vector<const char*>, Loss> same[] = {
      {{"mse", "MSE", "mean_squared_error", "MeanSquaredError"}, losses::MeanSquaredError()},
      {{"mae", "MAE", "mean_absolute_error", "MeanAbsoluteError"}, losses::MeanAbsoluteError()},
      {{"mape", "MAPE", "mean_absolute_percentage_error", "MeanAbsolutePercentageError"},
       losses::MeanAbsolutePercentageError()},
      {{"msle", "MSLE", "mean_squared_logarithmic_error", "MeanSquaredLogarithmicError"},
       losses::MeanSquaredLogarithmicError()},
      {{"bce", "BCE", "binary_crossentropy", "BinaryCrossentropy"}, losses::BinaryCrossentropy()},
      {{"kld", "KLD", "kl_divergence", "KLDivergence"}, losses::KLDivergence()},
      {{"binary_focal_crossentropy", "BinaryFocalCrossentropy"}, losses::BinaryFocalCrossentropy()},
      {{"categorical_crossentropy", "CategoricalCrossentropy"}, losses::CategoricalCrossentropy()},
      {{"categorical_focal_crossentropy", "CategoricalFocalCrossentropy"}, losses::CategoricalFocalCrossentropy()},
      {{"categorical_hinge", "CategoricalHinge"}, losses::CategoricalHinge()},
      {{"hinge", "Hinge"}, losses::Hinge()},
      {{"squared_hinge", "SquaredHinge"}, losses::SquaredHinge()},
      {{"cosine_similarity", "CosineSimilarity"}, losses::CosineSimilarity()},
      {{"dice", "Dice"}, losses::Dice()},
      {{"tversky", "Tversky"}, losses::Tversky()},
      {{"huber", "Huber"}, losses::Huber()},
      {{"log_cosh", "LogCosh"}, losses::LogCosh()},
      {{"poisson", "Poisson"}, losses::Poisson()},
  };
  for (const auto& [names, loss] : same)
    for (const char* name : names) {
      EXPECT_EQ(Loss(name)(y, p).item<float>(), loss(y, p).item<float>()) << name;
      EXPECT_EQ(Loss(name).name(), loss.name()) << name;
    }
  Tensor classes = tensor({1, 0});
  for (const char* name : {"sparse_categorical_crossentropy", "SparseCategoricalCrossentropy"})
    EXPECT_EQ(Loss(name)(classes, p).item<float>(), losses::SparseCategoricalCrossentropy()(classes, p).item<float>());
  for (const char* name : {"circle", "Circle"}) EXPECT_EQ(Loss(name).name(), "circle");
  for (const char* name : {"ctc", "CTC"}) EXPECT_EQ(Loss(name).name(), "ctc");
  EXPECT_EQ(Loss("huber").name(), "huber_loss");
  EXPECT_EQ(losses::Dice({.name = "overlap"}).name(), "overlap");
  std::string error = error_of([] { Loss("hubre"); });
  EXPECT_CONTAINS(error, "there is no loss 'hubre'");
  EXPECT_CONTAINS(error, "mean_squared_error (mse), ");
  EXPECT_CONTAINS(error, "huber, ");
  EXPECT_CONTAINS(error, "; or a function");
}

TEST(KerasLosses, FunctionsAndClassesOfUsers) {
  Tensor y = tensor({{1.f}, {2.f}, {4.f}}), p = tensor({{1.f}, {0.f}, {1.f}}), weight = tensor({1.f, 1.f, 2.f});
  auto squared = [](Tensor a, Tensor b) { return mean(square(a - b), -1); };
  EXPECT_EQ(Loss(squared, {.reduction = "sum"})(y, p, weight).item<float>(), 22);
  EXPECT_EQ(Loss(squared, {.reduction = "mean_with_sample_weight"})(y, p, weight).item<float>(), 5.5f);
  EXPECT_EQ(Loss(squared, {.reduction = "none"})(y, p, weight).to_vector<float>(), (std::vector<float>{0, 4, 18}));
  EXPECT_EQ(Loss(squared, {.name = "mine"}).name(), "mine");
  struct FourthPower : keras::CustomLoss {
    FourthPower() : CustomLoss({.reduction = "sum"}) {}
    Tensor call(const Tensor& a, const Tensor& b) override { return mean(pow(a - b, 4), -1); }
  };
  Loss fourth = FourthPower{};
  EXPECT_EQ(fourth(y, p).item<float>(), 16 + 81);
  EXPECT_EQ(fourth.name(), "fourth_power");
  // Numbers of integers, too, have a mean.
  EXPECT_EQ(Loss([](Tensor a, Tensor b) { return cast(sum(abs(a - b), -1), i32); })(y, p).item<float>(), 5.f / 3);
  EXPECT_CONTAINS(error_of([&] { Loss([](Tensor, Tensor) { return Tensor(); })(y, p); }),
                  "the loss function gave an undefined tensor");
}

TEST(KerasLosses, TypesOfPredictions) {
  Tensor y = tensor({{0.f, 1.f}, {1.f, 0.f}}), p = tensor({{0.25f, 0.75f}, {0.5f, 0.5f}});
  for (const char* name :
       {"mse", "mae", "mape", "msle", "log_cosh", "huber", "hinge", "squared_hinge", "categorical_hinge", "bce",
        "binary_focal_crossentropy", "categorical_crossentropy", "categorical_focal_crossentropy", "kld", "poisson",
        "cosine_similarity", "dice", "tversky"}) {
    const double expected = Loss(name)(y, p).item<float>();
    // Half precision is computed in f32, double precision in its own; all of these inputs are exact in every type.
    for (DType type : {f16, bf16, f32, f64}) {
      Tensor loss = Loss(name)(cast(y, i32), cast(p, type));
      EXPECT_EQ(loss.dtype(), type == f64 ? f64 : f32) << name;
      EXPECT_NEAR(cast(loss, f64).item<double>(), expected, 1e-6 * std::max(1.0, std::abs(expected))) << name << type;
    }
  }
  EXPECT_EQ(losses::MeanSquaredError({.dtype = f64})(y, p).dtype(), f64);
  EXPECT_EQ(losses::MeanSquaredError({.dtype = f16})(y, p).dtype(), f16);
  EXPECT_EQ(losses::mean_squared_error(y, cast(p, bf16)).dtype(), bf16);
  EXPECT_EQ(Loss([](Tensor a, Tensor b) { return square(a - b); }, {.dtype = f64})(y, p).dtype(), f64);
}

TEST(KerasLosses, EmptyBatchesAreZero) {
  for (const char* name : {"mse", "bce", "categorical_crossentropy", "kld", "huber", "cosine_similarity"})
    for (const Tensor& weight : {Tensor(), ones({0})})
      EXPECT_EQ(Loss(name)(ones({0, 3}), ones({0, 3}), weight).item<float>(), 0) << name;
  EXPECT_EQ(
      losses::SparseCategoricalCrossentropy({.from_logits = true, .ignore_class = 0})(ones({0}, i32), ones({0, 3}))
          .item<float>(),
      0);
}

TEST(KerasLosses, WhereKerasLosesDigitsOrHasNaN) {
  // log(cosh(x)) is x^2 / 2 near 0.
  EXPECT_NEAR(losses::log_cosh(tensor({0.f}), tensor({1e-4f})).item<float>(), 5e-9f, 1e-14);
  // A class that cannot be, and is not.
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(losses::categorical_crossentropy(tensor({{1.f, 0.f}}), tensor({{2.f, -infinity}}), {.from_logits = true})
                .item<float>(),
            0);
  // Sequences that time is too short for.
  Tensor y = tensor({{1, 1, 1}}), logits = zeros({1, 3, 2});
  auto [loss, gradient] = with_gradient(losses::CTC(), y, logits, {});
  EXPECT_EQ(loss.item<float>(), infinity);
  EXPECT_EQ(max(abs(gradient)).item<float>(), 0);
  // Nobody has a partner.
  auto [circle, circle_gradient] =
      with_gradient(losses::Circle(), tensor({0, 1}), tensor({{1.f, 0.f}, {0.f, 1.f}}), {});
  EXPECT_EQ(circle.item<float>(), 0);
  EXPECT_EQ(max(abs(circle_gradient)).item<float>(), 0);
  // All samples are of the class to ignore, whose predictions are no distribution.
  auto [ignored, ignored_gradient] =
      with_gradient(losses::SparseCategoricalCrossentropy({.ignore_class = 1}), tensor({1, 1}), zeros({2, 3}), {});
  EXPECT_EQ(ignored.item<float>(), 0);
  EXPECT_EQ(max(abs(ignored_gradient)).item<float>(), 0);
}

TEST(KerasLosses, WeightsOfSamplesBesideSteps) {
  // [n] beside losses [n, steps] is a weight for every sample; Keras would repeat it along the steps, or fail.
  Tensor y = zeros({2, 3, 1}), p = tensor({{1.f, 2.f, 3.f}, {1.f, 1.f, 1.f}})[{ellipsis, newaxis}];
  losses::MeanSquaredError each({.reduction = "none"});
  EXPECT_EQ(each(y, p, tensor({2.f, 3.f})).to_vector<float>(), (std::vector<float>{2, 8, 18, 3, 3, 3}));
  std::string error = error_of([&] { each(y, p, ones({2, 3, 1, 1})); });
  EXPECT_CONTAINS(error, "sample weights f32[2,3,1,1] do not fit losses f32[2,3]");
  EXPECT_CONTAINS(error, "keras_losses_test.cpp:");
  EXPECT_CONTAINS(error_of([&] { each(y, p, ones({4})); }), "in the loss, of labels f32[2,3,1]");
}

TEST(KerasLosses, WrongUses) {
  Tensor y = ones({4, 3}), p = ones({4, 3}) / 3;
  // One line for each: what is wrong, and where.
  for (const char* name :
       {"mse", "mae", "mape", "msle", "log_cosh", "huber", "hinge", "squared_hinge", "categorical_hinge", "bce",
        "binary_focal_crossentropy", "categorical_crossentropy", "categorical_focal_crossentropy", "kld", "poisson",
        "cosine_similarity", "dice", "tversky"}) {
    std::string error = error_of([&] { Loss{name}(ones({4, 2}), p); });
    EXPECT_CONTAINS(error, "labels f32[4,2] and predictions f32[4,3] differ in shape");
    EXPECT_CONTAINS(error, "keras_losses_test.cpp:");
    EXPECT_EQ(error.find("stet/keras/"), std::string::npos) << error;
    EXPECT_CONTAINS(error_of([&] { Loss{name}(ones({4, 3, 2}), p); }), "differ in shape");
  }
  losses::SparseCategoricalCrossentropy sparse;
  EXPECT_CONTAINS(error_of([&] { sparse(y, p); }), "labels f32[4,3] do not fit predictions f32[4,3]");
  EXPECT_CONTAINS(error_of([&] { sparse(ones({5}, i32), p); }), "labels i32[5] do not fit predictions f32[4,3]");
  for (bool from_logits : {false, true})
    for (int label : {3, -1}) {
      losses::SparseCategoricalCrossentropy loss({.from_logits = from_logits});
      Tensor labels = tensor({0, 1, label, 2});
      const std::string expected = "label " + std::to_string(label) + " of sample 2 is not one of the 3 classes";
      EXPECT_CONTAINS(error_of([&] { loss(labels, p); }), expected);
      Function traced = function("traced(y, p)", [&](Tensor a, Tensor b) { return loss(a, b); });
      EXPECT_CONTAINS(error_of([&] { traced(labels, p); }), expected);
    }
  EXPECT_CONTAINS(error_of([&] {
                    losses::CategoricalGeneralizedCrossEntropy()(tensor({0, 1, 9, 2}), p);
                  }),
                  "label 9 of sample 2 is not one of the 3 classes");
  EXPECT_CONTAINS(error_of([&] {
                    losses::CTC()(ones({4}, i32), ones({4, 3, 2}));
                  }),
                  "ctc: labels i32[4] do not fit predictions f32[4,3,2]");
  EXPECT_CONTAINS(error_of([&] { losses::CTC()(ones({5, 2}, i32), ones({4, 3, 2})); }), "ctc: labels i32[5,2]");
  EXPECT_CONTAINS(error_of([&] { losses::Circle()(ones({4, 2}, i32), p); }), "circle: labels i32[4,2]");
  EXPECT_CONTAINS(error_of([&] { losses::Circle()(ones({5}, i32), p); }), "circle: predictions f32[4,3] do not fit");
  EXPECT_CONTAINS(error_of([&] { losses::CosineSimilarity({.axis = 2})(y, p); }),
                  "cosine_similarity: axis 2 of f32[4,3]");
  EXPECT_CONTAINS(error_of([&] { losses::CategoricalCrossentropy({.axis = -3})(y, p); }), "axis -3 of f32[4,3]");
  EXPECT_CONTAINS(error_of([&] { losses::BinaryCrossentropy({.axis = 5})(y, p); }), "axis 5 of f32[4,3]");
  EXPECT_CONTAINS(error_of([] { losses::MeanSquaredError({.reduction = "median"}); }),
                  "there is no reduction 'median'");
  EXPECT_CONTAINS(error_of([] { losses::MeanSquaredError({.reduction = "median"}); }),
                  "one of sum_over_batch_size, sum, mean, mean_with_sample_weight, none");
  EXPECT_CONTAINS(error_of([] { losses::Huber({.delta = 0}); }), "Huber: delta = 0");
  EXPECT_CONTAINS(error_of([] { losses::CategoricalGeneralizedCrossEntropy({.q = 1}); }),
                  "CategoricalGeneralizedCrossEntropy: q = 1");
  EXPECT_CONTAINS(error_of([] { losses::BinaryCrossentropy({.label_smoothing = 1.5}); }),
                  "BinaryCrossentropy: label_smoothing = 1.5");
  EXPECT_CONTAINS(error_of([&] { losses::MeanSquaredError()(Tensor(), p); }), "the loss is given an undefined tensor");
}

TEST(KerasLosses, TrainInOneTraceWithAPartialLastBatch) {
  random::seed(3);
  Tensor x = random::normal({65, 4}), y = cast(sum(x, -1) > 0, f32);  // batches of 32, 32 and 1
  const Loss all[] = {losses::BinaryFocalCrossentropy({.from_logits = true}),
                      losses::Dice(),
                      losses::Hinge(),
                      losses::Huber({.delta = 0.5}),
                      losses::Tversky({.axis = {0, 1}}),
                      losses::BinaryCrossentropy({.from_logits = true, .label_smoothing = 0.1})};
  for (const Loss& loss : all) {
    keras::Sequential model{keras::Input({4}), keras::Dense(1, {.activation = sigmoid})};
    model.compile({.optimizer = keras::Adam(0.05), .loss = loss});
    keras::History history = model.fit({x, y, ones({65})}, {.batch_size = 32, .epochs = 8, .verbose = 0});
    EXPECT_LT(history["loss"].back(), history["loss"].front()) << loss.name();
    EXPECT_EQ(model.train_function().trace_count(), 1) << loss.name();
  }
}

}  // namespace
