// Statistics and norms: values of NumPy and SciPy, edges (nothing, one element, NaN, infinities, zero vectors), types,
// derivatives, one trace for all sizes. tests/keras/composites_test.cpp has more values of each.
#include <limits>

#include "expect_error.h"
#include "numeric_checks.h"

using namespace stet;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

Tensor sample() { return tensor({{1.5, -2., 0.25, 4.}, {3., 3., 3., 3.}, {-1., 0., 7., 2.5}}); }
Tensor with_gaps() { return tensor({{1., nan, 3., -2.}, {nan, nan, nan, nan}, {nan, 5., nan, nan}}); }

// --- any, all, counts, positions

TEST(Truth, of_any_type_and_of_nothing) {
  EXPECT_EQ(any(tensor({{0, 1}, {0, 0}}), 1).to_vector<bool>(), (std::vector<bool>{true, false}));
  EXPECT_EQ(all(tensor({{2, 1}, {0, 1}}), 1, {.keepdims = true}).shape().str(), "[2,1]");
  EXPECT_TRUE(all(tensor({0.5f, -2.f, NAN})).item<bool>());
  EXPECT_FALSE(any(tensor({0.f, -0.f})).item<bool>());
  EXPECT_TRUE(any(tensor({0.f, NAN})).item<bool>());
  EXPECT_EQ(any(zeros({0, 2}), 0).to_vector<bool>(), (std::vector<bool>{false, false}));
  EXPECT_EQ(all(zeros({0, 2}), 0).to_vector<bool>(), (std::vector<bool>{true, true}));
  EXPECT_EQ(any(3).dtype(), DType::bool_);
  EXPECT_CONTAINS(error_of([] { any(zeros({2}), 3); }), "any: axis 3 is out of range");
}

TEST(Truth, one_false_among_many_is_found_wherever_it_is) {
  for (int size : {1, 15, 16, 17, 1000, 70001})
    for (int at : {0, size / 2, size - 1}) {
      std::vector<float> values(static_cast<std::size_t>(size), 1);
      values[static_cast<std::size_t>(at)] = 0;
      EXPECT_FALSE(all(tensor(values)).item<bool>()) << size << " " << at;
      EXPECT_TRUE(any(1 - tensor(values)).item<bool>()) << size << " " << at;
    }
}

TEST(Counts, of_what_is_not_zero) {
  EXPECT_EQ(count_nonzero(sample(), 1).to_vector<std::int64_t>(), (std::vector<std::int64_t>{4, 4, 3}));
  EXPECT_EQ(count_nonzero(tensor({0.f, -0.f, NAN, 2.f})).item<std::int64_t>(), 2);
  EXPECT_EQ(count_nonzero(zeros({0})).item<std::int64_t>(), 0);
  EXPECT_EQ(count_nonzero(tensor({true, false}), 0, {.keepdims = true}).shape().str(), "[1]");
}

TEST(Positions, of_the_flattened_tensor) {
  Tensor x = tensor({{1, 9, 3}, {9, 5, -8}});
  EXPECT_EQ(argmax(x).item<std::int64_t>(), 1);
  EXPECT_EQ(argmin(x).item<std::int64_t>(), 5);
  EXPECT_EQ(argmax(transpose(x)).item<std::int64_t>(), 1);
  EXPECT_EQ(argmax(tensor({{1.f, 5.f}, {NAN, 7.f}})).item<std::int64_t>(), 2);
  EXPECT_EQ(argmax(7).item<std::int64_t>(), 0);
  EXPECT_CONTAINS(error_of([] { argmax(zeros({0, 3})); }), "argmax: an empty axis has no largest");
  Function f = function("f(x)", [](Tensor x) { return argmax(x) * 100 + argmin(x); });
  EXPECT_EQ(f(x).item<std::int64_t>(), 105);
  EXPECT_EQ(f(tensor({{4, 1, 5, 2}})).item<std::int64_t>(), 201);
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(Range, is_largest_less_smallest) {
  expect_values(ptp(sample(), 1), {6, 0, 8});
  expect_values(ptp(sample()), {9});
  EXPECT_CONTAINS(error_of([] { ptp(zeros({0})); }), "ptp: ");
}

// --- variance

TEST(Variance, is_that_of_numpy) {
  expect_values(var(sample(), 1), {4.69921875, 0, 9.546875});
  expect_values(var(sample(), 1, {.correction = 1}), {6.265625, 0, 12.729166666666666});
  expect_values(var(sample()), {5.463107638888889});
  expect_values(stddev(sample(), 0), {1.649915822768611, 2.0548046676563256, 2.771381524719315, 0.6236095644623235});
  expect_values(stddev(sample(), 1, {.correction = 2}), {3.0656871171076805, 0, 4.369639573237134});
  expect_values(stddev(sample()), {2.3373291678513937});
  EXPECT_EQ(var(sample(), {0, 1}, {.keepdims = true}).shape().str(), "[1,1]");
  EXPECT_EQ(stddev(sample(), -1).shape().str(), "[3]");
}

TEST(Variance, edges) {
  expect_values(var(tensor({5.f})), {0});
  expect_values(var(tensor({5.f}), 0, {.correction = 1}), {nan});
  expect_values(var(tensor({1.f, 5.f}), 0, {.correction = 3}), {inf});  // as NumPy: divided by max(2 - 3, 0)
  expect_values(var(zeros({0})), {nan});
  expect_values(var(zeros({2, 0}), 0), {});
  expect_values(var(tensor({1., nan})), {nan});
  expect_values(var(tensor({1., inf})), {nan});
  expect_values(var(7), {0});
  expect_values(var(tensor({1., 3.}), std::vector<int>{}), {0, 0});
  EXPECT_CONTAINS(error_of([] { var(zeros({2}), 1); }), "var: axis 1 is out of range for rank 1");
  EXPECT_CONTAINS(error_of([] { stddev(Tensor()); }), "stddev: 'x' is an undefined tensor");
}

TEST(Variance, computes_in_a_type_that_holds_squares) {
  Tensor wide = tensor({1000.f, -1000.f, 1000.f, -1000.f});
  for (DType half : {f16, bf16}) {
    EXPECT_EQ(stddev(cast(wide, half)).dtype(), half);
    expect_values(stddev(cast(wide, half)), {1000}, 4e-3);  // the variance itself is beyond f16
  }
  EXPECT_EQ(var(tensor({1, 3})).dtype(), f32);
  expect_values(var(tensor({1, 3})), {1});
  expect_values(var(tensor({true, false})), {0.25});
  // Far from zero nothing cancels.
  expect_values(var(tensor({1e8, 1e8 + 1, 1e8 + 2})), {2. / 3});
}

TEST(Variance, derivatives) {
  expect_gradients([](Tensor x) { return var(x, 1, {.correction = 1}); }, sample());
  expect_gradients([](Tensor x) { return stddev(x, 0); }, sample());
  expect_gradients([](Tensor x) { return moments(x, 0).second + moments(x, {0, 1}).first; }, sample());
  // At 0 the deviation has no derivative: 0 by definition, in all orders.
  Tensor same = full({2, 3}, 4, f64);
  expect_values(gradient_of([](Tensor x) { return stddev(x, 1); }, same), std::vector<double>(6, 0));
  expect_values(second_gradient_of([](Tensor x) { return stddev(x, 1); }, same), std::vector<double>(6, 0));
}

TEST(Variance, one_trace_for_all_sizes) {
  for (const TensorFunction& f :
       {TensorFunction([](Tensor x) { return var(x, 1); }), TensorFunction([](Tensor x) { return stddev(x, 0); }),
        TensorFunction([](Tensor x) { return var(x, 1, {.correction = 1}); }),
        TensorFunction([](Tensor x) { return stddev(x); })})
    expect_one_trace(f, {random::normal({3, 5}), random::normal({8, 17}), random::normal({2, 400})});
}

TEST(Moments, are_mean_and_variance) {
  auto [mean_, variance] = moments(sample(), 1);
  expect_values(mean_, {0.9375, 3, 2.125});
  expect_values(variance, {4.69921875, 0, 9.546875});
  auto kept = moments(sample(), {0, 1}, {.keepdims = true});
  EXPECT_EQ(kept.first.shape().str(), "[1,1]");
  EXPECT_EQ(kept.second.shape().str(), "[1,1]");
}

// --- norms

TEST(Norm, is_that_of_numpy) {
  expect_values(norm(sample(), 1, {.ord = 1}), {7.75, 12, 10.5});
  expect_values(norm(sample(), 1), {4.723610906922796, 6, 7.5});
  expect_values(norm(sample(), 1, {.ord = inf}), {4, 3, 7});
  expect_values(norm(sample(), 1, {.ord = 3}), {4.224472116394012, 4.762203155904598, 7.111315686027276});
  expect_values(norm(sample(), 1, {.ord = 0.5}), {26.408893783961176, 48, 27.320380547638322});
  expect_values(norm(sample(), 1, {.ord = 1.5}), {5.46922789845335, 7.559526299369238, 8.198109405247731});
  expect_values(norm(sample(), {0, 1}, {.ord = 3}), {8.158383359290294});
  expect_values(norm(sample()), {10.703387314303823});
  expect_values(norm(-3), {3});
}

TEST(Norm, edges) {
  for (double ord : {1., 1.5, 2., 3., inf}) {
    SCOPED_TRACE(ord);
    auto f = [ord](Tensor x) { return norm(x, 1, {.ord = ord}); };
    expect_values(f(tensor({{0., 0.}, {inf, 1.}, {nan, 1.}, {-inf, inf}})), {0, inf, nan, inf});
    // The zero vector, and zeros in another one.
    Tensor zero = zeros({2, 3}, f64);
    expect_values(gradient_of(f, zero), std::vector<double>(6, 0));
    expect_values(second_gradient_of(f, zero), std::vector<double>(6, 0));
    for (double d : doubles_of(gradient_of(f, tensor({{0., 2., 0.}})))) EXPECT_TRUE(d == 0 || d == 1) << d;
    for (double d : doubles_of(second_gradient_of(f, tensor({{0., 2., 0.}})))) EXPECT_TRUE(std::isfinite(d));
  }
  expect_values(norm(zeros({2, 0}), 1, {.ord = 1}), {0, 0});
  expect_values(norm(zeros({2, 0}), 1), {0, 0});
  EXPECT_CONTAINS(error_of([] { norm(zeros({2, 0}), 1, {.ord = 3}); }), "norm: max: an empty axis");
  EXPECT_CONTAINS(error_of([] { norm(zeros({2}), 0, {.ord = 0}); }), "norm: 'ord' is 0, not positive");
  EXPECT_CONTAINS(error_of([] { norm(zeros({2}), 0, {.ord = nan}); }), "not positive");
}

TEST(Norm, general_powers_stay_within_the_type) {
  expect_values(norm(tensor({1e30f, -1e30f}), 0, {.ord = 4}), {1.189207115002721e30}, 1e-6);
  expect_values(norm(tensor({1e-30f, -1e-30f}), 0, {.ord = 4}) * 1e30f, {1.189207115002721}, 1e-6);
  expect_values(norm(tensor({3e38f, 1.f}), 0, {.ord = 40}), {3e38}, 1e-6);
  expect_values(norm(cast(tensor({300.f, 400.f}), f16)), {500}, 1e-3);
}

TEST(Norm, derivatives) {
  for (double ord : {1., 1.5, 2., 3., 5., inf}) {
    SCOPED_TRACE(ord);
    expect_gradients([ord](Tensor x) { return norm(x, 1, {.ord = ord}); }, tensor({{1.5, -2., 0.25}, {3., 4., -0.5}}));
  }
}

TEST(Norm, one_trace_for_all_sizes) {
  for (double ord : {1., 2., 3., inf})
    expect_one_trace([ord](Tensor x) { return norm(x, 1, {.ord = ord}); },
                     {random::normal({3, 5}), random::normal({7, 17}), random::normal({2, 100})});
}

// --- logsumexp

TEST(LogSumExp, is_that_of_scipy) {
  expect_values(logsumexp(sample(), 1), {4.102630138559354, 4.386294361119891, 7.01228062462986});
  expect_values(logsumexp(sample()), {7.1317183978203085});
  EXPECT_EQ(logsumexp(sample(), 0, {.keepdims = true}).shape().str(), "[1,4]");
  expect_values(logsumexp(tensor({1e4f, 1e4f})), {1e4 + std::log(2.)}, 1e-7);
  expect_values(logsumexp(tensor({-1e4, -1e4})), {-1e4 + std::log(2.)});
  expect_values(logsumexp(cast(tensor({10.f, 10.f}), f16)), {10.693147180559945}, 1e-3);
  expect_values(logsumexp(5), {5});
  EXPECT_CONTAINS(error_of([] { logsumexp(zeros({2, 0}), 1); }), "logsumexp: max: an empty axis");
}

TEST(LogSumExp, of_infinities) {
  Tensor x = tensor({{-inf, -inf}, {inf, 0.}, {-inf, 2.}, {nan, 1.}, {1e4, -1e4}, {inf, -inf}});
  auto f = [](Tensor v) { return logsumexp(v, 1); };
  expect_values(f(x), {-inf, inf, 2, nan, 1e4, inf});
  expect_values(gradient_of(f, x), {0, 0, 0, 0, 0, 1, nan, nan, 1, 0, 0, 0});
  Tensor second = gradient_of([&](Tensor v) { return square(gradient_of(f, v)); }, x[{Range{0, 3}, Range{}}]);
  expect_values(second, {0, 0, 0, 0, 0, 0});
}

TEST(LogSumExp, derivatives_and_traces) {
  expect_gradients([](Tensor x) { return logsumexp(x, 1); }, sample());
  expect_gradients([](Tensor x) { return logsumexp(x, {0, 1}); }, sample());
  expect_one_trace([](Tensor x) { return logsumexp(x, 1); },
                   {random::normal({3, 5}), full({2, 7}, -inf), random::normal({9, 33})});
}

// --- averages

TEST(Average, is_that_of_numpy) {
  Tensor w = tensor({{1., 2., 0., 1.}, {0.5, 0.5, 0.5, 0.5}, {3., 1., 1., -2.}});
  expect_values(average(sample(), w, 1), {0.375, 3, -1. / 3});
  expect_values(average(sample(), tensor({1., 2., 5.}), 0), {0.3125, 0.5, 5.15625, 2.8125});
  expect_values(average(sample(), w), {0.7222222222222222});
  expect_values(average(sample(), 1), {2.020833333333333});
  expect_values(average(tensor({1, 3}), tensor({1, 3})), {2.5});
  expect_values(average(tensor({1., 3.}), tensor({0., 0.})), {nan});
  EXPECT_CONTAINS(error_of([] {
                    average(zeros({3, 4}), zeros({3}), 1);
                  }),
                  "average: sizes of 'weights' and of axis 1 3 and 4 do not agree");
  EXPECT_CONTAINS(error_of([] { average(zeros({3}), zeros({2, 3})); }), "average: ");
  expect_gradients([&](Tensor x) { return average(x, w, 1) + average(w, square(x) + 1, 1); }, sample());
  expect_one_trace([](Tensor x) { return average(x, square(x), 0); }, {random::normal({3, 5}), random::normal({8, 2})});
}

// --- NaN left out

TEST(NanReductions, are_those_of_numpy) {
  Tensor x = with_gaps();
  expect_values(nansum(x, 1), {2, 0, 5});
  expect_values(nansum(x), {7});
  expect_values(nanmean(x, 1), {2. / 3, nan, 5});
  expect_values(nanmean(x), {1.75});
  expect_values(nanmax(x, 1), {3, nan, 5});
  expect_values(nanmin(x, 1), {-2, nan, 5});
  expect_values(nanmax(x, 0), {1, 5, 3, -2});
  expect_values(nanmin(x), {-2});
  expect_values(nanvar(x, 1), {4.222222222222222, nan, 0});
  expect_values(nanvar(x, 1, {.correction = 1}), {6.333333333333334, nan, nan});
  expect_values(nanstd(x, 1), {2.0548046676563256, nan, 0});
  expect_values(nanstd(x), {2.5860201081971503});
  expect_values(nanmax(tensor({-inf, nan})), {-inf});
  EXPECT_EQ(nanmean(x, {0, 1}, {.keepdims = true}).shape().str(), "[1,1]");
}

TEST(NanReductions, of_other_types_and_of_nothing) {
  EXPECT_EQ(nansum(tensor({1, 2})).dtype(), i32);
  EXPECT_EQ(nanmax(tensor({{1, 2}}), 1).to_vector<int>(), (std::vector<int>{2}));
  EXPECT_EQ(nanmin(tensor({1, 2})).item<int>(), 1);
  expect_values(nanmean(tensor({1, 2})), {1.5});
  EXPECT_EQ(nanvar(cast(with_gaps(), f16), 1).dtype(), f16);
  EXPECT_EQ(nanmax(cast(with_gaps(), bf16), 1).dtype(), bf16);
  expect_values(nansum(zeros({2, 0}), 1), {0, 0});
  expect_values(nanmean(zeros({2, 0}), 1), {nan, nan});
  expect_values(nanvar(zeros({2, 0}), 1), {nan, nan});
  EXPECT_CONTAINS(error_of([] { nanmax(zeros({2, 0}), 1); }), "nanmax: max: an empty axis");
}

TEST(NanReductions, derivatives_are_no_nan) {
  Tensor x = with_gaps();
  expect_values(gradient_of([](Tensor v) { return nansum(v, 1); }, x), {1, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0});
  expect_values(gradient_of([](Tensor v) { return nanmean(v, 1); }, x),
                {1. / 3, 0, 1. / 3, 1. / 3, 0, 0, 0, 0, 0, 1, 0, 0});
  expect_values(gradient_of([](Tensor v) { return nanmax(v, 1); }, x), {0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0});
  expect_values(gradient_of([](Tensor v) { return nanmin(v, 1); }, x), {0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0});
  for (int correction : {0, 1}) {
    Tensor d = gradient_of([=](Tensor v) { return nanvar(v, 1, {.correction = correction}); }, x);
    double factor = 2. / (3 - correction), mean_ = 2. / 3;
    expect_values(d, {factor * (1 - mean_), 0, factor * (3 - mean_), factor * (-2 - mean_), 0, 0, 0, 0, 0, 0, 0, 0});
    for (double one : doubles_of(second_gradient_of([=](Tensor v) { return nanstd(v, 0); }, x)))
      EXPECT_FALSE(std::isnan(one));
  }
  expect_one_trace([](Tensor v) { return nanvar(v, 1) + nanmean(v, 1) + nanmax(v, 1); },
                   {cast(x, f32), where(random::normal({5, 9}) > 0, random::normal({5, 9}), NAN)});
}

// --- covariances

TEST(Covariance, is_that_of_numpy) {
  expect_values(cov(sample()), {6.265625, 0, 0.7604166666666666, 0, 0, 0, 0.7604166666666666, 0, 12.729166666666666});
  expect_values(cov(sample(), {.correction = 0}), {4.69921875, 0, 0.5703125, 0, 0, 0, 0.5703125, 0, 9.546875});
  Tensor y = tensor({{1.5, -2., 0.25, 4.}, {3., 1., 3., 3.}, {-1., 0., 7., 2.5}});
  expect_values(corrcoef(y), {1, 0.782355998787645, 0.08514701771168322, 0.782355998787645, 1, 0.3970705604869939,
                              0.08514701771168323, 0.3970705604869939, 1});
  EXPECT_TRUE(std::isnan(corrcoef(sample()).item<double>({1, 1})));
  EXPECT_EQ(cov(cast(sample(), f16)).dtype(), f16);
  EXPECT_CONTAINS(error_of([] { cov(zeros({3})); }), "cov: 'x' has rank 1, not 2");
  EXPECT_CONTAINS(error_of([] { corrcoef(zeros({3, 2, 2})); }), "corrcoef: 'x' has rank 3");
  auto off_diagonal = [](Tensor x) { return corrcoef(x)[{0, Range{1, 3}}]; };
  expect_gradients(off_diagonal, y);
  expect_gradients([](Tensor x) { return cov(x); }, y);
  expect_one_trace([](Tensor x) { return cov(x); }, {random::normal({3, 5}), random::normal({6, 20})});
}

}  // namespace
