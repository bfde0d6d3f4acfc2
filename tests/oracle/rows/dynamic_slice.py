import numpy as np

from oracle import row


def block(x, begin, size):
    moved = [min(max(int(b), 0), n - s) for b, n, s in zip(begin, x.shape, size)]
    return tuple(slice(b, b + s) for b, s in zip(moved, size))


@row("dynamic_slice", moves=True)
def dynamic_slice(x, begin, size):
    return x[block(x, begin, size)]


@row("dynamic_update_slice", moves=True)
def dynamic_update_slice(x, update, begin):
    out = np.array(x)
    out[block(x, begin, update.shape)] = update
    return out
