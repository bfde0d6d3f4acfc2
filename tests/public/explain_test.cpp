// Why a function is traced again: every cause with its text, and the ways to forbid or avoid it.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include <regex>

#include "expect_error.h"
#include "explanations.h"

namespace stet {
namespace {

using Floats = std::vector<float>;

class Explain : public WithExplanations {
 protected:
  /// That the last retrace was told with these lines, its cost, the function, its number and this file's line.
  void expect_told(const std::string& function, int trace, const std::vector<std::string>& lines) {
    ASSERT_EQ(events.size(), static_cast<std::size_t>(trace) - 1) << told();
    EXPECT_EQ(events.back().function, function);
    EXPECT_EQ(events.back().trace, trace);
    EXPECT_CONTAINS(told(), "stet: tracing '" + function + "' again (trace " + std::to_string(trace) + "), called at " +
                                __FILE__ + ":");
    for (const std::string& line : lines) EXPECT_CONTAINS(told(), line);
    static const std::regex cost(
        "\n  cost            [0-9.]+ ms to trace and compile; the nearest trace took [0-9.]+ ms and has served [0-9]+ "
        "calls?\n");
    EXPECT_TRUE(std::regex_search(told(), cost)) << told();
    EXPECT_CONTAINS(told(), "\n  fix             ");
  }
  /// The text of the RetraceError that a call throws where retraces are forbidden.
  template <class Call>
  static std::string refusal_of(Call call) {
    NoRetrace guard;
    try {
      call();
    } catch (const RetraceError& error) {
      return error.what();
    }
    return "no RetraceError";
  }
};

// --- a handle of the test's own

class ScaleBody : public inside::Body {
 public:
  ScaleBody(float factor, std::string name) : factor(tensor(factor)), name(std::move(name)) {}
  std::string description() const override { return "Scale '" + name + "'"; }
  Variable factor;
  std::string name;
};
class Scale {
 public:
  Scale() = default;
  Scale(float factor, std::string name) : body_(std::make_shared<ScaleBody>(factor, std::move(name))) {}
  std::shared_ptr<inside::Body> body() const { return body_; }
  static Scale from_body(std::shared_ptr<inside::Body> body) {
    Scale out;
    out.body_ = std::static_pointer_cast<ScaleBody>(body);
    return out;
  }
  Tensor operator()(const Tensor& x) const { return x * body_->factor; }
  const Variable& factor() const { return body_->factor; }

 private:
  std::shared_ptr<ScaleBody> body_;
};
static_assert(inside::Handle<Scale>);

// --- causes

TEST_F(Explain, AnotherDtype) {
  int runs = 0;
  Function f = function("f(x, y)", [&](Tensor x, Tensor y) {
    runs += tracing_run();
    return x + y;
  });
  f(ones({2, 3}), ones({2, 3}));
  runs = 0;
  std::string refusal = refusal_of([&] { f(ones({2, 3}), ones({2, 3}, f64)); });
  EXPECT_CONTAINS(refusal, "stet: tracing 'f' again (trace 2), called at ");
  EXPECT_CONTAINS(refusal, "argument 1 'y'  f32[y_0,y_1] -> f64[2,3]   dtype changed");
  EXPECT_CONTAINS(refusal, "fix             cast(y, f32) before the call");
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_TRUE(events.empty());
  f(ones({2, 3}), ones({2, 3}, f64));
  EXPECT_EQ(runs, 2);  // every trace is compared
  expect_told("f", 2, {"argument 1 'y'  f32[y_0,y_1] -> f64[2,3]   dtype changed", "cast(y, f32) before the call"});
}

TEST_F(Explain, AnotherRank) {
  Function f = function("f", [](Tensor x) { return x * 2; });  // without names
  f(ones({2}));
  std::string refusal = refusal_of([&] { f(ones({2, 3})); });
  EXPECT_CONTAINS(refusal, "argument 0      f32[a0_0] -> f32[2,3]   rank changed");
  f(ones({2, 3}));
  expect_told("f", 2,
              {"argument 0      f32[a0_0] -> f32[2,3]   rank changed", "reshape or expand_dims a0 to one rank"});
}

TEST_F(Explain, TheNearestTraceIsNamed) {
  Function f = function("f(x, y)", [](Tensor x, Tensor y) { return sum(x) + sum(y); });
  f(ones({2}), ones({2}));
  f(ones({2}, f64), ones({2}, i32));
  f(ones({2, 2}, f64), ones({2}, i32));
  // From the second trace the rank of x differs; from the first its dtype and y's dtype too.
  EXPECT_CONTAINS(told(), "argument 0 'x'  f64[x_0] -> f64[2,2]   rank changed");
  EXPECT_EQ(told().find("'y'"), std::string::npos) << told();
}

TEST_F(Explain, AnotherCppNumber) {
  Function f =
      function("f(x, n, rate, on)", [](Tensor x, int n, double rate, bool on) { return on ? x * n * rate : x; });
  Tensor x = ones({2});
  f(x, 3, 0.5, true);
  EXPECT_CONTAINS(refusal_of([&] { f(x, 4, 0.5, true); }),
                  "argument 1 'n'  3 -> 4   the value of a C++ number changed, and is part of the trace");
  f(x, 4, 0.5, true);
  expect_told("f", 2,
              {"argument 1 'n'  3 -> 4   ",
               "perhaps declare n as Scalar instead of a C++ number: then it is an input of the program"});
  f(x, 4, 0.25, true);
  expect_told("f", 3, {"argument 2 'rate' 0.5 -> 0.25   "});
  f(x, 4, 0.25, false);
  expect_told("f", 4, {"argument 3 'on' true -> false   "});
  f(x, -4, 0.25, false);
  expect_told("f", 5, {"argument 1 'n'  4 -> -4   "});
  f(x, 3, 0.5, true);
  EXPECT_EQ(f.trace_count(), 5);
}

TEST_F(Explain, NumbersAreToldApartByTypeAndBits) {
  int runs = 0;
  Function f = function("f(x, v)", [&](Tensor x, double v) {
    runs += tracing_run();
    return x * v;
  });
  double nan = std::nan("");
  f(ones({1}), nan);
  f(ones({1}), nan);
  EXPECT_EQ(f.trace_count(), 1);
  f(ones({1}), 0.0);
  EXPECT_TRUE(std::signbit(f(ones({1}), -0.0).item<float>()));
  EXPECT_FALSE(std::signbit(f(ones({1}), 0.0).item<float>()));
  EXPECT_EQ(f.trace_count(), 3);
}

TEST_F(Explain, AnotherHandle) {
  int runs = 0;
  Function f = function("f(layer, x)", [&](Scale layer, Tensor x) {
    runs += tracing_run();
    return layer(x);
  });
  Scale two(2.f, "two"), three(3.f, "three"), same = two;
  EXPECT_EQ(f(two, ones({1})).item<float>(), 2);
  EXPECT_EQ(f(same, ones({5})).item<float>({4}), 2);
  two.factor().assign(7.f);  // state, not part of the trace
  EXPECT_EQ(f(two, ones({1})).item<float>(), 7);
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(runs, 2);
  EXPECT_CONTAINS(refusal_of([&] { f(three, ones({1})); }), "argument 0 'layer' Scale 'two' -> Scale 'three'");
  EXPECT_EQ(f(three, ones({1})).item<float>(), 3);
  expect_told("f", 2,
              {"Scale 'two' -> Scale 'three'   another object", "make layer once and pass the same one in every call"});
  EXPECT_EQ(f(two, ones({1})).item<float>(), 7);
  EXPECT_EQ(f.trace_count(), 2);
}

TEST_F(Explain, AHandleIsNotItsAddress) {
  Function f = function("f(layer, x)", [](Scale layer, Tensor x) { return layer(x); });
  for (int n = 1; n <= 20; ++n) EXPECT_EQ(f(Scale(static_cast<float>(n), "brief"), ones({1})).item<float>(), n);
  EXPECT_EQ(f.trace_count(), 20);
}

TEST_F(Explain, AnotherVariable) {
  Function f = function("f(v)", [](Variable v) { return v.assign(v * 2); });
  Variable small(ones({2})), large(ones({3})), whole(ones({2}, i32));
  f(small);
  EXPECT_CONTAINS(refusal_of([&] { f(large); }), "argument 0 'v'  Variable f32[2] -> Variable f32[3]");
  f(large);
  expect_told("f", 2,
              {"Variable f32[2] -> Variable f32[3]   another Variable",
               "pass the same Variable in every call, or its value as a Tensor"});
  f(whole);
  expect_told("f", 3, {"-> Variable i32[2]   another Variable"});
}

TEST_F(Explain, AVectorOfAnotherLength) {
  Function f = function("f(list, x)", [](std::vector<Tensor> list, Tensor x) {
    for (const Tensor& t : list) x = x + t;
    return x;
  });
  Tensor one = ones({2});
  f({one, one}, one);
  EXPECT_CONTAINS(refusal_of([&] { f({one}, one); }), "argument 0 'list' 2 elements -> 1 element");
  EXPECT_EQ(f({one}, one).item<float>({0}), 2);
  expect_told("f", 2, {"2 elements -> 1 element   another number of elements", "stack them into one Tensor"});
  // [a], b and [a, b] are three leaves each: the length tells them apart.
  EXPECT_EQ(f({}, one).item<float>({0}), 1);
  EXPECT_EQ(f.trace_count(), 3);
}

TEST_F(Explain, ASizeThatHostCodeAskedFor) {
  int line = __LINE__ + 1;
  Function f = function("f(x)", [](Tensor x) { return x.dim(0) == 3 ? x * 2 : x; });
  f(ones({3}));
  std::string asked = "host code asked for it at " + std::string(__FILE__) + ":" + std::to_string(line);
  EXPECT_CONTAINS(refusal_of([&] { f(ones({4})); }),
                  "size            x_0 == 3 does not hold any more: x_0 is 4; " + asked);
  f(ones({4}));
  expect_told("f", 2,
              {"size            x_0 == 3 does not hold any more: x_0 is 4; " + asked,
               "perhaps keep the size a Dim in host code at ", "let all calls agree in these sizes"});
}

TEST_F(Explain, ASizeThatAnOpAskedFor) {
  Tensor row = ones({3});
  int line = __LINE__ + 1;
  Function f = function("f(x)", [=](Tensor x) { return x + row; });
  f(ones({3}));
  std::string asked = "add asked for it at " + std::string(__FILE__) + ":" + std::to_string(line);
  EXPECT_CONTAINS(refusal_of([&] { f(ones({1})); }),
                  "size            x_0 == 3 does not hold any more: x_0 is 1; " + asked);
  EXPECT_EQ(f(ones({1})).to_vector<float>(), Floats(3, 2));
  expect_told("f", 2,
              {"x_0 == 3 does not hold any more: x_0 is 1; " + asked,
               "let all calls agree in these sizes, or pad axis 0 of x to 3 (2 traces -> 1)"});
}

// --- how often it is told

TEST_F(Explain, TheSameCauseIsToldWhenItHasComeTwiceAsOften) {
  Function f = function("f(x, n)", [](Tensor x, int n) { return x * n; }, {.max_traces = 100});
  on_retrace({});
  ::testing::internal::CaptureStderr();
  for (int n = 0; n <= 20; ++n) f(ones({1}), n);
  std::string all = ::testing::internal::GetCapturedStderr();
  std::vector<int> numbers;
  static const std::regex headline("tracing 'f' again \\(trace ([0-9]+)\\)");
  for (std::sregex_iterator at(all.begin(), all.end(), headline), end; at != end; ++at)
    numbers.push_back(std::stoi((*at)[1]));
  EXPECT_EQ(numbers, (std::vector<int>{2, 3, 5, 9, 17}));  // the 1st, 2nd, 4th, 8th and 16th retrace
  EXPECT_CONTAINS(all, "again           for the same cause 16 times now");
  // Another cause is news.
  ::testing::internal::CaptureStderr();
  f(ones({1}, f64), 1);
  EXPECT_CONTAINS(::testing::internal::GetCapturedStderr(), "dtype changed");
  // Another function of the same line counts for itself.
  Function g = function("f(x, n)", [](Tensor x, int n) { return x * n; });
  ::testing::internal::CaptureStderr();
  g(ones({1}), 1);
  g(ones({1}), 2);
  EXPECT_CONTAINS(::testing::internal::GetCapturedStderr(), "tracing 'f' again (trace 2)");
}

TEST_F(Explain, AForgottenTraceIsMadeAgain) {
  int runs = 0;
  Function f = function("f(x, n)",
                        [&](Tensor x, int n) {
                          runs += tracing_run();
                          return x * n;
                        },
                        {.max_traces = 2});
  Tensor x = ones({1});
  for (int n : {1, 1, 1, 2, 2, 3}) EXPECT_EQ(f(x, n).item<float>(), n);
  // The one that has not served since the second was made.
  EXPECT_CONTAINS(told(), "warning         2 traces are kept at most; one that served 3 calls is forgotten");
  EXPECT_EQ(f.trace_count(), 3);
  EXPECT_EQ(f(x, 2).item<float>(), 2);  // kept
  EXPECT_EQ(f(x, 3).item<float>(), 3);
  EXPECT_EQ(f.trace_count(), 3);
  runs = 0;
  EXPECT_EQ(f(x, 1).item<float>(), 1);
  EXPECT_GE(runs, 1);
  EXPECT_EQ(f.trace_count(), 4);
}

TEST_F(Explain, AClearedFunctionTracesAnew) {
  int runs = 0;
  Function f = function("f(x)", [&](Tensor x) {
    runs += tracing_run();
    return x * 2;
  });
  f(ones({2}));
  f.clear();
  runs = 0;
  EXPECT_EQ(f(ones({2})).item<float>({1}), 2);
  EXPECT_GT(runs, 0);
  EXPECT_EQ(f.trace_count(), 2);
}

TEST_F(Explain, AListenerThatClearsIsObeyed) {
  Function f = function("f(x)", [](Tensor x) { return x * 2; });
  f(ones({1}));
  on_retrace([&](const RetraceEvent&) { f.clear(); });
  f(ones({1}, i32));
  on_retrace({});
  int before = f.trace_count();
  ::testing::internal::CaptureStderr();
  f(ones({1}, i32));
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(f.trace_count(), before + 1);
}

TEST_F(Explain, NoRetraceLetsTheFirstTraceThroughAndNests) {
  Function f = function("f(x)", [](Tensor x) { return x * 2; });
  NoRetrace outer;
  f(ones({1}));
  {
    NoRetrace inner;
    EXPECT_THROW(f(ones({1}, i32)), RetraceError);
  }
  EXPECT_THROW(f(ones({1}, i32)), RetraceError);
  EXPECT_EQ(f(ones({9})).item<float>({8}), 2);
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_TRUE(events.empty());
}

// --- Variables as arguments

// By identity: host code may keep things by Variable, as an optimizer keeps its slots.
TEST_F(Explain, EachVariableHasItsOwnTrace) {
  Function step = function("step(v, x)", [](Variable v, Tensor x) { return v.assign_add(x) * 2; });
  Variable a(zeros({2})), b(full({2}, 10));
  step(a, ones({2}));
  EXPECT_EQ(step(b, ones({2})).to_vector<float>(), Floats(2, 22));
  step(a, ones({2}));
  step(b, ones({2}) * 3);
  EXPECT_EQ(a.read().to_vector<float>(), Floats(2, 2));
  EXPECT_EQ(b.read().to_vector<float>(), Floats(2, 14));
  EXPECT_EQ(step.trace_count(), 2);
}

TEST_F(Explain, AnOptimizerOfAnArgumentKeepsItsSlotsApart) {
  keras::SGD optimizer(1, {.momentum = 0.5});
  Function step = function("step(v)", [=](Variable v) {
    GradientTape tape;
    Tensor loss = sum(v);
    optimizer.apply_gradients({tape.gradient(loss, v)}, {v});
  });
  Variable a(zeros({1})), b(zeros({1}));
  step(a);
  step(a);
  step(b);
  EXPECT_EQ(a.read().to_vector<float>(), Floats(1, -2.5f));  // -1, then -1.5
  EXPECT_EQ(b.read().to_vector<float>(), Floats(1, -1));
}

TEST_F(Explain, OneVariableTwiceIsAnotherProgram) {
  Function step = function("step(a, b)", [](Variable a, Variable b) {
    a.assign(a + 1);
    b.assign(b * 10);
    return a + b;
  });
  Variable v(tensor(1.f)), w(tensor(2.f));
  EXPECT_EQ(step(v, w).item<float>(), 22);
  EXPECT_EQ(step(v, v).item<float>(), 60);  // (2 + 1) * 10, twice
  EXPECT_EQ(step.trace_count(), 2);
  expect_told("step", 2, {"argument 1 'b'", "another Variable"});
  EXPECT_EQ(step(v, w).item<float>(), 31 + 200);
  EXPECT_EQ(step.trace_count(), 2);
}

TEST_F(Explain, AVariableThatIsCapturedTooIsAnotherProgram) {
  Variable captured(tensor(1.f)), other(tensor(100.f));
  auto body = [=](Variable v) {
    v.assign_add(1.f);
    return captured * 10 + v;
  };
  Function f = function("f(v)", body);
  EXPECT_EQ(f(captured).item<float>(), 22);
  EXPECT_EQ(f(other).item<float>(), 121);  // 2 * 10 + 101
  EXPECT_EQ(f(captured).item<float>(), 33);
  EXPECT_EQ(f.trace_count(), 2);
  expect_told("f", 2, {"argument 0 'v'"});
}

TEST_F(Explain, AVariableThatIsReturnedIsTheOnePassed) {
  Function f = function("f(v)", [](Variable v) { return v; });
  Variable a(tensor(1.f)), b(tensor(2.f));
  EXPECT_EQ(f(a).id(), a.id());
  EXPECT_EQ(f(b).id(), b.id());
  EXPECT_EQ(f(a).id(), a.id());
}

TEST_F(Explain, AScalarOfAnotherKind) {
  Function f = function("f(x, n)", [](Tensor x, Scalar n) { return x * n; });
  f(ones({1}), 2);
  f(ones({1}), 0.5);
  expect_told("f", 2, {"argument 1 'n'", "another kind of number", "pass integers or reals, not both, as n"});
}

TEST_F(Explain, AfterClearTheReasonIsNamed) {
  Function f = function("f(x)", [](Tensor x) { return x * 2; });
  f(ones({1}));
  f.clear();
  f(ones({1}));
  EXPECT_CONTAINS(told(), "none is left: clear() has forgotten them");
}

TEST_F(Explain, VariablesAsArgumentsUnderATape) {
  Function f = function("f(v, x)", [](Variable v, Tensor x) { return sum(v * v * x); });
  Variable a(tensor({1.f, 2.f})), b(tensor({3.f, 4.f}));
  f(a, ones({2}));
  GradientTape tape;
  Tensor y = f(b, ones({2}));
  std::vector<Tensor> d = tape.gradient(y, std::vector<Variable>{a, b});
  EXPECT_FALSE(d[0].defined());
  EXPECT_EQ(d[1].to_vector<float>(), (Floats{6, 8}));
}

}  // namespace
}  // namespace stet
