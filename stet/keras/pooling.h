// Pooling: windows, or everything, reduced to one value for each channel. With data_format "channels_first" the
// channels are axis 1 of what goes in and comes out.
#pragma once
#include <string>

#include "stet/keras/layer.h"
#include "stet/keras/policy.h"
#include "stet/keras/window_sizes.h"

namespace stet::keras {

struct PoolingOptions {
  WindowSizes strides = {};       // not given: pool_size, so that windows lie side by side
  std::string padding = "valid";  // or "same": what is outside does not count
  std::string data_format = "channels_last";
  std::string name = {};
  DTypePolicy dtype = {};
};
/// The largest value of every window: [batch, steps, channels] gives [batch, windows, channels].
class STET_API MaxPooling1D : public Layer {
 public:
  explicit MaxPooling1D(WindowSizes pool_size = 2, PoolingOptions options = {}, Where where = Where::here());
  STET_HANDLE(MaxPooling1D, Layer)
};
/// The same of images: [batch, height, width, channels].
class STET_API MaxPooling2D : public Layer {
 public:
  explicit MaxPooling2D(WindowSizes pool_size = 2, PoolingOptions options = {}, Where where = Where::here());
  STET_HANDLE(MaxPooling2D, Layer)
};
/// The same of volumes: [batch, depth, height, width, channels].
class STET_API MaxPooling3D : public Layer {
 public:
  explicit MaxPooling3D(WindowSizes pool_size = 2, PoolingOptions options = {}, Where where = Where::here());
  STET_HANDLE(MaxPooling3D, Layer)
};
/// The mean of every window: [batch, steps, channels] gives [batch, windows, channels].
class STET_API AveragePooling1D : public Layer {
 public:
  explicit AveragePooling1D(WindowSizes pool_size, PoolingOptions options = {}, Where where = Where::here());
  STET_HANDLE(AveragePooling1D, Layer)
};
/// The same of images: [batch, height, width, channels].
class STET_API AveragePooling2D : public Layer {
 public:
  explicit AveragePooling2D(WindowSizes pool_size, PoolingOptions options = {}, Where where = Where::here());
  STET_HANDLE(AveragePooling2D, Layer)
};
/// The same of volumes: [batch, depth, height, width, channels].
class STET_API AveragePooling3D : public Layer {
 public:
  explicit AveragePooling3D(WindowSizes pool_size, PoolingOptions options = {}, Where where = Where::here());
  STET_HANDLE(AveragePooling3D, Layer)
};

struct GlobalPoolingOptions {
  std::string data_format = "channels_last";
  bool keepdims = false;  // leave the spatial axes in place, with size 1
  std::string name = {};
  DTypePolicy dtype = {};
};
/// The largest value of every channel: [batch, steps, channels] gives [batch, channels].
class STET_API GlobalMaxPooling1D : public Layer {
 public:
  explicit GlobalMaxPooling1D(GlobalPoolingOptions options = {}, Where where = Where::here());
  STET_HANDLE(GlobalMaxPooling1D, Layer)
};
/// The same of images: [batch, height, width, channels].
class STET_API GlobalMaxPooling2D : public Layer {
 public:
  explicit GlobalMaxPooling2D(GlobalPoolingOptions options = {}, Where where = Where::here());
  STET_HANDLE(GlobalMaxPooling2D, Layer)
};
/// The same of volumes: [batch, depth, height, width, channels].
class STET_API GlobalMaxPooling3D : public Layer {
 public:
  explicit GlobalMaxPooling3D(GlobalPoolingOptions options = {}, Where where = Where::here());
  STET_HANDLE(GlobalMaxPooling3D, Layer)
};
/// The mean of every channel: [batch, steps, channels] gives [batch, channels]; with a mask, of the steps that count.
class STET_API GlobalAveragePooling1D : public Layer {
 public:
  explicit GlobalAveragePooling1D(GlobalPoolingOptions options = {}, Where where = Where::here());
  STET_HANDLE(GlobalAveragePooling1D, Layer)
};
/// The same of images, without masks: [batch, height, width, channels].
class STET_API GlobalAveragePooling2D : public Layer {
 public:
  explicit GlobalAveragePooling2D(GlobalPoolingOptions options = {}, Where where = Where::here());
  STET_HANDLE(GlobalAveragePooling2D, Layer)
};
/// The same of volumes: [batch, depth, height, width, channels].
class STET_API GlobalAveragePooling3D : public Layer {
 public:
  explicit GlobalAveragePooling3D(GlobalPoolingOptions options = {}, Where where = Where::here());
  STET_HANDLE(GlobalAveragePooling3D, Layer)
};

}  // namespace stet::keras
