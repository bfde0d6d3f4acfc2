"""Layers of convolutions."""

from layer_cases import LayerCases

from keras import layers

cases = LayerCases("convolutions")
first = dict(data_format="channels_first")

cases.layer("conv1d", layers.Conv1D(4, 3), (2, 7, 3))
cases.layer("conv1d_same", layers.Conv1D(4, 4, strides=2, padding="same", activation="relu"), (2, 7, 3))
cases.layer("conv1d_causal", layers.Conv1D(4, 3, padding="causal", dilation_rate=2), (2, 8, 3))
cases.layer("conv1d_causal_strides", layers.Conv1D(4, 2, strides=2, padding="causal", use_bias=False), (2, 8, 3))
cases.layer("conv1d_groups", layers.Conv1D(6, 3, groups=2), (2, 7, 4))
cases.layer("conv2d", layers.Conv2D(3, 3), (2, 5, 6, 2))
cases.layer("conv2d_same", layers.Conv2D(3, (2, 3), strides=(2, 1), padding="same", activation="tanh"), (2, 5, 6, 2))
cases.layer("conv2d_dilated", layers.Conv2D(3, (2, 3), dilation_rate=(1, 2), padding="same"), (2, 5, 6, 2))
cases.layer("conv2d_groups", layers.Conv2D(4, 3, groups=2, use_bias=False), (1, 5, 5, 4))
cases.layer("conv3d", layers.Conv3D(2, 2), (1, 3, 4, 3, 2))
cases.layer("conv3d_same", layers.Conv3D(2, (1, 2, 3), strides=(1, 2, 1), padding="same"), (1, 3, 4, 3, 2))
cases.layer("conv3d_groups", layers.Conv3D(4, 2, groups=2, dilation_rate=(1, 2, 1)), (1, 3, 4, 3, 2))
cases.layer("depthwise_conv1d", layers.DepthwiseConv1D(3), (2, 6, 3))
cases.layer("depthwise_conv1d_same", layers.DepthwiseConv1D(3, strides=2, padding="same", depth_multiplier=2), (2, 6, 3))
cases.layer("depthwise_conv2d", layers.DepthwiseConv2D((2, 3), activation="relu"), (2, 4, 5, 3))
cases.layer(
    "depthwise_conv2d_same",
    layers.DepthwiseConv2D(3, padding="same", depth_multiplier=2, dilation_rate=2, use_bias=False),
    (2, 4, 5, 3),
)
cases.layer("separable_conv1d", layers.SeparableConv1D(4, 3, depth_multiplier=2), (2, 6, 3))
cases.layer("separable_conv1d_same", layers.SeparableConv1D(4, 3, strides=2, padding="same"), (2, 6, 3))
cases.layer("separable_conv2d", layers.SeparableConv2D(4, (2, 3), activation="relu"), (2, 4, 5, 3))
cases.layer(
    "separable_conv2d_same", layers.SeparableConv2D(4, 3, padding="same", dilation_rate=2, use_bias=False), (2, 4, 5, 3)
)
cases.layer("conv1d_transpose", layers.Conv1DTranspose(4, 3, strides=2), (2, 5, 3))
cases.layer("conv1d_transpose_same", layers.Conv1DTranspose(4, 3, strides=2, padding="same"), (2, 5, 3))
cases.layer("conv1d_transpose_dilated", layers.Conv1DTranspose(4, 3, dilation_rate=2), (2, 5, 3))
cases.layer("conv1d_transpose_short", layers.Conv1DTranspose(4, 2, strides=3), (2, 5, 3))
cases.layer("conv1d_transpose_output", layers.Conv1DTranspose(4, 3, strides=3, output_padding=1), (2, 5, 3))
cases.layer(
    "conv1d_transpose_output_same", layers.Conv1DTranspose(4, 3, strides=3, padding="same", output_padding=2), (2, 5, 3)
)
cases.layer("conv2d_transpose", layers.Conv2DTranspose(3, (2, 3), strides=(2, 1), activation="tanh"), (1, 3, 4, 2))
cases.layer(
    "conv2d_transpose_same",
    layers.Conv2DTranspose(3, 3, strides=2, padding="same", output_padding=1, use_bias=False),
    (1, 3, 4, 2),
)
cases.layer("conv3d_transpose", layers.Conv3DTranspose(2, 2, strides=(1, 2, 1)), (1, 2, 3, 2, 2))
cases.layer("conv3d_transpose_same", layers.Conv3DTranspose(2, 3, strides=2, padding="same"), (1, 2, 2, 2, 2))
cases.layer("conv2d_first", layers.Conv2D(3, 3, strides=2, padding="same", **first), (2, 2, 5, 6))
cases.layer("conv1d_first", layers.Conv1D(3, 3, **first), (2, 2, 6))
cases.layer("depthwise_conv2d_first", layers.DepthwiseConv2D(3, **first), (2, 2, 5, 6))
cases.layer("separable_conv2d_first", layers.SeparableConv2D(3, 3, **first), (2, 2, 5, 6))
cases.layer("conv2d_transpose_first", layers.Conv2DTranspose(3, 3, strides=2, **first), (2, 2, 3, 3))
cases.write()
