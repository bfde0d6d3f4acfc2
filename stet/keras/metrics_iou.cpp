#include "stet/keras/metrics_iou.h"

#include <numeric>

#include "stet/base/text.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/metric_bodies.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

using Ids = std::vector<std::int64_t>;

constexpr DType own_type = DType::i64;  // of counts

struct IoUForm {
  std::int64_t num_classes = 2;
  Ids target_class_ids = {};
  std::optional<std::int64_t> ignore_class = {};
  bool sparse_y_true = true, sparse_y_pred = true;
  int axis = -1;
  std::optional<double> threshold = {};  // cuts predictions to classes 0 and 1
};

class IoUBody : public LibraryMetric {
 public:
  IoUBody(const char* class_name, std::string name, DType dtype, IoUForm form)
      : LibraryMetric(class_name, std::move(name), dtype), form_(std::move(form)) {}

  void update_at(const Tensor& y_true, const Tensor& y_pred, const Tensor& weight, Where line) override {
    Frame frame(class_name(), line);
    auto demand = [&](bool holds, const std::string& problem, const char* advice) {
      if (!holds) throw UserError(error_text(text(class_name(), ": ", problem), line, advice));
    };
    demand(y_true.defined() && y_pred.defined(), "an undefined tensor", "it takes labels and predictions");
    auto classes = [&](const Tensor& t, bool sparse) {
      if (!sparse) return argmax(t, axis_from_end(class_name(), form_.axis, t, line));
      return cast(t, i64);
    };
    Tensor labels = classes(y_true, form_.sparse_y_true);
    Tensor predictions = form_.threshold ? cast(y_pred >= *form_.threshold, i64) : classes(y_pred, form_.sparse_y_pred);
    std::tie(labels, predictions) = losses::same_rank(labels, predictions, line);
    bool same = labels.rank() == predictions.rank();
    for (int at = 0; same && at < labels.rank(); ++at)
      same =
          require(labels.dim(at), Relation::equal, predictions.dim(at), {class_name(), "labels and predictions", line});
    demand(same, text("labels ", described(y_true), " and predictions ", described(y_pred), " differ in shape"),
           "every prediction needs a label; sparse_y_true and sparse_y_pred tell classes from scores of them");

    const std::int64_t count = form_.num_classes;
    auto inside = [&](const Tensor& t) { return logical_and(t >= 0, t < count); };
    Tensor counts = logical_and(inside(labels), inside(predictions));
    if (form_.ignore_class) counts = logical_and(counts, labels != *form_.ignore_class);
    const Dim size = labels.size();
    Tensor cell = reshape(where(counts, labels * count + predictions, -1), {size});  // bincount leaves out -1
    Tensor table;
    if (weight.defined()) {
      demand(is_floating(dtype()) || !is_floating(weight.dtype()),
             text("weights ", described(weight), " with counts of ", dtype()),
             "give it {.dtype = f32}, or weights that are integers");
      Tensor aligned = aligned_weights(cast(weight, dtype()), cast(labels, dtype()), line);
      table = bincount(cell, count * count, reshape(broadcast_to(aligned, labels.shape()), {size}));
    } else {
      table = bincount(cell, count * count);
    }
    table_.assign_add(cast(reshape(table, {count, count}), dtype()));
  }

  Tensor result_at(Where line) override {
    Frame frame(class_name(), line);
    Tensor table = table_, both = diagonal(table), all = sum(table, 0) + sum(table, 1) - both;
    Tensor targets = tensor(form_.target_class_ids);
    both = cast(gather(both, targets), f32), all = cast(gather(all, targets), f32);
    Tensor occurs = all > 1e-9;
    Tensor each = where(occurs, both / (all + smallest_probability), 0);
    return sum(each) / (sum(cast(occurs, f32)) + smallest_probability);
  }

 private:
  const IoUForm form_;
  Variable table_ = state("total_confusion_matrix", {form_.num_classes, form_.num_classes});
};

template <class Options>
FromBody iou(const char* owner, const Options& options, IoUForm form, Where where) {
  require_option(form.num_classes > 0, owner, "num_classes", static_cast<double>(form.num_classes), "1 or more", where);
  if (form.target_class_ids.empty())
    throw UserError(error_text(text(owner, ": no target_class_ids"), where, "name one class at least"));
  for (std::int64_t id : form.target_class_ids)
    if (id < 0 || id >= form.num_classes)
      throw UserError(error_text(text(owner, ": target class ", id, " of ", form.num_classes, " classes"), where,
                                 "classes are numbered from 0"));
  return {std::make_shared<IoUBody>(owner, numbered_name(options.name, owner), options.dtype.value_or(own_type),
                                    std::move(form))};
}
Ids all_of(std::int64_t count) {
  Ids out(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)));
  std::iota(out.begin(), out.end(), 0);
  return out;
}
IoUForm form_of(std::int64_t classes, Ids targets, const metrics::IoUOptions& options) {
  return {classes,     std::move(targets), options.ignore_class, options.sparse_y_true, options.sparse_y_pred,
          options.axis};
}
IoUForm form_of(std::int64_t classes, Ids targets, const metrics::OneHotIoUOptions& options) {
  return {classes, std::move(targets), options.ignore_class, false, options.sparse_y_pred, options.axis};
}

}  // namespace

namespace metrics {

namespace {

/// The table of counts has so many rows and columns, and is made at once.
constexpr std::int64_t most_classes = 4096;

void classes_field(Fields& f, std::int64_t& num_classes) {
  f.required("num_classes", num_classes);
  f.at_most("num_classes", num_classes, most_classes);
}
void form_fields(Fields& f, IoUOptions& options) {
  f("ignore_class", options.ignore_class);
  f("sparse_y_true", options.sparse_y_true);
  f("sparse_y_pred", options.sparse_y_pred);
  f("axis", options.axis);
}
void form_fields(Fields& f, OneHotIoUOptions& options) {
  f("ignore_class", options.ignore_class);
  f("sparse_y_pred", options.sparse_y_pred);
  f("axis", options.axis);
}

/// Of some of the classes.
template <class Self, Literal name, class Options>
struct SomeClassesRecipe {
  static constexpr const char *module = "keras.metrics", *class_name = name.text;
  std::int64_t num_classes = 0;
  Ids target_class_ids = {};
  Options options = {};
  void fields(Fields& f) {
    metric_fields(f, options, own_type);
    classes_field(f, num_classes);
    f("target_class_ids", target_class_ids);
    form_fields(f, options);
  }
  Metric make(Where where) const { return Self(num_classes, target_class_ids, options, where); }
};
/// Of all classes.
template <class Self, Literal name, class Options>
struct AllClassesRecipe {
  static constexpr const char *module = "keras.metrics", *class_name = name.text;
  std::int64_t num_classes = 0;
  Options options = {};
  void fields(Fields& f) {
    metric_fields(f, options, own_type);
    classes_field(f, num_classes);
    form_fields(f, options);
  }
  Metric make(Where where) const { return Self(num_classes, options, where); }
};
struct BinaryIoURecipe {
  static constexpr const char *module = "keras.metrics", *class_name = "BinaryIoU";
  BinaryIoUOptions options = {};
  void fields(Fields& f) {
    metric_fields(f, options, own_type);
    f("target_class_ids", options.target_class_ids);
    f("threshold", options.threshold);
  }
  Metric make(Where where) const { return BinaryIoU(options, where); }
};
using IoURecipe = SomeClassesRecipe<IoU, "IoU", IoUOptions>;
using OneHotIoURecipe = SomeClassesRecipe<OneHotIoU, "OneHotIoU", OneHotIoUOptions>;
using MeanIoURecipe = AllClassesRecipe<MeanIoU, "MeanIoU", IoUOptions>;
using OneHotMeanIoURecipe = AllClassesRecipe<OneHotMeanIoU, "OneHotMeanIoU", OneHotIoUOptions>;
const SavableAll<IoURecipe, OneHotIoURecipe, MeanIoURecipe, OneHotMeanIoURecipe, BinaryIoURecipe> savable_metrics;

template <class Options>
Options with_name(Options options, const Metric& metric) {
  options.name = metric.name();
  return options;
}

}  // namespace

IoU::IoU(std::int64_t num_classes, Ids target_class_ids, IoUOptions options, Where where)
    : Metric(iou("IoU", options, form_of(num_classes, target_class_ids, options), where)) {
  note_recipe(*this, IoURecipe{num_classes, target_class_ids, with_name(options, *this)});
}
BinaryIoU::BinaryIoU(BinaryIoUOptions options, Where where)
    : Metric(iou("BinaryIoU", options, {.target_class_ids = options.target_class_ids, .threshold = options.threshold},
                 where)) {
  note_metric<BinaryIoURecipe>(*this, options);
}
MeanIoU::MeanIoU(std::int64_t num_classes, IoUOptions options, Where where)
    : Metric(iou("MeanIoU", options, form_of(num_classes, all_of(num_classes), options), where)) {
  note_recipe(*this, MeanIoURecipe{num_classes, with_name(options, *this)});
}
OneHotIoU::OneHotIoU(std::int64_t num_classes, Ids target_class_ids, OneHotIoUOptions options, Where where)
    : Metric(iou("OneHotIoU", options, form_of(num_classes, target_class_ids, options), where)) {
  note_recipe(*this, OneHotIoURecipe{num_classes, target_class_ids, with_name(options, *this)});
}
OneHotMeanIoU::OneHotMeanIoU(std::int64_t num_classes, OneHotIoUOptions options, Where where)
    : Metric(iou("OneHotMeanIoU", options, form_of(num_classes, all_of(num_classes), options), where)) {
  note_recipe(*this, OneHotMeanIoURecipe{num_classes, with_name(options, *this)});
}

}  // namespace metrics
}  // namespace stet::keras
