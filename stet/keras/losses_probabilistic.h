// Losses of probabilities and of logits. Where a probability is asked for its logarithm, it is at least 1e-7 and at
// most 1 - 1e-7, as in Keras; logits of any size are exact, and what is 0 by definition (no part of a label times an
// infinite logarithm) is 0.
#pragma once
#include <cstdint>
#include <optional>

#include "stet/keras/loss.h"

namespace stet::keras::losses {

struct CrossentropyFunctionOptions {
  bool from_logits = false;    // predictions are logits, not probabilities
  double label_smoothing = 0;  // from 0 to 1: this part of every label is spread evenly over all classes
  int axis = -1;               // of the classes; of binary_crossentropy: what the mean is taken over
};
struct BinaryFocalCrossentropyFunctionOptions {
  bool apply_class_balancing = false;  // labels of 1 count alpha, those of 0 count 1 - alpha
  double alpha = 0.25;
  double gamma = 2;  // how little predictions that are right count
  bool from_logits = false;
  double label_smoothing = 0;
  int axis = -1;
};
struct CategoricalFocalCrossentropyFunctionOptions {
  double alpha = 0.25, gamma = 2;
  bool from_logits = false;
  double label_smoothing = 0;
  int axis = -1;
};
struct SparseCrossentropyFunctionOptions {
  bool from_logits = false;
  std::optional<std::int64_t> ignore_class = {};  // samples with this label, which need not be a class, give 0
  int axis = -1;                                  // of the classes
};

/// Of labels between 0 and 1, mean over the axis.
STET_API Tensor binary_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                    const CrossentropyFunctionOptions& options = {}, Where where = Where::here());
/// (1 - p)^gamma times that, p the probability that was given to the label.
STET_API Tensor binary_focal_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                          const BinaryFocalCrossentropyFunctionOptions& options = {},
                                          Where where = Where::here());
/// -sum(labels log(predictions)) over the classes: labels are probabilities, of the shape of the predictions, which are
/// divided by their sum. Smoothed labels are spread over the axis of the classes (Keras counts the last axis's).
STET_API Tensor categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                         const CrossentropyFunctionOptions& options = {}, Where where = Where::here());
STET_API Tensor categorical_focal_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                               const CategoricalFocalCrossentropyFunctionOptions& options = {},
                                               Where where = Where::here());
/// The same of labels that are classes: integers [...] or [..., 1] beside predictions [..., classes]. A label that is
/// no class is a UserError (in Keras the loss is 0).
STET_API Tensor sparse_categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                                const SparseCrossentropyFunctionOptions& options = {},
                                                Where where = Where::here());
/// (1 - p^q) / q, p the probability of the label's class: labels as in sparse_categorical_crossentropy, 0 < q < 1.
STET_API Tensor categorical_generalized_cross_entropy(const Tensor& y_true, const Tensor& y_pred, double q = 0.5,
                                                      Where where = Where::here());
/// sum(labels log(labels / predictions)) over the last axis, both between 1e-7 and 1.
STET_API Tensor kl_divergence(const Tensor& y_true, const Tensor& y_pred, Where where = Where::here());
/// predictions - labels log(predictions), mean over the last axis: counts and their rates.
STET_API Tensor poisson(const Tensor& y_true, const Tensor& y_pred, Where where = Where::here());
/// Connectionist temporal classification: labels are integers [batch, length], 0 (the blank) behind the last of each;
/// predictions logits [batch, time, classes]. A trace serves one size of time. Infinite, with derivatives 0, where time
/// is too short for the labels (Keras has numbers beyond 1e5 there).
STET_API Tensor ctc(const Tensor& y_true, const Tensor& y_pred, Where where = Where::here());

struct CrossentropyOptions {
  bool from_logits = false;
  double label_smoothing = 0;
  int axis = -1;
  Reduction reduction = Reduction::Kind::sum_over_batch_size;
  std::string name = {};
  std::optional<DType> dtype = {};
};
struct BinaryFocalCrossentropyOptions {
  bool apply_class_balancing = false;
  double alpha = 0.25, gamma = 2;
  bool from_logits = false;
  double label_smoothing = 0;
  int axis = -1;
  Reduction reduction = Reduction::Kind::sum_over_batch_size;
  std::string name = {};
  std::optional<DType> dtype = {};
};
struct CategoricalFocalCrossentropyOptions {
  double alpha = 0.25, gamma = 2;
  bool from_logits = false;
  double label_smoothing = 0;
  int axis = -1;
  Reduction reduction = Reduction::Kind::sum_over_batch_size;
  std::string name = {};
  std::optional<DType> dtype = {};
};
struct SparseCategoricalCrossentropyOptions {
  bool from_logits = false;
  std::optional<std::int64_t> ignore_class = {};  // left out of the mean, too
  Reduction reduction = Reduction::Kind::sum_over_batch_size;
  int axis = -1;
  std::string name = {};
  std::optional<DType> dtype = {};
};
struct CategoricalGeneralizedCrossEntropyOptions {
  double q = 0.5;
  Reduction reduction = Reduction::Kind::sum_over_batch_size;
  std::string name = {};
  std::optional<DType> dtype = {};
};
STET_LOSS(BinaryCrossentropy, CrossentropyOptions);
STET_LOSS(BinaryFocalCrossentropy, BinaryFocalCrossentropyOptions);
STET_LOSS(CategoricalCrossentropy, CrossentropyOptions);
STET_LOSS(CategoricalFocalCrossentropy, CategoricalFocalCrossentropyOptions);
STET_LOSS(SparseCategoricalCrossentropy, SparseCategoricalCrossentropyOptions);
STET_LOSS(CategoricalGeneralizedCrossEntropy, CategoricalGeneralizedCrossEntropyOptions);
STET_LOSS(KLDivergence, LossOptions);
STET_LOSS(Poisson, LossOptions);
STET_LOSS(CTC, LossOptions);

}  // namespace stet::keras::losses
