"""Linear algebra: NumPy in double, signs chosen as the rows document it."""

import numpy as np

from oracle import ALL, row

MATRICES = ["f32", "f64"]


def of_each(function, x, *others):
    """The function of every matrix of a batch; results stacked."""
    x = np.asarray(x, dtype=float)
    batch = x.shape[:-2]
    parts = [function(x[at]) for at in np.ndindex(*batch)]
    if not parts:  # an empty batch: the shapes of one matrix
        one = function(np.eye(*x.shape[-2:]))
        one = one if isinstance(one, tuple) else (one,)
        out = tuple(np.zeros(batch + np.shape(p), np.asarray(p).dtype) for p in one)
        return out if len(out) > 1 else out[0]
    if isinstance(parts[0], tuple):
        return tuple(np.stack([p[i] for p in parts]).reshape(batch + np.shape(parts[0][i])) for i in range(len(parts[0])))
    return np.stack(parts).reshape(batch + np.shape(parts[0]))


def symmetric(x):
    return np.tril(x) + np.tril(x, -1).T


def sign_of(v):
    return -1.0 if v.size and v[np.argmax(np.abs(v))] < 0 else 1.0


@row("band_part", types=ALL, moves=False)
def band_part(x, lower, upper):
    i, j = np.indices(x.shape[-2:])
    keep = ((i - j <= lower) | (lower < 0)) & ((j - i <= upper) | (upper < 0))
    return np.where(keep, x, np.zeros(1, dtype=x.dtype))


@row("cholesky", types=MATRICES)
def cholesky(x):
    return of_each(lambda a: np.linalg.cholesky(symmetric(a)) if a.size else a, x)


@row("triangular_solve", types=MATRICES)
def triangular_solve(a, b, lower, transpose, unit_diagonal):
    a = np.tril(a) if int(lower) else np.triu(a)
    n = a.shape[-1]
    if int(unit_diagonal):
        a = a * (1 - np.eye(n)) + np.eye(n)
    return solved(np.swapaxes(a, -1, -2) if int(transpose) else a, b)


def solved(a, b):
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return np.linalg.solve(np.broadcast_to(a, batch + a.shape[-2:]), np.broadcast_to(b, batch + b.shape[-2:]))


@row("solve", types=MATRICES)
def solve(a, b):
    return solved(a, b)


@row("lu", types=MATRICES)
def lu(x):
    def one(a):
        a = a.copy()
        m, n = a.shape
        k = min(m, n)
        rows = np.arange(m)
        for c in range(k):
            best = c + int(np.argmax(np.abs(a[c:, c])))
            a[[c, best]], rows[[c, best]] = a[[best, c]], rows[[best, c]]
            if a[c, c] != 0:
                a[c + 1:, c] /= a[c, c]
                a[c + 1:, c + 1:] -= np.outer(a[c + 1:, c], a[c, c + 1:])
        return rows, np.tril(a, -1)[:, :k] + np.eye(m, k), np.triu(a)[:k]
    return of_each(one, x)


@row("det", types=MATRICES)
def det(x):
    return np.linalg.det(x)


@row("slogdet", types=MATRICES)
def slogdet(x):
    sign, log = np.linalg.slogdet(x)
    return sign, log


@row("adjugate", types=MATRICES)
def adjugate(x):
    def one(a):
        n = len(a)
        out = np.zeros((n, n))
        for i in range(n):
            for j in range(n):
                out[j, i] = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1))
        return out
    return of_each(one, x)


def signed_qr(a, mode):
    q, r = np.linalg.qr(a, mode)
    for j in range(min(a.shape)):
        if r[j, j] < 0:
            r[j], q[:, j] = -r[j], -q[:, j]
    return q, r


@row("qr", types=MATRICES)
def qr(x):
    return of_each(lambda a: signed_qr(a, "reduced"), x)


@row("qr_complete", types=MATRICES)
def qr_complete(x):
    return of_each(lambda a: signed_qr(a, "complete"), x)


def signed_svd(a, full):
    u, s, vh = np.linalg.svd(a, full_matrices=full)
    for j in range(u.shape[1]):
        sign = sign_of(u[:, j])
        u[:, j] *= sign
        if j < len(s):
            vh[j] *= sign
    for j in range(len(s), vh.shape[0]):
        vh[j] *= sign_of(vh[j])
    return u, s, vh


@row("svd", types=MATRICES)
def svd(x):
    return of_each(lambda a: signed_svd(a, False), x)


@row("svd_full", types=MATRICES)
def svd_full(x):
    return of_each(lambda a: signed_svd(a, True), x)


@row("svdvals", types=MATRICES)
def svdvals(x):
    return np.linalg.svd(x, compute_uv=False)


@row("eigh", types=MATRICES)
def eigh(x):
    def one(a):
        w, v = np.linalg.eigh(symmetric(a))
        for j in range(len(w)):
            v[:, j] *= sign_of(v[:, j])
        return w, v
    return of_each(one, x)


@row("eigvalsh", types=MATRICES)
def eigvalsh(x):
    return of_each(lambda a: np.linalg.eigvalsh(symmetric(a)), x)


@row("pinv", types=MATRICES)
def pinv(x, rtol):
    return np.linalg.pinv(x, rcond=float(rtol) if float(rtol) >= 0 else 1e-13)
