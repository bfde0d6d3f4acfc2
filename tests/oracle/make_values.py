#!/usr/bin/env python3
"""Writes values.txt and values/*.txt: what every row of the op table must compute, from NumPy and SciPy in double precision or better.

The tests read the stored file and never run this script. Run it when rows or samples change, with Debian's
python3-numpy and python3-scipy:

    make oracle

It is given the op table as the tests see it: one line per map, cast and sample. The references of structured rows stand in
rows/*.py, one file of them for one of stet/ops/*.cpp (tests/oracle/oracle.py says how they are written); the oldest, and
those of maps, stand here. Where a result does not depend on
rounding (data that only moves), one list of source positions serves all types. Inputs of samples are not stored: they
come from `drawn`, which tests/ops/op_harness.h repeats. Everything here is written anew, from the definitions in
docs/numbers.md and the rows' summaries; no code is shared with the engine.
"""

import decimal
import math
import re
import sys

import numpy as np
import scipy.special

import oracle

INTEGERS = {"bool": (0, 1), "u8": (0, 255), "i8": (-128, 127), "i16": (-(2**15), 2**15 - 1),
            "i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1)}
# precision in bits, smallest exponent of a normal number, largest exponent
FLOATS = {"f16": (11, -14, 15), "bf16": (8, -126, 127), "f32": (24, -126, 127), "f64": (53, -1022, 1023)}
DTYPES = list(INTEGERS) + list(FLOATS)
INF, NAN = math.inf, math.nan


# --- numbers


def rounded(x, dtype):
    """A real number as an element of a floating type: to nearest, ties to even, overflow to infinity."""
    if dtype == "f64" or x == 0 or math.isinf(x) or math.isnan(x):
        return float(x)
    precision, lowest, highest = FLOATS[dtype]
    _, exponent = math.frexp(x)
    if exponent > highest + 1:
        return math.copysign(INF, x)
    quantum = max(exponent - precision, lowest - precision + 1)
    # Scaling by a power of two is exact here, and Python rounds ties to even.
    value = math.ldexp(float(round(math.ldexp(x, -quantum))), quantum)
    if abs(value) >= math.ldexp(1.0, highest + 1):
        value = math.copysign(INF, x)
    return math.copysign(value, x)


def wrapped(x, dtype):
    low, high = INTEGERS[dtype]
    return (int(x) - low) % (high - low + 1) + low if dtype != "bool" else int(x != 0)


def converted(x, source, target):
    """cast: floating to integer saturates, NaN gives 0; integers wrap; to bool is `!= 0`."""
    if target == "bool":
        return int(x != 0)
    if target in FLOATS:
        return rounded_integer(int(x), target) if source in INTEGERS else rounded(x, target)
    if source in INTEGERS:
        return wrapped(x, target)
    low, high = INTEGERS[target]
    if math.isnan(x):
        return 0
    return low if x <= low else high if x >= high else int(x)


def rounded_integer(x, dtype):
    """An integer of up to 64 bits in a floating type, rounded once (through double would be twice)."""
    precision, _, highest = FLOATS[dtype]
    magnitude = abs(x)
    shift = max(magnitude.bit_length() - precision, 0)
    quotient, rest = magnitude >> shift, magnitude & ((1 << shift) - 1)
    half = (1 << shift) >> 1
    if shift and (rest > half or (rest == half and quotient & 1)):
        quotient += 1
    value = quotient << shift
    if value >= 1 << (highest + 1):
        return math.copysign(INF, x)
    return math.copysign(float(value), x) if x else 0.0


def compute_type(dtype):
    return "f32" if dtype in ("f16", "bf16") else dtype


def written(x):
    if isinstance(x, (int, np.integer)):
        return str(int(x))
    x = float(x)
    if math.isnan(x):
        return "nan"
    if math.isinf(x):
        return "inf" if x > 0 else "-inf"
    return repr(x)


def drawn(number, operand):
    """Element `number` of operand `operand`: 31 bits, the same in tests/ops/op_harness.h."""
    mask = 2**64 - 1
    z = (number * 0x9E3779B97F4A7C15 + (operand + 1) * 0xBF58476D1CE4E5B9) & mask
    z ^= z >> 31
    z = (z * 0x94D049BB133111EB) & mask
    z ^= z >> 29
    return z >> 33


def drawn_element(draw, number, operand, dtype, count):
    """The row's sample says how its elements are drawn: "factors", "marks", or "" (plain)."""
    bits = drawn(number, operand)
    if draw == "marks":
        return int(bits % 3 != 0)
    if dtype == "bool":
        return bits & 1
    if draw == "factors":
        # Many factors: powers of two, mostly 1, so that no partial product leaves the type. Few: near 1.
        if dtype in INTEGERS:
            return 1 + 2 * (bits % 3)
        sign = -1.0 if bits & 1 else 1.0
        if count > 1000:
            return sign * (2.0 if bits % 64 < 2 else 0.5 if bits % 64 < 4 else 1.0)
        return rounded(sign * (1 + (bits >> 1) % 16 / 61), dtype)
    if dtype == "u8":
        return bits % 201
    if dtype in INTEGERS:
        return bits % 201 - 100
    return rounded((bits % 257 - 128) / 61, dtype)


# --- maps


def guarded(function):
    """C's math library where Python raises instead of giving inf or NaN."""
    def call(*arguments):
        try:
            return function(*arguments)
        except OverflowError:
            return INF
        except ValueError:
            return NAN
    return call


def divided(x, y):
    with np.errstate(all="ignore"):
        return float(np.float64(x) / np.float64(y))


def floor_mod(x, y):
    """Sign of y; exact while the quotient is below 2^53."""
    if math.isnan(x) or math.isnan(y) or math.isinf(x) or y == 0:
        return NAN
    if math.isinf(y):
        return math.copysign(0.0, y) if x == 0 else (x if (x < 0) == (y < 0) else y)
    rest = math.fmod(x, y)
    if rest == 0:
        return math.copysign(0.0, y)
    return rest + y if (rest < 0) != (y < 0) else rest


def wide(function):
    """A NumPy function in 80 bits, so that f64 results have a better reference than themselves."""
    def call(x):
        with np.errstate(all="ignore"):
            return float(function(np.longdouble(x)))
    return call


def power(x, y):
    with np.errstate(all="ignore"):
        return float(np.power(np.longdouble(x), np.longdouble(y)))


def sigmoid(x):
    with np.errstate(all="ignore"):
        return float(1 / (1 + np.exp(-np.longdouble(x))))


def silu(x):
    with np.errstate(all="ignore"):
        return float(np.longdouble(x) / (1 + np.exp(-np.longdouble(x)))) if x != -INF else NAN


PI = decimal.Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798")


def error_function(z):
    """By its alternating series, in as many digits as it loses."""
    total = term = z
    n = 0
    while abs(term) > decimal.Decimal(10) ** (20 - decimal.getcontext().prec):
        n += 1
        term *= -z * z / n
        total += term / (2 * n + 1)
    return 2 * total / PI.sqrt()


def upper_tail(z):
    """0.5 * erfc(z) by its continued fraction, for z above 5."""
    fraction = z
    for k in range(300, 0, -1):
        fraction = z + decimal.Decimal(k) / 2 / fraction
    return (-z * z).exp() / (fraction * PI.sqrt() * 2)


def gelu(x):
    """x times the normal distribution at x. Not by SciPy's ndtr, which rounds -x / sqrt(2) and is 60 ULP off in the tail."""
    if math.isnan(x) or x == -INF:
        return NAN
    if abs(x) > 39:
        return x if x > 0 else -0.0
    if abs(x) < 1e-300:
        return x * 0.5
    decimal.getcontext().prec = 60 + int(x * x * 0.5)
    z = abs(decimal.Decimal(x)) / decimal.Decimal(2).sqrt()
    tail = upper_tail(z) if abs(x) > 8 else (1 - error_function(z)) / 2
    return float(decimal.Decimal(x) * (tail if x < 0 else 1 - tail))


def to_integer_like(function):
    """floor, ceil and round keep the sign of zero and pass on inf and NaN."""
    def call(x):
        return float(function(np.float64(x)))
    return call


FLOATING_MAPS = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": divided,
    "mod": floor_mod,
    "pow": power,
    "maximum": lambda x, y: NAN if x != x or y != y else (y if y > x else x),
    "minimum": lambda x, y: NAN if x != x or y != y else (y if y < x else x),
    "negative": lambda x: -x,
    "abs": abs,
    "square": lambda x: x * x,
    "sqrt": guarded(math.sqrt),  # correctly rounded in double, and from there to f32 (53 >= 2 * 24 + 2)
    "rsqrt": wide(lambda x: 1 / np.sqrt(x)),
    "exp": wide(np.exp),
    "log": wide(np.log),
    "sin": wide(np.sin),
    "cos": wide(np.cos),
    "tanh": wide(np.tanh),
    "erf": lambda x: float(scipy.special.erf(x)),
    "floor": to_integer_like(np.floor),
    "ceil": to_integer_like(np.ceil),
    "round": to_integer_like(np.rint),
    "relu": lambda x: NAN if x != x else (0.0 if 0 > x else x),
    "sigmoid": sigmoid,
    "silu": silu,
    "gelu": gelu,
}
INTEGER_MAPS = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "floor_divide": lambda x, y: x // y if y else 0,
    "mod": lambda x, y: x % y if y else 0,
    "maximum": max,
    "minimum": min,
    "logical_and": lambda x, y: x & y,
    "logical_or": lambda x, y: x | y,
    "logical_not": lambda x: ~x,
    "negative": lambda x: -x,
    "abs": abs,
    "square": lambda x: x * x,
    "floor": lambda x: x,
    "ceil": lambda x: x,
    "round": lambda x: x,
    "relu": lambda x: max(x, 0),
}
COMPARISONS = {
    "equal": lambda x, y: x == y,
    "not_equal": lambda x, y: x != y,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
}


def map_value(row, rule, dtype, operands):
    """The expected element, or None where the row does not take the type."""
    if rule == "compared":
        return int(COMPARISONS[row](*operands))
    if row == "where":
        return operands[1] if operands[0] else operands[2]
    if rule == "floating" and dtype in INTEGERS:
        operands, dtype = [rounded_integer(x, "f32") for x in operands], "f32"
    if dtype in INTEGERS:
        if dtype == "bool" and row == "logical_not":
            return int(not operands[0])
        return wrapped(INTEGER_MAPS[row](*operands), dtype)
    if row == "floor_divide":
        # Of the quotient as the computing type has it: floor(x / y), not the floor of the exact quotient.
        return to_integer_like(np.floor)(rounded(divided(*operands), compute_type(dtype)))
    return FLOATING_MAPS[row](*operands)


def takes(rule, accepts_bool, dtype):
    if rule == "logical":
        return dtype in INTEGERS
    return dtype != "bool" or accepts_bool


def special_values(dtype):
    if dtype == "bool":
        return [0, 1]
    if dtype in INTEGERS:
        low, high = INTEGERS[dtype]
        return sorted({0, 1, 2, 3, 7, 100, high, high - 1, low, low + 1, *([-1, -2, -3, -7, -100] if low else [])})
    precision, lowest, highest = FLOATS[dtype]
    largest = (2 - 2.0 ** (1 - precision)) * 2.0**highest
    smallest, normal = 2.0 ** (lowest - precision + 1), 2.0**lowest
    signed = [0.0, 1.0, 0.5, 1.5, 2.5, 2.0, 3.0, 100.0, smallest, normal, normal - smallest, largest, INF,
              1 + 2.0 ** (1 - precision)]
    return [s * v for v in signed for s in (1.0, -1.0)] + [NAN]


def map_points(row, arity, low, high, without_zero, dtype):
    """Operand lists: values from the row's domain, then special ones."""
    points = []
    for i in range(24):
        point = []
        for k in range(arity):
            unit = (drawn(i, 100 + k) + 0.5) / 2**31
            x = low + (high - low) * unit
            if without_zero and abs(x) < 0.5:
                x = math.copysign(0.5 + abs(x), x)
            if dtype in INTEGERS:
                bottom, top = INTEGERS[dtype]
                x = min(max(round(x), bottom), top)
            else:
                x = rounded(x, dtype)
            point.append(x)
        points.append(point)
    specials = special_values(dtype)
    if row in ("sin", "cos"):
        # Reduction of the argument is promised up to 2^46 only.
        specials = [x for x in specials if math.isnan(x) or math.isinf(x) or abs(x) < 2.0**46]
    if arity == 1:
        points += [[x] for x in specials]
    else:
        count = len(specials)
        if count * count <= 80:
            points += [[x, y] for x in specials for y in specials]
        else:
            points += [[specials[drawn(i, 200) % count], specials[drawn(i, 201) % count]] for i in range(72)]
    if arity == 3:
        points = [[int(i % 3 != 0), *point[:2]] for i, point in enumerate(points)]
    if row == "mod" and dtype in FLOATS:
        points = [p for p in points if not abs(divided(*p)) >= 2.0**53 or math.isinf(p[0]) or p[1] == 0]
    return points


def write_map(out, line):
    _, row, arity, rule, accepts_bool, low, high, without_zero = line.split()
    if not any(row in maps for maps in (FLOATING_MAPS, INTEGER_MAPS, COMPARISONS, ("where",))):
        raise SystemExit(f"{row}: no reference for this row; write one line in FLOATING_MAPS (or INTEGER_MAPS)")
    for dtype in DTYPES:
        if not takes(rule, accepts_bool == "1", dtype):
            continue
        points = map_points(row, int(arity), float(low), float(high), without_zero == "1", dtype)
        out.append(f"map {row} {dtype}")
        for k in range(int(arity)):
            out.append(f"{'xyz'[k]} " + " ".join(written(p[k]) for p in points))
        out.append("= " + " ".join(written(map_value(row, rule, dtype, p)) for p in points))


def write_cast(out, line):
    target = line.split()[1]
    for source in DTYPES:
        values = special_values(source)
        if source in FLOATS:
            edges = [m * s + d for m in (2.0**7, 2.0**8, 2.0**15, 2.0**31, 2.0**63) for s in (1, -1) for d in (-1, -0.5, 0, 1)]
            values += [rounded(x, source) for x in edges + [0.1, -0.9, 1e-8, 65519.99, 65520.0, 3.4e38, 1e39, 2049.0, 257.5]]
        elif INTEGERS[source][1] > 2**14:
            values += [x for x in (127, 128, 255, 256, 257, 2049, 2051, 32767, 65535, 65536, 2**24 + 1, 2**24 + 3, 2**31,
                                   2**53 + 1, 2**62 + 2**38 + 1, -129, -32769) if INTEGERS[source][0] <= x <= INTEGERS[source][1]]
        out.append(f"cast {target} {source}")
        out.append("x " + " ".join(written(x) for x in values))
        out.append("= " + " ".join(written(converted(x, source, target)) for x in values))


# --- samples of structured rows


def parse_sizes(text):
    """"3,4~marks;5:7" -> [([3, 4], -1, "marks"), ([5], 7, "")]: sizes of operands, the bound of those that hold indices,
    how the others are drawn."""
    operands = []
    for part in text.split(";"):
        part, _, draw = part.partition("~")
        sizes, _, below = part.partition(":")
        operands.append(([int(s) for s in sizes.split(",") if s], int(below) if below else -1, draw))
    return operands


def drawn_matrices(sizes, operand, draw):
    """Symmetric matrices with positive eigenvalues ("definite"), or far from singular ("regular"), of multiples of 1/64."""
    count = math.prod(sizes)
    b = np.array([(drawn(i, operand) % 9 - 4) / 8 for i in range(count)]).reshape(sizes)
    product = b @ np.swapaxes(b, -1, -2) if draw == "definite" else b
    return product + sizes[-1] * np.eye(sizes[-2], sizes[-1])


def parse_attributes(text):
    """"axes=[0,1], keepdims=true" -> {"axes": [0, 1], "keepdims": True}"""
    out = {}
    for name, value in re.findall(r"(\w+)=(\[[^\]]*\]|[^,\]]*)", text):
        if value.startswith("["):
            out[name] = [int(v) for v in value[1:-1].split(",") if v]
        elif value in ("true", "false"):
            out[name] = value == "true"
        elif re.fullmatch(r"-?\d+", value):
            out[name] = int(value)
        else:
            out[name] = value
    return out


def operand_arrays(operands, dtype):
    arrays = []
    for k, (sizes, below, draw) in enumerate(operands):
        count = math.prod(sizes)
        if below >= 0:
            values = [drawn(i, k) % below if below else 0 for i in range(count)]
            arrays.append(np.array(values, dtype=np.int64).reshape(sizes))
        elif draw in ("definite", "regular"):
            arrays.append(drawn_matrices(sizes, k, draw))
        else:
            values = [drawn_element("" if draw == "ordered" else draw, i, k, dtype, count) for i in range(count)]
            array = np.array(values, dtype=object if dtype in INTEGERS else np.float64).reshape(sizes)
            arrays.append(np.sort(array, -1) if draw == "ordered" else array)
    return arrays


def source_positions(operands):
    """Every element is its own number, counted through all operands that hold data."""
    arrays, start = [], 0
    for k, (sizes, below, _) in enumerate(operands):
        count = math.prod(sizes)
        if below >= 0:
            arrays.append(np.array([drawn(i, k) % below for i in range(count)], dtype=np.int64).reshape(sizes))
        else:
            arrays.append(np.arange(start, start + count).reshape(sizes))
            start += count
    return arrays


def moved(row, x, a):
    if row == "reshape":
        return x[0].reshape(a["shape"])
    if row == "transpose":
        return np.transpose(x[0], a["order"])
    if row == "broadcast_to":
        return np.broadcast_to(x[0], a["shape"])
    if row == "slice":
        return x[0][tuple(slice(b, b + s * t, t) if s else slice(0, 0) for b, s, t in zip(a["begin"], a["size"], a["step"]))]
    if row == "reverse":
        return np.flip(x[0], a["axes"])
    if row == "concat":
        return np.concatenate(x, a["axis"])
    if row == "gather":
        return np.take(x[0], x[1], a["axis"])
    return None


def conv2d(x, filters, a):
    """Straight from the definition, over padded and dilated input."""
    batch, height, width, channels = x.shape
    kh, kw, _, features = filters.shape
    dilated = np.zeros((batch, max((height - 1) * a["input_dilations"][0] + 1, 0),
                        max((width - 1) * a["input_dilations"][1] + 1, 0), channels))
    dilated[:, ::a["input_dilations"][0], ::a["input_dilations"][1], :] = x
    low, high = a["low"], a["high"]
    padded = np.pad(dilated, ((0, 0), (low[0], high[0]), (low[1], high[1]), (0, 0)))
    sh, sw = a["strides"]
    dh, dw = a["dilations"]
    oh = (padded.shape[1] - (kh - 1) * dh - 1) // sh + 1
    ow = (padded.shape[2] - (kw - 1) * dw - 1) // sw + 1
    out = np.zeros((batch, oh, ow, features))
    for i in range(oh):
        for j in range(ow):
            patch = padded[:, i * sh:i * sh + (kh - 1) * dh + 1:dh, j * sw:j * sw + (kw - 1) * dw + 1:dw, :]
            out[:, i, j, :] = np.tensordot(patch, filters, axes=([1, 2, 3], [0, 1, 2]))
    return out


def reduced(row, x, a):
    axes, keep = tuple(a["axes"]), a["keepdims"]
    if not axes:
        return x
    if row in ("sum", "mean"):
        if x.dtype == object:
            total = np.add.reduce(x, axis=axes, keepdims=keep)
        else:
            total = np.vectorize(math.fsum, signature="(n)->()")(together(x, axes)) if x.size else np.sum(x, axis=axes)
            total = np.asarray(total).reshape(np.sum(x, axis=axes, keepdims=keep).shape)
        return total if row == "sum" else total / math.prod(x.shape[i] for i in axes)
    if row == "prod":
        return np.multiply.reduce(x, axis=axes, keepdims=keep)
    if row in ("max", "min"):
        return (np.maximum if row == "max" else np.minimum).reduce(x, axis=axes, keepdims=keep)
    positions = (np.argmax if row == "argmax" else np.argmin)(x.astype(np.float64), axis=axes[0])
    return np.expand_dims(positions, axes[0]) if keep else positions


def together(x, axes):
    """The reduced axes moved to the end and made one."""
    kept = [i for i in range(x.ndim) if i not in axes]
    return np.transpose(x, kept + list(axes)).reshape([x.shape[i] for i in kept] + [-1])


def matmul(x, y, a):
    if a["transpose_left"]:
        x = np.swapaxes(x, -1, -2)
    if a["transpose_right"]:
        y = np.swapaxes(y, -1, -2)
    if x.dtype == object:
        return np.matmul(x.astype(np.int64), y.astype(np.int64))
    return np.matmul(x.astype(np.longdouble), y.astype(np.longdouble)).astype(np.float64)


def computed(row, x, a):
    if row in ("sum", "mean", "prod", "max", "min", "argmax", "argmin"):
        return reduced(row, x[0], a)
    if row == "matmul":
        return matmul(*x, a)
    if row == "conv2d":
        return conv2d(*x, a)
    raise SystemExit(f"{row}: no reference for this row; write one in make_values.py")


# What each group of types draws alike, and so has one reference. Signed integers stay within i8.
def groups(row):
    if row == "conv2d":
        return list(FLOATS)
    if row == "matmul":
        return ["u8", "i64", *FLOATS]
    return ["bool", "u8", "i64", *FLOATS]


def values_line(name, array):
    # Integers modulo 2^64: a narrower result is that, wrapped further.
    flat = [wrapped(v, "i64") if isinstance(v, int) else v for v in np.asarray(array).reshape(-1).tolist()]
    return f"{name} " + " ".join(written(v) for v in flat)


def write_results(out, results, name, shapes=True):
    """All results of a row: the lines of the second begin with "1:"."""
    for number, result in enumerate(results):
        which = f"{number}:" if number else ""
        if shapes:
            out.append(f"{which}shape " + ",".join(map(str, result.shape)))
        out.append(values_line(which + name, result))


def write_listed_sample(out, reference, operands, a):
    """A row with its reference in rows/*.py."""
    if reference.moves:
        write_results(out, reference(source_positions(operands), a), "source")
        return
    types = reference.types(a) if callable(reference.types) else reference.types
    for number, dtype in enumerate(types):
        oracle.current_type = dtype
        write_results(out, reference(operand_arrays(operands, dtype), a), dtype, shapes=number == 0)


def write_sample(out, line):
    head, _, attribute_text = line.partition(" | ")
    _, row, sizes = (head + " ").split(" ")[:3]
    operands, a = parse_sizes(sizes), parse_attributes(attribute_text)
    if row in oracle.ROWS:
        listed = LISTED.setdefault(oracle.ROWS[row].module, [HEADER])
        listed.append(line)
        write_listed_sample(listed, oracle.ROWS[row], operands, a)
        return
    out.append(line)
    positions = moved(row, source_positions(operands), a)
    if positions is not None:
        out.append("shape " + ",".join(map(str, positions.shape)))
        out.append(values_line("source", positions))
    elif row == "one_hot":
        indices = operand_arrays(operands, "i64")[0]
        result = (indices[..., None] == np.arange(a["depth"])).astype(np.int64)
        out.append("shape " + ",".join(map(str, result.shape)))
        out.append(values_line("any", result))
    elif row == "nonzero":
        result = np.argwhere(operand_arrays(operands, "bool")[0].astype(bool))
        out.append("shape " + ",".join(map(str, result.shape)))
        out.append(values_line("any", result))
    elif row in ("uniform", "normal", "randint", "random_bits"):
        write_random_sample(out, row, operands, a)
    elif row == "random_gamma":
        write_gamma_sample(out, operands, a)
    else:
        for number, dtype in enumerate(groups(row)):
            result = np.asarray(computed(row, operand_arrays(operands, dtype), a))
            if number == 0:
                out.append("shape " + ",".join(map(str, result.shape)))
            out.append(values_line(dtype, result))


# --- composites: values, gradients and products with the Hessian. tests/keras/composites_test.cpp has the same table.


def softmax(x, axis=-1):
    shifted = np.exp(x - x.max(axis, keepdims=True))
    return shifted / shifted.sum(axis, keepdims=True)


def log_softmax(x, axis=-1):
    shifted = x - x.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def layer_norm(x, gamma, beta):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-3) * gamma + beta


def picked(rows, labels):
    return np.take_along_axis(rows, labels[..., None], -1)[..., 0]


def clipped(p):
    return np.clip(p, np.longdouble(1e-7), 1 - np.longdouble(1e-7))


def normalised(p):
    return clipped(p / p.sum(-1, keepdims=True))


# Name -> (how each operand is drawn, reference). Operands: "values" of the sizes, "shifted" ones away from those,
# "parameter"s of the last axis, "labels" of all but the last, "probabilities".
COMPOSITES = {
    "softmax": (["values"], softmax),
    "softmax_first": (["values"], lambda x: softmax(x, 0)),
    "log_softmax": (["values"], log_softmax),
    "layer_norm": (["values", "parameter", "parameter"], layer_norm),
    "sparse_cross_entropy": (["labels", "values"], lambda y, z: -picked(log_softmax(z), y)),
    "sparse_categorical_crossentropy": (["labels", "probabilities"],
                                        lambda y, p: -picked(log_softmax(np.log(clipped(p))), y)),
    "categorical_crossentropy": (["probabilities", "probabilities"], lambda y, p: -(y * np.log(normalised(p))).sum(-1)),
    "categorical_crossentropy_logits": (["probabilities", "values"], lambda y, z: -(y * log_softmax(z)).sum(-1)),
    "binary_crossentropy": (["probabilities", "probabilities"],
                            lambda y, p: -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean(-1)),
    "binary_crossentropy_logits": (["probabilities", "values"], lambda y, z: (np.logaddexp(0, z) - z * y).mean(-1)),
    "mean_squared_error": (["values", "shifted"], lambda t, p: ((t - p) ** 2).mean(-1)),
    "mean_absolute_error": (["values", "shifted"], lambda t, p: abs(t - p).mean(-1)),
}


def composite_operand(kind, k, sizes, dtype):
    shape = {"parameter": sizes[-1:], "labels": sizes[:-1]}.get(kind, sizes)
    count = math.prod(shape)
    if kind == "labels":
        return np.array([drawn(i, k) % sizes[-1] for i in range(count)], dtype=np.int64).reshape(shape)
    if kind == "probabilities":
        values = [(drawn(i, k) % 199 + 28) / 256 for i in range(count)]
    else:
        scale, shift = {"parameter": (1, 0), "values": (4, 0), "shifted": (4, 1 / 64)}[kind]
        values = [rounded(drawn_element("", i, k, dtype, count) * scale + shift, dtype) for i in range(count)]
    return np.array(values, dtype=np.longdouble).reshape(shape)


STEP = np.longdouble(2e-4)
DIFFERENCES = [(-2, 1 / np.longdouble(12)), (-1, -8 / np.longdouble(12)), (1, 8 / np.longdouble(12)), (2, -1 / np.longdouble(12))]


def composite_derivatives(function, operands, dtype):
    """Of L = sum(function(operands) * d): the gradient, and its derivative along v. By fourth-order central differences in
    80 bits, which are good to about 1e-10."""
    weights = np.asarray(function(*operands))
    d = np.array([drawn_element("", i, 40, dtype, 1) for i in range(weights.size)], dtype=np.longdouble)
    v = [np.array([drawn_element("", i, 50 + k, dtype, 1) for i in range(x.size)], dtype=np.longdouble).reshape(x.shape)
         for k, x in enumerate(operands)]
    floating = [k for k, x in enumerate(operands) if x.dtype == np.longdouble]

    def loss(moved):
        return (np.asarray(function(*moved)).reshape(-1) * d).sum()

    def slope(k, at, along):
        moved = [x + STEP * along * w if j in floating else x for j, (x, w) in enumerate(zip(operands, v))]
        moved[k] = np.array(moved[k])
        total, flat = np.longdouble(0), moved[k].reshape(-1)
        start = flat[at]
        for steps, factor in DIFFERENCES:
            flat[at] = start + steps * STEP
            total += factor * loss(moved)
        return total / STEP

    for k in floating:
        positions = range(operands[k].size)
        yield f"d{k}", [float(slope(k, i, 0)) for i in positions]
        yield f"h{k}", [float(sum(factor * slope(k, i, steps) for steps, factor in DIFFERENCES) / STEP) for i in positions]


def write_composites(out):
    for name, (kinds, function) in COMPOSITES.items():
        for sizes in ([3, 4], [5, 37], [2, 3, 10], [1, 1]):
            for dtype in FLOATS:
                operands = [composite_operand(kind, k, sizes, dtype) for k, kind in enumerate(kinds)]
                out.append(f"composite {name} {','.join(map(str, sizes))} {dtype}")
                out.append(values_line("=", np.asarray(function(*operands), dtype=np.float64)))
                if dtype not in ("f32", "f64") or sizes == [5, 37]:
                    continue
                for line, values in composite_derivatives(function, operands, dtype):
                    out.append(values_line(line, np.array(values)))


# --- random numbers: Philox 4x32 with 10 rounds (Salmon and others, SC 2011)


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        high_0, low_0 = divmod(0xD2511F53 * c[0], 2**32)
        high_1, low_1 = divmod(0xCD9E8D57 * c[2], 2**32)
        c = [high_1 ^ c[1] ^ k[0], low_1, high_0 ^ c[3] ^ k[1], low_0]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return c


ONES = 2**32 - 1
assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
assert philox([ONES] * 4, [ONES] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


def words(seed, counter):
    seed, counter = seed % 2**64, counter % 2**64
    return philox([counter % 2**32, counter >> 32, 0, 0], [seed % 2**32, seed >> 32])


def unit_interval(first, second, dtype):
    if compute_type(dtype) == "f64":
        return float(((first >> 5) << 26) | (second >> 6)) * 2.0**-53
    return float(first >> 8) * 2.0**-24


def uniform(seed, counter, low, high, dtype):
    """Every step rounded to the computing type, so that the bits must agree."""
    w, kind = words(seed, counter), compute_type(dtype)
    value = rounded(low + rounded(unit_interval(w[0], w[1], dtype) * rounded(high - low, kind), kind), kind)
    value = rounded(value if value < high else low, dtype)
    return value if value < high else rounded(low, dtype)


def normals(seed, counter, dtype):
    """All that a counter gives: two in f64, otherwise four."""
    w, width = words(seed, counter), 2 if compute_type(dtype) == "f64" else 1
    uniforms = [unit_interval(w[i], w[(i + 1) % 4], dtype) for i in range(0, 4, width)]
    for u, v in zip(uniforms[::2], uniforms[1::2]):
        radius = math.sqrt(-2 * math.log1p(-u))
        yield from (radius * math.cos(2 * math.pi * v), radius * math.sin(2 * math.pi * v))


def normal(seed, counter, count, mean, deviation, dtype):
    """The first numbers of all counters, then the second ones, …; what is left over is first numbers of others."""
    each = 2 if compute_type(dtype) == "f64" else 4
    whole = count // each
    drawn_here = [list(normals(seed, counter + i, dtype)) for i in range(whole)]
    values = [numbers[j] for j in range(each) for numbers in drawn_here]
    values += [next(normals(seed, counter + whole + i, dtype)) for i in range(count % each)]
    return [mean + deviation * value for value in values]


def randint(seed, counter, low, high):
    w, count = words(seed, counter), high - low
    bits = w[0] << 32 | w[1]
    offset = w[0] * count >> 32 if count < 2**31 else (bits >> 1 if count < 2**63 else bits) % count
    return low + offset


def signed(w):
    bits = w[0] << 32 | w[1]
    return bits - 2**64 if bits >= 2**63 else bits


def gamma(seed, counter, alpha, logarithm, dtype):
    """By SciPy's quantile of the shape alpha + 8, and eight uniform factors. Each has a word, and in f64 another one, ten later."""
    from scipy import special
    alpha, w = abs(alpha), []
    for block in range(5):
        s, c = seed % 2**64, counter % 2**64
        w += philox([c % 2**32, c >> 32, block, 0], [s % 2**32, s >> 32])
    u = [unit_interval(w[i], w[10 + i], dtype) for i in range(10)]
    z = math.sqrt(-2 * math.log1p(-u[0])) * math.cos(2 * math.pi * u[1])
    tail = special.ndtr(-abs(z))
    large = special.gammaincinv(alpha + 8, tail) if z < 0 else special.gammainccinv(alpha + 8, tail)
    log_value = math.log(large) + sum(math.log1p(-u[2 + i]) / (alpha + i) for i in range(8))
    return log_value if logarithm else math.exp(log_value)


def write_gamma_sample(out, operands, a):
    """f64 is not that close to its distribution: tests/ops/random_test.cpp has it."""
    seed, counter = drawn(0, 0) % operands[0][1], drawn(0, 1) % operands[1][1]
    alpha = operand_arrays(operands, "f32")[2]
    values = [gamma(seed, counter + i, x, a["logarithm"], "f32") for i, x in enumerate(alpha.reshape(-1).tolist())]
    out.append("shape " + ",".join(map(str, alpha.shape)))
    out.append("f32 " + " ".join(written(v) for v in values))


def write_random_sample(out, row, operands, a):
    seed, counter = drawn(0, 0) % operands[0][1], drawn(0, 1) % operands[1][1]
    count = math.prod(a["shape"])
    out.append("shape " + ",".join(map(str, a["shape"])))
    if row == "random_bits":
        name, values = "any", [signed(words(seed, counter + i)) for i in range(count)]
    elif row == "randint":
        name, first, second = "any", drawn(0, 2) % operands[2][1], drawn(0, 3) % operands[3][1]
        values = [randint(seed, counter + i, first, second) for i in range(count)]
    else:
        name = a["dtype"]
        first, second = (drawn_element("", 0, k, name, 1) for k in (2, 3))
        if row == "uniform":
            values = [uniform(seed, counter + i, first, second, name) for i in range(count)]
        else:
            values = normal(seed, counter, count, first, second, name)
    out.append(f"{name} " + " ".join(written(v) for v in values))


def write_random(out):
    for seed in (0, 42, 2**63 + 12345):
        for dtype in FLOATS:
            out.append(f"random uniform {dtype} {seed} 0 1")
            out.append("= " + " ".join(written(uniform(seed, i, 0.0, 1.0, dtype)) for i in range(40)))
            out.append(f"random uniform {dtype} {seed} -2.5 7")
            out.append("= " + " ".join(written(uniform(seed, i, -2.5, 7.0, dtype)) for i in range(40)))
            out.append(f"random normal {dtype} {seed} 1 2")
            out.append("= " + " ".join(written(v) for v in normal(seed, 0, 40, 1.0, 2.0, dtype)))
            out.append(f"random normal {dtype} {seed} 1 2 rest")
            out.append("= " + " ".join(written(v) for v in normal(seed, 0, 7, 1.0, 2.0, dtype)))
        for dtype in ("f32", "f64"):
            for name in ("0.01", "0.5", "3", "100000"):
                out.append(f"random gamma {dtype} {seed} {name}")
                alpha = rounded(float(name), dtype)
                out.append("= " + " ".join(written(gamma(seed, i, alpha, False, dtype)) for i in range(40)))
        for low, high in ((0, 10), (-128, 128), (-(2**40), 2**40), (0, 2**31), (5, 6), (-(2**63), 2**63 - 1), (-(2**63), 0)):
            out.append(f"random randint i64 {seed} {low} {high}")
            out.append("= " + " ".join(str(randint(seed, i, low, high)) for i in range(40)))


HEADER = "# Written by make_values.py. Do not edit."
LISTED = {}  # by the module of their references: lines of values/<module>.txt


def main():
    rows = open(sys.argv[1], encoding="utf-8").read().splitlines()
    out = [HEADER]
    oracle.load_rows()
    writers = {"map": write_map, "cast": write_cast, "sample": write_sample}
    for line in rows:
        writers[line.split()[0]](out, line)
    write_composites(out)
    write_random(out)
    for name, lines in [("values", out)] + [("values/" + name, lines) for name, lines in LISTED.items()]:
        with open(f"{sys.argv[2]}/{name}.txt", "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


main()
