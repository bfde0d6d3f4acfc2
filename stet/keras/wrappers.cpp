#include "stet/keras/wrappers.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/added_losses.h"
#include "stet/keras/layer_fields.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/recurrent_body.h"
#include "stet/ops/loops.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

RecurrentBody& body_of(const Layer& layer) { return static_cast<RecurrentBody&>(*layer.body()); }

class BidirectionalBody : public LibraryLayer, public KeepsState {
 public:
  BidirectionalBody(RecurrentLayer forward, RecurrentLayer backward, BidirectionalOptions options)
      : LibraryLayer("Bidirectional", options.name,
                     {.least = 3, .layout = "[batch, steps, features]", .inputs = 0, .checked = 1},
                     body_of(forward).how().policy),
        forward_(std::move(forward)),
        backward_(std::move(backward)),
        mode_(std::move(options.merge_mode)) {}

  void visit_members(MemberVisitor& visitor) override {
    visitor(forward_.name(), forward_);
    visitor(backward_.name(), backward_);
  }
  bool supports_masking() const override { return true; }
  Tensors compute_mask(const Tensors&, const Tensors& masks) override {
    if (!how().return_sequences || masks.empty()) return {};
    return mode_ == "none" ? Tensors{masks[0], masks[0]} : Tensors{masks[0]};
  }
  void reset_state(Where where) override {
    forward_.reset_state(where);
    backward_.reset_state(where);
  }

 protected:
  Tensors run_many(const Tensors& inputs, const Context& context) override {
    const std::size_t ahead = body_of(forward_).state_count(), back = body_of(backward_).state_count();
    if (inputs.size() != 1 && inputs.size() != 1 + ahead + back)
      throw UserError(error_text(text(description(), " takes a tensor and ", ahead + back, " states and was given ",
                                      inputs.size() - 1, " states"),
                                 context.where, "give those of the forward layer, then those of the backward layer"));
    const auto own = inputs.begin() + 1, other = inputs.size() == 1 ? own : own + static_cast<std::ptrdiff_t>(ahead);
    const CallOptions options{.training = context.training, .mask = context.mask(), .arguments = context.arguments};
    auto run = [&](const RecurrentLayer& layer, auto begin, auto end) {
      Tensors given{inputs[0]};
      given.insert(given.end(), begin, end);
      return layer.call_many(given, options, context.where);
    };
    Tensors y = run(forward_, own, other), z = run(backward_, other, inputs.end());
    if (how().return_sequences) z[0] = reverse(z[0], 1);
    Tensors out = mode_ == "none" ? Tensors{with_mask(y[0], {}), z[0]} : Tensors{merged(y[0], z[0])};
    out.insert(out.end(), y.begin() + 1, y.end());
    out.insert(out.end(), z.begin() + 1, z.end());
    return out;
  }

 private:
  const Recurrence& how() const { return body_of(forward_).how(); }
  Tensor merged(const Tensor& y, const Tensor& z) const {
    if (mode_ == "concat") return concat({y, z}, -1);
    if (mode_ == "mul") return y * z;
    return mode_ == "sum" ? y + z : (y + z) / 2;
  }

  const RecurrentLayer forward_, backward_;
  const std::string mode_;
};

/// `dtype` is no option here, and kept for those who read what is written.
std::shared_ptr<BidirectionalBody> bidirectional(const RecurrentLayer& layer, BidirectionalOptions options, Where where,
                                                 DTypePolicy dtype = {});

struct BidirectionalRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "Bidirectional";
  Layer forward = {}, backward = {};
  std::string merge_mode = "concat", name = {};
  DTypePolicy dtype = {};
  void fields(Fields& f) {
    f.layer_name(name);
    f("dtype", dtype);
    std::optional<std::string> mode;  // Keras's None is "none" here
    if (merge_mode != "none") mode = merge_mode;
    f("merge_mode", mode);
    merge_mode = mode.value_or("none");
    f.required("layer", forward);
    f("backward_layer", backward);
  }
  Layer make(Where where) const {
    BidirectionalOptions options{.merge_mode = merge_mode, .name = name};
    if (backward.defined()) options.backward_layer = RecurrentLayer::from_body(backward.body());
    return Layer(bidirectional(RecurrentLayer::from_body(forward.body()), options, where, dtype));
  }
};
const Savable<BidirectionalRecipe> savable_bidirectional;

/// "forward_" and the name, once.
std::string prefixed(const std::string& prefix, const std::string& name) {
  return name.starts_with(prefix) ? name : prefix + name;
}

std::shared_ptr<BidirectionalBody> bidirectional(const RecurrentLayer& layer, BidirectionalOptions options, Where where,
                                                 DTypePolicy dtype) {
  constexpr const char* modes[] = {"concat", "sum", "mul", "ave", "none"};
  if (std::find(std::begin(modes), std::end(modes), options.merge_mode) == std::end(modes))
    throw UserError(error_text(text("Bidirectional: there is no merge_mode '", options.merge_mode, "'"), where,
                               "one of concat, sum, mul, ave, none"));
  const std::string& name = layer.name(where);
  auto* given = dynamic_cast<RecurrentBody*>(layer.body().get());
  if (!given)
    throw UserError(error_text(text("Bidirectional around ", layer.body()->description()), where,
                               "it takes an LSTM, GRU, SimpleRNN, RNN or ConvLSTM"));
  auto handle = [](const std::shared_ptr<inside::Body>& body) { return RecurrentLayer::from_body(body); };
  std::shared_ptr<RecurrentBody> ahead = given->another(given->how().go_backwards, prefixed("forward_", name));
  const RecurrentLayer forward = ahead ? handle(ahead) : layer;
  RecurrentLayer backward = options.backward_layer;
  if (!backward.defined()) {
    std::shared_ptr<RecurrentBody> back = given->another(!given->how().go_backwards, prefixed("backward_", name));
    if (!back)
      throw UserError(error_text(
          text("Bidirectional: ", layer.body()->description(), " has a cell of your own, of which there is only one"),
          where, "give the other layer: {.backward_layer = RNN(…, {.go_backwards = true})}"));
    backward = handle(back);
  }
  auto* other = dynamic_cast<RecurrentBody*>(backward.body().get());
  const Recurrence& a = given->how();
  if (!other || a.go_backwards == other->how().go_backwards)
    throw UserError(error_text("Bidirectional: both layers go the same way", where,
                               "make the backward_layer with {.go_backwards = true}"));
  const Recurrence& b = other->how();
  if (a.return_sequences != b.return_sequences || a.return_state != b.return_state || a.stateful != b.stateful)
    throw UserError(error_text("Bidirectional: return_sequences, return_state or stateful of the layers differ", where,
                               "give both the same"));
  for (const RecurrentLayer& one : {forward, backward}) body_of(one).zero_masked_outputs(a.return_sequences);
  auto body = std::make_shared<BidirectionalBody>(forward, backward, options);
  note_recipe(*body, BidirectionalRecipe{forward, backward, options.merge_mode, options.name, dtype});
  return body;
}

// --- a layer at every step

class TimeDistributedBody : public LibraryLayer {
 public:
  TimeDistributedBody(Layer layer, std::string name)
      : LibraryLayer("TimeDistributed", std::move(name), {.least = 3, .layout = "[batch, steps, …]", .cast = false}),
        layer_(std::move(layer)) {}

  void visit_members(MemberVisitor& visitor) override { visitor(layer_.name(), layer_); }
  bool supports_masking() const override { return true; }

 protected:
  Tensor run(const Tensor& x, const Context& context) override {
    build(x, context.where);
    Tensors xs{swapped(x)};
    const Tensor mask = context.mask();
    if (mask.defined()) xs.push_back(swapped(mask));
    std::vector<LossesOfCall::Added> added;
    Tensors out = map_fn(
        [&](Tensors now) {
          // What the layer adds leaves the loop as results do.
          LossesOfCall losses_of_turn(*this);
          const Tensor y =
              layer_(now[0], {.training = context.training, .mask = now.size() > 1 ? now[1] : Tensor()}, context.where);
          added = losses_of_turn.added();
          return losses_of_turn.with({with_mask(y, {})});
        },
        xs, {}, context.where);
    for (std::size_t i = 0; i < added.size(); ++i) LossesOfCall::add({added[i].layer, sum(out[i + 1])});
    return swapped(out[0]);
  }

 private:
  /// Before the loop, inside of which nothing is made.
  void build(const Tensor& x, Where where) const {
    if (layer_.built()) return;
    Shape step;
    for (int axis = 0; axis < x.rank(); ++axis)
      if (axis != 1) step.push_back(x.dim(axis));
    build_member_as_called(layer_, {step}, {x.dtype()}, where);
  }
  static Tensor swapped(const Tensor& x) {
    std::vector<int> order(static_cast<std::size_t>(x.rank()));
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[0], order[1]);
    return transpose(x, order);
  }

  const Layer layer_;
};

struct TimeDistributedRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "TimeDistributed";
  Layer layer = {};
  TimeDistributedOptions options = {};
  DTypePolicy dtype = {};
  void fields(Fields& f) {
    f.layer_name(options.name);
    f("dtype", dtype);
    f.required("layer", layer);
  }
  Layer make(Where where) const {
    Layer made = TimeDistributed(layer, options, where);
    note_recipe(made, *this);  // with the type, which is no option here
    return made;
  }
};
const Savable<TimeDistributedRecipe> savable_time_distributed;

}  // namespace

Bidirectional::Bidirectional(const RecurrentLayer& layer, BidirectionalOptions options, Where where)
    : RecurrentLayer(bidirectional(layer, std::move(options), where)) {}
Tensors Bidirectional::with_state(const Tensor& x, RecurrentCallOptions options, Where where) const {
  return all(x, options, where);
}
std::vector<KerasTensor> Bidirectional::with_state(const KerasTensor& x, SymbolicRecurrentCallOptions options,
                                                   Where where) const {
  return all(x, options, where);
}

TimeDistributed::TimeDistributed(const Layer& layer, TimeDistributedOptions options, Where where)
    : Layer([&] {
        layer.name(where);  // it is defined
        return std::make_shared<TimeDistributedBody>(layer, options.name);
      }()) {
  note_recipe(*this, TimeDistributedRecipe{layer, std::move(options)});
}

}  // namespace stet::keras
