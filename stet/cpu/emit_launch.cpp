#include "stet/cpu/emit_launch.h"

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/cpu/emit_expr.h"
#include "stet/cpu/emit_kernel.h"

namespace stet::cpu {

void LaunchEmitter::begin() {
  Type i64 = b.index(), pointer = b.pointer();
  Value function = b.begin_function(entry_name, i64, {pointer, pointer, i64, i64, pointer});
  b.add_parameter_attribute(function, 0, "noalias");
  b.add_parameter_attribute(function, 1, "noalias");
  for (int k = 0; k < buffer_count_; ++k)
    buffers_.push_back(b.load(pointer, b.element_pointer(pointer, b.parameter(0), b.index(k)), 8));
  for (int k = 0; k < words_; ++k)
    loaded_.push_back(b.load(i64, b.element_pointer(i64, b.parameter(1), b.index(k)), 8));
}

Value LaunchEmitter::number(const Dim& dim) {
  if (dim.is_constant(0) || dim.is_constant(1) || dim.is_constant(-1)) return b.index(dim.constant());
  for (std::size_t i = 0; i < numbers_.size(); ++i)
    if (identical(numbers_[i], dim)) return loaded_[i];
  throw InternalError(text("kernel number ", dim, " is not listed"));
}

Value LaunchEmitter::number_value(const Access& access) {
  Value integer = number(access.address.offset);
  return emit_expr(
      b, scalar::cast(operand(0, DType::i64), access.dtype), 1, [&](int) { return integer; },
      [&](int) -> Value { throw InternalError("a number has no loop index"); });
}

Value LaunchEmitter::scaled(Value index, const Dim& stride) {
  if (stride.is_constant(1)) return index;
  return b.multiply(index, number(stride));
}

Value LaunchEmitter::base_of(const Affine& affine, const std::vector<Value>& indices, std::size_t loops) {
  Value sum = affine.offset.is_constant(0) ? nullptr : number(affine.offset);
  for (std::size_t loop = 0; loop < loops; ++loop) {
    if (affine.strides[loop].is_constant(0)) continue;
    Value term = scaled(indices[loop], affine.strides[loop]);
    sum = sum ? b.add(sum, term) : term;
  }
  return sum ? sum : b.index(0);
}

Value LaunchEmitter::positions(Value i) { return b.add(b.splat(i, lanes_), b.lane_numbers(b.index(), lanes_)); }

Value LaunchEmitter::lane_addresses(Value base, Value i, const Dim& stride) {
  if (stride.is_constant(0)) return b.splat(base, lanes_);
  Value position = positions(i);
  if (!stride.is_constant(1)) position = b.multiply(position, b.splat(number(stride), lanes_));
  return b.add(b.splat(base, lanes_), position);
}

Value LaunchEmitter::reversed(Value lanes) {
  std::vector<LLVMValueRef> order;
  for (int lane = lanes_; lane-- > 0;)
    order.push_back(LLVMConstInt(b.integer(32), static_cast<unsigned long long>(lane), false));
  return LLVMBuildShuffleVector(b.raw(), lanes, LLVMGetUndef(b.type_of(lanes)),
                                LLVMConstVector(order.data(), static_cast<unsigned>(order.size())), "");
}

void LaunchEmitter::decompose(Value flat, const std::vector<std::size_t>& loops, const std::vector<Dim>& extents,
                              std::vector<Value>& indices) {
  for (std::size_t k = loops.size(); k-- > 0;) {
    if (k == 0) {
      indices[loops[k]] = flat;
      return;
    }
    Value extent = number(extents[k]);
    Value next = LLVMBuildUDiv(b.raw(), flat, extent, "");
    indices[loops[k]] = b.subtract(flat, b.multiply(next, extent));
    flat = next;
  }
}

void LaunchEmitter::vector_loop(Value begin, Value end, int unroll,
                                const std::function<void(Value i, Value mask, Value active)>& body) {
  int step = unroll * lanes_;
  Value whole =
      b.add(begin, b.multiply(LLVMBuildSDiv(b.raw(), b.subtract(end, begin), b.index(step), ""), b.index(step)));
  b.loop(begin, whole, b.index(step), [&](Value i) {
    for (int u = 0; u < unroll; ++u) body(b.add(i, b.index(u * lanes_)), nullptr, b.index(lanes_));
  });
  b.loop(whole, end, b.index(lanes_), [&](Value i) {
    Value active = b.minimum(b.subtract(end, i), b.index(lanes_));
    body(i, b.mask_below(active, lanes_), active);
  });
}

void LaunchEmitter::fail_if(Value condition, std::int64_t check, Value value, Value position) {
  b.when(condition, [&] {
    Value status = b.parameter(4);
    auto put = [&](int slot, Value v) { b.store(v, b.element_pointer(b.index(), status, b.index(slot)), 8); };
    put(0, b.index(check));
    put(1, value);
    put(2, position);
    b.result(b.index(check));
    b.position(b.block("unreachable"));  // `when` adds a branch; this block has no predecessor
  });
}

void LaunchEmitter::fail_if_any(Value bad, std::int64_t check, Value values, Value positions) {
  Value bits = b.bitcast(bad, b.integer(lanes_));
  Value lane = b.intrinsic("llvm.cttz", {b.integer(lanes_)}, {bits, b.constant(b.boolean(), 0)});
  Value at = lanes_ < 64 ? LLVMBuildZExt(b.raw(), lane, b.integer(64), "") : lane;
  // Lane numbers beyond the vector (no bad lane) must not be extracted with: keep them in range.
  at = b.minimum(at, b.index(lanes_ - 1));
  Value value = LLVMBuildExtractElement(b.raw(), values, at, "");
  Value position = LLVMBuildExtractElement(b.raw(), positions, at, "");
  fail_if(b.intrinsic("llvm.vector.reduce.or", {b.type_of(bad)}, {bad}), check, value, position);
}

void LaunchEmitter::check_range(const Access& access, Value first, Value active) {
  if (extents_ < 0) return;
  Value extent = word(extents_ + access.buffer);
  Value low = b.compare(LLVMIntSLT, first, b.index(0));
  Value high = b.compare(LLVMIntSGT, b.add(first, active), extent);
  fail_if(b.bit_or(low, high), bounds_check_base + access.buffer, first, active);
}

void LaunchEmitter::check_lanes(const Access& access, Value addresses, Value mask) {
  if (extents_ < 0) return;
  Value extent = b.splat(word(extents_ + access.buffer), lanes_);
  Value bad = b.bit_or(b.compare(LLVMIntSLT, addresses, b.zero(b.type_of(addresses))),
                       b.compare(LLVMIntSGE, addresses, extent));
  fail_if_any(b.bit_and(bad, mask), bounds_check_base + access.buffer, addresses, addresses);
}

Value LaunchEmitter::load_one(const Access& access, Value at) {
  check_range(access, at, b.index(1));
  Type type = b.storage(access.dtype);
  Value stored = b.load(type, b.element_pointer(type, buffer(access), at), size_of(access.dtype));
  return from_storage(b, access.dtype, stored);
}

void LaunchEmitter::store_one(const Access& access, Value value, Value at) {
  check_range(access, at, b.index(1));
  Type type = b.storage(access.dtype);
  b.store(to_storage(b, access.dtype, value), b.element_pointer(type, buffer(access), at), size_of(access.dtype));
}

Value LaunchEmitter::load_lanes(const Access& access, Value base, Value i, const Dim& stride, Value mask,
                                Value active) {
  Type element = b.storage(access.dtype), type = b.vector(element, lanes_);
  int align = size_of(access.dtype);
  if (stride.is_constant(0)) return b.splat(load_one(access, base), lanes_);
  if (stride.is_constant(1)) {
    Value first = b.add(base, i);
    check_range(access, first, active);
    Value at = b.element_pointer(element, buffer(access), first);
    return from_storage(b, access.dtype, mask ? b.masked_load(type, at, mask, align) : b.load(type, at, align));
  }
  if (stride.is_constant(-1)) {
    // Backwards: the lanes as they lie in memory, turned around.
    Value last = b.subtract(base, i);
    check_range(access, b.subtract(last, b.subtract(active, b.index(1))), active);
    Value at = b.element_pointer(element, buffer(access), b.subtract(last, b.index(lanes_ - 1)));
    return from_storage(b, access.dtype,
                        reversed(mask ? b.masked_load(type, at, reversed(mask), align) : b.load(type, at, align)));
  }
  Value addresses = lane_addresses(base, i, stride);
  Value lanes_mask = mask ? mask : LLVMConstAllOnes(b.vector(b.boolean(), lanes_));
  check_lanes(access, addresses, lanes_mask);
  return from_storage(b, access.dtype, b.gather(element, buffer(access), addresses, lanes_mask, align));
}

}  // namespace stet::cpu
