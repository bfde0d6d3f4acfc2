// ctc_loss against the sum over every alignment there is, written out.
#include <limits>

#include "expect_error.h"
#include "numeric_checks.h"

using namespace stet;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

struct Batch {
  Tensor log_probs;  // f64[time, batch, classes]
  std::vector<std::vector<int>> labels;
  std::vector<int> times;
};

/// What an alignment says: equal neighbours are one, then blanks go.
std::vector<int> said(const std::vector<int>& path, int blank) {
  std::vector<int> out;
  for (std::size_t i = 0; i < path.size(); ++i)
    if ((i == 0 || path[i] != path[i - 1]) && path[i] != blank) out.push_back(path[i]);
  return out;
}

/// -log of the sum of the probabilities of all paths that say the labels.
double enumerated(const std::vector<double>& log_probs, int batch, int classes, int sequence,
                  const std::vector<int>& labels, int time, int blank) {
  double total = 0;
  std::vector<int> path(static_cast<std::size_t>(time), 0);
  for (;;) {
    if (said(path, blank) == labels) {
      double log_p = 0;
      for (int t = 0; t < time; ++t)
        log_p +=
            log_probs[static_cast<std::size_t>((t * batch + sequence) * classes + path[static_cast<std::size_t>(t)])];
      total += std::exp(log_p);
    }
    int at = 0;
    while (at < time && ++path[static_cast<std::size_t>(at)] == classes) path[static_cast<std::size_t>(at++)] = 0;
    if (at == time) break;
  }
  return -std::log(total);
}

Tensor log_probabilities(const Shape& shape, std::int64_t stream) {
  return log_softmax(random::stateless_normal(shape, {3, stream}, {.stddev = 1.5, .dtype = f64}));
}

/// Labels behind a sequence's end are no classes.
Tensor padded(const std::vector<std::vector<int>>& labels, int length) {
  std::vector<int> out;
  for (std::vector<int> one : labels) {
    one.resize(static_cast<std::size_t>(length), -7);
    out.insert(out.end(), one.begin(), one.end());
  }
  return reshape(tensor(out), {static_cast<int>(labels.size()), length});
}
Tensor lengths(const std::vector<std::vector<int>>& labels) {
  std::vector<int> out;
  for (const std::vector<int>& one : labels) out.push_back(static_cast<int>(one.size()));
  return tensor(out);
}

void expect_enumerated(const Batch& given, int blank) {
  const int batch = static_cast<int>(given.labels.size()), classes = static_cast<int>(given.log_probs.dim(2).value());
  std::vector<double> expected, log_probs = doubles_of(given.log_probs);
  std::size_t longest = 0;
  for (const std::vector<int>& one : given.labels) longest = std::max(longest, one.size());
  for (int b = 0; b < batch; ++b) {
    auto at = static_cast<std::size_t>(b);
    expected.push_back(enumerated(log_probs, batch, classes, b, given.labels[at], given.times[at], blank));
  }
  Tensor got = ctc_loss(given.log_probs, padded(given.labels, static_cast<int>(longest)), tensor(given.times),
                        lengths(given.labels), {.blank = blank});
  EXPECT_EQ(got.dtype(), f64);
  expect_values(got, expected, 1e-12);
}

TEST(Ctc, is_the_sum_over_all_alignments) {
  // Of several lengths, with repeated labels, too little time, no time, no labels.
  expect_enumerated({log_probabilities({6, 9, 4}, 1),
                     {{1, 2}, {3}, {1, 1, 2}, {2, 2, 2}, {}, {1, 2, 3}, {3, 3}, {}, {1}},
                     {6, 5, 6, 4, 3, 3, 3, 0, 0}},
                    0);
  // The blank elsewhere.
  expect_enumerated({log_probabilities({5, 3, 4}, 2), {{0, 2}, {0, 0}, {1}}, {5, 4, 1}}, 3);
  expect_enumerated({log_probabilities({5, 2, 3}, 3), {{0, 2, 0}, {2}}, {5, 2}}, 1);
  // One step, one class beside the blank; labels of no length at all.
  expect_enumerated({log_probabilities({1, 2, 2}, 4), {{1}, {}}, {1, 1}}, 0);
  expect_enumerated({log_probabilities({3, 2, 3}, 5), {{}, {}}, {3, 2}}, 0);
  // A blank counted from the end.
  Tensor p = log_probabilities({4, 1, 3}, 6);
  expect_values(ctc_loss(p, tensor({{0, 1}}), tensor({4}), tensor({2}), {.blank = -1}),
                doubles_of(ctc_loss(p, tensor({{0, 1}}), tensor({4}), tensor({2}), {.blank = 2})));
}

TEST(Ctc, of_a_case_known_by_hand) {
  // Two steps, two classes of one half each; "1" is said by 3 of 4 paths.
  Tensor half = log(tensor({{{0.5, 0.5}}, {{0.5, 0.5}}}));
  expect_values(ctc_loss(half, tensor({{1}}), tensor({2}), tensor({1})), {-std::log(0.75)});
  expect_values(gradient_of([](Tensor x) { return ctc_loss(x, tensor({{1}}), tensor({2}), tensor({1})); }, half),
                {-1. / 3, -2. / 3, -1. / 3, -2. / 3});
}

TEST(Ctc, derivatives) {
  Tensor labels = padded({{1, 2}, {1, 1}, {2, 2, 1}, {}}, 3), times = tensor({5, 4, 3, 2}),
         sizes = tensor({2, 2, 3, 0});
  auto f = [&](Tensor x) { return ctc_loss(x, labels, times, sizes); };
  Tensor x = log_probabilities({5, 4, 3}, 7);
  auto possible = [&](Tensor v) { return where(tensor({true, true, false, true}), f(v), 0); };
  expect_gradients(possible, x);
  expect_gradients([&](Tensor z) { return possible(log_softmax(z)); }, x);
  // The third has no alignment: 4 steps are needed for 2 2 1. What is behind the end does not count.
  EXPECT_EQ(f(x).item<double>({2}), inf);
  std::vector<double> d = doubles_of(gradient_of(f, x));
  for (int t = 0; t < 5; ++t)
    for (int b = 0; b < 4; ++b)
      for (int c = 0; c < 3; ++c) {
        double one = d[static_cast<std::size_t>((t * 4 + b) * 3 + c)];
        EXPECT_TRUE(std::isfinite(one));
        if (b == 2 || t >= (b == 0 ? 5 : b == 1 ? 4 : 2)) {
          EXPECT_EQ(one, 0) << t << " " << b << " " << c;
        }
      }
  // A probability for every step: every step's occupancies sum to 1.
  expect_values(-sum(gradient_of(f, x)[{Range{}, 0}], 1), {1, 1, 1, 1, 1});
}

TEST(Ctc, of_impossible_classes_and_huge_numbers) {
  // Class 1 is impossible at the first step, class 0 at the second.
  Tensor x = tensor({{{0., -inf}}, {{-inf, 0.}}, {{std::log(0.5), std::log(0.5)}}});
  auto f = [](Tensor v) { return ctc_loss(v, tensor({{1}}), tensor({3}), tensor({1})); };
  expect_values(f(x), {0});
  expect_values(gradient_of(f, x), {-1, 0, 0, -1, -0.5, -0.5});
  // Nothing underflows: all paths have probabilities around exp(-30000).
  Tensor low = full({3, 1, 2}, -1e4, f64);
  expect_values(f(low), {3e4 - std::log(6.)});
  expect_values(f(cast(low, f32)), {3e4 - std::log(6.)}, 1e-6);
  Tensor half = cast(log_probabilities({6, 1, 4}, 8), f16);
  EXPECT_EQ(ctc_loss(half, tensor({{1, 2}}), tensor({6}), tensor({2})).dtype(), f16);
  // NaN behind the end is not read.
  Tensor behind = concat({x, full({1, 1, 2}, NAN, f64)});
  expect_values(f(behind), {0});
  expect_values(gradient_of(f, behind), {-1, 0, 0, -1, -0.5, -0.5, 0, 0});
}

TEST(Ctc, one_trace_for_all_sizes_but_time) {
  Function f = function("f(log_probs, labels, times, sizes)", [](Tensor p, Tensor labels, Tensor times, Tensor sizes) {
    GradientTape tape;
    tape.watch(p);
    Tensor loss = ctc_loss(p, labels, times, sizes);
    return std::vector<Tensor>{loss, tape.gradient(loss, p)};
  });
  struct Sizes {
    int batch, classes, length;
  };
  for (Sizes s : {Sizes{2, 4, 3}, Sizes{5, 7, 2}, Sizes{3, 3, 4}, Sizes{1, 40, 1}}) {
    Tensor p = cast(log_probabilities({7, s.batch, s.classes}, 9), f32);
    Tensor labels = arange(s.batch * s.length) % (s.classes - 1) + 1, times = arange(s.batch) % 3 + 5,
           sizes = arange(s.batch) % s.length + 1;
    labels = reshape(labels, {s.batch, s.length});
    std::vector<Tensor> got = f(p, labels, times, sizes);
    expect_values(got[0], doubles_of(ctc_loss(p, labels, times, sizes)), 1e-5);
    expect_values(got[1], doubles_of(gradient_of([&](Tensor x) { return ctc_loss(x, labels, times, sizes); }, p)),
                  1e-5);
  }
  EXPECT_EQ(f.trace_count(), 1) << f.explain();
}

TEST(Ctc, errors) {
  Tensor p = log_probabilities({3, 2, 4}, 10), labels = tensor({{1, 2}, {3, 1}}), times = tensor({3, 3}),
         sizes = tensor({2, 2});
  auto call = [](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, CtcOptions o = {}) {
    return error_of([&] { ctc_loss(a, b, c, d, o); });
  };
  EXPECT_CONTAINS(call(p, tensor({{1, 4}, {3, 1}}), times, sizes),
                  "ctc_loss: label 4 at flat position 1 is not one of the 4");
  EXPECT_CONTAINS(call(p[0], labels, times, sizes), "ctc_loss: 'log_probs' have rank 2, not 3");
  EXPECT_CONTAINS(call(p, tensor({1, 2}), times, sizes), "'labels' have rank 1, not 2");
  EXPECT_CONTAINS(call(p, labels, tensor({3, 3, 3}), sizes),
                  "batches of 'log_probs' and 'input_lengths' 2 and 3 do not agree");
  EXPECT_CONTAINS(call(p, labels, times, cast(sizes, f32)), "'label_lengths' are f32, not integers");
  EXPECT_CONTAINS(call(cast(p, i32), labels, times, sizes), "'log_probs' are i32, not floating");
  EXPECT_CONTAINS(call(p, labels, times, sizes, {.blank = 4}), "the blank 4 is not one of the 4 classes");
  EXPECT_CONTAINS(call(p, labels, times, sizes, {.blank = -5}), "the blank -5 is not one of the 4 classes");
}

}  // namespace
