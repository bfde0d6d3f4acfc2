// Composites that move elements: made of layout ops, so they are views wherever those are, and gradients are theirs.
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "stet/ops/composite.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- order of axes and elements

/// Axes backwards: all of them, or the given ones.
/// Names: numpy.flip, array_api.flip, jax.numpy.flip, tf.reverse
/// Example: flip(tensor({1, 2, 3}))
STET_API Tensor flip(In x);
STET_API Tensor flip(In x, const Axes& axes);
/// Columns (axis 1) backwards.
/// Names: numpy.fliplr, jax.numpy.fliplr
/// Example: fliplr(tensor({{1, 2}, {3, 4}}))
STET_API Tensor fliplr(In x);
/// Rows (axis 0) backwards.
/// Names: numpy.flipud, jax.numpy.flipud
/// Example: flipud(tensor({{1, 2}, {3, 4}}))
STET_API Tensor flipud(In x);
/// Elements moved by `shift` positions along an axis, those that leave at the end put in at the begin; without an axis
/// those of the flattened tensor. A shift may be negative, or a size.
/// Names: numpy.roll, array_api.roll, jax.numpy.roll, tf.roll
/// Example: roll(tensor({1, 2, 3, 4}), 1, 0)
STET_API Tensor roll(In x, const Dim& shift);
STET_API Tensor roll(In x, const Dim& shift, int axis);
/// One shift for each axis.
/// Names: numpy.roll, tf.roll
/// Example: roll(tensor({{1, 2}, {3, 4}}), {1, 1}, {0, 1})
STET_API Tensor roll(In x, const std::vector<Dim>& shifts, const Axes& axes);
/// Turned `k` times by 90 degrees, from the first axis towards the second.
/// Names: numpy.rot90, jax.numpy.rot90
/// Example: rot90(tensor({{1, 2}, {3, 4}}))
STET_API Tensor rot90(In x, int k = 1, const Axes& axes = {0, 1});
/// The axes `source` put to the places `destination`, the others in their order.
/// Names: numpy.moveaxis, array_api.moveaxis, jax.numpy.moveaxis
/// Example: moveaxis(tensor({{{1, 2}, {3, 4}}}), 0, 2)
STET_API Tensor moveaxis(In x, const Axes& source, const Axes& destination);
/// Two axes exchanged.
/// Names: numpy.swapaxes, jax.numpy.swapaxes
/// Example: swapaxes(tensor({{1, 2}, {3, 4}}), 0, 1)
STET_API Tensor swapaxes(In x, int axis1, int axis2);
/// The last two axes exchanged.
/// Names: array_api.matrix_transpose, jax.numpy.matrix_transpose, tf.linalg.matrix_transpose
/// Example: matrix_transpose(tensor({{{1, 2}, {3, 4}}}))
STET_API Tensor matrix_transpose(In x);
/// transpose(x, order).
/// Names: array_api.permute_dims, jax.numpy.permute_dims
/// Example: permute_dims(tensor({{1, 2}, {3, 4}}), {1, 0})
STET_API Tensor permute_dims(In x, const Axes& order);

// --- rank

/// All elements along one axis, row-major.
/// Names: numpy.ravel, jax.numpy.ravel
/// Example: ravel(tensor({{1, 2}, {3, 4}}))
STET_API Tensor ravel(In x);
/// The same as ravel().
/// Names: numpy.ndarray.flatten
/// Example: flatten(tensor({{1, 2}, {3, 4}}))
STET_API Tensor flatten(In x);
/// Axes of size 1 put in: where they stand in the result.
/// Names: numpy.expand_dims, jax.numpy.expand_dims
/// Example: expand_dims(tensor({1, 2}), {0, 2})
STET_API Tensor expand_dims(In x, const Axes& axes);
/// With one axis at least: a number is a vector of one element.
/// Names: numpy.atleast_1d, jax.numpy.atleast_1d
/// Example: atleast_1d(tensor(7))
STET_API Tensor atleast_1d(In x);
/// With two axes at least: a vector is a row of a matrix.
/// Names: numpy.atleast_2d, jax.numpy.atleast_2d
/// Example: atleast_2d(tensor({7, 8}))
STET_API Tensor atleast_2d(In x);
/// With three axes at least: a vector lies along the middle one, and a matrix gets a last axis.
/// Names: numpy.atleast_3d, jax.numpy.atleast_3d
/// Example: atleast_3d(tensor({7, 8}))
STET_API Tensor atleast_3d(In x);

// --- repetition

/// The whole tensor repeated along each axis; `counts` and axes are aligned at the last one.
/// Names: numpy.tile, array_api.tile, jax.numpy.tile, tf.tile
/// Example: tile(tensor({1, 2}), {2, 2})
STET_API Tensor tile(In x, const Shape& counts);
template <class D>
requires(std::integral<D> || std::same_as<D, Dim>) Tensor tile(In x, const D& count) {
  return tile(x, Shape({Dim(count)}, x.where()));
}
/// Every element repeated `count` times along an axis; without one, of the flattened tensor.
/// Names: numpy.repeat, array_api.repeat, jax.numpy.repeat, tf.repeat
/// Example: repeat(tensor({1, 2}), 2)
STET_API Tensor repeat(In x, const Dim& count);
STET_API Tensor repeat(In x, const Dim& count, int axis);
/// Tensors repeated up to the shape that theirs broadcast to; not copied.
/// Names: numpy.broadcast_arrays, array_api.broadcast_arrays, jax.numpy.broadcast_arrays
/// Example: broadcast_arrays({tensor({1, 2}), tensor({{10}, {20}})})[0]
STET_API std::vector<Tensor> broadcast_arrays(const std::vector<Tensor>& tensors, Where where = Where::here());
/// The shape that these broadcast to; a UserError if they do not.
/// Names: numpy.broadcast_shapes, array_api.broadcast_shapes, jax.numpy.broadcast_shapes, tf.broadcast_static_shape
/// Example: broadcast_shapes({{3, 1}, {4}})
STET_API Shape broadcast_shapes(const std::vector<Shape>& shapes, Where where = Where::here());

// --- cutting and putting together

namespace inside {
STET_API std::vector<Tensor> split_evenly(const In& x, std::int64_t count, int axis, bool uneven);
}
/// `count` parts of one size along an axis, as views; UserError if the axis cannot be divided so.
/// Names: numpy.split, jax.numpy.split, tf.split
/// Example: split(arange(6), 3)[1]
template <std::integral I>
std::vector<Tensor> split(In x, I count, int axis = 0) {
  return inside::split_evenly(x, static_cast<std::int64_t>(count), axis, false);
}
/// Parts of these sizes (not NumPy's positions), which add up to the axis.
/// Names: tf.split, torch.split
/// Example: split(arange(6), {1, 2, 3})[1]
STET_API std::vector<Tensor> split(In x, const std::vector<Dim>& sizes, int axis = 0);
template <std::integral I>
std::vector<Tensor> split(In x, const std::vector<I>& sizes, int axis = 0) {
  return split(x, std::vector<Dim>(sizes.begin(), sizes.end()), axis);
}
/// `count` parts whose sizes differ by one at most, the longer ones first.
/// Names: numpy.array_split, jax.numpy.array_split
/// Example: array_split(arange(5), 2)[0]
template <std::integral I>
std::vector<Tensor> array_split(In x, I count, int axis = 0) {
  return inside::split_evenly(x, static_cast<std::int64_t>(count), axis, true);
}
/// The slices along an axis, which goes away, as views. How many there are is asked: a trace serves this size alone.
/// Names: numpy.unstack, array_api.unstack, jax.numpy.unstack, tf.unstack
/// Example: unstack(tensor({{1, 2}, {3, 4}}), 1)[0]
STET_API std::vector<Tensor> unstack(In x, int axis = 0);
/// Beside each other: along axis 1, vectors along axis 0.
/// Names: numpy.hstack, jax.numpy.hstack
/// Example: hstack({tensor({{1}, {2}}), tensor({{3}, {4}})})
STET_API Tensor hstack(const std::vector<Tensor>& parts, Where where = Where::here());
/// Below each other: along axis 0, vectors as rows.
/// Names: numpy.vstack, jax.numpy.vstack
/// Example: vstack({tensor({1, 2}), tensor({3, 4})})
STET_API Tensor vstack(const std::vector<Tensor>& parts, Where where = Where::here());
/// Behind each other: along axis 2, of atleast_3d.
/// Names: numpy.dstack, jax.numpy.dstack
/// Example: dstack({tensor({{1, 2}}), tensor({{3, 4}})})
STET_API Tensor dstack(const std::vector<Tensor>& parts, Where where = Where::here());
/// Beside each other, vectors as columns.
/// Names: numpy.column_stack, jax.numpy.column_stack
/// Example: column_stack({tensor({1, 2}), tensor({3, 4})})
STET_API Tensor column_stack(const std::vector<Tensor>& parts, Where where = Where::here());

// --- diagonals

/// The last two axes with 0 above diagonal k. (A diagonal k > 0 lies above the main one.)
/// Names: numpy.tril, array_api.tril, jax.numpy.tril, tf.linalg.band_part
/// Example: tril(tensor({{1, 2}, {3, 4}}))
STET_API Tensor tril(In x, std::int64_t k = 0);
/// The last two axes with 0 below diagonal k.
/// Names: numpy.triu, array_api.triu, jax.numpy.triu, tf.linalg.band_part
/// Example: triu(tensor({{1, 2}, {3, 4}}))
STET_API Tensor triu(In x, std::int64_t k = 0);
/// Of a vector the matrix with it on diagonal k, of a matrix its diagonal k.
/// Names: numpy.diag, jax.numpy.diag, tf.linalg.diag, tf.linalg.diag_part
/// Example: diag(tensor({1, 2}))
STET_API Tensor diag(In x, std::int64_t k = 0);
struct DiagonalOptions {
  std::int64_t offset = 0;  // above the main diagonal for offset > 0
  int axis1 = 0, axis2 = 1;
};
/// A diagonal of each matrix that two axes span, along a new last axis.
/// Names: numpy.diagonal, jax.numpy.diagonal, tf.linalg.diag_part
/// Example: diagonal(tensor({{1, 2}, {3, 4}}))
STET_API Tensor diagonal(In x, DiagonalOptions options = {});
/// The sum of a diagonal.
/// Names: numpy.trace, jax.numpy.trace, tf.linalg.trace
/// Example: trace(tensor({{1, 2}, {3, 4}}))
STET_API Tensor trace(In x, DiagonalOptions options = {});
#endif

namespace {

void require_rank(const Tensor& x, int least) {
  if (x.rank() < least)
    throw Problem(text("the tensor has rank ", x.rank(), ", not ", least, " or more"),
                  "expand_dims(x, axis) adds axes");
}

std::vector<int> axes_in_order(int rank) {
  std::vector<int> out(static_cast<std::size_t>(rank));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

/// Each axis counted from 0, in the order they were given in; a repeated one is a Problem.
std::vector<int> normalized_in_order(const Axes& axes, int rank) {
  normalize_axes(axes.axes, rank);
  std::vector<int> out;
  for (std::int64_t axis : axes.axes) out.push_back(normalize_axis(axis, rank));
  return out;
}

/// `size` elements of one axis from `begin` on.
Tensor part_of(const Tensor& x, int axis, const Dim& begin, const Dim& size) {
  std::vector<Dim> begins(static_cast<std::size_t>(x.rank()), Dim(0)), sizes = sizes_of(x);
  begins[static_cast<std::size_t>(axis)] = begin;
  sizes[static_cast<std::size_t>(axis)] = size;
  return slice(x, begins, sizes);
}

}  // namespace

// --- order of axes and elements

Tensor Tensor::T(Where where) const { return transpose(In(*this, where)); }
Tensor Tensor::cast(DType dtype, Where where) const { return stet::cast(In(*this, where), dtype); }

Tensor flip(In x) {
  Frame frame("flip", x.where());
  return reporting(x, [&] { return reverse(tensor_of(x), axes_in_order(x.rank())); });
}
Tensor flip(In x, const Axes& axes) {
  Frame frame("flip", x.where());
  return reverse(x, axes);
}
Tensor fliplr(In x) {
  Frame frame("fliplr", x.where());
  return reporting(x, [&] {
    require_rank(tensor_of(x), 2);
    return reverse(x, 1);
  });
}
Tensor flipud(In x) {
  Frame frame("flipud", x.where());
  return reporting(x, [&] {
    require_rank(tensor_of(x), 1);
    return reverse(x, 0);
  });
}

namespace {
Tensor rolled(const Tensor& x, const Dim& shift, int axis) {
  const Dim size = x.dim(axis, frame_where());
  // Of an empty axis nothing moves, and the remainder by its size does not exist.
  const Dim moved = shift % larger_of(size, 1);
  return concat({part_of(x, axis, size - moved, moved), part_of(x, axis, 0, size - moved)}, axis, frame_where());
}
}  // namespace

Tensor roll(In x, const Dim& shift) {
  Frame frame("roll", x.where());
  return reporting(x, [&] {
    Tensor whole = tensor_of(x);
    return reshape(rolled(ravel(whole), shift, 0), sizes_of(whole));
  });
}
Tensor roll(In x, const Dim& shift, int axis) {
  Frame frame("roll", x.where());
  return reporting(x, [&] { return rolled(tensor_of(x), shift, normalize_axis(axis, x.rank())); });
}
Tensor roll(In x, const std::vector<Dim>& shifts, const Axes& axes) {
  Frame frame("roll", x.where());
  return reporting(x, [&] {
    if (shifts.size() != axes.axes.size())
      throw Problem(text(shifts.size(), " shifts for ", axes.axes.size(), " axes"), "give one shift for each axis");
    Tensor out = tensor_of(x);
    for (std::size_t i = 0; i < shifts.size(); ++i)
      out = rolled(out, shifts[i], normalize_axis(axes.axes[i], out.rank()));
    return out;
  });
}

Tensor rot90(In x, int k, const Axes& axes) {
  Frame frame("rot90", x.where());
  return reporting(x, [&] {
    Tensor whole = tensor_of(x);
    if (axes.axes.size() != 2) throw Problem(text(axes.axes.size(), " axes are named"), "a plane has two");
    require_rank(whole, 2);
    const std::vector<int> plane = normalized_in_order(axes, whole.rank());
    switch (((k % 4) + 4) % 4) {
      case 1:
        return swapaxes(reverse(whole, plane[1]), plane[0], plane[1]);
      case 2:
        return reverse(whole, plane);
      case 3:
        return reverse(swapaxes(whole, plane[0], plane[1]), plane[1]);
      default:
        return whole;
    }
  });
}

Tensor moveaxis(In x, const Axes& source, const Axes& destination) {
  Frame frame("moveaxis", x.where());
  return reporting(x, [&] {
    Tensor whole = tensor_of(x);
    const int rank = whole.rank();
    const std::vector<int> from = normalized_in_order(source, rank), to = normalized_in_order(destination, rank);
    if (from.size() != to.size())
      throw Problem(text(from.size(), " axes for ", to.size(), " places"), "name one place for each axis");
    std::vector<int> order(static_cast<std::size_t>(rank), -1), others;
    for (std::size_t i = 0; i < from.size(); ++i) order[static_cast<std::size_t>(to[i])] = from[i];
    for (int axis = 0; axis < rank; ++axis)
      if (std::find(from.begin(), from.end(), axis) == from.end()) others.push_back(axis);
    auto next = others.begin();
    for (int& axis : order)
      if (axis < 0) axis = *next++;
    return transpose(whole, order);
  });
}

Tensor swapaxes(In x, int axis1, int axis2) {
  Frame frame("swapaxes", x.where());
  return reporting(x, [&] {
    Tensor whole = tensor_of(x);
    std::vector<int> order = axes_in_order(whole.rank());
    std::swap(order[static_cast<std::size_t>(normalize_axis(axis1, whole.rank()))],
              order[static_cast<std::size_t>(normalize_axis(axis2, whole.rank()))]);
    return transpose(whole, order);
  });
}

Tensor matrix_transpose(In x) {
  Frame frame("matrix_transpose", x.where());
  return reporting(x, [&] {
    require_rank(tensor_of(x), 2);
    return swapaxes(x, -2, -1);
  });
}

Tensor permute_dims(In x, const Axes& order) {
  Frame frame("permute_dims", x.where());
  return transpose(x, order);
}

// --- rank

Tensor ravel(In x) {
  Frame frame("ravel", x.where());
  return reporting(x, [&] {
    Tensor whole = tensor_of(x);
    return reshape(whole, {whole.size(frame_where())});
  });
}
Tensor flatten(In x) {
  Frame frame("flatten", x.where());
  return ravel(x);
}

Tensor expand_dims(In x, const Axes& axes) {
  Frame frame("expand_dims", x.where());
  return reporting(x, [&] {
    Tensor whole = tensor_of(x);
    std::vector<Dim> sizes = sizes_of(whole);
    // Sorted, so that each stands where it will stay.
    for (int axis : normalize_axes(axes.axes, whole.rank() + static_cast<int>(axes.axes.size())))
      sizes.insert(sizes.begin() + axis, Dim(1));
    return reshape(whole, sizes);
  });
}

namespace {
Tensor at_least(const char* name, const In& x, int rank) {
  Frame frame(name, x.where());
  return reporting(x, [&] {
    Tensor whole = tensor_of(x);
    if (whole.rank() >= rank) return whole;
    if (whole.rank() == 0) return reshape(whole, std::vector<Dim>(static_cast<std::size_t>(rank), Dim(1)));
    if (whole.rank() == 1) whole = expand_dims(whole, 0);
    return rank == 3 ? expand_dims(whole, 2) : whole;
  });
}
}  // namespace

Tensor atleast_1d(In x) { return at_least("atleast_1d", x, 1); }
Tensor atleast_2d(In x) { return at_least("atleast_2d", x, 2); }
Tensor atleast_3d(In x) { return at_least("atleast_3d", x, 3); }

// --- repetition

namespace {

/// The tensor as [before, size of the axis, after].
Tensor around_axis(const Tensor& x, std::size_t axis) {
  const std::vector<Dim> sizes = sizes_of(x);
  Dim before = 1, after = 1;
  for (std::size_t k = 0; k < sizes.size(); ++k)
    if (k != axis) (k < axis ? before : after) = (k < axis ? before : after) * sizes[k];
  return reshape(x, {before, sizes[axis], after});
}

/// Repeated `count` times along one axis: each element (inner), or all of them in turn.
Tensor repeated(const Tensor& x, std::size_t axis, const Dim& count, bool inner) {
  std::vector<Dim> result = sizes_of(x);
  result[axis] = result[axis] * count;
  // A new axis beside the one that is repeated. Where there is no room for it, others make some.
  const bool full = x.rank() == max_rank;
  Tensor wide = full ? around_axis(x, axis) : x;
  const auto at = static_cast<std::ptrdiff_t>((full ? 1 : axis) + (inner ? 1 : 0));
  std::vector<Dim> with_one = sizes_of(wide), with_count = with_one;
  with_one.insert(with_one.begin() + at, Dim(1));
  with_count.insert(with_count.begin() + at, count);
  return reshape(broadcast_to(reshape(wide, with_one), Shape(with_count)), result);
}

}  // namespace

Tensor tile(In x, const Shape& counts) {
  Frame frame("tile", x.where());
  return reporting(x, [&] {
    Tensor whole = tensor_of(x);
    std::vector<Dim> times(counts.begin(), counts.end()), sizes = sizes_of(whole);
    const std::size_t rank = std::max(times.size(), sizes.size());
    times.insert(times.begin(), rank - times.size(), Dim(1));
    sizes.insert(sizes.begin(), rank - sizes.size(), Dim(1));
    refuse_negative(times);
    whole = reshape(whole, sizes);
    if (2 * rank > static_cast<std::size_t>(max_rank)) {
      for (std::size_t axis = rank - std::min(rank, counts.dims().size()); axis < rank; ++axis)
        whole = repeated(whole, axis, times[axis], false);
      return whole;
    }
    // All at once: a new axis before each one.
    std::vector<Dim> with_ones, with_counts, result;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      with_ones.insert(with_ones.end(), {Dim(1), sizes[axis]});
      with_counts.insert(with_counts.end(), {times[axis], sizes[axis]});
      result.push_back(times[axis] * sizes[axis]);
    }
    return reshape(broadcast_to(reshape(whole, with_ones), Shape(with_counts)), result);
  });
}

Tensor repeat(In x, const Dim& count) {
  Frame frame("repeat", x.where());
  return reporting(x, [&] {
    refuse_negative({count});
    return repeated(ravel(x), 0, count, true);
  });
}
Tensor repeat(In x, const Dim& count, int axis) {
  Frame frame("repeat", x.where());
  return reporting(x, [&] {
    Tensor whole = tensor_of(x);
    refuse_negative({count});
    return repeated(whole, static_cast<std::size_t>(normalize_axis(axis, whole.rank())), count, true);
  });
}

Shape broadcast_shapes(const std::vector<Shape>& shapes, Where where) {
  Frame frame("broadcast_shapes", where);
  return reporting([&] { return broadcast(shapes, {frame_name(), "broadcast", frame_where()}).result; });
}

std::vector<Tensor> broadcast_arrays(const std::vector<Tensor>& tensors, Where where) {
  Frame frame("broadcast_arrays", where);
  return reporting([&] {
    std::vector<Shape> shapes;
    for (const Tensor& one : tensors) shapes.push_back(tensor_of(In(one, where)).shape(where));
    const Shape shape = broadcast(shapes, {frame_name(), "broadcast", frame_where()}).result;
    std::vector<Tensor> out;
    for (const Tensor& one : tensors) out.push_back(broadcast_to(In(one, where), shape));
    return out;
  });
}

// --- cutting and putting together

std::vector<Tensor> inside::split_evenly(const In& x, std::int64_t count, int axis, bool uneven) {
  Frame frame(uneven ? "array_split" : "split", x.where());
  return reporting(x, [&] {
    Tensor whole = tensor_of(x);
    const int at = normalize_axis(axis, whole.rank());
    const Dim size = whole.dim(at, frame_where());
    if (count < 1) throw Problem(text(count, " parts"), "there must be one at least");
    if (!uneven && !decide(size % count, Relation::equal, 0, {frame_name(), "parts of one size", frame_where()}))
      throw Problem(text("axis ", at, " of size ", size_text(size), " has no ", count, " parts of one size"),
                    "choose a number that divides the size, or use array_split");
    std::vector<Tensor> out;
    Dim begin = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      // Uneven: as many parts as the remainder says have one element more.
      const Dim part = uneven ? (size + (count - 1 - i)) / count : size / count;
      out.push_back(part_of(whole, at, begin, part));
      begin = begin + part;
    }
    return out;
  });
}

std::vector<Tensor> split(In x, const std::vector<Dim>& sizes, int axis) {
  Frame frame("split", x.where());
  return reporting(x, [&] {
    Tensor whole = tensor_of(x);
    const int at = normalize_axis(axis, whole.rank());
    const Dim size = whole.dim(at, frame_where());
    Dim total = 0;
    refuse_negative(sizes);
    for (const Dim& part : sizes) total = total + part;
    if (!decide(total, Relation::equal, size, {frame_name(), "sizes of the parts", frame_where()}))
      throw Problem(text("the sizes of the parts add up to ", size_text(total), ", and axis ", at, " has ",
                         size_text(size), " elements"),
                    "the sizes (not positions) of all parts together make the axis");
    std::vector<Tensor> out;
    Dim begin = 0;
    for (const Dim& part : sizes) {
      out.push_back(part_of(whole, at, begin, part));
      begin = begin + part;
    }
    return out;
  });
}

std::vector<Tensor> unstack(In x, int axis) {
  Frame frame("unstack", x.where());
  return reporting(x, [&] {
    Tensor whole = tensor_of(x);
    const int at = normalize_axis(axis, whole.rank());
    std::vector<Tensor> out;
    for (std::int64_t i = 0, count = whole.dim(at, frame_where()).value(frame_where()); i < count; ++i)
      out.push_back(squeeze(part_of(whole, at, i, 1), at));
    return out;
  });
}

namespace {
template <class F>
Tensor stacked(const char* name, const std::vector<Tensor>& parts, Where where, F f) {
  Frame frame(name, where);
  return reporting([&] {
    if (parts.empty()) throw Problem("there are no tensors to put together", "give at least one");
    std::vector<Tensor> grown;
    for (const Tensor& part : parts) tensor_of(In(part, where));  // or a Problem
    return f(grown);
  });
}
}  // namespace

Tensor hstack(const std::vector<Tensor>& parts, Where where) {
  return stacked("hstack", parts, where, [&](std::vector<Tensor>& grown) {
    for (const Tensor& part : parts) grown.push_back(atleast_1d(part));
    return concat(grown, grown[0].rank() == 1 ? 0 : 1, where);
  });
}
Tensor vstack(const std::vector<Tensor>& parts, Where where) {
  return stacked("vstack", parts, where, [&](std::vector<Tensor>& grown) {
    for (const Tensor& part : parts) grown.push_back(atleast_2d(part));
    return concat(grown, 0, where);
  });
}
Tensor dstack(const std::vector<Tensor>& parts, Where where) {
  return stacked("dstack", parts, where, [&](std::vector<Tensor>& grown) {
    for (const Tensor& part : parts) grown.push_back(atleast_3d(part));
    return concat(grown, 2, where);
  });
}
Tensor column_stack(const std::vector<Tensor>& parts, Where where) {
  return stacked("column_stack", parts, where, [&](std::vector<Tensor>& grown) {
    for (const Tensor& part : parts)
      grown.push_back(part.rank() < 2 ? reshape(part, {part.size(where), Dim(1)}) : part);
    return concat(grown, 1, where);
  });
}

// --- diagonals

namespace {
Tensor triangle(const char* name, const In& x, std::int64_t k, bool lower) {
  Frame frame(name, x.where());
  return reporting(x, [&] {
    Tensor whole = tensor_of(x);
    require_rank(whole, 2);
    const Dim rows = whole.dim(-2, frame_where()), columns = whole.dim(-1, frame_where());
    // What is not strictly below lies on the diagonal or above it.
    Tensor mask = lower ? diagonal_mask(rows, columns, k, true)
                        : logical_not(diagonal_mask(rows, columns, near_diagonal(k) - 1, true));
    return zeros_unless(mask, whole);
  });
}
}  // namespace

Tensor tril(In x, std::int64_t k) { return triangle("tril", x, k, true); }
Tensor triu(In x, std::int64_t k) { return triangle("triu", x, k, false); }

Tensor diagonal(In x, DiagonalOptions options) {
  Frame frame("diagonal", x.where());
  return reporting(x, [&] {
    Tensor whole = tensor_of(x);
    require_rank(whole, 2);
    Tensor last = moveaxis(whole, {options.axis1, options.axis2}, {-2, -1});
    std::vector<Dim> sizes = sizes_of(last);
    const Dim columns = sizes.back(), rows = sizes[sizes.size() - 2];
    const std::int64_t offset = near_diagonal(options.offset);
    const Dim below = std::max<std::int64_t>(-offset, 0), right = std::max<std::int64_t>(offset, 0);
    const Dim length = larger_of(smaller_of(rows - below, columns - right), 0);
    // In memory that is dense the elements of a diagonal lie a row and an element apart.
    Tensor positions = arange(length, frame_where()) * (columns + 1) + (smaller_of(below, rows) * columns + right);
    sizes.erase(sizes.end() - 2, sizes.end());
    sizes.push_back(rows * columns);
    return gather(reshape(last, sizes), positions, -1);
  });
}

Tensor trace(In x, DiagonalOptions options) {
  Frame frame("trace", x.where());
  return sum(diagonal(x, options), -1);
}

Tensor diag(In x, std::int64_t k) {
  Frame frame("diag", x.where());
  return reporting(x, [&] {
    Tensor whole = tensor_of(x);
    if (whole.rank() == 2) return diagonal(whole, {.offset = k});
    if (whole.rank() != 1)
      throw Problem(text("the tensor has rank ", whole.rank(), ", not 1 or 2"),
                    "diagonal(x) takes those of matrices along other axes");
    // By rows: row i has element i, or i - |k| for a diagonal below the main one.
    const std::int64_t beside = std::abs(near_diagonal(k));
    if (k != 0) {
      Tensor none = zeros({beside}, whole.dtype(), frame_where());
      whole = concat(k > 0 ? std::vector{whole, none} : std::vector{none, whole}, 0, frame_where());
    }
    const Dim size = whole.dim(0, frame_where());
    return zeros_unless(diagonal_mask(size, size, k, false), expand_dims(whole, 1));
  });
}

}  // namespace stet
