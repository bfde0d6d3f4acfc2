// What a layer of your own is made from, in files: its get_config() writes it, a factory that load_model() is given
// reads it.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "stet/base/export.h"
#include "stet/keras/activation.h"
#include "stet/keras/layer.h"
#include "stet/keras/policy.h"

namespace stet::keras {

class Fields;  // config.h

template <class T, class... Those>
concept OneOf = (std::same_as<T, Those> || ...);
/// What a config holds: plain values, lists of them, and objects that have a config themselves.
template <class T>
concept ConfigValue =
    OneOf<T, bool, int, std::int64_t, float, double, std::string, DType, std::vector<int>, std::vector<std::int64_t>,
          std::vector<double>, std::vector<std::string>, Tensor, DTypePolicy, ActivationFunction, Initializer,
          Regularizer, Constraint, Layer, std::vector<Layer>>;

/// The config of a layer in a .keras file, by names:
///
///   void Scale::get_config(keras::LayerConfig& config) const { config.set("factor", factor); }
///
///   keras::load_model("m.keras", {.custom_layers = {{"Scale", [](const keras::LayerConfig& config) {
///                                   return Scale(config.get<double>("factor"));
///                                 }}}});
///
/// The layer's name and whether it is trained are written, and given to what a factory makes, without its doing. There
/// is one for the time of a call: do not keep it.
class STET_API LayerConfig {
 public:
  explicit LayerConfig(Fields& fields) : fields_(fields) {}
  LayerConfig(const LayerConfig&) = delete;
  LayerConfig& operator=(const LayerConfig&) = delete;

  /// In get_config(): each name once. Objects made from code of your own are a UserError.
  template <ConfigValue T>
  void set(const std::string& name, const T& value);
  void set(const std::string& name, const char* value) { set(name, std::string(value)); }

  /// In a factory: what stands under the name. UserError, with the place in the file, if nothing or null stands there,
  /// or something of another kind. Activations, initializers, regularizers and constraints may be null: none.
  template <ConfigValue T>
  T get(const std::string& name) const;
  /// The same, and `otherwise` where nothing or null stands there.
  template <ConfigValue T>
  T get(const std::string& name, T otherwise) const {
    return has(name) ? get<T>(name) : otherwise;
  }
  /// Something other than null stands there.
  bool has(const std::string& name) const;
  /// What a factory does not ask for is a UserError, since the layer would be another one: unless it says nothing,
  /// being null, false or empty; or is known to be of no use here.
  void ignore(const std::string& name) const;

 private:
  friend class CustomLayer;
  friend struct WrittenNames;
  Fields& fields_;
  std::set<std::string> names_;  // that were set
  bool is_base_ = false;         // CustomLayer's own get_config() ran
};

/// Makes a new layer at each call.
using LayerFactory = std::function<Layer(const LayerConfig& config)>;
/// By names of classes: "Scale"; or as Keras has registered them, "my_package>Scale".
using LayerFactories = std::map<std::string, LayerFactory>;

}  // namespace stet::keras
