// Vectors of floats for one instruction set, which the including file has chosen by its compiler options. Everything is
// in a nameless namespace: the linker must not take one file's code for another's.
#pragma once
#include <cmath>
#include <cstdint>
#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

namespace {

#if defined(__AVX512F__)
using Vector = __m512;
typedef std::int32_t Integers __attribute__((vector_size(64)));
constexpr int max_rows = 6, max_vectors = 4;  // a tile: 24 sums of 32 registers
#elif defined(__AVX2__)
using Vector = __m256;
typedef std::int32_t Integers __attribute__((vector_size(32)));
constexpr int max_rows = 6, max_vectors = 2;  // 12 sums of 16 registers
#else
typedef float Vector __attribute__((vector_size(16)));
typedef std::int32_t Integers __attribute__((vector_size(16)));
constexpr int max_rows = 4, max_vectors = 2;
#endif
typedef float LooseVector __attribute__((vector_size(sizeof(Vector)), aligned(4), may_alias));
constexpr int lanes = sizeof(Vector) / sizeof(float), panel = max_vectors * lanes;

#define STET_INLINE [[gnu::always_inline]] inline
#define STET_LAMBDA __attribute__((always_inline))  // after the parameters of a lambda

STET_INLINE Vector load(const float* from) { return *reinterpret_cast<const LooseVector*>(from); }
STET_INLINE void store(float* to, Vector value) { *reinterpret_cast<LooseVector*>(to) = value; }
STET_INLINE Vector fill(float value) { return Vector{} + value; }

/// a * b + c, and c - a * b.
STET_INLINE Vector multiply_add(Vector a, Vector b, Vector c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}
STET_INLINE Vector subtract_product(Vector a, Vector b, Vector c) {
#if defined(__AVX512F__)
  return _mm512_fnmadd_ps(a, b, c);
#elif defined(__AVX2__)
  return _mm256_fnmadd_ps(a, b, c);
#else
  return c - a * b;
#endif
}

STET_INLINE Vector larger(Vector a, Vector b) { return a > b ? a : b; }
/// `value` where the condition is above zero, zero elsewhere.
STET_INLINE Vector where_positive(Vector condition, Vector value) { return condition > Vector{} ? value : Vector{}; }

STET_INLINE float sum_of(Vector value) {
  float total = 0;
  for (int lane = 0; lane < lanes; ++lane) total += value[lane];
  return total;
}
STET_INLINE float largest_of(Vector value) {
  float largest = value[0];
  for (int lane = 1; lane < lanes; ++lane) largest = value[lane] > largest ? value[lane] : largest;
  return largest;
}

/// e^x for x <= 0: 2^n times a polynomial of the rest.
STET_INLINE Vector exponential(Vector x) {
  x = larger(x, fill(-87.f));
  Vector scaled = x * 1.44269504f;
  Integers power = __builtin_convertvector(scaled - 0.5f, Integers);  // rounds towards zero: to the nearest here
  Vector n = __builtin_convertvector(power, Vector);
  Vector rest = subtract_product(n, fill(0.693359375f), x);
  rest = subtract_product(n, fill(-2.12194440e-4f), rest);
  Vector y = fill(1.9875691500e-4f);
  y = multiply_add(y, rest, fill(1.3981999507e-3f));
  y = multiply_add(y, rest, fill(8.3334519073e-3f));
  y = multiply_add(y, rest, fill(4.1665795894e-2f));
  y = multiply_add(y, rest, fill(1.6666665459e-1f));
  y = multiply_add(y, rest, fill(5.0000001201e-1f));
  y = multiply_add(y * rest, rest, rest) + 1.f;
  return y * reinterpret_cast<Vector>((power + 127) << 23);
}

/// a / (sqrt(b) + c).
STET_INLINE Vector over_root(Vector a, Vector b, Vector c) {
#if defined(__AVX512F__)
  // The divider, not estimates and a step of Newton's: it works while the next weights come from memory.
  return a / (_mm512_sqrt_ps(b) + c);
#elif defined(__AVX2__)
  return a / (_mm256_sqrt_ps(b) + c);
#else
  Vector root = b;
  for (int lane = 0; lane < lanes; ++lane) root[lane] = std::sqrt(b[lane]);
  return a / (root + c);
#endif
}

/// to[column][row] = from[row][column] for lanes rows and columns, passing each row of the result through `change`.
template <class Change>
STET_INLINE void transpose(const float* from, std::int64_t from_stride, float* to, std::int64_t to_stride,
                           const Change& change) {
#if defined(__AVX512F__)
  __m512 a[16], b[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) a[i] = load(from + i * from_stride);
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    a[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(b[i]), _mm512_castps_pd(b[i + 2])));
    a[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(b[i]), _mm512_castps_pd(b[i + 2])));
    a[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(b[i + 1]), _mm512_castps_pd(b[i + 3])));
    a[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(b[i + 1]), _mm512_castps_pd(b[i + 3])));
  }
  // a[4 g + c] has, in quarter q, rows 4 g to 4 g + 3 of column 4 q + c.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    __m512 low = _mm512_shuffle_f32x4(a[c], a[4 + c], 0x88), high = _mm512_shuffle_f32x4(a[c], a[4 + c], 0xdd);
    __m512 low2 = _mm512_shuffle_f32x4(a[8 + c], a[12 + c], 0x88);
    __m512 high2 = _mm512_shuffle_f32x4(a[8 + c], a[12 + c], 0xdd);
    b[c] = _mm512_shuffle_f32x4(low, low2, 0x88);
    b[4 + c] = _mm512_shuffle_f32x4(high, high2, 0x88);
    b[8 + c] = _mm512_shuffle_f32x4(low, low2, 0xdd);
    b[12 + c] = _mm512_shuffle_f32x4(high, high2, 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) store(to + i * to_stride, change(i, b[i]));
#else
  for (int column = 0; column < lanes; ++column) {
    Vector value = {};
    for (int row = 0; row < lanes; ++row) value[row] = from[row * from_stride + column];
    store(to + column * to_stride, change(column, value));
  }
#endif
}

}  // namespace
