#include "stet/cpu/convolution_patches.h"

#include <algorithm>
#include <cstring>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/cpu/emit_kernel.h"
#include "stet/cpu/parallel_throwing.h"
#include "stet/runtime/kernel_abi.h"
#include "stet/runtime/parallel.h"

namespace stet::cpu {
namespace {

/// Elements of patches at a time: they and a panel of the filter fit the second-level cache.
constexpr std::int64_t patch_elements = 65536;
/// Into how many parts a sum over all positions is cut at most.
constexpr std::int64_t most_parts = 8;

GemmSpec product_of(DType dtype, bool transpose_left, bool added) {
  GemmSpec spec;
  spec.dtype = dtype;
  spec.transpose_left = transpose_left;
  if (added) {
    spec.epilogue.expression = operand(0, dtype) + operand(1, dtype);
    spec.epilogue.operands = {EpilogueOperand::full};
  }
  return spec;
}

/// What the patches are of: the input, or the output spread out by the strides, seen backwards.
std::vector<ConvolutionAxis> read_axes(const ConvolutionSpec& spec) {
  std::vector<ConvolutionAxis> out = spec.axes;
  if (spec.result == ConvolutionResult::input)
    for (ConvolutionAxis& axis : out)
      axis = {.input = dilated_size(axis.output, axis.stride),
              .filter = axis.filter,
              .output = axis.input,
              .low = Dim(0) - axis.low,
              .stride = 1,
              .dilation = -axis.dilation};
  return out;
}

}  // namespace

PatchConvolution::PatchConvolution(const ConvolutionSpec& spec)
    : dtype(spec.dtype),
      checked(checked_kernels()),
      product(product_of(spec.dtype, false, false)),
      transposed(product_of(spec.dtype, true, false)),
      added(product_of(spec.dtype, true, true)) {
  std::vector<ConvolutionAxis> axes = read_axes(spec);
  std::size_t rank = axes.size(), loops = 2 * rank + 2;
  const Dim& depth = spec.result == ConvolutionResult::input ? spec.features : spec.channels;
  patches.name = "patches";
  patches.loops.push_back({spec.batch, false});
  for (const ConvolutionAxis& axis : axes) patches.loops.push_back({axis.output, false});
  for (const ConvolutionAxis& axis : axes) patches.loops.push_back({axis.filter, false});
  patches.loops.push_back({depth, false});
  std::vector<Dim> strides(rank + 2, Dim(1));  // of what is read
  strides[rank] = spec.groups * depth;
  for (std::size_t a = rank; a-- > 0;) strides[a] = strides[a + 1] * axes[a].input;
  read_elements = spec.batch * strides[0];
  Access read;
  read.dtype = dtype;
  read.buffer = 0;
  read.address.strides.assign(loops, Dim(0));
  read.address.strides.front() = strides.front();
  read.address.strides.back() = 1;
  for (std::size_t a = 0; a < rank; ++a) {
    const ConvolutionAxis& axis = axes[a];
    read.address.offset = read.address.offset - axis.low * strides[a + 1];
    read.address.strides[1 + a] = strides[a + 1] * axis.stride;
    read.address.strides[1 + rank + a] = strides[a + 1] * axis.dilation;
    Guard guard{{Dim(0) - axis.low, std::vector<Dim>(loops, Dim(0))}, axis.input};
    guard.position.strides[1 + a] = axis.stride;
    guard.position.strides[1 + rank + a] = axis.dilation;
    read.guards.push_back(std::move(guard));
  }
  patches.operands = {std::move(read)};
  patches.body = operand(0, dtype);
  Access& to = patches.result;
  to.dtype = dtype;
  to.buffer = 1;
  to.address.strides.assign(loops, Dim(0));
  Dim stride = 1;
  for (std::size_t i = loops; i-- > 0;) {
    to.address.strides[i] = stride;
    stride = stride * patches.loops[i].extent;
  }
  patches.buffer_count = 2;
  verify(patches);
}

namespace {

class BoundPatchConvolution : public BoundStep {
 public:
  BoundPatchConvolution(std::shared_ptr<const PatchConvolution> convolution, const ConvolutionSizes& sizes,
                        const Bindings& bindings)
      : it_(std::move(convolution)), s_(sizes), bytes_(size_of(it_->dtype)) {
    const Kernel& patches = it_->patches;
    code_ = shared_code(kernel_code(patches, {.checked = it_->checked}));
    function_ = reinterpret_cast<KernelFunction>(code_.get());
    NumberLayout places = number_layout(patches, it_->checked);
    for (const Dim& dim : patches.numbers()) numbers_.push_back(dim.evaluate(bindings));
    numbers_.resize(static_cast<std::size_t>(places.total), 0);
    backwards_ = s_.result == ConvolutionResult::input;
    rows_ = s_.batch * (backwards_ ? s_.inputs : s_.outputs);
    group_depth_ = backwards_ ? s_.features : s_.channels;
    depth_ = s_.windows * group_depth_;
    rows_per_block_ = std::clamp<std::int64_t>(patch_elements / std::max<std::int64_t>(depth_, 1), 8, 1024);
    if (it_->checked) {
      extents_at_ = static_cast<std::size_t>(places.extents);
      numbers_[extents_at_] = it_->read_elements.evaluate(bindings);
      numbers_[extents_at_ + 1] = rows_ * depth_;
    }
  }

  void run(void* const* table) const override {
    if (s_.result == ConvolutionResult::filter) {
      run_filter(table);
    } else if (backwards_) {
      Buffer spread, turned;
      const void* read = spread_output(table[s_.output], spread);
      turn_filter(table[s_.filter], turned);
      run_rows(read, turned.data(), s_.groups * s_.channels, table[s_.input]);
    } else {
      run_rows(table[s_.input], table[s_.filter], s_.groups * s_.features, table[s_.output]);
    }
  }

 private:
  std::int64_t blocks() const { return (rows_ + rows_per_block_ - 1) / rows_per_block_; }
  Buffer memory(std::int64_t elements) const {
    return Buffer::allocate(static_cast<std::size_t>(std::max<std::int64_t>(elements, 1) * bytes_));
  }

  /// Patches of rows [begin, end) of a group.
  void make_patches(const void* from, std::int64_t begin, std::int64_t end, std::int64_t group, void* to) const {
    // The kernel counts rows from the first of all: its memory begins `begin` rows before the scratch block does.
    std::uintptr_t first = reinterpret_cast<std::uintptr_t>(to) - static_cast<std::uintptr_t>(begin * depth_ * bytes_);
    std::int64_t moved = group * group_depth_;
    void* buffers[] = {const_cast<char*>(static_cast<const char*>(from)) + moved * bytes_,
                       reinterpret_cast<void*>(first)};
    std::vector<std::int64_t> moved_numbers;
    const std::int64_t* numbers = numbers_.data();
    if (it_->checked && group > 0) {
      moved_numbers = numbers_;
      moved_numbers[extents_at_] -= moved;
      numbers = moved_numbers.data();
    }
    KernelStatus status;
    if (depth_ > 0 && function_(buffers, numbers, begin * s_.windows, end * s_.windows, &status) != 0)
      throw InternalError(text("a convolution reads outside its input\n", it_->patches.str()));
  }

  /// Every row's patch times weights [depth, columns]; a group's are a part of the columns.
  void run_rows(const void* from, const void* weights, std::int64_t columns, void* result) const {
    if (rows_ == 0 || columns == 0) return;
    std::int64_t mine = columns / s_.groups;
    parallel_for_throwing(blocks() * s_.groups, [&](std::int64_t number) {
      std::int64_t begin = number / s_.groups * rows_per_block_, end = std::min(rows_, begin + rows_per_block_);
      std::int64_t group = number % s_.groups, count = end - begin, column = group * mine;
      Buffer scratch = memory(count * depth_);
      make_patches(from, begin, end, group, scratch.data());
      GemmArguments arguments;
      arguments.m = count;
      arguments.n = mine;
      arguments.k = depth_;
      arguments.left = {scratch.data(), depth_, 0, count * depth_};
      arguments.right = {static_cast<const char*>(weights) + column * bytes_, columns, 0, depth_ * columns - column};
      auto* to = static_cast<char*>(result) + (begin * columns + column) * bytes_;
      arguments.result = {to, columns, 0, count * columns - column};
      it_->product.run(arguments);
    });
  }

  /// The output with zeros between its elements, as the strides leave them out; itself where they do not.
  const void* spread_output(const void* output, Buffer& spread) const {
    bool dense = std::all_of(s_.axes.begin(), s_.axes.end(), [](const auto& axis) { return axis.stride == 1; });
    if (dense || s_.outputs == 0) return output;
    std::int64_t run = s_.groups * s_.features * bytes_, positions = 1;
    for (const auto& axis : s_.axes) positions *= (axis.output - 1) * axis.stride + 1;
    spread = Buffer::allocate(static_cast<std::size_t>(std::max<std::int64_t>(s_.batch * positions * run, 1)));
    auto body = [&](std::int64_t image) {
      auto* to = reinterpret_cast<char*>(spread.data()) + image * positions * run;
      const char* from = static_cast<const char*>(output) + image * s_.outputs * run;
      std::memset(to, 0, static_cast<std::size_t>(positions * run));
      for (std::int64_t at = 0; at < s_.outputs; ++at) {
        std::int64_t place = 0, rest = at, step = 1;
        for (std::size_t a = s_.axes.size(); a-- > 0;) {
          const auto& axis = s_.axes[a];
          place += rest % axis.output * axis.stride * step;
          step *= (axis.output - 1) * axis.stride + 1;
          rest /= axis.output;
        }
        std::memcpy(to + place * run, from + at * run, static_cast<std::size_t>(run));
      }
    };
    parallel_for(s_.batch, body);
    return spread.data();
  }

  /// [window, channels, groups, features] as [window, features, groups, channels].
  void turn_filter(const void* filter, Buffer& turned) const {
    turned = memory(s_.filter_elements());
    if (it_->dtype == DType::f32)
      turn(static_cast<const float*>(filter), reinterpret_cast<float*>(turned.data()));
    else
      turn(static_cast<const double*>(filter), reinterpret_cast<double*>(turned.data()));
  }
  template <class T>
  void turn(const T* from, T* to) const {
    for (std::int64_t k = 0; k < s_.windows; ++k)
      for (std::int64_t c = 0; c < s_.channels; ++c)
        for (std::int64_t g = 0; g < s_.groups; ++g)
          for (std::int64_t f = 0; f < s_.features; ++f)
            to[((k * s_.features + f) * s_.groups + g) * s_.channels + c] = *from++;
  }

  void run_filter(void* const* table) const {
    std::int64_t columns = s_.groups * s_.features, elements = s_.filter_elements();
    if (elements == 0) return;
    auto* result = static_cast<char*>(table[s_.filter]);
    if (rows_ == 0) {
      std::memset(result, 0, static_cast<std::size_t>(elements * bytes_));
      return;
    }
    // Every part is a run of whole blocks; the first one's sum lies in the result.
    std::int64_t each = (blocks() + most_parts - 1) / most_parts, parts = (blocks() + each - 1) / each;
    Buffer others = memory((parts - 1) * elements);
    auto part_at = [&](std::int64_t part) {
      return part == 0 ? result : reinterpret_cast<char*>(others.data()) + (part - 1) * elements * bytes_;
    };
    parallel_for_throwing(parts * s_.groups, [&](std::int64_t number) {
      std::int64_t part = number / s_.groups, group = number % s_.groups, column = group * s_.features;
      Buffer scratch = memory(rows_per_block_ * depth_);
      for (std::int64_t block = part * each; block < std::min(blocks(), (part + 1) * each); ++block) {
        std::int64_t begin = block * rows_per_block_, count = std::min(rows_, begin + rows_per_block_) - begin;
        make_patches(table[s_.input], begin, begin + count, group, scratch.data());
        GemmArguments arguments;
        arguments.m = depth_;
        arguments.n = s_.features;
        arguments.k = count;
        arguments.left = {scratch.data(), depth_, 0, count * depth_};
        const auto* output = static_cast<const char*>(table[s_.output]) + (begin * columns + column) * bytes_;
        arguments.right = {output, columns, 0, count * columns - column};
        arguments.result = {part_at(part) + column * bytes_, columns, 0, elements - column};
        GemmOperand before[] = {arguments.result};
        if (block > part * each) arguments.operands = before;
        (block > part * each ? it_->added : it_->transposed).run(arguments);
      }
    });
    if (it_->dtype == DType::f32)
      add_parts(reinterpret_cast<float*>(result), reinterpret_cast<const float*>(others.data()), parts, elements);
    else
      add_parts(reinterpret_cast<double*>(result), reinterpret_cast<const double*>(others.data()), parts, elements);
  }
  template <class T>
  static void add_parts(T* to, const T* others, std::int64_t parts, std::int64_t elements) {
    for (std::int64_t part = 1; part < parts; ++part, others += elements)
      for (std::int64_t i = 0; i < elements; ++i) to[i] += others[i];
  }

  std::shared_ptr<const PatchConvolution> it_;
  ConvolutionSizes s_;
  std::int64_t bytes_;
  Code code_;
  KernelFunction function_ = nullptr;
  std::vector<std::int64_t> numbers_;
  std::size_t extents_at_ = 0;  // in numbers_, in checked mode
  bool backwards_ = false;
  std::int64_t rows_ = 0, depth_ = 0, group_depth_ = 0, rows_per_block_ = 1;
};

}  // namespace

std::unique_ptr<BoundStep> bind_patch_convolution(std::shared_ptr<const PatchConvolution> convolution,
                                                  const ConvolutionSizes& sizes, const Bindings& bindings) {
  return std::make_unique<BoundPatchConvolution>(std::move(convolution), sizes, bindings);
}

}  // namespace stet::cpu
