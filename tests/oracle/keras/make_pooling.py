"""Layers of pools."""

import numpy as np

from layer_cases import LayerCases

from keras import layers

cases = LayerCases("pooling")
shapes = {1: (2, 6, 3), 2: (2, 5, 6, 2), 3: (1, 4, 5, 4, 2)}
firsts = {1: (2, 3, 6), 2: (2, 2, 5, 6), 3: (1, 2, 4, 5, 4)}
for kind in ("Max", "Average"):
    for axes in (1, 2, 3):
        pool = getattr(layers, f"{kind}Pooling{axes}D")
        name = f"{kind.lower()}{axes}d"
        cases.layer(name, pool(2), shapes[axes])
        cases.layer(f"{name}_same", pool(3, strides=2, padding="same"), shapes[axes])
        cases.layer(f"{name}_windows", pool((3, 2, 1)[:axes], strides=(1, 2, 1)[:axes]), shapes[axes])
        cases.layer(f"{name}_first", pool(2, data_format="channels_first"), firsts[axes])
        everything = getattr(layers, f"Global{kind}Pooling{axes}D")
        cases.layer(f"global_{name}", everything(), shapes[axes])
        cases.layer(f"global_{name}_kept", everything(keepdims=True), shapes[axes])
        cases.layer(f"global_{name}_first", everything(data_format="channels_first"), firsts[axes])
mask = np.array([[True, True, False, True, False, False], [True, False, False, False, False, True]])
cases.layer("global_average1d_masked", layers.GlobalAveragePooling1D(), (2, 6, 3), masks=[mask])
cases.layer("global_average1d_masked_kept", layers.GlobalAveragePooling1D(keepdims=True), (2, 6, 3), masks=[mask])
cases.write()
