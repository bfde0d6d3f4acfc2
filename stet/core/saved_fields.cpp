#include "stet/core/saved_fields.h"

#include <climits>

#include "stet/base/dim_form.h"
#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"

namespace stet {
namespace {

constexpr std::size_t longest_text = 1 << 16;
constexpr std::size_t most_steps = 1024;  // of a size: real ones have a dozen

}  // namespace

void SavedWriter::u32(std::uint64_t value) {
  if (value > UINT32_MAX) throw InternalError(stet::text("export: ", value, " does not fit 32 bits"));
  number(static_cast<std::uint32_t>(value));
}

void SavedWriter::text(std::string_view value) {
  value = value.substr(0, longest_text);
  u32(value.size());
  bytes.append(value);
}

void SavedWriter::size(const Dim& value) {
  const std::vector<DimStep> steps = form_of(value);
  u32(steps.size());
  for (const DimStep& step : steps) {
    u8(step.kind);
    if (step.kind <= DimStep::symbol) i64(step.number);
  }
}

void SavedWriter::shape(const Shape& value) {
  u8(static_cast<std::uint8_t>(value.rank()));
  for (const Dim& dim : value) size(dim);
}

bool SavedReader::boolean(const char* what) {
  const std::uint8_t value = u8(what);
  if (value > 1) fail(stet::text("'", what, "' is ", int{value}, ", not true or false"));
  return value == 1;
}

std::string SavedReader::text(const char* what) {
  const std::uint32_t length = u32(what);
  if (length > longest_text) fail(stet::text("'", what, "' has ", length, " characters"));
  return std::string(walk_.characters(length, what));
}

std::size_t SavedReader::count(std::size_t least, const char* what) {
  const std::uint32_t number = u32(what);
  if (number > walk_.left() / least) fail(stet::text(number, " ", what, " do not fit into the rest of the file"));
  return number;
}

std::size_t SavedReader::below(std::size_t end, const char* what) {
  const std::uint32_t number = u32(what);
  if (number >= end) fail(stet::text(what, " ", number, " does not exist: there are ", end));
  return number;
}

DType SavedReader::dtype(const char* what) {
  const std::string word = text(what);
  for (std::size_t i = 0; i < dtype_count; ++i)
    if (word == name(static_cast<DType>(i))) return static_cast<DType>(i);
  fail(stet::text("'", word.substr(0, 20), "' is no dtype"));
}

Dim SavedReader::size(const char* what) {
  const std::size_t steps = count(1, what);
  if (steps > most_steps) fail(stet::text("'", what, "' is a size of ", steps, " steps"));
  std::vector<DimStep> form;
  for (std::size_t i = 0; i < steps; ++i) {
    const std::uint8_t kind = u8(what);
    if (kind > DimStep::positive) fail(stet::text("'", what, "' is a size with a step ", int{kind}));
    DimStep step{static_cast<DimStep::Kind>(kind), 0};
    if (step.kind <= DimStep::symbol) step.number = i64(what);
    form.push_back(step);
  }
  try {
    return dim_of_form(form, symbols);
  } catch (const Problem& problem) {
    fail(stet::text("'", what, "': ", problem.text()));
  }
}

Shape SavedReader::shape(const char* what) {
  const std::uint8_t rank = u8(what);
  if (rank > max_rank) fail(stet::text("'", what, "' has ", int{rank}, " axes"));
  Shape out;
  for (int axis = 0; axis < rank; ++axis) out.push_back(size(what));
  return out;
}

namespace saved {

void get(SavedReader& from, int& value, const char* what) {
  const std::int64_t wide = from.i64(what);
  if (wide < INT_MIN || wide > INT_MAX) from.fail(text("'", what, "' is ", wide));
  value = static_cast<int>(wide);
}

void get(SavedReader& from, Combine& value, const char* what) {
  const std::string word = from.text(what);
  for (Combine one : {Combine::none, Combine::sum, Combine::product, Combine::maximum, Combine::minimum})
    if (word == name(one)) {
      value = one;
      return;
    }
  from.fail(text("'", what, "' is '", word.substr(0, 20), "'"));
}

void expect_field(SavedReader& from, const char* name, char letter) {
  const std::string given = from.text("name of an attribute");
  const std::uint8_t kind = from.u8("kind of an attribute");
  if (given != name) from.fail(text("an attribute '", given.substr(0, 40), "' stands where '", name, "' is expected"));
  if (kind != static_cast<std::uint8_t>(letter)) from.fail(text("the attribute '", name, "' is of another kind"));
}

}  // namespace saved
}  // namespace stet
