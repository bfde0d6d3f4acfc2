"""Pools to a size that is given."""

import numpy as np

from layer_cases import LayerCases

from keras import layers

cases = LayerCases("adaptive_pooling")
shapes = {1: (2, 7, 3), 2: (2, 5, 7, 2), 3: (1, 4, 5, 3, 2)}
firsts = {1: (2, 3, 7), 2: (2, 2, 5, 7), 3: (1, 2, 4, 5, 3)}


def distinct(shape):
    """Numbers of which no two are equal: of equals, gradients may choose any."""
    numbers = np.random.default_rng(7).permutation(np.prod(shape)) / 32 - 1
    return numbers.reshape(shape).astype("float32")


for kind in ("Average", "Max"):
    for axes in (1, 2, 3):
        name = f"{kind.lower()}{axes}d"
        pool = getattr(layers, f"Adaptive{kind}Pooling{axes}D")
        cases.layer(name, pool(3), distinct(shapes[axes]))
        cases.layer(f"{name}_sizes", pool((4, 2, 3)[:axes] if axes > 1 else 4), distinct(shapes[axes]))
        cases.layer(f"{name}_more", pool(9), distinct(shapes[axes]))
        cases.layer(f"{name}_first", pool(2, data_format="channels_first"), distinct(firsts[axes]))
cases.write()
