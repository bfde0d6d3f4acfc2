#include "stet/keras/augmentation.h"

#include <functional>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/random_image_layer.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

/// Images with their channels last, and one random number from 0 to 1 for each that broadcasts against them.
using Change = std::function<Tensor(const Tensor& x, const Tensor& drawn)>;

template <class Options>
Layer augmentation(const char* layer, const Options& options, bool first, Change change, Where where) {
  const DType dtype = options.dtype.compute_dtype();
  auto drawn = [=](const Tensor& x, const NoiseSource& source, Where line) {
    return change(x, source->uniform({x.dim(0), 1, 1, 1}, {.dtype = dtype}, line));
  };
  return random_image_layer(layer, options, first, drawn, where);
}

void require_range(const char* layer, const std::pair<double, double>& range, Where where) {
  if (range.first < range.second) return;
  throw UserError(error_text(text(layer, ": a value_range from ", range.first, " to ", range.second), where,
                             "the lower end comes first: {0, 255}"));
}

}  // namespace

RandomFlip::RandomFlip(std::string mode, RandomFlipOptions options, Where where) {
  require_name("RandomFlip", "mode", mode, {"horizontal", "vertical", "horizontal_and_vertical"}, where);
  std::vector<int> axes;
  if (mode != "horizontal") axes.push_back(1);
  if (mode != "vertical") axes.push_back(2);
  auto change = [axes](const Tensor& x, const Tensor& drawn) { return stet::where(drawn <= 0.5, flip(x, axes), x); };
  const bool first = is_channels_first("RandomFlip", options.data_format, where);
  Layer::operator=(augmentation("RandomFlip", options, first, change, where));
}

RandomContrast::RandomContrast(RandomFactor factor, RandomColorOptions options, Where where) {
  if (!(factor.first >= 0 && factor.first <= 1 && factor.second >= 0 && factor.second <= 1))
    throw UserError(error_text(text("RandomContrast: a factor of ", factor.first, " to ", factor.second), where,
                               "numbers from 0 to 1: how much less, and how much more"));
  require_range("RandomContrast", options.value_range, where);
  auto change = [=, range = options.value_range](const Tensor& x, const Tensor& drawn) {
    const Tensor centre = mean(x, {1, 2}, {.keepdims = true});
    const Tensor times = drawn * (factor.first + factor.second) + (1 - factor.first);
    return clip((x - centre) * times + centre, range.first, range.second);
  };
  Layer::operator=(augmentation("RandomContrast", options, false, change, where));
}

RandomBrightness::RandomBrightness(RandomFactor factor, RandomColorOptions options, Where where) {
  const double lower = factor.one ? -factor.first : factor.first, upper = factor.second;
  if (!(lower >= -1 && lower <= upper && upper <= 1))
    throw UserError(error_text(text("RandomBrightness: a factor from ", lower, " to ", upper), where,
                               "one number from 0 to 1, or {lower, upper} from -1 to 1"));
  require_range("RandomBrightness", options.value_range, where);
  auto change = [=, range = options.value_range](const Tensor& x, const Tensor& drawn) {
    const Tensor more = (drawn * (upper - lower) + lower) * (range.second - range.first);
    return clip(x + more, range.first, range.second);
  };
  Layer::operator=(augmentation("RandomBrightness", options, false, change, where));
}

}  // namespace stet::keras
