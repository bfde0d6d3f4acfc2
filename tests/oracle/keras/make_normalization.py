"""Layers that normalise."""

import numpy as np

from layer_cases import LayerCases

from keras import layers

cases = LayerCases("normalization")
mask = np.array([[True, True, False, True], [True, False, False, False], [False, True, True, True]])
batch = layers.BatchNormalization
for training in (False, True):
    mode = "_training" if training else ""
    how = dict(training=training)
    cases.layer(f"batch{mode}", batch(), (4, 3), **how)
    cases.layer(f"batch_images{mode}", batch(momentum=0.9, epsilon=1e-2), (2, 3, 4, 2), **how)
    cases.layer(f"batch_axis{mode}", batch(axis=1), (2, 3, 4), **how)
    cases.layer(f"batch_plain{mode}", batch(center=False, scale=False), (4, 3), **how)
    cases.layer(f"batch_scale{mode}", batch(center=False), (4, 3), **how)
    cases.layer(f"batch_masked{mode}", batch(), (3, 4, 2), masks=[mask], **how)
    cases.layer(f"batch_renorm{mode}", batch(renorm=True, renorm_momentum=0.8, momentum=0.9), (4, 3), **how)
    clipping = {"rmax": 1.2, "rmin": 0.9, "dmax": 0.3}
    cases.layer(f"batch_clipped{mode}", batch(renorm=True, renorm_clipping=clipping, center=False), (2, 3, 4, 2), **how)
    cases.layer(f"batch_renorm_plain{mode}", batch(renorm=True, center=False, scale=False), (3, 4, 2), masks=[mask], **how)
cases.layer("layer", layers.LayerNormalization(), (2, 3, 4))
cases.layer("layer_axes", layers.LayerNormalization(axis=(1, 2), epsilon=1e-5), (2, 3, 4))
cases.layer("layer_middle", layers.LayerNormalization(axis=1), (2, 3, 4))
cases.layer("layer_outer", layers.LayerNormalization(axis=(1, 3)), (2, 3, 2, 4))
cases.layer("layer_plain", layers.LayerNormalization(center=False, scale=False), (2, 3, 4))
cases.layer("layer_center", layers.LayerNormalization(scale=False), (2, 3, 4))
cases.layer("layer_masked", layers.LayerNormalization(), (3, 4, 2), masks=[mask])
cases.layer("group", layers.GroupNormalization(2), (2, 3, 4))
cases.layer("group_images", layers.GroupNormalization(3, epsilon=1e-5), (2, 3, 2, 6))
cases.layer("group_instance", layers.GroupNormalization(-1), (2, 3, 2, 4))
cases.layer("group_axis", layers.GroupNormalization(2, axis=1), (2, 4, 3))
cases.layer("group_plain", layers.GroupNormalization(2, center=False, scale=False), (2, 3, 4))
cases.layer("unit", layers.UnitNormalization(), (2, 3, 4))
cases.layer("unit_axes", layers.UnitNormalization(axis=(1, 2)), (2, 3, 4))
cases.layer("rms", layers.RMSNormalization(), (2, 3, 4))
cases.layer("rms_epsilon", layers.RMSNormalization(epsilon=1e-2), (4, 3))
cases.layer("rms_axes", layers.RMSNormalization(axis=(1, 2)), (2, 3, 4))
for training in (False, True):
    mode = "_training" if training else ""
    how = dict(training=training, gradients=not training)
    cases.layer(f"spectral{mode}", layers.SpectralNormalization(layers.Dense(3)), (2, 4), **how)
    cases.layer(
        f"spectral_conv{mode}", layers.SpectralNormalization(layers.Conv1D(3, 2), power_iterations=3), (2, 4, 2), **how
    )
cases.write()
