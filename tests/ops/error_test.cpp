// Wrong calls: every row's error examples, and what every map refuses. A message names the op, its operands with types
// and shapes, and the caller's line.
#include "tests/ops/coverage.h"
#include "tests/ops/oracle.h"

namespace stet::op_test {
namespace {

class OpError : public OpTest {};

/// Every part stands in the message.
void expect_parts(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << "no \"" << part << "\" in:\n" << message;
}

std::string here(int line) { return text("error_test.cpp:", line); }

TEST_F(OpError, ExamplesOfEveryRow) {
  for (const OpDef* op : all_rows()) {
    ErrorList list;
    if (op->errors) op->errors(list);
    if (op->kind != Kind::map && op->kind != Kind::random && op->kind != Kind::late) {
      EXPECT_FALSE(list.samples.empty()) << op->name << " has no error examples";
    }
    for (const ErrorSample& sample : list.samples) {
      std::vector<Tensor> inputs;
      std::vector<std::string> parts = {sample.message, text(op->name, ":")};
      for (const ErrorSample::Input& input : sample.inputs) {
        inputs.push_back(zeros(Shape(input.sizes), input.dtype));
        parts.push_back(text(input.dtype, Shape(input.sizes)));
      }
      SCOPED_TRACE(text(op->name, ", ", sample.attributes.str()));
      std::vector<In> operands;
      int line = __LINE__ + 1;
      for (const Tensor& input : inputs) operands.emplace_back(input, Where::here());
      parts.push_back(here(line));
      std::vector<Tensor> results(op->result_count());
      std::string message =
          message_of([&] { return (call_into(*op, operands, sample.attributes.view(), results), results[0]); });
      expect_parts(message, parts);
      // A second time, and beside good calls, the same.
      EXPECT_EQ(message_of([&] { return (call_into(*op, operands, sample.attributes.view(), results), results[0]); }),
                message);
    }
  }
}

std::vector<Tensor> operands_of(const OpDef& row, DType dtype, const std::vector<Sizes>& sizes) {
  std::vector<Tensor> out;
  for (int k = 0; k < row.arity; ++k) {
    bool condition = row.dtypes.result == DTypeRule::selected && k == 0;
    out.push_back(zeros(Shape(sizes[static_cast<std::size_t>(k)]), condition ? DType::bool_ : dtype));
  }
  return out;
}

DType good_type(const OpDef& row) { return row.dtypes.result == DTypeRule::logical ? DType::i32 : DType::f32; }

TEST_F(OpError, SizesThatDoNotBroadcast) {
  for (const OpDef& row : elementwise_rows()) {
    if (row.arity < 2) continue;
    DType dtype = good_type(row);
    std::vector<Tensor> inputs = operands_of(row, dtype, {{2, 3}, {2, 4}, {2, 3}});
    SCOPED_TRACE(row.name);
    int line = __LINE__ + 1;
    std::string message = message_of([&] { return eager(row, inputs); });
    expect_parts(message, {text(row.name, ": "), "sizes 3 and 4 of axis -1 do not broadcast",
                           text(inputs[0].dtype(), "[2,3]"), text(dtype, "[2,4]"), here(line)});
    message_of([&] { return eager(row, operands_of(row, dtype, {{0}, {2}, {0}})); });
    message_of([&] { return eager(row, operands_of(row, dtype, {{5, 1, 2}, {4, 3}, {1}})); });
  }
}

/// In every type that maps take.
TEST_F(OpError, SizesThatDoNotBroadcastInEveryType) {
  for (const OpDef& row : elementwise_rows())
    for (DType dtype : all_dtypes) {
      if (row.arity < 2 || !takes(row, dtype)) continue;
      SCOPED_TRACE(text(row.name, " of ", dtype));
      std::vector<Tensor> inputs = operands_of(row, dtype, {{2, 3}, {2, 4}, {2, 3}});
      expect_parts(message_of([&] { return eager(row, inputs); }),
                   {text(row.name, ": "), "sizes 3 and 4 of axis -1 do not broadcast", text(inputs[0].dtype(), "[2,3]"),
                    text(dtype, "[2,4]"), "error_test.cpp:"});
      tested(row, dtype, Aspect::errors);
    }
}

/// The type in which an error example has its data: a floating one, as they are written.
std::optional<DType> data_type(const ErrorSample& sample) {
  for (const ErrorSample::Input& input : sample.inputs)
    if (is_floating(input.dtype)) return input.dtype;
  return sample.inputs.empty() ? std::nullopt : std::optional(sample.inputs[0].dtype);
}

/// Every row's error examples, in every type that the row takes: those that are not about types are refused with the
/// same words.
TEST_F(OpError, ExamplesInEveryType) {
  for (const OpDef* op : all_rows()) {
    ErrorList list;
    if (op->errors) op->errors(list);
    for (DType dtype : all_dtypes) {
      if (op->kind == Kind::map || op == &one_hot_row || !takes(*op, dtype)) continue;
      for (const ErrorSample& sample : list.samples) {
        std::optional<DType> written = data_type(sample);
        if (!written || sample.message.find(text(*written)) != std::string::npos) continue;  // it is about the type
        SCOPED_TRACE(text(op->name, " of ", dtype, ", ", sample.attributes.str()));
        std::vector<Tensor> inputs;
        std::vector<std::string> parts = {sample.message, text(op->name, ":"), "error_test.cpp:"};
        for (const ErrorSample::Input& input : sample.inputs) {
          DType type = input.dtype == *written ? dtype : input.dtype;
          inputs.push_back(zeros(Shape(input.sizes), type));
          parts.push_back(text(type, Shape(input.sizes)));
        }
        expect_parts(message_of([&] { return eager_all(*op, inputs, sample.attributes)[0]; }), parts);
        tested(*op, dtype, Aspect::errors);
      }
    }
  }
}

TEST_F(OpError, UndefinedOperands) {
  for (const OpDef* op : all_rows()) {
    std::size_t count = op->kind == Kind::map ? op->arity : samples_of(*op).front().inputs.size();
    Attributes attributes = op->kind == Kind::map ? Attributes() : samples_of(*op).front().attributes;
    for (std::size_t undefined = 0; undefined < count; ++undefined) {
      std::vector<Tensor> inputs(count, ones({2, 2}));
      inputs[undefined] = Tensor();
      SCOPED_TRACE(op->name);
      expect_parts(message_of([&] { return eager_all(*op, inputs, attributes)[0]; }),
                   {text(op->name, ": "), "an operand is an undefined tensor", "undefined", "error_test.cpp:"});
    }
  }
}

TEST_F(OpError, TypesThatMapsRefuse) {
  for (const OpDef& row : elementwise_rows()) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(takes(row, DType::bool_), row.dtypes.accepts_bool);
    if (!row.dtypes.accepts_bool) {
      expect_parts(message_of([&] {
                     return eager(row, operands_of(row, DType::bool_, {{3}, {3}, {3}}));
                   }),
                   {text(row.name, ": ", row.name, " does not take bool"), "bool[3]", "cast(x, i32) first"});
      tested(row, DType::bool_, Aspect::errors);
    }
    if (row.dtypes.result == DTypeRule::logical)
      for (DType dtype : floating_dtypes) {
        expect_parts(message_of([&] {
                       return eager(row, operands_of(row, dtype, {{3}, {3}, {3}}));
                     }),
                     {text(row.name, ": ", row.name, " does not take ", dtype), text(dtype, "[3]"), "compare first"});
        tested(row, dtype, Aspect::errors);
      }
  }
}

TEST_F(OpError, NumbersOutOfRange) {
  for (const OpDef& row : elementwise_rows()) {
    if (row.arity != 2) continue;
    SCOPED_TRACE(row.name);
    auto with_number = [&](const Tensor& x, auto number) {
      int line = __LINE__ + 1;
      In operands[] = {In(x), In(number)};
      std::string message = message_of([&] { return call(row, operands); });
      expect_parts(message, {text(row.name, ": the number "), text(" is out of range for ", x.dtype()),
                             text(x.dtype(), "[2]"), here(line)});
    };
    with_number(zeros({2}, DType::u8), 256);
    with_number(zeros({2}, DType::u8), -1);
    with_number(zeros({2}, DType::i8), 128);
    with_number(zeros({2}, DType::i16), 40000);
    with_number(zeros({2}, DType::i32), std::int64_t{1} << 31);
    if (row.dtypes.result == DTypeRule::logical) continue;
    with_number(zeros({2}, DType::f16), 1e6);
    with_number(zeros({2}, DType::f32), 1e39);
    // Infinity and NaN are not out of range.
    EXPECT_NO_THROW(call(row, {In(zeros({2}, DType::f16)), In(INFINITY)}));
    EXPECT_NO_THROW(call(row, {In(zeros({2}, DType::f32)), In(NAN)}));
  }
}

/// The user's own line, through operators, callables and composites.
TEST_F(OpError, NamesTheCallersLine) {
  Tensor a = zeros({2, 3}), b = zeros({4, 5}), flags = zeros({2, 3}, DType::bool_);
  Tensor labels = zeros({2}, DType::i64);
#define STET_EXPECT_LINE(call, ...)                         \
  {                                                         \
    std::string message = message_of([&] { return call; }); \
    expect_parts(message, {here(__LINE__), __VA_ARGS__});   \
  }
  STET_EXPECT_LINE(a + b, "add: ", "f32[2,3]", "f32[4,5]");
  STET_EXPECT_LINE(a * 2 - b, "subtract: ", "f32[2,3]", "f32[4,5]");
  STET_EXPECT_LINE(-flags, "negative: ", "bool[2,3]");
  STET_EXPECT_LINE(a & a, "bitwise_and: ", "f32[2,3]");
  STET_EXPECT_LINE(relu(flags), "relu: ", "bool[2,3]");
  STET_EXPECT_LINE(where(a, a, b), "where: ", "f32[4,5]");
  STET_EXPECT_LINE(sum(a, 2), "sum: axis 2 is out of range for rank 2; allowed are -2 to 1", "f32[2,3]");
  STET_EXPECT_LINE(sum(a, {0, 0}), "sum: axis 0 is named twice in [0,0]", "f32[2,3]");
  STET_EXPECT_LINE(max(zeros({0})), "max: an empty axis has no largest or smallest element", "f32[0]");
  STET_EXPECT_LINE(argmax(a, -3), "argmax: axis -3 is out of range", "f32[2,3]");
  STET_EXPECT_LINE(reshape(a, {4, 2}), "reshape: ", "f32[2,3]");
  STET_EXPECT_LINE(transpose(a, {0}), "transpose: an order of 1 axes for rank 2", "f32[2,3]");
  STET_EXPECT_LINE(broadcast_to(a, {2, 6}), "broadcast_to: ", "f32[2,3]");
  STET_EXPECT_LINE(slice(a, {0, 0}, {2, 4}), "slice: ", "reaches outside", "f32[2,3]");
  STET_EXPECT_LINE(reverse(a, 2), "reverse: axis 2", "f32[2,3]");
  STET_EXPECT_LINE(concat({a, b}), "concat: ", "f32[2,3]", "f32[4,5]");
  STET_EXPECT_LINE(concat({}), "concat: there are no tensors");
  STET_EXPECT_LINE(stack({a, b}), "stack: ");
  STET_EXPECT_LINE(stack({a, a}, 4), "stack: ", "axis 4");
  STET_EXPECT_LINE(expand_dims(a, 4), "expand_dims: ", "axis 4 is out of range", "f32[2,3]");
  STET_EXPECT_LINE(squeeze(a, 0), "squeeze: ", "axis 0 has 2 elements, not one", "f32[2,3]");
  STET_EXPECT_LINE(gather(a, a), "gather: 'indices' are f32, not integers", "f32[2,3]");
  STET_EXPECT_LINE(scatter_add(a, labels, a, 1), "scatter_add: ", "f32[2,3]", "i64[2]");
  STET_EXPECT_LINE(one_hot(labels, -2), "one_hot: the depth -2 is negative", "i64[2]");
  STET_EXPECT_LINE(matmul(a, b), "matmul: inner sizes", "f32[2,3]", "f32[4,5]");
  STET_EXPECT_LINE(matmul(a, zeros({4})), "matmul: ", "inner sizes");
  STET_EXPECT_LINE(conv2d(a, b), "conv2d: 'x' has rank 2, not 4", "f32[2,3]", "f32[4,5]");
  STET_EXPECT_LINE(softmax(a, 5), "softmax: ", "axis 5 is out of range");
  STET_EXPECT_LINE(log_softmax(flags), "log_softmax: ", "does not take bool");
  STET_EXPECT_LINE(layer_norm(a, zeros({4}), zeros({3})), "layer_norm: ", "do not broadcast");
  STET_EXPECT_LINE(sparse_cross_entropy(a, b), "sparse_cross_entropy: logits must have one axis more than labels");
  STET_EXPECT_LINE(sparse_cross_entropy(zeros({2}), a), "sparse_cross_entropy: labels must be integers");
  STET_EXPECT_LINE(sparse_cross_entropy(labels + 3, a), "sparse_cross_entropy: ", "3");
  STET_EXPECT_LINE(random::uniform({2}, {.minval = 2, .maxval = 1}), "random::uniform: ", "swap them");
  STET_EXPECT_LINE(random::uniform({2}, {.dtype = DType::i32}), "random::uniform: ", "i32");
  STET_EXPECT_LINE(random::normal({2}, {.stddev = -1}), "random::normal: ");
  STET_EXPECT_LINE(random::normal({2}, {.stddev = NAN}), "random::normal: ");
  STET_EXPECT_LINE(random::randint({2}, 3, 3), "random::randint: low 3 is not below high 3");
  STET_EXPECT_LINE(random::randint({2}, 0, 300, {.dtype = DType::u8}), "random::randint: ", "u8");
  STET_EXPECT_LINE(random::randint({2}, 0, 3, {.dtype = DType::f32}), "random::randint: ", "f32");
  STET_EXPECT_LINE(gather(a, labels + 2), "gather: ", "2", "f32[2,3]", "i64[2]");
#undef STET_EXPECT_LINE
}

}  // namespace
}  // namespace stet::op_test
