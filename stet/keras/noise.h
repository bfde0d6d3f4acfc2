// Noise in training: in inference nothing happens. Every call draws anew, also in a traced function; from the process's
// generator, or with a seed from one of the layer's own.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "stet/core/signature.h"
#include "stet/keras/layer.h"
#include "stet/keras/policy.h"

namespace stet::keras {

struct SpatialDropout1DOptions {
  std::optional<std::uint64_t> seed = {};
  std::string name = {};
  DTypePolicy dtype = {};
};
/// Dropout of whole channels of [batch, steps, channels].
class STET_API SpatialDropout1D : public Layer {
 public:
  explicit SpatialDropout1D(double rate, SpatialDropout1DOptions options = {}, Where where = Where::here());
  STET_HANDLE(SpatialDropout1D, Layer)
};
struct SpatialDropoutOptions {
  std::string data_format = "channels_last";
  std::optional<std::uint64_t> seed = {};
  std::string name = {};
  DTypePolicy dtype = {};
};
/// The same of images [batch, height, width, channels].
class STET_API SpatialDropout2D : public Layer {
 public:
  explicit SpatialDropout2D(double rate, SpatialDropoutOptions options = {}, Where where = Where::here());
  STET_HANDLE(SpatialDropout2D, Layer)
};
/// The same of volumes [batch, depth, height, width, channels].
class STET_API SpatialDropout3D : public Layer {
 public:
  explicit SpatialDropout3D(double rate, SpatialDropoutOptions options = {}, Where where = Where::here());
  STET_HANDLE(SpatialDropout3D, Layer)
};

struct NoiseOptions {
  std::optional<std::uint64_t> seed = {};
  std::string name = {};
  DTypePolicy dtype = {};
};
/// Adds normal numbers with mean 0.
class STET_API GaussianNoise : public Layer {
 public:
  explicit GaussianNoise(double stddev, NoiseOptions options = {}, Where where = Where::here());
  STET_HANDLE(GaussianNoise, Layer)
};
/// Multiplies by normal numbers with mean 1 and variance rate / (1 - rate).
class STET_API GaussianDropout : public Layer {
 public:
  explicit GaussianDropout(double rate, NoiseOptions options = {}, Where where = Where::here());
  STET_HANDLE(GaussianDropout, Layer)
};
struct AlphaDropoutOptions {
  ShapeSpec noise_shape = {};  // as Dropout's
  std::optional<std::uint64_t> seed = {};
  std::string name = {};
  DTypePolicy dtype = {};
};
/// Dropout that keeps mean and variance of what selu gives: dropped values become its limit, then all are rescaled.
class STET_API AlphaDropout : public Layer {
 public:
  explicit AlphaDropout(double rate, AlphaDropoutOptions options = {}, Where where = Where::here());
  STET_HANDLE(AlphaDropout, Layer)
};

}  // namespace stet::keras
