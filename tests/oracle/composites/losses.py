"""stet/ops/losses.cpp."""

import numpy as np

from functions import log_softmax, picked
from oracle import composite


@composite("sparse_cross_entropy", "labels", "values")
def sparse_cross_entropy(y, z):
    return -picked(log_softmax(z), y)


@composite("sparse_cross_entropy_smoothed", "labels", "values")
def sparse_cross_entropy_smoothed(y, z):
    """With a label smoothing of 1/8."""
    share = np.eye(z.shape[-1], dtype=np.longdouble)[y] * 7 / 8 + 1 / np.longdouble(8) / z.shape[-1]
    return -(share * log_softmax(z)).sum(-1)


@composite("softmax_cross_entropy", "probabilities", "values")
def softmax_cross_entropy(y, z):
    return -(y * log_softmax(z)).sum(-1)


@composite("softmax_cross_entropy_smoothed", "probabilities", "values")
def softmax_cross_entropy_smoothed(y, z):
    return -((y * 7 / 8 + 1 / np.longdouble(8) / z.shape[-1]) * log_softmax(z)).sum(-1)


@composite("sigmoid_cross_entropy", "probabilities", "values")
def sigmoid_cross_entropy(y, z):
    return np.logaddexp(0, z) - z * y


@composite("sigmoid_cross_entropy_smoothed", "probabilities", "values")
def sigmoid_cross_entropy_smoothed(y, z):
    return np.logaddexp(0, z) - z * (y * 7 / 8 + np.longdouble(1) / 16)


@composite("huber", "values", "shifted")
def huber(t, p):
    e = abs(t - p)
    return np.where(e <= 1, e * e / 2, e - np.longdouble(0.5))


@composite("huber_3", "values", "shifted")
def huber_3(t, p):
    e = abs(t - p)
    return np.where(e <= 3, e * e / 2, 3 * (e - np.longdouble(1.5)))


@composite("kl_divergence", "probabilities", "probabilities")
def kl_divergence(y, p):
    return (y * np.log(y / p)).sum(-1)


@composite("mean_squared_error", "values", "shifted")
def mean_squared_error(t, p):
    return ((t - p) ** 2).mean(-1)


@composite("mean_absolute_error", "values", "shifted")
def mean_absolute_error(t, p):
    return abs(t - p).mean(-1)


@composite("poisson_loss", "probabilities", "probabilities")
def poisson_loss(y, p):
    return p - y * np.log(p)


@composite("poisson_loss_of_log", "probabilities", "small")
def poisson_loss_of_log(y, z):
    return np.exp(z) - y * z
