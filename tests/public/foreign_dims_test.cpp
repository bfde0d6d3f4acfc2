// A size belongs to the trace it was taken in: elsewhere it is refused, with the line where it was taken.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include <optional>

#include "expect_error.h"

namespace stet {
namespace {

class ForeignDims : public testing::Test {
 protected:
  /// Keeps x.dim(0) of a trace that has ended.
  void SetUp() override {
    Function f = function("f(x)", [this](Tensor x) {
      if (tracing()) kept = x.dim(0), line = __LINE__;  // verify() also runs it eagerly
      return x;
    });
    f(zeros({4}));
  }
  template <class Use>
  void expect_refused(Use use) {
    std::string error = error_of(use);
    EXPECT_CONTAINS(error, " of 'f', taken at ");
    EXPECT_CONTAINS(error, "foreign_dims_test.cpp:" + std::to_string(line));
    EXPECT_CONTAINS(error, "fix: take the size from a tensor of this call");
  }
  std::optional<Dim> kept;
  int line = 0;
};

TEST_F(ForeignDims, InEagerCode) {
  const Dim d = *kept;
  Tensor x = ones({4});
  expect_refused([&] { (void)int(d); });
  expect_refused([&] { (void)d.value(); });
  expect_refused([&] { (void)(d == 4); });
  expect_refused([&] { (void)(x.dim(0) == d); });
  expect_refused([&] { zeros({d}); });
  expect_refused([&] { ones({2, d + 1}); });
  expect_refused([&] { arange(d); });
  expect_refused([&] { (void)(x + d); });
  expect_refused([&] { reshape(x, {d, 1}); });
  expect_refused([&] { slice(x, {0}, {d}); });
  expect_refused([&] { broadcast_to(x, {2, d}); });
  expect_refused([&] { one_hot(tensor({1}), d); });
  expect_refused([&] { random::normal({d}); });
  expect_refused([&] { tensor(d); });
  expect_refused([&] { Variable v(zeros({d})); });
}

template <class Body>
std::string traced_error(Body body) {
  Function h = function("h(a, x)", body);
  return error_of([&] { h(zeros({7}), ones({4})); });
}

TEST_F(ForeignDims, InAnotherTrace) {
  const Dim d = *kept;
  auto expect = [&](auto use) {
    expect_refused([&] {
      Function h = function("h(a, x)", [&](Tensor a, Tensor x) { return use(a, x); });
      h(zeros({7}), ones({4}));
    });
  };
  expect([&](Tensor, Tensor x) { return x / d; });
  expect([&](Tensor, Tensor x) { return x * tensor(d); });
  expect([&](Tensor, Tensor x) { return reshape(x, {d, 1}); });
  expect([&](Tensor, Tensor) { return zeros({d}); });
  expect([&](Tensor, Tensor x) { return slice(x, {0}, {d}); });
  expect([&](Tensor, Tensor x) { return broadcast_to(x, {2, d}); });
  expect([&](Tensor, Tensor x) { return x * int(d); });
  expect([&](Tensor, Tensor x) { return d == 4 ? x : -x; });
  expect([&](Tensor, Tensor) { return random::uniform({d}); });
  std::string two = traced_error([&](Tensor, Tensor x) { return x * int(x.dim(0) + d); });
  EXPECT_CONTAINS(two, "of 'h', taken at ");
  EXPECT_CONTAINS(two, "and size x_0 of 'f', taken at ");
  EXPECT_CONTAINS(two, "belong to two different traces");
  std::string compared = traced_error([&](Tensor, Tensor x) { return x.dim(0) == d ? x : -x; });
  EXPECT_CONTAINS(compared, "belong to two different traces");
}

TEST_F(ForeignDims, ALayerThatKeepsASize) {
  struct Scaled {
    std::optional<Dim> features;
    Tensor operator()(Tensor x) {
      if (!features) features = x.dim(-1);
      return x / *features;
    }
  } layer;
  Function f = function("f(x)", [&](Tensor x) { return layer(x); });
  // The second run of the first trace is refused, too: the size is of the first.
  EXPECT_CONTAINS(error_of([&] { f(ones({2, 4})); }), "size x_1 of 'f', taken at ");
}

TEST_F(ForeignDims, InsideAnInitScopeSizesAreRead) {
  Function f = function("f(x)", [](Tensor x) {
    Tensor fresh = [&] {
      InitScope outside;
      return zeros({x.dim(0)}) + 1;
    }();
    return x + fresh;
  });
  EXPECT_EQ(f(zeros({3})).to_vector<float>(), (std::vector<float>{1, 1, 1}));
  EXPECT_CONTAINS(f.explain(), "fact x_0 == 3, for host code");
  EXPECT_EQ(f(zeros({2})).to_vector<float>(), (std::vector<float>{1, 1}));
}

struct KeepsFeatures : keras::CustomLayer {
  std::optional<Dim> features;
  void build(const Shape& s) override { features = s[-1]; }
  Tensor call(const Tensor& x, const keras::Context&) override { return x / *features; }
};

TEST_F(ForeignDims, ALayerThatKeepsASizeFromBuild) {
  keras::Layer layer = KeepsFeatures{};
  Function f = function("f(x)", [=](Tensor x) { return layer(x); });
  std::string again = error_of([&] { f(ones({2, 4})); });  // the run that follows the one that builds
  EXPECT_CONTAINS(again, "size x_1 of 'f', taken at ");    // the line that called the layer
  EXPECT_CONTAINS(again, "foreign_dims_test.cpp:118, belongs to another trace");
  Function g = function("g(a, x)", [=](Tensor a, Tensor x) { return layer(x) + sum(a); });
  std::string elsewhere = error_of([&] { g(zeros({7, 9}), ones({2, 4})); });
  EXPECT_CONTAINS(elsewhere, "belongs to a trace that has ended and not to that of 'g'");
}

}  // namespace
}  // namespace stet
