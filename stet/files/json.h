// JSON: what configurations and heads of files are written in. Not a public header.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "stet/files/file.h"

namespace stet::files {

/// A value of JSON. Members of an object keep their order. Integers that fit i64 stay integers.
class Json {
 public:
  using List = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  Json(int value) : value_(std::int64_t{value}) {}
  Json(std::int64_t value) : value_(value) {}
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(List value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  const bool* if_bool() const { return std::get_if<bool>(&value_); }
  const std::int64_t* if_integer() const { return std::get_if<std::int64_t>(&value_); }
  const double* if_real() const { return std::get_if<double>(&value_); }
  const std::string* if_string() const { return std::get_if<std::string>(&value_); }
  const List* if_list() const { return std::get_if<List>(&value_); }
  const Object* if_object() const { return std::get_if<Object>(&value_); }
  List* if_list() { return std::get_if<List>(&value_); }
  Object* if_object() { return std::get_if<Object>(&value_); }

  /// The member of an object; null if this is no object, or has none of that name.
  const Json* find(std::string_view name) const;
  /// Makes a null an object, and gives its member, made where there is none.
  Json& operator[](std::string_view name);
  void push_back(Json value);  // makes a null a list

  /// "a string", "an object", …, for errors.
  const char* kind() const;
  bool operator==(const Json&) const = default;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Object> value_;
};

struct JsonLimits {
  int depth = 64;
  std::size_t values = 10'000'000;  // of all kinds together
};
/// UserError with the byte for whatever is not JSON: also what stands behind the value, names that come twice in an
/// object, numbers that no f64 holds, strings that are not UTF-8. NaN, Infinity and -Infinity are numbers, as Python
/// writes them. `base` is where the text begins in the file.
Json parse_json(std::string_view text, const Reading& reading, std::uint64_t base = 0, JsonLimits limits = {});

/// Reads back as the same value; on one line, or with two spaces for every depth. Floating numbers have a point or an
/// exponent.
std::string to_text(const Json& value, bool pretty = false);

}  // namespace stet::files
