#include "stet/keras/loss.h"

#include <string_view>

#include "stet/base/text.h"
#include "stet/core/call.h"
#include "stet/keras/columns.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/names.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

class FunctionLossBody : public CustomLoss {
 public:
  explicit FunctionLossBody(Loss::Function per_sample) : f_(std::move(per_sample)) {}
  Tensor call(const Tensor& y_true, const Tensor& y_pred) override { return f_(y_true, y_pred); }
  std::string description() const override { return "loss function"; }

 private:
  Loss::Function f_;
};

/// One of ours: errors in it name the line that called the loss, not a line of the library.
class LibraryLossBody : public CustomLoss {
 public:
  using PerSample = Tensor (*)(const Tensor&, const Tensor&, LossOptions, Where);
  LibraryLossBody(PerSample per_sample, LossOptions options) : f_(per_sample), options_(options) {}
  Tensor call(const Tensor& y_true, const Tensor& y_pred) override { return call_at(y_true, y_pred, {}); }
  Tensor call_at(const Tensor& y_true, const Tensor& y_pred, Where where) {
    return f_(y_true, y_pred, options_, where);
  }
  std::string description() const override { return "loss"; }

 private:
  PerSample f_;
  LossOptions options_;
};

Tensor squared_error(const Tensor& y_true, const Tensor& y_pred, LossOptions, Where where) {
  return losses::mean_squared_error(y_true, y_pred, where);
}
Tensor absolute_error(const Tensor& y_true, const Tensor& y_pred, LossOptions, Where where) {
  return losses::mean_absolute_error(y_true, y_pred, where);
}
FromBody of_library(LibraryLossBody::PerSample per_sample, LossOptions options = {}) {
  return {std::make_shared<LibraryLossBody>(per_sample, options)};
}

constexpr double smallest_probability = 1e-7;  // Keras's epsilon
Tensor clipped(const Tensor& probability) {
  return minimum(maximum(probability, smallest_probability), 1 - smallest_probability);
}
Tensor floating(const Tensor& t) { return is_floating(t.dtype()) ? t : cast(t, f32); }

/// The labels in the type of the predictions; a UserError when the two do not have the same shape.
Tensor matching(const char* loss, const Tensor& y_true, const Tensor& y_pred, Where where) {
  bool same = y_true.rank() == y_pred.rank();
  for (int axis = 0; same && axis < y_pred.rank(); ++axis)
    same = require(y_true.dim(axis), Relation::equal, y_pred.dim(axis), {loss, "labels and predictions", where});
  if (!same)
    throw UserError(error_text(
        text(loss, ": labels ", described(y_true), " and predictions ", described(y_pred), " differ in shape"), where,
        "every prediction needs a label; integer classes are for "
        "losses::SparseCategoricalCrossentropy"));
  return cast(y_true, y_pred.dtype());
}

Tensor last_axis_mean(const Tensor& t) { return t.rank() > 0 ? mean(t, -1) : t; }

struct NamedLoss {
  std::string_view name;
  LibraryLossBody::PerSample per_sample;
};
constexpr NamedLoss named_losses[] = {
    {"mse", squared_error},
    {"mean_squared_error", squared_error},
    {"mae", absolute_error},
    {"mean_absolute_error", absolute_error},
    {"sparse_categorical_crossentropy", losses::sparse_categorical_crossentropy},
    {"categorical_crossentropy", losses::categorical_crossentropy},
    {"binary_crossentropy", losses::binary_crossentropy},
};

}  // namespace

bool single_column(const Tensor& t, const char* asker, Where where) {
  return t.rank() > 0 && require(t.dim(-1), Relation::equal, 1, {asker, "a last axis of one element", where});
}

CustomLoss::~CustomLoss() = default;
std::string CustomLoss::description() const { return class_name_of(*this); }

FromBody Loss::of_function(Function per_sample) { return {std::make_shared<FunctionLossBody>(std::move(per_sample))}; }

Loss::Loss(const char* name, Where where) {
  std::string known;
  for (const NamedLoss& one : named_losses) {
    if (one.name == name) {
      body_ = of_library(one.per_sample).body;
      return;
    }
    known += text(known.empty() ? "" : ", ", one.name);
  }
  throw UserError(error_text(text("there is no loss '", name, "'"), where, text("one of ", known, "; or a function")));
}

Tensor Loss::operator()(const Tensor& y_true, const Tensor& y_pred, Where where) const {
  return (*this)(y_true, y_pred, Tensor(), where);
}

Tensor Loss::operator()(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight, Where where) const {
  if (!body_)
    throw UserError(error_text("the loss is undefined", where, "make one, as in keras::losses::MeanSquaredError()"));
  for (const Tensor& operand : {y_true, y_pred})
    if (!operand.defined())
      throw UserError(error_text("the loss is given an undefined tensor", where, "it takes labels and predictions"));
  LayerFrame nobody;
  try {
    auto [labels, predictions] = losses::same_rank(y_true, y_pred, where);
    auto* of_ours = dynamic_cast<LibraryLossBody*>(body_.get());
    Tensor values = of_ours ? of_ours->call_at(labels, predictions, where)
                            : static_cast<CustomLoss&>(*body_).call(labels, predictions);
    if (!values.defined())
      throw UserError(error_text("the loss function gave an undefined tensor", where, "return a number per sample"));
    Frame frame("loss", where);
    if (sample_weight.defined()) {
      Tensor weights = cast(sample_weight, values.dtype());
      while (weights.rank() > 0 && weights.rank() < values.rank()) weights = expand_dims(weights, -1);
      values = values * weights;
    }
    return mean(values);
  } catch (const UserError& error) {
    throw UserError(
        text(error.what(), "\n  in the loss, of labels ", described(y_true), " and predictions ", described(y_pred)));
  }
}

namespace losses {

std::pair<Tensor, Tensor> same_rank(const Tensor& y_true, const Tensor& y_pred, Where where) {
  if (!y_true.defined() || !y_pred.defined()) return {y_true, y_pred};
  constexpr const char* asker = "labels and predictions";
  Frame frame(asker, where);
  if (y_true.rank() == y_pred.rank() + 1 && single_column(y_true, asker, where))
    return y_pred.rank() == 1 ? std::pair{y_true, expand_dims(y_pred, -1)} : std::pair{squeeze(y_true, -1), y_pred};
  if (y_pred.rank() == y_true.rank() + 1 && single_column(y_pred, asker, where))
    return y_true.rank() == 1 ? std::pair{expand_dims(y_true, -1), y_pred} : std::pair{y_true, squeeze(y_pred, -1)};
  return {y_true, y_pred};
}

Tensor sparse_categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred, LossOptions options, Where where) {
  constexpr const char* name = "sparse_categorical_crossentropy";
  Frame frame(name, where);
  const bool column = y_true.rank() == y_pred.rank() && single_column(y_true, name, where);
  Tensor labels = column ? squeeze(y_true, -1) : y_true;
  Tensor predictions = floating(y_pred);
  if (labels.rank() + 1 != predictions.rank())
    throw UserError(error_text(text("sparse_categorical_crossentropy: labels ", described(y_true),
                                    " do not fit predictions ", described(y_pred)),
                               where,
                               "labels are class numbers [...], predictions [..., classes]; one_hot labels are for "
                               "losses::CategoricalCrossentropy"));
  if (!is_integer(labels.dtype())) labels = cast(labels, i64);
  if (!options.from_logits) predictions = log(clipped(predictions));
  return sparse_cross_entropy(labels, predictions);
}

Tensor categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred, LossOptions options, Where where) {
  Frame frame("categorical_crossentropy", where);
  Tensor predictions = floating(y_pred);
  Tensor labels = matching("categorical_crossentropy", y_true, predictions, where);
  if (options.from_logits) return -sum(labels * log_softmax(predictions), -1);
  Tensor scaled = predictions / sum(predictions, -1, {.keepdims = true});
  return -sum(labels * log(clipped(scaled)), -1);
}

Tensor binary_crossentropy(const Tensor& y_true, const Tensor& y_pred, LossOptions options, Where where) {
  Frame frame("binary_crossentropy", where);
  Tensor predictions = floating(y_pred);
  Tensor labels = matching("binary_crossentropy", y_true, predictions, where);
  if (options.from_logits) {
    // max(z, 0) - z y + log(1 + exp(-|z|)): nothing overflows. By the sign, because at 0 (where every logit of a model
    // with zero weights is) the derivatives of relu and abs are both 0, and the loss's is not.
    Tensor positive = predictions >= 0, magnitude = stet::where(positive, predictions, -predictions);
    return last_axis_mean(stet::where(positive, predictions, 0) - predictions * labels + log(1 + exp(-magnitude)));
  }
  Tensor p = clipped(predictions);
  return last_axis_mean(-(labels * log(p) + (1 - labels) * log(1 - p)));
}

Tensor mean_squared_error(const Tensor& y_true, const Tensor& y_pred, Where where) {
  Frame frame("mean_squared_error", where);
  Tensor predictions = floating(y_pred);
  return last_axis_mean(square(matching("mean_squared_error", y_true, predictions, where) - predictions));
}
Tensor mean_absolute_error(const Tensor& y_true, const Tensor& y_pred, Where where) {
  Frame frame("mean_absolute_error", where);
  Tensor predictions = floating(y_pred);
  return last_axis_mean(abs(matching("mean_absolute_error", y_true, predictions, where) - predictions));
}

SparseCategoricalCrossentropy::SparseCategoricalCrossentropy(LossOptions options)
    : Loss(of_library(sparse_categorical_crossentropy, options)) {}
CategoricalCrossentropy::CategoricalCrossentropy(LossOptions options)
    : Loss(of_library(categorical_crossentropy, options)) {}
BinaryCrossentropy::BinaryCrossentropy(LossOptions options) : Loss(of_library(binary_crossentropy, options)) {}
MeanSquaredError::MeanSquaredError() : Loss(of_library(squared_error)) {}
MeanAbsoluteError::MeanAbsoluteError() : Loss(of_library(absolute_error)) {}

}  // namespace losses
}  // namespace stet::keras
