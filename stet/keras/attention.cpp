#include "stet/keras/attention.h"

#include <memory>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/size_words.h"
#include "stet/keras/attention_body.h"
#include "stet/keras/layer_fields.h"
#include "stet/keras/layer_state.h"
#include "stet/ops/ops.h"

namespace stet::keras {

// --- what they share

AttentionArguments attention_arguments(const Context& context) {
  const auto* told = dynamic_cast<const AttentionArguments*>(context.arguments.get());
  return told ? *told : AttentionArguments();
}

Tensor causal_mask(const Dim& queries, const Dim& keys) {
  return greater_equal(reshape(arange(queries), {1, queries, 1}), reshape(arange(keys), {1, 1, keys}));
}
Tensor window_mask(const Dim& queries, const Dim& keys, std::int64_t window) {
  return abs(reshape(arange(queries), {1, queries, 1}) - reshape(arange(keys), {1, 1, keys})) < window;
}
Tensor both(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() ? a : b;
  return logical_and(a, b);
}
Tensor dropped(const Tensor& x, double rate, const NoiseSource& source, const Context& context) {
  if (!context.training || rate == 0) return x;
  Tensor keep = source->uniform(x.shape(), {}, context.where) >= rate;
  return where(keep, x * (1 / (1 - rate)), 0);
}
void require_dropout(const char* layer, double rate, Where where) {
  if (!(rate >= 0 && rate < 1))
    throw UserError(error_text(text(layer, ": a dropout of ", rate), where, "it is a probability, from 0 to below 1"));
}
void require_lengths(const CustomLayer& layer, const Tensor& value, const Tensor& key, int axis, Where where) {
  if (inside::require(value.dim(axis), Relation::equal, key.dim(axis),
                      {"attention", text("the number of keys of '", layer.name(), "'"), where}))
    return;
  throw UserError(error_text(text(layer.description(), ": there are ", size_now(value.dim(axis)), " values, ",
                                  described(value), ", and ", size_now(key.dim(axis)), " keys, ", described(key)),
                             where, "give a key for every value"));
}

// --- handles

namespace {

CallOptions with_arguments(std::optional<bool> training, bool causal, bool scores) {
  CallOptions out{.training = training};
  if (causal || scores) {
    auto arguments = std::make_shared<AttentionArguments>();
    arguments->use_causal_mask = causal;
    arguments->return_attention_scores = scores;
    out.arguments = std::move(arguments);
  }
  return out;
}
/// {query, value}, and where there is more, {query, value, key, attention_mask}.
template <class T, class Options>
std::vector<T> in_one(const T& query, const T& value, const Options& options) {
  std::vector<T> out{query, value};
  if (options.key.defined() || options.attention_mask.defined())
    out.push_back(options.key.defined() ? options.key : value);
  if (options.attention_mask.defined()) out.push_back(options.attention_mask);
  return out;
}

}  // namespace

Tensor AttentionLayer::operator()(const Tensor& query, const Tensor& value, AttentionCallOptions options,
                                  Where where) const {
  return call_many(in_one(query, value, options), with_arguments(options.training, options.use_causal_mask, false),
                   where)[0];
}
Tensor AttentionLayer::operator()(const Tensors& inputs, CallOptions options, Where where) const {
  return call_many(inputs, std::move(options), where)[0];
}
KerasTensor AttentionLayer::operator()(const KerasTensor& query, const KerasTensor& value,
                                       SymbolicAttentionCallOptions options, Where where) const {
  return call_many(in_one(query, value, options), with_arguments(options.training, options.use_causal_mask, false),
                   where)[0];
}
KerasTensor AttentionLayer::operator()(const std::vector<KerasTensor>& inputs, CallOptions options, Where where) const {
  return call_many(inputs, std::move(options), where)[0];
}
std::pair<Tensor, Tensor> AttentionLayer::with_scores(const Tensor& query, const Tensor& value,
                                                      AttentionCallOptions options, Where where) const {
  Tensors out =
      call_many(in_one(query, value, options), with_arguments(options.training, options.use_causal_mask, true), where);
  return {out[0], out[1]};
}
std::pair<KerasTensor, KerasTensor> AttentionLayer::with_scores(const KerasTensor& query, const KerasTensor& value,
                                                                SymbolicAttentionCallOptions options,
                                                                Where where) const {
  std::vector<KerasTensor> out =
      call_many(in_one(query, value, options), with_arguments(options.training, options.use_causal_mask, true), where);
  return {out[0], out[1]};
}

// --- attention without kernels

namespace {

enum class Scores { dot, concat, additive };

/// The options of both.
struct DotOptions {
  const char* class_name;
  Scores scores;
  bool use_scale;
  double dropout;
  NoiseSource source;  // that dropout draws from
};

class DotAttentionBody : public LibraryLayer {
 public:
  DotAttentionBody(DotOptions options, std::string name, DTypePolicy policy, Regularizer activity_regularizer)
      : LibraryLayer(options.class_name, std::move(name),
                     {.least = 3, .layout = "query, value and key [batch, steps, features]", .inputs = 2, .checked = 3},
                     policy, {.activity_regularizer = std::move(activity_regularizer)}),
        options_(std::move(options)) {
    draws_from(options_.source.generator());
  }

  bool supports_masking() const override { return true; }

 protected:
  void make_weights_for(const std::vector<Shape>& inputs) override {
    if (options_.scores == Scores::additive) {
      if (options_.use_scale) scale_ = weight("scale", {inputs[0][-1]}, {.otherwise = "glorot_uniform"});
      return;
    }
    if (options_.use_scale) scale_ = weight("scale", {}, {.otherwise = "ones"});
    if (options_.scores == Scores::concat) factor_ = weight("concat_score_weight", {}, {.otherwise = "ones"});
  }

  Tensors run_many(const Tensors& inputs, const Context& context) override {
    const Tensor &query = inputs[0], &value = inputs[1];
    const Tensor& key = inputs.size() > 2 ? inputs[2] : value;
    const AttentionArguments told = attention_arguments(context);
    require_lengths(*this, value, key, -2, context.where);
    Tensor scores = score(query, key);
    Tensor allowed = inputs.size() > 3 ? not_equal(inputs[3], 0) : Tensor();
    if (context.mask(1).defined()) allowed = both(allowed, expand_dims(context.mask(1), -2));
    if (told.use_causal_mask) allowed = both(allowed, causal_mask(query.dim(-2), key.dim(-2)));
    // As Keras does it: of a query that may attend to nothing, the scores count as they are.
    if (allowed.defined()) scores = where(allowed, scores, scores - (scores.dtype() == DType::f16 ? 65504.0 : 1e9));
    Tensor weights = softmax(scores, -1);
    if (context.training) weights = dropped(weights, options_.dropout, options_.source, context);
    Tensor out = matmul(weights, value);
    if (context.mask(0).defined()) out = where(expand_dims(context.mask(0), -1), out, 0);
    return told.return_attention_scores ? Tensors{out, weights} : Tensors{out};
  }

 private:
  Tensor score(const Tensor& query, const Tensor& key) const {
    if (options_.scores == Scores::dot) {
      Tensor scores = matmul(query, key, {.transpose_b = true});
      return options_.use_scale ? scores * in_compute_type(scale_) : scores;
    }
    Tensor sums = expand_dims(query, -2) + expand_dims(key, -3);
    if (options_.scores == Scores::additive) {
      Tensor bent = tanh(sums);
      return sum(options_.use_scale ? bent * in_compute_type(scale_) : bent, -1);
    }
    return in_compute_type(factor_) * sum(tanh(options_.use_scale ? sums * in_compute_type(scale_) : sums), -1);
  }

  const DotOptions options_;
  Variable scale_, factor_;
};

template <class Made, Literal name, class Options>
struct AttentionRecipe {
  static constexpr const char *module = "keras.layers", *class_name = name.text;
  Options options = {};
  void fields(Fields& f) {
    f.layer(options);
    f("use_scale", options.use_scale);
    if constexpr (requires { options.score_mode; }) f("score_mode", options.score_mode);
    f("dropout", options.dropout);
    f("seed", options.seed);
    f.if_defined("activity_regularizer", options.activity_regularizer);
  }
  Layer make(Where where) const { return Made(options, where); }
};
using DotAttentionRecipe = AttentionRecipe<Attention, "Attention", AttentionLayerOptions>;
using AdditiveAttentionRecipe = AttentionRecipe<AdditiveAttention, "AdditiveAttention", AdditiveAttentionOptions>;
const Savable<DotAttentionRecipe> savable_attention;
const Savable<AdditiveAttentionRecipe> savable_additive_attention;

}  // namespace

Attention::Attention(AttentionLayerOptions options, Where where)
    : AttentionLayer([&] {
        require_dropout("Attention", options.dropout, where);
        if (options.score_mode != "dot" && options.score_mode != "concat")
          throw UserError(error_text(text("Attention: there is no score_mode '", options.score_mode, "'"), where,
                                     "one of dot, concat"));
        const Scores scores = options.score_mode == "dot" ? Scores::dot : Scores::concat;
        return std::make_shared<DotAttentionBody>(
            DotOptions{"Attention", scores, options.use_scale, options.dropout, NoiseSource(options.seed, where)},
            options.name, options.dtype, options.activity_regularizer);
      }()) {
  note_recipe(*this, DotAttentionRecipe{options});
}

AdditiveAttention::AdditiveAttention(AdditiveAttentionOptions options, Where where)
    : AttentionLayer([&] {
        require_dropout("AdditiveAttention", options.dropout, where);
        return std::make_shared<DotAttentionBody>(DotOptions{"AdditiveAttention", Scores::additive, options.use_scale,
                                                             options.dropout, NoiseSource(options.seed, where)},
                                                  options.name, options.dtype, options.activity_regularizer);
      }()) {
  note_recipe(*this, AdditiveAttentionRecipe{options});
}

}  // namespace stet::keras
