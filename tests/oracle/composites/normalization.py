"""stet/ops/normalization.cpp."""

import numpy as np

from oracle import composite


def standardised(x, axes, epsilon=np.longdouble(1e-3)):
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + epsilon)


def unit_length(x):
    return x / np.sqrt((x**2).sum(-1, keepdims=True))


@composite("layer_norm", "values", "parameter", "parameter")
def layer_norm(x, gamma, beta):
    return standardised(x, -1) * gamma + beta


@composite("rms_norm", "values", "parameter")
def rms_norm(x, gamma):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + np.longdouble(1e-6)) * gamma


@composite("batch_norm", "values", "parameter", "scale", "parameter", "parameter")
def batch_norm(x, mean, variance, offset, scale):
    return (x - mean) / np.sqrt(variance + np.longdouble(1e-3)) * scale + offset


@composite("batch_norm_plain", "values", "parameter", "scale")
def batch_norm_plain(x, mean, variance):
    return (x - mean) / np.sqrt(variance + np.longdouble(1e-3))


@composite("batch_norm_of_batch", "values")
def batch_norm_of_batch(x):
    return standardised(x, tuple(range(x.ndim - 1)))


@composite("group_norm", "values", "parameter", "parameter")
def group_norm(x, gamma, beta):
    """One group: its axes are all but the batch."""
    return standardised(x, tuple(range(1, x.ndim))) * gamma + beta


@composite("l2_normalize", "values")
def l2_normalize(x):
    return unit_length(x)


@composite("cosine_similarity", "values", "shifted")
def cosine_similarity(x, y):
    return (unit_length(x) * unit_length(y)).sum(-1)
