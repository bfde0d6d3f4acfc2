#include "stet/keras/layer.h"

#include <set>

#include "stet/base/error.h"
#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/base/thread_end.h"
#include "stet/core/function.h"
#include "stet/core/scope.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/names.h"

namespace stet::keras {
namespace {

/// The layers whose call() runs on this thread, the innermost last.
struct Running {
  CustomLayer* layer;   // null: what is called next belongs to none
  std::string segment;  // its part of the path
};
std::vector<Running>& running_layers() {
  constinit thread_local std::vector<Running>* layers = nullptr;
  return layers ? *layers : make_for_this_thread(layers);
}
thread_local bool inferring = false;  // build_from() runs: sizes that are symbols are unknown ones

std::string running_path() {
  std::string path;
  for (const Running& one : running_layers()) {
    if (!one.layer) path.clear();
    if (!one.segment.empty()) path += text(path.empty() ? "" : "/", one.segment);
  }
  return path;
}

/// A UserError to which the layer's path has been added.
class ErrorInLayer : public UserError {
 public:
  using UserError::UserError;
};

/// Finds a layer among the members that a body lists.
class MemberSearch : public MemberVisitor {
 public:
  explicit MemberSearch(const inside::Body& wanted) : wanted_(wanted) {}
  std::optional<std::string> found;

 private:
  void visit(const std::string& path, const Layer& layer) override {
    if (layer.body().get() == &wanted_) found = path;
  }
  void visit(const std::string&, const Variable&) override {}
  void visit(const std::string&, const Metric&) override {}
  const inside::Body& wanted_;
};

/// The layer's name within the layer that calls it; its own name when no layer does.
std::string segment_of(CustomLayer& layer, Where where) {
  if (running_layers().empty() || !running_layers().back().layer) return layer.name();
  if (running_layers().back().layer == &layer) return {};  // a model called by its own step: already on the path
  CustomLayer& parent = *running_layers().back().layer;
  {
    std::lock_guard lock(parent.state().guard);
    auto known = parent.state().member_paths.find(layer.object_id());
    if (known != parent.state().member_paths.end()) return known->second;
  }
  MemberSearch search(layer);
  parent.visit_members(search);
  if (!search.found)
    throw UserError(error_text(
        text(layer.description(), " is used inside ", parent.description(), ", which does not list it"), where,
        text("hold it as a member of ", parent.class_name(),
             " and name it in STET_MEMBERS(…): only then are its "
             "weights trained and saved")));
  std::lock_guard lock(parent.state().guard);
  return parent.state().member_paths[layer.object_id()] = *search.found;
}

/// Waits until this thread may build the layer. False: it is built, or being built by this thread.
bool claim_building(LayerState& state) {
  const std::thread::id self = std::this_thread::get_id();
  for (;;) {
    std::uint32_t seen = state.build_news.load();
    {
      std::lock_guard lock(state.guard);
      if (state.built.load(std::memory_order_relaxed) || state.builder == self) return false;
      // A thread that a fork() left behind does not finish.
      if (state.builder == std::thread::id() || state.builder_generation != fork_generation()) {
        state.builder = self;
        state.builder_generation = fork_generation();
        return true;
      }
    }
    state.build_news.wait(seen);
  }
}

void ensure_built(CustomLayer& layer, const Tensor& x) {
  LayerState& state = layer.state();
  if (state.built.load(std::memory_order_acquire) || !claim_building(state)) return;
  auto ended = [&](bool built, std::size_t weights) {
    {
      std::lock_guard lock(state.guard);
      state.builder = {};
      if (!built) state.weights.resize(weights);  // a build that fails half-way is started anew
      state.built.store(built, std::memory_order_release);
    }
    ++state.build_news;
    state.build_news.notify_all();
  };
  const std::size_t before = [&] {
    std::lock_guard lock(state.guard);
    return state.weights.size();
  }();
  try {
    layer.build(x.shape());
  } catch (...) {
    ended(false, before);
    throw;
  }
  ended(true, 0);
}

/// Axis 0 counts samples. While inferring, every symbol is unknown; in other traces sizes are symbols with a hint.
void note_output(LayerState& state, const Tensor& y) {
  std::lock_guard lock(state.guard);
  if (state.output) return;
  ShapeSpec spec;
  Shape shape = y.shape();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    std::optional<std::int64_t> size;
    const std::string known = text(shape[axis]), now = size_text(shape[axis]);
    if (axis > 0 && (inferring ? known : now).find_first_not_of("0123456789") == std::string::npos) size = std::stoll(now);
    spec.dims.push_back(size ? DimSpec(*size) : DimSpec(dyn));
  }
  state.output = std::move(spec);
}

/// Collects what a layer and its members hold.
class Collector : public MemberVisitor {
 public:
  explicit Collector(Inventory& out) : out_(out) {}

  void enter(CustomLayer& layer, const std::string& path) {
    if (!seen_layers_.insert(layer.object_id()).second) return;
    std::vector<Weight> own;
    {
      std::lock_guard lock(layer.state().guard);
      own = layer.state().weights;
    }
    std::string outer = std::exchange(path_, path);
    ++depth_;
    for (const Weight& weight : own) visit(weight.path, weight.variable);
    layer.visit_members(*this);
    --depth_;
    path_ = std::move(outer);
  }

 private:
  void visit(const std::string& name, const Layer& layer) override {
    if (!layer.defined()) return;
    if (depth_ == 1) out_.layers.push_back(layer);
    enter(static_cast<CustomLayer&>(*layer.body()), text(path_, "/", name));
  }
  void visit(const std::string& name, const Variable& variable) override {
    if (variable.defined() && seen_variables_.insert(variable.id()).second)
      out_.weights.push_back({text(path_, "/", name), variable});
  }
  void visit(const std::string&, const Metric& metric) override {
    if (metric.defined()) out_.metrics.push_back(metric);
  }

  Inventory& out_;
  std::string path_;
  int depth_ = 0;
  std::set<std::uint64_t> seen_layers_, seen_variables_;
};

}  // namespace

// --- bodies

CustomLayer::CustomLayer() : CustomLayer(std::string()) {}
CustomLayer::CustomLayer(std::string name) : state_(std::make_unique<LayerState>()) { state_->name = std::move(name); }
CustomLayer::CustomLayer(CustomLayer&&) noexcept = default;
CustomLayer::~CustomLayer() = default;

void CustomLayer::build(const Shape&) {}
const std::string& CustomLayer::name() const { return state_->name; }
std::string CustomLayer::class_name() const { return class_name_of(*this); }
std::string CustomLayer::description() const { return text(class_name(), " '", name(), "'"); }

Variable CustomLayer::add_weight(std::string_view name, const Shape& shape, WeightOptions options, Where where) {
  std::vector<std::int64_t> sizes;
  for (const Dim& dim : shape) sizes.push_back(dim.value(where));
  if (!options.initializer.defined()) options.initializer = is_floating(options.dtype) ? "glorot_uniform" : "zeros";
  // In the building run of a trace the first value is made outside of it, from the weight's own stream.
  InitScope outside;
  const bool inside_call = !running_layers().empty() && running_layers().back().layer == this;
  Variable variable(
      options.initializer(Shape(sizes), options.dtype, where),
      {.trainable = options.trainable, .name = inside_call ? text(running_path(), "/", name) : std::string(name)},
      where);
  std::lock_guard lock(state_->guard);
  state_->weights.push_back({std::string(name), variable});
  return variable;
}

// --- the call

LayerFrame::LayerFrame() { running_layers().push_back({nullptr, {}}); }
LayerFrame::LayerFrame(CustomLayer& layer, std::string segment) {
  running_layers().push_back({&layer, std::move(segment)});
}
LayerFrame::~LayerFrame() { running_layers().pop_back(); }

Tensor call_layer(CustomLayer& layer, const Tensor& x, bool training, Where where) {
  LayerFrame frame(layer, segment_of(layer, where));
  if (!x.defined())
    throw UserError(error_text(text(layer.description(), ": its input is an undefined tensor"), where,
                               "assign a value to it before the call"));
  try {
    return scope(
        [&] {
          ensure_built(layer, x);
          Tensor y = layer.call(x, {.training = training, .where = where});
          if (!y.defined())
            throw UserError(error_text(text(layer.description(), ": its call() returned an undefined tensor"), where,
                                       "return a tensor on every path"));
          note_output(layer.state(), y);
          return y;
        },
        where);
  } catch (const ErrorInLayer&) {
    throw;
  } catch (const UserError& error) {
    throw ErrorInLayer(text(error.what(), "\n  in layer ", running_path(), ", given ", described(x)));
  }
}

void build_from(CustomLayer& layer, const ShapeSpec& input, DType dtype, Where where) {
  struct Built {};  // ends the trace before anything is compiled: only shapes and weights are wanted
  std::vector<std::int64_t> hints{2};
  for (const DimSpec& dim : input.dims)
    if (!dim.size) hints.push_back(32 + static_cast<std::int64_t>(hints.size()));  // all different: no accidental ties
  // One axis for every unknown size: inside, known sizes are integers and unknown ones symbols.
  auto run = [&](Tensor unknown) -> Tensor {
    Shape shape{unknown.dim(0)};
    int next = 1;
    for (const DimSpec& dim : input.dims) shape.push_back(dim.size ? Dim(*dim.size) : unknown.dim(next++));
    call_layer(layer, zeros(shape, dtype), false, where);
    throw Built{};
  };
  InitScope outside;  // a model made while another function is traced is no part of it
  const bool before = std::exchange(inferring, true);
  try {
    Function build = function("build(batch)", run, {}, Where{});  // no line of the user's
    build(zeros(Shape(hints)), where);
  } catch (const Built&) {
  } catch (const TraceError&) {
    // It reads values, so it can only run eagerly: its first call builds it.
  } catch (...) {
    inferring = before;
    throw;
  }
  inferring = before;
}

Inventory inventory(CustomLayer& layer) {
  Inventory out;
  Collector(out).enter(layer, layer.name());
  return out;
}

// --- handles

Layer::Layer(FromBody from) : body_(std::move(from.body)) {
  if (!body_) return;
  auto& layer = static_cast<CustomLayer&>(*body_);
  std::lock_guard lock(layer.state().guard);
  // Not in the body's constructor, where the class is not known yet.
  if (layer.state().name.empty()) layer.state().name = next_name(layer.class_name());
}

CustomLayer& Layer::layer_body(const char* asked, Where where) const {
  if (!body_)
    throw UserError(error_text(text(asked, ": the layer is undefined"), where, "make one, as in keras::Dense(10)"));
  return static_cast<CustomLayer&>(*body_);
}

Tensor Layer::operator()(const Tensor& x, CallOptions options, Where where) const {
  std::shared_ptr<inside::Body> alive = body_;  // call() might assign to the handle it was called through
  return call_layer(layer_body("call", where), x, options.training, where);
}

const std::string& Layer::name(Where where) const { return layer_body("name", where).name(); }
bool Layer::built() const {
  if (!body_) return false;
  LayerState& state = layer_body("built", {}).state();
  std::lock_guard lock(state.guard);
  return state.output.has_value();
}

std::vector<Weight> Layer::weights() const { return inventory(layer_body("weights", {})).weights; }

std::vector<Variable> Layer::variables() const {
  std::vector<Variable> out;
  Inventory all = inventory(layer_body("variables", {}));
  for (const Weight& weight : all.weights) out.push_back(weight.variable);
  for (const Metric& metric : all.metrics)
    for (const Variable& variable : metric.variables()) out.push_back(variable);
  return out;
}

std::vector<Variable> Layer::trainable_variables() const {
  std::vector<Variable> out;
  for (const Weight& weight : weights())
    if (weight.variable.trainable()) out.push_back(weight.variable);
  return out;
}
std::vector<Variable> Layer::non_trainable_variables() const {
  std::vector<Variable> out;
  for (const Weight& weight : weights())
    if (!weight.variable.trainable()) out.push_back(weight.variable);
  return out;
}
std::int64_t Layer::count_params() const {
  std::int64_t count = 0;
  for (const Weight& weight : weights()) count += weight.variable.shape().element_count().value();
  return count;
}

std::string described(const Shape& shape) {
  return size_text(shape);
}
std::string described(const Tensor& tensor) {
  return tensor.defined() ? text(tensor.dtype(), described(tensor.shape())) : "an undefined tensor";
}

}  // namespace stet::keras
