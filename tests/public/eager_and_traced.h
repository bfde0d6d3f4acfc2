// A program run eagerly and traced, and what must be the same: results, the state of Variables, the number of traces.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "stet/stet.h"

namespace stet {

/// A program with its own state. It is made anew for every way to run it, so that the ways do not see each other's.
struct Program {
  std::function<std::vector<Tensor>(Tensor)> body;
  std::vector<Variable> variables = {};
};
using MakeProgram = std::function<Program()>;

/// An undefined gradient as a value that can be returned and compared.
inline Tensor known(const Tensor& t) { return t.defined() ? t : full({}, -777); }
inline std::vector<Tensor> known(std::vector<Tensor> tensors) {
  for (Tensor& t : tensors) t = known(t);
  return tensors;
}

/// What a run left: shapes, values, or the text of an error.
struct Outcome {
  std::vector<std::string> shapes;
  std::vector<std::vector<double>> values;
  std::string error;
};

inline Outcome outcome_of(const std::function<std::vector<Tensor>()>& run) {
  Outcome out;
  try {
    for (const Tensor& t : run()) {
      out.shapes.push_back(t.shape().str());
      out.values.push_back(cast(t, DType::f64).to_vector<double>());
    }
  } catch (const std::exception& error) {
    std::string text = error.what();
    out.error = text.substr(0, text.find('\n'));
    out.shapes.clear();
    out.values.clear();
  }
  return out;
}

inline bool close(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= 4e-6 * std::max({1.0, std::abs(a), std::abs(b)});
}

inline std::string text_of(const std::vector<double>& values) {
  std::string text = "[";
  for (double v : values) text += std::to_string(v) + " ";
  return text + "]";
}

inline void expect_equal(const Outcome& eager, const Outcome& traced, const std::string& what) {
  if (eager.error != traced.error) {
    ADD_FAILURE() << what << ": eagerly " << (eager.error.empty() ? "no error" : eager.error) << "; traced "
                  << (traced.error.empty() ? "no error" : traced.error);
    return;
  }
  ASSERT_EQ(eager.shapes, traced.shapes) << what;
  for (std::size_t i = 0; i < eager.values.size(); ++i)
    for (std::size_t e = 0; e < eager.values[i].size(); ++e)
      if (!close(eager.values[i][e], traced.values[i][e])) {
        ADD_FAILURE() << what << ": value " << i << " is " << text_of(eager.values[i]) << " eagerly and "
                      << text_of(traced.values[i]) << " traced";
        return;
      }
}

inline std::vector<Tensor> state_of_variables(const Program& program) {
  std::vector<Tensor> out;
  for (const Variable& v : program.variables) out.push_back(v.read());
  return out;
}

/// Calls `eager` as it is and `traced` through a Function, with each of the inputs: results, errors and Variables agree
/// after every call, and there was one trace.
inline void expect_same(const Program& eager, const Program& traced, const std::vector<Tensor>& inputs, int traces) {
  Function f = function("program(x)", traced.body);
  std::vector<Outcome> expected;
  bool served = false;
  random::seed(11);
  for (const Tensor& x : inputs) {
    expected.push_back(outcome_of([&] { return eager.body(x); }));
    served = served || expected.back().error.empty();
    expected.push_back(outcome_of([&] { return state_of_variables(eager); }));
  }
  ASSERT_TRUE(served) << "every call is an error: " << expected[0].error;
  random::seed(11);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::string call = "call " + std::to_string(i);
    expect_equal(expected[2 * i], outcome_of([&] { return f(inputs[i]); }), call);
    expect_equal(expected[2 * i + 1], outcome_of([&] { return state_of_variables(traced); }),
                 "Variables after " + call);
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_EQ(f.trace_count(), traces) << f.explain();
}

inline void expect_same(const MakeProgram& make, const std::vector<Tensor>& inputs, int traces = 1) {
  expect_same(make(), make(), inputs, traces);
}

/// The same under an eager tape around every call: the gradients of all floating results by the argument and by the
/// Variables agree, and with `second` those of the gradients' squares.
inline void expect_same_gradients(const MakeProgram& make, const std::vector<Tensor>& inputs, bool second = false) {
  Program eager = make(), traced = make();
  Function f = function("program(x)", traced.body);
  auto differentiated = [&](const Program& program, const std::function<std::vector<Tensor>(Tensor)>& run,
                            const Tensor& x) {
    return outcome_of([&] {
      GradientTape outer({.persistent = true}), inner({.persistent = true});
      outer.watch(x);
      inner.watch(x);
      Tensor target = zeros({});
      std::vector<Tensor> out;
      for (const Tensor& result : run(x)) {
        out.push_back(result);
        if (is_floating(result.dtype())) target = target + sum(result * 0.5f);
      }
      std::vector<Tensor> firsts{inner.gradient(target, x)};
      for (const Variable& v : program.variables)
        if (is_floating(v.dtype())) firsts.push_back(inner.gradient(target, v));
      Tensor norm = zeros({});
      for (const Tensor& first : firsts) {
        out.push_back(known(first));
        if (first.defined()) norm = norm + sum(square(first));
      }
      if (second) {
        out.push_back(known(outer.gradient(norm, x)));
        for (const Variable& v : program.variables)
          if (is_floating(v.dtype())) out.push_back(known(outer.gradient(norm, v)));
      }
      for (const Tensor& state : state_of_variables(program)) out.push_back(state);
      return out;
    });
  };
  std::vector<Outcome> expected;
  random::seed(11);
  for (const Tensor& x : inputs) expected.push_back(differentiated(eager, eager.body, x));
  ASSERT_EQ(expected[0].error, "");
  random::seed(11);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    expect_equal(expected[i],
                 differentiated(
                     traced, [&](Tensor x) { return f(x); }, inputs[i]),
                 "call " + std::to_string(i) + " under a tape");
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_LE(f.trace_count(), 1) << f.explain();
}

/// The same with the Function called inside another one.
inline void expect_same_nested(const MakeProgram& make, const std::vector<Tensor>& inputs) {
  auto around = [](const std::function<std::vector<Tensor>(Tensor)>& inner) {
    return [inner](Tensor x) {
      std::vector<Tensor> out = inner(x * 1.f);
      out.push_back(x + 1.f);
      return out;
    };
  };
  Program eager = make(), traced = make();
  eager.body = around(eager.body);
  traced.body = around(function("inner(x)", traced.body));
  expect_same(eager, traced, inputs, 1);
}

}  // namespace stet
