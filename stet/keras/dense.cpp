#include "stet/keras/dense.h"

#include "stet/base/text.h"
#include "stet/core/call.h"
#include "stet/core/size_words.h"
#include "stet/keras/layer_state.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

class DenseBody : public CustomLayer {
 public:
  DenseBody(std::int64_t units, DenseOptions options)
      : CustomLayer(options.name), units_(units), options_(std::move(options)) {}

  void build(const Shape& input) override {
    if (input.rank() < 2) return;  // call() says what is wrong
    Initializer kernel = options_.kernel_initializer, bias = options_.bias_initializer;
    kernel_ = add_weight("kernel", {input[-1], units_},
                         {.initializer = kernel.defined() ? kernel : "glorot_uniform",
                          .dtype = options_.dtype.variable_dtype(),
                          .regularizer = options_.kernel_regularizer,
                          .constraint = options_.kernel_constraint});
    if (options_.use_bias)
      bias_ = add_weight("bias", {units_},
                         {.initializer = bias.defined() ? bias : "zeros",
                          .dtype = options_.dtype.variable_dtype(),
                          .regularizer = options_.bias_regularizer,
                          .constraint = options_.bias_constraint});
  }

  bool supports_masking() const override { return true; }
  Tensor call(const Tensor& x, const Context& context) override {
    const Where where = context.where;
    if (x.rank() < 2) {
      if (!kernel_.defined()) state().built.store(false);  // by a call that fits
      throw UserError(error_text(text(description(), ": its input ", described(x), " has no batch axis"), where,
                                 "it takes [batch, …, inputs]; one sample is a batch of size 1: x[newaxis]"));
    }
    if (!require(x.dim(-1), Relation::equal, kernel_.shape()[0], {"Dense", text("inputs of '", name(), "'"), where}))
      throw UserError(error_text(text(description(), ": its input ", described(x), " has ", size_now(x.dim(-1)),
                                      " values per sample; it was built for ", kernel_.shape()[0]),
                                 where, text("give it [batch, …, ", kernel_.shape()[0], "]")));
    Tensor y = options_.activation(product(x, where), where);
    if (options_.activity_regularizer.defined()) add_loss(penalty(y, where), where);
    return y;
  }

 private:
  Tensor product(const Tensor& x, Where where) const {
    Frame frame("Dense", where);
    auto computed = [&](const Tensor& t) {
      return t.dtype() == options_.dtype.compute_dtype() ? t : cast(t, options_.dtype.compute_dtype());
    };
    Tensor out = matmul(computed(x), computed(kernel_.read()));
    return options_.use_bias ? out + computed(bias_.read()) : out;
  }

  Tensor penalty(const Tensor& y, Where where) const {
    Tensor total = options_.activity_regularizer(y, where);
    Frame frame("Dense", where);
    return total / maximum(cast(y.dim(0), total.dtype()), 1);  // no samples, no penalty
  }

  std::int64_t units_;
  DenseOptions options_;
  Variable kernel_, bias_;
};

}  // namespace

Dense::Dense(std::int64_t units, DenseOptions options, Where where)
    : Layer(std::make_shared<DenseBody>(units, options)) {
  if (units <= 0)
    throw UserError(error_text(text("Dense: ", units, " units"), where, "a layer has at least one output"));
}

}  // namespace stet::keras
