"""stet/ops/statistics.cpp. Along the last axis, or all."""

import numpy as np

from oracle import composite


@composite("var", "values")
def var(x):
    return ((x - x.mean(-1, keepdims=True)) ** 2).mean(-1)


@composite("var_of_all", "values")
def var_of_all(x):
    return ((x - x.mean()) ** 2).mean() + np.zeros(x.shape[:-1], dtype=np.longdouble)


@composite("stddev", "values")
def stddev(x):
    return np.sqrt(var(x))


@composite("norm_1", "shifted")
def norm_1(x):
    return abs(x).sum(-1)


@composite("norm_2", "shifted")
def norm_2(x):
    return np.sqrt((x**2).sum(-1))


@composite("norm_3", "shifted")
def norm_3(x):
    return (abs(x) ** 3).sum(-1) ** (1 / np.longdouble(3))


@composite("norm_infinite", "shifted")
def norm_infinite(x):
    return abs(x).max(-1)


@composite("logsumexp", "values")
def logsumexp(x):
    return np.log(np.exp(x).sum(-1))


@composite("average", "values", "probabilities")
def average(x, w):
    return (x * w).sum(-1) / w.sum(-1)


@composite("average_of_axis", "values", "scale")
def average_of_axis(x, w):
    return (x * w).sum(-1) / w.sum(-1)


@composite("nansum", "gapped")
def nansum(x):
    return np.where(np.isnan(x), 0, x).sum(-1)


@composite("nanmean", "gapped")
def nanmean(x):
    return nansum(x) / (~np.isnan(x)).sum(-1)


@composite("nanvar", "gapped")
def nanvar(x):
    squares = np.where(np.isnan(x), 0, (x - nanmean(x)[..., None]) ** 2)
    return squares.sum(-1) / (~np.isnan(x)).sum(-1)


@composite("nanstd", "gapped")
def nanstd(x):
    return np.sqrt(nanvar(x))
