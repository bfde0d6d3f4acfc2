// Tensor: an immutable n-dimensional array. Copies share memory; slices and transposes are views.
#pragma once
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "stet/base/dtype.h"
#include "stet/base/error.h"
#include "stet/base/export.h"
#include "stet/base/shape.h"
#include "stet/base/where.h"

namespace stet {

namespace inside {
template <class T>
concept Number = std::is_arithmetic_v<T>;

/// The element type that a number is held in: its own, or, of a type that no dtype has (std::size_t, long double), f64,
/// i32 or i64.
template <Number T>
using Held = std::conditional_t<
    Element<T>, T,
    std::conditional_t<std::is_floating_point_v<T>, double,
                       std::conditional_t<sizeof(T) < sizeof(std::int32_t), std::int32_t, std::int64_t>>>;
[[noreturn]] STET_API void refuse_beyond_i64(std::uint64_t number, Where where);
/// UserError for one that i64 does not hold.
template <Number T>
Held<T> held(T number, Where where) {
  if constexpr (std::is_unsigned_v<T> && std::is_same_v<Held<T>, std::int64_t>)
    if (static_cast<std::uint64_t>(number) > static_cast<std::uint64_t>(INT64_MAX)) refuse_beyond_i64(number, where);
  return static_cast<Held<T>>(number);
}
}  // namespace inside

struct TensorNode;
class Variable;

/// A position along an axis: an integer, which counts from the end when negative, or a size, which never does.
struct RangeBound {
  template <std::integral I>
  requires(!std::same_as<I, bool>) RangeBound(I at) : position(static_cast<std::int64_t>(at)) {}
  RangeBound(Dim at) : size(std::move(at)) {}
  std::int64_t position = 0;
  std::optional<Dim> size = {};
};
/// Positions begin, begin + step, … before end, as in Python: negative bounds count from the end of the axis, bounds
/// beyond it are cut, and a missing bound is the axis's own. `Range{}` is the whole axis, `Range{.begin = 1}` all but
/// the first, `Range{.step = -1}` the axis backwards, `Range{.end = x.dim(0) / 2}` the first half.
struct Range {
  std::optional<RangeBound> begin = {}, end = {};
  std::int64_t step = 1;
};
inline Range range(RangeBound begin, RangeBound end, std::int64_t step = 1) {
  return {std::move(begin), std::move(end), step};
}
struct Ellipsis {};
struct NewAxis {};
/// As many whole axes as are left over.
inline constexpr Ellipsis ellipsis{};
/// An axis of size 1.
inline constexpr NewAxis newaxis{};

namespace inside {

class Indices;

}  // namespace inside

class STET_API Tensor {
 public:
  /// Undefined: any op on it is a UserError.
  Tensor() = default;
  /// A number as a tensor without axes: int gives i32, float f32, double f64, std::size_t i64. Beside tensors it takes
  /// their type, as the number itself would (docs/numbers.md); tensor(0.5) makes one that keeps its own.
  template <inside::Number T>
  Tensor(T value) {
    const inside::Held<T> held = inside::held(value, {});
    *this = number(dtype_of<inside::Held<T>>, &held);
  }
  /// What a Variable holds now.
  Tensor(const Variable& variable);
  Tensor(const Tensor& other) : node_(other.node_) {
    if (defined()) retain(node_);
  }
  Tensor(Tensor&& other) noexcept : node_(other.node_) { other.node_ = nullptr; }
  /// To a name only: a result is not a place, so `x[0] = 7` does not compile. Make the whole tensor anew, for example
  /// with where() or concat().
  Tensor& operator=(Tensor other) & noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~Tensor() {
    if (defined()) release(node_);
  }

  bool defined() const { return reinterpret_cast<std::uintptr_t>(node_) > 1; }
  /// What gradient() gives where the target does not depend on the source: undefined, and errors say why.
  static Tensor no_gradient() { return Tensor(reinterpret_cast<const TensorNode*>(std::uintptr_t{1})); }
  bool is_no_gradient() const { return reinterpret_cast<std::uintptr_t>(node_) == 1; }
  DType dtype(Where = Where::here()) const;
  Shape shape(Where = Where::here()) const;
  int rank(Where = Where::here()) const;
  /// The size of one axis; negative ones count from the end.
  Dim dim(int axis, Where = Where::here()) const;
  /// The number of elements.
  Dim size(Where = Where::here()) const;

  /// One element, by position (negative ones count from the end); without positions the tensor must have one element.
  /// Converted to T, any arithmetic or element type, as cast does: floating to integer saturates, integers wrap.
  template <class T>
  T item(std::initializer_list<std::int64_t> position = {}, Where where = Where::here()) const;
  /// All elements in row-major order, converted to T as item() does.
  template <class T>
  std::vector<T> to_vector(Where where = Where::here()) const;
  /// The elements in memory, row-major. T must be the element type, and the tensor dense (UserError): contiguous().
  template <class T>
  const T* data(Where where = Where::here()) const {
    return static_cast<const T*>(dense_data(dtype_of<T>, where));
  }
  /// Lies row-major in memory, without gaps.
  bool is_dense() const;
  /// This tensor, or a dense copy of it.
  Tensor contiguous(Where = Where::here()) const;

  /// cast(x, dtype): the same values in another type.
  Tensor cast(DType dtype, Where = Where::here()) const;
  /// transpose(x): the axes in reverse order, a view.
  Tensor T(Where = Where::here()) const;

  /// Indexing as in NumPy; a view wherever steps are positive. Out of range is a UserError.
  Tensor operator[](const inside::Indices& indices) const;

  /// The truth of a tensor with one element, to decide with: `if (loss < 0.1f)`.
  explicit operator bool() const;

  /// Null when undefined.
  const TensorNode* node() const { return defined() ? node_ : nullptr; }
  /// Takes over one reference.
  explicit Tensor(const TensorNode* adopted) : node_(adopted) {}

 private:
  static void retain(const TensorNode*);
  static void release(const TensorNode*);
  static Tensor number(DType dtype, const void* value);
  void read_item(DType as, void* out, std::initializer_list<std::int64_t> position, Where where) const;
  void copy_elements(DType dtype, void* out, Where where) const;
  std::int64_t element_count(Where where) const;
  const void* dense_data(DType dtype, Where where) const;

  const TensorNode* node_ = nullptr;
};

namespace inside {

/// One entry of an indexing expression: a position (the axis goes away), a Range, `ellipsis`, `newaxis`, a tensor of
/// positions (its axes come instead of the axis) or a mask (bool: the elements where it is true).
class Index {
 public:
  enum class Kind : std::uint8_t { position, range, ellipsis, newaxis, tensor };
  template <std::integral I>
  requires(!std::same_as<I, bool>) Index(I at) : kind(Kind::position), position(at) {}
  Index(const Dim& at) : kind(Kind::position), position(at) {}
  Index(Range r) : kind(Kind::range), range(std::move(r)) {}
  Index(Ellipsis) : kind(Kind::ellipsis) {}
  Index(NewAxis) : kind(Kind::newaxis) {}
  template <std::same_as<Tensor> T>
  Index(const T& positions) : kind(Kind::tensor), tensor(positions) {}

  Kind kind;
  RangeBound position = 0;
  Range range = {};
  Tensor tensor = {};
};

/// What stands in brackets: x[2], x[range(0, 8)], x[{0, ellipsis, Range{.step = 2}}], x[mask].
class Indices {
 public:
  template <class T>
  requires std::convertible_to<T, Index> Indices(const T& one, Where w = Where::here())
      : entries{Index(one)}, where(w) {}
  Indices(std::initializer_list<Index> many, Where w = Where::here()) : entries(many), where(w) {}
  std::vector<Index> entries;
  Where where;
};

}  // namespace inside

/// For messages alone: "f32[32,10]", with the sizes of the call being traced; "undefined" of an undefined tensor.
STET_API std::string type_text(const Tensor&);

/// How tensors are printed, with numpy.set_printoptions's names and defaults. Numbers without axes are printed with all
/// their digits, whatever is said here.
struct PrintOptions {
  int precision = 8;              // digits after the point at most
  std::int64_t threshold = 1000;  // more elements than this are shortened to the ends of each axis
  std::int64_t edge_items = 3;    // entries shown at each end of a shortened axis, 1 or more
  int line_width = 75;            // characters after which a row goes on in the next line
  bool suppress = false;          // small numbers as 0.00001, not as 1.e-05
};
/// From now on, wherever no PrintScope says otherwise. UserError for options that mean nothing (a negative precision).
STET_API void set_print_options(const PrintOptions& options, Where where = Where::here());
/// What holds on this thread now.
STET_API PrintOptions print_options();
/// While it lives, tensors that this thread prints look so: `PrintScope scope({.precision = 3});`. Scopes nest.
class STET_API PrintScope {
 public:
  explicit PrintScope(const PrintOptions& options, Where where = Where::here());
  ~PrintScope();
  PrintScope(const PrintScope&) = delete;
  PrintScope& operator=(const PrintScope&) = delete;

 private:
  friend PrintOptions print_options();
  const PrintOptions options_;
  const PrintScope* const outer_;
};

/// As NumPy prints arrays: nested brackets, aligned columns, long axes shortened.
STET_API std::ostream& operator<<(std::ostream&, const Tensor&);
STET_API std::string to_string(const Tensor&);
STET_API std::string to_string(const Tensor&, const PrintOptions& options, Where where = Where::here());

namespace inside {
/// For C++ types that are no element types: what can be read, converted as cast would convert it.
template <class T>
T narrowed(double value) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    // The bounds as doubles: the upper one is a power of two, the first that does not fit.
    constexpr int digits = std::numeric_limits<T>::digits;
    const double above = std::ldexp(1.0, digits), below = std::is_signed_v<T> ? -above : 0;
    if (std::isnan(value)) return 0;
    return value >= above   ? std::numeric_limits<T>::max()
           : value <= below ? std::numeric_limits<T>::min()
                            : static_cast<T>(value);
  }
}
}  // namespace inside

template <class T>
T Tensor::item(std::initializer_list<std::int64_t> position, Where where) const {
  if constexpr (inside::Element<T>) {
    T out;
    read_item(dtype_of<T>, &out, position, where);
    return out;
  } else {
    static_assert(inside::Number<T>, "an element is read as an arithmetic type, Half or BFloat16");
    if (is_floating(dtype(where))) return inside::narrowed<T>(item<double>(position, where));
    return static_cast<T>(item<std::int64_t>(position, where));
  }
}

template <class T>
std::vector<T> Tensor::to_vector(Where where) const {
  auto read = [&]<class Stored>(std::vector<Stored> out, DType dtype) {
    copy_elements(dtype, out.data(), where);
    return out;
  };
  const auto count = static_cast<std::size_t>(element_count(where));
  if constexpr (std::is_same_v<T, bool>) {
    // std::vector<bool> packs bits: go through bytes.
    std::vector<unsigned char> bytes = read(std::vector<unsigned char>(count), DType::bool_);
    return std::vector<bool>(bytes.begin(), bytes.end());
  } else if constexpr (inside::Element<T>) {
    return read(std::vector<T>(count), dtype_of<T>);
  } else {
    static_assert(inside::Number<T>, "elements are read as an arithmetic type, Half or BFloat16");
    std::vector<T> out;
    out.reserve(count);
    if (is_floating(dtype(where)))
      for (double value : read(std::vector<double>(count), DType::f64)) out.push_back(inside::narrowed<T>(value));
    else
      for (std::int64_t value : read(std::vector<std::int64_t>(count), DType::i64))
        out.push_back(static_cast<T>(value));
    return out;
  }
}

// --- creation

namespace creation {
/// A tensor of `count` elements copied from `data`; UserError if the shape has another number of elements.
STET_API Tensor copied(DType dtype, const void* data, std::size_t count, const Shape& shape, Where where);
STET_API Tensor ragged(Where where);  // throws: rows of a nested list differ in length
/// The tensor, which nobody else holds, as a number: beside others it takes their type.
STET_API Tensor as_number(Tensor tensor);

template <class T>
inline constexpr bool is_list = false;
template <class T, class A>
inline constexpr bool is_list<std::vector<T, A>> = true;
template <class T, std::size_t count>
inline constexpr bool is_list<std::array<T, count>> = true;
template <class T>
struct ElementOf {
  using type = T;
};
template <class T>
requires is_list<T>
struct ElementOf<T> : ElementOf<typename T::value_type> {
};
/// Vectors and arrays, of each other to any depth, of elements.
template <class T>
concept NestedList = is_list<T> &&
    (inside::Element<typename ElementOf<T>::type> || inside::Number<typename ElementOf<T>::type>);

/// What the elements of a list are kept in on their way to a tensor, and the dtype that they have there.
template <class E>
struct Stored {
  using type = E;
  static constexpr DType dtype = dtype_of<E>;
};
template <>
struct Stored<bool> {
  using type = unsigned char;  // a vector<bool> has no elements to point at
  static constexpr DType dtype = DType::bool_;
};
template <inside::Number E>
requires(!inside::Element<E>) struct Stored<E> : Stored<inside::Held<E>> {
};

/// The sizes of a nested list, as its first entries have them.
template <class T>
void add_sizes(const T* list, std::vector<std::int64_t>& sizes) {
  if constexpr (is_list<T>) {
    sizes.push_back(list ? static_cast<std::int64_t>(list->size()) : 0);
    if constexpr (is_list<typename T::value_type>) add_sizes(list && !list->empty() ? &(*list)[0] : nullptr, sizes);
  }
}
/// Appends the elements in row-major order; false if a list has another length than `sizes` says.
template <class T, class S>
bool add_elements(const T& list, const std::int64_t* sizes, std::vector<S>& out, Where where) {
  if (static_cast<std::int64_t>(list.size()) != *sizes) return false;
  if constexpr (is_list<typename T::value_type>) {
    for (const auto& part : list)
      if (!add_elements(part, sizes + 1, out, where)) return false;
  } else if constexpr (inside::Element<typename T::value_type>) {
    out.insert(out.end(), list.begin(), list.end());
  } else {
    for (auto number : list) out.push_back(inside::held(number, where));
  }
  return true;
}

/// One of a list of numbers that are not all of one C++ type.
class AnyNumber {
 public:
  template <inside::Number T>
  AnyNumber(T value) : real(static_cast<double>(value)), dtype(dtype_of<inside::Held<T>>) {
    if constexpr (!std::is_floating_point_v<T>) {
      integer = static_cast<std::int64_t>(value);
      beyond_i64 = std::is_unsigned_v<T> && integer < 0;
    }
  }
  double real;
  std::int64_t integer = 0;
  bool beyond_i64 = false;
  DType dtype;
};
/// In the type that the numbers' types promote to; UserError for one that i64 does not hold.
STET_API Tensor of_numbers(const std::vector<AnyNumber>& numbers, const Shape& shape, Where where);
}  // namespace creation

/// A tensor without axes that has its own type, as every tensor of tensor().
template <inside::Number T>
Tensor tensor(T value, Where where = Where::here()) {
  const inside::Held<T> held = inside::held(value, where);
  return creation::copied(dtype_of<inside::Held<T>>, &held, 1, Shape(), where);
}
template <inside::Element T>
Tensor tensor(std::initializer_list<T> values, Where where = Where::here()) {
  return creation::copied(dtype_of<T>, values.begin(), values.size(), {static_cast<std::int64_t>(values.size())},
                          where);
}
template <inside::Element T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> rows, Where where = Where::here()) {
  std::size_t columns = rows.size() ? rows.begin()->size() : 0;
  std::vector<unsigned char> bytes;
  for (auto row : rows) {
    if (row.size() != columns) return creation::ragged(where);
    auto* first = reinterpret_cast<const unsigned char*>(row.begin());
    bytes.insert(bytes.end(), first, first + row.size() * sizeof(T));
  }
  return creation::copied(dtype_of<T>, bytes.data(), bytes.size() / sizeof(T),
                          {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns)}, where);
}
template <inside::Element T>
Tensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> blocks,
              Where where = Where::here()) {
  std::size_t rows = blocks.size() ? blocks.begin()->size() : 0;
  std::size_t columns = rows ? blocks.begin()->begin()->size() : 0;
  std::vector<unsigned char> bytes;
  for (auto block : blocks) {
    if (block.size() != rows) return creation::ragged(where);
    for (auto row : block) {
      if (row.size() != columns) return creation::ragged(where);
      auto* first = reinterpret_cast<const unsigned char*>(row.begin());
      bytes.insert(bytes.end(), first, first + row.size() * sizeof(T));
    }
  }
  return creation::copied(
      dtype_of<T>, bytes.data(), bytes.size() / sizeof(T),
      {static_cast<std::int64_t>(blocks.size()), static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)},
      where);
}
/// Numbers of several types: the type that theirs promote to, tensor({1, 2.5f}) is f32.
inline Tensor tensor(std::initializer_list<creation::AnyNumber> values, Where where = Where::here()) {
  return creation::of_numbers(values, {static_cast<std::int64_t>(values.size())}, where);
}
inline Tensor tensor(std::initializer_list<std::initializer_list<creation::AnyNumber>> rows,
                     Where where = Where::here()) {
  std::size_t columns = rows.size() ? rows.begin()->size() : 0;
  std::vector<creation::AnyNumber> numbers;
  for (auto row : rows) {
    if (row.size() != columns) return creation::ragged(where);
    numbers.insert(numbers.end(), row.begin(), row.end());
  }
  return creation::of_numbers(numbers, {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns)},
                              where);
}
/// A copy of a vector or array, or of vectors and arrays in each other, with one axis for each level. UserError if
/// those of one level differ in length.
template <creation::NestedList T>
Tensor tensor(const T& list, Where where = Where::here()) {
  using E = typename creation::ElementOf<T>::type;
  std::vector<std::int64_t> sizes;
  creation::add_sizes(&list, sizes);
  std::vector<typename creation::Stored<E>::type> elements;
  if (!creation::add_elements(list, sizes.data(), elements, where)) return creation::ragged(where);
  return creation::copied(creation::Stored<E>::dtype, elements.data(), elements.size(), Shape(sizes), where);
}
/// A copy of a vector in the given shape.
template <inside::Element T>
Tensor tensor(const std::vector<T>& values, const Shape& shape, Where where = Where::here()) {
  if constexpr (std::is_same_v<T, bool>) {
    std::vector<unsigned char> bytes(values.begin(), values.end());
    return creation::copied(DType::bool_, bytes.data(), bytes.size(), shape, where);
  } else {
    return creation::copied(dtype_of<T>, values.data(), values.size(), shape, where);
  }
}
template <class T>
requires inside::Element<std::remove_const_t<T>> Tensor tensor(std::span<T> values, const Shape& shape,
                                                               Where where = Where::here()) {
  return creation::copied(dtype_of<std::remove_const_t<T>>, values.data(), values.size(), shape, where);
}
/// A scalar with a size's value, i64.
STET_API Tensor tensor(const Dim& size, Where where = Where::here());

/// How the elements of foreign memory lie.
struct MemoryOptions {
  /// From one position of an axis to the next, in elements and 0 or more, one entry for each axis; empty: row-major
  /// without gaps.
  std::vector<std::int64_t> strides = {};
};
/// A tensor over memory of yours, not copied: it must hold what `shape` (and strides) say and stay unchanged until
/// `release(context)` is called, when the last tensor that uses it is gone. It may be called on any thread, and not at
/// all if this throws.
STET_API Tensor from_memory(DType dtype, const void* data, const Shape& shape, void (*release)(void* context),
                            void* context, const MemoryOptions& options = {}, Where where = Where::here());
/// The same with an owner of the memory, which is let go of then; null: the memory outlives all tensors.
STET_API Tensor from_memory(DType dtype, const void* data, const Shape& shape, std::shared_ptr<const void> owner,
                            const MemoryOptions& options = {}, Where where = Where::here());
namespace creation {
STET_API Tensor released(DType dtype, const void* data, const Shape& shape, std::function<void()> release,
                         const MemoryOptions& options, Where where);
}
/// The same with something to call then, which must not throw: `[file = std::move(file)] {}` keeps a file mapped.
template <class F>
requires(std::invocable<F&>&& std::copy_constructible<F>) Tensor
    from_memory(DType dtype, const void* data, const Shape& shape, F release, const MemoryOptions& options = {},
                Where where = Where::here()) {
  return creation::released(dtype, data, shape, std::move(release), options, where);
}

STET_API Tensor zeros(const Shape& shape, DType dtype = DType::f32, Where where = Where::here());
STET_API Tensor ones(const Shape& shape, DType dtype = DType::f32, Where where = Where::here());
/// `value` is converted to `dtype`; a value outside of it is a UserError.
STET_API Tensor full(const Shape& shape, double value, DType dtype = DType::f32, Where where = Where::here());
namespace creation {
STET_API Tensor full_of_integer(const Shape& shape, std::int64_t value, DType dtype, Where where);
}
/// The same of an integer, which is not rounded on its way.
template <std::integral I>
requires(sizeof(I) < 8 || std::is_signed_v<I>) Tensor
    full(const Shape& shape, I value, DType dtype = DType::f32, Where where = Where::here()) {
  return creation::full_of_integer(shape, static_cast<std::int64_t>(value), dtype, where);
}
/// 0, 1, …, count - 1, i64.
STET_API Tensor arange(const Dim& count, Where where = Where::here());
STET_API Tensor zeros_like(const Tensor& like, Where where = Where::here());
STET_API Tensor ones_like(const Tensor& like, Where where = Where::here());

}  // namespace stet
