#include "stet/keras/losses_similarity.h"

#include <limits>

#include "stet/base/text.h"
#include "stet/keras/columns.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/loss_bodies.h"
#include "stet/ops/ops.h"

namespace stet::keras::losses {
namespace {

constexpr double least_length_squared = smallest_probability * smallest_probability;

Tensor summed(const Tensor& x, const std::vector<int>& axis) { return axis.empty() ? sum(x) : sum(x, axis); }

/// Classes as a column [n, 1].
Tensor class_column(const char* what, const Tensor& labels, Where where) {
  const bool column = labels.rank() == 2 && single_column(labels, "circle", where);
  if (labels.rank() != 1 && !column)
    throw UserError(
        error_text(text("circle: ", what, " ", described(labels)), where, "they are classes [n] or [n, 1]"));
  return cast(column ? labels : expand_dims(labels, -1), i64);
}
void require_rows(const char* what, const Tensor& embeddings, const Tensor& classes, Where where) {
  const bool fit = embeddings.rank() == 2 &&
                   require(embeddings.dim(0), Relation::equal, classes.dim(0), {"circle", "samples", where});
  if (!fit)
    throw UserError(
        error_text(text("circle: ", what, " ", described(embeddings), " do not fit labels ", described(classes)), where,
                   "embeddings are [n, depth], labels [n]"));
}

/// log(sum(exp(x))) over those of a row that count; 0 where none does, and its derivatives too.
Tensor log_sum_of(const Tensor& counts, const Tensor& row_counts, const Tensor& x) {
  Tensor kept = where(counts, x, -std::numeric_limits<double>::infinity());
  return logsumexp(where(expand_dims(row_counts, -1), kept, 0), 1);
}

SampleValues circle_values(const Tensor& y_true, const Tensor& y_pred, const CircleFunctionOptions& options,
                           Where line) {
  Frame frame("circle", line);
  const DType result = floating_type(y_pred.dtype());
  auto computed = [&](const Tensor& t) { return cast(t, compute_type(result)); };
  Tensor embeddings = computed(y_pred), labels = class_column("labels", y_true, line);
  Tensor others = options.ref_embeddings.defined() ? computed(options.ref_embeddings) : embeddings;
  Tensor other_labels = options.ref_labels.defined() ? class_column("ref_labels", options.ref_labels, line) : labels;
  require_rows("predictions", embeddings, labels, line);
  require_rows("ref_embeddings", others, other_labels, line);

  Tensor positive = labels == transpose(other_labels), negative = logical_not(positive);
  if (options.remove_diagonal)
    positive = logical_and(positive, expand_dims(arange(labels.dim(0)), -1) != arange(other_labels.dim(0)));
  Tensor distance = maximum(1 - matmul(embeddings, others, {.transpose_b = true}), 0);
  const double margin = options.margin, gamma = options.gamma;
  Tensor towards = -gamma * maximum(margin + distance, 0) * (margin - distance);
  Tensor apart = gamma * maximum(1 + margin - distance, 0) * (1 - margin - distance);
  Tensor has_positive = any(positive, 1), has_negative = any(negative, 1),
         both = logical_and(has_positive, has_negative);
  Tensor exponent = log_sum_of(positive, has_positive, towards) + log_sum_of(negative, has_negative, apart);
  Tensor values = where(both, softplus(exponent), 0);
  return {cast(values, result), values > 0};
}

}  // namespace

Tensor cosine_similarity(const Tensor& y_true, const Tensor& y_pred, int axis, Where where) {
  LossCall call("cosine_similarity", y_true, y_pred, where);
  const int along = axis_from_end("cosine_similarity", axis, call.predictions, where);
  return call.finished(
      -stet::cosine_similarity(call.labels, call.predictions, along, {.epsilon = least_length_squared}));
}
Tensor dice(const Tensor& y_true, const Tensor& y_pred, const std::vector<int>& axis, Where where) {
  LossCall call("dice", y_true, y_pred, where);
  Tensor both = summed(call.labels * call.predictions, axis);
  return call.finished(1 -
                       2 * both / (summed(call.labels, axis) + summed(call.predictions, axis) + smallest_probability));
}
Tensor tversky(const Tensor& y_true, const Tensor& y_pred, const TverskyFunctionOptions& options, Where where) {
  LossCall call("tversky", y_true, y_pred, where);
  Tensor both = summed(call.labels * call.predictions, options.axis);
  Tensor missed = summed(call.labels * (1 - call.predictions), options.axis);
  Tensor wrong = summed(call.predictions * (1 - call.labels), options.axis);
  return call.finished(1 - both / (both + missed * options.alpha + wrong * options.beta + smallest_probability));
}
Tensor circle(const Tensor& y_true, const Tensor& y_pred, const CircleFunctionOptions& options, Where where) {
  return circle_values(y_true, y_pred, options, where).values;
}

namespace {

void cosine_fields(Fields& f, CosineSimilarityOptions& options) { f.besides("axis", options.axis, -1); }
/// One axis may stand there as a number.
void axes_field(Fields& f, std::vector<int>& axes) {
  const Json* given = f.reading() ? f.take("axis") : nullptr;
  if (given && given->if_integer())
    f("axis", axes.emplace_back());
  else
    f.or_null("axis", axes);
}
void dice_fields(Fields& f, DiceOptions& options) { axes_field(f, options.axis); }
void tversky_fields(Fields& f, TverskyOptions& options) {
  f("alpha", options.alpha);
  f("beta", options.beta);
  axes_field(f, options.axis);
}
void circle_fields(Fields& f, CircleOptions& options) {
  f("gamma", options.gamma);
  f("margin", options.margin);
  f("remove_diagonal", options.remove_diagonal);
}

using CosineSimilarityRecipe = LossRecipe<CosineSimilarity, "CosineSimilarity", CosineSimilarityOptions, cosine_fields>;
using DiceRecipe = LossRecipe<Dice, "Dice", DiceOptions, dice_fields>;
using TverskyRecipe = LossRecipe<Tversky, "Tversky", TverskyOptions, tversky_fields>;
using CircleRecipe = LossRecipe<Circle, "Circle", CircleOptions, circle_fields>;
const SavableAll<CosineSimilarityRecipe, DiceRecipe, TverskyRecipe, CircleRecipe> savable_losses;

}  // namespace

CosineSimilarity::CosineSimilarity(CosineSimilarityOptions options, Where)
    : Loss(library_loss("cosine_similarity", options,
                        [axis = options.axis](const Tensor& y_true, const Tensor& y_pred, Where line) {
                          return cosine_similarity(y_true, y_pred, axis, line);
                        })) {
  note_loss<CosineSimilarityRecipe>(*this, options);
}
Dice::Dice(DiceOptions options, Where)
    : Loss(library_loss("dice", options, [axis = options.axis](const Tensor& y_true, const Tensor& y_pred, Where line) {
        return dice(y_true, y_pred, axis, line);
      })) {
  note_loss<DiceRecipe>(*this, options);
}
Tversky::Tversky(TverskyOptions options, Where)
    : Loss(library_loss(
          "tversky", options,
          [of = TverskyFunctionOptions{options.alpha, options.beta, options.axis}](
              const Tensor& y_true, const Tensor& y_pred, Where line) { return tversky(y_true, y_pred, of, line); })) {
  note_loss<TverskyRecipe>(*this, options);
}
Circle::Circle(CircleOptions options, Where)
    : Loss(library_loss("circle", options,
                        [of = CircleFunctionOptions{.remove_diagonal = options.remove_diagonal,
                                                    .gamma = options.gamma,
                                                    .margin = options.margin}](const Tensor& y_true,
                                                                               const Tensor& y_pred, Where line) {
                          return circle_values(y_true, y_pred, of, line);
                        })) {
  note_loss<CircleRecipe>(*this, options);
}

}  // namespace stet::keras::losses
