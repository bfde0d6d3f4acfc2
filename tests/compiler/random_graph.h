// Random graphs with symbolic sizes, grown call by call: maps, loop indices, reductions, views, products, convolutions,
// gathers, scatters, branches, loops, late sizes and updates of state.
#pragma once
#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "stet/compiler/lower.h"
#include "tests/compiler/graph_harness.h"
#include "tests/compiler/reference.h"

namespace stet {

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
    scalar_ = input(DType::f32, {});
    indices_ = input(DType::i64, {b});
    values_.pop_back();
    count_ = input(DType::i64, {});
    values_.pop_back();
    image_ = input(DType::f32, {b, n, k, 2});
    filter_ = input(DType::f32, {2, 2, 2, 1, 3});
    values_.pop_back();
    int wanted = 5 + static_cast<int>(below(8));
    for (int tries = 0, made = 0; made < wanted && tries < 400; ++tries) made += grow();
    for (int i = 0; i < 2; ++i) g.graph.results.push_back(values_[values_.size() - 1 - static_cast<std::size_t>(i)].id);
    g.graph.results.push_back(any().id);  // an input, a view, a value returned twice
    // Loops are drawn from numbers of their own: what stands before them is the same with and without them.
    std::mt19937_64 before = std::exchange(random_, std::mt19937_64(seed + 1));
    for (int tries = 0, loops = static_cast<int>(below(3)); loops > 0 && tries < 200; ++tries) loops -= add_loop();
    random_ = before;
    if (below(8) == 0) add_late();
    for (std::uint64_t i = below(3); i > 0; --i) add_update();
  }

  Graph graph() const { return mode_ == 2 ? substitute(g.graph, canonical_) : g.graph; }
  std::shared_ptr<Program> compiled(const CompileOptions& options) const {
    return compile_with_facts(graph(), options, mode_ == 2 ? std::span<const Dim>(canonical_) : std::span<const Dim>());
  }

  std::vector<Array> arguments(Sizes sizes) {
    std::vector<Array> out;
    Bindings bindings = bound_to(sizes);
    for (ValueId id : g.graph.inputs) {
      const ValueType& type = g.graph.type(id);
      bool positions = id == indices_, count = id == count_;
      out.push_back(Array::filled(type.dtype, type.shape.evaluate(bindings), [&](std::int64_t) {
        return positions ? static_cast<double>(below(static_cast<std::uint64_t>(std::max<std::int64_t>(sizes.n, 1))))
               : count   ? static_cast<double>(sizes.b) - 1  // none, too, and fewer than none
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
      if (!late_symbols_.contains(i)) out.bind(i, canonical_[static_cast<std::size_t>(i)].evaluate(roles));
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
    switch (below(20)) {
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
      case 15:
        return grow_indices();
      case 16:
        return grow_window();
      case 17:
        return grow_scattered();
      case 18:
        return grow_branch();
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
        return made(id, x.bound, x.whole);
      }
      return 0;
    }
    if (rank == 0 || shape(y).rank() != rank || type(x) != type(y)) return 0;
    int axis = rank == 1 ? 0 : static_cast<int>(below(2));
    for (int k = 0; k < rank; ++k)
      if (k != axis && !identical(x.roles[k], y.roles[k])) return 0;
    ValueId id = g.graph.add_call(concat_row, {x.id, y.id}, sampled(concat_row, axis == 0 ? 1 : 0));
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

  /// Loop indices, alone or beside an operand: of the whole shape of some value, or of one of its axes.
  int grow_indices() {
    RandomValue x = any();
    int rank = shape(x).rank();
    if (rank == 0 || type(x) == DType::bool_) return 0;
    auto loop = [&](int of) {
      return scalar::cast(loop_index(static_cast<int>(below(static_cast<std::uint64_t>(of)))), DType::f32);
    };
    double most = most_elements(x.roles);
    if (below(3) == 0) {
      const Dim& axis = shape(x)[static_cast<int>(below(static_cast<std::uint64_t>(rank)))];
      return made(add_map(below(2) ? loop_index(0) : loop(1), {}, {}, {axis}), most, true);
    }
    if (below(2)) return made(add_map(loop(rank) - loop(rank), {}, {}, shape(x)), most, true);
    if (x.bound + most > exact_limit || !is_floating(type(x))) return 0;
    Expr body = operand(0, type(x)) + scalar::cast(loop(rank), type(x));
    AxisMap same;
    same.rank = rank;
    for (int axis = 0; axis < rank; ++axis) same.axes[static_cast<std::size_t>(axis)] = static_cast<std::int8_t>(axis);
    // f16 counts to 2048.
    if (type(x) == DType::f16 || type(x) == DType::bf16) return 0;
    return made(add_map(body, {x.id}, {same}, shape(x)), x.bound + most, x.whole);
  }
  ValueId add_map(Expr body, std::vector<ValueId> inputs, std::vector<AxisMap> axes, Shape shape) {
    MapAttributes attributes{body, std::move(axes)};
    return g.graph.add({.op = &map_row,
                        .inputs = std::move(inputs),
                        .attributes = Attributes(view_of(attributes)),
                        .results = {{body.dtype(), std::move(shape)}}});
  }

  int grow_window() {
    std::size_t sample = 2;  // padded on all sides, so that no size is too small
    ValueId x = image_;
    double bound = 3;
    bool whole = true;
    for (int tries = 0; tries < 4; ++tries) {
      RandomValue other = recent();
      if (shape(other).rank() != 4 || type(other) != DType::f32 || !shape(other)[3].is_constant(2)) continue;
      x = other.id;
      bound = other.bound;
      whole = other.whole;
    }
    if (!whole || bound * 3 * 8 > exact_limit) return 0;
    const Shape& sizes = g.graph.type(x).shape;
    Attributes attributes = sampled(conv_row, sample, {Dim(1), Dim(2), sizes[1], sizes[2]});
    ValueId id = g.graph.add_call(conv_row, {x, filter_}, attributes);
    return made(id, bound * 3 * 8, true);
  }

  /// Added at the indices along an axis of n: a value of b there, the other axes alike.
  int grow_scattered() {
    RandomValue x = recent();
    for (int axis = 0; axis < std::min(shape(x).rank(), 2); ++axis) {
      if (!identical(x.roles[axis], roles_[1]) || type(x) == DType::bool_ || !x.whole) continue;
      Shape wanted;
      for (int i = 0; i < x.roles.rank(); ++i) wanted.push_back(i == axis ? roles_[0] : x.roles[i]);
      for (int tries = 0; tries < 30; ++tries) {
        RandomValue updates = any();
        double bound = x.bound + updates.bound * static_cast<double>(largest.b);
        if (!identical(updates.roles, wanted) || type(updates) != type(x) || !updates.whole || bound > 2000) continue;
        return made(g.graph.add_call(scatter_add_row, {x.id, indices_, updates.id},
                                     sampled(scatter_add_row, axis == 0 ? 0 : 3)),
                    bound, true);
      }
    }
    return 0;
  }

  /// One of two child graphs over captured values, with one result or two.
  int grow_branch() {
    RandomValue x = recent(), y = any();
    if (!fits(x.roles, y.roles) || type(x) != DType::f32 || type(y) != DType::f32) return 0;
    if (most_together(x.roles, y.roles) > element_limit || x.bound + y.bound > 1000) return 0;
    bool two = below(2), whole = x.whole && y.whole;
    double most = x.bound + y.bound, total = most * most_together(x.roles, y.roles);
    if (two && (!whole || total > exact_limit)) return 0;
    std::uint64_t form = below(3);
    auto side = [&](bool yes) {
      auto child = std::make_shared<Graph>();
      child->scope = g.graph.scope;
      ValueId a = child->add_input(g.graph.type(x.id)), b = child->add_input(g.graph.type(y.id));
      auto call = [&](const char* row, std::vector<ValueId> inputs) {
        return child->add_call(row_of(row), std::move(inputs));
      };
      ValueId result = yes ? call("add", {a, b}) : call("subtract", {b, a});
      if (form == 1) result = yes ? call("relu", {result}) : call("negative", {call("abs", {result})});
      if (form == 2 && yes) result = call("maximum", {a, b});
      child->results = {result};
      if (two) child->results.push_back(child->add_call(row_of("sum"), {result}, reduce_over({})));
      return std::shared_ptr<const Graph>(child);
    };
    BranchAttributes attributes{side(true), side(false)};
    ValueId condition = g.call("less", {scalar_, g.call("square", {scalar_})});
    Node node{.op = &cond_row,
              .inputs = {condition, x.id, y.id},
              .attributes = Attributes(view_of(attributes)),
              .results = {},
              .label = "cond"};
    for (ValueId id : attributes.yes->results) node.results.push_back(attributes.yes->type(id));
    ValueId branch = g.graph.add(node);
    if (!two) return made(branch, most, whole);
    for (int r = 0; r < 2; ++r) {
      PartAttributes part{r};
      made(g.graph.add({.op = &part_row,
                        .inputs = {branch},
                        .attributes = Attributes(view_of(part)),
                        .results = {node.results[static_cast<std::size_t>(r)]}}),
           r == 0 ? most : total, true);
    }
    return 1;
  }

  /// A child graph of a loop in the making.
  struct Child {
    explicit Child(std::shared_ptr<SymbolScope> scope) { graph->scope = std::move(scope); }
    std::shared_ptr<Graph> graph = std::make_shared<Graph>();
    ValueId input(const ValueType& type) const { return graph->add_input(type); }
    ValueId call(const char* row, std::vector<ValueId> inputs) const {
      return graph->add_call(row_of(row), std::move(inputs));
    }
    /// Values stay where whole numbers are exact, however many turns there are.
    ValueId clamped(ValueId x) const {
      const ValueType type = graph->type(x);
      Expr body = scalar::minimum(scalar::maximum(operand(0, type.dtype), constant(-loop_limit, type.dtype)),
                                  constant(loop_limit, type.dtype));
      MapAttributes attributes{body, {identity_axes(type.shape.rank())}};
      return graph->add(
          {.op = &map_row, .inputs = {x}, .attributes = Attributes(view_of(attributes)), .results = {type}});
    }
  };
  static constexpr double loop_limit = 50;

  static bool repeats_to(const Shape& from, const Shape& to) {
    if (from.rank() > to.rank()) return false;
    for (int i = 1; i <= from.rank(); ++i)
      if (!identical(from[-i], to[-i]) && !is_one(from[-i])) return false;
    return true;
  }
  bool may_loop(const RandomValue& v) const { return type(v) == DType::f32 && v.whole && v.bound <= 100; }

  /// What a loop is made of.
  struct LoopPlan {
    LoopAttributes loop;
    RandomValue x, captured, sequence;  // the carried values begin with x
    std::uint64_t stacked, way;
    bool nested;
  };

  ValueType element_type(const RandomValue& sequence) const {
    ValueType type = g.graph.type(sequence.id);
    type.shape = Shape(std::vector<Dim>(type.shape.begin() + 1, type.shape.end()));
    return type;
  }

  /// At most three turns, and none once the first carried value is large somewhere.
  GraphPointer loop_condition(const LoopPlan& plan) const {
    Child child(g.graph.scope);
    ValueId a = child.input(g.graph.type(plan.x.id));
    child.input(g.graph.type(plan.x.id));
    ValueId place = child.input({DType::i64, Shape()});
    child.input(g.graph.type(plan.captured.id));
    std::vector<int> axes(static_cast<std::size_t>(plan.x.roles.rank()));
    std::iota(axes.begin(), axes.end(), 0);
    ValueId total = child.graph->add_call(row_of("sum"), {a}, reduce_over(axes));
    Expr going_on = scalar::logical_and(operand(0, DType::i64) < constant(3, DType::i64),
                                        operand(1, DType::f32) < constant(60., DType::f32));
    MapAttributes attributes{going_on, {identity_axes(0), identity_axes(0)}};
    child.graph->results = {child.graph->add({.op = &map_row,
                                              .inputs = {place, total},
                                              .attributes = Attributes(view_of(attributes)),
                                              .results = {{DType::bool_, Shape()}}})};
    return child.graph;
  }

  /// Values that are replaced in their place, go to and fro, or stay as they are. `more`: also stacks what nobody asks.
  GraphPointer loop_body(const LoopPlan& plan, bool more) const {
    Child child(g.graph.scope);
    ValueId a = child.input(g.graph.type(plan.x.id)), b = child.input(g.graph.type(plan.x.id)), element = -1;
    if (plan.loop.sequences) element = child.input(element_type(plan.sequence));
    ValueId place = child.input({DType::i64, Shape()}), captured = child.input(g.graph.type(plan.captured.id));
    ValueId number = child.graph->add_call(cast_rows()[static_cast<std::size_t>(DType::f32)], {place});
    ValueId t = child.call(plan.way % 2 ? "add" : "subtract", {a, captured});
    if (element >= 0) t = child.call("add", {t, element});
    t = child.call("add", {t, number});
    ValueId next = child.clamped(t), other = b;
    if (plan.nested) next = inner_loop(child, next, captured);
    if (plan.way == 0) other = a;
    if (plan.way == 2) other = child.call("negative", {b});
    if (plan.way == 3) other = child.call("maximum", {b, next});
    child.graph->results = {next, other};
    for (std::uint64_t r = 0; r < plan.stacked + more; ++r) child.graph->results.push_back(r % 2 == 0 ? t : next);
    return child.graph;
  }

  /// Two turns, the last of which comes first, over one carried value.
  static ValueId inner_loop(const Child& outer, ValueId x, ValueId captured) {
    Child child(outer.graph->scope);
    ValueId a = child.input(outer.graph->type(x));
    ValueId place = child.input({DType::i64, Shape()}), b = child.input(outer.graph->type(captured));
    ValueId number = child.graph->add_call(cast_rows()[static_cast<std::size_t>(DType::f32)], {place});
    child.graph->results = {child.clamped(child.call("subtract", {child.call("maximum", {a, b}), number}))};
    LoopAttributes loop;
    loop.body = child.graph;
    loop.turns = 2;
    loop.carried = 1;
    loop.reverse = true;
    return outer.graph->add({.op = &loop_row,
                             .inputs = {x, captured},
                             .attributes = Attributes(view_of(loop)),
                             .results = {outer.graph->type(x)},
                             .label = "loop"});
  }

  /// A loop over a captured value and perhaps a sequence, counted in one of three ways, with two carried values and up
  /// to two stacked ones, perhaps with a loop in it, perhaps followed by one of the same turns that stacks more.
  int add_loop() {
    LoopPlan plan{{}, recent(), any(), any(), below(3), below(4), below(3) == 0};
    LoopAttributes& loop = plan.loop;
    const RandomValue &x = plan.x, &y = plan.captured, &z = plan.sequence;
    if (!may_loop(x) || !may_loop(y) || !repeats_to(y.roles, x.roles) || most_elements(x.roles) > 1000) return 0;
    loop.count = static_cast<LoopAttributes::Count>(below(3));
    loop.carried = 2;
    loop.reverse = loop.count != LoopAttributes::by_condition && below(2);
    if (loop.count == LoopAttributes::by_size) {
      loop.sequences = may_loop(z) && z.roles.rank() > 0 && most_elements(Shape{z.roles[0]}) <= 20 &&
                       repeats_to(Shape(std::vector<Dim>(z.roles.begin() + 1, z.roles.end())), x.roles);
      loop.turns = loop.sequences ? shape(z)[0] : Dim(static_cast<int>(below(4)));
    }
    const bool late = loop.count != LoopAttributes::by_size && plan.stacked > 0;
    if (late) loop.turns = late_symbol();
    if (loop.count == LoopAttributes::by_condition) loop.condition = loop_condition(plan);
    loop.origin = static_cast<int>(g.graph.nodes.size());
    add_loop_node(plan, false);
    // Of turns that are counted in the end every loop has a number of its own.
    if (below(3) == 0 && !late) {
      if (loop.count != LoopAttributes::by_size) loop.turns = late_symbol();
      add_loop_node(plan, true);
    }
    return 1;
  }
  Dim late_symbol() {
    late_symbols_.insert(static_cast<int>(canonical_.size()));
    canonical_.push_back(g.scope->symbol("turns", std::nullopt));
    return canonical_.back();
  }

  void add_loop_node(const LoopPlan& plan, bool more) {
    LoopAttributes loop = plan.loop;
    loop.body = loop_body(plan, more);
    Node node{.op = &loop_row, .inputs = {}, .attributes = Attributes(view_of(loop)), .results = {}, .label = "loop"};
    if (loop.count == LoopAttributes::by_value) node.inputs.push_back(count_);
    node.inputs.insert(node.inputs.end(), {plan.x.id, plan.x.id});
    if (loop.sequences) node.inputs.push_back(plan.sequence.id);
    node.inputs.push_back(plan.captured.id);
    for (std::size_t r = 0; r < loop.body->results.size(); ++r) {
      ValueType type = r < 2 ? g.graph.type(plan.x.id) : loop.body->type(loop.body->results[r]);
      if (r >= 2) {
        Shape shape{loop.turns};
        for (const Dim& size : type.shape) shape.push_back(size);
        type.shape = shape;
      }
      node.results.push_back(std::move(type));
    }
    const std::vector<ValueId> parts = g.graph.add_parts(g.graph.add(std::move(node)));
    for (std::size_t r = 0; r < parts.size(); ++r) {
      if (below(3) == 0) continue;  // nobody looks at it
      if (r < 2) {
        made(parts[r], 150, true);
        g.graph.results.push_back(parts[r]);
      } else {
        g.graph.results.push_back(g.call("sum", {parts[r]}, reduce_over({0})));
      }
    }
  }

  /// A value whose size is known when it is made, and what is computed of it.
  void add_late() {
    RandomValue x = any();
    if (shape(x).rank() == 0) return;
    late_symbols_.insert(static_cast<int>(canonical_.size()));
    ValueId positions = g.call("nonzero", {x.id});
    canonical_.push_back(g.graph.type(positions).shape[0]);
    ValueId scaled = g.call("square", {positions});
    g.graph.results.push_back(scaled);
    g.graph.results.push_back(g.call("sum", {g.call("add", {scaled, positions})}, reduce_over({0})));
    if (below(2)) g.graph.results.push_back(positions);
  }

  /// One more result, which replaces the state that an input holds.
  void add_update() {
    for (int tries = 0; tries < 60; ++tries) {
      auto input = static_cast<std::size_t>(below(g.graph.inputs.size()));
      RandomValue next = any();
      ValueId old = g.graph.inputs[input];
      if (old == filter_ || old == indices_ || old == count_ || type(next) != g.graph.type(old).dtype) continue;
      if (!identical(shape_roles(old), next.roles)) continue;
      bool taken =
          std::ranges::any_of(g.graph.updates, [&](const Update& u) { return u.input == static_cast<int>(input); });
      if (taken) continue;
      g.graph.updates.push_back({static_cast<int>(input), static_cast<int>(g.graph.results.size())});
      g.graph.results.push_back(next.id);
      return;
    }
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
  ValueId indices_ = -1, scalar_ = -1, image_ = -1, filter_ = -1, count_ = -1;
  std::set<int> late_symbols_;

 public:
  SymbolicGraph g;
};

}  // namespace stet
