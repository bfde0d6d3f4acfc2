// Traces and calls that throw: everything is as it was before, and the next call works.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include "expect_error.h"
#include "explanations.h"
#include "training.h"

namespace stet {
namespace {

using Floats = std::vector<float>;
using Values = std::vector<std::vector<float>>;

/// The next numbers that the process's generator gives, and the next stream for a Variable's first value.
struct Draws {
  Floats uniform;
  random::StreamSeed stream;
  bool operator==(const Draws&) const = default;
};
Draws next_draws() { return {random::uniform({5}).to_vector<float>(), random::next_initial_stream()}; }

constexpr std::uint64_t seed = 21;

class AllOrNothing : public WithExplanations {
 protected:
  void SetUp() override {
    WithExplanations::SetUp();
    random::seed(seed);
    fresh = next_draws();
  }

  /// What three undisturbed steps give, from a network made after the seed. `changed_type`: the labels' in the second.
  void run_undisturbed() {
    random::seed(seed);
    Network network;
    network.make();
    Countdown never;
    Function step = function("undisturbed(x, y)", [&](Tensor x, Tensor y) { return adam_step(network, never, x, y); });
    random::seed(seed);
    for (int n = 0; n < 3; ++n) {
      Batch batch = batch_of(n, 4 + n);
      losses.push_back(step(batch.x, n == 1 ? cast(batch.y, i64) : batch.y).item<float>());
      after_steps.push_back(network.values());
    }
    events.clear();
  }

  /// Calls `call` with a fault after 0, 1, 2, … ops until it succeeds; looks after each fault that nothing happened.
  /// Gives the number of faults.
  template <class Call>
  int interrupt_everywhere(Countdown& fault, const Network& network, const FunctionBase& f, Call call) {
    Values before = network.values();
    int traces = f.trace_count();
    for (int n = 0;; ++n) {
      random::seed(seed);
      fault.set(n);
      try {
        call();
        EXPECT_FALSE(fault.spent());
        return n;
      } catch (const Interrupted&) {
      } catch (const TraceError&) {
        // A path of an if (tensor) that throws in one run and not in the other.
      }
      EXPECT_TRUE(fault.spent()) << n;
      EXPECT_EQ(f.trace_count(), traces) << n;
      EXPECT_EQ(network.values(), before) << n;
      EXPECT_EQ(next_draws(), fresh) << n;
      EXPECT_TRUE(events.empty()) << told();
      EXPECT_FALSE(tracing());
      if (::testing::Test::HasFailure() || n > 1000) return -1;
    }
  }

  Draws fresh;
  std::vector<float> losses;
  std::vector<Values> after_steps;
};

TEST_F(AllOrNothing, AFirstTraceThatThrowsAfterAnyOp) {
  SKIP_WHEN_VERIFYING();
  run_undisturbed();
  random::seed(seed);
  Network network;
  network.make();
  Countdown fault;
  Function step = function("step(x, y)", [&](Tensor x, Tensor y) { return adam_step(network, fault, x, y); });
  Batch batch = batch_of(0, 4);
  float loss = 0;
  int faults = interrupt_everywhere(fault, network, step, [&] { loss = step(batch.x, batch.y).item<float>(); });
  EXPECT_GT(faults, 80);  // some fifty ops, run twice
  EXPECT_EQ(step.trace_count(), 1);
  EXPECT_EQ(loss, losses[0]);
  EXPECT_EQ(network.values(), after_steps[0]);
}

TEST_F(AllOrNothing, ARetraceThatThrowsAfterAnyOp) {
  SKIP_WHEN_VERIFYING();
  run_undisturbed();
  random::seed(seed);
  Network network;
  network.make();
  Countdown fault;
  Function step = function("step(x, y)", [&](Tensor x, Tensor y) { return adam_step(network, fault, x, y); });
  random::seed(seed);
  Batch batch = batch_of(0, 4);
  EXPECT_EQ(step(batch.x, batch.y).item<float>(), losses[0]);
  // What the undisturbed run found after its first step: the generator has moved.
  std::int64_t drawn = 4 * Network::width;
  auto here = [&] {
    random::seed(seed);
    random::uniform({drawn});
  };
  here();
  fresh = next_draws();
  Batch next = batch_of(1, 5);
  float loss = 0;
  int faults = interrupt_everywhere(fault, network, step, [&] {
    here();
    loss = step(next.x, cast(next.y, i64)).item<float>();
  });
  EXPECT_GT(faults, 40);  // later traces run host code once
  EXPECT_EQ(step.trace_count(), 2);
  EXPECT_EQ(events.size(), 1u);
  EXPECT_EQ(loss, losses[1]);
  EXPECT_EQ(network.values(), after_steps[1]);
  Batch last = batch_of(2, 6);
  EXPECT_EQ(step(last.x, last.y).item<float>(), losses[2]);
  EXPECT_EQ(network.values(), after_steps[2]);
  EXPECT_EQ(step.trace_count(), 2);
}

TEST_F(AllOrNothing, AFailedRetracePrintsNothing) {
  Countdown fault;
  Function f = function("f(x)", [&](Tensor x) { return fault(x * 2); });
  f(ones({2}));
  on_retrace({});
  fault.set(0);
  ::testing::internal::CaptureStderr();
  EXPECT_THROW(f(tensor({1})), Interrupted);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ::testing::internal::CaptureStderr();
  f(tensor({1}));
  EXPECT_CONTAINS(::testing::internal::GetCapturedStderr(), "stet: tracing 'f' again (trace 2)");
}

/// Makes what is not made yet, one Variable after the other.
void build(Network& network, Countdown& fault) {
  InitScope outside;
  const std::vector<Shape> shapes = {
      {Network::inputs, Network::width}, {Network::width}, {Network::width, Network::classes}, {Network::classes}};
  while (network.weights.size() < shapes.size()) {
    const Shape& shape = shapes[network.weights.size()];
    network.weights.emplace_back(shape.rank() == 1 ? zeros(shape) : Network::drawn(shape));
    fault.tick();
  }
  if (!network.steps.defined()) network.make_moments();
  fault.tick();
}

TEST_F(AllOrNothing, ABuildingRunThatThrowsAfterAnyOp) {
  SKIP_WHEN_VERIFYING();
  run_undisturbed();
  Network network;
  Countdown fault;
  Function step = function("step(x, y)", [&](Tensor x, Tensor y) {
    build(network, fault);
    return adam_step(network, fault, x, y);
  });
  Batch batch = batch_of(0, 4);
  random::seed(seed);
  int faults = 0;
  float loss = 0;
  for (bool done = false; !done; ++faults) {
    fault.set(faults);
    try {
      loss = step(batch.x, batch.y).item<float>();
      done = true;
    } catch (const Interrupted&) {
    }
    if (done) continue;
    EXPECT_EQ(step.trace_count(), 0);
    // Those that were made keep their first values, and are made once.
    Network eager;
    random::seed(seed);
    eager.make();
    for (std::size_t i = 0; i < network.weights.size(); ++i)
      EXPECT_EQ(network.weights[i].read().to_vector<float>(), eager.weights[i].read().to_vector<float>()) << i;
    if (network.steps.defined()) {
      EXPECT_EQ(network.values(), eager.values());
    }
    EXPECT_EQ(random::uniform({5}).to_vector<float>(), fresh.uniform) << faults;
    ASSERT_FALSE(HasFailure()) << "after " << faults << " ops";
    // Back to where the call found the generator, streams given out included.
    random::seed(seed);
    for (std::size_t i = 0; i < network.weights.size(); ++i)
      if (network.weights[i].shape().rank() == 2) random::next_initial_stream();
  }
  EXPECT_GT(faults, 80);
  EXPECT_EQ(step.trace_count(), 1);
  EXPECT_EQ(loss, losses[0]);
  EXPECT_EQ(network.values(), after_steps[0]);
}

TEST_F(AllOrNothing, AFaultOnOneSideOfABranch) {
  SKIP_WHEN_VERIFYING();
  auto body = [](const Network& network, Countdown& fault, Tensor x, Tensor y) {
    GradientTape tape;
    Tensor loss = scope([&] {
      Tensor all = loss_of(network, fault, x, y, true);
      if (fault(mean(x)) > 0.f) return fault(fault(all * 2) + fault(sum(square(network.weights[0]))));
      network.steps.assign_add(0.f);
      return fault(all * 0.5f);
    });
    std::vector<Tensor> gradients = tape.gradient(loss, network.weights);
    apply_adam(network, fault, gradients);
    return loss;
  };
  random::seed(seed);
  Network undisturbed, network;
  undisturbed.make();
  random::seed(seed);
  network.make();
  Countdown never, fault;
  Function twin = function("twin(x, y)", [&](Tensor x, Tensor y) { return body(undisturbed, never, x, y); });
  Function step = function("step(x, y)", [&](Tensor x, Tensor y) { return body(network, fault, x, y); });
  Batch batch = batch_of(0, 4);
  float loss = 0;
  int faults = interrupt_everywhere(fault, network, step, [&] { loss = step(batch.x, batch.y).item<float>(); });
  EXPECT_GT(faults, 100);
  random::seed(seed);
  EXPECT_EQ(loss, twin(batch.x, batch.y).item<float>());
  EXPECT_EQ(network.values(), undisturbed.values());
  // The other side.
  Tensor negative = 0 - abs(batch.x);
  random::seed(seed);
  loss = twin(negative, batch.y).item<float>();
  random::seed(seed);
  EXPECT_EQ(step(negative, batch.y).item<float>(), loss);
  EXPECT_EQ(network.values(), undisturbed.values());
  EXPECT_EQ(step.trace_count(), 1);
}

TEST_F(AllOrNothing, AUsersExceptionOnTheTakenSideComesAfterTheUpdatesInTheProgram) {
  Network network;
  network.make();
  Countdown never;
  Function step = function("step(x, y)", [&](Tensor x, Tensor y) {
    Tensor loss = adam_step(network, never, x, y);
    if (!(loss < 1e6f)) throw Interrupted();
    return loss;
  });
  Batch batch = batch_of(0, 4);
  random::seed(seed);
  step(batch.x, batch.y);
  for (bool held : {false, true}) {
    Values before = network.values();
    std::vector<Tensor> holders;
    if (held)
      for (const Variable& weight : network.weights) holders.push_back(weight.read());
    random::seed(seed);
    EXPECT_THROW(step(batch.x * std::nanf(""), batch.y), Interrupted);
    EXPECT_EQ(next_draws(), fresh);
    EXPECT_EQ(network.values(), before);
    random::seed(seed);
    step(batch.x, batch.y);
    EXPECT_NE(network.values(), before);
    for (std::size_t i = 0; i < holders.size(); ++i) EXPECT_EQ(holders[i].to_vector<float>(), before[i]);
  }
  EXPECT_EQ(step.trace_count(), 1);
}

/// A step over an embedding: every Variable but the table can be updated before the look-up that may fail.
Tensor embedding_step(const Network& network, const Variable& table, Tensor x, Tensor y, Tensor ids) {
  Countdown never;
  Tensor loss = adam_step(network, never, x, y);
  Tensor rows = gather(table, ids);
  table.assign(table * 0.5f + mean(rows));
  return loss + sum(rows);
}

TEST_F(AllOrNothing, ACheckThatFailsInTheMiddleOfAStep) {
  random::seed(seed);
  Network network, twin;
  network.make();
  random::seed(seed);
  twin.make();
  Variable table(ones({5, 3})), twin_table(ones({5, 3}));
  Function step = function("step(x, y, ids)",
                           [&](Tensor x, Tensor y, Tensor ids) { return embedding_step(network, table, x, y, ids); });
  Function same = function("same(x, y, ids)",
                           [&](Tensor x, Tensor y, Tensor ids) { return embedding_step(twin, twin_table, x, y, ids); });
  Batch batch = batch_of(0, 4);
  Tensor good = tensor({0, 4, 2}), bad = tensor({0, 5, 2});
  for (int n = 0; n < 4; ++n) {  // the first failure is of the first call, later ones of calls served before
    bool held = n % 2 == 1;
    Values before = network.values();
    Floats table_before = table.read().to_vector<float>();
    std::vector<Tensor> holders;
    if (held)
      for (const auto* list : {&network.weights, &network.means, &network.squares})
        for (const Variable& variable : *list) holders.push_back(variable.read());
    random::seed(seed);
    std::string error = error_of([&] { step(batch.x, batch.y, bad); });
    EXPECT_CONTAINS(error, "gather: 'indices' holds index 5 at position 1, out of range: allowed are 0 to 4");
    EXPECT_CONTAINS(error, "all_or_nothing_test.cpp:");
    EXPECT_EQ(next_draws(), fresh);
    EXPECT_EQ(network.values(), before);
    EXPECT_EQ(table.read().to_vector<float>(), table_before);
    random::seed(seed);
    float loss = step(batch.x, batch.y, good).item<float>();
    random::seed(seed);
    EXPECT_EQ(loss, same(batch.x, batch.y, good).item<float>());
    EXPECT_EQ(network.values(), twin.values());
    EXPECT_EQ(table.read().to_vector<float>(), twin_table.read().to_vector<float>());
    for (std::size_t i = 0; i < holders.size(); ++i) EXPECT_EQ(holders[i].to_vector<float>(), before[i]) << i;
  }
  EXPECT_EQ(step.trace_count(), 1);
}

TEST_F(AllOrNothing, ACheckThatFailsUnderATape) {
  Variable weight(tensor({1.f, 2.f})), steps(tensor(0.f), {.trainable = false});
  Function f = function("f(x, i)", [=](Tensor x, Tensor i) {
    steps.assign_add(1.f);
    weight.assign(weight * 2.f);
    return sum(gather(weight * x, i) * random::uniform({2}));
  });
  Tensor x = tensor({1.f, 1.f});
  random::seed(seed);
  {
    GradientTape tape;
    EXPECT_CONTAINS(error_of([&] { f(x, tensor({0, 7})); }), "index 7");
  }
  EXPECT_EQ(weight.read().to_vector<float>(), (Floats{1, 2}));
  EXPECT_EQ(steps.read().item<float>(), 0);
  EXPECT_EQ(next_draws(), fresh);
  random::seed(seed);
  float plain = f(x, tensor({0, 1})).item<float>();
  weight.assign(tensor({1.f, 2.f}));
  random::seed(seed);
  GradientTape tape;
  EXPECT_EQ(f(x, tensor({0, 1})).item<float>(), plain);
  EXPECT_EQ(steps.read().item<float>(), 2);
}

TEST_F(AllOrNothing, AnArgumentThatCannotBeTracedLeavesTheFunctionUsable) {
  Variable total(tensor(0.f));
  Function f = function("f(a, b)", [=](Tensor a, Tensor b) { return total.assign_add(sum(matmul(a, b))); });
  EXPECT_CONTAINS(error_of([&] { f(ones({2, 3}), ones({4, 2})); }), "matmul");
  EXPECT_CONTAINS(error_of([&] { f(ones({2, 3}), Tensor()); }), "undefined");
  EXPECT_EQ(f.trace_count(), 0);
  EXPECT_EQ(f(ones({2, 3}), ones({3, 2})).item<float>(), 12);
  // Sizes that do not fit retrace, and fail in the trace: no trace, nothing told.
  EXPECT_CONTAINS(error_of([&] { f(ones({2, 3}), ones({4, 2})); }), "matmul");
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_TRUE(events.empty());
  EXPECT_EQ(total.read().item<float>(), 12);
}

TEST_F(AllOrNothing, ADrawInAnInitScopeOfATraceThatThrows) {
  Variable v;
  bool broken = true;
  Function f = function("f(x)", [&](Tensor x) {
    if (!v.defined()) {
      InitScope outside;
      Tensor first = random::uniform({3}) + random::normal({3});
      if (broken) throw Interrupted();
      v = Variable(first);
    }
    return x * v;
  });
  random::seed(seed);
  EXPECT_THROW(f(ones({3})), Interrupted);
  EXPECT_EQ(next_draws(), fresh);
  broken = false;
  f(ones({3}));
}

/// What a trace that succeeds drew for first values is drawn: the next draw is another.
TEST_F(AllOrNothing, ADrawInAnInitScopeOfATraceThatSucceeds) {
  Variable v;
  Function f = function("f(x)", [&](Tensor x) {
    if (!v.defined()) {
      InitScope outside;
      v = Variable(random::uniform({3}));
    }
    return x * v;
  });
  random::seed(seed);
  f(ones({3}));
  EXPECT_NE(next_draws(), fresh);
}

}  // namespace
}  // namespace stet
