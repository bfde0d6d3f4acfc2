"""Values made by Keras, written as text that tests/public/keras_values.h reads.

Scripts beside this one make one file each, of named cases. They need Keras 3 and JAX, which no test needs:

    python3 -m venv venv && venv/bin/pip install keras jax
    venv/bin/python tests/oracle/keras/make_losses.py
"""

import os
import pathlib

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np

TYPES = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "bool": "bool", "uint8": "u8"}


class Cases:
    """The cases of one file, in order."""

    def __init__(self, family):
        self.path = pathlib.Path(__file__).with_name(family + ".txt")
        self.lines = []
        self.names = set()

    def add(self, name, **tensors):
        """A case and its tensors: what went in and what came out, by name."""
        assert name not in self.names, name
        self.names.add(name)
        self.lines.append(f"case {name}")
        for key, value in tensors.items():
            value = np.asarray(value)
            sizes = ",".join(str(size) for size in value.shape)
            kind = TYPES[str(value.dtype)]
            if kind == "f32":
                elements = [str(np.float32(e)) for e in value.ravel()]  # as few digits as tell it from others
            elif kind == "f64":
                elements = [repr(float(e)) for e in value.ravel()]
            else:
                elements = [str(int(e)) for e in value.ravel()]
            self.lines.append(f"{key} {kind} [{sizes}] " + " ".join(elements))

    def write(self):
        import keras

        head = f"# Made by {self.path.with_name('make_' + self.path.stem + '.py').name} with Keras {keras.__version__}."
        self.path.write_text("\n".join([head] + self.lines) + "\n")
