// Host code that waits for other threads, which trace as well: nothing waits for ever. Each test hung before, or would.
#include <gtest/gtest.h>
#include <signal.h>
#include <stet/stet.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "expect_error.h"
#include "explanations.h"
#include "forks.h"
#include "watchdog.h"

namespace stet {
namespace {

using Floats = std::vector<float>;

class Hang : public WithExplanations {};

/// Waits for a flag that another thread sets.
void await(const std::atomic<bool>& flag) { flag.wait(false); }
void raise_flag(std::atomic<bool>& flag) {
  flag.store(true);
  flag.notify_all();
}

TEST_F(Hang, HostCodeMayJoinAThreadThatTraces) {
  EXPECT_TRUE(ends([] {
    Function inner = function("inner(x)", [](Tensor x) { return x * 3; });
    Function outer = function("outer(x)", [=](Tensor x) {
      float three = 0;
      std::thread([&] { three = inner(ones({2})).item<float>({1}); }).join();
      return x * three;
    });
    EXPECT_EQ(outer(ones({1})).item<float>({0}), 3);
  }));
}

TEST_F(Hang, HostCodeMayJoinAThreadThatTracesItForAnotherKind) {
  EXPECT_TRUE(ends([] {
    auto self = std::make_shared<Function<Tensor(Tensor, int)>>("f(x, n)", [](Tensor x, int) { return x; });
    *self = function("f(x, n)", [self = self.get()](Tensor x, int n) {
      float below = 1;
      if (n > 0) std::thread([&] { below = (*self)(ones({1}), n - 1).item<float>({0}); }).join();
      return x * (below * 2);
    });
    EXPECT_EQ((*self)(ones({1}), 3).item<float>({0}), 16);
  }));
}

TEST_F(Hang, AMutexThatAnotherTraceWantsMayBeHeld) {
  EXPECT_TRUE(ends([] {
    std::mutex mutex;
    std::atomic<bool> held{false}, inside{false};
    std::thread other([&] {
      Function g = function("g(x)", [&](Tensor x) {
        raise_flag(inside);
        std::lock_guard lock(mutex);
        return x * 2;
      });
      await(held);
      EXPECT_EQ(g(ones({1})).item<float>({0}), 2);
    });
    Function f = function("f(x)", [](Tensor x) { return x + 1; });
    {
      std::lock_guard lock(mutex);
      raise_flag(held);
      await(inside);  // it is being traced, and waits for the mutex
      EXPECT_EQ(f(ones({1})).item<float>({0}), 2);
    }
    other.join();
  }));
}

TEST_F(Hang, AFirstCallDoesNotWaitForAnother) {
  EXPECT_TRUE(ends([] {
    std::atomic<bool> tracing{false}, served{false};
    Function slow = function("slow(x)", [&](Tensor x) {
      raise_flag(tracing);
      await(served);
      return x * 2;
    });
    std::thread other([&] { EXPECT_EQ(slow(ones({1})).item<float>({0}), 2); });
    await(tracing);
    Function quick = function("quick(x)", [](Tensor x) { return tanh(x) * 0; });
    EXPECT_EQ(quick(ones({3})).to_vector<float>(), Floats(3, 0));
    // Nor for another kind of call of the same function, nor for a model.
    Function scaled = function("scaled(x, n)", [](Tensor x, int n) { return x * n; });
    EXPECT_EQ(scaled(ones({1}), 5).item<float>({0}), 5);
    keras::Sequential model{keras::Dense(2)};
    EXPECT_EQ(model(ones({1, 3})).rank(), 2);
    raise_flag(served);
    other.join();
  }));
}

TEST_F(Hang, AThreadInsideATraceDoesNotWaitForTheSameTrace) {
  EXPECT_TRUE(ends([] {
    std::atomic<int> inside{0};
    // Each waits until the other traces it, too.
    Function shared = function("shared(x)", [&](Tensor x) {
      ++inside;
      inside.notify_all();
      for (int seen = inside; seen < 2; seen = inside) inside.wait(seen);
      return x * 2;
    });
    auto work = [&](int number) {
      Function outer = function("outer(x)", [&](Tensor x) {
        Tensor two;
        {
          InitScope outside;
          two = shared(ones({1}));
        }
        return x * two;
      });
      EXPECT_EQ(outer(ones({number})).item<float>({0}), 2);
    };
    std::thread one([&] { work(1); }), two([&] { work(2); });
    one.join();
    two.join();
    EXPECT_EQ(shared.trace_count(), 1);  // the duplicate was dropped
  }));
}

TEST_F(Hang, WhenATraceThrowsOneOfThoseWhoWaitTries) {
  EXPECT_TRUE(ends([] {
    std::atomic<int> failures{0}, served{0};
    std::atomic<bool> failed{false};
    Function f = function("f(x)", [&](Tensor x) {
      if (!failed.exchange(true)) throw std::runtime_error("once");
      return x * 2;
    });
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        try {
          served += f(ones({1})).item<float>({0}) == 2;
        } catch (const std::runtime_error&) {
          ++failures;
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failures, 1);
    EXPECT_EQ(served, 3);
    EXPECT_EQ(f.trace_count(), 1);
  }));
}

TEST_F(Hang, ALayerIsBuiltOnceByTracesOnManyThreads) {
  EXPECT_TRUE(ends([] {
    for (int round = 0; round < 5; ++round) {
      keras::Dense layer(3);
      keras::Adam optimizer(0.1);
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t)
        threads.emplace_back([=] {
          Function step = function("step(x)", [=](Tensor x) {
            GradientTape tape;
            Tensor loss = mean(square(layer(x)));
            std::vector<Variable> variables = layer.trainable_variables();
            optimizer.apply_gradients(tape.gradient(loss, variables), variables);
            return loss;
          });
          step(ones({2 + t, 4}));
        });
      for (std::thread& thread : threads) thread.join();
      EXPECT_EQ(layer.weights().size(), 2u);
      EXPECT_EQ(optimizer.variables().size(), 2u + 2 * 2);
      EXPECT_EQ(optimizer.iterations().read().item<int>(), 4);
    }
  }));
}

TEST_F(Hang, AListenerThatThrowsLeavesTheCallServed) {
  Function f = function("f(x, n)", [](Tensor x, int n) { return x * n; });
  f(ones({1}), 1);
  on_retrace([](const RetraceEvent&) { throw std::runtime_error("no retraces, please"); });
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(f(ones({1}), 2).item<float>({0}), 2);
  std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_CONTAINS(told,
                  "stet: the listener of on_retrace threw: no retraces, please\nstet: tracing 'f' again (trace 2)");
  on_retrace({});
  EXPECT_EQ(f(ones({1}), 2).item<float>({0}), 2);
  EXPECT_EQ(f.trace_count(), 2);
}

// --- fork()

/// What became of a child: its exit code, or -1 if it did not end and was ended.
int exit_of(pid_t child) {
  for (int tenths = 0; tenths < 1800; ++tenths) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
    usleep(100'000);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return -1;
}

/// Runs the body in a child: 0 if all is as it should be.
template <class Body>
int in_child(Body body) {
  pid_t child = fork();
  if (child == 0) {
    int code = 2;
    try {
      code = body() ? 0 : 1;
    } catch (...) {
    }
    _exit(code);
  }
  return exit_of(child);
}

TEST_F(Hang, AChildTracesWhatAnotherThreadWasTracing) {
  SKIP_WITHOUT_FORK();
  std::atomic<bool> tracing{false}, go_on{false};
  keras::Dense layer(2);
  Function f = function("f(x)", [&](Tensor x) {
    Tensor y = layer(x);
    raise_flag(tracing);
    await(go_on);
    return y * 0 + 2;
  });
  std::thread other([&] { f(ones({1, 3})); });
  await(tracing);
  EXPECT_EQ(in_child([&] {
              go_on.store(true);  // of the child's own
              Function g = function("g(x)", [](Tensor x) { return sqrt(x) * 3; });
              Variable v(ones({2}));
              v.assign_add(g(full({2}, 4.f)));
              return f(ones({1, 3})).item<float>({0, 0}) == 2 && v.read().item<float>({1}) == 7;
            }),
            0);
  raise_flag(go_on);
  other.join();
}

TEST_F(Hang, ChildrenMadeAtAnyMomentTrace) {
  SKIP_WITHOUT_FORK_BESIDE_WORK();
  std::atomic<bool> enough{false};
  Variable total(zeros({4}));
  auto work = [&](int t) {
    for (int n = 1; !enough; ++n) {
      Function f = function("f(x)", [&](Tensor x) {
        for (int i = 0; i < 6; ++i) x = n >> i & 1 ? x * 2 : relu(x);  // another program every time
        return total.assign_add(x * 0 + t);
      });
      f(ones({4}));
      sum(exp(ones({n % 7 + 1, 2})));
    }
  };
  std::thread one([&] { work(1); }), two([&] { work(2); });
  for (int n = 0; n < 12; ++n)
    EXPECT_EQ(in_child([&] {
                Function g = function("g(x)", [=](Tensor x) { return (x + total) * 0 + n; });
                return g(ones({4})).item<float>({0}) == n;
              }),
              0);
  enough = true;
  one.join();
  two.join();
}

}  // namespace
}  // namespace stet
