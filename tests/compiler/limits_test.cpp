// Graphs at the edge: nothing in them, the same thing twice, very much of one thing, views that matrices do not like.
#include <gtest/gtest.h>

#include <chrono>

#include "stet/cpu/emit_kernel.h"
#include "tests/compiler/graph_harness.h"

namespace stet {
namespace {

double counted(std::int64_t i) { return static_cast<double>(i % 17) - 8; }

/// All passes and none give these results.
void expect_results(const Graph& graph, std::span<const Array> arguments,
                    const std::vector<std::vector<double>>& expected) {
  for (const CompileOptions& options : {all_passes(), no_passes()}) {
    std::vector<Array> got = run_on(*compile_with_facts(graph, options), arguments);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(got[i].reals(), expected[i]) << "result " << i;
  }
}

// --- what is returned

TEST(GraphLimits, NoNodesAtAll) { expect_results(Graph(), {}, {}); }

TEST(GraphLimits, InputsNobodyUses) {
  SymbolicGraph g;
  ValueId x = g.input(f32, {g.symbol("s", 3)});
  g.input(f64, {g.symbol("t", 4), 2});
  g.graph.results = {g.call("negative", {x})};
  Array arguments[] = {Array::filled(f32, {3}, counted), Array::filled(f64, {5, 2}, counted)};
  expect_results(g.graph, arguments, {{8, 7, 6}});
}

TEST(GraphLimits, AnInputAConstantAViewAndOneValueTwiceAsResults) {
  SymbolicGraph g;
  Dim s = g.symbol("s", 3);
  ValueId x = g.input(f32, {s, 2});
  std::string bytes;
  for (float value : {4.f, 5.f}) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  ValueId constant = g.graph.add_constant({f32, {2}}, bytes);
  ValueId turned = g.graph.add_call(transpose_row, {x}, sampled(transpose_row, 0));
  ValueId negative = g.call("negative", {x});
  ValueId view_of_result = g.graph.add_call(reverse_row, {negative}, sampled(reverse_row, 1));
  g.graph.results = {x, constant, turned, negative, negative, view_of_result, x};
  Array arguments[] = {Array::filled(f32, {3, 2}, [](std::int64_t i) { return i; })};
  expect_results(g.graph, arguments,
                 {{0, 1, 2, 3, 4, 5},
                  {4, 5},
                  {0, 2, 4, 1, 3, 5},
                  {0, -1, -2, -3, -4, -5},
                  {0, -1, -2, -3, -4, -5},
                  {-4, -5, -2, -3, 0, -1},
                  {0, 1, 2, 3, 4, 5}});
}

TEST(GraphLimits, ResultsAreBuffersOfTheirOwn) {
  SymbolicGraph g;
  ValueId x = g.input(f32, {g.symbol("s", 3)});
  ValueId y = g.call("negative", {x});
  g.graph.results = {y, y, x};
  std::shared_ptr<Program> program = compile(g.graph);
  Array argument = Array::filled(f32, {3}, counted);
  void* inputs[] = {argument.bytes.data()};
  Buffer results[3];
  bind_to(*program, {&argument, 1})->run(inputs, results);
  EXPECT_NE(results[0].data(), results[1].data());
  EXPECT_NE(static_cast<void*>(results[2].data()), inputs[0]);
  for (const Buffer& result : results) EXPECT_TRUE(result.unique());
}

TEST(GraphLimits, ScalarsAndEmptyTensors) {
  SymbolicGraph g;
  ValueId x = g.input(f32, {}), y = g.input(f32, {g.symbol("s", 3), 0});
  g.graph.results = {g.call("sum", {x}, reduce_over({})), g.call("argmax", {g.call("add", {x, x})}, reduce_over({})),
                     g.call("sum", {y}, reduce_over({1})), g.call("mean", {x}, reduce_over({})),
                     g.call("sum", {g.call("add", {x, y})}, reduce_over({0, 1}, true))};
  Array arguments[] = {Array::filled(f32, {}, [](std::int64_t) { return 3; }), Array::zeros(f32, {2, 0})};
  expect_results(g.graph, arguments, {{3}, {0}, {0, 0}, {3}, {0}});
}

// --- many

TEST(GraphLimits, ConcatOfTwentyParts) {
  SymbolicGraph g;
  std::vector<ValueId> parts;
  std::vector<Array> arguments;
  std::vector<double> all;
  for (int i = 0; i < 20; ++i) {
    parts.push_back(g.input(f32, {g.symbol("", 2 + i % 3)}));
    arguments.push_back(Array::filled(f32, {2 + i % 3}, [&](std::int64_t at) { return 100 * i + at; }));
    for (double value : arguments.back().reals()) all.push_back(value);
  }
  g.graph.results = {g.graph.add_call(concat_row, parts, sampled(concat_row, 1))};
  expect_results(g.graph, arguments, {all});
}

TEST(GraphLimits, ASumOfFortyOperandsAndItsReduction) {
  // Fusion stops where a kernel would have more buffers than it can: no InternalError, the same numbers.
  SymbolicGraph g;
  Dim s = g.symbol("s", 7);
  std::vector<Array> arguments;
  ValueId sum = -1;
  std::vector<double> expected(7, 0);
  double total = 0;
  for (int i = 0; i < 40; ++i) {
    ValueId x = g.input(f32, {s});
    sum = i ? g.call("add", {sum, x}) : x;
    arguments.push_back(Array::filled(f32, {7}, [&](std::int64_t at) { return counted(at * 5 + i); }));
    for (std::int64_t at = 0; at < 7; ++at) expected[static_cast<std::size_t>(at)] += arguments.back().real(at);
  }
  for (double value : expected) total += value;
  g.graph.results = {g.call("sum", {sum}, reduce_over({0})), sum};
  expect_results(g.graph, arguments, {{total}, expected});
  g.graph.results = {g.call("sum", {sum}, reduce_over({0}))};
  expect_results(g.graph, arguments, {{total}});
}

TEST(GraphLimits, AProductWithManyOperandsInItsEpilogue) {
  SymbolicGraph g;
  Dim m = g.symbol("m", 5);
  ValueId x = g.input(f32, {m, m});
  ValueId value = g.graph.add_call(matmul_row, {x, x}, contract_as(false, false));
  std::vector<Array> arguments{Array::filled(f32, {5, 5}, counted)};
  for (int i = 0; i < 30; ++i) {
    ValueId bias = g.input(f32, {m});
    arguments.push_back(Array::filled(f32, {5}, [&](std::int64_t at) { return at + i; }));
    value = g.call("add", {value, bias});
  }
  g.graph.results = {value};
  std::vector<Array> fused = run_on(*compile(g.graph, all_passes()), arguments),
                     plain = run_on(*compile(g.graph, no_passes()), arguments);
  EXPECT_TRUE(same_values(fused[0], plain[0]));
}

/// Milliseconds that compiling, binding and running a chain of `length` maps take.
double chain_milliseconds(int length, const CompileOptions& options, double expected) {
  auto start = std::chrono::steady_clock::now();
  SymbolicGraph g;
  ValueId x = g.input(i32, {g.symbol("s", 3)}), value = x;
  for (int i = 0; i < length; ++i) value = i % 2 ? g.call("negative", {value}) : g.call("add", {value, x});
  g.graph.results = {value};
  std::shared_ptr<Program> program = compile(g.graph, options);
  Array argument = Array::filled(i32, {4}, [](std::int64_t) { return 3; });
  EXPECT_EQ(run_on(*program, {&argument, 1})[0].reals(), std::vector<double>(4, expected));
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

TEST(GraphLimits, AHundredThousandMapsInAChain) {
  // No recursion over the graph, and time that grows with its length, not with its square. (x -> -(x + 3) twice is x.)
  for (const CompileOptions& options : {CompileOptions{}, no_passes()}) {
    double few = chain_milliseconds(10'000, options, 3), many = chain_milliseconds(100'000, options, 3);
    EXPECT_LT(many, 40 * few + 1000);
  }
}

TEST(GraphLimits, ATallTreeOfSharedValues) {
  // Every value is used twice: as an expression it would have 2^200 nodes.
  SymbolicGraph g;
  ValueId value = g.input(i32, {g.symbol("s", 3)});
  for (int i = 0; i < 200; ++i) value = g.call("add", {value, value});
  g.graph.results = {value};
  Array argument = Array::filled(i32, {4}, [](std::int64_t) { return 3; });
  expect_results(g.graph, {&argument, 1}, {{0, 0, 0, 0}});
}

// --- views

TEST(GraphLimits, ProductsOfReversedSlicedAndTransposedMatrices) {
  bool before = cpu::checked_kernels();
  for (DType type : {f32, f64, f16, i32})
    for (int left = 0; left < 5; ++left)
      for (int right = 0; right < 5; ++right) {
        SymbolicGraph g;
        Dim s = g.symbol("s", 6);
        ValueId x = g.input(type, {s, s}), y = g.input(type, {s, s});
        auto viewed = [&](ValueId from, int how) {
          if (how == 1) return g.graph.add_call(reverse_row, {from}, sampled(reverse_row, 0));
          if (how == 2) return g.graph.add_call(reverse_row, {from}, sampled(reverse_row, 1));
          if (how == 3) return g.graph.add_call(transpose_row, {from}, sampled(transpose_row, 0));
          if (how == 4)
            return g.graph.add_call(transpose_row, {g.graph.add_call(reverse_row, {from}, sampled(reverse_row, 2))},
                                    sampled(transpose_row, 0));
          return from;
        };
        ValueId a = viewed(x, left), b = viewed(y, right);
        g.graph.results = {g.graph.add_call(matmul_row, {a, b}, contract_as(false, false)), a, b};
        std::vector<Array> arguments{Array::filled(type, {7, 7}, counted),
                                     Array::filled(type, {7, 7}, [](std::int64_t i) { return counted(3 * i + 1); })};
        for (bool checked : {false, true}) {
          cpu::set_checked_kernels(checked);
          std::vector<Array> got = run_on(*compile(g.graph, all_passes()), arguments);
          for (std::int64_t i = 0; i < 49; ++i) {
            double sum = 0;
            for (std::int64_t k = 0; k < 7; ++k) sum += got[1].real(i / 7 * 7 + k) * got[2].real(k * 7 + i % 7);
            ASSERT_EQ(got[0].real(i), sum) << name(type) << " left " << left << " right " << right << " at " << i;
          }
        }
      }
  cpu::set_checked_kernels(before);
}

TEST(GraphLimits, SizesThatChecksRefuse) {
  SymbolicGraph g;
  Dim s = g.symbol("s", 12);
  ValueId x = g.input(f32, {s});
  ValueId shaped = g.graph.add_call(reshape_row, {x}, sampled(reshape_row, 1, {Dim(4), Dim(-1)}));
  g.graph.results = {g.call("max", {shaped}, reduce_over({1}))};
  std::shared_ptr<Program> program = compile_with_facts(g.graph);
  auto problem = [&](std::int64_t size) -> std::string {
    Array argument = Array::filled(f32, {size}, [](std::int64_t i) { return i; });
    try {
      run_on(*program, {&argument, 1});
    } catch (const Problem& caught) {
      return caught.text();
    }
    return "";
  };
  EXPECT_EQ(problem(8), "");
  EXPECT_EQ(problem(10), "cannot reshape [10] with 10 elements to [4,-1]: 10 is not divisible by 4");
  EXPECT_EQ(problem(0), "an empty axis has no largest or smallest element");
}

}  // namespace
}  // namespace stet
