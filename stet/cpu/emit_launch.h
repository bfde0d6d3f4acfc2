// What the emitters of loop nests have in common: the arguments of a launch, addresses, checks.
#pragma once
#include <vector>

#include "stet/cpu/llvm_builder.h"
#include "stet/ir/kernel.h"

namespace stet::cpu {

/// A function of the kernel ABI (runtime/kernel_abi.h) in the making.
class LaunchEmitter {
 protected:
  /// `words`: how many numbers a launch passes, `numbers` first. `extents`: the place of the first buffer's element
  /// count among them, if accesses are to be checked; else -1.
  LaunchEmitter(LlvmBuilder& builder, std::vector<Dim> numbers, int buffers, int words, int extents, int lanes)
      : b(builder),
        lanes_(lanes),
        numbers_(std::move(numbers)),
        buffer_count_(buffers),
        words_(words),
        extents_(extents) {}

  /// Begins the function and loads what it was given.
  void begin();
  Value buffer(const Access& access) const { return buffers_[static_cast<std::size_t>(access.buffer)]; }
  Value word(int place) const { return loaded_[static_cast<std::size_t>(place)]; }
  /// A Dim's value.
  Value number(const Dim& dim);
  /// The value of an access that is a number.
  Value number_value(const Access& access);

  /// index * stride with 0 and 1 left out, so that dense code stays small without an optimiser.
  Value scaled(Value index, const Dim& stride);
  /// offset + sum of indices * strides over the first `loops` loops.
  Value base_of(const Affine& affine, const std::vector<Value>& indices, std::size_t loops);
  /// i, i + 1, …
  Value positions(Value i);
  /// base + (i + lane) * stride, per lane.
  Value lane_addresses(Value base, Value i, const Dim& stride);
  /// The last lane first.
  Value reversed(Value lanes);
  /// Indices of `loops` (outermost first) from their position as one number.
  void decompose(Value flat, const std::vector<std::size_t>& loops, const std::vector<Dim>& extents,
                 std::vector<Value>& indices);
  /// Calls `body` for every vector of [begin, end): whole ones `unroll` at a time, then masked ones.
  void vector_loop(Value begin, Value end, int unroll,
                   const std::function<void(Value i, Value mask, Value active)>& body);

  void fail_if(Value condition, std::int64_t check, Value value, Value position);
  /// Fails with the first lane of `bad`, its value and position.
  void fail_if_any(Value bad, std::int64_t check, Value values, Value positions);
  /// Checked mode: elements [first, first + active) lie in the buffer.
  void check_range(const Access& access, Value first, Value active);
  void check_lanes(const Access& access, Value addresses, Value mask);

  /// One element.
  Value load_one(const Access& access, Value at);
  void store_one(const Access& access, Value value, Value at);
  /// Elements base + (i + lane) * stride; `mask` null when all of them exist, `active` how many do.
  Value load_lanes(const Access& access, Value base, Value i, const Dim& stride, Value mask, Value active);

  LlvmBuilder& b;
  const int lanes_;

 private:
  std::vector<Dim> numbers_;
  int buffer_count_, words_, extents_;
  std::vector<Value> buffers_, loaded_;
};

}  // namespace stet::cpu
