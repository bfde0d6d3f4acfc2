// What the functions of linalg.h are made of: scratch memory, regions over blocks, factorisations in place.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "stet/cpu/lapack.h"
#include "stet/cpu/linalg.h"
#include "stet/cpu/parallel_throwing.h"
#include "stet/runtime/buffer.h"

namespace stet::cpu {

/// Matrices up to this size are factorised by loops of our own, in memory on the stack.
inline constexpr std::int64_t small_size = 32;
/// From this size on the pool's threads share a factorisation.
inline constexpr std::int64_t shared_size = 320;

/// Memory for `count` elements, of this call's.
template <class T>
class Scratch {
 public:
  explicit Scratch(std::int64_t count)
      : memory_(Buffer::allocate(static_cast<std::size_t>(std::max<std::int64_t>(count, 1)) * sizeof(T))),
        data_(reinterpret_cast<T*>(memory_.data())) {}
  T* data() const { return data_; }
  T& operator[](std::int64_t at) const { return data_[at]; }

 private:
  Buffer memory_;
  T* data_;
};

/// f(block) for every block, on the pool's threads, LAPACK included.
template <class F>
void for_blocks(std::int64_t count, const F& f) {
  parallel_for_throwing(count, [&](std::int64_t block) {
    LapackMemory memory;
    f(block);
  });
}

/// to -= factor * from
template <class T>
inline void subtract_multiple(T* to, const T* from, T factor, std::int64_t count) {
  typedef T Vector __attribute__((vector_size(16), aligned(alignof(T)), may_alias));
  constexpr auto width = static_cast<std::int64_t>(16 / sizeof(T));
  std::int64_t i = 0;
  for (; i + width <= count; i += width)
    *reinterpret_cast<Vector*>(to + i) -= *reinterpret_cast<const Vector*>(from + i) * factor;
  for (; i < count; ++i) to[i] -= from[i] * factor;
}

/// The upper triangle u [n, n], row-major, of u' u, in place; what lies below is not touched. As cholesky().
template <class T>
std::int64_t factor_small_definite(T* u, std::int64_t n);
/// cholesky() of matrices that are not small.
template <class T>
std::int64_t factor_definite(const T* x, T* l, std::int64_t n);

/// L and U of a row-major matrix over itself; row i was exchanged with row swaps[i], i = 0, 1, …
template <class T>
void factor_small(T* a, std::int64_t m, std::int64_t n, int* swaps);
/// The same of a column-major matrix [m, n] with m elements a column.
template <class T>
void factor_columns(T* a, std::int64_t m, std::int64_t n, int* swaps);

}  // namespace stet::cpu
