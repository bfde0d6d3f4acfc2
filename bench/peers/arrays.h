// The arrays that a workload begins with, as bench/peers/arrays.py wrote them.
#pragma once
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "stet/stet.h"

namespace bench::peers {

class Arrays {
 public:
  Arrays(const std::string& folder, const std::string& workload)
      : by_name_(stet::data::read_npz(folder + "/" + workload + ".npz")) {}
  const stet::Tensor& operator[](const std::string& name) const { return by_name_.at(name); }
  /// Those whose names begin with a letter, in the order of their names: the weights are p00, p01 …
  std::vector<stet::Tensor> all(char letter) const {
    std::vector<stet::Tensor> out;
    for (const auto& [name, array] : by_name_)
      if (name[0] == letter) out.push_back(array);
    return out;
  }

 private:
  std::map<std::string, stet::Tensor> by_name_;
};

/// One number of many, as arrays.py computes it.
inline double fingerprint(const stet::Tensor& values) {
  const float* at = values.data<float>();
  const std::int64_t count = values.size().value();
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    double whole = 0;
    sum += static_cast<double>(at[i]) * (1 + std::modf(static_cast<double>(i) * 0.6180339887498949, &whole));
  }
  return sum;
}

}  // namespace bench::peers
