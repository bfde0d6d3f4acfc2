// Tensors shared with other libraries through DLPack, without copying.
//
// The structs are DLPack 1.0's, whose layout is the same in every library. They stand in a namespace of their own, so
// that a program may include <dlpack/dlpack.h> too: the functions below take its types as well, and give them when
// asked: to_dlpack<DLManagedTensor>(x).
#pragma once
#include <cstdint>
#include <type_traits>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/tensor.h"

namespace stet {
namespace dlpack {

enum DeviceType : std::int32_t { device_cpu = 1 };
enum TypeCode : std::uint8_t {
  code_int = 0,
  code_uint = 1,
  code_float = 2,
  code_opaque = 3,
  code_bfloat = 4,
  code_complex = 5,
  code_bool = 6
};
inline constexpr std::uint32_t major_version = 1, minor_version = 0;
/// Of DLManagedTensorVersioned::flags.
inline constexpr std::uint64_t flag_read_only = 1, flag_is_copied = 2;

struct DLDevice {
  std::int32_t device_type;
  std::int32_t device_id;
};
struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: row-major without gaps
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};
struct DLPackVersion {
  std::uint32_t major;
  std::uint32_t minor;
};
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  std::uint64_t flags;
  DLTensor dl_tensor;
};
static_assert(sizeof(void*) == 8 && sizeof(DLTensor) == 48 && sizeof(DLManagedTensor) == 64 &&
              sizeof(DLManagedTensorVersioned) == 80);

/// Another declaration of DLManagedTensor or of DLManagedTensorVersioned, such as <dlpack/dlpack.h>'s.
template <class T>
concept Managed = requires(T& t) {
  t.dl_tensor.byte_offset;
  t.manager_ctx;
  t.deleter(&t);
};
template <class T>
concept VersionedManaged = Managed<T> && requires(T& t) {
  t.version.major;
  t.flags;
};

}  // namespace dlpack

/// The tensor's memory for another library, shared: it stays alive until the consumer calls the deleter, once. Tensors
/// do not change, so the consumer must not write into it (the versioned struct has the flag that says so). UserError
/// for a tensor that does not lie in the host's memory, TraceError for a traced one.
STET_API dlpack::DLManagedTensor* to_dlpack(const Tensor& x, Where where = Where::here());
STET_API dlpack::DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& x, Where where = Where::here());

/// A tensor over the memory of another library, not copied; the deleter is called when the last tensor that uses it is
/// gone, on any thread. The memory must stay unchanged until then. UserError for what has no tensor here, named with
/// what to do: another device than the CPU, complex and other types that stet has not, several lanes, negative strides,
/// another major version. Whoever called this still owns `managed` if it throws.
STET_API Tensor from_dlpack(dlpack::DLManagedTensor* managed, Where where = Where::here());
STET_API Tensor from_dlpack(dlpack::DLManagedTensorVersioned* managed, Where where = Where::here());

/// The same with another library's declaration of the structs.
template <dlpack::Managed T>
T* to_dlpack(const Tensor& x, Where where = Where::here()) {
  if constexpr (dlpack::VersionedManaged<T>) {
    static_assert(sizeof(T) == sizeof(dlpack::DLManagedTensorVersioned));
    return reinterpret_cast<T*>(to_dlpack_versioned(x, where));
  } else {
    static_assert(sizeof(T) == sizeof(dlpack::DLManagedTensor));
    return reinterpret_cast<T*>(to_dlpack(x, where));
  }
}
template <dlpack::Managed T>
Tensor from_dlpack(T* managed, Where where = Where::here()) {
  if constexpr (dlpack::VersionedManaged<T>) {
    static_assert(sizeof(T) == sizeof(dlpack::DLManagedTensorVersioned));
    return from_dlpack(reinterpret_cast<dlpack::DLManagedTensorVersioned*>(managed), where);
  } else {
    static_assert(sizeof(T) == sizeof(dlpack::DLManagedTensor));
    return from_dlpack(reinterpret_cast<dlpack::DLManagedTensor*>(managed), where);
  }
}

}  // namespace stet
