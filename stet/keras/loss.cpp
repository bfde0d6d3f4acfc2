#include "stet/keras/loss.h"

#include <string_view>

#include "stet/base/text.h"
#include "stet/keras/columns.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/loss_bodies.h"
#include "stet/keras/names.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

class FunctionLoss : public CustomLoss {
 public:
  FunctionLoss(Loss::Function per_sample, LossOptions options)
      : CustomLoss(std::move(options)), f_(std::move(per_sample)) {}
  Tensor call(const Tensor& y_true, const Tensor& y_pred) override { return f_(y_true, y_pred); }

 private:
  Loss::Function f_;
};

struct NamedReduction {
  std::string_view name;
  Reduction::Kind kind;
};
constexpr NamedReduction named_reductions[] = {
    {"sum_over_batch_size", Reduction::Kind::sum_over_batch_size},
    {"sum", Reduction::Kind::sum},
    {"mean", Reduction::Kind::mean},
    {"mean_with_sample_weight", Reduction::Kind::mean_with_sample_weight},
    {"none", Reduction::Kind::none},
};

Tensor in_type(const Tensor& t, DType dtype) { return t.dtype() == dtype ? t : cast(t, dtype); }

/// Where it is asked whether an axis has one element, the axis is known or becomes a fact.
constexpr const char* both_asker = "labels and predictions";

/// Values that do not count as 0, others so that the mean over all is the mean over those that do.
Tensor mask_weights(const Tensor& mask, DType dtype, bool as_mean) {
  Tensor counts = cast(mask, dtype);
  if (!as_mean) return counts;
  Tensor valid = sum(counts);
  return counts * (cast(mask.size(), dtype) / where(valid == 0, 1, valid));
}

}  // namespace

// --- what losses are made of

bool single_column(const Tensor& t, const char* asker, Where where) {
  return t.rank() > 0 && require(t.dim(-1), Relation::equal, 1, {asker, "a last axis of one element", where});
}

LossCall::LossCall(const char* name, const Tensor& y_true, const Tensor& y_pred, Where where)
    : frame_(name, where), name_(name), where_(where) {
  for (const Tensor& operand : {y_true, y_pred})
    require(operand.defined(), "an undefined tensor", "it takes labels and predictions");
  auto [labels_given, predictions_given] = losses::same_rank(y_true, y_pred, where);
  bool same = labels_given.rank() == predictions_given.rank();
  for (int axis = 0; same && axis < labels_given.rank(); ++axis)
    same = stet::require(labels_given.dim(axis), Relation::equal, predictions_given.dim(axis),
                         {name, "labels and predictions", where});
  require(same, text("labels ", described(y_true), " and predictions ", described(y_pred), " differ in shape"),
          "every prediction needs a label; integer classes are for what is called Sparse…");
  result_ = floating_type(y_pred.dtype());
  predictions = in_type(predictions_given, compute_type(result_));
  labels = in_type(labels_given, predictions.dtype());
}
void LossCall::fail(const std::string& problem, const std::string& advice) const {
  throw UserError(error_text(text(name_, ": ", problem), where_, advice));
}
Tensor LossCall::finished(const Tensor& values) const { return in_type(values, result_); }
Tensor LossCall::finished_mean(const Tensor& elements, int axis) const {
  if (elements.rank() == 0 && axis == -1) return finished(elements);
  return finished(mean(elements, axis_from_end(name_, axis, elements, where_)));
}

namespace {
constexpr const char* about_labels = "labels are class numbers: 0, 1, … up to the number of classes less one";
constexpr IndexWords label_of_sample{"label", "of sample", "classes", about_labels},
    label_of_many{"label", "at flat position", "classes", about_labels};
}  // namespace

ClassCall::ClassCall(const char* name, const Tensor& y_true, const Tensor& y_pred, int axis, Where where)
    : frame_(name, where, y_true.defined() && y_true.rank() == 1 ? &label_of_sample : &label_of_many) {
  auto fail = [&](const std::string& problem, const std::string& advice) {
    throw UserError(error_text(text(name, ": ", problem), where, advice));
  };
  if (!y_true.defined() || !y_pred.defined()) fail("an undefined tensor", "it takes labels and predictions");
  const int classes = axis_from_end(name, axis, y_pred, where);
  const bool column = y_true.rank() == y_pred.rank() &&
                      stet::require(y_true.dim(classes), Relation::equal, 1, {name, "labels of one column", where});
  labels = column ? squeeze(y_true, classes) : y_true;
  result_ = floating_type(y_pred.dtype());
  predictions = in_type(y_pred, compute_type(result_));
  if (classes != -1) predictions = moveaxis(predictions, classes, -1);
  bool same = labels.rank() + 1 == predictions.rank();
  for (int at = 0; same && at < labels.rank(); ++at)
    same = stet::require(labels.dim(at), Relation::equal, predictions.dim(at), {name, "samples", where});
  if (!same)
    fail(text("labels ", described(y_true), " do not fit predictions ", described(y_pred)),
         "labels are class numbers [...], predictions [..., classes]; one-hot labels are for what is "
         "called Categorical… alone");
  if (!is_integer(labels.dtype())) labels = cast(labels, i64);
}
Tensor ClassCall::at_labels(const Tensor& of) const {
  // By a gather from the flat tensor, so a label that is not a class is an error, not a zero.
  const Dim classes = of.dim(-1), samples = labels.size();
  Tensor checked = gather(arange(classes), reshape(labels, {samples}));
  Tensor picked = gather(reshape(of, {samples * classes}), arange(samples) * classes + checked);
  return reshape(picked, labels.shape());
}
Tensor ClassCall::finished(const Tensor& values) const { return in_type(values, result_); }

Tensor clipped(const Tensor& probability) {
  return minimum(maximum(probability, smallest_probability), 1 - smallest_probability);
}
Tensor distribution(const Tensor& p, int axis) { return clipped(p / sum(p, axis, {.keepdims = true})); }

int axis_from_end(const char* name, int axis, const Tensor& t, Where where) {
  if (axis < -t.rank() || axis >= t.rank())
    throw UserError(error_text(text(name, ": axis ", axis, " of ", described(t)), where,
                               text("it has axes -", t.rank(), " to ", t.rank() - 1)));
  return axis < 0 ? axis : axis - t.rank();
}

void require_option(bool holds, const char* owner, const char* option, double value, const char* range, Where where) {
  if (!holds) throw UserError(error_text(text(owner, ": ", option, " = ", value), where, text("it is ", range)));
}

Tensor aligned_weights(const Tensor& weights, const Tensor& values, Where where) {
  Tensor out = in_type(weights, values.dtype());
  if (out.rank() == values.rank() + 1 && values.rank() > 0 && single_column(out, "sample_weight", where))
    out = squeeze(out, -1);
  if (values.rank() > 0 && out.rank() > values.rank())
    throw UserError(error_text(text("sample weights ", described(weights), " do not fit losses ", described(values)),
                               where, "a weight for every sample, [samples], or for every number of the loss"));
  while (out.rank() > 0 && out.rank() < values.rank()) out = expand_dims(out, -1);
  return out;
}

Tensor reduced(const SampleValues& given, const Tensor& sample_weight, Reduction reduction, Where where) {
  using Kind = Reduction::Kind;
  const Kind kind = reduction.kind();
  Tensor values = in_type(given.values, floating_type(given.values.dtype())), weights;
  if (sample_weight.defined()) {
    // As Keras does it: beside a column of weights, one number per sample becomes a column.
    if (values.rank() == 1 && sample_weight.rank() == 2 && !given.mask.defined()) values = expand_dims(values, -1);
    weights = aligned_weights(sample_weight, values, where);
  }
  if (given.mask.defined()) {
    Tensor counts = mask_weights(given.mask, values.dtype(), kind == Kind::sum_over_batch_size || kind == Kind::mean);
    weights = weights.defined() ? weights * counts : counts;
  }
  if (weights.defined()) values = values * weights;
  if (kind == Kind::none || values.rank() == 0) return values;
  Tensor total = sum(values);
  if (kind == Kind::sum) return total;
  if (kind == Kind::mean_with_sample_weight && weights.defined()) {
    Tensor divisor = sum(weights), nothing = divisor == 0;
    return stet::where(nothing, 0, total / stet::where(nothing, 1, divisor));
  }
  return total / cast(maximum(values.size(), 1), total.dtype());
}

void loss_fields(Fields& f, std::string& name, Reduction& reduction, std::optional<DType>& dtype) {
  f("name", name);
  std::string kind;
  for (const NamedReduction& one : named_reductions)
    if (one.kind == reduction.kind()) kind = one.name;
  const Json* given = f.reading() ? f.take("reduction") : nullptr;
  if (given && given->is_null())  // one of Keras's names for it
    kind = "none";
  else
    f("reduction", kind);
  if (f.reading()) reduction = Reduction(kind, f.where());
  f.besides("dtype", dtype, std::nullopt);
}

// --- bodies

Reduction::Reduction(const char* name, Where where) {
  std::string known;
  for (const NamedReduction& one : named_reductions) {
    if (one.name == name) {
      kind_ = one.kind;
      return;
    }
    known += text(known.empty() ? "" : ", ", one.name);
  }
  throw UserError(error_text(text("there is no reduction '", name, "'"), where, text("one of ", known)));
}

CustomLoss::~CustomLoss() = default;
std::string CustomLoss::description() const { return text("loss '", name(), "'"); }
std::string CustomLoss::name() const {
  return options_.name.empty() ? snake_case(class_name_of(*this)) : options_.name;
}

// --- handles

FromBody Loss::of_function(Function per_sample, LossOptions options) {
  if (options.name.empty()) options.name = "loss_function";
  return {std::make_shared<FunctionLoss>(std::move(per_sample), std::move(options))};
}

CustomLoss& Loss::loss_body(Where where) const {
  if (!body_)
    throw UserError(error_text("the loss is undefined", where, "make one, as in keras::losses::MeanSquaredError()"));
  return static_cast<CustomLoss&>(*body_);
}
std::string Loss::name(Where where) const { return loss_body(where).name(); }

Tensor Loss::operator()(const Tensor& y_true, const Tensor& y_pred, Where where) const {
  return (*this)(y_true, y_pred, Tensor(), where);
}

Tensor Loss::operator()(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight, Where where) const {
  CustomLoss& loss = loss_body(where);
  for (const Tensor& operand : {y_true, y_pred})
    if (!operand.defined())
      throw UserError(error_text("the loss is given an undefined tensor", where, "it takes labels and predictions"));
  LayerFrame nobody;
  try {
    const std::optional<DType> dtype = loss.options().dtype;
    auto evaluated = [&]() -> SampleValues {
      if (auto* of_ours = dynamic_cast<LibraryLoss*>(&loss)) {
        Tensor predictions;
        {
          Frame frame("loss", where);
          predictions = in_type(y_pred, dtype.value_or(compute_type(floating_type(y_pred.dtype()))));
        }
        return of_ours->call_at(y_true, predictions, where);
      }
      auto [labels, predictions] = losses::same_rank(y_true, y_pred, where);
      return dtype ? loss.call(cast(labels, *dtype), cast(predictions, *dtype)) : loss.call(labels, predictions);
    };
    SampleValues values = evaluated();
    if (!values.values.defined())
      throw UserError(error_text("the loss function gave an undefined tensor", where, "return a number per sample"));
    Frame frame("loss", where);
    // Steps that do not count, by the mask that the predictions bring along.
    if (Tensor mask = mask_of(y_pred); mask.defined() && mask.rank() <= values.values.rank()) {
      while (mask.rank() < values.values.rank()) mask = expand_dims(mask, -1);
      values.mask = values.mask.defined() ? logical_and(values.mask, mask) : mask;
    }
    return reduced(values, sample_weight, loss.options().reduction, where);
  } catch (const UserError& error) {
    throw UserError(
        text(error.what(), "\n  in the loss, of labels ", described(y_true), " and predictions ", described(y_pred)));
  }
}

namespace losses {

std::pair<Tensor, Tensor> same_rank(const Tensor& y_true, const Tensor& y_pred, Where where) {
  if (!y_true.defined() || !y_pred.defined()) return {y_true, y_pred};
  Frame frame(both_asker, where);
  if (y_true.rank() == y_pred.rank() + 1 && single_column(y_true, both_asker, where))
    return y_pred.rank() == 1 ? std::pair{y_true, expand_dims(y_pred, -1)} : std::pair{squeeze(y_true, -1), y_pred};
  if (y_pred.rank() == y_true.rank() + 1 && single_column(y_pred, both_asker, where))
    return y_true.rank() == 1 ? std::pair{expand_dims(y_true, -1), y_pred} : std::pair{y_true, squeeze(y_pred, -1)};
  return {y_true, y_pred};
}

}  // namespace losses
}  // namespace stet::keras
