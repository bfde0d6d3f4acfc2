// Members of JSON that a file gave, and that may lack or be of another kind: what is not there is nothing. Private to
// report/.
#pragma once
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stet/files/json.h"

namespace stet::reporting {

inline const std::string& string_in(const files::Json& object, std::string_view name) {
  static const std::string none;
  const files::Json* member = object.find(name);
  const std::string* value = member ? member->if_string() : nullptr;
  return value ? *value : none;
}

/// None for NaN and infinities too: nobody can add them up.
inline std::optional<double> known_number_in(const files::Json& object, std::string_view name) {
  const files::Json* member = object.find(name);
  if (!member) return std::nullopt;
  if (const std::int64_t* integer = member->if_integer()) return static_cast<double>(*integer);
  const double* real = member->if_real();
  return real && std::isfinite(*real) ? std::optional(*real) : std::nullopt;
}
inline double number_in(const files::Json& object, std::string_view name) {
  return known_number_in(object, name).value_or(0);
}

inline std::optional<std::int64_t> known_integer_in(const files::Json& object, std::string_view name) {
  const files::Json* member = object.find(name);
  const std::int64_t* integer = member ? member->if_integer() : nullptr;
  return integer ? std::optional(*integer) : std::nullopt;
}
inline std::int64_t integer_in(const files::Json& object, std::string_view name) {
  return known_integer_in(object, name).value_or(0);
}
/// Of a line, a count: 0 for what no int holds.
inline int small_integer_in(const files::Json& object, std::string_view name) {
  const std::int64_t value = integer_in(object, name);
  return value >= 0 && value <= INT32_MAX ? static_cast<int>(value) : 0;
}

inline bool bool_in(const files::Json& object, std::string_view name) {
  const files::Json* member = object.find(name);
  const bool* value = member ? member->if_bool() : nullptr;
  return value && *value;
}

inline const files::Json::List& list_in(const files::Json& object, std::string_view name) {
  static const files::Json::List none;
  const files::Json* member = object.find(name);
  const files::Json::List* value = member ? member->if_list() : nullptr;
  return value ? *value : none;
}

}  // namespace stet::reporting
