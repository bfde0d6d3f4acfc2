#include "stet/cpu/emit_rows.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/cpu/emit_combine.h"
#include "stet/cpu/emit_expr.h"
#include "stet/cpu/emit_launch.h"
#include "stet/ir/expand_math.h"

namespace stet::cpu {
namespace {

/// `body` with every question "is this the element number x?" replaced by a value of its own, from `picks.size()` on
/// numbered after `first`. Answered by comparing 64-bit places it would halve the lanes of everything around it.
Expr with_picks(Expr body, int row_loop, int first, const std::vector<bool>& still, std::vector<int>& picks) {
  std::unordered_map<const ExprNode*, Expr> done;
  auto is_place = [&](Expr e) { return e.is(Primitive::index) && e->number == row_loop; };
  auto is_still = [&](Expr e) {
    return e.is(Primitive::operand) && e.dtype() == DType::i64 && still[static_cast<std::size_t>(e->number)];
  };
  for (Expr part : topological(body)) {
    Expr next = part;
    if (part.is(Primitive::equal) && ((is_place(part->arguments[0]) && is_still(part->arguments[1])) ||
                                      (is_place(part->arguments[1]) && is_still(part->arguments[0])))) {
      int number = part->arguments[is_place(part->arguments[0]) ? 1 : 0]->number;
      auto at = std::find(picks.begin(), picks.end(), number);
      next = operand(first + static_cast<int>(at - picks.begin()), DType::bool_);
      if (at == picks.end()) picks.push_back(number);
    } else if (part->argument_count > 0) {
      std::vector<Expr> arguments;
      bool changed = false;
      for (int i = 0; i < part->argument_count; ++i) {
        arguments.push_back(done.at(&*part->arguments[i]));
        changed |= !(arguments.back() == part->arguments[i]);
      }
      if (changed) next = make(part->primitive, arguments, part.dtype());
    }
    done[&*part] = next;
  }
  return done.at(&*body);
}

/// A kernel as it is emitted.
struct Prepared {
  RowKernel kernel;
  std::vector<int> picks;  // values, compared with places; numbered after all others
  int first_pick = 0;
  int lanes = 1;
};

Prepared prepared(const RowKernel& given) {
  Prepared out{given, {}, given.first_value(given.stages.size()), 1};
  std::vector<bool> still(static_cast<std::size_t>(out.first_pick), true);
  for (std::size_t k = 0; k < given.operands.size(); ++k) still[k] = !RowKernel::moves(given.operands[k]);
  int widest = 1, row_loop = static_cast<int>(given.outer.size());
  auto see = [&](Expr& body) {
    body = with_picks(body, row_loop, out.first_pick, still, out.picks);
    for (Expr part : topological(body)) widest = std::max(widest, size_of(compute_type(part.dtype())));
  };
  for (RowKernel::Stage& stage : out.kernel.stages) {
    for (RowKernel::Reduction& one : stage.reductions) see(one.body);
    for (RowKernel::Line& one : stage.lines) see(one.value);
  }
  for (const Access* access : given.accesses())
    if (RowKernel::moves(*access)) widest = std::max(widest, size_of(access->dtype));
  out.lanes = 64 / widest;
  return out;
}

class RowEmitter : private LaunchEmitter {
 public:
  RowEmitter(LlvmBuilder& builder, const Prepared& prepared, RowOptions options)
      : LaunchEmitter(builder, prepared.kernel.numbers(), prepared.kernel.buffer_count,
                      row_words(prepared.kernel, options.checked),
                      options.checked ? static_cast<int>(prepared.kernel.numbers().size()) : -1, prepared.lanes),
        prepared_(prepared),
        kernel_(prepared.kernel),
        options_(options) {
    if (options.streaming) find_streams();
  }

  void emit() {
    begin();
    std::vector<std::size_t> loops;
    for (std::size_t i = 0; i < kernel_.outer.size(); ++i) loops.push_back(i);
    b.loop(b.parameter(2), b.parameter(3), b.index(1), [&](Value row) {
      indices_.assign(kernel_.outer.size(), nullptr);
      decompose(row, loops, kernel_.outer, indices_);
      emit_row();
    });
    // As for kernels: the fence orders stores around the cache with the one that hands the result to another thread.
    if (options_.streaming) LLVMBuildFence(b.raw(), LLVMAtomicOrderingSequentiallyConsistent, false, "");
    b.result(b.index(0));
  }

 private:
  /// Which buffers are written only, which read only, and which stage has the most time to fetch.
  void find_streams() {
    std::vector<bool> read(static_cast<std::size_t>(kernel_.buffer_count), false), written = read;
    for (const Access& access : kernel_.operands)
      if (access.source == Access::memory) read[static_cast<std::size_t>(access.buffer)] = true;
    int most = -1;
    for (const RowKernel::Stage& stage : kernel_.stages) {
      for (const RowKernel::Line& one : stage.lines) written[static_cast<std::size_t>(one.to.buffer)] = true;
      int size = 0;
      for (const RowKernel::Reduction& one : stage.reductions) size += expand_math(one.body).size();
      for (const RowKernel::Line& one : stage.lines) size += expand_math(one.value).size();
      if (!stage.walks() || size <= most) continue;
      most = size;
      busiest_ = &stage;
    }
    for (std::size_t k = 0; k < read.size(); ++k) past_cache_.push_back(written[k] && !read[k]);
    for (std::size_t k = 0; k < kernel_.operands.size(); ++k) {
      const Access& access = kernel_.operands[k];
      if (RowKernel::moves(access) && !written[static_cast<std::size_t>(access.buffer)] &&
          !access.address.strides[kernel_.outer.size() - 1].is_constant(0))
        fetched_.push_back(k);
    }
  }

  Value base(const Access& access) { return base_of(access.address, indices_, kernel_.outer.size()); }

  void emit_row() {
    scalars_.clear();
    splats_.clear();
    bases_.clear();
    for (const Access& access : kernel_.operands) {
      bool moves = RowKernel::moves(access), memory = access.source == Access::memory;
      bases_.push_back(memory ? base(access) : nullptr);
      add_value(moves ? nullptr : memory ? load_one(access, bases_.back()) : number_value(access));
    }
    for (const RowKernel::Stage& stage : kernel_.stages) {
      for (const RowKernel::Scalar& one : stage.scalars) {
        Value value = emit_expr(
            b, one.value, 1, [&](int k) { return scalars_[static_cast<std::size_t>(k)]; },
            [&](int loop) { return indices_[static_cast<std::size_t>(loop)]; });
        if (one.to) store_one(*one.to, value, base(*one.to));
        add_value(value);
      }
      if (stage.walks()) walk(stage);
    }
  }

  /// A value that stands still along the row; null for one that does not.
  void add_value(Value scalar) {
    scalars_.push_back(scalar);
    splats_.push_back(scalar ? b.splat(scalar, lanes_) : nullptr);
  }

  /// Vectors per step: the number of accumulators decides how sums round, so it does not depend on checked mode.
  int unroll_of(const RowKernel::Stage& stage) const {
    int size = 0, width = 0;
    for (const RowKernel::Reduction& one : stage.reductions) {
      size += expand_math(one.body).size();
      bool position = one.combine == Combine::argmax || one.combine == Combine::argmin;
      width += position ? 4 : 1;
    }
    for (const RowKernel::Line& one : stage.lines) size += expand_math(one.value).size();
    int most = size <= 8 ? 8 : size <= 24 ? 4 : size <= 60 ? 2 : 1;
    return std::max(1, std::min(most, 8 / std::max(1, width)));
  }

  void walk(const RowKernel::Stage& stage) {
    std::vector<Reducer> reducers;
    std::vector<Expr> bodies;
    for (const RowKernel::Reduction& one : stage.reductions) {
      reducers.emplace_back(b, one.combine, one.body.dtype(), lanes_);
      bodies.push_back(one.body);
    }
    std::vector<Value> to;
    for (const RowKernel::Line& one : stage.lines) {
      bodies.push_back(one.value);
      to.push_back(base(one.to));
    }
    int unroll = unroll_of(stage);
    if (stage.reductions.empty() && options_.checked) unroll = 1;
    std::size_t width = 0;  // of the accumulators of one vector
    for (Reducer& reducer : reducers) width += static_cast<std::size_t>(reducer.width());

    std::vector<Value> start;
    for (int u = 0; u < unroll; ++u)
      for (Reducer& reducer : reducers)
        for (Value v : reducer.initial(b.lane_numbers(b.index(), lanes_))) start.push_back(v);
    /// One vector: stores the lines and gives the accumulators' next values.
    auto take = [&](Value i, Value mask, Value active, std::span<const Value> mine) {
      std::vector<Value> values = bodies_at(bodies, i, mask, active), next;
      if (&stage == busiest_ && !mask)
        for (std::size_t k : fetched_) {
          const Access& access = kernel_.operands[k];
          Value next_row = b.add(bases_[k], number(access.address.strides[kernel_.outer.size() - 1]));
          b.prefetch(b.element_pointer(b.storage(access.dtype), buffer(access), b.add(next_row, i)));
        }
      std::size_t at = 0;
      for (std::size_t r = 0; r < reducers.size(); ++r) {
        auto count = static_cast<std::size_t>(reducers[r].width());
        for (Value v : reducers[r].step(mine.subspan(at, count), values[r], positions(i), mask)) next.push_back(v);
        at += count;
      }
      for (std::size_t l = 0; l < to.size(); ++l)
        store_line(stage.lines[l].to, values[reducers.size() + l], to[l], i, mask, active);
      return next;
    };
    Value end = number(kernel_.length);
    int step = unroll * lanes_;
    Value whole = b.multiply(LLVMBuildUDiv(b.raw(), end, b.index(step), ""), b.index(step));
    std::vector<Value> state = b.loop(b.index(0), whole, b.index(step), start, [&](Value i, std::span<const Value> in) {
      std::vector<Value> next;
      for (int u = 0; u < unroll; ++u) {
        Value at = u == 0 ? i : b.add(i, b.index(u * lanes_));
        for (Value v : take(at, nullptr, b.index(lanes_), in.subspan(static_cast<std::size_t>(u) * width, width)))
          next.push_back(v);
      }
      return next;
    });
    state = b.loop(whole, end, b.index(lanes_), state, [&](Value i, std::span<const Value> in) {
      Value active = b.minimum(b.subtract(end, i), b.index(lanes_));
      std::vector<Value> next(in.begin(), in.end());
      std::vector<Value> first = take(i, b.mask_below(active, lanes_), active, in.subspan(0, width));
      std::copy(first.begin(), first.end(), next.begin());
      return next;
    });
    std::size_t at = 0;
    for (std::size_t r = 0; r < reducers.size(); ++r) {
      auto count = static_cast<std::size_t>(reducers[r].width());
      std::vector<Value> mine;
      for (std::size_t u = 0; u < static_cast<std::size_t>(unroll); ++u)
        for (std::size_t k = 0; k < count; ++k) mine.push_back(state[u * width + at + k]);
      add_value(reducers[r].finish(mine));
      at += count;
    }
  }

  std::vector<Value> bodies_at(const std::vector<Expr>& bodies, Value i, Value mask, Value active) {
    std::vector<Value> loaded(kernel_.operands.size(), nullptr);
    auto operand = [&](int k) {
      if (k >= prepared_.first_pick)
        return picked(prepared_.picks[static_cast<std::size_t>(k - prepared_.first_pick)], i);
      auto at = static_cast<std::size_t>(k);
      if (splats_[at]) return splats_[at];
      const Access& access = kernel_.operands[at];
      if (!loaded[at]) loaded[at] = load_lanes(access, bases_[at], i, access.address.strides.back(), mask, active);
      return loaded[at];
    };
    auto index = [&](int loop) {
      auto at = static_cast<std::size_t>(loop);
      return at == indices_.size() ? positions(i) : b.splat(indices_[at], lanes_);
    };
    return emit_exprs(b, bodies, lanes_, operand, index);
  }

  /// Lanes whose place in the row is value `number`.
  Value picked(int number, Value i) {
    Value away = b.subtract(scalars_[static_cast<std::size_t>(number)], i);
    Value outside = b.compare(LLVMIntUGE, away, b.index(lanes_));
    Value lane = LLVMBuildTrunc(b.raw(), b.select(outside, b.index(-1), away), b.integer(32), "");
    return b.compare(LLVMIntEQ, b.lane_numbers(b.integer(32), lanes_), b.splat(lane, lanes_));
  }

  void store_line(const Access& access, Value value, Value base, Value i, Value mask, Value active) {
    Type element = b.storage(access.dtype);
    Value first = b.add(base, i);
    check_range(access, first, active);
    Value at = b.element_pointer(element, buffer(access), first), stored = to_storage(b, access.dtype, value);
    if (mask)
      b.masked_store(stored, at, mask, size_of(access.dtype));
    else if (options_.streaming && past_cache_[static_cast<std::size_t>(access.buffer)])
      b.store_nontemporal(stored, at, size_of(access.dtype) * lanes_);
    else
      b.store(stored, at, size_of(access.dtype));
  }

  const Prepared& prepared_;
  const RowKernel& kernel_;
  const RowOptions options_;
  std::vector<bool> past_cache_;               // streaming: by buffer
  std::vector<std::size_t> fetched_;           // streaming: operands whose next row is fetched
  const RowKernel::Stage* busiest_ = nullptr;  // streaming: where that is done
  std::vector<Value> indices_;                 // of the row
  std::vector<Value> bases_;                   // of operands: where the row begins
  std::vector<Value> scalars_, splats_;        // by value number
};

}  // namespace

int row_words(const RowKernel& kernel, bool checked) {
  return static_cast<int>(kernel.numbers().size()) + (checked ? kernel.buffer_count : 0);
}

int row_lanes(const RowKernel& kernel) { return prepared(kernel).lanes; }

CodeRequest row_kernel_code(const RowKernel& kernel, RowOptions options) {
  std::string key = text(kernel.key(), options.checked ? "; checked" : "", options.streaming ? "; streaming" : "");
  return {std::move(key), [kernel, options](LlvmBuilder& b) { RowEmitter(b, prepared(kernel), options).emit(); }};
}

}  // namespace stet::cpu
