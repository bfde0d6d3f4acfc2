#include "stet/cpu/kernel_step.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/cpu/cache_size.h"
#include "stet/cpu/chunking.h"
#include "stet/runtime/buffer.h"
#include "stet/runtime/parallel.h"

namespace stet::cpu {
namespace {

constexpr std::size_t most_buffers = 16;
/// Elements that one lane-parallel accumulator set takes in before a reduction is cut: bounds the error of long sums
/// and gives threads something to share.
/// Down columns the blocks are shorter: each row of a matrix may lie in a page of its own.
constexpr std::int64_t row_block = 32768, column_block = 512;

/// Nanoseconds that an iteration takes on one core, roughly: only used to decide whether threads are worth it.
double iteration_cost(const Kernel& kernel) {
  double bytes = 0, nodes = 0;
  for (const Access* result : kernel.results()) bytes += size_of(result->dtype);
  for (Expr body : kernel.bodies()) nodes += body.size();
  for (const Access& access : kernel.operands) bytes += access.source == Access::memory ? size_of(access.dtype) : 0;
  bool gathers = false;
  for (const Access& access : kernel.operands) gathers |= !access.indirections.empty() || !access.guards.empty();
  return 0.0125 * bytes + 0.01 * nodes + (gathers ? 0.5 : 0);
}

std::int64_t product(const Kernel& kernel, const Bindings& bindings, bool (*which)(const Kernel&, std::size_t)) {
  std::int64_t out = 1;
  bool empty = false, overflow = false;
  for (std::size_t i = 0; i < kernel.loops.size(); ++i) {
    if (!which(kernel, i)) continue;
    std::int64_t extent = kernel.loops[i].extent.evaluate(bindings);
    empty |= extent == 0;
    overflow |= __builtin_mul_overflow(out, extent, &out);
  }
  if (overflow && !empty) throw Problem("there are more elements to go through than a 64-bit number counts");
  return empty ? 0 : out;
}
bool is_kept(const Kernel& kernel, std::size_t i) { return !kernel.loops[i].reduced; }
bool is_reduced(const Kernel& kernel, std::size_t i) { return kernel.loops[i].reduced; }
bool is_row(const Kernel& kernel, std::size_t i) { return !kernel.loops[i].reduced && i + 1 < kernel.loops.size(); }

}  // namespace

SplitReduction split_reduction(const Kernel& kernel) {
  Kernel partial = kernel, combine = kernel;
  DType accumulator = kernel.body.dtype();
  // Scratch is dense over the kept loops, in loop order; one block follows the other.
  Affine scratch;
  Dim step = 1;
  scratch.strides.assign(kernel.loops.size(), Dim(0));
  for (std::size_t i = kernel.loops.size(); i-- > 0;)
    if (!kernel.loops[i].reduced) {
      scratch.strides[i] = step;
      step = step * kernel.loops[i].extent;
    }
  partial.name += " (blocks)";
  partial.epilogue = Expr();
  partial.epilogue_operands.clear();
  partial.result = {.source = Access::memory,
                    .dtype = accumulator,
                    .buffer = kernel.result.buffer,
                    .address = scratch,
                    .guards = {},
                    .indirections = {}};

  combine.name += " (combine)";
  combine.loops.clear();
  combine.body = operand(0, accumulator);
  std::vector<std::size_t> taken;
  bool seen = false;
  for (std::size_t i = 0; i < kernel.loops.size(); ++i) {
    if (kernel.loops[i].reduced && seen) continue;
    seen |= kernel.loops[i].reduced;
    taken.push_back(i);
    combine.loops.push_back(kernel.loops[i]);
  }
  auto keep = [&](const Affine& from) {
    Affine out{from.offset, {}};
    for (std::size_t i : taken) out.strides.push_back(from.strides[i]);
    return out;
  };
  combine.result.address = keep(kernel.result.address);
  for (Access& access : combine.epilogue_operands)
    if (access.source == Access::memory) access.address = keep(access.address);
  Access blocks{.source = Access::memory,
                .dtype = accumulator,
                .buffer = kernel.buffer_count,
                .address = keep(scratch),
                .guards = {},
                .indirections = {}};
  for (std::size_t i = 0; i < combine.loops.size(); ++i)
    if (combine.loops[i].reduced) blocks.address.strides[i] = step;
  combine.operands = {blocks};
  combine.buffer_count = kernel.buffer_count + 1;
  return {partial, combine};
}

/// A kernel with its numbers; copied per launch where a launch needs other bounds.
class BoundKernel : public BoundStep {
 public:
  BoundKernel(const KernelStep& step, const Bindings& bindings) : step_(step) {
    const Kernel& kernel = step.kernel_;
    places_ = number_layout(kernel, step.checked_);
    numbers_ = evaluated(step.numbers_, bindings, places_.total);
    function_ = step.function_;
    for (const KernelCheck& check : step.checks_) extents_.push_back(check.extent.evaluate(bindings));
    if (step.checked_) fill_extents(bindings, numbers_, places_.extents);

    std::int64_t kept = product(kernel, bindings, is_kept), reduced = product(kernel, bindings, is_reduced);
    if (kept == 0) return;  // nothing to do: no chunks
    double cost = iteration_cost(kernel);
    std::int64_t inner = kernel.loops.back().extent.evaluate(bindings);
    if (parallel_over(kernel) == ParallelOver::elements)
      chunks_ = Chunking::of(inner, cost * static_cast<double>(std::max<std::int64_t>(reduced, 1)), 64);
    else {
      std::int64_t rows = product(kernel, bindings, is_row);
      chunks_ = Chunking::of(rows, cost * static_cast<double>(kept / rows * std::max<std::int64_t>(reduced, 1)), 1);
    }
    if (kernel.accumulate) chunks_ = {chunks_.total, chunks_.total, 1};  // neighbours may add to one place
    if (kernel.has_reduction()) bind_reduction(bindings, kept, reduced, cost);
    // What is overwritten has just been read: nothing is saved by storing around the cache.
    if (chunks_.count > 1 && !step.overwrites && streams(kernel, bindings, kept)) {
      code_.push_back(shared_code(kernel_code(kernel, {.checked = step.checked_, .nontemporal = true})));
      around_cache_ = reinterpret_cast<KernelFunction>(code_.back().get());
    }
  }

  void run(void* const* table) const override {
    std::array<void*, most_buffers + 1> buffers;
    for (std::size_t i = 0; i < step_.buffers_.size(); ++i) buffers[i] = table[step_.buffers_[i]];
    if (blocks_ > 1) {
      run_blocks(buffers);
      return;
    }
    launch(around_cache_ && results_aligned(buffers) ? around_cache_ : function_, buffers.data(), numbers_.data(),
           chunks_);
  }

 private:
  /// An element of a stacked result may begin anywhere.
  bool results_aligned(const std::array<void*, most_buffers + 1>& buffers) const {
    for (const Access* result : step_.kernel_.results())
      if (reinterpret_cast<std::uintptr_t>(buffers[static_cast<std::size_t>(result->buffer)]) % 64 != 0) return false;
    return true;
  }

  static std::vector<std::int64_t> evaluated(const std::vector<Dim>& dims, const Bindings& bindings, int total) {
    std::vector<std::int64_t> out;
    for (const Dim& dim : dims) out.push_back(dim.evaluate(bindings));
    out.resize(static_cast<std::size_t>(total), 0);
    return out;
  }

  /// Element counts of the kernel's buffers, for checked mode.
  void fill_extents(const Bindings& bindings, std::vector<std::int64_t>& numbers, int at) const {
    for (std::size_t i = 0; i < step_.buffer_extents_.size(); ++i)
      numbers[static_cast<std::size_t>(at) + i] = step_.buffer_extents_[i].evaluate(bindings);
  }

  /// A map whose result and operands do not fit the cache stores around it, which saves reading what is overwritten.
  /// Such stores are aligned ones: every run of the inner loop must start at a whole vector.
  static bool streams(const Kernel& kernel, const Bindings& bindings, std::int64_t kept) {
    if (kernel.has_reduction() || kernel.accumulate || !kernel.result.indirections.empty()) return false;
    std::int64_t lanes = vector_lanes(kernel), bytes = 0;
    for (const Access* result : kernel.results()) {
      const Affine& to = result->address;
      if (!to.strides.back().is_constant(1) || to.offset.evaluate(bindings) % lanes != 0) return false;
      for (std::size_t loop = 0; loop + 1 < to.strides.size(); ++loop)
        if (to.strides[loop].evaluate(bindings) % lanes != 0) return false;
      bytes += size_of(result->dtype);
    }
    // Operands that are repeated along a loop are small beside the result: only those that move everywhere count.
    for (const Access& access : kernel.operands) {
      if (access.source != Access::memory) continue;
      auto repeated = [](const Dim& stride) { return stride.is_constant() && stride.constant() == 0; };
      bool everywhere = std::none_of(access.address.strides.begin(), access.address.strides.end(), repeated);
      bytes += everywhere ? size_of(access.dtype) : 0;
    }
    return kept > last_level_cache() / bytes;
  }

  void bind_reduction(const Bindings& bindings, std::int64_t kept, std::int64_t reduced, double cost) {
    const Kernel& kernel = step_.kernel_;
    std::int64_t outermost = 0;
    for (const Loop& loop : kernel.loops)
      if (loop.reduced) {
        outermost = loop.extent.evaluate(bindings);
        break;
      }
    auto at = static_cast<std::size_t>(places_.reduce_begin);
    numbers_[at] = 0;
    numbers_[at + 1] = outermost;
    bool position = kernel.combine == Combine::argmax || kernel.combine == Combine::argmin;
    std::int64_t block = kernel.loops.back().reduced ? row_block : column_block;
    if (position || reduced <= block) return;
    std::int64_t per_step = reduced / outermost;
    block_length_ = std::max<std::int64_t>(block / per_step, 1);
    blocks_ = (outermost + block_length_ - 1) / block_length_;
    if (blocks_ <= 1) return;
    SplitReduction split = split_reduction(kernel);
    CodeRequest requests[] = {kernel_code(split.partial, {.checked = step_.checked_}),
                              kernel_code(split.combine, {.checked = step_.checked_})};
    std::vector<Code> code = shared_code(requests);
    partial_function_ = reinterpret_cast<KernelFunction>(code[0].get());
    combine_function_ = reinterpret_cast<KernelFunction>(code[1].get());
    code_.insert(code_.end(), code.begin(), code.end());
    scratch_elements_ = kept;
    partial_places_ = number_layout(split.partial, step_.checked_);
    partial_numbers_ = evaluated(split.partial.numbers(), bindings, partial_places_.total);
    combine_places_ = number_layout(split.combine, step_.checked_);
    combine_numbers_ = evaluated(split.combine.numbers(), bindings, combine_places_.total);
    combine_numbers_[static_cast<std::size_t>(combine_places_.reduce_begin) + 1] = blocks_;
    if (step_.checked_) {
      fill_extents(bindings, partial_numbers_, partial_places_.extents);
      partial_numbers_[static_cast<std::size_t>(partial_places_.extents + kernel.result.buffer)] = kept;
      fill_extents(bindings, combine_numbers_, combine_places_.extents);
      combine_numbers_[static_cast<std::size_t>(combine_places_.extents + kernel.buffer_count)] = kept * blocks_;
    }
    double each = cost * static_cast<double>(kept) / static_cast<double>(std::max<std::int64_t>(chunks_.total, 1));
    combine_chunks_ =
        Chunking::of(chunks_.total, each * static_cast<double>(blocks_), kernel.loops.back().reduced ? 1 : 64);
  }

  void run_blocks(std::array<void*, most_buffers + 1>& buffers) const {
    const Kernel& kernel = step_.kernel_;
    DType accumulator = kernel.body.dtype();
    auto each = static_cast<std::size_t>(scratch_elements_) * static_cast<std::size_t>(size_of(accumulator));
    Buffer scratch = Buffer::allocate(each * static_cast<std::size_t>(blocks_));
    std::int64_t length = numbers_[static_cast<std::size_t>(places_.reduce_begin) + 1];
    FirstFailure failures;
    auto body = [&](std::int64_t block) {
      std::array<void*, most_buffers + 1> mine = buffers;
      mine[static_cast<std::size_t>(kernel.result.buffer)] = scratch.data() + each * static_cast<std::size_t>(block);
      std::vector<std::int64_t> numbers = partial_numbers_;
      auto at = static_cast<std::size_t>(partial_places_.reduce_begin);
      numbers[at] = block * block_length_;
      numbers[at + 1] = std::min(length, (block + 1) * block_length_);
      failures.run(block, partial_function_, mine.data(), numbers.data(), 0, chunks_.total);
    };
    parallel_for(blocks_, body);
    if (failures.any()) fail(failures.status);
    buffers[static_cast<std::size_t>(kernel.buffer_count)] = scratch.data();
    launch(combine_function_, buffers.data(), combine_numbers_.data(), combine_chunks_);
  }

  void launch(KernelFunction function, void* const* buffers, const std::int64_t* numbers,
              const Chunking& chunks) const {
    if (chunks.count == 0) return;
    KernelStatus status;
    if (chunks.count == 1) {
      if (function(buffers, numbers, 0, chunks.total, &status) != 0) fail(status);
      return;
    }
    FirstFailure failures;
    auto body = [&](std::int64_t chunk) {
      std::int64_t begin = chunk * chunks.size, end = std::min(chunks.total, begin + chunks.size);
      failures.run(chunk, function, buffers, numbers, begin, end);
    };
    parallel_for(chunks.count, body);
    if (failures.any()) fail(failures.status);
  }

  [[noreturn]] void fail(const KernelStatus& status) const {
    if (status.check >= bounds_check_base)
      throw InternalError(text("generated code touches element ", status.value, " outside buffer ",
                               status.check - bounds_check_base, "\n", step_.kernel_.str()));
    auto at = static_cast<std::size_t>(status.check - 1);
    throw_failed_check(step_.checks_[at], status, extents_[at]);
  }

  const KernelStep& step_;
  NumberLayout places_;
  std::vector<std::int64_t> numbers_;
  std::vector<std::int64_t> extents_;  // of checks
  std::vector<Code> code_;             // variants that the step does not hold
  KernelFunction function_ = nullptr, around_cache_ = nullptr;
  Chunking chunks_;
  // long reductions
  std::int64_t blocks_ = 1, block_length_ = 0, scratch_elements_ = 0;
  KernelFunction partial_function_ = nullptr, combine_function_ = nullptr;
  NumberLayout partial_places_, combine_places_;
  std::vector<std::int64_t> partial_numbers_, combine_numbers_;
  Chunking combine_chunks_;
};

constexpr std::size_t longest_body = 60;

std::string KernelStep::title() const {
  std::string out = kernel_.name;
  for (const Loop& loop : kernel_.loops) out += text(" ", loop.reduced ? "over " : "", loop.extent);
  // What is long tells a reader nothing.
  if (const std::string body = text(kernel_.body); body.size() <= longest_body) out += text(": ", body);
  if (kernel_.has_reduction()) out += text(", by ", stet::name(kernel_.combine));
  if (kernel_.epilogue.defined()) out += text(", then ", kernel_.epilogue);
  for (const FurtherResult& one : kernel_.further) out += text("; ", one.body);
  return out;
}

KernelStep::KernelStep(KernelLaunch launch)
    : kernel_(std::move(launch.kernel)),
      buffers_(std::move(launch.buffers)),
      buffer_extents_(std::move(launch.buffer_extents)),
      checks_(std::move(launch.checks)),
      checked_(checked_kernels()) {
  verify(kernel_);
  if (buffers_.size() > most_buffers) throw InternalError("a kernel has at most 16 buffers");
  numbers_ = kernel_.numbers();
  reads = buffers_;
  for (const Access* result : kernel_.results()) writes.push_back(buffers_[static_cast<std::size_t>(result->buffer)]);
}

namespace {

/// Equal at every position of the loops.
bool same_address(const Kernel& kernel, const Affine& a, const Affine& b) {
  for (std::size_t loop = 0; loop < kernel.loops.size(); ++loop)
    if (!identical(a.strides[loop], b.strides[loop]) && !kernel.loops[loop].extent.is_constant(1)) return false;
  return identical(a.offset, b.offset);
}

bool is_plain(const Access& access) { return access.guards.empty() && access.indirections.empty(); }

}  // namespace

bool KernelStep::pointwise(int from, int to) const {
  if (kernel_.has_reduction() || kernel_.accumulate) return false;
  auto program_buffer = [&](const Access& access) { return buffers_[static_cast<std::size_t>(access.buffer)]; };
  std::vector<const Access*> results = kernel_.results();
  auto found =
      std::find_if(results.begin(), results.end(), [&](const Access* result) { return program_buffer(*result) == to; });
  if (found == results.end() || !is_plain(**found)) return false;
  const Access& stored = **found;
  return std::all_of(kernel_.operands.begin(), kernel_.operands.end(), [&](const Access& access) {
    if (access.source != Access::memory || program_buffer(access) != from) return true;
    return is_plain(access) && same_address(kernel_, access.address, stored.address);
  });
}

std::unique_ptr<BoundStep> KernelStep::bind(const Bindings& bindings) const {
  return std::make_unique<BoundKernel>(*this, bindings);
}

}  // namespace stet::cpu
