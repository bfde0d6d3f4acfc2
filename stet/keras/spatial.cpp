#include "stet/keras/spatial.h"

#include <algorithm>
#include <string_view>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/ops/ops.h"

namespace stet::keras {

const char* spatial_layout(int axes, bool channels_first) {
  static constexpr const char* last[] = {"[batch, steps, channels]", "[batch, height, width, channels]",
                                         "[batch, depth, height, width, channels]"};
  static constexpr const char* first[] = {"[batch, channels, steps]", "[batch, channels, height, width]",
                                          "[batch, channels, depth, height, width]"};
  return (channels_first ? first : last)[axes - 1];
}

Takes takes_spatial(int axes, bool channels_first) {
  constexpr const char* advice[] = {"sequences of numbers get channels with keras::Reshape({steps, 1})",
                                    "images without channels get them with keras::Reshape({height, width, 1})",
                                    "volumes without channels get them with keras::Reshape({depth, height, width, 1})"};
  return {.least = axes + 2,
          .most = axes + 2,
          .layout = spatial_layout(axes, channels_first),
          .advice = channels_first ? "" : advice[axes - 1]};
}

bool is_channels_first(const char* layer, const std::string& data_format, Where where) {
  if (!data_format.empty()) require_name(layer, "data_format", data_format, {"channels_last", "channels_first"}, where);
  return data_format == "channels_first";
}

Tensor channels_to_last(const Tensor& x) { return moveaxis(x, 1, -1); }
Tensor channels_to_first(const Tensor& x) { return moveaxis(x, -1, 1); }

std::vector<std::int64_t> for_each_axis(const char* layer, const char* option, const WindowSizes& sizes, int axes,
                                        std::int64_t least, Where where) {
  const auto count = static_cast<std::size_t>(axes);
  std::vector<std::int64_t> out = sizes.numbers();
  if (sizes.same()) out.assign(count, out[0]);
  if (out.size() != count)
    throw UserError(error_text(
        text(layer, ": ", option, " has ", out.size(), out.size() == 1 ? " number" : " numbers"), where,
        text("give one number, or ", axes, axes == 1 ? " in braces" : " in braces: one for each spatial axis")));
  for (std::int64_t number : out) require_at_least(layer, option, number, least, where);
  return out;
}

void require_name(const char* layer, const char* option, const std::string& given,
                  const std::vector<const char*>& names, Where where) {
  if (std::any_of(names.begin(), names.end(), [&](std::string_view name) { return name == given; })) return;
  std::string known;
  for (std::size_t i = 0; i < names.size(); ++i)
    known += text(i == 0 ? "" : i + 1 == names.size() ? " or " : ", ", "\"", names[i], "\"");
  throw UserError(error_text(text(layer, ": ", option, " is \"", given, "\""), where, text("it is ", known)));
}

void require_at_least(const char* layer, const char* option, std::int64_t given, std::int64_t least, Where where) {
  if (given >= least) return;
  throw UserError(
      error_text(text(layer, ": ", option, " is ", given), where, text("it is an integer from ", least, " on")));
}

}  // namespace stet::keras
