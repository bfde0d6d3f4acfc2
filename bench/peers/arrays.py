"""The arrays that a workload begins with, the same for stet and all peers.

    python3 bench/peers/arrays.py FOLDER [NAME ...]      writes FOLDER/NAME.npz; needs NumPy alone

A file has the weights as p00, p01 … (kernels as TensorFlow has them: inputs first, channels last), and a batch as x and y; where
lengths vary, one batch of each length n as x_n and y_n. Every workload draws from a generator of its own with seed 0, weights first.
"""
import math
import os
import sys

import numpy as np

from workloads import BY_NAME, CLASSES, LENGTHS, TRANSFORMER_LAYERS


class Draw:
    """NumPy's generator with seed 0, and what is drawn from it here."""

    def __init__(self):
        self.random = np.random.default_rng(0)

    def kernel(self, *shape):
        """Uniform, with Glorot's limit; all axes but the last one count as inputs."""
        limit = math.sqrt(6 / (math.prod(shape[:-1]) + shape[-1]))
        return self.random.uniform(-limit, limit, shape).astype(np.float32)

    def normal(self, *shape):
        return self.random.standard_normal(shape).astype(np.float32)

    def labels(self, count, classes=CLASSES):
        return self.random.integers(0, classes, count).astype(np.int32)

    def tokens(self, vocabulary, *shape):
        return self.random.integers(0, vocabulary, shape).astype(np.int32)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def ones(*shape):
    return np.ones(shape, np.float32)


def named(weights, **others):
    return {f"p{number:02}": weight for number, weight in enumerate(weights)} | others


def batch_of(draw, *shape):
    return {"x": draw.normal(*shape), "y": draw.labels(shape[0])}


# --- the arrays of each


def mlp(draw, size):
    weights = []
    for inputs, outputs in ((784, 512), (512, 512), (512, CLASSES)):
        weights += [draw.kernel(inputs, outputs), zeros(outputs)]
    return named(weights, **batch_of(draw, size, 784))


def cnn(draw):
    weights = [draw.kernel(3, 3, 1, 32), zeros(32), draw.kernel(3, 3, 32, 64), zeros(64)]
    weights += [draw.kernel(1600, 128), zeros(128), draw.kernel(128, CLASSES), zeros(CLASSES)]
    return named(weights, **batch_of(draw, 64, 28, 28, 1))


def transformer(draw):
    width, hidden, weights = 128, 512, []
    for _ in range(TRANSFORMER_LAYERS):
        weights += [draw.kernel(width, 3 * width), zeros(3 * width), draw.kernel(width, width), zeros(width)]
        weights += [ones(width), zeros(width)]
        weights += [draw.kernel(width, hidden), zeros(hidden), draw.kernel(hidden, width), zeros(width)]
        weights += [ones(width), zeros(width)]
    weights += [draw.kernel(width, CLASSES), zeros(CLASSES)]
    return named(weights, **batch_of(draw, 16, 64, width))


FEATURES, UNITS = 64, 128


def sequences(draw):
    out = {}
    for length in sorted(LENGTHS):
        batch = batch_of(draw, 32, length, FEATURES)
        out |= {f"x_{length}": batch["x"], f"y_{length}": batch["y"]}
    return out


def lstm(draw):
    """Gates in the order input, forget, candidate, output."""
    weights = [draw.kernel(FEATURES, 4 * UNITS), draw.kernel(UNITS, 4 * UNITS), zeros(4 * UNITS)]
    weights += [draw.kernel(UNITS, CLASSES), zeros(CLASSES)]
    return named(weights, **sequences(draw))


def gru(draw):
    """Gates in the order reset, update, candidate; a bias of the inputs, and one of the state."""
    weights = [draw.kernel(FEATURES, 3 * UNITS), draw.kernel(UNITS, 3 * UNITS), zeros(3 * UNITS), zeros(3 * UNITS)]
    weights += [draw.kernel(UNITS, CLASSES), zeros(CLASSES)]
    return named(weights, **sequences(draw))


def adam(draw):
    """64 tensors that begin with zeros, and their gradients."""
    return {f"g{number:02}": draw.normal(156250) for number in range(64)}


def gelu_norm(draw):
    return {"x": draw.normal(4096, 1024), "p00": ones(1024), "p01": zeros(1024)}


def cross_entropy(draw):
    return {"x": draw.normal(1024, 32000), "y": draw.labels(1024, 32000)}


def depthwise(draw):
    """Two pairs of a depthwise and a pointwise convolution; a depthwise kernel is [3, 3, channels, 1]."""
    weights = [draw.kernel(3, 3, 32, 1), zeros(32), draw.kernel(1, 1, 32, 64), zeros(64)]
    weights += [draw.kernel(3, 3, 64, 1), zeros(64), draw.kernel(1, 1, 64, 128), zeros(128)]
    weights += [draw.kernel(128, CLASSES), zeros(CLASSES)]
    return named(weights, **batch_of(draw, 32, 32, 32, 32))


def resnet(draw):
    weights = []
    for _ in range(2):
        weights += [draw.kernel(3, 3, 64, 64), ones(64), zeros(64)]
    weights += [draw.kernel(64, CLASSES), zeros(CLASSES)]
    return named(weights, **batch_of(draw, 32, 16, 16, 64))


def embedding(draw):
    weights = [draw.kernel(20000, 128), draw.kernel(128, 128), zeros(128), draw.kernel(128, CLASSES), zeros(CLASSES)]
    return named(weights, x=draw.tokens(20000, 128, 64), y=draw.labels(128))


def attention(draw):
    width = 256
    weights = [draw.kernel(width, 3 * width), zeros(3 * width), draw.kernel(width, width), zeros(width)]
    weights += [draw.kernel(width, CLASSES), zeros(CLASSES)]
    return named(weights, **batch_of(draw, 4, 512, width))


def arrays_of(name):
    """Workloads of one network at several sizes are called mlp_32, mlp_128 …"""
    workload = BY_NAME[name]
    make = globals()[workload.model]
    return make(Draw(), int(name.split("_")[1])) if workload.model == "mlp" else make(Draw())


def path_of(folder, name):
    return os.path.join(folder, name + ".npz")


def write(folder, name):
    """Writes the file, complete or not at all, unless it is there and younger than what it is made by."""
    path = path_of(folder, name)
    here = os.path.dirname(os.path.abspath(__file__))
    made_by = [os.path.getmtime(os.path.join(here, source)) for source in ("arrays.py", "workloads.py")]
    if os.path.exists(path) and os.path.getmtime(path) > max(made_by):
        return
    os.makedirs(folder, exist_ok=True)
    part = f"{path}.{os.getpid()}.part"
    with open(part, "wb") as file:
        np.savez(file, **arrays_of(name))
    os.replace(part, path)


def fingerprint(values):
    """One number of many, in double precision: their sum, each with a weight of its own between 1 and 2."""
    values = np.asarray(values, np.float64).ravel()
    place = np.arange(values.size, dtype=np.float64)
    return float(np.sum(values * (1 + np.mod(place * 0.6180339887498949, 1))))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    unknown = [name for name in sys.argv[2:] if name not in BY_NAME]
    if unknown:
        sys.exit(f"arrays.py: no workload {', '.join(unknown)}; there are {', '.join(BY_NAME)}")
    for name in sys.argv[2:] or BY_NAME:
        write(sys.argv[1], name)


if __name__ == "__main__":
    main()
