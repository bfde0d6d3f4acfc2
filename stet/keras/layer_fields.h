// What configs of layers have in common: recipes of families of layers, and the forms of their arguments. Not a public
// header. Families share recipes that have the name of the class as an argument: PlainRecipe<Add, "Add", MergeOptions>.
#pragma once
#include <cstdint>
#include <vector>

#include "stet/core/signature.h"
#include "stet/keras/categories.h"
#include "stet/keras/cells.h"
#include "stet/keras/config.h"
#include "stet/ops/ops.h"

namespace stet::keras {

/// Of layers that have no options but a name and a type.
template <class Made, Literal name, class Options>
struct PlainRecipe {
  static constexpr const char *module = "keras.layers", *class_name = name.text;
  Options options = {};
  void fields(Fields& f) { f.layer(options); }
  Layer make(Where) const { return Made(options); }
};

/// A class of Keras's that is in the registry for the sake of its error: what is no layer here.
template <Literal name, Literal problem, Literal advice>
struct RefusedRecipe {
  static constexpr const char *module = "keras.layers", *class_name = name.text;
  void fields(Fields& f) { f.place().fail(problem.text, advice.text); }
  Layer make(Where) const { return {}; }
};

/// One number for each of so many axes: Keras writes a list, and takes a number for all of them. Not given: null, or
/// as `otherwise`.
void window_field(Fields& f, const char* name, WindowSizes& value, int axes, const WindowSizes& otherwise = {});
/// A number, or a list of any other length.
void axes_field(Fields& f, const char* name, Axes& value);
/// An empty list is written as null, and read from it.
void list_or_null_field(Fields& f, const char* name, std::vector<int>& value);
void list_or_null_field(Fields& f, const char* name, std::vector<std::int64_t>& value);
/// A list of sizes with null for those that are not known; null: none.
void shape_field(Fields& f, const char* name, ShapeSpec& value);
/// Numbers in lists of lists, as deep as there are axes; null: undefined. Read as f32.
void tensor_field(Fields& f, const char* name, Tensor& value);
/// "channels_last", also where nothing is given.
void data_format_field(Fields& f, std::string& value);
/// An entry of a layer that is a cell.
void cell_field(Fields& f, const char* name, RNNCell& value);
void cells_field(Fields& f, const char* name, std::vector<RNNCell>& value);
/// The "dtype" of a layer that gives integers with output_mode "int", and is of the type "int64" then.
void integer_dtype_field(Fields& f, DTypePolicy& value, const std::string& output_mode);

/// "salt": a number, or two; null: none. Written as two.
void salt_field(Fields& f, std::optional<Salt>& value);

/// The rules of all weights that the options know of: initializers, regularizers and constraints.
template <class Options>
void weight_fields(Fields& f, Options& options) {
  if constexpr (requires { options.kernel_initializer; }) {
    f("kernel_initializer", options.kernel_initializer, "glorot_uniform");
    f("kernel_regularizer", options.kernel_regularizer);
    f("kernel_constraint", options.kernel_constraint);
  }
  if constexpr (requires { options.recurrent_initializer; }) {
    f("recurrent_initializer", options.recurrent_initializer, "orthogonal");
    f("recurrent_regularizer", options.recurrent_regularizer);
    f("recurrent_constraint", options.recurrent_constraint);
  }
  if constexpr (requires { options.depthwise_initializer; }) {
    f("depthwise_initializer", options.depthwise_initializer, "glorot_uniform");
    f("depthwise_regularizer", options.depthwise_regularizer);
    f("depthwise_constraint", options.depthwise_constraint);
  }
  if constexpr (requires { options.pointwise_initializer; }) {
    f("pointwise_initializer", options.pointwise_initializer, "glorot_uniform");
    f("pointwise_regularizer", options.pointwise_regularizer);
    f("pointwise_constraint", options.pointwise_constraint);
  }
  if constexpr (requires { options.beta_initializer; }) {
    f("beta_initializer", options.beta_initializer, "zeros");
    f("gamma_initializer", options.gamma_initializer, "ones");
    f("beta_regularizer", options.beta_regularizer);
    f("gamma_regularizer", options.gamma_regularizer);
    f("beta_constraint", options.beta_constraint);
    f("gamma_constraint", options.gamma_constraint);
  }
  if constexpr (requires { options.bias_initializer; }) {
    f("bias_initializer", options.bias_initializer, "zeros");
    f("bias_regularizer", options.bias_regularizer);
    f("bias_constraint", options.bias_constraint);
  }
}

/// What recurrent layers and cells do at a step.
template <class Options>
void step_fields(Fields& f, Options& options) {
  f("activation", options.activation);
  if constexpr (requires { options.recurrent_activation; }) f("recurrent_activation", options.recurrent_activation);
  f("use_bias", options.use_bias);
  if constexpr (requires { options.unit_forget_bias; }) f("unit_forget_bias", options.unit_forget_bias);
  if constexpr (requires { options.reset_after; }) f("reset_after", options.reset_after);
  weight_fields(f, options);
  f("dropout", options.dropout);
  f("recurrent_dropout", options.recurrent_dropout);
  f("seed", options.seed);
}
/// How they go along a sequence. ConvLSTMs have no `unroll`: a loop is one op.
template <class Options>
void sequence_fields(Fields& f, Options& options, bool& zero_output_for_mask) {
  f("return_sequences", options.return_sequences);
  f("return_state", options.return_state);
  f("go_backwards", options.go_backwards);
  f("stateful", options.stateful);
  if constexpr (requires { options.unroll; })
    f("unroll", options.unroll);
  else
    f.ignored("unroll", false);
  f("zero_output_for_mask", zero_output_for_mask);
}

}  // namespace stet::keras
