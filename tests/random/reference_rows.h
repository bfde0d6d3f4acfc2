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

Array evaluate_row(const std::string& name, const Statement& s, const std::vector<Array>& in,
                   const std::vector<std::int64_t>& sizes);

}  // namespace stet::random_programs
