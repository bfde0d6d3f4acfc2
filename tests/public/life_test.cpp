// Functions and tensors at the edges of their lives: moved from, destroyed inside of themselves.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include <memory>
#include <optional>

#include "expect_error.h"

namespace stet {
namespace {

using Floats = std::vector<float>;

TEST(Life, AMovedFromFunctionSaysSo) {
  Function f = function("f(x)", [](Tensor x) { return x + 1; });
  Function g = std::move(f);
  EXPECT_EQ(g(tensor({1.f})).item<float>({0}), 2.f);
  auto expect = [](const std::string& error, const std::string& operation) {
    EXPECT_CONTAINS(error, operation + ": this Function was moved from and holds nothing");
    EXPECT_CONTAINS(error, "fix: use the one that it was moved to, or copy it instead: copies share");
  };
  std::string of_call = error_of([&] { f(tensor({1.f})); });
  expect(of_call, "call");
  EXPECT_CONTAINS(of_call, "at ");
  EXPECT_CONTAINS(of_call, "life_test.cpp:");
  expect(error_of([&] { f.trace_count(); }), "trace_count");
  expect(error_of([&] { f.explain(); }), "explain");
  expect(error_of([&] { f.graph(); }), "graph");
  expect(error_of([&] { f.clear(); }), "clear");
}

TEST(Life, AFunctionMayBeDestroyedInsideItsOwnTrace) {
  auto holder = std::make_shared<std::optional<Function<Tensor(Tensor)>>>();
  holder->emplace(function("f(x)", [holder](Tensor x) {
    Tensor y = x * 2;
    holder->reset();
    return y + 1;
  }));
  EXPECT_EQ((**holder)(tensor({1.f, 2.f})).to_vector<float>(), (Floats{3, 5}));
  EXPECT_FALSE(holder->has_value());
}

}  // namespace
}  // namespace stet
