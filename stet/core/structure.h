// Structure: arguments and results of a traced function as flat lists of leaves, and back.
//
// A leaf is a tensor, a Variable, a C++ number, an enumerator, a string, a size or a handle (core/handle.h; a Function
// is one). Tuples, pairs, arrays, vectors, optionals, shapes, maps by strings and aggregates with STET_FIELDS are made
// of leaves; how many elements a vector has, whether an optional has one, and whether a tensor is defined, is part of
// the structure.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "stet/base/for_each.h"
#include "stet/core/handle.h"
#include "stet/core/in.h"
#include "stet/core/tensor.h"
#include "stet/core/variable.h"

// STET_FIELDS(x, y) inside an aggregate lists all its fields, so that it can be an argument or a result.
#define STET_VISIT_FIELD(field) visitor(#field, field);
#define STET_EMPTY_FIELD(field) {},
// An aggregate that takes one initializer more than it lists fields has forgotten one.
#define STET_FIELDS(...)                                                       \
  template <class Visitor>                                                     \
  void stet_fields(Visitor&& visitor) {                                        \
    STET_FOR_EACH(STET_VISIT_FIELD, __VA_ARGS__)                               \
  }                                                                            \
  template <class Self>                                                        \
  static constexpr bool stet_has_more_fields() {                               \
    return requires { Self{STET_FOR_EACH(STET_EMPTY_FIELD, __VA_ARGS__){}}; }; \
  }

namespace stet {
namespace inside {

struct Leaf {
  enum Kind : std::uint8_t { tensor, variable, number, text, count, object, size } kind = tensor;
  Tensor value = {};         // tensor
  Variable state = {};       // variable
  DType dtype = DType::f32;  // number: of which type
  std::uint64_t bits = 0;    // number: its bits; text and object: its identity; count: how many elements follow
  std::shared_ptr<Body> body = {};
  bool weak = false;       // tensor: of a result, it is a number that takes the type of what it meets
  bool undefined = false;  // of a result: no tensor comes for it; `value` remembers why, or `length` is it
  Dim length = 0;          // size: itself. Of a result that is no constant, a tensor comes with it
  std::string label = {};  // text: itself; number: its name, where it has one
  std::string path = {};   // from the argument to the leaf: "", ".rate", "[2].rate"
};
using Leaves = std::vector<Leaf>;

/// A leaf as a call that has been made before looks at it: nothing is copied.
struct LeafView {
  const Tensor* tensor = nullptr;  // or
  std::uint64_t bits = 0;          // of a number, a count, a size; the identity of a Variable or an object
};
/// The leaves of a call's arguments. Calls with more are served without the shortest way.
class LeafViews {
 public:
  static constexpr std::size_t most = 16;
  void add(LeafView view) {
    if (count_ < most) views_[count_] = view;
    ++count_;
  }
  bool complete() const { return count_ <= most; }
  std::size_t size() const { return count_; }
  const LeafView& operator[](std::size_t i) const { return views_[i]; }

 private:
  std::size_t count_ = 0;
  LeafView views_[most];
};

/// Gives leaves one after the other; tensors from a list of their own where there is one.
class LeafReader {
 public:
  explicit LeafReader(const Leaves& leaves) : leaves_(leaves) {}
  LeafReader(const Leaves& form, Tensor* tensors) : leaves_(form), tensors_(tensors) {}
  const Leaf& next() { return leaves_[at_++]; }
  Tensor next_tensor() {
    const Leaf& leaf = leaves_[at_++];
    if (leaf.undefined || !tensors_) return leaf.value;
    return leaf.weak ? creation::as_number(std::move(*tensors_++)) : std::move(*tensors_++);
  }
  Dim next_size() {
    const Leaf& leaf = leaves_[at_++];
    if (leaf.kind == Leaf::number) return Dim(static_cast<std::int64_t>(leaf.bits));
    if (leaf.undefined || !tensors_) return leaf.length;
    return Dim((tensors_++)->item<std::int64_t>());
  }

 private:
  const Leaves& leaves_;
  Tensor* tensors_ = nullptr;
  std::size_t at_ = 0;
};

/// The tensors of a call's results.
class ResultTensors {
 public:
  void add(Tensor tensor) {
    if (count_ < few_.size())
      few_[count_] = std::move(tensor);
    else
      spill(std::move(tensor));
    ++count_;
  }
  std::size_t size() const { return count_; }
  Tensor* begin() { return many_.empty() ? few_.data() : many_.data(); }

 private:
  void spill(Tensor tensor) {
    if (many_.empty()) many_.assign(std::make_move_iterator(few_.begin()), std::make_move_iterator(few_.end()));
    many_.push_back(std::move(tensor));
  }
  std::array<Tensor, 4> few_;
  std::vector<Tensor> many_;
  std::size_t count_ = 0;
};

}  // namespace inside

namespace structure {
using namespace inside;

template <class T>
struct Of;  // write(const T&, Leaves&), view(const T&, LeafViews&), read(LeafReader&) -> T

/// The leaves from `first` on lie inside something, at `step`.
inline void lead_through(Leaves& leaves, std::size_t first, const std::string& step) {
  for (std::size_t i = first; i < leaves.size(); ++i) leaves[i].path.insert(0, step);
}
/// Writes what lies inside of something at `step`: ".rate", "[2]".
template <class T>
void write_part(const T& part, const std::string& step, Leaves& out) {
  std::size_t first = out.size();
  Of<T>::write(part, out);
  lead_through(out, first, step);
}

/// A number that only this text has, for the life of the process; 0 if it has none yet.
STET_API std::uint64_t known_text(std::string_view text);
/// The same; gives it one.
STET_API std::uint64_t number_of_text(std::string_view text);

/// A size as a leaf: an input of the program, like the sizes of tensors; one below 0 is a number, part of the trace.
STET_API Leaf leaf_of_size(const Dim& size);
/// As a call that has been made before looks at it; of a size that is no constant, none that has been.
STET_API LeafView view_of_size(const Dim& size);

template <>
struct Of<Tensor> {
  static void write(const Tensor& v, Leaves& out) { out.push_back({.kind = Leaf::tensor, .value = v}); }
  static void view(const Tensor& v, LeafViews& out) { out.add({.tensor = &v}); }
  static Tensor read(LeafReader& in) { return in.next_tensor(); }
};
template <>
struct Of<Scalar> {
  static void write(const Scalar& v, Leaves& out) { out.push_back({.kind = Leaf::tensor, .value = v.tensor()}); }
  static void view(const Scalar& v, LeafViews& out) { out.add({.tensor = &v.tensor()}); }
  static Scalar read(LeafReader& in) { return Scalar(in.next_tensor()); }
};
template <>
struct Of<Variable> {
  static void write(const Variable& v, Leaves& out) { out.push_back({.kind = Leaf::variable, .state = v}); }
  static void view(const Variable& v, LeafViews& out) { out.add({.bits = v.id()}); }
  static Variable read(LeafReader& in) { return in.next().state; }
};
template <Handle T>
struct Of<T> {
  static void write(const T& v, Leaves& out) {
    std::shared_ptr<Body> body = v.body();
    out.push_back({.kind = Leaf::object, .bits = body ? body->identity() : 0, .body = body});
  }
  static void view(const T& v, LeafViews& out) {
    std::shared_ptr<Body> body = v.body();
    out.add({.bits = body ? body->identity() : 0});
  }
  static T read(LeafReader& in) { return T::from_body(in.next().body); }
};
template <Number T>
struct Of<T> {
  static_assert(sizeof(T) <= 8, "an argument of a traced function is at most 64 bits wide");
  static std::uint64_t bits_of(const T& v) {
    if constexpr (std::is_integral_v<T>) return static_cast<std::uint64_t>(v);  // with its sign, for explanations
    std::uint64_t bits = 0;
    std::memcpy(&bits, &v, sizeof v);
    return bits;
  }
  static void write(const T& v, Leaves& out) {
    out.push_back({.kind = Leaf::number,
                   .dtype = std::is_same_v<T, bool>       ? DType::bool_
                            : std::is_same_v<T, float>    ? DType::f32
                            : std::is_floating_point_v<T> ? DType::f64
                                                          : DType::i64,
                   .bits = bits_of(v)});
  }
  static void view(const T& v, LeafViews& out) { out.add({.bits = bits_of(v)}); }
  static T read(LeafReader& in) {
    T v;
    std::memcpy(&v, &in.next().bits, sizeof v);
    return v;
  }
};
template <class T>
requires std::is_enum_v<T>
struct Of<T> {
  static std::uint64_t bits_of(T v) { return static_cast<std::uint64_t>(static_cast<std::underlying_type_t<T>>(v)); }
  static void write(const T& v, Leaves& out) {
    out.push_back({.kind = Leaf::number, .dtype = DType::i64, .bits = bits_of(v)});
    if constexpr (std::is_same_v<T, DType>) out.back().label = name(v);
  }
  static void view(const T& v, LeafViews& out) { out.add({.bits = bits_of(v)}); }
  static T read(LeafReader& in) { return static_cast<T>(static_cast<std::underlying_type_t<T>>(in.next().bits)); }
};
template <>
struct Of<std::string> {
  static void write(const std::string& v, Leaves& out) {
    out.push_back({.kind = Leaf::text, .bits = number_of_text(v), .label = v});
  }
  static void view(const std::string& v, LeafViews& out) { out.add({.bits = known_text(v)}); }
  static std::string read(LeafReader& in) { return in.next().label; }
};
template <>
struct Of<Dim> {
  static void write(const Dim& v, Leaves& out) { out.push_back(leaf_of_size(v)); }
  static void view(const Dim& v, LeafViews& out) { out.add(view_of_size(v)); }
  static Dim read(LeafReader& in) { return in.next_size(); }
};
template <>
struct Of<Shape> {
  static void write(const Shape& v, Leaves& out) {
    out.push_back({.kind = Leaf::count, .bits = static_cast<std::uint64_t>(v.rank())});
    for (int axis = 0; axis < v.rank(); ++axis) write_part(v[axis], "[" + std::to_string(axis) + "]", out);
  }
  static void view(const Shape& v, LeafViews& out) {
    out.add({.bits = static_cast<std::uint64_t>(v.rank())});
    for (const Dim& size : v) out.add(view_of_size(size));
  }
  static Shape read(LeafReader& in) {
    Shape v;
    for (std::uint64_t n = in.next().bits; n > 0; --n) v.push_back(in.next_size());
    return v;
  }
};
template <class... T>
struct Of<std::tuple<T...>> {
  static void write(const std::tuple<T...>& v, Leaves& out) {
    int number = 0;
    std::apply([&](const T&... e) { (write_part(e, "<" + std::to_string(number++) + ">", out), ...); }, v);
  }
  static void view(const std::tuple<T...>& v, LeafViews& out) {
    std::apply([&](const T&... e) { (Of<T>::view(e, out), ...); }, v);
  }
  static std::tuple<T...> read(LeafReader& in) { return std::tuple<T...>{Of<T>::read(in)...}; }
};
template <class A, class B>
struct Of<std::pair<A, B>> {
  static void write(const std::pair<A, B>& v, Leaves& out) {
    write_part(v.first, ".first", out);
    write_part(v.second, ".second", out);
  }
  static void view(const std::pair<A, B>& v, LeafViews& out) {
    Of<A>::view(v.first, out);
    Of<B>::view(v.second, out);
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
    for (std::size_t i = 0; i < v.size(); ++i)
      write_part(static_cast<const T&>(v[i]), "[" + std::to_string(i) + "]", out);
  }
  static void view(const std::vector<T>& v, LeafViews& out) {
    out.add({.bits = v.size()});
    for (std::size_t i = 0; i < v.size(); ++i) Of<T>::view(static_cast<const T&>(v[i]), out);
  }
  static std::vector<T> read(LeafReader& in) {
    std::vector<T> v;
    for (std::uint64_t n = in.next().bits; n > 0; --n) v.push_back(Of<T>::read(in));
    return v;
  }
};
/// What keys there are is part of the structure.
template <class T, class Compare>
struct Of<std::map<std::string, T, Compare>> {
  using Map = std::map<std::string, T, Compare>;
  static void write(const Map& v, Leaves& out) {
    out.push_back({.kind = Leaf::count, .bits = v.size()});
    for (const auto& [key, value] : v) {
      Of<std::string>::write(key, out);
      write_part(value, "[\"" + key + "\"]", out);
    }
  }
  static void view(const Map& v, LeafViews& out) {
    out.add({.bits = v.size()});
    for (const auto& [key, value] : v) {
      Of<std::string>::view(key, out);
      Of<T>::view(value, out);
    }
  }
  static Map read(LeafReader& in) {
    Map v;
    for (std::uint64_t n = in.next().bits; n > 0; --n) {
      std::string key = Of<std::string>::read(in);
      v.emplace(std::move(key), Of<T>::read(in));
    }
    return v;
  }
};
template <class T, std::size_t count>
struct Of<std::array<T, count>> {
  static void write(const std::array<T, count>& v, Leaves& out) {
    for (std::size_t i = 0; i < count; ++i) write_part(v[i], "[" + std::to_string(i) + "]", out);
  }
  static void view(const std::array<T, count>& v, LeafViews& out) {
    for (const T& e : v) Of<T>::view(e, out);
  }
  static std::array<T, count> read(LeafReader& in) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return std::array<T, count>{((void)i, Of<T>::read(in))...};
    }
    (std::make_index_sequence<count>());
  }
};
template <class T>
struct Of<std::optional<T>> {
  static void write(const std::optional<T>& v, Leaves& out) {
    out.push_back({.kind = Leaf::count, .bits = v.has_value()});
    if (v) Of<T>::write(*v, out);
  }
  static void view(const std::optional<T>& v, LeafViews& out) {
    out.add({.bits = v.has_value()});
    if (v) Of<T>::view(*v, out);
  }
  static std::optional<T> read(LeafReader& in) {
    if (in.next().bits == 0) return std::nullopt;
    return Of<T>::read(in);
  }
};
template <class T>
concept WithFields = requires(T& v) {
  v.stet_fields([](const char*, auto&) {});
};
template <WithFields T>
struct Of<T> {
  static constexpr bool complete() {
    if constexpr (std::is_aggregate_v<T>)
      return !T::template stet_has_more_fields<T>();
    else
      return true;
  }
  static_assert(complete(),
                "STET_FIELDS does not list all members of this aggregate: what it leaves out would be frozen into the "
                "trace; list every member (a base class counts as one)");
  static void write(const T& v, Leaves& out) {
    const_cast<T&>(v).stet_fields([&](const char* name, auto& field) {
      write_part(static_cast<const std::remove_cvref_t<decltype(field)>&>(field), std::string(".") + name, out);
    });
  }
  static void view(const T& v, LeafViews& out) {
    const_cast<T&>(v).stet_fields(
        [&](const char*, auto& field) { Of<std::remove_cvref_t<decltype(field)>>::view(field, out); });
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
