import numpy as np

import oracle
from oracle import FLOATING, row


def scanned(function, first, x, axis, exclusive, reverse):
    """One step after the other, along the last axis."""
    lines = np.moveaxis(x, axis, -1)
    if reverse:
        lines = lines[..., ::-1]
    out = np.empty(lines.shape, dtype=x.dtype)
    for index in np.ndindex(lines.shape[:-1]):
        so_far = first
        for k in range(lines.shape[-1]):
            value = lines[index][k]
            following = value if so_far is None else function(so_far, value)
            out[index][k] = so_far if exclusive else following
            so_far = following
    if reverse:
        out = out[..., ::-1]
    return np.moveaxis(out, -1, axis)


@row("cumsum")
def cumsum(x, axis, exclusive, reverse):
    wide = x if x.dtype == object else x.astype(np.longdouble)
    out = scanned(lambda a, b: a + b, 0, wide, axis, exclusive, reverse)
    return out if x.dtype == object else out.astype(np.float64)


@row("cumprod")
def cumprod(x, axis, exclusive, reverse):
    wide = x if x.dtype == object else x.astype(np.longdouble)
    out = scanned(lambda a, b: a * b, 1, wide, axis, exclusive, reverse)
    return out if x.dtype == object else out.astype(np.float64)


# A scan of nothing is the lowest or highest value of the type, so each type has its own reference.
EVERY_TYPE = ["bool", "u8", "i8", "i16", "i32", "i64", *FLOATING]
RANGES = {"bool": (0, 1), "u8": (0, 255), **{f"i{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)}}


def range_of_type():
    return RANGES.get(oracle.current_type, (-np.inf, np.inf))


def larger(a, b):
    """NaN wins, as in np.maximum.accumulate."""
    return a if a != a or a >= b else b


def smaller(a, b):
    return a if a != a or a <= b else b


@row("cummax", types=EVERY_TYPE)
def cummax(x, axis, exclusive, reverse):
    return scanned(larger, range_of_type()[0], x, axis, exclusive, reverse)


@row("cummin", types=EVERY_TYPE)
def cummin(x, axis, exclusive, reverse):
    return scanned(smaller, range_of_type()[1], x, axis, exclusive, reverse)


@row("logcumsumexp")
def logcumsumexp(x, axis, exclusive, reverse):
    return scanned(np.logaddexp, np.longdouble(-np.inf), x.astype(np.longdouble), axis, exclusive, reverse).astype(np.float64)
