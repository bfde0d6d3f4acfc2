#include "stet/keras/config.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stet/base/text.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/library_layer.h"
#include "stet/keras/model_config.h"
#include "stet/ops/ops.h"

namespace stet::keras {

Recipe::~Recipe() = default;

void Fields::Place::fail(const std::string& reason, const std::string& advice) {
  failed = true;
  std::string stands;
  for (const std::string& part : path) stands += (stands.empty() ? "" : ", ") + part;
  const std::string all = stands.empty() ? reason : text(stands, ": ", reason);
  if (reading) reading->fail(all, advice);
  throw UserError(error_text(text(call, ": ", all), where, advice));
}

void Fields::Place::fail(const UserError& error) {
  // As error_text() makes it: what, the line, and the advice.
  const std::string all = error.what();
  constexpr std::string_view before_advice = "\n  fix: ";
  const std::size_t advice = all.find(before_advice);
  fail(all.substr(0, std::min(all.find('\n'), all.size())),
       advice == std::string::npos ? std::string() : all.substr(advice + before_advice.size()));
}

Fields::Fields(const Json& config, Place& place) : config_(&config), place_(place) {}
Fields::Fields(Place& place, const CustomLayer* layer) : layer_(layer), place_(place) {}

const Json* Fields::take(const char* name) {
  taken_.insert(name);
  return config_->find(name);
}

void Fields::put(const char* name, Json value) { written_.emplace_back(name, std::move(value)); }

void Fields::wrong(const char* name, const Json& found, const char* expected) {
  place_.fail(text("its '", name, "' is ", found.kind(), " where ", expected, " should stand"),
              "write the file again, with the library that it comes from");
}

void Fields::finish(const char* class_name) {
  for (const auto& [name, value] : *config_->if_object()) {
    const bool* flag = value.if_bool();
    if (taken_.count(name) || value.is_null() || (flag && !*flag)) continue;
    place_.fail(text("'", name, "' is given, which ", class_name, " does not have here"),
                "save the model without it; or load the weights alone, into a model made here");
  }
}

std::vector<std::string> Fields::left() const {
  std::vector<std::string> out;
  for (const auto& [name, value] : *config_->if_object()) {
    const bool* flag = value.if_bool();
    const bool empty =
        (value.if_object() && value.if_object()->empty()) || (value.if_list() && value.if_list()->empty());
    if (!taken_.count(name) && !value.is_null() && !(flag && !*flag) && !empty) out.push_back(name);
  }
  return out;
}

// --- plain values

namespace {

/// Python writes whole numbers of floating type with a point.
std::optional<std::int64_t> whole_number(const Json& value) {
  if (const std::int64_t* integer = value.if_integer()) return *integer;
  if (const double* real = value.if_real())
    if (std::floor(*real) == *real && std::abs(*real) < 9e15) return static_cast<std::int64_t>(*real);
  return std::nullopt;
}

std::optional<double> number(const Json& value) {
  if (const std::int64_t* integer = value.if_integer()) return static_cast<double>(*integer);
  if (const double* real = value.if_real()) return *real;
  return std::nullopt;
}

}  // namespace

void Fields::operator()(const char* name, bool& value) {
  if (!reading()) return put(name, value);
  const Json* member = take(name);
  if (!member) return;
  if (const bool* flag = member->if_bool())
    value = *flag;
  else
    wrong(name, *member, "true or false");
}

void Fields::operator()(const char* name, std::int64_t& value) {
  if (!reading()) return put(name, value);
  const Json* member = take(name);
  if (!member) return;
  if (auto integer = whole_number(*member))
    value = *integer;
  else
    wrong(name, *member, "an integer");
}

void Fields::operator()(const char* name, int& value) {
  std::int64_t wide = value;
  (*this)(name, wide);
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max())
    wrong(name, *take(name), "a small integer");
  value = static_cast<int>(wide);
}

void Fields::operator()(const char* name, std::uint64_t& value) {
  auto wide = static_cast<std::int64_t>(value);
  (*this)(name, wide);
  value = static_cast<std::uint64_t>(wide);
}

void Fields::operator()(const char* name, double& value) {
  if (!reading()) return put(name, value);
  const Json* member = take(name);
  if (!member) return;
  if (auto real = number(*member))
    value = *real;
  else
    wrong(name, *member, "a number");
}

void Fields::operator()(const char* name, std::string& value) {
  if (!reading()) return put(name, value);
  const Json* member = take(name);
  if (!member) return;
  if (const std::string* string = member->if_string())
    value = *string;
  else
    wrong(name, *member, "a string");
}

const Json::List* list_of(const Json& value) {
  if (const Json::List* list = value.if_list()) return list;
  const Json* name = value.find("class_name");
  const Json* items = value.find("items");
  if (name && items && *name == Json("__tuple__")) return items->if_list();
  return nullptr;
}

namespace {

/// `one` gives the value of an item, if it is of the right kind.
template <class T, class One>
void list_field(Fields& fields, const char* name, std::vector<T>& value, const char* expected, One one) {
  if (!fields.reading()) {
    Json::List list;
    for (const T& item : value) list.emplace_back(item);
    return fields.put(name, std::move(list));
  }
  const Json* member = fields.take(name);
  if (!member) return;
  const Json::List* list = list_of(*member);
  if (!list) fields.wrong(name, *member, expected);
  value.clear();
  for (const Json& item : *list) {
    auto read = one(item);
    if (!read) fields.wrong(name, item, expected);
    value.push_back(static_cast<T>(*read));
  }
}

}  // namespace

void Fields::operator()(const char* name, std::vector<std::int64_t>& value) {
  list_field(*this, name, value, "a list of integers", whole_number);
}
void Fields::operator()(const char* name, std::vector<int>& value) {
  list_field(*this, name, value, "a list of small integers", [](const Json& item) {
    auto wide = whole_number(item);
    return wide && *wide == static_cast<int>(*wide) ? wide : std::nullopt;
  });
}
void Fields::operator()(const char* name, std::vector<double>& value) {
  list_field(*this, name, value, "a list of numbers", number);
}
void Fields::operator()(const char* name, std::vector<std::string>& value) {
  list_field(*this, name, value, "a list of strings", [](const Json& item) {
    const std::string* string = item.if_string();
    return string ? std::optional(*string) : std::nullopt;
  });
}

void Fields::operator()(const char* name, WindowSizes& value) {
  if (!reading()) {
    if (!value.given()) return put(name, nullptr);
    if (value.same()) return put(name, value.numbers()[0]);
    std::vector<std::int64_t> numbers = value.numbers();
    return (*this)(name, numbers);
  }
  const Json* member = take(name);
  if (!member) return;
  if (member->is_null()) {
    value = {};
  } else if (auto all = whole_number(*member)) {
    value = *all;
  } else {
    std::vector<std::int64_t> numbers;
    (*this)(name, numbers);
    value = WindowSizes(std::move(numbers));
  }
}

// --- objects

namespace {

template <class Object>
void object_field(Fields& fields, const char* name, Object& value, const char* kind) {
  if (!fields.reading())
    return fields.put(name, value.defined() ? to_config(value.recipe(), text("its ", name), fields.place()) : Json());
  const Json* member = fields.take(name);
  if (!member) return;
  if (member->is_null()) {
    value = {};
    return;
  }
  fields.place().path.push_back(name);
  value = from_config<Object>(*member, kind, fields.place());
  fields.place().path.pop_back();
}

}  // namespace

void Fields::operator()(const char* name, Initializer& value, const char* otherwise) {
  Initializer written = reading() || value.defined() ? value : Initializer(otherwise, where());
  object_field(*this, name, written, "initializer");
  value = std::move(written);
}
void Fields::operator()(const char* name, Regularizer& value) { object_field(*this, name, value, "regularizer"); }
void Fields::operator()(const char* name, Constraint& value) { object_field(*this, name, value, "constraint"); }

void Fields::operator()(const char* name, ActivationFunction& value) {
  if (!reading()) {
    if (value.layer().defined()) return put(name, to_config(value.layer(), place_));
    std::optional<std::string> known = value.known_name();
    if (!known)
      place_.fail(text("its ", name, " is a function that has no name"),
                  "a file holds no code: give the activation by its name, or save the weights alone");
    return put(name, *known);
  }
  const Json* member = take(name);
  if (!member) return;
  const Json* kind = member->find("class_name");
  const std::string* function = name_entry(*member);
  if (member->is_null() || (function && *function == "linear"))
    value = {};
  else if (function)
    value = ActivationFunction(*function, where());
  else if (kind && kind->if_string()) {
    Layer layer;
    (*this)(name, layer);
    value = ActivationFunction(layer, where());
  } else
    wrong(name, *member, "the name of an activation");
}

void Fields::operator()(const char* name, DTypePolicy& value) {
  if (!reading()) {
    Json config;
    config["name"] = value.name();
    Json entry;
    entry["module"] = "keras";
    entry["class_name"] = "DTypePolicy";
    entry["config"] = std::move(config);
    entry["registered_name"] = nullptr;
    return put(name, std::move(entry));
  }
  const Json* member = take(name);
  if (!member || member->is_null()) return;
  const std::string* policy = member->if_string();
  if (!policy) {
    ClassEntry entry = class_entry(*member, "dtype policy", place_);
    const Json* inner = entry.class_name == "DTypePolicy" ? entry.config->find("name") : nullptr;
    policy = inner ? inner->if_string() : nullptr;
    if (!policy) unknown_class(entry, "dtype policy", place_);
  }
  value = DTypePolicy(*policy, where());
}

namespace {

struct NamedType {
  std::string_view name;
  DType dtype;
};
constexpr NamedType named_types[] = {
    {"float32", DType::f32}, {"float64", DType::f64}, {"float16", DType::f16}, {"bfloat16", DType::bf16},
    {"int64", DType::i64},   {"int32", DType::i32},   {"int16", DType::i16},   {"int8", DType::i8},
    {"uint8", DType::u8},    {"bool", DType::bool_},
};
const DType* type_called(std::string_view name) {
  for (const NamedType& one : named_types)
    if (one.name == name) return &one.dtype;
  return nullptr;
}

/// Adds the numbers of a list of lists. False: something in it is no number, or rows differ in length.
bool add_numbers(const Json& value, std::size_t depth, std::vector<std::int64_t>& sizes, std::vector<double>& numbers) {
  if (const Json::List* list = list_of(value)) {
    const auto size = static_cast<std::int64_t>(list->size());
    if (depth == sizes.size() && numbers.empty()) sizes.push_back(size);
    if (depth >= sizes.size() || sizes[depth] != size) return false;
    return std::all_of(list->begin(), list->end(),
                       [&](const Json& item) { return add_numbers(item, depth + 1, sizes, numbers); });
  }
  if (depth != sizes.size()) return false;
  const bool* flag = value.if_bool();
  std::optional<double> one = flag ? std::optional<double>(*flag) : number(value);
  if (one) numbers.push_back(*one);
  return one.has_value();
}

Json nested(const std::vector<double>& numbers, const Shape& shape, int axis, std::size_t& next) {
  if (axis == shape.rank()) return numbers[next++];
  Json::List list;
  for (std::int64_t i = 0; i < shape[axis].value(); ++i) list.push_back(nested(numbers, shape, axis + 1, next));
  return list;
}

}  // namespace

std::optional<DType> type_from_keras(std::string_view name) {
  const DType* known = type_called(name);
  return known ? std::optional(*known) : std::nullopt;
}

Json sizes_to_config(const std::vector<std::string>& sizes) {
  Json shape = Json::List();
  for (const std::string& size : sizes) shape.push_back(size == "None" ? Json() : Json(std::int64_t{std::stoll(size)}));
  return shape;
}

std::string keras_name(DType dtype) {
  for (const NamedType& one : named_types)
    if (one.dtype == dtype) return std::string(one.name);
  return text(dtype);
}

void Fields::operator()(const char* name, DType& value) {
  std::string type = reading() ? std::string() : keras_name(value);
  (*this)(name, type);
  if (!reading() || type.empty()) return;
  const DType* known = type_called(type);
  if (!known)
    place_.fail(text("its '", name, "' is '", type, "'"),
                type == "string" ? "strings are host data: make numbers of them before the model, with StringLookup or "
                                   "TextVectorization"
                                 : "a type is called float32, bfloat16, int64, …");
  value = *known;
}

void Fields::operator()(const char* name, Tensor& value) {
  if (!reading()) {
    Json config;
    std::size_t next = 0;
    config["value"] = nested(value.to_vector<double>(where()), value.shape(), 0, next);
    config["dtype"] = keras_name(value.dtype());
    Json array;
    array["class_name"] = "__numpy__";
    array["config"] = std::move(config);
    return put(name, std::move(array));
  }
  const Json* member = take(name);
  if (!member) return;
  const Json* kind = member->find("class_name");
  const Json* config = member->find("config");
  DType dtype = DType::f32;
  const Json* numbers = member;
  if (kind && config && (*kind == Json("__numpy__") || *kind == Json("__tensor__"))) {
    numbers = config->find("value");
    const Json* type = config->find("dtype");
    const DType* known = type && type->if_string() ? type_called(*type->if_string()) : nullptr;
    if (!numbers || !known) wrong(name, *config, "an array with 'value' and 'dtype'");
    dtype = *known;
  }
  std::vector<std::int64_t> sizes;
  std::vector<double> all;
  if (!add_numbers(*numbers, 0, sizes, all)) wrong(name, *member, "an array of numbers");
  value = cast(reshape(tensor(all), Shape(sizes)), dtype);
}

void Fields::operator()(const char* name, Layer& value) {
  if (!reading()) return put(name, value.defined() ? to_config(value, place_) : Json());
  const Json* member = take(name);
  if (!member) return;
  if (member->is_null()) {
    value = {};
    return;
  }
  place_.path.push_back(name);
  value = layer_from_config(*member, place_);
  place_.path.pop_back();
}

void Fields::operator()(const char* name, std::vector<Layer>& value) {
  if (!reading()) {
    Json::List list;
    for (const Layer& layer : value) list.push_back(to_config(layer, place_));
    return put(name, std::move(list));
  }
  const Json* member = take(name);
  if (!member) return;
  const Json::List* list = list_of(*member);
  if (!list) wrong(name, *member, "a list of layers");
  value.clear();
  for (std::size_t i = 0; i < list->size(); ++i) {
    place_.path.push_back(text(name, "[", i, "]"));
    value.push_back(layer_from_config((*list)[i], place_));
    place_.path.pop_back();
  }
}

void Fields::layer_name(std::string& name) {
  name_only(name);
  if (reading())
    take("trainable");  // layer_from_config() heeds it
  else
    put("trainable", layer_ ? layer_->trainable() : true);
}

void Fields::name_only(std::string& name) {
  if (reading())
    (*this)("name", name);
  else
    put("name", layer_ ? layer_->name() : name);
}

void Fields::no_dtype() {
  DTypePolicy policy;
  (*this)("dtype", policy);
}

void Fields::or_null(const char* name, std::string& value, const char* none) {
  if (!reading()) return put(name, value == none ? Json() : Json(value));
  const Json* member = take(name);
  if (member && member->is_null())
    value = none;
  else
    (*this)(name, value);
}

void Fields::required(const char* name) {
  const Json* member = reading() ? config_->find(name) : nullptr;
  if (reading() && (!member || member->is_null()))
    place_.fail(text("it has no '", name, "'"), "write the file again, with the library that it comes from");
}

void Fields::at_most(const char* name, std::int64_t count, std::int64_t most) {
  if (reading() && count > most)
    place_.fail(text("its '", name, "' is ", count, ", where a file may ask for ", most, " at most"),
                "make the object here, and load the weights alone");
}

void Fields::only(const char* name, const Json& value) {
  if (!reading()) return put(name, value);
  const Json* member = take(name);
  if (member && !(*member == value))
    place_.fail(text("its '", name, "' is ", files::to_text(*member), "; known is ", files::to_text(value)),
                "save the model with that value");
}

void Fields::ignored(const char* name, const Json& value) {
  if (reading())
    take(name);
  else
    put(name, value);
}

// --- entries

Json to_config(const RecipePointer& recipe, const std::string& what, Fields::Place& place, const CustomLayer* layer) {
  if (!recipe)
    place.fail(text(what, " is made from code of your own"),
               "a file holds no code: use a class of Keras's, or save the weights alone");
  if (const std::string* name = recipe->given_name()) return *name;
  Fields fields(place, layer);
  recipe->write(fields);
  Json entry;
  entry["module"] = recipe->module();
  entry["class_name"] = recipe->class_name();
  entry["config"] = std::move(fields).written();
  entry["registered_name"] = nullptr;
  return entry;
}

Json to_config(const Layer& layer, Fields::Place& place) {
  const auto& body = dynamic_cast<const CustomLayer&>(*layer.body());
  place.path.push_back(body.description());
  if (is_model_of_layers(body)) {
    Json model = model_to_config(dynamic_cast<const CustomModel&>(body), place);
    SharedLayers::number(model, body);
    place.path.pop_back();
    return model;
  }
  const bool own = !body.recipe() && !dynamic_cast<const LibraryLayer*>(&body);
  Json entry = own ? custom_to_config(body, place)
                   : to_config(body.recipe(), text(body.class_name(), " '", body.name(), "'"), place, &body);
  SharedLayers::number(entry, body);
  place.path.pop_back();
  return entry;
}

Layer layer_from_config(const Json& entry, Fields::Place& place) {
  if (Layer known = SharedLayers::known(entry); known.defined()) return known;
  const LayerFactory* factory = custom_factory(entry, place);
  Layer layer = factory ? custom_from_config(*factory, entry, place) : from_config<Layer>(entry, "layer", place);
  if (const Json* config = entry.find("config"))
    if (const Json* trainable = config->find("trainable"); trainable && *trainable == Json(false)) {
      auto& body = dynamic_cast<CustomLayer&>(*layer.body());
      // Layers of a model have flags of their own in the file.
      if (is_model_of_layers(body))
        body.state().trainable = false;
      else
        layer.set_trainable(false, place.where);
    }
  SharedLayers::note(entry, layer);
  return layer;
}

const std::string* name_entry(const Json& entry) {
  if (const std::string* name = entry.if_string()) return name;
  const Json* module = entry.find("module");
  const Json* name = entry.find("class_name");
  const Json* config = entry.find("config");
  const bool function = module && name && config && *module == Json("builtins") && *name == Json("function");
  return function ? config->if_string() : nullptr;
}

ClassEntry class_entry(const Json& entry, const char* kind, Fields::Place& place) {
  const Json* module = entry.find("module");
  const Json* name = entry.find("class_name");
  const Json* config = entry.find("config");
  if (!name || !name->if_string() || !config || !config->if_object())
    place.fail(text(std::string_view("aeiou").find(kind[0]) == std::string_view::npos ? "a " : "an ", kind, " is ",
                    entry.kind(), " where an object with 'class_name' and 'config' should stand"),
               "write the file again, with the library that it comes from");
  const Json* registered = entry.find("registered_name");
  ClassEntry found{module && module->if_string() ? *module->if_string() : "", *name->if_string(), config};
  // Keras registers classes of users by a name of their own; of its own it writes null, or the name of the class.
  const bool own = found.module == "keras" || found.module.rfind("keras.", 0) == 0 || found.module.empty();
  if (!own || (registered && !registered->is_null() && !(*registered == *name))) unknown_class(found, kind, place);
  return found;
}

void unknown_class(const ClassEntry& entry, const char* kind, Fields::Place& place) {
  place.fail(text("there is no ", kind, " '", entry.class_name, "'",
                  entry.module.empty() ? "" : text(" of ", entry.module), " here"),
             kind == std::string_view("layer")
                 ? "if it is a class of your own, give load_model() a factory for it in .custom_layers; files may name "
                   "classes of Keras's that stet has: docs/keras_names.md lists them"
                 : "files may name classes of Keras's that stet has: docs/keras_names.md lists them; load the weights "
                   "alone into a model made here");
}

}  // namespace stet::keras
