// Losses of directions, of overlaps and of pairs.
#pragma once
#include <vector>

#include "stet/keras/loss.h"

namespace stet::keras::losses {

/// Less the cosine of the angle between labels and predictions along an axis: -1 where they point the same way. A
/// vector of zeros is at right angles to all.
STET_API Tensor cosine_similarity(const Tensor& y_true, const Tensor& y_pred, int axis = -1,
                                  Where where = Where::here());
/// 1 - 2 |A B| / (|A| + |B|), of sums over the axes; over all if none is given: one number for the batch.
STET_API Tensor dice(const Tensor& y_true, const Tensor& y_pred, const std::vector<int>& axis = {},
                     Where where = Where::here());
struct TverskyFunctionOptions {
  double alpha = 0.5, beta = 0.5;  // how much labels missed, and predictions without a label, count
  std::vector<int> axis = {};      // what is summed over; none: all
};
/// 1 - |A B| / (|A B| + alpha |A (1 - B)| + beta |(1 - A) B|), with A the labels.
STET_API Tensor tversky(const Tensor& y_true, const Tensor& y_pred, const TverskyFunctionOptions& options = {},
                        Where where = Where::here());
struct CircleFunctionOptions {
  Tensor ref_labels = {}, ref_embeddings = {};  // what samples are compared with; not given: each other
  bool remove_diagonal = true;                  // a sample is not compared with the one at its own position
  double gamma = 80;                            // the scale
  double margin = 0.4;                          // how far apart similarities are to be
};
/// Circle loss (Sun et al., CVPR 2020): labels are classes [n] or [n, 1], predictions embeddings [n, depth] of
/// length 1. 0 for a sample that has no other of its class beside it, or none of another class. A Loss object leaves
/// those out of its mean.
STET_API Tensor circle(const Tensor& y_true, const Tensor& y_pred, const CircleFunctionOptions& options = {},
                       Where where = Where::here());

struct CosineSimilarityOptions {
  int axis = -1;
  Reduction reduction = Reduction::Kind::sum_over_batch_size;
  std::string name = {};
  std::optional<DType> dtype = {};
};
struct DiceOptions {
  Reduction reduction = Reduction::Kind::sum_over_batch_size;
  std::string name = {};
  std::vector<int> axis = {};  // what is summed over; none: all
  std::optional<DType> dtype = {};
};
struct TverskyOptions {
  double alpha = 0.5, beta = 0.5;
  Reduction reduction = Reduction::Kind::sum_over_batch_size;
  std::string name = {};
  std::vector<int> axis = {};  // what is summed over; none: all
  std::optional<DType> dtype = {};
};
struct CircleOptions {
  double gamma = 80, margin = 0.4;
  bool remove_diagonal = true;
  Reduction reduction = Reduction::Kind::sum_over_batch_size;
  std::string name = {};
  std::optional<DType> dtype = {};
};
STET_LOSS(CosineSimilarity, CosineSimilarityOptions);
STET_LOSS(Dice, DiceOptions);
STET_LOSS(Tversky, TverskyOptions);
STET_LOSS(Circle, CircleOptions);

}  // namespace stet::keras::losses
