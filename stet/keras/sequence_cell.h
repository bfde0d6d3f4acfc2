// The library's own cells: what they do once for a sequence, and what at every step. Not a public header.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "stet/keras/cells.h"
#include "stet/keras/library_layer.h"
#include "stet/keras/noise_source.h"

namespace stet::keras {

/// What all steps of a sequence share: weights in the type that is computed in, and what dropout drew.
struct SequenceShared {
  Tensor kernel = {}, bias = {}, recurrent_kernel = {}, recurrent_bias = {};
  /// Factors of the input and of the state: none, one for all gates, or one for each.
  Tensors input_factors = {}, recurrent_factors = {};
  std::vector<SequenceShared> parts = {};  // of stacked cells
};

/// A cell whose input side can be computed for all steps at once.
class SequenceCell : public LibraryLayer, public Cell {
 public:
  using LibraryLayer::LibraryLayer;
  /// At the begin of a sequence whose steps have the shape of x, [batch, …].
  virtual SequenceShared begin(const Tensor& x, const Context& context) = 0;
  /// What a step needs of its input; of x [steps, batch, …], for all steps.
  virtual Tensor input_side(const Tensor& x, const SequenceShared& shared, const Context& context) = 0;
  virtual CellStep turn(const Tensor& side, const Tensors& states, const SequenceShared& shared,
                        const Context& context) = 0;
  /// The output is this tensor of the state.
  virtual bool gives_state() const { return true; }

  CellStep step(const Tensor& x, const Tensors& states, const Context& context) override;

 protected:
  Tensors run_many(const Tensors& inputs, const Context& context) override;
};

/// 0, or 1 / (1 - rate): what dropout multiplies with. The rate is below 1.
Tensor dropout_factors(const NoiseSource& source, const Shape& shape, double rate, DType dtype, Where where);
/// UserError unless both are rates that leave something.
void require_rates(const char* layer, double dropout, double recurrent_dropout, Where where);
/// UserError unless there is a unit.
void require_units(const char* layer, std::int64_t units, Where where);
/// The state's tensors among what a cell was called on; UserError unless there are as many as it has.
Tensors states_given(const Cell& cell, const CustomLayer& layer, const Tensors& inputs, Where where);
/// The bias of four gates, of which the second begins with ones.
Initializer unit_forget_rule(const Initializer& given, std::int64_t units);

/// Builds a cell that the running layer holds, for inputs [batch, …] of a step.
void build_cell(const RNNCell& cell, const Shape& step, DType dtype, Where where);
Cell& cell_of(const RNNCell& cell);

}  // namespace stet::keras
