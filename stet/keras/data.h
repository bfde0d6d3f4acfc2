// Data: whatever fit(), evaluate() and predict() take, as batches.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/structure.h"
#include "stet/core/tensor.h"

namespace stet::keras {

/// What one step gets. `y` and `sample_weight` may be undefined.
struct Batch {
  Tensor x = {}, y = {}, sample_weight = {};
  STET_FIELDS(x, y, sample_weight)
};

/// Samples: tensors {x}, {x, y} or {x, y, sample_weight}, sample by sample along axis 0.
class STET_API Data {
 public:
  /// Gives batches until there are no more.
  using Reader = std::function<std::optional<Batch>()>;
  struct BatchOptions {
    std::int64_t batch_size = 32;
    bool shuffle = false;
  };

  /// None.
  Data() = default;
  Data(const Tensor& x, Where where = Where::here()) : Data({x, {}, {}}, where) {}
  Data(const Tensor& x, const Tensor& y, Where where = Where::here()) : Data({x, y, {}}, where) {}
  Data(const Tensor& x, const Tensor& y, const Tensor& sample_weight, Where where = Where::here())
      : Data({x, y, sample_weight}, where) {}

  bool defined() const { return tensors_.x.defined(); }
  /// How many batches a reader gives, if that is known.
  std::optional<std::int64_t> batch_count(std::int64_t batch_size) const;
  /// Starts over: with `shuffle`, in a new order each time, from the process's random generator.
  Reader read(BatchOptions options) const;
  /// The first and the last part, cut at 1 - fraction; of tensors only (UserError).
  std::pair<Data, Data> split(double fraction, Where where) const;

 private:
  Data(Batch tensors, Where where);
  std::int64_t samples() const;
  Batch tensors_;
};

}  // namespace stet::keras
