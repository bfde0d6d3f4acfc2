"""stet/keras/loss.cpp."""

import numpy as np

from functions import log_softmax, picked
from oracle import composite


def clipped(p):
    return np.clip(p, np.longdouble(1e-7), 1 - np.longdouble(1e-7))


def normalised(p):
    return clipped(p / p.sum(-1, keepdims=True))


@composite("sparse_categorical_crossentropy", "labels", "probabilities")
def sparse_categorical_crossentropy(y, p):
    return -picked(np.log(normalised(p)), y)


@composite("categorical_crossentropy", "probabilities", "probabilities")
def categorical_crossentropy(y, p):
    return -(y * np.log(normalised(p))).sum(-1)


@composite("categorical_crossentropy_logits", "probabilities", "values")
def categorical_crossentropy_logits(y, z):
    return -(y * log_softmax(z)).sum(-1)


@composite("binary_crossentropy", "probabilities", "probabilities")
def binary_crossentropy(y, p):
    return -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean(-1)


@composite("binary_crossentropy_logits", "probabilities", "values")
def binary_crossentropy_logits(y, z):
    return (np.logaddexp(0, z) - z * y).mean(-1)


@composite("keras_mean_squared_error", "values", "shifted")
def mean_squared_error(t, p):
    return ((t - p) ** 2).mean(-1)


@composite("keras_mean_absolute_error", "values", "shifted")
def mean_absolute_error(t, p):
    return abs(t - p).mean(-1)
