// Looking at traces: concrete, traces, graph, dot, cost, eval_shape.
#include <thread>

#include "expect_error.h"
#include "explanations.h"

using namespace stet;

namespace {

using Inspection = WithExplanations;

std::string at_line(int line) { return "inspection_test.cpp:" + std::to_string(line); }

Tensor dense(Tensor x, Tensor w) { return relu(matmul(x, w)); }

// --- concrete

TEST_F(Inspection, concrete_traces_without_running) {
  int runs = 0;
  Variable v(zeros({3}));
  Function f = function("f(x)", [&runs, v](Tensor x) {
    runs += tracing_run();
    v.assign_add(sum(x, 0));
    print("run");
    return x * 2;
  });
  std::string printed;
  on_print([&](const std::string& text) { printed += text; });
  ConcreteFunction c = f.concrete({f32, {dyn, 3}});
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(v.read().to_vector<float>(), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(printed, "");
  EXPECT_EQ(c(ones({2, 3})).shape(), Shape({2, 3}));
  EXPECT_EQ(v.read().to_vector<float>(), (std::vector<float>{2, 2, 2}));
  EXPECT_EQ(printed, "run\n");
  f(ones({7, 3}));  // served by the same trace
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(c.info().calls, 2u);
  EXPECT_TRUE(events.empty());
  on_print({});
}

TEST_F(Inspection, concrete_is_for_all_sizes_and_named_ones_agree) {
  Function f = function("f(x, y)", [](Tensor x, Tensor y) { return x + y; });
  ConcreteFunction c = f.concrete({f32, {dyn("n"), 4}}, {f32, {dyn("n"), 4}});
  for (int n : {0, 1, 2, 9}) EXPECT_EQ(c(ones({n, 4}), ones({n, 4})).to_vector<float>(), std::vector<float>(4 * n, 2));
  EXPECT_EQ(f.trace_count(), 1);
  // By a tensor, whose elements do not matter, and with values for what is no tensor.
  Function g = function("g(x, n, name, many)", [](Tensor x, int n, std::string name, std::vector<Tensor> many) {
    return std::pair{x * n + many[0], name};
  });
  ConcreteFunction d = g.concrete(ones({2}), 3, "name", {ones({2})});
  EXPECT_EQ(d(ones({5}), 3, "name", {ones({5})}).first.to_vector<float>(), std::vector<float>(5, 4));
  EXPECT_EQ(d(ones({5}), 3, "name", {ones({5})}).second, "name");
}

TEST_F(Inspection, concrete_refuses_other_arguments) {
  Function f = function("f(x, n)", [](Tensor x, int n) { return reshape(x, {2, int(x.dim(0)) / 2}) * n; });
  ConcreteFunction c = f.concrete({f32, {4}}, 3);
  int line = __LINE__ + 1;
  std::string text = error_of([&] { c(ones({4}, f64), 3); });
  EXPECT_CONTAINS(text, "f: the arguments do not fit this trace, which is for (f32[4], 3)");
  EXPECT_CONTAINS(text, "argument 0 'x'");
  EXPECT_CONTAINS(text, "dtype changed");
  EXPECT_CONTAINS(text, at_line(line));
  EXPECT_CONTAINS(error_of([&] { c(ones({4}), 4); }), "3 -> 4");
  text = error_of([&] { c(ones({6}), 3); });
  EXPECT_CONTAINS(text, "x_0 == 4 does not hold any more: x_0 is 6");
  EXPECT_CONTAINS(error_of([&] { c(ones({2, 2}), 3); }), "rank changed");
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_TRUE(events.empty());
  EXPECT_EQ(c(ones({4}), 3).to_vector<float>(), std::vector<float>(4, 3));
}

TEST_F(Inspection, concrete_refuses_a_trace_for_one_size_where_any_was_asked_for) {
  Function f = function("f(x, y)", [](Tensor x, Tensor y) { return x * int(x.dim(0)) + y; });
  int line = __LINE__ + 1;
  std::string text = error_of([&] { f.concrete({f32, {dyn}}, {f32, {dyn}}); });
  EXPECT_CONTAINS(text, "concrete: 'f' relies on a size that the spec leaves open; host code at ");
  EXPECT_CONTAINS(text, "needs x_0 == 60");
  EXPECT_CONTAINS(text, at_line(line));
  EXPECT_CONTAINS(text, "give the size instead of dyn");
  EXPECT_EQ(f.concrete({f32, {4}}, {f32, {4}})(ones({4}), ones({4})).to_vector<float>(), std::vector<float>(4, 5));
  // Sizes that have to agree are no such thing, unless one of them is given.
  Function g = function("g(x, y)", [](Tensor x, Tensor y) { return x + y; });
  g.concrete({f32, {dyn}}, {f32, {dyn}});
  EXPECT_CONTAINS(error_of([&] {
                    g.concrete({f32, {dyn}}, {f32, {60}});
                  }),
                  "relies on a size that the spec leaves open");
}

TEST_F(Inspection, concrete_of_a_signature) {
  Function f = function("f(x)", [](Tensor x) { return x * 2; }, {.signature = {{f32, {dyn("n"), 2}}}});
  ConcreteFunction c = f.concrete();
  EXPECT_EQ(c(ones({3, 2})).shape(), Shape({3, 2}));
  EXPECT_CONTAINS(error_of([&] { f.concrete({f64, {3, 2}}); }), "the signature promises f32[n,2]");
  Function plain = function("plain(x)", [](Tensor x) { return x; });
  EXPECT_CONTAINS(error_of([&] { plain.concrete(); }),
                  "concrete: 'plain' has no signature that says what its 1 argument is");
}

TEST_F(Inspection, concrete_in_the_wrong_place_or_with_nonsense) {
  Function inner = function("inner(x)", [](Tensor x) { return x; });
  ConcreteFunction c = inner.concrete({f32, {dyn}});
  Function f = function("f(x)", [=](Tensor x) { return c(x); });
  EXPECT_CONTAINS(error_of([&] { f(ones({1})); }), "a trace of 'inner' is called by itself while a function is traced");
  Function g = function("g(x)", [=](Tensor x) {
    inner.concrete({f32, {1}});
    return x;
  });
  EXPECT_CONTAINS(error_of([&] { g(ones({1})); }), "concrete: 'inner' cannot be traced by itself");
  EXPECT_CONTAINS(error_of([&] { inner.concrete({f32, {-2}}); }), "spec: f32[-2] has a size below 0");
  EXPECT_CONTAINS(error_of([&] { inner.concrete({f32, {1, 2, 3, 4, 5, 6, 7, 8, 9}}); }), "has more than 8 axes");
  EXPECT_CONTAINS(error_of([&] { c(Tensor()); }), "no tensor any more");
}

TEST_F(Inspection, concrete_survives_its_function_and_being_forgotten) {
  auto c = [] {
    Function f = function("f(x)", [](Tensor x) { return x + 1; });
    ConcreteFunction made = f.concrete({f32, {dyn}});
    f.clear();
    return made;
  }();
  EXPECT_EQ(c(zeros({2})).to_vector<float>(), (std::vector<float>{1, 1}));
}

TEST_F(Inspection, concrete_on_threads_makes_one_trace) {
  Function f = function("f(x)", [](Tensor x) { return x * 3; });
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] { EXPECT_EQ(f.concrete({f32, {dyn}})(ones({2})).item<float>({1}), 3); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_F(Inspection, concrete_under_a_tape) {
  Function f = function("f(x)", [](Tensor x) { return sum(x * x); });
  ConcreteFunction c = f.concrete({f32, {dyn}});
  Tensor x = tensor({1.f, 2.f});
  GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(tape.gradient(c(x), x).to_vector<float>(), (std::vector<float>{2, 4}));
}

TEST_F(Inspection, concrete_makes_variables) {
  Variable w;
  Function f = function("f(x)", [&w](Tensor x) {
    if (!w.defined()) w = Variable(ones({3}));
    return x * w;
  });
  ConcreteFunction c = f.concrete({f32, {dyn, 3}});
  EXPECT_TRUE(w.defined());
  EXPECT_EQ(c(ones({1, 3})).to_vector<float>(), (std::vector<float>{1, 1, 1}));
}

TEST_F(Inspection, concrete_of_nothing) {
  Function f = function("f", [] { return ones({2}); });
  EXPECT_EQ(f.concrete()().to_vector<float>(), (std::vector<float>{1, 1}));
}

// --- traces, graph, dot

TEST_F(Inspection, traces_say_what_they_are_for) {
  Variable w(ones({3, 2}), {.name = "w"});
  Tensor shift = ones({2});
  Function f = function("f(x, k)", [=](Tensor x, int k) { return matmul(x, w) * k + shift; });
  f(ones({4, 3}), 2);
  f(ones({5, 3}), 2);
  f(ones({4, 3}, f32), 3);
  std::vector<TraceInfo> traces = f.traces();
  ASSERT_EQ(traces.size(), 2u);
  EXPECT_EQ(traces[0].arguments, (std::vector<std::string>{"f32[x_0,3]", "2"}));
  EXPECT_EQ(traces[1].arguments, (std::vector<std::string>{"f32[x_0,3]", "3"}));
  EXPECT_EQ(traces[0].calls, 2u);
  EXPECT_EQ(traces[1].calls, 1u);
  ASSERT_EQ(traces[0].facts.size(), 1u);
  EXPECT_CONTAINS(traces[0].facts[0], "x_1 == 3, for matmul at ");
  EXPECT_EQ(traces[0].captured, (std::vector<std::string>{"Variable 'w' f32[3,2]", "f32[2], a constant"}));
  EXPECT_GT(traces[0].trace_milliseconds, 0);
  EXPECT_GT(traces[0].nodes, 3u);
  EXPECT_GT(traces[0].steps, 0u);
  EXPECT_GT(traces[0].bytes, 0u);
  EXPECT_FALSE(traces[0].stale);
  f.clear();
  EXPECT_TRUE(f.traces().empty());
}

TEST_F(Inspection, graph_for_arguments) {
  Function f = function("f(x)", [](Tensor x) { return exp(x) + 1; });
  std::string text = f.graph({f32, {dyn, 2}});
  EXPECT_CONTAINS(text, "map<exp>");
  EXPECT_EQ(f.graph(ones({3, 2})), text);
  EXPECT_EQ(f.graph(), text);
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_NE(f.graph({f64, {dyn, 2}}), text);
  EXPECT_CONTAINS(error_of([&] { f.graph(7); }), "graph: there is no trace 7 of 'f'");
  EXPECT_CONTAINS(error_of([&] { f.dot(-1); }), "dot: there is no trace -1 of 'f'");
}

TEST_F(Inspection, dot_is_a_graph_of_graphviz) {
  Function f = function("f(x)", [](Tensor x) {
    return cond(
        sum(x) > 0.f, [&] { return exp(x); }, [&]() -> Tensor { throw std::runtime_error("a \"quoted\"\nproblem"); });
  });
  std::string text = f.dot({f32, {dyn}});
  EXPECT_EQ(text.substr(0, text.find('\n')), "digraph \"f\" {");
  EXPECT_EQ(text.substr(text.size() - 3), "\n}\n");
  for (const char* part : {"label=\"exp\\nf32[x_0]", "label=\"cond", "subgraph cluster_", "label=yes;", "label=no;",
                           "raises a \\\"quoted\\\"\\nproblem", "-> ", "label=\"result 0\"", "inspection_test.cpp:"})
    EXPECT_CONTAINS(text, part);
  // Every node that an edge names is declared, braces and quotes are closed.
  int braces = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' && text[i - 1] != '\\') quoted = !quoted;
    if (!quoted) braces += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
  }
  EXPECT_EQ(braces, 0);
  EXPECT_FALSE(quoted);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::size_t arrow = line.find(" -> ");
    if (arrow == std::string::npos) continue;
    std::string from = line.substr(line.find_first_not_of(' '), arrow - line.find_first_not_of(' '));
    EXPECT_CONTAINS(text, " " + from + " [");
  }
}

// --- cost

TEST_F(Inspection, cost_of_a_product) {
  Function f = function("f(x, w)", dense);
  for (int m : {4, 32}) {
    TraceCost cost = f.cost({f32, {m, 8}}, {f32, {8, 16}});
    // Products and additions, and a maximum at each element of the result.
    EXPECT_EQ(cost.flops, 2 * m * 8 * 16 + m * 16);
    EXPECT_EQ(cost.bytes, 4 * (m * 8 + 8 * 16 + m * 16));
    EXPECT_EQ(cost.kernels, 1);
    EXPECT_EQ(cost.arena_bytes, 0);
    EXPECT_EQ(cost, f.cost(ones({m, 8}), ones({8, 16})));
  }
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(f.traces()[0].calls, 0u);
}

TEST_F(Inspection, cost_of_maps_and_reductions) {
  Function f = function("f(x)", [](Tensor x) { return sum(exp(x) * 2 + x, 1); });
  TraceCost cost = f.cost({f32, {10, 100}});
  EXPECT_EQ(cost.flops, 10 * 100 * 4);  // exp, product, sum, and the sum along the axis
  EXPECT_EQ(cost.bytes, 4 * (10 * 100 + 10));
  EXPECT_EQ(cost.kernels, 1);
  Function copies = function("copies(x)", [](Tensor x) { return transpose(x); });
  EXPECT_EQ(copies.cost({f32, {3, 4}}).flops, 0);
  EXPECT_EQ(copies.cost({f32, {3, 4}}).bytes, 2 * 4 * 12);
  // A row at a time: nothing lies in memory between.
  Function softmaxes = function("softmaxes(x)", [](Tensor x) { return softmax(x); });
  cost = softmaxes.cost({f32, {64, 1000}});
  EXPECT_EQ(cost.kernels, 1);
  EXPECT_EQ(cost.bytes, 2 * 4 * 64 * 1000);
  EXPECT_EQ(cost.flops, 64 * 1000 * 5);  // max; subtract, exp and sum; divide
  EXPECT_EQ(cost.arena_bytes, 0);
  EXPECT_EQ(softmaxes.cost({f32, {0, 1000}}).flops, 0);
  Function twice = function("twice(x)", [](Tensor x) { return matmul(softmax(x), transpose(x)); });
  EXPECT_GE(twice.cost({f32, {64, 1000}}).arena_bytes, 4 * 64 * 1000);
}

TEST_F(Inspection, cost_of_convolutions_branches_and_late_sizes) {
  Function f = function("f(x, w)", [](Tensor x, Tensor w) { return conv2d(x, w); });
  // 2x8x8 positions of the output, 3x3 windows, 4 channels, 5 features.
  EXPECT_EQ(f.cost({f32, {2, 10, 10, 4}}, {f32, {3, 3, 4, 5}}).flops, 2 * (2 * 8 * 8) * (3 * 3) * 4 * 5);
  Function g = function("g(x)", [](Tensor x) {
    return cond(
        sum(x) > 0.f, [&] { return exp(exp(exp(x))); }, [&] { return exp(x); });
  });
  TraceCost cost = g.cost({f32, {100}});
  EXPECT_GE(cost.flops, 400);  // the sum, and the dearer side
  EXPECT_LT(cost.flops, 450);
  Function late = function("late(x)", [](Tensor x) { return sum(boolean_mask(x, x > 0.f)); });
  EXPECT_GT(late.cost({f32, {100}}).kernels, 0);
}

TEST_F(Inspection, cost_needs_sizes) {
  Function f = function("f(x)", [](Tensor x) { return x * 2; });
  int line = __LINE__ + 1;
  std::string text = error_of([&] { f.cost({f32, {dyn("n"), 3}}); });
  EXPECT_CONTAINS(text, "cost: f32[n,3] has a size that is not given");
  EXPECT_CONTAINS(text, at_line(line));
  EXPECT_EQ(f.trace_count(), 0);
}

// --- eval_shape

TEST_F(Inspection, eval_shape_gives_types) {
  std::vector<TensorSpec> specs = eval_shape(dense, {{f32, {dyn("batch"), 3}}, {f32, {3, 5}}});
  ASSERT_EQ(specs.size(), 1u);
  EXPECT_EQ(specs[0].str(), "f32[batch,5]");
  specs = eval_shape(
      [](Tensor x, Tensor y) {
        print("never");
        return std::tuple{concat({x, y}), sum(x), cast(x, i32), 7, argmax(y, 0)};
      },
      {{f32, {dyn("n"), 2}}, {f32, {dyn("m"), 2}}});
  ASSERT_EQ(specs.size(), 4u);
  EXPECT_EQ(specs[0].str(), "f32[n + m,2]");
  EXPECT_EQ(specs[1].str(), "f32[]");
  EXPECT_EQ(specs[2].str(), "i32[n,2]");
  EXPECT_EQ(specs[3].str(), "i64[2]");
  // Numbers where sizes are given; a tensor stands for its type; a Function of its own.
  EXPECT_EQ(eval_shape(dense, {ones({2, 3}), {f32, {3, 5}}})[0].str(), "f32[2,5]");
  Function f = function("f(x)", [](Tensor x) { return x * 2; });
  EXPECT_EQ(eval_shape(f, {{bf16, {4}}})[0].str(), "bf16[4]");
  EXPECT_EQ(f.trace_count(), 0);
}

TEST_F(Inspection, eval_shape_has_no_effects) {
  Variable v(zeros({2}));
  int calls = 0;
  std::vector<TensorSpec> specs = eval_shape(
      [&, v](Tensor x) {
        v.assign_add(x);
        host_call([&] { ++calls; }, {});
        return v.read() + random::normal({2});
      },
      {{f32, {2}}});
  EXPECT_EQ(specs[0].str(), "f32[2]");
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(v.read().to_vector<float>(), (std::vector<float>{0, 0}));
}

TEST_F(Inspection, eval_shape_refuses) {
  EXPECT_CONTAINS(error_of([] { eval_shape(dense, {{f32, {2, 3}}, {f32, {4, 5}}}); }), "matmul: ");
  EXPECT_CONTAINS(error_of([] {
                    eval_shape(dense, {{f32, {2, 3}}});
                  }),
                  "eval_shape: the function takes 2 tensors, 1 spec is given");
  EXPECT_CONTAINS(error_of([] {
                    eval_shape([](Tensor x) { return int(x.dim(0)) > 3 ? x : x * 2; }, {{f32, {dyn}}});
                  }),
                  "signature");
  EXPECT_CONTAINS(error_of([] { eval_shape([](Tensor x) { return x * x.item<float>(); }, {{f32, {}}}); }), "item");
}

}  // namespace
