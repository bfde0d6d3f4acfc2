// A square of a matrix, transposed by way of a buffer that stays in the cache.
#pragma once
#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace stet::cpu {

inline constexpr std::int64_t square_side = 64;

/// Rows of a square in its buffer: no power of 2 apart, so that they do not push each other out of the cache.
template <class T>
inline constexpr std::int64_t square_row = square_side + 16 / static_cast<std::int64_t>(sizeof(T));

using Vector16 __attribute__((vector_size(16), aligned(1), may_alias)) = std::int64_t;

/// square [across][along] = from [along][across].
template <class T>
void read_square(const T* from, T* square, std::int64_t along, std::int64_t across, std::int64_t from_stride) {
  for (std::int64_t a = 0; a < along; ++a)
    for (std::int64_t b = 0; b < across; ++b) square[b * square_row<T> + a] = from[a * from_stride + b];
}

/// A square of 4 by 4 elements of 4 bytes.
template <class T>
void read_four_by_four(const T* from, T* to, std::int64_t from_stride, std::int64_t to_stride) {
  typedef T Four __attribute__((vector_size(16), aligned(4), may_alias));
  typedef std::int32_t Order __attribute__((vector_size(16)));
  Four x[4];
  for (int i = 0; i < 4; ++i) x[i] = *reinterpret_cast<const Four*>(from + i * from_stride);
  const Four low = __builtin_shuffle(x[0], x[1], Order{0, 4, 1, 5}),
             high = __builtin_shuffle(x[0], x[1], Order{2, 6, 3, 7}),
             more_low = __builtin_shuffle(x[2], x[3], Order{0, 4, 1, 5}),
             more_high = __builtin_shuffle(x[2], x[3], Order{2, 6, 3, 7});
  *reinterpret_cast<Four*>(to) = __builtin_shuffle(low, more_low, Order{0, 1, 4, 5});
  *reinterpret_cast<Four*>(to + to_stride) = __builtin_shuffle(low, more_low, Order{2, 3, 6, 7});
  *reinterpret_cast<Four*>(to + 2 * to_stride) = __builtin_shuffle(high, more_high, Order{0, 1, 4, 5});
  *reinterpret_cast<Four*>(to + 3 * to_stride) = __builtin_shuffle(high, more_high, Order{2, 3, 6, 7});
}

/// read_square of a whole square, while the one at `next`, if any, is fetched.
template <class T>
void read_whole_square(const T* from, T* square, std::int64_t from_stride, const T* next) {
  if constexpr (sizeof(T) == 4) {
    for (std::int64_t a = 0; a < square_side; a += 4) {
      if (next)
        for (std::int64_t i = 0; i < 4; ++i)
          for (std::int64_t b = 0; b < square_side; b += 16) __builtin_prefetch(next + (a + i) * from_stride + b, 0, 2);
      for (std::int64_t b = 0; b < square_side; b += 4)
        read_four_by_four(from + a * from_stride + b, square + b * square_row<T> + a, from_stride, square_row<T>);
    }
  } else {
    read_square(from, square, square_side, square_side, from_stride);
  }
}

/// to [across][along] = from [along][across], each contiguous in its last axis, at most square_side of each. They may
/// be one square. Meanwhile the whole square at `next`, if any, is fetched.
template <class T>
void copy_square(const T* from, T* to, std::int64_t along, std::int64_t across, std::int64_t from_stride,
                 std::int64_t to_stride, const T* next = nullptr) {
  alignas(64) T square[square_side * square_row<T>];
  if (along == square_side && across == square_side) {
    read_whole_square(from, square, from_stride, next);
    for (std::int64_t b = 0; b < square_side; ++b)
      for (std::int64_t a = 0; a < square_side; a += 16 / std::int64_t{sizeof(T)})
        *reinterpret_cast<Vector16*>(to + b * to_stride + a) =
            *reinterpret_cast<const Vector16*>(square + b * square_row<T> + a);
  } else {
    read_square(from, square, along, across, from_stride);
    for (std::int64_t b = 0; b < across; ++b)
      std::memcpy(to + b * to_stride, square + b * square_row<T>, static_cast<std::size_t>(along) * sizeof(T));
  }
}

#if defined(__x86_64__)

/// The same for a whole square whose rows in `to` are aligned to 16 bytes, past the cache. Before another thread reads
/// it: _mm_sfence().
template <class T>
void copy_square_past_cache(const T* from, T* to, std::int64_t from_stride, std::int64_t to_stride, const T* next) {
  alignas(64) T square[square_side * square_row<T>];
  read_whole_square(from, square, from_stride, next);
  for (std::int64_t b = 0; b < square_side; ++b)
    for (std::int64_t a = 0; a < square_side; a += 16 / std::int64_t{sizeof(T)})
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + b * to_stride + a),
                       _mm_load_si128(reinterpret_cast<const __m128i*>(square + b * square_row<T> + a)));
}

#endif

}  // namespace stet::cpu
