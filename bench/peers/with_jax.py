"""The vocabulary of models.py in JAX, compiled by jit."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from workloads import BETA_1, BETA_2, EPSILON, RATE

VERSION = "JAX " + jax.__version__
IMAGE = ("NHWC", "HWIO", "NHWC")


class Peer:
    def __init__(self, mode, threads):
        del mode, threads  # one way to run it; its threads are as many as the cores that the process may use
        self.traces = 0

    tensor = staticmethod(jnp.asarray)
    image = staticmethod(jnp.asarray)
    number = staticmethod(float)
    array = staticmethod(np.asarray)
    wait = staticmethod(jax.block_until_ready)

    # --- ops
    relu = staticmethod(jax.nn.relu)

    def gelu(self, x):
        return jax.nn.gelu(x, approximate=False)

    def layer_norm(self, x, gamma, beta):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + 1e-5) * gamma + beta

    def batch_norm(self, x, gamma, beta):
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
        return (x - mean) * lax.rsqrt(variance + 1e-5) * gamma + beta

    def cross_entropy(self, logits, labels):
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))

    def convolution(self, x, kernel, bias=None, same=False):
        x = lax.conv_general_dilated(x, kernel, (1, 1), "SAME" if same else "VALID", dimension_numbers=IMAGE)
        return x if bias is None else x + bias

    def depthwise(self, x, kernel, bias, stride, same):
        kernel = kernel.reshape(*kernel.shape[:2], 1, -1)
        padding = "SAME" if same else "VALID"
        return lax.conv_general_dilated(x, kernel, (stride, stride), padding, dimension_numbers=IMAGE, feature_group_count=x.shape[-1]) + bias

    def max_pool(self, x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def flatten(self, x):
        return x.reshape(x.shape[0], -1)

    def mean(self, x, axis):
        return x.mean(axis)

    def mean_of_image(self, x):
        return x.mean((1, 2))

    def embedding(self, tokens, table):
        return table[tokens]

    def attention(self, x, kernel, bias, out_kernel, out_bias, heads):
        batch, length, width = x.shape
        query, key, value = (
            part.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)
            for part in jnp.split(x @ kernel + bias, 3, -1)
        )
        scores = jax.nn.softmax(query @ key.swapaxes(-1, -2) / (width // heads) ** 0.5)
        return (scores @ value).transpose(0, 2, 1, 3).reshape(batch, length, width) @ out_kernel + out_bias

    def lstm(self, x, kernel, state_kernel, bias):
        def cell(carried, row):
            h, c = carried
            i, f, g, o = jnp.split(row + h @ state_kernel, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

        zero = jnp.zeros((x.shape[0], state_kernel.shape[0]))
        return lax.scan(cell, (zero, zero), x.swapaxes(0, 1) @ kernel + bias)[0][0]

    def gru(self, x, kernel, state_kernel, bias, state_bias):
        def cell(h, row):
            xr, xz, xn = jnp.split(row, 3, -1)
            hr, hz, hn = jnp.split(h @ state_kernel + state_bias, 3, -1)
            z = jax.nn.sigmoid(xz + hz)
            return (1 - z) * jnp.tanh(xn + jax.nn.sigmoid(xr + hr) * hn) + z * h, None

        zero = jnp.zeros((x.shape[0], state_kernel.shape[0]))
        return lax.scan(cell, zero, x.swapaxes(0, 1) @ kernel + bias)[0]

    # --- functions
    def forward(self, function):
        return jax.jit(function)

    def value_and_gradient(self, function):
        return jax.jit(jax.value_and_grad(function))

    def train_step(self, loss_of, weights):
        state = []

        def restart():
            # Copies: the step takes over what it is given.
            state[:] = [[jnp.array(weight) for weight in weights], zeros_like(weights), zeros_like(weights), jnp.float32(0)]

        restart()

        def step(weights, first, second, count, x, y):
            self.traces += 1
            loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
            return *adam_update(weights, gradients, first, second, count + 1), count + 1, loss

        compiled = jax.jit(step, donate_argnums=(0, 1, 2, 3))

        def call(x, y):
            *state[:], loss = compiled(*state, x, y)
            return loss

        return call, restart

    def adam(self, gradients):
        gradients = [jnp.asarray(gradient) for gradient in gradients]
        state = [zeros_like(gradients), zeros_like(gradients), zeros_like(gradients), jnp.float32(0)]

        def update(weights, first, second, count, gradients):
            return *adam_update(weights, gradients, first, second, count + 1), count + 1

        compiled = jax.jit(update, donate_argnums=(0, 1, 2, 3))

        def call():
            state[:] = compiled(*state, gradients)
            jax.block_until_ready(state)

        return call, lambda: state[0]


def zeros_like(tensors):
    return [jnp.zeros_like(tensor) for tensor in tensors]


def adam_update(weights, gradients, first, second, count):
    rate = RATE * jnp.sqrt(1 - BETA_2**count) / (1 - BETA_1**count)
    first = [BETA_1 * m + (1 - BETA_1) * g for m, g in zip(first, gradients)]
    second = [BETA_2 * v + (1 - BETA_2) * g * g for v, g in zip(second, gradients)]
    return [w - rate * m / (jnp.sqrt(v) + EPSILON) for w, m, v in zip(weights, first, second)], first, second
