// tf.train.Example: what the records of most TFRecord files hold, features by name.
//
//   data::Example example;
//   example.set("image", png).set("label", 3);
//   writer.write(example.serialize());
//   …
//   auto features = data::parse_example(record, {{"label", {.dtype = i64}}, {"image", {.dtype = u8}}});
//   Tensor image = data::decode_png(features.at("image"));
#pragma once
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/tensor.h"
#include "stet/data/bytes_view.h"

namespace stet::data {

/// Features by name, each a list of byte strings, of f32 or of i64.
class STET_API Example {
 public:
  using Strings = std::vector<std::string>;
  using Floats = std::vector<float>;
  using Integers = std::vector<std::int64_t>;
  /// A feature that holds no kind of list is a monostate; TensorFlow writes such for empty ones.
  using Feature = std::variant<std::monostate, Strings, Floats, Integers>;

  /// Reads the bytes of a record. UserError with the byte if they are no Example.
  static Example parse(const BytesView& record, Where where = Where::here());
  /// The same example always gives the same bytes: names are sorted.
  std::string serialize(Where where = Where::here()) const;

  Example& set(const std::string& name, Feature feature) {
    features[name] = std::move(feature);
    return *this;
  }
  Example& set(const std::string& name, std::string bytes) { return set(name, Feature(Strings{std::move(bytes)})); }
  Example& set(const std::string& name, const char* characters) { return set(name, std::string(characters)); }
  /// UserError if it is no i64.
  template <std::integral I>
  Example& set(const std::string& name, I number, Where where = Where::here()) {
    if (!std::in_range<std::int64_t>(+number)) refuse(name, static_cast<std::uint64_t>(number), where);
    return set(name, Feature(Integers{static_cast<std::int64_t>(number)}));
  }
  template <std::floating_point F>
  Example& set(const std::string& name, F number) {
    return set(name, Feature(Floats{static_cast<float>(number)}));
  }
  /// All elements, row-major: floating types as f32, integers and bool as i64, and u8[n] as one string of bytes.
  Example& set(const std::string& name, const Tensor& tensor, Where where = Where::here());

  /// UserError if there is no feature of that name, or it holds another kind of list; one without a kind is empty.
  Strings strings(const std::string& name, Where where = Where::here()) const;
  Floats floats(const std::string& name, Where where = Where::here()) const;
  Integers integers(const std::string& name, Where where = Where::here()) const;

  std::map<std::string, Feature> features = {};

 private:
  [[noreturn]] static void refuse(const std::string& name, std::uint64_t number, Where where);
};

/// What is expected of a feature: TensorFlow's FixedLenFeature, or with `variable` its VarLenFeature.
struct FeatureSpec {
  DType dtype = DType::f32;              // f32, i64, or u8: a string of bytes
  std::vector<std::int64_t> shape = {};  // so many elements must be there; u8 has none: it is as long as the string
  bool variable = false;                 // as many as there are: [n]; none where there is no such feature
  /// Takes the place of a feature that is not there, in the shape (or a number for all); without, that is a UserError.
  Tensor default_value = {};
};
using FeatureSpecs = std::map<std::string, FeatureSpec>;

/// The features of a record as tensors, by name. Host code: for map_host and other places that are not traced.
STET_API std::map<std::string, Tensor> parse_example(const BytesView& record, const FeatureSpecs& specs,
                                                     Where where = Where::here());

}  // namespace stet::data
