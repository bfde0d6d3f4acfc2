// Layers of convolutions. With data_format "channels_first" the channels are axis 1 of what goes in and comes out.
#pragma once
#include <cstdint>
#include <string>

#include "stet/keras/activation.h"
#include "stet/keras/layer.h"
#include "stet/keras/policy.h"
#include "stet/keras/window_sizes.h"

namespace stet::keras {

struct ConvolutionOptions {
  WindowSizes strides = 1;
  /// "valid": windows lie inside; "same": zeros around, so that there are size / stride windows, rounded up; "causal",
  /// of Conv1D: zeros before, so that a step sees none that comes later.
  std::string padding = "valid";
  std::string data_format = "channels_last";
  WindowSizes dilation_rate = 1;  // the distance between neighbours in a window
  std::int64_t groups = 1;        // of channels and filters: a filter sees the channels of its own group alone
  ActivationFunction activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = {};  // none: "glorot_uniform"
  Initializer bias_initializer = {};    // none: "zeros"
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};  // of the output, divided by the number of samples
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
  DTypePolicy dtype = {};
};
/// activation(convolution(x, kernel) + bias): [batch, steps, channels] gives [batch, new steps, filters]. The kernel is
/// [size, channels / groups, filters].
class STET_API Conv1D : public Layer {
 public:
  Conv1D(std::int64_t filters, WindowSizes kernel_size, ConvolutionOptions options = {}, Where where = Where::here());
  STET_HANDLE(Conv1D, Layer)
};
/// The same of images: [batch, height, width, channels] gives [batch, new height, new width, filters].
class STET_API Conv2D : public Layer {
 public:
  Conv2D(std::int64_t filters, WindowSizes kernel_size, ConvolutionOptions options = {}, Where where = Where::here());
  STET_HANDLE(Conv2D, Layer)
};
/// The same of volumes: [batch, depth, height, width, channels].
class STET_API Conv3D : public Layer {
 public:
  Conv3D(std::int64_t filters, WindowSizes kernel_size, ConvolutionOptions options = {}, Where where = Where::here());
  STET_HANDLE(Conv3D, Layer)
};

struct DepthwiseConvolutionOptions {
  WindowSizes strides = 1;
  std::string padding = "valid";  // or "same"
  std::int64_t depth_multiplier = 1;
  std::string data_format = "channels_last";
  WindowSizes dilation_rate = 1;
  ActivationFunction activation = {};
  bool use_bias = true;
  Initializer depthwise_initializer = {};  // none: "glorot_uniform"
  Initializer bias_initializer = {};       // none: "zeros"
  Regularizer depthwise_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint depthwise_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
  DTypePolicy dtype = {};
};
/// Every channel is convolved with `depth_multiplier` kernels of its own: [batch, steps, channels] gives
/// [batch, new steps, channels * depth_multiplier]. The kernel is [size, channels, depth_multiplier].
class STET_API DepthwiseConv1D : public Layer {
 public:
  explicit DepthwiseConv1D(WindowSizes kernel_size, DepthwiseConvolutionOptions options = {},
                           Where where = Where::here());
  STET_HANDLE(DepthwiseConv1D, Layer)
};
/// The same of images: [batch, height, width, channels].
class STET_API DepthwiseConv2D : public Layer {
 public:
  explicit DepthwiseConv2D(WindowSizes kernel_size, DepthwiseConvolutionOptions options = {},
                           Where where = Where::here());
  STET_HANDLE(DepthwiseConv2D, Layer)
};

struct SeparableConvolutionOptions {
  WindowSizes strides = 1;
  std::string padding = "valid";  // or "same"
  std::string data_format = "channels_last";
  WindowSizes dilation_rate = 1;
  std::int64_t depth_multiplier = 1;
  ActivationFunction activation = {};
  bool use_bias = true;
  Initializer depthwise_initializer = {};  // none: "glorot_uniform"
  Initializer pointwise_initializer = {};  // none: "glorot_uniform"
  Initializer bias_initializer = {};       // none: "zeros"
  Regularizer depthwise_regularizer = {};
  Regularizer pointwise_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint depthwise_constraint = {};
  Constraint pointwise_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
  DTypePolicy dtype = {};
};
/// A depthwise convolution, then one with windows of size 1 that mixes channels: [batch, steps, channels] gives
/// [batch, new steps, filters].
class STET_API SeparableConv1D : public Layer {
 public:
  SeparableConv1D(std::int64_t filters, WindowSizes kernel_size, SeparableConvolutionOptions options = {},
                  Where where = Where::here());
  STET_HANDLE(SeparableConv1D, Layer)
};
/// The same of images: [batch, height, width, channels].
class STET_API SeparableConv2D : public Layer {
 public:
  SeparableConv2D(std::int64_t filters, WindowSizes kernel_size, SeparableConvolutionOptions options = {},
                  Where where = Where::here());
  STET_HANDLE(SeparableConv2D, Layer)
};

struct TransposedConvolutionOptions {
  WindowSizes strides = 1;
  std::string padding = "valid";  // or "same"
  /// Not given: sizes are size * stride for "same", and that plus what a kernel longer than the stride adds for
  /// "valid". Otherwise so many positions beyond (size - 1) * stride + kernel - the padding; less than the stride.
  WindowSizes output_padding = {};
  std::string data_format = "channels_last";
  WindowSizes dilation_rate = 1;
  ActivationFunction activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = {};  // none: "glorot_uniform"
  Initializer bias_initializer = {};    // none: "zeros"
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};  // of the output, divided by the number of samples
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
  DTypePolicy dtype = {};
};
/// What the gradient of Conv1D does: [batch, steps, channels] gives [batch, about steps * stride, filters]. The kernel
/// is [size, filters, channels].
class STET_API Conv1DTranspose : public Layer {
 public:
  Conv1DTranspose(std::int64_t filters, WindowSizes kernel_size, TransposedConvolutionOptions options = {},
                  Where where = Where::here());
  STET_HANDLE(Conv1DTranspose, Layer)
};
/// The same of images: [batch, height, width, channels].
class STET_API Conv2DTranspose : public Layer {
 public:
  Conv2DTranspose(std::int64_t filters, WindowSizes kernel_size, TransposedConvolutionOptions options = {},
                  Where where = Where::here());
  STET_HANDLE(Conv2DTranspose, Layer)
};
/// The same of volumes: [batch, depth, height, width, channels].
class STET_API Conv3DTranspose : public Layer {
 public:
  Conv3DTranspose(std::int64_t filters, WindowSizes kernel_size, TransposedConvolutionOptions options = {},
                  Where where = Where::here());
  STET_HANDLE(Conv3DTranspose, Layer)
};

}  // namespace stet::keras
