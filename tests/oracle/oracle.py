"""How references of structured rows are written: in tests/oracle/rows/<file>.py, for the rows of stet/ops/<file>.cpp.

    from oracle import row

    @row("cumsum", types=["u8", "i64", "f16", "bf16", "f32", "f64"])
    def cumsum(x, axis, exclusive, reverse):
        ...

The function is given the operands (integers as objects, so that nothing wraps; floating ones in double) and the row's
attributes by name, and returns an array, or a tuple of them for a row with several results. `types` are those that the row
takes (or a function that gives them for a sample's attributes): "i64" stands for all signed integers, which draw the same
numbers. With moves=True the elements are only moved: the
function is run once, on the positions of elements, and serves all types.

Composites, which are ordinary functions of ops, have theirs in tests/oracle/composites/<file>.py:

    from oracle import composite

    @composite("rms_norm", "values", "parameter")
    def rms_norm(x, gamma):
        ...

in 80-bit floats, for a line of the same name in tests/keras/composite_table.h. The words say how operands are drawn
(composite_operand in make_values.py); derivatives are differences of the function.
"""

import importlib.util
import pathlib
import sys

import numpy as np

ALL = ["bool", "u8", "i64", "f16", "bf16", "f32", "f64"]
NUMBERS = ALL[1:]
FLOATING = ["f16", "bf16", "f32", "f64"]
ROWS = {}
current_type = None  # while a reference runs: the type that its operands were drawn for
COMPOSITES = {}


class Reference:
    def __init__(self, function, types, moves, module):
        self.function, self.types, self.moves, self.module = function, types, moves, module

    def __call__(self, operands, attributes):
        results = self.function(*operands, **attributes)
        return [np.asarray(r) for r in (results if isinstance(results, tuple) else (results,))]


def row(name, types=ALL, moves=False):
    def keep(function):
        ROWS[name] = Reference(function, types, moves, function.__module__)
        return function
    return keep


class CompositeReference:
    def __init__(self, function, kinds):
        self.function, self.kinds, self.module = function, kinds, "composites_" + function.__module__

    def __call__(self, *operands):
        return self.function(*operands)


def composite(name, *kinds):
    def keep(function):
        COMPOSITES[name] = CompositeReference(function, kinds)
        return function
    return keep


def load_folder(name):
    sys.path.append(str(pathlib.Path(__file__).parent / name))
    for path in sorted((pathlib.Path(__file__).parent / name).glob("*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def load_rows():
    load_folder("rows")


def load_composites():
    load_folder("composites")
