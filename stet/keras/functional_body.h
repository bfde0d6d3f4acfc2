// What stands behind a model of layers that were called on KerasTensors. Not a public header.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stet/keras/functional.h"
#include "stet/keras/model.h"

namespace stet::keras {

/// How the constructor in Keras was given its inputs, or outputs: alone, as a list, or by names.
struct TensorsForm {
  enum class Kind { plain, single, list, named } kind = Kind::plain;  // plain: alone if there is one
  std::vector<std::string> names = {};  // where they have some, in the order of the tensors
};

class FunctionalBody : public CustomModel {
 public:
  FunctionalBody(std::vector<KerasTensor> inputs, std::vector<KerasTensor> outputs, std::string name, Where where);

  Tensors call_many(const Tensors& inputs, const Context& context) override;
  void visit_members(MemberVisitor& visitor) override;
  /// Those that were given; or those of the layers that give them, where the second result of one layer is "name_1".
  ModelNames names() const override;

  const std::vector<KerasTensor>& inputs() const { return inputs_; }
  const std::vector<KerasTensor>& outputs() const { return outputs_; }
  const TensorsForm& input_form() const { return input_form_; }
  const TensorsForm& output_form() const { return output_form_; }
  /// Before anybody else has the model.
  void set_forms(TensorsForm inputs, TensorsForm outputs) {
    input_form_ = std::move(inputs);
    output_form_ = std::move(outputs);
  }

  /// The calls that it consists of, in the order in which they run; first its inputs.
  const std::vector<std::shared_ptr<const SymbolicCall>>& calls() const { return calls_; }

 private:
  ModelNames names_of_tensors() const;
  TensorsForm input_form_, output_form_;
  std::vector<KerasTensor> inputs_, outputs_;
  std::vector<std::shared_ptr<const SymbolicCall>> calls_;
  std::vector<Layer> layers_;  // each once
};

}  // namespace stet::keras
