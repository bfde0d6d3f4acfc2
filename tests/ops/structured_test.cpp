// Structured rows: every sample x every type the row takes, against stored values; eager, a one-node graph at two sizes
// with one program, and checked code give the same bits.
// Bounds: structured_bounds.h.
#include "stet/core/function.h"
#include "tests/ops/coverage.h"
#include "tests/ops/structured_bounds.h"
#include "tests/sampling.h"

namespace stet::op_test {
namespace {

class Structured : public OpTest {};

void expect_close(const Tensor& got, const Values& expected, const Values& allowed) {
  Values values = values_of(got);
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    bool equal = values[i] == expected[i] || (std::isnan(values[i]) && std::isnan(expected[i]));
    Value nearest = is_floating(got.dtype()) ? rounded_to(got.dtype(), expected[i]) : expected[i];
    if (equal || values[i] == nearest || std::abs(values[i] - expected[i]) <= allowed[i]) continue;
    ADD_FAILURE() << "element " << i << " is " << text(static_cast<double>(values[i])) << ", not "
                  << text(static_cast<double>(expected[i])) << "; off by "
                  << static_cast<double>(std::abs(values[i] - expected[i])) << ", allowed is "
                  << static_cast<double>(allowed[i]);
    return;
  }
}

void check_against_oracle(const OpDef& op, const Sample& sample, DType dtype, const std::vector<Tensor>& inputs,
                          const std::vector<Tensor>& results) {
  const OracleBlock* block = Oracle::instance().find(sample_line(op, sample));
  ASSERT_TRUE(block) << sample_line(op, sample);
  for (std::size_t r = 0; r < results.size(); ++r) {
    std::string line = line_for(*block, dtype, r);
    ASSERT_FALSE(line.empty()) << "no values of result " << r;
    EXPECT_EQ(sizes_of(results[r]), block->shape(r));
    Values expected = expected_values(*block, line, sample, dtype, results[r].dtype());
    expect_close(results[r], expected, allowed_errors(op, sample, inputs, expected, r, results[r].dtype()));
  }
}

/// The samples with values for the type that a run visits: the result of at least one of them has elements, if there is
/// such a sample.
std::vector<Sample> visited_samples(const OpDef& op, DType dtype) {
  std::vector<Sample> out, samples;
  std::vector<bool> has_results;
  for (const Sample& sample : samples_of(op)) {
    const OracleBlock* block = Oracle::instance().find(sample_line(op, sample));
    EXPECT_TRUE(block) << sample_line(op, sample);
    std::string line = block ? line_for(*block, dtype) : std::string();
    if (line.empty()) continue;
    samples.push_back(sample);
    has_results.push_back(!block->lines.at(line).empty());
  }
  for (std::size_t i :
       chosen(text(op.name, " ", dtype), samples.size(), 2, [&](std::size_t k) { return has_results[k]; }))
    out.push_back(samples[i]);
  return out;
}

void check_sample(const OpDef& op, const Sample& sample, DType dtype) {
  SCOPED_TRACE(text(sample_line(op, sample), " of ", dtype));
  Sample larger = grown(sample);
  std::vector<Tensor> inputs = drawn_inputs(sample, dtype), more = drawn_inputs(larger, dtype);
  std::vector<Tensor> result = eager_all(op, inputs, sample.attributes);
  std::vector<Tensor> more_result = eager_all(op, more, larger.attributes);
  check_against_oracle(op, sample, dtype, inputs, result);
  check_against_oracle(op, larger, dtype, more, more_result);
  if (accepts(op, sample, dtype)) tested(op, dtype, Aspect::eager, result);

  OneNode graph(op, inputs, sample.attributes);
  EXPECT_TRUE(same_bits(graph.run_all(inputs, sample.attributes), result)) << "as a graph";
  std::vector<Tensor> other = graph.run_all(more, larger.attributes);
  ASSERT_FALSE(other.empty()) << "compiled for one size only\n" << graph.str();
  EXPECT_TRUE(same_bits(other, more_result)) << "as a graph at another size";
  if (accepts(op, sample, dtype)) tested(op, dtype, Aspect::traced, result);

  if (!visits(text("checked ", sample_line(op, sample)), static_cast<std::uint64_t>(dtype), 4)) return;
  CheckedKernels checked;
  OneNode checked_graph(op, inputs, sample.attributes);
  EXPECT_TRUE(same_bits(checked_graph.run_all(inputs, sample.attributes), result)) << "in checked code";
  EXPECT_TRUE(same_bits(checked_graph.run_all(more, larger.attributes), more_result)) << "in checked code, larger";
}

TEST_F(Structured, EverySampleAndTypeEqualsTheReference) {
  for (const OpDef* op : all_rows()) {
    if (op->kind == Kind::map) continue;
    for (DType dtype : all_dtypes)
      for (const Sample& sample : visited_samples(*op, dtype)) {
        bool has_data = std::ranges::any_of(sample.inputs, [](const SampleInput& input) { return input.below < 0; });
        if (has_data || dtype == DType::i64) check_sample(*op, sample, dtype);  // else all operands are indices
      }
  }
}

/// Rows refuse the types that the oracle has no values for, and no others; the message names the op and the types.
TEST_F(Structured, OtherTypesAreRefused) {
  for (const OpDef* op : all_rows()) {
    if (op->kind == Kind::map || op->kind == Kind::random || op == &one_hot_row) continue;
    Sample sample = samples_of(*op).front();
    const OracleBlock* block = Oracle::instance().find(sample_line(*op, sample));
    ASSERT_TRUE(block);
    for (DType dtype : all_dtypes) {
      if (!line_for(*block, dtype).empty()) continue;
      SCOPED_TRACE(text(op->name, " of ", dtype));
      std::string message =
          message_of([&] { return eager_all(*op, drawn_inputs(sample, dtype), sample.attributes)[0]; });
      for (const std::string& part : {text(op->name, ":"), text(dtype, Shape(sample.inputs[0].sizes))})
        EXPECT_NE(message.find(part), std::string::npos) << "no \"" << part << "\" in:\n" << message;
      tested(*op, dtype, Aspect::errors);
    }
  }
}

/// Every integer type serves as an index type, with the same result.
TEST_F(Structured, IndexTypes) {
  for (const OpDef* op : all_rows()) {
    if (op->kind == Kind::map || op->kind == Kind::random) continue;
    std::vector<Sample> samples = samples_of(*op);
    std::erase_if(samples, [](const Sample& sample) {
      return std::ranges::none_of(sample.inputs, [](const SampleInput& input) { return input.below >= 0; });
    });
    for (std::size_t i : chosen(text("index types ", op->name), samples.size(), 2)) {
      const Sample& sample = samples[i];
      std::vector<Tensor> inputs = drawn_inputs(sample, DType::f32);
      std::vector<Tensor> result = eager_all(*op, inputs, sample.attributes);
      for (DType dtype : {DType::u8, DType::i8, DType::i16, DType::i32}) {
        if (std::ranges::any_of(sample.inputs, [&](const SampleInput& input) {
              return input.below - 1 > row(dtype).highest;  // not all of them fit
            }))
          continue;
        std::vector<Tensor> narrow = inputs;
        for (std::size_t k = 0; k < narrow.size(); ++k)
          if (sample.inputs[k].below >= 0) narrow[k] = cast(inputs[k], dtype);
        SCOPED_TRACE(text(sample_line(*op, sample), " with indices of ", dtype));
        EXPECT_TRUE(same_bits(eager_all(*op, narrow, sample.attributes), result));
        CheckedKernels checked;
        EXPECT_TRUE(same_bits(eager_all(*op, narrow, sample.attributes), result));
      }
    }
  }
}

TEST_F(Structured, OneHotOfEveryType) {
  Tensor indices = make_vector(DType::i64, {2, 0, -1, 5, 3}), fewer = make_vector(DType::i64, {1, 3});
  for (DType dtype : all_dtypes) {
    SCOPED_TRACE(dtype);
    Tensor result = one_hot(indices, 4, {.dtype = dtype});
    EXPECT_EQ(result.dtype(), dtype);
    EXPECT_EQ(values_of(result), (Values{0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
    tested(one_hot_row, dtype, Aspect::eager);
    Function traced = function("one_hot(x)", [&](Tensor x) { return one_hot(x, 4, {.dtype = dtype}); });
    EXPECT_TRUE(same_bits(traced(indices), result));
    EXPECT_EQ(values_of(traced(fewer)), (Values{0, 1, 0, 0, 0, 0, 0, 1}));
    EXPECT_EQ(traced.trace_count(), 1);
    tested(one_hot_row, dtype, Aspect::traced);
    std::string message = message_of([&] { return one_hot(indices, -2, {.dtype = dtype}); });
    EXPECT_NE(message.find("one_hot: the depth -2 is negative"), std::string::npos) << message;
    tested(one_hot_row, dtype, Aspect::errors);
  }
}

/// NaN wins in max and min, and argmax and argmin give its first position; of equals the first.
TEST_F(Structured, ExtremesOfNaNAndEquals) {
  for (DType dtype : floating_dtypes) {
    for (std::int64_t size : {3, 16, 17, 100, 5000}) {
      Values values(static_cast<std::size_t>(size), -3);
      values[static_cast<std::size_t>(size / 2)] = NAN;
      values[static_cast<std::size_t>(size - 1)] = NAN;
      Tensor x = make_vector(dtype, values);
      EXPECT_TRUE(std::isnan(values_of(max(x))[0])) << dtype << size;
      EXPECT_TRUE(std::isnan(values_of(min(x))[0])) << dtype << size;
      EXPECT_EQ(values_of(argmax(x, 0))[0], size / 2) << dtype << " " << size;
      EXPECT_EQ(values_of(argmin(x, 0))[0], size / 2) << dtype << " " << size;
      Tensor column = reshape(x, {-1, 1});
      EXPECT_EQ(values_of(argmax(column, 0))[0], size / 2) << dtype << " " << size;
      Tensor same = full({size}, 7, dtype);
      EXPECT_EQ(values_of(argmax(same, 0))[0], 0);
      EXPECT_EQ(values_of(argmin(same, 0))[0], 0);
      Tensor lowest = full({size}, -INFINITY, dtype);
      EXPECT_EQ(values_of(max(lowest))[0], -INFINITY);
      EXPECT_EQ(values_of(argmax(lowest, 0))[0], 0);
    }
  }
  for (DType dtype : {DType::u8, DType::i8, DType::i16, DType::i32, DType::i64}) {
    auto low = static_cast<Value>(row(dtype).lowest), high = static_cast<Value>(row(dtype).highest);
    Tensor x = make_vector(dtype, Values(37, low)), y = make_vector(dtype, Values(37, high));
    EXPECT_EQ(values_of(max(x))[0], low) << dtype;
    EXPECT_EQ(values_of(min(y))[0], high) << dtype;
    EXPECT_EQ(values_of(argmax(x, 0))[0], 0) << dtype;
    EXPECT_EQ(values_of(argmin(y, 0))[0], 0) << dtype;
  }
}

/// Sums in integers wrap; sums of narrow integers do not, because they are i32.
TEST_F(Structured, IntegerSumsWrap) {
  EXPECT_EQ(sum(make_vector(DType::i64, {9223372036854775807.0L, 1})).item<std::int64_t>(), INT64_MIN);
  EXPECT_EQ(sum(make_vector(DType::i32, {2147483647, 1})).item<std::int32_t>(), INT32_MIN);
  EXPECT_EQ(sum(full({1000}, 127, DType::i8)).item<std::int32_t>(), 127000);
  EXPECT_EQ(sum(full({1000}, 1, DType::bool_)).item<std::int32_t>(), 1000);
  Tensor a = make_tensor(DType::i8, Values(200, 127), {1, 200}), b = make_tensor(DType::i8, Values(200, 127), {200, 1});
  EXPECT_EQ(matmul(a, b).dtype(), DType::i32);
  EXPECT_EQ(matmul(a, b).item<std::int32_t>(), 200 * 127 * 127);
}

TEST_F(Structured, EmptyReductions) {
  for (DType dtype : all_dtypes) {
    Tensor x = zeros({0, 3}, dtype);
    EXPECT_EQ(values_of(sum(x, 0)), (Values{0, 0, 0}));
    EXPECT_EQ(values_of(prod(x, 0)), (Values{1, 1, 1}));
    for (Value value : values_of(mean(x, 0))) EXPECT_TRUE(std::isnan(value));
    EXPECT_EQ(sizes_of(sum(x, 1)), (Sizes{0}));
    EXPECT_EQ(sizes_of(max(x, 1)), (Sizes{0}));
    EXPECT_EQ(sizes_of(argmax(x, 1)), (Sizes{0}));
    EXPECT_THROW(max(x, 0), UserError);
  }
  EXPECT_EQ(sizes_of(nonzero(zeros({0, 4}))), (Sizes{0, 2}));
  EXPECT_EQ(sizes_of(nonzero(zeros({}))), (Sizes{0, 0}));
  EXPECT_EQ(sizes_of(nonzero(ones({}))), (Sizes{1, 0}));
}

/// Sizes around the width of vectors and the limits of unrolling, against plain loops. Integers, so exactly.
TEST_F(Structured, ReductionsOfManySizes) {
  const std::int64_t edges[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 257};
  for (DType dtype : {DType::i8, DType::i32, DType::i64, DType::f32})
    for (std::int64_t height : edges)
      for (std::int64_t width : edges) {
        if (height * width > 9000) continue;
        Values values = drawn_values(0, DType::i8, {{height, width}});
        Tensor x = make_tensor(dtype, values, {height, width});
        Values rows(static_cast<std::size_t>(height), 0), columns(static_cast<std::size_t>(width), 0);
        Values row_best(rows.size(), 0), column_best(columns.size(), 0);  // positions of the first largest
        Value all = 0;
        auto at = [&](std::int64_t i, std::int64_t j) { return values[static_cast<std::size_t>(i * width + j)]; };
        for (std::int64_t i = 0; i < height; ++i)
          for (std::int64_t j = 0; j < width; ++j) {
            all += at(i, j);
            rows[static_cast<std::size_t>(i)] += at(i, j);
            columns[static_cast<std::size_t>(j)] += at(i, j);
            Value &row_at = row_best[static_cast<std::size_t>(i)],
                  &column_at = column_best[static_cast<std::size_t>(j)];
            if (at(i, j) > at(i, static_cast<std::int64_t>(row_at))) row_at = j;
            if (at(i, j) > at(static_cast<std::int64_t>(column_at), j)) column_at = i;
          }
        SCOPED_TRACE(text(dtype, x.shape()));
        ASSERT_EQ(values_of(sum(x))[0], all);
        ASSERT_EQ(values_of(sum(x, 1)), rows);
        ASSERT_EQ(values_of(sum(x, 0)), columns);
        if (height > 0) {
          ASSERT_EQ(values_of(argmax(x, 0)), column_best);
        }
        if (width > 0) {
          ASSERT_EQ(values_of(argmax(x, 1)), row_best);
          Tensor found = gather(reshape(x, {-1}), arange(height) * width + argmax(x, 1));
          ASSERT_TRUE(same_bits(found, max(x, 1)));
        }
      }
}

/// The same for matrix products: f32 holds these sums exactly.
TEST_F(Structured, ProductsOfManySizes) {
  const std::int64_t edges[] = {0, 1, 2, 5, 8, 15, 16, 17, 33, 48, 49, 70};
  for (std::int64_t m : edges)
    for (std::int64_t n : edges)
      for (std::int64_t k : {std::int64_t{0}, std::int64_t{1}, std::int64_t{3}, std::int64_t{16}, std::int64_t{65}}) {
        Values a = drawn_values(0, DType::i8, {{m, k}}), b = drawn_values(1, DType::i8, {{k, n}});
        Values expected(static_cast<std::size_t>(m * n), 0);
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < n; ++j)
            for (std::int64_t l = 0; l < k; ++l)
              expected[static_cast<std::size_t>(i * n + j)] +=
                  a[static_cast<std::size_t>(i * k + l)] * b[static_cast<std::size_t>(l * n + j)];
        for (DType dtype : {DType::f32, DType::f64, DType::i32}) {
          SCOPED_TRACE(text(dtype, " ", m, "x", k, "x", n));
          Tensor left = make_tensor(dtype, a, {m, k}), right = make_tensor(dtype, b, {k, n});
          ASSERT_EQ(values_of(matmul(left, right)), expected);
          Tensor left_columns = transpose(left).contiguous(), right_columns = transpose(right).contiguous();
          ASSERT_EQ(values_of(matmul(left_columns, right, {.transpose_a = true})), expected);
          ASSERT_EQ(values_of(matmul(left, right_columns, {.transpose_b = true})), expected);
          ASSERT_EQ(values_of(matmul(transpose(left_columns), transpose(right_columns))), expected);
        }
      }
}

}  // namespace
}  // namespace stet::op_test
