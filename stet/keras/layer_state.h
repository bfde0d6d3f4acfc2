// What stands behind every layer, and the call that all layers go through. Not a public header.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "stet/base/lock.h"
#include "stet/core/ambient.h"
#include "stet/core/signature.h"
#include "stet/core/variable_watch.h"
#include "stet/keras/constrained.h"
#include "stet/keras/layer.h"
#include "stet/keras/metric.h"

namespace stet::keras {

struct SymbolicCall;  // functional.h

struct LayerState {
  /// Ids of Variables: those after `first`, up to `last`.
  struct Made {
    std::uint64_t first = 0, last = 0;
    bool holds(std::uint64_t id) const { return id > first && id <= last; }
  };

  struct InputType {
    std::vector<std::string> sizes;  // as those of outputs; none of an input that was left out
    DType dtype = DType::f32;
  };

  Lock guard;  // of what follows
  std::string name;
  std::string shown_class;                            // instead of the body's own
  std::vector<Weight> weights;                        // by their own names
  std::vector<ConstrainedWeight> constrained;         // those of them with a constraint
  Variable generator;                                 // of its own, that it draws from; undefined if it has none
  std::map<std::uint64_t, std::string> member_paths;  // object ids of layers that were found listed
  std::set<std::uint64_t> listed;                     // ids of Variables that were found listed, here or in a member
  std::optional<std::vector<std::string>> output;     // sizes of the first call's, as summaries show them
  std::vector<InputType> inputs;                      // of the first call
  Made constructed, built_with;                       // Variables made by its constructor, and by build()
  bool has_handle = false;                            // its constructor has ended
  bool told_of_mask = false;                          // that it drops masks
  std::vector<std::weak_ptr<const SymbolicCall>> symbolic_calls;
  /// build() runs once, on one thread; others that need the layer wait for it. It is user's code: no lock is held.
  std::thread::id builder;  // that runs it now
  std::uint64_t builder_generation = 0;
  std::atomic<bool> built = false;           // build() has run
  std::atomic<bool> called = false;          // call() has, too: all weights are there
  std::atomic<std::uint32_t> build_news{0};  // counts builds that ended
  std::atomic<bool> trainable = true;
  std::atomic<std::uint64_t> tables{0};  // that adapt() has found for it: vocabularies, boundaries
  CustomLayer* body = nullptr;           // while it lives, once it has a handle
  std::map<std::uint64_t, std::weak_ptr<LayerState>> parents;  // by object ids: layers that were found to list it
};

/// The layer will do something else from here on, and so will all that hold it: traces that take one of them as an
/// argument do not serve any more.
void note_layer_change(CustomLayer& layer);
/// A layer has another table from now on.
void note_new_table(CustomLayer& layer);
/// How often that was noted, of any layer.
std::uint64_t layer_changes();
/// The first is a member of the second.
void note_parent(CustomLayer& layer, CustomLayer& parent);

/// While it lives, weights that layers add on this thread come from a file later: they hold zeros until then, and all
/// of them together may have so many elements, which the file has.
class WeightsOfFile {
 public:
  explicit WeightsOfFile(std::uint64_t elements);
  ~WeightsOfFile();
  WeightsOfFile(const WeightsOfFile&) = delete;
  WeightsOfFile& operator=(const WeightsOfFile&) = delete;
  /// Null where weights are drawn.
  static WeightsOfFile* now();
  /// UserError if the file does not have as many more. `what` is the weight.
  void take(const std::vector<std::int64_t>& sizes, const std::string& what, Where where);

 private:
  const std::uint64_t elements_;
  std::uint64_t taken_ = 0;
  WeightsOfFile* const outer_;
};

/// What Layer's call operators do.
Tensors call_layer(CustomLayer& layer, const Tensors& inputs, const CallOptions& options, Where where);

/// Makes the weights, notes output shapes and gives the types of the results, by tracing the layer on inputs of these
/// types, axis 0 the batch; nothing is computed. A layer that cannot be traced is left as it is, to be built by its
/// first call, and nothing is given.
std::optional<std::vector<TensorSpec>> build_from(CustomLayer& layer, const std::vector<TensorSpec>& inputs,
                                                  const CallOptions& options, Where where);

/// This call is one of build_from's: its sizes are examples, and nothing of it remains.
bool only_building();

/// Builds a layer that the running one holds, for inputs of these shapes: its own weights alone.
void build_member(const Layer& member, const std::vector<Shape>& inputs, Where where);
/// The same for layers that hold others, which are built when they are called: for loops, inside of which nothing is
/// built. All sizes but those of the batch are asked for.
void build_member_as_called(const Layer& member, const std::vector<Shape>& inputs, const std::vector<DType>& dtypes,
                            Where where);

/// While it lives, layers called on this thread are those of `layer`; or, without one, nobody's: what a loss or a
/// metric calls is no part of the model that is trained.
class LayerFrame {
 public:
  LayerFrame();
  /// A step of a model runs.
  LayerFrame(CustomLayer& layer, std::string segment);
  /// Its call() runs.
  LayerFrame(CustomLayer& layer, std::string segment, bool training);
  ~LayerFrame();
  LayerFrame(const LayerFrame&) = delete;
  LayerFrame& operator=(const LayerFrame&) = delete;

 private:
  VariableWatch watch_;
  AmbientScope ambient_;
};

/// Everything that a layer holds, each once.
struct Inventory {
  std::vector<Weight> weights;
  std::vector<Weight> generators;  // that layers with a seed draw from: no weights, but state
  std::vector<Metric> metrics;
  std::vector<Layer> layers;           // its own members, not those of members
  std::set<std::uint64_t> all_layers;  // object ids: itself, its members, theirs …
};
Inventory inventory(CustomLayer& layer);

/// The topmost layers that are frozen with all that they hold, by their paths without that of the layer; "" is itself.
std::vector<std::string> frozen_members(CustomLayer& layer);
/// Warns that training does nothing, unless there is nothing to train.
void tell_all_frozen(CustomLayer& layer, Where where);

/// Which layers, Variables and metrics a layer consists of, and which are frozen: what a trace of it relies on.
class Structure {
 public:
  Structure() = default;
  explicit Structure(CustomLayer& layer);
  /// A trace made then does not do what host code does now. What building has added is no change.
  bool changed_since(const Structure& before) const;
  bool operator==(const Structure&) const = default;

 private:
  friend class StructureCollector;
  struct Part {
    std::string name;
    std::uint64_t id;
    bool operator==(const Part&) const = default;
  };
  struct Holder {
    bool built = false;
    bool trainable = true;
    std::vector<Part> parts;
    bool operator==(const Holder&) const = default;
  };
  std::map<std::uint64_t, Holder> holders_;  // by the layer's object id
};

/// "f32[32,10]": with the sizes of this call where the sizes of the trace are symbols.
std::string described(const Tensor& tensor);
std::string described(const Shape& shape);

}  // namespace stet::keras
