// How objects of Keras's become entries of a config.json, and entries become objects. One function for each class does
// both. Not a public header.
//
//   struct DenseRecipe {
//     static constexpr const char *module = "keras.layers", *class_name = "Dense";
//     std::int64_t units = 0;
//     DenseOptions options = {};
//     void fields(Fields& f) {
//       f.layer(options);
//       f("units", units);
//       f("activation", options.activation);
//       …
//     }
//     Layer make(Where where) const { return Dense(units, options, where); }
//   };
//   const Savable<DenseRecipe> savable_dense;  // beside it, at namespace scope: it can be loaded
//
//   Dense::Dense(…) : … { …; note_recipe(*this, DenseRecipe{units, options}); }  // and saved
//
// A file names classes of this closed registry and plain values; nothing in it can name code.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "stet/base/dtype.h"
#include "stet/base/error.h"
#include "stet/base/where.h"
#include "stet/core/tensor.h"
#include "stet/files/json.h"
#include "stet/keras/activation.h"
#include "stet/keras/constraint.h"
#include "stet/keras/initializer.h"
#include "stet/keras/layer.h"
#include "stet/keras/layer_config.h"
#include "stet/keras/policy.h"
#include "stet/keras/recipe.h"
#include "stet/keras/regularizer.h"
#include "stet/keras/window_sizes.h"

namespace stet::keras {

class Fields;
using files::Json;

class Recipe {
 public:
  virtual ~Recipe();
  virtual const char* module() const = 0;
  virtual const char* class_name() const = 0;
  virtual void write(Fields& to) const = 0;
  /// What was made by a name that alone says what it is, "accuracy", is written as the name.
  virtual const std::string* given_name() const { return nullptr; }
};

/// The members of one object's "config": read into variables, or written from them. A member that is missing where they
/// are read leaves the variable as it is, at the default of the options; one of another kind is a UserError that
/// says where in the file it stands.
class Fields {
 public:
  /// Where in a configuration something stands, for errors: "layers[2] Dense 'dense'".
  struct Place {
    const files::Reading* reading = nullptr;  // null when it is written
    std::string call;                         // what the user called, when it is written
    Where where;
    const LayerFactories* custom_layers = nullptr;  // when it is read: what the program makes itself
    std::vector<std::string> path = {};
    bool failed = false;  // an error that leaves says where
    [[noreturn]] void fail(const std::string& reason, const std::string& advice);
    /// Of an error that knows nothing of the file, thrown by what is made from it.
    [[noreturn]] void fail(const UserError& error);
  };

  /// To read: both must outlive it.
  Fields(const Json& config, Place& place);
  /// To write. `layer`: whose config it is, if a layer's.
  Fields(Place& place, const CustomLayer* layer);

  bool reading() const { return config_ != nullptr; }
  Place& place() { return place_; }
  Where where() const { return place_.where; }
  /// Whose config is written, for what has changed since it was made; null: none is known.
  const CustomLayer* written_layer() const { return layer_; }
  /// What was written.
  Json written() && { return Json(std::move(written_)); }
  /// UserError if the config has members that nobody asked for and that say something: neither null nor false.
  void finish(const char* class_name);
  /// The members that nobody asked for, and that say something: neither null, false nor empty.
  std::vector<std::string> left() const;

  void operator()(const char* name, bool& value);
  void operator()(const char* name, int& value);
  void operator()(const char* name, std::int64_t& value);
  void operator()(const char* name, std::uint64_t& value);
  void operator()(const char* name, double& value);
  void operator()(const char* name, std::string& value);
  void operator()(const char* name, DType& value);        // "float32", "int64", …
  void operator()(const char* name, WindowSizes& value);  // a number or a list; not given: null
  void operator()(const char* name, DTypePolicy& value);
  void operator()(const char* name, ActivationFunction& value);  // "linear" where there is none
  /// `otherwise`: the name of what an undefined one stands for, written in its place.
  void operator()(const char* name, Initializer& value, const char* otherwise);
  void operator()(const char* name, Regularizer& value);
  void operator()(const char* name, Constraint& value);
  /// Lists of lists of numbers, or as Keras writes arrays.
  void operator()(const char* name, Tensor& value);
  void operator()(const char* name, Layer& value);
  void operator()(const char* name, std::vector<Layer>& value);
  /// Null: none.
  template <class T>
  void operator()(const char* name, std::optional<T>& value) {
    if (reading()) {
      const Json* member = take(name);
      if (!member) return;
      if (member->is_null()) {
        value.reset();
        return;
      }
      T inner{};
      (*this)(name, inner);
      value = std::move(inner);
    } else if (value) {
      (*this)(name, *value);
    } else {
      put(name, nullptr);
    }
  }
  /// Lists of plain values.
  void operator()(const char* name, std::vector<int>& value);
  void operator()(const char* name, std::vector<std::int64_t>& value);
  void operator()(const char* name, std::vector<double>& value);
  void operator()(const char* name, std::vector<std::string>& value);

  /// What Keras leaves out of its configs, though its constructors take it, or got later, so that its older versions
  /// refuse it: written where it is not `otherwise`.
  template <class T>
  void besides(const char* name, T& value, const std::type_identity_t<T>& otherwise) {
    if (reading() || !(value == otherwise)) (*this)(name, value);
  }
  /// The same of an object that may be left out.
  template <class T>
  void if_defined(const char* name, T& value) {
    if (reading() || value.defined()) (*this)(name, value);
  }
  /// Names and lists that are null in Keras where there are none.
  void or_null(const char* name, std::string& value, const char* none);
  template <class T>
  void or_null(const char* name, std::vector<T>& value) {
    std::optional<std::vector<T>> given;
    if (!value.empty()) given = value;
    (*this)(name, given);
    value = given.value_or(std::vector<T>());
  }
  /// UserError if it is not there, or null: what has no default.
  void required(const char* name);
  template <class T>
  void required(const char* name, T& value) {
    required(name);
    (*this)(name, value);
  }
  /// What is read and makes so many of something must be at most `most`: a short file does not take much memory.
  void at_most(const char* name, std::int64_t count, std::int64_t most);

  /// "name", "trainable" and "dtype", which every layer has.
  template <class Options>
  void layer(Options& options) {
    layer_name(options.name);
    if constexpr (requires { options.dtype; })
      (*this)("dtype", options.dtype);
    else
      no_dtype();
  }
  /// Of the few classes whose constructors in Keras take no "trainable".
  template <class Options>
  void layer_without_trainable(Options& options) {
    name_only(options.name);
    (*this)("dtype", options.dtype);
  }
  void layer_name(std::string& name);
  void name_only(std::string& name);
  /// Of layers that have no such option: written as the process's policy, read and let go.
  void no_dtype();

  /// What Keras has and stet knows one value of: written, and any other value is a UserError.
  void only(const char* name, const Json& value);
  /// Written; what is read does not matter.
  void ignored(const char* name, const Json& value);

  // For all else: what stands there (null pointer: nothing), and what shall stand there.
  const Json* take(const char* name);
  void put(const char* name, Json value);
  /// UserError: the member is `found`, and should be "an integer".
  [[noreturn]] void wrong(const char* name, const Json& found, const char* expected);

 private:
  const Json* config_ = nullptr;
  const CustomLayer* layer_ = nullptr;
  Json::Object written_;
  std::set<std::string, std::less<>> taken_;
  Place& place_;
};

/// Tuples of Python may stand in a file as {"class_name": "__tuple__", "items": […]}: the list, in either form; null if
/// it is neither.
const Json::List* list_of(const Json& value);

/// "float32".
std::string keras_name(DType dtype);
std::optional<DType> type_from_keras(std::string_view name);

/// All classes of objects of one kind (Layer, Initializer, …) by their names.
template <class Object>
struct Registry {
  using Make = Object (*)(Fields& fields);
  struct Entry {
    const char* module;
    Make make;
  };
  static std::map<std::string, Entry, std::less<>>& entries() {
    static std::map<std::string, Entry, std::less<>> all;
    return all;
  }
};

template <class R>
struct Savable {
  using Object = decltype(std::declval<const R&>().make(Where{}));
  Savable() {
    Registry<Object>::entries()[R::class_name] = {R::module, [](Fields& fields) {
                                                    R recipe{};
                                                    recipe.fields(fields);
                                                    fields.finish(R::class_name);
                                                    return recipe.make(fields.where());
                                                  }};
  }
};

/// Several at once.
template <class... R>
struct SavableAll {
  std::tuple<Savable<R>...> all;
};

/// A string as an argument of a template.
template <std::size_t size>
struct Literal {
  constexpr Literal(const char (&given)[size]) { std::copy_n(given, size, text); }
  char text[size];
};

template <class R>
class RecipeOf : public Recipe {
 public:
  explicit RecipeOf(R recipe) : recipe_(std::move(recipe)) {}
  const char* module() const override { return R::module; }
  const char* class_name() const override { return R::class_name; }
  void write(Fields& to) const override {
    R copy = recipe_;  // fields() serves reading too, so it takes variables
    copy.fields(to);
  }

 private:
  R recipe_;
};

/// Of an object that a name stands for.
class NameRecipe : public Recipe {
 public:
  explicit NameRecipe(std::string name) : name_(std::move(name)) {}
  const char* module() const override { return "builtins"; }
  const char* class_name() const override { return name_.c_str(); }
  void write(Fields&) const override {}
  const std::string* given_name() const override { return &name_; }

 private:
  std::string name_;
};

/// Notes what a Recorded object, or the body of a handle, was made from.
template <class Object, class R>
void note_recipe(Object& object, R recipe) {
  auto pointer = std::make_shared<const RecipeOf<R>>(std::move(recipe));
  if constexpr (std::is_base_of_v<Recorded, Object>)
    object.set_recipe(std::move(pointer));
  else
    dynamic_cast<Recorded&>(*object.body()).set_recipe(std::move(pointer));
}

/// {"module": …, "class_name": …, "config": {…}, "registered_name": null}. `what` is told of an object without a
/// recipe: "its kernel_initializer". `layer`: whose recipe it is, if a layer's.
Json to_config(const RecipePointer& recipe, const std::string& what, Fields::Place& place,
               const CustomLayer* layer = nullptr);
/// A layer with its name, and whether it is trained.
Json to_config(const Layer& layer, Fields::Place& place);
Layer layer_from_config(const Json& entry, Fields::Place& place);

/// What the program has given for layers of the entry's class; null: nothing.
const LayerFactory* custom_factory(const Json& entry, const Fields::Place& place);
/// The entry of a layer of a user's own class.
Json custom_to_config(const CustomLayer& layer, Fields::Place& place);
/// "Scale" of "my_package>Scale".
std::string class_of_registered(const std::string& registered_name);
/// Sizes as LayerState has them: [null, 4].
Json sizes_to_config(const std::vector<std::string>& sizes);
Layer custom_from_config(const LayerFactory& factory, const Json& entry, Fields::Place& place);

/// The object that such an entry describes, or that a plain string names where Object can be made from one. UserError
/// if the class is not in the registry: its text names the class.
template <class Object>
Object from_config(const Json& entry, const char* kind, Fields::Place& place);

struct ClassEntry {
  std::string module, class_name;
  const Json* config;  // never null
};
/// The parts of an entry, checked.
ClassEntry class_entry(const Json& entry, const char* kind, Fields::Place& place);
/// The name that stands in place of an entry, or that of one of Keras's functions; null if it is neither.
const std::string* name_entry(const Json& entry);
[[noreturn]] void unknown_class(const ClassEntry& entry, const char* kind, Fields::Place& place);

template <class Object>
Object from_config(const Json& entry, const char* kind, Fields::Place& place) {
  try {
    if constexpr (std::is_constructible_v<Object, const std::string&, Where>)
      if (const std::string* name = name_entry(entry)) return Object(*name, place.where);
    ClassEntry found = class_entry(entry, kind, place);
    auto known = Registry<Object>::entries().find(found.class_name);
    if (known == Registry<Object>::entries().end()) unknown_class(found, kind, place);
    place.path.push_back(found.class_name);
    Fields fields(*found.config, place);
    Object object = known->second.make(fields);
    place.path.pop_back();
    return object;
  } catch (const UserError& error) {
    if (place.failed) throw;
    place.fail(error);
  }
}

}  // namespace stet::keras
