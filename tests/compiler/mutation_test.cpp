// What one-line mutations of the compiler and the kernels broke without any test noticing.
#include <gtest/gtest.h>

#include "stet/cpu/cache_size.h"
#include "stet/runtime/parallel.h"
#include "tests/compiler/graph_harness.h"

namespace stet {
namespace {

/// A map without operands: what loop indices give.
ValueId indices(SymbolicGraph& g, Expr body, Shape shape) {
  MapAttributes attributes{body, {}};
  return g.graph.add({.op = &map_row,
                      .inputs = {},
                      .attributes = Attributes(view_of(attributes)),
                      .results = {{body.dtype(), std::move(shape)}}});
}

// fuse.cpp: a body of loop indices does not go where it would be repeated, because the loops it counts are not there.
TEST(FuseMapsPass, IndicesAreNotFusedWhereTheyAreRepeated) {
  SymbolicGraph g;
  Dim b = g.symbol("b", 3), n = g.symbol("n", 4);
  ValueId x = g.input(DType::i64, {b, n});
  ValueId along = indices(g, loop_index(0), {n});         // every row has it
  ValueId down = indices(g, loop_index(0), {b, Dim(1)});  // every column has it
  ValueId both = indices(g, loop_index(1), {b, n});       // this one may go in
  g.graph.results = {g.call("add", {g.call("multiply", {x, along}), g.call("multiply", {down, both})}),
                     g.call("sum", {g.call("add", {x, indices(g, loop_index(0), {n})})}, reduce_over({0}))};
  std::vector<Array> arguments{Array::filled(DType::i64, {3, 4}, [](std::int64_t i) { return i; })};
  std::vector<double> product, sums(4, 0);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j) {
      product.push_back((4 * i + j) * j + i * j);
      sums[static_cast<std::size_t>(j)] += 4 * i + j + j;
    }
  for (const CompileOptions& options : {all_passes(), no_passes()}) {
    std::vector<Array> got = run_on(*compile_with_facts(g.graph, options), arguments);
    EXPECT_EQ(got[0].reals(), product);
    EXPECT_EQ(got[1].reals(), sums);
  }
  Graph fused = fuse_maps(g.graph);
  int without_inputs = 0;
  for (const Node& node : fused.nodes) without_inputs += node.op == &map_row && node.inputs.empty();
  EXPECT_EQ(without_inputs, 3) << fused.str();
}

/// Results that are larger than a few pages are stored around the cache.
class SmallCache {
 public:
  SmallCache() { cpu::set_last_level_cache(1 << 16); }
  ~SmallCache() { cpu::set_last_level_cache(0); }
};

// kernel_step.cpp: stores around the cache are aligned; rows that do not start at a whole vector are stored as usual.
TEST(StreamingStores, OnlyWhereEveryRowIsAligned) {
  SmallCache small;
  for (DType dtype : {DType::f32, DType::f64, DType::i8})
    for (std::int64_t width : {64, 1, 13, 63, 65})
      for (std::int64_t beside : {64, 7}) {
        SymbolicGraph g;
        Dim n = g.symbol("n", 3000), w = g.symbol("w", width), v = g.symbol("v", beside);
        ValueId x = g.input(dtype, {n, w}), y = g.input(dtype, {n, v});
        // A part of concat is written into rows that begin where another part ended.
        g.graph.results = {g.graph.add_call(concat_row, {x, y}, sampled(concat_row, 0)),
                           g.call("add", {x, g.call("square", {x})})};
        std::int64_t rows = 2'000'000 / (width + beside) / 8;
        auto value = [](std::int64_t i) { return i * 7 % 11; };
        std::vector<Array> arguments{Array::filled(dtype, {rows, width}, value),
                                     Array::filled(dtype, {rows, beside}, value)};
        std::vector<Array> got = run_on(*compile_with_facts(g.graph), arguments);
        SCOPED_TRACE(testing::Message() << dtype << " " << width << " " << beside);
        std::int64_t whole = width + beside;
        for (std::int64_t i = 0; i < rows; ++i) {
          for (std::int64_t j = 0; j < whole; ++j) {
            bool left = j < width;
            ASSERT_EQ(got[0].real(i * whole + j),
                      left ? arguments[0].real(i * width + j) : arguments[1].real(i * beside + j - width));
          }
          for (std::int64_t j = 0; j < width; ++j) {
            double at = arguments[0].real(i * width + j);
            ASSERT_EQ(got[1].real(i * width + j), at + at * at);
          }
        }
      }
}

TEST(Pipeline, TestsVerifyAfterEveryPass) {
  EXPECT_TRUE(verified_passes());
  Graph graph;
  ValueId x = graph.add_input({DType::f32, {3}});
  graph.results = {x + 1};
  EXPECT_THROW(compile(graph), InternalError);
  set_verified_passes(false);
  EXPECT_FALSE(CompileOptions().verify);
  set_verified_passes(true);
  EXPECT_TRUE(CompileOptions().verify);
}

}  // namespace
}  // namespace stet
