// Intersection over union, of classes.
#pragma once
#include <cstdint>
#include <vector>

#include "stet/keras/metric.h"

namespace stet::keras::metrics {

// Labels and predictions are classes, or scores of them along an axis where they are not `sparse`; of any shape. What
// is none of the classes does not count. The result is the mean over the classes asked for, of those that occur.
//
// Counts are gathered as i64 unless a dtype says otherwise; weights that are floating then are a UserError (Keras
// cuts them to integers).

struct IoUOptions {
  std::string name = {};  // not given: numbered after the class, "io_u", "io_u_1", …
  std::optional<DType> dtype = {};
  std::optional<std::int64_t> ignore_class = {};  // labels of this class do not count
  bool sparse_y_true = true, sparse_y_pred = true;
  int axis = -1;  // of the scores
};
struct BinaryIoUOptions {
  std::vector<std::int64_t> target_class_ids = {0, 1};
  double threshold = 0.5;  // from it on a prediction is class 1
  std::string name = {};
  std::optional<DType> dtype = {};
};
struct OneHotIoUOptions {
  std::string name = {};
  std::optional<DType> dtype = {};
  std::optional<std::int64_t> ignore_class = {};
  bool sparse_y_pred = false;
  int axis = -1;
};

/// The mean over some of the classes.
class STET_API IoU : public Metric {
 public:
  IoU(std::int64_t num_classes, std::vector<std::int64_t> target_class_ids, IoUOptions options = {},
      Where where = Where::here());
  STET_HANDLE(IoU, Metric)
};
/// Of predictions between 0 and 1, labels 0 and 1.
STET_METRIC(BinaryIoU, BinaryIoUOptions);
/// The mean over all classes.
class STET_API MeanIoU : public Metric {
 public:
  explicit MeanIoU(std::int64_t num_classes, IoUOptions options = {}, Where where = Where::here());
  STET_HANDLE(MeanIoU, Metric)
};
/// Of one-hot labels.
class STET_API OneHotIoU : public Metric {
 public:
  OneHotIoU(std::int64_t num_classes, std::vector<std::int64_t> target_class_ids, OneHotIoUOptions options = {},
            Where where = Where::here());
  STET_HANDLE(OneHotIoU, Metric)
};
class STET_API OneHotMeanIoU : public Metric {
 public:
  explicit OneHotMeanIoU(std::int64_t num_classes, OneHotIoUOptions options = {}, Where where = Where::here());
  STET_HANDLE(OneHotMeanIoU, Metric)
};

}  // namespace stet::keras::metrics
