#include "stet/keras/bin_summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace stet::keras {
namespace {

/// The value at x of the lines through points whose places ascend; before the first and after the last, theirs.
double interpolated(double x, const std::vector<double>& places, const std::vector<float>& values) {
  const auto after = std::upper_bound(places.begin(), places.end(), x);
  if (after == places.begin()) return static_cast<double>(values.front());
  if (after == places.end()) return static_cast<double>(values.back());
  const auto i = static_cast<std::size_t>(after - places.begin());
  const double low = static_cast<double>(values[i - 1]), high = static_cast<double>(values[i]);
  return (high - low) / (places[i] - places[i - 1]) * (x - places[i - 1]) + low;
}

}  // namespace

void BinSummary::add(std::vector<float> values) {
  std::sort(values.begin(), values.end());
  const double step = std::max(static_cast<double>(values.size()) * epsilon_, 1.0);
  std::vector<float> seen, weights;
  for (auto i = static_cast<std::size_t>(step - 1); i < values.size(); i += static_cast<std::size_t>(step)) {
    seen.push_back(values[i]);
    weights.push_back(static_cast<float>(step));
  }
  seen.insert(seen.end(), values_.begin(), values_.end());
  weights.insert(weights.end(), weights_.begin(), weights_.end());
  std::vector<std::size_t> order(seen.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return seen[a] < seen[b]; });
  values_.clear(), weights_.clear();
  for (std::size_t i : order) {
    values_.push_back(seen[i]);
    weights_.push_back(weights[i]);
  }
  compress(epsilon_);
}

void BinSummary::compress(double epsilon) {
  if (static_cast<double>(values_.size()) * epsilon < 1) return;
  std::vector<float> sums(weights_.size());
  std::partial_sum(weights_.begin(), weights_.end(), sums.begin());
  std::vector<double> parts;  // of all values, up to each
  for (float sum : sums) parts.push_back(static_cast<double>(sum / sums.back()));
  std::vector<float> values, weights;
  double before = 0;
  const auto count = static_cast<std::size_t>(std::ceil(1 / epsilon));
  for (std::size_t i = 0; i < count; ++i) {
    const double part = epsilon + static_cast<double>(i) * epsilon;
    values.push_back(static_cast<float>(interpolated(part, parts, values_)));
    const double sum = interpolated(part, parts, sums);
    weights.push_back(static_cast<float>(sum - before));
    before = sum;
  }
  values_ = std::move(values);
  weights_ = std::move(weights);
}

std::vector<double> BinSummary::boundaries(std::int64_t bins) const {
  BinSummary last = *this;
  last.compress(1 / static_cast<double>(bins));
  std::vector<double> out(last.values_.begin(), last.values_.end());
  if (!out.empty()) out.pop_back();
  return out;
}

}  // namespace stet::keras
