#include "stet/cpu/pool_step.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/cpu/pool_work.h"
#include "stet/runtime/parallel.h"

namespace stet::cpu {
namespace {

PoolFunction function_for(const PoolSpec& spec) {
  bool narrow = spec.position_type == DType::u8;
  if (spec.dtype != DType::f32 && spec.dtype != DType::f64) {
    PoolFunction function = pool_function_integers(spec.dtype, narrow);
    if (!function || spec.result != PoolResult::largest) throw InternalError(text("no such pool of ", spec.dtype));
    return function;
  }
  bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx512) return pool_function_avx512(spec.result, spec.dtype, narrow);
  bool avx2 = __builtin_cpu_supports("avx2");
  return avx2 ? pool_function_avx2(spec.result, spec.dtype, narrow)
              : pool_function_plain(spec.result, spec.dtype, narrow);
}

// --- cutting

/// Elements read or written by a chunk, a few microseconds' worth.
constexpr std::int64_t chunk_elements = 32768;
/// Channels of a chunk where images alone are too few; a multiple of every vector.
constexpr std::int64_t channel_block = 64;

class BoundPool : public BoundStep {
 public:
  BoundPool(const PoolSpec& spec, const Bindings& bindings) : x_(spec.x), to_(spec.to), positions_(spec.positions) {
    batch_ = spec.batch.evaluate(bindings);
    work_.channels = spec.channels.evaluate(bindings);
    work_.apart = work_.tiled = true;
    for (std::size_t a = 0; a < 3; ++a) {
      std::size_t missing = 3 - spec.axes.size();
      PoolAxis axis = a < missing ? PoolAxis{.input = 1, .output = 1} : spec.axes[a - missing];
      add_axis(a, axis.input.evaluate(bindings), axis.output.evaluate(bindings), axis.low.evaluate(bindings), axis);
    }
    function_ = function_for(spec);
    backwards_ = spec.result == PoolResult::placed || spec.result == PoolResult::spread;
    std::int64_t window = work_.window[0] * work_.window[1] * work_.window[2];
    std::int64_t rows = work_.output[0] * work_.output[1];
    rows_ = rows_per_chunk_ = rows;
    channels_per_chunk_ = work_.channels;
    element_bytes_ = size_of(spec.dtype);
    std::int64_t per_row = std::max<std::int64_t>(work_.output[2] * window * work_.channels, 1);
    if (!backwards_) {
      rows_per_chunk_ = std::clamp<std::int64_t>(chunk_elements / per_row, 1, std::max<std::int64_t>(rows, 1));
    } else if (rows * per_row > chunk_elements) {
      // Windows that meet add to one place: an image is cut by channels alone.
      channels_per_chunk_ = std::min(work_.channels, batch_ < 64 ? channel_block : work_.channels);
    }
  }

  void run(void* const* table) const override {
    PoolWork work = work_;
    work.x = table[x_];
    work.to = table[to_];
    work.positions = positions_ >= 0 ? table[positions_] : nullptr;
    std::int64_t row_chunks = rows_ == 0 ? 0 : (rows_ + rows_per_chunk_ - 1) / rows_per_chunk_;
    std::int64_t channel_chunks =
        work.channels == 0 ? 0 : (work.channels + channels_per_chunk_ - 1) / channels_per_chunk_;
    if (backwards_) row_chunks = 1;  // also of no windows: there is memory to clear
    auto body = [&](std::int64_t chunk) {
      PoolPart part;
      std::int64_t row = chunk % row_chunks, rest = chunk / row_chunks;
      part.first = rest % channel_chunks * channels_per_chunk_;
      part.last = std::min(work.channels, part.first + channels_per_chunk_);
      part.image = rest / channel_chunks;
      part.begin = row * rows_per_chunk_;
      part.end = std::min(rows_, part.begin + rows_per_chunk_);
      if (backwards_ && !work.tiled) clear(work, part);
      function_(work, part);
    };
    parallel_for(batch_ * row_chunks * channel_chunks, body);
  }

 private:
  void add_axis(std::size_t a, std::int64_t input, std::int64_t output, std::int64_t low, const PoolAxis& axis) {
    work_.input[a] = input;
    work_.output[a] = output;
    work_.window[a] = axis.window;
    std::int64_t reached = 0;
    for (std::int64_t o = 0; o < output; ++o) {
      std::int64_t first = o * axis.stride - low;
      PoolSpan span{first, std::clamp<std::int64_t>(first, 0, input),
                    std::clamp<std::int64_t>(first + axis.window, 0, input)};
      work_.apart &= span.begin >= reached;
      work_.tiled &= span.begin == reached;
      reached = std::max(reached, span.end);
      spans_[a].push_back(span);
    }
    work_.tiled &= reached == input && work_.apart;
    work_.spans[a] = spans_[a].data();
  }

  void clear(const PoolWork& work, const PoolPart& part) const {
    auto bytes = static_cast<std::size_t>((part.last - part.first) * element_bytes_);
    char* at = static_cast<char*>(work.to) + (part.image * work.inputs() * work.channels + part.first) * element_bytes_;
    if (part.last - part.first == work.channels) {
      std::memset(at, 0, bytes * static_cast<std::size_t>(work.inputs()));
      return;
    }
    for (std::int64_t i = 0; i < work.inputs(); ++i, at += work.channels * element_bytes_) std::memset(at, 0, bytes);
  }

  PoolWork work_;
  std::array<std::vector<PoolSpan>, 3> spans_;
  int x_, to_, positions_;
  PoolFunction function_ = nullptr;
  bool backwards_ = false;
  std::int64_t batch_ = 0, rows_ = 0, rows_per_chunk_ = 1, channels_per_chunk_ = 1, element_bytes_ = 4;
};

}  // namespace

PoolStep::PoolStep(PoolSpec given) : spec_(std::move(given)) {
  bool positions_read = spec_.result == PoolResult::picked || spec_.result == PoolResult::placed;
  reads = {spec_.x};
  writes = {spec_.to};
  if (spec_.positions >= 0) (positions_read ? reads : writes).push_back(spec_.positions);
}

std::unique_ptr<BoundStep> PoolStep::bind(const Bindings& bindings) const {
  return std::make_unique<BoundPool>(spec_, bindings);
}

std::string PoolStep::str() const {
  std::string out =
      text("pool ", name(spec_.result), " ", spec_.dtype, ", batch=", spec_.batch, " channels=", spec_.channels, "\n");
  for (const PoolAxis& axis : spec_.axes)
    out += text("  ", axis.output, " windows of ", axis.window, " every ", axis.stride, " of ", axis.input,
                ", the first at -(", axis.low, ")\n");
  return out;
}

}  // namespace stet::cpu
