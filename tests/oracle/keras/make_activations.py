"""Activations by name, and as layers."""

import numpy as np

from layer_cases import LayerCases

import keras
from keras import layers

cases = LayerCases("activations")
# Not sparsemax: what Keras 3.15 gives does not add up to 1 (its threshold adds up cumulative sums).
names = sorted(
    "celu elu exponential gelu glu hard_shrink hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu linear "
    "log_sigmoid log_softmax mish relu relu6 selu sigmoid silu soft_shrink softmax softplus softsign sparse_plus "
    "sparse_sigmoid squareplus swish tanh tanh_shrink".split()
)
for name in names:
    cases.layer(f"by_name_{name}", layers.Activation(name), np.linspace(-4.05, 7.1, 24, dtype="float32").reshape(4, 6))
cases.layer("relu_layer", layers.ReLU(), (2, 3, 4))
cases.layer("relu_most", layers.ReLU(max_value=1.0), (2, 3, 4))
cases.layer("relu_six", layers.ReLU(max_value=6.0), (2, 3, 4))
cases.layer("relu_slope", layers.ReLU(negative_slope=0.2), (2, 3, 4))
cases.layer("relu_threshold", layers.ReLU(threshold=0.5), (2, 3, 4))
cases.layer("relu_everything", layers.ReLU(max_value=1.5, negative_slope=0.2, threshold=0.5), (2, 3, 4))
cases.layer("leaky_relu", layers.LeakyReLU(), (2, 3, 4))
cases.layer("leaky_relu_slope", layers.LeakyReLU(0.1), (2, 3, 4))
cases.layer("prelu", layers.PReLU(), (2, 3, 4))
cases.layer("prelu_shared", layers.PReLU(shared_axes=[1, 2]), (2, 3, 2, 4))
cases.layer("elu", layers.ELU(), (2, 3, 4))
cases.layer("elu_alpha", layers.ELU(0.5), (2, 3, 4))
cases.layer("softmax", layers.Softmax(), (2, 3, 4))
cases.layer("softmax_axis", layers.Softmax(axis=1), (2, 3, 4))
cases.layer("softmax_axes", layers.Softmax(axis=(1, 2)), (2, 3, 4))
mask = np.array([[True, False, True, True], [False, True, False, False]])
cases.layer("softmax_masked", layers.Softmax(), (2, 4), masks=[mask])
x = np.linspace(-2, 2, 9, dtype="float32")
for name, f in dict(
    threshold=lambda x: keras.activations.threshold(x, 0.6, -1.0),
    hard_shrink=lambda x: keras.activations.hard_shrink(x, 0.9),
    soft_shrink=lambda x: keras.activations.soft_shrink(x, 0.9),
    squareplus=lambda x: keras.activations.squareplus(x, 1.0),
).items():
    cases.add(f"function_{name}", x=x, y=np.asarray(f(x)))
cases.write()
