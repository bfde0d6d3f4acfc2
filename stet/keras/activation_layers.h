// Activations with parameters, as layers, and the functions among Keras's activations that are no ops.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "stet/keras/layer.h"
#include "stet/keras/policy.h"
#include "stet/ops/ops.h"

namespace stet::keras {

namespace activations {

/// The first half of an axis times the sigmoid of the second.
STET_API Tensor glu(In x, int axis = -1);
/// 0 from -threshold to threshold, x elsewhere.
STET_API Tensor hard_shrink(In x, double threshold = 0.5);
/// Moved towards 0 by the threshold; 0 from -threshold to threshold.
STET_API Tensor soft_shrink(In x, double threshold = 0.5);
/// x - tanh(x).
STET_API Tensor tanh_shrink(In x);
/// x above the threshold, default_value elsewhere.
STET_API Tensor threshold(In x, double threshold, double default_value);
/// 0 up to -1, (x + 1)² / 4 up to 1, then x.
STET_API Tensor sparse_plus(In x);
/// 0 up to -1, (x + 1) / 2 up to 1, then 1.
STET_API Tensor sparse_sigmoid(In x);
/// The nearest point to x among those with sum 1 and nothing negative along an axis: many of them 0.
STET_API Tensor sparsemax(In x, int axis = -1);
/// (x + sqrt(x² + b)) / 2.
STET_API Tensor squareplus(In x, double b = 4);

}  // namespace activations

struct ActivationLayerOptions {
  std::string name = {};
  DTypePolicy dtype = {};
};
struct ReLUOptions {
  std::optional<double> max_value = {};
  double negative_slope = 0;
  double threshold = 0;
  std::string name = {};
  DTypePolicy dtype = {};
};
/// x above the threshold and at most max_value; elsewhere negative_slope * (x - threshold).
class STET_API ReLU : public Layer {
 public:
  explicit ReLU(ReLUOptions options = {}, Where where = Where::here());
  STET_HANDLE(ReLU, Layer)
};
/// x, below 0 negative_slope * x.
class STET_API LeakyReLU : public Layer {
 public:
  explicit LeakyReLU(double negative_slope = 0.3, ActivationLayerOptions options = {}, Where where = Where::here());
  STET_HANDLE(LeakyReLU, Layer)
};
struct PReLUOptions {
  Initializer alpha_initializer = {};  // none: "zeros"
  Regularizer alpha_regularizer = {};
  Constraint alpha_constraint = {};
  std::vector<int> shared_axes = {};      // have one slope for all their positions; they count from 1
  Regularizer activity_regularizer = {};  // of the output, divided by the number of samples
  std::string name = {};
  DTypePolicy dtype = {};
};
/// x, below 0 alpha * x, with a weight alpha for every element of a sample, or along shared axes for all.
class STET_API PReLU : public Layer {
 public:
  explicit PReLU(PReLUOptions options = {}, Where where = Where::here());
  STET_HANDLE(PReLU, Layer)
};
/// x, below 0 alpha * (exp(x) - 1).
class STET_API ELU : public Layer {
 public:
  explicit ELU(double alpha = 1, ActivationLayerOptions options = {});
  STET_HANDLE(ELU, Layer)
};
/// exp(x) / the sum of exp(x) along the axes. With a mask, as many sizes as x's last axes have, what does not count is
/// 0.
class STET_API Softmax : public Layer {
 public:
  explicit Softmax(Axes axis = -1, ActivationLayerOptions options = {});
  STET_HANDLE(Softmax, Layer)
};

}  // namespace stet::keras
