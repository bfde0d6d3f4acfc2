// Hashing and HashedCrossing, of categories.h.
#include <memory>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/host_call.h"
#include "stet/keras/categories.h"
#include "stet/keras/category_codes.h"
#include "stet/keras/hash.h"
#include "stet/keras/layer_fields.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/library_layer.h"
#include "stet/keras/spatial.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

class HashingBody final : public LibraryLayer {
 public:
  HashingBody(std::int64_t num_bins, HashingOptions options)
      : LibraryLayer("Hashing", options.name, {.layout = "[batch, …]", .cast = false}, options.dtype),
        num_bins_(num_bins),
        options_(std::move(options)) {
    binning_.bins = masks() ? num_bins - 1 : num_bins;
    if (options_.salt) binning_.salt = options_.salt->key;
  }

  Tensor of_strings(const Strings& strings, Where where) const {
    const auto* mask = std::get_if<std::string>(&options_.mask_value);
    if (std::holds_alternative<std::int64_t>(options_.mask_value))
      throw UserError(error_text(text(description(), ": strings, with an integer as mask_value"), where,
                                 "give a string as mask_value: {.mask_value = \"\"}"));
    std::vector<std::int64_t> numbers;
    for (const std::string& string : strings.values())
      numbers.push_back(mask && masks() && string == *mask ? 0 : binning_(string) + (masks() ? 1 : 0));
    return finished(in_shape_of(strings, numbers, false, description(), where), where);
  }

 private:
  bool masks() const { return num_bins_ > 1 && !std::holds_alternative<std::monostate>(options_.mask_value); }
  Tensor finished(const Tensor& bins, Where where) const {
    return coded(bins, {"Hashing", options_.output_mode, num_bins_, compute_dtype()}, {}, where);
  }
  Tensor run(const Tensor& given, const Context& context) override {
    if (std::holds_alternative<std::string>(options_.mask_value))
      throw UserError(error_text(text(description(), ": integers, with a string as mask_value"), context.where,
                                 "give an integer as mask_value: {.mask_value = 0}"));
    const Tensor x =
        is_floating(given.dtype()) ? cast(given, DType::i64) : integers(description(), given, context.where);
    auto hash = [binning = binning_](const Tensor& values) {
      std::vector<std::int64_t> bins;
      for (std::int64_t value : values.to_vector<std::int64_t>()) bins.push_back(binning(text(value)));
      return reshape(tensor(bins), values.shape());
    };
    Tensor bins = host_call(hash, ResultSpecs(DType::i64, x.shape(), context.where), x);
    if (masks()) bins = stet::where(x == std::get<std::int64_t>(options_.mask_value), 0, bins + 1);
    return finished(bins, context.where);
  }

  const std::int64_t num_bins_;
  const HashingOptions options_;
  Binning binning_;
};

constexpr std::uint64_t crossing_key = 0xdecafcaffe;  // TensorFlow's

class HashedCrossingBody final : public LibraryLayer {
 public:
  HashedCrossingBody(std::int64_t num_bins, HashedCrossingOptions options)
      : LibraryLayer("HashedCrossing", options.name,
                     {.least = 0, .most = 2, .layout = "[batch], [batch, 1] or []", .inputs = 2, .cast = false},
                     options.dtype),
        num_bins_(num_bins),
        options_(std::move(options)) {}

  Tensor of_features(const std::vector<CrossedFeature>& features, Where where) const {
    if (features.size() < 2)
      throw UserError(error_text(text(description(), ": ", features.size(), " features to cross"), where,
                                 "give two or more: crossing.cross({a, b})"));
    std::vector<std::uint64_t> hashes;
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < features.size(); ++i) {
      const auto [values, shape] = hashed(features[i], where);
      if (i > 0 && shape != sizes)
        throw UserError(error_text(text(description(), ": feature ", i, " is ", Shape(as_dims(shape)),
                                        ", and the first ", Shape(as_dims(sizes))),
                                   where, "features have one shape: [batch], [batch, 1] or []"));
      if (i == 0) hashes.assign(values.size(), crossing_key);
      sizes = shape;
      for (std::size_t k = 0; k < values.size(); ++k) hashes[k] = combined_fingerprint(hashes[k], values[k]);
    }
    if (sizes.size() > 2 || (sizes.size() == 2 && sizes[1] != 1))
      throw UserError(error_text(text(description(), ": features are ", Shape(as_dims(sizes))), where,
                                 "they are [batch], [batch, 1] or []"));
    return finished(reshape(tensor(bins_of(hashes)), as_dims(sizes)), where);
  }

 private:
  static std::vector<Dim> as_dims(const std::vector<std::int64_t>& sizes) { return {sizes.begin(), sizes.end()}; }
  std::vector<std::int64_t> bins_of(const std::vector<std::uint64_t>& hashes) const {
    std::vector<std::int64_t> bins;
    for (std::uint64_t hash : hashes)
      bins.push_back(static_cast<std::int64_t>(hash % static_cast<std::uint64_t>(num_bins_)));
    return bins;
  }
  std::pair<std::vector<std::uint64_t>, std::vector<std::int64_t>> hashed(const CrossedFeature& feature,
                                                                          Where where) const {
    std::vector<std::uint64_t> out;
    if (const auto* x = std::get_if<Tensor>(&feature.value)) {
      for (std::int64_t value : integers(description(), *x, where).to_vector<std::int64_t>())
        out.push_back(static_cast<std::uint64_t>(value));
      return {out, x->shape().sizes()};
    }
    const auto& strings = std::get<Strings>(feature.value);
    const std::vector<std::int64_t> unused(strings.values().size());
    for (const std::string& string : strings.values()) out.push_back(fingerprint(string));
    return {out, in_shape_of(strings, unused, false, description(), where).shape().sizes()};
  }
  Tensor finished(const Tensor& bins, Where where) const {
    return coded(bins, {"HashedCrossing", options_.output_mode, num_bins_, compute_dtype()}, {}, where);
  }
  Tensors run_many(const Tensors& inputs, const Context& context) override {
    Tensors given;
    for (const Tensor& input : inputs) {
      given.push_back(integers(description(), input, context.where));
      bool same = input.rank() == inputs[0].rank();
      for (int axis = 0; same && axis < input.rank(); ++axis)
        same = inside::require(input.dim(axis), Relation::equal, inputs[0].dim(axis),
                               {"HashedCrossing", "features", context.where});
      if (same && input.rank() == 2)
        same = inside::require(input.dim(1), Relation::equal, 1, {"HashedCrossing", "features", context.where});
      if (!same)
        throw UserError(error_text(text(description(), ": features ", described(inputs[0]), " and ", described(input)),
                                   context.where, "they have one shape: [batch], [batch, 1] or []"));
    }
    const Tensor table = stack(given, -1);  // [..., features]
    auto cross = [bins = num_bins_, count = given.size()](const Tensor& values) {
      const std::vector<std::int64_t> all = values.to_vector<std::int64_t>();
      std::vector<std::int64_t> out;
      for (std::size_t at = 0; at < all.size(); at += count) {
        std::uint64_t hash = crossing_key;
        for (std::size_t i = 0; i < count; ++i)
          hash = combined_fingerprint(hash, static_cast<std::uint64_t>(all[at + i]));
        out.push_back(static_cast<std::int64_t>(hash % static_cast<std::uint64_t>(bins)));
      }
      std::vector<std::int64_t> sizes = values.shape().sizes();
      sizes.pop_back();
      return reshape(tensor(out), sizes);
    };
    const Tensor bins = host_call(cross, ResultSpecs(DType::i64, given[0].shape(), context.where), table);
    return {finished(bins, context.where)};
  }

  const std::int64_t num_bins_;
  const HashedCrossingOptions options_;
};

struct HashingRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "Hashing";
  std::int64_t num_bins = 0;
  HashingOptions options = {};
  void fields(Fields& f) {
    f.layer_name(options.name);
    f("output_mode", options.output_mode);
    integer_dtype_field(f, options.dtype, options.output_mode);
    f.required("num_bins", num_bins);
    salt_field(f, options.salt);
    mask_value(f);
    f.only("sparse", false);
  }
  Layer make(Where where) const { return Hashing(num_bins, options, where); }

 private:
  void mask_value(Fields& f) {
    if (!f.reading()) {
      if (const auto* number = std::get_if<std::int64_t>(&options.mask_value)) return f.put("mask_value", *number);
      if (const auto* string = std::get_if<std::string>(&options.mask_value)) return f.put("mask_value", *string);
      return f.put("mask_value", nullptr);
    }
    const Json* member = f.take("mask_value");
    if (!member || member->is_null()) return;
    if (const std::int64_t* number = member->if_integer())
      options.mask_value = *number;
    else if (const std::string* string = member->if_string())
      options.mask_value = *string;
    else
      f.wrong("mask_value", *member, "an integer or a string");
  }
};
struct HashedCrossingRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "HashedCrossing";
  std::int64_t num_bins = 0;
  HashedCrossingOptions options = {};
  void fields(Fields& f) {
    f.name_only(options.name);
    f("output_mode", options.output_mode);
    integer_dtype_field(f, options.dtype, options.output_mode);
    f.required("num_bins", num_bins);
    f.only("sparse", false);
  }
  Layer make(Where where) const { return HashedCrossing(num_bins, options, where); }
};
const Savable<HashingRecipe> savable_hashing;
const Savable<HashedCrossingRecipe> savable_hashed_crossing;

}  // namespace

Hashing::Hashing(std::int64_t num_bins, HashingOptions options, Where where) {
  require_at_least("Hashing", "num_bins", num_bins, 1, where);
  require_output_mode("Hashing", options.output_mode, true, false, where);
  Layer::operator=(Layer(std::make_shared<HashingBody>(num_bins, options)));
  note_recipe(*this, HashingRecipe{num_bins, std::move(options)});
}
Tensor Hashing::operator()(const Strings& strings, Where where) const {
  return static_cast<HashingBody&>(layer_body("hash", where)).of_strings(strings, where);
}

HashedCrossing::HashedCrossing(std::int64_t num_bins, HashedCrossingOptions options, Where where) {
  require_at_least("HashedCrossing", "num_bins", num_bins, 1, where);
  require_name("HashedCrossing", "output_mode", options.output_mode, {"int", "one_hot"}, where);
  Layer::operator=(Layer(std::make_shared<HashedCrossingBody>(num_bins, options)));
  note_recipe(*this, HashedCrossingRecipe{num_bins, std::move(options)});
}
Tensor HashedCrossing::cross(const std::vector<CrossedFeature>& features, Where where) const {
  return static_cast<HashedCrossingBody&>(layer_body("cross", where)).of_features(features, where);
}

}  // namespace stet::keras
