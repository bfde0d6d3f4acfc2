// Element types. One row of the table per type; everything that depends on a type asks the table.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <string_view>

#include "stet/base/export.h"

namespace stet {

enum class DType : std::uint8_t { bool_, u8, i8, i16, i32, i64, f16, bf16, f32, f64 };

inline constexpr DType bool_ = DType::bool_, u8 = DType::u8, i8 = DType::i8, i16 = DType::i16, i32 = DType::i32,
                       i64 = DType::i64, f16 = DType::f16, bf16 = DType::bf16, f32 = DType::f32, f64 = DType::f64;

enum class DTypeClass : std::uint8_t { boolean, unsigned_integer, signed_integer, floating };

struct DTypeRow {
  DType dtype;
  const char* name;
  DTypeClass category;
  int bytes;
  std::int64_t lowest;   // of integers and bool
  std::int64_t highest;  // of integers and bool
};

inline constexpr int dtype_count = 10;
inline constexpr DTypeRow dtype_table[dtype_count] = {
    {DType::bool_, "bool", DTypeClass::boolean, 1, 0, 1},
    {DType::u8, "u8", DTypeClass::unsigned_integer, 1, 0, 255},
    {DType::i8, "i8", DTypeClass::signed_integer, 1, -128, 127},
    {DType::i16, "i16", DTypeClass::signed_integer, 2, -32768, 32767},
    {DType::i32, "i32", DTypeClass::signed_integer, 4, INT32_MIN, INT32_MAX},
    {DType::i64, "i64", DTypeClass::signed_integer, 8, INT64_MIN, INT64_MAX},
    {DType::f16, "f16", DTypeClass::floating, 2, 0, 0},
    {DType::bf16, "bf16", DTypeClass::floating, 2, 0, 0},
    {DType::f32, "f32", DTypeClass::floating, 4, 0, 0},
    {DType::f64, "f64", DTypeClass::floating, 8, 0, 0},
};

constexpr const DTypeRow& row(DType d) { return dtype_table[static_cast<int>(d)]; }
constexpr std::string_view name(DType d) { return row(d).name; }
constexpr int size_of(DType d) { return row(d).bytes; }
constexpr bool is_floating(DType d) { return row(d).category == DTypeClass::floating; }
/// Integers, not bool.
constexpr bool is_integer(DType d) {
  return row(d).category == DTypeClass::signed_integer || row(d).category == DTypeClass::unsigned_integer;
}

/// The type of a mixed operation, as JAX promotes: the least upper bound in its lattice (u8 with i8 is i16, f16 with
/// bf16 is f32, an integer with a floating type is that floating type, bool gives way to all).
STET_API DType promote(DType a, DType b);
/// What f16 and bf16 compute in: f32. Every other type computes in itself.
constexpr DType compute_type(DType d) { return d == DType::f16 || d == DType::bf16 ? DType::f32 : d; }
/// What a sum accumulates into and returns: bool and 8- and 16-bit integers give i32.
constexpr DType sum_type(DType d) { return is_floating(d) || d == DType::i64 ? d : DType::i32; }
/// The floating type of an op that needs one: floating types as they are, integers and bool give f32.
constexpr DType floating_type(DType d) { return is_floating(d) ? d : DType::f32; }

STET_API std::ostream& operator<<(std::ostream&, DType);
STET_API void append_text(std::string& out, DType);

/// IEEE binary16 and bfloat16 as C++ values: storage with conversions, nothing more.
struct Half {
  std::uint16_t bits = 0;
  Half() = default;
  STET_API explicit Half(float value);  // rounds to nearest even
  STET_API explicit operator float() const;
  bool operator==(const Half&) const = default;
};
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  STET_API explicit BFloat16(float value);  // rounds to nearest even
  STET_API explicit operator float() const;
  bool operator==(const BFloat16&) const = default;
};

/// The DType of a C++ element type; only the types listed here are element types.
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::bool_;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct DTypeOf<std::int16_t> {
  static constexpr DType value = DType::i16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<long> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<long long> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<Half> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;
namespace inside {
template <class T>
concept Element = requires {
  DTypeOf<T>::value;
};
}  // namespace inside

}  // namespace stet
