// Composites and losses in one table (composite_table.h): values, gradients and second derivatives against stored ones
// (tests/oracle/composites/*.py has the same in NumPy); eager equals traced, at several sizes with one trace;
// views equal dense tensors; nothing in gives nothing out.
//
// Bounds. Every op of a composite rounds; values stay within 8.5, so that exp's argument is off by 8 u and each op adds
// a few u: 120 u of the largest value. A gradient passes a few more ops and sums (400 u), a second derivative both
// (2000 u). The stored derivatives are differences, good to 1e-9 of the largest.
#include "stet/core/function.h"
#include "stet/core/scope.h"
#include "stet/core/tape.h"
#include "tests/keras/composite_table.h"
#include "tests/sampling.h"

namespace stet::op_test {
namespace {

/// Sizes and ranks change on purpose: nobody need hear of it.
class Composites : public OpTest {
 protected:
  void SetUp() override {
    OpTest::SetUp();
    on_retrace([](const RetraceEvent&) {});
  }
  void TearDown() override {
    on_retrace({});
    OpTest::TearDown();
  }
};

Tensors drawn_operands(const Composite& composite, const Sizes& sizes, DType dtype) {
  Tensors out;
  for (std::size_t k = 0; k < composite.operands.size(); ++k)
    out.push_back(drawn_operand(composite.operands[k], k, sizes, dtype));
  return out;
}

/// Weights of the results and directions of the operands: the numbers that make_values.py draws.
Tensor drawn_like(const Tensor& tensor, int stream, DType dtype) {
  Values out;
  for (std::int64_t i = 0; i < count_of(sizes_of(tensor)); ++i)
    out.push_back(drawn_element(Draw::plain, i, stream, dtype, 1));
  return make_tensor(dtype, out, sizes_of(tensor));
}

/// The value; of sum(value * d) the gradient with respect to every floating operand; and that gradient's derivative
/// along the directions. Gradients that do not exist are zero.
Tensors with_derivatives(const Composite& composite, const Tensors& operands, const Tensor& d,
                         const Tensors& directions) {
  Tensors sources;
  for (const Tensor& operand : operands)
    if (is_floating(operand.dtype())) sources.push_back(operand);
  auto or_zero = [&](Tensor gradient, std::size_t k) { return gradient.defined() ? gradient : zeros_like(sources[k]); };
  GradientTape outer;
  for (const Tensor& source : sources) outer.watch(source);
  Tensor value, along = tensor(0.f);
  Tensors first;
  {
    GradientTape inner;
    for (const Tensor& source : sources) inner.watch(source);
    value = composite.call(operands);
    first = inner.gradient(sum(value * d), sources);
  }
  for (std::size_t k = 0; k < sources.size(); ++k) {
    first[k] = or_zero(first[k], k);
    along = along + sum(first[k] * directions[k]);
  }
  Tensors second = outer.gradient(along, sources), out = {value};
  for (std::size_t k = 0; k < sources.size(); ++k) {
    out.push_back(first[k]);
    out.push_back(or_zero(second[k], k));
  }
  return out;
}

/// An argument of a call with derivatives, in one list: operands, d, directions.
Tensors arguments_for(const Composite& composite, const Sizes& sizes, DType dtype) {
  Tensors out = drawn_operands(composite, sizes, dtype);
  std::size_t operands = out.size();
  out.push_back(drawn_like(composite.call(out), 40, dtype));
  for (std::size_t k = 0; k < operands; ++k)
    if (is_floating(out[k].dtype())) out.push_back(drawn_like(out[k], 50 + static_cast<int>(k), dtype));
  return out;
}
Tensors call_with_derivatives(const Composite& composite, const Tensors& arguments) {
  auto operands = static_cast<std::ptrdiff_t>(composite.operands.size());
  return with_derivatives(composite, Tensors(arguments.begin(), arguments.begin() + operands),
                          arguments[static_cast<std::size_t>(operands)],
                          Tensors(arguments.begin() + operands + 1, arguments.end()));
}

/// The same elements, lying in memory with the axes reversed.
Tensor turned(const Tensor& x) { return x.rank() < 2 ? x : transpose(transpose(x).contiguous()); }

void expect_near(const Tensor& got, const Values& expected, Value units, const std::string& what) {
  SCOPED_TRACE(what);
  Values values = values_of(got);
  ASSERT_EQ(values.size(), expected.size());
  Value largest = 1;
  for (Value value : expected) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(static_cast<double>(values[i]), static_cast<double>(expected[i]),
                static_cast<double>((units * unit_roundoff(got.dtype()) + 1e-9L) * largest))
        << "element " << i;
}

void expect_derivatives(const Composite& composite, const Tensors& got, const OracleBlock& block) {
  expect_near(got[0], block.values("="), 120, "value");
  std::size_t next = 1;
  for (std::size_t k = 0; k < composite.operands.size(); ++k) {
    if (!has_gradient(composite.operands[k])) continue;
    expect_near(got[next++], block.values(text("d", k)), 400, text("gradient of operand ", k));
    expect_near(got[next++], block.values(text("h", k)), 2000, text("second derivative of operand ", k));
  }
}

const OracleBlock& block_of(const Composite& composite, const Sizes& sizes, DType dtype) {
  const OracleBlock* block =
      Oracle::instance().find(text("composite ", composite.name, " ", joined(sizes, ","), " ", dtype));
  if (!block) throw std::runtime_error(text("no values of ", composite.name, ": make oracle"));
  return *block;
}

TEST_F(Composites, ValuesInEveryType) {
  for (const Composite& composite : composites())
    for (DType dtype : floating_dtypes) {
      Function f = function("composite(x)", [call = composite.call](Tensors x) { return call(x); });
      for (const Sizes& sizes : {Sizes{3, 4}, Sizes{5, 37}, Sizes{1, 1}, Sizes{2, 3, 10}}) {
        bool always = sizes.size() == 2 && sizes[0] > 1;  // one trace, two sizes
        if (!always && !visits(text(composite.name, Shape(sizes)), static_cast<std::uint64_t>(dtype), 4)) continue;
        SCOPED_TRACE(text(composite.name, " of ", dtype, Shape(sizes)));
        Tensors operands = drawn_operands(composite, sizes, dtype);
        Values expected = block_of(composite, sizes, dtype).values("=");
        expect_near(composite.call(operands), expected, 120, "eager");
        expect_near(f(operands), expected, 120, "traced");
        for (Tensor& operand : operands) operand = turned(operand);
        expect_near(composite.call(operands), expected, 120, "of views");
        expect_near(f(operands), expected, 120, "traced, of views");
        if (HasFailure()) return;
      }
      EXPECT_LE(f.trace_count(), 3) << f.explain();  // two ranks, and a size of 1 may be one of its own
    }
}

TEST_F(Composites, FirstAndSecondDerivatives) {
  for (const Composite& composite : composites())
    for (DType dtype : {DType::f32, DType::f64}) {
      Function f = function("derived(x)", [composite](Tensors x) { return call_with_derivatives(composite, x); });
      for (const Sizes& sizes : {Sizes{3, 4}, Sizes{2, 3, 10}, Sizes{1, 1}}) {
        bool always = sizes[0] == 3;
        if (!always && !visits(text(composite.name, Shape(sizes)), static_cast<std::uint64_t>(dtype), 4)) continue;
        SCOPED_TRACE(text(composite.name, " of ", dtype, Shape(sizes)));
        const OracleBlock& block = block_of(composite, sizes, dtype);
        Tensors arguments = arguments_for(composite, sizes, dtype);
        {
          SCOPED_TRACE("eager");
          expect_derivatives(composite, call_with_derivatives(composite, arguments), block);
        }
        {
          SCOPED_TRACE("traced");
          expect_derivatives(composite, f(arguments), block);
        }
        for (Tensor& argument : arguments) argument = turned(argument);
        {
          SCOPED_TRACE("of views");
          expect_derivatives(composite, call_with_derivatives(composite, arguments), block);
          expect_derivatives(composite, f(arguments), block);
        }
        if (HasFailure()) return;
      }
    }
}

/// One trace serves two sizes of one rank, derivatives included, and gives what eager gives.
TEST_F(Composites, OneTraceForTwoSizes) {
  for (const Composite& composite : composites()) {
    SCOPED_TRACE(composite.name);
    Function f = function("derived(x)", [composite](Tensors x) { return call_with_derivatives(composite, x); });
    for (const Sizes& sizes : {Sizes{3, 4}, Sizes{6, 9}, Sizes{4, 3}}) {
      Tensors arguments = arguments_for(composite, sizes, DType::f64), got = f(arguments),
              expected = call_with_derivatives(composite, arguments);
      ASSERT_EQ(got.size(), expected.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(sizes_of(got[i]), sizes_of(expected[i]));
        expect_near(got[i], values_of(expected[i]), 400, text("result ", i));
      }
    }
    EXPECT_EQ(f.trace_count(), 1) << f.explain();
  }
}

/// Where a model with zero weights starts: the loss is smooth there, although relu and abs are not.
TEST_F(Composites, BinaryCrossentropyAtZeroLogits) {
  Tensor z = zeros({4}, DType::f64), y = make_vector(DType::f64, {0, 1, 0.25, 0.5});
  GradientTape outer;
  outer.watch(z);
  Tensor first;
  {
    GradientTape inner;
    inner.watch(z);
    first = inner.gradient(keras::losses::binary_crossentropy(y, z, {.from_logits = true}), z);
  }
  EXPECT_EQ(values_of(first * 4), (Values{0.5, -0.5, 0.25, 0}));
  EXPECT_EQ(values_of(outer.gradient(first, z) * 4), Values(4, 0.25));
}

TEST_F(Composites, OfNothing) {
  for (const Composite& composite : composites()) {
    if (!composite.of_nothing) continue;
    SCOPED_TRACE(composite.name);
    Function f = function("derived(x)", [composite](Tensors x) { return call_with_derivatives(composite, x); });
    Tensors arguments = arguments_for(composite, {0, 4}, DType::f32);
    for (const Tensors& got : {call_with_derivatives(composite, arguments), f(arguments)}) {
      EXPECT_EQ(count_of(sizes_of(got[0])), 0);
      std::size_t next = 1;
      for (Operand kind : composite.operands) {
        if (!has_gradient(kind)) continue;
        for (int order = 0; order < 2; ++order, ++next) {
          EXPECT_EQ(sizes_of(got[next]), operand_sizes(kind, {0, 4}));
          for (Value value : values_of(got[next])) EXPECT_EQ(value, 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace stet::op_test
