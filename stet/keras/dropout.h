// Dropout: in training, some values become 0.
#pragma once
#include <string>

#include "stet/keras/layer.h"

namespace stet::keras {

struct DropoutOptions {
  std::string name = {};
};
/// In training every value is 0 with probability `rate`, the others are divided by 1 - rate, so that the mean stays; in
/// inference nothing happens. Every call draws anew, also in a traced function.
class STET_API Dropout : public Layer {
 public:
  explicit Dropout(double rate, DropoutOptions options = {}, Where where = Where::here());
  STET_HANDLE(Dropout, Layer)
};

}  // namespace stet::keras
