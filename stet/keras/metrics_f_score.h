// Scores of precision and recall together.
#pragma once
#include <string>

#include "stet/keras/metric.h"

namespace stet::keras::metrics {

struct FBetaScoreOptions {
  std::string average = "none";          // over the classes: "micro", "macro", "weighted"; "none": one score for each
  double beta = 1;                       // positive: how much more recall counts than precision
  std::optional<double> threshold = {};  // above it a prediction says yes; not given: the largest of a sample does
  std::string name = {};
  std::optional<DType> dtype = {};
};
struct F1ScoreOptions {
  std::string average = "none";
  std::optional<double> threshold = {};
  std::string name = {};
  std::optional<DType> dtype = {};
};
/// Of labels and predictions [n, classes]; weights are [n].
STET_METRIC(FBetaScore, FBetaScoreOptions);
STET_METRIC(F1Score, F1ScoreOptions);

}  // namespace stet::keras::metrics
