// Tensors made from sizes and numbers. Sizes may be symbols of a trace: then the tensors are traced, for all sizes.
#include <algorithm>
#include <cmath>

#include "stet/ops/composite.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- creation

/// start, start + step, … before stop. Integers (and sizes, also of a trace) give i64, or `dtype` as cast does.
/// Names: numpy.arange, array_api.arange, jax.numpy.arange, tf.range
/// Example: arange(2, 11, 3)
STET_API Tensor arange(const Dim& start, const Dim& stop, std::int64_t step = 1, DType dtype = DType::i64,
                       Where where = Where::here());
STET_API Tensor arange(const Dim& start, const Dim& stop, DType dtype, Where where = Where::here());
STET_API Tensor arange(const Dim& stop, DType dtype, Where where = Where::here());
namespace creation {
STET_API Tensor arange_of_reals(double start, double stop, double step, DType dtype, Where where);
}
/// The same of floating numbers, f32 unless said otherwise: ceil((stop - start) / step) elements, as in NumPy, so
/// rounding may add one. linspace() says how many.
/// Names: numpy.arange, tf.range
/// Example: arange(0.0, 1.0, 0.25)
template <inside::Number A, inside::Number B, inside::Number C = int>
requires(std::floating_point<A> || std::floating_point<B> || std::floating_point<C>) Tensor
    arange(A start, B stop, C step = 1, DType dtype = DType::f32, Where where = Where::here()) {
  return creation::arange_of_reals(static_cast<double>(start), static_cast<double>(stop), static_cast<double>(step),
                                   dtype, where);
}
template <std::floating_point A>
Tensor arange(A stop, DType dtype = DType::f32, Where where = Where::here()) {
  return creation::arange_of_reals(0, static_cast<double>(stop), 1, dtype, where);
}

struct LinspaceOptions {
  bool endpoint = true;             // `stop` is the last element; otherwise the one after the last
  std::optional<DType> dtype = {};  // otherwise that of the tensors among start and stop, f32 of numbers alone
};
/// `num` numbers from start to stop at equal distances, computed in f64. Of tensors along a new first axis.
/// Names: numpy.linspace, array_api.linspace, jax.numpy.linspace, tf.linspace
/// Example: linspace(0, 1, 5)
STET_API Tensor linspace(In start, In stop, const Dim& num = 50, LinspaceOptions options = {});
struct LogspaceOptions {
  double base = 10;
  bool endpoint = true;
  std::optional<DType> dtype = {};
};
/// base to the power of linspace(start, stop, num).
/// Names: numpy.logspace, jax.numpy.logspace
/// Example: logspace(0, 3, 4)
STET_API Tensor logspace(In start, In stop, const Dim& num = 50, LogspaceOptions options = {});
/// `num` numbers from start to stop with equal quotients. UserError for numbers that are 0 or differ in sign; of such
/// tensors NaN.
/// Names: numpy.geomspace, jax.numpy.geomspace
/// Example: geomspace(1, 81, 5)
STET_API Tensor geomspace(In start, In stop, const Dim& num = 50, LinspaceOptions options = {});

struct EyeOptions {
  std::int64_t k = 0;  // which diagonal; above the main one for k > 0
  DType dtype = DType::f32;
};
/// A matrix with 1 on a diagonal and 0 elsewhere, n by n or n by m.
/// Names: numpy.eye, numpy.identity, array_api.eye, jax.numpy.eye, tf.eye
/// Example: eye(2, 3)
STET_API Tensor eye(const Dim& n, EyeOptions options = {}, Where where = Where::here());
STET_API Tensor eye(const Dim& n, const Dim& m, EyeOptions options = {}, Where where = Where::here());
/// A matrix with 1 on a diagonal and below it, 0 above.
/// Names: numpy.tri, jax.numpy.tri
/// Example: tri(3)
STET_API Tensor tri(const Dim& n, EyeOptions options = {}, Where where = Where::here());
STET_API Tensor tri(const Dim& n, const Dim& m, EyeOptions options = {}, Where where = Where::here());

/// zeros(): there is no tensor whose elements are not known.
/// Names: numpy.empty, array_api.empty
/// Example: empty({2})
STET_API Tensor empty(const Shape& shape, DType dtype = DType::f32, Where where = Where::here());
/// zeros_like().
/// Names: numpy.empty_like, array_api.empty_like
/// Example: empty_like(tensor({1, 2}))
STET_API Tensor empty_like(const Tensor& like, Where where = Where::here());
/// A tensor of one value (which may be traced), or a tensor that is repeated up to the shape; in its own type unless
/// `dtype` is given.
/// Names: numpy.full, array_api.full, jax.numpy.full, tf.fill
/// Example: full({2}, tensor({7, 8}))
STET_API Tensor full(const Shape& shape, In value, std::optional<DType> dtype = {});
/// `value` in the shape of another tensor, and in its type unless `dtype` is given.
/// Names: numpy.full_like, array_api.full_like, jax.numpy.full_like
/// Example: full_like(tensor({1.f, 2.f}), 7)
STET_API Tensor full_like(const Tensor& like, In value, std::optional<DType> dtype = {});

enum class MeshIndexing : std::uint8_t { xy, ij };
struct MeshgridOptions {
  MeshIndexing indexing = MeshIndexing::xy;  // xy: the first axis of the results belongs to the second vector
  bool sparse = false;                       // leave the other axes at size 1
};
/// For each vector a tensor over the grid of all of them; not copied, a broadcast view.
/// Names: numpy.meshgrid, array_api.meshgrid, jax.numpy.meshgrid, tf.meshgrid
/// Example: meshgrid({tensor({1, 2, 3}), tensor({10, 20})})[0]
STET_API std::vector<Tensor> meshgrid(const std::vector<Tensor>& vectors, MeshgridOptions options = {},
                                      Where where = Where::here());
#endif

// --- arange

Tensor arange(const Dim& start, const Dim& stop, std::int64_t step, DType dtype, Where where) {
  Frame frame("arange", where);
  return reporting([&] {
    constexpr std::int64_t longest = std::int64_t{1} << 61;
    if (step == 0) throw Problem("the step is 0", "use a positive or negative step");
    if (step > longest || step < -longest) throw Problem(text("the step ", step, " is too long"), "");
    const Dim length = step > 0 ? stop - start : start - stop;
    const std::int64_t stride = step > 0 ? step : -step;
    Tensor out = arange(larger_of((length + (stride - 1)) / stride, 0), where);
    if (step != 1) out = multiply(In(out, where), In(step, where));
    out = add(In(out, where), In(start, where));
    return dtype == DType::i64 ? out : cast(In(out, where), dtype);
  });
}
Tensor arange(const Dim& start, const Dim& stop, DType dtype, Where where) {
  return arange(start, stop, 1, dtype, where);
}
Tensor arange(const Dim& stop, DType dtype, Where where) {
  Frame frame("arange", where);
  return cast(In(arange(stop, where), where), dtype);
}

Tensor creation::arange_of_reals(double start, double stop, double step, DType dtype, Where where) {
  Frame frame("arange", where);
  return reporting([&] {
    if (step == 0) throw Problem("the step is 0", "use a positive or negative step");
    const double count = std::ceil((stop - start) / step);
    if (!std::isfinite(start) || !std::isfinite(stop) || !std::isfinite(step) || count > 0x1p53)
      throw Problem(text("there is no end to the numbers from ", start, " to ", stop, " by ", step),
                    "give finite bounds, and a step that leads from one to the other");
    const auto size = static_cast<std::int64_t>(std::max(count, 0.0));
    const auto width = static_cast<std::size_t>(size_of(dtype));
    std::vector<std::byte> bytes(static_cast<std::size_t>(size) * width);
    const double delta = (start + step) - start;  // NumPy's: the distance of the first two elements
    for (std::int64_t i = 0; i < size; ++i) {
      const double value = start + static_cast<double>(i) * delta;
      convert_element(DType::f64, &value, dtype, bytes.data() + static_cast<std::size_t>(i) * width);
    }
    return creation::copied(dtype, bytes.data(), static_cast<std::size_t>(size), Shape({size}), where);
  });
}

// --- linspace and its relatives

namespace {

constexpr const char* end_names[] = {"start", "stop"};

/// Numbers at equal distances in f64, before they are rounded to the type that was asked for.
struct Spaced {
  Spaced(const In& start, const In& stop, const Dim& num, bool endpoint) {
    refuse_negative({num});
    first = cast(start, DType::f64);
    last = cast(stop, DType::f64);
    // Of one number, the distance to the next is not used.
    steps = larger_of(endpoint ? num - 1 : num, 1);
    std::vector<Dim> sizes(static_cast<std::size_t>(1 + std::max(first.rank(), last.rank())), Dim(1));
    sizes[0] = num;
    index = reshape(cast(arange(num, frame_where()), DType::f64), sizes);
  }
  Tensor from(const Tensor& begin, const Tensor& end) const { return index * ((end - begin) / steps) + begin; }
  /// With the last number, where there are two or more, exact.
  Tensor closed(const Tensor& numbers) const { return where(equal(index, steps), last, numbers); }

  Dim steps = 1;
  Tensor first, last;  // as they were given
  Tensor index;        // [num, 1, …]
};

/// In the type that was asked for, or follows from the tensors among the ends.
Tensor rounded(const Tensor& numbers, std::optional<DType> asked, const In& start, const In& stop) {
  std::optional<DType> own;
  for (const In* end : {&start, &stop})
    if (end->kind() == In::Kind::tensor && !end->tensor().node()->weak)
      own = own ? promote(*own, end->tensor().dtype()) : end->tensor().dtype();
  const DType dtype = asked ? *asked : own ? floating_type(*own) : DType::f32;
  return cast(is_floating(dtype) ? numbers : floor(numbers), dtype);
}

template <class F>
Tensor spaced(const char* name, const In& start, const In& stop, F f) {
  Frame frame(name, start.where());
  const In operands[] = {start, stop};
  return reporting(end_names, operands, [&] {
    for (const In& end : operands) require_defined(end);
    return f();
  });
}

}  // namespace

Tensor linspace(In start, In stop, const Dim& num, LinspaceOptions options) {
  return spaced("linspace", start, stop, [&] {
    Spaced line(start, stop, num, options.endpoint);
    Tensor numbers = line.from(line.first, line.last);
    return rounded(options.endpoint ? line.closed(numbers) : numbers, options.dtype, start, stop);
  });
}

Tensor logspace(In start, In stop, const Dim& num, LogspaceOptions options) {
  return spaced("logspace", start, stop, [&] {
    Tensor exponents = linspace(start, stop, num, {options.endpoint, DType::f64});
    return rounded(pow(options.base, exponents), options.dtype, start, stop);
  });
}

Tensor geomspace(In start, In stop, const Dim& num, LinspaceOptions options) {
  return spaced("geomspace", start, stop, [&] {
    auto number = [](const In& end) { return end.kind() == In::Kind::real ? end.real() : double(end.integer()); };
    for (const In* end : {&start, &stop})
      if (end->is_number() && number(*end) == 0)
        throw Problem("a geometric sequence has no zero", "begin and end with numbers that are not 0");
    if (start.is_number() && stop.is_number() && (number(start) < 0) != (number(stop) < 0))
      throw Problem("a geometric sequence does not change its sign", "begin and end with numbers of one sign");
    Spaced line(start, stop, num, options.endpoint);
    Tensor end = log(line.last / line.first);
    Tensor numbers = line.first * exp(line.from(zeros_like(end), end));
    return rounded(options.endpoint ? line.closed(numbers) : numbers, options.dtype, start, stop);
  });
}

// --- matrices

Tensor diagonal_mask(const Dim& rows, const Dim& columns, std::int64_t k, bool below) {
  refuse_negative({rows, columns});
  Tensor row = reshape(arange(rows, frame_where()), {rows, Dim(1)}), column = arange(columns, frame_where());
  if (k != 0) row = row + near_diagonal(k);
  return below ? less_equal(column, row) : equal(column, row);
}

namespace {
Tensor marked(const char* name, const Dim& n, const Dim& m, EyeOptions options, bool below, Where where) {
  Frame frame(name, where);
  return reporting([&] { return cast(diagonal_mask(n, m, options.k, below), options.dtype); });
}
}  // namespace

Tensor eye(const Dim& n, EyeOptions options, Where where) { return marked("eye", n, n, options, false, where); }
Tensor eye(const Dim& n, const Dim& m, EyeOptions options, Where where) {
  return marked("eye", n, m, options, false, where);
}
Tensor tri(const Dim& n, EyeOptions options, Where where) { return marked("tri", n, n, options, true, where); }
Tensor tri(const Dim& n, const Dim& m, EyeOptions options, Where where) {
  return marked("tri", n, m, options, true, where);
}

// --- filled

Tensor empty(const Shape& shape, DType dtype, Where where) { return zeros(shape, dtype, where); }
Tensor empty_like(const Tensor& like, Where where) { return zeros_like(like, where); }

namespace {
constexpr const char* value_names[] = {"value"};

/// The value as a dense tensor of this shape. Numbers must fit into the type.
Tensor repeated(const In& value, const Shape& shape, DType dtype) {
  return reporting(value_names, {&value, 1}, [&] {
    Tensor one = value.is_number() ? as_tensor(value, dtype) : tensor_of(value);
    return broadcast_to(one.dtype() == dtype ? one : cast(one, dtype), shape).contiguous(frame_where());
  });
}
}  // namespace

Tensor full(const Shape& shape, In value, std::optional<DType> dtype) {
  Frame frame("full", value.where());
  return reporting(value_names, {&value, 1},
                   [&] { return repeated(value, shape, dtype ? *dtype : tensor_of(value).dtype()); });
}

Tensor full_like(const Tensor& like, In value, std::optional<DType> dtype) {
  Frame frame("full_like", value.where());
  const TensorNode& node = defined_node(like, "full_like", value.where());
  Tensor out = repeated(value, node.shape(), dtype.value_or(node.dtype));
  return node.device() ? on_device(out, *node.device()) : out;
}

// --- meshgrid

std::vector<Tensor> meshgrid(const std::vector<Tensor>& vectors, MeshgridOptions options, Where where) {
  Frame frame("meshgrid", where);
  return reporting([&] {
    const std::size_t rank = vectors.size();
    if (rank > static_cast<std::size_t>(max_rank))
      throw Problem(text(rank, " vectors"), text(max_rank, " are possible"));
    auto axis_of = [&](std::size_t i) { return options.indexing == MeshIndexing::xy && rank > 1 && i < 2 ? 1 - i : i; };
    std::vector<Dim> grid(rank, Dim(1));
    std::vector<Tensor> out;
    for (std::size_t i = 0; i < rank; ++i) {
      Tensor vector = tensor_of(In(vectors[i], where));
      if (vector.rank() > 1)
        throw Problem(text("part ", i, " is ", type_text(vector), ", not a vector"), "ravel(x) it first");
      std::vector<Dim> sizes(rank, Dim(1));
      grid[axis_of(i)] = sizes[axis_of(i)] = vector.size(where);
      out.push_back(reshape(In(vector, where), sizes));
    }
    if (!options.sparse)
      for (Tensor& one : out) one = broadcast_to(In(one, where), Shape(grid, where));
    return out;
  });
}

}  // namespace stet
