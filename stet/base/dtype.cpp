#include "stet/base/dtype.h"

#include <algorithm>
#include <bit>
#include <ostream>
#include <string>

namespace stet {

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (a > b) std::swap(a, b);
  // In the order of the enumeration each type promotes to the greater of the two, with these exceptions.
  if (a == u8 && b == i8) return i16;
  if (a == f16 && b == bf16) return f32;
  return b;
}

std::ostream& operator<<(std::ostream& out, DType d) { return out << name(d); }

void append_text(std::string& out, DType d) { out += name(d); }

// Conversions behave as the hardware's do, so that host code and generated code agree in every bit: ties to even,
// overflow to infinity, NaN quiet with its leading payload bits.
Half::Half(float value) {
  const std::uint32_t pattern = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (pattern >> 16) & 0x8000u;
  const std::uint32_t magnitude = pattern & 0x7fffffffu;
  std::uint32_t result;
  if (magnitude > 0x7f800000u) {
    result = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x477ff000u) {  // from 65520, halfway between the largest Half and 2^16
    result = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // normal Half, from 2^-14
    const std::uint32_t rebiased = magnitude - ((127u - 15u) << 23);
    result = (rebiased + 0xfffu + ((rebiased >> 13) & 1u)) >> 13;
  } else if (magnitude > 0x33000000u) {  // subnormal Half, above 2^-25, which is halfway to the smallest one
    const std::uint32_t exponent = magnitude >> 23;
    const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const std::uint32_t shift = 126u - exponent;  // 14 to 24
    const std::uint32_t kept = mantissa >> shift;
    const std::uint32_t rest = mantissa & ((1u << shift) - 1u);
    const std::uint32_t half = 1u << (shift - 1u);
    result = kept + (rest > half || (rest == half && (kept & 1u)) ? 1u : 0u);
  } else {
    result = 0;
  }
  bits = static_cast<std::uint16_t>(sign | result);
}

Half::operator float() const {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  std::uint32_t magnitude;
  if (exponent == 0x1f) {
    magnitude = 0x7f800000u | (mantissa << 13) | (mantissa ? 0x400000u : 0u);
  } else if (exponent != 0) {
    magnitude = ((exponent + 112u) << 23) | (mantissa << 13);
  } else {
    // A subnormal is mantissa * 2^-24, exactly, in a float.
    magnitude = std::bit_cast<std::uint32_t>(static_cast<float>(mantissa) * 0x1p-24f);
  }
  return std::bit_cast<float>(sign | magnitude);
}

BFloat16::BFloat16(float value) {
  const std::uint32_t pattern = std::bit_cast<std::uint32_t>(value);
  if ((pattern & 0x7fffffffu) > 0x7f800000u) {
    bits = static_cast<std::uint16_t>((pattern >> 16) | 0x40u);
  } else {
    bits = static_cast<std::uint16_t>((pattern + 0x7fffu + ((pattern >> 16) & 1u)) >> 16);
  }
}

BFloat16::operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

}  // namespace stet
