// Structured rows of operands with NaN, infinities, signed zeros, subnormal and the largest numbers, in every floating
// type: eager, as a graph, and on the reference device they give NumPy's answer. tests/oracle/special.py says what is
// drawn, and where NumPy has no answer that others must have ("?": it depends on the order of a sum).
#include "tests/ops/structured_bounds.h"
#include "tests/reference/reference_device.h"
#include "tests/sampling.h"

namespace stet::op_test {
namespace {

class Special : public OpTest {};

constexpr const char* kinds[] = {"nan", "infinite", "overflow"};

/// Why a row has no values for such operands; null if it has.
const char* exemption(const OpDef& op) {
  if (op.kind == Kind::random) return "what parameters may be is tested in the callables' terms (random_test.cpp)";
  if (&op == &one_hot_row) return "its operands are integers";
  if (op.kind == Kind::linalg && &op != &band_part_row)
    return "NumPy raises LinAlgError, or what LAPACK leaves behind: which elements are NaN is not defined";
  return nullptr;
}

/// A sample with a kind of special elements.
struct Case {
  Sample sample;
  std::size_t kind;
};
std::string case_line(const OpDef& op, const Case& one) {
  return text("special ", kinds[one.kind], sample_line(op, one.sample).substr(std::string("sample").size()));
}

/// Small samples, up to six, and up to three larger ones, with the kinds in turn.
std::vector<Case> cases_of(const OpDef& op) {
  std::vector<Sample> small, large;
  for (const Sample& sample : samples_of(op)) {
    std::int64_t elements = 0;
    for (const SampleInput& input : sample.inputs) elements += count_of(input.sizes);
    if (!has_elements(sample) || elements < 2 || elements > 1500) continue;
    (elements <= 150 ? small : large).push_back(sample);
  }
  std::vector<Case> out;
  for (std::size_t i = 0; !small.empty() && i < std::clamp<std::size_t>(small.size(), 3, 6); ++i)
    out.push_back({small[i % small.size()], i % std::size(kinds)});
  for (std::size_t i = 0; i < std::min<std::size_t>(large.size(), 3); ++i) out.push_back({large[i], i});
  return out;
}

Values special_elements(std::size_t kind, DType dtype) {
  FloatFormat format = format_of(dtype);
  Value largest = format.largest, normal = std::ldexp(Value{1}, format.lowest_exponent);
  Value smallest = std::ldexp(normal, 1 - format.digits);
  if (kind == 0) return {NAN, NAN, INFINITY, -INFINITY, 0, -0.0L};
  if (kind == 1) return {INFINITY, INFINITY, 0, -0.0L, smallest, -smallest};
  return {largest, largest / 2, 0, -0.0L, smallest, -smallest, normal};
}

/// As tests/oracle/special.py has it.
Values special_values(const OpDef& op, const Case& one, std::size_t operand, DType dtype) {
  const SampleInput& input = one.sample.inputs[operand];
  Values out = drawn_values(static_cast<int>(operand), dtype, input);
  bool first_only = op.kind == Kind::window && operand > 0;
  if (input.below >= 0 || first_only) return out;
  Values choices = special_elements(one.kind, dtype);
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint64_t bits = drawn(i, operand + 300 + 10 * one.kind);
    if (bits % 4 == 0) out[i] = choices[(bits >> 8) % choices.size()];
  }
  if (input.draw == Draw::ordered)
    for (auto line = out.begin(); line != out.end(); line += input.sizes.back())
      std::sort(line, line + input.sizes.back(),
                [](Value a, Value b) { return a < b || (std::isnan(b) && !std::isnan(a)); });
  return out;
}

std::vector<Tensor> special_inputs(const OpDef& op, const Case& one, DType dtype) {
  std::vector<Tensor> out;
  for (std::size_t k = 0; k < one.sample.inputs.size(); ++k)
    out.push_back(make_tensor(one.sample.inputs[k].below >= 0 ? DType::i64 : dtype, special_values(op, one, k, dtype),
                              one.sample.inputs[k].sizes));
  return out;
}

/// What each result must be. Open: any element is right.
struct Expected {
  Values values, allowed;
  std::vector<bool> open;
  bool signed_zeros = false;  // elements are moved: zeros keep their signs
};

Expected expected_of(const OpDef& op, const Case& one, const OracleBlock& block, DType dtype,
                     const std::vector<Tensor>& inputs, std::size_t number, DType result) {
  std::string line = line_for(block, dtype, number);
  Expected out;
  out.values = block.values(line);
  std::istringstream words(block.lines.at(line));
  for (std::string word; words >> word;) out.open.push_back(word == "?");
  if (line.ends_with("source")) {
    Values all;
    for (std::size_t k = 0; k < one.sample.inputs.size(); ++k) {
      if (one.sample.inputs[k].below >= 0) continue;
      Values values = special_values(op, one, k, dtype);
      all.insert(all.end(), values.begin(), values.end());
    }
    for (Value& value : out.values) value = all[static_cast<std::size_t>(value)];
  }
  out.signed_zeros = line.ends_with("source") || op.kind == Kind::sort || op.kind == Kind::layout;
  out.allowed = allowed_errors(op, one.sample, inputs, out.values, number, result);
  if (is_floating(result) && one.sample.rounding != Rounding::exact) {
    // Terms below the smallest number are lost one by one. Where the magnitudes' sum is beyond f64, a finite result has
    // positive and negative terms that both add up to no more than the largest number.
    FloatFormat format = format_of(result);
    Value most = 32 * unit_roundoff(compute_type(result)) * Value{format.largest};
    for (Value& allowed : out.allowed)
      allowed = (std::isfinite(allowed) ? allowed : most) +
                64 * std::ldexp(Value{1}, format.lowest_exponent - format.digits + 1);
  }
  return out;
}

void expect_special(const Tensor& got, const Expected& expected) {
  Values values = values_of(got);
  ASSERT_EQ(values.size(), expected.values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (expected.open[i]) continue;
    Value truth = expected.values[i], nearest = is_floating(got.dtype()) ? rounded_to(got.dtype(), truth) : truth;
    bool right = values[i] == nearest && (!expected.signed_zeros || std::signbit(values[i]) == std::signbit(nearest));
    if (std::isnan(truth)) right = std::isnan(values[i]);
    if (std::isfinite(nearest) && std::isfinite(expected.allowed[i]) && !(expected.signed_zeros && truth == 0))
      right = right || std::abs(values[i] - truth) <= expected.allowed[i];
    if (right) continue;
    ADD_FAILURE() << "element " << i << " is " << text(static_cast<double>(values[i])) << ", not "
                  << text(static_cast<double>(truth));
    return;
  }
}

void check_special(const OpDef& op, const Case& one, DType dtype) {
  SCOPED_TRACE(text(case_line(op, one), " of ", dtype));
  const OracleBlock* block = Oracle::instance().find(case_line(op, one));
  ASSERT_TRUE(block) << "no values: make oracle";
  if (line_for(*block, dtype).empty()) return;  // a type that the row does not take
  const Attributes& attributes = one.sample.attributes;
  std::vector<Tensor> inputs = special_inputs(op, one, dtype), there;
  std::vector<Tensor> results = eager_all(op, inputs, attributes);
  for (const Tensor& input : inputs) there.push_back(on_device(input, reference_device()));
  std::vector<Tensor> others = eager_all(op, there, attributes);
  for (std::size_t r = 0; r < results.size(); ++r) {
    EXPECT_EQ(sizes_of(results[r]), block->shape(r));
    Expected expected = expected_of(op, one, *block, dtype, inputs, r, results[r].dtype());
    SCOPED_TRACE(text("result ", r));
    expect_special(results[r], expected);
    SCOPED_TRACE("on the reference device");
    expect_special(on_host(others[r]), expected);
  }
  EXPECT_TRUE(same_bits(OneNode(op, inputs, attributes).run_all(inputs, attributes), results)) << "as a graph";
}

TEST_F(Special, EveryStructuredRowAsNumPy) {
  int rows = 0, open = 0, elements = 0;
  for (const OpDef* op : all_rows()) {
    if (op->kind == Kind::map || exemption(*op)) continue;
    std::vector<Case> cases = cases_of(*op);
    ASSERT_GE(cases.size(), std::size(kinds)) << op->name << " has no small sample";
    ++rows;
    for (DType dtype : floating_dtypes) {
      for (std::size_t i : chosen(text("special ", op->name, " ", dtype), cases.size(), 3))
        check_special(*op, cases[i], dtype);
      for (const Case& one : cases) {
        const OracleBlock* block = Oracle::instance().find(case_line(*op, one));
        if (!block || !block->has(text(dtype))) continue;
        const std::string& line = block->lines.at(text(dtype));
        open += static_cast<int>(std::count(line.begin(), line.end(), '?'));
        elements += static_cast<int>(std::count(line.begin(), line.end(), ' ') + 1);
      }
    }
  }
  // That values are left open is the exception.
  EXPECT_LT(open * 10, elements) << open << " of " << elements << " elements";
  EXPECT_GT(rows, 40);
}

/// What the samples are, for make_values.py. Not a test: run by `make oracle` after the other rows were written.
TEST(SpecialFile, DISABLED_WriteRows) {
  std::ofstream file(std::getenv("STET_ROWS_FILE"), std::ios::app);
  for (const OpDef* op : all_rows()) {
    if (op->kind == Kind::map || exemption(*op)) continue;
    for (const Case& one : cases_of(*op)) file << case_line(*op, one) << "\n";
  }
}

}  // namespace
}  // namespace stet::op_test
