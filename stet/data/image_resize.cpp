#include "stet/data/image_resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace stet::data {
namespace {

/// Between which two pixels one of the result lies, and how far from the first.
struct Between {
  std::int64_t low, high;
  float weight;
};

std::vector<Between> places(std::int64_t input, std::int64_t size) {
  std::vector<Between> out(static_cast<std::size_t>(size));
  // In f32, as in TensorFlow.
  const float scale = static_cast<float>(input) / static_cast<float>(size), last = static_cast<float>(input - 1);
  auto clipped = [&](float at) { return static_cast<std::int64_t>(std::max(std::min(at, last), 0.f)); };
  for (std::int64_t i = 0; i < size; ++i) {
    const float position = (static_cast<float>(i) + 0.5f) * scale - 0.5f, below = std::floor(position);
    out[static_cast<std::size_t>(i)] = {clipped(below), clipped(std::ceil(position)), position - below};
  }
  return out;
}

}  // namespace

void resize_bilinear(const ImagePart& from, float* to, std::int64_t height, std::int64_t width) {
  const std::vector<Between> columns = places(from.width, width), rows = places(from.height, height);
  const std::int64_t channels = from.channels, row_numbers = width * channels;
  // Two rows of the image at the new width: neighbours in the result mostly share them.
  std::vector<float> kept[2] = {std::vector<float>(static_cast<std::size_t>(row_numbers)),
                                std::vector<float>(static_cast<std::size_t>(row_numbers))};
  std::int64_t kept_row[2] = {-1, -1};
  auto squeeze = [&](std::int64_t row, std::vector<float>& out) {
    const std::uint8_t* line = from.first + row * from.row_bytes;
    float* at = out.data();
    for (const Between& column : columns) {
      const std::uint8_t *low = line + column.low * channels, *high = line + column.high * channels;
      for (std::int64_t c = 0; c < channels; ++c) {
        const auto left = static_cast<float>(low[c]), right = static_cast<float>(high[c]);
        *at++ = left + (right - left) * column.weight;
      }
    }
  };
  auto row_of = [&](std::int64_t row, int unless) -> int {
    for (int i : {0, 1})
      if (kept_row[i] == row) return i;
    const int place = unless == 0 ? 1 : unless == 1 ? 0 : kept_row[0] <= kept_row[1] ? 0 : 1;
    squeeze(row, kept[place]);
    kept_row[place] = row;
    return place;
  };
  for (const Between& row : rows) {
    const int low = row_of(row.low, -1), high = row_of(row.high, low);
    const float *upper = kept[low].data(), *lower = kept[high].data();
    for (std::int64_t i = 0; i < row_numbers; ++i) to[i] = upper[i] + (lower[i] - upper[i]) * row.weight;
    to += row_numbers;
  }
}

void resize_nearest(const ImagePart& from, std::uint8_t* to, std::int64_t height, std::int64_t width) {
  auto places = [](std::int64_t input, std::int64_t size) {
    std::vector<std::int64_t> out(static_cast<std::size_t>(size));
    const float scale = static_cast<float>(input) / static_cast<float>(size), last = static_cast<float>(input - 1);
    for (std::int64_t i = 0; i < size; ++i)
      out[static_cast<std::size_t>(i)] =
          static_cast<std::int64_t>(std::max(std::min(std::floor((static_cast<float>(i) + 0.5f) * scale), last), 0.f));
    return out;
  };
  const std::vector<std::int64_t> columns = places(from.width, width), rows = places(from.height, height);
  const auto pixel = static_cast<std::size_t>(from.channels);
  for (std::int64_t row : rows)
    for (std::int64_t column : columns) {
      std::memcpy(to, from.first + row * from.row_bytes + column * from.channels, pixel);
      to += pixel;
    }
}

}  // namespace stet::data
