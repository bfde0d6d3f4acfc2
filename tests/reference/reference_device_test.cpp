// Two devices, one meaning: every row on the reference device gives what it gives on the CPU, and so do traced
// functions, gradients and programs whose sizes depend on values.
#include "tests/reference/reference_device.h"

#include "stet/core/function.h"
#include "stet/core/tape.h"
#include "tests/ops/op_harness.h"
#include "tests/sampling.h"

namespace stet::op_test {
namespace {

class TwoDevices : public OpTest {};

Tensor moved(const Tensor& tensor) { return on_device(tensor, reference_device()); }

/// Both sum in their own order: terms of magnitude up to 3, some thousands of them, in f32. Factors of matrices are as
/// far off as structured_test.cpp says.
void expect_alike(const Tensor& here, const Tensor& there, const std::string& what,
                  Rounding rounding = Rounding::sums) {
  ASSERT_EQ(there.node()->device(), &reference_device()) << what;
  ASSERT_EQ(here.dtype(), there.dtype()) << what;
  ASSERT_EQ(sizes_of(here), sizes_of(there)) << what;
  Values a = values_of(here), b = values_of(on_host(there));
  Value largest = 1;
  for (Value one : a) largest = std::max(largest, std::abs(one));
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    Value roundings = rounding == Rounding::factorisation ? 400 * largest : 64 * std::max<Value>(std::abs(a[i]), 1);
    Value allowed = is_floating(here.dtype()) ? roundings * unit_roundoff(here.dtype()) : 0;
    ASSERT_LE(std::abs(a[i] - b[i]), allowed)
        << what << ", element " << i << ": " << static_cast<double>(a[i]) << " and " << static_cast<double>(b[i]);
  }
}

TEST_F(TwoDevices, EveryStructuredRow) {
  for (const OpDef* op : all_rows()) {
    if (op->kind == Kind::map || op->kind == Kind::random) continue;
    std::vector<Sample> samples = samples_of(*op);
    std::erase_if(samples, [](const Sample& sample) {  // it is slow
      return std::ranges::any_of(sample.inputs, [](const SampleInput& input) { return count_of(input.sizes) > 3000; });
    });
    for (std::size_t number : chosen(text("two devices ", op->name), samples.size(), 4,
                                     [&](std::size_t k) { return has_elements(samples[k]); })) {
      const Sample& sample = samples[number];
      for (DType dtype : {DType::f32, DType::bf16, DType::i32}) {
        std::vector<Tensor> here = drawn_inputs(sample, dtype), there;
        for (const Tensor& input : here) there.push_back(moved(input));
        std::string what = text(sample_line(*op, sample), " of ", dtype);
        std::vector<Tensor> results(op->result_count()), others(op->result_count());
        auto run = [&](const std::vector<Tensor>& inputs, std::vector<Tensor>& into) {
          std::vector<In> operands;
          for (const Tensor& input : inputs) operands.emplace_back(input, Where::here());
          call_into(*op, operands, sample.attributes.view(), into);
        };
        try {
          run(here, results);
        } catch (const UserError&) {
          continue;  // a type that the row does not take
        }
        run(there, others);
        for (std::size_t r = 0; r < results.size(); ++r) expect_alike(results[r], others[r], what, sample.rounding);
      }
    }
  }
}

TEST_F(TwoDevices, EveryMap) {
  for (const OpDef& op : elementwise_rows())
    for (DType dtype : {DType::f32, DType::f16, DType::i64, DType::bool_}) {
      std::vector<Tensor> here, there;
      for (int k = 0; k < op.arity; ++k) {
        Values values;
        for (std::uint64_t i = 0; i < 35; ++i) {
          Value x = drawn_from(op.domain, drawn(i, static_cast<std::uint64_t>(k)));
          values.push_back(is_floating(dtype) ? x : std::trunc(x));
        }
        DType type = k == 0 && op.dtypes.result == DTypeRule::selected ? DType::bool_ : dtype;
        here.push_back(make_tensor(type, values, {5, 7}));
        there.push_back(moved(here.back()));
      }
      Tensor result;
      try {
        result = eager(op, here);
      } catch (const UserError&) {
        continue;  // a type that the row does not take
      }
      expect_alike(result, eager(op, there), text(op.name, " of ", dtype));
    }
}

TEST_F(TwoDevices, NumbersFollowAndTensorsDoNot) {
  Tensor x = moved(tensor({1.0f, 2.0f, 3.0f}));
  expect_alike(tensor({3.0f, 5.0f, 7.0f}), x * 2 + 1, "numbers");
  expect_alike(tensor({2.0f, 4.0f, 6.0f}), x * tensor(2.0f), "a scalar tensor");
  EXPECT_EQ(to_string(x), "[1. 2. 3.]");
  EXPECT_EQ(x.item<float>({1}), 2);
  std::string message = message_of([&] { return x + tensor({1.0f, 2.0f, 3.0f}); });
  EXPECT_NE(message.find("one operand lies on reference and another on cpu"), std::string::npos) << message;
  try {
    static_cast<void>(x.data<float>());
    ADD_FAILURE() << "no error";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("lies on reference, not in memory"), std::string::npos) << error.what();
  }
}

TEST_F(TwoDevices, FunctionsBranchesAndLateSizes) {
  Tensor scale = tensor({0.5f, 2.0f, -1.0f});
  Function<Tensor(Tensor)> f = function("f(x)", [&](Tensor x) {
    if (sum(x) > 0) return relu(x) * scale;
    return cast(nonzero(x), f32) + mean(x);
  });
  for (float sign : {1.0f, -1.0f})
    for (int rows : {2, 5}) {
      Tensor x = reshape(cast(arange(rows * 3), f32), {rows, 3}) * sign - 1;
      expect_alike(f(x), f(moved(x)), "f");
    }
  EXPECT_EQ(f.trace_count(), 2);  // one for each device
}

TEST_F(TwoDevices, Gradients) {
  auto loss = [](const Tensor& x, const Tensor& w) { return mean(square(matmul(relu(x), w))); };
  Tensor x = make_tensor(DType::f32, drawn_values(0, DType::f32, {{4, 3}}), {4, 3});
  Tensor w = make_tensor(DType::f32, drawn_values(1, DType::f32, {{3, 5}}), {3, 5});
  Function traced = function("loss(x, w)", loss);
  std::vector<Tensor> gradients;
  for (bool function : {false, true})
    for (bool here : {true, false}) {
      Tensor a = here ? x : moved(x), b = here ? w : moved(w);
      GradientTape tape;
      tape.watch(b);
      Tensor value = function ? traced(a, b) : loss(a, b);
      gradients.push_back(tape.gradient(value, b));
    }
  expect_alike(gradients[0], gradients[1], "eager");
  expect_alike(gradients[2], gradients[3], "under a tape");
}

}  // namespace
}  // namespace stet::op_test
