#include "stet/data/stack.h"

#include <algorithm>
#include <cstring>

#include "stet/base/error.h"
#include "stet/base/text.h"

namespace stet::data {

Buffer memory_for_rows(std::int64_t rows, std::int64_t row_bytes, DType dtype, std::span<const std::int64_t> row_sizes,
                       Where where, const char* stage) {
  std::int64_t bytes;
  auto what = [&] { return text(rows, " elements of ", dtype, Shape::of(row_sizes)); };
  if (__builtin_mul_overflow(rows, row_bytes, &bytes))
    throw UserError(error_text(text(stage, ": ", what(), " are too large"), where, "make the batch smaller"));
  try {
    return Buffer::allocate(static_cast<std::size_t>(bytes));
  } catch (const Problem& problem) {
    throw UserError(error_text(text(stage, ": ", problem.text(), ", for ", what()), where, "make the batch smaller"));
  }
}

Tensor stacked(std::int64_t rows, DType dtype, std::span<const std::int64_t> row_sizes, Buffer buffer, Where where,
               const char* stage) {
  if (row_sizes.size() == max_rank)
    throw UserError(error_text(
        text(stage, ": an element is ", dtype, Shape::of(row_sizes), ", a batch would have ", max_rank + 1, " axes"),
        where, text("at most ", max_rank, " are possible; reshape elements in map")));
  std::int64_t sizes[max_rank] = {rows};
  std::copy(row_sizes.begin(), row_sizes.end(), sizes + 1);
  return dense_tensor(dtype, {sizes, row_sizes.size() + 1}, std::move(buffer));
}

void Stack::begin(const Tensors& first) {
  for (const Tensor& tensor : first) {
    const TensorNode& node = concrete_node(tensor, stage_, where_);
    std::int64_t bytes = node.element_count() * size_of(node.dtype);
    components_.push_back({node.dtype,
                           {node.sizes, node.sizes + node.rank},
                           bytes,
                           memory_for_rows(capacity_, bytes, node.dtype, node.size_span(), where_, stage_)});
  }
}

void Stack::grow() {
  capacity_ *= 2;
  for (Component& component : components_) {
    Buffer larger =
        memory_for_rows(capacity_, component.row_bytes, component.dtype, std::span(component.sizes), where_, stage_);
    if (component.row_bytes)
      std::memcpy(larger.data(), component.buffer.data(), static_cast<std::size_t>(count_ * component.row_bytes));
    component.buffer = std::move(larger);
  }
}

void Stack::check(std::size_t number, const TensorNode& node) const {
  const Component& component = components_[number];
  if (node.dtype == component.dtype && std::ranges::equal(node.size_span(), component.sizes)) return;
  throw UserError(error_text(
      text(stage_, ": component ", number, " of element ", before_ + count_, " is ", node.dtype, node.shape(),
           ", of element ", before_, ", the first of the batch, ", component.dtype, Shape(component.sizes)),
      where_,
      node.dtype == component.dtype
          ? "elements of one batch have one shape: cut or pad them in map, or use padded_batch"
          : "elements of one batch have one dtype: cast them before"));
}

void Stack::add(const Tensors& element) {
  if (components_.empty()) begin(element);
  if (count_ == capacity_) grow();
  for (std::size_t i = 0; i < components_.size(); ++i) {
    const TensorNode& given = concrete_node(element[i], stage_, where_);
    check(i, given);
    const std::int64_t bytes = components_[i].row_bytes;
    if (bytes == 0) continue;
    Tensor packed = on_host(given.dense ? element[i] : element[i].contiguous(where_));
    std::memcpy(components_[i].buffer.data() + count_ * bytes, packed.node()->data, static_cast<std::size_t>(bytes));
  }
  ++count_;
}

void Stack::finish(Tensors& out) {
  out.clear();
  for (Component& component : components_)
    out.push_back(
        stacked(count_, component.dtype, std::span(component.sizes), std::move(component.buffer), where_, stage_));
}

}  // namespace stet::data
