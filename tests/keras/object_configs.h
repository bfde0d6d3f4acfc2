// Configs that Keras wrote, tests/oracle/keras/*.json, and how ours are compared with them.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "stet/files/json.h"
#include "stet/keras/config.h"

namespace stet::keras {

inline Json stored_json(const std::string& file) {
  std::filesystem::path path = std::filesystem::path(__FILE__).parent_path() / "../oracle/keras" / file;
  if (!std::filesystem::exists(path)) path = "tests/oracle/keras/" + file;
  std::ifstream in(path);
  if (!in) throw std::runtime_error("there is no " + path.string());
  std::stringstream text;
  text << in.rdbuf();
  return files::parse_json(text.str(), files::Reading{"test", file, {}});
}

/// Numbers are equal if they are the same f32: Keras keeps some of them as such. Members of objects may stand in
/// another order.
inline bool same_json(const Json& a, const Json& b) {
  auto number = [](const Json& json) -> std::optional<double> {
    if (json.if_integer()) return static_cast<double>(*json.if_integer());
    if (json.if_real()) return *json.if_real();
    return std::nullopt;
  };
  if (number(a) && number(b)) return static_cast<float>(*number(a)) == static_cast<float>(*number(b));
  if (const Json::List* x = a.if_list(), *y = b.if_list(); x && y) {
    bool same = x->size() == y->size();
    for (std::size_t i = 0; same && i < x->size(); ++i) same = same_json((*x)[i], (*y)[i]);
    return same;
  }
  if (const Json::Object* x = a.if_object(), *y = b.if_object(); x && y) {
    bool same = x->size() == y->size();
    for (const auto& [name, value] : *x) {
      const Json* other = b.find(name);
      same = same && other && same_json(value, *other);
    }
    return same;
  }
  return a == b;
}
inline ::testing::AssertionResult same_config(const Json& written, const Json& expected) {
  if (same_json(written, expected)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "written  " << files::to_text(written) << "\nexpected "
                                       << files::to_text(expected);
}

/// Where errors say that something stands.
inline files::Reading a_file() { return {"load_model", "m.keras", {}}; }

template <class Object>
Json config_of(const Object& object) {
  Fields::Place place{.call = "save", .where = {}};
  if constexpr (std::is_base_of_v<Recorded, Object>)
    return to_config(object.recipe(), "it", place);
  else
    return to_config(dynamic_cast<const Recorded&>(*object.body()).recipe(), "it", place);
}
template <class Object>
Object object_of(const Json& entry, const char* kind) {
  const files::Reading file = a_file();
  Fields::Place place{.reading = &file, .call = {}, .where = {}};
  Object object = from_config<Object>(entry, kind, place);
  EXPECT_TRUE(place.path.empty());
  return object;
}

}  // namespace stet::keras
