"""The workloads, once for all Python peers: each function takes a peer (its vocabulary, see with_jax.py) and the arrays, and returns
what a process repeats and the numbers that all sides must agree on.

Images are [batch, height, width, channels] for every peer here; one that wants them otherwise turns them in `image` and `flatten`.
"""
import workloads
from arrays import fingerprint
from workloads import LENGTHS


def dense(x, kernel, bias):
    return x @ kernel + bias


# --- losses of networks


def mlp_loss(peer, p, x, y):
    x = peer.relu(dense(x, p[0], p[1]))
    x = peer.relu(dense(x, p[2], p[3]))
    return peer.cross_entropy(dense(x, p[4], p[5]), y)


def cnn_loss(peer, p, x, y):
    x = peer.max_pool(peer.relu(peer.convolution(x, p[0], p[1])))
    x = peer.max_pool(peer.relu(peer.convolution(x, p[2], p[3])))
    x = peer.relu(dense(peer.flatten(x), p[4], p[5]))
    return peer.cross_entropy(dense(x, p[6], p[7]), y)


def transformer_loss(peer, p, x, y):
    for layer in range(workloads.TRANSFORMER_LAYERS):
        q = p[12 * layer : 12 * layer + 12]
        x = peer.layer_norm(x + peer.attention(x, *q[:4], heads=workloads.TRANSFORMER_HEADS), q[4], q[5])
        x = peer.layer_norm(x + dense(peer.gelu(dense(x, q[6], q[7])), q[8], q[9]), q[10], q[11])
    return peer.cross_entropy(dense(peer.mean(x, 1), *p[-2:]), y)


def attention_loss(peer, p, x, y):
    x = x + peer.attention(x, *p[:4], heads=workloads.ATTENTION_HEADS)
    return peer.cross_entropy(dense(peer.mean(x, 1), p[4], p[5]), y)


def lstm_loss(peer, p, x, y):
    return peer.cross_entropy(dense(peer.lstm(x, p[0], p[1], p[2]), p[3], p[4]), y)


def gru_loss(peer, p, x, y):
    return peer.cross_entropy(dense(peer.gru(x, *p[:4]), p[4], p[5]), y)


def depthwise_loss(peer, p, x, y):
    x = peer.relu(peer.depthwise(x, p[0], p[1], stride=1, same=True))
    x = peer.relu(peer.convolution(x, p[2], p[3]))
    x = peer.relu(peer.depthwise(x, p[4], p[5], stride=2, same=False))
    x = peer.relu(peer.convolution(x, p[6], p[7]))
    return peer.cross_entropy(dense(peer.mean_of_image(x), p[8], p[9]), y)


def resnet_loss(peer, p, x, y):
    inside = peer.relu(peer.batch_norm(peer.convolution(x, p[0], same=True), p[1], p[2]))
    inside = peer.batch_norm(peer.convolution(inside, p[3], same=True), p[4], p[5])
    return peer.cross_entropy(dense(peer.mean_of_image(peer.relu(x + inside)), p[6], p[7]), y)


def embedding_loss(peer, p, x, y):
    x = peer.relu(dense(peer.mean(peer.embedding(x, p[0]), 1), p[1], p[2]))
    return peer.cross_entropy(dense(x, p[3], p[4]), y)


# --- what a process repeats


class Repeated:
    """`call()` is what is timed, `per_call` steps at once; `numbers(steps)` gives what all sides must agree on, losses after the first
    and after so many steps among them. `restart()` lets a training begin anew: one that has learned its batch by heart computes with
    numbers that no training has, and that some processors are slow with (denormal ones)."""

    def __init__(self, call, numbers, per_call=1, restart=None):
        self.call, self.numbers, self.per_call, self.restart = call, numbers, per_call, restart


def weights_in(arrays):
    return [arrays[name] for name in sorted(arrays) if name[0] == "p"]


def training(loss, images=False):
    """Forward, gradients, Adam on the same batch again and again; the loss read at each step."""

    def make(peer, arrays):
        x = peer.image(arrays["x"]) if images else peer.tensor(arrays["x"])
        y = peer.tensor(arrays["y"])
        step, restart = peer.train_step(lambda p, x, y: loss(peer, p, x, y), weights_in(arrays))
        losses = []

        def call():
            losses.append(peer.number(step(x, y)))

        return Repeated(call, lambda steps: [losses[0], losses[steps - 1]], restart=restart)

    return make


def training_on_lengths(loss):
    """The same with another length in every step: a call is one step of each."""

    def make(peer, arrays):
        batches = [(peer.tensor(arrays[f"x_{n}"]), peer.tensor(arrays[f"y_{n}"])) for n in LENGTHS]
        step, restart = peer.train_step(lambda p, x, y: loss(peer, p, x, y), weights_in(arrays))
        losses = []

        def call():
            for x, y in batches:
                losses.append(peer.number(step(x, y)))

        return Repeated(call, lambda steps: [losses[0], losses[steps - 1]], per_call=len(batches), restart=restart)

    return make


def gelu_norm(peer, arrays):
    x, gamma, beta = (peer.tensor(arrays[name]) for name in ("x", "p00", "p01"))
    function = peer.forward(lambda x, gamma, beta: peer.layer_norm(peer.gelu(x), gamma, beta))
    return Repeated(lambda: peer.wait(function(x, gamma, beta)), lambda steps: [fingerprint(peer.array(function(x, gamma, beta)))])


def cross_entropy(peer, arrays):
    x, y = peer.tensor(arrays["x"]), peer.tensor(arrays["y"])
    function = peer.value_and_gradient(peer.cross_entropy)

    def numbers(steps):
        loss, gradient = function(x, y)
        return [peer.number(loss), fingerprint(peer.array(gradient))]

    return Repeated(lambda: peer.wait(function(x, y)), numbers)


def adam(peer, arrays):
    update, weights = peer.adam([arrays[name] for name in sorted(arrays)])
    done, seen = [0], {}

    def call():
        update()
        done[0] += 1
        if done[0] == workloads.BY_NAME["adam"].steps:
            seen["last"] = sum(fingerprint(peer.array(weight)) for weight in weights())

    return Repeated(call, lambda steps: [seen["last"]])


MODELS = {
    "gelu_norm": gelu_norm,
    "cross_entropy": cross_entropy,
    "adam": adam,
    "mlp": training(mlp_loss),
    "cnn": training(cnn_loss, images=True),
    "transformer": training(transformer_loss),
    "attention": training(attention_loss),
    "lstm": training_on_lengths(lstm_loss),
    "gru": training_on_lengths(gru_loss),
    "depthwise": training(depthwise_loss, images=True),
    "resnet": training(resnet_loss, images=True),
    "embedding": training(embedding_loss),
}
