"""Layers that merge."""

import numpy as np

from layer_cases import LayerCases

from keras import layers

cases = LayerCases("merging")
left = np.array([[True, True, False, False], [True, False, True, False]])
right = np.array([[True, False, True, False], [True, True, False, False]])
a = (2, 4, 3)
for name in ("Add", "Multiply", "Average", "Maximum", "Minimum"):
    kind = getattr(layers, name)
    key = name.lower()
    cases.layer(key, kind(), a, a, a)
    cases.layer(f"{key}_broadcast", kind(), a, (2, 1, 3))
    cases.layer(f"{key}_ranks", kind(), a, (2, 3))
    cases.layer(f"{key}_masked", kind(), a, a, masks=[left, right])
    cases.layer(f"{key}_half_masked", kind(), a, a, masks=[left, None])
cases.layer("subtract", layers.Subtract(), a, a)
cases.layer("subtract_masked", layers.Subtract(), a, a, masks=[left, right])
cases.layer("concatenate", layers.Concatenate(), a, (2, 4, 2), a)
cases.layer("concatenate_steps", layers.Concatenate(axis=1), a, (2, 3, 3))
cases.layer("concatenate_masked", layers.Concatenate(), a, (2, 4, 2), masks=[left, right])
cases.layer("concatenate_steps_masked", layers.Concatenate(axis=1), a, a, masks=[left, right])
cases.layer("concatenate_half_masked", layers.Concatenate(axis=1), a, a, masks=[left, None])
cases.layer("dot_vectors", layers.Dot(axes=1), (2, 4), (2, 4))
cases.layer("dot_vectors_normalized", layers.Dot(axes=1, normalize=True), (2, 4), (2, 4))
cases.layer("dot_matrices", layers.Dot(axes=(2, 1)), (2, 3, 4), (2, 4, 5))
cases.layer("dot_same_axis", layers.Dot(axes=-1), (2, 3, 4), (2, 5, 4))
cases.layer("dot_first_axis", layers.Dot(axes=1, normalize=True), (2, 4, 3), (2, 4, 5))
cases.layer("dot_matrix_vector", layers.Dot(axes=(2, 1)), (2, 3, 4), (2, 4))
cases.layer("dot_vector_matrix", layers.Dot(axes=(1, 2)), (2, 4), (2, 3, 4))
cases.layer("dot_many_axes", layers.Dot(axes=(2, 3)), (2, 3, 4, 2), (2, 3, 5, 4))
cases.write()
