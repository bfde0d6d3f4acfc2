#include "stet/cpu/scatter_step.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/runtime/buffer.h"
#include "stet/runtime/parallel.h"

// Rows of updates are short loops over plain arrays: worth the widest vectors that the CPU has.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define STET_WIDE_VECTORS __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#else
#define STET_WIDE_VECTORS
#endif

namespace stet::cpu {
namespace {

// What lies in memory: f16 and bf16 come only to replace what is there, as bits.
template <class T>
struct Replace {
  static constexpr T identity = T();  // nobody asks for it: the last one counts
  static T apply(T, T next) { return next; }
};
template <class T>
struct Add {
  // Of -0 too, which 0 would make 0.
  static constexpr T identity = std::is_floating_point_v<T> ? static_cast<T>(-0.) : T(0);
  static T apply(T old, T next) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) + static_cast<std::make_unsigned_t<T>>(next));
    else
      return old + next;
  }
};
template <class T>
struct Multiply {
  static constexpr T identity = T(1);
  static T apply(T old, T next) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::uint64_t>(old) * static_cast<std::uint64_t>(next));
    else
      return old * next;
  }
};
/// NaN wins, of equal ones the first.
template <class T>
struct Largest {
  static constexpr T identity =
      std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  static T apply(T old, T next) {
    bool take = next > old;
    if constexpr (std::is_floating_point_v<T>) take = take || (next != next && old == old);
    return take ? next : old;
  }
};
template <class T>
struct Smallest {
  static constexpr T identity =
      std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  static T apply(T old, T next) {
    bool take = next < old;
    if constexpr (std::is_floating_point_v<T>) take = take || (next != next && old == old);
    return take ? next : old;
  }
};

/// One piece of the work: lines [outer_begin, outer_end), columns [inner_begin, inner_end), places [first, last), rows
/// of updates [begin, end).
struct Piece {
  std::int64_t outer_begin, outer_end, inner_begin, inner_end, first, last, begin, end;
};
struct Sizes {
  std::int64_t outer, length, inner, count;
  std::int64_t index_outer, index_count, index_inner;  // strides of indices
};

template <class T, class Index, template <class> class Combination>
struct Work {
  /// All columns of a row of updates go to one place.
  STET_WIDE_VECTORS static void rows(const Sizes& s, const Piece& piece, const Index* indices, const T* updates,
                                     T* result) {
    for (std::int64_t o = piece.outer_begin; o < piece.outer_end; ++o)
      for (std::int64_t k = piece.begin; k < piece.end; ++k) {
        auto place = static_cast<std::int64_t>(indices[o * s.index_outer + k * s.index_count]);
        if (place < piece.first || place >= piece.last) continue;
        const T* from = updates + (o * s.count + k) * s.inner;
        T* to = result + (o * s.length + place) * s.inner;
        for (std::int64_t i = piece.inner_begin; i < piece.inner_end; ++i)
          to[i] = Combination<T>::apply(to[i], from[i]);
      }
  }
  /// Rows of one element.
  static void single(const Sizes& s, const Piece& piece, const Index* indices, const T* updates, T* result) {
    const bool all = piece.first == 0 && piece.last == s.length;
    const std::int64_t stride = s.index_count;
    for (std::int64_t o = piece.outer_begin; o < piece.outer_end; ++o) {
      const Index* at = indices + o * s.index_outer;
      const T* from = updates + o * s.count;
      T* to = result + o * s.length;
      for (std::int64_t k = piece.begin; k < piece.end; ++k) {
        auto place = static_cast<std::int64_t>(at[k * stride]);
        if (!all && (place < piece.first || place >= piece.last)) continue;
        to[place] = Combination<T>::apply(to[place], from[k]);
      }
    }
  }
  /// Every element goes to a place of its own.
  static void elements(const Sizes& s, const Piece& piece, const Index* indices, const T* updates, T* result) {
    for (std::int64_t o = piece.outer_begin; o < piece.outer_end; ++o)
      for (std::int64_t k = piece.begin; k < piece.end; ++k)
        for (std::int64_t i = piece.inner_begin; i < piece.inner_end; ++i) {
          auto place = static_cast<std::int64_t>(indices[o * s.index_outer + k * s.index_count + i * s.index_inner]);
          if (place < piece.first || place >= piece.last) continue;
          T& to = result[(o * s.length + place) * s.inner + i];
          to = Combination<T>::apply(to, updates[(o * s.count + k) * s.inner + i]);
        }
  }
  static void run(const Sizes& s, const Piece& piece, const void* indices, const void* updates, void* result) {
    auto* work = s.inner == 1 ? single : s.index_inner == 0 ? rows : elements;
    work(s, piece, static_cast<const Index*>(indices), static_cast<const T*>(updates), static_cast<T*>(result));
  }
};

using Run = void (*)(const Sizes&, const Piece&, const void* indices, const void* updates, void* result);
/// result[i] = the identity, or combined with `from[i]`, for i in [begin, end).
using Clear = void (*)(void* result, std::int64_t begin, std::int64_t end);
using Merge = void (*)(void* result, const void* from, std::int64_t begin, std::int64_t end);
struct Combiner {
  Run run;
  Clear clear;
  Merge merge;
};
template <class T, class Index, template <class> class Combination>
constexpr Combiner combiner{Work<T, Index, Combination>::run,
                            [](void* result, std::int64_t begin, std::int64_t end) {
                              std::fill(static_cast<T*>(result) + begin, static_cast<T*>(result) + end,
                                        Combination<T>::identity);
                            },
                            [](void* result, const void* from, std::int64_t begin, std::int64_t end) {
                              auto* to = static_cast<T*>(result);
                              for (std::int64_t i = begin; i < end; ++i)
                                to[i] = Combination<T>::apply(to[i], static_cast<const T*>(from)[i]);
                            }};

template <class T, class Index>
Combiner combiner_for(Combine combine) {
  switch (combine) {
    case Combine::sum:
      return combiner<T, Index, Add>;
    case Combine::product:
      return combiner<T, Index, Multiply>;
    case Combine::maximum:
      return combiner<T, Index, Largest>;
    case Combine::minimum:
      return combiner<T, Index, Smallest>;
    default:
      return combiner<T, Index, Replace>;
  }
}

template <class Index>
Combiner combiner_for(DType dtype, Combine combine) {
  if (combine == Combine::none)  // only moved: by size
    switch (size_of(dtype)) {
      case 1:
        return combiner<std::uint8_t, Index, Replace>;
      case 2:
        return combiner<std::uint16_t, Index, Replace>;
      case 4:
        return combiner<std::uint32_t, Index, Replace>;
      default:
        return combiner<std::uint64_t, Index, Replace>;
    }
  switch (dtype) {
    case DType::bool_:
    case DType::u8:
      return combiner_for<std::uint8_t, Index>(combine);
    case DType::i8:
      return combiner_for<std::int8_t, Index>(combine);
    case DType::i16:
      return combiner_for<std::int16_t, Index>(combine);
    case DType::i32:
      return combiner_for<std::int32_t, Index>(combine);
    case DType::i64:
      return combiner_for<std::int64_t, Index>(combine);
    case DType::f32:
      return combiner_for<float, Index>(combine);
    case DType::f64:
      return combiner_for<double, Index>(combine);
    default:
      throw InternalError(text("a scatter does not compute in ", dtype));
  }
}

/// The first index in [begin, end) of lines x count x columns that is not on the axis; -1: none.
using Check = std::int64_t (*)(const Sizes&, const void* indices, std::int64_t begin, std::int64_t end,
                               std::int64_t* value);
template <class Index>
struct Bounds {
  /// A negative index is a huge one.
  static bool is_bad(Index index, std::int64_t length) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(index)) >= static_cast<std::uint64_t>(length);
  }
  STET_WIDE_VECTORS static bool any_bad(const Index* indices, std::int64_t count, std::int64_t length) {
    // Of an index that is negative, or above the last one, one of the two has its sign set: no comparisons.
    std::int64_t signs = 0;
    const std::int64_t last = length - 1;
    for (std::int64_t i = 0; i < count; ++i) {
      auto index = static_cast<std::int64_t>(indices[i]);
      signs |= index | (last - (index & INT64_MAX));
    }
    return signs < 0;
  }
};

template <class Index>
std::int64_t check_indices(const Sizes& s, const void* data, std::int64_t begin, std::int64_t end,
                           std::int64_t* value) {
  const auto* indices = static_cast<const Index*>(data);
  std::int64_t columns = s.index_inner == 0 ? 1 : s.inner;
  auto is_bad = [&](Index index) { return Bounds<Index>::is_bad(index, s.length); };
  std::int64_t i = begin % columns, row = begin / columns, k = row % s.count, o = row / s.count;
  for (std::int64_t flat = begin; flat < end;) {
    // The rest of a row of columns, or of a line of single ones.
    const bool by_row = columns == 1;
    const Index* at = indices + o * s.index_outer + k * s.index_count + i * s.index_inner;
    const std::int64_t stride = by_row ? s.index_count : s.index_inner;
    const std::int64_t many = std::min(end - flat, by_row ? s.count - k : columns - i);
    const bool bad = stride != 1 || Bounds<Index>::any_bad(at, many, s.length);
    for (std::int64_t j = 0; bad && j < many; ++j)
      if (is_bad(at[j * stride])) {
        *value = static_cast<std::int64_t>(at[j * stride]);
        return flat + j;
      }
    flat += many;
    (by_row ? k : i) += many;
    if (!by_row && i == columns) i = 0, ++k;
    if (k == s.count) k = 0, ++o;
  }
  return -1;
}

struct Functions {
  Combiner combiner;
  Check check;
};
template <class Index>
Functions functions_of(DType dtype, Combine combine) {
  return {combiner_for<Index>(dtype, combine), check_indices<Index>};
}
Functions functions_for(DType index, DType dtype, Combine combine) {
  switch (index) {
    case DType::u8:
      return functions_of<std::uint8_t>(dtype, combine);
    case DType::i8:
      return functions_of<std::int8_t>(dtype, combine);
    case DType::i16:
      return functions_of<std::int16_t>(dtype, combine);
    case DType::i32:
      return functions_of<std::int32_t>(dtype, combine);
    default:
      return functions_of<std::int64_t>(dtype, combine);
  }
}

constexpr std::int64_t worth_a_piece = 16384;     // elements
constexpr std::int64_t checked_at_a_time = 4096;  // elements

}  // namespace

class BoundScatter : public BoundStep {
 public:
  BoundScatter(const ScatterStep& step, const Bindings& bindings)
      : step_(step), functions_(functions_for(step.spec_.index_type, step.spec_.dtype, step.spec_.combine)) {
    const ScatterSpec& spec = step.spec_;
    auto value = [&](const Dim& dim) { return dim.evaluate(bindings); };
    sizes_ = {value(spec.lines.outer),
              value(spec.lines.length),
              value(spec.lines.inner),
              value(spec.count),
              value(spec.index_layout.strides[0]),
              value(spec.index_layout.strides[1]),
              value(spec.index_layout.strides[2])};
    index_offset_ = value(spec.index_layout.offset) * size_of(spec.index_type);
    extent_ = value(step.check_.extent);
    element_bytes_ = size_of(spec.dtype);
    cut();
  }

  void run(void* const* table) const override {
    if (sizes_.outer * sizes_.count * sizes_.inner == 0) return;
    const void* indices = static_cast<const char*>(table[step_.spec_.indices]) + index_offset_;
    if (!apart_ || sizes_.outer > 1) check(indices);
    const void* updates = table[step_.spec_.updates];
    void* result = table[step_.spec_.result];
    const Combiner& combiner = functions_.combiner;
    if (pieces_.size() == 1) return combiner.run(sizes_, pieces_[0], indices, updates, result);
    if (apart_) return run_apart(indices, updates, static_cast<char*>(result));
    auto body = [&](std::int64_t number) {
      combiner.run(sizes_, pieces_[static_cast<std::size_t>(number)], indices, updates, result);
    };
    parallel_for(static_cast<std::int64_t>(pieces_.size()), body);
  }

 private:
  /// Every piece of the updates into a result of its own; these are put together in their order.
  void run_apart(const void* indices, const void* updates, char* result) const {
    const Combiner& combiner = functions_.combiner;
    const std::int64_t elements = sizes_.outer * sizes_.length * sizes_.inner, bytes = elements * element_bytes_;
    Buffer memory = Buffer::allocate(static_cast<std::size_t>(bytes) * pieces_.size());
    std::atomic<std::int64_t> found{INT64_MAX};
    auto own = [&](std::size_t number) {
      return reinterpret_cast<char*>(memory.data()) + static_cast<std::int64_t>(number) * bytes;
    };
    auto body = [&](std::int64_t number) {
      auto piece = static_cast<std::size_t>(number);
      combiner.clear(own(piece), 0, elements);
      if (sizes_.outer > 1) return combiner.run(sizes_, pieces_[piece], indices, updates, own(piece));
      // Nothing is written to the result yet: indices are looked at while they are in the cache anyway.
      Piece part = pieces_[piece];
      const std::int64_t columns = sizes_.index_inner == 0 ? 1 : sizes_.inner;
      for (std::int64_t begin = part.begin, end = part.end; begin < end && begin * columns < found.load();
           begin = part.end) {
        part.begin = begin;
        part.end = std::min(end, begin + std::max<std::int64_t>(checked_at_a_time / sizes_.inner, 1));
        if (!note_bad(indices, part.begin * columns, part.end * columns, found))
          combiner.run(sizes_, part, indices, updates, own(piece));
      }
    };
    parallel_for(static_cast<std::int64_t>(pieces_.size()), body);
    refuse(indices, found.load());
    const std::int64_t blocks = std::clamp<std::int64_t>(elements / worth_a_piece, 1, 16);
    auto merge = [&](std::int64_t block) {
      for (std::size_t piece = 0; piece < pieces_.size(); ++piece)
        combiner.merge(result, own(piece), elements * block / blocks, elements * (block + 1) / blocks);
    };
    parallel_for(blocks, merge);
  }

  /// Into pieces that do not touch each other's places, by sizes alone.
  void cut() {
    std::int64_t all = sizes_.outer * sizes_.count * sizes_.inner;
    std::int64_t wanted = std::clamp<std::int64_t>(all / worth_a_piece, 1, 16);
    auto split = [&](std::int64_t extent, std::int64_t parts, auto set) {
      parts = std::max<std::int64_t>(std::min(parts, extent), 1);
      for (std::int64_t part = 0; part < parts; ++part) {
        Piece piece{0, sizes_.outer, 0, sizes_.inner, 0, sizes_.length, 0, sizes_.count};
        set(piece, extent * part / parts, extent * (part + 1) / parts);
        pieces_.push_back(piece);
      }
    };
    if (sizes_.outer >= wanted)
      split(sizes_.outer, wanted, [](Piece& p, std::int64_t begin, std::int64_t end) {
        p.outer_begin = begin;
        p.outer_end = end;
      });
    else if (sizes_.inner >= 64 * wanted)
      split(sizes_.inner, wanted, [](Piece& p, std::int64_t begin, std::int64_t end) {
        p.inner_begin = begin;
        p.inner_end = end;
      });
    else if (const std::int64_t places = sizes_.outer * sizes_.length * sizes_.inner;
             step_.spec_.combine != Combine::none && all >= 8 * places) {
      // Many go to one place: pieces with a result each cost little beside their updates.
      apart_ = true;
      split(sizes_.count, std::min<std::int64_t>(wanted, 4), [](Piece& p, std::int64_t begin, std::int64_t end) {
        p.begin = begin;
        p.end = end;
      });
    } else  // every piece reads all indices, so there are few
      split(sizes_.length, std::min<std::int64_t>(wanted, 4), [](Piece& p, std::int64_t begin, std::int64_t end) {
        p.first = begin;
        p.last = end;
      });
  }

  void check(const void* indices) const {
    std::int64_t count = sizes_.outer * sizes_.count * (sizes_.index_inner == 0 ? 1 : sizes_.inner);
    if (sizes_.index_outer == 0 && sizes_.index_inner == 0) count = sizes_.count;  // all lines have the same
    std::int64_t pieces = std::clamp<std::int64_t>(count / worth_a_piece, 1, 16);
    std::atomic<std::int64_t> found{INT64_MAX};
    auto body = [&](std::int64_t piece) {
      note_bad(indices, count * piece / pieces, count * (piece + 1) / pieces, found);
    };
    parallel_for(pieces, body);
    refuse(indices, found.load());
  }
  /// Whether one of the indices [begin, end) is not on the axis. The first of all is kept: the message does not depend
  /// on timing.
  bool note_bad(const void* indices, std::int64_t begin, std::int64_t end, std::atomic<std::int64_t>& first) const {
    std::int64_t value = 0;
    std::int64_t found = functions_.check(sizes_, indices, begin, end, &value);
    if (found < 0) return false;
    std::int64_t before = first.load();
    while (found < before && !first.compare_exchange_weak(before, found)) {
    }
    return true;
  }
  /// Throws if there is a bad one.
  void refuse(const void* indices, std::int64_t first) const {
    if (first == INT64_MAX) return;
    KernelStatus status;
    status.position = functions_.check(sizes_, indices, first, first + 1, &status.value);
    throw_failed_check(step_.check_, status, extent_);
  }

  const ScatterStep& step_;
  Functions functions_;
  Sizes sizes_;
  std::int64_t index_offset_ = 0, extent_ = 0, element_bytes_ = 0;
  std::vector<Piece> pieces_;
  bool apart_ = false;  // pieces have results of their own
};

ScatterStep::ScatterStep(ScatterSpec spec, KernelCheck check) : spec_(std::move(spec)), check_(std::move(check)) {
  reads = {spec_.indices, spec_.updates, spec_.result};
  writes = {spec_.result};
}

std::unique_ptr<BoundStep> ScatterStep::bind(const Bindings& bindings) const {
  return std::make_unique<BoundScatter>(*this, bindings);
}

std::string ScatterStep::str() const {
  return text("scatter ", spec_.dtype, " by ", name(spec_.combine), ", ", spec_.count, " places of [",
              spec_.lines.outer, ",", spec_.lines.length, ",", spec_.lines.inner, "]\n");
}

}  // namespace stet::cpu
