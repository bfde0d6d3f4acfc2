// What stands behind a model of layers that were called on KerasTensors. Not a public header.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "stet/keras/functional.h"
#include "stet/keras/model.h"

namespace stet::keras {

class FunctionalBody : public CustomModel {
 public:
  FunctionalBody(std::vector<KerasTensor> inputs, std::vector<KerasTensor> outputs, std::string name, Where where);

  Tensors call_many(const Tensors& inputs, const Context& context) override;
  void visit_members(MemberVisitor& visitor) override;
  /// Those of the layers that give them; the second result of one layer is "name_1".
  ModelNames names() const override;

  const std::vector<KerasTensor>& inputs() const { return inputs_; }
  const std::vector<KerasTensor>& outputs() const { return outputs_; }
  /// The calls that it consists of, in the order in which they run; first its inputs.
  const std::vector<std::shared_ptr<const SymbolicCall>>& calls() const { return calls_; }

 private:
  std::vector<KerasTensor> inputs_, outputs_;
  std::vector<std::shared_ptr<const SymbolicCall>> calls_;
  std::vector<Layer> layers_;  // each once
};

}  // namespace stet::keras
