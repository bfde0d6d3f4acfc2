// Layers that make categories of numbers and strings: bins, codes and hashes. What they give in another mode than "int"
// is floating. They work in models, traced functions and Dataset::map; strings are hashed on the host, before.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "stet/data/dataset.h"
#include "stet/keras/layer.h"
#include "stet/keras/policy.h"
#include "stet/keras/strings.h"

namespace stet::keras {

// What "output_mode" says:
//   "int"        the number of each category
//   "one_hot"    a new last axis with 1 at the category and 0 elsewhere; a last axis of size 1 becomes that one
//   "multi_hot"  for all that stands on the last axis, 1 at the categories that are there
//   "count"      how often each is there
//   "tf_idf"     that times the weight of the category (lookups only)

struct DiscretizationOptions {
  std::vector<double> bin_boundaries = {};    // ascending; or
  std::optional<std::int64_t> num_bins = {};  // as many bins of about as many values each, by adapt()
  double epsilon = 0.01;                      // how exact adapt() is: smaller is better, and slower
  std::string output_mode = "int";
  std::string name = {};
  DTypePolicy dtype = {};
};
/// The number of the bin that each value falls into, i32: bin i holds what is at least boundary i - 1 and less than
/// boundary i; NaN is in the last one.
class STET_API Discretization : public Layer {
 public:
  explicit Discretization(DiscretizationOptions options, Where where = Where::here());
  /// Finds boundaries by the quantiles of the data, up to epsilon. What was found before is forgotten.
  void adapt(const Tensor& data, Where where = Where::here()) const;
  void adapt(const data::Dataset<Tensor>& batches, Where where = Where::here()) const;
  std::vector<double> bin_boundaries(Where where = Where::here()) const;
  STET_HANDLE(Discretization, Layer)
};

struct CategoryEncodingOptions {
  std::string output_mode = "multi_hot";  // or "one_hot", "count"
  std::string name = {};
  DTypePolicy dtype = {};
};
/// Integers from 0 to num_tokens - 1 as codes; others are a UserError. With "count", `layer({x, weights})` counts each
/// by its weight.
class STET_API CategoryEncoding : public Layer {
 public:
  explicit CategoryEncoding(std::int64_t num_tokens, CategoryEncodingOptions options = {}, Where where = Where::here());
  STET_HANDLE(CategoryEncoding, Layer)
};

/// The key of a keyed hash: two numbers, or one that is both.
class STET_API Salt {
 public:
  template <std::integral I>
  Salt(I both) : key{static_cast<std::uint64_t>(both), static_cast<std::uint64_t>(both)} {}
  Salt(std::uint64_t first, std::uint64_t second) : key{first, second} {}
  std::array<std::uint64_t, 2> key;
};
struct HashingOptions {
  /// An integer or a string that is category 0, of which nothing else is; none: there is no such category.
  std::variant<std::monostate, std::int64_t, std::string> mask_value = {};
  std::optional<Salt> salt = {};  // SipHash with this key, instead of FarmHash
  std::string output_mode = "int";
  std::string name = {};
  DTypePolicy dtype = {};
};
/// A category from 0 to num_bins - 1 for each integer or string, by a hash of it (of integers, of their decimal
/// digits), the same as TensorFlow's; i64. In traced code the host is called for it.
class STET_API Hashing : public Layer {
 public:
  explicit Hashing(std::int64_t num_bins, HashingOptions options = {}, Where where = Where::here());
  using Layer::operator();
  Tensor operator()(const Strings& strings, Where where = Where::here()) const;
  Tensor operator()(std::initializer_list<const char*> list, Where where = Where::here()) const {
    return (*this)(Strings(list), where);
  }
  Tensor operator()(std::initializer_list<std::initializer_list<const char*>> rows, Where where = Where::here()) const {
    return (*this)(Strings(rows), where);
  }
  STET_HANDLE(Hashing, Layer)
};

struct HashedCrossingOptions {
  std::string output_mode = "int";  // or "one_hot"
  std::string name = {};
  DTypePolicy dtype = {};
};
/// A feature that is crossed with others: integers, or strings.
class STET_API CrossedFeature {
 public:
  CrossedFeature(Tensor integers) : value(std::move(integers)) {}
  CrossedFeature(Strings strings) : value(std::move(strings)) {}
  CrossedFeature(std::vector<std::string> strings) : value(Strings(std::move(strings))) {}
  std::variant<Tensor, Strings> value;
};
/// A category from 0 to num_bins - 1 for each combination of two features or more, [batch], [batch, 1] or [] each, by a
/// hash of all of them; i64. Called on a list, `crossing({a, b})`; where one is strings, cross() on the host.
class STET_API HashedCrossing : public Layer {
 public:
  explicit HashedCrossing(std::int64_t num_bins, HashedCrossingOptions options = {}, Where where = Where::here());
  Tensor cross(const std::vector<CrossedFeature>& features, Where where = Where::here()) const;
  STET_HANDLE(HashedCrossing, Layer)
};

}  // namespace stet::keras
