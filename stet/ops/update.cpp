// Updates of a part of a tensor, as new tensors: at(x, index…).set(value).
#include "stet/core/call.h"
#include "stet/ops/ops.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- putting and counting by position

/// A part of a tensor, named as in brackets: what comes back from its functions is a new tensor with that part changed.
class STET_API TensorPart {
 public:
  TensorPart(Tensor whole, inside::Indices indices) : whole_(std::move(whole)), indices_(std::move(indices)) {}
  /// The part replaced by the value, which broadcasts to it; of positions that repeat the last counts.
  Tensor set(In value) const { return combined("at().set", value, ScatterCombine::update); }
  /// The value added to the part; positions that repeat add up.
  Tensor add(In value) const { return combined("at().add", value, ScatterCombine::add); }
  Tensor subtract(In value) const;
  Tensor multiply(In value) const { return combined("at().multiply", value, ScatterCombine::multiply); }
  Tensor min(In value) const { return combined("at().min", value, ScatterCombine::min); }
  Tensor max(In value) const { return combined("at().max", value, ScatterCombine::max); }
  /// The part itself: x[index…].
  Tensor get() const { return whole_[indices_]; }

 private:
  Tensor combined(const char* what, const In& value, ScatterCombine combine) const;
  Tensor whole_;
  inside::Indices indices_;
};
/// The part x[index…], to make a new tensor with it changed. Indices are those of brackets: positions, ranges,
/// `ellipsis`, `newaxis`, tensors of positions, masks.
/// Names: jax.numpy.ndarray.at, tf.tensor_scatter_nd_update
/// Example: at(tensor({1, 2, 3}), 1).set(20)
template <class... Index>
TensorPart at(const Tensor& x, const Index&... index) {
  return TensorPart(x, inside::Indices({inside::Index(index)...}));
}
#endif

Tensor TensorPart::subtract(In value) const {
  Frame frame("at().subtract", value.where());
  return combined("at().subtract", negative(value), ScatterCombine::add);
}

/// The positions of the part in the flattened tensor, by taking the same part of them.
Tensor TensorPart::combined(const char* what, const In& value, ScatterCombine combine) const {
  Frame frame(what, value.where());
  const Tensor& x = whole_;
  Shape shape = x.shape(value.where());
  Tensor positions = reshape(arange(x.size()), shape)[indices_];
  Tensor part = cast(as_tensor(value, x.dtype()), x.dtype());
  Tensor values = broadcast_to(part, positions.shape());
  Tensor flat = reshape(x, {-1}), at = reshape(positions, {-1}), flat_values = reshape(values, {-1});
  Tensor out = put_along_axis(flat, at, flat_values, 0, {.combine = combine});
  return reshape(out, shape);
}

}  // namespace stet
