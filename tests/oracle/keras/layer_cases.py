"""Cases of layers: what goes in, the weights, what comes out, and gradients, as tests/public/keras_layer_cases.h reads
them."""

import zlib

from values import Cases

import jax
import jax.numpy as jnp
import numpy as np
from keras.src.backend.common.masking import set_keras_mask


def draw(name, shape, low=-1.0, high=1.0):
    """Numbers that depend on the name alone, of few digits: the files stay small."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    return np.round(random.uniform(low, high, shape), 3).astype("float32")


class LayerCases(Cases):
    def layer(self, name, layer, *inputs, training=False, masks=None, gradients=True):
        """Calls a layer on inputs (shapes, or arrays) with drawn weights.

        The tensors of the case: x0, x1, …; mask0, …; the number of weights, and weight_0_kernel, …; y; y_mask; and of
        sum(y * c), with c as given, the gradients dx0, …, dweight_0, …; after training, what weights that are not
        trained have become: after_2, …
        """
        xs = [draw(f"{name}/x{i}", x, -2, 2) if isinstance(x, tuple) else np.asarray(x) for i, x in enumerate(inputs)]
        if not layer.built:
            layer.build([x.shape for x in xs] if len(xs) > 1 else xs[0].shape)
        tensors = {f"x{i}": x for i, x in enumerate(xs)}
        for i, mask in enumerate(masks or []):
            if mask is not None:
                tensors[f"mask{i}"] = np.asarray(mask)
        tensors["weights"] = np.int32(len(layer.weights))
        for i, weight in enumerate(layer.weights):
            positive = "variance" in weight.name or "stddev" in weight.name
            value = draw(f"{name}/{i}", weight.shape, 0.3 if positive else -1.0, 1.5 if positive else 1.0)
            weight.assign(value)
            tensors[f"weight_{i}_{weight.name}"] = value
        arguments = {"training": training} if "training" in layer._call_signature.parameters else {}
        if masks is not None and "mask" in layer._call_signature.parameters:
            arguments["mask"] = masks if len(xs) > 1 else masks[0]

        def run(trained, xs):
            given = [jnp.asarray(x) for x in xs]
            for x, mask in zip(given, masks or []):
                if mask is not None:
                    set_keras_mask(x, jnp.asarray(mask))
            given = given if len(xs) > 1 else given[0]
            return layer.stateless_call(trained, fixed, given, **arguments)

        trained = [v.value for v in layer.trainable_variables]
        fixed = [v.value for v in layer.non_trainable_variables]
        y, after = run(trained, xs)
        tensors["y"] = np.asarray(y)
        if masks is not None:
            given = layer.compute_mask(xs if len(xs) > 1 else xs[0], masks if len(xs) > 1 else masks[0])
            if given is not None:
                tensors["y_mask"] = np.asarray(given)
        if gradients:
            c = draw(f"{name}/c", y.shape)
            tensors["c"] = c
            floating = all(x.dtype == np.float32 for x in xs)
            f = lambda trained, xs: (run(trained, xs)[0] * c).sum()
            if floating:
                for i, d in enumerate(jax.grad(f, 1)(trained, xs)):
                    tensors[f"dx{i}"] = np.asarray(d)
            for i, d in enumerate(jax.grad(f, 0)(trained, xs)):
                at = [k for k, w in enumerate(layer.weights) if w is layer.trainable_variables[i]][0]
                tensors[f"dweight_{at}"] = np.asarray(d)
        if training:
            for i, variable in enumerate(layer.non_trainable_variables):
                at = [k for k, w in enumerate(layer.weights) if w is variable]
                if at:
                    tensors[f"after_{at[0]}"] = np.asarray(after[i])
        self.add(name, **tensors)
