// SavedState: named values that go into a checkpoint.
#pragma once
#include <concepts>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/tensor.h"

namespace stet::keras {

/// What a callback, or a training loop of your own, must know to go on where it was: numbers, texts and tensors by
/// names. Floating numbers come back as they were, to the last bit.
class STET_API SavedState {
 public:
  using Value = std::variant<bool, std::int64_t, double, std::string, Tensor, std::vector<Tensor>>;

  /// Another value of that name is replaced. Names and texts are UTF-8 (UserError), tensors are defined.
  template <class T>
  requires(std::is_arithmetic_v<T>) void set(std::string_view name, T value, Where where = Where::here()) {
    if constexpr (std::same_as<T, bool>)
      put(name, value, where);
    else if constexpr (std::integral<T>)
      put(name, static_cast<std::int64_t>(value), where);
    else
      put(name, static_cast<double>(value), where);
  }
  template <class T>
  requires(!std::is_arithmetic_v<T> && std::convertible_to<T, std::string_view>) void set(std::string_view name,
                                                                                          const T& value,
                                                                                          Where where = Where::here()) {
    put(name, std::string(std::string_view(value)), where);
  }
  void set(std::string_view name, const Tensor& value, Where where = Where::here()) { put(name, value, where); }
  void set(std::string_view name, const std::vector<Tensor>& values, Where where = Where::here()) {
    put(name, values, where);
  }

  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  /// UserError if there is none of that name, or it is of another kind. An integer is a number, too.
  bool boolean(std::string_view name, Where where = Where::here()) const;
  std::int64_t integer(std::string_view name, Where where = Where::here()) const;
  double number(std::string_view name, Where where = Where::here()) const;
  const std::string& string(std::string_view name, Where where = Where::here()) const;
  const Tensor& tensor(std::string_view name, Where where = Where::here()) const;
  const std::vector<Tensor>& tensors(std::string_view name, Where where = Where::here()) const;

  const std::map<std::string, Value, std::less<>>& values() const { return values_; }

 private:
  void put(std::string_view name, Value value, Where where);
  const Value& find(std::string_view name, Where where) const;

  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace stet::keras
