"""Regularizers, constraints and models that use them, in Keras: regularizers.txt."""

from values import Cases

import keras
import numpy as np
from keras import constraints as c
from keras import regularizers as r

random = np.random.default_rng(3)
cases = Cases("regularizers")


def normal(*shape):
    return random.normal(size=shape).astype("float32")


def penalty(name, regularizer, x):
    cases.add(name, x=x, penalty=np.asarray(regularizer(keras.ops.convert_to_tensor(x)), dtype="float32"))


matrix, filters = normal(4, 3), normal(2, 2, 3, 4)
penalty("l1", r.L1(0.2), matrix)
penalty("l1 default", r.get("l1"), filters)
penalty("l2", r.L2(0.3), filters)
penalty("l2 default", r.get("l2"), matrix)
penalty("l1l2", r.L1L2(l1=0.1, l2=0.2), matrix)
penalty("l1l2 only l1", r.L1L2(l1=0.1), matrix)
penalty("l1l2 default", r.get("l1l2"), matrix)
penalty("orthogonal rows", r.OrthogonalRegularizer(0.5), matrix)
penalty("orthogonal columns", r.OrthogonalRegularizer(0.5, mode="columns"), matrix)
short = matrix.copy()
short[1] = 0
penalty("orthogonal zero row", r.get("orthogonal_regularizer"), short)


def constrained(name, constraint, weight):
    cases.add(name, weight=weight, allowed=np.asarray(constraint(weight), dtype="float32"))


large = normal(5, 3) * 2
large[:, 1] *= 0.1
constrained("max_norm", c.MaxNorm(1.5), large)
constrained("max_norm default", c.get("max_norm"), large)
constrained("max_norm axis", c.MaxNorm(1.5, axis=1), large)
constrained("max_norm axes", c.MaxNorm(0.5, axis=[0, 1, 2]), filters)
constrained("non_neg", c.NonNeg(), large)
constrained("unit_norm", c.UnitNorm(), large)
constrained("unit_norm axis", c.UnitNorm(axis=1), large)
constrained("min_max_norm", c.MinMaxNorm(min_value=0.75, max_value=1.25, rate=0.5, axis=0), large)
constrained("min_max_norm default", c.get("min_max_norm"), large)
zero = large.copy()
zero[:, 0] = 0
constrained("max_norm zero", c.MaxNorm(1.5), zero)


def train(name, layers, width, optimizer, steps=3):
    """Losses of train_on_batch and test_on_batch, and the weights after each step."""
    model = keras.Sequential([keras.Input((width,)), *layers])
    model.compile(optimizer=optimizer, loss="mse")
    x, y = normal(6, width), normal(6, layers[-1].units)
    values = {"x": x, "y": y}
    values |= {f"weight_{i}": w.numpy() for i, w in enumerate(model.weights)}
    values["test"] = np.asarray(model.test_on_batch(x, y), dtype="float32")
    losses = []
    for _ in range(steps):
        model.reset_metrics()
        losses.append(model.train_on_batch(x, y))
    values["losses"] = np.asarray(losses, dtype="float32")
    values |= {f"trained_{i}": w.numpy() for i, w in enumerate(model.weights)}
    cases.add(name, **values)


dense = keras.layers.Dense
# Not from a bias of 0, where JAX's derivative of |x| is 1.
train(
    "model kernel",
    [dense(2, kernel_regularizer=r.L2(0.1), bias_regularizer=r.L1(0.05), bias_initializer=keras.initializers.Constant(0.25))],
    3,
    keras.optimizers.SGD(0.125),
)
train(
    "model activity",
    [dense(4, activation="tanh", activity_regularizer=r.L2(0.2)), dense(2, activity_regularizer="l1", kernel_regularizer="l2")],
    3,
    keras.optimizers.SGD(0.125),
)
train(
    "model constraint",
    [dense(4, kernel_constraint=c.MaxNorm(0.5), bias_constraint="non_neg"), dense(2, kernel_constraint=c.UnitNorm(axis=1))],
    3,
    keras.optimizers.SGD(0.25, use_ema=True, ema_momentum=0.5),
)
train("model loss scale", [dense(2, kernel_regularizer=r.L2(0.1))], 3, keras.optimizers.SGD(0.125, loss_scale_factor=8.0))
train(
    "model dynamic loss scale",
    [dense(2, kernel_regularizer=r.L2(0.1))],
    3,
    keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.125), initial_scale=16.0, dynamic_growth_steps=2),
)


class Adding(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.inner = dense(2)
        self.units = 2

    def call(self, x):
        y = self.inner(x)
        self.add_loss(0.25 * keras.ops.mean(keras.ops.square(y)))
        self.add_loss(0.125 * keras.ops.sum(keras.ops.abs(x)))
        return y


train("model add_loss", [Adding()], 3, keras.optimizers.SGD(0.125))

cases.write()
