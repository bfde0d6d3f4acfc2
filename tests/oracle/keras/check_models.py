"""Loads models that stet has saved into Keras, and compares what they give with models.txt.

The way back of make_models.py. The tests write the files where they are told to:

    STET_SAVED_MODELS=/tmp/saved build/release/stet_public_tests --gtest_filter='*StoredModels*'
    venv/bin/python tests/oracle/keras/check_models.py /tmp/saved

Run by hand with Keras 3.15.1, as no test needs Python: all models load, give the same within 1e-5 (types of 16 bits:
1e-2), and those that were trained take the same next step.
"""

import pathlib
import sys

from values import Cases, TYPES

import keras
import numpy as np


def stored_cases():
    kinds = {kind: name for name, kind in TYPES.items()}
    cases, case = {}, None
    for line in Cases("models").path.read_text().splitlines():
        if line.startswith("#"):
            continue
        if line.startswith("case "):
            case = cases.setdefault(line[5:], {})
            continue
        key, kind, sizes, *elements = line.split(" ")
        shape = [int(size) for size in sizes[1:-1].split(",") if size]
        case[key] = np.array([float(e) for e in elements if e], kinds[kind]).reshape(shape)
    return cases


def numbered(case, name):
    out = []
    while f"{name}{len(out)}" in case:
        out.append(case[f"{name}{len(out)}"])
    return out


def structured(struct, values):
    """Values as the model takes them: alone, in a list, or by names in their order."""
    if isinstance(struct, dict):
        return dict(zip(sorted(struct), values))
    return values if len(values) > 1 else values[0]


def difference(model, case, name):
    inputs = structured(getattr(model, "_inputs_struct", None), numbered(case, "x"))
    found = [np.asarray(y, "float64") for y in keras.tree.flatten(model(inputs, training=False))]
    expected = numbered(case, name)
    assert len(found) == len(expected), (len(found), len(expected))
    worst = 0.0
    for y, e in zip(found, expected):
        assert y.shape == e.shape, (y.shape, e.shape)
        if e.size:
            worst = max(worst, float(np.max(np.abs(y - e) / (1 + np.abs(e)))))
    return worst


def main():
    folder = pathlib.Path(sys.argv[1])
    wrong = 0
    for name, case in stored_cases().items():
        tolerance = 1e-2 if "float16" in name else 1e-5
        try:
            keras.backend.clear_session()
            model = keras.models.load_model(folder / f"{name}.keras")
            worst = difference(model, case, "y")
            if "labels0" in case:
                labels = structured(getattr(model, "_outputs_struct", None), numbered(case, "labels"))
                inputs = structured(getattr(model, "_inputs_struct", None), numbered(case, "x"))
                loss = model.train_on_batch(inputs, labels, return_dict=True)["loss"]
                worst = max(worst, abs(float(loss) - float(case["loss"])), difference(model, case, "after"))
            problem = "" if worst <= tolerance else f"differs by {worst:.2g}"
        except Exception as error:  # of whatever kind: all models are tried
            problem = f"{type(error).__name__}: {error}"
        if problem:
            wrong += 1
            print(f"{name}: {problem}")
    print(f"{len(stored_cases()) - wrong} of {len(stored_cases())} models agree")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
