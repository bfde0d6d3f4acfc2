// Hidden Markov models: Viterbi's path by a scan forward and one back over its pointers; the likelihood of all paths by
// a scan, whose gradient is what forward and backward passes compute by hand.
#include <algorithm>

#include "algorithms.h"

namespace stet {
namespace {

struct Decoded {
  Tensor path, score;
  STET_FIELDS(path, score)
};

/// `start` [states], `moves` [from, to], `seen` [time, states]: logarithms of probabilities. At least one step of time.
Decoded viterbi(Tensor start, Tensor moves, Tensor seen) {
  auto [last, pointers] = scan(
      [&](Tensor best, Tensor now) {
        Tensor ways = expand_dims(best, 1) + moves;
        return std::pair(max(ways, 0) + now, argmax(ways, 0));
      },
      start + seen[0], seen[Range{.begin = 1}]);
  auto [first, rest] = scan([](Tensor state, Tensor from) { return std::pair(gather(from, state), state); },
                            argmax(last), pointers, {.reverse = true});
  return {concat({expand_dims(first, 0), rest}), max(last)};
}

/// The logarithm of the probability of what was seen.
Tensor log_likelihood(Tensor start, Tensor moves, Tensor seen) {
  return logsumexp(scan([&](Tensor now, Tensor next) { return logsumexp(expand_dims(now, 1) + moves, 0) + next; },
                        start + seen[0], seen[Range{.begin = 1}]));
}

struct Model {
  std::size_t states;
  Reals start, moves;
};
Model model_of(std::int64_t states) {
  Model out{static_cast<std::size_t>(states), wave(states, 0.1), wave(states * states, 0.7)};
  auto normalise = [&](Reals& values, std::size_t from) {
    double total = 0;
    for (std::size_t i = from; i < from + out.states; ++i) total += std::exp(values[i]);
    for (std::size_t i = from; i < from + out.states; ++i) values[i] -= std::log(total);
  };
  normalise(out.start, 0);
  for (std::size_t row = 0; row < out.states; ++row) normalise(out.moves, row * out.states);
  return out;
}

double score_of(const Model& model, const Reals& seen, const Integers& path) {
  double out = 0;
  for (std::size_t t = 0; t < path.size(); ++t) {
    auto state = static_cast<std::size_t>(path[t]);
    out += seen[t * model.states + state];
    out += t == 0 ? model.start[state] : model.moves[static_cast<std::size_t>(path[t - 1]) * model.states + state];
  }
  return out;
}

Integers plain_viterbi(const Model& model, const Reals& seen, std::size_t time) {
  const std::size_t k = model.states;
  Reals best(k);
  std::vector<Integers> pointers(time, Integers(k));
  for (std::size_t s = 0; s < k; ++s) best[s] = model.start[s] + seen[s];
  for (std::size_t t = 1; t < time; ++t) {
    Reals next(k);
    for (std::size_t to = 0; to < k; ++to) {
      std::size_t from = 0;
      for (std::size_t s = 1; s < k; ++s)
        if (best[s] + model.moves[s * k + to] > best[from] + model.moves[from * k + to]) from = s;
      pointers[t][to] = static_cast<std::int64_t>(from);
      next[to] = best[from] + model.moves[from * k + to] + seen[t * k + to];
    }
    best = next;
  }
  Integers path(time);
  path[time - 1] = std::max_element(best.begin(), best.end()) - best.begin();
  for (std::size_t t = time - 1; t-- > 0;) path[t] = pointers[t + 1][static_cast<std::size_t>(path[t + 1])];
  return path;
}

TEST(AlgorithmsViterbi, ThePathIsThatOfThePlainOne) {
  Function traced = function("viterbi(start, moves, seen)", viterbi);
  for (std::int64_t states : {3, 2, 17, 1})
    for (std::int64_t time : {6, 1, 2, 200}) {
      SCOPED_TRACE(testing::Message() << states << " states, " << time << " steps");
      Model model = model_of(states);
      Reals seen = wave(states * time, 2);
      Tensor start = tensor(model.start), moves = shaped(model.moves, {states, states}),
             shown = shaped(seen, {time, states});
      Decoded got = traced(start, moves, shown), eager = viterbi(start, moves, shown);
      Integers path = plain_viterbi(model, seen, static_cast<std::size_t>(time));
      EXPECT_EQ(integers(got.path), path);
      expect_close(got.score, {score_of(model, seen, path)}, 1e-12);
      expect_bits(got.path, eager.path, "path");
      expect_bits(got.score, eager.score, "score");
    }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
}

/// Among all paths, as many as states to the power of time.
TEST(AlgorithmsViterbi, NoPathIsBetterAndAllOfThemMakeTheLikelihood) {
  Function traced = function("both(start, moves, seen)", [](Tensor start, Tensor moves, Tensor seen) {
    return std::tuple(viterbi(start, moves, seen).score, log_likelihood(start, moves, seen));
  });
  for (std::int64_t time : {5, 1, 3}) {
    Model model = model_of(3);
    Reals seen = wave(3 * time, 4);
    double best = -INFINITY, total = 0;
    const auto count = static_cast<std::int64_t>(std::pow(3, time));
    for (std::int64_t code = 0; code < count; ++code) {
      Integers path;
      for (std::int64_t rest = code; path.size() < static_cast<std::size_t>(time); rest /= 3) path.push_back(rest % 3);
      const double score = score_of(model, seen, path);
      best = std::max(best, score);
      total += std::exp(score);
    }
    auto [score, likelihood] = traced(tensor(model.start), shaped(model.moves, {3, 3}), shaped(seen, {time, 3}));
    expect_close(score, {best}, 1e-13);
    expect_close(likelihood, {std::log(total)}, 1e-13);
  }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
}

/// The best score changes with what the path visits alone: its gradient by what was seen is 1 there and 0 elsewhere,
/// and by the moves it counts them.
TEST(AlgorithmsViterbi, TheGradientOfTheBestScoreIsThePath) {
  auto slopes = [](Tensor start, Tensor moves, Tensor seen) {
    GradientTape tape;
    tape.watch(moves), tape.watch(seen);
    Decoded best = viterbi(start, moves, seen);
    std::vector<Tensor> d = tape.gradient(best.score, {moves, seen});
    return std::tuple(best.path, d[0], d[1]);
  };
  Function traced = function("slopes(start, moves, seen)", slopes);
  for (std::int64_t time : {7, 2, 40}) {
    Model model = model_of(4);
    Reals seen = wave(4 * time, 2), visits(seen.size(), 0), moves(16, 0);
    Integers path = plain_viterbi(model, seen, static_cast<std::size_t>(time));
    for (std::size_t t = 0; t < path.size(); ++t) {
      visits[t * 4 + static_cast<std::size_t>(path[t])] = 1;
      if (t > 0) ++moves[static_cast<std::size_t>(path[t - 1] * 4 + path[t])];
    }
    for (bool eager : {true, false}) {
      Tensor start = tensor(model.start), ways = shaped(model.moves, {4, 4}), shown = shaped(seen, {time, 4});
      auto [found, by_moves, by_seen] = eager ? slopes(start, ways, shown) : traced(start, ways, shown);
      EXPECT_EQ(integers(found), path);
      EXPECT_EQ(reals(by_moves), moves);
      EXPECT_EQ(reals(by_seen), visits);
    }
  }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
}

/// The gradient of the likelihood by what was seen is the probability of each state at each time.
TEST(AlgorithmsViterbi, TheGradientOfTheLikelihoodIsWhatForwardAndBackwardPassesGive) {
  auto posterior = [](Tensor start, Tensor moves, Tensor seen) {
    GradientTape tape;
    tape.watch(seen);
    Tensor all = log_likelihood(start, moves, seen);
    return std::pair(tape.gradient(all, seen), all);
  };
  Function traced = function("posterior(start, moves, seen)", posterior);
  for (std::int64_t time : {6, 1, 25}) {
    const std::size_t k = 3, length = static_cast<std::size_t>(time);
    Model model = model_of(3);
    Reals seen = wave(3 * time, 4), forward(k * length), backward(k * length, 1), expected(k * length);
    for (std::size_t t = 0; t < length; ++t)
      for (std::size_t to = 0; to < k; ++to) {
        double sum = t == 0 ? std::exp(model.start[to]) : 0;
        for (std::size_t from = 0; t > 0 && from < k; ++from)
          sum += forward[(t - 1) * k + from] * std::exp(model.moves[from * k + to]);
        forward[t * k + to] = sum * std::exp(seen[t * k + to]);
      }
    for (std::size_t t = length - 1; t-- > 0;)
      for (std::size_t from = 0; from < k; ++from) {
        double sum = 0;
        for (std::size_t to = 0; to < k; ++to)
          sum += std::exp(model.moves[from * k + to] + seen[(t + 1) * k + to]) * backward[(t + 1) * k + to];
        backward[t * k + from] = sum;
      }
    const double total = forward[(length - 1) * k] + forward[(length - 1) * k + 1] + forward[(length - 1) * k + 2];
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = forward[i] * backward[i] / total;
    Tensor start = tensor(model.start), moves = shaped(model.moves, {3, 3}), shown = shaped(seen, {time, 3});
    for (bool eager : {true, false}) {
      auto [states, all] = eager ? posterior(start, moves, shown) : traced(start, moves, shown);
      expect_close(states, expected, 1e-12, "probabilities");
      expect_close(all, {std::log(total)}, 1e-12, "likelihood");
    }
  }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
}

}  // namespace
}  // namespace stet
