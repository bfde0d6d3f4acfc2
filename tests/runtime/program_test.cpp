#include "stet/runtime/program.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/cpu/kernel_step.h"
#include "stet/runtime/plan_memory.h"
#include "tests/compiler/graph_harness.h"

namespace stet {
namespace {

// --- accepts

struct AcceptsTest : testing::Test {
  std::shared_ptr<RecordingScope> scope = std::make_shared<RecordingScope>();
  Program program;
  Dim a = scope->symbol("a", 3), b = scope->symbol("b", 4);

  /// Sizes per input, and the symbols that come with the call.
  bool accepts(const std::vector<std::vector<std::int64_t>>& sizes, std::vector<std::int64_t> dims = {}) const {
    std::vector<ConcreteInput> inputs;
    for (const auto& one : sizes) inputs.push_back({one, {}});
    return program.accepts(inputs, dims).has_value();
  }
};

TEST_F(AcceptsTest, SymbolsTakeAnySizeOnce) {
  program.inputs = {{f32, {a, b}}, {f32, {b, 7}}};
  EXPECT_TRUE(accepts({{3, 4}, {4, 7}}));
  EXPECT_TRUE(accepts({{0, 1}, {1, 7}}));
  EXPECT_FALSE(accepts({{3, 4}, {5, 7}})) << "b twice";
  EXPECT_FALSE(accepts({{3, 4}, {4, 8}})) << "a constant";
}

TEST_F(AcceptsTest, GivesTheSymbolsValues) {
  program.inputs = {{f32, {a, b}}};
  std::vector<std::int64_t> sizes{5, 6};
  ConcreteInput input{sizes, {}};
  std::optional<Bindings> bindings = program.accepts({&input, 1}, {});
  ASSERT_TRUE(bindings);
  EXPECT_EQ(bindings->find(*a.as_symbol()), 5);
  EXPECT_EQ(bindings->find(*b.as_symbol()), 6);
}

TEST_F(AcceptsTest, PolynomialsAreComparedOnceTheirSymbolsAreKnown) {
  program.inputs = {{f32, {a * b + 1}}, {f32, {a}}, {f32, {b}}};
  EXPECT_TRUE(accepts({{13}, {3}, {4}}));
  EXPECT_FALSE(accepts({{12}, {3}, {4}}));
}

TEST_F(AcceptsTest, FactsTiesPinsEquationsAndComparisons) {
  program.inputs = {{f32, {a}}, {f32, {b}}};
  auto with = [&](Dim left, Relation relation, Dim right) { program.facts = {{left, relation, right, {}}}; };
  with(a, Relation::equal, b);
  EXPECT_TRUE(accepts({{3}, {3}}));
  EXPECT_FALSE(accepts({{3}, {4}}));
  with(a, Relation::equal, 784);
  EXPECT_TRUE(accepts({{784}, {4}}));
  EXPECT_FALSE(accepts({{783}, {4}}));
  with(a * b, Relation::equal, 12);
  EXPECT_TRUE(accepts({{2}, {6}}));
  EXPECT_FALSE(accepts({{2}, {5}}));
  with(a, Relation::less, b);
  EXPECT_TRUE(accepts({{2}, {3}}));
  EXPECT_FALSE(accepts({{3}, {3}}));
  with(a, Relation::not_equal, 1);
  EXPECT_FALSE(accepts({{1}, {3}}));
}

TEST_F(AcceptsTest, DimsThatComeWithTheCall) {
  program.inputs = {{f32, {a}}};
  program.dim_symbols = {*b.as_symbol()};
  program.facts = {{a, Relation::equal, b, {}}};
  EXPECT_TRUE(accepts({{4}}, {4}));
  EXPECT_FALSE(accepts({{4}}, {5}));
}

TEST_F(AcceptsTest, StridesMatchTheirClasses) {
  program.inputs = {{f32, {a, 4}, {b, Dim(1)}}};
  auto strided = [&](std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides) {
    ConcreteInput input{sizes, strides};
    return program.accepts({&input, 1}, {}).has_value();
  };
  EXPECT_TRUE(strided({3, 4}, {9, 1}));
  EXPECT_FALSE(strided({3, 4}, {9, 2}));
  EXPECT_FALSE(strided({3, 4}, {})) << "dense";
}

TEST_F(AcceptsTest, OtherRanksAndCountsAreForOtherPrograms) {
  program.inputs = {{f32, {a, b}}};
  EXPECT_FALSE(accepts({{3}}));
  EXPECT_FALSE(accepts({{3, 4, 5}}));
  EXPECT_FALSE(accepts({}));
  EXPECT_FALSE(accepts({{3, 4}, {3, 4}}));
  EXPECT_FALSE(accepts({{3, 4}}, {1}));
}

// --- plan_memory

bool overlap_in_time(const PlannedBlock& x, const PlannedBlock& y) {
  return x.first <= y.last && y.first <= x.last && x.first <= x.last && y.first <= y.last;
}
bool overlap_in_space(const PlannedBlock& x, const PlannedBlock& y) {
  return x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
}

TEST(PlanMemory, BlocksThatLiveTogetherNeverOverlap) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 400; ++round) {
    int steps = 1 + static_cast<int>(random() % 40);
    std::vector<PlannedBlock> blocks(random() % 60);
    std::size_t sum = 0;
    for (PlannedBlock& block : blocks) {
      block.bytes = random() % 5 == 0 ? 0 : random() % 5000;
      block.first = static_cast<int>(random() % static_cast<unsigned>(steps));
      block.last = block.first + static_cast<int>(random() % static_cast<unsigned>(steps - block.first));
      if (random() % 16 == 0) block.last = block.first - 1;  // never used
      sum += (block.bytes + 63) / 64 * 64;
    }
    std::size_t total = plan_memory(blocks);
    EXPECT_LE(total, sum);
    std::size_t at_once = 0;
    for (int step = 0; step < steps; ++step) {
      std::size_t alive = 0;
      for (const PlannedBlock& block : blocks)
        if (block.first <= step && step <= block.last) alive += block.bytes;
      at_once = std::max(at_once, alive);
    }
    EXPECT_GE(total, at_once);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(blocks[i].offset % 64, 0u);
      if (blocks[i].first <= blocks[i].last) {
        EXPECT_LE(blocks[i].offset + blocks[i].bytes, total);
      }
      for (std::size_t j = 0; j < i; ++j)
        EXPECT_FALSE(overlap_in_time(blocks[i], blocks[j]) && overlap_in_space(blocks[i], blocks[j])) << i << " " << j;
    }
  }
}

TEST(PlanMemory, ReusesWhatIsFree) {
  // A chain: two blocks alive at a time, whatever its length.
  std::vector<PlannedBlock> chain;
  for (int i = 0; i < 100; ++i) chain.push_back({1000, i, i + 1});
  EXPECT_EQ(plan_memory(chain), 2048u);
  EXPECT_EQ(plan_memory({}), 0u);
}

TEST(PlanMemory, ManyBlocksInLittleTime) {
  std::vector<PlannedBlock> blocks;
  for (int i = 0; i < 200'000; ++i) blocks.push_back({static_cast<std::size_t>(64 + i % 7 * 64), i, i + 2});
  EXPECT_LE(plan_memory(blocks), 4096u);
}

/// Greedy by size, said plainly: of all ends of larger blocks that live at the same time, the lowest with room.
std::size_t lowest_free_offset(const std::vector<PlannedBlock>& placed, const PlannedBlock& block) {
  std::vector<std::size_t> candidates{0};
  for (const PlannedBlock& other : placed) candidates.push_back((other.offset + other.bytes + 63) / 64 * 64);
  std::sort(candidates.begin(), candidates.end());
  for (std::size_t offset : candidates) {
    PlannedBlock there = block;
    there.offset = offset;
    if (std::none_of(placed.begin(), placed.end(), [&](const PlannedBlock& other) {
          return overlap_in_time(there, other) && overlap_in_space(there, other);
        }))
      return offset;
  }
  return 0;
}

TEST(PlanMemory, PutsEveryBlockAtTheLowestOffsetThatIsFree) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 300; ++round) {
    int steps = 1 + static_cast<int>(random() % 60);
    std::vector<PlannedBlock> blocks(random() % 70);
    for (PlannedBlock& block : blocks) {
      block.bytes = random() % 3 == 0 ? random() % 4 * 320 : random() % 5000;
      block.first = static_cast<int>(random() % static_cast<unsigned>(steps));
      block.last = block.first + static_cast<int>(random() % static_cast<unsigned>(steps - block.first));
    }
    plan_memory(blocks);
    std::stable_sort(blocks.begin(), blocks.end(),
                     [](const PlannedBlock& a, const PlannedBlock& b) { return a.bytes > b.bytes; });
    std::vector<PlannedBlock> placed;
    for (const PlannedBlock& block : blocks) {
      EXPECT_EQ(block.offset, lowest_free_offset(placed, block)) << "round " << round;
      placed.push_back(block);
    }
  }
}

/// What a training step of so many layers keeps: an activation until its layer's gradient, and what that needs.
std::vector<PlannedBlock> blocks_of_training(int layers) {
  std::vector<PlannedBlock> blocks;
  for (int i = 0; i < layers; ++i) {
    blocks.push_back({static_cast<std::size_t>(64 + i % 5 * 256), i, 2 * layers - i});
    blocks.push_back({static_cast<std::size_t>(64 + i % 3 * 64), 2 * layers - i, 2 * layers - i + 2});
  }
  return blocks;
}

TEST(PlanMemory, WorkGrowsWithTheNumberOfBlocks) {
  auto work = [](int layers) {
    std::vector<PlannedBlock> blocks = blocks_of_training(layers);
    std::size_t probes = 0;
    plan_memory(blocks, probes);
    return probes;
  };
  std::size_t before = work(1000);
  for (int layers : {2000, 4000, 8000}) {
    std::size_t now = work(layers);
    EXPECT_LT(now, before * 5 / 2) << layers;
    before = now;
  }
}

TEST(PlanMemory, SumsThatDoNotFitAreAProblem) {
  std::vector<PlannedBlock> blocks(5, {std::size_t{1} << 61, 0, 3});
  EXPECT_THROW(plan_memory(blocks), Problem);
}

// --- running

TEST(Program, TextShowsBuffersFactsAndSteps) {
  SymbolicGraph g;
  Dim s = g.symbol("s", 3), t = g.symbol("t", 3);
  ValueId x = g.input(f32, {s}), y = g.input(f32, {t});
  g.graph.results = {g.call("add", {x, y})};
  std::shared_ptr<Program> program = compile_with_facts(g.graph);
  EXPECT_EQ(program->str(),
            "buffer 0 input f32 x s\n"
            "buffer 1 input f32 x t\n"
            "buffer 2 result f32 x s\n"
            "fact s == t\n"
            "step 0: kernel add\n"
            "  i0 < s\n"
            "  x0 = buffer 0 f32 [0 + i0*(1)]\n"
            "  x1 = buffer 1 f32 [0 + i0*(1)]\n"
            "  value = x0 + x1\n"
            "  to buffer 2 f32 [0 + i0*(1)]\n\n");
}

TEST(Program, OneProgramServesAllSizes) {
  SymbolicGraph g;
  Dim s = g.symbol("s", 3);
  ValueId x = g.input(f32, {s, 2});
  ValueId shared = g.call("exp", {x});  // two users: it stays in the arena
  g.graph.results = {g.call("sum", {shared}, reduce_over({0})), g.call("max", {shared}, reduce_over({0}))};
  std::shared_ptr<Program> program = compile(g.graph);
  for (std::int64_t size : {1, 3, 64, 1000}) {
    Array argument = Array::filled(f32, {size, 2}, [](std::int64_t) { return 0; });
    std::shared_ptr<const BoundProgram> bound = bind_to(*program, {&argument, 1});
    EXPECT_EQ(bound->arena_bytes(), static_cast<std::size_t>((size * 8 + 63) / 64 * 64));
    EXPECT_EQ(bound->result_sizes(), (std::vector<std::vector<std::int64_t>>{{2}, {2}}));
    std::vector<Array> got = run_bound(*program, *bound, {&argument, 1});
    EXPECT_EQ(got[0].reals(), std::vector<double>(2, static_cast<double>(size)));
    EXPECT_EQ(got[1].reals(), std::vector<double>(2, 1));
  }
}

TEST(Program, SizesThatAreTooLargeAreAProblem) {
  SymbolicGraph g;
  Dim s = g.symbol("s", 3), t = g.symbol("t", 3);
  ValueId x = g.input(f32, {s, 1}), y = g.input(f32, {1, t});
  g.graph.results = {g.call("add", {x, y})};
  std::shared_ptr<Program> program = compile(g.graph);
  for (std::int64_t huge : {std::int64_t{1} << 31, std::int64_t{1} << 40}) {
    std::vector<std::int64_t> left{huge, 1}, right{1, huge};
    ConcreteInput inputs[] = {{left, {}}, {right, {}}};
    std::optional<Bindings> bindings = program->accepts(inputs, {});
    ASSERT_TRUE(bindings);
    EXPECT_THROW(program->bind(*bindings), UserError) << huge;
  }
}

TEST(Program, ManyThreadsRunOneBoundProgram) {
  SymbolicGraph g;
  Dim s = g.symbol("s", 300), t = g.symbol("t", 200);
  ValueId x = g.input(f32, {s, t}), w = g.input(f32, {t, t});
  ValueId shared = g.call("tanh", {x});
  ValueId product = g.graph.add_call(matmul_row, {shared, w}, contract_as(false, false));
  g.graph.results = {g.call("sum", {shared}, reduce_over({0})), g.call("relu", {product})};
  std::shared_ptr<Program> program = compile(g.graph);
  auto noise = [](std::int64_t i) { return std::sin(static_cast<double>(i)); };
  std::vector<Array> arguments{Array::filled(f32, {300, 200}, noise), Array::filled(f32, {200, 200}, noise)};
  std::shared_ptr<const BoundProgram> bound = bind_to(*program, arguments);
  std::vector<Array> expected = run_bound(*program, *bound, arguments);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int repeat = 0; repeat < 20; ++repeat) {
        std::vector<Array> got = run_bound(*program, *bound, arguments);
        for (std::size_t r = 0; r < got.size(); ++r) wrong += got[r].bytes != expected[r].bytes;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// --- late sizes

TEST(LateProgram, ResultsAndTemporariesFollowTheLateSize) {
  SymbolicGraph g;
  ValueId x = g.input(f32, {g.symbol("s", 6)});
  ValueId positions = g.call("nonzero", {x});
  ValueId doubled = g.call("add", {positions, positions});
  g.graph.results = {doubled, g.call("sum", {doubled}, reduce_over({0, 1})), x};
  for (const CompileOptions& options : {all_passes(), no_passes()}) {
    std::shared_ptr<Program> program = compile_with_facts(g.graph, options);
    for (std::int64_t size : {0, 1, 7, 100}) {
      Array argument = Array::filled(f32, {size}, [](std::int64_t i) { return i % 3; });
      std::vector<double> expected;
      double sum = 0;
      for (std::int64_t i = 0; i < size; ++i)
        if (i % 3) {
          expected.push_back(2 * static_cast<double>(i));
          sum += 2 * static_cast<double>(i);
        }
      std::vector<Array> got = run_on(*program, {&argument, 1});
      EXPECT_EQ(got[0].sizes, (std::vector<std::int64_t>{static_cast<std::int64_t>(expected.size()), 1}));
      EXPECT_EQ(got[0].reals(), expected);
      EXPECT_EQ(got[1].reals(), std::vector<double>{sum});
      EXPECT_EQ(got[2].bytes, argument.bytes);
    }
  }
}

std::string problem_of(const Program& program, std::span<const Array> arguments) {
  try {
    run_on(program, arguments);
  } catch (const Problem& problem) {
    return problem.text();
  }
  return "";
}

TEST(LateProgram, ChecksOfLateSizesAreTestedWhenTheSizesAreKnown) {
  SymbolicGraph g;
  ValueId x = g.input(f32, {g.symbol("s", 6)});
  g.graph.results = {g.call("max", {g.call("nonzero", {x})}, reduce_over({0}))};
  std::shared_ptr<Program> program = compile_with_facts(g.graph);
  Array some = Array::filled(f32, {5}, [](std::int64_t i) { return i; }), none = Array::zeros(f32, {5});
  EXPECT_EQ(problem_of(*program, {&some, 1}), "");
  EXPECT_EQ(problem_of(*program, {&none, 1}), "an empty axis has no largest or smallest element");
}

TEST(LateProgram, AgreementWithALateSizeIsTestedBeforeAnythingIsRead) {
  SymbolicGraph g;
  ValueId x = g.input(f32, {g.symbol("s", 6)}), y = g.input(i64, {g.symbol("t", 3), 1});
  g.graph.results = {g.call("add", {g.call("nonzero", {x}), y})};
  std::shared_ptr<Program> program = compile_with_facts(g.graph);
  Array values = Array::filled(f32, {5}, [](std::int64_t i) { return i; });
  Array four[] = {values, Array::filled(i64, {4, 1}, [](std::int64_t i) { return 10 * i; })};
  EXPECT_EQ(run_on(*program, four)[0].reals(), (std::vector<double>{1, 12, 23, 34}));
  Array three[] = {values, Array::zeros(i64, {3, 1})};
  EXPECT_EQ(problem_of(*program, three), "broadcast: sizes 4 and 3 do not agree");
}

}  // namespace
}  // namespace stet
