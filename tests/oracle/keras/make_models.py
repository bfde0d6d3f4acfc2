"""Models that Keras saved, tests/oracle/keras/models/*.keras, and what they give: models.txt.

One model for every layer that stet has, models of several inputs and outputs, with shared layers and models inside of
them, and one for every optimizer, saved after two steps; of these also what they give after a third one. With Keras 3
and JAX, as values.py says:

    venv/bin/python tests/oracle/keras/make_models.py            # all
    venv/bin/python tests/oracle/keras/make_models.py lstm gru   # these, and the others stay
"""

import sys
import zlib

from values import Cases

import keras
import numpy as np
from keras import layers

FOLDER = Cases("models").path.with_suffix("")
MODELS = {}


def model(function):
    MODELS[function.__name__] = function
    return function


def draw(name, shape, low=-1.0, high=1.0):
    random = np.random.default_rng(zlib.crc32(name.encode()))
    return np.round(random.uniform(low, high, shape), 3).astype("float32")


def whole(name, shape, below):
    random = np.random.default_rng(zlib.crc32(name.encode()))
    return random.integers(0, below, shape)


class Saved:
    """A model, what goes in, and how it is trained."""

    def __init__(self, model, inputs, labels=None):
        self.model, self.inputs, self.labels = model, inputs, labels


def one(name, layer, *shapes, dtype="float32", below=0, split=False):
    """A functional model of one layer."""

    def make():
        made = layer()
        inputs = [layers.Input(shape, dtype=dtype) for shape in shapes]
        outputs = made(*inputs) if split or len(inputs) == 1 else made(inputs)
        values = [
            whole(f"{name}{i}", (2,) + shape, below).astype(dtype) if below else draw(f"{name}{i}", (2,) + shape, -2, 2)
            for i, shape in enumerate(shapes)
        ]
        return Saved(keras.Model(inputs, outputs), values)

    MODELS[name] = make


L = layers
VECTOR, SEQUENCE, IMAGE, VOLUME = (4,), (6, 3), (6, 7, 3), (4, 5, 3, 2)

one("dense", lambda: L.Dense(3, activation="gelu"), SEQUENCE)
one("dense_bfloat16", lambda: L.Dense(3, dtype="bfloat16"), VECTOR)
one("dense_float16", lambda: L.Dense(3, dtype="mixed_float16"), VECTOR)
one("dense_initialized", lambda: L.Dense(3, kernel_initializer=keras.initializers.HeNormal(seed=1)), VECTOR)
one("einsum_dense", lambda: L.EinsumDense("abc,cd->abd", (None, 5), bias_axes="d"), SEQUENCE)
one("embedding", lambda: L.Embedding(7, 3, mask_zero=True), (5,), dtype="int64", below=7)
one("masking", lambda: L.Masking(0.5), SEQUENCE)
one("identity", lambda: L.Identity(), SEQUENCE)
one("activity_regularization", lambda: L.ActivityRegularization(l1=0.1, l2=0.2), SEQUENCE)
one("activation", lambda: L.Activation("swish"), SEQUENCE)
one("relu", lambda: L.ReLU(max_value=0.5, negative_slope=0.1), SEQUENCE)
one("leaky_relu", lambda: L.LeakyReLU(0.2), SEQUENCE)
one("prelu", lambda: L.PReLU(shared_axes=[1]), SEQUENCE)
one("elu", lambda: L.ELU(0.7), SEQUENCE)
one("softmax", lambda: L.Softmax(axis=1), SEQUENCE)
one("conv1d", lambda: L.Conv1D(4, 3, padding="causal", dilation_rate=2), SEQUENCE)
one("conv2d", lambda: L.Conv2D(4, (3, 2), strides=2, padding="same", activation="relu"), IMAGE)
one("conv3d", lambda: L.Conv3D(2, 2, use_bias=False), VOLUME)
one("depthwise_conv1d", lambda: L.DepthwiseConv1D(3, depth_multiplier=2), SEQUENCE)
one("depthwise_conv2d", lambda: L.DepthwiseConv2D(3, padding="same"), IMAGE)
one("separable_conv1d", lambda: L.SeparableConv1D(4, 3), SEQUENCE)
one("separable_conv2d", lambda: L.SeparableConv2D(4, 3, depth_multiplier=2), IMAGE)
one("conv1d_transpose", lambda: L.Conv1DTranspose(4, 3, strides=2), SEQUENCE)
one("conv2d_transpose", lambda: L.Conv2DTranspose(2, 3, strides=2, padding="same"), IMAGE)
one("conv3d_transpose", lambda: L.Conv3DTranspose(2, 2), VOLUME)
for rank, shape in ((1, SEQUENCE), (2, IMAGE), (3, VOLUME)):
    one(f"max_pooling{rank}d", lambda r=rank: getattr(L, f"MaxPooling{r}D")(2, padding="same"), shape)
    one(f"average_pooling{rank}d", lambda r=rank: getattr(L, f"AveragePooling{r}D")(2), shape)
    one(f"global_max_pooling{rank}d", lambda r=rank: getattr(L, f"GlobalMaxPooling{r}D")(keepdims=True), shape)
    one(f"global_average_pooling{rank}d", lambda r=rank: getattr(L, f"GlobalAveragePooling{r}D")(), shape)
    one(f"adaptive_max_pooling{rank}d", lambda r=rank: getattr(L, f"AdaptiveMaxPooling{r}D")(2), shape)
    one(f"adaptive_average_pooling{rank}d", lambda r=rank: getattr(L, f"AdaptiveAveragePooling{r}D")(2), shape)
    one(f"up_sampling{rank}d", lambda r=rank: getattr(L, f"UpSampling{r}D")(2), shape)
    one(f"zero_padding{rank}d", lambda r=rank: getattr(L, f"ZeroPadding{r}D")(1), shape)
    one(f"cropping{rank}d", lambda r=rank: getattr(L, f"Cropping{r}D")(1), shape)
    one(f"spatial_dropout{rank}d", lambda r=rank: getattr(L, f"SpatialDropout{r}D")(0.5), shape)
one("batch_normalization", lambda: L.BatchNormalization(), SEQUENCE)
one("batch_renormalization", lambda: L.BatchNormalization(renorm=True, scale=False), SEQUENCE)
one("layer_normalization", lambda: L.LayerNormalization(axis=[1, 2]), SEQUENCE)
one("group_normalization", lambda: L.GroupNormalization(3), SEQUENCE)
one("unit_normalization", lambda: L.UnitNormalization(), SEQUENCE)
one("rms_normalization", lambda: L.RMSNormalization(), SEQUENCE)
one("spectral_normalization", lambda: L.SpectralNormalization(L.Conv2D(2, 3)), IMAGE)
for kind in ("Add", "Multiply", "Average", "Maximum", "Minimum"):
    one(kind.lower(), lambda k=kind: getattr(L, k)(), SEQUENCE, SEQUENCE, SEQUENCE)
one("subtract", lambda: L.Subtract(), SEQUENCE, SEQUENCE)
one("concatenate", lambda: L.Concatenate(axis=1), SEQUENCE, (2, 3))
one("dot", lambda: L.Dot(axes=2, normalize=True), SEQUENCE, (5, 3))
one("flatten", lambda: L.Flatten(), SEQUENCE)
one("reshape", lambda: L.Reshape((-1, 2)), SEQUENCE)
one("permute", lambda: L.Permute((2, 1)), SEQUENCE)
one("repeat_vector", lambda: L.RepeatVector(3), VECTOR)
one("resizing", lambda: L.Resizing(5, 4), IMAGE)
one("center_crop", lambda: L.CenterCrop(4, 3), IMAGE)
one("rescaling", lambda: L.Rescaling(0.25, offset=-0.5), IMAGE)
one("normalization_given", lambda: L.Normalization(mean=[1.0, 2.0, 3.0], variance=[1.0, 4.0, 9.0]), SEQUENCE)


def adapted(layer, data):
    layer.adapt(data)
    return layer


one("normalization_adapted", lambda: adapted(L.Normalization(), draw("adapt", (20, 3), -1, 3)), SEQUENCE)
one("discretization", lambda: L.Discretization(bin_boundaries=[-0.5, 0.0, 0.7]), SEQUENCE)
one("discretization_adapted", lambda: adapted(L.Discretization(num_bins=4), draw("bins", (40, 3), -2, 2)), SEQUENCE)
one("category_encoding", lambda: L.CategoryEncoding(7, output_mode="multi_hot"), (5,), dtype="int64", below=7)
one("hashing", lambda: L.Hashing(5, output_mode="one_hot"), (1,), dtype="int64", below=70)
one("hashed_crossing", lambda: L.HashedCrossing(5), (1,), (1,), dtype="int64", below=70)
one("integer_lookup", lambda: L.IntegerLookup(vocabulary=[1, 3, 5], num_oov_indices=2), (5,), dtype="int64", below=7)
one("integer_lookup_adapted", lambda: adapted(L.IntegerLookup(), [5, 3, 3, 2, 2, 2]), (5,), dtype="int64", below=7)
one("dropout", lambda: L.Dropout(0.5, seed=3), SEQUENCE)
one("gaussian_noise", lambda: L.GaussianNoise(0.5), SEQUENCE)
one("gaussian_dropout", lambda: L.GaussianDropout(0.5), SEQUENCE)
one("alpha_dropout", lambda: L.AlphaDropout(0.5), SEQUENCE)
one("random_flip", lambda: L.RandomFlip("horizontal"), IMAGE)
one("random_contrast", lambda: L.RandomContrast(0.5), IMAGE)
one("random_brightness", lambda: L.RandomBrightness(0.5), IMAGE)
one("random_rotation", lambda: L.RandomRotation(0.2), IMAGE)
one("random_translation", lambda: L.RandomTranslation(0.2, 0.3), IMAGE)
one("random_zoom", lambda: L.RandomZoom(0.2), IMAGE)
# RandomCrop is left out: where nothing is trained, Keras 3.15 gives whole images, which is not what it says of itself.
one("simple_rnn", lambda: L.SimpleRNN(4, return_sequences=True), SEQUENCE)
one("lstm", lambda: L.LSTM(4, dropout=0.1, recurrent_dropout=0.2), SEQUENCE)
one("gru", lambda: L.GRU(4, return_sequences=True, go_backwards=True), SEQUENCE)
one("gru_before", lambda: L.GRU(4, reset_after=False), SEQUENCE)
one("rnn_of_a_cell", lambda: L.RNN(L.LSTMCell(3), return_state=True), SEQUENCE)
one("rnn_of_cells", lambda: L.RNN([L.GRUCell(3), L.LSTMCell(2), L.LSTMCell(3), L.SimpleRNNCell(2)]), SEQUENCE)
one("bidirectional", lambda: L.Bidirectional(L.GRU(3, return_sequences=True), merge_mode="sum"), SEQUENCE)
one(
    "bidirectional_of_two",
    lambda: L.Bidirectional(L.LSTM(3), backward_layer=L.LSTM(2, go_backwards=True, activation="relu")),
    SEQUENCE,
)
one("time_distributed", lambda: L.TimeDistributed(L.Dense(2)), (5, 3, 2))
one("conv_lstm1d", lambda: L.ConvLSTM1D(2, 3), (3, 6, 2))
one("conv_lstm2d", lambda: L.ConvLSTM2D(2, 2, return_sequences=True), (3, 4, 5, 2))
one("conv_lstm3d", lambda: L.ConvLSTM3D(2, 2), (2, 3, 4, 3, 2))
one("multi_head_attention", lambda: L.MultiHeadAttention(2, 3, dropout=0.1, use_gate=True), (5, 4), (7, 4), split=True)
one("group_query_attention", lambda: L.GroupQueryAttention(3, 4, 2, use_gate=True), (5, 4), (7, 4), split=True)
one("attention", lambda: L.Attention(use_scale=True, score_mode="concat"), (5, 4), (7, 4))
one("additive_attention", lambda: L.AdditiveAttention(), (5, 4), (7, 4))


# --- models


@model
def sequential_mlp():
    return Saved(
        keras.Sequential([L.Input(VECTOR), L.Dense(5, activation="relu"), L.Dropout(0.5), L.Dense(2)], name="mlp"),
        [draw("mlp", (3, 4))],
    )


@model
def sequential_cnn():
    return Saved(
        keras.Sequential(
            [
                L.Input((8, 8, 1)),
                L.Rescaling(0.5),
                L.Conv2D(3, 3, activation="relu"),
                L.BatchNormalization(),
                L.MaxPooling2D(),
                L.Conv2D(2, 3, padding="same"),
                L.Flatten(),
                L.Dense(4, activation="softmax"),
            ]
        ),
        [draw("cnn", (2, 8, 8, 1))],
    )


@model
def sequential_without_input():
    made = keras.Sequential([L.Dense(5, activation="relu"), L.Dense(2)])
    made.build((None, 4))
    return Saved(made, [draw("without", (3, 4))])


@model
def sequential_of_words():
    made = keras.Sequential([L.Embedding(9, 4, mask_zero=True), L.LSTM(3), L.Dense(1, activation="sigmoid")])
    words = whole("words", (3, 5), 9).astype("int32")
    made(words)
    return Saved(made, [words])


@model
def sequential_of_models():
    inner = keras.Sequential([L.Input(VECTOR), L.Dense(3), L.LayerNormalization()], name="inner")
    return Saved(keras.Sequential([L.Input(VECTOR), L.Dense(4), inner, L.Dense(2)]), [draw("nested", (3, 4))])


@model
def frozen():
    made = keras.Sequential([L.Input(VECTOR), L.Dense(3, name="fixed", trainable=False), L.Dense(2, name="free")])
    return Saved(made, [draw("frozen", (3, 4))])


@model
def branches():
    a, b = L.Input((4,), name="a"), L.Input((6,), name="b")
    shared = L.Dense(4, name="shared")
    x, y = shared(a), shared(L.Dense(4, name="from_b")(b))
    z = L.Add()([x, y]) * 2.0 + 1
    z = (1 - z) / 4.0 - x * y
    out = L.Dense(2, name="small")(z)
    return Saved(keras.Model([a, b], [out, L.Concatenate()([z, a])]), [draw("a", (3, 4)), draw("b", (3, 6))])


@model
def named():
    a, b = L.Input((4,), name="second"), L.Input((6,), name="first")
    x = L.Concatenate()([L.Dense(3)(b), L.Dense(2)(a)])
    outputs = {"size": L.Dense(1)(x), "kind": L.Dense(3, activation="softmax")(x)}
    # In the order of the names: first, second; kind, size.
    return Saved(keras.Model({"second": a, "first": b}, outputs), [draw("b", (3, 6)), draw("a", (3, 4))])


@model
def models_inside():
    i = L.Input((4,))
    inner = keras.Model(i, L.Dense(4, activation="tanh")(L.Dense(3)(i)), name="inner")
    j, k = L.Input((4,)), L.Input((4,))
    pair = keras.Model([j, k], [L.Add()([j, L.Dense(4)(k)]), L.Subtract()([j, k])], name="pair")
    a = L.Input((4,), name="a")
    once = inner(a)
    twice = inner(once)
    s, d = pair([once, twice])
    tail = keras.Sequential([L.Dense(3), L.Dense(2)], name="tail")
    return Saved(keras.Model(a, [tail(s), tail(d), inner(d)]), [draw("inside", (3, 4))])


@model
def residual():
    x = i = L.Input((8, 8, 3))
    for filters in (4, 4, 6):
        y = L.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        y = L.ReLU()(L.BatchNormalization()(y))
        y = L.Conv2D(filters, 3, padding="same", use_bias=False)(y)
        y = L.BatchNormalization()(y)
        x = L.Conv2D(filters, 1)(x)
        x = L.ReLU()(L.Add()([x, y]))
    x = L.GlobalAveragePooling2D()(x)
    return Saved(keras.Model(i, L.Dense(3)(x)), [draw("residual", (2, 8, 8, 3))])


@model
def transformer():
    words = L.Input((None,), dtype="int32")
    x = L.Embedding(11, 8)(words)
    for _ in range(2):
        y = L.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)
        x = L.LayerNormalization()(x + y)
        y = L.Dense(8)(L.Dense(16, activation="gelu")(x))
        x = L.LayerNormalization()(x + y)
    return Saved(keras.Model(words, L.Dense(11)(x)), [whole("transformer", (2, 6), 11).astype("int32")])


@model
def translator():
    source, target = L.Input((5, 3)), L.Input((4, 3))
    _, h, c = L.LSTM(4, return_state=True)(source)
    y = L.LSTM(4, return_sequences=True)(target, initial_state=[h, c])
    y, scores = L.MultiHeadAttention(2, 3)(y, value=source, key=source, return_attention_scores=True)
    a = L.Attention()([y, y], use_causal_mask=True)
    return Saved(keras.Model([source, target], [a, scores]), [draw("source", (2, 5, 3)), draw("target", (2, 4, 3))])


@model
def operations():
    a, b = L.Input((4,)), L.Input((4,))
    ops = keras.ops
    x = ops.maximum(a, b) + ops.minimum(a, 0.5)
    x = ops.sqrt(ops.square(x) + 1.0) - ops.absolute(-b)
    x = ops.tanh(x) ** 2 / 3.0 + ops.sigmoid(a) * ops.relu(b)
    x = L.Reshape((1, 4))(ops.log(ops.exp(x) + 2))
    y = ops.silu(L.Dense(3)(L.Reshape((4, 1))(b)))
    return Saved(keras.Model([a, b], ops.matmul(x, y)), [draw("x", (3, 4)), draw("y", (3, 4))])


@model
def cut_out():
    """Between tensors in the middle of another model."""
    i = L.Input((4,))
    first = L.Dense(3)(i)
    second = L.Dense(5, activation="relu")(first)
    keras.Model(i, second)
    return Saved(keras.Model(first, L.Dense(2)(second)), [draw("cut", (3, 3))])


# --- trained ones


def trained(name, optimizer, **compile):
    def make():
        made = keras.Sequential([L.Input(VECTOR), L.Dense(5, activation="tanh"), L.BatchNormalization(), L.Dense(3)])
        made.compile(optimizer=optimizer(), **{"loss": "mse", **compile})
        return Saved(made, [draw("trained", (6, 4))], [draw("labels", (6, 3))])

    MODELS["trained_" + name] = make


O = keras.optimizers
trained("sgd", lambda: O.SGD(0.05))
trained("sgd_momentum", lambda: O.SGD(0.05, momentum=0.9, nesterov=True, weight_decay=0.01), metrics=["mae"])
trained("adam", lambda: O.Adam(0.02))
trained("adam_amsgrad", lambda: O.Adam(0.02, amsgrad=True, clipnorm=0.5, use_ema=True))
trained("adam_schedule", lambda: O.Adam(O.schedules.ExponentialDecay(0.02, 1, 0.5)))
trained("adam_accumulating", lambda: O.Adam(0.02, gradient_accumulation_steps=3))
trained("adamw", lambda: O.AdamW(0.02, weight_decay=0.1))
trained("adamax", lambda: O.Adamax(0.02))
trained("nadam", lambda: O.Nadam(0.02))
trained("adadelta", lambda: O.Adadelta(1.0))
trained("adagrad", lambda: O.Adagrad(0.05))
trained("adafactor", lambda: O.Adafactor(0.05))
trained("ftrl", lambda: O.Ftrl(0.1))
trained("lamb", lambda: O.Lamb(0.02))
trained("lion", lambda: O.Lion(0.02))
trained("muon", lambda: O.Muon(0.02))
trained("rmsprop", lambda: O.RMSprop(0.02, momentum=0.5, centered=True))
trained("schedule_free", lambda: O.ScheduleFreeAdamW(0.02))
trained("loss_scale", lambda: O.LossScaleOptimizer(O.SGD(0.05, momentum=0.9)))
# Keras 3.15 does not write the delta of a Huber loss into files.
trained("huber", lambda: "adam", loss=keras.losses.Huber(), metrics=[keras.metrics.CosineSimilarity()])


@model
def trained_outputs():
    """Optimizers list variables in the order of Keras's graph, which is not that of the calls."""
    a, b = L.Input((4,), name="a"), L.Input((6,), name="b")
    x = L.Dense(3)(a)
    y = L.Dense(2)(L.Dense(4, activation="relu")(b))
    outputs = {"kind": L.Dense(2, activation="softmax")(L.Concatenate()([x, y])), "size": L.Dense(1)(x)}
    made = keras.Model([a, b], outputs)
    made.compile(
        optimizer=O.Adam(0.02),
        loss={"kind": "categorical_crossentropy", "size": "mse"},
        loss_weights={"kind": 1.0, "size": 0.5},
        metrics={"kind": ["accuracy"], "size": ["mae"]},
    )
    kind = np.eye(2, dtype="float32")[whole("kind", (6,), 2)]
    return Saved(made, [draw("a", (6, 4)), draw("b", (6, 6))], {"kind": kind, "size": draw("size", (6, 1))})


@model
def trained_frozen():
    made = keras.Sequential([L.Input(VECTOR), L.Dense(5), L.BatchNormalization(), L.Dense(3)])
    made.layers[0].trainable = False
    made.compile(optimizer=O.Adam(0.02), loss="mae")
    return Saved(made, [draw("trained", (6, 4))], [draw("labels", (6, 3))])


# --- all of them


def outputs_of(saved):
    inputs = saved.inputs if len(saved.inputs) > 1 else saved.inputs[0]
    if isinstance(saved.model, keras.Model) and isinstance(getattr(saved.model, "_inputs_struct", None), dict):
        inputs = dict(zip(sorted(saved.model._inputs_struct), saved.inputs))
    given = saved.model(inputs, training=False)
    outputs = [np.asarray(y) for y in keras.tree.flatten(given)]
    return [y.astype("float32") if y.dtype.name in ("bfloat16", "float16") else y for y in outputs]


def others(path, chosen):
    """The lines of all cases that are not made anew."""
    out, keeps = [], False
    for line in path.read_text().splitlines()[1:]:
        if line.startswith("case "):
            keeps = line[5:] in MODELS and line[5:] not in chosen
        if keeps:
            out.append(line)
    return out


def main():
    cases = Cases("models")
    chosen = sys.argv[1:]
    FOLDER.mkdir(exist_ok=True)
    for name, make in MODELS.items():
        if chosen and name not in chosen:
            continue
        keras.backend.clear_session()
        keras.utils.set_random_seed(zlib.crc32(name.encode()) % 1000)
        saved = make()
        for i, weight in enumerate(saved.model.weights):
            positive = "variance" in weight.path or "stddev" in weight.path
            if weight.dtype.startswith(("float", "bfloat")) and "normalization_adapted" not in name:
                weight.assign(draw(f"{name}/{i}", weight.shape, 0.3 if positive else -1.0, 1.5 if positive else 1.0))
        tensors = {f"x{i}": x for i, x in enumerate(saved.inputs)}
        if saved.labels is not None:
            x = saved.inputs if len(saved.inputs) > 1 else saved.inputs[0]
            y = saved.labels if isinstance(saved.labels, dict) else saved.labels[0]
            for _ in range(2):
                saved.model.train_on_batch(x, y)
            labels = saved.labels.values() if isinstance(saved.labels, dict) else saved.labels
            tensors |= {f"labels{i}": label for i, label in enumerate(labels)}
        tensors |= {f"y{i}": y for i, y in enumerate(outputs_of(saved))}
        saved.model.save(FOLDER / f"{name}.keras")
        if saved.labels is not None:
            tensors["loss"] = np.float32(saved.model.train_on_batch(x, y, return_dict=True)["loss"])
            tensors |= {f"after{i}": y for i, y in enumerate(outputs_of(saved))}
        cases.add(name, **tensors)
    if chosen:
        cases.lines = others(cases.path, chosen) + cases.lines
    cases.write()


if __name__ == "__main__":
    main()
