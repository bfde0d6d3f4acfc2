"""Fits the polynomials of stet/ir/expand_math*.cpp.

Run: python3 -m venv v && v/bin/pip install mpmath && v/bin/python fit_polynomials.py | clang-format
(with this repository's style) and put the output into stet/ir/math_coefficients.h.

Each fit is a Remez exchange in 60-digit arithmetic on a fixed fine grid: the polynomial P minimises the largest
|weight(x) * (f(x) - P(x))| over the interval, where the weight turns the error of P into the relative error of the
function that P is part of. Coefficients are then rounded to the type that evaluates them, lowest degree first in the
output. The number printed beside each is that largest relative error before the rounding of coefficients.
"""
from mpmath import (mp, mpf, atan, atanh, cos, erf, erfc, erfinv, exp, expm1, log, log1p, loggamma, lu_solve, matrix,
                    pi, sin, sqrt)
import struct

mp.dps = 60


def chebyshev_points(a, b, count):
    return [(a + b) / 2 - (b - a) / 2 * cos(pi * (k + mpf(1) / 2) / count) for k in range(count)]


def remez(f, weight, a, b, degree, grid_size=None):
    """Coefficients and largest weighted error of the best polynomial of this degree."""
    count = grid_size or 40 * (degree + 2)
    grid = chebyshev_points(mpf(a), mpf(b), count)
    values = [f(x) for x in grid]
    weights = [abs(weight(x)) for x in grid]
    n = degree + 2
    chosen = [round(i * (count - 1) / (n - 1)) for i in range(n)]
    for _ in range(30):
        system = matrix(n, n)
        right = matrix(n, 1)
        for row, k in enumerate(chosen):
            power = mpf(1)
            for column in range(degree + 1):
                system[row, column] = power
                power *= grid[k]
            system[row, degree + 1] = (-1) ** row / weights[k]
            right[row] = values[k]
        solution = lu_solve(system, right)
        coefficients = [solution[i] for i in range(degree + 1)]
        errors = []
        for k in range(count):
            p = mpf(0)
            for c in reversed(coefficients):
                p = p * grid[k] + c
            errors.append(weights[k] * (values[k] - p))
        # One extreme point per run of equal sign; the n largest neighbouring ones are the next reference.
        extremes = []
        for k in range(count):
            if extremes and (errors[k] > 0) == (errors[extremes[-1]] > 0):
                if abs(errors[k]) > abs(errors[extremes[-1]]):
                    extremes[-1] = k
            else:
                extremes.append(k)
        while len(extremes) > n:
            extremes.pop(0 if abs(errors[extremes[0]]) < abs(errors[extremes[-1]]) else -1)
        if len(extremes) < n or extremes == chosen:
            break
        chosen = extremes
    return coefficients, max(abs(e) for e in errors)


def to_f32(x):
    return struct.unpack("f", struct.pack("f", float(x)))[0]


def emit(name, fit, single):
    coefficients, error = fit
    print(f"// largest relative error {mp.nstr(error, 3)}")
    texts = [repr(to_f32(c) if single else float(c)) for c in coefficients]
    print(f"inline constexpr double {name}[] = {{")
    line = "   "
    for t in texts:
        if len(line) + len(t) + 2 > 118:
            print(line)
            line = "   "
        line += f" {t},"
    print(line.rstrip(",") + "};")


def erfcx(x):
    return exp(x * x) * erfc(x)


def second_order(f, series, x):
    """f near 0 by its series, where the closed form would cancel."""
    return f(x) if abs(x) > mpf(10) ** -15 else series(x)


def exp_tail(r):  # (exp(r) - 1 - r) / r^2
    return second_order(lambda r: (expm1(r) - r) / r**2, lambda r: mpf(1) / 2 + r / 6, r)


def log_tail(f):  # (log(1 + f) - f) / f^2
    return second_order(lambda f: (log1p(f) - f) / f**2, lambda f: -mpf(1) / 2 + f / 3, f)


def atanh_tail(z):  # log((1 + s) / (1 - s)) = 2 s + s z R(z), z = s^2
    s = sqrt(z)
    return (2 * atanh(s) - 2 * s) / (s * z)


def atanh_tail_5(z):  # = 2 s + 2/3 s z + s z^2 R(z)
    s = sqrt(z)
    return (2 * atanh(s) - 2 * s - 2 * s * z / 3) / (s * z * z)


def sin_tail(z):  # sin(r) = r + r z S(z)
    r = sqrt(z)
    return (sin(r) - r) / (r * z)


def cos_tail(z):  # cos(r) = 1 - z / 2 + z^2 C(z)
    return (cos(sqrt(z)) - 1 + z / 2) / z**2


def split(value, bits, parts):
    """The value as a sum of doubles or floats, each the rest rounded to `bits` bits."""
    out = []
    for _ in range(parts):
        e = int(mp.floor(log(abs(value), 2))) + 1
        scale = mpf(2) ** (bits - e)
        part = mp.nint(value * scale) / scale
        out.append(part)
        value -= part
    return out


def main():
    ln2 = log(mpf(2))
    print("// Made by tests/oracle/fit_polynomials.py; do not edit. Lowest degree first.")
    print("#pragma once\n#include <cstdint>\n\nnamespace stet::coefficients {\n")
    for name, value, bits, parts in [
        ("ln2_f32", ln2, 15, 1), ("ln2_f64", ln2, 41, 1), ("half_pi_f64", pi / 2, 53, 3), ("log10_e", 1 / log(mpf(10)), 53, 1)]:
        pieces = split(value, bits, parts)
        rest = value - sum(pieces)
        print(f"inline constexpr double {name}[] = {{" + ", ".join(repr(float(p)) for p in pieces + [rest]) + "};")
    print(f"inline constexpr double log2_e = {float(1 / ln2)!r};")
    print(f"inline constexpr double log2_e_rest = {float(1 / ln2 - float(1 / ln2))!r};")
    print(f"inline constexpr double two_over_pi = {float(2 / pi)!r};")
    print("// 8 zeros and the first 1272 bits of 2 / pi, highest first.")
    mp.dps = 500
    bits = int(mp.floor(2 / pi * mpf(2) ** (64 * 20 - 8)))
    mp.dps = 60
    words = [f"0x{bits >> (64 * (19 - i)) & (2**64 - 1):016x}" for i in range(20)]
    print("inline constexpr std::uint64_t two_over_pi_bits[] = {" + ", ".join(words) + "};\n")

    narrow = mpf("0.35")
    # exp(r) = 1 + r + r^2 P(r), |r| <= ln 2 / 2
    weight = lambda r: r**2 / exp(r)
    emit("exp_f32", remez(exp_tail, weight, -narrow, narrow, 4), True)
    emit("exp_f64", remez(exp_tail, weight, -narrow, narrow, 9), False)
    emit("exp_short", remez(exp_tail, weight, -narrow, narrow, 5), False)
    emit("exp_rough", remez(exp_tail, weight, -narrow, narrow, 3), True)
    # expm1(r) = r + r^2 P(r), |r| <= ln 2 / 2
    weight = lambda r: r**2 / expm1(r)
    emit("expm1_f32", remez(exp_tail, weight, -narrow, narrow, 5), True)
    emit("expm1_f64", remez(exp_tail, weight, -narrow, narrow, 10), False)
    # log(1 + f) = f + f^2 Q(f), |f| <= 1/3
    emit("log_f32", remez(log_tail, lambda f: f**2 / log1p(f), -mpf("0.3334"), mpf("0.3334"), 8), True)
    # log((1 + s) / (1 - s)), |s| <= (sqrt(2) - 1) / (sqrt(2) + 1)
    z = mpf("0.02945")
    emit("log_f64", remez(atanh_tail, lambda z: z / 2, 0, z, 6), False)
    emit("log_short", remez(atanh_tail, lambda z: z / 2, 0, z, 3), False)
    emit("log_tail_f64", remez(atanh_tail_5, lambda z: z * z / 2, 0, z, 6), False)
    # sin, cos of |r| <= pi / 4
    z = (pi / 4 * mpf("1.01")) ** 2
    emit("sin_f32", remez(sin_tail, lambda z: z, 0, z, 2), True)
    emit("cos_f32", remez(cos_tail, lambda z: z * z, 0, z, 2), True)
    emit("sin_f64", remez(sin_tail, lambda z: z, 0, z, 5), False)
    emit("cos_f64", remez(cos_tail, lambda z: z * z, 0, z, 5), False)
    # erf(x) = x + x P(x^2) for |x| <= the bound below
    def erf_small(z):
        x = sqrt(z)
        return erf(x) / x - 1
    weight = lambda z: sqrt(z) / erf(sqrt(z))
    emit("erf_small_f32", remez(erf_small, weight, 0, mpf("0.93") ** 2, 5), True)
    emit("erf_small_f64", remez(erf_small, weight, 0, mpf("0.86") ** 2, 10), False)
    # erf(x) = 1 - exp(P(x)) above, until it rounds to 1
    emit("erf_large_f32", remez(lambda x: log(erfc(x)), lambda x: erfc(x) / erf(x), mpf("0.92"), mpf("4"), 6), True)
    # erfc(x) = exp(-x^2) P(q) / (x + k), q = (x - k) / (x + k)
    for name, k, top, degree, single in [("erfc_f32", 2, "10.1", 9, True), ("erfc_f64", 3, "27.3", 22, False)]:
        k = mpf(k)
        x_of = lambda q: k * (1 + q) / (1 - q)
        f = lambda q: erfcx(x_of(q)) * (x_of(q) + k)
        top = mpf(top)
        emit(name, remez(f, lambda q: 1 / f(q), -1, (top - k) / (top + k), degree), single)
    # atan(q) = q + q z P(z), z = q^2 <= 1
    def atan_tail(z):
        q = sqrt(z)
        return (atan(q) - q) / (q * z)
    weight = lambda z: sqrt(z) * z / atan(sqrt(z))
    emit("atan_f32", remez(atan_tail, weight, 0, 1, 9), True)
    emit("atan_f64", remez(atan_tail, weight, 0, 1, 20), False)
    # erfinv(x) = x P(w - middle), w = -log(1 - x^2); beyond w = 5 it is x P(sqrt(w) - middle)
    def inverse_error(w):
        x = sqrt(-expm1(-w)) if w > 0 else mpf(0)
        return erfinv(x) / x if w > 0 else sqrt(pi) / 2
    weight = lambda f: lambda t: 1 / f(t)
    near = lambda t: inverse_error(t + mpf("2.5"))
    far = lambda t: inverse_error((t + mpf("4.25")) ** 2)
    emit("erfinv_near", remez(near, weight(near), mpf("-2.5"), mpf("2.505"), 9), False)
    emit("erfinv_far", remez(far, weight(far), mpf("-2.02"), mpf("1.80"), 9), False)
    emit("erfinv_far_f32", remez(far, weight(far), mpf("-2.02"), mpf("-0.14"), 9), False)
    # log(gamma(2 + t)) = t P(t), |t| <= 1/2
    def log_gamma_slope(t):
        return loggamma(2 + t) / t if t != 0 else 1 - mp.euler
    emit("log_gamma", remez(log_gamma_slope, lambda t: 1 / log_gamma_slope(t), mpf("-0.5"), mpf("0.5"), 18), False)
    print("\n}  // namespace stet::coefficients")


main()
