// The gradient of a tensor that was cut into slices is put together once: its graph has one concat (or pad), and no
// sum of tensors that are mostly zeros.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "stet/base/dim_inside.h"
#include "stet/core/trace.h"
#include "stet/stet.h"

namespace stet {
namespace {

/// How many nodes of each op the gradient of `f` has.
template <class F>
std::map<std::string, int> ops_of_gradient(const F& f) {
  Trace trace("f");
  Shape shape({trace.symbols().symbol("rows", 3), Dim(40)});
  {
    OpenTrace open(trace);
    Tensor x = trace.add_argument({DType::f32, shape});
    GradientTape tape;
    tape.watch(x);
    Tensor gradient = tape.gradient(f(x), x);
    trace.graph.results.push_back(trace.lift(gradient, {}));
  }
  const Graph graph = trace.finished();
  std::map<std::string, int> out;
  for (const Node& node : graph.nodes) ++out[*node.label ? node.label : node.op->name];
  return out;
}

TEST(SliceGradients, OfDisjointSlicesAreOneConcat) {
  auto ops = ops_of_gradient([](const Tensor& x) {
    Tensor total = zeros({x.dim(0)});
    for (int t = 0; t < 40; ++t) total = tanh(total) + x[{Range{}, t}];
    return sum(total);
  });
  EXPECT_EQ(ops["concat"], 1);
  EXPECT_EQ(ops["pad"], 0);
}

TEST(SliceGradients, OfAPartIsOnePad) {
  auto ops = ops_of_gradient([](const Tensor& x) { return sum(square(x[{Range{}, range(3, 9)}])); });
  EXPECT_EQ(ops["concat"], 0);
  EXPECT_EQ(ops["pad"], 1);
}

TEST(SliceGradients, OfOverlappingOnesAreFew) {
  auto ops = ops_of_gradient([](const Tensor& x) {
    Tensor total = sum(x[{Range{}, range(0, 20)}]);
    for (int t = 1; t < 20; ++t) total = total * 0.5 + sum(square(x[{Range{}, range(t, t + 20)}]));
    return total;
  });
  EXPECT_LE(ops["concat"] + ops["pad"], 20);
}

}  // namespace
}  // namespace stet
