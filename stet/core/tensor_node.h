// The inside of a Tensor. Private to the library.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "stet/base/dtype.h"
#include "stet/base/inside.h"
#include "stet/base/shape.h"
#include "stet/core/tensor.h"
#include "stet/core/trace.h"
#include "stet/runtime/buffer.h"
#include "stet/runtime/device.h"

namespace stet {

struct TensorNode {
  mutable std::atomic<std::int32_t> holders{1};
  DType dtype = DType::f32;
  std::uint8_t rank = 0;
  bool dense = true;
  bool weak = false;           // made from numbers: beside tensors that are not, it takes their type
  bool made_in_trace = false;  // from host values, by code that was being traced: nobody outside knows it
  /// How tapes name it, also when it is gone: see identity_of. 0: no tape has met it.
  mutable std::atomic<std::uint64_t> identity{0};
  std::int64_t sizes[max_rank];
  std::int64_t strides[max_rank];  // in elements, never negative
  std::byte* data = nullptr;       // of element 0
  Buffer buffer;
  /// Of a value that does not exist yet: where it stands in its trace. Then sizes, strides and memory mean nothing.
  std::unique_ptr<TracedValue> traced;
  /// What goes along with it, for those who ask (companion.h). Set before the tensor is handed out, then left alone.
  Tensor companion;

  std::span<const std::int64_t> size_span() const { return {sizes, rank}; }
  std::span<const std::int64_t> stride_span() const { return {strides, rank}; }
  std::int64_t element_count() const {
    std::int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= sizes[i];
    return count;
  }
  /// One handle, which the caller has, is all that can see the elements, and they are a whole buffer: they may be
  /// overwritten. Another thread could take a second handle meanwhile only through the caller's.
  bool exclusive() const {
    return !traced && dense && holders.load(std::memory_order_acquire) == 1 && buffer.exclusive() &&
           data == buffer.data();
  }
  Shape shape() const { return traced ? traced->shape : Shape::of(size_span()); }
  /// Where its elements lie; null: on the host, or nowhere yet.
  Device* device() const { return buffer ? buffer.device() : nullptr; }
};

/// A node from this thread's free list, with one holder.
TensorNode* new_node();
/// A number that no other tensor of the process has or will have.
std::uint64_t identity_of(const TensorNode& node);
/// A dense tensor over a buffer that holds its elements.
Tensor dense_tensor(DType dtype, std::span<const std::int64_t> sizes, Buffer buffer);
/// Other sizes and strides over the same memory; `offset` in elements.
Tensor view_tensor(const TensorNode& of, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides,
                   std::int64_t offset);
/// The node of a tensor whose values exist; TraceError for a traced one, with what to do instead.
const TensorNode& concrete_node(const Tensor& tensor, const char* what, Where where);
/// The node, or UserError("undefined tensor") naming `what`.
const TensorNode& defined_node(const Tensor& tensor, const char* what, Where where);
/// What to do about an undefined tensor: it depends on where it came from.
std::string advice_for_undefined(const Tensor& tensor);

/// The tensor, or a copy of it, in the host's memory; in another device's memory. Not of a traced one.
Tensor on_host(const Tensor& tensor);
Tensor on_device(const Tensor& tensor, Device& device);

/// The device of the first that lies on one, or the host.
Device& device_of(std::span<const Tensor> tensors);

/// Two dense tensors of one dtype, one shape and the same bytes.
bool same_elements(const Tensor& a, const Tensor& b);

namespace creation {
/// from_memory() under another function's name.
Tensor foreign(DType dtype, const void* data, const Shape& shape, void (*release)(void*), void* context,
               const MemoryOptions& options, const char* what, Where where);
}  // namespace creation

/// An element's value, from any type to any type as cast does.
void convert_element(DType from, const void* source, DType to, void* target);

}  // namespace stet
