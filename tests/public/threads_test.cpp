// Traced functions called from many threads at once.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include <atomic>
#include <latch>
#include <optional>
#include <set>
#include <thread>

#include "expect_error.h"
#include "explanations.h"
#include "training.h"

namespace stet {
namespace {

using Floats = std::vector<float>;
constexpr int thread_total = 8;

/// Runs body(0), body(1), … on threads of their own, all let go at once.
template <class Body>
void on_threads(int count, Body body) {
  std::latch start(count);
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t)
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      body(t);
    });
  for (std::thread& thread : threads) thread.join();
}

class Threads : public WithExplanations {};

Tensor scores(const Tensor& x, const Variable& weight) { return softmax(relu(matmul(x, weight) * 2 + 1)); }

TEST_F(Threads, OneTraceForFiftySizesAndTheNumbersOfEager) {
  random::seed(1);
  Variable weight(random::normal({4, 3}));
  std::vector<Tensor> inputs;
  std::vector<Floats> expected;
  for (int size = 0; size < 50; ++size) {
    inputs.push_back(random::normal({size, 4}));
    expected.push_back(scores(inputs.back(), weight).to_vector<float>());
  }
  Function f = function("scores(x)", [=](Tensor x) { return scores(x, weight); });
  std::atomic<int> wrong{0};
  on_threads(thread_total, [&](int t) {
    for (std::size_t n = 0; n < 100; ++n) {
      std::size_t at = (static_cast<std::size_t>(t) * 7 + n) % 50;
      if (f(inputs[at]).to_vector<float>() != expected[at]) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_CONTAINS(f.explain(), "800 calls");
  EXPECT_TRUE(events.empty());
}

TEST_F(Threads, UpdatesOfOneVariableAreNotLost) {
  Variable total(zeros({3})), calls(tensor(0));
  Function f = function("f(x)", [=](Tensor x) {
    calls.assign_add(1);
    return total.assign(total + sum(x, 0));
  });
  // Some read what they are about to change, so that the next update may not go in place.
  on_threads(thread_total, [&](int t) {
    for (int n = 0; n < 100; ++n) {
      Tensor held = t % 2 ? total.read() : Tensor();
      Floats before = t % 2 ? held.to_vector<float>() : Floats();
      f(ones({1 + (t + n) % 5, 3}));
      if (t % 2) {
        EXPECT_EQ(held.to_vector<float>(), before);
      }
    }
  });
  float expected = 0;
  for (int t = 0; t < thread_total; ++t)
    for (int n = 0; n < 100; ++n) expected += static_cast<float>(1 + (t + n) % 5);
  EXPECT_EQ(total.read().to_vector<float>(), Floats(3, expected));
  EXPECT_EQ(calls.read().item<int>(), 800);
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_F(Threads, UpdatesAreNotLostUnderTapes) {
  Variable total(tensor(0.f));
  Function f = function("f(x)", [=](Tensor x) { return total.assign_add(sum(x)) * x; });
  on_threads(thread_total, [&](int) {
    for (int n = 0; n < 200; ++n) {
      GradientTape tape;
      f(ones({2}));
    }
  });
  EXPECT_EQ(total.read().item<float>(), 3200);
}

TEST_F(Threads, ColdCallsTraceOnce) {
  for (int round = 0; round < 10; ++round) {
    std::atomic<int> runs{0}, wrong{0};
    Function f = function("cold(x)", [&](Tensor x) {
      runs += tracing_run();
      return x * 2 + static_cast<float>(round);
    });
    on_threads(thread_total, [&](int t) {
      Tensor x = full({t + 1}, t);
      if (f(x).to_vector<float>() != (x * 2 + static_cast<float>(round)).to_vector<float>()) ++wrong;
    });
    EXPECT_EQ(f.trace_count(), 1);
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(wrong, 0);
  }
}

TEST_F(Threads, ColdCallsOfSeveralKindsTraceOnceEach) {
  Function f = function("kinds(x, n)", [](Tensor x, int n) { return x * n; });
  const std::vector<DType> types = {f32, f64, i32, i64};
  on_threads(thread_total, [&](int t) {
    for (int n = 0; n < 20; ++n) {
      DType type = types[static_cast<std::size_t>(t + n) % types.size()];
      int times = 2 + (t / 4 + n / 4) % 2;
      EXPECT_EQ(f(ones({3}, type), times).item<int>({2}), times);
    }
  });
  EXPECT_EQ(f.trace_count(), 8);
  EXPECT_EQ(events.size(), 7u);
  std::set<int> numbers;
  for (const RetraceEvent& event : events) numbers.insert(event.trace);
  EXPECT_EQ(numbers, (std::set<int>{2, 3, 4, 5, 6, 7, 8}));
}

TEST_F(Threads, WhenAFirstTraceThrowsAWaiterTriesAgain) {
  for (int round = 0; round < 5; ++round) {
    std::atomic<bool> faulty{true};
    std::atomic<int> runs{0}, interrupted{0}, served{0};
    Variable total(tensor(0.f));
    Function f = function("f(x)", [&](Tensor x) {
      runs += tracing_run();
      Tensor after = total.assign_add(sum(x));
      if (faulty.exchange(false)) throw Interrupted();
      return after;
    });
    on_threads(thread_total, [&](int) {
      try {
        f(ones({2}));
        ++served;
      } catch (const Interrupted&) {
        ++interrupted;
      }
    });
    EXPECT_EQ(interrupted, 1);
    EXPECT_EQ(served, thread_total - 1);
    EXPECT_EQ(runs, 3);
    EXPECT_EQ(f.trace_count(), 1);
    EXPECT_EQ(total.read().item<float>(), 2 * (thread_total - 1));
  }
}

TEST_F(Threads, ATraceThatAlwaysThrowsThrowsEverywhere) {
  Function f = function("f(x)", [](Tensor x) { return matmul(x, ones({3, 3})); });
  std::atomic<int> errors{0};
  on_threads(thread_total, [&](int) {
    for (int n = 0; n < 5; ++n)
      if (error_of([&] { f(ones({2, 2})); }).find("matmul") != std::string::npos) ++errors;
  });
  EXPECT_EQ(errors, thread_total * 5);
  EXPECT_EQ(f.trace_count(), 0);
  f(ones({2, 3}));
}

TEST_F(Threads, FunctionsThatShareVariablesInOppositeOrders) {
  Variable a(tensor(0.f)), b(tensor(0.f)), c(tensor(0.f));
  Function forth = function("forth(x)", [=](Tensor x) {
    a.assign_add(x);
    b.assign_add(a - a + x);
    return c.read();
  });
  Function back = function("back(x)", [=](Tensor x) {
    c.assign_add(x);
    b.assign_add(x);
    a.assign_add(x);
  });
  Function swap = function("swap()", [=] {
    Tensor old = b;
    b.assign(a);
    a.assign(old);
  });
  on_threads(thread_total, [&](int t) {
    for (int n = 0; n < 150; ++n) {
      if (t % 4 == 3)
        swap();
      else if (t % 2)
        back(1.f);
      else
        forth(1.f);
    }
  });
  // Both got every unit, so they are equal whenever they are swapped whole.
  EXPECT_EQ(a.read().item<float>(), 6 * 150);
  EXPECT_EQ(b.read().item<float>(), 6 * 150);
  EXPECT_EQ(c.read().item<float>(), 2 * 150);
}

TEST_F(Threads, CallsWhileAnotherThreadClears) {
  Variable total(tensor(0.f));
  Function f = function("f(x)", [=](Tensor x) { return total.assign_add(sum(x)); });
  std::atomic<bool> done{false};
  std::thread clearer([&] {
    while (!done) {
      f.clear();
      f.explain();
      std::this_thread::yield();
    }
  });
  on_threads(4, [&](int) {
    for (int n = 0; n < 40; ++n) f(ones({1 + n % 3}));
  });
  done = true;
  clearer.join();
  float expected = 0;
  for (int n = 0; n < 40; ++n) expected += 4 * static_cast<float>(1 + n % 3);
  EXPECT_EQ(total.read().item<float>(), expected);
}

TEST_F(Threads, CallsWhileTracesAreForgotten) {
  Variable calls(tensor(0));
  Function f = function("f(x)",
                        [=](Tensor x) {
                          calls.assign_add(1);
                          return x + 1;
                        },
                        {.max_traces = 1});
  on_threads(4, [&](int t) {
    for (int n = 0; n < 15; ++n) {
      if ((t + n / 3) % 2)
        EXPECT_EQ(f(tensor({1.f, 2.f})).to_vector<float>(), (Floats{2, 3}));
      else
        EXPECT_EQ(f(tensor({1, 2})).to_vector<int>(), (std::vector<int>{2, 3}));
    }
  });
  EXPECT_EQ(calls.read().item<int>(), 60);
  EXPECT_CONTAINS(told(), "1 traces are kept at most");
}

TEST_F(Threads, FunctionsComeAndGoBesideOthers) {
  Function lasting = function("lasting(x)", [](Tensor x) { return x * 3; });
  std::atomic<bool> done{false};
  std::thread maker([&] {
    while (!done) {
      Function brief = function("brief(x)", [](Tensor x) { return x * 3; });
      for (int n = 0; n < 3; ++n) EXPECT_EQ(brief(tensor(2.f)).item<float>(), 6);
    }
  });
  on_threads(4, [&](int t) {
    for (int n = 0; n < 200; ++n) EXPECT_EQ(lasting(full({1 + t}, n)).item<float>({t}), 3.f * static_cast<float>(n));
  });
  done = true;
  maker.join();
  EXPECT_EQ(lasting.trace_count(), 1);
}

TEST_F(Threads, TheLastHandleGoesOnAnotherThread) {
  for (int round = 0; round < 20; ++round) {
    std::optional<Function<Tensor(Tensor)>> f = function("f(x)", [](Tensor x) { return x * 5; });
    on_threads(4, [copy = *f](int t) {
      for (int n = 0; n < 5; ++n) EXPECT_EQ(copy(tensor(static_cast<float>(t))).item<float>(), 5.f * t);
    });
    std::thread([&] { f.reset(); }).join();
  }
}

TEST_F(Threads, RandomNumbersAreDrawnOnce) {
  random::seed(3);
  Function f = function("draw(x)", [](Tensor x) { return random::uniform({x.dim(0)}, {.dtype = f64}); });
  std::vector<std::vector<double>> drawn(thread_total);
  on_threads(thread_total, [&](int t) {
    for (int n = 0; n < 50; ++n) {
      Tensor numbers = n % 2 ? f(zeros({4})) : random::uniform({4}, {.dtype = f64});
      for (double one : numbers.to_vector<double>()) drawn[static_cast<std::size_t>(t)].push_back(one);
    }
  });
  std::multiset<double> all;
  for (const auto& one : drawn) all.insert(one.begin(), one.end());
  random::seed(3);
  std::vector<double> expected = random::uniform({thread_total * 200}, {.dtype = f64}).to_vector<double>();
  EXPECT_EQ(all, std::multiset<double>(expected.begin(), expected.end()));
}

TEST_F(Threads, WhatAnInitScopeCallsWhileOthersTraceIt) {
  for (int round = 0; round < 5; ++round) {
    Function inner = function("inner(x)", [](Tensor x) { return x * 2; });
    Variable table;
    Function outer = function("outer(x)", [&](Tensor x) {
      if (!table.defined()) {
        InitScope outside;
        table = Variable(inner(ones({3})));
      }
      return x + table;
    });
    on_threads(thread_total, [&](int t) {
      if (t % 2)
        EXPECT_EQ(inner(tensor({4.f})).item<float>(), 8);
      else
        EXPECT_EQ(outer(ones({3})).to_vector<float>(), Floats(3, 3));
    });
    EXPECT_EQ(outer.trace_count(), 1);
  }
}

TEST_F(Threads, NoRetraceHoldsForItsThreadOnly) {
  Function f = function("f(x)", [](Tensor x) { return x * 2; });
  f(tensor({1.f}));
  NoRetrace guard;
  EXPECT_THROW(f(tensor({1})), RetraceError);
  std::thread([&] { EXPECT_EQ(f(tensor({1})).item<int>(), 2); }).join();
  EXPECT_EQ(f(tensor({1})).item<int>(), 2);  // made by the other thread
  EXPECT_EQ(f.trace_count(), 2);
}

TEST_F(Threads, TrainingStepsOfOneModelOnManyThreads) {
  random::seed(6);
  Network network;
  network.make();
  Countdown never;
  Function step = function("step(x, y)", [&](Tensor x, Tensor y) { return adam_step(network, never, x, y); });
  on_threads(4, [&](int t) {
    for (int n = 0; n < 20; ++n) {
      Batch batch = batch_of(t * 100 + n, 1 + (t * 3 + n) % 7);
      EXPECT_TRUE(std::isfinite(step(batch.x, batch.y).item<float>()));
    }
  });
  EXPECT_EQ(network.steps.read().item<float>(), 80);
  EXPECT_EQ(step.trace_count(), 1);
}

}  // namespace
}  // namespace stet
