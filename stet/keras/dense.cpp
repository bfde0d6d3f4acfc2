#include "stet/keras/dense.h"

#include "stet/base/text.h"
#include "stet/core/size_words.h"
#include "stet/keras/layer_fields.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/library_layer.h"
#include "stet/keras/output_kind.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

class DenseBody : public LibraryLayer {
 public:
  DenseBody(std::int64_t units, DenseOptions options)
      : LibraryLayer("Dense", options.name, {.least = 2, .layout = "[batch, …, inputs]"}, options.dtype,
                     {options.activation, options.activity_regularizer}),
        units_(units),
        options_(std::move(options)) {}

  bool supports_masking() const override { return true; }

 protected:
  void make_weights(const Shape& input) override {
    kernel_ = weight("kernel", {input[-1], units_}, kernel_rule_of(options_));
    if (options_.use_bias) bias_ = weight("bias", {units_}, bias_rule_of(options_));
  }
  Tensor run(const Tensor& x, const Context& context) override {
    const Dim inputs = kernel_.shape()[0];
    if (!inside::require(x.dim(-1), Relation::equal, inputs,
                         {"Dense", text("inputs of '", name(), "'"), context.where}))
      throw UserError(error_text(text(description(), ": its input ", described(x), " has ", size_now(x.dim(-1)),
                                      " values per sample; it was built for ", inputs),
                                 context.where, text("give it [batch, …, ", inputs, "]")));
    Tensor out = matmul(x.dtype() == compute_dtype() ? x : cast(x, compute_dtype()), in_compute_type(kernel_));
    if (options_.use_bias) out = out + in_compute_type(bias_);
    if (!options_.activation.defined()) OutputKinds::note(out, OutputKinds::Kind::logits, *this, "");
    return out;
  }

 private:
  const std::int64_t units_;
  const DenseOptions options_;
  Variable kernel_, bias_;
};

struct DenseRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "Dense";
  std::int64_t units = 0;
  DenseOptions options = {};

  void fields(Fields& f) {
    f.layer(options);
    f.required("units", units);
    f("activation", options.activation);
    f("use_bias", options.use_bias);
    weight_fields(f, options);
    f.if_defined("activity_regularizer", options.activity_regularizer);
  }
  Layer make(Where where) const { return Dense(units, options, where); }
};
const Savable<DenseRecipe> savable_dense;

}  // namespace

Dense::Dense(std::int64_t units, DenseOptions options, Where where)
    : Layer(std::make_shared<DenseBody>(units, options)) {
  if (units <= 0)
    throw UserError(error_text(text("Dense: ", units, " units"), where, "a layer has at least one output"));
  note_recipe(*this, DenseRecipe{units, options});
}

}  // namespace stet::keras
