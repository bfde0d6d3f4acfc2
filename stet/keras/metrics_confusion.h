// Metrics of true and false positives and negatives. Labels other than 0 are positive; a prediction says yes where it
// is above the threshold. State is kept for every threshold.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "stet/keras/metric.h"

namespace stet::keras::metrics {

/// One threshold, or a list of them, each from 0 to 1: a list gives one result for each.
class Thresholds {
 public:
  /// None: 0.5 alone.
  Thresholds() = default;
  Thresholds(double one) : values{one} {}
  Thresholds(std::initializer_list<double> several) : values(several) {}
  Thresholds(std::vector<double> several) : values(std::move(several)) {}
  std::vector<double> values;
};

struct CountOptions {
  Thresholds thresholds = {};
  std::string name = {};  // not given: numbered after the class, "true_positives", "true_positives_1", …
  std::optional<DType> dtype = {};
};
STET_METRIC(TruePositives, CountOptions);
STET_METRIC(TrueNegatives, CountOptions);
STET_METRIC(FalsePositives, CountOptions);
STET_METRIC(FalseNegatives, CountOptions);

struct PrecisionOptions {
  Thresholds thresholds = {};
  std::optional<std::int64_t> top_k =
      {};  // only the k largest predictions of a sample say yes; without thresholds, all k
  std::optional<std::int64_t> class_id = {};  // of this class alone
  std::string name = {};
  std::optional<DType> dtype = {};
};
/// True positives by all that predictions said yes to; 0 of none.
STET_METRIC(Precision, PrecisionOptions);
/// True positives by all positive labels; 0 of none.
STET_METRIC(Recall, PrecisionOptions);

struct AtOptions {
  std::int64_t num_thresholds = 200;  // spread evenly from 0 to 1
  std::optional<std::int64_t> class_id = {};
  std::string name = {};
  std::optional<DType> dtype = {};
};
// The best of one at all thresholds where the other is at least the number given, which is from 0 to 1.
#define STET_METRIC_AT(Self)                                                          \
  class STET_API Self : public Metric {                                               \
   public:                                                                            \
    explicit Self(double least, AtOptions options = {}, Where where = Where::here()); \
    STET_HANDLE(Self, Metric)                                                         \
  }
STET_METRIC_AT(SensitivityAtSpecificity);
STET_METRIC_AT(SpecificityAtSensitivity);
STET_METRIC_AT(PrecisionAtRecall);
STET_METRIC_AT(RecallAtPrecision);

struct AUCOptions {
  std::int64_t num_thresholds = 200;
  std::string curve = "ROC";                       // or "PR", "PRGAIN"
  std::string summation_method = "interpolation";  // or "minoring", "majoring"
  std::string name = {};
  std::optional<DType> dtype = {};
  std::vector<double> thresholds = {};     // in place of num_thresholds; 0 and 1 are added
  bool multi_label = false;                // the mean of the areas of every label, [n, labels]
  std::int64_t num_labels = 0;             // with multi_label; 0: told by the first batch
  std::vector<double> label_weights = {};  // of the labels in the mean, or, without multi_label, of their predictions
  bool from_logits = false;
};
/// The area under the curve, from its values at the thresholds.
STET_METRIC(AUC, AUCOptions);

}  // namespace stet::keras::metrics
