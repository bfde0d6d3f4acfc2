// Maps and reductions over the rows of one space, done a row at a time.
#include <gtest/gtest.h>

#include <random>

#include "stet/cpu/cache_size.h"
#include "stet/cpu/emit_kernel.h"
#include "stet/runtime/parallel.h"
#include "tests/compiler/graph_harness.h"

namespace stet {
namespace {

std::size_t steps(const SymbolicGraph& g, const CompileOptions& options = all_passes()) {
  return compile_with_facts(g.graph, options)->steps.size();
}

Array noise(DType dtype, std::vector<std::int64_t> sizes, std::int64_t seed) {
  return Array::filled(dtype, std::move(sizes),
                       [&](std::int64_t i) { return std::sin(static_cast<double>((i + seed) * 7919 % 10007)) * 2; });
}

/// What rounding may do to values of these sizes.
void expect_close(const Array& got, const Array& expected, const std::string& what) {
  ASSERT_EQ(got.dtype, expected.dtype) << what;
  ASSERT_EQ(got.sizes, expected.sizes) << what;
  const double bound = got.dtype == DType::f64 ? 1e-11 : got.dtype == DType::f32 ? 2e-4 : 5e-2;
  for (std::int64_t i = 0; i < got.count(); ++i) {
    const double a = got.real(i), b = expected.real(i);
    if (a == b || (a != a && b != b)) continue;
    ASSERT_LE(std::abs(a - b), bound * (1 + std::abs(b))) << what << ", element " << i << ": " << a << " and " << b;
  }
}

/// With the pass and without; the same bits with checked code, on one thread and stored past the cache.
void expect_same(const SymbolicGraph& g, const std::vector<Array>& arguments, const std::string& what = {}) {
  std::shared_ptr<Program> fused = compile_with_facts(g.graph, all_passes());
  std::vector<Array> with = run_on(*fused, arguments);
  std::vector<Array> without_it = run_on(*compile_with_facts(g.graph, without({"fuse_rows"})), arguments);
  for (std::size_t i = 0; i < with.size(); ++i)
    ASSERT_NO_FATAL_FAILURE(expect_close(with[i], without_it[i], what + " result " + std::to_string(i)));
  const bool checked = cpu::checked_kernels();
  cpu::set_checked_kernels(!checked);
  std::vector<Array> other = run_on(*compile_with_facts(g.graph, all_passes()), arguments);
  cpu::set_checked_kernels(checked);
  const int threads = thread_count();
  set_thread_count(1);
  std::vector<Array> alone = run_on(*fused, arguments);
  set_thread_count(threads);
  cpu::set_last_level_cache(64);
  std::vector<Array> past = run_on(*fused, arguments);
  cpu::set_last_level_cache(0);
  for (std::size_t i = 0; i < with.size(); ++i) {
    EXPECT_TRUE(same_values(with[i], other[i])) << what << ", checked, result " << i;
    EXPECT_TRUE(same_values(with[i], alone[i])) << what << ", on one thread, result " << i;
    EXPECT_TRUE(same_values(with[i], past[i])) << what << ", past the cache, result " << i;
  }
}

ValueId softmax(SymbolicGraph& g, ValueId x, std::vector<int> axes) {
  ValueId e = g.call("exp", {g.call("subtract", {x, g.call("max", {x}, reduce_over(axes, true))})});
  return g.call("divide", {e, g.call("sum", {e}, reduce_over(axes, true))});
}

ValueId normalised(SymbolicGraph& g, ValueId x, std::vector<int> axes) {
  ValueId centred = g.call("subtract", {x, g.call("mean", {x}, reduce_over(axes, true))});
  ValueId variance = g.call("mean", {g.call("square", {centred})}, reduce_over(axes, true));
  return g.call("multiply", {centred, g.call("rsqrt", {variance})});
}

const std::vector<std::pair<std::int64_t, std::int64_t>> row_sizes{
    {1, 1}, {3, 5}, {16, 16}, {40, 37}, {0, 7}, {100, 1}, {7, 1000}, {2, 20000}, {500, 3}, {33, 520}};

TEST(FuseRows, SoftmaxIsOneStepWithoutMemoryBetween) {
  SymbolicGraph g;
  Dim n = g.symbol("n", 40), m = g.symbol("m", 50);
  g.graph.results = {softmax(g, g.input(DType::f32, {n, m}), {1})};
  EXPECT_EQ(steps(g), 1u);
  EXPECT_GT(steps(g, without({"fuse_rows"})), 2u);
  EXPECT_EQ(temporaries(*compile_with_facts(g.graph)), 0);
  for (auto [rows, length] : row_sizes) expect_same(g, {noise(DType::f32, {rows, length}, 1)});
}

TEST(FuseRows, NormalisationWithScaleAndOffset) {
  for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    SymbolicGraph g;
    Dim n = g.symbol("n", 40), m = g.symbol("m", 50);
    ValueId x = g.input(dtype, {n, m}), gamma = g.input(dtype, {m}), beta = g.input(dtype, {m});
    g.graph.results = {g.call("add", {g.call("multiply", {normalised(g, x, {1}), gamma}), beta})};
    EXPECT_EQ(steps(g), 1u);
    for (auto [rows, length] : row_sizes)
      expect_same(g, {noise(dtype, {rows, length}, 1), noise(dtype, {length}, 2), noise(dtype, {length}, 3)});
  }
}

TEST(FuseRows, RowsOfSeveralAxes) {
  SymbolicGraph g;
  Dim n = g.symbol("n", 6), h = g.symbol("h", 5), w = g.symbol("w", 7);
  ValueId x = g.input(DType::f32, {n, h, w});
  g.graph.results = {normalised(g, x, {1, 2})};
  EXPECT_EQ(steps(g), 1u);
  expect_same(g, {noise(DType::f32, {6, 5, 7}, 1)});
  expect_same(g, {noise(DType::f32, {40, 3, 9}, 1)});
  SymbolicGraph other;
  Dim a = other.symbol("a", 6), b = other.symbol("b", 5), c = other.symbol("c", 7);
  other.graph.results = {softmax(other, other.input(DType::f32, {a, b, c}), {2})};
  EXPECT_EQ(steps(other), 1u);
  expect_same(other, {noise(DType::f32, {6, 5, 70}, 1)});
}

TEST(FuseRows, WhatOthersNeedIsStored) {
  SymbolicGraph g;
  Dim n = g.symbol("n", 40), m = g.symbol("m", 50);
  ValueId x = g.input(DType::f32, {n, m}), y = g.input(DType::f32, {n, m});
  ValueId both = g.call("add", {x, y});
  ValueId mean = g.call("mean", {both}, reduce_over({1}, true));
  ValueId position = g.call("argmax", {both}, reduce_over({1}));
  g.graph.results = {both, mean, g.call("tanh", {g.call("subtract", {both, mean})}), position};
  EXPECT_EQ(steps(g), 1u);
  for (auto [rows, length] : row_sizes)
    expect_same(g, {noise(DType::f32, {rows, length}, 1), noise(DType::f32, {rows, length}, 5)});
}

TEST(FuseRows, OneElementOfARowIsAskedFor) {
  // As the gradient of a loss asks every class whether it is the label.
  for (DType dtype : {DType::f32, DType::f64}) {
    SymbolicGraph g;
    Dim n = g.symbol("n", 40), m = g.symbol("m", 50);
    ValueId x = g.input(dtype, {n, m}), label = g.input(DType::i64, {n, Dim(1)});
    ValueId e = softmax(g, x, {1});
    Expr here = scalar::equal(loop_index(1), operand(1, DType::i64));
    AxisMap whole, column;
    whole.rank = column.rank = 2;
    whole.axes[0] = column.axes[0] = 0;
    whole.axes[1] = 1;
    column.axes[1] = -1;
    MapAttributes map{scalar::select(here, operand(0, dtype) - 1, operand(0, dtype)), {whole, column}};
    Node node;
    node.op = &map_row;
    node.inputs = {e, label};
    node.attributes = Attributes(view_of(map));
    node.results = {{dtype, Shape({n, m})}};
    g.graph.results = {g.graph.add(std::move(node))};
    EXPECT_EQ(steps(g), 1u);
    for (auto [rows, length] : row_sizes) {
      const std::int64_t size = length;
      // Labels on both sides of the row, too.
      Array labels = Array::filled(DType::i64, {rows, 1}, [&](std::int64_t i) { return i * 7 % (size + 4) - 2; });
      expect_same(g, {noise(dtype, {rows, length}, 1), labels});
    }
  }
}

TEST(FuseRows, NotThroughAnotherStep) {
  // The product needs the softmax and gives what is normalised: one after the other.
  SymbolicGraph g;
  Dim n = g.symbol("n", 40);
  ValueId x = g.input(DType::f32, {n, n}), s = softmax(g, x, {1});
  ValueId product = g.call("matmul", {s, s}, contract_as(false, false));
  g.graph.results = {g.call("add", {s, normalised(g, product, {1})})};
  EXPECT_EQ(steps(g), 3u);
  for (std::int64_t size : {1, 17, 40, 130}) expect_same(g, {noise(DType::f32, {size, size}, 1)});
}

TEST(FuseRows, ASumAloneStaysAsItIs) {
  SymbolicGraph g;
  Dim n = g.symbol("n", 40), m = g.symbol("m", 50);
  ValueId x = g.input(DType::f32, {n, m});
  g.graph.results = {g.call("sqrt", {g.call("sum", {g.call("square", {x})}, reduce_over({1}))})};
  Graph last;
  CompileOptions options = all_passes();
  options.observe = [&](const char*, const Graph& graph) { last = graph; };
  compile(g.graph, options);
  for (const Node& node : last.nodes) EXPECT_NE(node.op, &rows_row);
}

/// Maps and reductions at random, with the pass and without.
class RandomRows {
 public:
  explicit RandomRows(unsigned seed) : random_(seed) {}

  void run(const std::string& what) {
    SymbolicGraph g;
    const int outer = pick(2) + 1, inner = pick(4) == 0 ? 2 : 1;
    Shape space;
    std::vector<std::int64_t> sizes;
    for (int axis = 0; axis < outer + inner; ++axis) {
      sizes.push_back(axis < outer ? 1 + pick(7) : 1 + pick(40));
      space.push_back(g.symbol(("s" + std::to_string(axis)).c_str(), 2 + pick(9)));
      if (axis >= outer) axes_.push_back(axis);
    }
    const DType dtype = pick(4) == 0 ? DType::f64 : DType::f32;
    Shape line;
    std::vector<std::int64_t> line_sizes, row_sizes;
    Shape row;
    for (int axis = 0; axis < outer + inner; ++axis) {
      const bool kept = axis < outer;
      row.push_back(kept ? space[axis] : Dim(1));
      row_sizes.push_back(kept ? sizes[static_cast<std::size_t>(axis)] : 1);
      if (kept) continue;
      line.push_back(space[axis]);
      line_sizes.push_back(sizes[static_cast<std::size_t>(axis)]);
    }
    full_ = {g.input(dtype, space), g.input(dtype, space)};
    row_ = {g.input(dtype, row)};
    ValueId column = g.input(dtype, line);
    const int count = 3 + pick(12);
    for (int i = 0; i < count; ++i) add(g, column);
    for (ValueId id : full_)
      if (pick(3) == 0) g.graph.results.push_back(id);
    for (ValueId id : row_)
      if (pick(3) == 0) g.graph.results.push_back(id);
    g.graph.results.push_back(full_.back());
    for (int round = 0; round < 2; ++round) {
      expect_same(
          g, {noise(dtype, sizes, 1), noise(dtype, sizes, 2), noise(dtype, row_sizes, 3), noise(dtype, line_sizes, 4)},
          what);
      if (::testing::Test::HasFailure()) break;
      for (std::size_t axis = 0; axis < sizes.size(); ++axis)
        sizes[axis] = static_cast<int>(axis) < outer ? 1 + pick(30) : 1 + pick(90);
      line_sizes.assign(sizes.begin() + outer, sizes.end());
      std::copy(sizes.begin(), sizes.begin() + outer, row_sizes.begin());
    }
  }

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  ValueId any(const std::vector<ValueId>& from) {
    return from[static_cast<std::size_t>(pick(static_cast<int>(from.size())))];
  }
  void add(SymbolicGraph& g, ValueId column) {
    static const char* const unary[] = {"tanh", "sin", "square", "negative", "sigmoid", "abs"};
    static const char* const binary[] = {"add", "subtract", "multiply", "maximum"};
    static const char* const reductions[] = {"sum", "mean", "max", "min"};
    switch (pick(7)) {
      case 0:
        full_.push_back(g.call(unary[pick(6)], {any(full_)}));
        break;
      case 1:
        full_.push_back(g.call(binary[pick(4)], {any(full_), any(full_)}));
        break;
      case 2:
        full_.push_back(g.call(binary[pick(4)], {any(full_), any(row_)}));
        break;
      case 3:
        full_.push_back(g.call(binary[pick(4)], {column, any(full_)}));
        break;
      case 4:
        row_.push_back(g.call(unary[pick(6)], {any(row_)}));
        break;
      default:
        row_.push_back(g.call("tanh", {g.call(reductions[pick(4)], {any(full_)}, reduce_over(axes_, true))}));
    }
  }

  std::mt19937 random_;
  std::vector<ValueId> full_, row_;
  std::vector<int> axes_;
};

TEST(FuseRows, AtRandom) {
  for (unsigned seed = 0; seed < 60 && !HasFailure(); ++seed) RandomRows(seed).run("seed " + std::to_string(seed));
}

}  // namespace
}  // namespace stet
