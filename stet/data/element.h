// Elements of a dataset as flat lists of tensors, and back.
//
// A component of an element is a tensor, or a tuple, pair or aggregate (with STET_FIELDS) of components. Unlike the
// arguments of a traced function, all that is left of an element are tensors, and always as many: a batch stacks them.
#pragma once
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "stet/core/structure.h"
#include "stet/core/tensor.h"
#include "stet/core/variable.h"

namespace stet::data {

/// The tensors of one element, in order.
using Tensors = std::vector<Tensor>;

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
  static void write(T v, Tensors& out) { out.push_back(tensor(v)); }
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
template <structure::WithFields T>
struct Of<T> {
  using Type = T;
  static void write(const T& v, Tensors& out) {
    const_cast<T&>(v).stet_fields(
        [&](const char*, auto& field) { Of<std::remove_cvref_t<decltype(field)>>::write(field, out); });
  }
  static T read(const Tensor*& at) {
    T v{};
    v.stet_fields([&](const char*, auto& field) { field = Of<std::remove_cvref_t<decltype(field)>>::read(at); });
    return v;
  }
};

/// Can be made into tensors and back.
template <class T>
concept Known = Writable<T> && std::is_same_v<typename Of<T>::Type, T>;

}  // namespace element
}  // namespace stet::data
