// Structure: arguments and results of a traced function as flat lists of leaves, and back.
//
// A leaf is a tensor, a Variable, a C++ number or a handle (core/handle.h). Tuples, pairs, arrays, vectors and
// aggregates with STET_FIELDS are made of leaves; how many elements a vector has is part of the structure.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "stet/core/handle.h"
#include "stet/core/tensor.h"
#include "stet/core/variable.h"

// STET_FIELDS(x, y) inside an aggregate lists its fields, so that it can be an argument or a result.
#define STET_PARENTHESES ()
#define STET_EXPAND(...) STET_EXPAND_3(STET_EXPAND_3(STET_EXPAND_3(STET_EXPAND_3(__VA_ARGS__))))
#define STET_EXPAND_3(...) STET_EXPAND_2(STET_EXPAND_2(STET_EXPAND_2(STET_EXPAND_2(__VA_ARGS__))))
#define STET_EXPAND_2(...) STET_EXPAND_1(STET_EXPAND_1(STET_EXPAND_1(STET_EXPAND_1(__VA_ARGS__))))
#define STET_EXPAND_1(...) __VA_ARGS__
#define STET_FOR_EACH(macro, ...) __VA_OPT__(STET_EXPAND(STET_FOR_EACH_STEP(macro, __VA_ARGS__)))
#define STET_FOR_EACH_STEP(macro, first, ...) \
  macro(first) __VA_OPT__(STET_FOR_EACH_AGAIN STET_PARENTHESES(macro, __VA_ARGS__))
#define STET_FOR_EACH_AGAIN() STET_FOR_EACH_STEP
#define STET_VISIT_FIELD(field) visitor(#field, field);
#define STET_FIELDS(...)                         \
  template <class Visitor>                       \
  void stet_fields(Visitor&& visitor) {          \
    STET_FOR_EACH(STET_VISIT_FIELD, __VA_ARGS__) \
  }

namespace stet {

struct Leaf {
  enum Kind : std::uint8_t { tensor, variable, number, count, object } kind = tensor;
  Tensor value = {};         // tensor
  Variable state = {};       // variable
  DType dtype = DType::f32;  // number: of which type
  std::uint64_t bits = 0;    // number: its bits; count: how many elements follow; object: its identity
  std::shared_ptr<Body> body = {};
};
using Leaves = std::vector<Leaf>;

class LeafReader {
 public:
  explicit LeafReader(const Leaves& leaves) : leaves_(leaves) {}
  const Leaf& next() { return leaves_[at_++]; }

 private:
  const Leaves& leaves_;
  std::size_t at_ = 0;
};

namespace structure {

template <class T>
struct Of;  // write(const T&, Leaves&), read(LeafReader&) -> T

template <>
struct Of<Tensor> {
  static void write(const Tensor& v, Leaves& out) { out.push_back({.kind = Leaf::tensor, .value = v}); }
  static Tensor read(LeafReader& in) { return in.next().value; }
};
template <>
struct Of<Variable> {
  static void write(const Variable& v, Leaves& out) { out.push_back({.kind = Leaf::variable, .state = v}); }
  static Variable read(LeafReader& in) { return in.next().state; }
};
template <Handle T>
struct Of<T> {
  static void write(const T& v, Leaves& out) {
    std::shared_ptr<Body> body = v.body();
    out.push_back({.kind = Leaf::object, .bits = body ? body->object_id() : 0, .body = body});
  }
  static T read(LeafReader& in) { return T::from_body(in.next().body); }
};
template <Number T>
struct Of<T> {
  static void write(const T& v, Leaves& out) {
    Leaf leaf{.kind = Leaf::number,
              .dtype = std::is_same_v<T, bool>       ? DType::bool_
                       : std::is_floating_point_v<T> ? DType::f64
                                                     : DType::i64};
    static_assert(sizeof(T) <= 8);
    std::memcpy(&leaf.bits, &v, sizeof v);
    out.push_back(leaf);
  }
  static T read(LeafReader& in) {
    T v;
    std::memcpy(&v, &in.next().bits, sizeof v);
    return v;
  }
};
template <class... T>
struct Of<std::tuple<T...>> {
  static void write(const std::tuple<T...>& v, Leaves& out) {
    std::apply([&](const T&... e) { (Of<T>::write(e, out), ...); }, v);
  }
  static std::tuple<T...> read(LeafReader& in) { return std::tuple<T...>{Of<T>::read(in)...}; }
};
template <class A, class B>
struct Of<std::pair<A, B>> {
  static void write(const std::pair<A, B>& v, Leaves& out) {
    Of<A>::write(v.first, out);
    Of<B>::write(v.second, out);
  }
  static std::pair<A, B> read(LeafReader& in) {
    A first = Of<A>::read(in);
    return {std::move(first), Of<B>::read(in)};
  }
};
template <class T>
struct Of<std::vector<T>> {
  static void write(const std::vector<T>& v, Leaves& out) {
    out.push_back({.kind = Leaf::count, .bits = v.size()});
    for (const T& e : v) Of<T>::write(e, out);
  }
  static std::vector<T> read(LeafReader& in) {
    std::vector<T> v;
    for (std::uint64_t n = in.next().bits; n > 0; --n) v.push_back(Of<T>::read(in));
    return v;
  }
};
template <class T>
concept WithFields = requires(T& v) {
  v.stet_fields([](const char*, auto&) {});
};
template <WithFields T>
struct Of<T> {
  static void write(const T& v, Leaves& out) {
    const_cast<T&>(v).stet_fields(
        [&](const char*, auto& field) { Of<std::remove_cvref_t<decltype(field)>>::write(field, out); });
  }
  static T read(LeafReader& in) {
    T v{};
    v.stet_fields([&](const char*, auto& field) { field = Of<std::remove_cvref_t<decltype(field)>>::read(in); });
    return v;
  }
};

template <class T>
concept Known = requires(const T& v, Leaves& out) {
  Of<T>::write(v, out);
};

}  // namespace structure
}  // namespace stet
