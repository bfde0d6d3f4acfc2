// Bad inputs, classes 1 to 9 of the project's catalogue, on every row: the documented result or a UserError; never a
// crash, never an access outside (checked code and guard bytes), never another exception.
//
// 1 zero sizes  2 gradients of another shape  3 indices and axes out of range  4 huge sizes  5 64-bit numbers cut to 32
// 6 wrong ranks  7 missing operands (error_test.cpp)  8 wrong types  9 NaN, infinity and overflowing casts
#include "stet/core/gradient.h"
#include "tests/ops/oracle.h"
#include "tests/sampling.h"

namespace stet::op_test {
namespace {

class BadInput : public OpTest {};

#define STET_EXPECT_REFUSED(call, part)                                                              \
  {                                                                                                  \
    SCOPED_TRACE(#call);                                                                             \
    std::string message = message_of([&]() -> Tensor { return call; });                              \
    EXPECT_NE(message.find(part), std::string::npos) << "no \"" << part << "\" in:\n" << message;    \
    EXPECT_NE(message.find("bad_input_test.cpp:"), std::string::npos) << "no line in:\n" << message; \
  }

/// Of shapes: they are made before any op is called, and know no line.
#define STET_EXPECT_SHAPE_REFUSED(call)                                    \
  {                                                                        \
    SCOPED_TRACE(#call);                                                   \
    std::string message = message_of([&]() -> Tensor { return call; });    \
    EXPECT_NE(message.find("is too large"), std::string::npos) << message; \
  }

/// A result or a UserError.
template <class Call>
void expect_defined_behaviour(const std::string& what, Call&& call) {
  try {
    Tensor result = call();
    (void)bytes_of(result);
  } catch (const UserError&) {
  } catch (const std::exception& error) {
    ADD_FAILURE() << what << ": " << error.what();
  }
}

/// Classes 1, 6 and 8: operands of any rank, sizes and types, with every set of attributes that a row's samples and
/// error examples have.
TEST_F(BadInput, AnyOperandsOnEveryRow) {
  CheckedKernels checked;
  std::uint64_t state = 1 + (full_tests() ? 0 : test_seed() * 1'000'000);
  auto next = [&](std::uint64_t below) { return drawn(state++, 500) % below; };
  for (const OpDef* op : all_rows()) {
    if (op->kind == Kind::random) continue;  // its operands are made by its callables
    std::vector<Attributes> attributes;
    std::size_t operands = op->arity;
    for (const Sample& sample : samples_of(*op)) {
      attributes.push_back(sample.attributes);
      operands = std::max(operands, sample.inputs.size());
    }
    ErrorList errors;
    if (op->errors) op->errors(errors);
    for (const ErrorSample& sample : errors.samples) attributes.push_back(sample.attributes);
    if (attributes.empty()) attributes.push_back({});
    for (const Attributes& one : attributes)
      for (int round = 0; round < (full_tests() ? (op->kind == Kind::map ? 6 : 12) : 2); ++round) {
        // Close to sensible more often than not, so that the checks behind the first one are reached, too.
        auto dtype = all_dtypes[next(10)];
        std::vector<Tensor> inputs;
        std::string types;
        for (std::size_t k = 0; k < operands; ++k) {
          Sizes sizes(next(3) ? 1 + next(3) : next(9));
          static constexpr std::int64_t choices[] = {0, 1, 2, 3, 4, 5};
          for (std::int64_t& size : sizes) size = sizes.size() > 5 ? choices[next(3)] : choices[next(6)];
          DType type = next(4) ? dtype : all_dtypes[next(10)];
          if (op->kind == Kind::index && next(3) && (k == 1 || op == &one_hot_row)) type = DType::i64;
          Values values;
          for (std::int64_t i = 0; i < count_of(sizes); ++i)
            values.push_back(next(8) ? static_cast<Value>(next(4)) : is_floating(type) ? NAN : Value{100});
          inputs.push_back(make_tensor(type, values, sizes));
          types += text(" ", type, Shape(sizes));
        }
        expect_defined_behaviour(text(op->name, types, " {", one.str(), "}"),
                                 [&] { return eager_all(*op, inputs, one)[0]; });
      }
  }
}

/// Class 2: a gradient of another shape or type than the result.
TEST_F(BadInput, GradientsOfAnotherShape) {
  for (const OpDef* op : all_rows()) {
    if (!op->gradient || op->result_count() > 1) continue;  // tapes hand a tuple's row what fits its results
    std::vector<Tensor> inputs;
    Attributes attributes;
    if (op->kind == Kind::map) {
      for (int k = 0; k < op->arity; ++k) inputs.push_back(ones({2, 3}));
      if (op->dtypes.result == DTypeRule::logical) continue;
    } else {
      Sample sample = samples_of(*op).front();
      inputs = drawn_inputs(sample, DType::f32);
      attributes = sample.attributes;
    }
    std::vector<Tensor> outputs = eager_all(*op, inputs, attributes);
    for (const Sizes& sizes : {Sizes{7}, Sizes{}, Sizes{0}, Sizes{5, 5, 5, 5, 5}}) {
      std::vector<Tensor> ds;
      for (const Tensor& output : outputs) ds.push_back(ones(Shape(sizes), output.dtype()));
      const Tensor& d = ds[0];
      expect_defined_behaviour(text(op->name, " with d ", Shape(sizes)), [&] {
        GradientCall gradient(*op, inputs, attributes.view(), outputs, ds, std::vector<bool>(inputs.size(), true));
        op->gradient(gradient);
        for (const Tensor& result : gradient.results())
          if (result.defined()) (void)bytes_of(result);
        return d;
      });
    }
  }
}

/// Class 3, values.
TEST_F(BadInput, IndicesOutOfRange) {
  Tensor x = ones({5, 3}), vector = ones({5});
  for (bool check : {false, true}) {
    std::optional<CheckedKernels> checked;
    if (check) checked.emplace();
    for (DType dtype : {DType::u8, DType::i8, DType::i16, DType::i32, DType::i64}) {
      std::vector<Value> wrong = {5, 100};
      if (row(dtype).lowest < 0) wrong.insert(wrong.end(), {-1, -5, static_cast<Value>(row(dtype).lowest)});
      wrong.push_back(static_cast<Value>(row(dtype).highest));
      for (Value index : wrong) {
        Tensor one = make_vector(dtype, {index}), scalar = make_tensor(dtype, {index}, {});
        Values many_values(40, 1);
        many_values[37] = index;
        Tensor many = make_vector(dtype, many_values);
        std::string number = text(static_cast<std::int64_t>(index));
        SCOPED_TRACE(text(dtype, " ", number));
        STET_EXPECT_REFUSED(gather(x, one), number);
        STET_EXPECT_REFUSED(gather(x, many), number);
        STET_EXPECT_REFUSED(gather(x, many), "gather");
        STET_EXPECT_REFUSED(gather(vector, many), number);
        STET_EXPECT_REFUSED(gather(x, scalar), number);
        STET_EXPECT_REFUSED(gather(transpose(x), many, 1), number);
        STET_EXPECT_REFUSED(scatter_add(x, one, ones({1, 3})), number);
        STET_EXPECT_REFUSED(scatter_add(x, many, ones({40, 3})), number);
        STET_EXPECT_REFUSED(scatter_add(vector, many, ones({40})), number);
        STET_EXPECT_REFUSED(scatter_add(cast(vector, DType::f16), many, ones({40}, DType::f16)), "scatter_add");
        EXPECT_EQ(values_of(one_hot(one, 5)), (Values{0, 0, 0, 0, 0}));
        if (dtype == DType::i64 || dtype == DType::i32)
          STET_EXPECT_REFUSED(sparse_cross_entropy(one, ones({1, 5})), number);
      }
    }
  }
  // Nothing indexed, nothing wrong.
  EXPECT_EQ(sizes_of(gather(x, zeros({0}, DType::i64))), (Sizes{0, 3}));
  STET_EXPECT_REFUSED(gather(zeros({0, 3}), zeros({1}, DType::i64)), "gather");
  EXPECT_EQ(sizes_of(gather(zeros({0, 3}), zeros({0}, DType::i64))), (Sizes{0, 3}));
  EXPECT_EQ(sizes_of(gather(zeros({3, 0}), make_vector(DType::i64, {7}))), (Sizes{1, 0}));
}

/// Classes 3 and 5, axes. A number that is 0 or 1 in its lower 32 bits is not 0 or 1.
TEST_F(BadInput, AxesOutOfRange) {
  Tensor x = ones({2, 3});
  for (std::int64_t axis : {std::int64_t{2}, std::int64_t{-3}, std::int64_t{INT32_MAX}, std::int64_t{INT32_MIN},
                            std::int64_t{1} << 32, (std::int64_t{1} << 32) + 1, INT64_MAX, INT64_MIN}) {
    SCOPED_TRACE(axis);
    STET_EXPECT_REFUSED(sum(x, axis), "out of range");
    STET_EXPECT_REFUSED(mean(x, axis), "out of range");
    STET_EXPECT_REFUSED(prod(x, axis), "out of range");
    STET_EXPECT_REFUSED(max(x, axis), "out of range");
    STET_EXPECT_REFUSED(min(x, axis), "out of range");
    STET_EXPECT_REFUSED(reverse(x, axis), "out of range");
    STET_EXPECT_REFUSED(squeeze(ones({1, 1}), axis), "out of range");
    Axes order(axis);
    order.axes.push_back(0);
    STET_EXPECT_REFUSED(transpose(x, order), "transpose");
    if (axis != static_cast<int>(axis)) continue;
    int narrow = static_cast<int>(axis);
    STET_EXPECT_REFUSED(argmax(x, narrow), "out of range");
    STET_EXPECT_REFUSED(argmin(x, narrow), "out of range");
    STET_EXPECT_REFUSED(gather(x, 0, narrow), "out of range");
    STET_EXPECT_REFUSED(scatter_add(x, 0, x, narrow), "out of range");
    STET_EXPECT_REFUSED(concat({x, x}, narrow), "out of range");
    STET_EXPECT_REFUSED(softmax(x, narrow), "out of range");
    if (narrow != 2 && narrow != -3) {
      STET_EXPECT_REFUSED(expand_dims(x, narrow), "out of range");
      STET_EXPECT_REFUSED(stack({x, x}, narrow), "out of range");
    }
  }
  STET_EXPECT_REFUSED(sum(1.5f, 0), "out of range");
  STET_EXPECT_REFUSED(argmax(ones({}), 0), "out of range");
}

/// Class 3, slices.
TEST_F(BadInput, SlicesOutside) {
  Tensor x = ones({4});
  for (std::int64_t far : {std::int64_t{5}, std::int64_t{1} << 32, INT64_MAX}) {
    STET_EXPECT_REFUSED(slice(x, {far}, {1}), "slice");
    STET_EXPECT_REFUSED(slice(x, {0}, {far}), "slice");
    STET_EXPECT_REFUSED(slice(x, {-far}, {1}), "slice");
    STET_EXPECT_REFUSED(slice(x, {0}, {-far}), "slice");
    STET_EXPECT_REFUSED(slice(x, {0}, {2}, {far}), "slice");
    STET_EXPECT_REFUSED(slice(x, {far}, {far}, {far}), "slice");
    STET_EXPECT_REFUSED(x[far], "out of range");
    STET_EXPECT_REFUSED(x[-far], "out of range");
    EXPECT_EQ(sizes_of(x[Range{.begin = far}]), (Sizes{0}));
    EXPECT_EQ(sizes_of(x[Range{.begin = -far}]), (Sizes{4}));
    EXPECT_EQ(sizes_of(x[Range{.end = far, .step = far}]), (Sizes{1}));
    EXPECT_EQ(sizes_of(x[Range{.step = -far}]), (Sizes{1}));
  }
  STET_EXPECT_REFUSED(slice(x, {0}, {1}, {0}), "less than 1");
  STET_EXPECT_REFUSED(slice(x, {0}, {1}, {-1}), "less than 1");
  STET_EXPECT_REFUSED(slice(x, {0}, {1}, {INT64_MIN}), "less than 1");
  STET_EXPECT_REFUSED(slice(x, {INT64_MIN}, {1}), "slice");
  STET_EXPECT_REFUSED(slice(x, {0, 0}, {1, 1}), "one entry per axis");
  STET_EXPECT_REFUSED(slice(x, {5}, {0}), "slice");
  STET_EXPECT_REFUSED((x[Range{.step = 0}]), "the step of axis 0 is 0");
  STET_EXPECT_REFUSED((x[{0, 0}]), "2 indices for rank 1");
  STET_EXPECT_REFUSED((x[{ellipsis, ellipsis}]), "more than one ellipsis");
  STET_EXPECT_REFUSED((ones({})[0]), "indices for rank 0");
  STET_EXPECT_REFUSED((zeros({0})[0]), "out of range");
}

/// Class 4: counts beyond 64 bits, and tensors beyond memory.
TEST_F(BadInput, HugeSizes) {
  const std::int64_t large = std::int64_t{1} << 40;
  Tensor one = ones({1, 1}), vector = ones({1});
  STET_EXPECT_SHAPE_REFUSED(broadcast_to(one, {large, large}));
  STET_EXPECT_SHAPE_REFUSED(broadcast_to(vector, {INT64_MAX, INT64_MAX}));
  // As a view it takes no memory; a copy of it does.
  Tensor view = broadcast_to(one, {large, 1 << 20}), row = broadcast_to(vector, {large});
  Tensor column = broadcast_to(one, {large, 1});
  STET_EXPECT_REFUSED(view.contiguous(), "memory");
  STET_EXPECT_REFUSED(view + 1, "memory");
  STET_EXPECT_REFUSED(view + view, "memory");
  STET_EXPECT_REFUSED(row + column, "too large");
  STET_EXPECT_REFUSED(view * column, "memory");
  STET_EXPECT_REFUSED(cast(view, DType::f64), "too large");
  STET_EXPECT_REFUSED(view == view, "memory");
  STET_EXPECT_REFUSED(where(view, 1, 0), "memory");
  STET_EXPECT_REFUSED(reshape(view, {-1}), "memory");
  STET_EXPECT_REFUSED(reshape(vector, {large, large}), "reshape");
  STET_EXPECT_REFUSED(reshape(vector, {INT64_MAX, 2}), "reshape");
  STET_EXPECT_REFUSED(reshape(vector, {INT64_MIN}), "reshape");
  EXPECT_EQ(reverse(view, 0).item<float>({1, 1}), 1);  // a repeated axis backwards is itself
  STET_EXPECT_REFUSED(reverse(broadcast_to(ones({1, 3}), {large, 3}), 1), "memory");
  STET_EXPECT_REFUSED(concat({view, view}), "too large");
  STET_EXPECT_REFUSED(concat({row, row}), "memory");
  STET_EXPECT_REFUSED(concat({broadcast_to(vector, {INT64_MAX / 2 + 1}), broadcast_to(vector, {INT64_MAX / 2 + 1})}),
                      "concat");
  STET_EXPECT_REFUSED(gather(view, zeros({1}, DType::i64), 1), "memory");
  STET_EXPECT_REFUSED(gather(vector, broadcast_to(zeros({1}, DType::i64), {large})), "memory");
  STET_EXPECT_REFUSED(gather(column, broadcast_to(zeros({1}, DType::i64), {large}), 1), "too large");
  STET_EXPECT_REFUSED(one_hot(zeros({4}, DType::i64), large), "memory");
  STET_EXPECT_REFUSED(one_hot(zeros({4}, DType::i64), INT64_MAX), "too large");
  STET_EXPECT_REFUSED(one_hot(broadcast_to(zeros({1}, DType::i64), {large}), large), "too large");
  STET_EXPECT_REFUSED(scatter_add(row, zeros({1}, DType::i64), ones({1})), "memory");
  STET_EXPECT_REFUSED(matmul(column, transpose(column)), "too large");
  STET_EXPECT_REFUSED(matmul(column, broadcast_to(one, {1, 1 << 20})), "memory");
  STET_EXPECT_REFUSED(nonzero(view), "memory");
  STET_EXPECT_REFUSED(sum(broadcast_to(ones({1, 1}), {large, 1 << 20}), 1), "memory");
  STET_EXPECT_REFUSED(conv2d(ones({1, 4, 4, 1}), broadcast_to(ones({1, 1, 1, 1}), {2, 2, 1, large})), "memory");
  STET_EXPECT_REFUSED(conv2d(broadcast_to(ones({1, 1, 1, 1}), {large, 4, 4, 1}), ones({2, 2, 1, 1})), "memory");
  STET_EXPECT_REFUSED(random::uniform({large, 1 << 20}), "memory");
  STET_EXPECT_SHAPE_REFUSED(random::normal({large, large}));
  STET_EXPECT_REFUSED(random::randint({large}, 0, 2), "memory");
  STET_EXPECT_REFUSED(softmax(view), "memory");
  STET_EXPECT_SHAPE_REFUSED(zeros({large, large}));
  STET_EXPECT_REFUSED(full({large}, 2), "memory");
  STET_EXPECT_REFUSED(arange(large * 1024), "memory");
  // The allocator goes on after a refusal.
  EXPECT_EQ(sum(ones({1000})).item<float>(), 1000);
}

/// Class 1: sizes of zero in every place; class 6: strides and dilations of zero and beyond 32 bits.
TEST_F(BadInput, Convolutions) {
  Tensor x = ones({1, 5, 5, 2}), filter = ones({3, 3, 2, 4});
  for (std::int64_t wrong : {std::int64_t{0}, std::int64_t{-1}, INT64_MIN}) {
    STET_EXPECT_REFUSED(conv2d(x, filter, {.strides = {wrong, 1}}), "stride");
    STET_EXPECT_REFUSED(conv2d(x, filter, {.strides = {1, wrong}, .same_padding = true}), "stride");
    STET_EXPECT_REFUSED(conv2d(x, filter, {.dilations = {1, wrong}}), "dilation");
    STET_EXPECT_REFUSED(conv2d(x, filter, {.same_padding = true, .dilations = {wrong, 1}}), "conv2d");
  }
  for (std::int64_t far : {std::int64_t{1} << 32, std::int64_t{1} << 62, INT64_MAX}) {
    if (far < std::int64_t{1} << 40) {
      EXPECT_EQ(sizes_of(conv2d(x, filter, {.strides = {far, far}})), (Sizes{1, 1, 1, 4}));
    }
    expect_defined_behaviour("strides", [&] { return conv2d(x, filter, {.strides = {far, far}}); });
    STET_EXPECT_REFUSED(conv2d(x, filter, {.dilations = {far, 1}}), "conv2d");
    expect_defined_behaviour("same padding", [&] {
      return conv2d(x, filter, {.strides = {far, far}, .same_padding = true});
    });
    expect_defined_behaviour("same padding", [&] {
      return conv2d(x, filter, {.same_padding = true, .dilations = {far, far}});
    });
  }
  STET_EXPECT_REFUSED(conv2d(x, filter, {.strides = {}}), "one entry for height and one for width");
  STET_EXPECT_REFUSED(conv2d(x, filter, {.strides = {1, 1, 1}, .same_padding = true}),
                      "one entry for height and one for width");
  STET_EXPECT_REFUSED(conv2d(x, zeros({0, 3, 2, 4})), "kernel");
  STET_EXPECT_REFUSED(conv2d(x, zeros({0, 3, 2, 4}), {.same_padding = true}), "conv2d");
  EXPECT_EQ(sizes_of(conv2d(x, zeros({3, 3, 2, 0}))), (Sizes{1, 3, 3, 0}));
  EXPECT_EQ(sizes_of(conv2d(zeros({0, 5, 5, 2}), filter)), (Sizes{0, 3, 3, 4}));
  Tensor none = conv2d(zeros({1, 5, 5, 0}), zeros({3, 3, 0, 4}));
  EXPECT_EQ(values_of(none), Values(36, 0));
  expect_defined_behaviour("empty image", [&] { return conv2d(zeros({1, 0, 5, 2}), filter); });
  expect_defined_behaviour("empty image, padded", [&] {
    return conv2d(zeros({1, 0, 5, 2}), filter, {.same_padding = true});
  });
}

/// Class 6: a number or a scalar where a tensor with axes is expected, and the other way round.
TEST_F(BadInput, WrongRanks) {
  Tensor eight = ones({1, 1, 1, 1, 1, 1, 1, 1}), matrix = ones({2, 2});
  STET_EXPECT_REFUSED(expand_dims(eight, 0), "at most 8");
  STET_EXPECT_REFUSED(stack({eight, eight}), "at most 8");
  STET_EXPECT_REFUSED(gather(eight, zeros({2, 2}, DType::i64)), "at most 8");
  STET_EXPECT_REFUSED(one_hot(cast(eight, DType::i64), 3), "at most 8");
  STET_EXPECT_REFUSED(reshape(eight, {1, 1, 1, 1, 1, 1, 1, 1, 1}), "at most 8");
  STET_EXPECT_REFUSED((eight[{newaxis}]), "at most 8");
  STET_EXPECT_REFUSED(matmul(2, 3), "matmul");
  STET_EXPECT_REFUSED(matmul(matrix, 3.0f), "matmul");
  STET_EXPECT_REFUSED(matmul(ones({}), ones({})), "matmul");
  STET_EXPECT_REFUSED(conv2d(1.0f, 2.0f), "conv2d");
  STET_EXPECT_REFUSED(gather(1.0f, 0), "a scalar has no axis");
  STET_EXPECT_REFUSED(scatter_add(1.0f, 0, 1.0f), "a scalar has no axis");
  STET_EXPECT_REFUSED(concat({Tensor(1), Tensor(2)}), "concat");
  STET_EXPECT_REFUSED(sparse_cross_entropy(1, matrix), "must be tensors");
  // Numbers where they make sense.
  EXPECT_EQ(sum(3).item<int>(), 3);
  EXPECT_EQ(max(2.5f).item<float>(), 2.5f);
  EXPECT_EQ(sizes_of(reshape(7, {1, 1})), (Sizes{1, 1}));
  EXPECT_EQ(sizes_of(transpose(7)), (Sizes{}));
  EXPECT_EQ(values_of(broadcast_to(7, {2})), (Values{7, 7}));
  EXPECT_EQ(sizes_of(nonzero(7)), (Sizes{1, 0}));
  EXPECT_EQ(values_of(one_hot(1, 3)), (Values{0, 1, 0}));
  EXPECT_EQ(values_of(gather(arange(5), 3)), (Values{3}));
  expect_defined_behaviour("slice of a number", [] { return slice(7, {}, {}); });
  expect_defined_behaviour("reverse of a number", [] { return reverse(7, 0); });
  expect_defined_behaviour("squeeze of a number", [] { return squeeze(7); });
  expect_defined_behaviour("softmax of a number", [] { return softmax(7.0f); });
  expect_defined_behaviour("layer_norm of numbers", [] { return layer_norm(1.0f, 2.0f, 3.0f); });
}

/// Class 5: a C++ number beyond 64 signed bits is not a negative one.
TEST_F(BadInput, NumbersBeyond64Bits) {
  const std::uint64_t beyond = UINT64_MAX;
  for (DType dtype : {DType::u8, DType::i32, DType::i64, DType::f32}) {
    Tensor x = zeros({2}, dtype);
    STET_EXPECT_REFUSED(x + beyond, "the number 18446744073709551615 is out of range");
    STET_EXPECT_REFUSED(x == beyond, "the number 18446744073709551615 is out of range");
    STET_EXPECT_REFUSED(where(x, x, beyond), "the number 18446744073709551615 is out of range");
  }
  STET_EXPECT_REFUSED(sum(beyond), "the number 18446744073709551615 is out of range");
  EXPECT_EQ((zeros({1}, DType::i64) + std::uint64_t{INT64_MAX}).item<std::int64_t>(), INT64_MAX);
}

/// Numbers alone promote like tensors.
TEST_F(BadInput, NumbersAlone) {
  EXPECT_EQ(add(1, 2).dtype(), DType::i32);
  EXPECT_EQ(add(1, 2).item<int>(), 3);
  EXPECT_EQ(add(1, 2.5).dtype(), DType::f64);
  EXPECT_EQ(multiply(1.5f, 2).dtype(), DType::f32);
  EXPECT_EQ(where(true, 1, 2).item<int>(), 1);
  EXPECT_EQ(sqrt(4).dtype(), DType::f32);
  EXPECT_EQ(sqrt(4.0).dtype(), DType::f64);
  EXPECT_EQ(floor_divide(7, 0).item<int>(), 0);
  STET_EXPECT_REFUSED(add(true, false), "does not take bool");
  EXPECT_TRUE(logical_and(1.5, 2).item<bool>());
  STET_EXPECT_REFUSED(bitwise_and(1.5, 2), "does not take f64");
}

/// Creation with sizes and values that do not fit.
TEST_F(BadInput, Creation) {
  for (std::int64_t negative : {std::int64_t{-1}, INT64_MIN}) {
    expect_defined_behaviour("zeros", [&] { return zeros({negative}); });
    EXPECT_THROW(zeros({negative}), UserError);
    EXPECT_THROW(arange(negative), UserError);
    EXPECT_THROW(random::uniform({negative}), UserError);
    EXPECT_THROW(broadcast_to(1, {negative}), UserError);
    EXPECT_THROW(one_hot(0, negative), UserError);
  }
  EXPECT_THROW(full({2}, 300, DType::u8), UserError);
  EXPECT_THROW(full({2}, NAN, DType::i32), UserError);
  EXPECT_THROW(full({2}, 1e10, DType::f16), UserError);
  EXPECT_THROW(tensor(std::vector<float>{1, 2, 3}, {2, 2}), UserError);
  EXPECT_THROW(tensor({{1, 2}, {3}}), UserError);
  EXPECT_EQ(values_of(full({2}, INFINITY, DType::f16)), (Values{INFINITY, INFINITY}));
}

/// One size may be -1, and then the others must say what it is.
TEST_F(BadInput, ReshapesOfNothing) {
  Tensor empty = zeros({0, 4});
  EXPECT_EQ(sizes_of(reshape(empty, {-1})), (Sizes{0}));
  EXPECT_EQ(sizes_of(reshape(empty, {7, 0, 3})), (Sizes{7, 0, 3}));
  EXPECT_EQ(sizes_of(reshape(empty, {-1, 4})), (Sizes{0, 4}));
  STET_EXPECT_REFUSED(reshape(empty, {0, -1}), "reshape");
  STET_EXPECT_REFUSED(reshape(ones({3}), {0, -1}), "reshape");
  STET_EXPECT_REFUSED(reshape(ones({3}), {0}), "reshape");
  STET_EXPECT_REFUSED(reshape(ones({3}), std::vector<Dim>{}), "reshape");
  STET_EXPECT_REFUSED(reshape(ones({6}), {-1, 4}), "reshape");
}

/// More operands than any table on the stack has room for.
TEST_F(BadInput, ManyOperands) {
  for (std::int64_t count : {8, 9, 16, 17, 40}) {
    std::vector<Tensor> parts, views;
    for (std::int64_t i = 0; i < count; ++i) {
      parts.push_back(full({2, 3}, static_cast<double>(i)));
      views.push_back(transpose(full({3, 2}, static_cast<double>(i))));
    }
    for (const std::vector<Tensor>& list : {parts, views}) {
      Tensor whole = concat(list, 0);
      ASSERT_EQ(sizes_of(whole), (Sizes{2 * count, 3}));
      for (std::int64_t i = 0; i < 2 * count; ++i) EXPECT_EQ(whole.item<float>({i, 1}), static_cast<float>(i / 2));
      EXPECT_EQ(sizes_of(stack(list, 1)), (Sizes{2, count, 3}));
    }
    parts.back() = zeros({2, 4});
    STET_EXPECT_REFUSED(concat(parts, 0), "concat");
    parts[0] = Tensor();
    STET_EXPECT_REFUSED(concat(parts, 0), "undefined");
  }
}

/// Class 9: casts of what does not fit saturate, NaN gives 0; reading one element does the same.
TEST_F(BadInput, CastsThatOverflow) {
  for (DType from : floating_dtypes)
    for (DType to : {DType::u8, DType::i8, DType::i16, DType::i32, DType::i64}) {
      Tensor x = make_vector(from, {NAN, INFINITY, -INFINITY});
      EXPECT_EQ(values_of(cast(x, to)),
                (Values{0, static_cast<Value>(row(to).highest), static_cast<Value>(row(to).lowest)}))
          << from << " to " << to;
      EXPECT_EQ(x.item<std::int8_t>({1}), 127);
      EXPECT_EQ(x.item<std::int64_t>({0}), 0);
    }
  EXPECT_EQ(values_of(cast(make_vector(DType::f32, {NAN, 0, -0.0L}), DType::bool_)), (Values{1, 0, 0}));
}

/// Division by zero in integers, and the quotient that overflows.
TEST_F(BadInput, IntegerDivision) {
  for (DType dtype : {DType::u8, DType::i8, DType::i16, DType::i32, DType::i64}) {
    auto lowest = static_cast<Value>(row(dtype).lowest);
    Tensor x = make_vector(dtype, {7, lowest, 0}), zero = zeros({3}, dtype);
    EXPECT_EQ(values_of(floor_divide(x, zero)), (Values{0, 0, 0})) << dtype;
    EXPECT_EQ(values_of(mod(x, zero)), (Values{0, 0, 0})) << dtype;
    if (lowest == 0) continue;
    EXPECT_EQ(values_of(floor_divide(x, -1)), (Values{-7, lowest, 0})) << dtype;
    EXPECT_EQ(values_of(mod(x, -1)), (Values{0, 0, 0})) << dtype;
  }
}

}  // namespace
}  // namespace stet::op_test
