// Tensors as text, as NumPy writes arrays.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ostream>
#include <string>
#include <vector>

#include "stet/base/text.h"
#include "stet/core/tensor.h"
#include "stet/core/tensor_node.h"

namespace stet {
namespace {

constexpr std::int64_t most_elements = 1000;  // more are shortened
constexpr std::int64_t edge = 3;              // entries shown at each end of a shortened axis
constexpr std::size_t line_width = 75;

class Printer {
 public:
  explicit Printer(const TensorNode& node) : node_(node), shortened_(node.element_count() > most_elements) {
    collect(0, 0);
    choose_format();
  }
  std::string str() {
    std::string out;
    write(0, 0, out);
    return out;
  }

 private:
  template <class F>
  void for_each(int axis, F f) const {
    std::int64_t size = node_.sizes[axis];
    bool cut = shortened_ && size > 2 * edge;
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

  void collect(int axis, std::int64_t offset) {
    if (axis == node_.rank) {
      shown_.push_back(offset);
      return;
    }
    for_each(axis, [&](std::int64_t i, bool) { collect(axis + 1, offset + i * node_.strides[axis]); });
  }

  /// Digits after the point that all shown values need, at most 8; exponents where magnitudes differ too much.
  void choose_format() {
    if (is_floating(node_.dtype)) {
      double largest = 0, smallest = INFINITY;
      for (std::int64_t offset : shown_) {
        double v = std::fabs(value(offset));
        if (!std::isfinite(v) || v == 0) continue;
        largest = std::max(largest, v);
        smallest = std::min(smallest, v);
      }
      scientific_ = largest >= 1e8 || (largest > 0 && (smallest < 1e-4 || largest / smallest > 1000 * 1e3));
      for (std::int64_t offset : shown_) {
        double v = value(offset);
        if (std::isfinite(v)) digits_ = std::max(digits_, digits_needed(v));
      }
    }
    for (std::int64_t offset : shown_) width_ = std::max(width_, element(offset).size());
  }

  int significant() const {
    return node_.dtype == DType::f64 ? 16 : node_.dtype == DType::f32 ? 8 : node_.dtype == DType::f16 ? 4 : 3;
  }
  int digits_needed(double v) const {
    char shortest[64];
    // The fewest digits that read back as the same element.
    int precision = 1;
    for (; precision < significant(); ++precision) {
      std::snprintf(shortest, sizeof shortest, "%.*e", precision - 1, v);
      if (same_element(std::strtod(shortest, nullptr), v)) break;
    }
    std::snprintf(shortest, sizeof shortest, "%.*e", precision - 1, v);
    int exponent = std::atoi(std::strchr(shortest, 'e') + 1);
    int needed = scientific_ ? precision - 1 : precision - 1 - exponent;
    return std::clamp(needed, 0, 8);
  }
  bool same_element(double a, double b) const {
    std::uint64_t x = 0, y = 0;
    convert_element(DType::f64, &a, node_.dtype, &x);
    convert_element(DType::f64, &b, node_.dtype, &y);
    return x == y;
  }

  std::string element(std::int64_t offset) const {
    const std::byte* at = node_.data + offset * size_of(node_.dtype);
    if (node_.dtype == DType::bool_) return *at == std::byte{0} ? "False" : "True";
    if (!is_floating(node_.dtype)) {
      std::int64_t integer = 0;
      convert_element(node_.dtype, at, DType::i64, &integer);
      return std::to_string(integer);
    }
    double v = value(offset);
    if (std::isnan(v)) return "nan";
    if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
    char text[64];
    if (scientific_) {
      std::snprintf(text, sizeof text, "%#.*e", digits_, v);  // "1.e+10": the point marks a floating number
      return text;
    }
    int own = digits_needed(v);
    std::snprintf(text, sizeof text, "%.*f", own, v);
    std::string out = text;
    if (own == 0) out += '.';
    // Blanks for the digits it does not need, so that points stay below each other.
    if (node_.rank > 0) out += std::string(static_cast<std::size_t>(digits_ - own), ' ');
    return out;
  }

  void write(int axis, std::int64_t offset, std::string& out) const {
    if (axis == node_.rank) {
      std::string one = element(offset);
      out += std::string(width_ - std::min(width_, one.size()), ' ') + one;
      return;
    }
    out += '[';
    bool innermost = axis + 1 == node_.rank, first = true;
    std::size_t line = out.size() - std::min(out.size(), out.rfind('\n') + 1);
    for_each(axis, [&](std::int64_t i, bool skipped) {
      std::string indent(static_cast<std::size_t>(axis) + 1, ' ');
      auto separate = [&] {
        if (first) return;
        if (!innermost) {
          out += std::string(static_cast<std::size_t>(std::max(1, node_.rank - axis - 1)), '\n') + indent;
          return;
        }
        if (line + width_ + 1 > line_width) {
          out += "\n" + indent;
          line = indent.size();
        } else {
          out += ' ';
          ++line;
        }
      };
      if (skipped) {
        separate();
        out += "...";
        line += 3;
        first = false;
      }
      separate();
      write(axis + 1, offset + i * node_.strides[axis], out);
      line += width_;
      first = false;
    });
    out += ']';
  }

  const TensorNode& node_;
  bool shortened_;
  bool scientific_ = false;
  int digits_ = 0;
  std::size_t width_ = 0;
  std::vector<std::int64_t> shown_;
};

}  // namespace

std::string to_string(const Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  const TensorNode& node = *tensor.node();
  if (node.traced) return text("<", node.dtype, node.shape(), " traced in '", node.traced->life->function, "'>");
  return Printer(*tensor.node()).str();
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << to_string(tensor); }

}  // namespace stet
