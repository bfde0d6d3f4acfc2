// What compile() was given, sorted by the outputs of a model. Not a public header.
#pragma once
#include <string>
#include <vector>

#include "stet/keras/model.h"

namespace stet::keras {

/// A metric and what reports call it.
struct ReportedMetric {
  std::string name = {};
  Metric metric = {};
};

/// How one output is trained and measured.
struct CompiledOutput {
  std::string name = {};  // "" of a model with one output
  Loss loss = {};
  double loss_weight = 1;
  Metric mean_loss = {};  // where there are several losses
  std::vector<ReportedMetric> metrics = {}, weighted_metrics = {};
};

/// Of a model with so many outputs, called so (or `names` is empty: their names are not known). What does not fit is a
/// UserError at `where`.
std::vector<CompiledOutput> compiled_outputs(const CompileOptions& options, std::size_t count,
                                             const std::vector<std::string>& names, Where where);

/// All metrics that the options list, in their order.
std::vector<Metric> listed_metrics(const CompileOptions& options);

/// Weights of classes, to be made into weights of samples. A class below 0 is a UserError.
class ClassWeights {
 public:
  ClassWeights(const std::map<std::int64_t, double>& weights, Where where);
  /// The batch with the weights of its classes times those it has. y has one tensor of classes: numbers [n], [n, 1], or
  /// one-hot [n, classes] (UserError).
  Batch applied(Batch batch) const;

 private:
  Tensor table_;  // by class; the last one is for all classes beyond. Undefined: there are no weights
  Where where_;
};

}  // namespace stet::keras
