// Layers that merge: called on a list of tensors, Add()({a, b}). Tensors of fewer axes get axes of size 1 after the
// batch axis, and sizes of 1 are repeated. A result has a mask if all of them have: steps count where one of them does.
#pragma once
#include <string>

#include "stet/keras/layer.h"
#include "stet/keras/policy.h"
#include "stet/ops/ops.h"

namespace stet::keras {

struct MergeOptions {
  std::string name = {};
  DTypePolicy dtype = {};
};
/// The sum.
class STET_API Add : public Layer {
 public:
  explicit Add(MergeOptions options = {});
  STET_HANDLE(Add, Layer)
};
/// The first less the second; called on two.
class STET_API Subtract : public Layer {
 public:
  explicit Subtract(MergeOptions options = {});
  STET_HANDLE(Subtract, Layer)
};
/// The product. Steps that do not count are 1 in it, and 0 in a result that has a mask.
class STET_API Multiply : public Layer {
 public:
  explicit Multiply(MergeOptions options = {});
  STET_HANDLE(Multiply, Layer)
};
/// The mean.
class STET_API Average : public Layer {
 public:
  explicit Average(MergeOptions options = {});
  STET_HANDLE(Average, Layer)
};
/// The largest. Steps that do not count are left out.
class STET_API Maximum : public Layer {
 public:
  explicit Maximum(MergeOptions options = {});
  STET_HANDLE(Maximum, Layer)
};
/// The smallest. Steps that do not count are left out.
class STET_API Minimum : public Layer {
 public:
  explicit Minimum(MergeOptions options = {});
  STET_HANDLE(Minimum, Layer)
};
/// One after the other along an axis; the others have equal sizes. Its mask has the steps of all of them, if one has.
class STET_API Concatenate : public Layer {
 public:
  explicit Concatenate(int axis = -1, MergeOptions options = {}, Where where = Where::here());
  STET_HANDLE(Concatenate, Layer)
};

struct DotOptions {
  bool normalize = false;  // to length 1 along the axes: the product is the cosine of the angle
  std::string name = {};
  DTypePolicy dtype = {};
};
/// For every sample the sum of products along an axis of the first tensor and one of the second: one number for both,
/// or {first's, second's}; not 0, the batch. [batch, a, n] and [batch, n, b] with {2, 1} give [batch, a, b]; two of
/// [batch, n] give [batch, 1]. Without a mask.
class STET_API Dot : public Layer {
 public:
  explicit Dot(Axes axes, DotOptions options = {}, Where where = Where::here());
  STET_HANDLE(Dot, Layer)
};

}  // namespace stet::keras
