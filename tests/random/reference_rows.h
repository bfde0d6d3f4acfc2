// What each row computes, in plain C++.
#pragma once
#include <string>
#include <vector>

#include "hyper.h"
#include "program.h"

namespace stet::random_programs {

struct NotWritten {  // the reference does not know this
  std::string what;
};
struct TooNear {  // rounding errors decide
  std::string what;
};

struct Array {
  bool real = true;
  DType dtype = DType::f32;
  std::vector<std::int64_t> sizes;
  std::vector<Real> values;
  // Of the interpreter: its number, the Variable that it was read from, levels of tapes.
  int serial = -1, variable = -1;
  int tracked = 0, depends = 0, uncertain = 0;
  bool derived = false;  // from a gradient: whether tapes around that one follow it, the interpreter does not know

  static Array scalar(double value) {
    Array a;
    a.values = {Real(value)};
    return a;
  }
};

std::vector<std::int64_t> broadcast_sizes(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b);
/// The elements repeated to the sizes.
std::vector<Real> broadcast_elements(const Array& a, const std::vector<std::int64_t>& sizes);

Array evaluate_row(const std::string& name, const Statement& s, const std::vector<Array>& in,
                   const std::vector<std::int64_t>& sizes);

/// Rows of elementwise.def that nothing above is written for, from the row's own eager call in f64 and its derivatives.
Array evaluate_elementwise(const std::string& name, const Statement& s, const std::vector<Array>& in);

}  // namespace stet::random_programs
