#include "stet/keras/layer.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/base/thread_end.h"
#include "stet/core/companion.h"
#include "stet/core/differentiate.h"
#include "stet/core/function.h"
#include "stet/core/name_scope.h"
#include "stet/core/scope.h"
#include "stet/core/size_words.h"
#include "stet/keras/added_losses.h"
#include "stet/keras/layer_config.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/library_layer.h"
#include "stet/keras/model.h"
#include "stet/keras/names.h"
#include "stet/keras/used_variables.h"
#include "stet/runtime/log.h"

namespace stet::keras {
namespace {

/// The layers whose call() runs on this thread, the innermost last.
struct Running {
  CustomLayer* layer;   // null: what is called next belongs to none
  std::string segment;  // its part of the path
  bool training = false;
  bool in_call = false;              // its call() runs: not its build(), and not a step
  std::uint64_t first_variable = 0;  // later ones were made meanwhile
  Where where = {};                  // the line that called it
};
std::vector<Running>& running_layers() {
  constinit thread_local std::vector<Running>* layers = nullptr;
  return layers ? *layers : make_for_this_thread(layers);
}

/// What layers gave, until the outermost call has ended: facts that are learned later tell more of sizes.
struct Outputs {
  int depth = 0;
  struct Given {
    std::shared_ptr<LayerState> by;
    Shape shape;
    std::vector<std::pair<Shape, DType>> inputs;  // of first calls
  };
  std::vector<Given> given;
};
Outputs& outputs_of_thread() {
  constinit thread_local Outputs* outputs = nullptr;
  return outputs ? *outputs : make_for_this_thread(outputs);
}

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

/// Variables of a layer and its members, as it lists them.
bool lists(CustomLayer& layer, const Variable& variable) {
  LayerState& state = layer.state();
  {
    std::lock_guard lock(state.guard);
    if (state.listed.contains(variable.id())) return true;
  }
  Inventory all = inventory(layer);
  std::lock_guard lock(state.guard);
  for (const Weight& weight : all.weights) state.listed.insert(weight.variable.id());
  return state.listed.contains(variable.id());
}

/// A Variable that a layer made for itself and uses, but that nobody lists, would silently not be trained. One that it
/// got from outside may well be somebody else's.
void require_listed(const Variable& variable, Where where) {
  UsedVariables::note(variable);
  if (running_layers().empty() || !running_layers().back().in_call) return;
  if (!variable.trainable() || !is_floating(variable.dtype())) return;
  CustomLayer& layer = *running_layers().back().layer;
  bool own = variable.id() > running_layers().back().first_variable;
  if (!own) {
    std::lock_guard lock(layer.state().guard);
    own = layer.state().constructed.holds(variable.id()) || layer.state().built_with.holds(variable.id());
  }
  if (!own) return;
  for (std::size_t i = running_layers().size(); i-- > 0 && running_layers()[i].layer;)
    if (lists(*running_layers()[i].layer, variable)) return;
  throw UserError(error_text(
      text(layer.description(), " uses a Variable ", variable.name().empty() ? "" : text("'", variable.name(), "' "),
           "of ", variable.dtype(), variable.shape(), " that it made and does not list"),
      where,
      text(
          "name it in STET_MEMBERS(…) of ", layer.class_name(),
          ", or make it with add_weight(): only then is it trained and saved; if it is not to be trained, make it with "
          "{.trainable = false}")));
}

void note_assigned(const Variable& variable, Where) { UsedVariables::note(variable); }

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
  note_parent(layer, parent);
  std::lock_guard lock(parent.state().guard);
  return parent.state().member_paths[layer.object_id()] = *search.found;
}

/// While it lives, the innermost layer is being built.
class OutsideOfCall {
 public:
  OutsideOfCall() : frame_(running_layers().size() - 1) { running_layers()[frame_].in_call = false; }
  ~OutsideOfCall() { running_layers()[frame_].in_call = true; }
  OutsideOfCall(const OutsideOfCall&) = delete;
  OutsideOfCall& operator=(const OutsideOfCall&) = delete;

 private:
  std::size_t frame_;
};

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

void ensure_built(CustomLayer& layer, const std::vector<Shape>& inputs) {
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
  const std::uint64_t first = latest_variable_id();
  try {
    {
      OutsideOfCall building;
      layer.build_many(inputs);
    }
    std::lock_guard made(state.guard);
    state.built_with = {first, latest_variable_id()};
  } catch (...) {
    ended(false, before);
    throw;
  }
  ended(true, 0);
}

/// Counts nested calls. When the outermost has ended, the layers learn what summaries show of their outputs.
class OutputsOfCall {
 public:
  OutputsOfCall() { ++outputs_of_thread().depth; }
  ~OutputsOfCall() {
    if (--outputs_of_thread().depth == 0) outputs_of_thread().given.clear();
  }
  void add(const CustomLayer& layer, const Shape& shape, const Tensors& inputs) {
    Outputs::Given& given = outputs_of_thread().given.emplace_back(Outputs::Given{layer.shared_state(), shape, {}});
    if (!layer.state().called.load(std::memory_order_relaxed))
      for (const Tensor& input : inputs)
        given.inputs.emplace_back(input.defined() ? input.shape() : Shape(),
                                  input.defined() ? input.dtype() : DType::f32);
    if (outputs_of_thread().depth > 1) return;
    for (const Outputs::Given& one : outputs_of_thread().given) note(one);
  }
  OutputsOfCall(const OutputsOfCall&) = delete;
  OutputsOfCall& operator=(const OutputsOfCall&) = delete;

 private:
  static void note(const Outputs::Given& given) {
    LayerState& state = *given.by;
    std::lock_guard lock(state.guard);
    if (state.output) return;
    state.output = sizes(given.shape);
    state.inputs.clear();
    for (const auto& [input, dtype] : given.inputs) state.inputs.push_back({sizes(input), dtype});
  }
  static std::vector<std::string> sizes(const Shape& shape) {
    std::vector<std::string> out;
    // Axis 0 counts samples.
    for (int axis = 0; axis < shape.rank(); ++axis) out.push_back(axis == 0 ? "None" : size_always(shape[axis]));
    return out;
  }
};

/// Collects what a layer and its members hold.
class Collector : public MemberVisitor {
 public:
  explicit Collector(Inventory& out) : out_(out) {}

  void enter(CustomLayer& layer, const std::string& path) {
    if (!out_.all_layers.insert(layer.object_id()).second) return;
    std::vector<Weight> own;
    {
      std::lock_guard lock(layer.state().guard);
      own = layer.state().weights;
      if (const Variable& generator = layer.state().generator; generator.defined())
        out_.generators.push_back(
            {.path = text(path, "/", generator.name()), .variable = generator, .trainable = false});
    }
    std::string outer = std::exchange(path_, path);
    const bool outer_trainable = std::exchange(trainable_, layer.trainable());
    CustomLayer* const outer_holder = std::exchange(holder_, &layer);
    if (depth_ == 0) root_trainable_ = trainable_;
    ++depth_;
    for (const Weight& weight : own) add(weight);
    layer.visit_members(*this);
    --depth_;
    path_ = std::move(outer);
    trainable_ = outer_trainable;
    holder_ = outer_holder;
  }

 private:
  void visit(const std::string& name, const Layer& layer) override {
    if (!layer.defined()) return;
    if (depth_ == 1) out_.layers.push_back(layer);
    auto& member = static_cast<CustomLayer&>(*layer.body());
    note_parent(member, *holder_);
    enter(member, text(path_, "/", name));
  }
  void visit(const std::string& name, const Variable& variable) override {
    if (variable.defined()) add({name, variable});
  }
  void visit(const std::string&, const Metric& metric) override {
    if (metric.defined()) out_.metrics.push_back(metric);
  }
  void add(Weight weight) {
    const bool trainable = weight.variable.trainable() && trainable_ && root_trainable_;
    auto [known, is_new] = number_of_.try_emplace(weight.variable.id(), out_.weights.size());
    if (!is_new) {  // two layers hold it: it is trained where neither is frozen
      out_.weights[known->second].trainable &= trainable;
      return;
    }
    weight.path = text(path_, "/", weight.path);
    weight.trainable = trainable;
    out_.weights.push_back(std::move(weight));
  }

  Inventory& out_;
  std::string path_;
  int depth_ = 0;
  CustomLayer* holder_ = nullptr;
  bool trainable_ = true, root_trainable_ = true;
  std::map<std::uint64_t, std::size_t> number_of_;  // by the ids of Variables, that of the weight
};

}  // namespace

// --- bodies

CustomLayer::CustomLayer() : CustomLayer(std::string()) {}
CustomLayer::CustomLayer(std::string name) : state_(std::make_shared<LayerState>()) {
  state_->name = std::move(name);
  state_->constructed.first = latest_variable_id();
}
CustomLayer::CustomLayer(CustomLayer&&) noexcept = default;
CustomLayer::~CustomLayer() {
  if (!state_) return;  // another took it over
  std::lock_guard lock(state_->guard);
  if (state_->body == this) state_->body = nullptr;
}

CallArguments::~CallArguments() = default;
void CustomLayer::build(const Shape&) {}
void CustomLayer::build_many(const std::vector<Shape>& inputs) { build(inputs[0]); }
Tensor CustomLayer::call(const Tensor&, const Context& context) {
  throw UserError(error_text(text(description(), " says nowhere what it gives"), context.where,
                             text("override call() or call_many() in ", class_name())));
}
Tensors CustomLayer::call_many(const Tensors& inputs, const Context& context) {
  if (inputs.size() != 1)
    throw UserError(error_text(text(description(), " takes one tensor and was given ", inputs.size()), context.where,
                               text("give it one, or override call_many() in ", class_name())));
  return {call(inputs[0], context)};
}
Tensors CustomLayer::compute_mask(const Tensors&, const Tensors& masks) {
  return supports_masking() && !masks.empty() ? Tensors{masks[0]} : Tensors{};
}
const std::string& CustomLayer::name() const { return state_->name; }
std::string CustomLayer::class_name() const {
  return state_->shown_class.empty() ? class_name_of(*this) : state_->shown_class;
}
std::string CustomLayer::registered_name() const { return class_name(); }
void CustomLayer::get_config(LayerConfig& config) const { config.is_base_ = true; }
std::string CustomLayer::description() const { return text(class_name(), " '", name(), "'"); }

Variable CustomLayer::add_weight(std::string_view name, const Shape& shape, WeightOptions options, Where where) {
  std::vector<std::int64_t> sizes;
  for (const Dim& dim : shape) sizes.push_back(dim.value(where));
  if (!options.initializer.defined()) options.initializer = is_floating(options.dtype) ? "glorot_uniform" : "zeros";
  if (WeightsOfFile* file = WeightsOfFile::now()) {
    file->take(sizes, text("'", name, "' ", options.dtype, Shape(sizes), " of ", description()), where);
    options.initializer = "zeros";
  }
  // In the building run of a trace the first value is made outside of it, from the weight's own stream.
  InitScope outside;
  const bool inside_call = !running_layers().empty() && running_layers().back().layer == this;
  Variable variable(
      options.initializer(Shape(sizes), options.dtype, where),
      {.trainable = options.trainable, .name = inside_call ? text(running_path(), "/", name) : std::string(name)},
      where);
  std::lock_guard lock(state_->guard);
  if (options.constraint.defined()) state_->constrained.emplace_back(variable, options.constraint);
  state_->weights.push_back(
      {std::string(name), variable, std::move(options.regularizer), std::move(options.constraint)});
  return variable;
}

namespace {
thread_local WeightsOfFile* weights_of_file = nullptr;
}
WeightsOfFile::WeightsOfFile(std::uint64_t elements)
    : elements_(elements), outer_(std::exchange(weights_of_file, this)) {}
WeightsOfFile::~WeightsOfFile() { weights_of_file = outer_; }
WeightsOfFile* WeightsOfFile::now() { return weights_of_file; }
void WeightsOfFile::take(const std::vector<std::int64_t>& sizes, const std::string& what, Where where) {
  std::uint64_t count = 1;
  bool fits = true;
  for (std::int64_t size : sizes)
    fits = fits && !__builtin_mul_overflow(count, static_cast<std::uint64_t>(size), &count);
  if (fits && count <= elements_ - taken_) {
    taken_ += count;
    return;
  }
  throw UserError(error_text(text("the weight ", what, " is not in the file, whose weights have ", elements_,
                                  elements_ == 1 ? " element" : " elements", " in all"),
                             where, "its configuration and its weights belong to different models: save it again"));
}

void CustomLayer::add_loss(const Tensor& loss, Where where) { LossesOfCall::add(*this, loss, where); }

std::vector<Tensor> CustomLayer::losses(Where where) {
  Inventory all = inventory(*this);
  std::vector<Tensor> out;
  for (const LossesOfCall::Added& added : LossesOfCall::latest())
    if (all.all_layers.contains(added.layer)) out.push_back(added.loss);
  for (const Weight& weight : all.weights)
    if (weight.regularizer.defined() && weight.trainable)
      out.push_back(weight.regularizer(weight.variable.read(where), where));
  return out;
}

// --- the call

LayerFrame::LayerFrame() : watch_(require_listed, note_assigned), ambient_(0) {
  running_layers().push_back({nullptr, {}});
}
LayerFrame::LayerFrame(CustomLayer& layer, std::string segment) : watch_(require_listed, note_assigned), ambient_(0) {
  running_layers().push_back({&layer, std::move(segment)});
}
LayerFrame::LayerFrame(CustomLayer& layer, std::string segment, bool training)
    : watch_(require_listed, note_assigned), ambient_(training ? 1 : 0) {
  running_layers().push_back({&layer, std::move(segment), training, true, latest_variable_id()});
}
LayerFrame::~LayerFrame() { running_layers().pop_back(); }
Where calling_line() { return running_layers().empty() ? Where{} : running_layers().back().where; }

namespace {

/// Says once for a layer that masks end at it.
void tell_dropped_mask(CustomLayer& layer, const Tensor& mask, Where where) {
  {
    std::lock_guard lock(layer.state().guard);
    if (std::exchange(layer.state().told_of_mask, true)) return;
  }
  const std::string warning = text("stet: ", layer.description(), " drops the mask ", described(mask),
                                   " of its input: it does not say that it supports masking", at_line(where, ", at "),
                                   "\n  fix: override supports_masking() or compute_mask() in ", layer.class_name(),
                                   ", or drop the mask before: with_mask(x, {})\n");
  warn("keras", warning);
}

/// The results with the masks that the layer says they have.
void bring_masks(CustomLayer& layer, const Tensors& inputs, const Context& context, Tensors& results) {
  auto is_input = [&](const Tensor& result) {
    return std::any_of(inputs.begin(), inputs.end(), [&](const Tensor& x) { return x.node() == result.node(); });
  };
  Tensors given = layer.compute_mask(inputs, context.masks);
  bool any = false;
  for (std::size_t r = 0; r < results.size(); ++r) {
    const Tensor own = companion_of(results[r]);
    if (own.defined() && !is_input(results[r])) {
      any = true;
      continue;
    }
    const Tensor mask = r < given.size() ? given[r] : Tensor();
    any = any || mask.defined();
    if (mask.node() != own.node()) results[r] = with_companion(results[r], mask);
  }
  if (any || context.asked_for_mask || layer.supports_masking() || dynamic_cast<CustomModel*>(&layer)) return;
  for (const Tensor& mask : context.masks)
    if (mask.defined()) return tell_dropped_mask(layer, mask, context.where);
}

/// "f32[2,3], f32[2,5]".
std::string all_described(const Tensors& tensors) {
  std::vector<std::string> out;
  for (const Tensor& tensor : tensors) out.push_back(tensor.defined() ? described(tensor) : "nothing");
  return joined(out, ", ");
}

constexpr const char* mask_form = "a mask is bool and has the first axes of its tensor: [batch, steps]";
bool mask_fits(const Tensor& mask, const Tensor& x, Where where) {
  bool fits = mask.dtype() == DType::bool_ && mask.rank() <= x.rank();
  for (int axis = 0; fits && axis < mask.rank(); ++axis)
    fits = inside::require(mask.dim(axis), Relation::equal, x.dim(axis), {"with_mask", "the size of a mask", where});
  return fits;
}

}  // namespace

Tensor mask_of(const Tensor& x) { return companion_of(x); }
Tensor with_mask(const Tensor& x, const Tensor& mask, Where where) {
  if (!x.defined())
    throw UserError(error_text("with_mask: the tensor is undefined", where, "assign a value to it before the call"));
  if (mask.defined() && !mask_fits(mask, x, where))
    throw UserError(error_text(text("with_mask: a mask ", described(mask), " of ", described(x)), where, mask_form));
  return with_companion(x, mask);
}

Tensors call_layer(CustomLayer& layer, const Tensors& inputs, const CallOptions& options, Where where) {
  const bool training =
      options.training ? *options.training : !running_layers().empty() && running_layers().back().training;
  const std::string segment = segment_of(layer, where);
  LayerFrame frame(layer, segment, training);
  NameScope name_scope(segment.empty() ? layer.name() : segment);
  running_layers().back().where = where;
  if (inputs.empty() || !inputs[0].defined())
    throw UserError(error_text(text(layer.description(), ": its input is an undefined tensor"), where,
                               "assign a value to it before the call"));
  Tensors masks;
  for (const Tensor& input : inputs) masks.push_back(companion_of(input));
  if (options.mask.defined()) {
    if (!mask_fits(options.mask, inputs[0], where))
      throw UserError(error_text(text(layer.description(), ": the mask ", described(options.mask),
                                      " does not fit its input ", described(inputs[0])),
                                 where, mask_form));
    masks[0] = options.mask;
  }
  const Context context{.training = training, .where = where, .masks = masks, .arguments = options.arguments};
  OutputsOfCall outputs_of_call;
  LossesOfCall losses_of_call(layer);
  try {
    Tensors results = scope(
        [&] {
          losses_of_call.restart();
          if (!layer.state().built.load(std::memory_order_acquire)) {
            std::vector<Shape> shapes;
            for (const Tensor& input : inputs) shapes.push_back(input.defined() ? input.shape(where) : Shape());
            ensure_built(layer, shapes);
          }
          Tensors given = layer.call_many(inputs, context);
          if (given.empty() || !given[0].defined())
            throw UserError(error_text(text(layer.description(), ": its call() returned an undefined tensor"), where,
                                       "return a tensor on every path"));
          return losses_of_call.with(given);
        },
        where);
    results = losses_of_call.taken(std::move(results), where);
    outputs_of_call.add(layer, results[0].shape(), inputs);
    layer.state().called.store(true, std::memory_order_release);
    bring_masks(layer, inputs, context, results);
    return results;
  } catch (const ErrorInLayer&) {
    throw;
  } catch (const UserError& error) {
    throw ErrorInLayer(text(error.what(), "\n  in layer ", running_path(), ", given ", all_described(inputs)));
  }
}

namespace {

int& builds_from_types() {
  thread_local int depth = 0;
  return depth;
}
/// While it lives, layers are called to learn what they give, and nothing is computed.
struct OnlyBuilding {
  OnlyBuilding() { ++builds_from_types(); }
  ~OnlyBuilding() { --builds_from_types(); }
  OnlyBuilding(const OnlyBuilding&) = delete;
  OnlyBuilding& operator=(const OnlyBuilding&) = delete;
};

}  // namespace

bool only_building() { return builds_from_types() > 0; }

void build_member(const Layer& member, const std::vector<Shape>& inputs, Where where) {
  auto& layer = static_cast<CustomLayer&>(*member.body());
  if (layer.state().built.load(std::memory_order_acquire)) return;
  LayerFrame frame(layer, segment_of(layer, where), false);
  ensure_built(layer, inputs);
}

void build_member_as_called(const Layer& member, const std::vector<Shape>& inputs, const std::vector<DType>& dtypes,
                            Where where) {
  auto& layer = static_cast<CustomLayer&>(*member.body());
  if (layer.state().called.load(std::memory_order_acquire)) return;
  std::vector<TensorSpec> types;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    types.push_back({.dtype = dtypes[i], .shape = {dyn("batch")}});
    for (int axis = 1; axis < inputs[i].rank(); ++axis)
      types.back().shape.dims.push_back(DimSpec(inputs[i][axis].value(where)));
  }
  build_from(layer, types, {}, where);
}

std::optional<std::vector<TensorSpec>> build_from(CustomLayer& layer, const std::vector<TensorSpec>& inputs,
                                                  const CallOptions& options, Where where) {
  struct Built {};  // ends the trace before anything is compiled: only shapes and weights are wanted
  // A tensor for every unknown size, of which nobody reads an element: inside, known sizes are integers and unknown
  // ones symbols. Those of one name are one; the others are all different: no accidental ties.
  std::map<std::string, std::size_t> number_of;
  std::vector<Tensor> unknown;
  std::vector<std::vector<std::size_t>> numbers;
  for (const TensorSpec& input : inputs) {
    numbers.emplace_back();
    for (const DimSpec& dim : input.shape.dims) {
      std::size_t number = unknown.size();
      if (!dim.size && !dim.name.empty()) number = number_of.try_emplace(dim.name, number).first->second;
      if (!dim.size && number == unknown.size())
        unknown.push_back(zeros({unknown.empty() ? 2 : 31 + static_cast<std::int64_t>(unknown.size())}));
      numbers.back().push_back(number);
    }
  }
  std::vector<TensorSpec> results;
  auto run = [&](std::vector<Tensor> sizes) -> Tensor {
    std::map<std::string, Dim> named;
    for (const auto& [name, number] : number_of) named.emplace(name, sizes[number].dim(0));
    Tensors given;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Shape shape;
      for (std::size_t axis = 0; axis < numbers[i].size(); ++axis) {
        const DimSpec& dim = inputs[i].shape.dims[axis];
        shape.push_back(dim.size ? Dim(*dim.size) : sizes[numbers[i][axis]].dim(0));
      }
      given.push_back(zeros(shape, inputs[i].dtype));
    }
    results.clear();
    const CallOptions told{.training = options.training.value_or(false), .arguments = options.arguments};
    for (const Tensor& result : call_layer(layer, given, told, where)) {
      results.push_back({.dtype = result.defined() ? result.dtype() : DType::f32});
      for (int axis = 0; result.defined() && axis < result.rank(); ++axis)
        results.back().shape.dims.push_back(size_promised(result.dim(axis), named));
    }
    throw Built{};
  };
  // A model made while another function is traced, or inside another layer's call, is no part of it.
  InitScope outside;
  LayerFrame nobody;
  OnlyBuilding only_building;
  LossesDropped no_losses;
  Outputs outer = std::exchange(outputs_of_thread(), {});
  struct Restored {
    Outputs& outer;
    ~Restored() { outputs_of_thread() = std::move(outer); }
  } restored{outer};
  try {
    Function build = function("build(batch)", run, {}, Where{});  // no line of the user's
    build(unknown, where);
  } catch (const Built&) {
    return results;
  } catch (const TraceError&) {
    // It reads values, so it can only run eagerly: its first call builds it.
  } catch (const UserError& error) {
    std::vector<std::string> types;
    for (const TensorSpec& input : inputs) types.push_back(input.str());
    throw UserError(text(error.what(), "\n  the model's Input gives ", joined(types, ", "),
                         "; another type is keras::Input({…}, {.dtype = ", is_integer(inputs[0].dtype) ? "f32" : "i64",
                         "})"));
  }
  return std::nullopt;
}

/// Lists what each layer holds.
class StructureCollector : public MemberVisitor {
 public:
  explicit StructureCollector(Structure& out) : out_(out) {}

  void enter(CustomLayer& layer) {
    auto [place, is_new] = out_.holders_.try_emplace(layer.object_id());
    if (!is_new) return;
    Structure::Holder* outer = std::exchange(holder_, &place->second);
    holder_->built = layer.state().built.load(std::memory_order_acquire);
    holder_->trainable = layer.trainable();
    holder_->parts.push_back({"tables", layer.state().tables.load(std::memory_order_acquire)});
    {
      std::lock_guard lock(layer.state().guard);
      for (const Weight& weight : layer.state().weights) visit(weight.path, weight.variable);
    }
    layer.visit_members(*this);
    holder_ = outer;
  }

 private:
  void visit(const std::string& name, const Layer& layer) override {
    holder_->parts.push_back({name, layer.defined() ? layer.body()->object_id() : 0});
    if (layer.defined()) enter(static_cast<CustomLayer&>(*layer.body()));
  }
  void visit(const std::string& name, const Variable& variable) override {
    holder_->parts.push_back({name, variable.id()});
  }
  void visit(const std::string& name, const Metric& metric) override {
    holder_->parts.push_back({name, metric.defined() ? metric.body()->object_id() : 0});
  }

  Structure& out_;
  Structure::Holder* holder_ = nullptr;
};

Structure::Structure(CustomLayer& layer) { StructureCollector(*this).enter(layer); }

bool Structure::changed_since(const Structure& before) const {
  for (const auto& [layer, then] : before.holders_) {
    if (!then.built) continue;
    auto now = holders_.find(layer);
    // A layer that is gone was let go of by another, whose parts differ.
    if (now == holders_.end()) continue;
    if (now->second.parts != then.parts || now->second.trainable != then.trainable) return true;
  }
  return false;
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
  layer.state().body = &layer;
  if (std::exchange(layer.state().has_handle, true)) return;
  layer.state().constructed.last = latest_variable_id();
  // Made in the build() of a frozen layer.
  if (!running_layers().empty() && running_layers().back().layer && !running_layers().back().layer->trainable())
    layer.state().trainable = false;
}

CustomLayer& Layer::layer_body(const char* asked, Where where) const {
  if (!body_)
    throw UserError(error_text(text(asked, ": the layer is undefined"), where, "make one, as in keras::Dense(10)"));
  return static_cast<CustomLayer&>(*body_);
}

Tensor Layer::operator()(const Tensor& x, CallOptions options, Where where) const {
  std::shared_ptr<inside::Body> alive = body_;  // call() might assign to the handle it was called through
  return call_layer(layer_body("call", where), {x}, options, where)[0];
}
Tensor Layer::operator()(const Tensors& inputs, CallOptions options, Where where) const {
  std::shared_ptr<inside::Body> alive = body_;
  return call_layer(layer_body("call", where), inputs, options, where)[0];
}
Tensors Layer::call_many(const Tensors& inputs, CallOptions options, Where where) const {
  std::shared_ptr<inside::Body> alive = body_;
  return call_layer(layer_body("call", where), inputs, options, where);
}

std::vector<Tensor> Layer::losses(Where where) const { return layer_body("losses", where).losses(where); }

const std::string& Layer::name(Where where) const { return layer_body("name", where).name(); }
bool Layer::built() const { return body_ && layer_body("built", {}).state().called.load(std::memory_order_acquire); }

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
    if (weight.trainable) out.push_back(weight.variable);
  return out;
}
std::vector<Variable> Layer::non_trainable_variables() const {
  std::vector<Variable> out;
  for (const Weight& weight : weights())
    if (!weight.trainable) out.push_back(weight.variable);
  return out;
}
std::vector<Tensor> Layer::get_weights() const {
  std::vector<Tensor> out;
  for (const Weight& weight : weights()) out.push_back(stop_gradient(weight.variable.read()));
  return out;
}
void Layer::set_weights(const std::vector<Tensor>& values, Where where) const {
  const std::vector<Weight> all = weights();
  if (all.empty() && !values.empty() && !built())
    throw UserError(error_text(
        text("set_weights: ", layer_body("set_weights", where).description(), " is not built: it has no weights yet"),
        where, "call it on a batch, or start a model with keras::Input({…})"));
  if (values.size() != all.size())
    throw UserError(error_text(text("set_weights: ", values.size(), " tensors for the ", all.size(), " weights of ",
                                    layer_body("set_weights", where).description()),
                               where, "give one for each, in the order of weights()"));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Variable& variable = all[i].variable;
    bool fits =
        values[i].defined() && values[i].dtype() == variable.dtype() && values[i].rank() == variable.shape().rank();
    for (int axis = 0; fits && axis < values[i].rank(); ++axis)
      fits = inside::require(values[i].dim(axis), Relation::equal, variable.shape()[axis],
                             {"set_weights", "the size of a weight", where});
    if (!fits)
      throw UserError(error_text(text("set_weights: ", described(values[i]), " for '", all[i].path, "' of ",
                                      variable.dtype(), variable.shape()),
                                 where, "a weight keeps its type and shape"));
  }
  for (std::size_t i = 0; i < all.size(); ++i) all[i].variable.assign(values[i], where);
}
std::int64_t Layer::count_params() const {
  std::int64_t count = 0;
  for (const Weight& weight : weights()) count += weight.variable.shape().element_count().value();
  return count;
}

}  // namespace stet::keras
