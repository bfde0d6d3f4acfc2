import numpy as np

from oracle import row


def ordered(x, axis, descending, kept):
    lines = np.moveaxis(x.astype(np.float64), axis, -1)
    # Stable from the largest: sort the lines backwards, then turn the positions around.
    positions = np.argsort(lines, -1, kind="stable")
    if descending:
        last = lines.shape[-1] - 1
        positions = (last - np.argsort(lines[..., ::-1], -1, kind="stable"))[..., ::-1]
    positions = np.moveaxis(positions[..., :kept], -1, axis)
    return np.take_along_axis(x, positions, axis), positions


@row("sort")
def sort(x, axis, descending):
    return ordered(x, axis, descending, x.shape[axis])


@row("top_k")
def top_k(x, axis, k):
    return ordered(x, axis, True, k)


@row("searchsorted")
def searchsorted(lines, values, right):
    side = "right" if right else "left"
    lines, values = lines.astype(np.float64), values.astype(np.float64)
    if lines.ndim == 1:
        return np.searchsorted(lines, values, side)
    out = np.empty(values.shape, dtype=np.int64)
    for at in np.ndindex(lines.shape[:-1]):
        out[at] = np.searchsorted(lines[at], values[at], side)
    return out
