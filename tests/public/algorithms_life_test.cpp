// The Game of Life on a torus: booleans and small integers carried through a loop.
#include "algorithms.h"

namespace stet {
namespace {

Tensor next_by_roll(Tensor alive) {
  Tensor cells = cast(alive, u8), neighbours = zeros_like(cells);
  for (int down : {-1, 0, 1})
    for (int right : {-1, 0, 1})
      if (down != 0 || right != 0) neighbours += roll(cells, {down, right}, {0, 1});
  return (neighbours == 3) | (alive & (neighbours == 2));
}

/// The same by a convolution of the board with its edges around it.
Tensor next_by_convolution(Tensor alive) {
  Tensor board = cast(alive, f32);
  Tensor wide = pad(board, {{1, 1}, {1, 1}}, {.mode = PadMode::wrap});
  Tensor weights = at(ones({3, 3}), 1, 1).set(0);
  Tensor neighbours = conv2d(expand_dims(wide, {0, 3}), expand_dims(weights, {2, 3}));
  neighbours = squeeze(neighbours, {0, 3});
  return where(neighbours == 2, alive, neighbours == 3);
}

template <class Next, class Count>
Tensor generations(Next next, Tensor board, Count count) {
  return for_loop(
      count, [&](Tensor now) { return next(now); }, board);
}

Integers plain_life(Integers board, std::int64_t height, std::int64_t width, std::int64_t count) {
  for (; count > 0; --count) {
    Integers next(board.size());
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t x = 0; x < width; ++x) {
        std::int64_t neighbours = 0;
        for (std::int64_t dy : {-1, 0, 1})
          for (std::int64_t dx : {-1, 0, 1})
            if (dy != 0 || dx != 0)
              neighbours +=
                  board[static_cast<std::size_t>((y + dy + height) % height * width + (x + dx + width) % width)];
        const auto here = static_cast<std::size_t>(y * width + x);
        next[here] = neighbours == 3 || (neighbours == 2 && board[here] == 1);
      }
    board = next;
  }
  return board;
}

TEST(AlgorithmsLife, GenerationsAreThoseOfThePlainOne) {
  Function rolled = function("rolled(board, count)",
                             [](Tensor board, Tensor count) { return generations(next_by_roll, board, count); });
  Function convolved = function("convolved(board, count)", [](Tensor board, Tensor count) {
    return generations(next_by_convolution, board, count);
  });
  for (auto [height, width] : std::vector<std::pair<std::int64_t, std::int64_t>>{{8, 11}, {33, 20}, {1, 5}, {3, 1}})
    for (std::int64_t count : {1, 0, 2, 30}) {
      SCOPED_TRACE(testing::Message() << height << " by " << width << ", " << count << " generations");
      Integers board;
      for (double v : wave(height * width, 0.6)) board.push_back(v > 0.2);
      Tensor start = reshape(tensor(board), {height, width}) == 1, turns = tensor(count);
      Integers expected = plain_life(board, height, width, count);
      Tensor got = rolled(start, turns);
      EXPECT_EQ(got.dtype(), DType::bool_);
      EXPECT_EQ(integers(got), expected);
      EXPECT_EQ(integers(convolved(start, turns)), expected);
      EXPECT_EQ(integers(generations(next_by_roll, start, turns)), expected);
      EXPECT_EQ(integers(generations(next_by_convolution, start, turns)), expected);
    }
  EXPECT_EQ(rolled.trace_count(), 1) << rolled.explain();
  EXPECT_EQ(convolved.trace_count(), 1) << convolved.explain();
}

/// A glider is itself after four generations, one cell further down and to the right; round the torus it comes back.
TEST(AlgorithmsLife, AGliderReturns) {
  Function life =
      function("life(board, count)", [](Tensor board, Dim count) { return generations(next_by_roll, board, count); });
  for (std::int64_t size : {6, 9}) {
    Tensor glider = tensor({{0, 1, 0}, {0, 0, 1}, {1, 1, 1}}) == 1;
    Tensor board = pad(glider, {{1, size - 4}, {0, size - 3}});
    expect_bits(life(board, 4), roll(board, {1, 1}, {0, 1}), "four generations");
    expect_bits(life(board, 4 * size), board, "round the torus");
    EXPECT_NE(integers(life(board, 2)), integers(board));
  }
  EXPECT_EQ(life.trace_count(), 1) << life.explain();
}

/// Until a generation is like the one before, or a hundred have passed: a while_loop that compares booleans.
TEST(AlgorithmsLife, UntilNothingChanges) {
  auto settle = [](Tensor board) {
    auto [last, changed, turns] =
        while_loop([](Tensor, Tensor changed, Tensor turns) { return changed && turns < 100; },
                   [](Tensor now, Tensor, Tensor turns) {
                     Tensor next = next_by_roll(now);
                     return std::tuple(next, ~array_equal(next, now), turns + 1);
                   },
                   std::tuple(board, tensor(true), tensor(0)));
    return std::pair(last, turns);
  };
  Function traced = function("settle(board)", settle);
  Tensor corner = tensor({{1, 1}, {1, 0}}) == 1, row = tensor({{1, 1, 1}}) == 1;
  for (std::int64_t size : {5, 8}) {
    // Three cells in a corner become a block, which stays; three in a row turn for ever.
    auto [block, turns] = traced(pad(corner, {{1, size - 3}, {1, size - 3}}));
    expect_bits(block, pad(ones({2, 2}, DType::bool_), {{1, size - 3}, {1, size - 3}}));
    EXPECT_EQ(turns.item<int>(), 2);
    auto [blinker, many] = traced(pad(row, {{2, size - 3}, {1, size - 4}}));
    EXPECT_EQ(many.item<int>(), 100);
    expect_bits(blinker, pad(row, {{2, size - 3}, {1, size - 4}}));
    expect_bits(settle(pad(corner, {{1, size - 3}, {1, size - 3}})).first, block, "eager");
  }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
}

}  // namespace
}  // namespace stet
