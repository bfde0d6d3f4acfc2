#include "stet/cpu/scatter_step.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
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
  static T apply(T, T next) { return next; }
};
template <class T>
struct Add {
  static T apply(T old, T next) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) + static_cast<std::make_unsigned_t<T>>(next));
    else
      return old + next;
  }
};
template <class T>
struct Multiply {
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
  static T apply(T old, T next) {
    bool take = next > old;
    if constexpr (std::is_floating_point_v<T>) take = take || (next != next && old == old);
    return take ? next : old;
  }
};
template <class T>
struct Smallest {
  static T apply(T old, T next) {
    bool take = next < old;
    if constexpr (std::is_floating_point_v<T>) take = take || (next != next && old == old);
    return take ? next : old;
  }
};

/// One piece of the work: lines [outer_begin, outer_end), columns [inner_begin, inner_end), places [first, last).
struct Piece {
  std::int64_t outer_begin, outer_end, inner_begin, inner_end, first, last;
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
      for (std::int64_t k = 0; k < s.count; ++k) {
        auto place = static_cast<std::int64_t>(indices[o * s.index_outer + k * s.index_count]);
        if (place < piece.first || place >= piece.last) continue;
        const T* from = updates + (o * s.count + k) * s.inner;
        T* to = result + (o * s.length + place) * s.inner;
        for (std::int64_t i = piece.inner_begin; i < piece.inner_end; ++i)
          to[i] = Combination<T>::apply(to[i], from[i]);
      }
  }
  /// Every element goes to a place of its own.
  static void elements(const Sizes& s, const Piece& piece, const Index* indices, const T* updates, T* result) {
    for (std::int64_t o = piece.outer_begin; o < piece.outer_end; ++o)
      for (std::int64_t k = 0; k < s.count; ++k)
        for (std::int64_t i = piece.inner_begin; i < piece.inner_end; ++i) {
          auto place = static_cast<std::int64_t>(indices[o * s.index_outer + k * s.index_count + i * s.index_inner]);
          if (place < piece.first || place >= piece.last) continue;
          T& to = result[(o * s.length + place) * s.inner + i];
          to = Combination<T>::apply(to, updates[(o * s.count + k) * s.inner + i]);
        }
  }
  static void run(const Sizes& s, const Piece& piece, const void* indices, const void* updates, void* result) {
    auto* work = s.index_inner == 0 ? rows : elements;
    work(s, piece, static_cast<const Index*>(indices), static_cast<const T*>(updates), static_cast<T*>(result));
  }
};

using Run = void (*)(const Sizes&, const Piece&, const void* indices, const void* updates, void* result);

template <class T, class Index>
Run run_for(Combine combine) {
  switch (combine) {
    case Combine::sum:
      return Work<T, Index, Add>::run;
    case Combine::product:
      return Work<T, Index, Multiply>::run;
    case Combine::maximum:
      return Work<T, Index, Largest>::run;
    case Combine::minimum:
      return Work<T, Index, Smallest>::run;
    default:
      return Work<T, Index, Replace>::run;
  }
}

template <class Index>
Run run_for(DType dtype, Combine combine) {
  if (combine == Combine::none)  // only moved: by size
    switch (size_of(dtype)) {
      case 1:
        return Work<std::uint8_t, Index, Replace>::run;
      case 2:
        return Work<std::uint16_t, Index, Replace>::run;
      case 4:
        return Work<std::uint32_t, Index, Replace>::run;
      default:
        return Work<std::uint64_t, Index, Replace>::run;
    }
  switch (dtype) {
    case DType::bool_:
    case DType::u8:
      return run_for<std::uint8_t, Index>(combine);
    case DType::i8:
      return run_for<std::int8_t, Index>(combine);
    case DType::i16:
      return run_for<std::int16_t, Index>(combine);
    case DType::i32:
      return run_for<std::int32_t, Index>(combine);
    case DType::i64:
      return run_for<std::int64_t, Index>(combine);
    case DType::f32:
      return run_for<float, Index>(combine);
    case DType::f64:
      return run_for<double, Index>(combine);
    default:
      throw InternalError(text("a scatter does not compute in ", dtype));
  }
}

/// The first index in [begin, end) of lines x count x columns that is not on the axis; -1: none.
using Check = std::int64_t (*)(const Sizes&, const void* indices, std::int64_t begin, std::int64_t end,
                               std::int64_t* value);
template <class Index>
std::int64_t check_indices(const Sizes& s, const void* data, std::int64_t begin, std::int64_t end,
                           std::int64_t* value) {
  const auto* indices = static_cast<const Index*>(data);
  std::int64_t columns = s.index_inner == 0 ? 1 : s.inner;
  for (std::int64_t flat = begin; flat < end; ++flat) {
    std::int64_t i = flat % columns, row = flat / columns, k = row % s.count, o = row / s.count;
    auto place = static_cast<std::int64_t>(indices[o * s.index_outer + k * s.index_count + i * s.index_inner]);
    if (place >= 0 && place < s.length) continue;
    *value = place;
    return flat;
  }
  return -1;
}

struct Functions {
  Run run;
  Check check;
};
Functions functions_for(DType index, DType dtype, Combine combine) {
  switch (index) {
    case DType::u8:
      return {run_for<std::uint8_t>(dtype, combine), check_indices<std::uint8_t>};
    case DType::i8:
      return {run_for<std::int8_t>(dtype, combine), check_indices<std::int8_t>};
    case DType::i16:
      return {run_for<std::int16_t>(dtype, combine), check_indices<std::int16_t>};
    case DType::i32:
      return {run_for<std::int32_t>(dtype, combine), check_indices<std::int32_t>};
    default:
      return {run_for<std::int64_t>(dtype, combine), check_indices<std::int64_t>};
  }
}

constexpr std::int64_t worth_a_piece = 16384;  // elements

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
    cut();
  }

  void run(void* const* table) const override {
    if (sizes_.outer * sizes_.count * sizes_.inner == 0) return;
    const void* indices = static_cast<const char*>(table[step_.spec_.indices]) + index_offset_;
    check(indices);
    const void* updates = table[step_.spec_.updates];
    void* result = table[step_.spec_.result];
    if (pieces_.size() == 1) return functions_.run(sizes_, pieces_[0], indices, updates, result);
    auto body = [&](std::int64_t number) {
      functions_.run(sizes_, pieces_[static_cast<std::size_t>(number)], indices, updates, result);
    };
    parallel_for(static_cast<std::int64_t>(pieces_.size()), body);
  }

 private:
  /// Into pieces that do not touch each other's places, by sizes alone.
  void cut() {
    std::int64_t all = sizes_.outer * sizes_.count * sizes_.inner;
    std::int64_t wanted = std::clamp<std::int64_t>(all / worth_a_piece, 1, 16);
    auto split = [&](std::int64_t extent, std::int64_t parts, auto set) {
      parts = std::max<std::int64_t>(std::min(parts, extent), 1);
      for (std::int64_t part = 0; part < parts; ++part) {
        Piece piece{0, sizes_.outer, 0, sizes_.inner, 0, sizes_.length};
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
    else  // every piece reads all indices, so there are few
      split(sizes_.length, std::min<std::int64_t>(wanted, 4), [](Piece& p, std::int64_t begin, std::int64_t end) {
        p.first = begin;
        p.last = end;
      });
  }

  void check(const void* indices) const {
    std::int64_t count = sizes_.outer * sizes_.count * (sizes_.index_inner == 0 ? 1 : sizes_.inner);
    if (sizes_.index_outer == 0 && sizes_.index_inner == 0) count = sizes_.count;  // all lines have the same
    std::int64_t pieces = std::clamp<std::int64_t>(count / worth_a_piece, 1, 16);
    std::atomic<std::int64_t> first{INT64_MAX};  // the message does not depend on timing
    auto body = [&](std::int64_t piece) {
      std::int64_t value = 0;
      std::int64_t found =
          functions_.check(sizes_, indices, count * piece / pieces, count * (piece + 1) / pieces, &value);
      if (found < 0) return;
      std::int64_t before = first.load();
      while (found < before && !first.compare_exchange_weak(before, found)) {
      }
    };
    parallel_for(pieces, body);
    if (first.load() == INT64_MAX) return;
    KernelStatus status;
    status.position = functions_.check(sizes_, indices, first.load(), first.load() + 1, &status.value);
    throw_failed_check(step_.check_, status, extent_);
  }

  const ScatterStep& step_;
  Functions functions_;
  Sizes sizes_;
  std::int64_t index_offset_ = 0, extent_ = 0;
  std::vector<Piece> pieces_;
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
