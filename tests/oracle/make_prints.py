#!/usr/bin/env python3
"""Writes prints.txt: arrays and how NumPy prints them.

The tests read the stored file and never run this script: python3 tests/oracle/make_prints.py > tests/oracle/prints.txt,
with NumPy 1.24 as Debian 12 has it (later ones print large f32 in another way). A case is a line with type, sizes and
elements (hexadecimal, so that nothing is rounded; "step s" stands for 0, s, 2 s, …), the text, and a line of dashes. A
case with options has them in front: "with precision=3 suppress=1 : f64 …", by stet's names.
"""

import numpy as np

NAMES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i8": np.int8,
         "u8": np.uint8, "bool": np.bool_}
nan, inf = np.nan, np.inf


class counted:
    def __init__(self, step, *sizes):
        self.step = step
        self.array = (np.arange(np.prod(sizes)) * step).reshape(sizes)


def cases():
    # Digits: shortest that read back, at most 8 behind the point in arrays, all of them alone.
    yield "f64", [0.1 + 0.2, 1.0]
    yield "f64", [0.1, 0.2, 0.3]
    yield "f64", 0.1 + 0.2
    yield "f32", [0.00012345678]
    yield "f32", 0.00012345678
    yield "f32", [1 / 3, 2 / 3, 1.0]
    yield "f64", [1 / 3, 2 / 3, 1.0]
    yield "f32", 1 / 3
    yield "f64", 1 / 3
    yield "f32", [0.1, 0.25, 12.5]
    yield "f32", [1.0, 2.0, 3.0]
    yield "f32", [1.5, -2.25, 100.0]
    yield "f64", [3.141592653589793, 2.718281828459045]
    yield "f32", [3.1415927, 2.7182817]
    yield "f64", [0.123456785, 0.5]
    yield "f64", [0.999999999, 1.0]
    yield "f64", [99.9999999999, 1.0]
    yield "f32", [16777216.0, 99999992.0]
    yield "f64", [12345678.9, 1234567.25]
    yield "f16", [0.1, 0.2, 1000.0]
    yield "f16", [0.333, 65504.0]
    yield "f16", 0.1
    yield "f16", [1.5, 2.5]
    # Alone.
    for value in (0.0, -0.0, 1.0, 33.0, -2.5, 1e15, 1e16, 123456789.0, 1e-4, 9.9e-5, 1e20, 1.5e-7, 1e300, nan, inf, -inf):
        yield "f64", value
    for value in (33.0, 1e16, 1e10, 1.1e-5, 3.4028235e38, 16777216.0):
        yield "f32", value
    # Exponents: from 1e8, below 1e-4, or where the largest is more than a thousand times the smallest.
    yield "f64", [1e8, 1.0]
    yield "f64", [1e7, 1e5]
    yield "f64", [99999999.0, 99999998.0]
    yield "f64", [1e-5, 1.0]
    yield "f64", [1e-4, 2e-4]
    yield "f64", [0.001, 1.0]
    yield "f64", [0.0009, 1.0]
    yield "f64", [1001.0, 1.0]
    yield "f64", [1000.0, 1.0]
    yield "f32", [1234.5, 0.5]
    yield "f64", [1e10, 2.5e10, -3e-10]
    yield "f64", [1e100, 1.0]
    yield "f64", [1e-300, 1.0, 123.456]
    yield "f32", [1e20, 1e-20]
    yield "f32", [1000000064.0, 0.1]
    yield "f32", [99999992.0, 33554436.0]
    yield "f32", 99999992.0
    yield "f32", 123456792.0
    yield "f32", [1.2345678e-7, 1.0]
    yield "f64", [1.23456789012345e-7, 1.0]
    yield "f64", [0.0, 1e-9]
    yield "f64", [0.0, 0.0]
    yield "f64", [-0.0, 1.5]
    yield "f64", [-1e-5, 1e-5]
    # What is not finite.
    yield "f64", [nan, 1.0]
    yield "f64", [inf, 1.0]
    yield "f64", [-inf, 1.0]
    yield "f64", [nan, inf]
    yield "f64", [nan]
    yield "f64", [-inf, nan]
    yield "f64", [1.25, nan, -inf]
    yield "f64", [1e20, nan, -inf]
    yield "f32", [100.0, -inf, 0.5]
    # Integers and bool.
    yield "i64", [1, -10, 100]
    yield "i32", [0]
    yield "i8", [-128, 127]
    yield "u8", [255, 0, 7]
    yield "i32", 7
    yield "i64", -9223372036854775808
    yield "bool", [True, True]
    yield "bool", [True, False]
    yield "bool", True
    yield "bool", False
    yield "bool", [[True, False], [False, True]]
    # Shapes.
    yield "f32", [[1.0, 2.5], [-3.0, 4.0]]
    yield "f32", [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.5]]]
    yield "f32", [[[[1.0], [2.0]]], [[[3.0], [4.0]]]]
    yield "f32", np.zeros((2, 0))
    yield "f32", np.zeros((0,))
    yield "i32", np.zeros((3, 0, 2))
    yield "f64", [[0.1 + 0.2], [100.0]]
    # Long lines and long axes.
    yield "i64", counted(1, 30)
    yield "f32", counted(0.25, 25)
    yield "f64", counted(0.125, 2, 20)
    yield "f64", counted(1.5, 2, 2, 15)
    yield "i32", counted(1, 1001)
    yield "i32", counted(37, 28)
    yield "f32", counted(0.5, 2000)
    yield "i64", counted(1, 4, 300)
    yield "f32", counted(1, 300, 4)
    yield "f32", counted(0.0625, 10, 10, 16)
    yield "f64", counted(1000, 2, 1024)


def cases_with_options():
    numbers = [0.1 + 0.2, 1 / 3, 12.3456789, -2.0]
    spread = [1e-10, 1.5, 123456.789, -0.00012345]
    for precision in (0, 1, 3, 12, 17, 30):
        for value in (numbers, spread, [1e10, 2.5e10, -3e-10], [nan, 1.25, -inf], [0.0, -0.0], 1 / 3):
            yield dict(precision=precision), "f64", value
        for value in (numbers, spread, [0.1, 2.5]):
            yield dict(precision=precision), "f32", value
        yield dict(precision=precision), "f16", [0.1, 2.5, 1000.0]
    for precision in (2, 8):
        for value in (spread, [1e-300, 1.0], [1e8, 1e-8], [99999999.0, 1e-6], [1e-12, -1e-13], [5e-9, 4e-9], [nan, 1e-7]):
            yield dict(precision=precision, suppress=True), "f64", value
    yield dict(suppress=True), "f32", spread
    for edgeitems in (1, 2, 3, 10):
        for threshold in (0, 10, 23, 24):
            yield dict(threshold=threshold, edgeitems=edgeitems), "i64", counted(1, 24)
            yield dict(threshold=threshold, edgeitems=edgeitems), "f64", counted(0.125, 4, 6)
            yield dict(threshold=threshold, edgeitems=edgeitems), "i32", counted(1, 2, 7, 9)
    yield dict(threshold=0), "i64", [5]
    yield dict(threshold=0), "i64", 5
    yield dict(threshold=5000), "i64", counted(1, 1500)
    for width in (1, 2, 10, 40, 76, 200):
        yield dict(linewidth=width), "i64", counted(7, 30)
        yield dict(linewidth=width), "f64", counted(0.125, 2, 12)
        yield dict(linewidth=width, threshold=5, precision=2), "f32", counted(0.3, 3, 2, 20)
        yield dict(linewidth=width), "bool", [[True, False, True], [False, False, True]]


STET_NAMES = {"precision": "precision", "threshold": "threshold", "edgeitems": "edge_items", "linewidth": "line_width",
              "suppress": "suppress"}


def main():
    print("# by make_prints.py")
    for options, name, value in [({}, *case) for case in cases()] + list(cases_with_options()):
        step = value.step if isinstance(value, counted) else None
        array = np.asarray(value.array if step else value).astype(NAMES[name])
        sizes = "x".join(map(str, array.shape)) or "scalar"
        show = (lambda v: float(v).hex()) if name[0] == "f" else (lambda v: str(int(v)))
        words = [f"{STET_NAMES[option]}={int(said)}" for option, said in options.items()]
        front = ["with", *words, ":"] if options else []
        print(*front, name, sizes, *(["step", show(step)] if step else map(show, array.reshape(-1))))
        with np.printoptions(**options):
            print(str(array))
        print("----")


main()
