// Dropout: in training, some values become 0.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "stet/core/signature.h"
#include "stet/keras/layer.h"
#include "stet/keras/policy.h"

namespace stet::keras {

struct DropoutOptions {
  /// The shape of what is drawn, `dyn` for the input's size: along an axis of size 1 all are dropped or none,
  /// {dyn, 1, dyn}. Not given: that of the input.
  ShapeSpec noise_shape = {};
  std::optional<std::uint64_t> seed = {};  // of a generator of its own; none: the process's
  std::string name = {};
  DTypePolicy dtype = {};
};
/// In training every value is 0 with probability `rate`, the others are divided by 1 - rate, so that the mean stays; in
/// inference nothing happens. Every call draws anew, also in a traced function.
class STET_API Dropout : public Layer {
 public:
  explicit Dropout(double rate, DropoutOptions options = {}, Where where = Where::here());
  STET_HANDLE(Dropout, Layer)
};

}  // namespace stet::keras
