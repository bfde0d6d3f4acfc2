"""Cases of layers that take and give several tensors, as tests/public/keras_sequence_cases.h reads them."""

import re
import zlib

from values import Cases

import jax
import keras
import numpy as np


def draw(name, shape, low=-1.0, high=1.0):
    """Numbers that depend on the name alone, of few digits: the files stay small."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    return np.round(random.uniform(low, high, shape), 3).astype("float32")


class SequenceCases(Cases):
    def layer(self, name, layer, *inputs, call=None):
        """Calls a layer on inputs (shapes, or arrays) with drawn weights, as `call(layer, *inputs)` does.

        The tensors of the case: x0, x1, …; weight_0:path/after/the/layer, … without the numbers of names; what comes out, y0, y1, …; and of the sum
        of all y * c, with c0, c1, … as given, the gradients dx0, …, dweight_0, …
        """
        call = call or (lambda layer, *xs: layer(*xs))
        xs = [draw(f"{name}/x{i}", x) if isinstance(x, tuple) else np.asarray(x) for i, x in enumerate(inputs)]
        outputs = lambda xs: [y for y in keras.tree.flatten(call(layer, *xs))]
        outputs(xs)
        tensors = {f"x{i}": x for i, x in enumerate(xs)}
        weights = layer.weights
        for i, weight in enumerate(weights):
            value = draw(f"{name}/{i}", weight.shape, -0.8, 0.8)
            weight.assign(value)
            tensors[f"weight_{i}:" + re.sub(r"_\d+(/|$)", r"\1", weight.path.split("/", 1)[1])] = value
        if getattr(layer, "stateful", False):
            layer.reset_state()

        def run(values, xs):
            with keras.StatelessScope(state_mapping=list(zip(weights, values))):
                return outputs(xs)

        values = [w.value for w in weights]
        ys = run(values, xs)
        cs = [draw(f"{name}/c{i}", y.shape) for i, y in enumerate(ys)]
        for i, (y, c) in enumerate(zip(ys, cs)):
            tensors[f"y{i}"] = np.asarray(y)
            tensors[f"c{i}"] = c
        floating = [i for i, x in enumerate(xs) if x.dtype == np.float32]

        def total(values, changed):
            given = list(xs)
            for i, x in zip(floating, changed):
                given[i] = x
            return sum((y * c).sum() for y, c in zip(run(values, given), cs))

        dvalues, dxs = jax.grad(total, (0, 1))(values, [xs[i] for i in floating])
        for i, d in zip(floating, dxs):
            tensors[f"dx{i}"] = np.asarray(d)
        for i, d in enumerate(dvalues):
            tensors[f"dweight_{i}"] = np.asarray(d)
        self.add(name, **tensors)
