#include "stet/cpu/transpose_step.h"

#include <algorithm>
#include <cstring>

#include "stet/base/dim_inside.h"
#include "stet/base/text.h"
#include "stet/runtime/parallel.h"

namespace stet::cpu {
namespace {

constexpr std::int64_t side = 64;              // of a square
constexpr std::int64_t worth_a_chunk = 16384;  // elements

/// to [across][along] = from [along][across], each contiguous in its last axis.
template <class T>
void copy_square(const T* from, T* to, std::int64_t along, std::int64_t across, std::int64_t from_stride,
                 std::int64_t to_stride) {
  // Rows that are no power of 2 apart do not push each other out of the cache.
  constexpr std::int64_t row = side + 64 / static_cast<std::int64_t>(sizeof(T)) / 4;
  alignas(64) T square[side * row];
  std::int64_t a = 0;
  if constexpr (sizeof(T) == 4) {
    typedef T Four __attribute__((vector_size(16), aligned(4), may_alias));
    for (; a + 4 <= along; a += 4) {
      const T* rows[4] = {from + a * from_stride, from + (a + 1) * from_stride, from + (a + 2) * from_stride,
                          from + (a + 3) * from_stride};
      std::int64_t b = 0;
      for (; b + 4 <= across; b += 4) {
        Four x[4];
        for (int i = 0; i < 4; ++i) x[i] = *reinterpret_cast<const Four*>(rows[i] + b);
        const Four low = __builtin_shuffle(x[0], x[1], Four{0, 4, 1, 5}),
                   high = __builtin_shuffle(x[0], x[1], Four{2, 6, 3, 7}),
                   more_low = __builtin_shuffle(x[2], x[3], Four{0, 4, 1, 5}),
                   more_high = __builtin_shuffle(x[2], x[3], Four{2, 6, 3, 7});
        T* out = square + b * row + a;
        *reinterpret_cast<Four*>(out) = __builtin_shuffle(low, more_low, Four{0, 1, 4, 5});
        *reinterpret_cast<Four*>(out + row) = __builtin_shuffle(low, more_low, Four{2, 3, 6, 7});
        *reinterpret_cast<Four*>(out + 2 * row) = __builtin_shuffle(high, more_high, Four{0, 1, 4, 5});
        *reinterpret_cast<Four*>(out + 3 * row) = __builtin_shuffle(high, more_high, Four{2, 3, 6, 7});
      }
      for (; b < across; ++b)
        for (int i = 0; i < 4; ++i) square[b * row + a + i] = rows[i][b];
    }
  }
  for (; a < along; ++a)
    for (std::int64_t b = 0; b < across; ++b) square[b * row + a] = from[a * from_stride + b];
  for (std::int64_t b = 0; b < across; ++b)
    std::memcpy(to + b * to_stride, square + b * row, static_cast<std::size_t>(along) * sizeof(T));
}

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
    const std::int64_t columns = (along_ + side - 1) / side, rows = (across_ + side - 1) / side;
    auto square = [&](std::int64_t number) {
      const std::int64_t a = number % columns * side, b = number / columns % rows * side;
      std::int64_t rest = number / columns / rows, read = a * from_stride_ + b, written = b * to_stride_ + a;
      for (std::size_t loop = around_.size(); loop-- > 0; rest /= around_[loop].extent) {
        read += rest % around_[loop].extent * around_[loop].from;
        written += rest % around_[loop].extent * around_[loop].to;
      }
      copy_square(from + read, to + written, std::min(side, along_ - a), std::min(side, across_ - b), from_stride_,
                  to_stride_);
    };
    const std::int64_t squares = repeats_ * columns * rows;
    const std::int64_t elements = std::max<std::int64_t>(std::min(side, along_) * std::min(side, across_), 1);
    const std::int64_t together = (worth_a_chunk + elements - 1) / elements;
    auto body = [&](std::int64_t chunk) {
      for (std::int64_t number = chunk * together; number < std::min(squares, (chunk + 1) * together); ++number)
        square(number);
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
