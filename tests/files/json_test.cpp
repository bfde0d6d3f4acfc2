#include "stet/files/json.h"

#include <cmath>
#include <limits>
#include <random>

#include "stet/base/text.h"
#include "tests/files/files.h"

namespace stet::files {
namespace {

Json parsed(std::string_view text, JsonLimits limits = {}) { return parse_json(text, test_reading(), 0, limits); }
std::string error_in(std::string_view text, JsonLimits limits = {}) {
  return user_error_of([&] { parsed(text, limits); });
}
std::string refused(const std::string& reason, int at) {
  return text("load: 'test.file': ", reason, ", at byte ", at, "\n  fix: the file is damaged: fetch or write it again");
}

TEST(Json, ReadsEveryKind) {
  Json json = parsed(
      R"( {"null": null, "yes": true, "no": false, "i": -12, "r": 0.5, "e": 1e3, "s": "a\"b", "l": [1, "x", []], "o": {}} )");
  EXPECT_TRUE(json.find("null")->is_null());
  EXPECT_TRUE(*json.find("yes")->if_bool());
  EXPECT_FALSE(*json.find("no")->if_bool());
  EXPECT_EQ(*json.find("i")->if_integer(), -12);
  EXPECT_EQ(*json.find("r")->if_real(), 0.5);
  EXPECT_EQ(*json.find("e")->if_real(), 1000.0);
  EXPECT_EQ(*json.find("s")->if_string(), "a\"b");
  EXPECT_EQ(json.find("l")->if_list()->size(), 3u);
  EXPECT_TRUE(json.find("o")->if_object()->empty());
  EXPECT_EQ(json.find("none"), nullptr);
  EXPECT_EQ(json.find("l")->find("x"), nullptr);
  // Members keep their order.
  std::string names;
  for (const Json::Member& member : *json.if_object()) names += member.first + " ";
  EXPECT_EQ(names, "null yes no i r e s l o ");
  const std::pair<const char*, const char*> kinds[] = {
      {"null", "null"},     {"true", "true or false"}, {"1", "an integer"}, {"1.0", "a number"},
      {"\"\"", "a string"}, {"[]", "a list"},          {"{}", "an object"}};
  for (const auto& [text, kind] : kinds) EXPECT_STREQ(parsed(text).kind(), kind);
  EXPECT_EQ(json.find("i")->if_real(), nullptr);
  EXPECT_EQ(json.find("r")->if_integer(), nullptr);
}

TEST(Json, Numbers) {
  EXPECT_EQ(*parsed("9223372036854775807").if_integer(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(*parsed("-9223372036854775808").if_integer(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(*parsed("9223372036854775808").if_real(), 9223372036854775808.0);
  EXPECT_EQ(*parsed("5e-324").if_real(), std::numeric_limits<double>::denorm_min());
  EXPECT_TRUE(std::isnan(*parsed("NaN").if_real()));
  EXPECT_EQ(*parsed("-Infinity").if_real(), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(error_in("1e400"), refused("a JSON number that no f64 holds", 0));
  EXPECT_EQ(error_in("[01]"), refused("not a JSON number", 1));
  EXPECT_EQ(error_in("1."), refused("not a JSON number", 0));
  EXPECT_EQ(error_in("-x"), refused("not a JSON number", 0));
}

TEST(Json, Refuses) {
  EXPECT_EQ(error_in(""), refused("JSON ends where a value is missing", 0));
  EXPECT_EQ(error_in("[1, "), refused("JSON ends where a value is missing", 4));
  EXPECT_EQ(error_in("nope"), refused("not a JSON value", 0));
  EXPECT_EQ(error_in("[1 2]"), refused("',' or ']' is missing in JSON", 3));
  EXPECT_EQ(error_in("{\"a\":1 2}"), refused("',' or '}' is missing in JSON", 7));
  EXPECT_EQ(error_in("{\"a\" 1}"), refused("':' is missing in JSON", 5));
  EXPECT_EQ(error_in("{a: 1}"), refused("the name of a JSON member is missing", 1));
  EXPECT_EQ(error_in("1 x"), refused("more text after the end of the JSON value", 2));
  EXPECT_EQ(error_in("{\"a\":1,\"a\":2}"), refused("the JSON member 'a' comes twice", 7));
  // The same name in other letters.
  EXPECT_EQ(error_in("{\"a\":1,\"\\u0061\":2}"), refused("the JSON member 'a' comes twice", 7));
  EXPECT_EQ(error_in("{\"\\u001b\":1,\"\\u001b\":2}"), refused("the JSON member '\\x1b' comes twice", 12));
  EXPECT_EQ(error_in("\"a"), refused("JSON ends in a string", 2));
  EXPECT_EQ(error_in("\"\\"), refused("JSON ends in a string", 2));
  EXPECT_EQ(error_in("\"\n\""), refused("a control character in a JSON string", 1));
  EXPECT_EQ(error_in("\"\\q\""), refused("an unknown escape in a JSON string", 2));
  EXPECT_EQ(error_in("\"\\u12x4\""), refused("four hexadecimal digits are missing in a JSON string", 5));
  for (const char* half : {"\"\\ud800\"", "\"\\ud800x\"", "\"\\ud800\\u0041\"", "\"\\ud800\\ue000\"", "\"\\udc00\""})
    EXPECT_CONTAINS(error_in(half), "half a character in a JSON string");
  for (const char* bad : {"\"\xff\"", "\"\xc3\"", "\"\xed\xa0\x80\"", "\"\xc0\x80\""})
    EXPECT_EQ(error_in(bad), refused("a JSON string is not UTF-8", 1));
  EXPECT_EQ(user_error_of([&] { parse_json("[1,", test_reading(), 1000); }),
            refused("JSON ends where a value is missing", 1003));
}

TEST(Json, Limits) {
  auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') + std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_EQ(error_in(nested(65)), "no error");
  EXPECT_EQ(error_in(nested(66)), refused("JSON is nested deeper than 64", 65));
  EXPECT_EQ(error_in(std::string(1'000'000, '[')), refused("JSON is nested deeper than 64", 65));
  EXPECT_EQ(error_in("[1,2]", {.values = 3}), "no error");
  EXPECT_EQ(error_in("[1,2,3]", {.values = 3}), refused("JSON has more than 3 values", 5));
  EXPECT_EQ(error_in("[[1]]", {.depth = 1}), refused("JSON is nested deeper than 1", 2));
}

TEST(Json, Writes) {
  Json json;
  json["name"] = "größe \"\\\n\t\r\b\x01\x7f";
  json["list"].push_back(1);
  json["list"].push_back(2.0);
  json["list"].push_back(Json());
  json["empty"] = Json::List();
  json["object"]["inner"] = true;
  json["none"] = Json::Object();
  json["name 2"] = -0.0;
  EXPECT_EQ(
      to_text(json),
      "{\"name\": \"größe \\\"\\\\\\n\\t\\r\\u0008\\u0001\x7f\", \"list\": [1, 2.0, null], \"empty\": [], \"object\": "
      "{\"inner\": true}, \"none\": {}, \"name 2\": -0.0}");
  EXPECT_EQ(to_text(parsed("{\"a\":[1,{\"b\":[]}],\"c\":{}}"), true),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ],\n  \"c\": {}\n}");
  EXPECT_EQ(to_text(Json(std::numeric_limits<double>::quiet_NaN())), "NaN");
  EXPECT_EQ(to_text(Json(-std::numeric_limits<double>::infinity())), "-Infinity");
  EXPECT_EQ(to_text(Json(1e300)).find_first_of(".e") != std::string::npos, true);
  EXPECT_EQ(internal_error_of([] { Json(1)["a"]; }), "a JSON value that is no object has no members");
  EXPECT_EQ(internal_error_of([] { Json(1).push_back(2); }), "a JSON value that is no list has no items");
}

/// What Python's json makes of texts (make_json.py): the same value, or an error too.
TEST(Json, AsPython) {
  std::ifstream file(stored("json_cases.txt"));
  std::string given, expected;
  int cases = 0, refusals = 0;
  while (std::getline(file, given) && std::getline(file, expected)) {
    ++cases;
    if (expected == "refused") {
      ++refusals;
      EXPECT_NE(error_in(given), "no error") << given;
      continue;
    }
    ASSERT_EQ(error_in(given), "no error") << given;
    EXPECT_EQ(to_text(parsed(given)), to_text(parsed(expected))) << given;
    // Numbers may be written in another way; what has none is the same text.
    if (expected.find_first_of("0123456789") == std::string::npos) {
      EXPECT_EQ(to_text(parsed(given)), expected);
    }
  }
  EXPECT_EQ(cases, 297);
  EXPECT_EQ(refusals, 40);
}

class RandomJson {
 public:
  explicit RandomJson(unsigned seed) : random_(seed) {}
  Json value(int depth = 0) {
    switch (below(depth < 5 ? 8 : 6)) {
      case 0:
        return nullptr;
      case 1:
        return below(2) == 0;
      case 2:
        return static_cast<std::int64_t>(random_());
      case 3: {
        double value = std::bit_cast<double>(random_());
        return std::isnan(value) ? Json(0.5) : Json(value);
      }
      case 4:
      case 5:
        return string();
      case 6: {
        Json::List list;
        for (std::size_t i = below(6); i > 0; --i) list.push_back(value(depth + 1));
        return list;
      }
      default: {
        Json object{Json::Object()};
        for (std::size_t i = below(6); i > 0; --i) object[string() + text(i)] = value(depth + 1);
        return object;
      }
    }
  }

 private:
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  std::string string() {
    static const char* const parts[] = {"a", "\"", "\\", "/",    "\n",     "\x01", "\x1f",
                                        "ö", "€",  "😀",  "\x7f", "\u2028", " "};
    std::string text;
    for (std::size_t i = below(9); i > 0; --i) text += parts[below(std::size(parts))];
    return text;
  }
  std::mt19937_64 random_;
};

TEST(Json, RandomValuesComeBack) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    Json value = RandomJson(seed).value();
    ASSERT_EQ(parsed(to_text(value)), value) << seed;
    ASSERT_EQ(parsed(to_text(value, true)), value) << seed;
  }
}

}  // namespace
}  // namespace stet::files
