// Elements as unsigned integers that are ordered like them.
#pragma once
#include <cstdint>
#include <cstring>

#include "stet/base/dtype.h"
#include "stet/base/error.h"

namespace stet::cpu {

/// How elements of one type, held in words of their size, become keys. Equal elements have equal keys: those of -0 and
/// 0 are one, and so are those of all NaN, the greatest key there is.
template <class W, DTypeClass category, W infinity = 0>
struct Ordering {
  using Word = W;
  static constexpr int bits = 8 * static_cast<int>(sizeof(W));
  static constexpr bool floating = category == DTypeClass::floating;
  static constexpr W sign = static_cast<W>(W{1} << (bits - 1));
  static constexpr W highest = static_cast<W>(~W{0});

  static W key(W word) {
    if constexpr (floating) {
      const W magnitude = static_cast<W>(word & ~sign);
      const W negative = static_cast<W>(W{0} - static_cast<W>(word >> (bits - 1)));
      W key = static_cast<W>(word ^ static_cast<W>(negative | sign));
      key = magnitude == 0 ? sign : key;
      return magnitude > infinity ? highest : key;
    } else if constexpr (category == DTypeClass::signed_integer) {
      return static_cast<W>(word ^ sign);
    } else {
      return word;
    }
  }
  /// An element that has this key; the only one unless the key is of several().
  static W word(W key) {
    if constexpr (floating)
      return static_cast<W>(key & sign ? key ^ sign : ~key);
    else if constexpr (category == DTypeClass::signed_integer)
      return static_cast<W>(key ^ sign);
    else
      return key;
  }
  /// The key belongs to more than one element: zero's and NaN's.
  static bool several(W key) { return floating && (key == sign || key == highest); }
  /// word(key(word)) may differ from word.
  static bool special(W word) { return floating && (word == sign || static_cast<W>(word & ~sign) > infinity); }
};

/// One word of memory that may hold any type.
template <class W>
inline W load_word(const void* from, std::int64_t index) {
  W word;
  std::memcpy(&word, static_cast<const unsigned char*>(from) + index * static_cast<std::int64_t>(sizeof(W)), sizeof(W));
  return word;
}
template <class W>
inline void store_word(void* to, std::int64_t index, W word) {
  std::memcpy(static_cast<unsigned char*>(to) + index * static_cast<std::int64_t>(sizeof(W)), &word, sizeof(W));
}

/// Calls body(Ordering<…>{}) with the ordering of a dtype.
template <class Body>
void with_ordering(DType dtype, const Body& body) {
  using enum DTypeClass;
  switch (dtype) {
    case DType::bool_:
    case DType::u8:
      return body(Ordering<std::uint8_t, unsigned_integer>{});
    case DType::i8:
      return body(Ordering<std::uint8_t, signed_integer>{});
    case DType::i16:
      return body(Ordering<std::uint16_t, signed_integer>{});
    case DType::i32:
      return body(Ordering<std::uint32_t, signed_integer>{});
    case DType::i64:
      return body(Ordering<std::uint64_t, signed_integer>{});
    case DType::f16:
      return body(Ordering<std::uint16_t, floating, 0x7C00>{});
    case DType::bf16:
      return body(Ordering<std::uint16_t, floating, 0x7F80>{});
    case DType::f32:
      return body(Ordering<std::uint32_t, floating, 0x7F80'0000>{});
    case DType::f64:
      return body(Ordering<std::uint64_t, floating, 0x7FF0'0000'0000'0000>{});
  }
  throw InternalError("sort: no such dtype");
}

}  // namespace stet::cpu
