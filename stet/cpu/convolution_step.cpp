#include "stet/cpu/convolution_step.h"

#include <algorithm>
#include <exception>
#include <mutex>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/runtime/parallel.h"

namespace stet::cpu {
namespace {

/// Elements of patches at a time: they and a panel of the filter fit the second-level cache.
constexpr std::int64_t patch_elements = 65536;

}  // namespace

void ConvolutionStep::finish() {
  Access& to = patches.result;
  to.source = Access::memory;
  to.dtype = computed;
  to.buffer = 1;
  to.address.offset = 0;
  std::size_t count = patches.loops.size();
  to.address.strides.assign(count, Dim(0));
  Dim stride = 1;
  for (std::size_t i = count; i-- > 0;) {
    to.address.strides[i] = stride;
    stride = stride * patches.loops[i].extent;
  }
  patches.operands[0].buffer = 0;
  patches.buffer_count = 2;
  checked_ = checked_kernels();
  verify(patches);
  code_ = shared_code(kernel_code(patches, {.checked = checked_}));
  function_ = reinterpret_cast<KernelFunction>(code_.get());
  GemmSpec spec;
  spec.dtype = computed;
  if (stored != computed) spec.epilogue.expression = scalar::cast(operand(0, computed), stored);
  product_ = std::make_shared<GemmKernel>(spec);
  reads = {input, weights};
  writes = {result};
}

class BoundConvolution : public BoundStep {
 public:
  BoundConvolution(const ConvolutionStep& step, const Bindings& bindings) : step_(step) {
    NumberLayout places = number_layout(step.patches, step.checked_);
    for (const Dim& dim : step.patches.numbers()) numbers_.push_back(dim.evaluate(bindings));
    numbers_.resize(static_cast<std::size_t>(places.total), 0);
    rows_ = step.rows.evaluate(bindings);
    depth_ = step.depth.evaluate(bindings);
    features_ = step.features.evaluate(bindings);
    runs_per_row_ = 1;
    for (std::size_t i = 3; i + 1 < step.patches.loops.size(); ++i)
      runs_per_row_ *= step.patches.loops[i].extent.evaluate(bindings);
    rows_per_block_ = std::clamp<std::int64_t>(patch_elements / std::max<std::int64_t>(depth_, 1), 8, 1024);
    if (step.checked_) {
      numbers_[static_cast<std::size_t>(places.extents)] = step.input_extent.evaluate(bindings);
      numbers_[static_cast<std::size_t>(places.extents) + 1] = rows_ * depth_;
    }
  }

  void run(void* const* table) const override {
    if (rows_ == 0 || features_ == 0) return;
    std::int64_t blocks = (rows_ + rows_per_block_ - 1) / rows_per_block_;
    std::mutex guard;
    std::exception_ptr failure;  // of any block: they all mean the same
    auto body = [&](std::int64_t block) {
      std::int64_t begin = block * rows_per_block_, end = std::min(rows_, begin + rows_per_block_);
      try {
        run_block(table, begin, end);
      } catch (...) {
        std::lock_guard lock(guard);
        failure = std::current_exception();
      }
    };
    parallel_for(blocks, body);
    if (failure) std::rethrow_exception(failure);
  }

 private:
  void run_block(void* const* table, std::int64_t begin, std::int64_t end) const {
    std::int64_t count = end - begin;
    int bytes = size_of(step_.computed);
    Buffer scratch = Buffer::allocate(static_cast<std::size_t>(std::max<std::int64_t>(count * depth_, 1) * bytes));
    // The kernel counts rows from the first of all: its memory begins `begin` rows before the scratch block does.
    std::uintptr_t first =
        reinterpret_cast<std::uintptr_t>(scratch.data()) - static_cast<std::uintptr_t>(begin * depth_ * bytes);
    void* buffers[] = {table[step_.input], reinterpret_cast<void*>(first)};
    KernelStatus status;
    if (depth_ > 0 &&
        step_.function_(buffers, numbers_.data(), begin * runs_per_row_, end * runs_per_row_, &status) != 0)
      throw InternalError(text("a convolution reads outside its input\n", step_.patches.str()));
    GemmArguments arguments;
    arguments.m = count;
    arguments.n = features_;
    arguments.k = depth_;
    arguments.left = {scratch.data(), depth_, 0, count * depth_};
    arguments.right = {table[step_.weights], features_, 0, depth_ * features_};
    auto* to = static_cast<char*>(table[step_.result]) + begin * features_ * size_of(step_.stored);
    arguments.result = {to, features_, 0, count * features_};
    step_.product_->run(arguments);
  }

  const ConvolutionStep& step_;
  std::vector<std::int64_t> numbers_;
  std::int64_t rows_ = 0, depth_ = 0, features_ = 0, runs_per_row_ = 1, rows_per_block_ = 1;
};

std::unique_ptr<BoundStep> ConvolutionStep::bind(const Bindings& bindings) const {
  return std::make_unique<BoundConvolution>(*this, bindings);
}

std::string ConvolutionStep::str() const {
  return text("convolution rows=", rows, " depth=", depth, " features=", features, "\n", patches.str());
}

}  // namespace stet::cpu
