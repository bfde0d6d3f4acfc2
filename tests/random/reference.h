// An independent interpreter of random programs: plain C++, double precision, gradients by forward differentiation.
#pragma once
#include <vector>

#include "run.h"

namespace stet::random_programs {

struct Reference {
  std::vector<Outcome> calls;
  std::vector<bool> known;  // false: what the call uses is not written here, or lies too near to a decision
  bool ambiguous = false;   // some call was too near to a decision for rounding errors not to matter
};
Reference reference_of(const Program& program, Way way);

}  // namespace stet::random_programs
