// Linear algebra on row-major matrices in memory, one at a time: small ones by loops of our own, others by LAPACK,
// large ones cut into blocks that the pool's threads share. How a matrix is cut depends on its sizes only.
//
// Every function is called within the scope of a LapackMemory, and throws UserError when there is no memory for its
// work. T is float or double. Results must not overlap operands.
#pragma once
#include <cstdint>

namespace stet::cpu {

/// What functions that may fail return: the row at which it did, or this.
inline constexpr std::int64_t no_failure = -1;

struct TriangularForm {
  bool lower = true, transpose = false, unit_diagonal = false;
};

/// l, lower triangular with zeros above, of x [n, n], of which the lower triangle is read: x = l l'. Fails at a pivot
/// that is not a positive number.
template <class T>
std::int64_t cholesky(const T* x, T* l, std::int64_t n);

/// y [n, right] with op(a) y = b. Fails at an element 0 on the diagonal.
template <class T>
std::int64_t triangular_solve(const T* a, const T* b, T* y, std::int64_t n, std::int64_t right, TriangularForm form);

/// y [n, right] with a y = b, by LU with partial pivoting. Fails at a pivot 0.
template <class T>
std::int64_t solve(const T* a, const T* b, T* y, std::int64_t n, std::int64_t right);

/// Row permutation[i] of x [m, n] is row i of l [m, k] times u [k, n]. Results may be null.
template <class T>
void lu(const T* x, std::int64_t* permutation, T* l, T* u, std::int64_t m, std::int64_t n);

/// The determinant, its sign (0 of a singular matrix), and the logarithm of its magnitude. Results may be null.
template <class T>
void determinant(const T* x, T* det, T* sign, T* log, std::int64_t n);

/// det(x) times the inverse: the transposed cofactors, which exist also where x is singular. Fails as svd does.
template <class T>
std::int64_t adjugate(const T* x, T* y, std::int64_t n);

/// x [m, n] = q r, columns of q orthonormal, r upper triangular with a diagonal that is not negative: q [m, k] and r
/// [k, n], or (full) q [m, m] and r [m, n]. Results may be null.
template <class T>
void qr(const T* x, T* q, T* r, std::int64_t m, std::int64_t n, bool full);

/// x [m, n] = u diag(s) vh, s descending; the component of largest magnitude of every column of u is positive (of the
/// rows of vh that have no column of u, that of the row). Fails (at 0) if x is not finite or it does not converge.
/// u and vh may both be null.
template <class T>
std::int64_t svd(const T* x, T* u, T* s, T* vh, std::int64_t m, std::int64_t n, bool full);

/// x v = v diag(w) of the symmetric matrix x [n, n] of which the lower triangle is read, w ascending; the component of
/// largest magnitude of every column of v is positive. Fails as svd does. v may be null.
template <class T>
std::int64_t eigh(const T* x, T* w, T* v, std::int64_t n);

}  // namespace stet::cpu
