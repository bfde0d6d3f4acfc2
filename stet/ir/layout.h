// Layout: how a tensor's elements lie in its buffer.
#pragma once
#include <vector>

#include "stet/base/inside.h"
#include "stet/base/shape.h"
#include "stet/ir/attributes.h"

namespace stet {

/// Element (i, j, …) lies at offset + i * strides[0] + j * strides[1] + … elements from the buffer's start.
struct Layout {
  Dim offset = 0;
  std::vector<Dim> strides;
};

/// What a row's `view` is given: an operand, how it lies, and the shape of the result. No trace is open, or all sizes
/// are constants: what is proved of sizes may be used here, because nothing is recorded by it.
class ViewCall {
 public:
  ViewCall(const Shape& shape, const Layout& layout, const Shape& result, AttributesView attributes)
      : shape_(shape), layout_(layout), result_(result), attributes_(attributes) {}

  const Shape& shape() const { return shape_; }
  const Layout& layout() const { return layout_; }
  const Shape& result() const { return result_; }
  template <class T>
  const T& attributes() const {
    return *static_cast<const T*>(attributes_.data);
  }
  /// In every call; false where that cannot be proved.
  static bool is_one(const Dim& size);
  static bool same(const Dim& a, const Dim& b);

 private:
  const Shape& shape_;
  const Layout& layout_;
  const Shape& result_;
  AttributesView attributes_;
};

inline Layout dense_layout(const Shape& shape) { return {0, dense_strides(shape)}; }

}  // namespace stet
