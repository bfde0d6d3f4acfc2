// Attributes: the fixed parameters of an op (axes, strides, a target shape). Each op has a plain struct; its one list
// of fields gives equality, hash, text, a copy, and access to the Dims inside.
//
//   struct ReduceAttributes {
//     std::vector<int> axes;
//     bool keepdims = false;
//     STET_ATTRIBUTES(axes, keepdims)
//   };
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "stet/base/dtype.h"
#include "stet/base/for_each.h"
#include "stet/base/inside.h"
#include "stet/base/shape.h"
#include "stet/base/text.h"
#include "stet/ir/expr.h"

// All fields of a struct of attributes, in order.
#define STET_ATTRIBUTE(name) std::tuple(field(#name, &Self::name)),
#define STET_ATTRIBUTES(...)                                                          \
  template <class Self>                                                               \
  static constexpr auto fields() {                                                    \
    return std::tuple_cat(STET_FOR_EACH(STET_ATTRIBUTE, __VA_ARGS__) std::tuple<>()); \
  }

namespace stet {

class Graph;
/// A child graph: the body of a branch. Compared by identity.
using GraphPointer = std::shared_ptr<const Graph>;
class HostCode;
/// What a node has the host do. Compared by what it does (host_code.h).
using HostCodePointer = std::shared_ptr<const HostCode>;

template <class Struct, class Member>
struct AttributeField {
  const char* name;
  Member Struct::*member;
};
template <class Struct, class Member>
constexpr AttributeField<Struct, Member> field(const char* name, Member Struct::*member) {
  return {name, member};
}

/// What can be done with an attribute struct whose type is not known. Made by attribute_type<T>.
struct AttributeType {
  std::size_t (*hash)(const void*);
  bool (*equal)(const void*, const void*);
  std::string (*str)(const void*);  // "axes=[0,1], keepdims=true"
  std::shared_ptr<const void> (*copy)(const void*);
  /// Whether a Dim in it is not a constant.
  bool (*is_symbolic)(const void*);
  /// A copy with every Dim (also those in shapes) replaced.
  std::shared_ptr<const void> (*map_dims)(const void*, const std::function<Dim(const Dim&)>&);
};

/// A struct and its type, not owned: what call() is handed.
struct AttributesView {
  const AttributeType* type = nullptr;
  const void* data = nullptr;
};

/// Owned and shared attributes, as nodes hold them. Empty for ops without any.
class Attributes {
 public:
  Attributes() = default;
  explicit Attributes(AttributesView view)
      : type_(view.type), data_(view.type ? view.type->copy(view.data) : nullptr) {}
  Attributes(const AttributeType* type, std::shared_ptr<const void> data) : type_(type), data_(std::move(data)) {}

  explicit operator bool() const { return type_ != nullptr; }
  AttributesView view() const { return {type_, data_.get()}; }
  template <class T>
  const T& as() const {
    return *static_cast<const T*>(data_.get());
  }
  std::size_t hash() const { return type_ ? type_->hash(data_.get()) : 0; }
  std::string str() const { return type_ ? type_->str(data_.get()) : std::string(); }
  bool operator==(const Attributes& other) const {
    return type_ == other.type_ && (!type_ || type_->equal(data_.get(), other.data_.get()));
  }
  bool is_symbolic() const { return type_ && type_->is_symbolic(data_.get()); }
  Attributes map_dims(const std::function<Dim(const Dim&)>& f) const {
    return type_ ? Attributes(type_, type_->map_dims(data_.get(), f)) : *this;
  }

 private:
  const AttributeType* type_ = nullptr;
  std::shared_ptr<const void> data_;
};

// --- What a field can be. A new kind of field is five overloads here.

namespace attribute {

inline std::size_t mix(std::size_t seed, std::size_t value) {
  std::size_t mixed = (seed + 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u + value;
  return mixed ^ mixed >> 31;
}

template <class T>
requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) std::size_t hash(const T& v) { return std::hash<T>()(v); }
inline std::size_t hash(const std::string& v) { return std::hash<std::string>()(v); }
std::size_t hash(const Dim& v);
std::size_t hash(const Shape& v);
inline std::size_t hash(const Expr& v) { return v.defined() ? v->hash : 0; }
inline std::size_t hash(const GraphPointer& v) { return std::hash<const Graph*>()(v.get()); }
std::size_t hash(const HostCodePointer& v);
inline std::size_t hash(const AxisMap& v) {
  std::size_t h = static_cast<std::size_t>(v.rank);
  for (int i = 0; i < v.rank; ++i) h = mix(h, static_cast<std::size_t>(v.axes[static_cast<std::size_t>(i)] + 1));
  return h;
}
template <class T>
std::size_t hash(const std::vector<T>& v) {
  std::size_t h = v.size();
  for (const T& e : v) h = mix(h, hash(e));
  return h;
}

template <class T>
bool equal(const T& a, const T& b) {
  return a == b;
}
bool equal(const Dim& a, const Dim& b);  // in form: attributes are compared, not sizes
bool equal(const Shape& a, const Shape& b);
bool equal(const HostCodePointer& a, const HostCodePointer& b);
template <class T>
bool equal(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!equal(a[i], b[i])) return false;
  return true;
}

std::string str(const GraphPointer& v);  // its nodes, indented
std::string str(const HostCodePointer& v);
template <class T>
std::string str(const T& v) {
  if constexpr (std::is_enum_v<T> && !std::is_same_v<T, DType>)
    return text(static_cast<int>(v));
  else
    return text(v);
}
inline std::string str(const AxisMap& v) {
  std::string out = "(";
  for (int i = 0; i < v.rank; ++i) {
    if (i) out += ",";
    int axis = v.axes[static_cast<std::size_t>(i)];
    out += axis < 0 ? std::string("*") : std::to_string(axis);
  }
  return out + ")";
}
template <class T>
std::string str(const std::vector<T>& v) {
  std::string out = "[";
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (i) out += ",";
    out += str(v[i]);
  }
  return out + "]";
}

template <class T>
bool is_symbolic(const T&) {
  return false;
}
bool is_symbolic(const Dim& v);
bool is_symbolic(const Shape& v);
bool is_symbolic(const std::vector<Dim>& v);
inline bool is_symbolic(const std::vector<Shape>& v) {
  for (const Shape& shape : v)
    if (is_symbolic(shape)) return true;
  return false;
}
inline bool is_symbolic(const GraphPointer& v) { return v != nullptr; }  // as a rule; nobody asks more exactly

template <class T>
void map_dims(T&, const std::function<Dim(const Dim&)>&) {}
void map_dims(GraphPointer& v, const std::function<Dim(const Dim&)>& f);
inline void map_dims(Dim& v, const std::function<Dim(const Dim&)>& f) { v = f(v); }
inline void map_dims(Shape& v, const std::function<Dim(const Dim&)>& f) {
  for (int i = 0; i < v.rank(); ++i) v.set(i, f(v[i]));
}
inline void map_dims(std::vector<Dim>& v, const std::function<Dim(const Dim&)>& f) {
  for (Dim& d : v) d = f(d);
}
inline void map_dims(std::vector<Shape>& v, const std::function<Dim(const Dim&)>& f) {
  for (Shape& shape : v) map_dims(shape, f);
}

}  // namespace attribute

template <class T>
inline constexpr AttributeType attribute_type = {
    .hash =
        [](const void* p) {
          const T& v = *static_cast<const T*>(p);
          std::size_t h = 17;
          std::apply([&](const auto&... f) { ((h = attribute::mix(h, attribute::hash(v.*f.member))), ...); },
                     T::template fields<T>());
          return h;
        },
    .equal =
        [](const void* p, const void* q) {
          const T &a = *static_cast<const T*>(p), &b = *static_cast<const T*>(q);
          return std::apply([&](const auto&... f) { return (attribute::equal(a.*f.member, b.*f.member) && ...); },
                            T::template fields<T>());
        },
    .str =
        [](const void* p) {
          const T& v = *static_cast<const T*>(p);
          std::string out;
          auto one = [&](const auto& f) {
            if (!out.empty()) out += ", ";
            out += text(f.name, "=", attribute::str(v.*f.member));
          };
          std::apply([&](const auto&... f) { (one(f), ...); }, T::template fields<T>());
          return out;
        },
    .copy = [](const void* p) -> std::shared_ptr<const void> {
      return std::make_shared<const T>(*static_cast<const T*>(p));
    },
    .is_symbolic =
        [](const void* p) {
          const T& v = *static_cast<const T*>(p);
          return std::apply([&](const auto&... f) { return (attribute::is_symbolic(v.*f.member) || ...); },
                            T::template fields<T>());
        },
    .map_dims = [](const void* p, const std::function<Dim(const Dim&)>& g) -> std::shared_ptr<const void> {
      auto v = std::make_shared<T>(*static_cast<const T*>(p));
      std::apply([&](const auto&... f) { (attribute::map_dims((*v).*f.member, g), ...); }, T::template fields<T>());
      return v;
    },
};

template <class T>
AttributesView view_of(const T& attributes) {
  return {&attribute_type<T>, &attributes};
}

}  // namespace stet
