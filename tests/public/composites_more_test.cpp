// Normalisations, attention and losses at their edges: masked rows, zero vectors, huge and infinite logits, nothing,
// one element, halves, wrong calls; and one trace for all sizes. tests/keras/composites_test.cpp has values of each.
#include <limits>

#include "expect_error.h"
#include "numeric_checks.h"

using namespace stet;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

Tensor drawn(const Shape& shape, std::int64_t stream = 1) {
  return random::stateless_normal(shape, {7, stream}, {.dtype = f64});
}
bool finite(const Tensor& t) {
  for (double value : doubles_of(t))
    if (!std::isfinite(value)) return false;
  return true;
}

// --- normalisations

/// By the definition, one group of one sample at a time.
std::vector<double> grouped(const Tensor& x, int batch, int between, int channels, int groups, double epsilon) {
  std::vector<double> in = doubles_of(x), out(in.size());
  const int part = channels / groups;
  for (int b = 0; b < batch; ++b)
    for (int g = 0; g < groups; ++g) {
      std::vector<std::size_t> at;
      for (int i = 0; i < between; ++i)
        for (int c = g * part; c < (g + 1) * part; ++c)
          at.push_back(static_cast<std::size_t>((b * between + i) * channels + c));
      double sum_ = 0, squares = 0;
      for (std::size_t i : at) sum_ += in[i];
      const double mean_ = sum_ / static_cast<double>(at.size());
      for (std::size_t i : at) squares += (in[i] - mean_) * (in[i] - mean_);
      for (std::size_t i : at) out[i] = (in[i] - mean_) / std::sqrt(squares / static_cast<double>(at.size()) + epsilon);
    }
  return out;
}

TEST(GroupNorm, is_its_definition) {
  Tensor x = drawn({2, 3, 5, 6});
  for (int groups : {1, 2, 3, 6})
    expect_values(group_norm(x, groups, 1., 0.), grouped(x, 2, 15, 6, groups, 1e-3), 1e-12);
  expect_values(group_norm(reshape(x, {30, 6}), 2, 1., 0., {.epsilon = 0.1}), grouped(x, 30, 1, 6, 2, 0.1), 1e-12);
  expect_values(instance_norm(x, 1., 0.), grouped(x, 2, 15, 6, 6, 1e-3), 1e-12);
  Tensor gamma = drawn({6}, 2), beta = drawn({6}, 3);
  expect_values(group_norm(x, 3, gamma, beta), doubles_of(group_norm(x, 3, 1., 0.) * gamma + beta));
  expect_values(instance_norm(x, gamma, beta), doubles_of(group_norm(x, 6, gamma, beta)));
}

TEST(GroupNorm, derivatives_and_traces) {
  expect_gradients([](Tensor x) { return group_norm(x, 2, 1.5, 0.5) * drawn({2, 2, 4}, 2); }, drawn({2, 2, 4}));
  expect_gradients([](Tensor x) { return instance_norm(x, 1., 0.) * drawn({2, 3, 2}, 2); }, drawn({2, 3, 2}));
  expect_one_trace([](Tensor x) { return group_norm(x, 2, 2.f, 1.f); },
                   {random::normal({2, 3, 4}), random::normal({5, 7, 6}), random::normal({1, 9, 2})});
  expect_one_trace([](Tensor x) { return instance_norm(x, 2.f, 1.f); },
                   {random::normal({2, 3, 4}), random::normal({5, 7, 6})});
}

TEST(GroupNorm, edges_and_errors) {
  expect_values(group_norm(zeros({0, 3, 4}), 2, 1.f, 0.f), {});
  expect_values(group_norm(full({1, 2, 2}, 1e30), 1, 1.f, 3.f), {3, 3, 3, 3});
  EXPECT_EQ(group_norm(zeros({2, 4}, f16), 2, ones({4}), zeros({4})).dtype(), f16);
  EXPECT_CONTAINS(error_of([] {
                    group_norm(zeros({2, 3}), 2, 1.f, 0.f);
                  }),
                  "group_norm: the 3 channels are no multiple of the 2 groups");
  EXPECT_CONTAINS(error_of([] { group_norm(zeros({3}), 1, 1.f, 0.f); }), "group_norm: 'x' has rank 1, not 2 or more");
  EXPECT_CONTAINS(error_of([] { group_norm(zeros({3, 3}), 0, 1.f, 0.f); }), "group_norm: there are 0 groups");
  EXPECT_CONTAINS(error_of([] { instance_norm(zeros({3, 3}), 1.f, 0.f); }), "instance_norm: 'x' has rank 2");
  // A trace does not forget what it asked for.
  Function f = function("f(x)", [](Tensor x) { return group_norm(x, 2, 1.f, 0.f); });
  f(ones({2, 4}));
  EXPECT_CONTAINS(error_of([&] { f(ones({2, 5})); }), "the 5 channels are no multiple of the 2 groups");
}

TEST(BatchNorm, of_its_own_statistics) {
  Tensor x = drawn({4, 3, 2});
  auto [mean_, variance] = batch_statistics(x);
  EXPECT_EQ(mean_.shape().str(), "[2]");
  expect_values(mean_, doubles_of(mean(x, {0, 1})));
  Tensor y = batch_norm(x, mean_, variance, {.epsilon = 0});
  expect_values(mean(y, {0, 1}), {0, 0});
  expect_values(var(y, {0, 1}), {1, 1});
  auto of_rows = batch_statistics(x, 0);
  EXPECT_EQ(of_rows.first.shape().str(), "[4,1,1]");
  expect_values(var(batch_norm(x, of_rows.first, of_rows.second, {.epsilon = 0}), {1, 2}), {1, 1, 1, 1});
  expect_values(batch_norm(x, mean_, variance, tensor({1., 2.}), tensor({3., 4.}), {.epsilon = 0}),
                doubles_of(y * tensor({3., 4.}) + tensor({1., 2.})));
  EXPECT_EQ(batch_norm(cast(x, f16), cast(mean_, f32), cast(variance, f32)).dtype(), f16);
  EXPECT_CONTAINS(error_of([&] { batch_norm(x, zeros({3}), 1); }), "batch_norm: ");
  EXPECT_CONTAINS(error_of([&] { batch_statistics(x, 3); }), "batch_statistics: axis 3 is out of range");
  expect_one_trace(
      [](Tensor v) {
        auto statistics = batch_statistics(v);
        return batch_norm(v, statistics.first, statistics.second, 1.f, 2.f);
      },
      {random::normal({3, 4}), random::normal({17, 5})});
}

TEST(RmsNorm, edges) {
  auto f = [](Tensor x) { return rms_norm(x, 2.); };
  expect_values(f(zeros({2, 3}, f64)), std::vector<double>(6, 0));
  expect_values(gradient_of(f, zeros({1, 2}, f64)), {2e3, 2e3}, 1e-9);
  expect_values(rms_norm(cast(tensor({300.f, 400.f}), f16), 1.f), {300 / 353.5533905932738, 400 / 353.5533905932738},
                1e-3);
  EXPECT_CONTAINS(error_of([] { rms_norm(zeros({2, 3}), zeros({2})); }), "rms_norm: ");
  expect_one_trace([](Tensor x) { return rms_norm(x, 2.f); }, {random::normal({3, 5}), random::normal({8, 33})});
}

TEST(UnitLength, is_safe_at_zero) {
  expect_values(l2_normalize(tensor({{3., 4.}, {0., 0.}})), {0.6, 0.8, 0, 0});
  expect_values(l2_normalize(tensor({{3., 0.}, {4., 1.}}), 0), {0.6, 0, 0.8, 1});
  expect_values(l2_normalize(tensor({{2., 2.}, {2., 2.}}), {0, 1}), {0.5, 0.5, 0.5, 0.5});
  auto f = [](Tensor x) { return l2_normalize(x); };
  expect_values(gradient_of(f, zeros({1, 2}, f64)), {1e6, 1e6});
  EXPECT_TRUE(finite(second_gradient_of(f, zeros({1, 2}, f64))));
  expect_values(l2_normalize(cast(tensor({300.f, 400.f}), f16)), {0.6, 0.8}, 1e-3);
  expect_values(cosine_similarity(tensor({{1., 0.}, {0., 0.}, {1., 1.}}), tensor({{1., 1.}, {1., 1.}, {-2., -2.}})),
                {0.7071067811865475, 0, -1});
  expect_values(cosine_similarity(tensor({{1., 0.}}), tensor({{2., 5.}}), 0), {1, 0});
  EXPECT_CONTAINS(error_of([] { cosine_similarity(zeros({2}), zeros({3})); }),
                  "cosine_similarity: sizes of axis 0 of 'x' and 'y' 2 and 3 do not agree");
  EXPECT_CONTAINS(error_of([] { cosine_similarity(zeros({2}), zeros({2, 2})); }), "have different ranks");
  expect_one_trace([](Tensor x) { return cosine_similarity(x, square(x)); },
                   {random::normal({3, 5}), random::normal({8, 33})});
}

// --- attention

TEST(MaskedSoftmax, lines_without_anything_are_zero) {
  Tensor mask = tensor({{1, 1, 0}, {0, 0, 0}, {0, 1, 0}}) == 1;
  Tensor x = tensor({{1., 1., nan}, {inf, nan, 1.}, {-inf, 3., inf}});
  auto f = [&](Tensor v) { return masked_softmax(v, mask) * tensor({1., 2., 5.}); };
  expect_values(masked_softmax(x, mask), {0.5, 0.5, 0, 0, 0, 0, 0, 1, 0});
  expect_values(gradient_of(f, x), {-0.25, 0.25, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_TRUE(finite(second_gradient_of(f, x)));
  expect_values(masked_softmax(tensor({{1e4f, -1e4f, 0.f}}), tensor({true, true, false})), {1, 0, 0});
  expect_values(masked_softmax(tensor({{1., 7.}, {1., 3.}}), tensor({{true}, {false}}), 0), {1, 1, 0, 0});
  EXPECT_CONTAINS(error_of([] { masked_softmax(zeros({2}), zeros({2})); }),
                  "masked_softmax: the mask is f32, not bool");
  EXPECT_CONTAINS(error_of([] { masked_softmax(zeros({2, 3}), zeros({2}) == 0); }), "masked_softmax: where: ");
}

/// By the definition, for one head.
std::vector<double> attended(const Tensor& q, const Tensor& k, const Tensor& v, const std::vector<double>& added,
                             double scale) {
  const auto rows = static_cast<std::size_t>(q.dim(0).value()), keys = static_cast<std::size_t>(k.dim(0).value()),
             depth = static_cast<std::size_t>(q.dim(1).value()), features = static_cast<std::size_t>(v.dim(1).value());
  std::vector<double> a = doubles_of(q), b = doubles_of(k), c = doubles_of(v), out;
  for (std::size_t i = 0; i < rows; ++i) {
    std::vector<double> weights;
    double total = 0;
    for (std::size_t j = 0; j < keys; ++j) {
      double score = 0;
      for (std::size_t d = 0; d < depth; ++d) score += a[i * depth + d] * b[j * depth + d];
      weights.push_back(std::exp(score * scale + added[i * keys + j]));
      total += weights.back();
    }
    for (std::size_t f = 0; f < features; ++f) {
      double value = 0;
      for (std::size_t j = 0; j < keys; ++j) value += total == 0 ? 0 : weights[j] / total * c[j * features + f];
      out.push_back(value);
    }
  }
  return out;
}

TEST(Attention, masks) {
  Tensor q = drawn({3, 4}), k = drawn({5, 4}, 2), v = drawn({5, 2}, 3);
  const double scale = 0.5;
  std::vector<double> none(15, 0), causal, additive = doubles_of(drawn({3, 5}, 4)), some(15, 0);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j) causal.push_back(j <= i ? 0 : -inf);
  for (int at : {0, 1, 2, 3, 4, 7, 13}) some[static_cast<std::size_t>(at)] = -inf;  // the first query sees nothing
  Tensor marks = reshape(tensor(some), {3, 5}) == 0;
  expect_values(scaled_dot_product_attention(q, k, v), attended(q, k, v, none, scale));
  expect_values(scaled_dot_product_attention(q, k, v, {.causal = true}), attended(q, k, v, causal, scale));
  expect_values(scaled_dot_product_attention(q, k, v, {.scale = 2}), attended(q, k, v, none, 2));
  expect_values(scaled_dot_product_attention(q, k, v, {.mask = reshape(tensor(additive), {3, 5})}),
                attended(q, k, v, additive, scale));
  expect_values(scaled_dot_product_attention(q, k, v, {.mask = marks}), attended(q, k, v, some, scale));
  expect_values(scaled_dot_product_attention(q, k, v, {.mask = reshape(tensor(some), {3, 5})}),
                attended(q, k, v, some, scale));
  // Derivatives with respect to all three, with a query that attends to nothing.
  for (int which = 0; which < 3; ++which)
    for (const AttentionOptions& options : {AttentionOptions{.mask = marks}, AttentionOptions{.causal = true},
                                            AttentionOptions{.mask = reshape(tensor(some), {3, 5})}})
      expect_gradients(
          [&](Tensor x) {
            return scaled_dot_product_attention(which == 0 ? x : q, which == 1 ? x : k, which == 2 ? x : v, options);
          },
          which == 0   ? q
          : which == 1 ? k
                       : v);
}

TEST(Attention, heads_halves_and_huge_scores) {
  Tensor q = drawn({2, 3, 4, 8}), k = drawn({2, 1, 6, 8}, 2), v = drawn({2, 1, 6, 5}, 3);
  Tensor all_heads = scaled_dot_product_attention(q, k, v);
  EXPECT_EQ(all_heads.shape().str(), "[2,3,4,5]");
  for (int b = 0; b < 2; ++b)
    for (int h = 0; h < 3; ++h)
      expect_values(all_heads[{b, h}], doubles_of(scaled_dot_product_attention(q[{b, h}], k[{b, 0}], v[{b, 0}])));
  Tensor half = scaled_dot_product_attention(cast(q, f16), cast(k, f16), cast(v, f16));
  EXPECT_EQ(half.dtype(), f16);
  expect_values(half, doubles_of(all_heads), 4e-3);
  Tensor huge = tensor({{100., 0.}, {-100., 0.}}), values = tensor({{1., 2.}, {3., 4.}});
  expect_values(scaled_dot_product_attention(huge, huge, values), {1, 2, 3, 4});
  EXPECT_TRUE(finite(gradient_of([&](Tensor x) { return scaled_dot_product_attention(x, x, values); }, huge)));
  expect_values(scaled_dot_product_attention(zeros({0, 4}), ones({2, 4}), ones({2, 3})), {});
}

TEST(Attention, one_trace_for_all_sizes) {
  for (bool causal : {false, true})
    expect_one_trace(
        [causal](Tensor x) {
          return scaled_dot_product_attention(
              x, x * 2, x + 1, {.mask = slice(x, {0, 0, 0}, {x.dim(0), x.dim(1), 1}) < 1, .causal = causal});
        },
        {random::normal({2, 3, 4}), random::normal({3, 7, 5}), random::normal({1, 20, 16})});
}

TEST(Attention, errors) {
  Tensor x = zeros({2, 3, 4});
  auto call = [](const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o = {}) {
    return error_of([&] { scaled_dot_product_attention(q, k, v, o); });
  };
  EXPECT_CONTAINS(call(x, zeros({2, 3, 5}), x),
                  "scaled_dot_product_attention: depths of 'query' and 'key' 4 and 5 do not agree");
  EXPECT_CONTAINS(call(x, x, zeros({2, 4, 4})), "lengths of 'key' and 'value' 3 and 4 do not agree");
  EXPECT_CONTAINS(call(zeros({4}), x, x), "'query' has rank 1, not 2 or more");
  EXPECT_CONTAINS(call(x, cast(x, f64), x), "'query' is f32 and 'key' is f64");
  EXPECT_CONTAINS(call(cast(x, i32), x, x), "'query' is i32, not floating");
  EXPECT_CONTAINS(call(x, x, x, {.mask = tensor({1, 2, 3})}), "the mask is i32, neither bool nor floating");
  EXPECT_CONTAINS(call(x, x, x, {.mask = zeros({2}) == 0}), "scaled_dot_product_attention: where: ");
}

// --- losses

TEST(SoftmaxCrossEntropy, of_huge_and_infinite_logits) {
  Tensor y = tensor({{0., 1.}, {0., 1.}, {1., 0.}, {0.25, 0.75}});
  Tensor z = tensor({{-inf, 1e4}, {1e4, -1e4}, {1e4, -1e4}, {-1e4, -1e4}});
  auto f = [&](Tensor v) { return softmax_cross_entropy(y, v); };
  expect_values(f(z), {0, 2e4, 0, std::log(2.)});
  expect_values(gradient_of(f, z), {0, 0, 1, -1, 0, 0, 0.25, -0.25});
  EXPECT_TRUE(finite(second_gradient_of(f, z)));
  // A label on the impossible class costs everything.
  expect_values(softmax_cross_entropy(tensor({1., 0.}), tensor({-inf, 0.})), {inf});
  // A label of 0 has a derivative, where its logarithm is a number.
  expect_values(gradient_of(
                    [&](Tensor v) {
                      return softmax_cross_entropy(v, tensor({-inf, 0., 0.}));
                    },
                    tensor({0., 0., 1.})),
                {0, std::log(2.), std::log(2.)});
}

TEST(SoftmaxCrossEntropy, agrees_with_labels_as_numbers) {
  Tensor z = drawn({3, 5}), y = tensor({4, 0, 2});
  for (double smoothing : {0., 0.1, 1.}) {
    CrossEntropyOptions options{.label_smoothing = smoothing};
    expect_values(sparse_cross_entropy(y, z, options),
                  doubles_of(softmax_cross_entropy(one_hot(y, 5, {.dtype = f64}), z, options)));
  }
  expect_values(softmax_cross_entropy(tensor({{1, 0}}), cast(tensor({{0.f, 0.f}}), f16)), {std::log(2.)}, 1e-3);
  expect_values(softmax_cross_entropy(zeros({0, 3}), zeros({0, 3})), {});
  EXPECT_CONTAINS(error_of([] {
                    softmax_cross_entropy(zeros({2, 3}), zeros({2, 4}));
                  }),
                  "softmax_cross_entropy: sizes of axis 1 of 'labels' and 'logits' 3 and 4 do not agree");
  EXPECT_CONTAINS(error_of([] { softmax_cross_entropy(zeros({3}), zeros({2, 3})); }), "have different ranks");
  EXPECT_CONTAINS(error_of([] { softmax_cross_entropy(1.f, 2.f); }), "logits have no axis of classes");
  for (double smoothing : {-0.1, 1.5, nan})
    EXPECT_CONTAINS(error_of([=] { softmax_cross_entropy(ones({2}), ones({2}), {.label_smoothing = smoothing}); }),
                    ", not from 0 to 1");
  EXPECT_CONTAINS(error_of([] {
                    sparse_cross_entropy(tensor({1}), ones({1, 2}), {.label_smoothing = 2});
                  }),
                  "sparse_cross_entropy: 'label_smoothing' is 2");
  EXPECT_CONTAINS(error_of([] { sparse_cross_entropy(tensor({2}), ones({1, 2})); }), "label 2 of sample 0");
  EXPECT_CONTAINS(error_of([] { sparse_cross_entropy(3, ones({1, 2})); }), "labels and logits must be tensors");
}

TEST(SigmoidCrossEntropy, is_exact_for_all_logits) {
  Tensor z = tensor({100., 100., -inf, inf, 20., 0., -745., -inf, nan}),
         y = tensor({1., 0., 0., 1., 1., 0.5, 1., 1., 0.});
  auto f = [&](Tensor v) { return sigmoid_cross_entropy(y, v); };
  expect_values(f(z), {0, 100, 0, 0, 2.061153620314381e-9, std::log(2.), 745, inf, nan});
  // Relative to themselves, too.
  EXPECT_NEAR(sigmoid_cross_entropy(1.f, tensor(20.f)).item<double>(), 2.061153620314381e-9, 1e-15);
  EXPECT_NEAR(sigmoid_cross_entropy(1., tensor(100.)).item<double>(), std::exp(-100.), 1e-58);
  expect_values(gradient_of(f, z), {0, 1, 0, 0, -2.061153620314381e-9, 0, -1, -1, nan});
  expect_values(
      gradient_of([&](Tensor v) { return gradient_of(f, v); }, tensor({0., 1e4, -1e4, 0., 0., 0., 0., 0., 0.})),
      {0.25, 0, 0, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25});
  expect_gradients([](Tensor x) { return sigmoid_cross_entropy(tensor({0., 1., 0.3}), x); }, tensor({1.5, -0.5, 0.}));
  expect_gradients([](Tensor x) { return sigmoid_cross_entropy(x, tensor({3., -2., 0.})); }, tensor({0., 1., 0.3}));
  expect_one_trace([](Tensor x) { return sigmoid_cross_entropy(square(x), x, {.label_smoothing = 0.1}); },
                   {random::normal({3, 5}), random::normal({40, 33})});
  EXPECT_EQ(sigmoid_cross_entropy(tensor({1}), cast(tensor({0.f}), bf16)).dtype(), bf16);
}

TEST(Huber, is_linear_far_away) {
  Tensor p = tensor({0.5, 4., inf, -1., 0., nan, -7.}), y = zeros({7}, f64);
  expect_values(huber(y, p), {0.125, 3.5, inf, 0.5, 0, nan, 6.5});
  expect_values(huber(y, p, {.delta = 2}), {0.125, 6, inf, 0.5, 0, nan, 12});
  auto f = [&](Tensor v) { return huber(y, v); };
  expect_values(gradient_of(f, p), {0.5, 1, 1, -1, 0, nan, -1});
  expect_values(gradient_of([&](Tensor v) { return gradient_of(f, v); }, tensor({0.5, 4., inf, -0.25, 0., 0.1, -7.})),
                {1, 0, 0, 1, 1, 1, 0});
  EXPECT_CONTAINS(error_of([&] { huber(y, p, {.delta = 0}); }), "huber: 'delta' is 0, not positive");
}

TEST(Divergences, nothing_of_a_logarithm_is_nothing) {
  expect_values(kl_divergence(tensor({{0., 1.}, {0.5, 0.5}, {0.5, 0.5}}), tensor({{0., 0.5}, {0.5, 0.5}, {0., 1.}})),
                {std::log(2.), 0, inf});
  expect_values(gradient_of(
                    [](Tensor p) {
                      return kl_divergence(tensor({0., 0., 1.}), p);
                    },
                    tensor({0., 0.5, 0.5})),
                {0, 0, -2});
  expect_values(gradient_of(
                    [](Tensor y) {
                      return kl_divergence(y, tensor({0.5, 0.5}));
                    },
                    tensor({0., 1.})),
                {0, 1 + std::log(2.)});
  expect_values(poisson_loss(tensor({0., 0., 2.}), tensor({0., 3., 1.})), {0, 3, 1});
  expect_values(gradient_of([](Tensor p) { return poisson_loss(tensor({0., 2.}), p); }, tensor({0., 4.})), {1, 0.5});
  auto of_log = [](Tensor z) { return poisson_loss(tensor({0., 2., 0.}), z, {.log_input = true}); };
  expect_values(of_log(tensor({-inf, 1., 0.})), {0, std::exp(1.) - 2, 1});
  expect_values(gradient_of(of_log, tensor({-inf, 0., 0.})), {0, -1, 1});
  expect_values(mean_squared_error(tensor({{1., 2.}, {3., 4.}}), tensor({{1., 4.}, {3., 5.}})), {2, 0.5});
  expect_values(mean_absolute_error(tensor({{1, 2}, {3, 4}}), tensor({{1, 4}, {3, 5}})), {1, 0.5});
  expect_values(mean_squared_error(1., 3.), {4});
  EXPECT_EQ(mean_squared_error(tensor({1.}), cast(tensor({2.f}), f16)).dtype(), f16);
  EXPECT_CONTAINS(error_of([] {
                    mean_squared_error(zeros({2}), zeros({2, 1}));
                  }),
                  "mean_squared_error: 'labels' and 'predictions' have different ranks");
}

}  // namespace
