#!/usr/bin/env python3
"""make_path_formats.py > path_formats.txt: what Python's str.format makes of numbers, for keras/path_format.cpp.

Lines of: the kind of the value (i or f), the value, the format, the result, with tabs between. Floating values are
written in hexadecimal.
"""

import random

random.seed(1)
integers = [0, 1, 7, 12, -3, 99999, 123456789012, -(2**63), 2**63 - 1]
floats = [0.0, -0.0, 0.5, 1.0, 0.12345678, 2.675, 1e-5, 0.0001, 1e15, 1e16, 123456.789, -3.25, 1 / 3, 1e300, 5e-324,
          float("nan"), float("inf"), float("-inf"), 99.995, 1e22]
plain = ["", "02d", "d", "5d", "05d", "<5d", "^7d", "*^9d", "+d", " d", "x=+8d", "010", "3"]
real = ["", ".2f", ".0f", "f", "8.3f", "08.3f", "+.1f", ".3e", "E", ".2g", "G", "g", ".1%", "%", "_>12.4f", "^12.2f",
        "#.0f", "#g", ".3", "10.4", " .2f", "0<9.3f", ".10f", "F", "+010.2E", "#.3g"]


def line(kind, value, spec):
    shown = str(value) if kind == "i" else value.hex()
    form = "{v:" + spec + "}" if spec else "{v}"
    print(kind, shown, form, form.format(v=value), sep="\t")


for value in integers:
    for spec in plain + [".2f", "8.1f", ".1%", "e", "g"]:
        line("i", value, spec)
for value in floats:
    for spec in real:
        line("f", value, spec)
for _ in range(400):
    value = random.choice([random.gauss(0, 1), random.uniform(0, 1) * 10 ** random.randint(-20, 20)])
    line("f", value, random.choice(real))
