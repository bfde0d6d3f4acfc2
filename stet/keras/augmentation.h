// Random changes of images in training, another for every image: [batch, height, width, channels], or one of them
// without the batch axis. In inference nothing happens. They draw as the layers in noise.h do. Those that turn, move
// and cut images are in random_images.h.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "stet/keras/layer.h"
#include "stet/keras/policy.h"

namespace stet::keras {

struct RandomFlipOptions {
  std::optional<std::uint64_t> seed = {};
  std::string data_format = "channels_last";
  std::string name = {};
  DTypePolicy dtype = {};
};
/// Every other image turned left to right ("horizontal"), upside down ("vertical"), or both at once
/// ("horizontal_and_vertical").
class STET_API RandomFlip : public Layer {
 public:
  explicit RandomFlip(std::string mode = "horizontal_and_vertical", RandomFlipOptions options = {},
                      Where where = Where::here());
  STET_HANDLE(RandomFlip, Layer)
};

/// One number, or a lower and an upper one.
class STET_API RandomFactor {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> RandomFactor(T both) : first(static_cast<double>(both)), second(first), one(true) {}
  RandomFactor(double first, double second) : first(first), second(second), one(false) {}
  double first, second;
  bool one;
};
struct RandomColorOptions {
  std::pair<double, double> value_range = {0, 255};  // of pixels; what leaves it is cut
  std::optional<std::uint64_t> seed = {};
  std::string name = {};
  DTypePolicy dtype = {};
};
/// The difference to the mean of each channel multiplied by a number from 1 - factor to 1 + factor; {lower, upper}:
/// from 1 - lower to 1 + upper.
class STET_API RandomContrast : public Layer {
 public:
  explicit RandomContrast(RandomFactor factor, RandomColorOptions options = {}, Where where = Where::here());
  STET_HANDLE(RandomContrast, Layer)
};
/// A number from -factor to factor, or {lower, upper}, times the width of value_range added to all pixels.
class STET_API RandomBrightness : public Layer {
 public:
  explicit RandomBrightness(RandomFactor factor, RandomColorOptions options = {}, Where where = Where::here());
  STET_HANDLE(RandomBrightness, Layer)
};

}  // namespace stet::keras
