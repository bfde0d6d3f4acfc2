#include "stet/keras/operation.h"

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/layer_state.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

#define STET_OPERATOR(class_name, op)                                                                              \
  {                                                                                                                \
    "keras.src.ops.numpy", class_name, nullptr, [](const Tensor& a, const Tensor& b) -> Tensor { return a op b; }, \
        [](const Tensor& a, double b) -> Tensor { return a op b; },                                                \
        [](double a, const Tensor& b) -> Tensor { return a op b; }                                                 \
  }
#define STET_TWO(class_name, f)                                                                                     \
  {                                                                                                                 \
    "keras.src.ops.numpy", class_name, nullptr, [](const Tensor& a, const Tensor& b) -> Tensor { return f(a, b); }, \
        [](const Tensor& a, double b) -> Tensor { return f(a, b); },                                                \
        [](double a, const Tensor& b) -> Tensor { return f(a, b); }                                                 \
  }
#define STET_ONE(module, class_name, f)                                                           \
  {                                                                                               \
    module, class_name, [](const Tensor& a) -> Tensor { return f(a); }, nullptr, nullptr, nullptr \
  }

constexpr const char *of_numpy = "keras.src.ops.numpy", *of_nn = "keras.src.ops.nn";

/// Those that are a function of one or two tensors and nothing else.
const OperationRow rows[] = {
    STET_OPERATOR("Add", +),
    STET_OPERATOR("Subtract", -),
    STET_OPERATOR("Multiply", *),
    STET_OPERATOR("Divide", /),
    STET_OPERATOR("TrueDivide", /),
    STET_TWO("Maximum", maximum),
    STET_TWO("Minimum", minimum),
    STET_TWO("Power", pow),
    {of_numpy, "Matmul", nullptr, [](const Tensor& a, const Tensor& b) -> Tensor { return matmul(a, b); }, nullptr,
     nullptr},
    STET_ONE(of_numpy, "Negative", negative),
    STET_ONE(of_numpy, "Absolute", abs),
    STET_ONE(of_numpy, "Exp", exp),
    STET_ONE(of_numpy, "Expm1", expm1),
    STET_ONE(of_numpy, "Log", log),
    STET_ONE(of_numpy, "Log1p", log1p),
    STET_ONE(of_numpy, "Sqrt", sqrt),
    STET_ONE(of_numpy, "Square", square),
    STET_ONE(of_numpy, "Sin", sin),
    STET_ONE(of_numpy, "Cos", cos),
    STET_ONE(of_numpy, "Tanh", tanh),
    STET_ONE(of_nn, "Relu", relu),
    STET_ONE(of_nn, "Relu6", relu6),
    STET_ONE(of_nn, "Sigmoid", sigmoid),
    STET_ONE(of_nn, "Silu", silu),
    STET_ONE(of_nn, "Softplus", softplus),
    STET_ONE(of_nn, "Softsign", softsign),
};

#undef STET_OPERATOR
#undef STET_TWO
#undef STET_ONE

}  // namespace

const OperationRow* find_operation(std::string_view class_name) {
  for (const OperationRow& row : rows)
    if (class_name == row.class_name) return &row;
  return nullptr;
}

OperationBody::OperationBody(const OperationRow& row, std::vector<Operand> operands, std::string name)
    : CustomLayer(std::move(name)), row_(row), operands_(std::move(operands)) {
  state().shown_class = row.class_name;
}

Tensors OperationBody::call_many(const Tensors& inputs, const Context& context) {
  std::size_t wanted = 0;
  for (const Operand& one : operands_) wanted += one.is_number ? 0 : 1;
  if (inputs.size() != wanted)
    throw UserError(error_text(
        text(description(), " takes ", wanted, wanted == 1 ? " tensor" : " tensors", " and was given ", inputs.size()),
        context.where, "give it as many"));
  if (row_.of_one) return {row_.of_one(inputs[0])};
  if (operands_[0].is_number) return {row_.of_number(operands_[0].number, inputs[0])};
  if (operands_[1].is_number) return {row_.with_number(inputs[0], operands_[1].number)};
  return {row_.of_two(inputs[0], inputs[1])};
}

}  // namespace stet::keras
