// k-means: Lloyd's algorithm, until no point changes its cluster.
#include <algorithm>

#include "algorithms.h"

namespace stet {
namespace {

struct Clusters {
  Tensor centers, assignments, changed, turns;
  STET_FIELDS(centers, assignments, changed, turns)
};

/// Points [n, d], first centers [k, d]. A cluster without points stays where it is.
Clusters k_means(Tensor points, Tensor centers) {
  return while_loop([](Clusters now) { return now.changed; },
                    [&](Clusters now) {
                      Tensor distances = sum(square(expand_dims(points, 1) - now.centers), 2);
                      Tensor nearest = argmin(distances, 1);
                      Tensor members = expand_dims(bincount(nearest, centers.dim(0)), 1);
                      Tensor means = segment_mean(points, nearest, centers.dim(0));
                      return Clusters{where(members > 0, means, now.centers), nearest, any(nearest != now.assignments),
                                      now.turns + 1};
                    },
                    Clusters{centers, full({points.dim(0)}, -1, i64), tensor(true), tensor(0)});
}

struct PlainClusters {
  Reals centers;
  Integers assignments;
  std::int64_t turns = 0;
};

PlainClusters plain_k_means(const Reals& points, Reals centers, std::size_t d) {
  const std::size_t n = points.size() / d, k = centers.size() / d;
  PlainClusters out{.centers = {}, .assignments = Integers(n, -1)};
  for (bool changed = true; changed; ++out.turns) {
    changed = false;
    for (std::size_t i = 0; i < n; ++i) {
      double best = INFINITY;
      std::int64_t nearest = -1;
      for (std::size_t c = 0; c < k; ++c) {
        double distance = 0;
        for (std::size_t j = 0; j < d; ++j) distance += std::pow(points[i * d + j] - centers[c * d + j], 2);
        if (distance < best) best = distance, nearest = static_cast<std::int64_t>(c);
      }
      changed = changed || out.assignments[i] != nearest;
      out.assignments[i] = nearest;
    }
    for (std::size_t c = 0; c < k; ++c) {
      Reals total(d, 0);
      double members = 0;
      for (std::size_t i = 0; i < n; ++i) {
        if (out.assignments[i] != static_cast<std::int64_t>(c)) continue;
        ++members;
        for (std::size_t j = 0; j < d; ++j) total[j] += points[i * d + j];
      }
      for (std::size_t j = 0; members > 0 && j < d; ++j) centers[c * d + j] = total[j] / members;
    }
  }
  out.centers = centers;
  return out;
}

TEST(AlgorithmsClusters, KMeansUntilNothingChanges) {
  Function traced = function("k_means(points, centers)", k_means);
  std::int64_t most_turns = 0;
  for (std::int64_t n : {40, 300, 1, 9})
    for (std::int64_t k : {5, 2, 1})
      for (std::int64_t d : {2, 3}) {
        SCOPED_TRACE(testing::Message() << n << " points, " << k << " clusters, " << d << " axes");
        Reals points = wave(n * d, 0.3), centers = wave(k * d, 2);
        PlainClusters plain = plain_k_means(points, centers, static_cast<std::size_t>(d));
        Clusters got = traced(shaped(points, {n, d}), shaped(centers, {k, d}));
        Clusters eager = k_means(shaped(points, {n, d}), shaped(centers, {k, d}));
        EXPECT_EQ(integers(got.assignments), plain.assignments);
        EXPECT_EQ(got.turns.item<std::int64_t>(), plain.turns);
        expect_close(got.centers, plain.centers, 1e-12);
        expect_bits(got.assignments, eager.assignments, "assignments");
        expect_bits(got.centers, eager.centers, "centers");
        most_turns = std::max(most_turns, plain.turns);
      }
  EXPECT_GT(most_turns, 5);
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
}

/// Two far clusters and a center that no point is near to.
TEST(AlgorithmsClusters, ACenterWithoutPointsStays) {
  Function traced = function("k_means(points, centers)", k_means);
  Tensor points = tensor({{0.f, 0.f}, {0.f, 1.f}, {9.f, 9.f}, {9.f, 8.f}});
  Clusters got = traced(points, tensor({{1.f, 1.f}, {100.f, 100.f}, {8.f, 8.f}}));
  EXPECT_EQ(reals(got.centers), (Reals{0, 0.5, 100, 100, 9, 8.5}));
  EXPECT_EQ(integers(got.assignments), (Integers{0, 0, 2, 2}));
  EXPECT_EQ(got.turns.item<int>(), 2);
}

/// In the last turn assignments are what they were, so that the loss has the gradient of one with constant ones:
/// of sum |x - center(x)|^2 / 2 it is x - center(x), for centers are means.
TEST(AlgorithmsClusters, TheGradientOfTheDistortionIsTheWayToTheCenter) {
  auto slope = [](Tensor points, Tensor first) {
    GradientTape tape;
    tape.watch(points);
    Clusters found = k_means(points, first);
    Tensor loss = sum(square(points - gather(found.centers, found.assignments))) / 2;
    return std::pair(tape.gradient(loss, points), points - gather(found.centers, found.assignments));
  };
  Function traced = function("slope(points, first)", slope);
  for (std::int64_t n : {30, 7}) {
    Tensor points = shaped(wave(n * 2, 0.3), {n, 2}), first = shaped(wave(6, 2), {3, 2});
    auto [d, expected] = traced(points, first);
    expect_agree(d, expected, 1e-12);
    expect_agree(slope(points, first).first, expected, 1e-12);
  }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
}

}  // namespace
}  // namespace stet
