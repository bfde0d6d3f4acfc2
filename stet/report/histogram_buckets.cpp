#include "stet/report/histogram_buckets.h"

#include <algorithm>
#include <cmath>

namespace stet::reporting {

std::vector<Bucket> histogram_buckets(const std::vector<double>& values, std::int64_t buckets) {
  std::vector<Bucket> out(static_cast<std::size_t>(buckets));
  double low = INFINITY, high = -INFINITY, count = 0;
  for (double value : values)
    if (std::isfinite(value)) {
      low = std::min(low, value);
      high = std::max(high, value);
      ++count;
    }
  if (out.empty() || count == 0) return out;
  // Numbers of both signs may be further apart than a double can tell: then all is halved.
  const double scale = std::isfinite(high - low) ? 1 : 0.5;
  const double range = high * scale - low * scale, width = range / static_cast<double>(buckets);
  if (range == 0) {
    for (Bucket& bucket : out) bucket.left = bucket.right = high;
    out.back().count = count;
    return out;
  }
  for (double value : values) {
    if (!std::isfinite(value)) continue;
    const double offset = value * scale - low * scale;
    // A width that is too small for a double is no divisor.
    const double place = std::floor(width > 0 ? offset / width : offset / range * static_cast<double>(buckets));
    ++out[static_cast<std::size_t>(std::min(place, static_cast<double>(buckets - 1)))].count;
  }
  auto edge = [&](std::size_t i) {
    return i == out.size() ? high : std::min((low * scale + static_cast<double>(i) * width) / scale, high);
  };
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].left = edge(i);
    out[i].right = edge(i + 1);
  }
  return out;
}

}  // namespace stet::reporting
