// Updates in place: what is written over its old value, and that nobody can tell.
#include "stet/compiler/plan_updates.h"

#include <gtest/gtest.h>

#include <random>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "tests/compiler/graph_harness.h"
#include "tests/scale.h"

namespace stet {
namespace {

// --- random programs, step by step

constexpr std::int64_t length = 5;

/// Reads some buffers and writes some others, element by element. One that is not pointwise reads neighbours, which
/// shows when it has overwritten them.
class ArithmeticStep : public Step {
 public:
  ArithmeticStep(std::vector<int> in, std::vector<int> out, double k, bool pointwise, bool throws, bool adds)
      : in_(std::move(in)), out_(std::move(out)), k_(k), pointwise_(pointwise), throws_(throws), adds_(adds) {
    reads = in_;
    writes = out_;
    if (adds_) reads.insert(reads.end(), out_.begin(), out_.end());
  }
  bool may_throw() const override { return throws_; }
  bool pointwise(int, int) const override { return pointwise_; }
  std::string str() const override { return "arithmetic"; }
  std::unique_ptr<BoundStep> bind(const Bindings&) const override {
    struct Bound : BoundStep {
      explicit Bound(const ArithmeticStep& step) : step(step) {}
      void run(void* const* table) const override { step.run(table); }
      const ArithmeticStep& step;
    };
    return std::make_unique<Bound>(*this);
  }
  void run(void* const* table) const {
    for (std::int64_t i = 0; i < length; ++i) {
      if (fails && i == length / 2) throw Problem("injected");
      double value = k_;
      for (int in : in_) value = value * 0.75 + static_cast<double*>(table[in])[pointwise_ ? i : (i + 1) % length];
      for (std::size_t o = 0; o < out_.size(); ++o) {
        double& to = static_cast<double*>(table[out_[o]])[i];
        to = (adds_ ? to : 0) + value + static_cast<double>(o);
      }
    }
  }
  bool fails = false;

 private:
  std::vector<int> in_, out_;
  double k_;
  bool pointwise_, throws_, adds_;
};

using Values = std::vector<double>;

/// A program in single assignment over a few pieces of state, made into steps as lowering does: a result is a buffer of
/// its own, so inputs, and values returned twice, are copied.
class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed) : random_(seed) {
    state_ = 1 + below(4);
    int steps = 2 + below(9), values = state_;
    std::vector<Made> made;
    for (int i = 0; i < steps; ++i) {
      Made step;
      int inputs = 1 + below(3);
      for (int k = 0; k < inputs; ++k) step.in.push_back(below(values));
      int outputs = below(4) == 0 ? 2 : 1;
      for (int k = 0; k < outputs; ++k) step.out.push_back(values++);
      step.twice = below(8) == 0;
      made.push_back(step);
    }
    std::vector<int> results;  // values
    for (int v = 0; v < state_; ++v) {
      if (below(4) == 0) continue;
      updates.push_back({v, static_cast<int>(results.size())});
      results.push_back(below(3) ? state_ + below(values - state_) : below(values));
    }
    for (int extra = below(3); extra > 0; --extra) results.push_back(below(values));
    if (below(2)) std::shuffle(updates.begin(), updates.end(), random_);
    make_buffers(values, results);
    for (std::size_t i = 0; i < made.size(); ++i) make_steps(made[i], static_cast<double>(i));
    copy_results(results);
    expected_ = meaning();
  }

  /// Runs it with every result in place that may be; a step that may throw does so if `failing`.
  void check(bool failing) {
    std::vector<Values> before = initial();
    std::vector<Buffer> memory;
    std::vector<void*> inputs;
    for (const Values& values : before) {
      memory.push_back(Buffer::allocate(length * sizeof(double)));
      std::copy(values.begin(), values.end(), reinterpret_cast<double*>(memory.back().data()));
      inputs.push_back(memory.back().data());
    }
    std::vector<Buffer> results(program->results.size());
    for (std::size_t r = 0; r < results.size(); ++r)
      if (int from = program->in_place[r]; from >= 0 && below(4)) results[r] = memory[static_cast<std::size_t>(from)];
    std::vector<ArithmeticStep*> throwing;
    for (auto& step : program->steps)
      if (step->may_throw()) throwing.push_back(static_cast<ArithmeticStep*>(step.get()));
    ArithmeticStep* fails = failing && !throwing.empty()
                                ? throwing[static_cast<std::size_t>(below(static_cast<int>(throwing.size())))]
                                : nullptr;
    if (fails) fails->fails = true;
    std::shared_ptr<const BoundProgram> bound = program->bind(Bindings());
    if (fails) {
      EXPECT_THROW(bound->run(inputs.data(), results.data()), Problem);
      fails->fails = false;
      for (std::size_t v = 0; v < before.size(); ++v) EXPECT_EQ(values_in(memory[v]), before[v]) << "state " << v;
      return;
    }
    bound->run(inputs.data(), results.data());
    for (std::size_t r = 0; r < results.size(); ++r) EXPECT_EQ(values_in(results[r]), expected_[r]) << "result " << r;
  }

  std::shared_ptr<Program> program = std::make_shared<Program>();
  std::vector<Update> updates;

 private:
  struct Made {
    std::vector<int> in, out;
    bool twice = false;
  };
  int below(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
  static Values values_in(const Buffer& buffer) {
    const auto* data = reinterpret_cast<const double*>(buffer.data());
    return Values(data, data + length);
  }
  std::vector<Values> initial() const {
    std::vector<Values> out;
    for (int v = 0; v < state_; ++v) {
      out.emplace_back();
      for (std::int64_t i = 0; i < length; ++i) out.back().push_back(v + 1.5 + static_cast<double>(i * i));
    }
    return out;
  }

  void make_buffers(int values, const std::vector<int>& results) {
    place_.assign(static_cast<std::size_t>(values), -1);
    auto add = [&](ProgramBuffer::Role role) {
      program->buffers.push_back({role, DType::f64, Dim(length)});
      return static_cast<int>(program->buffers.size()) - 1;
    };
    for (int v = 0; v < state_; ++v) {
      program->inputs.push_back({DType::f64, Shape{length}});
      place_[static_cast<std::size_t>(v)] = add(ProgramBuffer::input);
    }
    for (int value : results) {
      int buffer = add(ProgramBuffer::result);
      program->results.push_back({DType::f64, Shape{length}, buffer});
      int& place = place_[static_cast<std::size_t>(value)];
      if (place < 0) place = buffer;
    }
    for (int& place : place_)
      if (place < 0) place = add(ProgramBuffer::temporary);
  }
  void make_steps(const Made& made, double k) {
    std::vector<int> in, out;
    for (int value : made.in) in.push_back(place_[static_cast<std::size_t>(value)]);
    for (int value : made.out) out.push_back(place_[static_cast<std::size_t>(value)]);
    auto add = [&](bool adds) {
      program->steps.push_back(std::make_unique<ArithmeticStep>(in, out, k, below(4) != 0, below(6) == 0, adds));
    };
    add(false);
    if (made.twice) add(true);
  }
  void copy_results(const std::vector<int>& results) {
    for (std::size_t r = 0; r < results.size(); ++r) {
      int from = place_[static_cast<std::size_t>(results[r])], to = program->results[r].buffer;
      if (from == to) continue;
      program->steps.push_back(
          std::make_unique<ArithmeticStep>(std::vector{from}, std::vector{to}, 0.0, true, false, false));
    }
  }
  /// What the steps compute in the order in which they were made, each buffer memory of its own.
  std::vector<Values> meaning() const {
    std::vector<Values> memory = initial();
    memory.resize(program->buffers.size(), Values(length, 0.0));
    std::vector<void*> table;
    for (Values& values : memory) table.push_back(values.data());
    for (const auto& step : program->steps) static_cast<const ArithmeticStep&>(*step).run(table.data());
    std::vector<Values> out;
    for (const ProgramResult& result : program->results) out.push_back(memory[static_cast<std::size_t>(result.buffer)]);
    return out;
  }

  std::mt19937_64 random_;
  int state_ = 0;
  std::vector<int> place_;  // of each value: its buffer
  std::vector<Values> expected_;
};

TEST(PlanUpdates, RandomProgramsComputeTheSameAndFailWithoutATrace) {
  int updates = 0, in_place = 0;
  for (std::uint64_t seed = 0; seed < scaled(20000); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomProgram random(seed);
    plan_updates(*random.program, random.updates);
    random.check(false);
    random.check(true);
    if (HasFailure()) return;
    updates += static_cast<int>(random.updates.size());
    for (int from : random.program->in_place) in_place += from >= 0;
  }
  EXPECT_GT(in_place, updates / 8);
  EXPECT_LT(in_place, updates);
}

/// Which updates go in place, said plainly: the largest first, here in their order; each if the order that it needs
/// makes no cycle with what is asked for already. Reachability is worked out anew for each.
std::vector<int> plainly_planned(const Program& program, const std::vector<Update>& updates) {
  const std::size_t commit = program.steps.size();
  std::vector<std::vector<bool>> before(commit + 1, std::vector<bool>(commit + 1, false));
  auto has = [](const std::vector<int>& list, int buffer) {
    return std::find(list.begin(), list.end(), buffer) != list.end();
  };
  for (std::size_t a = 0; a < commit; ++a) {
    for (std::size_t b = a + 1; b < commit; ++b)
      for (int buffer : program.steps[a]->writes)
        if (has(program.steps[b]->reads, buffer) || has(program.steps[b]->writes, buffer)) before[a][b] = true;
    for (std::size_t b = a + 1; b < commit; ++b)
      for (int buffer : program.steps[a]->reads)
        if (has(program.steps[b]->writes, buffer)) before[a][b] = true;
    before[a][commit] = program.steps[a]->may_throw();
  }
  auto has_cycle = [&] {
    std::vector<std::vector<bool>> reaches = before;
    for (std::size_t k = 0; k <= commit; ++k)
      for (std::size_t i = 0; i <= commit; ++i)
        for (std::size_t j = 0; j <= commit; ++j)
          if (reaches[i][k] && reaches[k][j]) reaches[i][j] = true;
    for (std::size_t i = 0; i <= commit; ++i)
      if (reaches[i][i]) return true;
    return false;
  };
  std::vector<int> in_place(program.results.size(), -1);
  for (const Update& update : updates) {
    const int from = update.input, to = program.results[static_cast<std::size_t>(update.result)].buffer;
    std::vector<std::size_t> writers;
    for (std::size_t s = 0; s < commit; ++s)
      if (has(program.steps[s]->writes, to)) writers.push_back(s);
    if (writers.size() != 1) continue;
    const Step& step = *program.steps[writers[0]];
    if (step.may_throw() || (has(step.reads, from) && !step.pointwise(from, to))) continue;
    const std::vector<std::vector<bool>> asked = before;
    for (std::size_t s = 0; s < commit; ++s)
      if (s != writers[0] && has(program.steps[s]->reads, from)) before[s][writers[0]] = true;
    before[commit][writers[0]] = true;
    if (has_cycle())
      before = asked;
    else
      in_place[static_cast<std::size_t>(update.result)] = from;
  }
  return in_place;
}

TEST(PlanUpdates, WhatCanGoInPlaceDoes) {
  for (std::uint64_t seed = 0; seed < scaled(4000); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomProgram random(seed);
    const std::vector<int> expected = plainly_planned(*random.program, random.updates);
    plan_updates(*random.program, random.updates);
    EXPECT_EQ(random.program->in_place, expected);
    if (HasFailure()) return;
  }
}

/// Steps of a training step: forwards, then for each layer, from the last on, its update and only then the gradient
/// that still reads the old weight, so that every update has to be moved. Every update reads one scalar, which is
/// updated too.
std::size_t visits_to_plan(int layers) {
  auto program = std::make_shared<Program>();
  auto add = [&](ProgramBuffer::Role role) {
    program->buffers.push_back({role, DType::f64, Dim(length)});
    return static_cast<int>(program->buffers.size()) - 1;
  };
  const int states = layers + 1;  // a weight of each, and the scalar
  for (int i = 0; i < states; ++i) {
    program->inputs.push_back({DType::f64, Shape{length}});
    add(ProgramBuffer::input);
  }
  std::vector<Update> updates;
  for (int i = 0; i < states; ++i) {
    program->results.push_back({DType::f64, Shape{length}, add(ProgramBuffer::result)});
    updates.push_back({i, i});
  }
  auto step = [&](std::vector<int> in, int out) {
    program->steps.push_back(
        std::make_unique<ArithmeticStep>(std::move(in), std::vector{out}, 1.0, true, false, false));
  };
  std::vector<int> value{add(ProgramBuffer::temporary)};
  step({}, value[0]);
  step({layers}, states + layers);  // the scalar's next value
  for (int i = 0; i < layers; ++i) {
    value.push_back(add(ProgramBuffer::temporary));
    step({i, value[value.size() - 2]}, value.back());
  }
  int gradient = value.back();
  for (int i = layers; i-- > 0;) {
    step({i, gradient, value[static_cast<std::size_t>(i)], layers}, states + i);
    const int next = add(ProgramBuffer::temporary);
    step({i, gradient}, next);
    gradient = next;
  }
  std::size_t visits = 0;
  plan_updates(*program, updates, &visits);
  for (int i = 0; i < states; ++i) EXPECT_EQ(program->in_place[static_cast<std::size_t>(i)], i);
  return visits;
}

TEST(PlanUpdates, WorkGrowsWithTheNumberOfLayers) {
  std::size_t before = visits_to_plan(500);
  for (int layers : {1000, 2000, 4000}) {
    std::size_t now = visits_to_plan(layers);
    EXPECT_LT(now, before * 5 / 2) << layers;
    before = now;
  }
}

TEST(PlanUpdates, TheVerifierSeesAReadThatComesTooLate) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    RandomProgram random(seed);
    plan_updates(*random.program, random.updates);
    std::reverse(random.program->steps.begin(), random.program->steps.end());
    try {
      verify_updates(*random.program);
    } catch (const InternalError&) {
      ++found;
    }
  }
  EXPECT_GT(found, 20);
}

// --- graphs

/// A graph whose first inputs are state.
struct UpdatedGraph : SymbolicGraph {
  void update(ValueId state, ValueId next) {
    int input = graph.node(state).attributes.as<InputAttributes>().number;
    graph.updates.push_back({input, static_cast<int>(graph.results.size())});
    graph.results.push_back(next);
  }
  /// Compiles it, runs it with results in place and without, and compares. Gives in_place.
  std::vector<int> checked(const std::vector<Array>& arguments, const CompileOptions& options = all_passes()) {
    std::shared_ptr<Program> program = compile_with_facts(graph, options);
    std::shared_ptr<Program> plain = compile_with_facts(graph, no_passes());
    std::vector<Array> expected = run_on(*plain, arguments), state = arguments;
    std::shared_ptr<const BoundProgram> bound = bind_to(*program, arguments);
    std::vector<Buffer> memory, results(program->results.size());
    std::vector<void*> inputs;
    for (const Array& argument : arguments) {
      memory.push_back(Buffer::allocate(argument.bytes.size()));
      if (!argument.bytes.empty()) std::memcpy(memory.back().data(), argument.bytes.data(), argument.bytes.size());
      inputs.push_back(memory.back().data());
    }
    for (std::size_t r = 0; r < results.size(); ++r)
      if (int from = program->in_place[r]; from >= 0) results[r] = memory[static_cast<std::size_t>(from)];
    bound->run(inputs.data(), results.data());
    for (std::size_t r = 0; r < results.size(); ++r)
      EXPECT_EQ(std::memcmp(results[r].data(), expected[r].bytes.data(), expected[r].bytes.size()), 0)
          << "result " << r;
    return program->in_place;
  }
};

Array ramp(std::vector<std::int64_t> sizes, double start = 0) {
  return Array::filled(DType::f32, std::move(sizes),
                       [&](std::int64_t i) { return start + static_cast<double>(i % 97); });
}

TEST(PlanUpdates, AnOptimizersStateIsUpdatedInPlace) {
  UpdatedGraph g;
  ValueId w = g.input(f32, {37, 5}), m = g.input(f32, {37, 5}), v = g.input(f32, {37, 5}), d = g.input(f32, {37, 5});
  ValueId rate = g.input(f32, {});
  ValueId next_m = g.call("add", {m, d}), next_v = g.call("add", {v, g.call("square", {d})});
  ValueId step = g.call("divide", {g.call("multiply", {rate, next_m}), next_v});
  g.update(m, next_m);
  g.update(v, next_v);
  g.update(w, g.call("subtract", {w, step}));
  g.update(rate, g.call("add", {rate, rate}));
  EXPECT_EQ(g.checked({ramp({37, 5}), ramp({37, 5}, 1), ramp({37, 5}, 2), ramp({37, 5}, 3), ramp({}, 4)}),
            (std::vector{1, 2, 0, 4}));
}

TEST(PlanUpdates, WhatReadsOtherElementsIsNotInPlace) {
  UpdatedGraph g;
  ValueId square = g.input(f32, {20, 20}), line = g.input(f32, {40}), x = g.input(f32, {40});
  g.update(square, g.graph.add_call(transpose_row, {square}, sampled(transpose_row, 0)));
  g.update(line, g.call("add", {line, g.graph.add_call(reverse_row, {line}, sampled(reverse_row, 1))}));
  g.update(x, g.call("multiply", {x, x}));
  EXPECT_EQ(g.checked({ramp({20, 20}), ramp({40}), ramp({40})}), (std::vector{-1, -1, 2}));
}

TEST(PlanUpdates, AMatrixProductOfTheOldValueComesFirst) {
  UpdatedGraph g;
  Dim b = g.symbol("b", 3);
  ValueId w = g.input(f32, {6, 6}), x = g.input(f32, {b, 6});
  ValueId next = g.call("add", {w, w});  // before its reader, in program order
  ValueId product = g.graph.add_call(matmul_row, {x, w}, contract_as(false, false));
  g.graph.results = {product, w};  // the old value, returned as well
  g.update(w, next);
  EXPECT_EQ(g.checked({ramp({6, 6}), ramp({3, 6})}), (std::vector{-1, -1, 0}));
}

TEST(PlanUpdates, AStepThatMayFailDoesNotComeAfter) {
  // The new value is read by a gather, whose index may be out of range.
  UpdatedGraph g;
  ValueId w = g.input(f32, {6, 2}), indices = g.input(DType::i64, {3}), v = g.input(f32, {4});
  ValueId next = g.call("add", {w, w});
  g.graph.results = {g.graph.add_call(gather_row, {next, indices}, sampled(gather_row, 0))};
  g.update(w, next);
  g.update(v, g.call("negative", {v}));
  Array good = Array::filled(DType::i64, {3}, [](std::int64_t i) { return static_cast<double>(i); });
  EXPECT_EQ(g.checked({ramp({6, 2}), good, ramp({4})}), (std::vector{-1, -1, 2}));

  std::shared_ptr<Program> program = compile_with_facts(g.graph);
  Array bad = Array::filled(DType::i64, {3}, [](std::int64_t) { return 9.0; });
  std::vector<Array> arguments{ramp({6, 2}), bad, ramp({4})};
  std::shared_ptr<const BoundProgram> bound = bind_to(*program, arguments);
  Buffer state = Buffer::allocate(16);
  std::memcpy(state.data(), arguments[2].bytes.data(), 16);
  void* inputs[] = {arguments[0].bytes.data(), arguments[1].bytes.data(), state.data()};
  Buffer results[] = {Buffer(), Buffer(), state};
  EXPECT_THROW(bound->run(inputs, results), Problem);
  EXPECT_EQ(std::memcmp(state.data(), arguments[2].bytes.data(), 16), 0);
}

TEST(PlanUpdates, OfTwoThatAreSwappedOneIsInPlace) {
  UpdatedGraph g;
  ValueId a = g.input(f32, {50}), b = g.input(f32, {50});
  g.update(a, b);
  g.update(b, a);
  EXPECT_EQ(g.checked({ramp({50}), ramp({50}, 3)}), (std::vector{1 - 1, -1}));
}

TEST(PlanUpdates, OldAndNewValuesOfOthersAreReadAsMeant) {
  UpdatedGraph g;
  ValueId a = g.input(f32, {50}), b = g.input(f32, {50}), c = g.input(f32, {50});
  ValueId next_a = g.call("add", {a, b}), next_b = g.call("multiply", {b, next_a});
  g.update(a, next_a);
  g.update(b, next_b);                      // of a's new value
  g.update(c, g.call("subtract", {c, a}));  // of a's old value
  EXPECT_EQ(g.checked({ramp({50}), ramp({50}, 3), ramp({50}, 7)}, without({"fuse_maps"})), (std::vector{0, 1, 2}));
}

TEST(PlanUpdates, OneValueMayBeResultAndStateTwice) {
  UpdatedGraph g;
  ValueId a = g.input(f32, {50}), b = g.input(f32, {50});
  ValueId next = g.call("add", {a, b});
  g.graph.results = {next};
  g.update(a, next);
  g.update(b, next);
  EXPECT_EQ(g.checked({ramp({50}), ramp({50}, 3)}), (std::vector{-1, 0, 1}));
}

TEST(PlanUpdates, NothingIsInPlaceAmongLateSizes) {
  UpdatedGraph g;
  ValueId x = g.input(f32, {4}), v = g.input(f32, {4});
  g.graph.results = {g.call("nonzero", {x})};
  g.update(v, g.call("negative", {v}));
  EXPECT_EQ(compile_with_facts(g.graph)->in_place, (std::vector{-1, -1}));
}

TEST(PlanUpdates, CanBeLeftOut) {
  UpdatedGraph g;
  ValueId v = g.input(f32, {4});
  g.update(v, g.call("negative", {v}));
  EXPECT_EQ(compile_with_facts(g.graph)->in_place, (std::vector{0}));
  EXPECT_EQ(compile_with_facts(g.graph, without({"plan"}))->in_place, (std::vector{-1}));
}

}  // namespace
}  // namespace stet
