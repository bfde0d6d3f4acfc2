// Histograms as TensorBoard has them: from the smallest to the largest value in buckets of one width. Not a public
// header.
#pragma once
#include <cstdint>
#include <vector>

namespace stet::reporting {

struct Bucket {
  double left = 0, right = 0, count = 0;
};

/// Always `buckets` of them. The last one takes the largest value too. Values that are all the same are in the last
/// bucket, and all are as wide as nothing; without values, all of them are zero. What is not finite is left out.
std::vector<Bucket> histogram_buckets(const std::vector<double>& values, std::int64_t buckets);

}  // namespace stet::reporting
