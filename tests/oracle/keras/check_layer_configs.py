"""That Keras makes layers of what stet writes, with the arguments that stand there.

    build/release/stet_tests --gtest_also_run_disabled_tests --gtest_filter=LayerConfigs.DISABLED_AreWrittenForKeras
    venv/bin/python tests/oracle/keras/check_layer_configs.py layer_configs_of_stet.json
"""

import json
import os
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import keras


KNOWN = {
    ("SimpleRNN.config", "seed"),  # Keras takes it, and does not write it
    ("RandomCrop.config", "seed"),  # Keras draws one where none is given
    ("IntegerLookup.config", "trainable"),  # Keras takes it, and forgets it
}


def difference(written, loaded, at):
    """Where they differ; members that Keras adds are none."""
    if isinstance(written, dict) and isinstance(loaded, str) and written.get("class_name") == "DTypePolicy":
        written = written["config"]["name"]
    if isinstance(loaded, dict) and isinstance(written, str) and loaded.get("class_name") == "DTypePolicy":
        loaded = loaded["config"]["name"]
    if isinstance(written, dict) and isinstance(loaded, dict):
        for key, value in written.items():
            if (at, key) in KNOWN:
                continue
            if key not in loaded:
                return f"{at}.{key} is not there"
            if found := difference(value, loaded[key], f"{at}.{key}"):
                return found
        return None
    if isinstance(written, list) and isinstance(loaded, (list, tuple)) and len(written) == len(loaded):
        for one, other in zip(written, loaded):
            if found := difference(one, other, at + "[]"):
                return found
        return None
    return None if written == loaded else f"{at}: {written!r} became {loaded!r}"


wrong = 0
entries = json.load(open(sys.argv[1]))
for entry in entries:
    try:
        layer = keras.saving.deserialize_keras_object(entry)
        loaded = json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))
        problem = difference(entry, loaded, entry["class_name"])
    except Exception as error:
        problem = f"{entry['class_name']}: {type(error).__name__}: {error}"
    if problem:
        wrong += 1
        print(problem)
print(len(entries), "entries,", wrong, "wrong")
sys.exit(wrong > 0)
