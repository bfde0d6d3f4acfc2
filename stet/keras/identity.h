// Layers that give what they get.
#pragma once
#include <string>

#include "stet/keras/layer.h"
#include "stet/keras/policy.h"

namespace stet::keras {

struct IdentityOptions {
  std::string name = {};
  DTypePolicy dtype = {};
};
/// x, with its mask: stands where a layer is wanted and nothing is to be done.
class STET_API Identity : public Layer {
 public:
  explicit Identity(IdentityOptions options = {});
  STET_HANDLE(Identity, Layer)
};

struct ActivityRegularizationOptions {
  double l1 = 0;  // times the sum of |x|
  double l2 = 0;  // times the sum of x²
  std::string name = {};
  DTypePolicy dtype = {};
};
/// x, and adds l1 * sum(|x|) + l2 * sum(x²), divided by the number of samples, to the loss of the model.
class STET_API ActivityRegularization : public Layer {
 public:
  explicit ActivityRegularization(ActivityRegularizationOptions options = {}, Where where = Where::here());
  STET_HANDLE(ActivityRegularization, Layer)
};

}  // namespace stet::keras
