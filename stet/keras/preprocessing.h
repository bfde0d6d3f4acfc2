// Layers that make data ready: images of one size, numbers of one scale. They take integers too, and give floating
// numbers.
#pragma once
#include <cstdint>
#include <string>

#include "stet/keras/layer.h"
#include "stet/keras/policy.h"
#include "stet/ops/ops.h"

namespace stet::keras {

struct ResizingOptions {
  std::string interpolation = "bilinear";  // or "nearest", "bicubic"
  bool crop_to_aspect_ratio = false;       // cut the image to the shape of the target first, from its middle
  bool pad_to_aspect_ratio = false;        // put fill_value around it instead
  double fill_value = 0;
  std::string data_format = "channels_last";
  std::string name = {};
  DTypePolicy dtype = {};
};
/// Images at another size: [batch, height, width, channels], or one of them without the batch axis.
class STET_API Resizing : public Layer {
 public:
  Resizing(std::int64_t height, std::int64_t width, ResizingOptions options = {}, Where where = Where::here());
  STET_HANDLE(Resizing, Layer)
};

struct CenterCropOptions {
  std::string data_format = "channels_last";
  std::string name = {};
  DTypePolicy dtype = {};
};
/// The middle of images, [batch, height, width, channels] or one of them; those that are smaller are resized, after
/// they are cut to the shape of the target.
class STET_API CenterCrop : public Layer {
 public:
  CenterCrop(std::int64_t height, std::int64_t width, CenterCropOptions options = {}, Where where = Where::here());
  STET_HANDLE(CenterCrop, Layer)
};

struct RescalingOptions {
  std::string name = {};
  DTypePolicy dtype = {};
};
/// x * scale + offset: numbers, or tensors that broadcast.
class STET_API Rescaling : public Layer {
 public:
  explicit Rescaling(const Tensor& scale, const Tensor& offset = Tensor(0.0), RescalingOptions options = {});
  STET_HANDLE(Rescaling, Layer)
};

struct NormalizationOptions {
  Tensor mean = {}, variance = {};  // both, or none: those that adapt() finds
  bool invert = false;              // back from what it gave
  std::string name = {};
  DTypePolicy dtype = {};
};
/// (x - mean) / sqrt(variance), with a mean and a variance for every position of the axes that are kept; Axes{} keeps
/// none.
class STET_API Normalization : public Layer {
 public:
  explicit Normalization(Axes axis = -1, NormalizationOptions options = {}, Where where = Where::here());
  /// Sets mean and variance to those of the data, over all axes that are not kept.
  void adapt(const Tensor& data, Where where = Where::here()) const;
  STET_HANDLE(Normalization, Layer)
};

}  // namespace stet::keras
