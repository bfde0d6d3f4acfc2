// Emitted code against stet::evaluate, bit for bit: sixteen lanes, one lane and the reference are the same function.
#include "stet/cpu/emit_expr.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/cpu/expr_harness.h"
#include "tests/ir/random_expr.h"

namespace stet::cpu {
namespace {

/// Inputs of every operand number, elements as stored.
struct Inputs {
  std::vector<std::vector<unsigned char>> bytes;
  std::vector<DType> dtypes;
  std::int64_t count = 0;

  void add_operand(DType d, const std::vector<ScalarBits>& values) {
    dtypes.push_back(d);
    count = static_cast<std::int64_t>(values.size());
    auto size = static_cast<std::size_t>(size_of(d));
    std::vector<unsigned char> stored(values.size() * size);
    for (std::size_t i = 0; i < values.size(); ++i) std::memcpy(stored.data() + i * size, &values[i], size);
    bytes.push_back(std::move(stored));
  }
  ScalarBits bits(std::size_t operand, std::int64_t at) const {
    auto size = static_cast<std::size_t>(size_of(dtypes[operand]));
    ScalarBits value = 0;
    std::memcpy(&value, bytes[operand].data() + static_cast<std::size_t>(at) * size, size);
    return value;
  }
};

void expect_equal_to_reference(std::span<const Expr> exprs, std::span<const Inputs> inputs) {
  set_cache_folder("");
  std::vector<CodeRequest> requests;
  for (Expr e : exprs)
    for (int lanes : {16, 1}) requests.push_back(array_request(e, lanes));
  std::vector<void*> code = load_code(requests);
  for (std::size_t k = 0; k < exprs.size(); ++k) {
    Expr e = exprs[k];
    const Inputs& in = inputs[k];
    auto size = static_cast<std::size_t>(size_of(e.dtype()));
    std::vector<unsigned char> out[2];
    std::vector<const void*> pointers;
    for (const auto& bytes : in.bytes) pointers.push_back(bytes.data());
    for (std::size_t way = 0; way < 2; ++way) {
      out[way].resize(size * static_cast<std::size_t>(in.count));
      reinterpret_cast<ArrayFunction>(code[2 * k + way])(pointers.data(), out[way].data(), in.count);
    }
    for (std::int64_t i = 0; i < in.count; ++i) {
      std::vector<ScalarValue> operands;
      for (std::size_t n = 0; n < in.dtypes.size(); ++n) operands.push_back(value_of(in.bits(n, i), in.dtypes[n]));
      std::int64_t indices[] = {i};
      if (looks_into_nan(e, operands, indices)) continue;
      ScalarBits expected = bits_of(evaluate(e, operands, indices, true), e.dtype());
      for (std::size_t way = 0; way < 2; ++way) {
        ScalarBits got = 0;
        std::memcpy(&got, out[way].data() + static_cast<std::size_t>(i) * size, size);
        std::string given;
        for (std::size_t n = 0; n < in.dtypes.size(); ++n) given += text(" x", n, "=", in.bits(n, i));
        ASSERT_TRUE(same_bits(got, expected, e.dtype())) << e.str(true) << "\nlanes " << (way ? 1 : 16) << ": bits "
                                                         << got << ", expected " << expected << ", at" << given;
      }
    }
  }
}

/// All pairs of hard values; a third operand runs through them at another pace.
Inputs hard_inputs(DType a, DType b, DType c) {
  std::vector<ScalarBits> va = hard_values(a), vb = hard_values(b), vc = hard_values(c), columns[3];
  RandomExprs random(5);
  for (std::size_t i = 0; i < va.size(); ++i)
    for (std::size_t j = 0; j < vb.size(); ++j) {
      columns[0].push_back(va[i]);
      columns[1].push_back(vb[j]);
      columns[2].push_back(vc[(i * 7 + j * 3) % vc.size()]);
    }
  for (int i = 0; i < 500 || columns[0].size() % 16; ++i) {
    columns[0].push_back(random.bits(a));
    columns[1].push_back(random.bits(b));
    columns[2].push_back(random.bits(c));
  }
  Inputs inputs;
  inputs.add_operand(a, columns[0]);
  inputs.add_operand(b, columns[1]);
  inputs.add_operand(c, columns[2]);
  return inputs;
}

std::vector<Expr> primitives_of(DType d) {
  std::vector<Expr> exprs;
  for (int i = static_cast<int>(Primitive::add); i < static_cast<int>(Primitive::select); ++i) {
    auto p = static_cast<Primitive>(i);
    std::vector<DType> dtypes = argument_dtypes(p);
    if (std::find(dtypes.begin(), dtypes.end(), d) == dtypes.end() || !exact_primitive(p, d)) continue;
    Expr arguments[] = {operand(0, d), operand(1, d), operand(2, d)};
    auto count = static_cast<std::size_t>(argument_count(p));
    exprs.push_back(make(p, std::span(arguments, count), is_comparison(p) ? bool_ : d));
    if (is_shift(p))
      for (int by : {0, 3, 8 * size_of(d) - 1, 8 * size_of(d), -1}) {
        Expr known[] = {operand(0, d), constant(by, d)};
        exprs.push_back(make(p, known, d));
      }
    // Constants take other ways: divisors, and the side of minimum and maximum that cannot be NaN.
    if (count == 2 && !is_shift(p))
      for (int value : {0, 1, 4, 7, -1, -3}) {
        Expr known[] = {operand(0, d), constant(value, d)}, swapped[] = {known[1], known[0]};
        bool divides = p == Primitive::divide || p == Primitive::modulo;
        if (!divides && value != 0) continue;
        if (divides && value == 7 && is_integer(d)) known[1] = constant(row(d).highest, d);  // no power of two
        exprs.push_back(make(p, known, is_comparison(p) ? bool_ : d));
        exprs.push_back(make(p, swapped, is_comparison(p) ? bool_ : d));
      }
  }
  return exprs;
}

class EmitExprOf : public testing::TestWithParam<DTypeRow> {};

TEST_P(EmitExprOf, EveryPrimitive) {
  DType d = GetParam().dtype;
  std::vector<Expr> exprs = primitives_of(d);
  expect_equal_to_reference(exprs, std::vector<Inputs>(exprs.size(), hard_inputs(d, d, d)));
}

TEST_P(EmitExprOf, CastsAndChoice) {
  DType d = GetParam().dtype;
  std::vector<Expr> exprs{scalar::select(operand(2, bool_), operand(0, d), operand(1, d))};
  for (const DTypeRow& to : dtype_table) {
    if (to.dtype != d) exprs.push_back(scalar::cast(operand(0, d), to.dtype));
    if (to.dtype != d && to.bytes == size_of(d) && d != bool_ && to.dtype != bool_)
      exprs.push_back(scalar::bitcast(operand(0, d), to.dtype));
  }
  expect_equal_to_reference(exprs, std::vector<Inputs>(exprs.size(), hard_inputs(d, d, bool_)));
}

/// No call of a library function: it would block the vector loop, and the loader has no libraries.
TEST_P(EmitExprOf, CallsNothing) {
  DType d = GetParam().dtype;
  std::vector<Expr> exprs{};
  for (const DTypeRow& to : dtype_table) exprs.push_back(scalar::cast(operand(0, d), to.dtype));
  Expr x = operand(0, d), y = operand(1, d), z = operand(2, d);
  if (is_floating(d)) {
    using namespace scalar;
    exprs.push_back(fma(floor(x) + ceil(y), round(z), sqrt(abs(x))) / minimum(maximum(x, y), modulo(y, z)));
    for (Expr e : {exp(x), log(x), sin(x), cos(x), tanh(x), erf(x), erfc(x), power(x, y), exp2(x), expm1(x), log2(x),
                   log10(x), erfinv(x), log_gamma(x), digamma(x), atan2(x, y)})
      exprs.push_back(e);
  } else if (d != bool_) {
    exprs.push_back(x / y + scalar::modulo(y, z) * scalar::power(x, z));
  }
  for (Expr e : exprs)
    for (int lanes : {16, 1}) {
      std::string assembly = assembly_text(array_request(e, lanes));
      EXPECT_EQ(assembly.find("call"), std::string::npos) << e.str(true) << " in " << lanes << " lanes\n" << assembly;
    }
}

INSTANTIATE_TEST_SUITE_P(All, EmitExprOf, testing::ValuesIn(dtype_table),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(EmitExpr, RandomExpressions) {
  RandomExprs random(1);
  std::vector<Expr> exprs;
  std::vector<Inputs> inputs;
  for (int i = 0; i < 120; ++i) {
    exprs.push_back(random.expr(2 + i % 40, false));
    Inputs in;
    for (int n = 0; n < random_operand_count; ++n) {
      std::vector<ScalarBits> values;
      for (int k = 0; k < 64; ++k) values.push_back(random.bits(random_operand_dtype(n)));
      in.add_operand(random_operand_dtype(n), values);
    }
    inputs.push_back(std::move(in));
  }
  expect_equal_to_reference(exprs, inputs);
}

/// LLVM turns a costly select into blocks, and a scalar bfloat that lives across them lost its subnormal values.
TEST(EmitExpr, ShortFloatsKeepSubnormalsAcrossBlocks) {
  for (DType d : {f16, bf16}) {
    Expr e = scalar::maximum(operand(1, d), scalar::modulo(operand(0, d), operand(0, d)));
    Inputs inputs;
    inputs.add_operand(d, std::vector<ScalarBits>(16, bits_of({.real = -9.0625}, d)));
    inputs.add_operand(d, std::vector<ScalarBits>(16, 1));
    expect_equal_to_reference(std::span(&e, 1), std::span(&inputs, 1));
  }
}

/// Rare sides in blocks of their own: several by one condition, one inside another, one that waits for another, and
/// parts that they share with each other and with what is outside.
TEST(EmitExpr, RareChoices) {
  using namespace scalar;
  for (DType d : {f64, f32, f16, bf16}) {
    Expr x = operand(0, d), y = operand(1, d), z = operand(2, d), rare = x < y;
    Expr shared = sqrt(abs(x)) + z, a = select_rarely(rare, shared * y, x * 2),
         b = select_rarely(rare, shared - 1, y + z);
    Expr inside = select_rarely(z < x, shared * shared, y), c = select_rarely(rare, inside + x, z);
    Expr later = select_rarely(rare, a * 3, a + b);
    std::vector<Expr> exprs{a, a + b, c * inside, later - c, shared + later, select_rarely(rare, later, inside)};
    std::vector<Inputs> inputs(exprs.size(), hard_inputs(d, d, d));
    // Sixteen lanes of which none, and of which all take the rare side.
    Inputs none, all;
    std::vector<ScalarBits> one(32, bits_of({.real = 1}, d)), two(32, bits_of({.real = 2}, d));
    for (Inputs* in : {&none, &all}) {
      in->add_operand(d, in == &none ? two : one);
      in->add_operand(d, in == &none ? one : two);
      in->add_operand(d, two);
    }
    for (const Inputs& in : {none, all})
      for (Expr e : std::vector<Expr>(exprs.begin(), exprs.begin() + 6)) {
        exprs.push_back(e);
        inputs.push_back(in);
      }
    expect_equal_to_reference(exprs, inputs);
  }
}

/// Choices by one condition share a block.
TEST(EmitExpr, RareChoicesShareABlock) {
  LlvmBuilder b("test");
  Type type = LLVMFloatTypeInContext(b.context());
  b.begin_function("f", type, {type});
  Expr x = operand(0, f32), rare = x < 1, root = scalar::sqrt(x);
  Expr e = scalar::select_rarely(rare, root, x) + scalar::select_rarely(rare, root * 2, x * 3);
  b.result(emit_expr(
      b, e, 1, [&](int) { return b.parameter(0); }, [](int) -> Value { return nullptr; }));
  std::string ir = b.str();
  EXPECT_NE(ir.find("call float @llvm.sqrt"), std::string::npos) << ir;
  EXPECT_EQ(ir.find("call float @llvm.sqrt"), ir.rfind("call float @llvm.sqrt")) << ir;
}

TEST(EmitExpr, SharedSubexpressionsAreEmittedOnce) {
  LlvmBuilder b("test");
  b.begin_function("f", LLVMFloatTypeInContext(b.context()), {LLVMFloatTypeInContext(b.context())});
  Expr x = operand(0, f32), root = scalar::sqrt(x), exprs[] = {root + 1, root * root};
  auto values = emit_exprs(
      b, exprs, 1, [&](int) { return b.parameter(0); }, [](int) -> Value { return nullptr; });
  b.result(b.fadd(values[0], values[1]));
  std::string ir = b.str();
  EXPECT_EQ(ir.find("call float @llvm.sqrt"), ir.rfind("call float @llvm.sqrt")) << ir;
}

TEST(EmitExpr, LanesDoNotChangeTranscendentalBits) {
  std::vector<float> x(4096), vector_out(4096), scalar_out(4096);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = (static_cast<float>(i) - 2048) / 100;
  const void* inputs[] = {x.data()};
  Expr e = scalar::exp(scalar::sin(operand(0, f32))) + scalar::erf(operand(0, f32));
  array_function(e, 16)(inputs, vector_out.data(), 4096);
  array_function(e, 1)(inputs, scalar_out.data(), 4096);
  EXPECT_EQ(std::memcmp(vector_out.data(), scalar_out.data(), 4 * x.size()), 0);
}

}  // namespace
}  // namespace stet::cpu
