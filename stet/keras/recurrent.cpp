#include "stet/keras/recurrent.h"

#include <mutex>
#include <numeric>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/scope.h"
#include "stet/core/size_words.h"
#include "stet/keras/added_losses.h"
#include "stet/keras/layer_fields.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/recurrent_body.h"
#include "stet/ops/loops.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

/// Batch and steps change places.
Tensor swapped(const Tensor& x) {
  std::vector<int> order(static_cast<std::size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[0], order[1]);
  return transpose(x, order);
}

/// What counts where the mask [batch] is true, otherwise what was before.
Tensor chosen(Tensor mask, const Tensor& now, const Tensor& before) {
  while (mask.rank() < now.rank()) mask = expand_dims(mask, -1);
  return where(mask, now, before);
}

/// One sequence, run through a cell.
class Sequence {
 public:
  Sequence(const Recurrence& how, const RNNCell& cell, const Context& context)
      : how_(how),
        cell_(cell),
        context_(context),
        library_(dynamic_cast<SequenceCell*>(cell.body().get())),
        output_state_(cell_of(cell).output_state()) {}

  /// The output and the states.
  Tensors run(const Tensor& x, Tensors states, const Tensor& first) {
    Tensors xs{swapped(x)};
    if (library_) {
      shared_ = library_->begin(first, context_);
      xs[0] = library_->input_side(xs[0], shared_, context_);
    }
    const Tensor mask = context_.mask();
    if (mask.defined()) xs.push_back(swapped(mask));
    const Cell& cell = cell_of(cell_);
    carries_output_ =
        mask.defined() && !how_.zero_output_for_mask && cell.output_size() != cell.state_size()[output_state_];
    if (carries_output_) states.push_back(zeros({first.dim(0), cell.output_size()}, first.dtype()));
    const ScanLoopOptions options{.reverse = how_.go_backwards};
    // The last output of most cells is a part of their state; then nothing is stacked.
    const bool stack =
        how_.return_sequences || !library_ || !library_->gives_state() || (mask.defined() && how_.zero_output_for_mask);
    Tensor output;
    if (stack) {
      std::vector<LossesOfCall::Added> added;
      auto [last, given] = scan(
          [&](Tensors state, Tensors now) {
            // What the cell adds leaves the loop as results do.
            LossesOfCall losses_of_turn(static_cast<CustomLayer&>(*cell_.body()));
            CellStep step = counted(state, now);
            added = losses_of_turn.added();
            return std::pair(step.states, losses_of_turn.with({step.output}));
          },
          std::move(states), xs, options, context_.where);
      for (std::size_t i = 0; i < added.size(); ++i) LossesOfCall::add({added[i].layer, sum(given[i + 1])});
      const Tensor outputs = given[0];
      states = std::move(last);
      if (how_.return_sequences)
        output = swapped(how_.go_backwards ? reverse(outputs, 0) : outputs);
      else
        output = outputs[how_.go_backwards ? 0 : -1];
    } else {
      states = scan([&](Tensors state, Tensors now) { return counted(state, now).states; }, std::move(states), xs,
                    options, context_.where);
      output = states[output_state_];
    }
    if (carries_output_) states.pop_back();
    Tensors out{output};
    out.insert(out.end(), states.begin(), states.end());
    return out;
  }

 private:
  /// A step that leaves things as they are where it is masked.
  CellStep counted(Tensors state, const Tensors& now) const {
    Tensor before = carries_output_ ? state.back() : state[output_state_];
    if (carries_output_) state.pop_back();
    CellStep step = library_ ? library_->turn(now[0], state, shared_, context_)
                             : cell_.step(now[0], state, {.training = context_.training}, context_.where);
    if (now.size() < 2) return step;
    step.output = chosen(now[1], step.output, how_.zero_output_for_mask ? zeros_like(step.output) : before);
    for (std::size_t i = 0; i < state.size(); ++i) step.states[i] = chosen(now[1], step.states[i], state[i]);
    if (carries_output_) step.states.push_back(step.output);
    return step;
  }

  const Recurrence& how_;
  const RNNCell& cell_;
  const Context& context_;
  SequenceCell* const library_;
  const std::size_t output_state_;
  bool carries_output_ = false;  // behind the state: it is no part of it, and masked steps repeat it
  SequenceShared shared_;
};

}  // namespace

// --- the body

RecurrentBody::RecurrentBody(Recurrence how, RNNCell cell, std::string name)
    : LibraryLayer(how.class_name, std::move(name), how.takes, how.policy,
                   {.activity_regularizer = how.activity_regularizer}),
      how_(std::move(how)),
      cell_(std::move(cell)) {
  set_recipe(how_.recipe(how_));
}

void RecurrentBody::zero_masked_outputs(bool zero) {
  how_.zero_output_for_mask = zero;
  set_recipe(how_.recipe(how_));
}

Tensors RecurrentBody::compute_mask(const Tensors&, const Tensors& masks) {
  return how_.return_sequences && !masks.empty() ? Tensors{masks[0]} : Tensors{};
}

std::shared_ptr<RecurrentBody> RecurrentBody::another(bool go_backwards, std::string name) const {
  if (!how_.make_cell) return nullptr;
  Recurrence how = how_;
  how.go_backwards = go_backwards;
  std::shared_ptr<RecurrentBody> out = recurrent_body(std::move(how), std::move(name));
  if (!trainable()) out->set_trainable(false);
  return out;
}
std::shared_ptr<RecurrentBody> recurrent_body(Recurrence how, std::string name) {
  RNNCell cell = how.make_cell();
  return std::make_shared<RecurrentBody>(std::move(how), std::move(cell), std::move(name));
}

void RecurrentBody::make_weights_for(const std::vector<Shape>& inputs) {
  Shape step;
  for (int axis = 0; axis < inputs[0].rank(); ++axis)
    if (axis != 1) step.push_back(inputs[0][axis]);
  build_cell(cell_, step, compute_dtype(), {});
}

Tensors RecurrentBody::run_many(const Tensors& inputs, const Context& context) {
  const Tensor& x = inputs[0];
  // What a step looks like; nobody reads its values.
  Shape step;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (axis != 1) step.push_back(x.dim(axis));
  const Tensor first = zeros(step, compute_dtype());
  Tensors states = inputs.size() > 1 ? states_given(cell_of(cell_), *this, inputs, context.where)
                   : how_.stateful   ? kept_state(first, context)
                                     : cell_of(cell_).initial_state(first);
  Tensors out = Sequence(how_, cell_, context).run(x, std::move(states), first);
  if (how_.stateful && !only_building()) {
    kept_state(first, context);  // makes them where the call was given a state
    std::lock_guard lock(guard_);
    for (std::size_t i = 0; i < states_.size(); ++i) states_[i].assign(cast(out[i + 1], states_[i].dtype()));
  }
  const auto* told = dynamic_cast<const RecurrentArguments*>(context.arguments.get());
  if (!how_.return_state && !(told && told->return_state)) out.resize(1);
  return out;
}

Tensors RecurrentBody::kept_state(const Tensor& first, const Context& context) {
  Tensors initial = cell_of(cell_).initial_state(first);
  if (only_building()) return initial;
  std::lock_guard lock(guard_);
  if (states_.empty()) {
    std::vector<Shape> shapes;
    for (const Tensor& state : initial) {
      std::vector<std::int64_t> sizes;
      for (const Dim& dim : state.shape()) sizes.push_back(dim.value(context.where));
      shapes.emplace_back(sizes);
    }
    InitScope outside;
    for (const Shape& shape : shapes)
      states_.emplace_back(zeros(shape, variable_dtype()),
                           VariableOptions{.trainable = false, .name = text(name(), "/rnn_state")});
  }
  Tensors out;
  for (const Variable& state : states_) {
    if (!inside::require(first.dim(0), Relation::equal, state.shape()[0],
                         {how_.class_name, text("the batch of '", name(), "', which is stateful"), context.where}))
      throw UserError(error_text(text(description(), " is stateful: it was called with a batch of ", state.shape()[0],
                                      " and now with one of ", size_now(first.dim(0))),
                                 context.where, "all batches have one size; another one takes another layer"));
    out.push_back(in_compute_type(state));
  }
  return out;
}

void RecurrentBody::reset_state(Where where) {
  if (!how_.stateful)
    throw UserError(
        error_text(text("reset_state: ", description(), " keeps no state"), where, "make it with {.stateful = true}"));
  std::lock_guard lock(guard_);
  for (const Variable& state : states_) state.assign(zeros(state.shape(), state.dtype()), where);
}

// --- handles

namespace {

CallOptions with_arguments(std::optional<bool> training, const Tensor& mask, bool return_state) {
  CallOptions out{.training = training, .mask = mask};
  if (return_state) {
    auto arguments = std::make_shared<RecurrentArguments>();
    arguments->return_state = true;
    out.arguments = std::move(arguments);
  }
  return out;
}
template <class T>
std::vector<T> in_one(const T& x, const std::vector<T>& states) {
  std::vector<T> out{x};
  out.insert(out.end(), states.begin(), states.end());
  return out;
}

}  // namespace

Tensor RecurrentLayer::operator()(const Tensor& x, RecurrentCallOptions options, Where where) const {
  return call_many(in_one(x, options.initial_state), with_arguments(options.training, options.mask, false), where)[0];
}
Tensor RecurrentLayer::operator()(const Tensors& inputs, CallOptions options, Where where) const {
  return call_many(inputs, std::move(options), where)[0];
}
KerasTensor RecurrentLayer::operator()(const KerasTensor& x, SymbolicRecurrentCallOptions options, Where where) const {
  return call_many(in_one(x, options.initial_state), with_arguments(options.training, {}, false), where)[0];
}
KerasTensor RecurrentLayer::operator()(const std::vector<KerasTensor>& inputs, CallOptions options, Where where) const {
  return call_many(inputs, std::move(options), where)[0];
}
Tensors RecurrentLayer::all(const Tensor& x, const RecurrentCallOptions& options, Where where) const {
  return call_many(in_one(x, options.initial_state), with_arguments(options.training, options.mask, true), where);
}
std::vector<KerasTensor> RecurrentLayer::all(const KerasTensor& x, const SymbolicRecurrentCallOptions& options,
                                             Where where) const {
  return call_many(in_one(x, options.initial_state), with_arguments(options.training, {}, true), where);
}
void RecurrentLayer::reset_state(Where where) const {
  dynamic_cast<KeepsState&>(layer_body("reset_state", where)).reset_state(where);
}

namespace {

struct RNNRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "RNN";
  RNNCell cell = {};
  RNNOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    sequence_fields(f, options, options.zero_output_for_mask);
    f.required("cell");
    cell_field(f, "cell", cell);
    f.if_defined("activity_regularizer", options.activity_regularizer);
  }
  Layer make(Where where) const { return RNN(cell, options, where); }
};
const Savable<RNNRecipe> savable_rnn;

template <class Made, Literal name, class Options>
struct RecurrentRecipe {
  static constexpr const char *module = "keras.layers", *class_name = name.text;
  std::int64_t units = 0;
  Options options = {};
  void fields(Fields& f) {
    f.layer(options);
    sequence_fields(f, options, options.zero_output_for_mask);
    f.required("units", units);
    step_fields(f, options);
    f("activity_regularizer", options.activity_regularizer);
  }
  Layer make(Where where) const { return Made(units, options, where); }
};
using SimpleRNNRecipe = RecurrentRecipe<SimpleRNN, "SimpleRNN", SimpleRNNOptions>;
using LSTMRecipe = RecurrentRecipe<LSTM, "LSTM", LSTMOptions>;
using GRURecipe = RecurrentRecipe<GRU, "GRU", GRUOptions>;
const Savable<SimpleRNNRecipe> savable_simple_rnn;
const Savable<LSTMRecipe> savable_lstm;
const Savable<GRURecipe> savable_gru;

/// Of a layer that goes along a sequence as `how` says, which another may have changed since it was made.
template <class R>
RecipePointer recipe_for(R recipe, const Recurrence& how) {
  recipe.options.go_backwards = how.go_backwards;
  recipe.options.zero_output_for_mask = how.zero_output_for_mask;
  return std::make_shared<const RecipeOf<R>>(std::move(recipe));
}

}  // namespace

RNN::RNN(RNNCell cell, RNNOptions options, Where where)
    : RecurrentLayer([&] {
        if (!cell.defined())
          throw UserError(error_text("RNN: the cell is undefined", where, "give it one: RNN(LSTMCell(32))"));
        return std::make_shared<RecurrentBody>(
            Recurrence{.class_name = "RNN",
                       .takes = {.least = 3, .layout = "[batch, steps, features]", .inputs = 0, .checked = 1},
                       .return_sequences = options.return_sequences,
                       .return_state = options.return_state,
                       .go_backwards = options.go_backwards,
                       .stateful = options.stateful,
                       .zero_output_for_mask = options.zero_output_for_mask,
                       .policy = options.dtype,
                       .activity_regularizer = options.activity_regularizer,
                       .recipe =
                           [=](const Recurrence& how) {
                             return recipe_for(RNNRecipe{cell, options}, how);
                           }},
            cell, options.name);
      }()) {}
RNN::RNN(std::vector<RNNCell> cells, RNNOptions options, Where where)
    : RNN(StackedRNNCells(std::move(cells), {}, where), std::move(options), where) {}

std::pair<Tensor, Tensors> RNN::with_state(const Tensor& x, RecurrentCallOptions options, Where where) const {
  Tensors out = all(x, options, where);
  return {out[0], {out.begin() + 1, out.end()}};
}
std::pair<KerasTensor, std::vector<KerasTensor>> RNN::with_state(const KerasTensor& x,
                                                                 SymbolicRecurrentCallOptions options,
                                                                 Where where) const {
  std::vector<KerasTensor> out = all(x, options, where);
  return {out[0], {out.begin() + 1, out.end()}};
}

namespace {

/// What the options of a layer say of its cell.
template <class CellOptions, class Options>
CellOptions of_cell(const Options& options, const char* name) {
  CellOptions out;
  out.activation = options.activation;
  if constexpr (requires { options.recurrent_activation; }) out.recurrent_activation = options.recurrent_activation;
  out.use_bias = options.use_bias;
  out.kernel_initializer = options.kernel_initializer;
  out.recurrent_initializer = options.recurrent_initializer;
  out.bias_initializer = options.bias_initializer;
  if constexpr (requires { options.unit_forget_bias; }) out.unit_forget_bias = options.unit_forget_bias;
  out.kernel_regularizer = options.kernel_regularizer;
  out.recurrent_regularizer = options.recurrent_regularizer;
  out.bias_regularizer = options.bias_regularizer;
  out.kernel_constraint = options.kernel_constraint;
  out.recurrent_constraint = options.recurrent_constraint;
  out.bias_constraint = options.bias_constraint;
  out.dropout = options.dropout;
  out.recurrent_dropout = options.recurrent_dropout;
  out.seed = options.seed;
  if constexpr (requires { options.reset_after; }) out.reset_after = options.reset_after;
  out.name = name;
  out.dtype = options.dtype;
  return out;
}

template <class Cell, class CellOptions, class R, class Options>
std::shared_ptr<RecurrentBody> body_of(const char* layer, const char* cell, std::int64_t units, const Options& options,
                                       Where where) {
  require_units(layer, units, where);
  require_rates(layer, options.dropout, options.recurrent_dropout, where);
  return recurrent_body({.class_name = layer,
                         .make_cell = [=] { return Cell(units, of_cell<CellOptions>(options, cell)); },
                         .return_sequences = options.return_sequences,
                         .return_state = options.return_state,
                         .go_backwards = options.go_backwards,
                         .stateful = options.stateful,
                         .zero_output_for_mask = options.zero_output_for_mask,
                         .policy = options.dtype,
                         .activity_regularizer = options.activity_regularizer,
                         .recipe =
                             [=](const Recurrence& how) {
                               return recipe_for(R{units, options}, how);
                             }},
                        options.name);
}

}  // namespace

SimpleRNN::SimpleRNN(std::int64_t units, SimpleRNNOptions options, Where where)
    : RecurrentLayer(body_of<SimpleRNNCell, SimpleRNNCellOptions, SimpleRNNRecipe>("SimpleRNN", "simple_rnn_cell",
                                                                                   units, options, where)) {}
LSTM::LSTM(std::int64_t units, LSTMOptions options, Where where)
    : RecurrentLayer(body_of<LSTMCell, LSTMCellOptions, LSTMRecipe>("LSTM", "lstm_cell", units, options, where)) {}
GRU::GRU(std::int64_t units, GRUOptions options, Where where)
    : RecurrentLayer(body_of<GRUCell, GRUCellOptions, GRURecipe>("GRU", "gru_cell", units, options, where)) {}

namespace {

template <class T>
std::tuple<T, T> two(const std::vector<T>& x) {
  return {x[0], x[1]};
}
template <class T>
std::tuple<T, T, T> three(const std::vector<T>& x) {
  return {x[0], x[1], x[2]};
}

}  // namespace

std::tuple<Tensor, Tensor> SimpleRNN::with_state(const Tensor& x, RecurrentCallOptions options, Where where) const {
  return two(all(x, options, where));
}
std::tuple<KerasTensor, KerasTensor> SimpleRNN::with_state(const KerasTensor& x, SymbolicRecurrentCallOptions options,
                                                           Where where) const {
  return two(all(x, options, where));
}
std::tuple<Tensor, Tensor, Tensor> LSTM::with_state(const Tensor& x, RecurrentCallOptions options, Where where) const {
  return three(all(x, options, where));
}
std::tuple<KerasTensor, KerasTensor, KerasTensor> LSTM::with_state(const KerasTensor& x,
                                                                   SymbolicRecurrentCallOptions options,
                                                                   Where where) const {
  return three(all(x, options, where));
}
std::tuple<Tensor, Tensor> GRU::with_state(const Tensor& x, RecurrentCallOptions options, Where where) const {
  return two(all(x, options, where));
}
std::tuple<KerasTensor, KerasTensor> GRU::with_state(const KerasTensor& x, SymbolicRecurrentCallOptions options,
                                                     Where where) const {
  return two(all(x, options, where));
}

}  // namespace stet::keras
