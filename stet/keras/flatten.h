// Flatten: all axes but the first become one.
#pragma once
#include <string>

#include "stet/keras/layer.h"

namespace stet::keras {

struct FlattenOptions {
  std::string name = {};
};
/// [batch, a, b, …] gives [batch, a·b·…].
class STET_API Flatten : public Layer {
 public:
  explicit Flatten(FlattenOptions options = {});
  STET_HANDLE(Flatten, Layer)
};

}  // namespace stet::keras
