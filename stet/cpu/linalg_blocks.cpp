#include "stet/cpu/linalg_blocks.h"

#include <cmath>
#include <limits>

#include "stet/cpu/copy_square.h"

namespace stet::cpu {
namespace {

/// Columns that are factorised at a time, and the sides of blocks that are updated at a time.
constexpr std::int64_t panel = 32, definite_panel = 64, tile = 128;
static_assert(panel <= square_side);

int as_int(std::int64_t size) { return static_cast<int>(size); }

/// A pivot of a definite matrix.
template <class T>
bool is_positive(T x) {
  return x > 0 && x <= std::numeric_limits<T>::max();
}

}  // namespace

template <class T>
std::int64_t factor_small_definite(T* u, std::int64_t n) {
  for (std::int64_t k = 0; k < n; ++k) {
    T* row = u + k * n;
    if (!is_positive(row[k])) return k;
    T root = std::sqrt(row[k]);
    row[k] = root;
    for (std::int64_t j = k + 1; j < n; ++j) row[j] /= root;
    for (std::int64_t i = k + 1; i < n; ++i) subtract_multiple(u + i * n + i, row + i, row[i], n - i);
  }
  return no_failure;
}

/// u [n, n], row-major, of which the upper triangle counts, becomes that of the factor. By LAPACK: to it, the triangle
/// is a lower one, for which OpenBLAS is quickest.
template <class T>
std::int64_t factor_upper(T* u, std::int64_t n, std::int64_t leading) {
  if (int info = lapack::potrf('L', as_int(n), u, as_int(leading)); info > 0) return info - 1;
  for (std::int64_t k = 0; k < n; ++k)
    if (!is_positive(u[k * leading + k])) return k;  // NaN passes through LAPACK
  return no_failure;
}

/// The same on all threads.
template <class T>
std::int64_t factor_large_upper(T* u, std::int64_t n) {
  for (std::int64_t k = 0; k < n; k += definite_panel) {
    std::int64_t width = std::min(definite_panel, n - k), next = k + width, rest = n - next;
    T* corner = u + k * n + k;
    if (std::int64_t at = factor_upper(corner, width, n); at != no_failure) return k + at;
    if (rest == 0) break;
    std::int64_t tiles = (rest + tile - 1) / tile;
    auto begin = [&](std::int64_t number) { return next + number * tile; };
    auto size = [&](std::int64_t number) { return std::min(tile, n - begin(number)); };
    for_blocks(tiles, [&](std::int64_t i) {
      lapack::trsm('R', 'L', 'T', 'N', as_int(size(i)), as_int(width), corner, as_int(n), u + k * n + begin(i),
                   as_int(n));
    });
    for_blocks(tiles * (tiles + 1) / 2, [&](std::int64_t number) {
      std::int64_t i = 0;
      while ((i + 1) * (i + 2) / 2 <= number) ++i;
      std::int64_t j = number - i * (i + 1) / 2;
      const T *right = u + k * n + begin(i), *above = u + k * n + begin(j);
      T* to = u + begin(j) * n + begin(i);
      if (i == j)
        lapack::syrk('L', 'N', as_int(size(i)), as_int(width), T(-1), right, as_int(n), T(1), to, as_int(n));
      else
        lapack::gemm('N', 'T', as_int(size(i)), as_int(size(j)), as_int(width), T(-1), right, as_int(n), above,
                     as_int(n), T(1), to, as_int(n));
    });
  }
  return no_failure;
}

/// f(row, rows, column, columns) for the squares on and below the diagonal of [n, n], on all threads.
template <class F>
void for_lower_squares(std::int64_t n, const F& f) {
  std::int64_t squares = (n + square_side - 1) / square_side;
  for_blocks(squares, [&](std::int64_t number) {
    std::int64_t i = squares - 1 - number;  // the most work first
    for (std::int64_t j = 0; j <= i; ++j)
      f(i * square_side, std::min(square_side, n - i * square_side), j * square_side,
        std::min(square_side, n - j * square_side));
  });
}

template <class T>
std::int64_t factor_definite(const T* x, T* l, std::int64_t n) {
  for_lower_squares(n, [&](std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) {
    copy_square(x + row * n + column, l + column * n + row, rows, columns, n, n);
  });
  if (std::int64_t at = n < shared_size ? factor_upper(l, n, n) : factor_large_upper(l, n); at != no_failure) return at;
  for_lower_squares(n, [&](std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) {
    T* upper = l + column * n + row;
    copy_square(upper, l + row * n + column, columns, rows, n, n);
    for (std::int64_t i = 0; i < columns; ++i)
      std::fill(row == column ? upper + i * n + i + 1 : upper + i * n, upper + i * n + rows, T(0));
  });
  return no_failure;
}

template <class T>
void factor_small(T* a, std::int64_t m, std::int64_t n, int* swaps) {
  for (std::int64_t k = 0; k < std::min(m, n); ++k) {
    std::int64_t best = k;
    for (std::int64_t i = k + 1; i < m; ++i)
      if (std::abs(a[i * n + k]) > std::abs(a[best * n + k])) best = i;
    swaps[k] = as_int(best);
    if (best != k) std::swap_ranges(a + k * n, a + (k + 1) * n, a + best * n);
    T pivot = a[k * n + k];
    if (pivot == 0) continue;
    for (std::int64_t i = k + 1; i < m; ++i) {
      T factor = a[i * n + k] /= pivot;
      subtract_multiple(a + i * n + k + 1, a + k * n + k + 1, factor, n - k - 1);
    }
  }
}

template <class T>
void factor_columns(T* a, std::int64_t m, std::int64_t n, int* swaps) {
  std::int64_t small = std::min(m, n);
  if (small < shared_size) {
    if (small > 0) lapack::getrf(as_int(m), as_int(n), a, as_int(m), swaps);
    for (std::int64_t k = 0; k < small; ++k) --swaps[k];
    return;
  }
  for (std::int64_t k = 0; k < small; k += panel) {
    std::int64_t width = std::min(panel, small - k), next = k + width;
    T* corner = a + k * m + k;
    lapack::getrf(as_int(m - k), as_int(width), corner, as_int(m), swaps + k);
    // The columns on the left only follow the exchanges; those on the right are updated, block by block.
    std::int64_t left = (k + tile - 1) / tile, right = (n - next + tile - 1) / tile;
    for_blocks(left + right, [&](std::int64_t number) {
      bool updated = number < right;
      std::int64_t from = updated ? next + number * tile : (number - right) * tile;
      std::int64_t columns = std::min(tile, (updated ? n : k) - from);
      T* block = a + from * m + k;
      lapack::laswp(as_int(columns), block, as_int(m), 1, as_int(width), swaps + k);
      if (!updated) return;
      // OpenBLAS substitutes several times as quickly on the right of a matrix as on the left.
      alignas(64) T rows[panel * tile];  // [width, columns]
      for (std::int64_t column = 0; column < columns; column += square_side)
        copy_square(block + column * m, rows + column, std::min(square_side, columns - column), width, m, tile);
      lapack::trsm('R', 'L', 'T', 'U', as_int(columns), as_int(width), corner, as_int(m), rows, as_int(tile));
      for (std::int64_t column = 0; column < columns; column += square_side)
        copy_square(rows + column, block + column * m, width, std::min(square_side, columns - column), tile, m);
      if (next < m)
        lapack::gemm('N', 'T', as_int(m - next), as_int(columns), as_int(width), T(-1), corner + width, as_int(m), rows,
                     as_int(tile), T(1), block + width, as_int(m));
    });
    for (std::int64_t i = k; i < next; ++i) swaps[i] += as_int(k) - 1;
  }
}

#define STET_INSTANTIATE(T)                                          \
  template std::int64_t factor_small_definite(T*, std::int64_t);     \
  template std::int64_t factor_definite(const T*, T*, std::int64_t); \
  template void factor_small(T*, std::int64_t, std::int64_t, int*);  \
  template void factor_columns(T*, std::int64_t, std::int64_t, int*);
STET_INSTANTIATE(float)
STET_INSTANTIATE(double)
#undef STET_INSTANTIATE

}  // namespace stet::cpu
