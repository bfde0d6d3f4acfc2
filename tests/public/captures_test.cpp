// What host code brings into a trace and takes out of it: numbers, tensors, Variables, random numbers.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include <chrono>
#include <random>

#include "expect_error.h"
#include "explanations.h"

namespace stet {
namespace {

using Floats = std::vector<float>;

class Captures : public WithExplanations {};

std::string here(int line) {
  std::string out = __FILE__;
  out += ":";
  return out += std::to_string(line);
}

// --- host randomness, clocks and counters

TEST_F(Captures, HostRandomnessIsCaughtOnTheFirstCall) {
  std::mt19937 generator(3);
  int line = 0;
  Function f = function("noisy(x)", [&](Tensor x) {
    Tensor y = x * 2;
    line = __LINE__ + 1;
    return y + std::uniform_real_distribution<float>()(generator);
  });
  std::string error = error_of([&] { f(ones({2})); });
  EXPECT_CONTAINS(error, "tracing 'noisy' twice gave two different programs; they part at " + here(line));
  EXPECT_CONTAINS(error, "pass it as an argument, use stet::random, or a Variable");
  EXPECT_THROW(f(ones({2})), TraceError);
  EXPECT_EQ(f.trace_count(), 0);
}

TEST_F(Captures, ACounterAndASizeByChanceAreCaught) {
  int count = 0;
  Function counted = function("counted(x)", [&](Tensor x) { return x * ++count; });
  EXPECT_THROW(counted(ones({2})), TraceError);
  Function longer = function("longer(x)", [&](Tensor x) {
    for (int i = 0; i < ++count; i += 2) x = x + 1;
    return x;
  });
  EXPECT_THROW(longer(ones({2})), TraceError);
  Function table = function("table(x)", [&](Tensor x) { return x + full({16}, ++count); });
  EXPECT_THROW(table(ones({16})), TraceError);
}

TEST_F(Captures, ALargeTableByChanceIsCaught) {
  int count = 0;
  Function large = function("large(x)", [&](Tensor x) { return x + full({17}, ++count); });
  EXPECT_THROW(large(ones({17})), TraceError);
}

TEST_F(Captures, AVariableByChanceIsCaught) {
  int count = 0;
  Variable variables[] = {Variable(tensor(1.f)), Variable(tensor(2.f))};
  Function f = function("f(x)", [&](Tensor x) { return x * variables[count++ % 2]; });
  EXPECT_THROW(f(ones({2})), TraceError);
}

TEST_F(Captures, AnUndefinedTensorMayBeReturned) {
  auto body = [](Tensor x) { return std::tuple{Tensor(), x * 2, std::vector<Tensor>{Tensor(), x}}; };
  Function f = function("f(x)", body);
  for (int call = 0; call < 2; ++call) {
    auto [none, twice, list] = f(ones({2}));
    EXPECT_FALSE(none.defined());
    EXPECT_EQ(twice.to_vector<float>(), Floats(2, 2));
    EXPECT_FALSE(list.at(0).defined());
    EXPECT_EQ(list.at(1).to_vector<float>(), Floats(2, 1));
  }
}

TEST_F(Captures, ATensorThatHostCodeKeepsIsReportedAtTheEndOfTheTrace) {
  Tensor kept;
  Function f = function("keeps(x)", [&](Tensor x) {
    kept = x * 3;
    return x + 1;
  });
  ::testing::internal::CaptureStderr();
  f(ones({2}));
  std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_CONTAINS(told, "stet: host code kept a tensor of the trace of 'keeps', made at ");
  EXPECT_CONTAINS(told, "captures_test.cpp:");
  EXPECT_CONTAINS(told, "return it from the function, or assign it to a Variable");
  EXPECT_EQ(told.find("stet:"), told.rfind("stet:"));  // once, not for each run of the first trace
  ::testing::internal::CaptureStderr();
  f(ones({3}));
  Function clean = function("clean(x)", [](Tensor x) {
    GradientTape tape;
    tape.watch(x);
    Tensor y = scope([&] {
      if (sum(x) > 0.f) return x * 2;
      return x;
    });
    return tape.gradient(y, x);
  });
  clean(ones({2}));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(Captures, UnusedRandomnessIsHarmless) {
  std::mt19937 generator(3);
  std::vector<float> log;
  Function f = function("logged(x)", [&](Tensor x) {
    if (tracing_run()) log.push_back(std::uniform_real_distribution<float>()(generator));
    return x * 2;
  });
  EXPECT_EQ(f(ones({2})).to_vector<float>(), Floats(2, 2));
  f(ones({3}));
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(log.size(), 2u);
}

TEST_F(Captures, TheProcessGeneratorIsState) {
  auto body = [](Tensor x) { return x + random::uniform({x.dim(0)}) * random::normal({1}); };
  Function f = function("f(x)", body);
  random::seed(8);
  std::vector<Floats> traced, eager;
  for (int n : {2, 5, 2}) traced.push_back(f(zeros({n})).to_vector<float>());
  Floats after = random::uniform({3}).to_vector<float>();
  random::seed(8);
  for (int n : {2, 5, 2}) eager.push_back(body(zeros({n})).to_vector<float>());
  EXPECT_EQ(traced, eager);
  EXPECT_EQ(random::uniform({3}).to_vector<float>(), after);
  EXPECT_EQ(f.trace_count(), 1);
}

// --- captured tensors and Variables

TEST_F(Captures, ACapturedTensorIsAConstant) {
  for (int size : {3, 100}) {  // written into the program, and kept beside it
    Tensor table = ones({size});
    Function f = function("f(x)", [&](Tensor x) { return x + table; });
    EXPECT_EQ(f(zeros({size})).to_vector<float>(), Floats(size, 1));
    table = ones({size}) * 5;
    EXPECT_EQ(f(zeros({size})).to_vector<float>(), Floats(size, 1));
    EXPECT_EQ(f.trace_count(), 1);
    if (size > 16) {
      EXPECT_CONTAINS(f.explain(), "captured f32[100], a constant");
    }
  }
}

TEST_F(Captures, ACapturedVariableIsState) {
  Variable v(ones({3}), {.name = "scale"});
  Function f = function("f(x)", [=](Tensor x) { return x * v; });
  EXPECT_EQ(f(ones({3})).to_vector<float>(), Floats(3, 1));
  v.assign(ones({3}) * 5);
  EXPECT_EQ(f(ones({3})).to_vector<float>(), Floats(3, 5));
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_CONTAINS(f.explain(), "Variable 'scale' f32[3]");
}

TEST_F(Captures, WhatIsReturnedDoesNotChangeWithTheVariable) {
  Variable v(tensor({1.f, 2.f}));
  Function read = function("read()", [=] { return v.read(); });
  Function both = function("both(x)", [=](Tensor x) {
    Tensor old = v.read();
    return std::tuple{old, v.assign(v + x), x, x};
  });
  Tensor seen = read();
  auto [old, now, x, again] = both(tensor({10.f, 10.f}));
  auto [second_old, second_now, y, z] = both(x);
  v.assign(tensor({0.f, 0.f}));
  EXPECT_EQ(seen.to_vector<float>(), (Floats{1, 2}));
  EXPECT_EQ(old.to_vector<float>(), (Floats{1, 2}));
  EXPECT_EQ(now.to_vector<float>(), (Floats{11, 12}));
  EXPECT_EQ(second_old.to_vector<float>(), (Floats{11, 12}));
  EXPECT_EQ(second_now.to_vector<float>(), (Floats{21, 22}));
  EXPECT_EQ(x.to_vector<float>(), (Floats{10, 10}));
  EXPECT_EQ(again.to_vector<float>(), (Floats{10, 10}));
}

TEST_F(Captures, ArgumentsAreCopiesInEveryRun) {
  Function f = function("f(list)", [](std::vector<Tensor> list) {
    list.push_back(list[0] * 2);
    list[0] = list[0] + 1;
    return list;
  });
  std::vector<Tensor> list{tensor(1.f)};
  std::vector<Tensor> out = f(list);
  EXPECT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].item<float>(), 1);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].item<float>(), 2);
}

// --- Variables made inside

TEST_F(Captures, AVariableMadeInEveryRunIsRefused) {
  int line = 0;
  Function metric = function("accuracy(labels, predictions)", [&](Tensor labels, Tensor predictions) {
    Tensor right = mean(cast(argmax(predictions, 1) == labels, f32));
    line = __LINE__ + 1;
    Variable total(0.f, {.name = "total"});
    total.assign_add(right);
    return total.read();
  });
  std::string error = error_of([&] { metric(zeros({4}, i64), ones({4, 3})); });
  EXPECT_CONTAINS(error,
                  "'accuracy' makes a Variable 'total' every time it is run, so its value would never outlive a call");
  EXPECT_CONTAINS(error, here(line));
  EXPECT_CONTAINS(error, "make the Variable once: outside of the traced function");
  EXPECT_THROW(metric(zeros({4}, i64), ones({4, 3})), TraceError);
  EXPECT_EQ(metric.trace_count(), 0);
}

/// A metric that makes its state anew whenever it is made, and is made in the traced code.
struct Accuracy {
  Variable total{tensor(0.f), {.name = "total"}};
  Variable count{tensor(0.f), {.name = "count"}};
  Tensor update(const Tensor& right) const {
    total.assign_add(sum(right));
    count.assign_add(right.dim(0));
    return total / count;
  }
};

TEST_F(Captures, AnObjectWithVariablesMadeInEveryRunIsRefusedToo) {
  Function step = function("step(right)", [](Tensor right) { return Accuracy().update(right); });
  EXPECT_CONTAINS(error_of([&] { step(ones({4})); }), "'step' makes a Variable 'total' every time it is run");
  Accuracy once;
  Function better = function("better(right)", [=](Tensor right) { return once.update(right); });
  better(ones({4}));
  EXPECT_EQ(better(zeros({4})).item<float>(), 0.5f);
  EXPECT_EQ(better.trace_count(), 1);
}

TEST_F(Captures, VariablesMadeOnceInsideEqualThoseMadeEagerly) {
  struct Dense {
    Variable kernel, bias;
    Tensor operator()(const Tensor& x) {
      if (!kernel.defined()) {
        InitScope outside;
        std::int64_t features = x.dim(1).value();
        kernel = Variable(random::stateless_normal({features, 2}, random::next_initial_stream()), {.name = "kernel"});
        bias = Variable(zeros({2}), {.name = "bias"});
      }
      return matmul(x, kernel) + bias;
    }
  };
  int runs = 0;
  Dense traced, eager;
  Function f = function("f(x)", [&](Tensor x) {
    runs += tracing_run();
    Tensor y = traced(x);
    traced.bias.assign_add(1.f + zeros({2}));
    return y;
  });
  Tensor x = ones({3, 4});
  random::seed(12);
  Tensor first = f(x), second = f(x);
  EXPECT_EQ(runs, 3);  // building, tracing, and the run it is compared with
  EXPECT_EQ(f.trace_count(), 1);
  random::seed(12);
  EXPECT_EQ(first.to_vector<float>(), eager(x).to_vector<float>());
  EXPECT_EQ(traced.kernel.read().to_vector<float>(), eager.kernel.read().to_vector<float>());
  EXPECT_EQ(traced.bias.read().to_vector<float>(), Floats(2, 2));
  EXPECT_EQ(second.to_vector<float>(), (first + 1).to_vector<float>());
}

TEST_F(Captures, AVariableMadeInALaterTrace) {
  Variable extra;
  Function f = function("f(x, more)", [&](Tensor x, bool more) {
    if (!more) return x;
    if (!extra.defined()) extra = Variable(tensor(3.f));
    return x * extra.assign_add(1.f);
  });
  f(ones({1}), false);
  EXPECT_EQ(f(ones({1}), true).item<float>(), 4);
  EXPECT_EQ(f(ones({1}), true).item<float>(), 5);
  EXPECT_EQ(f.trace_count(), 2);
}

TEST_F(Captures, AFirstValueFromTheTraceIsRefused) {
  Variable v;
  Function f = function("f(x)", [&](Tensor x) {
    if (!v.defined()) v = Variable(x * 2);
    return v.read();
  });
  EXPECT_CONTAINS(error_of([&] { f(ones({2})); }), "Variable: the value of f32[x_0] does not exist while 'f' is being");
  EXPECT_EQ(f.trace_count(), 0);
}

// --- InitScope

TEST_F(Captures, AnInitScopeRunsEagerly) {
  SKIP_WHEN_VERIFYING();
  std::vector<float> seen;
  Function helper = function("helper(x)", [](Tensor x) { return x * 10; });
  Function f = function("f(x)", [&](Tensor x) {
    EXPECT_TRUE(tracing());
    Tensor made;
    {
      InitScope outside;
      made = helper(ones({2})) + 1;
      seen = made.to_vector<float>();
      GradientTape tape;
      Tensor t = tensor(3.f);
      tape.watch(t);
      EXPECT_EQ(tape.gradient(t * t, t).item<float>(), 6);
    }
    EXPECT_THROW(x.to_vector<float>(), TraceError);
    return x + made;
  });
  EXPECT_EQ(f(zeros({2})).to_vector<float>(), Floats(2, 11));
  EXPECT_EQ(seen, Floats(2, 11));
  EXPECT_EQ(helper.trace_count(), 1);
  EXPECT_FALSE(tracing());
}

TEST_F(Captures, ATracedTensorHasNoValueInAnInitScope) {
  Function f = function("f(x)", [&](Tensor x) {
    InitScope outside;
    return x * 2;
  });
  EXPECT_CONTAINS(error_of([&] { f(ones({2})); }), "does not exist while 'f' is being traced");
  EXPECT_FALSE(tracing());
  EXPECT_EQ((ones({1}) * 2).item<float>(), 2);
}

TEST_F(Captures, AFunctionInItsOwnInitScope) {
  std::function<Tensor(Tensor)> again;
  Function f = function("f(x)", [&](Tensor x) {
    InitScope outside;
    again(ones({2}));
    return x;
  });
  again = [&](Tensor x) { return f(x); };
  EXPECT_CONTAINS(error_of([&] { f(ones({2})); }), "'f' is called eagerly inside its own trace");
  EXPECT_EQ(f.trace_count(), 0);
}

// --- leaks and reads

TEST_F(Captures, ALeakedTensorSaysSoAtEveryUse) {
  SKIP_WHEN_VERIFYING();
  Tensor leaked;
  Dim size = 0;
  Function f = function("f(x)", [&](Tensor x) {
    leaked = x * 2;
    size = x.dim(0);
    return x;
  });
  ::testing::internal::CaptureStderr();
  f(ones({2}));
  ::testing::internal::GetCapturedStderr();  // told at the end of the trace, too
  std::string said = "has leaked out of the trace of 'f'";
  std::string error = error_of([&] { leaked + 1; });
  EXPECT_CONTAINS(error, "the tensor f32[x_0] " + said);
  EXPECT_CONTAINS(error, "fix: return it from the function, or assign it to a Variable");
  EXPECT_CONTAINS(error, "captures_test.cpp:");
  EXPECT_CONTAINS(error_of([&] { leaked.item<float>(); }), said);
  EXPECT_CONTAINS(error_of([&] { leaked.to_vector<float>(); }), said);
  EXPECT_CONTAINS(error_of([&] { leaked.data<float>(); }), said);
  EXPECT_CONTAINS(error_of([&] { bool(leaked[0] > 0.f); }), said);
  EXPECT_CONTAINS(error_of([&] { f(leaked); }), said);
  EXPECT_CONTAINS(error_of([&] { Variable v(leaked); }), said);
  Variable v(ones({2}));
  EXPECT_CONTAINS(error_of([&] { v.assign(leaked); }), said);
  EXPECT_CONTAINS(error_of([&] { size.value(); }), "belongs to a trace that has ended");
  Function g = function("g(x)", [&](Tensor x) { return x + leaked; });
  EXPECT_CONTAINS(error_of([&] { g(ones({2})); }), said);
  EXPECT_EQ(g.trace_count(), 0);
  EXPECT_THROW(leaked + 1, TraceError);
}

TEST_F(Captures, ALeakFromATraceThatThrew) {
  Tensor leaked;
  Function f = function("f(x)", [&](Tensor x) -> Tensor {
    leaked = x * 2;
    throw std::runtime_error("no");
  });
  EXPECT_THROW(f(ones({2})), std::runtime_error);
  EXPECT_CONTAINS(error_of([&] { leaked + 1; }), "has leaked out of the trace of 'f'");
}

TEST_F(Captures, ValuesDoNotExistInATrace) {
  auto error = [](auto use) {
    Function f = function("f(x)", [=](Tensor x) {
      use(x * 2);
      return x;
    });
    std::string text = error_of([&] { f(ones({2})); });
    EXPECT_THROW(f(ones({2})), TraceError);
    EXPECT_CONTAINS(text, "captures_test.cpp:");
    EXPECT_CONTAINS(text, "fix: return the tensor and read it outside, or compute with ops such as where()");
    return text;
  };
  EXPECT_CONTAINS(error([](Tensor x) { x.item<float>({0}); }),
                  "item: the value of f32[x_0] does not exist while 'f' is being traced");
  EXPECT_CONTAINS(error([](Tensor x) { x.data<float>(); }), "data: the value of f32[x_0] does not exist");
  EXPECT_CONTAINS(error([](Tensor x) { x.to_vector<float>(); }), "to_vector: the value of f32[x_0] does not exist");
}

TEST_F(Captures, PrintingATracedTensorDoesNotFail) {
  SKIP_WHEN_VERIFYING();
  std::string text;
  Function f = function("f(x)", [&](Tensor x) {
    text = to_string(x * 2);
    return x;
  });
  f(ones({2}));
  EXPECT_CONTAINS(text, "f32[x_0]");
}

}  // namespace
}  // namespace stet
