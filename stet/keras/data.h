// Data: whatever fit(), evaluate() and predict() take, as batches.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/structure.h"
#include "stet/core/tensor.h"
#include "stet/data/dataset.h"

namespace stet::keras {

/// What one step gets. `y` and `sample_weight` may be undefined.
struct Batch {
  Tensor x = {}, y = {}, sample_weight = {};
  STET_FIELDS(x, y, sample_weight)
};

struct ReadOptions {
  std::int64_t batch_size = 32;
  bool shuffle = false;
};

/// Samples: tensors {x}, {x, y} or {x, y, sample_weight}, sample by sample along axis 0; or a Dataset of such batches,
/// whose elements are those tensors.
class STET_API Data {
 public:
  /// Gives batches until there are no more.
  using Reader = std::function<std::optional<Batch>()>;

  /// None.
  Data() = default;
  Data(const Tensor& x, Where where = Where::here()) : Data(Batch{x, {}, {}}, where) {}
  Data(const Tensor& x, const Tensor& y, Where where = Where::here()) : Data(Batch{x, y, {}}, where) {}
  Data(const Tensor& x, const Tensor& y, const Tensor& sample_weight, Where where = Where::here())
      : Data(Batch{x, y, sample_weight}, where) {}
  template <class... T>
  Data(const data::Dataset<T...>& batches) : dataset_(batches) {
    static_assert(sizeof...(T) <= 3 && (std::is_same_v<T, Tensor> && ...),
                  "a model takes batches of the tensors x, (x, y) or (x, y, sample_weight)");
  }

  bool defined() const { return dataset_ || tensors_.x.defined(); }
  /// How many batches a reader gives: data::infinite if it does not end, nothing if only reading can tell.
  std::optional<std::int64_t> batch_count(const ReadOptions& options) const;
  /// Starts over. The options are for tensors: they are cut into batches, shuffled in a new order each time, from the
  /// process's random generator. A Dataset is read as it is.
  Reader read(const ReadOptions& options, Where where) const;
  /// The first and the last part, cut at 1 - fraction; of tensors only (UserError).
  std::pair<Data, Data> split(double fraction, Where where) const;

 private:
  Data(Batch tensors, Where where);
  std::int64_t samples() const;
  data::DatasetBase batches(const ReadOptions& options, Where where) const;

  Batch tensors_;  // or
  std::optional<data::DatasetBase> dataset_;
};

}  // namespace stet::keras
