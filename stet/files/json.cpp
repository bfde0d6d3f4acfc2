#include "stet/files/json.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "stet/base/text.h"
#include "stet/files/utf8.h"

namespace stet::files {

const Json* Json::find(std::string_view name) const {
  if (const Object* object = if_object())
    for (const Member& member : *object)
      if (member.first == name) return &member.second;
  return nullptr;
}

Json& Json::operator[](std::string_view name) {
  if (is_null()) value_ = Object();
  Object* object = if_object();
  if (!object) throw InternalError("a JSON value that is no object has no members");
  for (Member& member : *object)
    if (member.first == name) return member.second;
  return object->emplace_back(std::string(name), Json()).second;
}

void Json::push_back(Json value) {
  if (is_null()) value_ = List();
  List* list = if_list();
  if (!list) throw InternalError("a JSON value that is no list has no items");
  list->push_back(std::move(value));
}

const char* Json::kind() const {
  constexpr const char* kinds[] = {"null",     "true or false", "an integer", "a number",
                                   "a string", "a list",        "an object"};
  return kinds[value_.index()];
}

namespace {

class Parser {
 public:
  Parser(std::string_view text, const Reading& reading, std::uint64_t base, const JsonLimits& limits)
      : text_(text), reading_(reading), base_(base), limits_(limits) {}

  Json whole() {
    Json value = one(0);
    space();
    if (at_ < text_.size()) fail("more text after the end of the JSON value");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const { reading_.fail(reason, base_ + at_); }

  void space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
  }
  bool take(char c) {
    space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Json one(int depth) {
    if (depth > limits_.depth) fail(text("JSON is nested deeper than ", limits_.depth));
    if (++values_ > limits_.values) fail(text("JSON has more than ", limits_.values, " values"));
    space();
    if (at_ == text_.size()) fail("JSON ends where a value is missing");
    switch (text_[at_]) {
      case '{':
        return object(depth);
      case '[':
        return list(depth);
      case '"':
        return string();
      case 't':
        if (take_word("true")) return true;
        break;
      case 'f':
        if (take_word("false")) return false;
        break;
      case 'n':
        if (take_word("null")) return nullptr;
        break;
      case 'N':
        if (take_word("NaN")) return std::numeric_limits<double>::quiet_NaN();
        break;
      case 'I':
        if (take_word("Infinity")) return std::numeric_limits<double>::infinity();
        break;
      case '-':
        if (take_word("-Infinity")) return -std::numeric_limits<double>::infinity();
        return number();
      default:
        if (text_[at_] >= '0' && text_[at_] <= '9') return number();
    }
    fail("not a JSON value");
  }

  Json object(int depth) {
    ++at_;
    Json::Object members;
    std::set<std::string, std::less<>> names;
    if (take('}')) return members;
    do {
      space();
      if (at_ == text_.size() || text_[at_] != '"') fail("the name of a JSON member is missing");
      std::size_t begin = at_;
      std::string name = string();
      if (!names.insert(name).second) {
        at_ = begin;
        fail(text("the JSON member ", quoted_name(name), " comes twice"));
      }
      if (!take(':')) fail("':' is missing in JSON");
      Json value = one(depth + 1);
      members.emplace_back(std::move(name), std::move(value));
    } while (take(','));
    if (!take('}')) fail("',' or '}' is missing in JSON");
    return members;
  }

  Json list(int depth) {
    ++at_;
    Json::List items;
    if (take(']')) return items;
    do {
      items.push_back(one(depth + 1));
    } while (take(','));
    if (!take(']')) fail("',' or ']' is missing in JSON");
    return items;
  }

  Json number() {
    std::size_t end = at_;
    auto digits = [&] {
      std::size_t begin = end;
      while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
      return end > begin;
    };
    bool real = false;
    if (text_[end] == '-') ++end;
    std::size_t first = end;
    if (!digits() || (text_[first] == '0' && end > first + 1)) fail("not a JSON number");
    if (end < text_.size() && text_[end] == '.') {
      real = true;
      ++end;
      if (!digits()) fail("not a JSON number");
    }
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      real = true;
      ++end;
      if (end < text_.size() && (text_[end] == '+' || text_[end] == '-')) ++end;
      if (!digits()) fail("not a JSON number");
    }
    const char* begin = text_.data() + at_;
    const char* stop = text_.data() + end;
    std::int64_t integer;
    if (!real && std::from_chars(begin, stop, integer).ec == std::errc()) {
      at_ = end;
      return integer;
    }
    double value;
    if (std::from_chars(begin, stop, value).ec != std::errc()) fail("a JSON number that no f64 holds");
    at_ = end;
    return value;
  }

  unsigned four_digits() {
    unsigned value = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      char c = at_ < text_.size() ? text_[at_] : '\0';
      unsigned digit;
      if (c >= '0' && c <= '9')
        digit = static_cast<unsigned>(c - '0');
      else if ((c | 32) >= 'a' && (c | 32) <= 'f')
        digit = static_cast<unsigned>((c | 32) - 'a') + 10;
      else
        fail("four hexadecimal digits are missing in a JSON string");
      value = value * 16 + digit;
    }
    return value;
  }

  static void append_utf8(std::string& out, unsigned code) {
    auto byte = [&](unsigned b) { out += static_cast<char>(b); };
    if (code < 0x80) {
      byte(code);
    } else if (code < 0x800) {
      byte(0xC0 | code >> 6);
      byte(0x80 | (code & 63));
    } else if (code < 0x10000) {
      byte(0xE0 | code >> 12);
      byte(0x80 | (code >> 6 & 63));
      byte(0x80 | (code & 63));
    } else {
      byte(0xF0 | code >> 18);
      byte(0x80 | (code >> 12 & 63));
      byte(0x80 | (code >> 6 & 63));
      byte(0x80 | (code & 63));
    }
  }

  /// A character of more than one byte, as it stands.
  void long_character(std::string& out) {
    std::size_t length = character_length(text_.substr(at_));
    if (length == 0) fail("a JSON string is not UTF-8");
    out.append(text_.substr(at_, length));
    at_ += length;
  }

  void escaped(std::string& out) {
    ++at_;
    if (at_ == text_.size()) fail("JSON ends in a string");
    switch (text_[at_++]) {
      case '"':
        out += '"';
        return;
      case '\\':
        out += '\\';
        return;
      case '/':
        out += '/';
        return;
      case 'b':
        out += '\b';
        return;
      case 'f':
        out += '\f';
        return;
      case 'n':
        out += '\n';
        return;
      case 'r':
        out += '\r';
        return;
      case 't':
        out += '\t';
        return;
      case 'u': {
        unsigned code = four_digits();
        if (code >= 0xD800 && code < 0xDC00) {
          if (!take_word("\\u")) fail("half a character in a JSON string");
          unsigned low = four_digits();
          if (low < 0xDC00 || low > 0xDFFF) fail("half a character in a JSON string");
          code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        } else if (code >= 0xDC00 && code < 0xE000) {
          fail("half a character in a JSON string");
        }
        append_utf8(out, code);
        return;
      }
      default:
        --at_;
        fail("an unknown escape in a JSON string");
    }
  }

  std::string string() {
    ++at_;
    std::string out;
    while (true) {
      if (at_ == text_.size()) fail("JSON ends in a string");
      auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') break;
      if (c == '\\') {
        escaped(out);
      } else if (c < 0x20) {
        fail("a control character in a JSON string");
      } else if (c < 0x80) {
        out += text_[at_++];
      } else {
        long_character(out);
      }
    }
    ++at_;
    return out;
  }

  std::string_view text_;
  const Reading& reading_;
  std::uint64_t base_;
  JsonLimits limits_;
  std::size_t at_ = 0, values_ = 0;
};

void write_string(std::string& out, std::string_view value) {
  out += '"';
  for (char c : value) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          constexpr char digits[] = "0123456789abcdef";
          out += "\\u00";
          out += digits[c >> 4];
          out += digits[c & 15];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void write_real(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
    return;
  }
  if (std::isinf(value)) {
    out += value < 0 ? "-Infinity" : "Infinity";
    return;
  }
  std::string digits = text(value);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  out += digits;
}

void line_break(std::string& out, std::optional<int> depth) {
  if (!depth) return;
  out += '\n';
  out.append(static_cast<std::size_t>(*depth) * 2, ' ');
}

void write(std::string& out, const Json& value, std::optional<int> depth) {
  const std::optional<int> inner = depth ? std::optional(*depth + 1) : std::nullopt;
  if (value.is_null()) {
    out += "null";
  } else if (const bool* b = value.if_bool()) {
    out += *b ? "true" : "false";
  } else if (const std::int64_t* i = value.if_integer()) {
    out += std::to_string(*i);
  } else if (const double* r = value.if_real()) {
    write_real(out, *r);
  } else if (const std::string* s = value.if_string()) {
    write_string(out, *s);
  } else if (const Json::List* list = value.if_list()) {
    out += '[';
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (i > 0) out += depth ? "," : ", ";
      line_break(out, inner);
      write(out, (*list)[i], inner);
    }
    if (!list->empty()) line_break(out, depth);
    out += ']';
  } else if (const Json::Object* object = value.if_object()) {
    out += '{';
    bool first = true;
    for (const Json::Member& member : *object) {
      if (!first) out += depth ? "," : ", ";
      first = false;
      line_break(out, inner);
      write_string(out, member.first);
      out += ": ";
      write(out, member.second, inner);
    }
    if (!object->empty()) line_break(out, depth);
    out += '}';
  }
}

}  // namespace

Json parse_json(std::string_view text, const Reading& reading, std::uint64_t base, JsonLimits limits) {
  return Parser(text, reading, base, limits).whole();
}

std::string to_text(const Json& value, bool pretty) {
  std::string out;
  write(out, value, pretty ? std::optional(0) : std::nullopt);
  return out;
}

}  // namespace stet::files
