// What stands behind recurrent layers. Not a public header.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stet/base/lock.h"
#include "stet/keras/library_layer.h"
#include "stet/keras/recurrent.h"
#include "stet/keras/sequence_cell.h"

namespace stet::keras {

/// How a layer runs its cell.
struct Recurrence {
  const char* class_name;
  Takes takes = {.least = 3,
                 .most = 3,
                 .layout = "[batch, steps, features]",
                 .inputs = 0,
                 .checked = 1,
                 .advice = "a recurrent layer before it gives a sequence with .return_sequences = true"};
  /// Another cell like it; none: there is only the user's.
  std::function<RNNCell()> make_cell = {};
  bool return_sequences = false, return_state = false, go_backwards = false, stateful = false;
  bool zero_output_for_mask = false;
  DTypePolicy policy = {};
  Regularizer activity_regularizer = {};
  /// What a layer that runs its cell so was made from.
  std::function<RecipePointer(const Recurrence& how)> recipe = {};
};

/// What calls say besides tensors.
struct RecurrentArguments : CallArguments {
  bool return_state = false;
};

/// A layer that may keep its state from call to call.
class KeepsState {
 public:
  virtual ~KeepsState() = default;
  virtual void reset_state(Where where) = 0;
};

class RecurrentBody : public LibraryLayer, public KeepsState {
 public:
  RecurrentBody(Recurrence how, RNNCell cell, std::string name);

  bool supports_masking() const override { return true; }
  Tensors compute_mask(const Tensors& inputs, const Tensors& masks) override;
  void visit_members(MemberVisitor& visitor) override { visitor(cell_.name(), cell_); }
  void reset_state(Where where) override;

  const Recurrence& how() const { return how_; }
  std::size_t state_count() const { return cell_of(cell_).state_size().size(); }
  void zero_masked_outputs(bool zero);
  /// A layer like it, without its weights; nothing if its cell is the user's.
  std::shared_ptr<RecurrentBody> another(bool go_backwards, std::string name) const;

 protected:
  void make_weights_for(const std::vector<Shape>& inputs) override;
  Tensors run_many(const Tensors& inputs, const Context& context) override;

 private:
  Tensors kept_state(const Tensor& first, const Context& context);

  Recurrence how_;
  const RNNCell cell_;
  Lock guard_;                    // of what follows
  std::vector<Variable> states_;  // of a stateful layer, once it was called
};

/// The body of a layer that makes its own cells.
std::shared_ptr<RecurrentBody> recurrent_body(Recurrence how, std::string name);

}  // namespace stet::keras
