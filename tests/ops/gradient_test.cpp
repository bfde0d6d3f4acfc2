// Gradients of rows: along a random direction they equal central differences of the one-node graph, in f64; those in
// narrower types equal those in f64 to their accuracy; second derivatives equal differences of the first, and likewise.
//
// Central differences with step h are off by about h^2 f''' / 6 + 2^-53 |f| / h: with h = 1e-5 about 1e-10 of the
// values' scale, and 1e-6 leaves room for what third derivatives and sums add.
#include "stet/core/gradient.h"

#include "tests/ops/gradient_samples.h"

namespace stet::op_test {
namespace {

class Gradient : public OpTest {};

constexpr double step = 1e-5, tolerance = 1e-6;

std::vector<Tensor> gradients_of(const OpDef& op, const std::vector<Tensor>& inputs, const Attributes& attributes,
                                 const std::vector<Tensor>& outputs, const std::vector<Tensor>& ds) {
  GradientCall gradient(op, inputs, attributes.view(), outputs, ds, std::vector<bool>(inputs.size(), true));
  op.gradient(gradient);
  std::vector<Tensor> out = gradient.results();
  for (auto& [number, block] : gradient.blocks())
    out[static_cast<std::size_t>(number)] =
        core_ops.assembled(inputs[static_cast<std::size_t>(number)].shape(), {block});
  return out;
}
std::vector<Tensor> gradients_of(const OpDef& op, const std::vector<Tensor>& inputs, const Attributes& attributes,
                                 const Tensor& output, const Tensor& d) {
  return gradients_of(op, inputs, attributes, std::vector<Tensor>{output}, std::vector<Tensor>{d});
}

/// <d, (f(x + h v) - f(x - h v)) / 2h> equals the sum of <gradient_k, v_k>, f run as a one-node graph.
void check_gradient(const OpDef& op, const std::vector<Tensor>& inputs, const Attributes& attributes) {
  OneNode graph(op, inputs, attributes);
  std::vector<Tensor> outputs = graph.run_all(inputs, attributes);
  ASSERT_FALSE(outputs.empty());
  if (!any_floating(outputs)) return;
  std::vector<Tensor> ds = directions_like(outputs);
  std::vector<Tensor> gradients = gradients_of(op, inputs, attributes, outputs, ds);
  std::vector<Tensor> up, down;
  double by_gradient = 0, scale = 1;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (!is_floating(inputs[k].dtype())) {
      EXPECT_FALSE(gradients[k].defined()) << "operand " << k << " has no gradient";
      up.push_back(inputs[k]);
      down.push_back(inputs[k]);
      continue;
    }
    Tensor v = direction_like(inputs[k], k);
    up.push_back((inputs[k] + v * step).contiguous());
    down.push_back((inputs[k] - v * step).contiguous());
    if (!gradients[k].defined()) continue;  // zero
    EXPECT_EQ(sizes_of(gradients[k]), sizes_of(inputs[k])) << "operand " << k;
    EXPECT_EQ(gradients[k].dtype(), inputs[k].dtype()) << "operand " << k;
    if (::testing::Test::HasFailure()) return;
    by_gradient += inner_product(gradients[k], v);
    scale = std::max(scale, largest(gradients[k]) * std::sqrt(static_cast<double>(count_of(sizes_of(inputs[k])) + 1)));
  }
  std::vector<Tensor> above = graph.run_all(up, attributes), below = graph.run_all(down, attributes);
  double by_difference = 0;
  for (std::size_t r = 0; r < ds.size(); ++r)
    if (ds[r].defined())  // what does not change may be infinite
      by_difference += inner_product(where(equal(above[r], below[r]), 0, (above[r] - below[r]) / (2 * step)), ds[r]);
  EXPECT_NEAR(by_gradient, by_difference, tolerance * scale);
  tested(op, DType::f64, Aspect::gradient, outputs);
}

/// Tensors of a narrow type hold what those of a wide one do, to so many roundings of the largest element.
void expect_narrow(const std::vector<Tensor>& got, const std::vector<Tensor>& expected, DType narrow,
                   double roundings = 200) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    ASSERT_EQ(got[k].defined(), expected[k].defined()) << "operand " << k;
    if (!got[k].defined()) continue;
    EXPECT_EQ(got[k].dtype(), narrow);
    Values x = values_of(got[k]), y = values_of(expected[k]);
    ASSERT_EQ(x.size(), y.size());
    Value scale = std::max(1.0, largest(expected[k]));
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(static_cast<double>(x[i]), static_cast<double>(y[i]),
                  static_cast<double>(roundings * unit_roundoff(narrow) * scale))
          << "operand " << k << ", element " << i;
  }
}

constexpr DType narrow_dtypes[] = {DType::f16, DType::bf16, DType::f32};

/// The same gradient in a narrow type and in f64, at operands that the narrow type holds exactly.
void check_narrow_gradient(const OpDef& op, const std::vector<Tensor>& inputs, const Attributes& attributes,
                           DType narrow) {
  std::vector<Tensor> wide_inputs, narrow_inputs;
  for (const Tensor& input : inputs) {
    bool floating = is_floating(input.dtype());
    narrow_inputs.push_back(floating ? cast(input, narrow) : input);
    wide_inputs.push_back(floating ? cast(narrow_inputs.back(), DType::f64) : input);
  }
  std::vector<Tensor> narrow_outputs = eager_all(op, narrow_inputs, attributes);
  std::vector<Tensor> wide_outputs = eager_all(op, wide_inputs, attributes);
  if (!any_floating(narrow_outputs)) return;
  std::vector<Tensor> narrow_ds, wide_ds;
  for (const Tensor& d : directions_like(wide_outputs)) {
    narrow_ds.push_back(d.defined() ? cast(d, narrow) : Tensor());
    wide_ds.push_back(d.defined() ? cast(narrow_ds.back(), DType::f64) : Tensor());
  }
  std::vector<Tensor> got = gradients_of(op, narrow_inputs, attributes, narrow_outputs, narrow_ds);
  std::vector<Tensor> expected = gradients_of(op, wide_inputs, attributes, wide_outputs, wide_ds);
  expect_narrow(got, expected, narrow);
  tested(op, narrow, Aspect::gradient, narrow_outputs);
}

TEST_F(Gradient, OfEveryMap) {
  for (const OpDef& row : elementwise_rows()) {
    ASSERT_TRUE(row.gradient) << row.name;
    if (!has_floating_result(row)) continue;
    const std::vector<Sizes> shapes[] = {{{37}, {37}, {37}},   {{3, 1}, {4}, {3, 4}}, {{5}, {2, 1}, {}},
                                         {{}, {2, 3}, {1, 3}}, {{1, 1}, {3}, {1}},    {{0, 3}, {1, 3}, {3}}};
    for (const std::vector<Sizes>& sizes : shapes) {
      auto number = static_cast<std::uint64_t>(&sizes - shapes);
      if (number > 0 && !visits(text("gradient of ", row.name), number, 4)) continue;
      SCOPED_TRACE(text(row.name, " of ", Shape(sizes[0]), " and ", Shape(sizes[1])));
      std::vector<Tensor> inputs = map_operands(row, sizes);
      check_gradient(row, inputs, {});
      if (&sizes == &shapes[0] || &sizes == &shapes[1]) {
        for (DType narrow : narrow_dtypes) check_narrow_gradient(row, map_operands(row, sizes, narrow), {}, narrow);
      }
      if (row.arity == 1) break;
    }
  }
}

TEST_F(Gradient, OfComparisonsAndLogicIsNone) {
  for (const OpDef& row : elementwise_rows()) {
    if (has_floating_result(row)) continue;
    DType dtype = row.dtypes.result == DTypeRule::compared ? DType::f32 : DType::i32;
    std::vector<Tensor> inputs;
    for (int k = 0; k < row.arity; ++k) inputs.push_back(make_vector(dtype, {1, 2, 3}));
    Tensor output = eager(row, inputs);
    for (const Tensor& gradient : gradients_of(row, inputs, {}, output, output))
      EXPECT_FALSE(gradient.defined()) << row.name;
  }
}

TEST_F(Gradient, OfCastsPassesOn) {
  Tensor x = values_from({-10, 10}, DType::f64, {9}, 3);
  for (DType to : all_dtypes) {
    const OpDef& row = cast_rows()[static_cast<std::size_t>(to)];
    Tensor output = eager(row, {x});
    Tensor d = is_floating(to) ? cast(direction_like(x, 5), to) : output;
    Tensor gradient = gradients_of(row, {x}, {}, output, d)[0];
    if (is_floating(to))
      EXPECT_TRUE(same_bits(gradient, cast(d, DType::f64))) << to;
    else
      EXPECT_FALSE(gradient.defined()) << to;
  }
}

/// A cast is linear: its gradient casts back, and the gradient of that casts again.
TEST_F(Gradient, OfCastsInEveryType) {
  for (DType from : floating_dtypes)
    for (DType to : floating_dtypes) {
      const OpDef& row = cast_rows()[static_cast<std::size_t>(to)];
      Tensor x = values_from({-10, 10}, from, {9}, 3), d = cast(direction_like(x, 5), to), w = direction_like(x, 6);
      SCOPED_TRACE(text(from, " to ", to));
      GradientTape outer;
      outer.watch(d);
      GradientTape inner;
      inner.watch(x);
      Tensor first = inner.gradient(sum(eager(row, {x}) * d), x);
      EXPECT_TRUE(same_bits(first, cast(d, from)));
      tested(row, from, Aspect::gradient, {first});
      Tensor second = outer.gradient(sum(first * w), d);
      EXPECT_TRUE(same_bits(second, cast(w, to)));
      tested(row, from, Aspect::second_order, {second});
    }
}

/// d/dx_i along v of the derivative with respect to x_j, through call_map like any derivative.
TEST_F(Gradient, SecondOrderOfEveryMap) {
  for (const OpDef& row : elementwise_rows()) {
    if (!has_floating_result(row)) continue;
    std::vector<Tensor> inputs = map_operands(row, {{33}, {33}, {33}});
    std::vector<DType> types;
    for (const Tensor& input : inputs) types.push_back(input.dtype());
    Expr body = instantiate(row, types).body;
    auto at = [&](Expr expr, const std::vector<Tensor>& operands) {
      std::vector<In> list(operands.begin(), operands.end());
      return call_map(expr, list);
    };
    for (int j = 0; j < row.arity; ++j) {
      if (!is_floating(types[static_cast<std::size_t>(j)])) continue;
      Expr first = derivative(body, j);
      std::vector<Tensor> up = inputs, down = inputs;
      Tensor second = zeros({33}, DType::f64);
      double scale = 1;
      for (int i = 0; i < row.arity; ++i) {
        auto k = static_cast<std::size_t>(i);
        if (!is_floating(types[k])) continue;
        Tensor v = direction_like(inputs[k], k);
        up[k] = inputs[k] + v * step;
        down[k] = inputs[k] - v * step;
        second = second + at(derivative(first, i), inputs) * v;
      }
      Values got = values_of(second), expected = values_of((at(first, up) - at(first, down)) / (2 * step));
      scale = std::max(scale, largest(second));
      for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(static_cast<double>(got[i]), static_cast<double>(expected[i]), 1e-5 * scale)
            << row.name << ", operand " << j << ", element " << i;
    }
  }
}

TEST_F(Gradient, OfEveryStructuredRow) {
  for (const OpDef* op : all_rows()) {
    if (op->kind == Kind::map || !op->gradient) continue;
    for (const Sample& sample : visited_samples(*op, "gradient", 2)) {
      std::vector<Tensor> inputs = sample_operands(sample);
      SCOPED_TRACE(sample_line(*op, sample));
      check_gradient(*op, inputs, sample.attributes);
      for (DType narrow : narrow_dtypes)
        if (accepts(*op, sample, narrow)) check_narrow_gradient(*op, inputs, sample.attributes, narrow);
    }
  }
}

/// What a row's gradient is made of: s(x, d) = the sum of <gradient_k, w_k> of <d, f(x)>, by a tape; and the gradients
/// of s with respect to x and d, by a tape around it.
struct SecondOrder {
  double value = 0;
  std::vector<Tensor> gradients;  // of the operands, then of d; undefined where s does not depend on them
};
/// w are drawn in the type `weights`.
SecondOrder second_order(const OpDef& op, const std::vector<Tensor>& inputs, const Attributes& attributes,
                         const std::vector<Tensor>& ds, DType weights = DType::f64) {
  std::vector<Tensor> sources = inputs;
  for (const Tensor& d : ds)
    if (d.defined()) sources.push_back(d);
  GradientTape outer;
  for (const Tensor& source : sources)
    if (is_floating(source.dtype())) outer.watch(source);
  Tensor total;
  {
    GradientTape inner;
    for (const Tensor& input : inputs)
      if (is_floating(input.dtype())) inner.watch(input);
    std::vector<Tensor> outputs = eager_all(op, inputs, attributes);
    Tensor output;
    for (std::size_t r = 0; r < ds.size(); ++r) {
      if (!ds[r].defined()) continue;
      Tensor finite = where(less(abs(outputs[r]), INFINITY), outputs[r], 0);
      Tensor part = sum(finite * ds[r]);
      output = output.defined() ? output + part : part;
    }
    std::vector<Tensor> first = inner.gradient(output, inputs);
    for (std::size_t k = 0; k < first.size(); ++k) {
      if (!first[k].defined()) continue;
      Tensor w = cast(values_from({-1, 1}, weights, sizes_of(inputs[k]), 1050 + k), inputs[k].dtype());
      Tensor part = sum(first[k] * w);
      total = total.defined() ? total + part : part;
    }
  }
  SecondOrder out;
  if (!total.defined()) return out;
  out.value = total.item<double>();
  out.gradients = outer.gradient(total, sources);
  return out;
}

/// Along a random direction the gradient of a gradient equals central differences of the first, with respect to the
/// operands and to what comes from above.
void check_second_order(const OpDef& op, const std::vector<Tensor>& inputs, const Attributes& attributes) {
  std::vector<Tensor> outputs = eager_all(op, inputs, attributes);
  if (!any_floating(outputs)) return;
  std::vector<Tensor> ds = directions_like(outputs);
  SecondOrder at = second_order(op, inputs, attributes, ds);
  std::vector<Tensor> sources = inputs, up, down;
  for (const Tensor& d : ds)
    if (d.defined()) sources.push_back(d);
  double by_gradient = 0, scale = 1;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    const Tensor& source = sources[k];
    up.push_back(source);
    down.push_back(source);
    if (!is_floating(source.dtype())) continue;
    Tensor v = direction_like(source, 90 + k);
    up[k] = (source + v * step).contiguous();
    down[k] = (source - v * step).contiguous();
    if (k >= at.gradients.size() || !at.gradients[k].defined()) continue;  // zero
    EXPECT_EQ(sizes_of(at.gradients[k]), sizes_of(source)) << "operand " << k;
    by_gradient += inner_product(at.gradients[k], v);
    scale = std::max(scale, largest(at.gradients[k]) * std::sqrt(static_cast<double>(count_of(sizes_of(source)) + 1)));
  }
  auto value_at = [&](const std::vector<Tensor>& moved) {
    std::vector<Tensor> operands(moved.begin(), moved.begin() + static_cast<std::ptrdiff_t>(inputs.size()));
    std::vector<Tensor> weights(ds.size());
    std::size_t next = inputs.size();
    for (std::size_t r = 0; r < ds.size(); ++r)
      if (ds[r].defined()) weights[r] = moved[next++];
    return second_order(op, operands, attributes, weights).value;
  };
  double above = value_at(up), below = value_at(down);
  EXPECT_NEAR(by_gradient, (above - below) / (2 * step), 1e-5 * scale);
  tested(op, DType::f64, Aspect::second_order, outputs);
}

/// The same gradients of the gradient in a narrow type and in f64, at operands that the narrow type holds exactly.
void check_narrow_second_order(const OpDef& op, const std::vector<Tensor>& inputs, const Attributes& attributes,
                               DType narrow) {
  std::vector<Tensor> narrow_inputs, wide_inputs, narrow_ds, wide_ds;
  for (const Tensor& input : inputs) {
    bool floating = is_floating(input.dtype());
    narrow_inputs.push_back(floating ? cast(input, narrow) : input);
    wide_inputs.push_back(floating ? cast(narrow_inputs.back(), DType::f64) : input);
  }
  std::vector<Tensor> outputs = eager_all(op, narrow_inputs, attributes);
  if (!any_floating(outputs)) return;
  for (const Tensor& d : directions_like(outputs)) {
    narrow_ds.push_back(d);
    wide_ds.push_back(d.defined() ? cast(d, DType::f64) : Tensor());
  }
  // Of factors of a matrix, first gradients divide by gaps of its spectrum and second ones by their squares.
  expect_narrow(second_order(op, narrow_inputs, attributes, narrow_ds, narrow).gradients,
                second_order(op, wide_inputs, attributes, wide_ds, narrow).gradients, narrow,
                op.kind == Kind::linalg ? 4000 : 200);
  tested(op, narrow, Aspect::second_order, outputs);
}

TEST_F(Gradient, SecondOrderOfEveryMapByTapes) {
  for (const OpDef& row : elementwise_rows()) {
    if (!has_floating_result(row)) continue;
    for (const std::vector<Sizes>& sizes :
         {std::vector<Sizes>{{3, 4}, {4}, {3, 1}}, std::vector<Sizes>{{2, 0}, {2, 1}, {}}}) {
      if (count_of(sizes[0]) == 0 && !visits(text("second order of ", row.name), 0, 4)) continue;
      SCOPED_TRACE(text(row.name, " of ", Shape(sizes[0])));
      check_second_order(row, map_operands(row, sizes), {});
      for (DType narrow : narrow_dtypes) {
        SCOPED_TRACE(narrow);
        check_narrow_second_order(row, map_operands(row, sizes, narrow), {}, narrow);
      }
    }
  }
}

TEST_F(Gradient, SecondOrderOfEveryStructuredRow) {
  for (const OpDef* op : all_rows()) {
    if (!op->gradient || op->kind == Kind::map) continue;
    for (const Sample& sample : visited_samples(*op, "second order", 2)) {
      SCOPED_TRACE(sample_line(*op, sample));
      std::vector<Tensor> inputs = sample_operands(sample);
      check_second_order(*op, inputs, sample.attributes);
      for (DType narrow : narrow_dtypes) {
        SCOPED_TRACE(narrow);
        if (accepts(*op, sample, narrow)) check_narrow_second_order(*op, inputs, sample.attributes, narrow);
      }
    }
  }
}

/// The second derivative by two factors is the product of the others, zeros or not.
TEST_F(Gradient, OfTheGradientOfAProductWithZeros) {
  for (std::vector<double> factors : {std::vector<double>{2, -3, 5}, {2, 0, 5}, {0, 0, 5}, {0, 0, 0}, {4, 0, 0, 3}}) {
    std::size_t n = factors.size();
    GradientTape outer({.persistent = true});
    Tensor x = tensor(factors);
    outer.watch(x);
    GradientTape inner;
    inner.watch(x);
    Tensor first = inner.gradient(prod(x), x);
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<double> second = outer.gradient(first[static_cast<int>(i)], x).to_vector<double>();
      for (std::size_t j = 0; j < n; ++j) {
        double others = i == j ? 0 : 1;
        for (std::size_t k = 0; k < n; ++k) others *= k == i || k == j ? 1 : factors[k];
        EXPECT_NEAR(second[j], others, 1e-14) << i << " " << j;
      }
    }
  }
}

/// Where one factor is zero, its derivative is the product of the others, not 0 / 0.
TEST_F(Gradient, OfProductsWithZeros) {
  auto gradient = [](const Tensor& x) {
    Sample sample = samples_of(prod_row)[1];  // axis 1
    Tensor y = eager(prod_row, {x}, sample.attributes);
    return values_of(gradients_of(prod_row, {x}, sample.attributes, y, ones_like(y))[0]);
  };
  EXPECT_EQ(gradient(make_tensor(DType::f64, {2, 0, 3, 5, 7, 2}, {2, 3})), (Values{0, 6, 0, 14, 10, 35}));
  EXPECT_EQ(gradient(make_tensor(DType::f64, {2, 0, 0}, {1, 3})), (Values{0, 0, 0}));
  EXPECT_EQ(gradient(make_tensor(DType::f32, {-0.0L, 4, 3}, {1, 3})), (Values{12, 0, 0}));
}

const OpDef& row_named(const char* name) {
  for (const OpDef& row : elementwise_rows())
    if (std::string(row.name) == name) return row;
  throw std::runtime_error(name);
}

/// The gradient by one operand.
Values gradient_by(std::size_t operand, const char* name, const std::vector<Values>& operands,
                   DType dtype = DType::f64) {
  std::vector<Tensor> inputs;
  for (const Values& values : operands) inputs.push_back(make_vector(dtype, values));
  const OpDef& row = row_named(name);
  Tensor y = eager(row, inputs);
  return values_of(gradients_of(row, inputs, {}, y, ones_like(y))[operand]);
}

/// Where the body as it is written would give 0 / 0, infinity less infinity, or the average of two sides.
TEST_F(Gradient, OfCarefulRows) {
  constexpr Value inf = INFINITY;
  EXPECT_EQ(gradient_by(0, "hypot", {{0, 3}, {0, 4}}), (Values{0, 0.6}));
  EXPECT_NEAR(static_cast<double>(gradient_by(0, "hypot", {{1e300L}, {1e300L}})[0]), std::sqrt(0.5), 1e-15);
  EXPECT_EQ(gradient_by(1, "hypot", {{0, 3}, {0, 4}}), (Values{0, 0.8}));
  EXPECT_EQ(gradient_by(0, "atan2", {{0, 1}, {0, 1}}), (Values{0, 0.5}));
  EXPECT_EQ(gradient_by(1, "atan2", {{0, 1}, {0, 1}}), (Values{0, -0.5}));
  // Of x inside and on the bounds; of a bound where it is the result; bounds in the wrong order give the upper one.
  std::vector<Values> clips{{-3, -2, 0, 2, 3, 0}, {-2, -2, -2, -2, -2, 5}, {2, 2, 2, 2, 2, 1}};
  EXPECT_EQ(gradient_by(0, "clip", clips), (Values{0, 1, 1, 1, 0, 0}));
  EXPECT_EQ(gradient_by(1, "clip", clips), (Values{1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(gradient_by(2, "clip", clips), (Values{0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(gradient_by(0, "xlogy", {{0, 0, 2}, {0, 1, 1}}), (Values{0, 0, 0}));
  EXPECT_EQ(gradient_by(1, "xlogy", {{0, 0, 2}, {0, 1, 4}}), (Values{0, 0, 0.5}));
  EXPECT_EQ(gradient_by(0, "logaddexp", {{-inf, -inf, inf, 1000, 0}, {-inf, 0, inf, -1000, 0}}),
            (Values{0.5, 0, 0.5, 1, 0.5}));
  EXPECT_EQ(gradient_by(0, "relu6", {{-1, 0, 3, 6, 7}}), (Values{0, 0, 1, 0, 0}));
  EXPECT_EQ(gradient_by(0, "hard_tanh", {{-2, -1, 0, 1, 2}}), (Values{0, 1, 1, 1, 0}));
  EXPECT_EQ(gradient_by(0, "leaky_relu", {{-1, 0, 1}, {0.25, 0.25, 0.25}}), (Values{0.25, 1, 1}));
  EXPECT_EQ(gradient_by(0, "sign", {{-1, 0, 2}}), (Values{0, 0, 0}));
  EXPECT_EQ(gradient_by(0, "trunc", {{-1.5, 0, 2.5}}), (Values{0, 0, 0}));
  EXPECT_EQ(gradient_by(0, "heaviside", {{-1, 0, 2}, {5, 5, 5}}), (Values{0, 0, 0}));
  EXPECT_EQ(gradient_by(1, "heaviside", {{-1, 0, 2}, {5, 5, 5}}), (Values{0, 1, 0}));
  EXPECT_EQ(gradient_by(0, "copysign", {{-1, 1, 0}, {1, 1, -1}}), (Values{-1, 1, -1}));
  EXPECT_EQ(gradient_by(0, "fmax", {{NAN, 1, 2}, {1, NAN, 1}}), (Values{0, 1, 1}));
  EXPECT_EQ(gradient_by(0, "sinh", {{0}}), (Values{1}));
  EXPECT_EQ(gradient_by(0, "cosh", {{0}}), (Values{0}));
  EXPECT_EQ(gradient_by(0, "log1p", {{0, 1e-300L}}), (Values{1, 1}));
  EXPECT_EQ(gradient_by(0, "cbrt", {{8, -8}})[0], gradient_by(0, "cbrt", {{8, -8}})[1]);
}

/// Equal extremes share the gradient; relu and abs have 0 at 0; maximum halves.
TEST_F(Gradient, AtKinks) {
  auto gradient = [](const OpDef& op, const std::vector<Tensor>& inputs, const Attributes& attributes = {}) {
    Tensor y = eager(op, inputs, attributes);
    return values_of(gradients_of(op, inputs, attributes, y, ones_like(y))[0]);
  };
  Tensor zero = make_vector(DType::f32, {0, -0.0L, 1, -1});
  EXPECT_EQ(gradient(row_named("relu"), {zero}), (Values{0, 0, 1, 0}));
  EXPECT_EQ(gradient(row_named("abs"), {zero}), (Values{0, 0, 1, -1}));
  EXPECT_EQ(gradient(row_named("maximum"), {zero, zero}), (Values{0.5, 0.5, 0.5, 0.5}));
  Sample rows = samples_of(max_row)[1];
  Tensor ties = make_tensor(DType::f32, {3, 3, 1, 2, 2, 2}, {2, 3});
  Values shared = gradient(max_row, {ties}, rows.attributes);
  EXPECT_EQ(shared[0], 0.5);
  EXPECT_EQ(shared[2], 0);
  EXPECT_NEAR(static_cast<double>(shared[3]), 1.0 / 3, 1e-7);
}

/// Far out, sigmoid and its relatives have finite derivatives, which are what they come close to.
TEST_F(Gradient, FarFromZeroIsFinite) {
  Tensor far = make_vector(DType::f32, {-1e30L, -1000, -100, -90, 90, 100, 1000, 1e30L});
  struct Limits {
    const char* name;
    Value below, above;
  };
  for (const Limits& row : std::initializer_list<Limits>{{"sigmoid", 0, 0},
                                                         {"silu", 0, 1},
                                                         {"gelu", 0, 1},
                                                         {"tanh", 0, 0},
                                                         {"erf", 0, 0},
                                                         {"relu", 0, 1},
                                                         {"abs", -1, 1},
                                                         {"softplus", 0, 1},
                                                         {"log_sigmoid", 1, 0},
                                                         {"mish", 0, 1},
                                                         {"gelu_tanh", 0, 1},
                                                         {"selu", 0, 1.0507009873554805L},
                                                         {"hard_silu", 0, 1},
                                                         {"softsign", 0, 0},
                                                         {"atan", 0, 0},
                                                         {"asinh", 0, 0},
                                                         {"expm1", 0, INFINITY}}) {
    Values got = gradient_by(0, row.name, {values_of(far)}, DType::f32);
    for (std::size_t i = 0; i < got.size(); ++i) {
      Value limit = i < 4 ? row.below : row.above;
      if (std::isinf(limit))
        EXPECT_EQ(got[i], limit) << row.name << ", element " << i;
      else
        EXPECT_NEAR(static_cast<double>(got[i]), static_cast<double>(limit), 0.02) << row.name << ", element " << i;
    }
  }
  for (const char* name : {"elu", "celu"}) {
    Values ones(8, 1), by_x = gradient_by(0, name, {values_of(far), ones}, DType::f32);
    EXPECT_EQ(by_x[0], 0) << name;
    EXPECT_EQ(by_x[7], 1) << name;
    Values by_alpha = gradient_by(1, name, {values_of(far), ones}, DType::f32);
    EXPECT_EQ(by_alpha[0], -1) << name;
    EXPECT_EQ(by_alpha[7], 0) << name;
  }
}

}  // namespace
}  // namespace stet::op_test
