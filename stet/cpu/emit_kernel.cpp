#include "stet/cpu/emit_kernel.h"

#include <algorithm>
#include <atomic>
#include <unordered_set>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/cpu/emit_combine.h"
#include "stet/cpu/emit_expr.h"
#include "stet/cpu/emit_launch.h"
#include "stet/ir/expand_math.h"

namespace stet::cpu {
namespace {

#if STET_CHECKED_KERNELS
std::atomic<bool> checked_default{true};
#else
std::atomic<bool> checked_default{false};
#endif

/// Vectors per step of the main loop: enough independent work to hide latency, few enough registers not to spill.
int unroll_for(int expr_size) { return expr_size <= 8 ? 4 : expr_size <= 24 ? 2 : 1; }

/// Distinct nodes of all of them, as they are computed.
int expanded_size(const std::vector<Expr>& bodies) {
  std::unordered_set<const ExprNode*> nodes;
  std::vector<Expr> held;  // so that no node takes the place of another
  for (Expr body : bodies) {
    held.push_back(expand_math(body));
    for (const Expr& part : topological(held.back())) nodes.insert(&*part);
  }
  return static_cast<int>(nodes.size());
}

class KernelEmitter : private LaunchEmitter {
 public:
  KernelEmitter(LlvmBuilder& builder, const Kernel& kernel, EmitOptions options)
      : KernelEmitter(builder, kernel, options, number_layout(kernel, options.checked)) {}

  void emit() {
    begin();
    if (!kernel_.has_reduction())
      emit_map();
    else if (kernel_.loops.back().reduced)
      emit_row_reduction();
    else
      emit_column_reduction();
    // Non-temporal stores are not ordered with the store by which a thread hands the result to another: the fence is.
    if (options_.nontemporal) LLVMBuildFence(b.raw(), LLVMAtomicOrderingSequentiallyConsistent, false, "");
    b.result(b.index(0));
  }

 private:
  KernelEmitter(LlvmBuilder& builder, const Kernel& kernel, EmitOptions options, NumberLayout places)
      : LaunchEmitter(builder, kernel.numbers(), kernel.buffer_count, places.total,
                      options.checked ? places.extents : -1, vector_lanes(kernel)),
        kernel_(kernel),
        options_(options),
        places_(places),
        inner_(kernel.loops.size() - 1) {}

  /// The position of everything but the vectorised loop, and what can be computed once for it.
  struct Run {
    std::vector<Value> indices;        // per loop; the inner one unset
    std::vector<Value> operand_bases;  // element offsets
    std::vector<Value> hoisted;        // operands that do not move along the inner loop, as vectors; else null
  };

  /// Over every loop but the inner one.
  Value base_of(const Affine& affine, const std::vector<Value>& indices) {
    return LaunchEmitter::base_of(affine, indices, inner_);
  }

  // --- operands

  bool moves_inside(const Affine& affine) const { return !affine.strides[inner_].is_constant(0); }
  bool moves_inside(const Access& access) const {
    if (access.source == Access::number) return false;
    if (moves_inside(access.address)) return true;
    for (const Guard& guard : access.guards)
      if (moves_inside(guard.position)) return true;
    for (const Indirection& indirection : access.indirections)
      if (moves_inside(kernel_.operands[static_cast<std::size_t>(indirection.operand)])) return true;
    return false;
  }

  /// The value moved by an indirection that is the same for the whole run, checked; added to `base`.
  Value add_scalar_indirections(const Access& access, Value base, const Run& run) {
    for (const Indirection& indirection : access.indirections) {
      const Access& through = kernel_.operands[static_cast<std::size_t>(indirection.operand)];
      if (moves_inside(through)) continue;
      Value vector = run.hoisted[static_cast<std::size_t>(indirection.operand)];
      Value index = widen(through.dtype, b.extract(vector, 0));
      Value bad =
          b.bit_or(b.compare(LLVMIntSLT, index, b.index(0)), b.compare(LLVMIntSGE, index, number(indirection.extent)));
      fail_if(bad, indirection.check, index, run.operand_bases[static_cast<std::size_t>(indirection.operand)]);
      base = b.add(base, scaled(index, indirection.stride));
    }
    return base;
  }

  /// An integer value as i64.
  Value widen(DType dtype, Value value) {
    Type type = b.vector(b.index(), b.lanes_of(value));
    if (size_of(dtype) == 8) return value;
    return dtype == DType::u8 ? LLVMBuildZExt(b.raw(), value, type, "") : LLVMBuildSExt(b.raw(), value, type, "");
  }

  Run start_run(std::vector<Value> indices) {
    Run run;
    run.indices = std::move(indices);
    for (const Access& access : kernel_.operands) {
      Value base = nullptr, hoisted = nullptr;
      if (access.source == Access::number) {
        hoisted = b.splat(number_value(access), lanes_);
      } else {
        base = base_of(access.address, run.indices);
        base = add_scalar_indirections(access, base, run);
        if (!moves_inside(access)) hoisted = b.splat(scalar_load(access, base, run), lanes_);
      }
      run.operand_bases.push_back(base);
      run.hoisted.push_back(hoisted);
    }
    return run;
  }

  Value inside(const Guard& guard, const std::vector<Value>& indices, Value i, bool as_lanes) {
    Value position = base_of(guard.position, indices);
    Value extent = number(guard.extent);
    if (as_lanes) {
      position = lane_addresses(position, i, guard.position.strides[inner_]);
      extent = b.splat(extent, lanes_);
    }
    // One unsigned comparison covers both ends: a negative position is a huge one.
    return b.compare(LLVMIntULT, position, extent);
  }

  /// The address of a zero of any type.
  Value spare_zero() {
    Value zero = LLVMAddGlobal(b.module(), b.index(), "stet_zero");
    LLVMSetInitializer(zero, b.index(0));
    LLVMSetGlobalConstant(zero, 1);
    LLVMSetLinkage(zero, LLVMPrivateLinkage);
    return zero;
  }

  /// A load of one element; 0 outside its guards.
  Value scalar_load(const Access& access, Value base, const Run& run) {
    Type type = b.storage(access.dtype);
    Value ok = nullptr;
    for (const Guard& guard : access.guards) {
      Value one = inside(guard, run.indices, nullptr, false);
      ok = ok ? b.bit_and(ok, one) : one;
    }
    Value pointer = buffer(access);
    if (!ok) return load_one(access, base);
    // Outside the guards nothing is touched: there may be no element at all. The spare place holds the zero read then.
    base = b.select(ok, base, b.index(0));
    check_range(access, base, b.select(ok, b.index(1), b.index(0)));
    Value place = b.select(ok, b.element_pointer(type, pointer, base), spare_zero());
    return from_storage(b, access.dtype, b.load(type, place, size_of(access.dtype)));
  }

  /// Operand `number` at inner positions i … i + lanes; `mask` null when all of them exist, `active` how many do.
  Value vector_load(const Run& run, std::size_t number, Value i, Value mask, Value active,
                    const std::function<Value(int)>& operand) {
    const Access& access = kernel_.operands[number];
    Type element = b.storage(access.dtype), type = b.vector(element, lanes_);
    Value pointer = buffer(access);
    Value addresses = nullptr;
    const Dim& stride = access.address.strides[inner_];
    for (const Indirection& indirection : access.indirections) {
      const Access& through = kernel_.operands[static_cast<std::size_t>(indirection.operand)];
      if (!moves_inside(through)) continue;
      if (!addresses) addresses = lane_addresses(run.operand_bases[number], i, stride);
      Value index = widen(through.dtype, operand(indirection.operand));
      Value bad = b.compare(LLVMIntUGE, index, b.splat(this->number(indirection.extent), lanes_));
      if (mask) bad = b.bit_and(bad, mask);
      Value where = lane_addresses(run.operand_bases[static_cast<std::size_t>(indirection.operand)], i,
                                   through.address.strides[inner_]);
      fail_if_any(bad, indirection.check, index, where);
      Value step = indirection.stride.is_constant(1)
                       ? index
                       : b.multiply(index, b.splat(this->number(indirection.stride), lanes_));
      addresses = b.add(addresses, step);
    }
    Value guarded = mask;
    for (const Guard& guard : access.guards) {
      Value ok = moves_inside(guard.position) ? inside(guard, run.indices, i, true)
                                              : b.splat(inside(guard, run.indices, i, false), lanes_);
      guarded = guarded ? b.bit_and(guarded, ok) : ok;
    }
    if (!addresses && access.guards.empty())
      return load_lanes(access, run.operand_bases[number], i, stride, mask, active);
    bool contiguous = !addresses && stride.is_constant(1);
    if (!addresses) addresses = lane_addresses(run.operand_bases[number], i, stride);
    if (!guarded) guarded = LLVMConstAllOnes(b.vector(b.boolean(), lanes_));
    check_lanes(access, addresses, guarded);
    if (contiguous) {
      Value at = b.element_pointer(element, pointer, b.add(run.operand_bases[number], i));
      return from_storage(b, access.dtype, b.masked_load(type, at, guarded, size_of(access.dtype)));
    }
    return from_storage(b, access.dtype, b.gather(element, pointer, addresses, guarded, size_of(access.dtype)));
  }

  /// The bodies at inner positions i … i + lanes.
  std::vector<Value> bodies_at(const Run& run, Value i, Value mask, Value active) {
    std::vector<Value> cache(kernel_.operands.size(), nullptr);
    std::function<Value(int)> operand = [&](int k) {
      auto at = static_cast<std::size_t>(k);
      if (run.hoisted[at]) return run.hoisted[at];
      if (!cache[at]) cache[at] = vector_load(run, at, i, mask, active, operand);
      return cache[at];
    };
    return emit_exprs(b, kernel_.bodies(), lanes_, operand, [&](int loop) { return index_value(run, loop, i); });
  }
  Value body_at(const Run& run, Value i, Value mask, Value active) { return bodies_at(run, i, mask, active)[0]; }
  Value index_value(const Run& run, int loop, Value i) {
    if (static_cast<std::size_t>(loop) == inner_) return positions(i);
    return b.splat(run.indices[static_cast<std::size_t>(loop)], lanes_);
  }

  // --- results

  /// Stores lanes of a result at base + i.
  void store_lanes(const Access& access, Value value, Value base, Value i, Value mask, Value active) {
    Type element = b.storage(access.dtype);
    Value pointer = buffer(access);
    const Dim& stride = access.address.strides[inner_];
    int align = size_of(access.dtype);
    if (!stride.is_constant(1)) {
      Value addresses = lane_addresses(base, i, stride);
      Value lanes_mask = mask ? mask : LLVMConstAllOnes(b.vector(b.boolean(), lanes_));
      check_lanes(access, addresses, lanes_mask);
      b.scatter(to_storage(b, access.dtype, value), element, pointer, addresses, lanes_mask, align);
      return;
    }
    Value first = b.add(base, i);
    check_range(access, first, active);
    Value at = b.element_pointer(element, pointer, first);
    if (kernel_.accumulate) {
      Type type = b.vector(element, lanes_);
      Value old = mask ? b.masked_load(type, at, mask, align) : b.load(type, at, align);
      value = combine_values(b, Combine::sum, access.dtype, from_storage(b, access.dtype, old), value);
    }
    Value stored = to_storage(b, access.dtype, value);
    if (mask)
      b.masked_store(stored, at, mask, align);
    else if (options_.nontemporal)
      b.store_nontemporal(stored, at, align * lanes_);
    else
      b.store(stored, at, align);
  }

  Value result_base(const Access& result, const Run& run) {
    return add_scalar_indirections(result, base_of(result.address, run.indices), run);
  }

  /// The epilogue on a combined value of any lanes; `load` gives an epilogue operand.
  Value epilogue_of(Value combined, int lanes, const std::function<Value(int)>& load) {
    if (!kernel_.epilogue.defined()) return combined;
    return emit_expr(
        b, kernel_.epilogue, lanes, [&](int k) { return k == 0 ? combined : load(k - 1); },
        [&](int) -> Value { throw InternalError("an epilogue has no loop index"); });
  }

  // --- loops

  /// Indices of `loops` from their position as one number.
  void decompose(Value flat, const std::vector<std::size_t>& loops, std::vector<Value>& indices) {
    std::vector<Dim> extents;
    for (std::size_t loop : loops) extents.push_back(kernel_.loops[loop].extent);
    LaunchEmitter::decompose(flat, loops, extents, indices);
  }

  std::vector<std::size_t> outer_kept_loops() const {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < inner_; ++i)
      if (!kernel_.loops[i].reduced) out.push_back(i);
    return out;
  }
  std::vector<std::size_t> reduced_loops() const {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < kernel_.loops.size(); ++i)
      if (kernel_.loops[i].reduced) out.push_back(i);
    return out;
  }

  static constexpr std::int64_t strip_ = 64;
  /// Some operand moves along the inner loop, but not from one element to the next.
  bool strides_inside() const {
    return std::any_of(kernel_.operands.begin(), kernel_.operands.end(), [&](const Access& access) {
      return access.source == Access::memory && moves_inside(access.address) &&
             !access.address.strides[inner_].is_constant(1);
    });
  }

  void emit_map() {
    int unroll = options_.checked ? 1 : unroll_for(expanded_size(kernel_.bodies()));
    std::vector<const Access*> results = kernel_.results();
    auto run_inner = [&](const Run& run, Value begin, Value end) {
      std::vector<Value> bases;
      for (const Access* result : results) bases.push_back(result_base(*result, run));
      vector_loop(begin, end, unroll, [&](Value i, Value mask, Value active) {
        // All is loaded before anything is stored: a result may lie where an operand lay.
        std::vector<Value> values = bodies_at(run, i, mask, active);
        for (std::size_t r = 0; r < results.size(); ++r) store_lanes(*results[r], values[r], bases[r], i, mask, active);
      });
    };
    if (parallel_over(kernel_) == ParallelOver::elements) {
      run_inner(start_run(std::vector<Value>(kernel_.loops.size(), nullptr)), b.parameter(2), b.parameter(3));
      return;
    }
    std::vector<std::size_t> outer = outer_kept_loops();
    Value extent = number(kernel_.loops[inner_].extent);
    auto run_rows = [&](Value begin, Value end) {
      b.loop(b.parameter(2), b.parameter(3), b.index(1), [&](Value row) {
        std::vector<Value> indices(kernel_.loops.size(), nullptr);
        decompose(row, outer, indices);
        run_inner(start_run(indices), begin, end);
      });
    };
    if (!strides_inside()) {
      run_rows(b.index(0), extent);
      return;
    }
    // An operand that jumps along the inner loop (a transpose) moves slowly along another: a strip of the inner loop at
    // a time keeps the cache lines it touches for the next rows.
    b.loop(b.index(0), extent, b.index(strip_),
           [&](Value begin) { run_rows(begin, b.minimum(extent, b.add(begin, b.index(strip_)))); });
  }

  // --- reductions

  Value reduce_bound(int which) { return word(places_.reduce_begin + which); }

  /// Runs `body` for every position of reduced loops `loops[at…]`, carrying accumulators. The kernel's outermost
  /// reduced loop runs between the launch's bounds.
  using CarriedBody = std::function<std::vector<Value>(std::vector<Value>& indices, std::span<const Value> carried)>;
  std::vector<Value> reduced_nest(const std::vector<std::size_t>& loops, std::size_t at, std::vector<Value>& indices,
                                  std::span<const Value> carried, const CarriedBody& body) {
    if (at == loops.size()) return body(indices, carried);
    bool outermost = loops[at] == reduced_loops().front();
    Value begin = outermost ? reduce_bound(0) : b.index(0);
    Value end = outermost ? reduce_bound(1) : number(kernel_.loops[loops[at]].extent);
    return b.loop(begin, end, b.index(1), carried, [&](Value i, std::span<const Value> inside) {
      indices[loops[at]] = i;
      return reduced_nest(loops, at + 1, indices, inside, body);
    });
  }

  /// The last loop is reduced: lanes and a few accumulators run along it, and are combined at the end of a row.
  void emit_row_reduction() {
    std::vector<std::size_t> outer = outer_kept_loops(), reduced = reduced_loops();
    std::vector<std::size_t> nest(reduced.begin(), reduced.end() - 1);
    Reducer reducer(b, kernel_.combine, kernel_.body.dtype(), lanes_);
    // Also in checked mode, where it only costs time: how many accumulators there are decides how a sum rounds.
    int unroll = reducer.width() > 1 ? 1 : 2 * unroll_for(expand_math(kernel_.body).size());
    b.loop(b.parameter(2), b.parameter(3), b.index(1), [&](Value row) {
      std::vector<Value> indices(kernel_.loops.size(), nullptr);
      decompose(row, outer, indices);
      std::vector<Value> start;
      for (int u = 0; u < unroll; ++u)
        for (Value v : reducer.initial(b.lane_numbers(b.index(), lanes_))) start.push_back(v);
      std::vector<Value> accumulators =
          reduced_nest(nest, 0, indices, start, [&](std::vector<Value>& at, std::span<const Value> carried) {
            Run run = start_run(at);
            Value begin = nest.empty() ? reduce_bound(0) : b.index(0);
            Value end = nest.empty() ? reduce_bound(1) : number(kernel_.loops[inner_].extent);
            return accumulate_run(reducer, run, begin, end, unroll, carried);
          });
      Value combined = reducer.finish(accumulators);
      store_row(outer, indices, combined);
    });
  }

  std::vector<Value> accumulate_run(Reducer& reducer, const Run& run, Value begin, Value end, int unroll,
                                    std::span<const Value> carried) {
    int step = unroll * lanes_, width = reducer.width();
    Value whole =
        b.add(begin, b.multiply(LLVMBuildSDiv(b.raw(), b.subtract(end, begin), b.index(step), ""), b.index(step)));
    std::vector<Value> state = b.loop(begin, whole, b.index(step), carried, [&](Value i, std::span<const Value> in) {
      std::vector<Value> next;
      for (int u = 0; u < unroll; ++u) {
        Value at = u == 0 ? i : b.add(i, b.index(u * lanes_));
        auto mine = in.subspan(static_cast<std::size_t>(u * width), static_cast<std::size_t>(width));
        Value value = body_at(run, at, nullptr, b.index(lanes_));
        for (Value v : reducer.step(mine, value, positions(at), nullptr)) next.push_back(v);
      }
      return next;
    });
    return b.loop(whole, end, b.index(lanes_), state, [&](Value i, std::span<const Value> in) {
      Value active = b.minimum(b.subtract(end, i), b.index(lanes_));
      Value mask = b.mask_below(active, lanes_);
      std::vector<Value> next(in.begin(), in.end());
      Value value = body_at(run, i, mask, active);
      auto first = in.subspan(0, static_cast<std::size_t>(width));
      std::vector<Value> updated = reducer.step(first, value, positions(i), mask);
      std::copy(updated.begin(), updated.end(), next.begin());
      return next;
    });
  }

  /// Stores the one value of a row.
  void store_row(const std::vector<std::size_t>& outer, const std::vector<Value>& indices, Value combined) {
    auto address = [&](const Affine& affine) {
      Value sum = number(affine.offset);
      for (std::size_t loop : outer)
        if (!affine.strides[loop].is_constant(0)) sum = b.add(sum, scaled(indices[loop], affine.strides[loop]));
      return sum;
    };
    Value stored = epilogue_of(combined, 1, [&](int k) -> Value {
      const Access& access = kernel_.epilogue_operands[static_cast<std::size_t>(k)];
      return access.source == Access::number ? number_value(access) : load_one(access, address(access.address));
    });
    store_one(kernel_.result, stored, address(kernel_.result.address));
  }

  /// The last loop is kept: a strip of it is held in registers while the reduced loops run.
  void emit_column_reduction() {
    std::vector<std::size_t> outer = outer_kept_loops(), reduced = reduced_loops();
    Reducer reducer(b, kernel_.combine, kernel_.body.dtype(), lanes_);
    // Wide strips: each row of memory is visited for as long a stretch as registers allow.
    int unroll = options_.checked || reducer.width() > 1 ? 1 : 2 * unroll_for(expand_math(kernel_.body).size());
    auto run_columns = [&](std::vector<Value> indices, Value begin, Value end) {
      int step = unroll * lanes_;
      Value whole =
          b.add(begin, b.multiply(LLVMBuildSDiv(b.raw(), b.subtract(end, begin), b.index(step), ""), b.index(step)));
      b.loop(begin, whole, b.index(step),
             [&](Value i) { column_strip(reducer, reduced, indices, i, unroll, nullptr, b.index(lanes_)); });
      b.loop(whole, end, b.index(lanes_), [&](Value i) {
        Value active = b.minimum(b.subtract(end, i), b.index(lanes_));
        column_strip(reducer, reduced, indices, i, 1, b.mask_below(active, lanes_), active);
      });
    };
    std::vector<Value> indices(kernel_.loops.size(), nullptr);
    if (parallel_over(kernel_) == ParallelOver::elements) {
      run_columns(indices, b.parameter(2), b.parameter(3));
      return;
    }
    b.loop(b.parameter(2), b.parameter(3), b.index(1), [&](Value row) {
      decompose(row, outer, indices);
      run_columns(indices, b.index(0), number(kernel_.loops[inner_].extent));
    });
  }

  void column_strip(Reducer& reducer, const std::vector<std::size_t>& reduced, std::vector<Value> indices, Value i,
                    int unroll, Value mask, Value active) {
    int width = reducer.width();
    std::vector<Value> start;
    for (int u = 0; u < unroll; ++u)
      for (Value v : reducer.initial(b.zero(b.vector(b.index(), lanes_)))) start.push_back(v);
    std::vector<Value> state =
        reduced_nest(reduced, 0, indices, start, [&](std::vector<Value>& at, std::span<const Value> carried) {
          Run run = start_run(at);
          std::vector<Value> next;
          Value position = b.splat(at[reduced.back()], lanes_);
          for (int u = 0; u < unroll; ++u) {
            auto mine = carried.subspan(static_cast<std::size_t>(u * width), static_cast<std::size_t>(width));
            Value value = body_at(run, b.add(i, b.index(u * lanes_)), mask, active);
            for (Value v : reducer.step(mine, value, position, nullptr)) next.push_back(v);
          }
          return next;
        });
    for (int u = 0; u < unroll; ++u) {
      Value at = b.add(i, b.index(u * lanes_));
      Value combined = reducer.column_result({state.data() + u * width, static_cast<std::size_t>(width)});
      Value stored = epilogue_of(combined, lanes_, [&](int k) { return column_operand(k, indices, at, mask, active); });
      store_lanes(kernel_.result, stored, base_of(kernel_.result.address, indices), at, mask, active);
    }
  }

  Value column_operand(int k, const std::vector<Value>& indices, Value i, Value mask, Value active) {
    const Access& access = kernel_.epilogue_operands[static_cast<std::size_t>(k)];
    if (access.source == Access::number) return b.splat(number_value(access), lanes_);
    return load_lanes(access, base_of(access.address, indices), i, access.address.strides[inner_], mask, active);
  }

  const Kernel& kernel_;
  EmitOptions options_;
  NumberLayout places_;
  std::size_t inner_;
};

}  // namespace

bool checked_kernels() { return checked_default.load(std::memory_order_relaxed); }
void set_checked_kernels(bool checked) { checked_default.store(checked, std::memory_order_relaxed); }

NumberLayout number_layout(const Kernel& kernel, bool checked) {
  NumberLayout out;
  out.count = static_cast<int>(kernel.numbers().size());
  out.reduce_begin = out.count;
  out.extents = out.count + (kernel.has_reduction() ? 2 : 0);
  out.total = out.extents + (checked ? kernel.buffer_count : 0);
  return out;
}

ParallelOver parallel_over(const Kernel& kernel) {
  int outer_kept = 0;
  for (std::size_t i = 0; i + 1 < kernel.loops.size(); ++i) outer_kept += !kernel.loops[i].reduced;
  bool inner_kept = !kernel.loops.back().reduced;
  return inner_kept && outer_kept == 0 ? ParallelOver::elements : ParallelOver::rows;
}

int vector_lanes(const Kernel& kernel) {
  int widest = 1;
  auto see = [&](DType d) { widest = std::max(widest, size_of(d)); };
  std::vector<Expr> exprs = kernel.bodies();
  if (kernel.epilogue.defined()) exprs.push_back(kernel.epilogue);
  for (Expr e : exprs)
    for (Expr part : topological(e)) see(compute_type(part.dtype()));
  for (const Access& access : kernel.operands) see(access.dtype);
  for (const Access* result : kernel.results()) see(result->dtype);
  return 64 / widest;
}

CodeRequest kernel_code(const Kernel& kernel, EmitOptions options) {
  std::string key =
      text("kernel ", kernel.key(), options.checked ? "; checked" : "", options.nontemporal ? "; nontemporal" : "");
  return {std::move(key), [kernel, options](LlvmBuilder& b) { KernelEmitter(b, kernel, options).emit(); }};
}

}  // namespace stet::cpu
