"""Rows of stet/ops/reduce.cpp: whether any, or all, elements are not zero."""

import numpy as np

from oracle import row


def truth(combine, x, axes, keepdims):
    return combine(np.asarray(x != 0, dtype=bool), axis=tuple(axes), keepdims=keepdims).astype(np.int64)


@row("any")
def any_(x, axes, keepdims, **_):
    return truth(np.any, x, axes, keepdims)


@row("all")
def all_(x, axes, keepdims, **_):
    return truth(np.all, x, axes, keepdims)
