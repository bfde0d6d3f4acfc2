"""What Keras's fit(), evaluate() and train_on_batch() give for models of several inputs and outputs, and with weights of
samples and classes. Reports come out by name: report_loss, report_kind_accuracy, …; by epoch, where there are epochs."""

from values import Cases

import keras
import numpy as np

cases = Cases("fit")
rng = np.random.default_rng(11)
n = 10  # in batches of 4: the last one is smaller
left = rng.normal(size=(n, 4)).astype("float32")
right = rng.normal(size=(n, 3)).astype("float32")
kind = rng.integers(0, 3, size=(n,)).astype("int64")
size = rng.normal(size=(n, 2)).astype("float32")
kind_weight = rng.uniform(0.2, 2, size=(n,)).astype("float32")
size_weight = rng.uniform(0.2, 2, size=(n,)).astype("float32")


def two_by_two():
    a, b = keras.Input((4,), name="left"), keras.Input((3,), name="right")
    both = keras.layers.Concatenate()([keras.layers.Dense(5, activation="tanh", name="of_left")(a), b])
    outputs = [keras.layers.Dense(3, activation="softmax", name="kind")(both), keras.layers.Dense(2, name="size")(both)]
    return keras.Model([a, b], outputs)


def one_by_one():
    a = keras.Input((4,), name="left")
    return keras.Model(a, keras.layers.Dense(3, activation="softmax", name="kind")(a))


def record(name, model, compile_arguments, run):
    """`run` trains the compiled model and gives its report: numbers, or lists of them, by name."""
    for i, weight in enumerate(model.weights):
        weight.assign(np.random.default_rng(100 + i).normal(size=weight.shape, scale=0.5).astype("float32"))
    tensors = {f"before_{i}": np.array(w) for i, w in enumerate(model.get_weights())}
    model.compile(optimizer=keras.optimizers.SGD(0.1), **compile_arguments)
    report = run(model)
    tensors |= {f"after_{i}": np.array(w) for i, w in enumerate(model.get_weights())}
    tensors |= {f"report_{key}": np.asarray(value, dtype="float32") for key, value in report.items()}
    cases.add(name, **tensors)


def fitted(x, y, **arguments):
    return lambda model: model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0, **arguments).history


cases.add("data", left=left, right=right, kind=kind, size=size, kind_weight=kind_weight, size_weight=size_weight)
by_name = dict(loss={"kind": "sparse_categorical_crossentropy", "size": "mse"})
record("in_order", two_by_two(), dict(loss=["sparse_categorical_crossentropy", "mse"]), fitted([left, right], [kind, size]))
record("by_name", two_by_two(), by_name | dict(metrics={"kind": ["accuracy"], "size": ["mae", "mse"]}),
       fitted({"right": right, "left": left}, {"size": size, "kind": kind}))
record("loss_weights", two_by_two(), by_name | dict(loss_weights={"kind": 0.5, "size": 2.0}),
       fitted([left, right], [kind, size]))
record("loss_weights_in_order", two_by_two(), dict(loss=["sparse_categorical_crossentropy", "mse"], loss_weights=[0.3, 1.5],
       metrics=["accuracy", "mae"]), fitted([left, right], [kind, size]))
record("weights_by_output", two_by_two(),
       by_name | dict(metrics={"kind": ["accuracy"]}, weighted_metrics={"kind": ["accuracy"], "size": ["mae"]}),
       fitted([left, right], [kind, size], sample_weight=[kind_weight, size_weight]))
record("one_weight_for_all", two_by_two(), by_name | dict(weighted_metrics={"size": ["mae"]}),
       fitted([left, right], [kind, size], sample_weight=[kind_weight, kind_weight]))
record("validation", two_by_two(), by_name | dict(metrics={"kind": ["accuracy"]}),
       fitted([left, right], [kind, size], validation_split=0.3))
record("one_loss_for_all", two_by_two(), dict(loss="mse"),
       fitted([left, right], [np.eye(3, dtype="float32")[kind], size]))
record("class_weight", one_by_one(), dict(loss="sparse_categorical_crossentropy", metrics=["accuracy"],
       weighted_metrics=["accuracy"]), fitted(left, kind, class_weight={0: 0.5, 2: 3.0}))
record("class_weight_one_hot", one_by_one(), dict(loss="categorical_crossentropy", weighted_metrics=["accuracy"]),
       fitted(left, np.eye(3, dtype="float32")[kind], class_weight={0: 0.5, 1: 2.0, 2: 3.0}))
record("class_and_sample_weight", one_by_one(), dict(loss="sparse_categorical_crossentropy", weighted_metrics=["accuracy"]),
       fitted(left, kind, sample_weight=kind_weight))


def on_batches(model):
    model.train_on_batch([left[:4], right[:4]], [kind[:4], size[:4]], return_dict=True)
    return model.train_on_batch([left[4:], right[4:]], [kind[4:], size[4:]], return_dict=True)


record("train_on_batch", two_by_two(), by_name | dict(metrics={"kind": ["accuracy"]}), on_batches)
record("train_on_batch_class_weight", one_by_one(), dict(loss="sparse_categorical_crossentropy"),
       lambda model: model.train_on_batch(left, kind, class_weight={0: 0.5, 2: 3.0}, return_dict=True))
record("test_on_batch", two_by_two(), by_name | dict(weighted_metrics={"size": ["mae"]}),
       lambda model: model.test_on_batch([left, right], [kind, size], sample_weight=size_weight, return_dict=True))
record("evaluate", two_by_two(), by_name | dict(weighted_metrics={"size": ["mae"]}),
       lambda model: model.evaluate([left, right], [kind, size], batch_size=4, sample_weight=size_weight, verbose=0,
                                    return_dict=True))
cases.write()
