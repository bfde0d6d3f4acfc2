// Pooling to a size that is given, whatever that of the input is: window i of n goes from i/n of the axis, rounded
// down, to (i + 1)/n, rounded up.
#pragma once
#include <string>

#include "stet/keras/layer.h"
#include "stet/keras/policy.h"
#include "stet/keras/window_sizes.h"

namespace stet::keras {

struct AdaptivePoolingOptions {
  std::string data_format = "channels_last";
  std::string name = {};
  DTypePolicy dtype = {};
};
/// The mean of every window: [batch, steps, channels] gives [batch, output_size, channels].
class STET_API AdaptiveAveragePooling1D : public Layer {
 public:
  explicit AdaptiveAveragePooling1D(WindowSizes output_size, AdaptivePoolingOptions options = {},
                                    Where where = Where::here());
  STET_HANDLE(AdaptiveAveragePooling1D, Layer)
};
/// The same of images: [batch, height, width, channels].
class STET_API AdaptiveAveragePooling2D : public Layer {
 public:
  explicit AdaptiveAveragePooling2D(WindowSizes output_size, AdaptivePoolingOptions options = {},
                                    Where where = Where::here());
  STET_HANDLE(AdaptiveAveragePooling2D, Layer)
};
/// The same of volumes: [batch, depth, height, width, channels].
class STET_API AdaptiveAveragePooling3D : public Layer {
 public:
  explicit AdaptiveAveragePooling3D(WindowSizes output_size, AdaptivePoolingOptions options = {},
                                    Where where = Where::here());
  STET_HANDLE(AdaptiveAveragePooling3D, Layer)
};
/// The largest value of every window: [batch, steps, channels] gives [batch, output_size, channels].
class STET_API AdaptiveMaxPooling1D : public Layer {
 public:
  explicit AdaptiveMaxPooling1D(WindowSizes output_size, AdaptivePoolingOptions options = {},
                                Where where = Where::here());
  STET_HANDLE(AdaptiveMaxPooling1D, Layer)
};
/// The same of images: [batch, height, width, channels].
class STET_API AdaptiveMaxPooling2D : public Layer {
 public:
  explicit AdaptiveMaxPooling2D(WindowSizes output_size, AdaptivePoolingOptions options = {},
                                Where where = Where::here());
  STET_HANDLE(AdaptiveMaxPooling2D, Layer)
};
/// The same of volumes: [batch, depth, height, width, channels].
class STET_API AdaptiveMaxPooling3D : public Layer {
 public:
  explicit AdaptiveMaxPooling3D(WindowSizes output_size, AdaptivePoolingOptions options = {},
                                Where where = Where::here());
  STET_HANDLE(AdaptiveMaxPooling3D, Layer)
};

}  // namespace stet::keras
