// Traced functions as a user sees them.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;

namespace {

using Floats = std::vector<float>;

/// Collects explanations instead of writing them to stderr.
class FunctionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    on_retrace([this](const RetraceEvent& event) { explanations.push_back(event.explanation); });
  }
  void TearDown() override { on_retrace({}); }
  std::vector<std::string> explanations;
};

TEST_F(FunctionTest, OneTraceForEverySize) {
  int runs = 0;
  Function f = function("f(x, y)", [&](Tensor x, Tensor y) {
    runs += tracing_run();
    return relu(matmul(x, y) * 2 + 1);
  });
  std::mt19937 random(1);
  for (int i = 0; i < 30; ++i) {
    auto size = [&] { return static_cast<std::int64_t>(random() % 20); };
    std::int64_t m = i == 0 ? 1 : size(), k = i == 0 ? 1 : size(), n = i == 0 ? 1 : size();
    Tensor x = random::normal({m, k}), y = random::normal({k, n});
    EXPECT_EQ(f(x, y).to_vector<float>(), relu(matmul(x, y) * 2 + 1).to_vector<float>());
  }
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(runs, 2);  // the first trace runs twice, hits never
  EXPECT_CONTAINS(f.explain(), "f: 1 trace");
  EXPECT_CONTAINS(f.explain(), "fact x_1 == y_0, for matmul at ");
  EXPECT_TRUE(explanations.empty());
}

TEST_F(FunctionTest, ExplainsARetrace) {
  Function f = function("train_step(x, n)", [](Tensor x, Tensor n) { return x * n; });
  f(tensor({1.f, 2.f}), 3.f);
  f(tensor({1.f, 2.f, 3.f}), 3.f);
  EXPECT_EQ(f.trace_count(), 1);
  f(tensor({1.0, 2.0}), 3.f);
  EXPECT_EQ(f.trace_count(), 2);
  ASSERT_EQ(explanations.size(), 1u);
  EXPECT_CONTAINS(explanations[0], "stet: tracing 'train_step' again (trace 2), called at ");
  EXPECT_CONTAINS(explanations[0], "function_test.cpp:");
  EXPECT_CONTAINS(explanations[0], "argument 0 'x'  f32[x_0] -> f64[2]   dtype changed");
  EXPECT_CONTAINS(explanations[0], "ms and has served 2 calls");
  EXPECT_CONTAINS(explanations[0], "fix             cast(x, f32) before the call");
  NoRetrace guard;
  f(tensor({1.f}), 3.f);
  EXPECT_CONTAINS(error_of([&] { f(tensor({{1.f}}), 3.f); }), "rank changed");
  EXPECT_EQ(f.trace_count(), 2);
}

TEST_F(FunctionTest, SizesThatHostCodeReadAreFacts) {
  Function f = function("f(x)", [](Tensor x) {
    Tensor out = x;
    if (x.dim(0) > 4) out = out * 2;
    return out / x.dim(0);
  });
  EXPECT_EQ(f(ones({2})).to_vector<float>(), Floats(2, 0.5f));
  EXPECT_EQ(f(ones({4})).to_vector<float>(), Floats(4, 0.25f));
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(f(ones({8})).to_vector<float>(), Floats(8, 0.25f));
  EXPECT_EQ(f(ones({16})).to_vector<float>(), Floats(16, 0.125f));
  EXPECT_EQ(f.trace_count(), 2);
  EXPECT_CONTAINS(explanations.at(0), "does not hold any more");
}

TEST_F(FunctionTest, CppNumbersArePartOfTheTrace) {
  Function f = function("f(x, rate)", [](Tensor x, float rate) { return x * rate; });
  f(ones({2}), 0.1f);
  f(ones({2}), 0.1f);
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(f(ones({2}), 0.5f).to_vector<float>(), Floats(2, 0.5f));
  EXPECT_EQ(f.trace_count(), 2);
  EXPECT_CONTAINS(explanations.at(0), "the value of a C++ number changed");
  EXPECT_CONTAINS(explanations.at(0),
                  "declare rate as Scalar instead of a C++ number: then it is an input of the program");
}

struct Pair {
  Tensor first, second;
  STET_FIELDS(first, second)
};

TEST_F(FunctionTest, StructuresGoInAndOut) {
  Function f = function("f(list, pair)", [](std::vector<Tensor> list, Pair pair) {
    Tensor total = pair.first;
    for (const Tensor& t : list) total = total + t;
    return std::tuple{total, Pair{pair.second, total * 2}, std::vector<Tensor>{total, pair.second}};
  });
  auto [total, pair, list] = f({tensor(1.f), tensor(2.f)}, Pair{tensor(10.f), tensor(20.f)});
  EXPECT_EQ(total.item<float>(), 13);
  EXPECT_EQ(pair.first.item<float>(), 20);
  EXPECT_EQ(pair.second.item<float>(), 26);
  EXPECT_EQ(list.size(), 2u);
  f({tensor(1.f)}, Pair{tensor(10.f), tensor(20.f)});
  EXPECT_EQ(f.trace_count(), 2);
  EXPECT_CONTAINS(explanations.at(0), "another number of elements");
}

TEST_F(FunctionTest, VariablesAreState) {
  Variable count(tensor(0.f)), weight(tensor({1.f, 2.f}));
  Function f = function("f(x)", [=](Tensor x) {
    count.assign_add(1.f);
    weight.assign(weight * 2);
    return x * weight + count;
  });
  EXPECT_EQ(f(tensor(1.f)).to_vector<float>(), (Floats{3, 5}));
  EXPECT_EQ(f(tensor(1.f)).to_vector<float>(), (Floats{6, 10}));
  EXPECT_EQ(count.value().item<float>(), 2);
  weight.assign(tensor({0.f, 0.f}));  // seen by the next call
  EXPECT_EQ(f(tensor(1.f)).to_vector<float>(), (Floats{3, 3}));
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_F(FunctionTest, ACallThatThrowsChangesNothing) {
  Variable count(tensor(0.f));
  Function f = function("pick(x, i)", [=](Tensor x, Tensor i) {
    count.assign_add(1.f);
    return gather(x, i);
  });
  f(ones({3}), tensor({2}));
  std::string error = error_of([&] { f(ones({3}), tensor({5})); });
  EXPECT_CONTAINS(error, "gather: 'indices' holds index 5 at position 0, out of range: allowed are 0 to 2");
  EXPECT_EQ(count.value().item<float>(), 1);
  f(ones({9}), tensor({5}));
  EXPECT_EQ(count.value().item<float>(), 2);
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_F(FunctionTest, AFailedTraceAddsNothing) {
  Variable count(tensor(0.f));
  Function f = function("f(x)", [=](Tensor x) {
    count.assign_add(1.f);
    return matmul(x, ones({3, 2}));
  });
  std::string error = error_of([&] { f(ones({4, 5})); });
  EXPECT_CONTAINS(error, "matmul: ");
  EXPECT_EQ(f.trace_count(), 0);
  EXPECT_EQ(count.value().item<float>(), 0);
  EXPECT_EQ(f(ones({4, 3})).to_vector<float>(), Floats(8, 3));
}

TEST_F(FunctionTest, CatchesHostRandomness) {
  std::mt19937 g;
  Function f = function("f(x)", [&](Tensor x) { return x * std::uniform_real_distribution<float>()(g); });
  std::string error = error_of([&] { f(ones({2})); });
  EXPECT_CONTAINS(error, "tracing 'f' twice gave two different programs; they part at ");
  EXPECT_CONTAINS(error, "function_test.cpp:");
  EXPECT_EQ(f.trace_count(), 0);
}

TEST_F(FunctionTest, RandomOpsDrawAnewAtEveryCall) {
  Function f = function("f(x)", [](Tensor x) { return x + random::normal({x.dim(0), 3}); });
  random::seed(9);
  Tensor a = f(zeros({2, 3})), b = f(zeros({2, 3}));
  EXPECT_NE(a.to_vector<float>(), b.to_vector<float>());
  random::seed(9);
  EXPECT_EQ(random::normal({2, 3}).to_vector<float>(), a.to_vector<float>());  // eager and traced agree
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_F(FunctionTest, ReadingATracedValueSaysWhatToDo) {
  SKIP_WHEN_VERIFYING();
  Function f = function("f(x)", [](Tensor x) { return x * sum(x).item<float>(); });
  std::string error = error_of([&] { f(ones({2})); });
  EXPECT_CONTAINS(error, "item: the value of f32[] does not exist while 'f' is being traced");
  EXPECT_CONTAINS(error, "function_test.cpp:");
  Tensor leaked;
  Function g = function("g(x)", [&](Tensor x) {
    leaked = x * 2;
    return leaked;
  });
  ::testing::internal::CaptureStderr();
  g(ones({2}));
  ::testing::internal::GetCapturedStderr();
  EXPECT_CONTAINS(error_of([&] { leaked + 1; }), "has leaked out of the trace of 'g'");
  EXPECT_CONTAINS(error_of([&] { leaked.item<float>(); }), "has leaked out of the trace of 'g'");
}

TEST_F(FunctionTest, AWholeTrainingStepIsOneProgram) {
  random::seed(4);
  Variable w1(random::normal({8, 16}, {.stddev = 0.3})), b1(zeros({16})), w2(random::normal({16, 3}, {.stddev = 0.3})),
      b2(zeros({3}));
  std::vector<Variable> variables{w1, b1, w2, b2};
  auto step = [=](Tensor x, Tensor y) {
    GradientTape tape;
    Tensor hidden = relu(matmul(x, w1) + b1);
    Tensor loss = mean(sparse_cross_entropy(y, matmul(hidden, w2) + b2));
    std::vector<Tensor> d = tape.gradient(loss, variables);
    for (std::size_t i = 0; i < variables.size(); ++i) variables[i].assign_sub(0.1f * d[i]);
    return loss;
  };
  Function traced = function("train_step(x, y)", step);
  std::vector<Tensor> start;
  for (const Variable& v : variables) start.push_back(v.value());
  std::vector<Tensor> xs, ys;
  for (std::int64_t batch : {10, 20, 10, 30, 1}) {
    xs.push_back(random::normal({batch, 8}));
    ys.push_back(random::randint({batch}, 0, 3));
  }
  Floats eager, compiled;
  for (std::size_t i = 0; i < xs.size(); ++i) eager.push_back(step(xs[i], ys[i]).item<float>());
  for (std::size_t i = 0; i < variables.size(); ++i) variables[i].assign(start[i]);
  for (std::size_t i = 0; i < xs.size(); ++i) compiled.push_back(traced(xs[i], ys[i]).item<float>());
  for (std::size_t i = 0; i < xs.size(); ++i) EXPECT_NEAR(eager[i], compiled[i], 1e-5 * std::abs(eager[i])) << i;
  EXPECT_EQ(traced.trace_count(), 1);
}

TEST_F(FunctionTest, GradientsThroughAFunction) {
  Variable w(tensor({2.f, 3.f}));
  Function f = function("f(x)", [=](Tensor x) { return sum(square(x * w)); });
  Tensor x = tensor({1.f, 2.f});
  GradientTape tape;
  tape.watch(x);
  Tensor y = f(x);
  std::vector<Tensor> d = tape.gradient(y, std::vector<GradientTape::Source>{x, w});
  EXPECT_EQ(d[0].to_vector<float>(), (Floats{8, 36}));
  EXPECT_EQ(d[1].to_vector<float>(), (Floats{4, 24}));
}

TEST_F(FunctionTest, FunctionsInsideFunctionsAreInlined) {
  Function inner = function("inner(x)", [](Tensor x) { return x * x; });
  Function outer = function("outer(x)", [=](Tensor x) { return inner(x) + inner(x + 1); });
  EXPECT_EQ(outer(tensor(2.f)).item<float>(), 13);
  EXPECT_EQ(inner.trace_count(), 0);
  EXPECT_EQ(outer.trace_count(), 1);
}

TEST_F(FunctionTest, GradientsOfManyReadsAddUpInOneOrder) {
  // In an order of addresses the two runs of the first trace would differ.
  std::vector<Variable> variables;
  for (int i = 0; i < 12; ++i) variables.emplace_back(ones({2}) * i);
  Function f = function("f(x)", [=](Tensor x) {
    GradientTape tape;
    Tensor total = x;
    for (int round = 0; round < 4; ++round)
      for (const Variable& v : variables) total = total * 0.5f + v * v;
    return tape.gradient(total, variables);
  });
  std::vector<Tensor> d = f(ones({2}));
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(f(ones({2}))[11].to_vector<float>(), d[11].to_vector<float>());
}

TEST_F(FunctionTest, KeepsABoundedNumberOfTraces) {
  Function f = function("f(x, n)", [](Tensor x, int n) { return x * n; }, {.max_traces = 2});
  for (int n = 0; n < 3; ++n) f(ones({2}), n);
  EXPECT_EQ(f.trace_count(), 3);
  ASSERT_EQ(explanations.size(), 2u);
  EXPECT_CONTAINS(explanations[1], "warning         2 traces are kept at most; one that served 1 calls is forgotten");
}

TEST_F(FunctionTest, ListsWhatATraceHoldsOn) {
  Variable w(ones({3}), {.name = "w"});
  Tensor large = transpose(reshape(cast(arange(40), f32), {4, 10}));  // a view: packed when captured
  Function f = function("f(x)", [=](Tensor x) { return sum(x * w) + sum(large * large); });
  EXPECT_EQ(f(ones({3})).item<float>(), 3 + sum(large * large).item<float>());
  EXPECT_CONTAINS(f.explain(), "Variable 'w' f32[3]");
  EXPECT_CONTAINS(f.explain(), "captured f32[10,4], a constant");
  EXPECT_CONTAINS(f.graph(), " = sum f32[]");
  EXPECT_CONTAINS(error_of([&] { f.graph(7); }), "graph: there is no trace 7 of 'f'");
}

TEST_F(FunctionTest, RecursionEndsWithAnError) {
  std::function<Tensor(Tensor)> again;
  Function f = function("f(x)", [&](Tensor x) { return again(x) + 1; });
  again = [&](Tensor x) { return f(x); };
  EXPECT_CONTAINS(error_of([&] { f(ones({2})); }), "'f' is called inside itself more than 100 deep while being traced");
  EXPECT_EQ(f.trace_count(), 0);
}

TEST_F(FunctionTest, AListenerMayCallTheFunction) {
  Function f = function("f(x)", [](Tensor x) { return x * 2; });
  on_retrace([&](const RetraceEvent&) { f(tensor({1.f})); });
  f(tensor({1.f}));
  EXPECT_EQ(f(tensor({1})).item<int>(), 2);
  EXPECT_EQ(f.trace_count(), 2);
}

TEST_F(FunctionTest, ManyThreadsOneTraceNothingLost) {
  Variable total(tensor(0.f));
  Function f = function("f(x)", [=](Tensor x) { return total.assign_add(sum(x)); });
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int n = 0; n < 50; ++n) f(ones({(t * 7 + n) % 50}));
    });
  double expected = 0;
  for (int t = 0; t < 8; ++t)
    for (int n = 0; n < 50; ++n) expected += (t * 7 + n) % 50;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(total.value().item<double>(), expected);
}

TEST_F(FunctionTest, WrongDeclarations) {
  EXPECT_CONTAINS(error_of([] { function("f(x, y)", [](Tensor x) { return x; }); }),
                  "names 2 arguments, the callable takes 1");
  Function f = function("f(v)", [](Variable v) { return v.read(); });
  EXPECT_CONTAINS(error_of([&] { f(Variable()); }), "f: argument 0 'v' is an undefined Variable");
}

}  // namespace
