// Random choices of a shuffle: a generator written out here, because the standard's distributions differ between
// libraries and an order must be the same everywhere.
#pragma once
#include <bit>
#include <cstdint>

namespace stet::data {

/// SplitMix64's step: spreads every bit of x over all of the result.
inline std::uint64_t spread(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}
/// One seed from two.
inline std::uint64_t combined(std::uint64_t a, std::uint64_t b) { return spread(spread(a) ^ b); }

/// xoshiro256** by D. Blackman and S. Vigna.
class RandomOrder {
 public:
  explicit RandomOrder(std::uint64_t seed) {
    for (std::uint64_t& word : state_) word = spread(seed++);
  }

  /// Uniform in [0, bound), without bias (D. Lemire, "Fast random integer generation in an interval", 2019).
  std::uint64_t below(std::uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    Wide product = Wide{next()} * bound;
    if (static_cast<std::uint64_t>(product) < bound) {
      const std::uint64_t threshold = -bound % bound;
      while (static_cast<std::uint64_t>(product) < threshold) product = Wide{next()} * bound;
    }
    return static_cast<std::uint64_t>(product >> 64);
  }

 private:
  std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  std::uint64_t state_[4];
};

}  // namespace stet::data
