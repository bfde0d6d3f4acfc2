"""The vocabulary of models.py in TensorFlow: tf.function, and the same compiled by XLA (jit_compile)."""
import numpy as np
import tensorflow as tf

from workloads import BETA_1, BETA_2, EPSILON, RATE

VERSION = "TensorFlow " + tf.__version__
tf.get_logger().setLevel("ERROR")


class Peer:
    def __init__(self, mode, threads):
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        self.traces = 0
        self.xla = mode == "xla"

    def compiled(self, function):
        return tf.function(function, jit_compile=True) if self.xla else tf.function(function)

    tensor = staticmethod(tf.constant)
    image = staticmethod(tf.constant)
    number = staticmethod(float)

    def array(self, x):
        return x.numpy()

    def wait(self, results):
        """Functions on a CPU return when they are done."""
        return results

    # --- ops
    def relu(self, x):
        return tf.nn.relu(x)

    def gelu(self, x):
        return tf.nn.gelu(x)

    def layer_norm(self, x, gamma, beta):
        mean, variance = tf.nn.moments(x, -1, keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-5) * gamma + beta

    def batch_norm(self, x, gamma, beta):
        return tf.compat.v1.nn.fused_batch_norm(x, gamma, beta, epsilon=1e-5, is_training=True)[0]

    def cross_entropy(self, logits, labels):
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))

    def convolution(self, x, kernel, bias=None, same=False):
        x = tf.nn.conv2d(x, kernel, 1, "SAME" if same else "VALID")
        return x if bias is None else tf.nn.bias_add(x, bias)

    def depthwise(self, x, kernel, bias, stride, same):
        x = tf.nn.depthwise_conv2d(x, kernel, [1, stride, stride, 1], "SAME" if same else "VALID")
        return tf.nn.bias_add(x, bias)

    def max_pool(self, x):
        return tf.nn.max_pool2d(x, 2, 2, "VALID")

    def flatten(self, x):
        return tf.reshape(x, [-1, int(np.prod(x.shape[1:]))])

    def mean(self, x, axis):
        return tf.reduce_mean(x, axis)

    def mean_of_image(self, x):
        return tf.reduce_mean(x, [1, 2])

    def embedding(self, tokens, table):
        return tf.gather(table, tokens)

    def attention(self, x, kernel, bias, out_kernel, out_bias, heads):
        batch, length, width = x.shape
        query, key, value = (
            tf.transpose(tf.reshape(part, [batch, length, heads, width // heads]), [0, 2, 1, 3])
            for part in tf.split(x @ kernel + bias, 3, -1)
        )
        scores = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) / (width // heads) ** 0.5)
        return tf.reshape(tf.transpose(scores @ value, [0, 2, 1, 3]), [batch, length, width]) @ out_kernel + out_bias

    def turns(self, rows, cell, state):
        """The state after cell(state, row) for each row, in a loop of the graph; XLA wants a bound for its gradient."""
        length = rows.shape[0]
        return tf.while_loop(
            lambda turn, *_: turn < length,
            lambda turn, *state: (turn + 1, *cell(state, rows[turn])),
            [0, *state],
            maximum_iterations=length if self.xla else None,
        )[1:]

    def lstm(self, x, kernel, state_kernel, bias):
        def cell(state, row):
            h, c = state
            i, f, g, o = tf.split(row + h @ state_kernel, 4, -1)
            c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
            return tf.sigmoid(o) * tf.tanh(c), c

        zero = tf.zeros([x.shape[0], state_kernel.shape[0]])
        return self.turns(tf.tensordot(tf.transpose(x, [1, 0, 2]), kernel, 1) + bias, cell, [zero, zero])[0]

    def gru(self, x, kernel, state_kernel, bias, state_bias):
        def cell(state, row):
            (h,) = state
            xr, xz, xn = tf.split(row, 3, -1)
            hr, hz, hn = tf.split(h @ state_kernel + state_bias, 3, -1)
            z = tf.sigmoid(xz + hz)
            return ((1 - z) * tf.tanh(xn + tf.sigmoid(xr + hr) * hn) + z * h,)

        zero = tf.zeros([x.shape[0], state_kernel.shape[0]])
        return self.turns(tf.tensordot(tf.transpose(x, [1, 0, 2]), kernel, 1) + bias, cell, [zero])[0]

    # --- functions
    def forward(self, function):
        return self.compiled(function)

    def value_and_gradient(self, function):
        def both(x, y):
            with tf.GradientTape() as tape:
                tape.watch(x)
                loss = function(x, y)
            return loss, tape.gradient(loss, x)

        return self.compiled(both)

    def train_step(self, loss_of, weights):
        first_weights, weights = weights, [tf.Variable(weight) for weight in weights]
        adam = Adam(weights)

        def restart():
            for weight, first in zip(weights, first_weights):
                weight.assign(first)
            adam.restart()

        def step(x, y):
            self.traces += 1
            with tf.GradientTape() as tape:
                loss = loss_of(weights, x, y)
            # A table of embeddings has its gradient by rows.
            adam.update([tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, weights)])
            return loss

        return self.compiled(step), restart

    def adam(self, gradients):
        gradients = [tf.constant(gradient) for gradient in gradients]
        weights = [tf.Variable(tf.zeros_like(gradient)) for gradient in gradients]
        adam = Adam(weights)
        update = self.compiled(lambda *gradients: adam.update(gradients))
        return lambda: update(*gradients).numpy(), lambda: weights


class Adam:
    def __init__(self, weights):
        self.weights = weights
        self.first = [tf.Variable(tf.zeros_like(weight)) for weight in weights]
        self.second = [tf.Variable(tf.zeros_like(weight)) for weight in weights]
        self.count = tf.Variable(0.0)

    def restart(self):
        for variable in (*self.first, *self.second, self.count):
            variable.assign(tf.zeros_like(variable))

    def update(self, gradients):
        """Returns a number, so that somebody can wait for it."""
        count = self.count.assign_add(1)
        rate = RATE * tf.sqrt(1 - BETA_2**count) / (1 - BETA_1**count)
        for weight, gradient, m, v in zip(self.weights, gradients, self.first, self.second):
            m.assign(BETA_1 * m + (1 - BETA_1) * gradient)
            v.assign(BETA_2 * v + (1 - BETA_2) * gradient * gradient)
            weight.assign_sub(rate * m / (tf.sqrt(v) + EPSILON))
        return rate
