#include "stet/keras/sequential.h"

#include <vector>

#include "stet/base/text.h"
#include "stet/keras/input_body.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/sequential_body.h"

namespace stet::keras {

Tensors SequentialBody::call_many(const Tensors& inputs, const Context& context) {
  Tensors out = inputs;
  CallOptions options{.training = context.training, .mask = context.mask()};
  for (const Layer& layer : layers()) {
    out = layer.call_many(out, options, context.where);
    options.mask = {};
  }
  return out;
}
void SequentialBody::visit_members(MemberVisitor& visitor) {
  for (const Layer& layer : layers()) visitor(layer.name(), layer);
}
ModelNames SequentialBody::names() const {
  std::vector<Layer> all = layers();
  if (all.empty()) return {};
  return {{all.front().name()}, {all.back().name()}};
}
std::vector<Layer> SequentialBody::layers() const {
  std::lock_guard lock(guard_);
  return layers_;
}
void SequentialBody::add(const Layer& layer, Where where) {
  std::lock_guard lock(guard_);
  check(layer, where);
  layers_.push_back(layer);
}

void SequentialBody::check(const Layer& layer, Where where) const {
  if (!layer.defined())
    throw UserError(error_text("Sequential: a layer is undefined", where, "a default-made Layer does nothing"));
  for (const Layer& other : layers_)
    if (other.name() == layer.name() && other.body() != layer.body())
      throw UserError(error_text(text("Sequential: two layers are called '", layer.name(), "'"), where,
                                 "give them different names, so that their weights have different paths"));
  if (!layers_.empty() && dynamic_cast<InputLayerBody*>(layer.body().get()))
    throw UserError(error_text("Sequential: an Input stands after another layer", where, "it is the first one"));
}

void build_if_known(SequentialBody& body, Where where) {
  std::vector<Layer> layers = body.layers();
  if (layers.size() < 2) return;
  if (auto* input = dynamic_cast<InputLayerBody*>(layers[0].body().get())) build_from(body, {input->type()}, {}, where);
}

Sequential::Sequential() : Model(std::make_shared<SequentialBody>(std::string())) {}

Sequential::Sequential(std::initializer_list<Layer> layers, SequentialOptions options, Where where)
    : Model(std::make_shared<SequentialBody>(std::move(options.name))) {
  auto& body = static_cast<SequentialBody&>(*this->body());
  for (const Layer& layer : layers) body.add(layer, where);
  build_if_known(body, where);
}

void Sequential::add(const Layer& layer, Where where) const {
  auto& body = static_cast<SequentialBody&>(layer_body("add", where));
  std::vector<Layer> before = body.layers();
  if (built() && !before.empty() && !dynamic_cast<InputLayerBody*>(before[0].body().get()))
    throw UserError(error_text(text("add: ", body.description(), " has been called already"), where,
                               "add all layers before the first call, or make another Sequential around it"));
  body.add(layer, where);
  note_layer_change(body);
  {
    std::lock_guard lock(body.state().guard);
    body.state().output.reset();
  }
  body.state().called = false;
  build_if_known(body, where);
}

}  // namespace stet::keras
