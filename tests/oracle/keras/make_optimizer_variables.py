"""What Keras's optimizers keep, in the order in which they store it (vars/0, vars/1, … of a saved model):
optimizer_variables.json, a list of cases. "entry" is the optimizer as Keras writes it, "trainable" and "variables" are
lists of [name, shape, dtype]. "resume" is what they and other weights are after three steps, and what two more make of
the weights: the elements of each."""

import values  # chooses the backend

import copy
import json
import pathlib

import keras
import numpy as np
from keras import optimizers as o
from keras.optimizers import schedules as s
from keras.saving import deserialize_keras_object, serialize_keras_object

SHAPES = {"kernel": [3, 4], "bias": [4], "filters": [3, 2, 2, 5], "embeddings": [5, 2], "gain": []}
ALL = [
    o.SGD,
    o.RMSprop,
    o.Adagrad,
    o.Adadelta,
    o.Adam,
    o.AdamW,
    o.Adamax,
    o.Nadam,
    o.Lion,
    o.Ftrl,
    o.Lamb,
    o.Adafactor,
    o.Muon,
    o.ScheduleFreeAdamW,
]
SHARED = [
    {},
    {"use_ema": True},
    {"gradient_accumulation_steps": 2},
    {"use_ema": True, "gradient_accumulation_steps": 2, "learning_rate": s.ExponentialDecay(0.5, 10, 0.5)},
]
OPTIMIZERS = [one(**given) for one in ALL for given in SHARED] + [
    o.SGD(momentum=0.5, nesterov=True, use_ema=True),
    o.RMSprop(momentum=0.5),
    o.RMSprop(centered=True),
    o.RMSprop(momentum=0.5, centered=True, use_ema=True, gradient_accumulation_steps=2),
    o.Adam(amsgrad=True, use_ema=True),
    o.AdamW(amsgrad=True),
    o.Muon(exclude_layers=["kernel"], exclude_embeddings=False),
    o.LossScaleOptimizer(o.Adam(use_ema=True)),
    o.LossScaleOptimizer(o.SGD(s.ExponentialDecay(0.5, 10, 0.5), momentum=0.5)),
]


def listed(variables):
    return [[v.path, list(v.shape), str(v.dtype)] for v in variables]


def case(optimizer):
    trainable = [keras.Variable(keras.ops.ones(shape), name=name) for name, shape in SHAPES.items()]
    optimizer.build(trainable)
    return {
        "entry": serialize_keras_object(optimizer),
        "trainable": listed(trainable),
        "variables": listed(optimizer.variables),
    }


def elements(variable):
    """As few digits as tell f32 from others."""
    return [float(str(one)) for one in np.asarray(variable.numpy()).ravel()]


def step(optimizer, weights, number):
    """Gradients that the test makes too."""
    wave = [np.sin(np.arange(np.prod(w.shape)) * 0.7 * number + 1).reshape(w.shape) for w in weights]
    gradients = [keras.ops.convert_to_tensor(one.astype("float32")) for one in wave]
    now = [v.value for v in optimizer.variables]
    new_weights, new_variables = optimizer.stateless_apply(now, gradients, [w.value for w in weights])
    for variable, value in zip(weights + optimizer.variables, new_weights + new_variables):
        variable.assign(value)


def resumed(entry):
    """A matrix is square, so that nothing but the order tells its slots apart."""
    optimizer = deserialize_keras_object(copy.deepcopy(entry))
    shapes = {"kernel": [2, 3], "square": [2, 2], "bias": [3]}
    weights = [keras.Variable(np.full(shape, 0.5, "float32"), name=name) for name, shape in shapes.items()]
    optimizer.build(weights)
    for number in range(1, 4):
        step(optimizer, weights, number)
    out = {"weights": [elements(w) for w in weights], "variables": [elements(v) for v in optimizer.variables]}
    for number in range(4, 6):
        step(optimizer, weights, number)
    return out | {"later": [elements(w) for w in weights]}


cases = [case(one) for one in OPTIMIZERS]
cases = [one | {"resume": resumed(one["entry"])} for one in cases]
path = pathlib.Path(__file__).resolve().parent / "optimizer_variables.json"
path.write_text("[\n" + ",\n".join(json.dumps(one) for one in cases) + "\n]\n")
