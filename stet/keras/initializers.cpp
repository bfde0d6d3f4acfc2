#include "stet/keras/initializers.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/dim_host.h"
#include "stet/keras/config.h"
#include "stet/ops/ops.h"

namespace stet::keras::initializers {
namespace {

using Seed = std::optional<std::int64_t>;

/// Without a seed, the next weight's own.
random::StreamSeed stream_of(const Seed& seed) {
  constexpr std::int64_t seeded = 0x696e697469616c73;  // apart from the streams of weights, which are counted
  return seed ? random::StreamSeed{*seed, seeded} : random::next_initial_stream();
}

[[noreturn]] void refuse(const std::string& what, Where where, const std::string& advice) {
  throw UserError(error_text(what, where, advice));
}
void check_stddev(const char* initializer, double stddev, Where where) {
  if (!(stddev >= 0)) refuse(text(initializer, ": stddev = ", stddev), where, "it is 0 or more");
}

double product_of(const Shape& sizes, const std::vector<int>& axes, Where where) {
  double product = 1;
  for (int axis : axes) {
    if (axis < -sizes.rank() || axis >= sizes.rank())
      refuse(text("VarianceScaling: there is no axis ", axis, " in a weight of ", sizes), where,
             "input_axes and output_axes are axes of the weight");
    product *= static_cast<double>(sizes[axis]);
  }
  return product;
}

/// How many inputs and outputs meet in one weight: the last two axes are in and out, the others a receptive field.
double fan_of(const VarianceScalingOptions& options, const Shape& sizes, Where where) {
  double in = 1, out = 1;
  if (!options.input_axes.empty() && !options.output_axes.empty()) {
    in = product_of(sizes, options.input_axes, where);
    out = product_of(sizes, options.output_axes, where);
  } else if (sizes.rank() == 1) {
    in = out = static_cast<double>(sizes[0]);
  } else if (sizes.rank() >= 2) {
    double field = 1;
    for (int i = 0; i + 2 < sizes.rank(); ++i) field *= static_cast<double>(sizes[i]);
    in = field * static_cast<double>(sizes[-2]);
    out = field * static_cast<double>(sizes[-1]);
  }
  return std::max(1.0, options.mode == "fan_in" ? in : options.mode == "fan_out" ? out : (in + out) / 2);
}

VarianceScalingOptions scaled(double scale, const char* mode, const char* distribution, FanOptions options) {
  return {.scale = scale,
          .mode = mode,
          .distribution = distribution,
          .seed = options.seed,
          .input_axes = std::move(options.input_axes),
          .output_axes = std::move(options.output_axes)};
}

// --- recipes

/// "seed". Keras's SeedGenerator draws another number each time: as here, where there is no seed.
void seed_field(Fields& f, Seed& seed) {
  const Json* given = f.reading() ? f.take("seed") : nullptr;
  const Json* kind = given ? given->find("class_name") : nullptr;
  if (kind && *kind == Json("SeedGenerator"))
    seed.reset();
  else
    f("seed", seed);
}
void fan_fields(Fields& f, std::vector<int>& input_axes, std::vector<int>& output_axes) {
  f.or_null("input_axes", input_axes);
  f.or_null("output_axes", output_axes);
}

template <class Self, Literal name>
struct PlainRecipe {
  static constexpr const char *module = "keras.initializers", *class_name = name.text;
  void fields(Fields&) {}
  Initializer make(Where) const { return Self(); }
};
template <class Self, Literal name, class Options, void (*own)(Fields&, Options&)>
struct InitializerRecipe {
  static constexpr const char *module = "keras.initializers", *class_name = name.text;
  Options options = {};
  void fields(Fields& f) { own(f, options); }
  Initializer make(Where where) const { return Self(options, where); }
};

struct ConstantRecipe {
  static constexpr const char *module = "keras.initializers", *class_name = "Constant";
  double number = 0;
  Tensor tensor = {};
  void fields(Fields& f) {
    const Json* given = f.reading() ? f.take("value") : nullptr;
    if (f.reading() ? given && (given->if_list() || given->if_object()) : tensor.defined())
      f("value", tensor);
    else
      f("value", number);
  }
  Initializer make(Where where) const { return tensor.defined() ? Constant(tensor, where) : Constant(number); }
};

void identity_fields(Fields& f, IdentityOptions& options) { f.besides("gain", options.gain, 1); }
void random_normal_fields(Fields& f, RandomNormalOptions& options) {
  seed_field(f, options.seed);
  f("mean", options.mean);
  f("stddev", options.stddev);
}
void random_uniform_fields(Fields& f, RandomUniformOptions& options) {
  seed_field(f, options.seed);
  f("minval", options.minval);
  f("maxval", options.maxval);
}
void truncated_normal_fields(Fields& f, TruncatedNormalOptions& options) {
  seed_field(f, options.seed);
  f("mean", options.mean);
  f("stddev", options.stddev);
}
void variance_scaling_fields(Fields& f, VarianceScalingOptions& options) {
  seed_field(f, options.seed);
  f("scale", options.scale);
  f("mode", options.mode);
  f("distribution", options.distribution);
  fan_fields(f, options.input_axes, options.output_axes);
}
void seeded_fan_fields(Fields& f, FanOptions& options) {
  seed_field(f, options.seed);
  fan_fields(f, options.input_axes, options.output_axes);
}
void orthogonal_fields(Fields& f, OrthogonalOptions& options) {
  seed_field(f, options.seed);
  f("gain", options.gain);
}
void stft_fields(Fields& f, STFTOptions& options) {
  f("side", options.side);
  f.or_null("window", options.window, "");
  f("periodic", options.periodic);
  f("scaling", options.scaling);
}

using ZerosRecipe = PlainRecipe<Zeros, "Zeros">;
using OnesRecipe = PlainRecipe<Ones, "Ones">;
using IdentityRecipe = InitializerRecipe<Identity, "Identity", IdentityOptions, identity_fields>;
using RandomNormalRecipe = InitializerRecipe<RandomNormal, "RandomNormal", RandomNormalOptions, random_normal_fields>;
using RandomUniformRecipe =
    InitializerRecipe<RandomUniform, "RandomUniform", RandomUniformOptions, random_uniform_fields>;
using TruncatedNormalRecipe =
    InitializerRecipe<TruncatedNormal, "TruncatedNormal", TruncatedNormalOptions, truncated_normal_fields>;
using VarianceScalingRecipe =
    InitializerRecipe<VarianceScaling, "VarianceScaling", VarianceScalingOptions, variance_scaling_fields>;
using GlorotNormalRecipe = InitializerRecipe<GlorotNormal, "GlorotNormal", FanOptions, seeded_fan_fields>;
using GlorotUniformRecipe = InitializerRecipe<GlorotUniform, "GlorotUniform", FanOptions, seeded_fan_fields>;
using HeNormalRecipe = InitializerRecipe<HeNormal, "HeNormal", FanOptions, seeded_fan_fields>;
using HeUniformRecipe = InitializerRecipe<HeUniform, "HeUniform", FanOptions, seeded_fan_fields>;
using LecunNormalRecipe = InitializerRecipe<LecunNormal, "LecunNormal", FanOptions, seeded_fan_fields>;
using LecunUniformRecipe = InitializerRecipe<LecunUniform, "LecunUniform", FanOptions, seeded_fan_fields>;
using OrthogonalRecipe = InitializerRecipe<Orthogonal, "Orthogonal", OrthogonalOptions, orthogonal_fields>;
// As older versions of Keras call them.
using OldIdentityRecipe = InitializerRecipe<Identity, "IdentityInitializer", IdentityOptions, identity_fields>;
using OldOrthogonalRecipe =
    InitializerRecipe<Orthogonal, "OrthogonalInitializer", OrthogonalOptions, orthogonal_fields>;
using STFTRecipe = InitializerRecipe<STFT, "STFT", STFTOptions, stft_fields>;

const SavableAll<ZerosRecipe, OnesRecipe, ConstantRecipe, IdentityRecipe, RandomNormalRecipe, RandomUniformRecipe,
                 TruncatedNormalRecipe, VarianceScalingRecipe, GlorotNormalRecipe, GlorotUniformRecipe, HeNormalRecipe,
                 HeUniformRecipe, LecunNormalRecipe, LecunUniformRecipe, OrthogonalRecipe, STFTRecipe,
                 OldIdentityRecipe, OldOrthogonalRecipe>
    savable_initializers;

}  // namespace

Zeros::Zeros() : Initializer([](const Shape& shape, DType dtype) { return zeros(shape, dtype); }) {
  note_recipe(*this, ZerosRecipe{});
}
Ones::Ones() : Initializer([](const Shape& shape, DType dtype) { return ones(shape, dtype); }) {
  note_recipe(*this, OnesRecipe{});
}
Constant::Constant(double value)
    : Initializer([=](const Shape& shape, DType dtype) { return full(shape, value, dtype); }) {
  note_recipe(*this, ConstantRecipe{.number = value});
}
Constant::Constant(const Tensor& value, Where where)
    : Initializer([=](const Shape& shape, DType dtype) { return broadcast_to(cast(In(value, where), dtype), shape); }) {
  note_recipe(*this, ConstantRecipe{.tensor = value});
}

Identity::Identity(IdentityOptions options, Where where)
    : Initializer([=](const Shape& shape, DType dtype) {
        if (shape.rank() != 2) refuse(text("Identity: a weight of ", shape, " is no matrix"), where, "it has two axes");
        return options.gain * eye(shape[0], shape[1], {.dtype = dtype});
      }) {
  note_recipe(*this, IdentityRecipe{options});
}

RandomNormal::RandomNormal(RandomNormalOptions options, Where where)
    : Initializer([=](const Shape& shape, DType dtype) {
        return random::stateless_normal(shape, stream_of(options.seed),
                                        {.mean = options.mean, .stddev = options.stddev, .dtype = dtype});
      }) {
  check_stddev("RandomNormal", options.stddev, where);
  note_recipe(*this, RandomNormalRecipe{options});
}

RandomUniform::RandomUniform(RandomUniformOptions options, Where where)
    : Initializer([=](const Shape& shape, DType dtype) {
        return random::stateless_uniform(shape, stream_of(options.seed),
                                         {.minval = options.minval, .maxval = options.maxval, .dtype = dtype});
      }) {
  if (!(options.minval <= options.maxval))
    refuse(text("RandomUniform: from ", options.minval, " to ", options.maxval), where, "minval <= maxval");
  note_recipe(*this, RandomUniformRecipe{options});
}

TruncatedNormal::TruncatedNormal(TruncatedNormalOptions options, Where where)
    : Initializer([=](const Shape& shape, DType dtype) {
        return random::stateless_truncated_normal(shape, stream_of(options.seed),
                                                  {.mean = options.mean, .stddev = options.stddev, .dtype = dtype});
      }) {
  check_stddev("TruncatedNormal", options.stddev, where);
  note_recipe(*this, TruncatedNormalRecipe{options});
}

VarianceScaling::VarianceScaling(VarianceScalingOptions options, Where where)
    : Initializer([=](const Shape& shape, DType dtype) {
        random::StreamSeed stream = stream_of(options.seed);
        const double variance = options.scale / fan_of(options, shape, where);
        if (options.distribution == "uniform") {
          const double limit = std::sqrt(3 * variance);
          return random::stateless_uniform(shape, stream, {.minval = -limit, .maxval = limit, .dtype = dtype});
        }
        if (options.distribution == "untruncated_normal")
          return random::stateless_normal(shape, stream, {.stddev = std::sqrt(variance), .dtype = dtype});
        // Cutting at two deviations narrows the distribution by this factor; as in Keras, variance scaling makes up
        // for it.
        constexpr double deviation_left = 0.87962566103423978;
        return random::stateless_truncated_normal(shape, stream,
                                                  {.stddev = std::sqrt(variance) / deviation_left, .dtype = dtype});
      }) {
  if (!(options.scale > 0)) refuse(text("VarianceScaling: scale = ", options.scale), where, "it is more than 0");
  if (options.mode != "fan_in" && options.mode != "fan_out" && options.mode != "fan_avg")
    refuse(text("VarianceScaling: there is no mode '", options.mode, "'"), where, "one of fan_in, fan_out, fan_avg");
  if (options.distribution != "normal" && options.distribution != "truncated_normal" &&
      options.distribution != "untruncated_normal" && options.distribution != "uniform")
    refuse(text("VarianceScaling: there is no distribution '", options.distribution, "'"), where,
           "one of truncated_normal, untruncated_normal, uniform");
  note_recipe(*this, VarianceScalingRecipe{options});
}

GlorotNormal::GlorotNormal(FanOptions options, Where where)
    : Initializer(VarianceScaling(scaled(1, "fan_avg", "truncated_normal", options), where)) {
  note_recipe(*this, GlorotNormalRecipe{options});
}
GlorotUniform::GlorotUniform(FanOptions options, Where where)
    : Initializer(VarianceScaling(scaled(1, "fan_avg", "uniform", options), where)) {
  note_recipe(*this, GlorotUniformRecipe{options});
}
HeNormal::HeNormal(FanOptions options, Where where)
    : Initializer(VarianceScaling(scaled(2, "fan_in", "truncated_normal", options), where)) {
  note_recipe(*this, HeNormalRecipe{options});
}
HeUniform::HeUniform(FanOptions options, Where where)
    : Initializer(VarianceScaling(scaled(2, "fan_in", "uniform", options), where)) {
  note_recipe(*this, HeUniformRecipe{options});
}
LecunNormal::LecunNormal(FanOptions options, Where where)
    : Initializer(VarianceScaling(scaled(1, "fan_in", "truncated_normal", options), where)) {
  note_recipe(*this, LecunNormalRecipe{options});
}
LecunUniform::LecunUniform(FanOptions options, Where where)
    : Initializer(VarianceScaling(scaled(1, "fan_in", "uniform", options), where)) {
  note_recipe(*this, LecunUniformRecipe{options});
}

Orthogonal::Orthogonal(OrthogonalOptions options, Where where)
    : Initializer([=](const Shape& shape, DType dtype) {
        if (shape.rank() < 2)
          refuse(text("Orthogonal: a weight of ", shape, " is no matrix"), where, "it has two axes or more");
        std::int64_t rows = 1;
        for (int axis = 0; axis + 1 < shape.rank(); ++axis) rows *= shape[axis].value();
        const std::int64_t columns = shape[-1].value();
        if (rows == 0 || columns == 0) return zeros(shape, dtype);
        const DType exact = dtype == f64 ? f64 : f32;
        Tensor drawn = random::stateless_normal({std::max(rows, columns), std::min(rows, columns)},
                                                stream_of(options.seed), {.dtype = exact});
        auto [q, r] = linalg::qr(drawn);
        // With the signs of r's diagonal in q, every orthogonal matrix is as likely.
        Tensor unit = q * stet::where(diag(r) < 0, -1, 1);
        if (rows < columns) unit = matrix_transpose(unit);
        return cast(reshape(options.gain * unit, shape), dtype);
      }) {
  note_recipe(*this, OrthogonalRecipe{options});
}

namespace {

/// Windows as SciPy has them; periodic ones repeat after the frame, others end as they begin.
double window_at(const std::string& window, std::int64_t i, std::int64_t length, bool periodic) {
  const std::int64_t period = periodic ? length : length - 1;
  if (length == 1 || window.empty()) return 1;
  const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(period);
  if (window == "hann") return 0.5 - 0.5 * std::cos(angle);
  if (window == "hamming") return 0.54 - 0.46 * std::cos(angle);
  return 0.42 - 0.5 * std::cos(angle) + 0.08 * std::cos(2 * angle);
}

}  // namespace

STFT::STFT(STFTOptions options, Where where)
    : Initializer([=](const Shape& shape, DType dtype) {
        if (shape.rank() != 3) refuse(text("STFT: a weight of ", shape), where, "it is [frame length, channels, bins]");
        const std::int64_t frame = shape[0].value(), bins = shape[2].value();
        std::vector<double> window, kernel;
        double scale = 0;
        for (std::int64_t i = 0; i < frame; ++i) {
          window.push_back(window_at(options.window, i, frame, options.periodic));
          scale += options.scaling == "spectrum" ? std::abs(window.back()) : window.back() * window.back();
        }
        if (options.scaling == "density") scale = std::sqrt(scale);
        if (!options.scaling || options.window.empty()) scale = 1;
        for (std::int64_t i = 0; i < frame; ++i)
          for (std::int64_t bin = 0; bin < bins; ++bin) {
            // Whole turns are left out before they cost digits.
            const std::int64_t turn = std::max<std::int64_t>(2 * (bins - 1), 1);
            const double angle =
                -2 * std::numbers::pi * static_cast<double>(i * bin % turn) / static_cast<double>(turn);
            kernel.push_back((options.side == "real" ? std::cos(angle) : std::sin(angle)) *
                             window[static_cast<std::size_t>(i)] / scale);
          }
        return broadcast_to(cast(reshape(tensor(kernel), {frame, 1, bins}), dtype), shape);
      }) {
  if (options.side != "real" && options.side != "imag")
    refuse(text("STFT: there is no side '", options.side, "'"), where, "one of real, imag");
  if (!options.window.empty() && options.window != "hann" && options.window != "hamming" &&
      options.window != "blackman")
    refuse(text("STFT: there is no window '", options.window, "'"), where, "one of hann, hamming, blackman, or \"\"");
  if (options.scaling && *options.scaling != "density" && *options.scaling != "spectrum")
    refuse(text("STFT: there is no scaling '", *options.scaling, "'"), where, "one of density, spectrum, or nothing");
  note_recipe(*this, STFTRecipe{options});
}

}  // namespace stet::keras::initializers
