"""The vocabulary of models.py in PyTorch: eager, and by torch.compile. Its images and kernels have their channels in front; in the
mode "channels last" they still lie in memory as the others have them."""
import numpy as np
import torch
import torch.nn.functional as F

from workloads import BETA_1, BETA_2, EPSILON, RATE

VERSION = "PyTorch " + torch.__version__


def not_compiled(op):
    """torch.compile fails on recurrent ops whose weights are views (2.15, mkldnn_rnn_layer): it compiles what is around them."""

    @torch.compiler.disable
    def call(*arguments):
        return op(*arguments)

    return call


class Peer:
    def __init__(self, mode, threads):
        torch.set_num_threads(threads)
        self.compiles = mode == "compile"
        self.layout = torch.channels_last if mode == "channels last" else torch.contiguous_format
        if self.compiles:
            torch._dynamo.config.recompile_limit = 64

    @property
    def traces(self):
        return torch._dynamo.utils.counters["stats"].get("unique_graphs", 0) if self.compiles else 0

    def compiled(self, function):
        return torch.compile(function) if self.compiles else function

    def tensor(self, array):
        tensor = torch.from_numpy(np.ascontiguousarray(array))
        return tensor.long() if tensor.dtype == torch.int32 else tensor

    def image(self, array):
        return self.tensor(array.transpose(0, 3, 1, 2)).contiguous(memory_format=self.layout)

    def weight(self, array):
        """A copy: Adam writes into it."""
        if array.ndim == 4:  # a depthwise kernel is [height, width, channels, 1]
            array = array.transpose((2, 3, 0, 1) if array.shape[3] == 1 else (3, 2, 0, 1))
        weight = torch.from_numpy(np.array(array, order="C"))
        return (weight.contiguous(memory_format=self.layout) if array.ndim == 4 else weight).requires_grad_()

    def number(self, x):
        return x.item()

    def array(self, x):
        return x.detach().numpy()

    def wait(self, results):
        """Its ops on a CPU return when they are done."""
        return results

    # --- ops
    relu = staticmethod(F.relu)
    gelu = staticmethod(F.gelu)

    def layer_norm(self, x, gamma, beta):
        return F.layer_norm(x, (x.shape[-1],), gamma, beta, 1e-5)

    def batch_norm(self, x, gamma, beta):
        return F.batch_norm(x, None, None, gamma, beta, training=True, eps=1e-5)

    def cross_entropy(self, logits, labels):
        return F.cross_entropy(logits, labels)

    def convolution(self, x, kernel, bias=None, same=False):
        return F.conv2d(x, kernel, bias, padding=kernel.shape[-1] // 2 if same else 0)

    def depthwise(self, x, kernel, bias, stride, same):
        return F.conv2d(x, kernel, bias, stride, padding=kernel.shape[-1] // 2 if same else 0, groups=x.shape[1])

    def max_pool(self, x):
        return F.max_pool2d(x, 2)

    def flatten(self, x):
        """In the order of the others, as the next kernel expects it."""
        return x.permute(0, 2, 3, 1).flatten(1)

    def mean(self, x, axis):
        return x.mean(axis)

    def mean_of_image(self, x):
        return x.mean((2, 3))

    def embedding(self, tokens, table):
        return F.embedding(tokens, table)

    def attention(self, x, kernel, bias, out_kernel, out_bias, heads):
        batch, length, width = x.shape
        query, key, value = (
            part.view(batch, length, heads, width // heads).transpose(1, 2) for part in (x @ kernel + bias).split(width, -1)
        )
        x = F.scaled_dot_product_attention(query, key, value)
        return x.transpose(1, 2).reshape(batch, length, width) @ out_kernel + out_bias

    def lstm(self, x, kernel, state_kernel, bias):
        zero = torch.zeros(1, x.shape[0], state_kernel.shape[0])
        weights = [kernel.t(), state_kernel.t(), bias, torch.zeros_like(bias)]
        return not_compiled(torch.ops.aten.lstm)(x, [zero, zero], weights, True, 1, 0.0, True, False, True)[0][:, -1]

    def gru(self, x, kernel, state_kernel, bias, state_bias):
        zero = torch.zeros(1, x.shape[0], state_kernel.shape[0])
        weights = [kernel.t(), state_kernel.t(), bias, state_bias]
        return not_compiled(torch.ops.aten.gru)(x, zero, weights, True, 1, 0.0, True, False, True)[0][:, -1]

    # --- functions
    def forward(self, function):
        return torch.no_grad()(self.compiled(function))

    def value_and_gradient(self, function):
        compiled = self.compiled(function)

        def both(x, y):
            x = x.detach().requires_grad_()
            loss = compiled(x, y)
            loss.backward()
            return loss, x.grad

        return both

    def train_step(self, loss_of, weights):
        first_weights, weights = weights, [self.weight(weight) for weight in weights]
        optimizer, update = self.optimizer(weights)

        @torch.no_grad()
        def restart():
            for weight, first in zip(weights, first_weights):
                weight.copy_(self.weight(first))
            for state in optimizer.state.values():
                for value in state.values():
                    value.zero_()

        compiled = self.compiled(lambda x, y: loss_of(weights, x, y))

        def step(x, y):
            optimizer.zero_grad(set_to_none=True)
            loss = compiled(x, y)
            loss.backward()
            update()
            return loss

        return step, restart

    def optimizer(self, weights):
        optimizer = torch.optim.Adam(weights, RATE, (BETA_1, BETA_2), EPSILON, fused=not self.compiles)
        return optimizer, self.compiled(optimizer.step)

    def adam(self, gradients):
        weights = [torch.zeros(gradient.shape, requires_grad=True) for gradient in gradients]
        for weight, gradient in zip(weights, gradients):
            weight.grad = self.tensor(gradient)
        return self.optimizer(weights)[1], lambda: weights
