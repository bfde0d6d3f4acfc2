#include "stet/files/hdf5.h"

#include <algorithm>
#include <cstring>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/files/hdf5_inside.h"

namespace stet::files {

Hdf5Type Hdf5Type::of(DType dtype) {
  auto bytes = static_cast<std::uint32_t>(size_of(dtype));
  if (dtype == DType::bf16) return {Hdf5Kind::opaque, bytes};
  switch (row(dtype).category) {
    case DTypeClass::boolean:
      return {Hdf5Kind::boolean, bytes};
    case DTypeClass::unsigned_integer:
      return {Hdf5Kind::unsigned_integer, bytes};
    case DTypeClass::signed_integer:
      return {Hdf5Kind::signed_integer, bytes};
    case DTypeClass::floating:
      break;
  }
  return {Hdf5Kind::floating, bytes};
}

std::optional<DType> Hdf5Type::dtype() const {
  if (kind == Hdf5Kind::bfloat) return DType::bf16;
  for (const DTypeRow& row : dtype_table) {
    Hdf5Type same = of(row.dtype);
    if (row.dtype != DType::bf16 && same.kind == kind && same.bytes == bytes) return row.dtype;
  }
  return std::nullopt;
}

std::string Hdf5Type::str() const {
  switch (kind) {
    case Hdf5Kind::boolean:
      return "bool";
    case Hdf5Kind::signed_integer:
      return text("i", bytes * 8);
    case Hdf5Kind::unsigned_integer:
      return text("u", bytes * 8);
    case Hdf5Kind::floating:
      return text("f", bytes * 8);
    case Hdf5Kind::bfloat:
      return "bf16";
    case Hdf5Kind::opaque:
      return text(bytes, " opaque bytes");
    case Hdf5Kind::fixed_string:
      return text("a string of ", bytes, " bytes");
    case Hdf5Kind::string:
      break;
  }
  return "a string";
}

namespace {

template <class T>
T first_of(const Bytes& data) {
  T value;
  std::memcpy(&value, data.data(), sizeof value);
  return value;
}

}  // namespace

std::optional<std::int64_t> Hdf5Attribute::if_integer() const {
  if (type.is_string() || data.size() != type.bytes) return std::nullopt;
  const bool is_signed = type.kind == Hdf5Kind::signed_integer;
  if (!is_signed && type.kind != Hdf5Kind::unsigned_integer && type.kind != Hdf5Kind::boolean) return std::nullopt;
  switch (type.bytes) {
    case 1:
      return is_signed ? first_of<std::int8_t>(data) : first_of<std::uint8_t>(data);
    case 2:
      return is_signed ? first_of<std::int16_t>(data) : first_of<std::uint16_t>(data);
    case 4:
      return is_signed ? std::int64_t{first_of<std::int32_t>(data)} : std::int64_t{first_of<std::uint32_t>(data)};
    default:
      auto value = first_of<std::int64_t>(data);
      return is_signed || value >= 0 ? std::optional(value) : std::nullopt;
  }
}

std::optional<double> Hdf5Attribute::if_real() const {
  if (type.kind != Hdf5Kind::floating || data.size() != type.bytes) return std::nullopt;
  if (type.bytes == 8) return first_of<double>(data);
  if (type.bytes == 4) return first_of<float>(data);
  return static_cast<float>(first_of<Half>(data));
}

const Hdf5Node* Hdf5Node::find(std::string_view path) const {
  const Hdf5Node* node = this;
  while (!path.empty()) {
    std::size_t slash = path.find('/');
    auto found = node->by_name_.find(path.substr(0, slash));
    if (found == node->by_name_.end()) return nullptr;
    node = &node->children_[found->second];
    if (slash == std::string_view::npos) return node;
    path.remove_prefix(slash + 1);
    if (path.empty()) return nullptr;
  }
  return node;
}

const Hdf5Attribute* Hdf5Node::attribute(std::string_view name) const {
  for (const Hdf5Attribute& attribute : attributes_)
    if (attribute.name == name) return &attribute;
  return nullptr;
}

std::optional<DType> Hdf5Node::dtype() const {
  if (!dataset_) return std::nullopt;
  if (type_.kind == Hdf5Kind::opaque && type_.bytes == 2) {
    const Hdf5Attribute* said = attribute("dtype");
    if (said && said->if_string() && *said->if_string() == "bfloat16") return DType::bf16;
  }
  return type_.dtype();
}

namespace hdf5 {

std::uint32_t lookup3(std::span<const std::byte> bytes) {
  auto rotated = [](std::uint32_t x, int k) { return x << k | x >> (32 - k); };
  auto word = [&](std::size_t at) {
    // The last words are filled up with zeros.
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, std::min<std::size_t>(4, bytes.size() - at));
    return value;
  };
  std::uint32_t a = 0xdeadbeef + static_cast<std::uint32_t>(bytes.size()), b = a, c = a;
  std::size_t at = 0;
  for (; bytes.size() - at > 12; at += 12) {
    a += word(at), b += word(at + 4), c += word(at + 8);
    a -= c, a ^= rotated(c, 4), c += b;
    b -= a, b ^= rotated(a, 6), a += c;
    c -= b, c ^= rotated(b, 8), b += a;
    a -= c, a ^= rotated(c, 16), c += b;
    b -= a, b ^= rotated(a, 19), a += c;
    c -= b, c ^= rotated(b, 4), b += a;
  }
  const std::size_t left = bytes.size() - at;
  if (left == 0) return c;
  a += word(at);
  if (left > 4) b += word(at + 4);
  if (left > 8) c += word(at + 8);
  c ^= b, c -= rotated(b, 14);
  a ^= c, a -= rotated(c, 11);
  b ^= a, b -= rotated(a, 25);
  c ^= b, c -= rotated(b, 16);
  a ^= c, a -= rotated(c, 4);
  b ^= a, b -= rotated(a, 14);
  c ^= b, c -= rotated(b, 24);
  return c;
}

std::uint32_t fletcher(std::span<const std::byte> bytes) {
  std::uint32_t sum1 = 0, sum2 = 0;
  auto reduce = [&] {
    sum1 = (sum1 & 0xFFFF) + (sum1 >> 16);
    sum2 = (sum2 & 0xFFFF) + (sum2 >> 16);
  };
  // 360 pairs are what the sums hold.
  std::size_t at = 0;
  for (std::size_t pairs = bytes.size() / 2; pairs > 0;) {
    std::size_t some = std::min<std::size_t>(pairs, 360);
    pairs -= some;
    for (; some > 0; --some, at += 2) {
      sum1 += std::to_integer<std::uint32_t>(bytes[at]) << 8 | std::to_integer<std::uint32_t>(bytes[at + 1]);
      sum2 += sum1;
    }
    reduce();
  }
  if (at < bytes.size()) {
    sum1 += std::to_integer<std::uint32_t>(bytes[at]) << 8;
    sum2 += sum1;
    reduce();
  }
  reduce();
  return sum2 << 16 | sum1;
}

}  // namespace hdf5
}  // namespace stet::files
