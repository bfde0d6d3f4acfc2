"""Regularizers and constraints of the weights of all layers, activity regularizers, and frozen layers, in Keras:
weight_options.txt."""

import re

from sequence_cases import draw
from values import Cases

import jax
import keras
import numpy as np
from keras import layers
from keras.constraints import MaxNorm, MinMaxNorm, NonNeg, UnitNorm
from keras.regularizers import L1, L2

cases = Cases("weight_options")


def drawn_weights(name, layer, tensors):
    for i, weight in enumerate(layer.weights):
        positive = "variance" in weight.name
        value = draw(f"{name}/{i}", weight.shape, 0.3 if positive else -0.8, 0.8)
        value = np.where(value == 0, np.float32(0.5), value)  # where the derivative of |x| has no one value
        weight.assign(value)
        tensors[f"weight_{i}:" + re.sub(r"_\d+(/|$)", r"\1", weight.path.split("/", 1)[1])] = value


class Holder(keras.layers.Layer):
    """Calls its layer as users do: stateless_call() runs the layer's call() alone, without its activity regularizer."""

    def __init__(self, inner, arguments):
        super().__init__()
        self.inner, self.arguments = inner, arguments

    def call(self, *inputs):
        return self.inner(*inputs, **self.arguments)


def layer(name, layer, *inputs, training=False, as_list=False):
    """A call of a layer on inputs (shapes, or arrays) with drawn weights, and a step of SGD(0.125) down the sum of
    y * c and of what the layer adds.

    The tensors of the case: x0, x1, …; weight_0:path/after/the/layer, … without the numbers of names; y; c; what it
    adds, losses; and what the weights are after the step, after_0, …
    """
    xs = [draw(f"{name}/x{i}", x) if isinstance(x, tuple) else np.asarray(x) for i, x in enumerate(inputs)]
    arguments = {"training": training} if "training" in layer._call_signature.parameters else {}
    given = [xs] if as_list else xs
    layer(*given)
    tensors = {f"x{i}": x for i, x in enumerate(xs)}
    drawn_weights(name, layer, tensors)
    holder = Holder(layer, arguments)
    holder.build(None)
    trained, fixed = holder.trainable_variables, holder.non_trainable_variables

    def total(values, c):
        y, _, losses = holder.stateless_call(values, [v.value for v in fixed], *given, return_losses=True)
        y = keras.tree.flatten(y)[0]
        return (y * (c if c is not None else 0)).sum() + sum(losses), (y, losses)

    values = [v.value for v in trained]
    _, (y, losses) = total(values, None)
    c = draw(f"{name}/c", y.shape)
    (_, _), gradients = jax.value_and_grad(total, has_aux=True)(values, c)
    optimizer = keras.optimizers.SGD(0.125)
    optimizer.apply(gradients, trained)
    tensors |= {"y": np.asarray(y), "c": c, "losses": np.asarray([float(loss) for loss in losses], "float32")}
    for i, weight in enumerate(layer.weights):
        if any(weight is one for one in trained):
            tensors[f"after_{i}"] = np.asarray(weight.value)
    cases.add(name, **tensors)


kernel = dict(kernel_regularizer=L2(0.1), kernel_constraint=MaxNorm(0.5))
bias = dict(bias_regularizer=L1(0.2), bias_constraint=NonNeg())
activity = dict(activity_regularizer=L2(0.3))
depthwise = dict(depthwise_regularizer=L1(0.1), depthwise_constraint=UnitNorm())
pointwise = dict(pointwise_regularizer=L2(0.4), pointwise_constraint=MaxNorm(0.25))
recurrent = dict(recurrent_regularizer=L1(0.05), recurrent_constraint=MinMaxNorm(0.2, 0.6, rate=0.5))
gates = kernel | recurrent | bias
affine = dict(
    beta_regularizer=L1(0.1), gamma_regularizer=L2(0.2), beta_constraint=NonNeg(), gamma_constraint=MinMaxNorm(0.1, 0.5)
)

layer("dense", layers.Dense(3, activation="tanh", **kernel, **bias, **activity), (4, 5))
layer("einsum_dense", layers.EinsumDense("abc,cd->abd", (None, 3), bias_axes="d", **kernel, **bias, **activity), (2, 3, 4))
layer(
    "embedding",
    layers.Embedding(5, 3, embeddings_regularizer=L2(0.1), embeddings_constraint=UnitNorm(axis=1), **activity),
    np.array([[1, 4, 0], [2, 2, 3]], "int32"),
)
layer("conv1d", layers.Conv1D(3, 2, **kernel, **bias, **activity), (2, 5, 2))
layer("conv2d", layers.Conv2D(3, 2, activation="relu", **kernel, **bias, **activity), (2, 4, 3, 2))
layer("conv2d channels_first", layers.Conv2D(3, 2, data_format="channels_first", **kernel, **bias, **activity), (2, 2, 4, 3))
layer("conv3d", layers.Conv3D(2, 2, **kernel, **bias, **activity), (1, 3, 3, 3, 2))
layer("depthwise1d", layers.DepthwiseConv1D(2, depth_multiplier=2, **depthwise, **bias, **activity), (2, 5, 2))
layer("depthwise2d", layers.DepthwiseConv2D(2, **depthwise, **bias, **activity), (2, 4, 3, 2))
layer("separable1d", layers.SeparableConv1D(3, 2, **depthwise, **pointwise, **bias, **activity), (2, 5, 2))
layer("separable2d", layers.SeparableConv2D(3, 2, **depthwise, **pointwise, **bias, **activity), (2, 4, 3, 2))
layer("conv1d_transpose", layers.Conv1DTranspose(3, 2, strides=2, **kernel, **bias, **activity), (2, 4, 2))
layer("conv2d_transpose", layers.Conv2DTranspose(3, 2, **kernel, **bias, **activity), (2, 3, 3, 2))
layer("conv3d_transpose", layers.Conv3DTranspose(2, 2, **kernel, **bias, **activity), (1, 2, 2, 2, 2))
layer("batch_normalization", layers.BatchNormalization(**affine, **activity), (4, 3), training=True)
layer("layer_normalization", layers.LayerNormalization(**affine, **activity), (4, 3))
layer("group_normalization", layers.GroupNormalization(2, **affine, **activity), (3, 2, 4))
layer("rms_normalization", layers.RMSNormalization(**activity), (4, 3))
layer("prelu", layers.PReLU(alpha_regularizer=L2(0.1), alpha_constraint=NonNeg(), **activity), (4, 3))
layer("simple_rnn", layers.SimpleRNN(3, **gates), (2, 4, 2))  # Keras's forgets its activity_regularizer
layer("lstm", layers.LSTM(2, return_sequences=True, return_state=True, **gates, **activity), (2, 3, 3))
layer("gru", layers.GRU(3, **gates, **activity), (2, 4, 2))
layer("rnn", layers.RNN(layers.LSTMCell(2, **gates), **activity), (2, 4, 2))
layer("stacked", layers.RNN([layers.GRUCell(2, **gates), layers.SimpleRNNCell(3, **gates)]), (2, 4, 2))
layer("bidirectional", layers.Bidirectional(layers.LSTM(2, **gates, **activity)), (2, 4, 2))
layer("time_distributed", layers.TimeDistributed(layers.Dense(3, **kernel, **bias)), (2, 4, 2))
layer("conv_lstm1d", layers.ConvLSTM1D(2, 2, **gates, **activity), (2, 3, 4, 2))
layer("conv_lstm2d", layers.ConvLSTM2D(2, 2, **gates, **activity), (1, 2, 3, 3, 2))
layer("multi_head_attention", layers.MultiHeadAttention(2, 3, **kernel, **bias, **activity), (2, 4, 3), (2, 5, 3))
layer("group_query_attention", layers.GroupQueryAttention(3, 4, 2, **kernel, **bias, **activity), (2, 4, 3), (2, 5, 3))
layer("attention", layers.Attention(use_scale=True, **activity), (2, 4, 3), (2, 5, 3), as_list=True)
layer("additive_attention", layers.AdditiveAttention(**activity), (2, 4, 3), (2, 5, 3), as_list=True)


def tuned(name, optimizer, epochs=2):
    """Transfer: a base with a BatchNormalization is frozen, fitted with a head, and then all of it is fitted.

    The tensors of the case: x; y; weight_0, …; the losses of all steps; what the weights are after the first fit,
    frozen_0, …, and after the second, tuned_0, …
    """
    base = keras.Sequential(
        [
            layers.Dense(4, activation="tanh", kernel_regularizer=L2(0.05), activity_regularizer=L2(0.02), name="a"),
            layers.BatchNormalization(momentum=0.5, name="b"),
            layers.Dense(3, activation="tanh", kernel_constraint=MaxNorm(0.5), name="c"),
        ],
        name="base",
    )
    model = keras.Sequential([keras.Input((3,)), base, layers.Dense(2, kernel_regularizer=L1(0.01), name="head")])
    x, y = draw(f"{name}/x", (8, 3), -2, 2), draw(f"{name}/y", (8, 2))
    tensors = {"x": x, "y": y}
    for i, weight in enumerate(model.weights):
        value = draw(f"{name}/{i}", weight.shape, *((0.3, 1.5) if "variance" in weight.path else (-0.8, 0.8)))
        weight.assign(value)
        tensors[f"weight_{i}"] = value
    losses, tests = [], []
    for trainable, label in ((False, "frozen"), (True, "tuned")):
        base.trainable = trainable
        model.compile(optimizer=optimizer(), loss="mse")
        for _ in range(epochs):
            model.reset_metrics()
            losses.append(float(model.train_on_batch(x, y)))
        model.reset_metrics()
        tests.append(float(model.test_on_batch(x, y)))
        tensors |= {f"{label}_{i}": np.asarray(w.value) for i, w in enumerate(model.weights)}
    tensors |= {"losses": np.asarray(losses, "float32"), "tests": np.asarray(tests, "float32")}
    cases.add(name, **tensors)


tuned("transfer sgd", lambda: keras.optimizers.SGD(0.125, weight_decay=0.02))
tuned("transfer adam", lambda: keras.optimizers.Adam(0.05, weight_decay=0.02))

cases.write()
