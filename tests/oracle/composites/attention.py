"""stet/ops/attention.cpp."""

import numpy as np

from functions import softmax
from oracle import composite


@composite("masked_softmax", "values", "mask")
def masked_softmax(x, mask):
    weights = np.where(mask, np.exp(x), 0)
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total == 0, 1, total)


def scores(q, k):
    return q @ np.swapaxes(k, -1, -2) / np.sqrt(np.longdouble(q.shape[-1]))


@composite("attention", "small", "small", "small")
def attention(q, k, v):
    return softmax(scores(q, k)) @ v


@composite("attention_causal", "small", "small", "small")
def attention_causal(q, k, v):
    return masked_softmax(scores(q, k), np.tril(np.ones((q.shape[-2], k.shape[-2]), dtype=bool))) @ v


@composite("attention_scaled", "small", "small", "small")
def attention_scaled(q, k, v):
    return softmax(q @ np.swapaxes(k, -1, -2) / 2) @ v
