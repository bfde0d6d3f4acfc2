#include "stet/keras/cells.h"

#include <array>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/layer_fields.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/sequence_cell.h"
#include "stet/ops/ops.h"

namespace stet::keras {

// --- what all cells share

Cell::~Cell() = default;
Tensors Cell::initial_state(const Tensor& x) const {
  Tensors out;
  for (std::int64_t size : state_size()) out.push_back(zeros({x.dim(0), size}, x.dtype()));
  return out;
}

Cell& cell_of(const RNNCell& cell) { return dynamic_cast<Cell&>(*cell.body()); }

Tensors states_given(const Cell& cell, const CustomLayer& layer, const Tensors& inputs, Where where) {
  const std::size_t count = cell.state_size().size();
  if (inputs.size() != 1 + count)
    throw UserError(
        error_text(text(layer.description(), " takes a tensor and ", count, count == 1 ? " state" : " states",
                        " and was given ", inputs.size() - 1, inputs.size() == 2 ? " state" : " states"),
                   where, "give all of them, in the order in which it gives them"));
  return {inputs.begin() + 1, inputs.end()};
}

namespace {

Tensors in_one(CellStep step) {
  Tensors out{std::move(step.output)};
  out.insert(out.end(), step.states.begin(), step.states.end());
  return out;
}

}  // namespace

Tensors CustomCell::call_many(const Tensors& inputs, const Context& context) {
  CellStep step = this->step(inputs[0], states_given(*this, *this, inputs, context.where), context);
  if (step.states.size() + 1 != inputs.size())
    throw UserError(
        error_text(text(description(), ": its step() gave ", step.states.size(), " states of ", inputs.size() - 1),
                   context.where, "give a tensor for every size of state_size()"));
  return in_one(std::move(step));
}

Tensors SequenceCell::run_many(const Tensors& inputs, const Context& context) {
  return in_one(step(inputs[0], states_given(*this, *this, inputs, context.where), context));
}
CellStep SequenceCell::step(const Tensor& x, const Tensors& states, const Context& context) {
  const SequenceShared shared = begin(x, context);
  return turn(input_side(x, shared, context), states, shared, context);
}

CellStep RNNCell::step(const Tensor& x, const Tensors& states, CallOptions options, Where where) const {
  Tensors inputs{x};
  inputs.insert(inputs.end(), states.begin(), states.end());
  Tensors out = call_many(inputs, std::move(options), where);
  return {out[0], {out.begin() + 1, out.end()}};
}
std::vector<std::int64_t> RNNCell::state_size(Where where) const {
  return dynamic_cast<Cell&>(layer_body("state_size", where)).state_size();
}
std::int64_t RNNCell::output_size(Where where) const {
  return dynamic_cast<Cell&>(layer_body("output_size", where)).output_size();
}

void build_cell(const RNNCell& cell, const Shape& step, DType dtype, Where where) {
  if (dynamic_cast<LibraryLayer*>(cell.body().get())) return build_member(cell, {step}, where);
  std::vector<Shape> shapes{step};
  for (std::int64_t size : cell.state_size(where)) shapes.push_back({step[0], size});
  build_member_as_called(cell, shapes, std::vector<DType>(shapes.size(), dtype), where);
}

Tensor dropout_factors(const NoiseSource& source, const Shape& shape, double rate, DType dtype, Where where) {
  Tensor keep = source->uniform(shape, {}, where) >= rate;
  return cast(keep, dtype) * (1 / (1 - rate));
}

void require_rates(const char* layer, double dropout, double recurrent_dropout, Where where) {
  for (double rate : {dropout, recurrent_dropout})
    if (!(rate >= 0 && rate < 1))
      throw UserError(
          error_text(text(layer, ": a dropout of ", rate), where, "it is a probability, from 0 to below 1"));
}
void require_units(const char* layer, std::int64_t units, Where where) {
  if (units <= 0)
    throw UserError(error_text(text(layer, ": ", units, " units"), where, "a layer has at least one output"));
  // What a file says may be anything; kernels have a block of columns for each of up to four gates.
  if (units > (std::int64_t{1} << 60))
    throw UserError(error_text(text(layer, ": ", units, " units"), where, "a tensor has at most 2^62 elements"));
}

Initializer unit_forget_rule(const Initializer& given, std::int64_t units) {
  const Initializer rule = given.defined() ? given : Initializer("zeros");
  return [rule, units](const Shape&, DType dtype) {
    return concat({rule({units}, dtype), ones({units}, dtype), rule({Dim(2) * units}, dtype)});
  };
}

// --- cells of gates

namespace {

/// What the cells of the library differ in besides their step.
struct Gates {
  const char* class_name;
  std::int64_t units;
  std::int64_t count;  // of blocks of `units` columns in the kernels
  ActivationFunction activation, recurrent_activation;
  bool use_bias;
  WeightRule kernel, recurrent_kernel, bias;
  bool two_biases = false;  // of the input and of the state, whose product the reset gate acts on
  double dropout, recurrent_dropout;
  NoiseSource source;            // that dropout draws from
  bool factors_by_gate = false;  // recurrent dropout draws for every gate, and then so does that of the input
};

class GateCell : public SequenceCell {
 public:
  GateCell(Gates gates, std::string name, DTypePolicy policy)
      : SequenceCell(gates.class_name, std::move(name),
                     {.least = 2, .most = 2, .layout = "[batch, features]", .inputs = 0}, policy),
        gates_(std::move(gates)) {
    draws_from(gates_.source.generator());
  }

  std::vector<std::int64_t> state_size() const override { return {gates_.units}; }

  SequenceShared begin(const Tensor& x, const Context& context) override {
    SequenceShared out{.kernel = in_compute_type(kernel_), .recurrent_kernel = in_compute_type(recurrent_kernel_)};
    if (gates_.use_bias) {
      Tensor bias = in_compute_type(bias_);
      out.bias = gates_.two_biases ? bias[0] : bias;
      if (gates_.two_biases) out.recurrent_bias = bias[1];
    }
    if (!context.training) return out;
    const std::int64_t draws = gates_.factors_by_gate && gates_.recurrent_dropout > 0 ? gates_.count : 1;
    for (std::int64_t i = 0; i < draws; ++i) {
      if (gates_.dropout > 0)
        out.input_factors.push_back(dropout_factors(gates_.source, {x.dim(0), kernel_.shape()[0]}, gates_.dropout,
                                                    compute_dtype(), context.where));
      if (gates_.recurrent_dropout > 0)
        out.recurrent_factors.push_back(dropout_factors(gates_.source, {x.dim(0), gates_.units},
                                                        gates_.recurrent_dropout, compute_dtype(), context.where));
    }
    return out;
  }
  Tensor input_side(const Tensor& x, const SequenceShared& shared, const Context& context) override {
    require_size(x, -1, kernel_.shape()[0], "features", context.where);
    Tensor out = product(x, shared.kernel, shared.input_factors);
    return shared.bias.defined() ? out + shared.bias : out;
  }

 protected:
  void make_weights(const Shape& input) override {
    const Dim columns = Dim(gates_.count) * gates_.units;
    kernel_ = weight("kernel", {input[-1], columns}, gates_.kernel);
    recurrent_kernel_ = weight("recurrent_kernel", {gates_.units, columns}, gates_.recurrent_kernel);
    if (gates_.use_bias)
      bias_ = weight("bias", gates_.two_biases ? Shape({2, columns}) : Shape({columns}), gates_.bias);
  }

  /// x times the kernel; x is multiplied by the factors first, for each gate by its own.
  Tensor product(const Tensor& x, const Tensor& kernel, const Tensors& factors) const {
    if (factors.empty()) return matmul(x, kernel);
    if (factors.size() == 1) return matmul(x * factors[0], kernel);
    Tensors blocks = gates(kernel), out;
    for (std::size_t i = 0; i < blocks.size(); ++i) out.push_back(matmul(x * factors[i], blocks[i]));
    return concat(out, -1);
  }
  /// The blocks of columns of the gates.
  Tensors gates(const Tensor& x) const {
    return split(x, std::vector<Dim>(static_cast<std::size_t>(gates_.count), gates_.units), -1);
  }
  Tensor activated(const Tensor& x, const Context& context) const { return gates_.activation(x, context.where); }
  Tensor gate(const Tensor& x, const Context& context) const { return gates_.recurrent_activation(x, context.where); }

  const Gates gates_;

 private:
  Variable kernel_, recurrent_kernel_, bias_;
};

class SimpleRNNCellBody : public GateCell {
 public:
  using GateCell::GateCell;
  CellStep turn(const Tensor& side, const Tensors& states, const SequenceShared& shared,
                const Context& context) override {
    Tensor h = activated(side + product(states[0], shared.recurrent_kernel, shared.recurrent_factors), context);
    return {h, {h}};
  }
};

class LSTMCellBody : public GateCell {
 public:
  using GateCell::GateCell;
  std::vector<std::int64_t> state_size() const override { return {gates_.units, gates_.units}; }
  CellStep turn(const Tensor& side, const Tensors& states, const SequenceShared& shared,
                const Context& context) override {
    Tensors z = gates(side + product(states[0], shared.recurrent_kernel, shared.recurrent_factors));
    Tensor c = gate(z[1], context) * states[1] + gate(z[0], context) * activated(z[2], context);
    Tensor h = gate(z[3], context) * activated(c, context);
    return {h, {h, c}};
  }
};

class GRUCellBody : public GateCell {
 public:
  using GateCell::GateCell;
  CellStep turn(const Tensor& side, const Tensors& states, const SequenceShared& shared,
                const Context& context) override {
    const Tensor& h = states[0];
    Tensors x = gates(side);
    return gates_.two_biases ? after(x, h, shared, context) : before(x, h, shared, context);
  }

 private:
  static CellStep mixed(const Tensor& z, const Tensor& h, const Tensor& candidate) {
    Tensor next = z * h + (1 - z) * candidate;
    return {next, {next}};
  }
  CellStep after(const Tensors& x, const Tensor& h, const SequenceShared& shared, const Context& context) const {
    Tensor inner = product(h, shared.recurrent_kernel, shared.recurrent_factors);
    if (shared.recurrent_bias.defined()) inner = inner + shared.recurrent_bias;
    Tensors y = gates(inner);
    Tensor z = gate(x[0] + y[0], context), r = gate(x[1] + y[1], context);
    return mixed(z, h, activated(x[2] + r * y[2], context));
  }
  CellStep before(const Tensors& x, const Tensor& h, const SequenceShared& shared, const Context& context) const {
    const Tensors& factors = shared.recurrent_factors;
    const Dim units = gates_.units;
    Tensors blocks = split(shared.recurrent_kernel, {units * 2, units}, -1);
    Tensor inner;
    if (factors.size() > 1) {
      Tensors two = split(blocks[0], {units, units}, -1);
      inner = concat({matmul(h * factors[0], two[0]), matmul(h * factors[1], two[1])}, -1);
    } else {
      inner = matmul(factors.empty() ? h : h * factors[0], blocks[0]);
    }
    Tensors y = split(inner, {units, units}, -1);
    Tensor z = gate(x[0] + y[0], context), r = gate(x[1] + y[1], context);
    Tensor reset = r * (factors.empty() ? h : h * factors.back());
    return mixed(z, h, activated(x[2] + matmul(reset, blocks[1]), context));
  }
};

}  // namespace

namespace {

/// What the options of all of them say.
template <class Options>
Gates gates_of(const char* class_name, std::int64_t units, std::int64_t count, const Options& options, Where where) {
  require_units(class_name, units, where);
  require_rates(class_name, options.dropout, options.recurrent_dropout, where);
  Gates out{.class_name = class_name,
            .units = units,
            .count = count,
            .activation = options.activation,
            .recurrent_activation = {},
            .use_bias = options.use_bias,
            .kernel = kernel_rule_of(options),
            .recurrent_kernel = recurrent_rule_of(options),
            .bias = bias_rule_of(options),
            .dropout = options.dropout,
            .recurrent_dropout = options.recurrent_dropout,
            .source = NoiseSource(options.seed, where)};
  if constexpr (requires { options.recurrent_activation; }) {
    out.recurrent_activation = options.recurrent_activation;
    out.factors_by_gate = true;
  }
  return out;
}

}  // namespace

namespace {

template <class Made, Literal name, class Options>
struct CellRecipe {
  static constexpr const char *module = "keras.layers", *class_name = name.text;
  std::int64_t units = 0;
  Options options = {};
  void fields(Fields& f) {
    f.layer(options);
    f.required("units", units);
    step_fields(f, options);
  }
  Layer make(Where where) const { return Made(units, options, where); }
};
using SimpleRNNCellRecipe = CellRecipe<SimpleRNNCell, "SimpleRNNCell", SimpleRNNCellOptions>;
using LSTMCellRecipe = CellRecipe<LSTMCell, "LSTMCell", LSTMCellOptions>;
using GRUCellRecipe = CellRecipe<GRUCell, "GRUCell", GRUCellOptions>;
const Savable<SimpleRNNCellRecipe> savable_simple_rnn_cell;
const Savable<LSTMCellRecipe> savable_lstm_cell;
const Savable<GRUCellRecipe> savable_gru_cell;

}  // namespace

SimpleRNNCell::SimpleRNNCell(std::int64_t units, SimpleRNNCellOptions options, Where where)
    : RNNCell(std::make_shared<SimpleRNNCellBody>(gates_of("SimpleRNNCell", units, 1, options, where), options.name,
                                                  options.dtype)) {
  note_recipe(*this, SimpleRNNCellRecipe{units, options});
}

LSTMCell::LSTMCell(std::int64_t units, LSTMCellOptions options, Where where)
    : RNNCell([&] {
        Gates gates = gates_of("LSTMCell", units, 4, options, where);
        if (options.unit_forget_bias) gates.bias.initializer = unit_forget_rule(options.bias_initializer, units);
        return std::make_shared<LSTMCellBody>(std::move(gates), options.name, options.dtype);
      }()) {
  note_recipe(*this, LSTMCellRecipe{units, options});
}

GRUCell::GRUCell(std::int64_t units, GRUCellOptions options, Where where)
    : RNNCell([&] {
        Gates gates = gates_of("GRUCell", units, 3, options, where);
        gates.two_biases = options.reset_after;
        return std::make_shared<GRUCellBody>(std::move(gates), options.name, options.dtype);
      }()) {
  note_recipe(*this, GRUCellRecipe{units, options});
}

// --- cells one after the other

namespace {

class StackedRNNCellsBody : public SequenceCell {
 public:
  StackedRNNCellsBody(std::vector<RNNCell> cells, std::string name)
      : SequenceCell("StackedRNNCells", std::move(name), {.least = 2, .layout = "[batch, features]", .inputs = 0}),
        cells_(std::move(cells)) {}

  void visit_members(MemberVisitor& visitor) override {
    for (const RNNCell& cell : cells_) visitor(cell.name(), cell);
  }
  std::vector<std::int64_t> state_size() const override {
    std::vector<std::int64_t> out;
    for (const RNNCell& cell : cells_)
      for (std::int64_t size : cell.state_size()) out.push_back(size);
    return out;
  }
  Tensors initial_state(const Tensor& x) const override {
    Tensors out;
    for (const RNNCell& cell : cells_)
      for (Tensor& state : cell_of(cell).initial_state(x)) out.push_back(std::move(state));
    return out;
  }
  std::size_t output_state() const override {
    return state_size().size() - cells_.back().state_size().size() + cell_of(cells_.back()).output_state();
  }
  std::int64_t output_size() const override { return cells_.back().output_size(); }
  bool gives_state() const override {
    auto* last = library(cells_.size() - 1);
    return last && last->gives_state();
  }

  SequenceShared begin(const Tensor& x, const Context& context) override {
    SequenceShared out;
    for (std::size_t i = 0; i < cells_.size(); ++i)
      out.parts.push_back(library(i) ? library(i)->begin(x, context) : SequenceShared());
    return out;
  }
  Tensor input_side(const Tensor& x, const SequenceShared& shared, const Context& context) override {
    return library(0) ? library(0)->input_side(x, shared.parts[0], context) : x;
  }
  CellStep turn(const Tensor& side, const Tensors& states, const SequenceShared& shared,
                const Context& context) override {
    CellStep out{.output = side};
    auto begin = states.begin();
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      const auto end = begin + static_cast<std::ptrdiff_t>(cells_[i].state_size().size());
      const Tensors own(begin, end);
      CellStep step;
      if (SequenceCell* cell = library(i)) {
        Tensor input = i == 0 ? side : cell->input_side(out.output, shared.parts[i], context);
        step = cell->turn(input, own, shared.parts[i], context);
      } else {
        LayerFrame frame(*this, name(), context.training);  // which lists the cell
        step = cells_[i].step(out.output, own, {.training = context.training}, context.where);
      }
      out.output = step.output;
      out.states.insert(out.states.end(), step.states.begin(), step.states.end());
      begin = end;
    }
    return out;
  }

 protected:
  void make_weights(const Shape& input) override {
    Shape step = input;
    for (const RNNCell& cell : cells_) {
      build_cell(cell, step, compute_dtype(), {});
      step = Shape({step[0], cell.output_size()});
    }
  }

 private:
  SequenceCell* library(std::size_t i) const { return dynamic_cast<SequenceCell*>(cells_[i].body().get()); }
  const std::vector<RNNCell> cells_;
};

struct StackedRNNCellsRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "StackedRNNCells";
  std::vector<RNNCell> cells = {};
  StackedRNNCellsOptions options = {};
  DTypePolicy dtype = {};
  void fields(Fields& f) {
    f.layer_name(options.name);
    f("dtype", dtype);
    f.required("cells");
    cells_field(f, "cells", cells);
  }
  Layer make(Where where) const {
    Layer made = StackedRNNCells(cells, options, where);
    note_recipe(made, *this);  // with the type, which is no option here
    return made;
  }
};
const Savable<StackedRNNCellsRecipe> savable_stacked_rnn_cells;

}  // namespace

StackedRNNCells::StackedRNNCells(std::vector<RNNCell> cells, StackedRNNCellsOptions options, Where where)
    : RNNCell([&] {
        if (cells.empty())
          throw UserError(error_text("StackedRNNCells: there are no cells", where, "give at least one"));
        for (std::size_t i = 0; i < cells.size(); ++i)
          for (std::size_t j = 0; j < i; ++j)
            if (cells[i].name(where) == cells[j].name(where) && cells[i].body() != cells[j].body())
              throw UserError(error_text(text("StackedRNNCells: two cells are called '", cells[i].name(), "'"), where,
                                         "give them different names, so that their weights have different paths"));
        return std::make_shared<StackedRNNCellsBody>(cells, options.name);
      }()) {
  note_recipe(*this, StackedRNNCellsRecipe{std::move(cells), std::move(options)});
}

}  // namespace stet::keras
