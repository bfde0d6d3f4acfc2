// What compile() was given, as an entry of a config.json ("compile_config"). Not a public header.
#pragma once
#include <string>
#include <vector>

#include "stet/keras/config.h"
#include "stet/keras/model.h"

namespace stet::keras {

/// What Keras's compile() takes: {"optimizer": …, "loss": …, "loss_weights": …, "metrics": …, …}. The optimizer is
/// written with the learning rate that it has now; as in Keras, what exclude_from_weight_decay() excluded is not.
/// UserError for losses, metrics and optimizers of your own.
Json compile_to_config(const CompileOptions& options, Fields::Place& place);

/// The same the other way. `outputs` are the names of the model's outputs, empty where they are not known: then it has
/// one. Keras takes lists of metrics for each output in order; with several outputs they become lists by name.
CompileOptions compile_from_config(const Json& config, const std::vector<std::string>& outputs, Fields::Place& place);

}  // namespace stet::keras
