// What must be the same: reference = eager = traced.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "run.h"

namespace stet::random_programs {

struct Difference {
  Way way = Way::call;
  std::string text;
  std::string kind;  // the text without numbers, by which failures are told apart
};

struct Counts {
  std::int64_t programs = 0, calls = 0, compared_with_reference = 0, errors_on_both_sides = 0, refused = 0;
};

/// Runs the program in the given way and says how eager and traced, or eager and the reference, differ.
std::optional<Difference> difference(const Program& program, Way way, Counts* counts = nullptr);

/// A smaller program that still fails.
Program shrunk(const Program& program, const std::function<bool(const Program&)>& fails);

}  // namespace stet::random_programs
