// What stands behind every layer, and the call that all layers go through. Not a public header.
#pragma once
#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "stet/base/lock.h"
#include "stet/core/signature.h"
#include "stet/keras/layer.h"
#include "stet/keras/metric.h"

namespace stet::keras {

struct LayerState {
  Lock guard;  // of what follows
  std::string name;
  std::vector<Weight> weights;                        // by their own names
  std::map<std::uint64_t, std::string> member_paths;  // object ids of layers that were found listed
  std::optional<ShapeSpec> output;                    // of the first call; axis 0 unknown
  /// build() runs once, on one thread; others that need the layer wait for it. It is user's code: no lock is held.
  std::thread::id builder;  // that runs it now
  std::uint64_t builder_generation = 0;
  std::atomic<bool> built = false;
  std::atomic<std::uint32_t> build_news{0};  // counts builds that ended
};

/// What Layer's call operator does.
Tensor call_layer(CustomLayer& layer, const Tensor& x, bool training, Where where);

/// Makes the weights and notes output shapes by tracing the layer on an input of this shape, axis 0 in front; nothing
/// is computed. A layer that cannot be traced is left as it is: it is built by its first call.
void build_from(CustomLayer& layer, const ShapeSpec& input, DType dtype, Where where);

/// While it lives, layers called on this thread are those of `layer`, as inside its call(); or, without one, nobody's:
/// what a loss or a metric calls is no part of the model that is trained.
class LayerFrame {
 public:
  LayerFrame();
  LayerFrame(CustomLayer& layer, std::string segment);
  ~LayerFrame();
  LayerFrame(const LayerFrame&) = delete;
  LayerFrame& operator=(const LayerFrame&) = delete;
};

/// Everything that a layer holds, each once.
struct Inventory {
  std::vector<Weight> weights;
  std::vector<Metric> metrics;
  std::vector<Layer> layers;  // its own members, not those of members
};
Inventory inventory(CustomLayer& layer);

/// "f32[32,10]": with the sizes of this call where the sizes of the trace are symbols.
std::string described(const Tensor& tensor);
std::string described(const Shape& shape);

}  // namespace stet::keras
