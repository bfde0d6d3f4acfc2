#include "stet/ops/window_call.h"

namespace stet {
namespace {

constexpr std::int64_t largest_number = std::int64_t{1} << 62;

}  // namespace

const char* entries_text(int spatial) {
  static constexpr const char* each[] = {"one entry", "one entry for height and one for width",
                                         "one entry for depth, one for height and one for width"};
  return each[spatial - 1];
}

WindowCall::WindowCall(const char* function, std::span<const char* const> names, std::span<const In> operands)
    : function_(function), names_(names), operands_(operands), frame_(function, operands[0].where()) {
  for (std::size_t i = 0; i < operands.size(); ++i)
    require(operands[i].kind() == In::Kind::tensor && operands[i].tensor().defined(),
            text("'", names[i], "' must be a tensor"), "give it axes: [batch, spatial axes, channels]");
}

Where WindowCall::where() const { return frame_where(); }

void WindowCall::fail(const Problem& problem) const {
  throw_user_error(function_, names_, operands_, problem, where());
}

void WindowCall::require_rank(int number, int rank, const std::string& advice) const {
  int given = operand(number).rank();
  require(given == rank, text("'", names_[static_cast<std::size_t>(number)], "' has rank ", given, ", not ", rank),
          advice);
}

void WindowCall::require_floating() const {
  DType first = operand(0).dtype();
  for (std::size_t i = 1; i < operands_.size(); ++i) {
    DType other = operands_[i].tensor().dtype();
    require(first == other, text("'", names_[0], "' is ", first, " and '", names_[i], "' is ", other),
            "cast one of them first");
  }
  require(is_floating(first), text(function_, " does not take ", first), "cast to f32 first");
}

void WindowCall::require_entries(const char* what, std::size_t count, int spatial) const {
  require(count == static_cast<std::size_t>(spatial),
          text(what, " have ", entries_text(spatial), ", not ", count, count == 1 ? " entry" : " entries"));
}

void WindowCall::require_equal(const Dim& a, const Dim& b, const std::string& what, const std::string& advice) const {
  if (!stet::require(a, Relation::equal, b, reason(what.c_str())))
    fail(Problem(text(what, " ", size_text(a), " and ", size_text(b), " differ"), advice));
}

void WindowCall::require_padding(const WindowPadding& padding, int spatial) const {
  if (padding.pairs.empty()) {
    require(padding.name == "valid" || padding.name == "same", text("padding \"", padding.name, "\" is not known"),
            "give \"valid\", \"same\" or one pair {before, after} for each spatial axis");
    return;
  }
  require_entries("pairs of padding", padding.pairs.size(), spatial);
  for (auto [low, high] : padding.pairs)
    require(low >= 0 && high >= 0 && low < largest_number && high < largest_number,
            text("padding {", low, ", ", high, "} is negative or too large"), "slice the input to cut it");
}

WindowAxis WindowCall::axis(int number, const Dim& input, const Dim& window, std::int64_t stride, std::int64_t dilation,
                            const WindowPadding& padding) const {
  ConvolvedAxis axis{.input = input, .kernel = window, .low = 0, .high = 0, .stride = stride, .dilation = dilation};
  if (!padding.pairs.empty()) {
    axis.low = padding.pairs[static_cast<std::size_t>(number)].first;
    axis.high = padding.pairs[static_cast<std::size_t>(number)].second;
  }
  if (padding.name != "same" || !padding.pairs.empty()) return {convolve(axis, reason("size")), axis.low};
  if (stride < 1 || dilation < 1) return {convolve(axis, reason("size")), 0};  // which says what is wrong
  // As many windows as strides begin inside the input; more stride than window needs no padding.
  Dim count = (input + (stride - 1)) / stride;
  Dim total = larger_of((count - 1) * stride + (window - 1) * dilation + 1 - input, 0);
  axis.low = total / 2;
  axis.high = total - axis.low;
  convolve(axis, reason("size"));  // for its checks; the count in this form keeps `input` for stride 1
  return {count, axis.low};
}

WindowAxis WindowCall::transposed_axis(int number, const Dim& windows, const Dim& window, std::int64_t stride,
                                       std::int64_t dilation, const WindowPadding& padding,
                                       const std::vector<std::int64_t>& output_padding) const {
  auto at = static_cast<std::size_t>(number);
  // For its checks of window, stride and dilation.
  convolve({.input = (window - 1) * dilation + 1,
            .kernel = window,
            .low = 0,
            .high = 0,
            .stride = stride,
            .dilation = dilation},
           reason("size"));
  Dim reach = (window - 1) * dilation + 1, all = (windows - 1) * stride + reach;
  std::int64_t extra = output_padding.empty() ? 0 : output_padding[at];
  require(extra >= 0 && extra < stride, text("output padding ", extra, " is not below the stride ", stride),
          "0 to stride - 1");
  WindowAxis out;
  if (!padding.pairs.empty()) {
    out = {all - padding.pairs[at].first - padding.pairs[at].second + extra, padding.pairs[at].first};
  } else if (padding.name == "same") {
    out.size = output_padding.empty() ? windows * stride : all - reach / 2 * 2 + extra;
    out.low = larger_of(all - out.size, 0) / 2;
  } else {
    // Without output padding, whatever the last windows leave of a whole stride is there, and 0.
    out.size = output_padding.empty() ? windows * stride + larger_of(reach - stride, 0) : all + extra;
  }
  if (!check(0, Relation::less_equal, out.size, reason("size")))
    throw Problem(text("the padding leaves a size of ", size_text(out.size)), "pad less");
  return out;
}

}  // namespace stet
