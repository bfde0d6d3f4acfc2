// verify(f, arguments…): a traced call and its code run eagerly do the same, or the difference is named.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include "expect_error.h"

namespace stet {
namespace {

TEST(Verify, LeavesEverythingAsItWas) {
  Variable w(tensor({1.f, 2.f})), steps(0);
  Function step = function("step(x, rate)", [=](Tensor x, Scalar rate) {
    GradientTape tape;
    Tensor loss = mean(square(x * w + random::normal({2})));
    w.assign_sub(tape.gradient(loss, w) * rate);
    steps.assign_add(1);
    return loss;
  });
  random::seed(3);
  std::vector<float> draws = random::uniform({4}).to_vector<float>();
  random::seed(3);
  verify(step, tensor({3.f, 4.f}), 0.1);
  step.verify(tensor({3.f, 4.f}), 0.1);
  EXPECT_EQ(w.read().to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(steps.read().item<int>(), 0);
  EXPECT_EQ(random::uniform({4}).to_vector<float>(), draws);
  EXPECT_EQ(step.trace_count(), 1);
}

/// Probabilities add up to 1, whatever they are: what is left of the gradient is rounding, in another order.
TEST(Verify, AllowsForRoundingWhereEverythingCancels) {
  Function f = function("posterior(moves, seen)", [](Tensor moves, Tensor seen) {
    GradientTape tape;
    tape.watch(seen);
    Tensor all =
        logsumexp(scan([&](Tensor now, Tensor next) { return logsumexp(expand_dims(now, 1) + moves, 0) + next; },
                       seen[0], seen[Range{.begin = 1}]));
    return tape.gradient(all, seen);
  });
  auto waves = [](int n, int m) { return reshape(sin(cast(arange(n * m), f64) * 1.3), {n, m}); };
  for (int time : {6, 1, 25}) EXPECT_NO_THROW(f.verify(waves(3, 3), waves(time, 3)));
}

/// No score changes when all keys move alike, so the gradient of their bias is nothing but rounding, which Adam divides
/// by its size.
TEST(Verify, AllowsForRoundingThatAnOptimizerMakesLarge) {
  random::seed(1);
  keras::MultiHeadAttention attention(4, 16);
  keras::Dense dense(3);
  keras::Adam optimizer(3e-3);
  Function step = function("step(x, y)", [=](Tensor x, Tensor y) {
    GradientTape tape;
    Tensor loss = mean(square(dense(attention(x, x, {.use_causal_mask = true})) - y));
    std::vector<Variable> variables = attention.trainable_variables();
    optimizer.apply_gradients(tape.gradient(loss, variables), variables);
    return loss;
  });
  Tensor x = random::normal({16, 64, 64}), y = random::normal({16, 64, 3});
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(error_of([&] { verify(step, x, y); }), "no error");
    step(x, y);
  }
}

/// Beside elements that rounding decides, and in them, what is no rounding is found.
TEST(Verify, FindsDifferencesBesideLargeRounding) {
  SKIP_WHEN_VERIFYING();
  float rate = 1, other = 0;
  Variable w(tensor({0.1f, 0.2f, 0.3f, 0.4f}));
  Function f = function("f(x)",
                        [&](Tensor x) {
                          Tensor noise = 1e6f * (sum(x * 1.1f) - sum(x) * 1.1f);  // 0 but for rounding
                          w.assign(concat({reshape(noise, {1}), x[range(1, 3)] * rate, x[range(3, 4)] + other}));
                        },
                        {.audit = Audit::never});
  Tensor x = tensor({0.1f, 0.7f, 1.3f, 2.9f});
  f(x);
  EXPECT_EQ(error_of([&] { verify(f, x); }), "no error");
  rate = 1.001f;
  EXPECT_CONTAINS(error_of([&] { verify(f, x); }), ", element 1\n");
  rate = 1, other = 1e-2f;
  EXPECT_CONTAINS(error_of([&] { verify(f, x); }), ", element 3\n");
}

TEST(Verify, NamesWhatDiffers) {
  SKIP_WHEN_VERIFYING();
  float rate = 2;
  Variable v(1.f);
  Function f = function("f(x)",
                        [&](Tensor x) {
                          v.assign(x * rate);
                          return sum(x);
                        },
                        {.audit = Audit::never});
  f(tensor(1.f));
  EXPECT_EQ(error_of([&] { verify(f, tensor(1.f)); }), "no error");
  rate = 3;
  std::string error = error_of([&] { f.verify(tensor(1.f)); });
  EXPECT_CONTAINS(error, "stet: 'f' does not do what its code does eagerly, called at ");
  EXPECT_CONTAINS(error, "verify_test.cpp:");
  EXPECT_CONTAINS(error, "what            the Variable number ");
  EXPECT_CONTAINS(error, "eager           3\n");
  EXPECT_CONTAINS(error, "traced          2\n");
  EXPECT_CONTAINS(error, "fix             look for host state that the code relies on");

  Function g = function("g(x)", [&](Tensor x) { return std::tuple{x * rate, x}; }, {.audit = Audit::never});
  g(ones({3}));
  rate = 4;
  EXPECT_CONTAINS(error_of([&] { verify(g, ones({3})); }), "what            result 0, element 0\n");

  bool broken = false;
  Function h = function("h(x)",
                        [&](Tensor x) {
                          if (broken) throw std::domain_error("no");
                          return x;
                        },
                        {.audit = Audit::never});
  h(ones({3}));
  broken = true;
  EXPECT_CONTAINS(error_of([&] { verify(h, ones({3})); }), "eager           no\n");
  EXPECT_THROW(verify(h, ones({3})), VerifyError);
}

TEST(Verify, IsRefusedInsideATrace) {
  Function f = function("f(x)", [](Tensor x) { return x; });
  Function g = function("g(x)", [&](Tensor x) {
    if (tracing()) verify(f, x);
    return x;
  });
  EXPECT_CONTAINS(error_of([&] { g(ones({1})); }), "verify: 'f' cannot be verified while a function is traced");
}

TEST(Verify, CallsThatThrowOnBothSidesAgree) {
  Function f = function("f(x, labels)", [](Tensor x, Tensor labels) { return gather(x, labels); });
  EXPECT_EQ(error_of([&] { verify(f, ones({3}), tensor({0, 2})); }), "no error");
  EXPECT_EQ(error_of([&] { verify(f, ones({3}), tensor({0, 5})); }), "no error");
}

TEST(Verify, AWholeTrainingStep) {
  keras::Sequential model{keras::Input({4}), keras::Dense(8, {.activation = relu}), keras::Dropout(0.5),
                          keras::Dense(3)};
  keras::Adam optimizer(1e-2);
  keras::losses::SparseCategoricalCrossentropy loss_of({.from_logits = true});
  Function step = function("step(x, y)", [=](Tensor x, Tensor y) {
    GradientTape tape;
    Tensor loss = loss_of(y, model(x, {.training = true}));
    auto variables = model.trainable_variables();
    optimizer.apply_gradients(tape.gradient(loss, variables), variables);
    return loss;
  });
  for (int n : {5, 2}) {
    Tensor x = random::normal({n, 4}), y = random::randint({n}, 0, 3);
    verify(step, x, y);
    step(x, y);
    verify(step, x, y);
  }
  EXPECT_EQ(step.trace_count(), 1);
}

}  // namespace
}  // namespace stet
