// Layers that put elements elsewhere. With data_format "channels_first" the channels are axis 1 of what goes in and
// comes out.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "stet/keras/layer.h"
#include "stet/keras/policy.h"
#include "stet/keras/window_sizes.h"

namespace stet::keras {

struct ReshapingOptions {
  std::string name = {};
  DTypePolicy dtype = {};
};
/// The elements of every sample under another shape: [batch, …] gives [batch, target_shape…]. One size may be -1: what
/// is left.
class STET_API Reshape : public Layer {
 public:
  explicit Reshape(std::vector<std::int64_t> target_shape, ReshapingOptions options = {}, Where where = Where::here());
  STET_HANDLE(Reshape, Layer)
};
/// The axes of every sample in another order; they count from 1: Permute({2, 1}) of [batch, a, b] is [batch, b, a].
class STET_API Permute : public Layer {
 public:
  explicit Permute(std::vector<int> dims, ReshapingOptions options = {}, Where where = Where::here());
  STET_HANDLE(Permute, Layer)
};
/// Every sample n times: [batch, values] gives [batch, n, values].
class STET_API RepeatVector : public Layer {
 public:
  explicit RepeatVector(std::int64_t n, ReshapingOptions options = {}, Where where = Where::here());
  STET_HANDLE(RepeatVector, Layer)
};

/// Every step `size` times: [batch, steps, channels] gives [batch, steps * size, channels].
class STET_API UpSampling1D : public Layer {
 public:
  explicit UpSampling1D(std::int64_t size = 2, ReshapingOptions options = {}, Where where = Where::here());
  STET_HANDLE(UpSampling1D, Layer)
};
struct UpSampling2DOptions {
  std::string data_format = "channels_last";
  std::string interpolation = "nearest";  // or "bilinear", "bicubic"
  std::string name = {};
  DTypePolicy dtype = {};
};
/// Images made larger: [batch, height, width, channels] gives [batch, height * size, width * size, channels].
class STET_API UpSampling2D : public Layer {
 public:
  explicit UpSampling2D(WindowSizes size = 2, UpSampling2DOptions options = {}, Where where = Where::here());
  STET_HANDLE(UpSampling2D, Layer)
};
struct SpatialOptions {
  std::string data_format = "channels_last";
  std::string name = {};
  DTypePolicy dtype = {};
};
/// Every element of a volume repeated: [batch, depth, height, width, channels].
class STET_API UpSampling3D : public Layer {
 public:
  explicit UpSampling3D(WindowSizes size = 2, SpatialOptions options = {}, Where where = Where::here());
  STET_HANDLE(UpSampling3D, Layer)
};

/// How much is put around, or cut off: `1` on all sides; {1, 2} that much on both sides of each axis (of one axis
/// alone: before and after); {{1, 2}, {3, 4}} before and after each axis.
class STET_API Margins {
 public:
  template <std::integral I>
  Margins(I all) : all_(true), pairs_{{static_cast<std::int64_t>(all), static_cast<std::int64_t>(all)}} {}
  Margins(std::initializer_list<std::int64_t> each) {
    for (std::int64_t one : each) pairs_.emplace_back(one, one);
  }
  Margins(std::initializer_list<std::pair<std::int64_t, std::int64_t>> sides) : sides_(true), pairs_(sides) {}
  explicit Margins(std::vector<std::pair<std::int64_t, std::int64_t>> sides) : sides_(true), pairs_(std::move(sides)) {}

  /// One pair for each of so many axes, or as many as were given.
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs(int axes) const {
    if (all_) return std::vector(static_cast<std::size_t>(axes), pairs_[0]);
    if (!sides_ && axes == 1 && pairs_.size() == 2) return {{pairs_[0].first, pairs_[1].first}};
    return pairs_;
  }

 private:
  bool all_ = false, sides_ = false;
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs_;
};
/// Zeros put before and after the steps: [batch, steps, channels] gives [batch, before + steps + after, channels].
class STET_API ZeroPadding1D : public Layer {
 public:
  explicit ZeroPadding1D(Margins padding = 1, SpatialOptions options = {}, Where where = Where::here());
  STET_HANDLE(ZeroPadding1D, Layer)
};
/// Zeros put around images: [batch, height, width, channels].
class STET_API ZeroPadding2D : public Layer {
 public:
  explicit ZeroPadding2D(Margins padding = 1, SpatialOptions options = {}, Where where = Where::here());
  STET_HANDLE(ZeroPadding2D, Layer)
};
/// Zeros put around volumes: [batch, depth, height, width, channels].
class STET_API ZeroPadding3D : public Layer {
 public:
  explicit ZeroPadding3D(Margins padding = 1, SpatialOptions options = {}, Where where = Where::here());
  STET_HANDLE(ZeroPadding3D, Layer)
};
/// Steps cut off at both ends: [batch, steps, channels] gives [batch, steps - before - after, channels].
class STET_API Cropping1D : public Layer {
 public:
  explicit Cropping1D(Margins cropping = 1, ReshapingOptions options = {}, Where where = Where::here());
  STET_HANDLE(Cropping1D, Layer)
};
/// Images cut on all sides: [batch, height, width, channels].
class STET_API Cropping2D : public Layer {
 public:
  explicit Cropping2D(Margins cropping = 0, SpatialOptions options = {}, Where where = Where::here());
  STET_HANDLE(Cropping2D, Layer)
};
/// Volumes cut on all sides: [batch, depth, height, width, channels].
class STET_API Cropping3D : public Layer {
 public:
  explicit Cropping3D(Margins cropping = 1, SpatialOptions options = {}, Where where = Where::here());
  STET_HANDLE(Cropping3D, Layer)
};

}  // namespace stet::keras
