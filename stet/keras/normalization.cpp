#include "stet/keras/normalization.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/differentiate.h"
#include "stet/keras/added_losses.h"
#include "stet/keras/layer_fields.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/spatial.h"

namespace stet::keras {
namespace {

constexpr ReduceOptions keep{.keepdims = true};
constexpr Takes takes_any{.least = 2, .layout = "[batch, …]"};

/// f16 and bf16 in f32: sums of squares leave them.
Tensor wide(const Tensor& x) { return x.dtype() == DType::f16 || x.dtype() == DType::bf16 ? cast(x, DType::f32) : x; }
Tensor in_type(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : cast(x, dtype); }

/// An axis from 0 on; UserError if there is none such.
int counted(const CustomLayer& layer, std::int64_t axis, int rank) {
  if (axis >= -rank && axis < rank) return static_cast<int>(axis < 0 ? axis + rank : axis);
  throw UserError(error_text(text(layer.description(), ": axis ", axis, " of an input with ", rank, " axes"),
                             calling_line(), text("give one from ", -rank, " to ", rank - 1)));
}
std::vector<int> counted(const CustomLayer& layer, const Axes& axes, int rank) {
  std::vector<int> out;
  for (std::int64_t axis : axes.axes) out.push_back(counted(layer, axis, rank));
  std::sort(out.begin(), out.end());
  return out;
}
/// Those that are not among `axes`.
std::vector<int> others(const std::vector<int>& axes, int rank) {
  std::vector<int> out;
  for (int axis = 0; axis < rank; ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) out.push_back(axis);
  return out;
}
Shape sizes_at(const Shape& shape, const std::vector<int>& axes) {
  std::vector<Dim> out;
  for (int axis : axes) out.push_back(shape[axis]);
  return Shape(out);
}

/// The options that say which of gamma and beta a layer has, and the two weights.
class Affine {
 public:
  template <class Options>
  explicit Affine(const Options& options) : scale(options.scale), center(options.center) {}
  const bool scale, center;
  Variable gamma, beta;

  /// The parameter as it broadcasts against an input with so many axes.
  static Tensor placed(const Tensor& weight, const std::vector<int>& axes, int rank) {
    if (!axes.empty() && axes.back() == rank - 1 && static_cast<int>(axes.size()) == rank - axes[0]) return weight;
    std::vector<Dim> sizes(static_cast<std::size_t>(rank), Dim(1));
    for (std::size_t i = 0; i < axes.size(); ++i)
      sizes[static_cast<std::size_t>(axes[i])] = weight.dim(static_cast<int>(i));
    return reshape(weight, sizes);
  }
  /// gamma * x + beta, in x's type.
  Tensor applied(const Tensor& x, const std::vector<int>& axes) const {
    Tensor out = x;
    if (scale) out = out * placed(in_type(gamma.read(), x.dtype()), axes, x.rank());
    if (center) out = out + placed(in_type(beta.read(), x.dtype()), axes, x.rank());
    return out;
  }
};

/// Layers with gamma and beta, of the sizes of some axes.
template <class Options>
class AffineLayer : public LibraryLayer {
 public:
  AffineLayer(const char* layer, Options options)
      : LibraryLayer(layer, options.name, takes_any, options.dtype,
                     {.activity_regularizer = options.activity_regularizer}),
        options_(std::move(options)),
        affine_(options_) {}
  bool supports_masking() const final { return true; }

 protected:
  void make_affine(const Shape& shape) {
    if (affine_.scale)
      affine_.gamma = weight(
          "gamma", shape, {options_.gamma_initializer, "ones", options_.gamma_regularizer, options_.gamma_constraint});
    if (affine_.center)
      affine_.beta = weight("beta", shape,
                            {options_.beta_initializer, "zeros", options_.beta_regularizer, options_.beta_constraint});
    sizes_ = shape;
  }
  void require_sizes(const Tensor& x, const std::vector<int>& axes, const char* what, Where where) const {
    for (std::size_t i = 0; i < axes.size(); ++i) require_size(x, axes[i], sizes_[static_cast<int>(i)], what, where);
  }

  const Options options_;
  Affine affine_;

 private:
  Shape sizes_;  // that it was built for
};

class BatchNormalizationBody final : public AffineLayer<BatchNormalizationOptions> {
 public:
  using AffineLayer::AffineLayer;

 private:
  void make_weights(const Shape& input) override {
    const Shape shape({input[counted(*this, options_.axis, input.rank())].value()});
    make_affine(shape);
    auto kept = [&](const char* name, const Initializer& given, const char* otherwise) {
      return weight(name, shape, {given, otherwise, {}, {}, false});
    };
    moving_mean_ = kept("moving_mean", options_.moving_mean_initializer, "zeros");
    moving_variance_ = kept("moving_variance", options_.moving_variance_initializer, "ones");
    if (!options_.renorm) return;
    auto deviation = [of = options_.moving_variance_initializer](const Shape& sizes, DType dtype) {
      return of.defined() ? sqrt(of(sizes, dtype)) : ones(sizes, dtype);
    };
    moving_stddev_ = kept("moving_stddev", Initializer(deviation), "");
    renorm_mean_ = kept("renorm_mean", options_.moving_mean_initializer, "zeros");
    renorm_stddev_ = kept("renorm_stddev", Initializer(deviation), "");
  }

  Tensor run(const Tensor& given, const Context& context) override {
    const Tensor x = wide(given);
    const int rank = x.rank();
    const std::vector<int> channels{counted(*this, options_.axis, rank)};
    require_sizes(x, channels, "channels", context.where);
    Tensor mean = Affine::placed(in_type(moving_mean_.read(), x.dtype()), channels, rank);
    Tensor variance = Affine::placed(in_type(moving_variance_.read(), x.dtype()), channels, rank);
    if (context.training && trainable()) {
      std::tie(mean, variance) = statistics(x, others(channels, rank), context);
      if (options_.renorm)
        return in_type(affine_.applied(renormed(x, mean, variance, channels), channels), given.dtype());
      follow(moving_mean_, mean, options_.momentum);
      follow(moving_variance_, variance, options_.momentum);
    }
    return in_type(affine_.applied((x - mean) * rsqrt(variance + options_.epsilon), channels), given.dtype());
  }

  /// Batch renormalisation: by the statistics of the batch, and what makes them those of the batches before.
  Tensor renormed(const Tensor& x, const Tensor& mean, const Tensor& variance, const std::vector<int>& channels) const {
    const RenormClipping& clipping = options_.renorm_clipping;
    auto kept = [&](const Variable& statistic) {
      return Affine::placed(in_type(statistic.read(), x.dtype()), channels, x.rank());
    };
    const Tensor deviation = sqrt(variance + options_.epsilon);
    const Tensor before = maximum(kept(renorm_stddev_), std::sqrt(options_.epsilon));
    Tensor factor = deviation / before, offset = (mean - kept(renorm_mean_)) / before;
    if (clipping.rmin) factor = maximum(factor, *clipping.rmin);
    if (clipping.rmax) factor = minimum(factor, *clipping.rmax);
    if (clipping.dmax) offset = clip(offset, -*clipping.dmax, *clipping.dmax);
    const Tensor out = (x - mean) / deviation * stop_gradient(factor) + stop_gradient(offset);
    follow(renorm_mean_, mean, options_.renorm_momentum);
    follow(renorm_stddev_, deviation, options_.renorm_momentum);
    follow(moving_mean_, mean, options_.momentum);
    follow(moving_stddev_, deviation, options_.momentum);
    const Tensor moved = in_type(moving_stddev_.read(), x.dtype());
    moving_variance_.assign(in_type(relu(square(moved) - options_.epsilon), moving_variance_.dtype()));
    return out;
  }

  std::pair<Tensor, Tensor> statistics(const Tensor& x, const std::vector<int>& axes, const Context& context) const {
    const Tensor mask = context.mask();
    if (!mask.defined()) return moments(x, axes, keep);
    if (mask.rank() + 1 != x.rank())
      throw UserError(error_text(text(description(), ": a mask ", described(mask), " of ", described(x)), context.where,
                                 "it has all axes but the last"));
    const Tensor counts = cast(expand_dims(mask, -1), x.dtype());
    const Tensor total = sum(counts, axes, keep) + 1e-7;
    const Tensor mean = sum(counts * x, axes, keep) / total;
    return {mean, sum(counts * square(x - mean), axes, keep) / total};
  }

  /// Moves a kept statistic towards that of the batch.
  static void follow(const Variable& kept, const Tensor& now, double momentum) {
    const Tensor value = reshape(now, kept.shape());
    const Tensor next = in_type(kept.read(), value.dtype()) * momentum + value * (1 - momentum);
    kept.assign(in_type(next, kept.dtype()));
  }

  Variable moving_mean_, moving_variance_;
  Variable moving_stddev_, renorm_mean_, renorm_stddev_;  // with renorm
};

class LayerNormalizationBody final : public AffineLayer<LayerNormalizationOptions> {
 public:
  using AffineLayer::AffineLayer;

 private:
  void make_weights(const Shape& input) override {
    make_affine(sizes_at(input, counted(*this, options_.axis, input.rank())));
  }
  Tensor run(const Tensor& given, const Context& context) override {
    const Tensor x = wide(given);
    const std::vector<int> axes = counted(*this, options_.axis, x.rank());
    if (affine_.scale || affine_.center) require_sizes(x, axes, "values", context.where);
    const Tensor centred = x - mean(x, axes, keep);
    const Tensor normal = centred * rsqrt(mean(square(centred), axes, keep) + options_.epsilon);
    return in_type(affine_.applied(normal, axes), given.dtype());
  }
};

class GroupNormalizationBody final : public AffineLayer<GroupNormalizationOptions> {
 public:
  GroupNormalizationBody(const char* layer, std::int64_t groups, GroupNormalizationOptions options)
      : AffineLayer(layer, std::move(options)), groups_(groups) {}

 private:
  void make_weights(const Shape& input) override {
    const std::int64_t channels = input[counted(*this, options_.axis, input.rank())].value();
    const std::int64_t groups = groups_ == -1 ? channels : groups_;
    if (channels % groups != 0)
      throw UserError(error_text(text(description(), ": ", channels, " channels do not fall into ", groups, " groups"),
                                 calling_line(), "their number is a multiple of the groups; -1: one for each"));
    made_groups_ = groups;
    make_affine(Shape({channels}));
  }
  Tensor run(const Tensor& x, const Context& context) override {
    const int axis = counted(*this, options_.axis, x.rank());
    require_sizes(x, {axis}, "channels", context.where);
    const bool last = axis == x.rank() - 1;
    Tensor normal = group_norm(last ? x : moveaxis(x, axis, -1), made_groups_, 1, 0, {.epsilon = options_.epsilon});
    return affine_.applied(last ? normal : moveaxis(normal, -1, axis), {axis});
  }

  const std::int64_t groups_;
  std::int64_t made_groups_ = 0;
};

class RMSNormalizationBody final : public LibraryLayer {
 public:
  explicit RMSNormalizationBody(RMSNormalizationOptions options)
      : LibraryLayer("RMSNormalization", options.name, takes_any, options.dtype,
                     {.activity_regularizer = options.activity_regularizer}),
        options_(std::move(options)) {}

 private:
  void make_weights(const Shape& input) override {
    scale_ = weight("scale", sizes_at(input, counted(*this, options_.axis, input.rank())), {.otherwise = "ones"});
  }
  Tensor run(const Tensor& given, const Context& context) override {
    const Tensor x = wide(given);
    const std::vector<int> axes = counted(*this, options_.axis, x.rank());
    for (std::size_t i = 0; i < axes.size(); ++i)
      require_size(x, axes[i], scale_.shape()[static_cast<int>(i)], "values", context.where);
    const Tensor normal = x * rsqrt(mean(square(x), axes, keep) + options_.epsilon);
    return in_type(normal * Affine::placed(in_type(scale_.read(), x.dtype()), axes, x.rank()), given.dtype());
  }

  const RMSNormalizationOptions options_;
  Variable scale_;
};

class SpectralNormalizationBody final : public LibraryLayer {
 public:
  SpectralNormalizationBody(Layer layer, SpectralNormalizationOptions options)
      : LibraryLayer("SpectralNormalization", options.name, {.least = 1, .layout = "[batch, …]"}, options.dtype),
        layer(std::move(layer)),
        iterations_(options.power_iterations) {}
  STET_MEMBERS(layer)

 private:
  void make_weights(const Shape& input) override {
    {
      LossesDropped no_losses;
      layer(zeros(input, compute_dtype()), {.training = false}, calling_line());
    }
    for (const Weight& one : layer.weights())
      if (one.path.ends_with("/kernel") || one.path.ends_with("/embeddings")) kernel_ = one.variable;
    if (!kernel_.defined())
      throw UserError(error_text(text(description(), ": its layer '", layer.name(), "' has no kernel"), calling_line(),
                                 "give it a layer with a weight 'kernel' or 'embeddings': Dense, Conv2D"));
    auto drawn = [](const Shape& shape, DType dtype) {
      return random::truncated_normal(shape, {.stddev = 0.02, .dtype = dtype});
    };
    vector_u_ = weight("vector_u", {1, kernel_.shape()[-1]}, {.initializer = Initializer(drawn), .trainable = false});
  }
  Tensor run(const Tensor& x, const Context& context) override {
    if (context.training) normalise();
    return layer(x, {}, context.where);
  }
  void normalise() const {
    const Tensor kernel = kernel_.read(), matrix = reshape(kernel, {-1, kernel.dim(-1)});
    const L2NormalizeOptions tiny{.epsilon = 1e-24};
    Tensor u = vector_u_.read(), v;
    for (std::int64_t i = 0; i < iterations_; ++i) {
      v = l2_normalize(matmul(u, transpose(matrix)), {0, 1}, tiny);
      u = l2_normalize(matmul(v, matrix), {0, 1}, tiny);
    }
    u = stop_gradient(u);
    const Tensor sigma = matmul(matmul(stop_gradient(v), matrix), transpose(u));
    const Tensor nothing = all(kernel == 0);  // has no direction
    vector_u_.assign(where(nothing, vector_u_.read(), u));
    kernel_.assign(where(nothing, kernel, kernel / reshape(sigma, Shape{})));
  }

  Layer layer;
  const std::int64_t iterations_;
  Variable kernel_, vector_u_;
};

// --- what they were made from

/// {"rmax": 3.0, "rmin": …, "dmax": …}, or null.
void clipping_field(Fields& f, const char* name, RenormClipping& value) {
  if (!f.reading()) {
    Json::Object given;
    if (value.rmax) given.emplace_back("rmax", *value.rmax);
    if (value.rmin) given.emplace_back("rmin", *value.rmin);
    if (value.dmax) given.emplace_back("dmax", *value.dmax);
    return f.put(name, given.empty() ? Json() : Json(std::move(given)));
  }
  const Json* member = f.take(name);
  if (!member || member->is_null()) return;
  if (!member->if_object()) f.wrong(name, *member, "an object with rmax, rmin and dmax");
  f.place().path.push_back(name);
  Fields inner(*member, f.place());
  inner("rmax", value.rmax);
  inner("rmin", value.rmin);
  inner("dmax", value.dmax);
  inner.finish(name);
  f.place().path.pop_back();
}

struct BatchNormalizationRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "BatchNormalization";
  BatchNormalizationOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f("axis", options.axis);
    f("momentum", options.momentum);
    f("epsilon", options.epsilon);
    f("center", options.center);
    f("scale", options.scale);
    weight_fields(f, options);
    f("moving_mean_initializer", options.moving_mean_initializer, "zeros");
    f("moving_variance_initializer", options.moving_variance_initializer, "ones");
    f.only("synchronized", false);
    f.besides("renorm", options.renorm, false);
    if (f.reading() || options.renorm) {
      clipping_field(f, "renorm_clipping", options.renorm_clipping);
      f("renorm_momentum", options.renorm_momentum);
    }
    f.if_defined("activity_regularizer", options.activity_regularizer);
  }
  Layer make(Where where) const { return BatchNormalization(options, where); }
};
struct LayerNormalizationRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "LayerNormalization";
  LayerNormalizationOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    axes_field(f, "axis", options.axis);
    f("epsilon", options.epsilon);
    f("center", options.center);
    f("scale", options.scale);
    f.only("rms_scaling", false);
    weight_fields(f, options);
    f.if_defined("activity_regularizer", options.activity_regularizer);
  }
  Layer make(Where where) const { return LayerNormalization(options, where); }
};
struct GroupNormalizationRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "GroupNormalization";
  std::int64_t groups = 32;
  GroupNormalizationOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f("groups", groups);
    f("axis", options.axis);
    f("epsilon", options.epsilon);
    f("center", options.center);
    f("scale", options.scale);
    weight_fields(f, options);
    f.if_defined("activity_regularizer", options.activity_regularizer);
  }
  Layer make(Where where) const { return GroupNormalization(groups, options, where); }
};
struct UnitNormalizationRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "UnitNormalization";
  UnitNormalizationOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    axes_field(f, "axis", options.axis);
  }
  Layer make(Where) const { return UnitNormalization(options); }
};
struct RMSNormalizationRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "RMSNormalization";
  RMSNormalizationOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    axes_field(f, "axis", options.axis);
    f("epsilon", options.epsilon);
    f.if_defined("activity_regularizer", options.activity_regularizer);
  }
  Layer make(Where where) const { return RMSNormalization(options, where); }
};
struct SpectralNormalizationRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "SpectralNormalization";
  Layer layer = {};
  SpectralNormalizationOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f.required("layer", layer);
    f("power_iterations", options.power_iterations);
  }
  Layer make(Where where) const { return SpectralNormalization(layer, options, where); }
};
const Savable<BatchNormalizationRecipe> savable_batch_normalization;
const Savable<LayerNormalizationRecipe> savable_layer_normalization;
const Savable<GroupNormalizationRecipe> savable_group_normalization;
const Savable<UnitNormalizationRecipe> savable_unit_normalization;
const Savable<RMSNormalizationRecipe> savable_rms_normalization;
const Savable<SpectralNormalizationRecipe> savable_spectral_normalization;

}  // namespace

BatchNormalization::BatchNormalization(BatchNormalizationOptions options, Where where)
    : Layer(std::make_shared<BatchNormalizationBody>("BatchNormalization", options)) {
  if (!(options.momentum >= 0 && options.momentum <= 1))
    throw UserError(error_text(text("BatchNormalization: a momentum of ", options.momentum), where,
                               "it is the part that stays, from 0 to 1"));
  const RenormClipping& clipping = options.renorm_clipping;
  if (clipping.rmax && clipping.rmin && *clipping.rmax < *clipping.rmin)
    throw UserError(error_text(
        text("BatchNormalization: renorm_clipping with a factor from ", *clipping.rmin, " to ", *clipping.rmax), where,
        "rmin is the smaller one"));
  if (clipping.dmax && !(*clipping.dmax >= 0))
    throw UserError(error_text(text("BatchNormalization: renorm_clipping with a dmax of ", *clipping.dmax), where,
                               "it is how far the offset may go, from 0 on"));
  note_recipe(*this, BatchNormalizationRecipe{options});
}
LayerNormalization::LayerNormalization(LayerNormalizationOptions options, Where where)
    : Layer(std::make_shared<LayerNormalizationBody>("LayerNormalization", options)) {
  if (options.axis.axes.empty())
    throw UserError(error_text("LayerNormalization: no axes", where, "give at least one: -1"));
  note_recipe(*this, LayerNormalizationRecipe{options});
}
GroupNormalization::GroupNormalization(std::int64_t groups, GroupNormalizationOptions options, Where where)
    : Layer(std::make_shared<GroupNormalizationBody>("GroupNormalization", groups, options)) {
  if (groups != -1) require_at_least("GroupNormalization", "groups", groups, 1, where);
  note_recipe(*this, GroupNormalizationRecipe{groups, options});
}
UnitNormalization::UnitNormalization(UnitNormalizationOptions options)
    : Layer(plain_layer(
          {.class_name = "UnitNormalization",
           .name = options.name,
           .takes = {.least = 1, .layout = "[batch, …]"},
           .call = [axes = options.axis](const Tensor& x,
                                         const Context&) { return l2_normalize(x, axes, {.epsilon = 1e-24}); },
           .supports_masking = true,
           .policy = options.dtype})) {
  note_recipe(*this, UnitNormalizationRecipe{options});
}
RMSNormalization::RMSNormalization(RMSNormalizationOptions options, Where where)
    : Layer(std::make_shared<RMSNormalizationBody>(options)) {
  if (options.axis.axes.empty())
    throw UserError(error_text("RMSNormalization: no axes", where, "give at least one: -1"));
  note_recipe(*this, RMSNormalizationRecipe{options});
}
SpectralNormalization::SpectralNormalization(Layer layer, SpectralNormalizationOptions options, Where where)
    : Layer(std::make_shared<SpectralNormalizationBody>(layer, options)) {
  if (!layer.defined())
    throw UserError(error_text("SpectralNormalization: its layer is undefined", where, "give it one: Dense(3)"));
  require_at_least("SpectralNormalization", "power_iterations", options.power_iterations, 1, where);
  note_recipe(*this, SpectralNormalizationRecipe{layer, options});
}

}  // namespace stet::keras
