// In: an operand of an op, for the length of one call.
#pragma once
#include <cstdint>
#include <type_traits>

#include "stet/base/dim.h"
#include "stet/base/where.h"
#include "stet/core/tensor.h"
#include "stet/core/variable.h"

namespace stet {

/// A number that is an input of the program, where a C++ number would be part of the trace: `Scalar rate` as a
/// parameter takes any real (or, called with one, any integer) without tracing again. In ops it behaves like a C++
/// number: it takes the other operands' type. It is a Tensor made from a double or std::int64_t, and nothing more.
class Scalar {
 public:
  template <inside::Number T>
  Scalar(T value)
      : value_(std::is_floating_point_v<T> ? Tensor(static_cast<double>(value))
                                           : Tensor(static_cast<std::int64_t>(value))) {}
  /// A tensor made from a double or std::int64_t.
  explicit Scalar(Tensor value) : value_(std::move(value)) {}
  const Tensor& tensor() const { return value_; }

 private:
  Tensor value_;
};

/// A tensor, the value of a Variable, a size or a C++ number, with the line it was written on. Never allocates. A
/// number stays a number: it takes the other operands' type, as docs/numbers.md says.
class In {
 public:
  enum class Kind : std::uint8_t { tensor, size, integer, real };

  In(const Tensor& t, Where w = Where::here()) : kind_(Kind::tensor), where_(w) { value_.tensor = &t; }
  In(const Variable& v, Where w = Where::here()) : kind_(Kind::tensor), where_(w), read_(v.read(w)) {
    value_.tensor = nullptr;
  }
  In(const Scalar& s, Where w = Where::here()) : In(s.tensor(), w) {}
  In(const Dim& d, Where w = Where::here()) : kind_(Kind::size), dtype_(DType::i64), where_(w) { value_.size = &d; }
  template <inside::Number T>
  In(T v, Where w = Where::here())
      : kind_(std::is_floating_point_v<T> ? Kind::real : Kind::integer), dtype_(type_of<T>()), where_(w) {
    if constexpr (std::is_floating_point_v<T>)
      value_.real = static_cast<double>(v);
    else {
      value_.integer = static_cast<std::int64_t>(v);
      if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) beyond_i64_ = value_.integer < 0;
    }
  }

  Kind kind() const { return kind_; }
  bool is_number() const { return kind_ == Kind::integer || kind_ == Kind::real; }
  const Tensor& tensor() const { return value_.tensor ? *value_.tensor : read_; }
  const Dim& size() const { return *value_.size; }
  std::int64_t integer() const { return value_.integer; }
  double real() const { return value_.real; }
  /// integer() is the lower half of an unsigned number that i64 does not hold.
  bool beyond_i64() const { return beyond_i64_; }
  /// Of a tensor its rank; 0 for numbers and undefined tensors.
  int rank() const { return kind_ == Kind::tensor && tensor().defined() ? tensor().rank() : 0; }
  /// Of a number: the type it has when no tensor gives it one.
  DType dtype() const { return dtype_; }
  Where where() const { return where_; }

 private:
  template <class T>
  static constexpr DType type_of() {
    if constexpr (std::is_same_v<T, bool>)
      return DType::bool_;
    else if constexpr (std::is_floating_point_v<T>)
      return sizeof(T) == 4 ? DType::f32 : DType::f64;
    else
      return sizeof(T) > 4 || (sizeof(T) == 4 && std::is_unsigned_v<T>) ? DType::i64 : DType::i32;
  }

  Kind kind_;
  DType dtype_ = DType::f32;
  bool beyond_i64_ = false;
  union {
    const Tensor* tensor;
    const Dim* size;
    std::int64_t integer;
    double real;
  } value_;
  Where where_;
  Tensor read_;  // what a Variable held
};

}  // namespace stet
