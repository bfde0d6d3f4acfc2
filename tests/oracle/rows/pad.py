import numpy as np

from oracle import row


@row("pad")
def pad(x, value, low, high, between):
    shape = [max((n - 1) * (b + 1) + 1, 0) + l + h for n, b, l, h in zip(x.shape, between, low, high)]
    out = np.full(shape, value[()], dtype=x.dtype)
    out[tuple(slice(l, l + n * (b + 1), b + 1) if n else slice(0, 0) for n, b, l in zip(x.shape, between, low))] = x
    return out
