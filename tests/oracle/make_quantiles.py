"""Writes tests/public/random_quantiles.h: what SciPy says of distributions, for chi-square tests of draws.

    /usr/bin/python3 tests/oracle/make_quantiles.py | clang-format > tests/public/random_quantiles.h
"""

import numpy as np
from scipy import special, stats

CUTS = 32



def continuous(name, distribution):
    below = np.arange(1, CUTS) / CUTS
    return name, distribution.mean(), distribution.var(), distribution.ppf(below), below


def discrete(name, distribution):
    """Cuts where the distribution function has grown by 1/32 at least, on both sides."""
    edges, below, last = [], [], 0.0
    for value in range(int(distribution.ppf(1e-6)), int(distribution.ppf(1 - 1e-6)) + 1):
        p = distribution.cdf(value)
        if p - last >= 1 / CUTS and p <= 1 - 1 / CUTS:
            edges.append(float(value))
            below.append(p)
            last = p
    return name, distribution.mean(), distribution.var(), edges, below


TABLES = [
    continuous("uniform", stats.uniform(-2.5, 9.5)),
    continuous("normal", stats.norm(1, 2)),
    continuous("truncated_normal", stats.truncnorm(-2, 2, 1, 2)),
    continuous("gumbel", stats.gumbel_r(0.5, 2)),
    continuous("exponential", stats.expon(0, 1 / 1.5)),
    continuous("laplace", stats.laplace(-1, 0.5)),
    continuous("logistic", stats.logistic(1, 0.5)),
    continuous("gamma 0.3", stats.gamma(0.3)),
    continuous("gamma 1", stats.gamma(1)),
    continuous("gamma 2.5 4", stats.gamma(2.5, scale=1 / 4)),
    continuous("gamma 50", stats.gamma(50)),
    continuous("gamma 1e6", stats.gamma(1e6)),
    continuous("beta 0.5 0.5", stats.beta(0.5, 0.5)),
    continuous("beta 2 5", stats.beta(2, 5)),
    continuous("dirichlet", stats.beta(1.5, 0.5 + 4)),
    continuous("chi2", stats.chi2(3)),
    continuous("student_t", stats.t(5)),
    discrete("poisson 0.1", stats.poisson(0.1)),
    discrete("poisson 1", stats.poisson(1)),
    discrete("poisson 10", stats.poisson(10)),
    discrete("poisson 31.9", stats.poisson(31.9)),
    discrete("poisson 32.1", stats.poisson(32.1)),
    discrete("poisson 1000", stats.poisson(1000)),
    discrete("poisson 1e6", stats.poisson(1e6)),
    discrete("multinomial", stats.binom(40, 0.3)),
]


def listed(values):
    return "{" + ", ".join(repr(float(v)) for v in values) + "}"


print("// What SciPy says of distributions. Written by tests/oracle/make_quantiles.py. Do not edit.")
print("#pragma once\n#include <string>\n#include <vector>\n\nnamespace stet {\n")
print("/// A number is at most edges[i] with probability below[i].")
print("struct QuantileTable {\n  std::string name;\n  double mean, variance;\n  std::vector<double> edges, below;\n};")
print("inline const std::vector<QuantileTable> quantile_tables = {")
for name, mean, variance, edges, below in TABLES:
    print(f'{{"{name}", {float(mean)!r}, {float(variance)!r}, {listed(edges)}, {listed(below)}}},')
print("};\n")
print("/// What chi-square with this many degrees of freedom is above with probability 1e-7.")
print("inline const std::vector<double> chi_square_bounds = " +
      listed([0] + [float(special.chdtri(k, 1e-7)) for k in range(1, CUTS)]) + ";")
print("\n}  // namespace stet")
