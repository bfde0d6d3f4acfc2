// Tensors as text, as NumPy writes arrays.
#include <algorithm>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/core/tensor.h"
#include "stet/core/tensor_node.h"

namespace stet {
namespace {

/// A finite number as decimal digits: 0.d1d2d3… times ten to the power of `point`.
struct Digits {
  bool negative = false;
  std::string digits;
  int point = 0;
};

/// The fewest digits that read back as the same element.
Digits shortest_digits(double v, DType dtype) {
  char written[64];
  if (dtype == DType::f32 || dtype == DType::f64) {
    std::to_chars_result end =
        dtype == DType::f32
            ? std::to_chars(written, written + sizeof written, static_cast<float>(v), std::chars_format::scientific)
            : std::to_chars(written, written + sizeof written, v, std::chars_format::scientific);
    *end.ptr = 0;
  } else {
    auto bits = [&](double value) {
      std::uint64_t out = 0;
      convert_element(DType::f64, &value, dtype, &out);
      return out;
    };
    for (int precision = 0; precision < 9; ++precision) {
      std::snprintf(written, sizeof written, "%.*e", precision, v);
      if (bits(std::strtod(written, nullptr)) == bits(v)) break;
    }
  }
  Digits out;
  out.negative = std::signbit(v);
  const char* exponent = std::strchr(written, 'e');
  for (const char* c = written; c != exponent; ++c)
    if (*c >= '0' && *c <= '9') out.digits += *c;
  while (out.digits.size() > 1 && out.digits.back() == '0') out.digits.pop_back();
  out.point = v == 0 ? 1 : std::atoi(exponent + 1) + 1;
  return out;
}

/// A number by a format of printf that takes the digits after the point before it.
std::string formatted(const char* format, int digits, double v) {
  std::string out(static_cast<std::size_t>(std::snprintf(nullptr, 0, format, digits, v)), ' ');
  std::snprintf(out.data(), out.size() + 1, format, digits, v);
  return out;
}

/// "-12.5", "3.": all digits, or rounded to `most` after the point, without zeros at the end.
std::string positional(double v, DType dtype, int most) {
  Digits d = shortest_digits(v, dtype);
  int fraction = static_cast<int>(d.digits.size()) - d.point;
  std::string out;
  // Numbers of an array are exact before the point; one alone has zeros behind its shortest digits.
  if (fraction > most || (fraction < 0 && most != INT_MAX)) {
    out = formatted("%#.*f", fraction > most ? most : 0, v);
    if (fraction < 0) return out;
    out.erase(out.find_last_not_of('0') + 1);
    return out;
  }
  if (d.negative) out += '-';
  auto point = static_cast<std::size_t>(std::max(d.point, 0));
  out += point == 0 ? "0" : (d.digits + std::string(point, '0')).substr(0, point);
  out += '.';
  if (d.point < 0) out += std::string(static_cast<std::size_t>(-d.point), '0');
  if (d.digits != "0" && d.digits.size() > point) out += d.digits.substr(point);
  return out;
}

/// "1.25e+10": all digits of the fraction, or rounded to `most`; exact digits up to `least`.
std::string scientific(double v, DType dtype, int most, int least, std::size_t exponent_digits) {
  Digits d = shortest_digits(v, dtype);
  std::string whole(1, d.digits[0]), fraction = d.digits.substr(1);
  int exponent = d.point - 1;
  if (static_cast<int>(fraction.size()) > most || static_cast<int>(fraction.size()) < least) {
    std::string rounded = formatted("%#.*e", static_cast<int>(fraction.size()) > most ? most : least, std::fabs(v));
    std::size_t at = rounded.find('e');
    whole = rounded[0];
    fraction = rounded.substr(2, at - 2);
    fraction.erase(fraction.find_last_not_of('0') + 1);
    exponent = std::atoi(rounded.c_str() + at + 1);
  }
  fraction.resize(std::max(fraction.size(), static_cast<std::size_t>(least)), '0');
  std::string power = std::to_string(std::abs(exponent));
  if (power.size() < exponent_digits) power.insert(0, exponent_digits - power.size(), '0');
  return text(d.negative ? "-" : "", whole, ".", fraction, "e", exponent < 0 ? "-" : "+", power);
}

/// How the floating numbers of an array are written: all with as many digits as the one that needs most, points below
/// each other, exponents where magnitudes differ too much. NumPy's FloatingFormat.
class FloatingFormat {
 public:
  FloatingFormat(const std::vector<double>& values, DType dtype, const PrintOptions& options) : dtype_(dtype) {
    const int most_digits = options.precision;
    double largest = 0, smallest = INFINITY;
    for (double v : values)
      if (std::isfinite(v) && v != 0) {
        largest = std::max(largest, std::fabs(v));
        smallest = std::min(smallest, std::fabs(v));
      }
    const bool spread = largest > 0 && (smallest < 1e-4 || largest / smallest > 1000);
    scientific_ = largest >= 1e8 || (spread && !options.suppress);
    for (double v : values) {
      if (!std::isfinite(v)) continue;
      std::string one = scientific_ ? scientific(v, dtype, most_digits, 0, 2) : positional(v, dtype, most_digits);
      std::size_t point = one.find('.'), end = std::min(one.find('e'), one.size());
      left_ = std::max(left_, point);
      right_ = std::max(right_, end - point - 1);
      if (scientific_) exponent_ = std::max(exponent_, one.size() - end - 2);
    }
    digits_ = static_cast<int>(right_);
    if (scientific_) right_ += exponent_ + 2;
    for (double v : values)
      if (!std::isfinite(v)) {
        std::size_t needed = std::isnan(v) || v > 0 ? 3 : 4;
        if (left_ + right_ + 1 < needed) left_ = needed - right_ - 1;
      }
  }

  std::string operator()(double v) const {
    if (!std::isfinite(v)) {
      std::string name = std::isnan(v) ? "nan" : v < 0 ? "-inf" : "inf";
      return std::string(left_ + right_ + 1 - name.size(), ' ') + name;
    }
    std::string out = scientific_ ? scientific(v, dtype_, digits_, digits_, exponent_) : positional(v, dtype_, digits_);
    std::size_t point = out.find('.');
    std::size_t behind = right_ - (out.size() - point - 1);
    return std::string(left_ - point, ' ') + out + std::string(behind, ' ');
  }

 private:
  DType dtype_;
  bool scientific_ = false;
  int digits_ = 0;
  std::size_t left_ = 0, right_ = 0;  // characters on either side of the point
  std::size_t exponent_ = 0;          // digits of it
};

class Printer {
 public:
  Printer(const TensorNode& node, const PrintOptions& options)
      : node_(node), options_(options), shortened_(node.element_count() > options.threshold) {}

  std::string str() {
    if (node_.rank == 0) return alone();
    if (node_.element_count() == 0) return "[]";
    collect(0, 0);
    if (is_floating(node_.dtype)) {
      std::vector<double> values;
      for (std::int64_t offset : shown_) values.push_back(value(offset));
      floating_.emplace(values, node_.dtype, options_);
    } else {
      for (std::int64_t offset : shown_) width_ = std::max(width_, integer(offset).size());
    }
    std::string out;
    write(0, 0, out);
    return out;
  }

 private:
  template <class F>
  void for_each(int axis, F f) const {
    const std::int64_t size = node_.sizes[axis], edge = options_.edge_items;
    // Not 2 * edge: an edge may be as long as it likes.
    const bool cut = shortened_ && (size - 1) / 2 >= edge;
    for (std::int64_t i = 0; i < size; ++i) {
      if (cut && i == edge) i = size - edge;
      f(i, cut && i == size - edge);
    }
  }

  double value(std::int64_t offset) const {
    double out = 0;
    convert_element(node_.dtype, node_.data + offset * size_of(node_.dtype), DType::f64, &out);
    return out;
  }
  std::string integer(std::int64_t offset) const {
    std::int64_t out = 0;
    convert_element(node_.dtype, node_.data + offset * size_of(node_.dtype), DType::i64, &out);
    if (node_.dtype == DType::bool_) return out ? node_.rank > 0 ? " True" : "True" : "False";
    return std::to_string(out);
  }

  /// One number is written with all its digits.
  std::string alone() const {
    if (!is_floating(node_.dtype)) return integer(0);
    double v = value(0), size = std::fabs(v);
    if (std::isnan(v)) return "nan";
    if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
    if (v == 0 || (size >= 1e-4 && size < 1e16)) {
      std::string out = positional(v, node_.dtype, INT_MAX);
      return out.back() == '.' ? out + "0" : out;
    }
    std::string out = scientific(v, node_.dtype, INT_MAX, 0, 2);
    if (std::size_t point = out.find(".e"); point != std::string::npos) out.erase(point, 1);
    return out;
  }

  void collect(int axis, std::int64_t offset) {
    if (axis == node_.rank) {
      shown_.push_back(offset);
      return;
    }
    for_each(axis, [&](std::int64_t i, bool) { collect(axis + 1, offset + i * node_.strides[axis]); });
  }

  std::string element(std::int64_t offset) const {
    if (floating_) return (*floating_)(value(offset));
    std::string one = integer(offset);
    return std::string(width_ - one.size(), ' ') + one;
  }

  void write_row(std::int64_t offset, std::string& out) const {
    int axis = node_.rank - 1;
    std::string indent(static_cast<std::size_t>(node_.rank), ' '), line = indent, rows;
    const auto room = static_cast<std::size_t>(std::max(options_.line_width - axis - 1, 0));
    auto append = [&](const std::string& word) {
      if (line.size() + word.size() > room && line.size() > indent.size()) {
        rows += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
        line = indent;
      }
      line += word + " ";
    };
    for_each(axis, [&](std::int64_t i, bool skipped) {
      if (skipped) append("...");
      append(element(offset + i * node_.strides[axis]));
    });
    line.pop_back();  // the separator behind the last
    out += "[" + (rows + line).substr(indent.size()) + "]";
  }

  void write(int axis, std::int64_t offset, std::string& out) const {
    if (axis + 1 == node_.rank) return write_row(offset, out);
    std::string separator = std::string(static_cast<std::size_t>(node_.rank - axis - 1), '\n') +
                            std::string(static_cast<std::size_t>(axis) + 1, ' ');
    bool first = true;
    out += '[';
    for_each(axis, [&](std::int64_t i, bool skipped) {
      if (!first) out += separator;
      if (skipped) out += "..." + separator;
      first = false;
      write(axis + 1, offset + i * node_.strides[axis], out);
    });
    out += ']';
  }

  const TensorNode& node_;
  const PrintOptions& options_;
  bool shortened_;
  std::optional<FloatingFormat> floating_;
  std::size_t width_ = 0;
  std::vector<std::int64_t> shown_;
};

const PrintOptions& checked(const PrintOptions& options, const char* what, Where where) {
  auto require = [&](bool fits, const char* name, std::int64_t value, const char* least) {
    if (!fits)
      throw UserError(error_text(text(what, ": ", name, " is ", value), where, text("it must be ", least, " or more")));
  };
  require(options.precision >= 0, "precision", options.precision, "0");
  require(options.threshold >= 0, "threshold", options.threshold, "0");
  require(options.edge_items >= 1, "edge_items", options.edge_items, "1");
  require(options.line_width >= 1, "line_width", options.line_width, "1");
  return options;
}

/// What set_print_options said last.
struct ProcessOptions {
  Lock lock;
  PrintOptions options;
};
ProcessOptions& process_options() {
  static auto* const one = new ProcessOptions;
  return *one;
}

constinit thread_local const PrintScope* innermost_scope = nullptr;

}  // namespace

void set_print_options(const PrintOptions& options, Where where) {
  checked(options, "set_print_options", where);
  std::lock_guard lock(process_options().lock);
  process_options().options = options;
}

PrintOptions print_options() {
  if (innermost_scope) return innermost_scope->options_;
  std::lock_guard lock(process_options().lock);
  return process_options().options;
}

PrintScope::PrintScope(const PrintOptions& options, Where where)
    : options_(checked(options, "PrintScope", where)), outer_(innermost_scope) {
  innermost_scope = this;
}
PrintScope::~PrintScope() { innermost_scope = outer_; }

std::string to_string(const Tensor& tensor, const PrintOptions& options, Where where) {
  checked(options, "to_string", where);
  if (!tensor.defined()) return "undefined";
  const TensorNode& node = *tensor.node();
  if (node.traced) return text("<", node.dtype, node.shape(), " traced in '", node.traced->life->function, "'>");
  const Tensor readable = on_host(tensor);
  return Printer(*readable.node(), options).str();
}

std::string to_string(const Tensor& tensor) { return to_string(tensor, print_options()); }

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << to_string(tensor); }

}  // namespace stet
