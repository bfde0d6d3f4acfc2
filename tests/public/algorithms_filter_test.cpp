// A particle filter: a scan that draws, weighs and resamples. A linear model with normal noise has an exact filter,
// Kalman's, to be compared with.
#include <numbers>

#include "algorithms.h"

namespace stet {
namespace {

// x' = 0.9 x + 0.5 noise, y = x + 0.7 noise, x before the first step normal.
constexpr double memory = 0.9, drift = 0.5, blur = 0.7;

struct Estimates {
  Tensor means, variances, log_likelihood, particles;
  STET_FIELDS(means, variances, log_likelihood, particles)
};

/// Systematic resampling: one uniform number for all particles.
Estimates particle_filter(const random::Generator& generator, Tensor seen, Dim count, DType dtype) {
  Tensor places = cast(arange(count), dtype);
  auto [last, each] = scan(
      [&](std::pair<Tensor, Tensor> now, Tensor y) {
        auto [particles, log_likelihood] = now;
        Tensor moved = memory * particles + drift * generator.normal({count}, 0, 1, {.dtype = dtype});
        Tensor fit = -square((y - moved) / blur) / 2;
        Tensor weights = softmax(fit);
        Tensor average = sum(weights * moved), variance = sum(weights * square(moved - average));
        Tensor sample = (places + generator.uniform({}, 0, 1, {.dtype = dtype})) / count;
        Tensor chosen = minimum(searchsorted(cumsum(weights), sample), count - 1);
        Tensor more = logsumexp(fit) - log(count * std::sqrt(2 * std::numbers::pi) * blur);
        return std::pair(std::pair(gather(moved, chosen), log_likelihood + more), std::pair(average, variance));
      },
      std::pair(generator.normal({count}, 0, 1, {.dtype = dtype}), zeros({}, dtype)), seen);
  return {each.first, each.second, last.second, last.first};
}

struct Kalman {
  Reals means, variances;
  double log_likelihood = 0;
};
Kalman kalman_filter(const Reals& seen) {
  Kalman out;
  double mean = 0, variance = 1;
  for (double y : seen) {
    mean *= memory;
    variance = memory * memory * variance + drift * drift;
    const double spread = variance + blur * blur;
    out.log_likelihood -= ((y - mean) * (y - mean) / spread + std::log(2 * std::numbers::pi * spread)) / 2;
    const double gain = variance / spread;
    mean += gain * (y - mean);
    variance *= 1 - gain;
    out.means.push_back(mean);
    out.variances.push_back(variance);
  }
  return out;
}

TEST(AlgorithmsFilter, ParticlesAreWhereKalmansFilterSays) {
  random::Generator generator(5);
  Function traced = function("filter(seen, count)",
                             [=](Tensor seen, Dim count) { return particle_filter(generator, seen, count, f64); });
  for (std::int64_t length : {30, 7})
    for (std::int64_t count : {20000, 5000}) {
      SCOPED_TRACE(testing::Message() << length << " steps, " << count << " particles");
      Reals seen = wave(length, 1);
      Kalman exact = kalman_filter(seen);
      Estimates got = traced(tensor(seen), count);
      // A mean of n particles is off by about sqrt(variance / n); resampling makes it a little more.
      for (std::size_t t = 0; t < seen.size(); ++t) {
        const double off = std::sqrt(exact.variances[t] / static_cast<double>(count));
        EXPECT_NEAR(reals(got.means)[t], exact.means[t], 6 * off) << t;
        EXPECT_NEAR(reals(got.variances)[t], exact.variances[t], 10 * off * std::sqrt(exact.variances[t])) << t;
      }
      EXPECT_NEAR(got.log_likelihood.item<double>(), exact.log_likelihood,
                  5 * std::sqrt(static_cast<double>(length) / static_cast<double>(count)));
    }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
}

/// Which particles live on is decided by single bits of sums of weights.
TEST(AlgorithmsFilter, EagerAndTracedParticlesHaveTheSameBits) {
  for (DType dtype : {f32, f64}) {
    random::Generator one(11), other(11);
    Function traced = function("filter(seen, count)",
                               [=](Tensor seen, Dim count) { return particle_filter(one, seen, count, dtype); });
    for (std::int64_t length : {6, 1, 0, 13})
      for (std::int64_t count : {64, 1, 17, 1000}) {
        SCOPED_TRACE(testing::Message() << length << " steps, " << count << " particles");
        Tensor seen = cast(tensor(wave(length, 2)), dtype);
        Estimates got = traced(seen, count), eager = particle_filter(other, seen, count, dtype);
        expect_bits(got.particles, eager.particles, "particles");
        // Sums that are fused with what they add up may run in another order.
        const double tolerance = dtype == f32 ? 2e-6 : 1e-14;
        expect_agree(got.means, eager.means, tolerance, "means");
        expect_agree(got.variances, eager.variances, tolerance, "variances");
        expect_agree(got.log_likelihood, eager.log_likelihood, tolerance, "log likelihood");
      }
    EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
  }
}

/// Another seed, another path; the same seed, the same one.
TEST(AlgorithmsFilter, TheSeedDecides) {
  random::Generator generator(3);
  Function traced = function("filter(seen)", [=](Tensor seen) { return particle_filter(generator, seen, 50, f32); });
  Tensor seen = cast(tensor(wave(8, 2)), f32), before = generator.state();
  Reals first = reals(traced(seen).particles), second = reals(traced(seen).particles);
  EXPECT_NE(first, second);
  generator.restore(before);
  EXPECT_EQ(reals(traced(seen).particles), first);
}

}  // namespace
}  // namespace stet
