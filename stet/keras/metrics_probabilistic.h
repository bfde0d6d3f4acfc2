// Metrics that are means of losses: of probabilities, of logits and of margins.
#pragma once
#include <cstdint>

#include "stet/keras/losses_hinge.h"
#include "stet/keras/losses_probabilistic.h"
#include "stet/keras/metric.h"

namespace stet::keras::metrics {

using losses::binary_crossentropy;
using losses::binary_focal_crossentropy;
using losses::categorical_crossentropy;
using losses::categorical_focal_crossentropy;
using losses::categorical_hinge;
using losses::hinge;
using losses::kl_divergence;
using losses::poisson;
using losses::sparse_categorical_crossentropy;
using losses::squared_hinge;

struct BinaryCrossentropyOptions {
  std::string name = {};
  std::optional<DType> dtype = {};
  bool from_logits = false;
  double label_smoothing = 0;
};
struct CategoricalCrossentropyOptions {
  std::string name = {};
  std::optional<DType> dtype = {};
  bool from_logits = false;
  double label_smoothing = 0;
  int axis = -1;
};
struct SparseCategoricalCrossentropyOptions {
  std::string name = {};
  std::optional<DType> dtype = {};
  bool from_logits = false;
  /// Samples of this class count as 0; left out of the mean, unlike in the loss, only where there are weights. So it is
  /// in Keras.
  std::optional<std::int64_t> ignore_class = {};
  int axis = -1;
};
STET_METRIC(BinaryCrossentropy, BinaryCrossentropyOptions);
STET_METRIC(CategoricalCrossentropy, CategoricalCrossentropyOptions);
STET_METRIC(SparseCategoricalCrossentropy, SparseCategoricalCrossentropyOptions);
STET_METRIC(KLDivergence, MetricOptions);
STET_METRIC(Poisson, MetricOptions);
STET_METRIC(Hinge, MetricOptions);
STET_METRIC(SquaredHinge, MetricOptions);
STET_METRIC(CategoricalHinge, MetricOptions);

}  // namespace stet::keras::metrics
