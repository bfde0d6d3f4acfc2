// The loops of pooling, on GCC's vectors. Every pool_*.cpp that includes this compiles them anew, for the instructions
// that its first line names; nothing here is seen by the others.
#pragma once
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "stet/cpu/pool_work.h"

#define STET_INLINE inline __attribute__((always_inline))
// Vectors are returned by functions that are inlined, always: no other code sees how.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace stet::cpu {
namespace {

/// A vector of `lanes` elements, or one element, and what selects among positions beside it.
template <class T, int lanes>
struct PoolVector {
  typedef T Value __attribute__((vector_size(sizeof(T) * lanes)));
  using Integer = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  typedef Integer Position __attribute__((vector_size(sizeof(T) * lanes)));
  static STET_INLINE Position at(std::int64_t number) { return Position{} + static_cast<Integer>(number); }
  template <class P>
  struct Stored {
    typedef P Vector __attribute__((vector_size(sizeof(P) * lanes)));
  };
  template <class P>
  static STET_INLINE void store(P* to, const Position& position) {
    auto narrow = __builtin_convertvector(position, typename Stored<P>::Vector);
    std::memcpy(to, &narrow, sizeof narrow);
  }
  template <class P>
  static STET_INLINE void load(Position& out, const P* from) {
    typename Stored<P>::Vector narrow;
    std::memcpy(&narrow, from, sizeof narrow);
    out = __builtin_convertvector(narrow, Position);
  }
};
template <class T>
struct PoolVector<T, 1> {
  using Value = T;
  using Position = std::int64_t;
  static STET_INLINE Position at(std::int64_t number) { return number; }
  template <class P>
  static STET_INLINE void store(P* to, const Position& position) {
    *to = static_cast<P>(position);
  }
  template <class P>
  static STET_INLINE void load(Position& out, const P* from) {
    out = static_cast<Position>(*from);
  }
};

/// The window at output (o0, o1, o2): calls f(element, input position) for each of its elements that exists.
template <class F>
STET_INLINE void each_element(const PoolWork& w, const PoolSpan& a, const PoolSpan& b, const PoolSpan& c, const F& f) {
  for (std::int64_t i = a.begin; i < a.end; ++i)
    for (std::int64_t j = b.begin; j < b.end; ++j) {
      std::int64_t place = (i * w.input[1] + j) * w.input[2];
      std::int64_t number = ((i - a.first) * w.window[1] + (j - b.first)) * w.window[2] - c.first;
      for (std::int64_t k = c.begin; k < c.end; ++k) f(number + k, place + k);
    }
}

/// How many elements a window has; 1 of an empty one, whose sum is 0.
STET_INLINE std::int64_t divisor(const PoolSpan& a, const PoolSpan& b, const PoolSpan& c) {
  auto length = [](const PoolSpan& s) { return s.end > s.begin ? s.end - s.begin : 0; };
  std::int64_t count = length(a) * length(b) * length(c);
  return count > 0 ? count : 1;
}

/// `lanes` channels of one window. `x` and `to` point at the image's first position and these channels, `at` at the
/// output's own element.
template <PoolResult result, class T, int lanes, class P>
STET_INLINE void pool_window(const PoolWork& w, const PoolSpan& a, const PoolSpan& b, const PoolSpan& c, const T* x,
                             T* to, P* positions, std::int64_t at) {
  using Vector = PoolVector<T, lanes>;
  using Value = typename Vector::Value;
  using Position = typename Vector::Position;
  const std::int64_t step = w.channels;
  auto read = [](const T* from) __attribute__((always_inline)) {
    Value v;
    std::memcpy(&v, from, sizeof v);
    return v;
  };
  auto write = [](T * place, const Value& v) __attribute__((always_inline)) { std::memcpy(place, &v, sizeof v); };
  if constexpr (result == PoolResult::largest) {
    constexpr T lowest =
        std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
    Value best = Value{} + lowest;
    Position number = Position{};
    bool fresh = true;
    each_element(
        w, a, b, c, [&](std::int64_t element, std::int64_t place) __attribute__((always_inline)) {
          Value v = read(x + place * step);
          auto better = (v > best) | ((v != v) & (best == best));
          Position here = Vector::at(element);
          best = better ? v : best;
          number = better ? here : number;
          if (fresh) {  // the first one wins over nothing, even if it is the lowest value
            best = v;
            number = here;
            fresh = false;
          }
        });
    write(to + at, best);
    if (positions) Vector::store(positions + at, number);
  } else if constexpr (result == PoolResult::mean) {
    Value sum = Value{};
    each_element(
        w, a, b, c, [&](std::int64_t, std::int64_t place) __attribute__((always_inline)) {
          sum = sum + read(x + place * step);
        });
    write(to + at, sum / (Value{} + static_cast<T>(divisor(a, b, c))));
  } else if constexpr (result == PoolResult::spread) {
    Value share = read(x + at) / (Value{} + static_cast<T>(divisor(a, b, c)));
    each_element(
        w, a, b, c, [&](std::int64_t, std::int64_t place) __attribute__((always_inline)) {
          write(to + place * step, w.apart ? share : read(to + place * step) + share);
        });
  } else if constexpr (result == PoolResult::picked) {
    Position number;
    Vector::load(number, positions + at);
    Value picked = Value{};
    each_element(
        w, a, b, c, [&](std::int64_t element, std::int64_t place) __attribute__((always_inline)) {
          picked = number == Vector::at(element) ? read(x + place * step) : picked;
        });
    write(to + at, picked);
  } else {
    Position number;
    Vector::load(number, positions + at);
    Value given = read(x + at);
    each_element(
        w, a, b, c, [&](std::int64_t element, std::int64_t place) __attribute__((always_inline)) {
          Value mine = number == Vector::at(element) ? given : Value{};
          write(to + place * step, w.apart ? mine : read(to + place * step) + mine);
        });
  }
}

/// All windows of a part.
template <PoolResult result, class T, int lanes, class P>
void pool_part(const PoolWork& w, const PoolPart& part) {
  constexpr bool backwards = result == PoolResult::placed || result == PoolResult::spread;
  std::int64_t read = part.image * (backwards ? w.outputs() : w.inputs()) * w.channels,
               written = part.image * (backwards ? w.inputs() : w.outputs()) * w.channels;
  const T* x = static_cast<const T*>(w.x) + read;
  T* to = static_cast<T*>(w.to) + written;
  P* positions = w.positions ? static_cast<P*>(w.positions) + part.image * w.outputs() * w.channels : nullptr;
  for (std::int64_t row = part.begin; row < part.end; ++row) {
    const PoolSpan &a = w.spans[0][row / w.output[1]], &b = w.spans[1][row % w.output[1]];
    for (std::int64_t column = 0; column < w.output[2]; ++column) {
      const PoolSpan& c = w.spans[2][column];
      std::int64_t at = (row * w.output[2] + column) * w.channels, channel = part.first;
      // Pointers move along the channels; of the two tensors the one with the input's positions is moved here, the
      // other by `at`.
      for (; channel + lanes <= part.last; channel += lanes)
        pool_window<result, T, lanes, P>(w, a, b, c, backwards ? x : x + channel, backwards ? to + channel : to,
                                         positions, at + channel);
      for (; channel < part.last; ++channel)
        pool_window<result, T, 1, P>(w, a, b, c, backwards ? x : x + channel, backwards ? to + channel : to, positions,
                                     at + channel);
    }
  }
}

template <PoolResult result, class T, int lanes>
PoolFunction with_positions(bool narrow) {
  return narrow ? &pool_part<result, T, lanes, std::uint8_t> : &pool_part<result, T, lanes, std::int32_t>;
}
template <class T, int lanes>
PoolFunction pool_function(PoolResult result, bool narrow) {
  switch (result) {
    case PoolResult::largest:
      return with_positions<PoolResult::largest, T, lanes>(narrow);
    case PoolResult::picked:
      return with_positions<PoolResult::picked, T, lanes>(narrow);
    case PoolResult::placed:
      return with_positions<PoolResult::placed, T, lanes>(narrow);
    case PoolResult::mean:
      return with_positions<PoolResult::mean, T, lanes>(narrow);
    case PoolResult::spread:
      return with_positions<PoolResult::spread, T, lanes>(narrow);
  }
  return nullptr;
}
/// With vectors of so many bytes.
template <int bytes>
PoolFunction floating_pool_function(PoolResult result, DType dtype, bool narrow) {
  return dtype == DType::f32 ? pool_function<float, bytes / 4>(result, narrow)
                             : pool_function<double, bytes / 8>(result, narrow);
}

}  // namespace
}  // namespace stet::cpu
