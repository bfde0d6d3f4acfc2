#include "stet/data/position.h"

#include <charconv>

#include "stet/base/error.h"
#include "stet/base/text.h"

namespace stet::data {
namespace {

constexpr std::uint64_t version = 1;
constexpr std::size_t fixed_numbers = 5;  // the version among them

[[noreturn]] void refuse(const std::string& what, Where where) {
  throw UserError(error_text(text("IterationPosition: ", what), where,
                             "give what numbers() or str() of an iteration's position() gave"));
}

}  // namespace

std::vector<std::uint64_t> IterationPosition::numbers() const {
  std::vector<std::uint64_t> out{version, drawn, iteration, elements, pipeline};
  out.insert(out.end(), kept.begin(), kept.end());
  return out;
}

IterationPosition IterationPosition::from_numbers(std::span<const std::uint64_t> numbers, Where where) {
  if (numbers.size() < fixed_numbers)
    refuse(text(numbers.size(), " numbers, a position has at least ", fixed_numbers), where);
  if (numbers[0] != version) refuse(text("of version ", numbers[0], ", known is ", version), where);
  if (numbers[3] > static_cast<std::uint64_t>(INT64_MAX)) refuse(text("after ", numbers[3], " elements"), where);
  return {.drawn = numbers[1],
          .iteration = numbers[2],
          .elements = numbers[3],
          .pipeline = numbers[4],
          .kept = {numbers.begin() + fixed_numbers, numbers.end()}};
}

std::string IterationPosition::str() const { return joined(numbers(), " "); }

IterationPosition IterationPosition::from_string(std::string_view given, Where where) {
  std::vector<std::uint64_t> numbers;
  for (const char *at = given.data(), *end = at + given.size(); at != end;) {
    if (*at == ' ') {
      ++at;
      continue;
    }
    std::uint64_t number = 0;
    auto [after, error] = std::from_chars(at, end, number);
    if (error != std::errc() || (after != end && *after != ' '))
      refuse(text("'", given.substr(0, 60), given.size() > 60 ? "…" : "", "' is no list of numbers"), where);
    numbers.push_back(number);
    at = after;
  }
  return from_numbers(numbers, where);
}

}  // namespace stet::data
