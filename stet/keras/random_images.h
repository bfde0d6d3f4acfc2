// Images turned, moved, zoomed and cut at random in training, each in another way: [batch, height, width, channels], or
// one of them without the batch axis. In inference nothing happens, but that RandomCrop cuts the middle. They draw as
// the layers in noise.h do.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "stet/keras/augmentation.h"
#include "stet/keras/layer.h"
#include "stet/keras/policy.h"

namespace stet::keras {

// What "fill_mode" puts beside an image a b c d:
//   "reflect"   d c b a | a b c d | d c b a
//   "wrap"      a b c d | a b c d | a b c d
//   "nearest"   a a a a | a b c d | d d d d
//   "constant"  fill_value

struct AffineTransformOptions {
  std::string interpolation = "bilinear";  // or "nearest"
  std::string fill_mode = "constant";
  double fill_value = 0;
  std::string data_format = "channels_last";
};
/// The pixel at row y and column x becomes that at column a0 x + a1 y + a2 and row b0 x + b1 y + b2 of the image.
/// `transform` is [a0 a1 a2 b0 b1 b2], [6], or a row for each image, [batch, 6]; Keras's c0 and c1, which are 0, may
/// stand at its end. Gives the type of floating images, and f32 of others.
STET_API Tensor affine_transform(const Tensor& images, const Tensor& transform, AffineTransformOptions options = {},
                                 Where where = Where::here());

struct RandomTransformOptions {
  std::string fill_mode = "reflect";
  std::string interpolation = "bilinear";  // or "nearest"
  std::optional<std::uint64_t> seed = {};
  double fill_value = 0;
  std::string data_format = "channels_last";
  std::string name = {};
  DTypePolicy dtype = {};
};
/// Turned around the middle by a part of a whole turn from -factor to factor, or {lower, upper}: numbers from -1 to 1,
/// above 0 counter-clockwise.
class STET_API RandomRotation : public Layer {
 public:
  explicit RandomRotation(RandomFactor factor, RandomTransformOptions options = {}, Where where = Where::here());
  STET_HANDLE(RandomRotation, Layer)
};
/// Moved by parts of the height and of the width, each from -factor to factor, or {lower, upper}: numbers from -1 to 1,
/// above 0 down and to the right.
class STET_API RandomTranslation : public Layer {
 public:
  RandomTranslation(RandomFactor height_factor, RandomFactor width_factor, RandomTransformOptions options = {},
                    Where where = Where::here());
  STET_HANDLE(RandomTranslation, Layer)
};
/// Zoomed around the middle: the result shows 1 + z times as much of the height (and of the width: as much without a
/// factor of its own), with z from -factor to factor, or {lower, upper}; above -1, up to 1. Below 0 is nearer.
class STET_API RandomZoom : public Layer {
 public:
  explicit RandomZoom(RandomFactor height_factor, RandomTransformOptions options = {}, Where where = Where::here());
  RandomZoom(RandomFactor height_factor, RandomFactor width_factor, RandomTransformOptions options = {},
             Where where = Where::here());
  STET_HANDLE(RandomZoom, Layer)
};

struct RandomCropOptions {
  std::optional<std::uint64_t> seed = {};
  std::string data_format = "channels_last";
  std::string name = {};
  DTypePolicy dtype = {};
};
/// A part of that size from anywhere in the images, the same of a whole batch. In inference from their middle; images
/// that are smaller are resized, after they are cut to the shape of the target, in training too.
class STET_API RandomCrop : public Layer {
 public:
  RandomCrop(std::int64_t height, std::int64_t width, RandomCropOptions options = {}, Where where = Where::here());
  STET_HANDLE(RandomCrop, Layer)
};

}  // namespace stet::keras
