// Sequential and functional models as entries of a config.json, and back. Not a public header.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "stet/keras/config.h"
#include "stet/keras/functional_body.h"
#include "stet/keras/sequential_body.h"

namespace stet::keras {

/// A layer or operation of a functional model, as Keras counts them.
struct GraphOperation {
  Layer layer;
  std::string name;
  bool is_input = false;                   // an Input, or what stands in its place
  std::vector<const SymbolicCall*> calls;  // in the order of its nodes
};
/// In the order in which Keras keeps them: those that are needed first come first, and among them as they are found
/// from the outputs. The weights in its files are numbered so.
std::vector<GraphOperation> operations_of(const FunctionalBody& model);

/// {"module": …, "class_name": "Sequential", "config": {…}}. `body` is one of the library's two kinds of models.
Json model_to_config(const CustomModel& body, Fields::Place& place);
/// Builds a model of a user's class for the inputs that its entry names; where that cannot be, it stays as it is.
void build_as_saved(CustomModel& model, const Json& entry, Fields::Place& place);
/// What `make` gives. A UserError of it, which knows nothing of the file, says where that stands.
template <class Make>
auto made_of(Fields::Place& place, Make make) {
  const std::vector<std::string> path = place.path;
  try {
    return make();
  } catch (const UserError& error) {
    if (place.failed) throw;
    place.path = path;
    place.fail(error);
  }
}

/// While it lives, a layer that several models hold is one layer in what is written, or read, on this thread: Keras
/// numbers such objects ("shared_object_id").
class SharedLayers {
 public:
  SharedLayers();                             // to read
  explicit SharedLayers(CustomLayer& model);  // to write it
  ~SharedLayers();
  SharedLayers(const SharedLayers&) = delete;
  SharedLayers& operator=(const SharedLayers&) = delete;

  /// The layer that stood under the entry's number before; undefined if there was none.
  static Layer known(const Json& entry);
  static void note(const Json& entry, const Layer& made);
  /// Numbers the entry of a layer that comes more than once.
  static void number(Json& entry, const CustomLayer& layer);

 private:
  std::map<std::int64_t, Layer> made_;
  std::map<std::uint64_t, int> holders_;  // by object ids of layers
  SharedLayers* const outer_;
};

/// Whether it is a Sequential or functional model.
bool is_model_of_layers(const CustomLayer& body);

}  // namespace stet::keras
