"""Reference values of structured rows for operands with NaN, infinities, signed zeros, subnormal and the largest numbers.

A line "special nan sort 7 | axis=0" asks for the sample `sort 7 | axis=0` with some elements replaced by special ones, in
f16, bf16, f32 and f64; tests/ops/special_test.cpp draws the same. Kinds:

    nan       NaN, both infinities, both zeros
    infinite  infinity, zeros, the smallest subnormal numbers
    overflow  the largest number and half of it, zeros, the smallest normal and subnormal numbers

Rows that choose or move elements are what their references say. Sums and products of such elements may depend on the order
of the operations: three large numbers, one of them negative, add up to a large number or to infinity. There NumPy has no
answer that others must have, and "?" is written. Everything else is decided by the elements alone, in every order, with or
without fused multiply-adds: see Sum and Product.
"""

import math

import numpy as np

import oracle

KINDS = ["nan", "infinite", "overflow"]
WIDE = np.longdouble


def limits(floats, dtype):
    """The largest number of the type, the smallest normal one, the smallest."""
    precision, lowest, highest = floats[dtype]
    return (2 - 2.0 ** (1 - precision)) * 2.0**highest, 2.0**lowest, 2.0 ** (lowest - precision + 1)


def special_elements(kind, floats, dtype):
    largest, normal, smallest = limits(floats, dtype)
    return {"nan": [math.nan, math.nan, math.inf, -math.inf, 0.0, -0.0],
            "infinite": [math.inf, math.inf, 0.0, -0.0, smallest, -smallest],
            "overflow": [largest, largest / 2, 0.0, -0.0, smallest, -smallest, normal]}[kind]


def replaced(array, kind, operand, floats, dtype, drawn):
    """One element in four is a special one."""
    flat, choices = array.reshape(-1).copy(), special_elements(kind, floats, dtype)
    for i in range(flat.size):
        bits = drawn(i, operand + 300 + 10 * KINDS.index(kind))
        if bits % 4 == 0:
            flat[i] = choices[(bits >> 8) % len(choices)]
    return flat.reshape(array.shape)


class Sum:
    """A sum of terms whose order is not known: the exact sums of its positive and of its negative terms."""

    def __init__(self, value=0.0):
        value = WIDE(value)
        self.nan, self.infinities = bool(np.isnan(value)), {float(value)} if np.isinf(value) else set()
        finite = WIDE(0) if self.nan or self.infinities else value
        self.above, self.below, self.count, self.divisor = max(finite, WIDE(0)), max(-finite, WIDE(0)), 1, 1

    def value(self):
        return WIDE(math.nan) if self.nan else WIDE(next(iter(self.infinities))) if self.infinities else self.above - self.below

    def __add__(self, other):
        other = other if isinstance(other, Sum) else Sum(other)
        assert self.divisor == other.divisor == 1
        out = Sum()
        out.nan, out.infinities = self.nan or other.nan, self.infinities | other.infinities
        out.above, out.below, out.count = self.above + other.above, self.below + other.below, self.count + other.count
        return out

    __radd__ = __add__

    def __mul__(self, other):
        assert self.count == other.count == 1
        with np.errstate(all="ignore"):
            return Sum(self.value() * other.value())

    def __truediv__(self, number):
        if self.count == 1:
            return Sum(self.value() / number)
        self.divisor = number  # of a whole sum: what is beyond the type's range was so before
        return self

    def __gt__(self, other):
        return self.value() > (other.value() if isinstance(other, Sum) else other)

    def resolved(self, largest, smallest):
        if self.nan or len(self.infinities) == 2:
            return math.nan
        if self.infinities:
            sign = next(iter(self.infinities))
            return sign if (self.below if sign > 0 else self.above) <= largest else None
        total = self.above - self.below
        if self.above <= largest and self.below <= largest:
            return float(total / self.divisor)
        # Beyond the range whatever comes first, while the other side stays within it.
        if min(self.above, self.below) <= largest and abs(total) > largest * (1 + 2.0**-6):
            return math.copysign(math.inf, total)
        return None


class Product:
    """A product of factors whose order is not known."""

    def __init__(self, *factors):
        self.factors = factors

    def __mul__(self, other):
        return Product(*self.factors, *(other.factors if isinstance(other, Product) else (float(other),)))

    __rmul__ = __mul__

    def resolved(self, largest, smallest):
        sizes = [abs(WIDE(f)) for f in self.factors]
        if any(np.isnan(s) for s in sizes):
            return math.nan
        finite = [s for s in sizes if s != 0 and not np.isinf(s)]
        most, least = np.prod([max(s, WIDE(1)) for s in finite]), np.prod([min(s, WIDE(1)) for s in finite])
        sign = math.prod(math.copysign(1.0, f) for f in self.factors)
        zero, infinite = 0 in sizes, math.inf in sizes
        if zero and infinite:
            return math.nan
        if zero:
            return math.copysign(0.0, sign) if most <= largest else None
        if infinite:
            return math.copysign(math.inf, sign) if least > smallest else None
        if most <= largest and least >= smallest * 2.0**30:
            return float(math.copysign(float(most * least), sign))
        return math.copysign(math.inf, sign) if least == 1 and most > largest * (1 + 2.0**-6) else None


def contained(kind, arrays, operands):
    return [np.vectorize(kind, otypes=[object])(a) if below < 0 and a.size else a.astype(object) if below < 0 else a
            for a, (_, below, _) in zip(arrays, operands)]


SUMS = ["sum", "mean", "cumsum", "matmul", "conv", "conv_input", "conv_filter", "average_pool", "pool_spread", "pool_place",
        "scatter_add"]
PRODUCTS = ["prod", "cumprod", "scatter_multiply"]


def arithmetic(row, a):
    """How a row's elements are combined: Sum, Product, or not at all."""
    if row == "put_along_axis":
        return {1: Sum, 2: Product}.get(a["combine"])
    return Sum if row in SUMS else Product if row in PRODUCTS else None


def resolved(results, largest, smallest):
    def one(v):
        v = v.resolved(largest, smallest) if isinstance(v, (Sum, Product)) else v
        return "?" if v is None else v
    return [[one(v) for v in np.asarray(r).reshape(-1).tolist()] for r in results]
