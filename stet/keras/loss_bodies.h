// What the library's own losses are made of. Not a public header.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "stet/base/error.h"
#include "stet/core/call.h"
#include "stet/keras/config.h"
#include "stet/keras/losses_probabilistic.h"

namespace stet::keras {

constexpr double smallest_probability = 1e-7;  // Keras's epsilon

/// Numbers of samples, and which of them count: `mask`, bool, undefined where all do.
struct SampleValues {
  SampleValues(Tensor values, Tensor mask = {}) : values(std::move(values)), mask(std::move(mask)) {}
  Tensor values, mask;
};
using PerSample = std::function<SampleValues(const Tensor& y_true, const Tensor& y_pred, Where where)>;

/// One of ours: errors in it name the line that called the loss, not a line of the library.
class LibraryLoss : public CustomLoss {
 public:
  LibraryLoss(PerSample per_sample, LossOptions options, Takes takes)
      : CustomLoss(std::move(options)), per_sample_(std::move(per_sample)), takes_(takes) {}
  Takes takes() const override { return takes_; }
  Tensor call(const Tensor& y_true, const Tensor& y_pred) override { return per_sample_(y_true, y_pred, {}).values; }
  SampleValues call_at(const Tensor& y_true, const Tensor& y_pred, Where where) {
    return per_sample_(y_true, y_pred, where);
  }

 private:
  const PerSample per_sample_;
  const Takes takes_;
};

/// The body of a class: its function and its options, which have a reduction, a name (by default `name`) and a dtype.
template <class Options>
FromBody library_loss(const char* name, const Options& options, PerSample per_sample) {
  LossOptions common{options.reduction, options.name.empty() ? name : options.name, options.dtype};
  CustomLoss::Takes takes = CustomLoss::Takes::anything;
  if constexpr (requires { options.from_logits; })
    takes = options.from_logits ? CustomLoss::Takes::logits : CustomLoss::Takes::probabilities;
  return {std::make_shared<LibraryLoss>(std::move(per_sample), std::move(common), takes)};
}

// --- recipes

/// "name", "reduction", and the type, which Keras does not write.
void loss_fields(Fields& f, std::string& name, Reduction& reduction, std::optional<DType>& dtype);

/// A class of losses: `own` reads and writes what it has besides.
template <class Self, Literal name, class Options = LossOptions, void (*own)(Fields&, Options&) = nullptr>
struct LossRecipe {
  static constexpr const char *module = "keras.losses", *class_name = name.text;
  Options options = {};
  void fields(Fields& f) {
    loss_fields(f, options.name, options.reduction, options.dtype);
    if constexpr (own != nullptr) own(f, options);
  }
  Loss make(Where where) const { return Self(options, where); }
};
/// Notes what a loss was made from, with the name that it has.
template <class R, class Options>
void note_loss(Loss& loss, Options options) {
  options.name = loss.name();
  note_recipe(loss, R{std::move(options)});
}

/// While it lives, a function of labels and predictions runs: both in one shape and in the type that is computed in
/// (f32 for f16, bf16 and integers). A UserError where they do not fit.
class LossCall {
 public:
  LossCall(const char* name, const Tensor& y_true, const Tensor& y_pred, Where where);

  [[noreturn]] void fail(const std::string& problem, const std::string& advice) const;
  void require(bool holds, const std::string& problem, const std::string& advice = {}) const {
    if (!holds) fail(problem, advice);
  }
  /// In the type that the predictions came in.
  Tensor finished(const Tensor& values) const;
  /// The mean over an axis; of a scalar itself.
  Tensor finished_mean(const Tensor& elements, int axis = -1) const;

  Tensor labels, predictions;

 private:
  Frame frame_;
  const char* name_;
  Where where_;
  DType result_;
};

/// The same of labels that are classes: [...] or [..., 1] beside predictions [..., classes], as integers. The classes
/// may stand along another axis of the predictions than the last; they are moved there.
class ClassCall {
 public:
  ClassCall(const char* name, const Tensor& y_true, const Tensor& y_pred, int axis, Where where);
  /// What `of` [..., classes] has at the labels: [...]. A label that is no class is a UserError.
  Tensor at_labels(const Tensor& of) const;
  Tensor finished(const Tensor& values) const;

  Tensor labels, predictions;

 private:
  Frame frame_;
  DType result_;
};

/// `values` times weights, and what `reduction` makes of them.
Tensor reduced(const SampleValues& values, const Tensor& sample_weight, Reduction reduction, Where where);

/// Weights in the values' type with axes of size 1 at the end, as many axes as the values have; [..., 1] one less.
Tensor aligned_weights(const Tensor& weights, const Tensor& values, Where where);

Tensor clipped(const Tensor& probability);
/// Divided by its sum over the axis, so that it is a distribution, and clipped.
Tensor distribution(const Tensor& p, int axis);
/// An axis of a tensor counted from the end: -1, -2, …; UserError for one that it has not.
int axis_from_end(const char* name, int axis, const Tensor& t, Where where);
/// A number that must lie in a range, at the construction of a loss or a metric.
void require_option(bool holds, const char* owner, const char* option, double value, const char* range, Where where);

namespace losses {
/// sparse_categorical_crossentropy, and which samples count.
SampleValues sparse_categorical_values(const Tensor& y_true, const Tensor& y_pred,
                                       const SparseCrossentropyFunctionOptions& options, Where where);
}  // namespace losses
}  // namespace stet::keras
