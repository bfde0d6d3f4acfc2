#include "stet/cpu/convolution_step.h"

#include <atomic>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/cpu/convolution_library.h"
#include "stet/cpu/convolution_sizes.h"

namespace stet::cpu {
namespace {
std::atomic<bool> library_used{true};
}  // namespace

bool library_convolutions() { return library_used.load(std::memory_order_relaxed); }
void set_library_convolutions(bool used) { library_used.store(used, std::memory_order_relaxed); }

ConvolutionSizes::ConvolutionSizes(const ConvolutionSpec& spec, const Bindings& bindings)
    : result(spec.result),
      batch(spec.batch.evaluate(bindings)),
      groups(spec.groups.evaluate(bindings)),
      channels(spec.channels.evaluate(bindings)),
      features(spec.features.evaluate(bindings)),
      input(spec.input),
      filter(spec.filter),
      output(spec.output) {
  for (const ConvolutionAxis& axis : spec.axes) {
    axes.push_back({axis.input.evaluate(bindings), axis.filter.evaluate(bindings), axis.output.evaluate(bindings),
                    axis.low.evaluate(bindings), axis.stride, axis.dilation});
    inputs *= axes.back().input;
    windows *= axes.back().filter;
    outputs *= axes.back().output;
  }
}

ConvolutionStep::ConvolutionStep(ConvolutionSpec given)
    : spec_(std::move(given)), patches_(std::make_shared<PatchConvolution>(spec_)) {
  int result = spec_.result == ConvolutionResult::output  ? spec_.output
               : spec_.result == ConvolutionResult::input ? spec_.input
                                                          : spec_.filter;
  for (int buffer : {spec_.input, spec_.filter, spec_.output})
    if (buffer != result) reads.push_back(buffer);
  writes = {result};
}

std::unique_ptr<BoundStep> ConvolutionStep::bind(const Bindings& bindings) const {
  ConvolutionSizes sizes(spec_, bindings);
  if (spec_.dtype == DType::f32 && library_convolutions())
    if (std::unique_ptr<BoundStep> bound = bind_library_convolution(sizes)) return bound;
  return bind_patch_convolution(patches_, sizes, bindings);
}

std::string ConvolutionStep::str() const {
  return text("convolution to its ", name(spec_.result), ", ", spec_.dtype, ", batch=", spec_.batch,
              " groups=", spec_.groups, " channels=", spec_.channels, " features=", spec_.features, "\n",
              patches_->patches.str());
}

}  // namespace stet::cpu
