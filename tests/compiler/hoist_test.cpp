// What the turns of a loop compute alike is computed before it.
#include <gtest/gtest.h>

#include "tests/compiler/graph_harness.h"

namespace stet {
namespace {

constexpr DType f32 = DType::f32;

/// A loop over a state [m, n], in `turns` turns by a size, whose body the test makes of the state and what it captures.
struct LoopGraph {
  SymbolicGraph outer, body;
  Dim m = outer.symbol("m", 3), n = outer.symbol("n", 4), turns = outer.symbol("turns", 5);
  std::vector<ValueId> captured;  // of the outer graph
  ValueId state = -1, place = -1;

  explicit LoopGraph(int count) {
    ValueId begin = outer.input(f32, {m, n});
    outer.input(f32, {turns});
    inputs_ = {begin};
    body.scope = outer.scope;
    body.graph.scope = outer.scope;
    state = body.input(f32, {m, n});
    place = body.input(DType::i64, {});
    for (int i = 0; i < count; ++i) {
      captured.push_back(outer.input(f32, {n, n}));
      inputs_.push_back(captured.back());
      body.input(f32, {n, n});
    }
  }
  ValueId captured_inside(int number) const { return body.graph.inputs[static_cast<std::size_t>(number) + 2]; }

  /// The outer graph: the loop with this next state.
  const Graph& closed(ValueId next) {
    body.graph.results = {next};
    LoopAttributes loop;
    loop.body = std::make_shared<const Graph>(body.graph);
    loop.turns = turns;
    loop.carried = 1;
    outer.graph.results = {outer.graph.add({.op = &loop_row,
                                            .inputs = inputs_,
                                            .attributes = Attributes(view_of(loop)),
                                            .results = {{f32, Shape{m, n}}},
                                            .label = "loop"})};
    return outer.graph;
  }

 private:
  std::vector<ValueId> inputs_;
};

int count_of(const Graph& graph, Kind kind) {
  int count = 0;
  for (const Node& node : graph.nodes) count += node.op->kind == kind;
  return count;
}

const Node& loop_in(const Graph& graph) {
  for (const Node& node : graph.nodes)
    if (node.op->kind == Kind::loop) return node;
  throw std::runtime_error("there is no loop");
}

const Graph& body_in(const Graph& graph) { return *loop_in(graph).attributes.as<LoopAttributes>().body; }

/// With and without the pass, on two sizes and no turn at all.
void expect_same_results(const Graph& graph, std::size_t inputs) {
  std::shared_ptr<Program> plain = compile_with_facts(graph, no_passes());
  std::shared_ptr<Program> all = compile_with_facts(graph, all_passes());
  std::shared_ptr<Program> rest = compile_with_facts(graph, without({"hoist"}));
  for (auto [m, n, turns] : {std::array<std::int64_t, 3>{3, 4, 5}, {17, 33, 2}, {1, 1, 1}, {2, 3, 0}}) {
    std::vector<Array> given{Array::filled(f32, {m, n}, [](std::int64_t i) { return 0.1 * double(i % 7) - 0.2; }),
                             Array::zeros(f32, {turns})};
    while (given.size() < inputs)
      given.push_back(Array::filled(f32, {n, n}, [&](std::int64_t i) { return 0.3 - 0.05 * double((i * 5) % 11); }));
    const std::vector<double> want = run_on(*plain, given)[0].reals();
    for (const auto& program : {all, rest}) {
      const std::vector<double> got = run_on(*program, given)[0].reals();
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        EXPECT_NEAR(got[i], want[i], 1e-5 * (1 + std::abs(want[i]))) << m << "x" << n << " in " << turns << " turns";
    }
  }
}

TEST(Hoist, AProductOfWhatIsCapturedIsComputedOnce) {
  LoopGraph g(2);
  ValueId weights = g.body.call("matmul", {g.captured_inside(0), g.captured_inside(1)}, contract_as(false, false));
  const Graph& graph =
      g.closed(g.body.call("matmul", {g.state, g.body.call("tanh", {weights})}, contract_as(false, false)));
  const Graph hoisted = hoist_from_loops(graph);
  verify(hoisted, "hoist");
  EXPECT_EQ(count_of(hoisted, Kind::contract), 1);
  EXPECT_EQ(count_of(hoisted, Kind::map), 1);
  EXPECT_EQ(count_of(body_in(hoisted), Kind::contract), 1);
  EXPECT_EQ(count_of(body_in(hoisted), Kind::map), 0);
  expect_same_results(graph, 4);
}

TEST(Hoist, AMatrixThatIsMultipliedByTransposedIsLaidOutOnceForAllThatDo) {
  LoopGraph g(1);
  ValueId once = g.body.call("matmul", {g.state, g.captured_inside(0)}, contract_as(false, true));
  const Graph& graph =
      g.closed(g.body.call("matmul", {g.body.call("tanh", {once}), g.captured_inside(0)}, contract_as(false, true)));
  const Graph hoisted = hoist_from_loops(graph);
  verify(hoisted, "hoist");
  EXPECT_EQ(count_of(hoisted, Kind::map), 1);
  for (const Node& node : body_in(hoisted).nodes)
    if (node.op->kind == Kind::contract) {
      EXPECT_FALSE(node.attributes.as<ContractAttributes>().transpose_right);
    }
  expect_same_results(graph, 3);
}

TEST(Hoist, WhatDependsOnTheTurnStays) {
  LoopGraph g(1);
  ValueId scaled = g.body.call("multiply", {g.captured_inside(0), g.body.cast(g.place, f32)});
  const Graph& graph = g.closed(g.body.call("matmul", {g.state, scaled}, contract_as(false, false)));
  const Graph hoisted = hoist_from_loops(graph);
  EXPECT_EQ(loop_in(hoisted).inputs.size(), loop_in(graph).inputs.size());
  EXPECT_EQ(count_of(hoisted, Kind::map), 0);
  expect_same_results(graph, 3);
}

TEST(Hoist, WhatOnlyGrowsStaysWithItsUser) {
  LoopGraph g(1);
  ValueId total = g.body.call("sum", {g.captured_inside(0)}, reduce_over({0, 1}));
  const Graph& graph = g.closed(g.body.call("add", {g.state, g.body.call("exp", {total})}));
  const Graph hoisted = hoist_from_loops(graph);
  verify(hoisted, "hoist");
  EXPECT_EQ(count_of(hoisted, Kind::reduce), 1);
  EXPECT_EQ(count_of(hoisted, Kind::map), 0) << "exp of one number goes into the sum that reads it";
  EXPECT_EQ(count_of(body_in(hoisted), Kind::map), 2);
  expect_same_results(graph, 3);
}

TEST(Hoist, FromALoopInALoopItGoesAllTheWayOut) {
  LoopGraph inner(1);
  ValueId doubled = inner.body.call("add", {inner.captured_inside(0), inner.captured_inside(0)});
  Graph inside = inner.closed(inner.body.call("matmul", {inner.state, doubled}, contract_as(false, false)));
  // The graph around the inner loop, as the body of another: state, place, captured.
  SymbolicGraph outer;
  outer.scope = inner.outer.scope;
  outer.graph.scope = outer.scope;
  ValueId begin = outer.input(f32, {inner.m, inner.n});
  ValueId counted = outer.input(f32, {inner.turns});
  ValueId weights = outer.input(f32, {inner.n, inner.n});
  LoopAttributes loop;
  Graph body;
  body.scope = outer.scope;
  ValueId state = body.add_input({f32, Shape{inner.m, inner.n}});
  body.add_input({DType::i64, Shape{}});
  ValueId captured = body.add_input({f32, Shape{inner.n, inner.n}});
  Node turn = loop_in(inside);
  turn.inputs = {state, captured};
  body.results = {body.add(turn)};
  loop.body = std::make_shared<const Graph>(body);
  loop.turns = inner.turns;
  loop.carried = 1;
  outer.graph.results = {outer.graph.add({.op = &loop_row,
                                          .inputs = {begin, weights},
                                          .attributes = Attributes(view_of(loop)),
                                          .results = {{f32, Shape{inner.m, inner.n}}},
                                          .label = "loop"})};
  static_cast<void>(counted);
  CompileOptions options = all_passes();
  int outside = -1;
  options.observe = [&](const std::string& pass, const Graph& graph) {
    if (pass == "hoist") outside = count_of(graph, Kind::map);
  };
  compile_with_facts(outer.graph, options);
  EXPECT_EQ(outside, 1);
  expect_same_results(outer.graph, 3);
}

}  // namespace
}  // namespace stet
