// Datasets of samples with labels that know what their classes are called.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "stet/core/tensor.h"
#include "stet/data/dataset.h"

namespace stet::data {

/// Elements (features, label). Stages give plain Datasets: ask for the names before.
class LabeledDataset : public Dataset<Tensor, Tensor> {
 public:
  LabeledDataset(StagePointer stage, std::vector<std::string> class_names)
      : Dataset<Tensor, Tensor>(std::move(stage)), class_names_(std::move(class_names)) {}
  /// By number; empty if labels are numbers of their own.
  const std::vector<std::string>& class_names() const { return class_names_; }

 private:
  std::vector<std::string> class_names_;
};

}  // namespace stet::data
