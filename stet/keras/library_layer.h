// What the library's own layers are made of: LibraryLayer for those with weights, plain_layer() for functions of what
// goes in. Not a public header.
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "stet/keras/activation.h"
#include "stet/keras/layer.h"
#include "stet/keras/policy.h"

namespace stet::keras {

/// How many axes the inputs of a layer have, the batch axis among them, and how messages say what it takes.
struct Takes {
  int least = 0, most = 8;  // axes of every input
  const char* layout = "";  // "[batch, steps, channels]"
  int inputs = 1;           // as many tensors; 0: any number but none
  int checked = 8;          // so many of them have these axes; what comes after is the layer's to check
  bool cast = true;         // floating inputs to the type that the layer computes in
  const char* advice = "";  // to those who gave one axis less
};

/// How a weight is made: what a layer's options say of it, under the names that it has there.
struct WeightRule {
  Initializer initializer = {};
  const char* otherwise = "";  // the initializer where the user gave none
  Regularizer regularizer = {};
  Constraint constraint = {};
  bool trainable = true;
};
template <class Options>
WeightRule kernel_rule_of(const Options& options) {
  return {options.kernel_initializer, "glorot_uniform", options.kernel_regularizer, options.kernel_constraint};
}
template <class Options>
WeightRule bias_rule_of(const Options& options) {
  return {options.bias_initializer, "zeros", options.bias_regularizer, options.bias_constraint};
}
template <class Options>
WeightRule recurrent_rule_of(const Options& options) {
  return {options.recurrent_initializer, "orthogonal", options.recurrent_regularizer, options.recurrent_constraint};
}

/// What is done with the results of run(), with the user's own functions: their errors name the user's lines.
struct Finish {
  ActivationFunction activation = {};     // of the first result
  Regularizer activity_regularizer = {};  // of all of them, each divided by the number of samples
};

/// Where the activation gives probabilities, that is noted of the layer's result: see output_kind.h.
void note_probabilities(const ActivationFunction& activation, const Tensor& result, const CustomLayer& layer);

/// The line that called the layer whose call, or build, runs on this thread: where errors of make_weights are.
Where calling_line();

/// A layer of the library. Floating inputs come in the type that it computes in; errors of the ops that it uses name
/// the layer, and the line that called it.
class LibraryLayer : public CustomLayer {
 public:
  LibraryLayer(const char* class_name, std::string name, Takes takes, DTypePolicy policy = {}, Finish finish = {});

  Tensors call_many(const Tensors& inputs, const Context& context) final;
  void build_many(const std::vector<Shape>& inputs) final;

 protected:
  /// One of them is written; run() for one tensor in and out. The inputs have passed `takes`.
  virtual Tensor run(const Tensor& x, const Context& context);
  virtual Tensors run_many(const Tensors& inputs, const Context& context);
  /// Adds the weights. One of them is written, if there are any; it is not called on inputs that do not fit `takes`.
  virtual void make_weights(const Shape& input);
  virtual void make_weights_for(const std::vector<Shape>& inputs);

  /// A weight of the policy's type.
  Variable weight(std::string_view name, const Shape& shape, const WeightRule& rule);
  /// The weight in the type that the layer computes in.
  Tensor in_compute_type(const Variable& weight) const;
  /// UserError unless the axis has the size that the weights were made for: "inputs", "channels".
  void require_size(const Tensor& x, int axis, const Dim& size, const char* what, Where where) const;
  /// Told by constructors of layers with a seed: how far the generator is belongs to the layer's state.
  void draws_from(const Variable& generator);
  DType compute_dtype() const { return policy_.compute_dtype(); }
  DType variable_dtype() const { return policy_.variable_dtype(); }

 private:
  bool fits(const std::vector<int>& ranks) const;
  /// What the layer computes with: the inputs, checked and cast.
  Tensors taken(const Tensors& inputs, Where where);
  /// UserError where sizes are known, there is something in the inputs, and nothing in a result.
  void refuse_nothing(const Tensors& inputs, const Tensors& results, Where where);
  /// Throws what is wrong with a call; a layer that could not make its weights for it will make them at its next call.
  [[noreturn]] void refuse(const std::string& what, const std::string& fix, Where where);
  const Takes takes_;
  const DTypePolicy policy_;
  const Finish finish_;
  const char* const shown_;
  std::atomic<bool> made_ = false;  // make_weights has run
};

/// A layer without weights.
struct PlainLayer {
  const char* class_name;
  std::string name;
  Takes takes = {};
  std::function<Tensor(const Tensor& x, const Context& context)> call = {};  // or
  std::function<Tensor(const Tensors& inputs, const Context& context)> call_many = {};
  bool supports_masking = false;
  /// Otherwise than by passing on that of the first input.
  std::function<Tensors(const Tensors& inputs, const Tensors& masks)> compute_mask = {};
  DTypePolicy policy = {};
  Variable generator = {};  // of one with a seed
};
Layer plain_layer(PlainLayer what);

}  // namespace stet::keras
