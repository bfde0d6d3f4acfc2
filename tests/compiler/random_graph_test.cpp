// Random graphs with symbolic sizes: every way to compile them computes the same.
//
// Sums are of whole numbers small enough to be exact in any order, so that everything is compared bit for bit (but for
// the sign of zeros, which a maximum may take from either), although passes change the order of summation. What
// reordering does to sums of arbitrary numbers has a test of its own, with its bound.
#include "tests/compiler/random_graph.h"

#include <gtest/gtest.h>

#include "stet/base/dim_inside.h"
#include "stet/cpu/emit_kernel.h"
#include "stet/runtime/guard.h"
#include "stet/runtime/parallel.h"
#include "tests/sampling.h"
#include "tests/scale.h"

namespace stet {
namespace {

/// What a run gave: values, or the text of the Problem that it ended in.
struct Outcome {
  std::vector<Array> values;
  std::string problem;
};
Outcome outcome(const Program& program, std::span<const Array> arguments) {
  try {
    return {run_on(program, arguments), ""};
  } catch (const Problem& problem) {
    return {{}, problem.text()};
  } catch (const InternalError& error) {
    ADD_FAILURE() << error.what();
    return {{}, "an internal error"};
  }
}

/// The same with state replaced in place, where the program may.
Outcome outcome_in_place(const Program& program, std::span<const Array> arguments) {
  try {
    std::shared_ptr<const BoundProgram> bound = bind_to(program, arguments);
    if (bound->has_late_sizes()) return outcome(program, arguments);
    std::vector<Buffer> memory, results(program.results.size());
    std::vector<void*> inputs;
    for (const Array& argument : arguments) {
      memory.push_back(Buffer::allocate(argument.bytes.size()));
      if (!argument.bytes.empty()) std::memcpy(memory.back().data(), argument.bytes.data(), argument.bytes.size());
      inputs.push_back(memory.back().data());
    }
    for (std::size_t r = 0; r < results.size(); ++r)
      if (int from = program.in_place[r]; from >= 0) results[r] = memory[static_cast<std::size_t>(from)];
    bound->run(inputs.data(), results.data());
    Outcome out;
    for (std::size_t r = 0; r < results.size(); ++r) {
      out.values.push_back(Array::zeros(program.results[r].dtype, bound->result_sizes()[r]));
      std::vector<unsigned char>& bytes = out.values.back().bytes;
      if (!bytes.empty()) std::memcpy(bytes.data(), results[r].data(), bytes.size());
    }
    return out;
  } catch (const Problem& problem) {
    return {{}, problem.text()};
  }
}

bool equal_but_for_zeros(const Array& a, const Array& b) {
  if (a.dtype != b.dtype || a.sizes != b.sizes) return false;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    if (a.bits(i) == b.bits(i)) continue;
    bool both_nan = is_floating(a.dtype) && a.real(i) != a.real(i) && b.real(i) != b.real(i);
    if (!both_nan && !(a.real(i) == 0 && b.real(i) == 0)) return false;
  }
  return true;
}

testing::AssertionResult same(const Outcome& expected, const Outcome& got) {
  if (expected.problem != got.problem)
    return testing::AssertionFailure() << "problem '" << expected.problem << "' against '" << got.problem << "'";
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const Array &a = expected.values[i], &b = got.values[i];
    if (equal_but_for_zeros(a, b)) continue;
    auto result = testing::AssertionFailure() << "result " << i << " differs";
    if (a.sizes != b.sizes) return result << " in shape";
    for (std::int64_t at = 0; at < a.count(); ++at)
      if (a.bits(at) != b.bits(at))
        return result << " first at " << at << ": " << a.real(at) << " against " << b.real(at);
  }
  return testing::AssertionSuccess();
}

constexpr Sizes runs[] = {{5, 37, 8}, {1, 1, 1}, largest, {0, 4, 3}};

/// Restores process-wide switches, whatever a test does.
class Switches {
 public:
  Switches() : checked_(cpu::checked_kernels()), threads_(thread_count()) {}
  ~Switches() {
    cpu::set_checked_kernels(checked_);
    set_thread_count(threads_);
    set_guard_bytes(false);
  }

 private:
  bool checked_;
  int threads_;
};

/// What was there to be tested.
struct Census {
  int merged = 0, indices = 0, windows = 0, scattered = 0, branches = 0, loops = 0, late = 0, in_place = 0;

  void count(const RandomGraph& random) {
    for (const Node& node : random.graph().nodes) {
      windows += node.op->kind == Kind::window;
      scattered += node.op == &scatter_add_row;
      branches += node.op->kind == Kind::branch;
      loops += node.op->kind == Kind::loop;
      late += node.op->kind == Kind::late;
      indices += node.op == &map_row && node.inputs.empty();
    }
    CompileOptions options = all_passes();
    options.observe = [&](const char* pass, const Graph& graph) {
      if (std::string_view(pass) != "merge_maps") return;
      for (const Node& node : graph.nodes) merged += node.results.size() > 1 && node.op->kind == Kind::map;
    };
    std::shared_ptr<const Program> program = random.compiled(options);
    for (int from : program->in_place) in_place += from >= 0;
  }
};

void check_seed(std::uint64_t seed) {
  RandomGraph random(seed);
  Graph graph = random.graph();
  SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << graph.str());
  struct Variant {
    std::string name;
    std::shared_ptr<Program> program;
  };
  std::vector<Variant> variants{{"all passes", random.compiled(all_passes())},
                                {"no passes", random.compiled(no_passes())}};
  for (const Pass& pass : passes())
    variants.push_back({std::string("without ") + pass.name, random.compiled(without({pass.name}))});
  if (seed % 4 == 0) {
    bool usual = cpu::checked_kernels();
    cpu::set_checked_kernels(!usual);
    variants.push_back({usual ? "unchecked" : "checked", random.compiled(all_passes())});
    cpu::set_checked_kernels(usual);
  }
  for (Sizes sizes : runs) {
    SCOPED_TRACE(testing::Message() << "sizes " << sizes.b << " " << sizes.n << " " << sizes.k);
    std::vector<Array> arguments = random.arguments(sizes);
    set_thread_count(1);
    Outcome expected = outcome(*variants[0].program, arguments);
    set_thread_count(2);
    for (const Variant& variant : variants) {
      SCOPED_TRACE(variant.name);
      ASSERT_TRUE(same(expected, outcome(*variant.program, arguments)));
    }
    {
      SCOPED_TRACE("in place");
      ASSERT_TRUE(same(expected, outcome_in_place(*variants[0].program, arguments)));
    }
    if (!expected.problem.empty()) continue;
    ReferenceRun reference(random.g.graph, random.bound_to(sizes));
    SCOPED_TRACE("reference");
    ASSERT_TRUE(same({reference.run(arguments), ""}, expected));
  }
}

TEST(RandomGraph, EveryWayToCompileGivesTheSame) {
  Switches switches;
  set_guard_bytes(true);
  std::uint64_t damaged = guard_failures();
  Census seen;
  for (std::uint64_t seed = 0; seed < scaled(100); ++seed) {
    if (!visits("random graphs", seed, 4)) continue;
    check_seed(seed);
    seen.count(RandomGraph(seed));
    ASSERT_EQ(guard_failures(), damaged) << "seed " << seed << ": " << last_guard_failure();
    if (HasFailure()) return;
  }
  if (scaled(8) < 8 || !full_tests()) return;
  EXPECT_GT(seen.merged, 5);
  EXPECT_GT(seen.indices, 1);
  EXPECT_GT(seen.windows, 1);
  EXPECT_GT(seen.scattered, 0);
  EXPECT_GT(seen.branches, 1);
  EXPECT_GT(seen.loops, 5);
  EXPECT_GT(seen.late, 0);
  EXPECT_GT(seen.in_place, 1);
}

TEST(RandomGraph, OneThreadAndTwoGiveTheSameBits) {
  // Large enough that every step is cut into chunks; sums of arbitrary numbers, whose order must not depend on threads.
  Switches switches;
  for (int axis : {0, 1}) {
    SymbolicGraph g;
    Dim b = g.symbol("b", 300), n = g.symbol("n", 700);
    ValueId x = g.input(DType::f32, {b, n}), y = g.input(DType::f32, {n});
    ValueId e = g.call("exp", {g.call("multiply", {x, y})});
    g.graph.results = {g.call("sum", {e}, reduce_over({axis})), g.call("mean", {x}, reduce_over({0, 1})),
                       g.call("tanh", {x}), g.call("argmax", {e}, reduce_over({axis}))};
    std::shared_ptr<Program> program = compile_with_facts(g.graph);
    auto noise = [](std::int64_t i) { return std::sin(static_cast<double>(i * i % 1000003)); };
    std::vector<Array> arguments{Array::filled(DType::f32, {301, 702}, noise), Array::filled(DType::f32, {702}, noise)};
    set_thread_count(1);
    std::vector<Array> one = run_on(*program, arguments);
    set_thread_count(2);
    for (int repeat = 0; repeat < 5; ++repeat) {
      std::vector<Array> two = run_on(*program, arguments);
      for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].bytes, two[i].bytes) << "result " << i;
    }
  }
}

TEST(RandomGraph, ReorderedSumsStayWithinTheirBound) {
  // Fusing a transposed operand into a sum changes the order in which elements are taken. The difference of two orders
  // of n additions is at most 2 n epsilon times the sum of magnitudes.
  SymbolicGraph g;
  Dim a = g.symbol("a", 200), b = g.symbol("b", 300);
  ValueId x = g.input(DType::f32, {b, a}), y = g.input(DType::f32, {a, b});
  ValueId turned = g.graph.add_call(transpose_row, {x}, sampled(transpose_row, 0));
  ValueId mixed = g.call("add", {turned, y});
  g.graph.results = {g.call("sum", {mixed}, reduce_over({0})), g.call("sum", {mixed}, reduce_over({1})),
                     g.call("sum", {g.call("multiply", {turned, y})}, reduce_over({1}))};
  auto noise = [](std::int64_t i) { return std::cos(static_cast<double>(i * 7919 % 104729)); };
  std::vector<Array> arguments{Array::filled(DType::f32, {300, 200}, noise),
                               Array::filled(DType::f32, {200, 300}, noise)};
  std::vector<Array> fused = run_on(*compile_with_facts(g.graph), arguments);
  std::vector<Array> plain = run_on(*compile_with_facts(g.graph, no_passes()), arguments);
  for (std::size_t r = 0; r < fused.size(); ++r)
    for (std::int64_t i = 0; i < fused[r].count(); ++i)
      EXPECT_NEAR(fused[r].real(i), plain[r].real(i), 2 * 300 * 0x1p-24 * 600) << "result " << r << " at " << i;
}

}  // namespace
}  // namespace stet
