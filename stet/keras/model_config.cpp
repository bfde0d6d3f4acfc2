#include "stet/keras/model_config.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/attention_body.h"
#include "stet/keras/input_body.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/operation.h"
#include "stet/keras/recurrent_body.h"

namespace stet::keras {

bool is_model_of_layers(const CustomLayer& body) {
  return dynamic_cast<const SequentialBody*>(&body) || dynamic_cast<const FunctionalBody*>(&body);
}

// --- layers of several models

namespace {

thread_local SharedLayers* shared_layers = nullptr;

/// How many layers hold each.
class HolderCount : public MemberVisitor {
 public:
  explicit HolderCount(std::map<std::uint64_t, int>& out) : out_(out) {}

 private:
  void visit(const std::string&, const Layer& layer) override {
    if (layer.defined() && ++out_[layer.body()->object_id()] == 1)
      static_cast<CustomLayer&>(*layer.body()).visit_members(*this);
  }
  void visit(const std::string&, const Variable&) override {}
  void visit(const std::string&, const Metric&) override {}
  std::map<std::uint64_t, int>& out_;
};

const std::int64_t* number_of(const Json& entry) {
  const Json* number = entry.find("shared_object_id");
  return number ? number->if_integer() : nullptr;
}

}  // namespace

SharedLayers::SharedLayers() : outer_(std::exchange(shared_layers, this)) {}
SharedLayers::SharedLayers(CustomLayer& model) : SharedLayers() {
  HolderCount count(holders_);
  model.visit_members(count);
}
SharedLayers::~SharedLayers() { shared_layers = outer_; }
Layer SharedLayers::known(const Json& entry) {
  const std::int64_t* number = number_of(entry);
  if (!shared_layers || !number) return {};
  auto found = shared_layers->made_.find(*number);
  return found == shared_layers->made_.end() ? Layer() : found->second;
}
void SharedLayers::note(const Json& entry, const Layer& made) {
  const std::int64_t* number = number_of(entry);
  if (shared_layers && number) shared_layers->made_.emplace(*number, made);
}
void SharedLayers::number(Json& entry, const CustomLayer& layer) {
  if (!shared_layers) return;
  auto found = shared_layers->holders_.find(layer.object_id());
  if (found != shared_layers->holders_.end() && found->second > 1)
    entry["shared_object_id"] = static_cast<std::int64_t>(layer.object_id());
}

// --- the order of operations

namespace {

/// What has nodes in Keras's graph: a layer; or, of an input that is what some layer gives, the call itself.
const void* operation_key(const FunctionalBody& model, const SymbolicCall* call) {
  for (const KerasTensor& input : model.inputs())
    if (input.call().get() == call) return call;
  return call->layer.body().get();
}

}  // namespace

std::vector<GraphOperation> operations_of(const FunctionalBody& model) {
  std::set<const SymbolicCall*> inputs;
  for (const KerasTensor& input : model.inputs()) inputs.insert(input.call().get());
  // Calls from the inputs on, each after those that it uses; operations as they are met on the way there.
  std::vector<const SymbolicCall*> nodes;
  std::map<const void*, std::size_t> met;
  std::set<const SymbolicCall*> finished;
  struct Visit {
    const SymbolicCall* call;
    std::size_t next = 0;  // of its inputs
  };
  for (const KerasTensor& output : model.outputs()) {
    std::vector<Visit> way;
    auto enter = [&](const SymbolicCall* call) {
      if (finished.count(call)) return;
      met.try_emplace(operation_key(model, call), met.size());
      way.push_back({call});
    };
    enter(output.call().get());
    while (!way.empty()) {
      Visit& now = way.back();
      if (!inputs.count(now.call) && now.next < now.call->inputs.size()) {
        enter(now.call->inputs[now.next++].call().get());
        continue;
      }
      if (finished.insert(now.call).second) nodes.push_back(now.call);
      way.pop_back();
    }
  }
  // How many operations stand between a node and the outputs, at most; an operation has the largest of its nodes.
  std::map<const SymbolicCall*, std::size_t> depth_of_node;
  std::map<const void*, std::size_t> depth_of;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const void* operation = operation_key(model, *node);
    const std::size_t depth = std::max(depth_of_node[*node], depth_of[operation]);
    depth_of[operation] = depth_of_node[*node] = depth;
    if (inputs.count(*node)) continue;
    for (const KerasTensor& input : (*node)->inputs) {
      std::size_t& before = depth_of_node[input.call().get()];
      before = std::max(before, depth + 1);
    }
  }
  struct Found {
    GraphOperation operation;
    std::size_t depth = 0;
    std::int64_t met = -1;
  };
  std::vector<Found> all;
  std::map<const void*, std::size_t> number_of;
  std::set<std::string> names;
  for (const auto& shared : model.calls()) {
    const SymbolicCall* call = shared.get();
    const void* key = operation_key(model, call);
    auto [known, is_new] = number_of.try_emplace(key, all.size());
    if (is_new) {
      Found found{{call->layer, call->layer.name(), inputs.count(call) > 0, {}}};
      if (auto depth = depth_of.find(key); depth != depth_of.end()) found.depth = depth->second;
      if (auto at = met.find(key); at != met.end()) found.met = static_cast<std::int64_t>(at->second);
      // An input that another layer gives has a name of its own.
      if (found.operation.is_input && !call->inputs.empty()) found.operation.name += "_input";
      all.push_back(std::move(found));
    }
    all[known->second].operation.calls.push_back(call);
  }
  std::stable_sort(all.begin(), all.end(), [](const Found& a, const Found& b) {
    return a.depth != b.depth ? a.depth > b.depth : a.met < b.met;
  });
  std::vector<GraphOperation> out;
  for (Found& one : all) out.push_back(std::move(one.operation));
  return out;
}

// --- writing

namespace {

Json entry_of(const char* module, const char* class_name, Json config, Json registered_name) {
  Json entry;
  entry["module"] = module;
  entry["class_name"] = class_name;
  entry["config"] = std::move(config);
  entry["registered_name"] = std::move(registered_name);
  return entry;
}

Json shape_of(const TensorSpec& spec) {
  Json shape = Json::List();
  for (std::size_t axis = 0; axis < spec.shape.dims.size(); ++axis) {
    const DimSpec& dim = spec.shape.dims[axis];
    shape.push_back(axis > 0 && dim.size ? Json(*dim.size) : Json());
  }
  return shape;
}

/// A model while it is written.
class FunctionalWriter {
 public:
  FunctionalWriter(const FunctionalBody& model, Fields::Place& place)
      : model_(model), place_(place), operations_(operations_of(model)) {
    for (const GraphOperation& operation : operations_)
      for (std::size_t i = 0; i < operation.calls.size(); ++i) nodes_[operation.calls[i]] = {&operation, i};
  }

  Json write() {
    Json config;
    config["name"] = model_.name();
    config["trainable"] = model_.trainable();
    Json layers = Json::List();
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      place_.path.push_back(text("layers[", i, "]"));
      layers.push_back(write(operations_[i]));
      place_.path.pop_back();
    }
    config["layers"] = std::move(layers);
    config["input_layers"] = structure(model_.inputs(), model_.input_form());
    config["output_layers"] = structure(model_.outputs(), model_.output_form());
    return config;
  }

 private:
  struct Node {
    const GraphOperation* operation;
    std::size_t number;
  };

  Json write(const GraphOperation& operation) {
    Json entry;
    if (operation.is_input) {
      entry = input_entry(operation);
    } else if (auto* own = dynamic_cast<OperationBody*>(operation.layer.body().get())) {
      Json config;
      config["name"] = operation.name;
      entry = entry_of(own->row().module, own->row().class_name, std::move(config), own->row().class_name);
    } else {
      entry = to_config(operation.layer, place_);
    }
    entry["name"] = operation.name;
    Json nodes = Json::List();
    if (!operation.is_input)
      for (const SymbolicCall* call : operation.calls) nodes.push_back(node(*call));
    entry["inbound_nodes"] = std::move(nodes);
    return entry;
  }

  Json input_entry(const GraphOperation& operation) {
    const KerasTensor& input = *std::find_if(model_.inputs().begin(), model_.inputs().end(),
                                             [&](const auto& one) { return one.call().get() == operation.calls[0]; });
    const TensorSpec& spec = input.spec();
    Json config;
    config["batch_shape"] = shape_of(spec);
    config["dtype"] = keras_name(spec.dtype);
    config["sparse"] = false;
    config["name"] = operation.name;
    return entry_of("keras.layers", "InputLayer", std::move(config), nullptr);
  }

  /// ["dense", 0, 0]. Keras counts the nodes of functional models from 1 in lists of inputs and outputs, and from 0 in
  /// arguments of calls.
  Json history(const KerasTensor& tensor, bool in_lists) const {
    const Node& node = nodes_.at(tensor.call().get());
    const bool from_one =
        in_lists && !node.operation->is_input && dynamic_cast<FunctionalBody*>(node.operation->layer.body().get());
    // What an input gives is its only tensor, whatever number it has where it comes from.
    const int number = node.operation->is_input ? 0 : tensor.number();
    return Json::List{node.operation->name, static_cast<std::int64_t>(node.number + (from_one ? 1 : 0)), number};
  }

  Json structure(const std::vector<KerasTensor>& tensors, const TensorsForm& form) const {
    if (form.kind != TensorsForm::Kind::list && form.kind != TensorsForm::Kind::named && tensors.size() == 1)
      return history(tensors[0], true);
    if (form.kind == TensorsForm::Kind::named) {
      Json out = Json::Object();
      for (std::size_t i = 0; i < tensors.size(); ++i) out[form.names[i]] = history(tensors[i], true);
      return out;
    }
    Json out = Json::List();
    for (const KerasTensor& tensor : tensors) out.push_back(history(tensor, true));
    return out;
  }

  Json keras_tensor(const KerasTensor& tensor) const {
    const TensorSpec& spec = tensor.spec();
    Json config;
    config["shape"] = shape_of(spec);
    config["dtype"] = keras_name(spec.dtype);
    config["keras_history"] = history(tensor, false);
    Json out;
    out["class_name"] = "__keras_tensor__";
    out["config"] = std::move(config);
    return out;
  }
  Json keras_tensors(const std::vector<KerasTensor>& tensors, std::size_t begin) const {
    Json out = Json::List();
    for (std::size_t i = begin; i < tensors.size(); ++i) out.push_back(keras_tensor(tensors[i]));
    return out;
  }

  /// A call as Keras would have been told of it.
  Json node(const SymbolicCall& call) {
    const auto& layer = static_cast<const CustomLayer&>(*call.layer.body());
    if (call.options.training)
      place_.fail(text(layer.description(), " is called with training = ", *call.options.training ? "true" : "false"),
                  "Keras's files do not keep that: leave it to fit() and predict(), or freeze the layer");
    if (call.options.mask.defined())
      place_.fail(text(layer.description(), " is called with a mask that is given by hand"),
                  "Keras's files keep masks that come along with tensors: use Masking, or an Embedding with mask_zero");
    Json args = Json::List(), kwargs = Json::Object();
    const auto* attention = dynamic_cast<const AttentionArguments*>(call.options.arguments.get());
    if (const auto* recurrent = dynamic_cast<const RecurrentArguments*>(call.options.arguments.get());
        recurrent && recurrent->return_state)
      place_.fail(text(layer.description(), " is asked for its state in one call"),
                  "make it with .return_state = true, which Keras's files keep");
    if (const auto* operation = dynamic_cast<const OperationBody*>(&layer)) {
      std::size_t next = 0;
      for (const Operand& one : operation->operands())
        args.push_back(!one.is_number   ? keras_tensor(call.inputs[next++])
                       : one.is_integer ? Json(static_cast<std::int64_t>(one.number))
                                        : Json(one.number));
    } else if (takes_heads(layer)) {
      // query, value, key, attention_mask
      for (std::size_t i = 0; i < call.inputs.size() && i < 3; ++i) args.push_back(keras_tensor(call.inputs[i]));
      if (call.inputs.size() > 3) kwargs["attention_mask"] = keras_tensor(call.inputs[3]);
    } else if (takes_states(layer)) {
      args.push_back(keras_tensor(call.inputs[0]));
      if (call.inputs.size() > 1) kwargs["initial_state"] = keras_tensors(call.inputs, 1);
    } else if (const auto* model = dynamic_cast<const FunctionalBody*>(&layer);
               model && model->input_form().kind == TensorsForm::Kind::named) {
      Json named = Json::Object();
      for (std::size_t i = 0; i < call.inputs.size(); ++i)
        named[model->input_form().names[i]] = keras_tensor(call.inputs[i]);
      args.push_back(std::move(named));
    } else if (call.inputs.size() == 1 && !takes_lists(layer)) {
      args.push_back(keras_tensor(call.inputs[0]));
    } else {
      if (attention && call.inputs.size() > 3)
        place_.fail(text(layer.description(), " is called with an attention_mask"),
                    "in Keras MultiHeadAttention takes one, and this layer does not");
      args.push_back(keras_tensors(call.inputs, 0));
    }
    if (attention) {
      if (attention->use_causal_mask) kwargs["use_causal_mask"] = true;
      if (attention->return_attention_scores) kwargs["return_attention_scores"] = true;
    }
    Json out;
    out["args"] = std::move(args);
    out["kwargs"] = std::move(kwargs);
    return out;
  }

  static bool named(const CustomLayer& layer, std::initializer_list<std::string_view> classes) {
    const RecipePointer& recipe = layer.recipe();
    return recipe && std::find(classes.begin(), classes.end(), recipe->class_name()) != classes.end();
  }
  static bool takes_heads(const CustomLayer& layer) {
    return named(layer, {"MultiHeadAttention", "GroupQueryAttention"});
  }
  static bool takes_states(const CustomLayer& layer) { return dynamic_cast<const KeepsState*>(&layer); }
  /// Even of one tensor.
  static bool takes_lists(const CustomLayer& layer) {
    return named(layer, {"Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate", "Dot"});
  }

  const FunctionalBody& model_;
  Fields::Place& place_;
  const std::vector<GraphOperation> operations_;
  std::map<const SymbolicCall*, Node> nodes_;
};

Json sequential_config(const SequentialBody& model, Fields::Place& place) {
  Json config;
  config["name"] = model.name();
  config["trainable"] = model.trainable();
  Json layers = Json::List();
  const std::vector<Layer> all = model.layers();
  for (std::size_t i = 0; i < all.size(); ++i) {
    place.path.push_back(text("layers[", i, "]"));
    layers.push_back(to_config(all[i], place));
    place.path.pop_back();
  }
  config["layers"] = std::move(layers);
  std::vector<LayerState::InputType> inputs;
  {
    std::lock_guard lock(model.state().guard);
    inputs = model.state().inputs;
  }
  if (inputs.empty()) return config;
  config["build_input_shape"] = sizes_to_config(inputs[0].sizes);
  // Keras does not ask for it: its layers make of the input what they need.
  if (inputs[0].dtype != DType::f32) config["build_input_dtype"] = keras_name(inputs[0].dtype);
  return config;
}

}  // namespace

Json model_to_config(const CustomModel& body, Fields::Place& place) {
  if (const auto* sequential = dynamic_cast<const SequentialBody*>(&body))
    return entry_of("keras", "Sequential", sequential_config(*sequential, place), nullptr);
  const auto& functional = dynamic_cast<const FunctionalBody&>(body);
  return entry_of("keras.src.models.functional", "Functional", FunctionalWriter(functional, place).write(),
                  "Functional");
}

// --- reading

namespace {

constexpr const char* again = "write the file again, with the library that it comes from";

const Json& member(const Json& of, const char* name, const char* whose, Fields::Place& place) {
  const Json* found = of.find(name);
  if (!found) place.fail(text(whose, " has no '", name, "'"), again);
  return *found;
}
const Json::List& list_member(const Json& of, const char* name, const char* whose, Fields::Place& place) {
  const Json& found = member(of, name, whose, place);
  const Json::List* list = list_of(found);
  if (!list) place.fail(text("its '", name, "' is ", found.kind(), " where a list should stand"), again);
  return *list;
}

/// The tensor that a call gives: of which layer, in which of its calls, and which of the results.
struct Reference {
  std::size_t layer = 0, node = 0, tensor = 0;
};

class FunctionalReader {
 public:
  FunctionalReader(Fields& fields, Fields::Place& place) : fields_(fields), place_(place) {}

  Layer read() {
    std::string name;
    fields_("name", name);
    fields_.take("trainable");
    read_layers();
    const Json* inputs = fields_.take("input_layers");
    const Json* outputs = fields_.take("output_layers");
    fields_.finish("Functional");
    call_all();
    TensorsForm input_form, output_form;
    const std::vector<KerasTensor> given = tensors(inputs, "input_layers", input_form);
    const std::vector<KerasTensor> results = tensors(outputs, "output_layers", output_form);
    Model model = made_of(place_, [&] { return Model(given, results, {.name = name}, place_.where); });
    static_cast<FunctionalBody&>(*model.body()).set_forms(std::move(input_form), std::move(output_form));
    return model;
  }

 private:
  struct Node {
    std::vector<Reference> inputs = {};
    CallOptions options = {};
    std::vector<Operand> operands = {};  // of an operation
    std::vector<KerasTensor> outputs = {};
    std::size_t waits_for = 0;
    std::vector<std::pair<std::size_t, std::size_t>> waiting = {};  // layers and nodes
  };
  struct Member {
    Layer layer = {};  // of an operation, made with its only node
    const OperationRow* operation = nullptr;
    std::string name;
    std::vector<Node> nodes;
    std::vector<const Json*> calls;
    bool is_input = false;
  };

  void read_layers() {
    const Json* list = fields_.take("layers");
    const Json::List* entries = list ? list_of(*list) : nullptr;
    if (!entries) place_.fail("its 'layers' are no list", again);
    for (std::size_t i = 0; i < entries->size(); ++i) {
      place_.path.push_back(text("layers[", i, "]"));
      read_layer((*entries)[i]);
      place_.path.pop_back();
    }
    for (std::size_t i = 0; i < members_.size(); ++i) {
      place_.path.push_back(text("layers[", i, "] '", members_[i].name, "'"));
      for (const Json* call : members_[i].calls) members_[i].nodes.push_back(read_node(members_[i], *call));
      place_.path.pop_back();
    }
  }

  void read_layer(const Json& entry) {
    Member one;
    const Json* name = entry.find("name");
    if (!name && entry.find("config")) name = entry.find("config")->find("name");
    if (!name || !name->if_string()) place_.fail("a layer has no name", again);
    one.name = *name->if_string();
    const bool custom = custom_factory(entry, place_);
    const ClassEntry found = custom ? ClassEntry{} : class_entry(entry, "layer", place_);
    if (found.module.rfind("keras.src.ops.", 0) == 0) {
      one.operation = find_operation(found.class_name);
      if (!one.operation)
        place_.fail(text("there is no operation '", found.class_name, "' of ", found.module, " here"),
                    "use a layer of Keras's in its place, or load the weights alone into a model made here");
    } else {
      one.layer = layer_from_config(entry, place_);
      if (const auto* input = dynamic_cast<InputLayerBody*>(one.layer.body().get())) {
        one.is_input = true;
        one.layer = with_names(*input);
      }
    }
    if (!number_of_.try_emplace(one.name, members_.size()).second)
      place_.fail(text("two layers are called '", one.name, "'"), again);
    for (const Json& call : list_member(entry, "inbound_nodes", "a layer", place_)) one.calls.push_back(&call);
    if (one.is_input && !one.calls.empty()) place_.fail("an InputLayer is called", again);
    if (one.operation && one.calls.size() != 1)
      place_.fail(text("an operation is called ", one.calls.size(), " times"), again);
    if (one.is_input) {
      Node node;
      node.outputs = {KerasTensor(Input::from_body(one.layer.body()))};
      one.nodes.push_back(std::move(node));
    }
    members_.push_back(std::move(one));
  }

  /// Keras says of sizes that they are not known; whether those of two inputs are the same is seen when they come.
  /// Layers that need the same are given the same here: nothing needs different ones.
  Layer with_names(const InputLayerBody& input) {
    ShapeSpec shape = input.shape;
    for (std::size_t axis = 0; axis < shape.dims.size(); ++axis)
      if (!shape.dims[axis].size && shape.dims[axis].name.empty()) shape.dims[axis].name = text("size_", axis + 1);
    return Input(shape, {.dtype = input.dtype, .name = input.name()}, place_.where);
  }

  /// ["dense", 0, 0].
  Reference reference(const Json& value, bool in_lists) {
    const Json::List* parts = list_of(value);
    const std::string* name = parts && parts->size() == 3 ? (*parts)[0].if_string() : nullptr;
    const std::int64_t* node = name ? (*parts)[1].if_integer() : nullptr;
    const std::int64_t* tensor = name ? (*parts)[2].if_integer() : nullptr;
    if (!node || !tensor)
      place_.fail(text("a tensor is ", value.kind(), " where [layer, call, result] should stand"), again);
    auto known = number_of_.find(*name);
    if (known == number_of_.end())
      place_.fail(text("a tensor comes from '", *name, "', and no layer is called so"), again);
    const Member& from = members_[known->second];
    const bool from_one = in_lists && from.layer.defined() && dynamic_cast<FunctionalBody*>(from.layer.body().get());
    const std::int64_t number = *node - (from_one ? 1 : 0);
    const std::size_t count = from.is_input ? 1 : from.calls.size();
    if (number < 0 || static_cast<std::size_t>(number) >= count)
      place_.fail(text("a tensor comes from call ", number, " of '", *name, "', which is called ", count,
                       count == 1 ? " time" : " times"),
                  again);
    if (*tensor < 0) place_.fail(text("a tensor is result ", *tensor, " of '", *name, "'"), again);
    return {known->second, static_cast<std::size_t>(number), static_cast<std::size_t>(*tensor)};
  }
  /// What {"class_name": "__keras_tensor__", …} stands for; none if it is something else.
  std::optional<Reference> tensor(const Json& value) {
    const Json* kind = value.find("class_name");
    if (!kind || !(*kind == Json("__keras_tensor__"))) return std::nullopt;
    return reference(member(member(value, "config", "a tensor", place_), "keras_history", "a tensor", place_), false);
  }
  /// All tensors of an argument: one, a list, or by names in their order.
  void add_tensors(const Json& value, const char* what, std::vector<Reference>& out) {
    if (value.is_null()) return;
    if (std::optional<Reference> one = tensor(value)) return out.push_back(*one);
    if (const Json::List* list = list_of(value)) {
      for (const Json& item : *list) add_tensors(item, what, out);
      return;
    }
    const Json::Object* named = value.if_object();
    if (!named || value.find("class_name"))
      place_.fail(text("its call is given ", value.kind(), " as ", what, " where tensors should stand"),
                  "call the layer on tensors alone; or load the weights alone into a model made here");
    std::vector<const Json::Member*> sorted;
    for (const Json::Member& item : *named) sorted.push_back(&item);
    std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
    for (const Json::Member* item : sorted) add_tensors(item->second, what, out);
  }

  Node read_node(const Member& of, const Json& call) {
    Node node;
    const Json::List& args = list_member(call, "args", "a call", place_);
    const Json& kwargs = member(call, "kwargs", "a call", place_);
    if (!kwargs.if_object()) place_.fail(text("its 'kwargs' are ", kwargs.kind()), again);
    if (of.operation)
      read_operands(*of.operation, args, kwargs, node);
    else
      read_arguments(static_cast<CustomLayer&>(*of.layer.body()), args, kwargs, node);
    return node;
  }

  void read_operands(const OperationRow& row, const Json::List& args, const Json& kwargs, Node& node) {
    if (!kwargs.if_object()->empty())
      place_.fail(text("its call has an argument '", kwargs.if_object()->front().first, "'"),
                  "operations take tensors and numbers alone");
    std::size_t numbers = 0;
    for (const Json& arg : args) {
      Operand operand;
      if (std::optional<Reference> one = tensor(arg)) {
        node.inputs.push_back(*one);
      } else if (arg.if_integer() || arg.if_real()) {
        operand = {true, arg.if_real() ? *arg.if_real() : static_cast<double>(*arg.if_integer()), !arg.if_real()};
        ++numbers;
      } else {
        place_.fail(text("it is given ", arg.kind(), " where a tensor or a number should stand"), again);
      }
      node.operands.push_back(operand);
    }
    if (static_cast<int>(args.size()) != row.operands() || node.inputs.empty() || (numbers > 0 && !row.with_number))
      place_.fail(text("it is given ", node.inputs.size(), " tensors and ", numbers, " numbers"),
                  text("it takes ", row.operands(), row.operands() == 1 ? " tensor" : " operands"));
  }

  void read_arguments(const CustomLayer& layer, const Json::List& args, const Json& kwargs, Node& node) {
    const RecipePointer& recipe = layer.recipe();
    const std::string_view class_name = recipe ? recipe->class_name() : "";
    const bool heads = class_name == "MultiHeadAttention" || class_name == "GroupQueryAttention";
    if (heads) return read_heads(args, kwargs, node);
    for (const Json& arg : args) add_tensors(arg, "an argument", node.inputs);
    auto attention = std::make_shared<AttentionArguments>();
    for (const auto& [name, value] : *kwargs.if_object()) {
      if (ignored(name, value)) continue;
      if (name == "initial_state" || name == "inputs" || name == "sequences" || name == "sequence")
        add_tensors(value, name.c_str(), node.inputs);
      else if (!attention_flag(class_name == "Attention" || class_name == "AdditiveAttention", name, value, *attention))
        refuse(name);
    }
    note(std::move(attention), node);
  }

  void read_heads(const Json::List& args, const Json& kwargs, Node& node) {
    constexpr const char* names[] = {"query", "value", "key", "query_mask", "value_mask", "key_mask", "attention_mask"};
    std::map<std::string, Reference, std::less<>> given;
    auto add = [&](const std::string& name, const Json& value) {
      if (value.is_null()) return;
      std::optional<Reference> one = tensor(value);
      if (!one || name.ends_with("_mask") != (name == "attention_mask")) refuse(name);
      if (!given.emplace(name, *one).second) place_.fail(text("its call is given '", name, "' twice"), again);
    };
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (i >= std::size(names)) refuse(text("number ", i));
      add(names[i], args[i]);
    }
    auto attention = std::make_shared<AttentionArguments>();
    for (const auto& [name, value] : *kwargs.if_object()) {
      if (ignored(name, value)) continue;
      if (std::find(std::begin(names), std::end(names), name) != std::end(names))
        add(name, value);
      else if (!attention_flag(true, name, value, *attention))
        refuse(name);
    }
    if (!given.contains("query") || !given.contains("value")) place_.fail("its call has no query, or no value", again);
    node.inputs = {given["query"], given["value"]};
    const bool masked = given.contains("attention_mask");
    if (given.contains("key") || masked) node.inputs.push_back(given.contains("key") ? given["key"] : given["value"]);
    if (masked) node.inputs.push_back(given["attention_mask"]);
    note(std::move(attention), node);
  }

  /// What says nothing, and `training`, which fit() and predict() set for all layers in Keras too.
  static bool ignored(const std::string& name, const Json& value) {
    if (name == "training" || value.is_null()) return true;
    const Json::List* list = name == "mask" ? list_of(value) : nullptr;
    return list && std::all_of(list->begin(), list->end(), [](const Json& one) { return one.is_null(); });
  }
  [[noreturn]] void refuse(const std::string& argument) {
    place_.fail(text("its call has an argument '", argument, "', which calls do not take here"),
                "make the model without it; or load the weights alone into a model made here");
  }
  bool attention_flag(bool takes, const std::string& name, const Json& value, AttentionArguments& to) {
    bool* flag = name == "use_causal_mask"           ? &to.use_causal_mask
                 : name == "return_attention_scores" ? &to.return_attention_scores
                                                     : nullptr;
    if (!takes || !flag || !value.if_bool()) return false;
    *flag = *value.if_bool();
    return true;
  }
  static void note(std::shared_ptr<AttentionArguments> attention, Node& node) {
    if (attention->use_causal_mask || attention->return_attention_scores) node.options.arguments = std::move(attention);
  }

  /// Every call when all that it uses is there. A layer's own calls come in their order.
  void call_all() {
    std::deque<std::pair<std::size_t, std::size_t>> ready;
    std::size_t left = 0;
    for (std::size_t l = 0; l < members_.size(); ++l) {
      if (members_[l].is_input) continue;
      for (std::size_t n = 0; n < members_[l].nodes.size(); ++n, ++left) {
        Node& node = members_[l].nodes[n];
        auto wait_for = [&](std::size_t layer, std::size_t number) {
          if (members_[layer].is_input) return;
          members_[layer].nodes[number].waiting.emplace_back(l, n);
          ++node.waits_for;
        };
        for (const Reference& input : node.inputs) wait_for(input.layer, input.node);
        if (n > 0) wait_for(l, n - 1);
        if (node.inputs.empty()) place_.fail(text("'", members_[l].name, "' is called on no tensor"), again);
        if (node.waits_for == 0) ready.emplace_back(l, n);
      }
    }
    for (; !ready.empty(); ready.pop_front(), --left) {
      const auto [l, n] = ready.front();
      call(l, n);
      for (const auto& [layer, number] : members_[l].nodes[n].waiting)
        if (--members_[layer].nodes[number].waits_for == 0) ready.emplace_back(layer, number);
    }
    if (left > 0) {
      for (const Member& one : members_)
        for (const Node& node : one.nodes)
          if (node.waits_for > 0) place_.fail(text("'", one.name, "' is called on what it gives itself"), again);
    }
  }

  KerasTensor value(const Reference& reference) {
    const Node& node = members_[reference.layer].nodes[reference.node];
    if (reference.tensor >= node.outputs.size())
      place_.fail(text("a tensor is result ", reference.tensor, " of '", members_[reference.layer].name,
                       "', which gives ", node.outputs.size()),
                  again);
    return node.outputs[reference.tensor];
  }

  void call(std::size_t l, std::size_t n) {
    Member& member = members_[l];
    Node& node = member.nodes[n];
    place_.path.push_back(text("layers[", l, "] '", member.name, "'"));
    std::vector<KerasTensor> inputs;
    for (const Reference& input : node.inputs) inputs.push_back(value(input));
    if (member.operation) member.layer = std::make_shared<OperationBody>(*member.operation, node.operands, member.name);
    node.outputs = made_of(place_, [&] { return member.layer.call_many(inputs, node.options, place_.where); });
    place_.path.pop_back();
  }

  /// ["dense", 0, 0], or a list or an object of such.
  std::vector<KerasTensor> tensors(const Json* value, const char* name, TensorsForm& form) {
    if (!value) place_.fail(text("it has no '", name, "'"), again);
    std::vector<KerasTensor> out;
    place_.path.push_back(name);
    auto add = [&](const Json& one) { out.push_back(this->value(reference(one, true))); };
    if (const Json::Object* named = value->if_object(); named && !list_of(*value)) {
      form.kind = TensorsForm::Kind::named;
      std::map<std::string, const Json*> sorted;  // as Keras numbers them
      for (const auto& [key, one] : *named) sorted.emplace(key, &one);
      for (const auto& [key, one] : sorted) {
        form.names.push_back(key);
        add(*one);
      }
    } else {
      const Json::List* list = list_of(*value);
      if (!list) place_.fail(text("they are ", value->kind()), again);
      if (list->size() == 3 && (*list)[0].if_string()) {
        form.kind = TensorsForm::Kind::single;
        add(*value);
      } else {
        form.kind = TensorsForm::Kind::list;
        for (const Json& one : *list) add(one);
      }
    }
    place_.path.pop_back();
    return out;
  }

  Fields& fields_;
  Fields::Place& place_;
  std::vector<Member> members_;
  std::map<std::string, std::size_t, std::less<>> number_of_;
};

/// A batch of what the sizes say; none if they are no sizes.
std::optional<TensorSpec> batch_type(const Json& sizes, DType dtype) {
  const Json::List* list = list_of(sizes);
  if (!list || list->empty()) return std::nullopt;
  TensorSpec out{.dtype = dtype, .shape = {dyn("batch")}};
  for (std::size_t axis = 1; axis < list->size(); ++axis) {
    const std::int64_t* size = (*list)[axis].if_integer();
    if (!size && !(*list)[axis].is_null()) return std::nullopt;
    if (size && *size < 0) return std::nullopt;
    out.shape.dims.push_back(size ? DimSpec(*size) : DimSpec(dyn));
  }
  return out;
}

Layer read_sequential(Fields& fields) {
  Fields::Place& place = fields.place();
  std::string name;
  fields("name", name);
  fields.take("trainable");
  fields.take("dtype");  // of its layers, each of which has its own
  std::vector<Layer> layers;
  fields("layers", layers);
  const Json* sizes = fields.take("build_input_shape");
  std::optional<DType> input_dtype;
  fields("build_input_dtype", input_dtype);
  fields.finish("Sequential");
  auto body = std::make_shared<SequentialBody>(name);
  Layer model(body);
  made_of(place, [&] {
    for (const Layer& layer : layers) body->add(layer, place.where);
    build_if_known(*body, place.where);
    return true;
  });
  const bool has_input = !layers.empty() && dynamic_cast<InputLayerBody*>(layers[0].body().get());
  if (!sizes || sizes->is_null() || has_input || layers.empty()) return model;
  if (!input_dtype) {
    // Keras does not say of which type the input was: numbers of words or categories where the first layer takes them.
    constexpr std::string_view of_integers[] = {"CategoryEncoding", "Embedding", "HashedCrossing", "Hashing",
                                                "IntegerLookup"};
    const RecipePointer& first = dynamic_cast<const Recorded&>(*layers[0].body()).recipe();
    const bool integers = first && std::find(std::begin(of_integers), std::end(of_integers), first->class_name()) !=
                                       std::end(of_integers);
    input_dtype = integers ? DType::i64 : DType::f32;
  }
  const std::optional<TensorSpec> input = batch_type(*sizes, *input_dtype);
  if (!input) fields.wrong("build_input_shape", *sizes, "the sizes of a batch");
  made_of(place, [&] { return build_from(*body, {*input}, {}, place.where).has_value(); });
  return model;
}

}  // namespace

void build_as_saved(CustomModel& model, const Json& entry, Fields::Place& place) {
  if (model.state().called.load(std::memory_order_acquire)) return;  // by its factory
  const Json* build = entry.find("build_config");
  const Json* shape = build ? build->find("input_shape") : nullptr;
  const Json::List* list = shape ? list_of(*shape) : nullptr;
  if (!list || list->empty()) return;
  // Several inputs are a list of lists.
  Json::List shapes = list_of((*list)[0]) ? *list : Json::List{*shape};
  const Json* types = build->find("input_dtypes");
  std::vector<TensorSpec> inputs;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    DType dtype = DType::f32;  // Keras does not say
    if (const Json::List* all = types ? list_of(*types) : nullptr; all && i < all->size() && (*all)[i].if_string())
      dtype = type_from_keras(*(*all)[i].if_string()).value_or(dtype);
    std::optional<TensorSpec> one = batch_type(shapes[i], dtype);
    if (!one) return;
    inputs.push_back(std::move(*one));
  }
  made_of(place, [&] { return build_from(model, inputs, {}, place.where).has_value(); });
}

namespace {

/// Beside the classes that register themselves.
struct SavableModels {
  SavableModels() {
    auto& all = Registry<Layer>::entries();
    all["Sequential"] = {"keras", read_sequential};
    all["Functional"] = all["Model"] = {"keras.src.models.functional",
                                        [](Fields& fields) { return FunctionalReader(fields, fields.place()).read(); }};
  }
};
const SavableModels savable_models;

}  // namespace
}  // namespace stet::keras
