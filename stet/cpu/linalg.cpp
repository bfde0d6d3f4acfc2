#include "stet/cpu/linalg.h"

#include <cmath>
#include <numeric>

#include "stet/cpu/copy_square.h"
#include "stet/cpu/linalg_blocks.h"

namespace stet::cpu {
namespace {

/// Columns of right sides that are solved for at a time.
constexpr std::int64_t right_block = 64;

int as_int(std::int64_t size) { return static_cast<int>(size); }
std::int64_t squared(std::int64_t n) { return n * n; }

/// to [n, m] = the transpose of from [m, n], both row-major.
template <class T>
void transpose(const T* from, T* to, std::int64_t m, std::int64_t n) {
  for (std::int64_t i = 0; i < m; i += square_side)
    for (std::int64_t j = 0; j < n; j += square_side)
      copy_square(from + i * n + j, to + j * m + i, std::min(square_side, m - i), std::min(square_side, n - j), n, m);
}

template <class T>
bool all_finite(const T* x, std::int64_t count) {
  T sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += x[i] * 0;  // NaN if any is not
  return sum == 0;
}

template <class T>
void set_identity(T* x, std::int64_t n) {
  std::fill(x, x + n * n, T(0));
  for (std::int64_t i = 0; i < n; ++i) x[i * n + i] = 1;
}

/// Whether the element of largest magnitude (the first of equals) is negative.
template <class T>
bool points_down(const T* x, std::int64_t count, std::int64_t stride) {
  T best = 0;
  for (std::int64_t i = 0; i < count; ++i)
    if (std::abs(x[i * stride]) > std::abs(best)) best = x[i * stride];
  return best < 0;
}
template <class T>
void negate(T* x, std::int64_t count, std::int64_t stride) {
  for (std::int64_t i = 0; i < count; ++i) x[i * stride] = -x[i * stride];
}

/// y with op(a) y = y, in place, for a matrix small enough for loops.
template <class T>
void substitute_small(const T* a, T* y, std::int64_t n, std::int64_t right, TriangularForm form) {
  bool forward = form.lower != form.transpose;
  for (std::int64_t step = 0; step < n; ++step) {
    std::int64_t i = forward ? step : n - 1 - step;
    T* row = y + i * right;
    std::int64_t first = forward ? 0 : i + 1, last = forward ? i : n;
    for (std::int64_t k = first; k < last; ++k)
      subtract_multiple(row, y + k * right, form.transpose ? a[k * n + i] : a[i * n + k], right);
    if (form.unit_diagonal) continue;
    T diagonal = a[i * n + i];
    for (std::int64_t j = 0; j < right; ++j) row[j] /= diagonal;
  }
}

/// The same by BLAS: to it, a is transposed, and y is a batch of rows.
template <class T>
void substitute(const T* a, T* y, std::int64_t n, std::int64_t right, TriangularForm form) {
  char uplo = form.lower ? 'U' : 'L', diagonal = form.unit_diagonal ? 'U' : 'N';
  if (right == 1)
    lapack::trsv(uplo, form.transpose ? 'N' : 'T', diagonal, as_int(n), a, as_int(n), y);
  else
    for_blocks((right + right_block - 1) / right_block, [&](std::int64_t number) {
      std::int64_t begin = number * right_block, columns = std::min(right_block, right - begin);
      lapack::trsm('R', uplo, form.transpose ? 'T' : 'N', diagonal, as_int(columns), as_int(n), a, as_int(n), y + begin,
                   as_int(right));
    });
}

/// The first 0 on the diagonal.
template <class T>
std::int64_t zero_on_diagonal(const T* a, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    if (a[i * n + i] == 0) return i;
  return no_failure;
}

template <class T>
std::int64_t solve_small(const T* a, T* y, std::int64_t n, std::int64_t right) {
  T factors[small_size * small_size];
  int swaps[small_size];
  std::copy(a, a + n * n, factors);
  factor_small(factors, n, n, swaps);
  if (std::int64_t at = zero_on_diagonal(factors, n); at != no_failure) return at;
  for (std::int64_t i = 0; i < n; ++i)
    if (swaps[i] != i) std::swap_ranges(y + i * right, y + (i + 1) * right, y + swaps[i] * right);
  substitute_small(factors, y, n, right, {.lower = true, .unit_diagonal = true});
  substitute_small(factors, y, n, right, {.lower = false});
  return no_failure;
}

/// The pivots' signs and exchanges, and their product as mantissa and exponent.
template <class T>
void multiply_pivots(const T* factors, const int* swaps, std::int64_t n, T* det, T* sign, T* log) {
  double product = 1, logarithm = 0;
  std::int64_t exponent = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    double pivot = static_cast<double>(factors[i * n + i]);
    int moved = 0;
    product = std::frexp(product * (swaps[i] == i ? pivot : -pivot), &moved);
    exponent += moved;
    logarithm += std::log(std::abs(pivot));
  }
  int shift = as_int(std::clamp<std::int64_t>(exponent, -5000, 5000));
  if (det) *det = static_cast<T>(std::ldexp(product, shift));
  if (sign) *sign = std::isnan(product) ? static_cast<T>(product) : T(product > 0) - T(product < 0);
  if (log) *log = static_cast<T>(logarithm);
}

}  // namespace

template <class T>
std::int64_t cholesky(const T* x, T* l, std::int64_t n) {
  if (n <= small_size) {
    T u[small_size * small_size];
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j <= i; ++j) u[j * n + i] = x[i * n + j];
    if (std::int64_t at = factor_small_definite(u, n); at != no_failure) return at;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) l[i * n + j] = j <= i ? u[j * n + i] : T(0);
    return no_failure;
  }
  return factor_definite(x, l, n);
}

template <class T>
std::int64_t triangular_solve(const T* a, const T* b, T* y, std::int64_t n, std::int64_t right, TriangularForm form) {
  if (!form.unit_diagonal)
    if (std::int64_t at = zero_on_diagonal(a, n); at != no_failure) return at;
  std::copy(b, b + n * right, y);
  if (n <= small_size)
    substitute_small(a, y, n, right, form);
  else if (right > 0)
    substitute(a, y, n, right, form);
  return no_failure;
}

template <class T>
std::int64_t solve(const T* a, const T* b, T* y, std::int64_t n, std::int64_t right) {
  std::copy(b, b + n * right, y);
  if (n <= small_size) return solve_small(a, y, n, right);
  // LAPACK factorises a': with y and b transposed too, both triangles stand on the right of y.
  Scratch<T> factors(squared(n));
  Scratch<int> swaps(n);
  std::copy(a, a + n * n, factors.data());
  factor_columns(factors.data(), n, n, swaps.data());
  if (std::int64_t at = zero_on_diagonal(factors.data(), n); at != no_failure) return at;
  if (right == 0) return no_failure;
  substitute(factors.data(), y, n, right, {.lower = true});
  substitute(factors.data(), y, n, right, {.lower = false, .unit_diagonal = true});
  for (std::int64_t i = n; i-- > 0;)
    if (swaps[i] != i) std::swap_ranges(y + i * right, y + (i + 1) * right, y + swaps[i] * right);
  return no_failure;
}

template <class T>
void lu(const T* x, std::int64_t* permutation, T* l, T* u, std::int64_t m, std::int64_t n) {
  std::int64_t k = std::min(m, n);
  Scratch<T> rows(m * n);
  Scratch<int> swaps(k);
  if (std::max(m, n) <= small_size) {
    std::copy(x, x + m * n, rows.data());
    factor_small(rows.data(), m, n, swaps.data());
  } else {
    Scratch<T> columns(m * n);
    transpose(x, columns.data(), m, n);
    factor_columns(columns.data(), m, n, swaps.data());
    transpose(columns.data(), rows.data(), n, m);
  }
  if (permutation) {
    std::iota(permutation, permutation + m, std::int64_t{0});
    for (std::int64_t i = 0; i < k; ++i) std::swap(permutation[i], permutation[swaps[i]]);
  }
  if (l)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < k; ++j) l[i * k + j] = j < i ? rows[i * n + j] : T(j == i);
  if (u)
    for (std::int64_t i = 0; i < k; ++i)
      for (std::int64_t j = 0; j < n; ++j) u[i * n + j] = j < i ? T(0) : rows[i * n + j];
}

template <class T>
void determinant(const T* x, T* det, T* sign, T* log, std::int64_t n) {
  if (n <= small_size) {
    T factors[small_size * small_size];
    int swaps[small_size];
    std::copy(x, x + n * n, factors);
    factor_small(factors, n, n, swaps);
    return multiply_pivots(factors, swaps, n, det, sign, log);
  }
  Scratch<T> factors(squared(n));
  Scratch<int> swaps(n);
  std::copy(x, x + n * n, factors.data());
  factor_columns(factors.data(), n, n, swaps.data());
  multiply_pivots(factors.data(), swaps.data(), n, det, sign, log);
}

/// x = u diag(s) vh, so the adjugate is vh' diag(products of the other s) u', times the determinants of u and vh.
template <class T>
std::int64_t adjugate(const T* x, T* y, std::int64_t n) {
  if (n == 0) return no_failure;
  Scratch<T> u(squared(n)), s(n), vh(squared(n)), others(n);
  if (std::int64_t at = svd(x, u.data(), s.data(), vh.data(), n, n, true); at != no_failure) return at;
  T left = 0, right = 0;
  determinant<T>(u.data(), nullptr, &left, nullptr, n);
  determinant<T>(vh.data(), nullptr, &right, nullptr, n);
  T before = left * right;
  for (std::int64_t i = 0; i < n; ++i) {
    others[i] = before;
    before *= s[i];
  }
  T after = 1;
  for (std::int64_t i = n; i-- > 0;) {
    others[i] *= after;
    after *= s[i];
    for (std::int64_t j = 0; j < n; ++j) vh[i * n + j] *= others[i];
  }
  lapack::gemm('T', 'T', as_int(n), as_int(n), as_int(n), T(1), u.data(), as_int(n), vh.data(), as_int(n), T(0), y,
               as_int(n));
  return no_failure;
}

/// LAPACK sees x' and splits it into a lower triangle (r, transposed) and rows (q, transposed).
template <class T>
void qr(const T* x, T* q, T* r, std::int64_t m, std::int64_t n, bool full) {
  std::int64_t k = std::min(m, n), left = full ? m : k;
  if (k == 0) {
    if (q && full) set_identity(q, m);
    if (r) std::fill(r, r + left * n, T(0));
    return;
  }
  Scratch<T> a(m * n), tau(k), work(64 * std::max(m, n));
  int lwork = as_int(64 * std::max(m, n));
  std::copy(x, x + m * n, a.data());
  lapack::gelqf(as_int(n), as_int(m), a.data(), as_int(n), tau.data(), work.data(), lwork);
  auto down = [&](std::int64_t j) { return a[j * n + j] < 0; };
  if (r)
    for (std::int64_t j = 0; j < left; ++j)
      for (std::int64_t i = 0; i < n; ++i)
        r[j * n + i] = j >= k || i < j ? T(0) : down(j) ? -a[j * n + i] : a[j * n + i];
  if (!q) return;
  for (std::int64_t row = 0; row < m; ++row) std::copy(a.data() + row * n, a.data() + row * n + k, q + row * left);
  lapack::orglq(as_int(left), as_int(m), as_int(k), q, as_int(left), tau.data(), work.data(), lwork);
  for (std::int64_t j = 0; j < k; ++j)
    if (down(j)) negate(q + j, m, left);
}

/// LAPACK sees x' = vh' diag(s) u', and gives vh' and u' column-major: vh and u.
template <class T>
std::int64_t svd(const T* x, T* u, T* s, T* vh, std::int64_t m, std::int64_t n, bool full) {
  std::int64_t k = std::min(m, n), left = full ? m : k, right = full ? n : k;
  if (!all_finite(x, m * n)) return 0;
  if (k == 0) {
    if (u && full) set_identity(u, m);
    if (vh && full) set_identity(vh, n);
    return no_failure;
  }
  bool vectors = u || vh;
  char job = !vectors ? 'N' : full ? 'A' : 'S';
  Scratch<T> a(m * n), own_u(vectors && !u ? m * left : 0), own_vh(vectors && !vh ? right * n : 0), own_s(s ? 0 : k);
  Scratch<int> integers(8 * k);
  if (!u) u = own_u.data();
  if (!vh) vh = own_vh.data();
  if (!s) s = own_s.data();
  std::copy(x, x + m * n, a.data());
  auto run = [&](T* work, int lwork) {
    return lapack::gesdd(job, as_int(n), as_int(m), a.data(), as_int(n), s, vh, as_int(n), u, as_int(left), work, lwork,
                         integers.data());
  };
  T size = 0;
  run(&size, -1);
  Scratch<T> work(static_cast<std::int64_t>(size) + 1);
  if (run(work.data(), as_int(static_cast<std::int64_t>(size))) != 0) return 0;
  if (!vectors) return no_failure;
  for (std::int64_t j = 0; j < left; ++j)
    if (points_down(u + j, m, left)) {
      negate(u + j, m, left);
      if (j < k) negate(vh + j * n, n, 1);
    }
  for (std::int64_t j = k; j < right; ++j)
    if (points_down(vh + j * n, n, 1)) negate(vh + j * n, n, 1);
  return no_failure;
}

template <class T>
std::int64_t eigh(const T* x, T* w, T* v, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    if (!all_finite(x + i * n, i + 1)) return 0;
  if (n == 0) return no_failure;
  std::int64_t size = v ? 1 + 6 * n + 2 * n * n : 0, integers = v ? 3 + 5 * n : 1;
  size = std::max(size, 66 * n + 1);
  Scratch<T> a(squared(n)), work(size), own_w(w ? 0 : n);
  Scratch<int> integer_work(integers);
  if (!w) w = own_w.data();
  std::copy(x, x + n * n, a.data());
  // To LAPACK, the row-major lower triangle is an upper one, and vectors are columns: rows here.
  int info = lapack::syevd(v ? 'V' : 'N', 'U', as_int(n), a.data(), as_int(n), w, work.data(), as_int(size),
                           integer_work.data(), as_int(integers));
  if (info != 0) return 0;
  if (!v) return no_failure;
  for (std::int64_t j = 0; j < n; ++j)
    if (points_down(a.data() + j * n, n, 1)) negate(a.data() + j * n, n, 1);
  transpose(a.data(), v, n, n);
  return no_failure;
}

#define STET_INSTANTIATE(T)                                                                                   \
  template std::int64_t cholesky(const T*, T*, std::int64_t);                                                 \
  template std::int64_t triangular_solve(const T*, const T*, T*, std::int64_t, std::int64_t, TriangularForm); \
  template std::int64_t solve(const T*, const T*, T*, std::int64_t, std::int64_t);                            \
  template void lu(const T*, std::int64_t*, T*, T*, std::int64_t, std::int64_t);                              \
  template void determinant(const T*, T*, T*, T*, std::int64_t);                                              \
  template std::int64_t adjugate(const T*, T*, std::int64_t);                                                 \
  template void qr(const T*, T*, T*, std::int64_t, std::int64_t, bool);                                       \
  template std::int64_t svd(const T*, T*, T*, T*, std::int64_t, std::int64_t, bool);                          \
  template std::int64_t eigh(const T*, T*, T*, std::int64_t);
STET_INSTANTIATE(float)
STET_INSTANTIATE(double)
#undef STET_INSTANTIATE

}  // namespace stet::cpu
