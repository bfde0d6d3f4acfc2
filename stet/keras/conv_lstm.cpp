#include "stet/keras/conv_lstm.h"

#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/layer_fields.h"
#include "stet/keras/recurrent_body.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

class ConvLSTMCellBody : public SequenceCell {
 public:
  ConvLSTMCellBody(std::int64_t filters, std::vector<std::int64_t> window, ConvLSTMOptions options, Where where)
      : SequenceCell("ConvLSTMCell", "conv_lstm_cell", {.least = 3, .layout = "[batch, …, channels]", .inputs = 0},
                     options.dtype),
        filters_(filters),
        window_(std::move(window)),
        source_(options.seed, where),
        options_(std::move(options)) {
    draws_from(source_.generator());
  }

  std::vector<std::int64_t> state_size() const override { return {filters_, filters_}; }
  /// Of the sizes that the convolution of the input gives.
  Tensors initial_state(const Tensor& x) const override {
    Shape shape({x.dim(0)});
    for (int axis = 0; axis < spatial(); ++axis) {
      const auto at = static_cast<std::size_t>(axis);
      const Dim size = x.dim(axis + 1);
      const std::int64_t stride = options_.strides[at];
      const Dim reach = (Dim(window_[at]) - 1) * options_.dilation_rate[at];
      shape.push_back(options_.padding == "same" ? (size + (stride - 1)) / stride : (size - reach - 1) / stride + 1);
    }
    shape.push_back(filters_);
    return {zeros(shape, x.dtype()), zeros(shape, x.dtype())};
  }

  SequenceShared begin(const Tensor& x, const Context& context) override {
    SequenceShared out{.kernel = in_compute_type(kernel_), .recurrent_kernel = in_compute_type(recurrent_kernel_)};
    if (options_.use_bias) out.bias = in_compute_type(bias_);
    if (!context.training) return out;
    const Shape state = initial_state(x)[0].shape();
    for (int gate = 0; gate < 4; ++gate) {
      if (options_.dropout > 0)
        out.input_factors.push_back(
            dropout_factors(source_, x.shape(), options_.dropout, compute_dtype(), context.where));
      if (options_.recurrent_dropout > 0)
        out.recurrent_factors.push_back(
            dropout_factors(source_, state, options_.recurrent_dropout, compute_dtype(), context.where));
    }
    return out;
  }
  Tensor input_side(const Tensor& x, const SequenceShared& shared, const Context& context) override {
    require_size(x, -1, kernel_.shape()[-2], "channels", context.where);
    Tensor out = by_gate(x, shared.kernel, shared.input_factors, true);
    return shared.bias.defined() ? out + shared.bias : out;
  }
  CellStep turn(const Tensor& side, const Tensors& states, const SequenceShared& shared,
                const Context& context) override {
    Tensors z = gates(side + by_gate(states[0], shared.recurrent_kernel, shared.recurrent_factors, false));
    auto gate = [&](const Tensor& x) { return options_.recurrent_activation(x, context.where); };
    auto activated = [&](const Tensor& x) { return options_.activation(x, context.where); };
    Tensor c = gate(z[1]) * states[1] + gate(z[0]) * activated(z[2]);
    Tensor h = gate(z[3]) * activated(c);
    return {h, {h, c}};
  }

 protected:
  void make_weights(const Shape& input) override {
    auto kernel = [&](const Dim& channels) {
      Shape shape;
      for (std::int64_t size : window_) shape.push_back(size);
      shape.push_back(channels);
      shape.push_back(Dim(4) * filters_);
      return shape;
    };
    kernel_ = weight("kernel", kernel(input[-1]), kernel_rule_of(options_));
    recurrent_kernel_ = weight("recurrent_kernel", kernel(filters_), recurrent_rule_of(options_));
    if (!options_.use_bias) return;
    WeightRule bias = bias_rule_of(options_);
    if (options_.unit_forget_bias) bias.initializer = unit_forget_rule(options_.bias_initializer, filters_);
    bias_ = weight("bias", {Dim(4) * filters_}, bias);
  }

 private:
  int spatial() const { return static_cast<int>(window_.size()); }
  Tensors gates(const Tensor& x) const { return split(x, std::vector<Dim>(4, filters_), -1); }

  /// The convolution with the kernel; each gate's, of x times its own factors, where there are any.
  Tensor by_gate(const Tensor& x, const Tensor& kernel, const Tensors& factors, bool input) const {
    if (factors.empty()) return convolved(x, kernel, input);
    Tensors blocks = gates(kernel), out;
    for (std::size_t i = 0; i < blocks.size(); ++i) out.push_back(convolved(x * factors[i], blocks[i], input));
    return concat(out, -1);
  }
  /// Of x [batch, …, channels], or of all steps [steps, batch, …, channels].
  Tensor convolved(const Tensor& x, const Tensor& kernel, bool input) const {
    if (x.rank() > spatial() + 2) {
      Shape merged({x.dim(0) * x.dim(1)}), parted({x.dim(0), x.dim(1)});
      for (int axis = 2; axis < x.rank(); ++axis) merged.push_back(x.dim(axis));
      Tensor out = convolved(reshape(x, merged), kernel, input);
      for (int axis = 1; axis < out.rank(); ++axis) parted.push_back(out.dim(axis));
      return reshape(out, parted);
    }
    const std::vector<std::int64_t> ones(window_.size(), 1);
    const std::vector<std::int64_t>& strides = input ? options_.strides : ones;
    const std::vector<std::int64_t>& dilations = input ? options_.dilation_rate : ones;
    const WindowPadding padding = input ? options_.padding : std::string("same");
    if (spatial() == 1) return conv1d(x, kernel, {.strides = strides, .padding = padding, .dilations = dilations});
    if (spatial() == 2) return conv2d(x, kernel, {.strides = strides, .padding = padding, .dilations = dilations});
    return conv3d(x, kernel, {.strides = strides, .padding = padding, .dilations = dilations});
  }

  const std::int64_t filters_;
  const std::vector<std::int64_t> window_;
  const NoiseSource source_;
  const ConvLSTMOptions options_;
  Variable kernel_, recurrent_kernel_, bias_;
};

template <class Made, Literal name, int axes>
struct ConvLSTMRecipe {
  static constexpr const char *module = "keras.layers", *class_name = name.text;
  std::int64_t filters = 0;
  std::vector<std::int64_t> kernel_size = {};
  ConvLSTMOptions options = {};
  bool zero_output_for_mask = false;  // no option: a Bidirectional sets it

  void fields(Fields& f) {
    f.layer(options);
    sequence_fields(f, options, zero_output_for_mask);
    f.required("filters", filters);
    f.required("kernel_size");
    sizes(f, "kernel_size", kernel_size);
    sizes(f, "strides", options.strides);
    f("padding", options.padding);
    f.only("data_format", "channels_last");
    sizes(f, "dilation_rate", options.dilation_rate);
    step_fields(f, options);
    f("activity_regularizer", options.activity_regularizer);
  }
  Layer make(Where where) const {
    Layer made = of(where);
    static_cast<RecurrentBody&>(*made.body()).zero_masked_outputs(zero_output_for_mask);
    return made;
  }

 private:
  /// A number stands for all axes; none: 1.
  static void sizes(Fields& f, const char* argument, std::vector<std::int64_t>& value) {
    if (!f.reading() && value.size() <= 1) value.assign(axes, value.empty() ? 1 : value[0]);
    list_or_null_field(f, argument, value);
  }
  Layer of(Where where) const {
    if constexpr (axes == 1) {
      if (kernel_size.size() != 1)
        throw UserError(error_text(text(class_name, ": ", kernel_size.size(), " numbers as kernel_size"), where,
                                   "give it one number"));
      return Made(filters, kernel_size[0], options, where);
    } else {
      return kernel_size.size() == 1 ? Made(filters, kernel_size[0], options, where)
                                     : Made(filters, kernel_size, options, where);
    }
  }
};
const Savable<ConvLSTMRecipe<ConvLSTM1D, "ConvLSTM1D", 1>> savable_conv_lstm_1d;
const Savable<ConvLSTMRecipe<ConvLSTM2D, "ConvLSTM2D", 2>> savable_conv_lstm_2d;
const Savable<ConvLSTMRecipe<ConvLSTM3D, "ConvLSTM3D", 3>> savable_conv_lstm_3d;

template <class R>
std::shared_ptr<RecurrentBody> conv_lstm(const char* layer, const char* layout, std::int64_t filters,
                                         const std::vector<std::int64_t>& window, std::size_t spatial,
                                         ConvLSTMOptions options, Where where) {
  if (filters <= 0)
    throw UserError(error_text(text(layer, ": ", filters, " filters"), where, "a layer has at least one output"));
  if (filters > (std::int64_t{1} << 60))
    throw UserError(error_text(text(layer, ": ", filters, " filters"), where, "a tensor has at most 2^62 elements"));
  require_rates(layer, options.dropout, options.recurrent_dropout, where);
  if (options.padding != "valid" && options.padding != "same")
    throw UserError(
        error_text(text(layer, ": there is no padding '", options.padding, "'"), where, "one of valid, same"));
  for (std::vector<std::int64_t>* sizes : {&options.strides, &options.dilation_rate})
    if (sizes->size() <= 1) sizes->assign(spatial, sizes->empty() ? 1 : sizes->front());
  for (const std::vector<std::int64_t>& sizes : {window, options.strides, options.dilation_rate}) {
    bool fits = sizes.size() == spatial;
    for (std::int64_t size : sizes) fits = fits && size > 0;
    if (!fits)
      throw UserError(error_text(text(layer, ": kernel_size, strides and dilation_rate are positive"), where,
                                 text("give each ", spatial, spatial == 1 ? " number" : " numbers")));
  }
  const int rank = static_cast<int>(spatial) + 3;
  return recurrent_body(
      {.class_name = layer,
       .takes = {.least = rank, .most = rank, .layout = layout, .inputs = 0, .checked = 1},
       .make_cell = [filters, window, options,
                     where] { return RNNCell(std::make_shared<ConvLSTMCellBody>(filters, window, options, where)); },
       .return_sequences = options.return_sequences,
       .return_state = options.return_state,
       .go_backwards = options.go_backwards,
       .stateful = options.stateful,
       .policy = options.dtype,
       .activity_regularizer = options.activity_regularizer,
       .recipe = [filters, window, options](const Recurrence& how) -> RecipePointer {
         R recipe{filters, window, options, how.zero_output_for_mask};
         recipe.options.go_backwards = how.go_backwards;
         return std::make_shared<const RecipeOf<R>>(std::move(recipe));
       }},
      options.name);
}

}  // namespace

ConvLSTM1D::ConvLSTM1D(std::int64_t filters, std::int64_t kernel_size, ConvLSTMOptions options, Where where)
    : RecurrentLayer(conv_lstm<ConvLSTMRecipe<ConvLSTM1D, "ConvLSTM1D", 1>>(
          "ConvLSTM1D", "[batch, steps, length, channels]", filters, {kernel_size}, 1, std::move(options), where)) {}
ConvLSTM2D::ConvLSTM2D(std::int64_t filters, std::vector<std::int64_t> kernel_size, ConvLSTMOptions options,
                       Where where)
    : RecurrentLayer(conv_lstm<ConvLSTMRecipe<ConvLSTM2D, "ConvLSTM2D", 2>>(
          "ConvLSTM2D", "[batch, steps, height, width, channels]", filters, kernel_size, 2, std::move(options),
          where)) {}
ConvLSTM3D::ConvLSTM3D(std::int64_t filters, std::vector<std::int64_t> kernel_size, ConvLSTMOptions options,
                       Where where)
    : RecurrentLayer(conv_lstm<ConvLSTMRecipe<ConvLSTM3D, "ConvLSTM3D", 3>>(
          "ConvLSTM3D", "[batch, steps, depth, height, width, channels]", filters, kernel_size, 3, std::move(options),
          where)) {}

std::tuple<Tensor, Tensor, Tensor> ConvLSTM1D::with_state(const Tensor& x, RecurrentCallOptions options,
                                                          Where where) const {
  Tensors out = all(x, options, where);
  return {out[0], out[1], out[2]};
}
std::tuple<Tensor, Tensor, Tensor> ConvLSTM2D::with_state(const Tensor& x, RecurrentCallOptions options,
                                                          Where where) const {
  Tensors out = all(x, options, where);
  return {out[0], out[1], out[2]};
}
std::tuple<Tensor, Tensor, Tensor> ConvLSTM3D::with_state(const Tensor& x, RecurrentCallOptions options,
                                                          Where where) const {
  Tensors out = all(x, options, where);
  return {out[0], out[1], out[2]};
}

}  // namespace stet::keras
