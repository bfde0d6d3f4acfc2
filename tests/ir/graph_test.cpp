#include "stet/ir/graph.h"

#include <gtest/gtest.h>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "tests/compiler/graph_harness.h"

namespace stet {
namespace {

// --- text

TEST(GraphText, OneLinePerNode) {
  SymbolicGraph g;
  Dim s = g.symbol("s", 4);
  ValueId x = g.input(f32, {s, 10}), y = g.input(f32, {10});
  ValueId sum = g.call("add", {x, y});
  ValueId two = g.graph.add_constant({f32, Shape()}, std::string("\0\0\0\x40", 4));
  ValueId scaled = g.call("multiply", {sum, two});
  g.graph.results = {g.call("sum", {scaled}, reduce_over({1}, true)), x};
  EXPECT_EQ(g.graph.str(),
            "%0 = input f32[s,10] number=0, strides=[]\n"
            "%1 = input f32[10] number=1, strides=[]\n"
            "%2 = map<add> f32[s,10] (%0, %1) body=x0 + x1, axes=[(0,1),(*,0)]\n"
            "%3 = constant f32[] 4 bytes\n"
            "%4 = map<multiply> f32[s,10] (%2, %3) body=x0 * x1, axes=[(0,1),(*,*)]\n"
            "%5 = sum f32[s,1] (%4) axes=[1], keepdims=true, body=undefined, operand_axes=[], space=[]\n"
            "results %5 %0\n");
}

TEST(GraphText, TuplesAndParts) {
  Graph graph;
  ValueId x = graph.add_input({f32, {3}});
  static constexpr OpDef pair_row{.name = "pair", .kind = Kind::layout, .summary = "Two values."};
  ValueId pair = graph.add({.op = &pair_row, .inputs = {x}, .results = {{f32, {3}}, {i64, {2}}}});
  PartAttributes second{1};
  graph.results = {graph.add(
      {.op = &part_row, .inputs = {pair}, .attributes = Attributes(view_of(second)), .results = {{i64, {2}}}})};
  EXPECT_EQ(graph.str(),
            "%0 = input f32[3] number=0, strides=[]\n"
            "%1 = pair f32[3] i64[2] (%0)\n"
            "%2 = part(1) i64[2] (%1)\n"
            "results %2\n");
  EXPECT_NO_THROW(verify(graph, "test"));
}

TEST(GraphText, AnEmptyGraph) { EXPECT_EQ(Graph().str(), "results\n"); }

// --- building

TEST(GraphCall, ConditionsOfShapeAlgebraBecomeChecksOfTheGraph) {
  SymbolicGraph g;
  Dim s = g.symbol("s", 12);
  ValueId x = g.input(f32, {s});
  // -1 beside 4: s must be divisible, which no trace is specialised on.
  ValueId y = g.graph.add_call(reshape_row, {x}, sampled(reshape_row, 1, {Dim(4), Dim(-1)}));
  EXPECT_EQ(g.graph.type(y).str(), "f32[4,s // 4]");
  ASSERT_EQ(g.graph.checks.size(), 1u);
  EXPECT_EQ(g.graph.checks[0].fact.str(), "s % 4 == 0");
  EXPECT_EQ(text(g.graph.checks[0].problem),
            "cannot reshape [{}] with {} elements to [{},{}]: {} is not divisible by {}");
  EXPECT_TRUE(g.scope->facts().empty());
}

TEST(GraphCall, ChecksOfRowsBecomeChecksOfTheGraph) {
  SymbolicGraph g;
  ValueId x = g.input(f32, {g.symbol("s", 12)});
  g.call("max", {x}, reduce_over({0}));
  ASSERT_EQ(g.graph.checks.size(), 1u);
  EXPECT_EQ(g.graph.checks[0].fact.str(), "0 < s");
}

// --- substitute, users

TEST(GraphSubstitute, ReachesTypesAttributesAndChecks) {
  SymbolicGraph g;
  Dim a = g.symbol("a", 12), b = g.symbol("b", 12);
  ValueId x = g.graph.add_input({f32, {a, b}}, {b * 2, Dim(1)});
  ValueId flat = g.graph.add_call(reshape_row, {x}, sampled(reshape_row, 0, {a * b}));
  g.call("max", {flat}, reduce_over({0}));
  std::vector<Dim> replacements{b, b};
  Graph done = substitute(g.graph, replacements);
  EXPECT_EQ(done.str(),
            "%0 = input f32[b,b] number=0, strides=[2*b,1]\n"
            "%1 = reshape f32[b*b] (%0) shape=[b*b]\n"
            "%2 = max f32[] (%1) axes=[0], keepdims=false, body=undefined, operand_axes=[], space=[]\n"
            "results\n");
  EXPECT_EQ(done.checks.at(0).fact.str(), "0 < b*b");
  EXPECT_EQ(g.graph.type(x).str(), "f32[a,b]") << "the given graph stays as it is";
  std::vector<Dim> constants{Dim(3), Dim(4)};
  EXPECT_EQ(substitute(g.graph, constants).type(flat).str(), "f32[12]");
}

TEST(GraphUsers, NodesAndResults) {
  Graph graph;
  ValueId x = graph.add_input({f32, {3}}), unused = graph.add_input({f32, {3}});
  ValueId twice = graph.add_call(row_of("multiply"), {x, x});
  graph.results = {twice, x, twice};
  EXPECT_EQ(users(graph), (std::vector<std::vector<int>>{{2, 2, -1}, {}, {-1, -1}}));
  (void)unused;
}

// --- the verifier: one broken graph per rule

std::string refusal(const Graph& graph) {
  try {
    verify(graph, "test");
  } catch (const InternalError& error) {
    std::string text = error.what();
    return text.substr(0, text.find('\n'));
  }
  return "";
}

/// Two inputs [s, 4] and [4], and their sum as the result.
Graph good() {
  SymbolicGraph g;
  ValueId x = g.input(f32, {g.symbol("s", 3), 4}), y = g.input(f32, {4});
  g.graph.results = {g.call("add", {x, y})};
  return g.graph;
}
/// The same with its sum's attributes changed.
template <class Change>
Graph changed_map(Change change) {
  Graph graph = good();
  MapAttributes map = graph.nodes[2].attributes.as<MapAttributes>();
  change(map);
  graph.nodes[2].attributes = Attributes(view_of(map));
  return graph;
}

TEST(GraphVerify, AcceptsAGoodGraph) { EXPECT_EQ(refusal(good()), ""); }
TEST(GraphVerify, EveryNodeHasARow) {
  Graph graph = good();
  graph.nodes[2].op = nullptr;
  EXPECT_EQ(refusal(graph), "graph after test: node %2 ? breaks the rule: every node has a row");
}
TEST(GraphVerify, EveryNodeHasAResult) {
  Graph graph = good();
  graph.nodes[2].results.clear();
  EXPECT_EQ(refusal(graph), "graph after test: node %2 map breaks the rule: every node has a result");
}
TEST(GraphVerify, InputsComeFirst) {
  for (ValueId wrong : {2, 7, -1}) {
    Graph graph = good();
    graph.nodes[2].inputs[0] = wrong;
    EXPECT_EQ(refusal(graph), "graph after test: node %2 map breaks the rule: inputs come first");
  }
}
TEST(GraphVerify, OnlyPartReadsATuple) {
  Graph graph = good();
  graph.nodes[0].results.push_back({f32, {}});
  EXPECT_EQ(refusal(graph), "graph after test: node %2 map breaks the rule: only part() reads a tuple");
}
TEST(GraphVerify, AMapHasABody) {
  EXPECT_EQ(refusal(changed_map([](MapAttributes& map) { map.body = Expr(); })),
            "graph after test: node %2 map breaks the rule: a map without a body");
}
TEST(GraphVerify, TheBodysTypeIsTheResults) {
  EXPECT_EQ(refusal(changed_map([](MapAttributes& map) { map.body = scalar::cast(map.body, f64); })),
            "graph after test: node %2 map breaks the rule: the body's type is not the result's");
}
TEST(GraphVerify, AsManyAxisMapsAsInputs) {
  EXPECT_EQ(refusal(changed_map([](MapAttributes& map) { map.axes.pop_back(); })),
            "graph after test: node %2 map breaks the rule: as many axis maps as inputs");
}
TEST(GraphVerify, NoMoreOperandsThanInputs) {
  EXPECT_EQ(refusal(changed_map([](MapAttributes& map) { map.body = map.body + operand(2, f32); })),
            "graph after test: node %2 map breaks the rule: the body has more operands than inputs");
}
TEST(GraphVerify, AxisMapsOfTheResultsRank) {
  EXPECT_EQ(refusal(changed_map([](MapAttributes& map) { map.axes[0].rank = 1; })),
            "graph after test: node %2 map breaks the rule: an axis map of the result's rank");
}
TEST(GraphVerify, AxisMapsWithinTheOperandsRank) {
  EXPECT_EQ(refusal(changed_map([](MapAttributes& map) { map.axes[1].axes[1] = 1; })),
            "graph after test: node %2 map breaks the rule: an axis map within the operand's rank");
}
TEST(GraphVerify, OperandsOfTheirInputsTypes) {
  EXPECT_EQ(
      refusal(changed_map([](MapAttributes& map) { map.body = operand(0, f32) + scalar::cast(operand(1, f64), f32); })),
      "graph after test: node %2 map breaks the rule: an operand of its input's type");
}
TEST(GraphVerify, PartsAreWithinTheirTuple) {
  auto part_of = [](std::vector<ValueId> inputs, int number, ValueType type) {
    Graph graph = good();
    PartAttributes attributes{number};
    graph.add({.op = &part_row,
               .inputs = std::move(inputs),
               .attributes = Attributes(view_of(attributes)),
               .results = {std::move(type)}});
    return refusal(graph);
  };
  EXPECT_EQ(part_of({0, 1}, 0, {f32, {4}}), "graph after test: node %3 part breaks the rule: part() has one input");
  EXPECT_EQ(part_of({1}, 1, {f32, {4}}), "graph after test: node %3 part breaks the rule: part() is within its tuple");
  EXPECT_EQ(part_of({1}, 0, {f64, {4}}), "graph after test: node %3 part breaks the rule: part() has its type");
  EXPECT_EQ(part_of({1}, 0, {f32, {5}}), "graph after test: node %3 part breaks the rule: part() has its type");
  EXPECT_EQ(part_of({1}, 0, {f32, {4}}), "");
}
TEST(GraphVerify, InputsAreListed) {
  Graph graph = good();
  graph.inputs.pop_back();
  EXPECT_EQ(refusal(graph), "graph after test: node %1 input breaks the rule: inputs are listed");
  graph = good();
  std::swap(graph.inputs[0], graph.inputs[1]);
  EXPECT_EQ(refusal(graph), "graph after test: node %0 input breaks the rule: inputs are listed");
}
TEST(GraphVerify, ArgumentsAreInputNodes) {
  for (ValueId wrong : {2, -1, 9}) {
    Graph graph = good();
    graph.inputs.push_back(wrong);
    EXPECT_EQ(refusal(graph), text("graph after test: argument 2 is %", wrong, ", which is no input node"));
  }
}
TEST(GraphVerify, ConstantsHaveTheBytesOfTheirType) {
  Graph graph = good();
  graph.add_constant({f64, {2}}, std::string(15, '\0'));
  EXPECT_EQ(refusal(graph), "graph after test: node %3 constant breaks the rule: a constant has the bytes of its type");
  SymbolicGraph g;
  g.graph.add_constant({f64, {g.symbol("s", 2)}}, std::string(16, '\0'));
  EXPECT_EQ(refusal(g.graph), "graph after test: node %0 constant breaks the rule: a constant has a constant shape");
}
TEST(GraphVerify, ResultsAreTensorsThatExist) {
  Graph graph = good();
  graph.results = {3};
  EXPECT_EQ(refusal(graph), "graph after test: result %3 does not exist");
  graph = good();
  graph.nodes[2].results.push_back({f32, {}});
  EXPECT_EQ(refusal(graph), "graph after test: node %2 map breaks the rule: a body per result");
  const auto map = graph.nodes[2].attributes.as<MapAttributes>();
  MapsAttributes maps{{map.body, map.body}, map.axes};
  graph.nodes[2].op = &maps_row;
  graph.nodes[2].attributes = Attributes(view_of(maps));
  EXPECT_EQ(refusal(graph), "graph after test: node %2 maps breaks the rule: maps of one shape");
  graph.nodes[2].results[1] = graph.nodes[2].results[0];
  EXPECT_EQ(refusal(graph), "graph after test: result %2 is a tuple");
}
TEST(GraphVerify, AnUpdateIsOfAnInputByAResultOfItsType) {
  SymbolicGraph g;
  ValueId x = g.input(f32, {4}), i = g.input(i32, {4});
  g.graph.results = {g.call("negative", {x}), g.call("negative", {i})};
  g.graph.updates = {{0, 0}, {1, 1}};
  EXPECT_EQ(refusal(g.graph), "");
  EXPECT_NE(g.graph.str().find("result 1 updates input 1"), std::string::npos);
  for (std::vector<Update> wrong :
       std::vector<std::vector<Update>>{{{0, 1}}, {{2, 0}}, {{-1, 0}}, {{0, 2}}, {{0, 0}, {0, 0}}}) {
    g.graph.updates = wrong;
    EXPECT_NE(refusal(g.graph).find("cannot update input"), std::string::npos) << refusal(g.graph);
  }
}

// --- attributes

struct Sampler {
  int number = 1;
  bool flag = false;
  double real = 0.5;
  DType dtype = DType::f32;
  std::string name = "n";
  Dim dim = 3;
  Shape shape = {2, 3};
  std::vector<Dim> dims = {4, 5};
  std::vector<int> numbers = {1, 2};
  Expr body;
  AxisMap axes;
  STET_ATTRIBUTES(number, flag, real, dtype, name, dim, shape, dims, numbers, body, axes)
};

TEST(Attributes, EqualityHashAndTextFollowEveryField) {
  const Sampler base;
  std::vector<std::function<void(Sampler&)>> changes{
      [](Sampler& s) { s.number = 2; },       [](Sampler& s) { s.flag = true; },
      [](Sampler& s) { s.real = 0.25; },      [](Sampler& s) { s.dtype = DType::f64; },
      [](Sampler& s) { s.name = "m"; },       [](Sampler& s) { s.dim = 4; },
      [](Sampler& s) { s.shape = {3, 2}; },   [](Sampler& s) { s.dims = {4}; },
      [](Sampler& s) { s.numbers = {2, 1}; }, [](Sampler& s) { s.body = operand(0, f32); },
      [](Sampler& s) { s.axes = {{2}, 1}; },
  };
  Attributes first(view_of(base)), again(view_of(base));
  EXPECT_TRUE(first == again);
  EXPECT_EQ(first.hash(), again.hash());
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Sampler changed;
    changes[i](changed);
    Attributes other(view_of(changed));
    EXPECT_FALSE(first == other) << i;
    EXPECT_NE(first.hash(), other.hash()) << i;
    EXPECT_NE(first.str(), other.str()) << i;
  }
}

TEST(Attributes, Text) {
  Sampler sampler;
  sampler.body = operand(0, f32) + 1;
  sampler.axes = {{0, -1}, 2};
  EXPECT_EQ(Attributes(view_of(sampler)).str(),
            "number=1, flag=false, real=0.5, dtype=f32, name=n, dim=3, shape=[2,3], dims=[4,5], numbers=[1,2], "
            "body=x0 + 1, axes=(0,*)");
  EXPECT_EQ(Attributes().str(), "");
}

TEST(Attributes, OtherStructsAreNeverEqual) {
  PartAttributes part{1};
  ConstantAttributes constant{""};
  EXPECT_FALSE(Attributes(view_of(part)) == Attributes(view_of(constant)));
  EXPECT_FALSE(Attributes(view_of(part)) == Attributes());
  EXPECT_TRUE(Attributes() == Attributes());
}

TEST(Attributes, MapDimsReachesEveryDimOnceInOrder) {
  Sampler sampler;
  std::string seen;
  Attributes mapped = Attributes(view_of(sampler)).map_dims([&](const Dim& dim) {
    seen += dim.str() + " ";
    return dim * 10;
  });
  EXPECT_EQ(seen, "3 2 3 4 5 ");
  EXPECT_EQ(mapped.as<Sampler>().dim.constant(), 30);
  EXPECT_EQ(mapped.as<Sampler>().shape.str(), "[20,30]");
  EXPECT_EQ(mapped.as<Sampler>().dims[1].constant(), 50);
  EXPECT_EQ(mapped.as<Sampler>().number, 1);
  EXPECT_FALSE(Attributes().map_dims([](const Dim& dim) { return dim; }));
}

TEST(Attributes, CopiesOutliveWhatTheyWereMadeOf) {
  Attributes kept;
  {
    Sampler sampler;
    sampler.name = std::string(100, 'x');
    kept = Attributes(view_of(sampler));
  }
  EXPECT_EQ(kept.as<Sampler>().name, std::string(100, 'x'));
}

}  // namespace
}  // namespace stet
