// Kernels made by hand, run as generated code and by a reference that follows ir/kernel.h word by word.
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <vector>

#include "stet/base/dim_inside.h"
#include "stet/cpu/emit_kernel.h"
#include "stet/ir/expand_math.h"
#include "stet/ir/kernel.h"
#include "stet/runtime/kernel_abi.h"

namespace stet::cpu {

/// Elements of one type between two bands of guard bytes. The first element is aligned to 64 bytes.
class GuardedMemory {
 public:
  GuardedMemory(DType dtype, std::int64_t count) : dtype_(dtype), count_(count) {
    bytes_.assign(2 * band + 64 + static_cast<std::size_t>(count) * static_cast<std::size_t>(size_of(dtype)), guard);
    auto address = reinterpret_cast<std::uintptr_t>(bytes_.data()) + band;
    start_ = band + (64 - address % 64) % 64;
    // Bits that no test expects: what a kernel forgets to write shows.
    std::memset(data(), 0x5C, static_cast<std::size_t>(count) * static_cast<std::size_t>(size_of(dtype)));
  }
  GuardedMemory(const GuardedMemory& other) : GuardedMemory(other.dtype_, other.count_) {
    std::memcpy(data(), other.data(), byte_count());
  }
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  template <class F>
  static GuardedMemory filled(DType dtype, std::int64_t count, F value) {
    GuardedMemory out(dtype, count);
    for (std::int64_t i = 0; i < count; ++i)
      out.set(i, convert({.real = static_cast<double>(value(i))}, DType::f64, dtype));
    return out;
  }

  DType dtype() const { return dtype_; }
  std::int64_t count() const { return count_; }
  unsigned char* data() { return bytes_.data() + start_; }
  const unsigned char* data() const { return bytes_.data() + start_; }
  std::size_t byte_count() const {
    return static_cast<std::size_t>(count_) * static_cast<std::size_t>(size_of(dtype_));
  }
  ScalarBits bits(std::int64_t at) const {
    ScalarBits out = 0;
    auto size = static_cast<std::size_t>(size_of(dtype_));
    std::memcpy(&out, data() + static_cast<std::size_t>(at) * size, size);
    return out;
  }
  ScalarValue value(std::int64_t at) const { return value_of(bits(at), dtype_); }
  double real(std::int64_t at) const {
    return is_floating(dtype_) ? value(at).real : static_cast<double>(value(at).integer);
  }
  void set(std::int64_t at, ScalarValue v) {
    ScalarBits b = bits_of(v, dtype_);
    auto size = static_cast<std::size_t>(size_of(dtype_));
    std::memcpy(data() + static_cast<std::size_t>(at) * size, &b, size);
  }
  bool guards_intact() const {
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      if ((i < start_ || i >= start_ + byte_count()) && bytes_[i] != guard) return false;
    return true;
  }
  /// Bit for bit; any NaN equals any NaN.
  bool same(const GuardedMemory& other) const {
    for (std::int64_t i = 0; i < count_; ++i) {
      if (bits(i) == other.bits(i)) continue;
      if (!is_floating(dtype_) || real(i) == real(i) || other.real(i) == other.real(i)) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t band = 4096;
  static constexpr unsigned char guard = 0xA5;
  DType dtype_;
  std::int64_t count_;
  std::size_t start_ = 0;
  std::vector<unsigned char> bytes_;
};

inline Access memory(DType dtype, int buffer, Dim offset, std::vector<Dim> strides) {
  return {.source = Access::memory,
          .dtype = dtype,
          .buffer = buffer,
          .address = {std::move(offset), std::move(strides)},
          .guards = {},
          .indirections = {}};
}
inline Access number_access(DType dtype, std::int64_t value) {
  return {
      .source = Access::number, .dtype = dtype, .buffer = 0, .address = {value, {}}, .guards = {}, .indirections = {}};
}

/// Positions that a launch of the whole kernel runs over.
inline std::int64_t launch_positions(const Kernel& kernel) {
  if (parallel_over(kernel) == ParallelOver::elements) return kernel.loops.back().extent.constant();
  std::int64_t out = 1;
  for (std::size_t i = 0; i + 1 < kernel.loops.size(); ++i)
    if (!kernel.loops[i].reduced) out *= kernel.loops[i].extent.constant();
  return out;
}

/// Runs [begin, end) of a kernel whose Dims are all constant; `extents` (checked mode) default to the buffers' counts.
inline KernelStatus launch(const Kernel& kernel, std::span<GuardedMemory> buffers, EmitOptions options,
                           std::int64_t begin, std::int64_t end, std::span<const std::int64_t> extents = {}) {
  verify(kernel);
  NumberLayout layout = number_layout(kernel, options.checked);
  std::vector<std::int64_t> numbers;
  for (const Dim& dim : kernel.numbers()) numbers.push_back(dim.constant());
  numbers.resize(static_cast<std::size_t>(layout.total), 0);
  if (kernel.has_reduction())
    for (const Loop& loop : kernel.loops)
      if (loop.reduced) {
        numbers[static_cast<std::size_t>(layout.reduce_begin) + 1] = loop.extent.constant();
        break;
      }
  std::vector<void*> pointers;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    pointers.push_back(buffers[i].data());
    if (options.checked)
      numbers[static_cast<std::size_t>(layout.extents) + i] = extents.empty() ? buffers[i].count() : extents[i];
  }
  auto function = reinterpret_cast<KernelFunction>(load_code(kernel_code(kernel, options)));
  KernelStatus status;
  std::int64_t result = function(pointers.data(), numbers.data(), begin, end, &status);
  if (result != status.check) throw std::runtime_error("the returned check is not the one in the status");
  return status;
}
inline KernelStatus launch(const Kernel& kernel, std::span<GuardedMemory> buffers, EmitOptions options = {}) {
  return launch(kernel, buffers, options, 0, launch_positions(kernel));
}

/// The meaning of a kernel, position by position.
class KernelReference {
 public:
  KernelReference(const Kernel& kernel, std::span<GuardedMemory> buffers)
      : kernel_(kernel), buffers_(buffers), body_(expand_math(kernel.body)) {}

  void run() {
    std::vector<std::int64_t> index(kernel_.loops.size(), 0);
    kept(index, 0);
  }

 private:
  static std::int64_t at(const Affine& affine, const std::vector<std::int64_t>& index) {
    std::int64_t out = affine.offset.constant();
    for (std::size_t i = 0; i < affine.strides.size(); ++i) out += affine.strides[i].constant() * index[i];
    return out;
  }
  std::int64_t address(const Access& access, const std::vector<std::int64_t>& index) {
    std::int64_t out = at(access.address, index);
    for (const Indirection& i : access.indirections)
      out += i.stride.constant() * load(kernel_.operands[static_cast<std::size_t>(i.operand)], index).integer;
    return out;
  }
  ScalarValue load(const Access& access, const std::vector<std::int64_t>& index) {
    if (access.source == Access::number)
      return convert({.integer = access.address.offset.constant()}, DType::i64, access.dtype);
    for (const Guard& guard : access.guards) {
      std::int64_t position = at(guard.position, index);
      if (position < 0 || position >= guard.extent.constant()) return {};
    }
    return buffers_[static_cast<std::size_t>(access.buffer)].value(address(access, index));
  }

  void kept(std::vector<std::int64_t>& index, std::size_t loop) {
    if (loop == kernel_.loops.size()) return position(index);
    if (kernel_.loops[loop].reduced) return kept(index, loop + 1);
    for (std::int64_t i = 0; i < kernel_.loops[loop].extent.constant(); ++i) {
      index[loop] = i;
      kept(index, loop + 1);
    }
    index[loop] = 0;
  }
  void position(std::vector<std::int64_t>& index) {
    started_ = false;
    sum_ = kernel_.combine == Combine::product ? ScalarValue{1, 1} : ScalarValue{};
    bool largest = kernel_.combine == Combine::maximum, smallest = kernel_.combine == Combine::minimum;
    if (largest || smallest) {
      double infinity = std::numeric_limits<double>::infinity();
      const DTypeRow& type = row(kernel_.body.dtype());
      sum_ = {largest ? -infinity : infinity, largest ? type.lowest : type.highest};
    }
    reduced(index, 0);
    ScalarValue value = sum_;
    if (kernel_.has_reduction() && kernel_.combine != Combine::argmax && kernel_.combine != Combine::argmin)
      value = value_of(bits_of(value, body_.dtype()), body_.dtype());
    if (kernel_.epilogue.defined()) {
      std::vector<ScalarValue> operands{value};
      for (const Access& access : kernel_.epilogue_operands) operands.push_back(load(access, index));
      value = evaluate(expand_math(kernel_.epilogue), operands, index, true);
    }
    std::vector<ScalarValue> further = further_values(index);  // before anything is stored
    for (std::size_t i = 0; i < further.size(); ++i) {
      const Access& result = kernel_.further[i].to;
      buffers_[static_cast<std::size_t>(result.buffer)].set(at(result.address, index), further[i]);
    }
    GuardedMemory& to = buffers_[static_cast<std::size_t>(kernel_.result.buffer)];
    std::int64_t place = address(kernel_.result, index);
    if (kernel_.accumulate) {
      ScalarValue old = to.value(place);
      value = {old.real + value.real, old.integer + value.integer};
    }
    to.set(place, value);
  }
  std::vector<ScalarValue> further_values(const std::vector<std::int64_t>& index) {
    std::vector<ScalarValue> operands, out;
    if (!kernel_.further.empty())
      for (const Access& access : kernel_.operands) operands.push_back(load(access, index));
    for (const FurtherResult& one : kernel_.further)
      out.push_back(evaluate(expand_math(one.body), operands, index, true));
    return out;
  }
  void reduced(std::vector<std::int64_t>& index, std::size_t loop) {
    if (loop == kernel_.loops.size()) {
      std::vector<ScalarValue> operands;
      for (const Access& access : kernel_.operands) operands.push_back(load(access, index));
      take(evaluate(body_, operands, index, true), index);
      return;
    }
    if (!kernel_.loops[loop].reduced) return reduced(index, loop + 1);
    for (std::int64_t i = 0; i < kernel_.loops[loop].extent.constant(); ++i) {
      index[loop] = i;
      reduced(index, loop + 1);
    }
    index[loop] = 0;
  }
  void take(ScalarValue v, const std::vector<std::int64_t>& index) {
    bool real = is_floating(body_.dtype());
    auto nan = [](double x) { return x != x; };
    auto above = [&](ScalarValue a, ScalarValue b) {
      return real ? a.real > b.real || (nan(a.real) && !nan(b.real)) : a.integer > b.integer;
    };
    auto below = [&](ScalarValue a, ScalarValue b) {
      return real ? a.real < b.real || (nan(a.real) && !nan(b.real)) : a.integer < b.integer;
    };
    auto wrapped = [](std::int64_t a, std::int64_t b, bool multiply) {
      auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
      return static_cast<std::int64_t>(multiply ? x * y : x + y);
    };
    switch (kernel_.combine) {
      case Combine::none:
        sum_ = v;
        break;
      case Combine::sum:
        sum_ = {sum_.real + v.real, wrapped(sum_.integer, v.integer, false)};
        break;
      case Combine::product:
        sum_ = {sum_.real * v.real, wrapped(sum_.integer, v.integer, true)};
        break;
      case Combine::maximum:
        if (above(v, sum_)) sum_ = v;
        break;
      case Combine::minimum:
        if (below(v, sum_)) sum_ = v;
        break;
      default:
        if (!started_ || (kernel_.combine == Combine::argmax ? above(v, best_) : below(v, best_))) {
          best_ = v;
          for (std::size_t i = 0; i < kernel_.loops.size(); ++i)
            if (kernel_.loops[i].reduced) sum_.integer = index[i];
        }
    }
    started_ = true;
  }

  const Kernel& kernel_;
  std::span<GuardedMemory> buffers_;
  Expr body_;
  ScalarValue sum_, best_;
  bool started_ = false;
};

}  // namespace stet::cpu
