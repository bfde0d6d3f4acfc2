// Quantiles of data that comes in parts, as Discretization finds them. Not a public header.
#pragma once
#include <cstdint>
#include <vector>

namespace stet::keras {

/// Some of the values seen, ascending, and how many values each stands for: at most about 1 / epsilon of them, after
/// Keras's way of thinning them out, in its precision.
class BinSummary {
 public:
  explicit BinSummary(double epsilon) : epsilon_(epsilon) {}
  void add(std::vector<float> values);
  bool empty() const { return values_.empty(); }
  /// What parts the values seen into so many bins.
  std::vector<double> boundaries(std::int64_t bins) const;

 private:
  void compress(double epsilon);
  double epsilon_;
  std::vector<float> values_, weights_;
};

}  // namespace stet::keras
