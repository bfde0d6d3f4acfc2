// Layers that normalise: statistics of a batch, of a sample, or of parts of it become those of the normal distribution.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "stet/keras/layer.h"
#include "stet/keras/policy.h"
#include "stet/ops/ops.h"

namespace stet::keras {

/// How far a correction may go: its factor from rmin to rmax, its offset from -dmax to dmax; none: any.
struct RenormClipping {
  std::optional<double> rmax = {}, rmin = {}, dmax = {};
};
struct BatchNormalizationOptions {
  int axis = -1;  // of the channels
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool center = true;                            // add beta
  bool scale = true;                             // multiply by gamma
  Initializer beta_initializer = {};             // none: "zeros"
  Initializer gamma_initializer = {};            // none: "ones"
  Initializer moving_mean_initializer = {};      // none: "zeros"
  Initializer moving_variance_initializer = {};  // none: "ones"
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  bool renorm = false;  // corrects a batch's statistics by those of the batches before
  RenormClipping renorm_clipping = {};
  double renorm_momentum = 0.99;          // of the statistics that correct
  Regularizer activity_regularizer = {};  // of the output, divided by the number of samples
  std::string name = {};
  DTypePolicy dtype = {};
};
/// gamma * (x - mean) / sqrt(variance + epsilon) + beta for every channel. In training with the mean and variance of
/// the batch, which moving_mean and moving_variance (not trained) follow by 1 - momentum in every call; in inference
/// with those two. With a mask, of the steps that count. (Keras's `synchronized` is not there.)
class STET_API BatchNormalization : public Layer {
 public:
  explicit BatchNormalization(BatchNormalizationOptions options = {}, Where where = Where::here());
  STET_HANDLE(BatchNormalization, Layer)
};

struct LayerNormalizationOptions {
  Axes axis = -1;
  double epsilon = 1e-3;
  bool center = true;                  // add beta
  bool scale = true;                   // multiply by gamma
  Initializer beta_initializer = {};   // none: "zeros"
  Initializer gamma_initializer = {};  // none: "ones"
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  Regularizer activity_regularizer = {};  // of the output, divided by the number of samples
  std::string name = {};
  DTypePolicy dtype = {};
};
/// gamma * (x - mean) / sqrt(variance + epsilon) + beta, with the mean and variance of each sample over the axes, of
/// which gamma and beta have the sizes.
class STET_API LayerNormalization : public Layer {
 public:
  explicit LayerNormalization(LayerNormalizationOptions options = {}, Where where = Where::here());
  STET_HANDLE(LayerNormalization, Layer)
};

struct GroupNormalizationOptions {
  int axis = -1;  // of the channels
  double epsilon = 1e-3;
  bool center = true;                  // add beta
  bool scale = true;                   // multiply by gamma
  Initializer beta_initializer = {};   // none: "zeros"
  Initializer gamma_initializer = {};  // none: "ones"
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  Regularizer activity_regularizer = {};  // of the output, divided by the number of samples
  std::string name = {};
  DTypePolicy dtype = {};
};
/// The same with the mean and variance of each sample's groups of channels, over all axes between; -1: every channel is
/// a group.
class STET_API GroupNormalization : public Layer {
 public:
  explicit GroupNormalization(std::int64_t groups = 32, GroupNormalizationOptions options = {},
                              Where where = Where::here());
  STET_HANDLE(GroupNormalization, Layer)
};

struct UnitNormalizationOptions {
  Axes axis = -1;
  std::string name = {};
  DTypePolicy dtype = {};
};
/// x / its length along the axes.
class STET_API UnitNormalization : public Layer {
 public:
  explicit UnitNormalization(UnitNormalizationOptions options = {});
  STET_HANDLE(UnitNormalization, Layer)
};

struct RMSNormalizationOptions {
  Axes axis = -1;
  double epsilon = 1e-6;
  Regularizer activity_regularizer = {};  // of the output, divided by the number of samples
  std::string name = {};
  DTypePolicy dtype = {};
};
/// scale * x / sqrt(mean of x² + epsilon) over the axes, of which scale has the sizes.
class STET_API RMSNormalization : public Layer {
 public:
  explicit RMSNormalization(RMSNormalizationOptions options = {}, Where where = Where::here());
  STET_HANDLE(RMSNormalization, Layer)
};

struct SpectralNormalizationOptions {
  std::int64_t power_iterations = 1;
  std::string name = {};
  DTypePolicy dtype = {};
};
/// A layer whose kernel, a matrix of all its other axes by the last, is divided by its largest singular value in every
/// call that trains; found by power iterations from vector_u, which is kept.
class STET_API SpectralNormalization : public Layer {
 public:
  explicit SpectralNormalization(Layer layer, SpectralNormalizationOptions options = {}, Where where = Where::here());
  STET_HANDLE(SpectralNormalization, Layer)
};

}  // namespace stet::keras
