// Random graphs with symbolic sizes: every way to compile them computes the same.
//
// Sums are of whole numbers small enough to be exact in any order, so that everything is compared bit for bit (but for
// the sign of zeros, which a maximum may take from either), although passes change the order of summation. What
// reordering does to sums of arbitrary numbers has a test of its own, with its bound.
#include <gtest/gtest.h>

#include <random>

#include "stet/base/dim_inside.h"
#include "stet/cpu/emit_kernel.h"
#include "stet/runtime/guard.h"
#include "stet/runtime/parallel.h"
#include "tests/compiler/graph_harness.h"
#include "tests/compiler/reference.h"

namespace stet {
namespace {

/// Sizes of the three symbols that shapes are made of.
struct Sizes {
  std::int64_t b, n, k;
};
constexpr Sizes largest{5, 130, 17};
constexpr double exact_limit = 1 << 23;
constexpr double element_limit = 25000;  // the reference takes its time

struct RandomValue {
  ValueId id;
  Shape roles;   // its shape with every symbol replaced by the one that it is tied to
  double bound;  // of magnitudes
  bool whole;    // whole numbers only
};

/// Grows a graph call by call. In mode 0 inputs share their symbols; in modes 1 and 2 every axis is a symbol of its
/// own, tied by what the ops require, and in mode 2 the ties are substituted before compiling.
class RandomGraph {
 public:
  explicit RandomGraph(std::uint64_t seed) : random_(seed), mode_(static_cast<int>(seed % 3)) {
    for (Dim role : {g.symbol("b", 5), g.symbol("n", 37), g.symbol("k", 8)}) {
      roles_.push_back(role);
      canonical_.push_back(role);
    }
    Dim b = roles_[0], n = roles_[1], k = roles_[2];
    input(DType::f32, {b, n});
    input(DType::f32, {b, n});
    input(DType::f32, {n});
    input(DType::f32, {b, 1});
    input(DType::f32, {n, k});
    input(DType::f32, {k});
    input(DType::f32, {b, n, k});
    input(DType::i32, {b, n});
    input(DType::f64, {n, k});
    input(DType::f16, {b, n});
    input(DType::f32, {});
    indices_ = input(DType::i64, {b});
    values_.pop_back();
    int wanted = 5 + static_cast<int>(below(8));
    for (int tries = 0, made = 0; made < wanted && tries < 400; ++tries) made += grow();
    for (int i = 0; i < 2; ++i) g.graph.results.push_back(values_[values_.size() - 1 - static_cast<std::size_t>(i)].id);
    g.graph.results.push_back(any().id);  // an input, a view, a value returned twice
  }

  Graph graph() const { return mode_ == 2 ? substitute(g.graph, canonical_) : g.graph; }
  std::shared_ptr<Program> compiled(const CompileOptions& options) const {
    return compile_with_facts(graph(), options, mode_ == 2 ? std::span<const Dim>(canonical_) : std::span<const Dim>());
  }
  int axis_of(ValueId id) const { return axes_.at(static_cast<std::size_t>(id)); }

  std::vector<Array> arguments(Sizes sizes) {
    std::vector<Array> out;
    Bindings bindings = bound_to(sizes);
    for (ValueId id : g.graph.inputs) {
      const ValueType& type = g.graph.type(id);
      bool positions = id == indices_;
      out.push_back(Array::filled(type.dtype, type.shape.evaluate(bindings), [&](std::int64_t) {
        return positions ? static_cast<double>(below(static_cast<std::uint64_t>(std::max<std::int64_t>(sizes.n, 1))))
                         : static_cast<double>(below(7)) - 3;
      }));
    }
    return out;
  }
  Bindings bound_to(Sizes sizes) const {
    Bindings roles;
    roles.bind(0, sizes.b);
    roles.bind(1, sizes.n);
    roles.bind(2, sizes.k);
    Bindings out;
    for (int i = 0; i < static_cast<int>(canonical_.size()); ++i)
      out.bind(i, canonical_[static_cast<std::size_t>(i)].evaluate(roles));
    return out;
  }

 private:
  std::uint64_t below(std::uint64_t count) { return random_() % count; }
  const RandomValue& any() { return values_[below(values_.size())]; }
  /// The youngest more often, so that chains grow.
  const RandomValue& recent() {
    std::size_t reach = below(3) ? std::min<std::size_t>(values_.size(), 4) : values_.size();
    return values_[values_.size() - 1 - below(reach)];
  }
  DType type(const RandomValue& v) const { return g.graph.type(v.id).dtype; }
  const Shape& shape(const RandomValue& v) const { return g.graph.type(v.id).shape; }

  ValueId input(DType dtype, const Shape& roles) {
    Shape shape;
    for (const Dim& dim : roles) {
      if (mode_ == 0 || dim.is_constant()) {
        shape.push_back(dim);
        continue;
      }
      shape.push_back(g.symbol("", *dim.hint()));
      canonical_.push_back(dim);
    }
    ValueId id = g.input(dtype, shape);
    values_.push_back({id, roles, 3, true});
    return id;
  }

  int made(ValueId id, double bound, bool whole) {
    values_.push_back({id, shape_roles(id), bound, whole});
    return 1;
  }
  Shape shape_roles(ValueId id) const { return g.graph.type(id).shape.substitute(canonical_); }

  static bool is_one(const Dim& d) { return d.is_constant() && d.constant() == 1; }
  static bool fits(const Shape& a, const Shape& b) {
    for (int i = 1; i <= std::min(a.rank(), b.rank()); ++i)
      if (!identical(a[-i], b[-i]) && !is_one(a[-i]) && !is_one(b[-i])) return false;
    return true;
  }
  double most_elements(const Shape& roles) const {
    Bindings bindings;
    bindings.bind(0, largest.b);
    bindings.bind(1, largest.n);
    bindings.bind(2, largest.k);
    return static_cast<double>(roles.element_count().evaluate(bindings));
  }

  /// Elements of the two broadcast together, at the largest sizes.
  double most_together(const Shape& a, const Shape& b) const {
    double out = 1;
    for (int i = 1; i <= std::max(a.rank(), b.rank()); ++i)
      out *= std::max(i <= a.rank() ? most_elements(Shape{a[-i]}) : 1, i <= b.rank() ? most_elements(Shape{b[-i]}) : 1);
    return out;
  }

  int grow() {
    switch (below(15)) {
      case 0:
      case 1:
      case 2:
        return grow_unary();
      case 3:
      case 4:
      case 5:
        return grow_binary();
      case 6:
        return grow_compared();
      case 7:
      case 8:
        return grow_reduced();
      case 9:
      case 10:
        return grow_layout();
      case 11:
      case 14:
        return grow_product();
      case 12:
        return grow_joined();
      default:
        return grow_cast();
    }
  }

  int grow_unary() {
    RandomValue x = recent();
    if (type(x) == DType::bool_) return made(g.call("logical_not", {x.id}), 1, true);
    struct Choice {
      const char* row;
      bool keeps_whole, floating;
      double (*bound)(double);
    };
    static constexpr Choice choices[] = {{"negative", true, false, [](double v) { return v; }},
                                         {"abs", true, false, [](double v) { return v; }},
                                         {"relu", true, false, [](double v) { return v; }},
                                         {"square", true, false, [](double v) { return v * v; }},
                                         {"floor", true, false, [](double v) { return v + 1; }},
                                         {"tanh", false, true, [](double) { return 1.0; }},
                                         {"sigmoid", false, true, [](double) { return 1.0; }},
                                         {"erf", false, true, [](double) { return 1.0; }},
                                         {"gelu", false, true, [](double v) { return v; }},
                                         {"exp", false, true, [](double v) { return std::exp(v); }}};
    const Choice& choice = choices[below(std::size(choices))];
    double bound = choice.bound(x.bound);
    if (!(bound < exact_limit) || (choice.floating && !is_floating(type(x)))) return 0;
    return made(g.call(choice.row, {x.id}), bound, choice.keeps_whole && (x.whole || choice.row[0] == 'f'));
  }

  int grow_binary() {
    RandomValue x = recent(), y = any();
    if (below(2)) std::swap(x, y);
    if (!fits(x.roles, y.roles) || type(x) == DType::bool_ || type(y) == DType::bool_) return 0;
    if (most_together(x.roles, y.roles) > element_limit) return 0;
    switch (below(4)) {
      case 0:
        return x.bound + y.bound < exact_limit
                   ? made(g.call("add", {x.id, y.id}), x.bound + y.bound, x.whole && y.whole)
                   : 0;
      case 1:
        return x.bound + y.bound < exact_limit
                   ? made(g.call("subtract", {x.id, y.id}), x.bound + y.bound, x.whole && y.whole)
                   : 0;
      case 2:
        return x.bound * y.bound < exact_limit
                   ? made(g.call("multiply", {x.id, y.id}), x.bound * y.bound, x.whole && y.whole)
                   : 0;
      default:
        return made(g.call(below(2) ? "maximum" : "minimum", {x.id, y.id}), std::max(x.bound, y.bound),
                    x.whole && y.whole);
    }
  }

  int grow_compared() {
    RandomValue x = recent(), y = any(), z = any();
    if (!fits(x.roles, y.roles) || most_together(x.roles, y.roles) > element_limit) return 0;
    ValueId condition = g.call(below(2) ? "less" : "equal", {x.id, y.id});
    Shape roles = shape_roles(condition);
    made(condition, 1, true);
    if (most_together(roles, z.roles) > element_limit || !fits(roles, z.roles) || !fits(roles, x.roles) ||
        !fits(x.roles, z.roles))
      return 1;
    return made(g.call("where", {condition, x.id, z.id}), std::max(x.bound, z.bound), x.whole && z.whole);
  }

  int grow_reduced() {
    RandomValue x = recent();
    int rank = shape(x).rank();
    if (rank == 0) return 0;
    std::vector<int> axes;
    for (int axis = 0; axis < rank; ++axis)
      if (below(2)) axes.push_back(axis);
    bool keepdims = below(2);
    switch (below(5)) {
      case 0: {
        double bound = x.bound * most_elements(x.roles);
        if (!x.whole || !(bound < exact_limit)) return 0;
        return made(g.call("sum", {x.id}, reduce_over(axes, keepdims)), bound, true);
      }
      case 1:
        if (!x.whole || !(x.bound * most_elements(x.roles) < exact_limit)) return 0;
        return made(g.call("mean", {x.id}, reduce_over(axes, keepdims)), x.bound, false);
      case 2:
        if (type(x) != DType::i32) return 0;
        return made(g.call("prod", {x.id}, reduce_over(axes, keepdims)), 1e300, true);
      case 3:
        return made(g.call(below(2) ? "max" : "min", {x.id}, reduce_over(axes, keepdims)), x.bound, x.whole);
      default: {
        int axis = static_cast<int>(below(static_cast<std::uint64_t>(rank)));
        return made(g.call(below(2) ? "argmax" : "argmin", {x.id}, reduce_over({axis}, keepdims)),
                    most_elements(x.roles), true);
      }
    }
  }

  int grow_layout() {
    RandomValue x = recent();
    int rank = shape(x).rank();
    const Shape& s = shape(x);
    if (2 * most_elements(x.roles) > element_limit) return 0;
    auto put = [&](const OpDef& row, std::size_t sample, const std::vector<Dim>& dims = {}) {
      return made(g.graph.add_call(row, {x.id}, sampled(row, sample, dims)), x.bound, x.whole);
    };
    if (rank == 1) {
      switch (below(3)) {
        case 0:
          return put(reverse_row, 1);
        case 1:
          return put(slice_row, 1, {Dim(1), s[0] / 2});
        default:
          return put(reshape_row, 1, {Dim(1), s[0]});
      }
    }
    if (rank == 2) {
      switch (below(7)) {
        case 0:
        case 1:
          return put(transpose_row, 0);
        case 2:
          return put(reverse_row, below(3));
        case 3:
          return put(reshape_row, 0, {s[0] * s[1]});
        case 4:
          return put(slice_row, 0, {Dim(1), Dim(0), s[0] - 1, s[1]});
        case 5:
          return put(broadcast_to_row, 1, {Dim(2), s[0], s[1]});
        default:
          return put(reshape_row, 2, {s[0], Dim(1), s[1]});
      }
    }
    if (rank == 3) {
      switch (below(4)) {
        case 0:
          return put(transpose_row, 1);
        case 1:
          return put(transpose_row, 2);
        case 2:
          return put(reshape_row, 1, {s[0] * s[1], s[2]});
        default:
          return put(slice_row, 2, {Dim(0), Dim(0), Dim(0), s[0], (s[1] + 2) / 3, s[2]});
      }
    }
    return 0;
  }

  int grow_product() {
    // Pairs that fit are rare: many are tried.
    for (int tries = 0; tries < 40; ++tries)
      if (int grown = grow_product_of(recent(), any(), below(2), below(2))) return grown;
    return 0;
  }
  int grow_product_of(RandomValue x, RandomValue y, bool left, bool right) {
    if (shape(x).rank() != 2 || shape(y).rank() != 2 || type(x) != type(y) || type(x) == DType::bool_) return 0;
    if (!identical(x.roles[left ? 0 : 1], y.roles[right ? 1 : 0])) return 0;
    if (most_elements(Shape{x.roles[left ? 1 : 0], y.roles[right ? 0 : 1]}) > element_limit) return 0;
    double bound = x.bound * y.bound * most_elements(Shape{x.roles[left ? 0 : 1]});
    if (!x.whole || !y.whole || !(bound < exact_limit / 16)) return 0;
    ValueId product = g.graph.add_call(matmul_row, {x.id, y.id}, contract_as(left, right));
    made(product, bound, true);
    RandomValue bias = any();
    if (below(2) && shape(bias).rank() <= 2 && fits(shape_roles(product), bias.roles) && type(bias) != DType::bool_ &&
        bias.bound + bound < exact_limit) {
      ValueId sum = g.call("add", {product, bias.id});
      made(sum, bound + bias.bound, bias.whole);
      if (below(2)) made(g.call("relu", {sum}), bound + bias.bound, bias.whole);
    }
    return 1;
  }

  int grow_joined() {
    RandomValue x = recent(), y = any();
    int rank = shape(x).rank();
    if (most_elements(x.roles) + most_elements(y.roles) > element_limit) return 0;
    if (below(2)) {
      // gather: the indices are below n
      for (int axis = 0; axis < std::min(rank, 2); ++axis) {
        if (!identical(x.roles[axis], roles_[1])) continue;
        ValueId id =
            g.graph.add_call(gather_row, {x.id, indices_}, sampled(gather_row, axis == 0 ? 0 : gather_axis_1()));
        note_axis(id, axis);
        return made(id, x.bound, x.whole);
      }
      return 0;
    }
    if (rank == 0 || shape(y).rank() != rank || type(x) != type(y)) return 0;
    int axis = rank == 1 ? 0 : static_cast<int>(below(2));
    for (int k = 0; k < rank; ++k)
      if (k != axis && !identical(x.roles[k], y.roles[k])) return 0;
    ValueId id = g.graph.add_call(concat_row, {x.id, y.id}, sampled(concat_row, axis == 0 ? 1 : 0));
    note_axis(id, axis);
    return made(id, std::max(x.bound, y.bound), x.whole && y.whole);
  }
  /// The number of the sample of gather that has axis 1.
  static std::size_t gather_axis_1() {
    SampleList list;
    gather_row.samples(list);
    for (std::size_t i = 0; i < list.samples.size(); ++i)
      if (list.samples[i].attributes.str() == "axis=1") return i;
    throw std::runtime_error("gather has no sample with axis 1");
  }
  void note_axis(ValueId id, int axis) {
    axes_.resize(static_cast<std::size_t>(id) + 1, 0);
    axes_.back() = axis;
  }

  int grow_cast() {
    RandomValue x = recent();
    static constexpr DType types[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32};
    DType to = types[below(std::size(types))];
    bool whole = x.whole || to == DType::i32;
    if (x.bound > 60000) return 0;  // f16 would overflow, and a product with infinity is no number
    return made(g.cast(x.id, to), x.bound * 1.01, whole);
  }

  std::mt19937_64 random_;
  int mode_;
  std::vector<Dim> roles_, canonical_;
  std::vector<RandomValue> values_;
  std::vector<int> axes_;
  ValueId indices_ = -1;

 public:
  SymbolicGraph g;
};

/// What a run gave: values, or the text of the Problem that it ended in.
struct Outcome {
  std::vector<Array> values;
  std::string problem;
};
Outcome outcome(const Program& program, std::span<const Array> arguments) {
  try {
    return {run_on(program, arguments), ""};
  } catch (const Problem& problem) {
    return {{}, problem.text()};
  } catch (const InternalError& error) {
    ADD_FAILURE() << error.what();
    return {{}, "an internal error"};
  }
}

bool equal_but_for_zeros(const Array& a, const Array& b) {
  if (a.dtype != b.dtype || a.sizes != b.sizes) return false;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    if (a.bits(i) == b.bits(i)) continue;
    bool both_nan = is_floating(a.dtype) && a.real(i) != a.real(i) && b.real(i) != b.real(i);
    if (!both_nan && !(a.real(i) == 0 && b.real(i) == 0)) return false;
  }
  return true;
}

testing::AssertionResult same(const Outcome& expected, const Outcome& got) {
  if (expected.problem != got.problem)
    return testing::AssertionFailure() << "problem '" << expected.problem << "' against '" << got.problem << "'";
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const Array &a = expected.values[i], &b = got.values[i];
    if (equal_but_for_zeros(a, b)) continue;
    auto result = testing::AssertionFailure() << "result " << i << " differs";
    if (a.sizes != b.sizes) return result << " in shape";
    for (std::int64_t at = 0; at < a.count(); ++at)
      if (a.bits(at) != b.bits(at))
        return result << " first at " << at << ": " << a.real(at) << " against " << b.real(at);
  }
  return testing::AssertionSuccess();
}

constexpr Sizes runs[] = {{5, 37, 8}, {1, 1, 1}, largest, {0, 4, 3}};

/// Restores process-wide switches, whatever a test does.
class Switches {
 public:
  Switches() : checked_(cpu::checked_kernels()), threads_(thread_count()) {}
  ~Switches() {
    cpu::set_checked_kernels(checked_);
    set_thread_count(threads_);
    set_guard_bytes(false);
  }

 private:
  bool checked_;
  int threads_;
};

/// Nodes with several results after all passes.
int merged_maps(const RandomGraph& random) {
  int count = 0;
  CompileOptions options = all_passes();
  options.observe = [&](const char* pass, const Graph& graph) {
    if (std::string_view(pass) != "merge_maps") return;
    for (const Node& node : graph.nodes) count += node.results.size() > 1;
  };
  random.compiled(options);
  return count;
}

void check_seed(std::uint64_t seed) {
  RandomGraph random(seed);
  Graph graph = random.graph();
  SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << graph.str());
  struct Variant {
    std::string name;
    std::shared_ptr<Program> program;
  };
  std::vector<Variant> variants{{"all passes", random.compiled(all_passes())},
                                {"no passes", random.compiled(no_passes())}};
  for (const Pass& pass : passes())
    variants.push_back({std::string("without ") + pass.name, random.compiled(without({pass.name}))});
  if (seed % 4 == 0) {
    bool usual = cpu::checked_kernels();
    cpu::set_checked_kernels(!usual);
    variants.push_back({usual ? "unchecked" : "checked", random.compiled(all_passes())});
    cpu::set_checked_kernels(usual);
  }
  for (Sizes sizes : runs) {
    SCOPED_TRACE(testing::Message() << "sizes " << sizes.b << " " << sizes.n << " " << sizes.k);
    std::vector<Array> arguments = random.arguments(sizes);
    set_thread_count(1);
    Outcome expected = outcome(*variants[0].program, arguments);
    set_thread_count(2);
    for (const Variant& variant : variants) {
      SCOPED_TRACE(variant.name);
      ASSERT_TRUE(same(expected, outcome(*variant.program, arguments)));
    }
    if (!expected.problem.empty()) continue;
    ReferenceRun reference(random.g.graph, random.bound_to(sizes), [&](ValueId id) { return random.axis_of(id); });
    SCOPED_TRACE("reference");
    ASSERT_TRUE(same({reference.run(arguments), ""}, expected));
  }
}

TEST(RandomGraph, EveryWayToCompileGivesTheSame) {
  Switches switches;
  set_guard_bytes(true);
  std::uint64_t damaged = guard_failures();
  int merged = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    check_seed(seed);
    merged += merged_maps(RandomGraph(seed));
    ASSERT_EQ(guard_failures(), damaged) << "seed " << seed << ": " << last_guard_failure();
    if (HasFailure()) return;
  }
  EXPECT_GT(merged, 20);
}

TEST(RandomGraph, OneThreadAndTwoGiveTheSameBits) {
  // Large enough that every step is cut into chunks; sums of arbitrary numbers, whose order must not depend on threads.
  Switches switches;
  for (int axis : {0, 1}) {
    SymbolicGraph g;
    Dim b = g.symbol("b", 300), n = g.symbol("n", 700);
    ValueId x = g.input(DType::f32, {b, n}), y = g.input(DType::f32, {n});
    ValueId e = g.call("exp", {g.call("multiply", {x, y})});
    g.graph.results = {g.call("sum", {e}, reduce_over({axis})), g.call("mean", {x}, reduce_over({0, 1})),
                       g.call("tanh", {x}), g.call("argmax", {e}, reduce_over({axis}))};
    std::shared_ptr<Program> program = compile_with_facts(g.graph);
    auto noise = [](std::int64_t i) { return std::sin(static_cast<double>(i * i % 1000003)); };
    std::vector<Array> arguments{Array::filled(DType::f32, {301, 702}, noise), Array::filled(DType::f32, {702}, noise)};
    set_thread_count(1);
    std::vector<Array> one = run_on(*program, arguments);
    set_thread_count(2);
    for (int repeat = 0; repeat < 5; ++repeat) {
      std::vector<Array> two = run_on(*program, arguments);
      for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].bytes, two[i].bytes) << "result " << i;
    }
  }
}

TEST(RandomGraph, ReorderedSumsStayWithinTheirBound) {
  // Fusing a transposed operand into a sum changes the order in which elements are taken. The difference of two orders
  // of n additions is at most 2 n epsilon times the sum of magnitudes.
  SymbolicGraph g;
  Dim a = g.symbol("a", 200), b = g.symbol("b", 300);
  ValueId x = g.input(DType::f32, {b, a}), y = g.input(DType::f32, {a, b});
  ValueId turned = g.graph.add_call(transpose_row, {x}, sampled(transpose_row, 0));
  ValueId mixed = g.call("add", {turned, y});
  g.graph.results = {g.call("sum", {mixed}, reduce_over({0})), g.call("sum", {mixed}, reduce_over({1})),
                     g.call("sum", {g.call("multiply", {turned, y})}, reduce_over({1}))};
  auto noise = [](std::int64_t i) { return std::cos(static_cast<double>(i * 7919 % 104729)); };
  std::vector<Array> arguments{Array::filled(DType::f32, {300, 200}, noise),
                               Array::filled(DType::f32, {200, 300}, noise)};
  std::vector<Array> fused = run_on(*compile_with_facts(g.graph), arguments);
  std::vector<Array> plain = run_on(*compile_with_facts(g.graph, no_passes()), arguments);
  for (std::size_t r = 0; r < fused.size(); ++r)
    for (std::int64_t i = 0; i < fused[r].count(); ++i)
      EXPECT_NEAR(fused[r].real(i), plain[r].real(i), 2 * 300 * 0x1p-24 * 600) << "result " << r << " at " << i;
}

}  // namespace
}  // namespace stet
