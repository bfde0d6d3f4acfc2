#include "stet/cpu/convolution_step.h"

#include <algorithm>
#include <exception>
#include <mutex>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/cpu/emit_kernel.h"
#include "stet/runtime/parallel.h"

namespace stet::cpu {
namespace {

/// Elements of patches at a time: they and a panel of the filter fit the second-level cache.
constexpr std::int64_t patch_elements = 65536;

}  // namespace

ConvolutionStep::ConvolutionStep(ConvolutionSpec given)
    : spec_(std::move(given)), computed_(compute_type(spec_.dtype)), checked_(checked_kernels()) {
  std::size_t rank = spec_.axes.size(), loops = 2 * rank + 2;
  patches_.name = "patches";
  patches_.loops.push_back({spec_.batch, false});
  for (const ConvolutionAxis& axis : spec_.axes) patches_.loops.push_back({axis.output, false});
  for (const ConvolutionAxis& axis : spec_.axes) patches_.loops.push_back({axis.filter, false});
  patches_.loops.push_back({spec_.channels / spec_.groups, false});
  const std::vector<Dim>& strides = spec_.input_layout.strides;
  Access read;
  read.dtype = spec_.dtype;
  read.buffer = 0;
  read.address.offset = spec_.input_layout.offset;
  read.address.strides.assign(loops, Dim(0));
  read.address.strides.front() = strides.front();
  read.address.strides.back() = strides.back();
  for (std::size_t a = 0; a < rank; ++a) {
    const ConvolutionAxis& axis = spec_.axes[a];
    read.address.offset = read.address.offset - axis.low * strides[a + 1];
    read.address.strides[1 + a] = strides[a + 1] * axis.stride;
    read.address.strides[1 + rank + a] = strides[a + 1] * axis.dilation;
    Guard guard{{Dim(0) - axis.low, std::vector<Dim>(loops, Dim(0))}, axis.input};
    guard.position.strides[1 + a] = axis.stride;
    guard.position.strides[1 + rank + a] = axis.dilation;
    read.guards.push_back(std::move(guard));
  }
  patches_.operands = {std::move(read)};
  patches_.body = scalar::cast(operand(0, spec_.dtype), computed_);
  Access& to = patches_.result;
  to.dtype = computed_;
  to.buffer = 1;
  to.address.strides.assign(loops, Dim(0));
  Dim stride = 1;
  for (std::size_t i = loops; i-- > 0;) {
    to.address.strides[i] = stride;
    stride = stride * patches_.loops[i].extent;
  }
  patches_.buffer_count = 2;
  verify(patches_);
  rows_ = spec_.batch;
  depth_ = patches_.loops.back().extent;
  for (const ConvolutionAxis& axis : spec_.axes) {
    rows_ = rows_ * axis.output;
    depth_ = depth_ * axis.filter;
  }
  GemmSpec product;
  product.dtype = computed_;
  if (spec_.dtype != computed_) product.epilogue.expression = scalar::cast(operand(0, computed_), spec_.dtype);
  product_ = std::make_shared<GemmKernel>(std::move(product));
  reads = {spec_.input, spec_.filter};
  writes = {spec_.result};
}

std::vector<CodeRequest> ConvolutionStep::code_requests() const {
  return {kernel_code(patches_, {.checked = checked_})};
}

void ConvolutionStep::hold_code(std::vector<Code> code) {
  code_ = std::move(code);
  function_ = reinterpret_cast<KernelFunction>(code_[0].get());
}

class BoundConvolution : public BoundStep {
 public:
  BoundConvolution(const ConvolutionStep& step, const Bindings& bindings) : step_(step) {
    const Kernel& patches = step.patches_;
    NumberLayout places = number_layout(patches, step.checked_);
    for (const Dim& dim : patches.numbers()) numbers_.push_back(dim.evaluate(bindings));
    numbers_.resize(static_cast<std::size_t>(places.total), 0);
    rows_ = step.rows_.evaluate(bindings);
    depth_ = step.depth_.evaluate(bindings);
    features_ = step.spec_.features.evaluate(bindings);
    group_channels_ = patches.loops.back().extent.evaluate(bindings);
    channel_stride_ = step.spec_.input_layout.strides.back().evaluate(bindings);
    runs_per_row_ = 1;
    for (std::size_t i = step.spec_.axes.size() + 1; i + 1 < patches.loops.size(); ++i)
      runs_per_row_ *= patches.loops[i].extent.evaluate(bindings);
    rows_per_block_ = std::clamp<std::int64_t>(patch_elements / std::max<std::int64_t>(depth_, 1), 8, 1024);
    if (step.checked_) {
      extents_at_ = static_cast<std::size_t>(places.extents);
      numbers_[extents_at_] = step.spec_.input_extent.evaluate(bindings);
      numbers_[extents_at_ + 1] = rows_ * depth_;
    }
  }

  void run(void* const* table) const override {
    if (rows_ == 0 || features_ == 0) return;
    std::int64_t blocks = (rows_ + rows_per_block_ - 1) / rows_per_block_, groups = step_.spec_.groups;
    std::mutex guard;
    std::exception_ptr failure;  // of any block: they all mean the same
    auto body = [&](std::int64_t number) {
      std::int64_t begin = number / groups * rows_per_block_, end = std::min(rows_, begin + rows_per_block_);
      try {
        run_block(table, begin, end, number % groups);
      } catch (...) {
        std::lock_guard lock(guard);
        failure = std::current_exception();
      }
    };
    parallel_for(blocks * groups, body);
    if (failure) std::rethrow_exception(failure);
  }

 private:
  void run_block(void* const* table, std::int64_t begin, std::int64_t end, std::int64_t group) const {
    std::int64_t count = end - begin, bytes = size_of(step_.computed_), stored_bytes = size_of(step_.spec_.dtype);
    Buffer scratch = Buffer::allocate(static_cast<std::size_t>(std::max<std::int64_t>(count * depth_, 1) * bytes));
    // The kernel counts rows from the first of all: its memory begins `begin` rows before the scratch block does.
    std::uintptr_t first =
        reinterpret_cast<std::uintptr_t>(scratch.data()) - static_cast<std::uintptr_t>(begin * depth_ * bytes);
    std::int64_t moved = group * group_channels_ * channel_stride_;
    void* buffers[] = {static_cast<char*>(table[step_.spec_.input]) + moved * stored_bytes,
                       reinterpret_cast<void*>(first)};
    std::vector<std::int64_t> moved_numbers;
    const std::int64_t* numbers = numbers_.data();
    if (step_.checked_ && group > 0) {
      moved_numbers = numbers_;
      moved_numbers[extents_at_] -= moved;
      numbers = moved_numbers.data();
    }
    KernelStatus status;
    if (depth_ > 0 && step_.function_(buffers, numbers, begin * runs_per_row_, end * runs_per_row_, &status) != 0)
      throw InternalError(text("a convolution reads outside its input\n", step_.patches_.str()));
    // A group's features are columns of the filter and of the result.
    std::int64_t groups = step_.spec_.groups, columns = features_ / groups, column = group * columns;
    GemmArguments arguments;
    arguments.m = count;
    arguments.n = columns;
    arguments.k = depth_;
    arguments.left = {scratch.data(), depth_, 0, count * depth_};
    arguments.right = {static_cast<const char*>(table[step_.spec_.filter]) + column * bytes, features_, 0,
                       depth_ * features_ - column};
    auto* to = static_cast<char*>(table[step_.spec_.result]) + (begin * features_ + column) * stored_bytes;
    arguments.result = {to, features_, 0, count * features_ - column};
    step_.product_->run(arguments);
  }

  const ConvolutionStep& step_;
  std::vector<std::int64_t> numbers_;
  std::size_t extents_at_ = 0;  // in numbers_, in checked mode
  std::int64_t rows_ = 0, depth_ = 0, features_ = 0, group_channels_ = 0, channel_stride_ = 0;
  std::int64_t runs_per_row_ = 1, rows_per_block_ = 1;
};

std::unique_ptr<BoundStep> ConvolutionStep::bind(const Bindings& bindings) const {
  return std::make_unique<BoundConvolution>(*this, bindings);
}

std::string ConvolutionStep::str() const {
  return text("convolution rows=", rows_, " depth=", depth_, " features=", spec_.features, " groups=", spec_.groups,
              "\n", patches_.str());
}

}  // namespace stet::cpu
