// Stack: elements copied one after the other, each component into one buffer. What a batch is made of when its elements
// exist.
#pragma once
#include <cstdint>
#include <vector>

#include "stet/core/tensor_node.h"
#include "stet/data/element.h"

namespace stet::data {

/// Memory for `rows` rows of a batch; a UserError with their type and number when there is none. `stage` is what errors
/// call it.
Buffer memory_for_rows(std::int64_t rows, std::int64_t row_bytes, DType dtype, std::span<const std::int64_t> row_sizes,
                       Where where, const char* stage = "batch");
/// A tensor of `rows` rows over a buffer that holds at least so many. UserError if that makes too many axes.
Tensor stacked(std::int64_t rows, DType dtype, std::span<const std::int64_t> row_sizes, Buffer buffer, Where where,
               const char* stage = "batch");

class Stack {
 public:
  /// `expected` elements fit without another allocation. `before` elements of the pass came earlier: errors count on.
  Stack(std::int64_t expected, std::int64_t before, Where where, const char* stage = "batch")
      : capacity_(expected), before_(before), where_(where), stage_(stage) {}

  /// UserError if it differs from the first one in dtype or shape, naming the component.
  void add(const Tensors& element);
  std::int64_t count() const { return count_; }
  void finish(Tensors& out);

 private:
  struct Component {
    DType dtype;
    std::vector<std::int64_t> sizes;
    std::int64_t row_bytes;
    Buffer buffer;
  };
  void begin(const Tensors& first);
  void grow();
  void check(std::size_t component, const TensorNode& node) const;

  std::vector<Component> components_;
  std::int64_t capacity_, count_ = 0, before_;
  Where where_;
  const char* stage_;
};

}  // namespace stet::data
