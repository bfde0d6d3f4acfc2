"""Layers that put elements elsewhere, and those that make data ready."""

import numpy as np

from layer_cases import LayerCases, draw

from keras import layers

cases = LayerCases("reshaping")
first = dict(data_format="channels_first")
cases.layer("reshape", layers.Reshape((3, 4)), (2, 2, 6))
cases.layer("reshape_open", layers.Reshape((-1, 2)), (2, 3, 4))
cases.layer("permute", layers.Permute((2, 1)), (2, 3, 4))
cases.layer("permute_three", layers.Permute((3, 1, 2)), (2, 3, 4, 5))
cases.layer("repeat_vector", layers.RepeatVector(3), (2, 4))
cases.layer("up_sampling1d", layers.UpSampling1D(3), (2, 3, 2))
cases.layer("up_sampling2d", layers.UpSampling2D((2, 3)), (2, 3, 2, 2))
cases.layer("up_sampling2d_bilinear", layers.UpSampling2D(2, interpolation="bilinear"), (2, 3, 4, 2))
cases.layer("up_sampling2d_bicubic", layers.UpSampling2D(2, interpolation="bicubic"), (2, 4, 5, 2))
cases.layer("up_sampling2d_first", layers.UpSampling2D(2, **first), (2, 2, 3, 2))
cases.layer("up_sampling3d", layers.UpSampling3D((2, 1, 3)), (1, 2, 3, 2, 2))
cases.layer("up_sampling3d_first", layers.UpSampling3D(2, **first), (1, 2, 2, 3, 2))
cases.layer("zero_padding1d", layers.ZeroPadding1D(2), (2, 3, 2))
cases.layer("zero_padding1d_sides", layers.ZeroPadding1D((1, 3)), (2, 3, 2))
cases.layer("zero_padding2d", layers.ZeroPadding2D((1, 2)), (2, 3, 4, 2))
cases.layer("zero_padding2d_sides", layers.ZeroPadding2D(((1, 0), (2, 3))), (2, 3, 4, 2))
cases.layer("zero_padding2d_first", layers.ZeroPadding2D(1, **first), (2, 2, 3, 4))
cases.layer("zero_padding3d", layers.ZeroPadding3D((1, 0, 2)), (1, 2, 2, 3, 2))
cases.layer("zero_padding3d_sides", layers.ZeroPadding3D(((1, 0), (0, 2), (1, 1))), (1, 2, 2, 3, 2))
cases.layer("cropping1d", layers.Cropping1D(1), (2, 5, 2))
cases.layer("cropping1d_sides", layers.Cropping1D((1, 2)), (2, 5, 2))
cases.layer("cropping2d", layers.Cropping2D((1, 2)), (2, 5, 6, 2))
cases.layer("cropping2d_sides", layers.Cropping2D(((1, 0), (2, 3))), (2, 5, 6, 2))
cases.layer("cropping2d_first", layers.Cropping2D(1, **first), (2, 2, 5, 6))
cases.layer("cropping3d", layers.Cropping3D(((1, 0), (0, 2), (1, 1))), (1, 3, 4, 5, 2))
for method in ("nearest", "bilinear", "bicubic"):
    cases.layer(f"resizing_{method}", layers.Resizing(5, 3, interpolation=method), (2, 4, 6, 2))
cases.layer("resizing_first", layers.Resizing(5, 3, **first), (2, 2, 4, 6))
cases.layer("resizing_crop", layers.Resizing(4, 3, crop_to_aspect_ratio=True), (2, 5, 7, 2))
cases.layer("resizing_crop_tall", layers.Resizing(3, 5, crop_to_aspect_ratio=True), (2, 8, 4, 2))
cases.layer("resizing_pad", layers.Resizing(4, 3, pad_to_aspect_ratio=True, fill_value=0.5), (2, 5, 7, 2))
cases.layer("resizing_pad_tall", layers.Resizing(3, 5, pad_to_aspect_ratio=True), (2, 7, 4, 2))
cases.layer("center_crop", layers.CenterCrop(3, 2), (2, 6, 5, 2))
cases.layer("center_crop_small", layers.CenterCrop(6, 4), (2, 4, 5, 2))
cases.layer("center_crop_first", layers.CenterCrop(3, 2, **first), (2, 2, 6, 5))
cases.layer("rescaling", layers.Rescaling(1 / 255.0, offset=-0.5), (2, 4))
cases.layer("rescaling_integers", layers.Rescaling(1 / 127.5, offset=-1), np.array([[0, 100, 255]], "int32"))
mean, variance = [0.5, -1.0, 2.0], [1.0, 4.0, 0.25]
cases.layer("normalization_given", layers.Normalization(mean=mean, variance=variance), (2, 4, 3))
cases.layer("normalization_inverted", layers.Normalization(mean=mean, variance=variance, invert=True), (2, 4, 3))
cases.layer("normalization_middle", layers.Normalization(axis=1, mean=mean, variance=variance), (2, 3, 4))
data = draw("data", (6, 4, 3), -3, 5)
for name, axis in (("last", -1), ("two", (1, 2)), ("all", None)):
    layer = layers.Normalization(axis=axis)
    layer.adapt(data)
    cases.add(f"adapt_{name}", data=data, y=np.asarray(layer(data)), mean=np.asarray(layer.adapt_mean.value),
              variance=np.asarray(layer.adapt_variance.value))
cases.write()
