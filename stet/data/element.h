// Elements of a dataset as flat lists of tensors, and back.
//
// A component of an element is a tensor (a string becomes one of its bytes), or a tuple, pair or aggregate (with
// STET_FIELDS) of components. Unlike the arguments of a traced function, all that is left of an element are tensors,
// and always as many: a batch stacks them.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/structure.h"
#include "stet/core/tensor.h"
#include "stet/core/variable.h"

namespace stet::data {

/// The tensors of one element, in order.
using Tensors = std::vector<Tensor>;

/// The bytes of a string as u8[n], and back; a UserError for a tensor of another dtype or rank.
STET_API Tensor from_string(std::string_view text);
STET_API std::string to_string(const Tensor& bytes, Where where = Where::here());

namespace element {

/// Type: what a dataset of T gives back (a number becomes a tensor); write(const T&, Tensors&) appends; read(const
/// Tensor*&) takes the next ones.
template <class T>
struct Of;

/// Can be made into tensors.
template <class T>
concept Writable = requires(const T& v, Tensors& out) {
  Of<T>::write(v, out);
};

template <>
struct Of<Tensor> {
  using Type = Tensor;
  static void write(const Tensor& v, Tensors& out) { out.push_back(v); }
  static Tensor read(const Tensor*& at) { return *at++; }
};
template <>
struct Of<Variable> {
  using Type = Tensor;
  static void write(const Variable& v, Tensors& out) { out.push_back(v); }
};
template <inside::Number T>
struct Of<T> {
  using Type = Tensor;
  static void write(T v, Tensors& out) { out.push_back(tensor(v, Where{})); }
};
/// Its bytes, u8[n]: strings have no dtype. data::to_string() gives it back.
template <>
struct Of<std::string> {
  using Type = Tensor;
  static void write(const std::string& v, Tensors& out) { out.push_back(from_string(v)); }
};
template <>
struct Of<std::string_view> {
  using Type = Tensor;
  static void write(std::string_view v, Tensors& out) { out.push_back(from_string(v)); }
};
template <>
struct Of<const char*> {
  using Type = Tensor;
  static void write(const char* v, Tensors& out) { out.push_back(from_string(v)); }
};
template <class... T>
requires(Writable<T>&&...) struct Of<std::tuple<T...>> {
  using Type = std::tuple<typename Of<T>::Type...>;
  static void write(const std::tuple<T...>& v, Tensors& out) {
    std::apply([&](const T&... e) { (Of<T>::write(e, out), ...); }, v);
  }
  static std::tuple<T...> read(const Tensor*& at) { return std::tuple<T...>{Of<T>::read(at)...}; }
};
template <Writable A, Writable B>
struct Of<std::pair<A, B>> {
  using Type = std::pair<typename Of<A>::Type, typename Of<B>::Type>;
  static void write(const std::pair<A, B>& v, Tensors& out) {
    Of<A>::write(v.first, out);
    Of<B>::write(v.second, out);
  }
  static std::pair<A, B> read(const Tensor*& at) {
    A first = Of<A>::read(at);
    return {std::move(first), Of<B>::read(at)};
  }
};
/// Can be made into tensors and back.
template <class T>
concept Known = Writable<T> && std::is_same_v<typename Of<T>::Type, T>;

template <structure::WithFields T>
struct Of<T> {
  using Type = T;
  static void write(const T& v, Tensors& out) {
    const_cast<T&>(v).stet_fields([&](const char*, auto& field) { Field<decltype(field)>::write(field, out); });
  }
  static T read(const Tensor*& at) {
    T v{};
    v.stet_fields([&](const char*, auto& field) { field = Field<decltype(field)>::read(at); });
    return v;
  }

 private:
  template <class F>
  struct Field : Of<std::remove_cvref_t<F>> {
    static_assert(
        Known<std::remove_cvref_t<F>>,
        "a field of an aggregate that is a dataset's element, or part of one, is a Tensor, or a tuple, pair or "
        "aggregate of them: what was a number or a string comes out of the dataset as a Tensor");
  };
};

/// How many tensors a component consists of.
template <Known T>
std::size_t tensor_count() {
  Tensors tensors;
  Of<T>::write(T{}, tensors);
  return tensors.size();
}

template <class T>
inline constexpr bool is_pair = false;
template <class A, class B>
inline constexpr bool is_pair<std::pair<A, B>> = true;
template <class A, class B>
inline constexpr bool is_pair<std::tuple<A, B>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

}  // namespace element
}  // namespace stet::data
