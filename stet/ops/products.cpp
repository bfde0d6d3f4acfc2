// Products of vectors, matrices and tensors beside matmul: composites of matmul, multiply and sum.
#include <algorithm>
#include <numeric>

#include "stet/ops/composite.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- products

/// Every element of a times every element of b, [size of a, size of b].
/// Names: numpy.outer, array_api.linalg.outer, jax.numpy.outer
/// Example: outer(tensor({1, 2}), tensor({3, 4}))
STET_API Tensor outer(In a, In b);
/// Sums of products over axes of a and of b: the last `axes` of a and the first of b, or the named ones in turn. The
/// axes that are left are those of a, then those of b.
/// Names: numpy.tensordot, array_api.tensordot, jax.numpy.tensordot, tf.tensordot
/// Example: tensordot(tensor({{1, 2}, {3, 4}}), tensor({5, 6}), 1)
STET_API Tensor tensordot(In a, In b, int axes = 2);
STET_API Tensor tensordot(In a, In b, const Axes& axes_a, const Axes& axes_b);
/// Sums of products over the last axes of both; of a number the product.
/// Names: numpy.inner, jax.numpy.inner
/// Example: inner(tensor({1, 2}), tensor({3, 4}))
STET_API Tensor inner(In a, In b);
/// Sums of products over the last axis of a and the last but one of b (of a vector its only one); of a number the
/// product.
/// Names: numpy.dot, jax.numpy.dot
/// Example: dot(tensor({1, 2}), tensor({3, 4}))
STET_API Tensor dot(In a, In b);
/// The sum of products of the flattened tensors, which have equally many elements.
/// Names: numpy.vdot, jax.numpy.vdot
/// Example: vdot(tensor({{1, 2}, {3, 4}}), tensor({1, 10, 100, 1000}))
STET_API Tensor vdot(In a, In b);
/// Sums of products over one axis of both; the others broadcast.
/// Names: numpy.vecdot, array_api.vecdot, jax.numpy.vecdot
/// Example: vecdot(tensor({{1, 2}, {3, 4}}), tensor({5, 6}))
STET_API Tensor vecdot(In a, In b, int axis = -1);
/// The vector product of vectors with 3 elements along an axis; the other axes broadcast.
/// Names: numpy.cross, array_api.linalg.cross, jax.numpy.cross, tf.linalg.cross
/// Example: cross(tensor({1, 0, 0}), tensor({0, 1, 0}))
STET_API Tensor cross(In a, In b, int axis = -1);
/// The Kronecker product: every element of a times the whole of b, as blocks. Up to 4 axes.
/// Names: numpy.kron, jax.numpy.kron
/// Example: kron(tensor({1, 10}), tensor({1, 2}))
STET_API Tensor kron(In a, In b);
#endif

namespace {

/// A pair of axes that are summed over has one size.
void require_one_size(const Tensor& a, int axis_a, const Tensor& b, int axis_b) {
  const Dim left = a.dim(axis_a, frame_where()), right = b.dim(axis_b, frame_where());
  if (!decide(left, Relation::equal, right, {frame_name(), "summed sizes", frame_where()}))
    throw Problem(text("axis ", axis_a, " of a has ", size_text(left), " elements, axis ", axis_b, " of b has ",
                       size_text(right)),
                  "axes that are summed over have one size");
}

/// One operand of a contraction: its axes in an order, and the sizes of those that stay and those that are summed over.
struct Side {
  Side(const Tensor& x, const std::vector<int>& summed) : gone(summed) {
    for (int axis = 0; axis < x.rank(); ++axis)
      if (std::find(summed.begin(), summed.end(), axis) == summed.end()) {
        kept.push_back(axis);
        sizes.push_back(x.dim(axis, frame_where()));
        count = count * sizes.back();
      }
    for (int axis : summed) sum = sum * x.dim(axis, frame_where());
  }
  std::vector<int> gone, kept;
  std::vector<Dim> sizes;
  Dim count = 1, sum = 1;
};

std::vector<int> joined(std::vector<int> first, const std::vector<int>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Tensor contracted(const Tensor& a, const std::vector<int>& axes_a, const Tensor& b, const std::vector<int>& axes_b) {
  // One pair of sizes matmul compares. Of several it would see the products alone.
  for (std::size_t i = 0; i < axes_a.size() && axes_a.size() > 1; ++i) require_one_size(a, axes_a[i], b, axes_b[i]);
  Side left(a, axes_a), right(b, axes_b);
  Tensor rows = reshape(transpose(a, joined(left.kept, left.gone)), {left.count, left.sum});
  Tensor columns = reshape(transpose(b, joined(right.gone, right.kept)), {right.sum, right.count});
  std::vector<Dim> sizes = left.sizes;
  sizes.insert(sizes.end(), right.sizes.begin(), right.sizes.end());
  return reshape(matmul(rows, columns), sizes);
}

/// The two with as many axes, new ones in front.
void align_ranks(Tensor& a, Tensor& b) {
  for (Tensor* one : {&a, &b}) {
    std::vector<Dim> sizes = sizes_of(*one);
    const auto rank = static_cast<std::size_t>(std::max(a.rank(), b.rank()));
    sizes.insert(sizes.begin(), rank - sizes.size(), Dim(1));
    *one = reshape(*one, sizes);
  }
}

}  // namespace

Tensor outer(In a, In b) {
  Frame frame("outer", a.where());
  return reporting(a, b, [&] {
    // What is a number stays one, and takes the other's type.
    auto count = [](const In& x) { return x.rank() ? x.tensor().size(frame_where()) : Dim(1); };
    require_defined(a);
    require_defined(b);
    Tensor left = a.rank() ? reshape(a, {count(a), Dim(1)}) : Tensor();
    Tensor right = b.rank() ? reshape(b, {Dim(1), count(b)}) : Tensor();
    Tensor out = multiply(left.defined() ? In(left, a.where()) : a, right.defined() ? In(right, b.where()) : b);
    return reshape(out, {count(a), count(b)});
  });
}

Tensor tensordot(In a, In b, const Axes& axes_a, const Axes& axes_b) {
  Frame frame("tensordot", a.where());
  return reporting(a, b, [&] {
    Tensor left = tensor_of(a), right = tensor_of(b);
    if (axes_a.axes.size() != axes_b.axes.size())
      throw Problem(text(axes_a.axes.size(), " axes of a for ", axes_b.axes.size(), " of b"),
                    "name as many axes of a as of b");
    auto normalized = [](const Axes& axes, int rank) {
      normalize_axes(axes.axes, rank);  // finds one that is named twice
      std::vector<int> out;
      for (std::int64_t axis : axes.axes) out.push_back(normalize_axis(axis, rank));
      return out;
    };
    return contracted(left, normalized(axes_a, left.rank()), right, normalized(axes_b, right.rank()));
  });
}

Tensor tensordot(In a, In b, int axes) {
  Frame frame("tensordot", a.where());
  return reporting(a, b, [&] {
    Tensor left = tensor_of(a), right = tensor_of(b);
    if (axes < 0 || axes > left.rank() || axes > right.rank())
      throw Problem(text(axes, " axes of ranks ", left.rank(), " and ", right.rank()),
                    "sum over 0 axes or more, and not more than there are");
    std::vector<int> last(static_cast<std::size_t>(axes)), first(last.size());
    std::iota(last.begin(), last.end(), left.rank() - axes);
    std::iota(first.begin(), first.end(), 0);
    return contracted(left, last, right, first);
  });
}

Tensor inner(In a, In b) {
  Frame frame("inner", a.where());
  return reporting(a, b, [&] {
    Tensor left = tensor_of(a), right = tensor_of(b);
    if (left.rank() == 0 || right.rank() == 0) return multiply(a, b);
    return contracted(left, {left.rank() - 1}, right, {right.rank() - 1});
  });
}

Tensor dot(In a, In b) {
  Frame frame("dot", a.where());
  return reporting(a, b, [&] {
    Tensor left = tensor_of(a), right = tensor_of(b);
    if (left.rank() == 0 || right.rank() == 0) return multiply(a, b);
    return contracted(left, {left.rank() - 1}, right, {std::max(right.rank() - 2, 0)});
  });
}

Tensor vdot(In a, In b) {
  Frame frame("vdot", a.where());
  return reporting(a, b, [&] { return contracted(ravel(a), {0}, ravel(b), {0}); });
}

Tensor vecdot(In a, In b, int axis) {
  Frame frame("vecdot", a.where());
  return reporting(a, b, [&] {
    Tensor left = tensor_of(a), right = tensor_of(b);
    const int axis_a = normalize_axis(axis, left.rank()), axis_b = normalize_axis(axis, right.rank());
    require_one_size(left, axis_a, right, axis_b);
    // Products are formed in the type that the sum has, and floating ones are rounded once, as matmul does.
    const DType type = promote(left.dtype(), right.dtype()), computed = compute_type(sum_type(type));
    auto last = [&](const Tensor& x, int from) { return moveaxis(x.cast(computed, frame_where()), from, -1); };
    Tensor out = sum(last(left, axis_a) * last(right, axis_b), -1);
    return is_floating(type) ? out.cast(type, frame_where()) : out;
  });
}

Tensor cross(In a, In b, int axis) {
  Frame frame("cross", a.where());
  return reporting(a, b, [&] {
    Tensor left = tensor_of(a), right = tensor_of(b);
    auto components = [&](const Tensor& x, const char* name) {
      const int at = normalize_axis(axis, x.rank());
      const Dim size = x.dim(at, frame_where());
      if (!decide(size, Relation::equal, 3, {frame_name(), "size of a vector", frame_where()}))
        throw Problem(text("axis ", axis, " of ", name, " has ", size_text(size), " elements, not 3"),
                      "the vector product is one of vectors with 3 elements");
      Tensor last = moveaxis(x, at, -1);
      return std::array{last[{ellipsis, 0}], last[{ellipsis, 1}], last[{ellipsis, 2}]};
    };
    const auto u = components(left, "a"), v = components(right, "b");
    Tensor out =
        stack({u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]}, -1, frame_where());
    return moveaxis(out, -1, axis);
  });
}

Tensor kron(In a, In b) {
  Frame frame("kron", a.where());
  return reporting(a, b, [&] {
    Tensor left = tensor_of(a), right = tensor_of(b);
    if (left.rank() == 0 || right.rank() == 0) return multiply(a, b);
    align_ranks(left, right);
    if (2 * left.rank() > max_rank)
      throw Problem(text("the tensors have ", left.rank(), " axes"), text(max_rank / 2, " are possible"));
    std::vector<Dim> outside, within, sizes;
    const std::vector<Dim> sizes_a = sizes_of(left), sizes_b = sizes_of(right);
    for (std::size_t axis = 0; axis < sizes_a.size(); ++axis) {
      outside.insert(outside.end(), {sizes_a[axis], Dim(1)});
      within.insert(within.end(), {Dim(1), sizes_b[axis]});
      sizes.push_back(sizes_a[axis] * sizes_b[axis]);
    }
    return reshape(reshape(left, outside) * reshape(right, within), sizes);
  });
}

}  // namespace stet
