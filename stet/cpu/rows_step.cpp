#include "stet/cpu/rows_step.h"

#include <algorithm>
#include <array>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/cpu/cache_size.h"
#include "stet/cpu/chunking.h"
#include "stet/cpu/parallel_throwing.h"
#include "stet/runtime/buffer.h"

namespace stet::cpu {
namespace {

constexpr std::size_t most_buffers = 32;

/// Nanoseconds that an element of a row takes on one core, roughly.
double element_cost(const RowKernel& kernel) {
  double bytes = 0, nodes = 0;
  for (const Access* access : kernel.accesses())
    if (RowKernel::moves(*access)) bytes += size_of(access->dtype);
  for (Expr body : kernel.bodies()) nodes += body.size();
  return 0.0125 * bytes + 0.01 * nodes;
}

/// The kernel with lines that are kept in a result's memory until it is written kept in scratch instead: a result is
/// then written once, and need not be in the cache for that.
RowKernel with_results_written_once(RowKernel kernel) {
  std::vector<int> writes(static_cast<std::size_t>(kernel.buffer_count), 0);
  for (const RowKernel::Stage& stage : kernel.stages)
    for (const RowKernel::Line& one : stage.lines) ++writes[static_cast<std::size_t>(one.to.buffer)];
  for (RowKernel::Stage& stage : kernel.stages)
    for (RowKernel::Line& one : stage.lines) {
      const int buffer = one.to.buffer;
      if (buffer >= kernel.first_scratch() || --writes[static_cast<std::size_t>(buffer)] == 0) continue;
      const int scratch = kernel.buffer_count++;
      kernel.scratch.push_back(one.to.dtype);
      auto move = [&](Access& access) {
        access.buffer = scratch;
        access.address.strides.assign(access.address.strides.size(), Dim(0));
        access.address.strides.back() = 1;
      };
      for (Access& access : kernel.operands)
        if (access.source == Access::memory && access.buffer == buffer) move(access);
      move(one.to);
    }
  return kernel;
}

/// Every result of whole lines is more than the cache holds, and its lines begin at whole vectors. A smaller one may be
/// there still when the next step reads it.
bool streams(const RowKernel& kernel, const Bindings& bindings, std::int64_t rows, std::int64_t length) {
  const int lanes = row_lanes(kernel);
  bool any = false;
  for (const RowKernel::Stage& stage : kernel.stages)
    for (const RowKernel::Line& one : stage.lines) {
      if (one.to.buffer >= kernel.first_scratch()) continue;
      any = true;
      if (rows <= last_level_cache() / size_of(one.to.dtype) / std::max<std::int64_t>(length, 1)) return false;
      const Affine& to = one.to.address;
      if (to.offset.evaluate(bindings) % lanes != 0) return false;
      for (std::size_t loop = 0; loop + 1 < to.strides.size(); ++loop)
        if (to.strides[loop].evaluate(bindings) % lanes != 0) return false;
    }
  return any;
}

}  // namespace

class BoundRows : public BoundStep {
 public:
  BoundRows(const RowsStep& step, const Bindings& bindings) : step_(step) {
    const RowKernel& kernel = step.kernel_;
    std::int64_t rows = 1, length = kernel.length.evaluate(bindings);
    bool empty = false, overflow = false;
    for (const Dim& extent : kernel.outer) {
      std::int64_t size = extent.evaluate(bindings);
      empty |= size == 0;
      overflow |= __builtin_mul_overflow(rows, size, &rows);
    }
    if (overflow && !empty) throw Problem("there are more rows to go through than a 64-bit number counts");
    chunks_ = Chunking::of(empty ? 0 : rows, element_cost(kernel) * static_cast<double>(length) + 5, 1);
    usual_ = bound(kernel, bindings, step.function_);
    if (empty || !streams(kernel, bindings, rows, length)) return;
    RowKernel once = with_results_written_once(kernel);
    code_ = shared_code(row_kernel_code(once, {.checked = step.checked_, .streaming = true}));
    past_cache_ = bound(once, bindings, reinterpret_cast<KernelFunction>(code_.get()));
  }

  void run(void* const* table) const override {
    if (chunks_.count == 0) return;
    const Variant& variant = past_cache_.function && results_aligned(table) ? past_cache_ : usual_;
    FirstFailure failures;
    auto body = [&](std::int64_t chunk) {
      std::array<void*, most_buffers> buffers;
      for (std::size_t i = 0; i < step_.buffers_.size(); ++i) buffers[i] = table[step_.buffers_[i]];
      Buffer scratch;
      if (variant.scratch_bytes > 0) scratch = Buffer::allocate(variant.scratch_bytes);
      for (std::size_t i = 0; i < variant.scratch.size(); ++i)
        buffers[step_.buffers_.size() + i] = scratch.data() + variant.scratch[i];
      std::int64_t begin = chunk * chunks_.size, end = std::min(chunks_.total, begin + chunks_.size);
      failures.run(chunk, variant.function, buffers.data(), variant.numbers.data(), begin, end);
    };
    if (chunks_.count == 1)
      body(0);
    else
      parallel_for_throwing(chunks_.count, body);
    if (failures.any())
      throw InternalError(text("generated code touches element ", failures.status.value, " outside buffer ",
                               failures.status.check - bounds_check_base, "\n", step_.kernel_.str()));
  }

 private:
  /// Code, and what it is given.
  struct Variant {
    KernelFunction function = nullptr;
    std::vector<std::int64_t> numbers;
    std::vector<std::size_t> scratch;  // where each line of it begins
    std::size_t scratch_bytes = 0;
  };

  Variant bound(const RowKernel& kernel, const Bindings& bindings, KernelFunction function) const {
    Variant out;
    out.function = function;
    for (const Dim& dim : kernel.numbers()) out.numbers.push_back(dim.evaluate(bindings));
    if (step_.checked_)
      for (const Dim& extent : step_.buffer_extents_) out.numbers.push_back(extent.evaluate(bindings));
    const std::int64_t length = kernel.length.evaluate(bindings);
    for (DType dtype : kernel.scratch) {
      out.scratch.push_back(out.scratch_bytes);
      auto bytes = static_cast<std::size_t>(length) * static_cast<std::size_t>(size_of(dtype));
      out.scratch_bytes += (bytes + 63) / 64 * 64;
      if (step_.checked_) out.numbers.push_back(length);
    }
    return out;
  }

  /// An element of a stacked result may begin anywhere.
  bool results_aligned(void* const* table) const {
    return std::all_of(step_.writes.begin(), step_.writes.end(),
                       [&](int buffer) { return reinterpret_cast<std::uintptr_t>(table[buffer]) % 64 == 0; });
  }

  const RowsStep& step_;
  Code code_;  // of the variant that the step does not hold
  Variant usual_, past_cache_;
  Chunking chunks_;
};

RowsStep::RowsStep(RowLaunch launch)
    : kernel_(std::move(launch.kernel)),
      buffers_(std::move(launch.buffers)),
      buffer_extents_(std::move(launch.buffer_extents)),
      checked_(checked_kernels()) {
  verify(kernel_);
  if (static_cast<std::size_t>(kernel_.buffer_count) > most_buffers)
    throw InternalError("rows have at most 32 buffers");
  reads = buffers_;
  for (const RowKernel::Stage& stage : kernel_.stages) {
    auto stores = [&](const Access& to) {
      if (to.buffer < kernel_.first_scratch()) writes.push_back(buffers_[static_cast<std::size_t>(to.buffer)]);
    };
    for (const RowKernel::Scalar& one : stage.scalars)
      if (one.to) stores(*one.to);
    for (const RowKernel::Line& one : stage.lines) stores(one.to);
  }
  std::sort(writes.begin(), writes.end());
  writes.erase(std::unique(writes.begin(), writes.end()), writes.end());
}

std::unique_ptr<BoundStep> RowsStep::bind(const Bindings& bindings) const {
  return std::make_unique<BoundRows>(*this, bindings);
}

}  // namespace stet::cpu
