// How Keras arranges the state of a model in its files: a group for every layer, by the attributes of its classes, and
// in it the variables by number. Not a public header.
#pragma once
#include <string>
#include <vector>

#include "stet/keras/layer.h"

namespace stet::keras {

struct StateGroup {
  std::string path;               // "layers/dense"; "" is the model itself
  std::string name;               // of the layer
  std::vector<Weight> variables;  // "vars/0", "vars/1", …; paths as weights() has them, without the model's name
};

/// The model, then all layers inside of it, each once, in the order in which Keras lists their variables.
std::vector<StateGroup> state_groups(CustomLayer& model);

/// The trainable variables in the order in which Keras lists them, which is that of an optimizer's slots.
std::vector<Variable> trainable_in_keras_order(CustomLayer& model);

/// The weights with their paths without the model's own name: "dense/kernel". Those names are the same for another
/// model made alike, whatever it is called.
std::vector<Weight> weights_by_path(CustomLayer& model);

/// What Keras's files call an object of a class in a list: "conv2d_transpose" of "Conv2DTranspose".
class ContainerNames {
 public:
  /// "dense", "dense_1", …
  std::string next(const std::string& class_name);

 private:
  std::vector<std::pair<std::string, int>> used_;
};

}  // namespace stet::keras
