// Maps: every row x every type it takes, against stored values; eager, a one-node graph at two sizes with one program,
// and checked code give the same bits.
//
// Bounds, in units in the last place (ULP) of the result's type:
//   rows of one correctly rounded operation   0: the result is the nearest element
//   f32 and f64                               4
//   f16 and bf16                              1: they compute in f32, whose error of at most 4 ULP (2^-10 ULP of f16,
//   2^-14
//                                             of bf16) decides only which of two neighbours a value near their middle
//                                             rounds to
//   integers and bool                         0
#include "tests/ops/coverage.h"
#include "tests/ops/oracle.h"

namespace stet::op_test {
namespace {

class Elementwise : public OpTest {};

/// The row is at most one operation that rounds (correctly, as IEEE arithmetic does); choices and comparisons do not.
bool exactly_rounded(const OpDef& row, DType dtype) {
  int roundings = 0;
  std::vector<DType> types(row.arity, dtype);
  if (row.dtypes.result == DTypeRule::selected) types[0] = DType::bool_;
  for (Expr part : topological(instantiate(row, types).body)) {
    constexpr Primitive one[] = {Primitive::add,    Primitive::subtract, Primitive::multiply, Primitive::divide,
                                 Primitive::modulo, Primitive::sqrt,     Primitive::fma};
    auto is = [&](Primitive primitive) { return part.is(primitive); };
    // A constant factor was rounded itself.
    bool factor = part.is(Primitive::multiply) && is_floating(part.dtype()) &&
                  (part->arguments[0].is(Primitive::constant) || part->arguments[1].is(Primitive::constant));
    roundings += is_transcendental(part->primitive) || factor ? 2 : std::ranges::any_of(one, is) ? 1 : 0;
  }
  return roundings <= 1;
}

/// Below this a row may give 0: exp(-x) overflows where the result is (x times) less than the smallest normal number.
Value underflow_allowance(const std::string& row, DType dtype) {
  DType computed = compute_type(floating_type(dtype));
  Value smallest = std::ldexp(Value{1}, format_of(computed).lowest_exponent);
  if (row == "sigmoid") return smallest;
  if (row == "silu" || row == "mish" || row == "gelu_tanh") return smallest * (computed == DType::f64 ? 750 : 110);
  return 0;
}

/// Beside a zero that is the difference of larger numbers: how far the result may be off whatever its size.
Value cancellation_allowance(const std::string& row, DType dtype) {
  Value unit = unit_roundoff(compute_type(floating_type(dtype)));
  return row == "logaddexp" ? 4 * unit : row == "lgamma" || row == "digamma" ? 8 * unit : 0;
}

void expect_close(const OpDef& op, const Tensor& got, const Values& expected, DType operand) {
  DType dtype = got.dtype();
  std::string row = op.name;
  double bound = !is_floating(dtype) || exactly_rounded(op, operand) ? 0 : compute_type(dtype) != dtype ? 1 : 4;
  Values values = values_of(got);
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    double distance = is_floating(dtype)         ? ulps(dtype, values[i], expected[i])
                      : values[i] == expected[i] ? 0
                                                 : INFINITY;
    Value allowance = std::max(underflow_allowance(row, operand), cancellation_allowance(row, operand));
    if (distance <= bound || std::abs(values[i] - expected[i]) <= allowance) continue;
    ADD_FAILURE() << row << " of " << operand << ", point " << i << ": " << text(static_cast<double>(values[i]))
                  << ", not " << text(static_cast<double>(expected[i])) << "; " << distance << " ULP";
  }
}

Values first_of(const Values& values, std::size_t count) {
  return {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(std::min(count, values.size()))};
}

/// Eager equals the reference; the one-node graph at two sizes and checked code equal eager.
void check_map(const OpDef& row, const std::vector<DType>& types, const std::vector<Values>& points,
               const Values& expected) {
  std::vector<Tensor> whole, part;
  std::size_t fewer = expected.size() > 20 ? expected.size() - 13 : expected.size() - 1;
  for (std::size_t k = 0; k < points.size(); ++k) {
    whole.push_back(make_vector(types[k], points[k]));
    part.push_back(make_vector(types[k], first_of(points[k], fewer)));
  }
  Tensor result = eager(row, whole);
  EXPECT_EQ(result.dtype(), instantiate(row, types).result);
  expect_close(row, result, expected, types.back());
  tested(row, types.back(), Aspect::eager, {result});

  Tensor beginning =
      make_tensor(result.dtype(), first_of(values_of(result), fewer), {static_cast<std::int64_t>(fewer)});
  OneNode graph(row, whole);
  EXPECT_TRUE(same_bits(graph.run(whole), result)) << row.name << " as a graph";
  Tensor smaller = graph.run(part);
  ASSERT_TRUE(smaller.defined()) << row.name << " was compiled for one size only\n" << graph.str();
  EXPECT_TRUE(same_bits(smaller, beginning)) << row.name << " as a graph at another size";
  tested(row, types.back(), Aspect::traced, {smaller});

  if (!visits(text("checked ", row.name), static_cast<std::uint64_t>(types.back()), 4)) return;
  CheckedKernels checked;
  OneNode checked_graph(row, whole);
  EXPECT_TRUE(same_bits(checked_graph.run(part), beginning)) << row.name << " in checked code";
  EXPECT_TRUE(same_bits(eager(row, whole), result)) << row.name << " eagerly in checked code";
}

TEST_F(Elementwise, EveryRowAndTypeEqualsTheReference) {
  for (const OpDef& row : elementwise_rows())
    for (DType dtype : all_dtypes) {
      const OracleBlock* block = Oracle::instance().find(text("map ", row.name, " ", dtype));
      if (!block) continue;  // the row does not take the type; oracle_test sees to that
      SCOPED_TRACE(text(row.name, " of ", dtype));
      std::vector<DType> types(row.arity, dtype);
      if (row.dtypes.result == DTypeRule::selected) types[0] = DType::bool_;
      std::vector<Values> points;
      for (int k = 0; k < row.arity; ++k) points.push_back(block->values(std::string(1, "xyz"[k])));
      check_map(row, types, points, block->values("="));
    }
}

TEST_F(Elementwise, EveryCastEqualsTheReference) {
  for (DType to : all_dtypes)
    for (DType from : all_dtypes) {
      const OracleBlock* block = Oracle::instance().find(text("cast ", to, " ", from));
      ASSERT_TRUE(block);
      SCOPED_TRACE(text("cast to ", to, " from ", from));
      check_map(cast_rows()[static_cast<std::size_t>(to)], {from}, {block->values("x")}, block->values("="));
      Tensor x = make_vector(from, block->values("x"));
      EXPECT_TRUE(same_bits(cast(x, to), eager(cast_rows()[static_cast<std::size_t>(to)], {x})));
    }
}

/// Operands from the row's domain.
Tensor from_domain(const OpDef& row, DType dtype, const Sizes& sizes, int operand) {
  Values out;
  for (std::int64_t i = 0; i < count_of(sizes); ++i) {
    std::uint64_t bits = drawn(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(operand));
    Value x = drawn_from(row.domain, bits);
    if (dtype == DType::bool_) x = bits & 1;
    if (dtype == DType::u8) x = std::abs(x);
    out.push_back(is_floating(dtype) ? x : std::trunc(x));
  }
  return make_tensor(dtype, out, sizes);
}

std::vector<DType> types_for(const OpDef& row, DType dtype) {
  std::vector<DType> types(row.arity, dtype);
  if (row.dtypes.result == DTypeRule::selected) types[0] = DType::bool_;
  return types;
}

/// Broadcast operands give what operands copied to the full shape give, eagerly and in a graph at two sizes.
TEST_F(Elementwise, BroadcastOperands) {
  struct Case {
    Sizes x, y, z, larger_x, larger_y, larger_z;
  };
  const Case cases[] = {{{3, 5}, {5}, {1, 1}, {6, 9}, {9}, {1, 1}},
                        {{4, 1}, {1, 37}, {37}, {7, 1}, {1, 20}, {20}},
                        {{}, {2, 3, 4}, {3, 1}, {}, {5, 2, 17}, {2, 1}},
                        {{2, 1, 3}, {4, 1}, {}, {3, 1, 8}, {2, 1}, {}},
                        {{0, 3}, {3}, {1}, {0, 5}, {5}, {1}},
                        {{1}, {0}, {}, {1}, {0}, {}}};
  for (const OpDef& row : elementwise_rows()) {
    if (row.arity < 2) continue;
    for (DType dtype : visited_types(row, "broadcast")) {
      std::vector<DType> types = types_for(row, dtype);
      for (const Case& one : cases) {
        auto operands = [&](bool larger) {
          const Sizes* sizes[] = {larger ? &one.larger_x : &one.x, larger ? &one.larger_y : &one.y,
                                  larger ? &one.larger_z : &one.z};
          std::vector<Tensor> out;
          for (int k = 0; k < row.arity; ++k)
            out.push_back(from_domain(row, types[static_cast<std::size_t>(k)], *sizes[k], k));
          return out;
        };
        auto expanded = [&](const std::vector<Tensor>& given) {
          std::vector<Shape> shapes;
          for (const Tensor& t : given) shapes.push_back(t.shape());
          Shape full = broadcast(shapes, {"test", "", {}}).result;
          std::vector<Tensor> out;
          for (const Tensor& t : given) out.push_back(broadcast_to(t, full).contiguous());
          return out;
        };
        SCOPED_TRACE(text(row.name, " of ", dtype, Shape(one.x), " and ", Shape(one.y)));
        std::vector<Tensor> small = operands(false), large = operands(true);
        Tensor expected = eager(row, expanded(small)), expected_large = eager(row, expanded(large));
        EXPECT_TRUE(same_bits(eager(row, small), expected));
        OneNode graph(row, small);
        EXPECT_TRUE(same_bits(graph.run(small), expected));
        Tensor other = graph.run(large);
        ASSERT_TRUE(other.defined()) << graph.str();
        EXPECT_TRUE(same_bits(other, expected_large));
        if (&one == &cases[1]) {
          CheckedKernels checked;
          EXPECT_TRUE(same_bits(OneNode(row, small).run(large), expected_large));
        }
      }
    }
  }
}

/// Mixed types promote as JAX does: the same as casting first.
TEST_F(Elementwise, MixedTypesPromote) {
  for (const OpDef& row : elementwise_rows()) {
    if (row.arity != 2) continue;
    if (std::string(row.name) != "add" && std::string(row.name) != "less" && std::string(row.name) != "divide")
      continue;
    for (DType left : all_dtypes)
      for (DType right : all_dtypes) {
        DType type = promote(left, right);
        Tensor x = from_domain(row, left, {9}, 0), y = from_domain(row, right, {9}, 1);
        if (type == DType::bool_ && !row.dtypes.accepts_bool) continue;
        EXPECT_TRUE(same_bits(eager(row, {x, y}), eager(row, {cast(x, type), cast(y, type)})))
            << row.name << " of " << left << " and " << right;
      }
  }
}

/// A C++ number takes the tensor's type, except a floating one beside integers (f32) and an integer beside bool (i32).
TEST_F(Elementwise, NumbersTakeTheTensorsType) {
  for (DType dtype : all_dtypes) {
    Tensor x = make_vector(dtype, {0, 1, 1});
    EXPECT_EQ((x + 2).dtype(), dtype == DType::bool_ ? DType::i32 : dtype);
    EXPECT_EQ((x * 0.5).dtype(), is_floating(dtype) ? dtype : DType::f32);
    EXPECT_EQ((2 - x).dtype(), dtype == DType::bool_ ? DType::i32 : dtype);
    EXPECT_EQ(where(x, x, 1).dtype(), dtype == DType::bool_ ? DType::i32 : dtype);
    EXPECT_EQ((x == 1).dtype(), DType::bool_);
    EXPECT_EQ(values_of(x + 2), (Values{2, 3, 3}));
  }
}

TEST_F(Elementwise, EmptyScalarAndSizeOne) {
  for (const OpDef& row : elementwise_rows())
    for (DType dtype : visited_types(row, "empty and one")) {
      std::vector<DType> types = types_for(row, dtype);
      auto operands = [&](const Sizes& sizes) {
        std::vector<Tensor> out;
        for (int k = 0; k < row.arity; ++k)
          out.push_back(from_domain(row, types[static_cast<std::size_t>(k)], sizes, k));
        return out;
      };
      SCOPED_TRACE(text(row.name, " of ", dtype));
      Tensor one = eager(row, operands({1}));
      EXPECT_TRUE(same_bits(eager(row, operands({})), reshape(one, std::vector<Dim>{})));
      EXPECT_TRUE(same_bits(eager(row, operands({1, 1, 1})), reshape(one, {1, 1, 1})));
      for (const Sizes& empty : {Sizes{0}, Sizes{3, 0}, Sizes{0, 5, 2}}) {
        Tensor nothing = eager(row, operands(empty));
        EXPECT_EQ(sizes_of(nothing), empty);
        EXPECT_EQ(nothing.dtype(), one.dtype());
      }
      // Rank 8 is the most there is.
      EXPECT_TRUE(same_bits(eager(row, operands({1, 1, 1, 1, 1, 1, 1, 1})), reshape(one, {1, 1, 1, 1, 1, 1, 1, 1})));
    }
}

}  // namespace
}  // namespace stet::op_test
