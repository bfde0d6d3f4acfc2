#include "stet/keras/tensor_bytes.h"

#include <cstdint>

#include "stet/base/dtype.h"

namespace stet::keras {
namespace {

/// Calls f with a value of the C++ type that has this element type.
template <class F>
auto with_type(DType dtype, F f) {
  switch (dtype) {
    case DType::bool_:
      return f(bool{});
    case DType::u8:
      return f(std::uint8_t{});
    case DType::i8:
      return f(std::int8_t{});
    case DType::i16:
      return f(std::int16_t{});
    case DType::i32:
      return f(std::int32_t{});
    case DType::i64:
      return f(std::int64_t{});
    case DType::f16:
      return f(Half{});
    case DType::bf16:
      return f(BFloat16{});
    case DType::f32:
      return f(float{});
    case DType::f64:
      break;
  }
  return f(double{});
}

}  // namespace

std::span<const std::byte> bytes_of(const Tensor& tensor, Where where) {
  const void* data =
      with_type(tensor.dtype(), [&](auto type) -> const void* { return tensor.data<decltype(type)>(where); });
  const auto count = static_cast<std::size_t>(tensor.size(where).value(where));
  return {static_cast<const std::byte*>(data), count * static_cast<std::size_t>(size_of(tensor.dtype()))};
}

}  // namespace stet::keras
