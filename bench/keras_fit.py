#!/usr/bin/env python3
"""An epoch of fit_stet.cpp in Keras: keras_fit.py jax|tensorflow|torch mlp|cnn prints the seconds of the second one.

Keras is no package of Debian: pip install keras jax tensorflow-cpu in a virtual environment. Run it beside
build/bench/bench/fit_stet, in turns, on a machine with nothing else to do."""

import os
import sys
import time

backend, kind = sys.argv[1:]
os.environ["KERAS_BACKEND"] = backend
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import keras
import numpy as np
from keras import layers

random = np.random.default_rng(1)
x = random.random((60000, 28, 28, 1), dtype=np.float32)
y = random.integers(0, 10, 60000).astype("int32")
model = keras.Sequential([layers.Input((28, 28, 1))])
if kind == "cnn":
    for filters in (32, 64):
        model.add(layers.Conv2D(filters, 3, activation="relu"))
        model.add(layers.MaxPooling2D())
model.add(layers.Flatten())
model.add(layers.Dense(128, activation="relu"))
model.add(layers.Dense(10))
model.compile(
    optimizer=keras.optimizers.Adam(1e-3),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(x, y, batch_size=64, epochs=1, verbose=0)
begin = time.perf_counter()
model.fit(x, y, batch_size=64, epochs=1, verbose=0)
print(f"{time.perf_counter() - begin:.3f}")
