// What compile() takes for each output of a model: losses, their weights, metrics. A model with one output takes them
// as they are; one with several takes them in the order of its outputs, or by their names:
//
//   model.compile({.loss = {{"kind", "sparse_categorical_crossentropy"}, {"size", "mse"}},
//                  .loss_weights = {{"kind", 1}, {"size", 0.2}},
//                  .metrics = {{"kind", {"accuracy"}}, {"size", {"mae"}}}});
#pragma once
#include <concepts>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/keras/loss.h"
#include "stet/keras/metric.h"

namespace stet::keras {

struct OutputLoss {
  std::string output = {};
  Loss loss = {};
};
struct OutputMetrics {
  std::string output = {};
  std::vector<Metric> metrics = {};
};
struct OutputWeight {
  std::string output = {};
  double weight = 1;
};

/// One loss for all outputs, one for every output in order, or those of the outputs that are named. An undefined one,
/// Loss(), is none.
class LossesByOutput {
 public:
  LossesByOutput() = default;
  LossesByOutput(const char* name, Where where = Where::here()) : LossesByOutput(Loss(name, where)) {}
  LossesByOutput(const std::string& name, Where where = Where::here()) : LossesByOutput(Loss(name, where)) {}
  template <std::convertible_to<Loss> L>
  requires(!std::convertible_to<L, std::string>) LossesByOutput(L loss) : for_all_(std::move(loss)) {}
  LossesByOutput(std::initializer_list<Loss> in_order) : in_order_(in_order) {}
  LossesByOutput(std::vector<Loss> in_order) : in_order_(std::move(in_order)) {}
  LossesByOutput(std::initializer_list<OutputLoss> by_name) : by_name_(by_name) {}
  LossesByOutput(std::vector<OutputLoss> by_name) : by_name_(std::move(by_name)) {}

  bool defined() const { return for_all_.defined() || !in_order_.empty() || !by_name_.empty(); }
  const Loss& for_all() const { return for_all_; }
  const std::vector<Loss>& in_order() const { return in_order_; }
  const std::vector<OutputLoss>& by_name() const { return by_name_; }

 private:
  Loss for_all_;
  std::vector<Loss> in_order_;
  std::vector<OutputLoss> by_name_;
};

/// Of a model with one output, its metrics; of one with several, one for every output in order, or those of the outputs
/// that are named.
class MetricsByOutput {
 public:
  MetricsByOutput() = default;
  MetricsByOutput(std::initializer_list<Metric> in_order) : in_order_(in_order) {}
  MetricsByOutput(std::vector<Metric> in_order) : in_order_(std::move(in_order)) {}
  MetricsByOutput(std::initializer_list<OutputMetrics> by_name) : by_name_(by_name) {}
  MetricsByOutput(std::vector<OutputMetrics> by_name) : by_name_(std::move(by_name)) {}

  const std::vector<Metric>& in_order() const { return in_order_; }
  const std::vector<OutputMetrics>& by_name() const { return by_name_; }

 private:
  std::vector<Metric> in_order_;
  std::vector<OutputMetrics> by_name_;
};

/// What the loss of each output is multiplied by; 1 for those that are not named.
class WeightsByOutput {
 public:
  WeightsByOutput() = default;
  WeightsByOutput(std::initializer_list<double> in_order) : in_order_(in_order) {}
  WeightsByOutput(std::vector<double> in_order) : in_order_(std::move(in_order)) {}
  WeightsByOutput(std::initializer_list<OutputWeight> by_name) : by_name_(by_name) {}
  WeightsByOutput(std::vector<OutputWeight> by_name) : by_name_(std::move(by_name)) {}

  const std::vector<double>& in_order() const { return in_order_; }
  const std::vector<OutputWeight>& by_name() const { return by_name_; }

 private:
  std::vector<double> in_order_;
  std::vector<OutputWeight> by_name_;
};

}  // namespace stet::keras
