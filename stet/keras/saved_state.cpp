#include "stet/keras/saved_state.h"

#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/utf8.h"

namespace stet::keras {
namespace {

const char* kind_of(const SavedState::Value& value) {
  constexpr const char* kinds[] = {"a bool", "an integer", "a number", "a text", "a tensor", "a list of tensors"};
  return kinds[value.index()];
}

[[noreturn]] void refuse(const std::string& what, Where where, const std::string& advice) {
  throw UserError(error_text(text("SavedState: ", what), where, advice));
}

template <class T>
const T& value_as(const SavedState::Value& value, std::string_view name, const char* wanted, Where where) {
  if (const T* found = std::get_if<T>(&value)) return *found;
  refuse(text("'", name, "' is ", kind_of(value), ", not ", wanted), where, "read it as what it was set to");
}

}  // namespace

void SavedState::put(std::string_view name, Value value, Where where) {
  if (first_invalid_byte(name)) refuse("a name is not UTF-8", where, "name values with letters");
  if (const auto* string = std::get_if<std::string>(&value); string && first_invalid_byte(*string))
    refuse(text("the text of '", name, "' is not UTF-8"), where, "keep other bytes in a tensor of u8");
  auto check = [&](const Tensor& tensor) {
    if (!tensor.defined()) refuse(text("a tensor of '", name, "' is undefined"), where, "leave it out");
  };
  if (const auto* tensor = std::get_if<Tensor>(&value)) check(*tensor);
  if (const auto* tensors = std::get_if<std::vector<Tensor>>(&value))
    for (const Tensor& tensor : *tensors) check(tensor);
  values_.insert_or_assign(std::string(name), std::move(value));
}

const SavedState::Value& SavedState::find(std::string_view name, Where where) const {
  auto found = values_.find(name);
  if (found != values_.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [one, value] : values_) known.push_back(one);
  refuse(text("there is no '", name, "'"), where,
         known.empty() ? "it is empty; has() tells" : text("it has ", joined(known, ", ")));
}

bool SavedState::boolean(std::string_view name, Where where) const {
  return value_as<bool>(find(name, where), name, "a bool", where);
}
std::int64_t SavedState::integer(std::string_view name, Where where) const {
  return value_as<std::int64_t>(find(name, where), name, "an integer", where);
}
double SavedState::number(std::string_view name, Where where) const {
  const Value& value = find(name, where);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  return value_as<double>(value, name, "a number", where);
}
const std::string& SavedState::string(std::string_view name, Where where) const {
  return value_as<std::string>(find(name, where), name, "a text", where);
}
const Tensor& SavedState::tensor(std::string_view name, Where where) const {
  return value_as<Tensor>(find(name, where), name, "a tensor", where);
}
const std::vector<Tensor>& SavedState::tensors(std::string_view name, Where where) const {
  return value_as<std::vector<Tensor>>(find(name, where), name, "a list of tensors", where);
}

}  // namespace stet::keras
