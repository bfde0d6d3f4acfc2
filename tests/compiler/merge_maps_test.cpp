// Maps that become one loop with several results, and maps that must not.
#include <gtest/gtest.h>

#include "tests/compiler/graph_harness.h"

namespace stet {
namespace {

/// The graph after the pass.
Graph merged(const SymbolicGraph& g) {
  Graph out;
  CompileOptions options = all_passes();
  options.observe = [&](const char* pass, const Graph& graph) {
    if (std::string_view(pass) == "merge_maps") out = graph;
  };
  compile(g.graph, options);
  return out;
}

std::size_t steps(const SymbolicGraph& g, const CompileOptions& options = all_passes()) {
  return compile_with_facts(g.graph, options)->steps.size();
}

/// The same bits with the pass and without.
void expect_same(const SymbolicGraph& g, const std::vector<Array>& arguments) {
  std::vector<Array> with = run_on(*compile_with_facts(g.graph, all_passes()), arguments);
  std::vector<Array> without_it = run_on(*compile_with_facts(g.graph, without({"merge_maps"})), arguments);
  for (std::size_t i = 0; i < with.size(); ++i) EXPECT_TRUE(same_values(with[i], without_it[i])) << "result " << i;
}

Array noise(std::vector<std::int64_t> sizes, std::int64_t seed) {
  return Array::filled(DType::f32, std::move(sizes),
                       [&](std::int64_t i) { return std::sin(static_cast<double>((i + seed) * 7919 % 10007)) + 1.5; });
}

TEST(MergeMaps, AnOptimizersUpdateIsOneLoop) {
  SymbolicGraph g;
  ValueId w = g.input(f32, {37, 50}), m = g.input(f32, {37, 50}), v = g.input(f32, {37, 50});
  ValueId d = g.input(f32, {37, 50}), rate = g.input(f32, {});
  ValueId next_m = g.call("add", {m, g.call("multiply", {g.call("subtract", {d, m}), rate})});
  ValueId next_v = g.call("add", {v, g.call("subtract", {g.call("square", {d}), v})});
  ValueId change = g.call("divide", {g.call("multiply", {rate, next_m}), g.call("sqrt", {next_v})});
  g.graph.results = {next_m, next_v, g.call("subtract", {w, change})};
  EXPECT_EQ(steps(g, without({"merge_maps"})), 3u);
  EXPECT_EQ(steps(g), 1u);
  EXPECT_EQ(temporaries(*compile_with_facts(g.graph)), 0);
  expect_same(g, {noise({37, 50}, 1), noise({37, 50}, 2), noise({37, 50}, 3), noise({37, 50}, 4), noise({}, 5)});
}

TEST(MergeMaps, WhatOnlyMembersNeedIsNotStored) {
  SymbolicGraph g;
  Dim n = g.symbol("n", 100);
  ValueId x = g.input(f32, {n}), y = g.input(f32, {n});
  ValueId e = g.call("exp", {x});
  g.graph.results = {g.call("add", {e, y}), g.call("multiply", {e, y})};
  EXPECT_EQ(steps(g), 1u);
  EXPECT_EQ(temporaries(*compile_with_facts(g.graph)), 0);
  expect_same(g, {noise({101}, 1), noise({101}, 2)});
  // With one result left, it is an ordinary map.
  SymbolicGraph diamond;
  ValueId z = diamond.input(f32, {diamond.symbol("n", 100)});
  ValueId t = diamond.call("tanh", {z});
  diamond.graph.results = {diamond.call("add", {diamond.call("square", {t}), diamond.call("exp", {t})})};
  EXPECT_EQ(steps(diamond), 1u);
  for (const Node& node : merged(diamond).nodes) EXPECT_EQ(node.results.size(), 1u);
  expect_same(diamond, {noise({101}, 1)});
}

TEST(MergeMaps, NotThroughAnotherStep) {
  // The second map needs a sum of the first.
  SymbolicGraph g;
  Dim n = g.symbol("n", 100);
  ValueId x = g.input(f32, {n});
  ValueId e = g.call("exp", {x});
  ValueId total = g.call("sum", {e}, reduce_over({0}));
  g.graph.results = {e, g.call("divide", {e, total})};
  EXPECT_EQ(steps(g), 3u);
  expect_same(g, {noise({101}, 1)});
}

TEST(MergeMaps, TwoPairsThatNeedEachOtherDoNotMergeBoth) {
  // a1 -> sum -> b1 and b2 -> sum -> a2, where a1, a2 read x and b1, b2 read y.
  SymbolicGraph g;
  Dim n = g.symbol("n", 100);
  ValueId x = g.input(f32, {n}), y = g.input(f32, {n});
  ValueId a1 = g.call("exp", {x}), b2 = g.call("tanh", {y});
  ValueId sum_a = g.call("sum", {a1}, reduce_over({0})), sum_b = g.call("sum", {b2}, reduce_over({0}));
  ValueId b1 = g.call("add", {y, sum_a}), a2 = g.call("add", {x, sum_b});
  g.graph.results = {a1, b1, a2, b2};
  EXPECT_EQ(steps(g), 5u);  // six steps, one pair merged
  expect_same(g, {noise({101}, 1), noise({101}, 2)});
}

TEST(MergeMaps, NotWhatIsReadElsewhereOrHasAnotherShape) {
  SymbolicGraph g;
  Dim n = g.symbol("n", 70);
  ValueId x = g.input(f32, {n, n}), row = g.input(f32, {n});
  ValueId e = g.call("exp", {x});
  ValueId turned = g.graph.add_call(transpose_row, {e}, sampled(transpose_row, 0));
  g.graph.results = {e, g.call("add", {e, turned}), g.call("negative", {row}), g.call("add", {x, row})};
  Graph graph = merged(g);
  int tuples = 0;
  for (const Node& node : graph.nodes) tuples += node.results.size() > 1;
  EXPECT_EQ(tuples, 1);  // exp(x) and x + row
  EXPECT_EQ(steps(g), 3u);
  expect_same(g, {noise({70, 70}, 1), noise({70}, 2)});
}

TEST(MergeMaps, ShortRowsKeepFlatLoopsFlat) {
  SymbolicGraph g;
  Dim n = g.symbol("n", 1000);
  ValueId x = g.input(f32, {n, 3}), row = g.input(f32, {3});
  g.graph.results = {g.call("exp", {x}), g.call("add", {x, row})};
  EXPECT_EQ(steps(g), 2u);
}

TEST(MergeMaps, KernelsDoNotGrowWithoutLimit) {
  SymbolicGraph g;
  Dim n = g.symbol("n", 100);
  ValueId x = g.input(f32, {n});
  std::vector<Array> arguments{noise({101}, 0)};
  for (int i = 0; i < 40; ++i) {
    ValueId other = g.input(f32, {n});
    arguments.push_back(noise({101}, i));
    g.graph.results.push_back(g.call("add", {x, other}));
  }
  for (const Node& node : merged(g).nodes) {
    EXPECT_LE(node.results.size(), 8u);
    EXPECT_LE(node.results.size() + node.inputs.size(), 16u);
  }
  EXPECT_LE(steps(g), 10u);
  expect_same(g, arguments);
}

TEST(MergeMaps, OneValueReturnedTwiceAndOneThatIsAnUpdate) {
  SymbolicGraph g;
  ValueId a = g.input(f32, {50}), b = g.input(f32, {50});
  ValueId next = g.call("add", {a, b});
  g.graph.results = {next, next, g.call("multiply", {next, b})};
  g.graph.updates = {{0, 1}, {1, 2}};
  std::shared_ptr<Program> program = compile_with_facts(g.graph, all_passes());
  EXPECT_EQ(program->in_place, (std::vector{-1, 0, 1}));
  expect_same(g, {noise({50}, 1), noise({50}, 2)});
}

}  // namespace
}  // namespace stet
