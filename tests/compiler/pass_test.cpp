// Each pass by itself on a small graph: the graph's text before it is not repeated, the text after it is.
#include <gtest/gtest.h>

#include "stet/cpu/gemm_step.h"
#include "tests/compiler/graph_harness.h"

namespace stet {
namespace {

std::string after(Graph (*pass)(const Graph&), const Graph& graph) {
  Graph done = pass(graph);
  verify(done, "the pass");
  return done.str();
}

Graph node_of(Expr body, Shape shape) {
  Graph graph;
  MapAttributes attributes{body, {}};
  graph.add({.op = &map_row,
             .inputs = {},
             .attributes = Attributes(view_of(attributes)),
             .results = {{body.dtype(), std::move(shape)}}});
  graph.results = {0};
  return graph;
}

std::string constant_bytes(std::initializer_list<float> values) {
  std::string out;
  for (float value : values) out.append(reinterpret_cast<const char*>(&value), sizeof value);
  return out;
}

// --- simplify

TEST(SimplifyPass, DropsWhatChangesNothing) {
  SymbolicGraph g;
  Dim s = g.symbol("s", 4);
  ValueId x = g.input(f32, {s, 6});
  ValueId same = g.cast(x, f32);
  ValueId shaped = g.graph.add_call(reshape_row, {same}, sampled(reshape_row, 1, {s, Dim(6)}));
  ValueId spread = g.graph.add_call(broadcast_to_row, {shaped}, sampled(broadcast_to_row, 0, {s, Dim(6)}));
  g.graph.results = {g.call("negative", {spread})};
  EXPECT_EQ(after(simplify_graph, g.graph),
            "%0 = input f32[s,6] number=0, strides=[]\n"
            "%1 = map<negative> f32[s,6] (%0) body=-x0, axes=[(0,1)]\n"
            "results %1\n");
}

TEST(SimplifyPass, KeepsViewsThatMoveElements) {
  SymbolicGraph g;
  Dim s = g.symbol("s", 4);
  ValueId x = g.input(f32, {s, s});
  ValueId turned = g.graph.add_call(transpose_row, {x}, sampled(transpose_row, 0));
  ValueId backwards = g.graph.add_call(reverse_row, {turned}, sampled(reverse_row, 0));
  g.graph.results = {backwards};
  EXPECT_EQ(after(simplify_graph, g.graph),
            "%0 = input f32[s,s] number=0, strides=[]\n"
            "%1 = transpose f32[s,s] (%0) order=[1,0]\n"
            "%2 = reverse f32[s,s] (%1) axes=[1]\n"
            "results %2\n");
}

TEST(SimplifyPass, SimplifiesBodies) {
  Graph graph;
  ValueId x = graph.add_input({f32, {3}});
  MapAttributes attributes{operand(0, f32) * 1 - 0, {AxisMap{{0}, 1}}};
  graph.results = {graph.add(
      {.op = &map_row, .inputs = {x}, .attributes = Attributes(view_of(attributes)), .results = {{f32, {3}}}})};
  EXPECT_EQ(after(simplify_graph, graph),
            "%0 = input f32[3] number=0, strides=[]\n"
            "results %0\n");
}

// --- fold

TEST(FoldPass, ComputesMapsOfConstants) {
  Graph graph;
  ValueId x = graph.add_constant({f32, {2, 1}}, constant_bytes({1, 2})),
          y = graph.add_constant({f32, {3}}, constant_bytes({10, 20, 30}));
  ValueId sum = graph.add_call(row_of("add"), {x, y});
  graph.results = {graph.add_call(row_of("negative"), {sum})};
  Graph folded = fold_constants(graph);
  EXPECT_EQ(folded.node(folded.results[0]).op, &constant_row);
  EXPECT_EQ(folded.node(folded.results[0]).attributes.as<ConstantAttributes>().bytes,
            constant_bytes({-11, -21, -31, -12, -22, -32}));
}

TEST(FoldPass, LeavesLargeOnesAndInputs) {
  Graph graph;
  ValueId x = graph.add_constant({f32, {2}}, constant_bytes({1, 2})), y = graph.add_input({f32, {2}});
  graph.results = {graph.add_call(row_of("add"), {x, y})};
  EXPECT_EQ(fold_constants(graph).str(), graph.str());
  Graph large = node_of(scalar::cast(loop_index(0), f32), {17});
  EXPECT_EQ(fold_constants(large).str(), large.str());
  Graph small = fold_constants(node_of(scalar::cast(loop_index(0), f32), {3}));
  EXPECT_EQ(small.node(0).attributes.as<ConstantAttributes>().bytes, constant_bytes({0, 1, 2}));
}

TEST(FoldPass, ANumberBecomesPartOfTheMap) {
  SymbolicGraph g;
  Dim n = g.symbol("n", 4);
  ValueId x = g.input(f32, {n, 4}), one = g.graph.add_constant({f32, {}}, constant_bytes({3}));
  // Also one that is shown again and again.
  ValueId many = g.call("broadcast_to", {g.graph.add_constant({f32, {1}}, constant_bytes({5}))},
                        sampled(row_of("broadcast_to"), 0, {n}));
  g.graph.results = {g.call("multiply", {g.call("add", {x, one}), many})};
  Graph folded = drop_dead(fold_constants(g.graph));
  verify(folded, "fold");
  for (const Node& node : folded.nodes) EXPECT_TRUE(node.op == &input_row || node.inputs.size() == 1) << folded.str();
  Array argument = Array::filled(f32, {1, 4}, [](std::int64_t i) { return i; });
  EXPECT_EQ(run_on(*compile_with_facts(g.graph), {&argument, 1})[0].reals(), (std::vector<double>{15, 20, 25, 30}));
}

TEST(FoldPass, RoundsAsGeneratedCodeDoes) {
  for (const char* row : {"exp", "tanh", "log", "sqrt", "sigmoid", "gelu", "erf", "sin"}) {
    Graph graph;
    std::string bytes = constant_bytes({0.1f, 0.7f, 1.3f, 2.9f, 11.f, 0.f});
    graph.results = {graph.add_call(row_of(row), {graph.add_constant({f32, {6}}, bytes)})};
    std::vector<Array> folded = run_on(*compile(graph, all_passes()), {}),
                       computed = run_on(*compile(graph, no_passes()), {});
    EXPECT_EQ(folded[0].bytes, computed[0].bytes) << row;
  }
}

// --- share, dead

TEST(SharePass, MakesEqualNodesOne) {
  SymbolicGraph g;
  ValueId x = g.input(f32, {g.symbol("s", 4)}), y = g.input(f32, {g.graph.type(0).shape[0]});
  ValueId a = g.call("add", {x, y}), b = g.call("add", {x, y}), c = g.call("add", {y, x});
  g.graph.results = {g.call("multiply", {a, b}), c};
  EXPECT_EQ(after(share_common, g.graph),
            "%0 = input f32[s] number=0, strides=[]\n"
            "%1 = input f32[s] number=1, strides=[]\n"
            "%2 = map<add> f32[s] (%0, %1) body=x0 + x1, axes=[(0),(0)]\n"
            "%3 = map<add> f32[s] (%1, %0) body=x0 + x1, axes=[(0),(0)]\n"
            "%4 = map<multiply> f32[s] (%2, %2) body=x0 * x1, axes=[(0),(0)]\n"
            "results %4 %3\n");
}

TEST(SharePass, KeepsNodesThatDifferInAttributesOrTypesAndInputsApart) {
  Graph graph;
  ValueId x = graph.add_input({f32, {2, 3}});
  graph.add_input({f32, {2, 3}});
  graph.results = {graph.add_call(sum_row, {x}, reduce_over({0})), graph.add_call(sum_row, {x}, reduce_over({1})),
                   graph.add_call(mean_row, {x}, reduce_over({0})), graph.add_constant({f32, {1}}, constant_bytes({0})),
                   graph.add_constant({i32, {1}}, constant_bytes({0}))};
  EXPECT_EQ(share_common(graph).str(), graph.str());
}

TEST(SharePass, KeepsLateNodesApart) {
  SymbolicGraph g;
  ValueId x = g.input(f32, {g.symbol("s", 4)});
  ValueId a = g.call("nonzero", {x}), b = g.call("nonzero", {x});
  g.graph.results = {a, b};
  EXPECT_EQ(share_common(g.graph).nodes.size(), 3u);
}

TEST(DeadPass, DropsWhatNoResultNeedsButNoInput) {
  SymbolicGraph g;
  Dim s = g.symbol("s", 4);
  ValueId x = g.input(f32, {s});
  g.input(f64, {s});
  g.call("exp", {g.call("negative", {x})});
  g.graph.results = {g.call("abs", {x})};
  EXPECT_EQ(after(drop_dead, g.graph),
            "%0 = input f32[s] number=0, strides=[]\n"
            "%1 = input f64[s] number=1, strides=[]\n"
            "%2 = map<abs> f32[s] (%0) body=abs(x0), axes=[(0)]\n"
            "results %2\n");
}

TEST(DeadPass, KeepsTheNodeThatALateSizeComesFrom) {
  SymbolicGraph g;
  ValueId x = g.input(f32, {g.symbol("s", 4)}), y = g.input(f32, {});
  ValueId positions = g.call("nonzero", {x});
  Dim count = g.graph.type(positions).shape[0];
  g.call("exp", {x});
  // Nobody wants the positions, only how many there are.
  g.graph.results = {g.graph.add_call(broadcast_to_row, {y}, sampled(broadcast_to_row, 0, {count, Dim(2)}))};
  Graph kept = drop_dead(g.graph);
  EXPECT_EQ(kept.nodes.size(), 4u) << kept.str();
  std::vector<Array> arguments{Array::filled(f32, {5}, [](std::int64_t i) { return i % 2; }),
                               Array::filled(f32, {}, [](std::int64_t) { return 7; })};
  Array spread = run_on(*compile(g.graph, all_passes()), arguments)[0];
  EXPECT_EQ(spread.sizes, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(spread.reals(), std::vector<double>(4, 7));
}

// --- fusion

TEST(FuseMapsPass, PutsAChainIntoItsLastUser) {
  SymbolicGraph g;
  Dim s = g.symbol("s", 4);
  ValueId x = g.input(f32, {s, 3}), y = g.input(f32, {3});
  ValueId sum = g.call("add", {x, y});
  ValueId square = g.call("multiply", {sum, sum});
  g.graph.results = {g.call("subtract", {square, y})};
  EXPECT_EQ(after(fuse_maps, g.graph),
            "%0 = input f32[s,3] number=0, strides=[]\n"
            "%1 = input f32[3] number=1, strides=[]\n"
            "%2 = map<subtract> f32[s,3] (%0, %1) body=t0 = x0 + x1; t0 * t0 - x1, axes=[(0,1),(*,0)]\n"
            "results %2\n");
}

TEST(FuseMapsPass, KeepsValuesWithOtherUsers) {
  SymbolicGraph g;
  ValueId x = g.input(f32, {g.symbol("s", 4)});
  ValueId shared = g.call("exp", {x});
  g.graph.results = {g.call("negative", {shared}), g.call("abs", {shared})};
  EXPECT_EQ(fuse_maps(g.graph).nodes.size(), 4u);
  g.graph.results = {g.call("negative", {shared}), shared};
  EXPECT_EQ(drop_dead(fuse_maps(drop_dead(g.graph))).nodes.size(), 3u) << "a result is a user";
}

TEST(FuseMapsPass, DoesNotRepeatExpensiveWorkForABroadcast) {
  SymbolicGraph g;
  Dim s = g.symbol("s", 4), t = g.symbol("t", 5);
  ValueId row = g.input(f32, {t}), x = g.input(f32, {s, t});
  ValueId expensive = g.call("gelu", {row}), cheap = g.call("negative", {row});
  g.graph.results = {g.call("add", {x, expensive}), g.call("multiply", {x, cheap})};
  Graph fused = fuse_maps(g.graph);
  EXPECT_EQ(fused.str(), text("%0 = input f32[t] number=0, strides=[]\n"
                              "%1 = input f32[s,t] number=1, strides=[]\n"
                              "%2 = map<gelu> f32[t] (%0) body=",
                              g.graph.node(expensive).attributes.as<MapAttributes>().body, ", axes=[(0)]\n",
                              "%3 = map<add> f32[s,t] (%1, %2) body=x0 + x1, axes=[(0,1),(*,0)]\n"
                              "%4 = map<multiply> f32[s,t] (%1, %0) body=x0 * -x1, axes=[(0,1),(*,0)]\n"
                              "results %3 %4\n"));
}

// --- reuse

TEST(ReusePass, AGradientReadsTheResultThatIsThereAnyway) {
  for (const char* row : {"relu", "tanh", "sigmoid", "exp"}) {
    SymbolicGraph g;
    Dim s = g.symbol("s", 4);
    ValueId x = g.input(f32, {s, 8}), bias = g.input(f32, {8}), w = g.input(f32, {8, 3}), d = g.input(f32, {s, 8});
    ValueId z = g.call("add", {x, bias}), y = g.call(row, {z});
    Expr slope = derivative(instantiate(row_of(row), std::vector{f32}).body, 0);
    MapAttributes backward{simplify(operand(1, f32) * slope), {}};
    ValueId back = g.graph.add_call(map_row, {z, d}, Attributes(view_of(backward)));
    g.graph.results = {g.graph.add_call(matmul_row, {y, w}, contract_as(false, false)), back};
    Graph reused = reuse_values(simplify_graph(g.graph));
    EXPECT_EQ(reused.node(back).inputs, (std::vector<ValueId>{y, d})) << row << "\n" << reused.str();
    verify(reused, "reuse");
    auto value = [](std::int64_t i) { return static_cast<double>(i % 13) - 6; };
    std::vector<Array> arguments{Array::filled(f32, {5, 8}, value), Array::filled(f32, {8}, value),
                                 Array::filled(f32, {8, 3}, value), Array::filled(f32, {5, 8}, value)};
    std::vector<Array> with = run_on(*compile_with_facts(g.graph, all_passes()), arguments);
    std::vector<Array> plain = run_on(*compile_with_facts(g.graph, without({"reuse"})), arguments);
    EXPECT_TRUE(same_values(with[1], plain[1])) << row;
    EXPECT_LT(temporaries(*compile_with_facts(g.graph)), temporaries(*compile_with_facts(g.graph, without({"reuse"}))));
  }
}

TEST(ReusePass, NotWhatWouldHaveToBeStoredOrIsNeededBesides) {
  SymbolicGraph g;
  Dim s = g.symbol("s", 4);
  ValueId x = g.input(f32, {s}), y = g.input(f32, {s});
  ValueId inner = g.call("exp", {x});  // goes into the sum
  ValueId kept = g.call("tanh", {y});
  g.graph.results = {g.call("sum", {inner}, reduce_over({0})), g.call("square", {g.call("exp", {x})}), kept};
  MapAttributes both{simplify(operand(0, f32) * scalar::tanh(operand(0, f32))), {}};
  g.graph.results.push_back(g.graph.add_call(map_row, {y}, Attributes(view_of(both))));
  EXPECT_EQ(reuse_values(g.graph).str(), g.graph.str());
}

TEST(FuseReductionsPass, PutsAMapIntoItsReduction) {
  SymbolicGraph g;
  Dim s = g.symbol("s", 4);
  ValueId x = g.input(f32, {s, 3}), y = g.input(f32, {3});
  g.graph.results = {g.call("sum", {g.call("multiply", {x, y})}, reduce_over({1}))};
  EXPECT_EQ(after(fuse_into_reductions, g.graph),
            "%0 = input f32[s,3] number=0, strides=[]\n"
            "%1 = input f32[3] number=1, strides=[]\n"
            "%2 = sum f32[s] (%0, %1) axes=[1], keepdims=false, body=x0 * x1, operand_axes=[(0,1),(*,0)], space=[s,3]\n"
            "results %2\n");
}

TEST(FuseReductionsPass, AMapWithoutInputs) {
  // Loop indices only: the reduction that it goes into has no operands at all.
  for (const char* row : {"sum", "max", "mean", "argmax"}) {
    Graph graph = node_of(scalar::cast(loop_index(1), f32) - scalar::cast(loop_index(0), f32), {4, 50});
    graph.results = {graph.add_call(row_of(row), {0}, reduce_over({1}))};
    EXPECT_TRUE(same_values(run_on(*compile(graph, all_passes()), {})[0], run_on(*compile(graph, no_passes()), {})[0]))
        << row;
  }
}

TEST(FuseEpiloguesPass, PutsBiasAndActivationBehindAProduct) {
  SymbolicGraph g;
  Dim m = g.symbol("m", 4), k = g.symbol("k", 5), n = g.symbol("n", 6);
  ValueId x = g.input(f32, {m, k}), w = g.input(f32, {k, n}), bias = g.input(f32, {n});
  ValueId product = g.graph.add_call(matmul_row, {x, w}, contract_as(false, false));
  g.graph.results = {g.call("relu", {g.call("add", {product, bias})})};
  EXPECT_EQ(after(fuse_epilogues, fuse_maps(g.graph)),
            "%0 = input f32[m,k] number=0, strides=[]\n"
            "%1 = input f32[k,n] number=1, strides=[]\n"
            "%2 = input f32[n] number=2, strides=[]\n"
            "%3 = matmul f32[m,n] (%0, %1, %2) transpose_left=false, transpose_right=false, epilogue=max(x0 + x1, 0), "
            "epilogue_axes=[(*,0)]\n"
            "results %3\n");
}

TEST(FuseEpiloguesPass, LeavesWhatDoesNotFit) {
  auto nodes = [](auto&& consumer) {
    SymbolicGraph g;
    Dim m = g.symbol("m", 4);
    ValueId x = g.input(f32, {m, m}), y = g.input(f32, {m, m}), z = g.input(f32, {Dim(2), m, m});
    ValueId product = g.graph.add_call(matmul_row, {x, y}, contract_as(false, false));
    g.graph.results = {consumer(g, product, x, z)};
    Graph done = fuse_epilogues(g.graph);
    verify(done, "fuse_epilogues");
    return done.nodes.size() - 3;
  };
  using G = SymbolicGraph&;
  EXPECT_EQ(nodes([](G g, ValueId p, ValueId x, ValueId) { return g.call("add", {p, x}); }), 1u);
  EXPECT_EQ(nodes([](G g, ValueId p, ValueId, ValueId) { return g.call("add", {p, p}); }), 2u) << "the product twice";
  EXPECT_EQ(nodes([](G g, ValueId p, ValueId, ValueId z) { return g.call("add", {p, z}); }), 2u) << "another shape";
}

TEST(FuseEpiloguesPass, LeavesAProductThatIsAResultItself) {
  SymbolicGraph g;
  Dim m = g.symbol("m", 4);
  ValueId x = g.input(f32, {m, m});
  ValueId product = g.graph.add_call(matmul_row, {x, x}, contract_as(false, false));
  g.graph.results = {g.call("negative", {product}), product};
  EXPECT_EQ(fuse_epilogues(g.graph).nodes.size(), 3u);
}

// --- whole programs

TEST(FusedPrograms, AChainWritesNoTemporaries) {
  SymbolicGraph g;
  Dim s = g.symbol("s", 100), t = g.symbol("t", 30);
  ValueId x = g.input(f32, {s, t}), y = g.input(f32, {t});
  ValueId value = x;
  for (int i = 0; i < 20; ++i)
    value = g.call(i % 2 ? "tanh" : "add", i % 2 ? std::vector{value} : std::vector{value, y});
  g.graph.results = {value};
  std::shared_ptr<Program> fused = compile(g.graph, all_passes()), plain = compile(g.graph, no_passes());
  EXPECT_EQ(temporaries(*fused), 0) << fused->str();
  EXPECT_EQ(fused->steps.size(), 1u);
  EXPECT_EQ(temporaries(*plain), 19);
  EXPECT_EQ(plain->steps.size(), 20u);
}

TEST(FusedPrograms, AProducerInAReductionIsOneStep) {
  SymbolicGraph g;
  Dim s = g.symbol("s", 100), t = g.symbol("t", 30);
  ValueId x = g.input(f32, {s, t}), y = g.input(f32, {s, t});
  ValueId difference = g.call("subtract", {x, y});
  g.graph.results = {g.call("mean", {g.call("square", {difference})}, reduce_over({0, 1}))};
  std::shared_ptr<Program> program = compile(g.graph, all_passes());
  EXPECT_EQ(program->steps.size(), 1u) << program->str();
  EXPECT_EQ(temporaries(*program), 0);
}

TEST(FusedPrograms, AProductWithBiasAndReluIsOneGemmStep) {
  for (DType type : {f32, f64, f16}) {
    SymbolicGraph g;
    Dim m = g.symbol("m", 33), k = g.symbol("k", 20), n = g.symbol("n", 40);
    ValueId x = g.input(type, {m, k}), w = g.input(type, {n, k}), bias = g.input(type, {n});
    ValueId product = g.graph.add_call(matmul_row, {x, w}, contract_as(false, true));
    g.graph.results = {g.call("relu", {g.call("add", {product, bias})})};
    std::shared_ptr<Program> program = compile(g.graph, all_passes());
    std::size_t widening = type == f16 ? 2 : 0;  // f16 matrices are widened first
    ASSERT_EQ(program->steps.size(), widening + 1) << program->str();
    auto* gemm = dynamic_cast<cpu::GemmStep*>(program->steps.back().get());
    ASSERT_NE(gemm, nullptr);
    EXPECT_TRUE(gemm->spec().epilogue.expression.defined());
    EXPECT_EQ(gemm->spec().operands.size(), 1u);
    EXPECT_EQ(temporaries(*program), static_cast<int>(widening));
  }
}

// --- the pipeline

TEST(Pipeline, EveryPassIsObservedTimedAndCanBeLeftOut) {
  SymbolicGraph g;
  ValueId x = g.input(f32, {g.symbol("s", 4)});
  g.graph.results = {g.call("exp", {x})};
  std::vector<std::string> names;
  for (const Pass& pass : passes()) names.push_back(pass.name);
  EXPECT_EQ(names, (std::vector<std::string>{"merge_loops", "simplify", "fold", "hoist", "share", "dead", "trim_loops",
                                             "reuse", "fuse_maps", "fuse_reductions", "fuse_epilogues", "fuse_rows",
                                             "merge_maps"}));
  for (std::size_t left_out = 0; left_out <= names.size(); ++left_out) {
    std::vector<std::string> seen, expected{"start"};
    CompileOptions options;
    options.observe = [&](const char* pass, const Graph& graph) {
      seen.push_back(pass);
      EXPECT_EQ(graph.results.size(), 1u);
    };
    if (left_out < names.size()) options.without = {names[left_out]};
    for (std::size_t i = 0; i < names.size(); ++i)
      if (i != left_out) expected.push_back(names[i]);
    CompileReport report;
    compile(g.graph, options, &report);
    EXPECT_EQ(seen, expected);
    std::vector<std::string> stages;
    for (const CompileReport::Stage& stage : report.stages) {
      stages.push_back(stage.name);
      EXPECT_GE(stage.milliseconds, 0);
    }
    expected.erase(expected.begin());
    expected.insert(expected.end(), {"lower", "plan", "code"});
    EXPECT_EQ(stages, expected);
  }
}

TEST(Pipeline, VerifiesWhatItIsGiven) {
  Graph graph = node_of(scalar::cast(loop_index(0), f32), {3});
  graph.results = {1};
  EXPECT_THROW(compile(graph, all_passes()), InternalError);
}

}  // namespace
}  // namespace stet
