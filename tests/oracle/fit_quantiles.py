"""Fits the quantile functions that stet/ops/random_coefficients.h holds, with SciPy as their truth:

    python3 tests/oracle/fit_quantiles.py > stet/ops/random_coefficients.h

A quantile function of a standard normal number z: what has the wanted distribution if z is normal. Of the gamma distribution
with shape a it is a * G(z / sqrt(a), 1 / a)^3, of the Poisson distribution with rate r the integer part of
r * R(z / sqrt(r), 1 / r). G and R are polynomials; errors are in units of z, weighted as much as such z are likely.
"""

import sys

import numpy as np
from scipy import special


def gamma_quantile(a, z):
    return np.where(z < 0, special.gammaincinv(a, special.ndtr(z)), special.gammainccinv(a, special.ndtr(-z)))


def poisson_quantile(rate, z):
    """x such that a Poisson number is below floor(x) + 1 with the probability of a normal one below z: Q(x, rate)."""
    low, high = np.full_like(z, 1e-9), rate + 12 * np.sqrt(rate) + 60
    for _ in range(200):
        middle = (low + high) / 2
        below = np.where(z < 0, special.gammaincc(middle, rate) < special.ndtr(z),
                         special.gammainc(middle, rate) > special.ndtr(-z))
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def nodes(count):
    return (np.cos(np.pi * (np.arange(count) + 0.5) / count) + 1) / 2


def fit(name, least, quantile, slope, degree, orders, weight, z_most, about):
    """Polynomials in z / sqrt(a) of `degree` - 2j for 1 / a to the power j, for a from `least` on."""
    a, z = np.meshgrid(least / nodes(40), 8.6 * np.sin(np.linspace(-1, 1, 241) * np.pi / 2))
    a, z = a.ravel(), z.ravel()
    chosen = (a < 1e6) & (abs(z) < z_most)
    a, z = a[chosen], z[chosen]
    value = quantile(a, z)
    s_unit, terms = 3 / np.sqrt(least), [(i, j) for j in range(orders) for i in range(degree - 2 * j)]
    s, d = z / np.sqrt(a) / s_unit, least / a
    columns = np.array([s**i * d**j for i, j in terms]).T
    scale = np.exp(-weight * z * z) * slope * np.sqrt(a)
    found = np.linalg.lstsq(columns * scale[:, None], value * scale, rcond=1e-17)[0]
    errors = abs(columns @ found - value) * slope * np.sqrt(a)
    distance = (errors * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)).max()
    print(f"{name}: distribution functions differ by {distance:.1e}; by |z|",
          [f"{errors[abs(z) <= most].max():.1e}" for most in (2, 4, 5, 6, 7, 8.6)], file=sys.stderr)
    print(f"\n/// {about} Distribution functions differ by {distance:.0e} at most.")
    print(f"inline constexpr double {name}_least = {least}, {name}_unit = {s_unit!r};")
    print(f"inline constexpr std::initializer_list<double> {name}_terms[] = {{")
    for order in range(orders):
        print("    {" + ", ".join(repr(float(c)) for c, (i, j) in zip(found, terms) if j == order) + "},")
    print("};")


def truncated_normal():
    bound = special.erf(np.sqrt(2))
    w = nodes(400)
    q = -np.log1p(-((bound * w) ** 2))
    value = np.sqrt(2) * special.erfinv(bound * w) / w
    fitted = np.polynomial.Chebyshev.fit(q, value, 14, domain=[0, -np.log1p(-(bound**2))])
    terms = fitted.convert(kind=np.polynomial.Polynomial).coef
    error = abs(np.polynomial.polynomial.polyval(q, terms) / value - 1).max()
    print(f"truncated normal: relative error {error:.1e}", file=sys.stderr)
    print("\n/// The truncated normal quantile of probability (1 + w) / 2 over w, in powers of -log(1 - (bound * w)^2).")
    print(f"inline constexpr double truncated_bound = {float(bound)!r};")
    print("inline constexpr std::initializer_list<double> truncated_terms = {" + ", ".join(repr(float(c)) for c in terms) + "};")


print("// Quantile functions as polynomials. Written by tests/oracle/fit_quantiles.py. Do not edit.\n#pragma once")
print("#include <initializer_list>\n\nnamespace stet {")
fit("gamma", 8, lambda a, z: np.cbrt(gamma_quantile(a, z) / a), 3, 16, 6, 0.1, 8.6,
    "The cube root of a gamma number over its shape a, from 8 on.")
fit("poisson", 32, lambda a, z: poisson_quantile(a, z) / a, 1, 14, 5, 0.15, 7,
    "A Poisson number over its rate, from 32 on, before it is rounded down.")
truncated_normal()
print("\n}  // namespace stet")
