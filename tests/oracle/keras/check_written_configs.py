"""Whether Keras reads the configs that are written here, as the objects that they were made from:

    stet_tests --gtest_also_run_disabled_tests --gtest_filter=*.DISABLED_WriteForKeras
    python3 check_written_configs.py written_configs.json written_compile_configs.json
"""

import values  # chooses the backend

import copy
import json
import sys

import keras
import numpy as np
from keras.saving import deserialize_keras_object, serialize_keras_object

# What Keras takes but does not write, by class: how to ask an object for it.
LOST = {
    "gain": lambda one: one.gain,
    "delta": lambda one: one._fn_kwargs["delta"],
    "axis": lambda one: one._fn_kwargs["axis"],
    "dtype": lambda one: one.dtype,
}


def same(a, b):
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, bool) or isinstance(b, bool) or not isinstance(a, (int, float)) or not isinstance(b, (int, float)):
        return a == b
    return np.float32(a) == np.float32(b)


count = 0
for kind, entries in json.load(open(sys.argv[1])).items():
    for entry in entries:
        count += 1
        one = deserialize_keras_object(copy.deepcopy(entry))  # it changes what it is given
        config = serialize_keras_object(one)["config"]
        given = entry["config"]
        for name in given.keys() - config.keys():
            value = LOST[name](one)
            assert same(value, given[name]), (entry, name, value)
        for name in given.keys() & config.keys():
            value = config[name]
            if isinstance(value, dict) and value.get("class_name") in ("__tensor__", "__numpy__"):
                value = value["config"]["value"]
            mine = given[name]
            if isinstance(mine, dict) and mine.get("class_name") == "__numpy__":
                mine = mine["config"]["value"]
            assert same(mine, value), (entry, name, value)
        assert not config.keys() - given.keys(), (entry, config.keys() - given.keys())
print(f"Keras {keras.__version__} reads all {count}.")


# What compile() was given: a model compiled from what is written here learns as one that is compiled from what Keras
# wrote.
def learned(outputs, config):
    keras.utils.set_random_seed(1)
    x = keras.Input([2], name="x")
    model = keras.Model(x, [keras.layers.Dense(2, name=name)(x) for name in outputs])
    model.compile_from_config(copy.deepcopy(config))
    if model.loss is None:
        return []
    data = np.linspace(0, 1, 16, dtype="float32").reshape(8, 2)
    labels = {name: np.cos(data) for name in outputs}
    labels = labels if len(outputs) > 1 else labels[outputs[0]]
    try:
        history = model.fit(data, labels, epochs=2, verbose=0).history
    except ValueError as error:  # of losses for some outputs only
        return str(error)
    return [sorted(history.items()), model.optimizer.get_config() | {"name": ""}]


cases = json.load(open(sys.argv[2]))
for case in cases:
    one, other = learned(case["outputs"], case["given"]), learned(case["outputs"], case["config"])
    assert one == other, (case, one, other)
print(f"Keras compiles all {len(cases)}.")
