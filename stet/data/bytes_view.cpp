#include "stet/data/bytes_view.h"

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"

namespace stet::data {

BytesView::BytesView(const Tensor& bytes, Where where) {
  if (!bytes.defined())
    throw UserError(error_text("bytes are expected, the tensor is undefined", where, "give a tensor u8[n]"));
  if (const TracedValue* traced = bytes.node()->traced.get(); traced && traced->life->trace)
    throw TraceError(error_text(
        text("the bytes of ", type_text(bytes), " do not exist while '", traced->life->function, "' is being traced"),
        where, "decode in map_host(), whose code is called for every element and not traced"));
  const TensorNode& given = concrete_node(bytes, "bytes of a tensor", where);
  if (given.dtype != DType::u8 || given.rank != 1)
    throw UserError(error_text(text("bytes are expected as u8[n], the tensor is ", given.dtype, given.shape()), where,
                               "give a record as text_lines, tfrecord or tensor(bytes) make it"));
  owner_ = on_host(bytes.contiguous(where));
  const TensorNode& node = *owner_.node();
  bytes_ = {reinterpret_cast<const char*>(node.data), static_cast<std::size_t>(node.sizes[0])};
}

}  // namespace stet::data
