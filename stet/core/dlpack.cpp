#include "stet/core/dlpack.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stet/base/text.h"
#include "stet/core/tensor_node.h"

namespace stet {
namespace {

using namespace dlpack;

// --- types

DLDataType type_for(DType dtype) {
  std::uint8_t code = code_float;
  if (dtype == DType::bool_)
    code = code_bool;
  else if (dtype == DType::bf16)
    code = code_bfloat;
  else if (is_integer(dtype))
    code = row(dtype).category == DTypeClass::unsigned_integer ? code_uint : code_int;
  return {code, static_cast<std::uint8_t>(8 * size_of(dtype)), 1};
}

std::optional<DType> type_of(DLDataType type) {
  for (const DTypeRow& one : dtype_table) {
    DLDataType known = type_for(one.dtype);
    if (known.code == type.code && known.bits == type.bits && known.lanes == type.lanes) return one.dtype;
  }
  return std::nullopt;
}

/// "uint of 16 bits", "complex of 64 bits", "float of 32 bits in 4 lanes".
std::string described(DLDataType type) {
  constexpr const char* names[] = {"int", "uint", "float", "opaque handle", "bfloat", "complex", "bool"};
  std::string out = type.code < std::size(names) ? std::string(names[type.code]) : text("type code ", int{type.code});
  out += text(" of ", int{type.bits}, " bits");
  return type.lanes == 1 ? out : text(out, " in ", int{type.lanes}, " lanes");
}

std::string described_device(DLDevice device) {
  constexpr const char* names[] = {"", "CPU",          "CUDA",   "CUDA host", "OpenCL", "",
                                   "", "Vulkan",       "Metal",  "VPI",       "ROCm",   "ROCm host",
                                   "", "CUDA managed", "oneAPI", "WebGPU",    "Hexagon"};
  const auto type = static_cast<std::size_t>(device.device_type);
  std::string name = type < std::size(names) && *names[type] ? names[type] : text("type ", device.device_type);
  return text("device ", name, ":", device.device_id);
}

[[noreturn]] void fail(const std::string& problem, const std::string& advice, Where where) {
  throw UserError(error_text(text("from_dlpack: ", problem), where, advice));
}

// --- out

/// A tensor lent to another library, with the sizes that the struct points to.
template <class Struct>
struct Lent {
  Tensor tensor;
  std::int64_t sizes[max_rank], strides[max_rank];
  Struct managed;
};

template <class Struct>
Struct* lend(const Tensor& x, const char* what, Where where) {
  const TensorNode& node = concrete_node(x, what, where);
  if (node.device())
    throw UserError(error_text(text(what, ": ", type_text(x), " lies on ", node.device()->name(), ", not in memory"),
                               where, "only tensors in the host's memory can be shared"));
  auto lent = std::make_unique<Lent<Struct>>();
  lent->tensor = x;
  std::copy_n(node.sizes, node.rank, lent->sizes);
  std::copy_n(node.strides, node.rank, lent->strides);
  lent->managed = Struct{};
  lent->managed.dl_tensor = {.data = node.data,
                             .device = {device_cpu, 0},
                             .ndim = node.rank,
                             .dtype = type_for(node.dtype),
                             .shape = lent->sizes,
                             .strides = lent->strides,
                             .byte_offset = 0};
  lent->managed.deleter = [](Struct* self) { delete static_cast<Lent<Struct>*>(self->manager_ctx); };
  lent->managed.manager_ctx = lent.get();
  return &lent.release()->managed;
}

// --- in

template <class Struct>
Tensor borrow(Struct* managed, Where where) {
  const DLTensor& tensor = managed->dl_tensor;
  if (tensor.device.device_type != device_cpu)
    fail(text("the tensor lies on ", described_device(tensor.device), ", not in the CPU's memory"),
         "copy it to the CPU before it is exported", where);
  std::optional<DType> dtype = type_of(tensor.dtype);
  if (!dtype)
    fail(text("there is no element type for ", described(tensor.dtype)),
         "convert it before it is exported, to one of bool, u8, i8, i16, i32, i64, f16, bf16, f32, f64", where);
  if (tensor.ndim < 0 || tensor.ndim > max_rank)
    fail(text("the tensor has ", tensor.ndim, " axes"), text("0 to ", max_rank, " are possible"), where);
  if (tensor.ndim > 0 && !tensor.shape) fail("the tensor has axes, but no sizes", "", where);
  std::vector<std::int64_t> sizes(tensor.shape, tensor.shape + tensor.ndim);
  for (std::int64_t size : sizes)
    if (size < 0) fail(text("the size ", size, " is negative"), "", where);
  MemoryOptions options;
  if (tensor.strides) options.strides.assign(tensor.strides, tensor.strides + tensor.ndim);
  // Of an axis with one element, or of no elements, a stride says nothing: libraries write what they like.
  bool empty = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
  for (std::size_t axis = 0; axis < options.strides.size(); ++axis) {
    if (sizes[axis] == 1 || empty) options.strides[axis] = 1;
    if (options.strides[axis] < 0)
      fail(text("the stride ", options.strides[axis], " of axis ", axis, " is negative"),
           "export a copy, for example x[::-1].copy() in NumPy", where);
  }
  const void* data =
      tensor.data ? static_cast<const std::byte*>(tensor.data) + tensor.byte_offset : static_cast<const void*>(nullptr);
  return creation::foreign(
      *dtype, data, Shape(sizes, where),
      [](void* context) {
        auto* own = static_cast<Struct*>(context);
        if (own->deleter) own->deleter(own);
      },
      managed, options, "from_dlpack", where);
}

}  // namespace

DLManagedTensor* to_dlpack(const Tensor& x, Where where) { return lend<DLManagedTensor>(x, "to_dlpack", where); }

DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& x, Where where) {
  auto* out = lend<DLManagedTensorVersioned>(x, "to_dlpack", where);
  out->version = {major_version, minor_version};
  out->flags = flag_read_only;
  return out;
}

Tensor from_dlpack(DLManagedTensor* managed, Where where) {
  if (!managed) fail("there is no tensor (a null pointer)", "", where);
  return borrow(managed, where);
}

Tensor from_dlpack(DLManagedTensorVersioned* managed, Where where) {
  if (!managed) fail("there is no tensor (a null pointer)", "", where);
  if (managed->version.major != major_version)
    fail(text("the tensor is of version ", managed->version.major, ".", managed->version.minor, " of DLPack"),
         text("ask its library for version ", major_version), where);
  return borrow(managed, where);
}

}  // namespace stet
