"""Models with classes of a user's own that Keras saved, custom/*.keras, and what they give and learn: custom/*.npz.

The classes are those of tests/public/keras_custom_layers_test.cpp, which loads the files. The way back: run that test with
STET_SAVED_MODELS=FOLDER, then this script with `check FOLDER`, which loads what stet has saved and compares.

    venv/bin/python tests/oracle/keras/make_custom.py
    venv/bin/python tests/oracle/keras/make_custom.py check FOLDER
"""

import os
import sys

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
from keras import layers

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "custom")


class Scale(layers.Layer):
    def __init__(self, factor=2.0, inner=None, activation=None, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor
        self.inner = inner
        self.activation = keras.activations.get(activation)

    def build(self, shape):
        self.gamma = self.add_weight(shape=(shape[-1],), name="gamma", initializer="ones")
        if self.inner is not None:
            self.inner.build(shape)

    def call(self, x):
        y = self.activation(x * self.gamma * self.factor)
        return y if self.inner is None else self.inner(y)

    def get_config(self):
        return {
            **super().get_config(),
            "factor": self.factor,
            "inner": keras.saving.serialize_keras_object(self.inner),
            "activation": keras.activations.serialize(self.activation),
        }

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        config["inner"] = keras.saving.deserialize_keras_object(config.get("inner"))
        return cls(**config)


@keras.saving.register_keras_serializable(package="my")
class Shift(layers.Layer):
    def __init__(self, by=1, **kwargs):
        super().__init__(**kwargs)
        self.by = by

    def call(self, x):
        return x + self.by

    def get_config(self):
        return {**super().get_config(), "by": self.by}


class Net(keras.Model):
    """Keras keeps layers by the names of attributes, those after "layers" in a list."""

    def __init__(self, n=3, **kwargs):
        super().__init__(**kwargs)
        self.n = n
        self.zed = layers.Dense(n)
        self.hidden = layers.Dense(4, activation="tanh")
        self.blocks = [layers.Dense(4), layers.Dense(4)]
        self._last = layers.Dense(2)

    def call(self, x):
        x = self.hidden(x)
        for block in self.blocks:
            x = block(x)
        return self._last(self.zed(x))

    def get_config(self):
        return {"n": self.n, "name": self.name, "trainable": self.trainable}

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        config.pop("dtype", None)
        return cls(**config)


CUSTOM = {"Scale": Scale, "Net": Net}


def models():
    yield "seq", keras.Sequential(
        [
            keras.Input((4,)),
            Scale(3.0, layers.Dense(3, name="inside"), "relu"),
            Shift(2),
            Scale(0.5, trainable=False, name="frozen"),
            layers.Dense(2, activation=layers.LeakyReLU(0.1)),
        ]
    )
    x = keras.Input((4,))
    shared = Scale(1.5, name="größe_1")
    a = shared(x)
    b = shared(a)
    yield "func", keras.Model(x, layers.Dense(2)(layers.Add()([a, b]) + Shift(1)(x)))
    yield "net", Net(3)


def make():
    os.makedirs(HERE, exist_ok=True)
    rng = np.random.default_rng(3)
    x = rng.normal(size=(6, 4)).astype("float32")
    labels = rng.normal(size=(6, 2)).astype("float32")
    for name, model in models():
        model(x)
        model.compile(keras.optimizers.Adam(0.05), "mse")
        for weight in model.trainable_variables:
            weight.assign(weight + 0.1 * rng.normal(size=weight.shape).astype("float32"))
        model.train_on_batch(x, labels)
        model.save(f"{HERE}/{name}.keras")
        if name == "net":
            model.save_weights(f"{HERE}/{name}.weights.h5")
        y = model.predict(x, verbose=0)
        loss = np.float32(model.train_on_batch(x, labels))
        after = model.predict(x, verbose=0)
        np.savez(f"{HERE}/{name}.npz", x=x, labels=labels, y=y, loss=loss, after=after)


def check(folder):
    for name, fresh in models():
        stored = np.load(f"{HERE}/{name}.npz")
        model = keras.models.load_model(f"{folder}/{name}.keras", custom_objects=CUSTOM)
        np.testing.assert_allclose(model.predict(stored["x"], verbose=0), stored["y"], rtol=2e-5, atol=2e-5)
        fresh(stored["x"])
        fresh.load_weights(f"{folder}/{name}.weights.h5")
        np.testing.assert_allclose(fresh.predict(stored["x"], verbose=0), stored["y"], rtol=2e-5, atol=2e-5)
        loss = model.train_on_batch(stored["x"], stored["labels"])
        np.testing.assert_allclose(loss, stored["loss"], rtol=1e-4)
        np.testing.assert_allclose(model.predict(stored["x"], verbose=0), stored["after"], rtol=1e-4, atol=1e-4)
        print(name, "agrees")


if __name__ == "__main__":
    if sys.argv[1:2] == ["check"]:
        check(sys.argv[2])
    else:
        make()
