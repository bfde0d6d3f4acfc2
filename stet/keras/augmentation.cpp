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

struct RandomFlipRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "RandomFlip";
  std::string mode = "horizontal_and_vertical";
  RandomFlipOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f("mode", mode);
    f("seed", options.seed);
    data_format_field(f, options.data_format);
  }
  Layer make(Where where) const { return RandomFlip(mode, options, where); }
};
/// RandomContrast and RandomBrightness: the factor is written as a pair, of one number {lower_sign * number, number}.
template <class Made, Literal name, int lower_sign>
struct RandomColorRecipe {
  static constexpr const char *module = "keras.layers", *class_name = name.text;
  std::optional<RandomFactor> factor = {};
  RandomColorOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f.required("factor");
    if (!f.reading() && factor->one) factor = RandomFactor(lower_sign * factor->first, factor->first);
    factor_field(f, "factor", factor);
    std::vector<double> range{options.value_range.first, options.value_range.second};
    f("value_range", range);
    if (range.size() != 2) f.wrong("value_range", *f.take("value_range"), "a pair of numbers");
    options.value_range = {range[0], range[1]};
    f("seed", options.seed);
    f.only("data_format", "channels_last");
  }
  Layer make(Where where) const { return Made(*factor, options, where); }
};
using RandomContrastRecipe = RandomColorRecipe<RandomContrast, "RandomContrast", 1>;
using RandomBrightnessRecipe = RandomColorRecipe<RandomBrightness, "RandomBrightness", -1>;
const Savable<RandomFlipRecipe> savable_random_flip;
const Savable<RandomContrastRecipe> savable_random_contrast;
const Savable<RandomBrightnessRecipe> savable_random_brightness;

}  // namespace

RandomFlip::RandomFlip(std::string mode, RandomFlipOptions options, Where where) {
  require_name("RandomFlip", "mode", mode, {"horizontal", "vertical", "horizontal_and_vertical"}, where);
  std::vector<int> axes;
  if (mode != "horizontal") axes.push_back(1);
  if (mode != "vertical") axes.push_back(2);
  auto change = [axes](const Tensor& x, const Tensor& drawn) { return stet::where(drawn <= 0.5, flip(x, axes), x); };
  const bool first = is_channels_first("RandomFlip", options.data_format, where);
  Layer::operator=(augmentation("RandomFlip", options, first, change, where));
  note_recipe(*this, RandomFlipRecipe{std::move(mode), std::move(options)});
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
  note_recipe(*this, RandomContrastRecipe{factor, std::move(options)});
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
  note_recipe(*this, RandomBrightnessRecipe{factor, std::move(options)});
}

}  // namespace stet::keras
