// Variables that a traced function writes: what is overwritten, and that nobody can tell.
#include <gtest/gtest.h>

#include <thread>

#include "stet/core/tensor_node.h"
#include "stet/core/variable_state.h"
#include "stet/stet.h"

namespace stet {
namespace {

using Floats = std::vector<float>;

const void* memory_of(const Variable& variable) { return state_of(variable).value.node()->data; }
Floats values(const Variable& variable) { return variable.read().to_vector<float>(); }
Variable variable(Floats initial) { return Variable(tensor(initial)); }

TEST(Update, GoesInPlaceWhenTheVariableAloneHoldsItsValue) {
  Variable w = variable({1, 2, 3}), steps(tensor(0.f));
  Function step = function("step(x)", [=](Tensor x) {
    steps.assign_add(1.f);
    return sum(w.assign_sub(x * 0.5f));
  });
  step(tensor({2.f, 2.f, 2.f}));
  const void *w_memory = memory_of(w), *steps_memory = memory_of(steps);
  for (int i = 0; i < 3; ++i) step(tensor({2.f, 2.f, 2.f}));
  EXPECT_EQ(memory_of(steps), steps_memory);
  EXPECT_EQ(values(w), (Floats{-3, -2, -1}));
  EXPECT_EQ(values(steps), (Floats{4}));
  // The sum reads the new value, and may run out of memory: w gets fresh memory.
  EXPECT_NE(memory_of(w), w_memory);
}

TEST(Update, OldValuesStayVisible) {
  Variable v = variable({1, 2, 3});
  Function step = function("step()", [=] { v.assign(v * 2.f); });
  step();
  const void* memory = memory_of(v);
  step();
  EXPECT_EQ(memory_of(v), memory);
  Tensor old = v.read();
  Tensor view = v.read()[1];
  step();
  EXPECT_NE(memory_of(v), memory);
  EXPECT_EQ(old.to_vector<float>(), (Floats{4, 8, 12}));
  EXPECT_EQ(view.item<float>(), 8);
  EXPECT_EQ(values(v), (Floats{8, 16, 24}));
  old = Tensor();
  {
    Tensor kept = v.read();
    Variable other(kept);  // shares the value
    kept = Tensor();
    step();
    EXPECT_EQ(values(other), (Floats{8, 16, 24}));
    EXPECT_EQ(values(v), (Floats{16, 32, 48}));
  }
  memory = memory_of(v);
  step();
  EXPECT_EQ(memory_of(v), memory);
}

TEST(Update, AnArgumentThatIsTheValueStays) {
  Variable v = variable({1, 2, 3});
  Function step = function("step(x)", [=](Tensor x) {
    v.assign(v + x);
    return x * 1.f;
  });
  EXPECT_EQ(step(v.read()).to_vector<float>(), (Floats{1, 2, 3}));
  EXPECT_EQ(values(v), (Floats{2, 4, 6}));
}

TEST(Update, PartOfAnothersMemoryStays) {
  Tensor all = tensor({1.f, 2.f, 3.f, 4.f});
  Variable tail(slice(all, {2}, {2}));
  all = Tensor();
  Function step = function("step()", [=] { tail.assign(tail * 2.f); });
  step();
  step();
  EXPECT_EQ(values(tail), (Floats{12, 16}));
}

TEST(Update, AFailedCheckChangesNothing) {
  Variable a = variable({1, 2, 3}), b = variable({4, 5, 6}), steps(tensor(0.f));
  Function step = function("step(i)", [=](Tensor i) {
    steps.assign_add(1.f);
    a.assign(a * 2.f);
    Tensor picked = gather(b, i);
    b.assign(b + sum(picked));
    return picked;
  });
  step(tensor({0, 1}));
  step(tensor({0, 1}));
  Floats before_a = values(a), before_b = values(b);
  const void* memory = memory_of(a);
  EXPECT_THROW(step(tensor({0, 3})), UserError);
  EXPECT_EQ(values(a), before_a);
  EXPECT_EQ(values(b), before_b);
  EXPECT_EQ(values(steps), (Floats{2}));
  step(tensor({2, 2}));
  EXPECT_EQ(values(steps), (Floats{3}));
  EXPECT_EQ(memory_of(a), memory);
}

TEST(Update, SwappedAndSelfReferring) {
  Variable a = variable({1, 2, 3}), b = variable({4, 5, 6});
  Function swap = function("swap()", [=] {
    Tensor old = a;
    a.assign(b);
    b.assign(old);
  });
  for (int i = 0; i < 3; ++i) swap();
  EXPECT_EQ(values(a), (Floats{4, 5, 6}));
  EXPECT_EQ(values(b), (Floats{1, 2, 3}));
  Function same = function("same()", [=] {
    a.assign(b);
    b.assign(a);
  });
  for (int i = 0; i < 2; ++i) same();
  EXPECT_EQ(values(a), (Floats{1, 2, 3}));
  EXPECT_EQ(values(b), (Floats{1, 2, 3}));

  Variable square(tensor({{1.f, 2.f}, {3.f, 4.f}}));
  Function turn = function("turn()", [=] { square.assign(transpose(square)); });
  for (int i = 0; i < 3; ++i) turn();
  EXPECT_EQ(values(square), (Floats{1, 3, 2, 4}));
  Function itself = function("itself()", [=] { square.assign(square); });
  for (int i = 0; i < 2; ++i) itself();
  EXPECT_EQ(values(square), (Floats{1, 3, 2, 4}));
}

TEST(Update, ReadsOldAndNewValuesOfOthers) {
  Variable a = variable({1, 2}), b = variable({10, 20}), c = variable({100, 200});
  auto body = [=] {
    Tensor old = a;
    a.assign(a + b);
    b.assign(b * a);
    c.assign(c - old);
  };
  Function step = function("step()", body);
  Variable eager_a = variable({1, 2}), eager_b = variable({10, 20}), eager_c = variable({100, 200});
  for (int i = 0; i < 3; ++i) {
    step();
    Tensor old = eager_a;
    eager_a.assign(eager_a + eager_b);
    eager_b.assign(eager_b * eager_a);
    eager_c.assign(eager_c - old);
    EXPECT_EQ(values(a), values(eager_a));
    EXPECT_EQ(values(b), values(eager_b));
    EXPECT_EQ(values(c), values(eager_c));
  }
}

TEST(Update, ReadersOnOtherThreadsSeeWholeValues) {
  constexpr std::int64_t n = 20000;
  Variable v(zeros({n}));
  Function step = function("step()", [=] { v.assign(v + 1.f); });
  step();
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done) {
      Floats seen = values(v);
      EXPECT_EQ(std::count(seen.begin(), seen.end(), seen[0]), n);
    }
  });
  for (int i = 0; i < 300; ++i) step();
  done = true;
  reader.join();
  EXPECT_EQ(values(v)[n - 1], 301);
}

}  // namespace
}  // namespace stet
