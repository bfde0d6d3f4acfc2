// Operations of Keras's in functional models: what a + b of two KerasTensors is. Not a public header.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "stet/keras/layer.h"

namespace stet::keras {

/// One of Keras's operations that files may name.
struct OperationRow {
  const char* module;  // "keras.src.ops.numpy"
  const char* class_name;
  Tensor (*of_one)(const Tensor& a);
  Tensor (*of_two)(const Tensor& a, const Tensor& b);
  Tensor (*with_number)(const Tensor& a, double b);  // a op b
  Tensor (*of_number)(double a, const Tensor& b);    // a op b
  int operands() const { return of_one ? 1 : 2; }
};
/// Null if there is none.
const OperationRow* find_operation(std::string_view class_name);

/// A tensor, or a number.
struct Operand {
  bool is_number = false;
  double number = 0;
  bool is_integer = false;  // was written without a point
};

/// A row, and which of its operands are numbers.
class OperationBody : public CustomLayer {
 public:
  OperationBody(const OperationRow& row, std::vector<Operand> operands, std::string name = {});
  Tensors call_many(const Tensors& inputs, const Context& context) override;
  bool supports_masking() const override { return true; }

  const OperationRow& row() const { return row_; }
  const std::vector<Operand>& operands() const { return operands_; }

 private:
  const OperationRow& row_;
  const std::vector<Operand> operands_;
};

}  // namespace stet::keras
