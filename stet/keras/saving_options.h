// What saving and loading of models and weights is told.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "stet/base/export.h"
#include "stet/keras/layer_config.h"

namespace stet::keras {

/// What a file may cost before it is believed. What it asks for beyond is a UserError, and memory is not taken for it.
/// Weights need none: they have as many elements as the file has.
struct LoadLimits {
  std::uint64_t file_bytes = std::uint64_t{1} << 40;
  std::uint64_t config_bytes = 100'000'000;  // of config.json
  int depth = 64;                            // of values inside of values there
  std::int64_t layers = 10'000;              // of a model and of models inside of it, as often as they are called
};

struct SaveOptions {
  bool overwrite = true;          // false: a file that is there already is a UserError
  bool include_optimizer = true;  // its state, so that training goes on as if it had not ended
};

/// A weight of a file that another library wrote, and whose weight it is here.
struct WeightName {
  std::string file = {};    // "encoder.layer.0.weight"
  std::string weight = {};  // "dense/kernel"
};
/// Whose weights the tensors of a file are that has names of its own:
///
///   model.load_weights("mlp.safetensors", {.names = {{{"fc1.weight", "dense/kernel"}, {"fc1.bias", "dense/bias"}},
///                                                    keras::NameMap::pytorch}});
struct NameMap {
  enum Layout {
    as_here,
    /// Kernels are turned round: linear ones from [outputs, inputs] to [inputs, outputs], those of convolutions from
    /// [outputs, inputs, rows, columns] to [rows, columns, inputs, outputs], and get the shape that the weight has
    /// where that splits the outputs (into heads). Other weights stay as they are.
    pytorch
  };
  std::vector<WeightName> names = {};  // empty: the file has the names of weights here
  Layout layout = as_here;
};

struct LoadWeightsOptions {
  /// Weights that the file does not have, or has in another shape, stay as they are, and a warning on stderr says
  /// which.
  bool skip_mismatch = false;
  NameMap names = {};  // of .safetensors; with names, tensors that are not named are left alone
  LoadLimits limits = {};
};

struct LoadOptions {
  bool compile = true;  // as it was when it was saved, with the optimizer's state
  /// What makes layers and models of your own classes from their configs (Keras's custom_objects). A factory comes
  /// before a class of the library that has the name. A file can name no other code.
  LayerFactories custom_layers = {};
  LoadLimits limits = {};
};

}  // namespace stet::keras
