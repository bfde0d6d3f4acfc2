import numpy as np

from oracle import row


@row("take_along_axis", moves=True)
def take_along_axis(x, indices, axis):
    return np.take_along_axis(x, indices, axis)
