// A model as a file that does what it does in inference.
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/export.h"
#include "stet/keras/functional_body.h"
#include "stet/keras/input_body.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/model.h"

namespace stet::keras {
namespace {

/// A model as a function of as many tensors as it has inputs.
class Served : public FunctionBase {
 public:
  Served(const Model& model, std::size_t inputs, ModelNames names, const std::string& name, Where where)
      : FunctionBase(
            name, inputs,
            [model, names = std::move(names), where](const stet::inside::Leaves& given) {
              Tensors values;
              for (const stet::inside::Leaf& leaf : given) values.push_back(leaf.value);
              stet::inside::Leaves out;
              const Tensors results = model.call_many(values, {.training = false}, where);
              for (std::size_t i = 0; i < results.size(); ++i) {
                stet::inside::Leaf leaf{.kind = stet::inside::Leaf::tensor, .value = results[i]};
                if (names.outputs.size() == results.size()) leaf.path = "." + names.outputs[i];
                out.push_back(std::move(leaf));
              }
              return out;
            },
            {}, where) {}
};

std::vector<TensorSpec> specs_of(CustomModel& body, const ExportOptions& options, Where where) {
  if (!options.input_signature.empty()) return options.input_signature;
  std::vector<TensorSpec> out;
  if (auto* functional = dynamic_cast<FunctionalBody*>(&body)) {
    for (const KerasTensor& input : functional->inputs()) out.push_back(input.spec(where));
    return out;
  }
  for (const Layer& layer : inventory(body).layers) {
    if (auto* input = dynamic_cast<InputLayerBody*>(layer.body().get())) return {input->type()};
    break;  // a Sequential begins with it
  }
  throw UserError(
      error_text(text("export_to: ", body.description(), " has no Input that says what it takes"), where,
                 "begin it with keras::Input, or say it here: {.input_signature = {{f32, {dyn(\"batch\"), …}}}}"));
}

}  // namespace

void Model::export_to(const std::string& path, ExportOptions options, Where where) const {
  CustomModel& body = model_body("export_to", where);
  const std::vector<TensorSpec> specs = specs_of(body, options, where);
  ModelNames names = body.names();
  std::string signature = "serve(";
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const bool known = names.inputs.size() == specs.size();
    signature += text(i ? ", " : "", known                   ? names.inputs[i]
                                     : specs[i].name.empty() ? text("input_", i)
                                                             : specs[i].name);
  }
  const Served served(*this, specs.size(), std::move(names), signature + ")", where);
  Exporter exporter;
  exporter.add_untyped({"serve", where}, served, specs);
  for (const Weight& weight : weights()) exporter.name_variable(weight.variable, weight.path);
  exporter.write(path, where);
}

}  // namespace stet::keras
