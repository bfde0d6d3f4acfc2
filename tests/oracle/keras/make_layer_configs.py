"""What Keras writes into files for layers: tests/oracle/keras/layer_configs.json, one entry a line.

Every class twice: with as few arguments as it takes, and with another value than its default for all that stet has.
Lookups need TensorFlow besides:

    venv/bin/pip install tensorflow
    venv/bin/python tests/oracle/keras/make_layer_configs.py
"""

import json
import os
import pathlib

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import keras
from keras import constraints, initializers, layers, regularizers

entries = []


def add(made):
    entry = keras.saving.serialize_keras_object(made)
    entry.pop("build_config", None)  # of layers that build themselves at once
    entries.append(entry)


def rules(*weights):
    """Initializers, regularizers and constraints of weights, none as it is by default."""
    out = {}
    for i, weight in enumerate(weights):
        out[weight + "_initializer"] = initializers.RandomNormal(mean=0.5 * i, stddev=0.25, seed=i)
        out[weight + "_regularizer"] = regularizers.L2(0.125 + i)
        out[weight + "_constraint"] = constraints.MaxNorm(2.5 + i, axis=0)
    return out


first = dict(data_format="channels_first")
activity = dict(activity_regularizer=regularizers.L1(0.5))


def both(kind, *arguments, **options):
    """Without and with what can be left out."""
    add(kind(*arguments))
    options.setdefault("dtype", "mixed_bfloat16")
    if options["dtype"] is None:
        del options["dtype"]
    made = kind(*arguments, **options)
    made.trainable = False  # with all that it holds
    add(made)


# Input, Dense and embeddings
add(layers.InputLayer((3, None)))
add(layers.InputLayer((), dtype="int64", name="numbers"))
add(layers.InputLayer((2, 2), batch_size=4, dtype="bool"))
both(layers.Dense, 3, activation="relu", use_bias=False, **rules("kernel", "bias"), **activity)
both(layers.EinsumDense, "abc,cd->abd", (None, 5), activation="gelu", bias_axes="d", **rules("kernel", "bias"), **activity)
add(layers.EinsumDense("ab,bd->ad", 5))
both(layers.Embedding, 7, 3, mask_zero=True, **rules("embeddings"), **activity)
both(layers.Masking, mask_value=1.5)
both(layers.Identity)
both(layers.ActivityRegularization, l1=0.5, l2=0.25)
# Activations
for name in ("relu", "swish", "hard_swish", "softmax", "linear", "leaky_relu", "log_softmax", "gelu", "exponential"):
    add(layers.Activation(name))
both(layers.ReLU, max_value=3, negative_slope=0.5, threshold=0.25)
both(layers.LeakyReLU, negative_slope=0.25)
both(layers.PReLU, shared_axes=[1, 2], **rules("alpha"), **activity)
both(layers.ELU, alpha=0.5)
both(layers.Softmax, axis=1)
add(layers.Softmax(axis=[1, 2]))
# Convolutions
for n, convolution in enumerate((layers.Conv1D, layers.Conv2D, layers.Conv3D)):
    both(convolution, 4, 3, strides=2, padding="same", groups=2, activation="tanh", use_bias=False, **first,
         **rules("kernel", "bias"), **activity)
    add(convolution(4, list(range(1, n + 2)), dilation_rate=list(range(2, n + 3))))
add(layers.Conv1D(4, 3, padding="causal"))
for convolution in (layers.Conv1DTranspose, layers.Conv2DTranspose, layers.Conv3DTranspose):
    both(convolution, 4, 3, strides=2, padding="same", output_padding=1, activation="tanh", use_bias=False, **first,
         **rules("kernel", "bias"), **activity)
    add(convolution(4, 3, dilation_rate=2))
for convolution in (layers.DepthwiseConv1D, layers.DepthwiseConv2D):
    both(convolution, 3, strides=2, padding="same", depth_multiplier=2, activation="tanh", use_bias=False, **first,
         **rules("depthwise", "bias"), **activity)
    add(convolution(3, dilation_rate=2))
for convolution in (layers.SeparableConv1D, layers.SeparableConv2D):
    both(convolution, 4, 3, strides=2, padding="same", depth_multiplier=2, activation="tanh", use_bias=False, **first,
         **rules("depthwise", "pointwise", "bias"), **activity)
    add(convolution(4, 3, dilation_rate=2))
# Pools
for pool in (layers.MaxPooling1D, layers.MaxPooling2D, layers.MaxPooling3D, layers.AveragePooling1D,
             layers.AveragePooling2D, layers.AveragePooling3D):
    both(pool, 2, strides=3, padding="same", **first)
add(layers.MaxPooling2D((2, 3), strides=(1, 2)))
for pool in (layers.GlobalMaxPooling1D, layers.GlobalMaxPooling2D, layers.GlobalMaxPooling3D,
             layers.GlobalAveragePooling1D, layers.GlobalAveragePooling2D, layers.GlobalAveragePooling3D):
    both(pool, keepdims=True, **first)
for pool in (layers.AdaptiveMaxPooling1D, layers.AdaptiveMaxPooling2D, layers.AdaptiveMaxPooling3D,
             layers.AdaptiveAveragePooling1D, layers.AdaptiveAveragePooling2D, layers.AdaptiveAveragePooling3D):
    both(pool, 2, **first)
add(layers.AdaptiveMaxPooling2D((3, 2)))
# Normalisations
both(layers.BatchNormalization, axis=1, momentum=0.5, epsilon=0.25, center=False, scale=False, renorm=True,
     renorm_clipping={"rmax": 3.0, "rmin": 0.5, "dmax": 5.0}, renorm_momentum=0.75,
     moving_mean_initializer=initializers.Constant(0.5), moving_variance_initializer=initializers.Constant(2.0),
     **rules("beta", "gamma"), **activity)
both(layers.LayerNormalization, axis=[1, 2], epsilon=0.25, center=False, scale=False, **rules("beta", "gamma"), **activity)
both(layers.GroupNormalization, groups=2, axis=1, epsilon=0.25, center=False, scale=False, **rules("beta", "gamma"),
     **activity)
both(layers.UnitNormalization, axis=[1, 2])
both(layers.RMSNormalization, axis=[1, 2], epsilon=0.25, **activity)
both(layers.SpectralNormalization, layers.Dense(3, name="inner"), power_iterations=3)
# Merging
for merge in (layers.Add, layers.Subtract, layers.Multiply, layers.Average, layers.Maximum, layers.Minimum):
    both(merge)
both(layers.Concatenate, axis=1)
both(layers.Dot, 2, normalize=True)
add(layers.Dot((1, 2)))
# Shapes
both(layers.Flatten)
both(layers.Reshape, (-1, 2))
add(layers.Reshape((None, 3)))
both(layers.Permute, (2, 1))
both(layers.RepeatVector, 3)
both(layers.UpSampling1D, size=3)
both(layers.UpSampling2D, size=(2, 3), interpolation="bilinear", **first)
both(layers.UpSampling3D, size=3, **first)
both(layers.ZeroPadding1D, padding=(2, 3), **first)
both(layers.ZeroPadding2D, padding=((1, 0), (2, 3)), **first)
both(layers.ZeroPadding3D, padding=((1, 0), (2, 3), (4, 5)), **first)
both(layers.Cropping1D, cropping=(1, 2))
both(layers.Cropping2D, cropping=((1, 0), (2, 3)), **first)
both(layers.Cropping3D, cropping=((1, 0), (2, 3), (4, 5)), **first)
# Preprocessing
both(layers.Resizing, 5, 4, interpolation="nearest", pad_to_aspect_ratio=True, fill_value=0.5, **first)
add(layers.Resizing(5, 4, crop_to_aspect_ratio=True))
both(layers.CenterCrop, 4, 3, **first)
both(layers.Rescaling, 0.1, offset=-0.5)
add(layers.Rescaling([0.5, 0.25], offset=[1, 2]))
both(layers.Normalization, axis=None, mean=2.0, variance=4.0, invert=True)
add(layers.Normalization(mean=[1.0, 2.0], variance=[4.0, 9.0]))
add(layers.Normalization(axis=(1, 2)))
both(layers.Discretization, [-0.5, 0.0, 0.75], epsilon=0.25, output_mode="one_hot", dtype="float64")
adapted = layers.Discretization(num_bins=3)
adapted.adapt([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
adapted.bin_boundaries = [float(edge) for edge in adapted.bin_boundaries]
add(adapted)
add(layers.Discretization(num_bins=3))
both(layers.CategoryEncoding, 7, output_mode="count")
both(layers.Hashing, 5, mask_value=3, salt=(7, 9), output_mode="one_hot")
add(layers.Hashing(5, mask_value="none", salt=11))
both(layers.HashedCrossing, 5, output_mode="one_hot", dtype="float64")
both(layers.IntegerLookup, max_tokens=6, num_oov_indices=2, mask_token=0, oov_token=-7, vocabulary=[1, 3, 5],
     invert=True, dtype="int64")
add(layers.IntegerLookup(vocabulary=[1, 3], output_mode="tf_idf", idf_weights=[0.5, 0.25], pad_to_max_tokens=True,
                         max_tokens=9, dtype="float32"))
add(layers.IntegerLookup(vocabulary=[1, 3], num_oov_indices=3, oov_method="farmhash", salt=[3, 4]))
both(layers.StringLookup, max_tokens=6, num_oov_indices=2, mask_token="", oov_token="?", vocabulary=["a", "c"],
     invert=True, dtype=None)
add(layers.StringLookup(vocabulary=["a", "c"], output_mode="tf_idf", idf_weights=[0.5, 0.25], pad_to_max_tokens=True,
                        max_tokens=9))
both(layers.TextVectorization, max_tokens=6, standardize="lower", split="character", ngrams=2, output_sequence_length=4,
     vocabulary=["a", "c"], dtype=None)
add(layers.TextVectorization(standardize=None, split=None, ngrams=(2, 3), output_mode="count", vocabulary=["a"],
                             pad_to_max_tokens=True, max_tokens=8))
# Noise and augmentation
both(layers.Dropout, 0.5, noise_shape=(None, 1, 3), seed=3)
both(layers.SpatialDropout1D, 0.5, seed=3, dtype="float64")
for dropout in (layers.SpatialDropout2D, layers.SpatialDropout3D):
    both(dropout, 0.5, seed=3, dtype="float64", **first)
both(layers.GaussianNoise, 0.5, seed=3)
both(layers.GaussianDropout, 0.5, seed=3)
both(layers.AlphaDropout, 0.5, noise_shape=(None, 1, 3), seed=3)
both(layers.RandomFlip, mode="vertical", seed=3, **first)
both(layers.RandomContrast, (0.25, 0.5), value_range=(0, 1), seed=3)
both(layers.RandomBrightness, (-0.25, 0.5), value_range=(0, 1), seed=3)
add(layers.RandomBrightness(0.5))
moved = dict(fill_mode="nearest", interpolation="nearest", seed=3, fill_value=0.5, **first)
both(layers.RandomRotation, 0.25, **moved)
add(layers.RandomRotation((-0.25, 0.5)))
both(layers.RandomTranslation, 0.25, (-0.25, 0.5), **moved)
both(layers.RandomZoom, 0.25, **moved)
add(layers.RandomZoom((-0.25, 0.5), 0.125))
both(layers.RandomCrop, 4, 3, seed=3, **first)
# Sequences
how = dict(return_sequences=True, return_state=True, go_backwards=True, stateful=True, zero_output_for_mask=True)
step = dict(activation="relu", use_bias=False, dropout=0.25, recurrent_dropout=0.5, seed=3,
            **rules("kernel", "recurrent", "bias"))
both(layers.SimpleRNN, 4, unroll=True, **how, **step, **activity)
both(layers.LSTM, 4, recurrent_activation="hard_sigmoid", unit_forget_bias=False, unroll=True, **how, **step, **activity)
both(layers.GRU, 4, recurrent_activation="hard_sigmoid", reset_after=False, unroll=True, **how, **step, **activity)
both(layers.SimpleRNNCell, 4, **step)
both(layers.LSTMCell, 4, recurrent_activation="hard_sigmoid", unit_forget_bias=False, **step)
both(layers.GRUCell, 4, recurrent_activation="hard_sigmoid", reset_after=False, **step)
both(layers.StackedRNNCells, [layers.GRUCell(3, name="a"), layers.LSTMCell(2, name="b")], dtype="float32")
both(layers.RNN, layers.LSTMCell(3, name="cell"), unroll=True, **how, **activity)
add(layers.RNN([layers.GRUCell(3, name="a"), layers.SimpleRNNCell(2, name="b")]))
for recurrent, size in ((layers.ConvLSTM1D, [3]), (layers.ConvLSTM2D, [2, 3]), (layers.ConvLSTM3D, [2, 3, 1])):
    both(recurrent, 4, size, strides=2, padding="same", recurrent_activation="hard_sigmoid", unit_forget_bias=False,
         **{key: value for key, value in how.items() if key != "zero_output_for_mask"}, **step, **activity)
    add(recurrent(4, 3, dilation_rate=2))
both(layers.Bidirectional, layers.LSTM(3, name="lstm", return_sequences=True), merge_mode="ave", dtype="float32")
add(layers.Bidirectional(layers.GRU(3, name="a"), merge_mode=None, 
                         backward_layer=layers.GRU(3, name="b", go_backwards=True)))
add(layers.Bidirectional(layers.ConvLSTM1D(3, 2, name="c", return_sequences=True)))
both(layers.TimeDistributed, layers.Dense(2, name="inner"), dtype="float32")
# Attention
heads = dict(dropout=0.25, use_bias=False, use_gate=True, sliding_window=3, seed=3, **rules("kernel", "bias"), **activity)
both(layers.MultiHeadAttention, 2, 3, value_dim=4, output_shape=(5,), attention_axes=(1,), **heads)
both(layers.GroupQueryAttention, 3, 4, 2, **heads)
both(layers.Attention, use_scale=True, score_mode="concat", dropout=0.25, seed=3, **activity)
both(layers.AdditiveAttention, use_scale=False, dropout=0.25, seed=3, **activity)

path = pathlib.Path(__file__).with_name("layer_configs.json")
path.write_text("[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]\n")
print(len(entries), "entries,", path.stat().st_size, "bytes")
