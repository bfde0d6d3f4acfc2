#include "stet/keras/path_format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"

namespace stet::keras {
namespace {

constexpr int widest = 200;  // of a name that a file system takes

/// As Python's repr(): the shortest digits that read back, with an exponent below 1e-4 and from 1e16 on.
std::string shortest(double value) {
  char room[64];
  auto form = [&](std::chars_format format) {
    return std::string(room, std::to_chars(room, room + sizeof room, value, format).ptr);
  };
  const std::string scientific = form(std::chars_format::scientific);
  const int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
  if (exponent < -4 || exponent >= 16) return scientific;
  const std::string fixed = form(std::chars_format::fixed);
  return fixed.find('.') == std::string::npos ? fixed + ".0" : fixed;
}

/// Without its sign, as printf writes it.
std::string digits_of(double value, char type, int precision, bool alternate) {
  const std::string form = text("%", alternate ? "#" : "", ".*", type);
  char room[512];
  const int length = std::snprintf(room, sizeof room, form.c_str(), precision, value);
  return std::string(room, static_cast<std::size_t>(std::min<int>(length, sizeof room - 1)));
}

/// What Python writes without a type: as %g, but with a digit behind the point, or an exponent where that would be one
/// too many.
std::string with_a_point(double value, int precision, bool alternate) {
  precision = std::max(precision, 1);
  const std::string plain = digits_of(value, 'g', precision, alternate);
  if (plain.find_first_of(".e") != std::string::npos) return plain;
  if (static_cast<int>(plain.size()) < precision) return plain + ".0";
  std::string scientific = digits_of(value, 'e', precision - 1, false);
  const std::size_t mark = scientific.find('e');
  std::size_t digits = mark;
  while (precision > 1 && scientific[digits - 1] == '0') --digits;
  if (scientific[digits - 1] == '.') --digits;
  return scientific.substr(0, digits) + scientific.substr(mark);
}

}  // namespace

void PathFormat::refuse(const std::string& what, const std::string& advice) const {
  throw UserError(error_text(text(callback_, ": '", format_, "': ", what), where_, advice));
}

PathFormat::PathFormat(std::string format, const char* callback, Where where)
    : format_(std::move(format)), callback_(callback), where_(where) {
  std::string before;
  for (std::size_t at = 0; at < format_.size(); ++at) {
    const char c = format_[at];
    const bool doubled = at + 1 < format_.size() && format_[at + 1] == c;
    if (c != '{' && c != '}') {
      before += c;
    } else if (doubled) {
      before += c;
      ++at;
    } else if (c == '}') {
      refuse(text("a } at position ", at, " closes nothing"), "write }} for a brace in a name");
    } else {
      const std::size_t end = format_.find('}', at);
      if (end == std::string::npos)
        refuse(text("the { at position ", at, " is not closed"), "write {{ for a brace in a name");
      Field field = parsed(format_.substr(at + 1, end - at - 1));
      field.text = std::exchange(before, {});
      fields_.push_back(std::move(field));
      at = end;
    }
  }
  if (!before.empty()) {
    fields_.emplace_back();
    fields_.back().text = std::move(before);
  }
}

PathFormat::Field PathFormat::parsed(const std::string& inside) const {
  const std::string advice = "write {epoch:02d} or {val_loss:.2f}";
  Field field;
  const std::size_t colon = inside.find(':');
  field.name = inside.substr(0, colon);
  if (field.name.empty() || field.name.find_first_of("{![.") != std::string::npos)
    refuse(text("{", inside, "} names no value"), advice);
  if (colon == std::string::npos) return field;
  std::string_view spec = std::string_view(inside).substr(colon + 1);
  auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  auto take = [&] {
    const char first = spec.empty() ? '\0' : spec[0];
    if (!spec.empty()) spec.remove_prefix(1);
    return first;
  };
  auto number = [&](int otherwise) {
    int value = otherwise;
    auto [end, error] = std::from_chars(spec.data(), spec.data() + spec.size(), value);
    if (error == std::errc::invalid_argument) return otherwise;
    if (error != std::errc() || value > widest || value < 0)
      refuse(text("{", inside, "} is wider than ", widest), advice);
    spec.remove_prefix(static_cast<std::size_t>(end - spec.data()));
    return value;
  };
  if (spec.size() > 1 && is_align(spec[1])) field.fill = take();
  if (!spec.empty() && is_align(spec[0])) field.align = take();
  if (!spec.empty() && (spec[0] == '+' || spec[0] == '-' || spec[0] == ' ')) field.sign = take();
  if (!spec.empty() && spec[0] == '#') field.alternate = take() != 0;
  if (!spec.empty() && spec[0] == '0') {
    take();
    if (field.align == 0) {
      field.align = '=';
      field.fill = '0';
    }
  }
  field.width = number(0);
  if (!spec.empty() && spec[0] == '.') {
    take();
    field.precision = number(-1);
    if (field.precision < 0) refuse(text("{", inside, "} has a point without digits"), advice);
  }
  if (!spec.empty()) field.type = take();
  if (!spec.empty() || (field.type != 0 && std::string_view("deEfFgG%").find(field.type) == std::string_view::npos))
    refuse(text("{", inside, "} is no format of a number"), advice);
  if (field.type == 'd' && field.precision >= 0)
    refuse(text("{", inside, "} has digits behind the point of an integer"), advice);
  return field;
}

std::string PathFormat::written(const Field& field, const std::variant<std::int64_t, double>& value) const {
  const std::int64_t* integer = std::get_if<std::int64_t>(&value);
  std::string body;
  bool negative = false;
  if (field.type == 'd' || (integer && field.type == 0)) {
    if (!integer)
      refuse(text("'", field.name, "' is ", std::get<double>(value), ", which is no integer"),
             text("write {", field.name, ":.2f}"));
    negative = *integer < 0;
    body = text(negative ? 0 - static_cast<std::uint64_t>(*integer) : static_cast<std::uint64_t>(*integer));
  } else {
    double number = integer ? static_cast<double>(*integer) : std::get<double>(value);
    negative = std::signbit(number) && !std::isnan(number);
    number = std::abs(number);
    const bool upper = field.type == 'E' || field.type == 'F' || field.type == 'G';
    if (!std::isfinite(number)) {
      body = std::isnan(number) ? (upper ? "NAN" : "nan") : (upper ? "INF" : "inf");
      if (field.type == '%') body += '%';
    } else if (field.type == 0 && field.precision < 0) {
      body = shortest(number);
    } else if (field.type == '%') {
      body = digits_of(number * 100, 'f', field.precision < 0 ? 6 : field.precision, field.alternate) + "%";
    } else {
      const int precision = field.precision < 0 ? 6 : field.precision;
      body = field.type == 0 ? with_a_point(number, precision, field.alternate)
                             : digits_of(number, field.type, precision, field.alternate);
    }
  }
  const std::string sign = negative ? "-" : field.sign == '-' ? "" : std::string(1, field.sign);
  const auto width = static_cast<std::size_t>(field.width);
  const std::size_t length = sign.size() + body.size();
  const std::size_t missing = width > length ? width - length : 0;
  switch (field.align) {
    case '=':
      return sign + std::string(missing, field.fill) + body;
    case '<':
      return sign + body + std::string(missing, field.fill);
    case '^':
      return std::string(missing / 2, field.fill) + sign + body + std::string(missing - missing / 2, field.fill);
    default:
      return std::string(missing, field.fill) + sign + body;
  }
}

std::string PathFormat::operator()(const FormatValues& values) const {
  std::string out;
  for (const Field& field : fields_) {
    out += field.text;
    if (field.name.empty()) continue;
    auto found = values.find(field.name);
    if (found == values.end()) {
      std::vector<std::string> known;
      for (const auto& [name, value] : values) known.push_back(name);
      refuse(text("there is no '", field.name, "'"), text("there is ", joined(known, ", ")));
    }
    out += written(field, found->second);
  }
  return out;
}

}  // namespace stet::keras
