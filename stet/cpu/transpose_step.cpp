#include "stet/cpu/transpose_step.h"

#include <algorithm>

#include "stet/base/dim_inside.h"
#include "stet/base/text.h"
#include "stet/cpu/cache_size.h"
#include "stet/cpu/copy_square.h"
#include "stet/runtime/parallel.h"

namespace stet::cpu {
namespace {

constexpr std::int64_t worth_a_chunk = 65536;  // elements
/// A result of this part of the cache or more is written past it. Squares are written in short pieces of lines far
/// apart, which the cache would have to read before: that costs more than reading the result from memory later.
constexpr std::int64_t much_of_cache = 3;

/// A loop around the squares.
struct Around {
  std::int64_t extent, from, to;
};

template <class T>
class BoundTranspose : public BoundStep {
 public:
  BoundTranspose(const Kernel& kernel, std::size_t across, int from, int to, const Bindings& bindings)
      : from_(from), to_(to) {
    auto value = [&](const Dim& dim) { return dim.evaluate(bindings); };
    const Affine &reads = kernel.operands[0].address, &writes = kernel.result.address;
    const std::size_t inner = kernel.loops.size() - 1;
    from_offset_ = value(reads.offset);
    to_offset_ = value(writes.offset);
    for (std::size_t loop = 0; loop < kernel.loops.size(); ++loop) {
      const std::int64_t extent = value(kernel.loops[loop].extent);
      if (loop == inner) {
        along_ = extent;
        from_stride_ = value(reads.strides[loop]);
      } else if (loop == across) {
        across_ = extent;
        to_stride_ = value(writes.strides[loop]);
      } else {
        around_.push_back({extent, value(reads.strides[loop]), value(writes.strides[loop])});
        repeats_ *= extent;
      }
    }
  }

  void run(void* const* table) const override {
    const T* from = static_cast<const T*>(table[from_]) + from_offset_;
    T* to = static_cast<T*>(table[to_]) + to_offset_;
    const std::int64_t columns = (along_ + square_side - 1) / square_side,
                       rows = (across_ + square_side - 1) / square_side;
    [[maybe_unused]] const bool past_cache =
        repeats_ * along_ * across_ * static_cast<std::int64_t>(sizeof(T)) >= last_level_cache() / much_of_cache &&
        to_stride_ * sizeof(T) % 16 == 0;
    const std::int64_t squares = repeats_ * columns * rows;
    struct Square {
      const T* from;
      T* to;
      std::int64_t along, across;
      bool is_whole() const { return along == square_side && across == square_side; }
    };
    auto square = [&](std::int64_t number) {
      const std::int64_t a = number % columns * square_side, b = number / columns % rows * square_side;
      std::int64_t rest = number / columns / rows, read = a * from_stride_ + b, written = b * to_stride_ + a;
      for (std::size_t loop = around_.size(); loop-- > 0; rest /= around_[loop].extent) {
        read += rest % around_[loop].extent * around_[loop].from;
        written += rest % around_[loop].extent * around_[loop].to;
      }
      return Square{from + read, to + written, std::min(square_side, along_ - a), std::min(square_side, across_ - b)};
    };
    const std::int64_t elements =
        std::max<std::int64_t>(std::min(square_side, along_) * std::min(square_side, across_), 1);
    const std::int64_t together = (worth_a_chunk + elements - 1) / elements;
    auto body = [&](std::int64_t chunk) {
      const std::int64_t end = std::min(squares, (chunk + 1) * together);
      Square next = square(chunk * together);
      for (std::int64_t number = chunk * together; number < end; ++number) {
        const Square now = next;
        if (number + 1 < end) next = square(number + 1);
        const T* soon = next.is_whole() ? next.from : nullptr;
#if defined(__x86_64__)
        if (past_cache && now.is_whole() && reinterpret_cast<std::uintptr_t>(now.to) % 16 == 0) {
          copy_square_past_cache(now.from, now.to, from_stride_, to_stride_, soon);
          continue;
        }
#endif
        copy_square(now.from, now.to, now.along, now.across, from_stride_, to_stride_, soon);
      }
#if defined(__x86_64__)
      if (past_cache) _mm_sfence();
#endif
    };
    parallel_for((squares + together - 1) / together, body);
  }

 private:
  int from_, to_;
  std::int64_t from_offset_ = 0, to_offset_ = 0, along_ = 0, across_ = 0, from_stride_ = 0, to_stride_ = 0;
  std::vector<Around> around_;
  std::int64_t repeats_ = 1;
};

bool is_plain(const Access& access) {
  return access.source == Access::memory && access.guards.empty() && access.indirections.empty();
}

/// The loop along which the operand is contiguous; that of the result, the last one, if there is none.
std::size_t loop_across(const Kernel& kernel) {
  const std::size_t inner = kernel.loops.size() - 1;
  for (std::size_t loop = inner; loop-- > 0;)
    if (kernel.operands[0].address.strides[loop].is_constant(1)) return loop;
  return inner;
}

}  // namespace

bool TransposeStep::is_one(const KernelLaunch& launch) {
  const Kernel& kernel = launch.kernel;
  if (kernel.loops.size() < 2 || kernel.operands.size() != 1 || kernel.has_reduction() || kernel.accumulate ||
      !kernel.further.empty() || kernel.epilogue.defined())
    return false;
  const Access &from = kernel.operands[0], &to = kernel.result;
  if (!is_plain(from) || !is_plain(to) || from.dtype != to.dtype || kernel.body != operand(0, from.dtype)) return false;
  const Dim& jump = from.address.strides.back();
  return to.address.strides.back().is_constant(1) && !jump.is_constant(0) && !jump.is_constant(1) &&
         loop_across(kernel) + 1 < kernel.loops.size();
}

TransposeStep::TransposeStep(KernelLaunch launch)
    : kernel_(std::move(launch.kernel)),
      from_(launch.buffers[static_cast<std::size_t>(kernel_.operands[0].buffer)]),
      to_(launch.buffers[static_cast<std::size_t>(kernel_.result.buffer)]),
      across_(loop_across(kernel_)) {
  verify(kernel_);
  reads = {from_};
  writes = {to_};
}

std::unique_ptr<BoundStep> TransposeStep::bind(const Bindings& bindings) const {
  switch (size_of(kernel_.result.dtype)) {
    case 1:
      return std::make_unique<BoundTranspose<std::uint8_t>>(kernel_, across_, from_, to_, bindings);
    case 2:
      return std::make_unique<BoundTranspose<std::uint16_t>>(kernel_, across_, from_, to_, bindings);
    case 4:
      return std::make_unique<BoundTranspose<std::uint32_t>>(kernel_, across_, from_, to_, bindings);
    default:
      return std::make_unique<BoundTranspose<std::uint64_t>>(kernel_, across_, from_, to_, bindings);
  }
}

std::string TransposeStep::str() const { return text("by squares, across loop ", across_, ":\n", kernel_.str()); }

}  // namespace stet::cpu
