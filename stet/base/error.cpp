#include "stet/base/error.h"

#include "stet/base/text.h"

namespace stet {

namespace {

/// A line of the library itself, which says nothing to a user.
bool is_own(std::string_view file) {
  constexpr std::string_view own = __FILE__, path = "base/error.cpp";
  return own.ends_with(path) && file.starts_with(own.substr(0, own.size() - path.size()));
}

}  // namespace

std::string at_line(Where where, const char* before) {
  return where.known() && !is_own(where.file) ? text(before, where.file, ':', where.line) : std::string();
}

std::string error_text(const std::string& what, Where where, const std::string& advice) {
  std::string out = what + at_line(where, "\n  at ");
  if (!advice.empty()) out += text("\n  fix: ", advice);
  return out;
}

namespace {

std::string range_text(const std::string& operand, std::int64_t value, std::int64_t position, std::int64_t extent) {
  std::string found = text("'", operand, "' holds index ", value, " at position ", position);
  return extent == 0 ? text(found, ", but the axis it goes into is empty")
                     : text(found, ", out of range: allowed are 0 to ", extent - 1);
}

std::string range_advice(std::int64_t value, std::int64_t extent) {
  if (extent == 0) return "an empty axis has no positions: take no element of it";
  return value < 0 ? text("positions count from 0; for the last element write ", extent - 1, ", not -1")
                   : text("positions count from 0: the last of ", extent, " is ", extent - 1);
}

}  // namespace

IndexProblem::IndexProblem(const std::string& operand, std::int64_t value, std::int64_t position, std::int64_t extent)
    : Problem(range_text(operand, value, position, extent), range_advice(value, extent)),
      value_(value),
      position_(position),
      extent_(extent) {}

IndexProblem::IndexProblem(std::string text, std::string advice, const IndexProblem& other)
    : Problem(std::move(text), std::move(advice)),
      value_(other.value_),
      position_(other.position_),
      extent_(other.extent_) {}

IndexProblem IndexProblem::in(const IndexWords& words) const {
  if (words.from_end) {
    const std::string range = extent_ == 0 ? std::string(words.among) + " are none"
                                           : stet::text("allowed are ", -extent_, " to ", extent_ - 1);
    return {stet::text(words.index, " ", value_ < 0 ? value_ - extent_ : value_, " ", words.place, " ", position_,
                       " is out of range: ", range),
            words.advice, *this};
  }
  return {stet::text(words.index, " ", value_, " ", words.place, " ", position_, " is not one of the ", extent_, " ",
                     words.among),
          words.advice, *this};
}

}  // namespace stet
