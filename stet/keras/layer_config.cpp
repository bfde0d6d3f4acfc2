#include "stet/keras/layer_config.h"

#include <limits>
#include <string_view>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/config.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/model.h"

namespace stet::keras {

// --- what users see

namespace {

/// The kinds of values that may be null: none.
template <class T>
constexpr bool may_be_none = OneOf<T, ActivationFunction, Initializer, Regularizer, Constraint>;

}  // namespace

template <ConfigValue T>
void LayerConfig::set(const std::string& name, const T& value) {
  if (fields_.reading()) fields_.place().fail(text("'", name, "' is set in a factory"), "get_config() sets values");
  if (name == "name" || name == "trainable")
    fields_.place().fail(text("get_config() sets '", name, "'"), "that is written without its doing");
  if (!names_.insert(name).second)
    fields_.place().fail(text("get_config() sets '", name, "' twice"), "give each value a name of its own");
  if constexpr (std::same_as<T, float>) {
    double wide = value;
    fields_(name.c_str(), wide);
  } else if constexpr (std::same_as<T, Initializer>) {
    Initializer copy = value;
    if (copy.defined())
      fields_(name.c_str(), copy, "");
    else
      fields_.put(name.c_str(), nullptr);
  } else {
    T copy = value;  // fields serve reading too, so they take variables
    fields_(name.c_str(), copy);
  }
}

template <ConfigValue T>
T LayerConfig::get(const std::string& name) const {
  const bool there = has(name);  // or null, which some may be
  if (!there && !(may_be_none<T> && fields_.take(name.c_str())))
    fields_.place().fail(text("it has no '", name, "'"),
                         text("get_config() of its class should set it; or give a value for where it is missing: "
                              "config.get<…>(\"",
                              name, "\", …)"));
  if constexpr (std::same_as<T, float>) {
    double wide = 0;
    fields_(name.c_str(), wide);
    if (wide > std::numeric_limits<float>::max() || wide < std::numeric_limits<float>::lowest()) {
      if (wide - wide == 0) fields_.wrong(name.c_str(), *fields_.take(name.c_str()), "a number that fits f32");
    }
    return static_cast<float>(wide);
  } else if constexpr (std::same_as<T, Initializer>) {
    Initializer value;
    fields_(name.c_str(), value, "");
    return value;
  } else {
    T value{};
    fields_(name.c_str(), value);
    return value;
  }
}

bool LayerConfig::has(const std::string& name) const {
  if (!fields_.reading()) fields_.place().fail(text("get_config() asks for '", name, "'"), "factories read values");
  const Json* found = fields_.take(name.c_str());
  return found && !found->is_null();
}

void LayerConfig::ignore(const std::string& name) const { has(name); }

#define STET_CONFIG_VALUE(...)                                                                  \
  template STET_API void LayerConfig::set<__VA_ARGS__>(const std::string&, const __VA_ARGS__&); \
  template STET_API __VA_ARGS__ LayerConfig::get<__VA_ARGS__>(const std::string&) const;
STET_CONFIG_VALUE(bool)
STET_CONFIG_VALUE(int)
STET_CONFIG_VALUE(std::int64_t)
STET_CONFIG_VALUE(float)
STET_CONFIG_VALUE(double)
STET_CONFIG_VALUE(std::string)
STET_CONFIG_VALUE(DType)
STET_CONFIG_VALUE(std::vector<int>)
STET_CONFIG_VALUE(std::vector<std::int64_t>)
STET_CONFIG_VALUE(std::vector<double>)
STET_CONFIG_VALUE(std::vector<std::string>)
STET_CONFIG_VALUE(Tensor)
STET_CONFIG_VALUE(DTypePolicy)
STET_CONFIG_VALUE(ActivationFunction)
STET_CONFIG_VALUE(Initializer)
STET_CONFIG_VALUE(Regularizer)
STET_CONFIG_VALUE(Constraint)
STET_CONFIG_VALUE(Layer)
STET_CONFIG_VALUE(std::vector<Layer>)
#undef STET_CONFIG_VALUE

// --- entries

struct WrittenNames {
  /// The base class's get_config() ran, and nothing else.
  static bool none(const LayerConfig& config) { return config.is_base_ && config.names_.empty(); }
  static bool contain(const LayerConfig& config, const char* name) { return config.names_.contains(name); }
};

namespace {

/// {"input_shape": [null, 4]}, by which Keras builds models of users' classes when it loads them; with it, what Keras
/// does not ask for, their types.
Json build_config_of(const CustomLayer& layer) {
  std::vector<LayerState::InputType> inputs;
  {
    std::lock_guard lock(layer.state().guard);
    inputs = layer.state().inputs;
  }
  Json shapes = Json::List(), types = Json::List();
  for (const LayerState::InputType& input : inputs) {
    if (input.sizes.empty()) return Json::Object();  // one was left out, which Keras has no word for
    shapes.push_back(sizes_to_config(input.sizes));
    types.push_back(keras_name(input.dtype));
  }
  Json out;
  out["input_shape"] = inputs.size() == 1 ? (*shapes.if_list())[0] : std::move(shapes);
  out["input_dtypes"] = std::move(types);
  return out;
}

}  // namespace

Json custom_to_config(const CustomLayer& layer, Fields::Place& place) {
  Fields fields(place, &layer);
  std::string name;
  fields.layer_name(name);
  LayerConfig config(fields);
  try {
    layer.get_config(config);
  } catch (const UserError& error) {
    if (place.failed) throw;
    place.fail(error);
  }
  if (WrittenNames::none(config))
    place.fail(text(layer.class_name(), " is a class of your own that has no get_config()"),
               text("override get_config(keras::LayerConfig&) in it to write what it is made from, and give "
                    "load_model() a factory, {.custom_layers = {{\"",
                    layer.registered_name(), "\", …}}}; or save the weights alone"));
  if (!WrittenNames::contain(config, "dtype")) fields.no_dtype();
  const std::string registered = layer.registered_name();
  Json entry;
  entry["module"] = nullptr;
  entry["class_name"] = class_of_registered(registered);
  entry["config"] = std::move(fields).written();
  entry["registered_name"] = registered;
  if (dynamic_cast<const CustomModel*>(&layer)) entry["build_config"] = build_config_of(layer);
  return entry;
}

std::string class_of_registered(const std::string& registered_name) {
  return registered_name.substr(registered_name.rfind('>') + 1);  // npos + 1 is 0
}

const LayerFactory* custom_factory(const Json& entry, const Fields::Place& place) {
  if (!place.custom_layers) return nullptr;
  for (const char* by : {"registered_name", "class_name"}) {
    const Json* name = entry.find(by);
    if (!name || !name->if_string()) continue;
    auto found = place.custom_layers->find(*name->if_string());
    if (found != place.custom_layers->end()) return &found->second;
  }
  return nullptr;
}

Layer custom_from_config(const LayerFactory& factory, const Json& entry, Fields::Place& place) {
  const Json* class_name = entry.find("class_name");
  const Json* members = entry.find("config");
  if (!class_name || !class_name->if_string() || !members || !members->if_object())
    place.fail("a layer has no 'class_name' or no 'config'",
               "write the file again, with the library that it comes from");
  place.path.push_back(*class_name->if_string());
  if (!factory) place.fail("its factory is empty", "give a function that makes the layer");
  Fields fields(*members, place);
  const LayerConfig config(fields);
  const inside::Body mark;  // what is made from here on has larger numbers
  const std::vector<std::string> path = place.path;
  Layer layer;
  try {
    layer = factory(config);
  } catch (const UserError& error) {
    // Not the one that it has caught before.
    if (place.failed && std::string_view(error.what()).starts_with(place.reading->call + ": '")) throw;
    place.path = path;
    place.fail(error);
  }
  place.path = path;  // the factory may have caught an error
  place.failed = false;
  if (!layer.defined()) place.fail("its factory gives an undefined layer", "let it return the layer that it makes");
  if (layer.body()->object_id() < mark.object_id())
    place.fail(text("its factory gives ", layer.body()->description(), ", which was there before"),
               "let it make a new layer at each call: this one's weights would be overwritten");

  std::string name;
  fields.name_only(name);
  for (const char* of_all : {"trainable", "autocast"}) fields.take(of_all);
  DTypePolicy policy;
  if (const Json* dtype = members->find("dtype"); dtype && *dtype == Json("float32")) fields.take("dtype");
  for (const std::string& left : fields.left()) {
    if (left == "dtype") {
      fields("dtype", policy);
      if (policy.name() == DTypePolicy().name() || policy.name() == "float32") continue;
    }
    place.fail(
        text("'", left, "' is given, which its factory does not read"),
        text("read it, config.get<…>(\"", left, "\"), or say that it is of no use: config.ignore(\"", left, "\")"));
  }
  if (!name.empty()) {
    auto& state = dynamic_cast<CustomLayer&>(*layer.body()).state();
    std::lock_guard lock(state.guard);
    state.name = name;
  }
  place.path.pop_back();
  return layer;
}

}  // namespace stet::keras
