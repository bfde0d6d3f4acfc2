#!/usr/bin/env python3
"""Writes values.txt and values/*.txt: what every row of the op table must compute, from NumPy and SciPy in double precision or better.

The tests read the stored file and never run this script. Run it when rows or samples change, with Debian's
python3-numpy and python3-scipy:

    make oracle

It is given the op table as the tests see it: one line per map, cast and sample. The references of structured rows stand in
rows/*.py, one file of them for one of stet/ops/*.cpp, those of composites in composites/*.py (tests/oracle/oracle.py says how
they are written); the oldest, and
those of maps, stand here; special.py has what is theirs for NaN, infinities and the like. Where a result does not depend on
rounding (data that only moves), one list of source positions serves all types. Inputs of samples are not stored: they
come from `drawn`, which tests/ops/op_harness.h repeats. Everything here is written anew, from the definitions in
docs/numbers.md and the rows' summaries; no code is shared with the engine.
"""

import decimal
import math
import re
import struct
import sys

import numpy as np
import scipy.special

import oracle
import special

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


def wide2(function):
    """The same of two operands."""
    def call(x, y):
        with np.errstate(all="ignore"):
            return float(function(np.longdouble(x), np.longdouble(y)))
    return call


def complementary_error(x):
    """Not by SciPy, which is several ULP off in the tail."""
    if math.isnan(x) or math.isinf(x) or abs(x) > 30:
        return x if x != x else (0.0 if x > 0 else 2.0)
    decimal.getcontext().prec = 60 + int(x * x)
    z = decimal.Decimal(x)
    return float(2 * upper_tail(z) if x > 6 else 1 - error_function(z))


def inverse_error(x):
    """SciPy's, put right by two steps of Newton's method in many digits."""
    if math.isnan(x) or abs(x) >= 1:
        return math.copysign(INF, x) if abs(x) == 1 else NAN
    if abs(x) < 1e-100:
        return float(np.longdouble(x) * np.sqrt(4 * np.arctan(np.longdouble(1))) / 2)
    decimal.getcontext().prec = 80
    y = decimal.Decimal(float(scipy.special.erfinv(x)))
    for _ in range(2):
        y -= (error_function(y) - decimal.Decimal(x)) * (y * y).exp() * PI.sqrt() / 2
    return float(y)


# B(2k) / 2k for k = 1, 2, ...
BERNOULLI = [decimal.Decimal(a) / b for a, b in (
    (1, 12), (-1, 120), (1, 252), (-1, 240), (1, 132), (-691, 32760), (1, 12), (-3617, 8160), (43867, 14364),
    (-174611, 6600), (77683, 276), (-236364091, 65520), (657931, 12), (-3392780147, 3480), (1723168255201, 85932))]


def sine_of_pi(x):
    """sin(pi x) for |x| <= 1/2, by its series."""
    angle = PI * x
    total = term = angle
    n = 1
    while abs(term) > abs(angle) * decimal.Decimal(10) ** -60:
        term *= -angle * angle / ((n + 1) * (n + 2))
        total += term
        n += 2
    return total


def log_gamma(x):
    """By Stirling's series from 60 on, the recurrence below, and reflection."""
    if math.isnan(x) or math.isinf(x):
        return abs(x)
    if x <= 0 and x == math.floor(x):
        return INF
    decimal.getcontext().prec = 80
    z = decimal.Decimal(x)
    if x < 0:
        part = z - z.to_integral_value()
        return float((PI / abs(z * sine_of_pi(part))).ln() - exact_log_gamma(-z)) if abs(x) < 1e17 else INF
    try:
        return float(exact_log_gamma(z))
    except OverflowError:
        return INF


def exact_log_gamma(z):
    product = decimal.Decimal(1)
    while z < 60:
        product *= z
        z += 1
    series = sum(b / (2 * k - 1) / z ** (2 * k - 1) for k, b in enumerate(BERNOULLI, 1))
    return (z - decimal.Decimal("0.5")) * z.ln() - z + (2 * PI).ln() / 2 + series - product.ln()


def digamma(x):
    if math.isnan(x) or x == -INF or (x < 0 and x == math.floor(x)):
        return NAN
    if x == 0 or x == INF:
        return x if x == INF else -math.copysign(INF, x)
    decimal.getcontext().prec = 80
    z, total = decimal.Decimal(x), decimal.Decimal(0)
    if x < 0:
        part = z - z.to_integral_value()
        cosine = sine_of_pi(decimal.Decimal("0.5") - abs(part))
        total = -PI * cosine / sine_of_pi(part)
        z = 1 - z
    while z < 60:
        total -= 1 / z
        z += 1
    try:
        return float(total + z.ln() - 1 / (2 * z) - sum(b / z ** (2 * k) for k, b in enumerate(BERNOULLI, 1)))
    except OverflowError:
        return -INF if x > 0 else INF


def next_after(x, y, dtype):
    """By counting the numbers of the type: their bits as integers, negative ones downwards."""
    if x != x or y != y:
        return NAN
    if x == y:
        return y
    width, pack, unpack = {"f64": (64, "<d", "<q"), "f32": (32, "<f", "<i"), "f16": (16, "<e", "<h"),
                           "bf16": (16, "<f", "<i")}[dtype]
    shift = 16 if dtype == "bf16" else 0
    bits = struct.unpack(unpack, struct.pack(pack, x))[0] >> shift
    count = bits if bits >= 0 else -(bits & (2 ** (width - 1) - 1))
    count += 1 if y > x else -1
    magnitude = struct.unpack(pack, struct.pack(unpack, abs(count) << shift))[0]
    return math.copysign(magnitude, count or x)


def gelu_tanh(x):
    with np.errstate(all="ignore"):
        z = np.longdouble(x)
        u = np.sqrt(1 / (2 * np.arctan(np.longdouble(1)))) * (z + np.longdouble("0.044715") * z * z * z)
        return float(z / (1 + np.exp(-2 * u)))


def mish(x):
    with np.errstate(all="ignore"):
        z = np.longdouble(x)
        return float(z * np.tanh(np.logaddexp(np.longdouble(0), z)))


def exponential_unit(x, factor, scale):
    if x > 0:
        return x
    with np.errstate(all="ignore"):
        return float(np.longdouble(factor) * np.expm1(np.longdouble(x) / np.longdouble(scale)))


def selu(x):
    scale, alpha = np.longdouble("1.0507009873554804934193349852946"), np.longdouble("1.6732632423543772848170429916717")
    with np.errstate(all="ignore"):
        return float(scale * (np.longdouble(x) if x > 0 else alpha * np.expm1(np.longdouble(x))))


def clip(x, low, high):
    if x != x or low != low or high != high:
        return NAN
    return min(max(x, low), high)


def hard_sigmoid(x):
    return np.longdouble(NAN) if x != x else min(max(np.longdouble(x) + 3, np.longdouble(0)), np.longdouble(6)) / 6


RADIAN = 45 / np.arctan(np.longdouble(1))


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
    "fmod": guarded(math.fmod),
    "hypot": wide2(np.hypot),
    "atan2": wide2(np.arctan2),
    "copysign": math.copysign,
    "logaddexp": wide2(np.logaddexp),
    "xlogy": wide2(lambda x, y: np.longdouble(0) if x == 0 and y == y else x * np.log(y)),
    "heaviside": lambda x, y: x if x != x else y if x == 0 else float(x > 0),
    "fmax": lambda x, y: y if x != x else x if y != y else (y if y > x else x),
    "fmin": lambda x, y: y if x != x else x if y != y else (y if y < x else x),
    "clip": clip,
    "sign": lambda x: x if x != x or x == 0 else math.copysign(1.0, x),
    "reciprocal": lambda x: divided(1.0, x),
    "cbrt": wide(np.cbrt),
    "exp2": wide(np.exp2),
    "expm1": wide(np.expm1),
    "log1p": wide(np.log1p),
    "log2": wide(np.log2),
    "log10": wide(np.log10),
    "tan": wide(np.tan),
    "asin": wide(np.arcsin),
    "acos": wide(np.arccos),
    "atan": wide(np.arctan),
    "sinh": wide(np.sinh),
    "cosh": wide(np.cosh),
    "asinh": wide(np.arcsinh),
    "acosh": wide(np.arccosh),
    "atanh": wide(np.arctanh),
    "rad2deg": wide(lambda x: x * RADIAN),
    "deg2rad": wide(lambda x: x / RADIAN),
    "erfc": complementary_error,
    "erfinv": inverse_error,
    "lgamma": log_gamma,
    "digamma": digamma,
    "trunc": lambda x: float(np.trunc(np.float64(x))),
    "relu6": lambda x: NAN if x != x else min(0.0 if 0 > x else x, 6.0),
    "leaky_relu": lambda x, y: x if x >= 0 else y * x,
    "elu": lambda x, y: exponential_unit(x, y, 1.0),
    "celu": lambda x, y: x if abs(divided(x, y)) < 2.0**-60 else exponential_unit(x, y, y),
    "selu": selu,
    "hard_sigmoid": lambda x: float(hard_sigmoid(x)),
    "hard_silu": wide(lambda x: x * hard_sigmoid(x)),
    "hard_tanh": lambda x: x if x != x else min(max(x, -1.0), 1.0),
    "softsign": wide(lambda x: x / (1 + abs(x))),
    "softplus": wide(lambda x: np.logaddexp(x, np.longdouble(0))),
    "log_sigmoid": wide(lambda x: -np.logaddexp(-x, np.longdouble(0))),
    "mish": mish,
    "gelu_tanh": gelu_tanh,
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
def shifted(x, count, bits):
    return x << count if 0 <= count < bits else 0


def shifted_right(x, count, bits):
    return x >> count if 0 <= count < bits else -(x < 0)


INTEGER_MAPS = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "floor_divide": lambda x, y: x // y if y else 0,
    "mod": lambda x, y: x % y if y else 0,
    "maximum": max,
    "minimum": min,
    "bitwise_and": lambda x, y: x & y,
    "bitwise_or": lambda x, y: x | y,
    "bitwise_xor": lambda x, y: x ^ y,
    "bitwise_not": lambda x: ~x,
    "fmod": lambda x, y: (abs(x) % abs(y)) * (-1 if x < 0 else 1) if y else 0,
    "fmax": max,
    "fmin": min,
    "clip": clip,
    "sign": lambda x: (x > 0) - (x < 0),
    "trunc": lambda x: x,
    "relu6": lambda x: min(max(x, 0), 6),
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
    "logical_and": lambda x, y: x != 0 and y != 0,
    "logical_or": lambda x, y: x != 0 or y != 0,
    "logical_not": lambda x: x == 0,
    "logical_xor": lambda x, y: (x != 0) != (y != 0),
    "isnan": lambda x: x != x,
    "isinf": lambda x: abs(x) == INF,
    "isfinite": lambda x: x == x and abs(x) != INF,
    "signbit": lambda x: math.copysign(1.0, x) < 0 if isinstance(x, float) else x < 0,
}
SHIFTS = {"shift_left": shifted, "shift_right": shifted_right}


def map_value(row, rule, dtype, operands):
    """The expected element, or None where the row does not take the type."""
    if rule == "compared":
        return int(COMPARISONS[row](*operands))
    if row == "where":
        return operands[1] if operands[0] else operands[2]
    if rule == "floating" and dtype in INTEGERS:
        operands, dtype = [rounded_integer(x, "f32") for x in operands], "f32"
    if dtype in INTEGERS:
        if dtype == "bool" and row == "bitwise_not":
            return int(not operands[0])
        if row in SHIFTS:
            low, high = INTEGERS[dtype]
            return wrapped(SHIFTS[row](*operands, (high - low).bit_length()), dtype)
        return wrapped(INTEGER_MAPS[row](*operands), dtype)
    if row == "floor_divide":
        # Of the quotient as the computing type has it: floor(x / y), not the floor of the exact quotient.
        return to_integer_like(np.floor)(rounded(divided(*operands), compute_type(dtype)))
    if row == "nextafter":
        return next_after(*operands, dtype)
    return FLOATING_MAPS[row](*operands)


def takes(rule, accepts_bool, dtype):
    if rule == "logical" and dtype not in INTEGERS:
        return False
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


def map_points(row, arity, rule, low, high, without_zero, dtype):
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
    if row in ("sin", "cos", "tan") and dtype in FLOATS:
        # Arguments of every size.
        specials += [rounded(s * 1.2345 * 2.0**e, dtype) for e in range(4, FLOATS[dtype][2], 12) for s in (1, -1)]
    if arity == 1:
        points += [[x] for x in specials]
    elif rule != "selected" and arity == 3:
        points += [[specials[drawn(i, 200 + k) % len(specials)] for k in range(3)] for i in range(100)]
    else:
        count = len(specials)
        if count * count <= 80:
            points += [[x, y] for x in specials for y in specials]
        else:
            points += [[specials[drawn(i, 200) % count], specials[drawn(i, 201) % count]] for i in range(72)]
    if rule == "selected":
        points = [[int(i % 3 != 0), *point[:2]] for i, point in enumerate(points)]
    if row == "celu":
        points = [p for p in points if not (p[0] <= 0 and p[1] < 0)]  # exp(x / y) would magnify the quotient's rounding
    if row == "mod" and dtype in FLOATS:
        points = [p for p in points if not abs(divided(*p)) >= 2.0**53 or math.isinf(p[0]) or p[1] == 0]
    return points


def write_map(out, line):
    _, row, arity, rule, accepts_bool, low, high, without_zero = line.split()
    if not any(row in maps for maps in (FLOATING_MAPS, INTEGER_MAPS, COMPARISONS, SHIFTS, ("where", "nextafter"))):
        raise SystemExit(f"{row}: no reference for this row; write one line in FLOATING_MAPS (or INTEGER_MAPS)")
    for dtype in DTYPES:
        if not takes(rule, accepts_bool == "1", dtype):
            continue
        points = map_points(row, int(arity), rule, float(low), float(high), without_zero == "1", dtype)
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
    raise SystemExit(f"{row}: no reference for this row; write one in make_values.py")


# What each group of types draws alike, and so has one reference. Signed integers stay within i8.
def groups(row):
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


def special_operands(row, kind, operands, dtype):
    arrays = operand_arrays(operands, dtype)
    for k, (_, below, draw) in enumerate(operands):
        # Of convolutions the first only: whether padding is multiplied by infinity is nobody's definition.
        if below < 0 and not (row.startswith("conv") and k > 0):
            arrays[k] = special.replaced(arrays[k], kind, k, FLOATS, dtype, drawn)
            if draw == "ordered":
                arrays[k] = np.sort(arrays[k], -1)
    return arrays


def special_results(row, kind, operands, a, dtype):
    arrays, arithmetic = special_operands(row, kind, operands, dtype), special.arithmetic(row, a)
    if arithmetic:
        arrays = special.contained(arithmetic, arrays, operands)
    if row in oracle.ROWS:
        return oracle.ROWS[row](arrays, a)
    if row == "nonzero":
        return [np.argwhere(arrays[0] != 0)]
    if row == "matmul":
        x = [np.swapaxes(x, -1, -2) if a[f"transpose_{side}"] else x for x, side in zip(arrays, ("left", "right"))]
        return [np.matmul(*x)]
    return [np.asarray(computed(row, arrays, a))]


def write_special(_, line):
    _, kind, row, rest = line.split(" ", 3)
    sizes, _, attribute_text = rest.partition(" | ")
    operands, a = parse_sizes(sizes), parse_attributes(attribute_text)
    out = LISTED.setdefault("special", [HEADER])
    out.append(line)
    reference = oracle.ROWS.get(row)
    if reference and reference.moves:
        write_results(out, reference(source_positions(operands), a), "source")
        return
    positions = None if reference else moved(row, source_positions(operands), a)
    if positions is not None:
        write_results(out, [positions], "source")
        return
    for number, dtype in enumerate(FLOATS):
        oracle.current_type = dtype
        with np.errstate(all="ignore"):
            results = special_results(row, kind, operands, a, dtype)
        # What is scattered may be rounded to its own type at every step.
        combined = dtype if "scatter" in row or "along" in row else compute_type(dtype)
        largest, _, smallest = special.limits(FLOATS, combined)
        for k, values in enumerate(special.resolved(results, largest, smallest)):
            which = f"{k}:" if k else ""
            if number == 0:
                out.append(f"{which}shape " + ",".join(map(str, results[k].shape)))
            out.append(f"{which}{dtype} " + " ".join(v if v == "?" else written(v) for v in values))


# --- composites: values, gradients and products with the Hessian. Their references are in composites/*.py.


def composite_operand(kind, k, sizes, dtype):
    """Operand k of a composite, of the sizes unless told otherwise. "values", and "shifted" ones that are not equal to them;
    "small" ones; "gapped": values, some of which are NaN, but none that is the first of its line; "probabilities"; a "mask" of
    bool. Of the last axis: "parameter", and "scale", which is positive. Of all but the last: "labels", its positions."""
    shape = {"parameter": sizes[-1:], "scale": sizes[-1:], "labels": sizes[:-1]}.get(kind, sizes)
    count = math.prod(shape)
    bits = [drawn(i, k) for i in range(count)]
    if kind == "labels":
        return np.array([b % sizes[-1] for b in bits], dtype=np.int64).reshape(shape)
    if kind == "mask":
        return np.array([b % 3 != 0 for b in bits]).reshape(shape)
    if kind in ("probabilities", "scale"):
        values = [(b % 199 + 28) / 256 for b in bits]
    else:
        scale = 1 if kind in ("parameter", "small") else 4
        shift = 1 / 64 if kind == "shifted" else 0
        values = [rounded(drawn_element("", i, k, dtype, count) * scale + shift, dtype) for i in range(count)]
    if kind == "gapped":
        values = [NAN if i % sizes[-1] and bits[i] % 3 == 0 else v for i, v in enumerate(values)]
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


def write_composites():
    for name, reference in oracle.COMPOSITES.items():
        out = LISTED.setdefault(reference.module, [HEADER])
        for sizes in ([3, 4], [5, 37], [2, 3, 10], [1, 1]):
            for dtype in FLOATS:
                operands = [composite_operand(kind, k, sizes, dtype) for k, kind in enumerate(reference.kinds)]
                out.append(f"composite {name} {','.join(map(str, sizes))} {dtype}")
                out.append(values_line("=", np.asarray(reference(*operands), dtype=np.float64)))
                if dtype not in ("f32", "f64") or sizes == [5, 37]:
                    continue
                for line, values in composite_derivatives(reference, operands, dtype):
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
    oracle.load_composites()
    writers = {"map": write_map, "cast": write_cast, "sample": write_sample, "special": write_special}
    for line in rows:
        writers[line.split()[0]](out, line)
    write_composites()
    write_random(out)
    for name, lines in [("values", out)] + [("values/" + name, lines) for name, lines in LISTED.items()]:
        with open(f"{sys.argv[2]}/{name}.txt", "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


main()
