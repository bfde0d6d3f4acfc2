// What gradients through long loops take: memory that grows with the number of turns, and with checkpoints like its
// root.
#include <stet/stet.h>

#include "algorithms.h"
#include "stet/runtime/buffer.h"

namespace stet {
namespace {

constexpr std::int64_t rows = 4, width = 64;
constexpr double unit = rows * width * sizeof(float);  // the memory of one state

struct Network {
  Variable w, b;
  Tensor operator()(const Tensor& h) const { return tanh(matmul(h, w) + b); }
};
Network network() {
  Reals w = wave(width * width, 0.3), b = wave(width, 2);
  return {Variable(cast(shaped(w, {width, width}) * 0.1, f32)), Variable(cast(tensor(b) * 0.1, f32))};
}

/// So many turns of a loop from the state h.
using Turns = std::function<Tensor(const Network& net, Tensor h, Dim turns, std::int64_t checkpoint_every)>;

struct Run {
  double peak = 0;  // in units
  Tensor by_h, by_w;
};

/// The most memory that one call takes beside its arguments; the program was compiled before.
Run measure(const Turns& loop, std::int64_t turns, std::int64_t checkpoint_every) {
  Network net = network();
  Function slope =
      function("slope(h, turns)",
               [=](Tensor h, Dim turns) {
                 GradientTape tape;
                 tape.watch(h);
                 std::vector<Tensor> d = tape.gradient(sum(loop(net, h, turns, checkpoint_every)), {h, net.w});
                 return std::pair(d[0], d[1]);
               },
               {.audit = Audit::never});  // which may run eagerly too (STET_VERIFY), in the call that is measured
  Tensor h = full({rows, width}, 0.5f);
  slope(h, 3);
  const std::size_t before = memory_statistics().bytes_in_use;
  reset_peak_memory();
  auto [by_h, by_w] = slope(h, turns);
  EXPECT_EQ(slope.trace_count(), 1) << slope.explain();
  return {static_cast<double>(memory_statistics().peak_bytes - before) / unit, by_h, by_w};
}

/// `kept`: how many units a turn keeps without checkpoints, at most.
void expect_roots(const Turns& loop, double kept) {
  SCOPED_TRACE("memory in states of a turn");
  Run small = measure(loop, 2'500, 0), large = measure(loop, 10'000, 0);
  EXPECT_GE(large.peak, 10'000);
  EXPECT_LE(large.peak, kept * 10'000 + 100);
  EXPECT_NEAR(large.peak / small.peak, 4, 0.1);
  Run small_root = measure(loop, 2'500, 50), large_root = measure(loop, 10'000, 100);
  // One state for each checkpoint, and what the turns between two of them keep.
  EXPECT_LE(large_root.peak, (1 + kept) * 100 + 200);
  EXPECT_LE(large_root.peak / small_root.peak, 2.1);
  EXPECT_GE(large.peak / large_root.peak, 30);
  expect_bits(large_root.by_h, large.by_h, "by h");
  expect_agree(large_root.by_w, large.by_w, 1e-5, "by w");
  testing::Test::RecordProperty("units_all", std::to_string(large.peak));
  testing::Test::RecordProperty("units_root", std::to_string(large_root.peak));
}

TEST(AlgorithmsMemory, Scan) {
  expect_roots(
      [](const Network& net, Tensor h, Dim turns, std::int64_t k) {
        return scan([&](Tensor h) { return net(h); }, h, {.length = turns, .checkpoint_every = k});
      },
      3.1);
}

/// Elements of a sequence stay where they are: a turn that is run again reads them again.
TEST(AlgorithmsMemory, ScanOverASequence) {
  expect_roots(
      [](const Network& net, Tensor h, Dim turns, std::int64_t k) {
        return scan([&](Tensor h, Tensor x) { return net(h) + x; }, h, linspace(0.f, 1.f, turns),
                    {.checkpoint_every = k});
      },
      3.2);
}

TEST(AlgorithmsMemory, ForLoop) {
  expect_roots(
      [](const Network& net, Tensor h, Dim turns, std::int64_t k) {
        return for_loop(turns, [&](Tensor h) { return net(h); }, h, {.checkpoint_every = k});
      },
      3.1);
}

/// How many turns there will be is not known: the stacks grow as they go.
TEST(AlgorithmsMemory, WhileLoop) {
  expect_roots(
      [](const Network& net, Tensor h, Dim turns, std::int64_t k) {
        auto [last, turn] = while_loop([&](Tensor, Tensor turn) { return turn < turns; },
                                       [&](Tensor h, Tensor turn) { return std::tuple(net(h), turn + 1); },
                                       std::tuple(h, tensor(0)), {.checkpoint_every = k});
        return last;
      },
      6.2);
}

}  // namespace
}  // namespace stet
