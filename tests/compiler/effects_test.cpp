// What has an effect happens once, in its order, with the values of its moment, whatever passes do around it.
#include <gtest/gtest.h>

#include <random>

#include "stet/compiler/lower_host_code.h"
#include "stet/ir/host_code.h"
#include "tests/compiler/graph_harness.h"

namespace stet {
namespace {

struct Noted {
  int number;
  std::vector<double> values;  // of all inputs, one after the other
  bool operator==(const Noted&) const = default;
};
std::vector<Noted> noted;

/// Writes down what it is given, and gives twice its first input where it has a result.
class NotingCode : public HostCode {
 public:
  explicit NotingCode(int number) : number_(number) {}
  void run(std::span<const HostValue> inputs, std::span<const HostPlace> results) const override {
    Noted one{number_, {}};
    for (const HostValue& input : inputs)
      for (std::int64_t i = 0; i < input.sizes[0]; ++i) one.values.push_back(static_cast<const double*>(input.data)[i]);
    for (const HostPlace& result : results)
      for (std::int64_t i = 0; i < result.sizes[0]; ++i)
        static_cast<double*>(result.data)[i] = static_cast<const double*>(inputs[0].data)[i] * 2;
    noted.push_back(std::move(one));
  }
  bool same_as(const HostCode&) const override { return true; }  // and still not shared
  std::string str() const override { return "note"; }

 private:
  int number_;
};

constinit const OpDef noting_row{.name = "note",
                                 .kind = Kind::structure,
                                 .summary = "Writes its inputs down.",
                                 .infer =
                                     [](InferCall& call) {
                                       const auto& host = call.attributes<HostCodeAttributes>();
                                       if (host.dtypes.empty())
                                         call.result(DType::i64, Shape());
                                       else
                                         call.result(host.dtypes[0], host.shapes[0]);
                                     },
                                 .lower = lower_host_code,
                                 .has_effect = true};

using Values = std::vector<double>;

/// A random program of maps and effects over two inputs, and what it does, computed beside it.
struct RandomEffects {
  SymbolicGraph built;
  std::vector<Noted> expected;
  std::vector<Values> results;
  std::vector<Values> inputs;

  explicit RandomEffects(unsigned seed, std::int64_t size) {
    std::mt19937 random(seed);
    auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
    Dim n = built.symbol("n", 5);
    std::vector<ValueId> ids;
    std::vector<Values> values;
    for (int i = 0; i < 2; ++i) {
      ids.push_back(built.input(DType::f64, {n}));
      values.emplace_back();
      for (std::int64_t k = 0; k < size; ++k) values.back().push_back(static_cast<double>(below(9)) - 4);
    }
    inputs = values;
    int effects = 0;
    for (int step = 0; step < 24; ++step) {
      std::size_t a = below(ids.size()), b = below(ids.size());
      if (below(3) > 0) {
        const char* rows[] = {"add", "subtract", "maximum"};
        std::size_t row = below(3);
        Values value;
        for (std::size_t k = 0; k < values[a].size(); ++k) {
          double x = values[a][k], y = values[b][k];
          value.push_back(row == 0 ? x + y : row == 1 ? x - y : std::max(x, y));
        }
        ids.push_back(built.call(rows[row], {ids[a], ids[b]}));
        values.push_back(std::move(value));
        continue;
      }
      HostCodeAttributes host{std::make_shared<NotingCode>(effects), {}, {}};
      const bool gives = below(2) == 0;
      if (gives) host = {host.code, {DType::f64}, {Shape({n})}};
      ValueId id = built.graph.add_call(noting_row, {ids[a], ids[b]}, Attributes(view_of(host)));
      Noted one{effects++, values[a]};
      one.values.insert(one.values.end(), values[b].begin(), values[b].end());
      expected.push_back(std::move(one));
      if (!gives) continue;
      Values value = values[a];
      for (double& x : value) x *= 2;
      ids.push_back(id);
      values.push_back(std::move(value));
    }
    for (int r = 0; r < 2; ++r) {
      std::size_t chosen = 2 + below(ids.size() - 2);
      built.graph.results.push_back(ids[chosen]);
      results.push_back(values[chosen]);
      built.graph.updates.push_back({r, r});
    }
  }
};

/// With every result in the memory of the state that it replaces, where the plan allows it.
std::vector<Values> run_in_place(const Program& program, const std::vector<Values>& inputs) {
  std::vector<Buffer> state;
  std::vector<void*> pointers;
  std::vector<std::int64_t> sizes{static_cast<std::int64_t>(inputs[0].size())};
  for (const Values& input : inputs) {
    state.push_back(Buffer::allocate(input.size() * sizeof(double)));
    std::copy(input.begin(), input.end(), reinterpret_cast<double*>(state.back().data()));
    pointers.push_back(state.back().data());
  }
  std::vector<ConcreteInput> concrete(inputs.size(), {sizes, {}});
  std::shared_ptr<const BoundProgram> bound = program.bind(*program.accepts(concrete, {}));
  std::vector<Buffer> results(program.results.size());
  for (std::size_t r = 0; r < results.size(); ++r)
    if (program.in_place[r] >= 0) results[r] = state[static_cast<std::size_t>(program.in_place[r])];
  bound->run(pointers.data(), results.data());
  std::vector<Values> out;
  for (const Buffer& result : results) {
    const auto* data = reinterpret_cast<const double*>(result.data());
    out.emplace_back(data, data + inputs[0].size());
  }
  return out;
}

TEST(EffectsTest, HappenOnceInOrderUnderAllPasses) {
  std::vector<CompileOptions> all{all_passes(), no_passes()};
  for (const Pass& pass : passes()) all.push_back(without({pass.name}));
  int in_place = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    RandomEffects random(seed, 1 + seed % 19);
    for (const CompileOptions& options : all) {
      std::shared_ptr<Program> program = compile_with_facts(random.built.graph, options);
      for (int input : program->in_place) in_place += input >= 0;
      noted.clear();
      EXPECT_EQ(run_in_place(*program, random.inputs), random.results) << "seed " << seed;
      ASSERT_EQ(noted, random.expected) << "seed " << seed << "\n" << program->str();
    }
  }
  EXPECT_GT(in_place, 50);  // otherwise nothing was overwritten
}

}  // namespace
}  // namespace stet
