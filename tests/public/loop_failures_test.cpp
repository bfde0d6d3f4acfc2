// Turns that fail: exceptions of host code, checks, and memory that is not there, in the first, a middle and the last
// turn of every kind of loop, forwards and in the loop of a gradient. The call has changed nothing (Variables,
// arguments, the generator), its message is the turn's, and the next call works.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>

#include "expect_error.h"
#include "stet/stet.h"
#include "training.h"

using namespace stet;

namespace {

using Turn = std::function<Tensor(const Tensor& state, const Tensor& element)>;
constexpr std::uint64_t seed = 33;
constexpr double bad = 99;  // the first number of an element that a turn fails at

/// A loop over elements xs [n, 3] with a state [3].
struct Loop {
  const char* name;
  std::function<Tensor(const Turn&, const Tensor& xs)> run;
};

Tensor start() { return zeros({3}, f64); }
Tensor by_condition(const Turn& turn, const Tensor& xs, std::int64_t checkpoint_every) {
  auto [h, i] = while_loop([&](Tensor, Tensor i) { return i < xs.dim(0); },
                           [&](Tensor h, Tensor i) { return std::tuple(turn(h, gather(xs, i)), i + 1); },
                           std::tuple(start(), tensor(std::int64_t{0})), {.checkpoint_every = checkpoint_every});
  return h;
}
const std::vector<Loop>& loops() {
  static const std::vector<Loop> all = {
      {"scan", [](const Turn& turn, const Tensor& xs) { return scan(turn, start(), xs); }},
      {"scan with results",
       [](const Turn& turn, const Tensor& xs) {
         auto both = [&](Tensor h, Tensor x) {
           Tensor next = turn(h, x);
           return std::pair(next, next * h);
         };
         auto [h, all] = scan(both, start(), xs);
         return h + sum(all, 0);
       }},
      {"scan in reverse",
       [](const Turn& turn, const Tensor& xs) { return scan(turn, start(), xs, {.reverse = true}); }},
      {"scan with checkpoints",
       [](const Turn& turn, const Tensor& xs) { return scan(turn, start(), xs, {.checkpoint_every = 2}); }},
      {"for_loop by a size",
       [](const Turn& turn, const Tensor& xs) {
         return for_loop(
             xs.dim(0), [&](Tensor i, Tensor h) { return turn(h, gather(xs, i)); }, start());
       }},
      {"for_loop by a tensor with checkpoints",
       [](const Turn& turn, const Tensor& xs) {
         return for_loop(tensor(xs.dim(0)), [&](Tensor i, Tensor h) { return turn(h, gather(xs, i)); }, start(),
                         {.checkpoint_every = 3});
       }},
      {"while_loop", [](const Turn& turn, const Tensor& xs) { return by_condition(turn, xs, 0); }},
      {"while_loop with checkpoints", [](const Turn& turn, const Tensor& xs) { return by_condition(turn, xs, 2); }},
      {"map_fn", [](const Turn& turn,
                    const Tensor& xs) { return sum(map_fn([&](Tensor x) { return turn(start(), x); }, xs), 0); }},
      {"a loop in a loop",
       [](const Turn& turn, const Tensor& xs) {
         return scan(
             [&](Tensor h, Tensor x) {
               return for_loop(
                   2, [&](Tensor i, Tensor h) { return turn(h * (cast(i, f64) + 1.), x); }, h);
             },
             start(), xs);
       }},
      {"a loop on one side in a loop", [](const Turn& turn, const Tensor& xs) {
         return scan(
             [&](Tensor h, Tensor x) {
               return cond(
                   x[1] > -9.,
                   [&] {
                     return for_loop(
                         tensor(2), [&](Tensor h) { return turn(h, x); }, h);
                   },
                   [&] { return h + 0.; });
             },
             start(), xs);
       }}};
  return all;
}

/// How a turn fails at a bad element.
struct Fault {
  const char* name;
  std::function<void(const Tensor& x)> happen;
  std::string message;
  bool on_sides_under_tapes = true;  // a callback is refused where the gradient runs a side again
};

const std::vector<Fault>& faults() {
  static const std::vector<Fault> all = {
      {"a callback",
       [](const Tensor& x) {
         host_call(
             [](Tensor x) {
               if (x.item<double>() == bad) throw std::domain_error("the callback gives up");
             },
             {}, stop_gradient(x[0]));
       },
       "the callback gives up", false},
      {"host code on the side that is taken",
       [](const Tensor& x) {
         if (x[0] == bad) throw std::domain_error("this side throws");
       },
       "this side throws"},
      {"an assertion", [](const Tensor& x) { assert_that(x[0] < bad, "an element is too large:", x); },
       "assert_that: an element is too large:"}};
  return all;
}
/// Faults in what a turn computes of its next state: an index, and memory for as many elements as a value says.
using Computed = std::function<Tensor(const Tensor& next, const Tensor& x)>;
Tensor looked_up(const Tensor& next, const Tensor& x) {
  return next * gather(tensor({0.5, 0.25, 0.125, 1.}), cast(minimum(abs(x[0]), 50.), i64));
}
/// Plus a sum of no numbers usually, and at a bad element of 2^52, which would have to lie somewhere.
Tensor of_huge_size(const Tensor& next, const Tensor& x) {
  const std::int64_t most = std::int64_t{1} << 13;
  Tensor kept = boolean_mask(ones({most}, f64), broadcast_to(x[0] == bad, {most}));
  Dim n = kept.dim(0);
  return next + sum(cumsum(ones({n, n, n, n}, f64), 0)) + sum(kept);
}

const char* const out_of_range = "gather: 'indices' holds index 50 at position 0, out of range: allowed are 0 to 3";

std::string message_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

Tensor elements(std::int64_t n, int bad_at = -1) {
  Tensor xs = reshape(sin(cast(arange(n * 3), f64) * 0.8), {n, 3});
  if (bad_at < 0) return xs;
  Tensor rows = expand_dims(cast(arange(n), f64), 1), columns = cast(arange(3), f64);
  return where(logical_and(rows == static_cast<double>(bad_at), columns == 0.), bad, xs);
}

/// What turns read and write.
struct State {
  Variable weight{full({3}, 0.7, f64)}, seen{zeros({3}, f64), {.trainable = false}},
      turns{tensor(std::int64_t{0}), {.trainable = false}};
  std::vector<std::vector<double>> values() const {
    return {weight.read().to_vector<double>(), seen.read().to_vector<double>(), cast(turns, f64).to_vector<double>()};
  }
};

enum class Tape { none, inside, around };
const Tape tapes[] = {Tape::none, Tape::inside, Tape::around};

/// A turn that writes, draws, then may fail, then writes again.
Turn turn_of(const State& state, const std::function<void(const Tensor&)>& fault, const Computed& computed) {
  return [&state, fault, computed](const Tensor& h, const Tensor& x) {
    state.turns.assign_add(std::int64_t{1});
    state.seen.assign_add(x * h);
    Tensor next = tanh(h * 0.5 + x * state.weight) + random::uniform({3}, {.dtype = f64}) * 0.1;
    if (fault) fault(x);
    if (computed) next = computed(next, x);
    state.seen.assign(state.seen * 0.5);
    return next + state.seen.read() * 0.25;
  };
}
Tensor run_step(const State& state, const Loop& loop, const Turn& turn, bool differentiates, const Tensor& xs) {
  if (!differentiates) return sum(loop.run(turn, xs));
  GradientTape tape;
  Tensor loss = sum(loop.run(turn, xs));
  state.weight.assign_sub(tape.gradient(loss, state.weight) * 0.1);
  return loss;
}

/// Calls with good and bad elements in turns, beside the same code that runs eagerly on the good ones alone.
void check(const Loop& loop, const std::function<void(const Tensor&)>& fault, const Computed& computed,
           const std::string& message, Tape tape) {
  State state, twin;
  Turn turn = turn_of(state, fault, computed), same = turn_of(twin, fault, computed);
  const bool inside = tape == Tape::inside;
  Function f = function("f(xs)", [&](Tensor xs) { return run_step(state, loop, turn, inside, xs); });
  auto called = [&](const std::function<Tensor(Tensor)>& step, const State& of, const Tensor& xs) {
    random::seed(seed);
    if (tape != Tape::around) return std::vector<double>{step(xs).item<double>()};
    GradientTape outer;
    outer.watch(xs);
    Tensor loss = step(xs);
    std::vector<Tensor> d = outer.gradient(loss, std::vector<GradientTape::Source>{xs, of.weight});
    std::vector<double> out = d[0].to_vector<double>(), more = d[1].to_vector<double>();
    out.insert(out.end(), more.begin(), more.end());
    return out;
  };
  auto expect_good = [&](std::int64_t n) {
    std::vector<double> expected =
        called([&](Tensor xs) { return run_step(twin, loop, same, inside, xs); }, twin, elements(n));
    std::vector<float> next = random::uniform({3}).to_vector<float>();
    std::vector<double> got = called([&](Tensor xs) { return f(xs); }, state, elements(n));
    EXPECT_EQ(random::uniform({3}).to_vector<float>(), next);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-12) << i;
    std::vector<std::vector<double>> a = state.values(), b = twin.values();
    for (std::size_t i = 0; i < a.size(); ++i)
      for (std::size_t k = 0; k < a[i].size(); ++k) EXPECT_NEAR(a[i][k], b[i][k], 1e-12) << i << " " << k;
  };
  random::seed(seed);
  const std::vector<float> fresh = random::uniform({3}).to_vector<float>();
  for (auto [n, at] : std::vector<std::pair<int, int>>{{5, 0}, {5, 2}, {5, 4}, {3, 1}, {1, 0}}) {
    SCOPED_TRACE("element " + std::to_string(at) + " of " + std::to_string(n));
    Tensor xs = elements(n, at), holder = state.seen.read();
    const std::vector<double> given = xs.to_vector<double>(), held = holder.to_vector<double>();
    const std::vector<std::vector<double>> before = state.values();
    std::string text = message_of([&] { called([&](Tensor xs) { return f(xs); }, state, xs); });
    EXPECT_CONTAINS(text, message);
    EXPECT_EQ(state.values(), before);
    EXPECT_EQ(random::uniform({3}).to_vector<float>(), fresh);
    EXPECT_EQ(xs.to_vector<double>(), given);
    EXPECT_EQ(holder.to_vector<double>(), held);
    expect_good(n);
  }
  EXPECT_EQ(f.trace_count(), 1) << f.explain();
}

bool on_a_side(const Loop& loop) { return std::string(loop.name).find("side") != std::string::npos; }
/// Tracing a loop on one side that writes a Variable and reads a trainable one under a tape is refused; see below.
bool refused(const Loop& loop, Tape tape) { return on_a_side(loop) && tape == Tape::inside; }
std::string text_of(const Loop& loop, Tape tape) {
  static const char* const names[] = {"no tape", "a tape inside", "a tape around"};
  return std::string(loop.name) + ", " + names[static_cast<int>(tape)];
}

TEST(LoopFailures, InAnyTurnOfAnyLoop) {
  for (const Loop& loop : loops())
    for (const Fault& fault : faults())
      for (Tape tape : tapes) {
        if (refused(loop, tape) || (tape != Tape::none && !fault.on_sides_under_tapes && on_a_side(loop))) continue;
        SCOPED_TRACE(text_of(loop, tape) + ", " + fault.name);
        ASSERT_NO_THROW(check(loop, fault.happen, {}, fault.message, tape));
      }
}

TEST(LoopFailures, AnIndexOutOfRange) {
  for (const Loop& loop : loops())
    for (Tape tape : tapes) {
      if (refused(loop, tape)) continue;
      SCOPED_TRACE(text_of(loop, tape));
      ASSERT_NO_THROW(check(loop, {}, looked_up, out_of_range, tape));
    }
}

TEST(LoopFailures, NoMemoryForWhatATurnMakes) {
  for (const Loop& loop : loops())
    for (Tape tape : tapes) {
      if (refused(loop, tape)) continue;
      SCOPED_TRACE(text_of(loop, tape));
      ASSERT_NO_THROW(check(loop, {}, of_huge_size, "out of memory: ", tape));
    }
}

TEST(LoopFailures, ALoopOnOneSideThatWritesUnderATape) {
  for (const Loop& loop : loops()) {
    if (!refused(loop, Tape::inside)) continue;
    ASSERT_NO_THROW(check(loop, faults()[1].happen, {}, faults()[1].message, Tape::inside));
    ASSERT_NO_THROW(check(loop, {}, looked_up, out_of_range, Tape::inside));
  }
}

// --- on the way back

/// The state, whose gradient fails where the element is bad. (Effects of a way back are refused or happen elsewhere.)
Tensor fails_back(const Computed& back, const Tensor& next, const Tensor& x) {
  auto identity = custom_gradient([back](Tensor next, Tensor x) {
    return std::pair(next * 1., [x, back](Tensor d) { return std::pair(back(d, x), zeros_like(x)); });
  });
  return identity(next, x);
}

/// All turns forwards have written Variables, and some turns back are done, before one fails.
TEST(LoopFailures, InAnyTurnBack) {
  auto throws = [](const Tensor& d, const Tensor& x) {
    faults()[1].happen(x);
    return d * 1.;
  };
  for (const Loop& loop : loops())
    for (const auto& [back, message] : std::vector<std::pair<Computed, std::string>>{
             {throws, faults()[1].message}, {looked_up, out_of_range}, {of_huge_size, "out of memory: "}}) {
      if (refused(loop, Tape::inside)) continue;
      SCOPED_TRACE(std::string(loop.name) + ", " + message);
      ASSERT_NO_THROW(check(
          loop, {}, [&](const Tensor& next, const Tensor& x) { return fails_back(back, next, x); }, message,
          Tape::inside));
    }
}

// --- memory for the loop itself

TEST(LoopFailures, NoMemoryForTheStacks) {
  SKIP_WHEN_VERIFYING();  // eagerly there would be 2^50 turns
  Variable turns(tensor(std::int64_t{0}));
  auto counted = [&](Tensor s) {
    turns.assign_add(std::int64_t{1});
    return s * s;
  };
  Function stacked = function("stacked(x, n)", [&](Tensor x, Dim n) {
    return scan([&](Tensor s) { return std::pair(counted(s), s); }, x, {.length = n}).first;
  });
  Function stacks = function("stacks(x, n)", [&](Tensor x, Dim n) {
    return scan([&](Tensor s) { return std::pair(counted(s), s); }, x, {.length = n}).second;
  });
  Function kept = function("kept(x, n)", [&](Tensor x, Tensor n) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(for_loop(n, counted, x), x);
  });
  const std::int64_t huge = std::int64_t{1} << 50;
  for (int repeat = 0; repeat < 3; ++repeat) {
    turns.assign(std::int64_t{0});
    EXPECT_CONTAINS(error_of([&] { stacks(tensor(1.5), Dim(huge)); }), "out of memory: ");
    EXPECT_CONTAINS(error_of([&] { kept(tensor(1.5), tensor(huge)); }), "out of memory: ");
    EXPECT_EQ(turns.value().item<std::int64_t>(), 0);
    EXPECT_EQ(stacks(tensor(1.5), Dim(3)).to_vector<double>(), (std::vector<double>{1.5, 2.25, 5.0625}));
    EXPECT_EQ(kept(tensor(1.5), tensor(std::int64_t{2})).item<double>(), 4 * 1.5 * 1.5 * 1.5);
    EXPECT_EQ(stacked(tensor(1.5), Dim(2)).item<double>(), 5.0625);  // nobody asks for the stack
    EXPECT_EQ(turns.value().item<std::int64_t>(), 7);
  }
  EXPECT_EQ(stacks.trace_count(), 1);
  EXPECT_EQ(kept.trace_count(), 1);
}

// --- many at once

TEST(LoopFailures, OnSeveralThreads) {
  SKIP_WHEN_VERIFYING();
  for (const Loop& loop : loops()) {
    if (on_a_side(loop)) continue;
    SCOPED_TRACE(loop.name);
    Variable turns(tensor(std::int64_t{0}), {.trainable = false}), weight(full({3}, 0.7, f64));
    auto code = [&](Tensor xs) {
      GradientTape tape;
      tape.watch(xs);
      Tensor y = sum(loop.run(
          [&](const Tensor& h, const Tensor& x) {
            turns.assign_add(std::int64_t{1});
            for (const Fault& fault : faults()) fault.happen(x);
            return looked_up(tanh(h * 0.5 + x * weight), minimum(x, 3.));
          },
          xs));
      return std::pair(y, tape.gradient(y, xs));
    };
    Function f = function("f(xs)", code);
    std::vector<std::vector<double>> expected;
    std::vector<std::int64_t> taken;
    for (std::int64_t n : {3, 4, 5}) {
      turns.assign(std::int64_t{0});
      expected.push_back(code(elements(n)).second.to_vector<double>());
      taken.push_back(turns.value().item<std::int64_t>());
    }
    turns.assign(std::int64_t{0});
    std::atomic<std::int64_t> counted{0}, thrown{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (int round = 0; round < 30; ++round) {
          const int n = 3 + (round + t) % 3;
          const auto which = static_cast<std::size_t>(n - 3);
          if ((round + t) % 4 == 0) {
            EXPECT_CONTAINS(message_of([&] { f(elements(n, round % n)); }), faults()[0].message);
            ++thrown;
            continue;
          }
          std::vector<double> got = f(elements(n)).second.template to_vector<double>();
          counted += taken[which];
          for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[which][i], 1e-12);
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_GT(thrown, 20);
    EXPECT_EQ(turns.value().item<std::int64_t>(), counted);
    EXPECT_EQ(f.trace_count(), 1);
  }
}

// --- while tracing

/// Host code that throws after any op of a trace with loops: the function is as it was, and the next call traces.
TEST(LoopFailures, AfterAnyOpOfATrace) {
  SKIP_WHEN_VERIFYING();
  for (const Loop& loop : loops()) {
    SCOPED_TRACE(loop.name);
    if (refused(loop, Tape::inside)) continue;
    State state, twin;
    Countdown after;
    auto step = [&](const State& of, const Tensor& xs) {
      GradientTape tape;
      Tensor loss = after(sum(loop.run(
          [&](const Tensor& h, const Tensor& x) {
            of.turns.assign_add(std::int64_t{1});
            after(of.seen.assign_add(after(x * h)));
            return after(tanh(after(after(h * 0.5) + after(x * of.weight))));
          },
          xs)));
      of.weight.assign_sub(after(tape.gradient(loss, of.weight)) * 0.1);
      return after(loss);
    };
    Function f = function("f(xs)", [&](Tensor xs) { return step(state, xs); });
    const std::vector<std::vector<double>> before = state.values();
    int faults = 0;
    for (bool done = false; !done && faults < 1000; ++faults) {
      after.set(faults);
      try {
        f(elements(4));
        done = true;
      } catch (const Interrupted&) {
      } catch (const TraceError&) {  // a path of a decision that throws in one run and not in the other
      }
      EXPECT_EQ(after.spent(), !done);
      if (done) break;
      ASSERT_EQ(state.values(), before) << faults;
      ASSERT_EQ(f.trace_count(), 0);
      ASSERT_FALSE(tracing());
    }
    EXPECT_GT(faults, 12);
    after.set(-1);
    step(twin, elements(4));
    EXPECT_EQ(state.values()[1], twin.values()[1]);
    EXPECT_EQ(state.values()[2], twin.values()[2]);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(state.values()[0][i], twin.values()[0][i], 1e-12);
    EXPECT_EQ(f.trace_count(), 1);
  }
}

}  // namespace
