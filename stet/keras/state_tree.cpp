#include "stet/keras/state_tree.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "stet/base/text.h"
#include "stet/keras/input_body.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/model_config.h"
#include "stet/keras/names.h"
#include "stet/keras/operation.h"
#include "stet/keras/recurrent_body.h"

namespace stet::keras {

std::string ContainerNames::next(const std::string& class_name) {
  const std::string base = snake_case(class_name);
  for (auto& [name, count] : used_)
    if (name == base) return text(base, "_", ++count);
  used_.emplace_back(base, 0);
  return base;
}

namespace {

/// What a body lists, by its names.
class Members : public MemberVisitor {
 public:
  explicit Members(CustomLayer& of) { of.visit_members(*this); }
  std::vector<std::pair<std::string, Layer>> layers;
  std::vector<Variable> variables;

 private:
  void visit(const std::string& name, const Layer& layer) override {
    if (layer.defined()) layers.emplace_back(name, layer);
  }
  void visit(const std::string&, const Variable& variable) override {
    if (variable.defined()) variables.push_back(variable);
  }
  void visit(const std::string&, const Metric&) override {}
};

/// The name of its class in Keras's own code, where that is another than users see.
std::string class_in_keras(const CustomLayer& layer) {
  if (!layer.recipe()) return class_of_registered(layer.registered_name());
  const std::string name = layer.recipe()->class_name();
  return name == "GroupQueryAttention" ? "GroupedQueryAttention" : name;
}

/// The attribute of Keras's class that holds the member; "" where it is called as here.
std::string attribute_of(const std::string& class_name, const std::string& member, std::size_t number) {
  auto heads = [&](const char* before) {
    return text(member == "gate" ? "_" : before, member == "attention_output" ? "output" : member, "_dense");
  };
  if (class_name == "MultiHeadAttention") return heads("");
  if (class_name == "GroupedQueryAttention") return heads("_");
  if (class_name == "Bidirectional") return number == 0 ? "forward_layer" : "backward_layer";
  if (class_name == "TimeDistributed" || class_name == "SpectralNormalization") return "layer";
  return "";
}

/// Private attributes come last.
std::string attribute_order(const std::string& name) { return name.starts_with('_') ? "~" + name : name; }

class StateCollector {
 public:
  explicit StateCollector(CustomLayer& model) {
    for (Weight& weight : weights_by_path(model)) known_.emplace(weight.variable.id(), std::move(weight));
    enter(model, "");
    list(model);
  }
  std::vector<StateGroup> groups;

 private:
  void enter(CustomLayer& layer, const std::string& path) {
    if (!seen_.insert(layer.object_id()).second) return;
    const Members members(layer);
    const std::string class_name = class_in_keras(layer);
    found_[layer.object_id()] = {path, layer.name(), own_variables(layer, members, class_name)};
    auto below = [&](const std::string& name) { return path.empty() ? name : text(path, "/", name); };
    if (is_model_of_layers(layer)) return enter_list(layers_in_order(layer, members), below("layers"));
    if (class_name == "StackedRNNCells") return enter_list(layers_in_order(layer, members), below("cells"));
    struct Child {
      std::string attribute;  // Keras visits a layer by the first of its attributes, by name, that leads there
      CustomLayer* body;
      std::string path;
    };
    std::vector<Child> children;
    std::map<std::string, ContainerNames> lists;
    ContainerNames names_in_model;
    std::set<std::uint64_t> in_model;
    for (std::size_t i = 0; i < members.layers.size(); ++i) {
      const auto& [name, member] = members.layers[i];
      auto& body = static_cast<CustomLayer&>(*member.body());
      std::string attribute = dynamic_cast<RecurrentBody*>(&layer) ? "cell"
                              : layer.recipe()                     ? attribute_of(class_name, name, i)
                                                                   : "";
      // A vector lists its members as "blocks/0", "blocks/1".
      const std::size_t slash = name.rfind('/');
      if (attribute.empty() && slash != std::string::npos) {
        const std::string list = name.substr(0, slash);
        attribute = text(list, "/", lists[list].next(class_in_keras(body)));
      }
      if (attribute.empty()) attribute = name;
      children.push_back({attribute, &body, below(attribute)});
      // A model has, beside its attributes, one that lists all of its layers.
      if (dynamic_cast<CustomModel*>(&layer) && in_model.insert(body.object_id()).second)
        children.push_back({"layers", &body, below(text("layers/", names_in_model.next(class_in_keras(body))))});
    }
    std::stable_sort(children.begin(), children.end(), [](const Child& a, const Child& b) {
      return attribute_order(a.attribute.substr(0, a.attribute.find('/'))) <
             attribute_order(b.attribute.substr(0, b.attribute.find('/')));
    });
    for (const Child& child : children) enter(*child.body, child.path);
  }

  /// As Keras lists its variables, which is not the order in which it visits attributes.
  static std::vector<Layer> layers_in_order(CustomLayer& layer, const Members& members) {
    std::vector<Layer> out;
    if (auto* functional = dynamic_cast<FunctionalBody*>(&layer)) {
      for (const GraphOperation& one : operations_of(*functional))
        if (!one.is_input && !dynamic_cast<OperationBody*>(one.layer.body().get())) out.push_back(one.layer);
      return out;
    }
    for (const auto& [name, member] : members.layers)
      if (!dynamic_cast<InputLayerBody*>(member.body().get())) out.push_back(member);
    return out;
  }
  void list(CustomLayer& layer) {
    auto found = found_.find(layer.object_id());
    if (found == found_.end()) return;  // it is listed
    groups.push_back(std::move(found->second));
    found_.erase(found);
    for (const Layer& member : layers_in_order(layer, Members(layer))) list(static_cast<CustomLayer&>(*member.body()));
  }

  void enter_list(const std::vector<Layer>& layers, const std::string& path) {
    ContainerNames names;
    for (const Layer& layer : layers) {
      auto& body = static_cast<CustomLayer&>(*layer.body());
      enter(body, text(path, "/", names.next(class_in_keras(body))));
    }
  }

  std::vector<Weight> own_variables(CustomLayer& layer, const Members& members, const std::string& class_name) {
    std::vector<Variable> own;
    {
      std::lock_guard lock(layer.state().guard);
      for (const Weight& weight : layer.state().weights) own.push_back(weight.variable);
    }
    own.insert(own.end(), members.variables.begin(), members.variables.end());
    // Keras's wrapper holds the kernel too.
    if (class_name == "SpectralNormalization" && layer.recipe() && !own.empty())
      for (const Weight& one : members.layers[0].second.weights())
        if (one.path.ends_with("/kernel") || one.path.ends_with("/embeddings")) own.insert(own.begin(), one.variable);
    std::stable_partition(own.begin(), own.end(), [](const Variable& one) { return one.trainable(); });
    std::vector<Weight> out;
    for (const Variable& one : own) out.push_back(known_.at(one.id()));
    return out;
  }

  std::map<std::uint64_t, Weight> known_;  // by the ids of Variables
  std::set<std::uint64_t> seen_;           // object ids of layers
  std::map<std::uint64_t, StateGroup> found_;
};

}  // namespace

std::vector<StateGroup> state_groups(CustomLayer& model) { return StateCollector(model).groups; }

std::vector<Variable> trainable_in_keras_order(CustomLayer& model) {
  std::vector<Variable> out;
  std::set<std::uint64_t> seen;
  for (const StateGroup& group : state_groups(model))
    for (const Weight& weight : group.variables)
      if (weight.trainable && seen.insert(weight.variable.id()).second) out.push_back(weight.variable);
  return out;
}

std::vector<Weight> weights_by_path(CustomLayer& model) {
  std::vector<Weight> out = inventory(model).weights;
  for (Weight& weight : out) weight.path.erase(0, model.name().size() + 1);
  return out;
}

}  // namespace stet::keras
