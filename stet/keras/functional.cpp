#include "stet/keras/functional.h"

#include <algorithm>
#include <map>
#include <set>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/functional_body.h"
#include "stet/keras/input_body.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/operation.h"

namespace stet::keras {

// --- tensors that do not exist yet

KerasTensor::KerasTensor(const Input& input) {
  auto& body = static_cast<InputLayerBody&>(*input.body());
  // One tensor for an Input, however often it is named.
  std::lock_guard lock(body.state().guard);
  for (const std::weak_ptr<const SymbolicCall>& known : body.state().symbolic_calls)
    if ((call_ = known.lock())) return;
  call_ = std::make_shared<const SymbolicCall>(SymbolicCall{input, {}, {body.type()}, {}});
  body.state().symbolic_calls.assign(1, call_);
}

const TensorSpec& KerasTensor::spec(Where where) const {
  if (!call_)
    throw UserError(error_text("a KerasTensor is undefined", where,
                               "it comes from a keras::Input, or from a layer that is called on one"));
  return call_->outputs[static_cast<std::size_t>(number_)];
}
Layer KerasTensor::layer(Where where) const {
  spec(where);
  return call_->layer;
}

std::vector<KerasTensor> Layer::call_many(const std::vector<KerasTensor>& inputs, CallOptions options,
                                          Where where) const {
  CustomLayer& layer = layer_body("call", where);
  std::vector<TensorSpec> types;
  for (const KerasTensor& input : inputs) types.push_back(input.spec(where));
  if (types.empty())
    throw UserError(error_text(text(layer.description(), " is called on no tensor"), where, "give it at least one"));
  std::optional<std::vector<TensorSpec>> outputs = build_from(layer, types, options, where);
  if (!outputs)
    throw UserError(error_text(text(layer.description(),
                                    " reads the values of tensors, so what it gives is not known "
                                    "before it runs"),
                               where, "use it in a CustomModel, or compute with tensors instead of their values"));
  auto call = std::make_shared<const SymbolicCall>(SymbolicCall{*this, inputs, std::move(*outputs), options});
  {
    std::lock_guard lock(layer.state().guard);
    std::erase_if(layer.state().symbolic_calls, [](const auto& known) { return known.expired(); });
    layer.state().symbolic_calls.push_back(call);
  }
  std::vector<KerasTensor> out;
  for (std::size_t r = 0; r < call->outputs.size(); ++r) out.emplace_back(call, static_cast<int>(r));
  return out;
}
KerasTensor Layer::operator()(const std::vector<KerasTensor>& inputs, CallOptions options, Where where) const {
  return call_many(inputs, options, where)[0];
}
KerasTensor Layer::operator()(const KerasTensor& x, CallOptions options, Where where) const {
  return call_many(std::vector<KerasTensor>{x}, options, where)[0];
}

namespace {

std::shared_ptr<const SymbolicCall> call_of(CustomLayer& layer, int number, const char* asked, Where where) {
  std::vector<std::shared_ptr<const SymbolicCall>> calls;
  {
    std::lock_guard lock(layer.state().guard);
    for (const std::weak_ptr<const SymbolicCall>& known : layer.state().symbolic_calls)
      if (std::shared_ptr<const SymbolicCall> call = known.lock()) calls.push_back(std::move(call));
  }
  const auto count = static_cast<int>(calls.size());
  if (count == 0)
    throw UserError(error_text(text(asked, ": ", layer.description(), " was not called on a KerasTensor"), where,
                               "layers of functional models have inputs and outputs: Dense(10)(keras::Input({784}))"));
  if (number < 0 && count > 1)
    throw UserError(error_text(text(asked, ": ", layer.description(), " was called ", count, " times"), where,
                               text("say which call: ", asked, "(0) is the first")));
  if (number >= count)
    throw UserError(error_text(
        text(asked, "(", number, "): ", layer.description(), " was called ", count, count == 1 ? " time" : " times"),
        where, "calls are counted from 0"));
  return calls[static_cast<std::size_t>(std::max(number, 0))];
}

}  // namespace

KerasTensor Layer::output(int call, Where where) const {
  return {call_of(layer_body("output", where), call, "output", where), 0};
}
KerasTensor Layer::input(int call, Where where) const {
  std::shared_ptr<const SymbolicCall> found = call_of(layer_body("input", where), call, "input", where);
  return found->inputs.empty() ? KerasTensor(found, 0) : found->inputs[0];
}

// --- arithmetic

namespace {

KerasTensor applied(const char* operation, std::vector<Operand> operands, const std::vector<KerasTensor>& inputs) {
  return Layer(std::make_shared<OperationBody>(*find_operation(operation), std::move(operands)))(inputs, {}, Where{});
}
Operand number(double value) { return {.is_number = true, .number = value}; }

}  // namespace

#define STET_KERAS_OPERATOR(op, operation)                                                                            \
  KerasTensor operator op(const KerasTensor& a, const KerasTensor& b) {                                               \
    return applied(operation, {Operand{}, Operand{}}, {a, b});                                                        \
  }                                                                                                                   \
  KerasTensor operator op(const KerasTensor& a, double b) { return applied(operation, {Operand{}, number(b)}, {a}); } \
  KerasTensor operator op(double a, const KerasTensor& b) { return applied(operation, {number(a), Operand{}}, {b}); }
STET_KERAS_OPERATOR(+, "Add")
STET_KERAS_OPERATOR(-, "Subtract")
STET_KERAS_OPERATOR(*, "Multiply")
STET_KERAS_OPERATOR(/, "TrueDivide")
#undef STET_KERAS_OPERATOR

// --- models

namespace {

/// Every call that an output needs, each after those that it uses.
void collect(const std::shared_ptr<const SymbolicCall>& call, std::set<const SymbolicCall*>& seen,
             std::vector<std::shared_ptr<const SymbolicCall>>& out) {
  if (!seen.insert(call.get()).second) return;
  for (const KerasTensor& input : call->inputs) collect(input.call(), seen, out);
  out.push_back(call);
}

}  // namespace

FunctionalBody::FunctionalBody(std::vector<KerasTensor> inputs, std::vector<KerasTensor> outputs, std::string name,
                               Where where)
    : CustomModel(std::move(name)), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
  if (inputs_.empty() || outputs_.empty())
    throw UserError(error_text(text("Model: there are no ", inputs_.empty() ? "inputs" : "outputs"), where,
                               "give at least one of each"));
  std::set<const SymbolicCall*> seen;
  for (const KerasTensor& input : inputs_) {
    input.spec(where);
    if (!seen.insert(input.call().get()).second)
      throw UserError(error_text("Model: an input is named twice", where, "name each once"));
    // What lies before an input that is no Input is not part of the model.
    calls_.push_back(input.call());
  }
  for (const KerasTensor& output : outputs_) {
    output.spec(where);
    collect(output.call(), seen, calls_);
  }
  std::map<std::string, const inside::Body*> names;
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const SymbolicCall& call = *calls_[i];
    const bool is_input = i < inputs_.size();
    if (!is_input && call.inputs.empty())
      throw UserError(error_text(
          text("Model: an output depends on the Input '", call.layer.name(), "', which is not among the inputs"), where,
          "list all of them: Model({a, b}, outputs)"));
    if (is_input && !call.inputs.empty()) continue;
    auto [known, is_new] = names.try_emplace(call.layer.name(), call.layer.body().get());
    if (!is_new && known->second != call.layer.body().get())
      throw UserError(error_text(text("Model: two layers are called '", call.layer.name(), "'"), where,
                                 "give them different names, so that their weights have different paths"));
    if (is_new) layers_.push_back(call.layer);
  }
}

ModelNames FunctionalBody::names() const {
  const ModelNames own = names_of_tensors();
  return {input_form_.names.empty() ? own.inputs : input_form_.names,
          output_form_.names.empty() ? own.outputs : output_form_.names};
}

ModelNames FunctionalBody::names_of_tensors() const {
  auto of = [](const std::vector<KerasTensor>& tensors) {
    std::vector<std::string> out;
    std::map<std::string, int> seen;
    for (const KerasTensor& one : tensors) {
      const std::string name = one.call()->layer.name();
      const int before = seen[name]++;
      out.push_back(before == 0 ? name : text(name, "_", before));
    }
    return out;
  };
  return {of(inputs_), of(outputs_)};
}

Tensors FunctionalBody::call_many(const Tensors& inputs, const Context& context) {
  if (inputs.size() != inputs_.size())
    throw UserError(error_text(text(description(), " takes ", inputs_.size(),
                                    inputs_.size() == 1 ? " tensor" : " tensors", " and was given ", inputs.size()),
                               context.where, "give it one for each of its inputs, in their order"));
  std::map<const SymbolicCall*, Tensors> values;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const SymbolicCall& call = *inputs_[i].call();
    Tensor x = inputs[i];
    if (context.masks.size() > i && context.masks[i].defined() && mask_of(x).node() != context.masks[i].node())
      x = with_mask(x, context.masks[i], context.where);
    Tensors& given = values[&call];
    given.resize(call.outputs.size());
    given[static_cast<std::size_t>(inputs_[i].number())] =
        call.inputs.empty() ? call.layer(x, {.training = context.training}, context.where) : x;
  }
  for (std::size_t i = inputs_.size(); i < calls_.size(); ++i) {
    const SymbolicCall& call = *calls_[i];
    Tensors given;
    for (const KerasTensor& input : call.inputs)
      given.push_back(values.at(input.call().get())[static_cast<std::size_t>(input.number())]);
    CallOptions options = call.options;
    if (!options.training) options.training = context.training;
    values[&call] = call.layer.call_many(given, options, context.where);
  }
  Tensors out;
  for (const KerasTensor& output : outputs_)
    out.push_back(values.at(output.call().get())[static_cast<std::size_t>(output.number())]);
  return out;
}

void FunctionalBody::visit_members(MemberVisitor& visitor) {
  for (const Layer& layer : layers_) visitor(layer.name(), layer);
}

}  // namespace stet::keras
