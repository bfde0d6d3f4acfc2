// Rows that belong together, combined: by an id of each row, by a value, by the interval that a value lies in.
#include <cmath>

#include "stet/ops/composite.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- putting and counting by position

/// Sums of the rows of `data` that have the same id: result[k] is the sum of all data[i] with segment_ids[i] == k. Ids
/// need no order. They may have several axes, which are then the first ones of `data`. A segment without rows is 0; an
/// id outside 0 to segments-1 is a UserError. The type is that of `data`; rows are added in their order.
/// Names: tf.math.unsorted_segment_sum, jax.ops.segment_sum
/// Example: segment_sum(tensor({1, 2, 3, 4}), tensor({2, 0, 2, 0}), 3)
STET_API Tensor segment_sum(In data, In segment_ids, const Dim& segments);
/// Means of the rows that have the same id; of integers f32. A segment without rows is 0.
/// Names: tf.math.unsorted_segment_mean
/// Example: segment_mean(tensor({1.0f, 2.0f, 3.0f, 4.0f}), tensor({2, 0, 2, 0}), 3)
STET_API Tensor segment_mean(In data, In segment_ids, const Dim& segments);
/// The largest of the rows that have the same id, NaN if there is one. A segment without rows is the lowest number that
/// is not infinite.
/// Names: tf.math.unsorted_segment_max, jax.ops.segment_max
/// Example: segment_max(tensor({1, 2, 3, 4}), tensor({1, 0, 1, 0}), 2)
STET_API Tensor segment_max(In data, In segment_ids, const Dim& segments);
/// The smallest of the rows that have the same id, NaN if there is one. A segment without rows is the largest number
/// that is not infinite.
/// Names: tf.math.unsorted_segment_min, jax.ops.segment_min
/// Example: segment_min(tensor({1, 2, 3, 4}), tensor({1, 0, 1, 0}), 2)
STET_API Tensor segment_min(In data, In segment_ids, const Dim& segments);
/// Products of the rows that have the same id. A segment without rows is 1.
/// Names: tf.math.unsorted_segment_prod, jax.ops.segment_prod
/// Example: segment_prod(tensor({1, 2, 3, 4}), tensor({2, 0, 2, 0}), 3)
STET_API Tensor segment_prod(In data, In segment_ids, const Dim& segments);

/// How often each of 0 to length-1 stands in `x`, i64; other values are not counted. (A length that follows from the
/// values, as NumPy's, is max(x).item<std::int64_t>() + 1 here.)
/// Names: jax.numpy.bincount, tf.math.bincount
/// Example: bincount(tensor({1, 0, 1, 5}), 3)
STET_API Tensor bincount(In x, const Dim& length);
/// The sums of the `weights` of equal values, in the weights' type (8- and 16-bit integers and bool: i32).
/// Names: numpy.bincount, tf.math.bincount
/// Example: bincount(tensor({1, 0, 1}), 3, tensor({0.5f, 1.f, 2.f}))
STET_API Tensor bincount(In x, const Dim& length, In weights);

struct HistogramOptions {
  std::optional<double> low = {}, high = {};  // what the bins cover; not given, the smallest and the largest value
  Tensor weights = {};                        // of each value; not given, 1
  bool density = false;                       // so that the integral over all bins is 1, instead of counts
};
struct Histogram {
  Tensor counts, edges;  // counts are i64, or of the weights' type, or with density of the edges'
};
/// How many values lie in each of `bins` intervals of equal width; or, if `bins` is a vector, between its elements,
/// which must ascend. An interval holds its lower edge but not its upper one, the last holds both; what lies outside of
/// all of them, and NaN, is not counted. Edges have the type of `x`; of f16 and bf16 f32, of integers f64.
/// Names: numpy.histogram, jax.numpy.histogram
/// Example: histogram(tensor({1.0f, 2.0f, 1.0f, 4.0f}), 3).counts
STET_API Histogram histogram(In x, In bins, HistogramOptions options = {});
/// The edges alone, one more than bins.
/// Names: numpy.histogram_bin_edges, jax.numpy.histogram_bin_edges
/// Example: histogram_bin_edges(tensor({1.0f, 2.0f, 4.0f}), 3)
STET_API Tensor histogram_bin_edges(In x, In bins, HistogramOptions options = {});

struct DigitizeOptions {
  bool right = false;  // an interval holds its upper edge instead of its lower one
};
/// The number of the interval between ascending `edges` that each element lies in, i64: 0 before the first edge, as
/// many as there are edges after the last, and for NaN.
/// Names: numpy.digitize, jax.numpy.digitize, tf.raw_ops.Bucketize
/// Example: digitize(tensor({0.5f, 1.0f, 7.0f}), tensor({1.0f, 2.0f}))
STET_API Tensor digitize(In x, In edges, DigitizeOptions options = {});
#endif

namespace {

// --- segments

constexpr const char* segment_names[] = {"data", "segment_ids"};
constexpr const char* about_ids = "segment ids are 0, 1, … up to the number of segments less one";
constexpr IndexWords id_of_row{"segment id", "of row", "segments", about_ids},
    id_of_many{"segment id", "at flat position", "segments", about_ids};

const IndexWords* words_for(const In& ids) { return ids.rank() == 1 ? &id_of_row : &id_of_many; }

/// Data and ids with one axis for all rows, and what comes out.
struct Segments {
  Segments(const char* name, const In& given, const In& given_ids, const Dim& segments)
      : call(name, segment_names, {given, given_ids}, words_for(given_ids)), count(segments) {
    data = call.tensor(0);
    ids = call.integers(1);
    const int rank = ids.rank();
    call.require(rank <= data.rank(),
                 text("'segment_ids' have rank ", rank, ", more than the ", data.rank(), " of 'data'"),
                 "the axes of segment_ids are the first axes of data");
    for (int axis = 0; axis < rank; ++axis)
      call.require_equal(data.dim(axis), ids.dim(axis), text("sizes of axis ", axis, " of 'data' and 'segment_ids',"));
    call.require_some(segments + 1, sized_text("the number of segments ", segments, " is negative"));
    const Shape shape = data.shape();
    if (rank != 1) {
      Dim rows = 1;
      for (int axis = 0; axis < rank; ++axis) rows = rows * shape[axis];
      std::vector<Dim> flat{rows};
      flat.insert(flat.end(), shape.begin() + rank, shape.end());
      data = reshape(data, flat);
      ids = reshape(ids, {ids.size()});
    }
    result = {segments};
    for (int axis = rank; axis < shape.rank(); ++axis) result.push_back(shape[axis]);
  }

  Tensor filled(const Tensor& value) const { return broadcast_to(value, result); }
  /// One value for each segment, so that it broadcasts against the result.
  Tensor over_rows(const Tensor& values) const {
    std::vector<Dim> sizes(static_cast<std::size_t>(result.rank()), Dim(1));
    sizes[0] = count;
    return reshape(values, sizes);
  }

  Composite call;
  Dim count;
  Tensor data, ids;
  Shape result;
};

/// The largest or smallest, from infinity on so that infinite rows count; only segments that no row is in get `empty`.
Tensor extreme(const Segments& segments, bool largest) {
  const DType dtype = segments.data.dtype();
  auto scatter = largest ? scatter_max : scatter_min;
  if (!is_floating(dtype)) {
    const DTypeRow& type = row(dtype);
    return scatter(segments.filled(cast(largest ? type.lowest : type.highest, dtype)), segments.ids, segments.data, 0);
  }
  const double sign = largest ? -1 : 1, infinity = std::numeric_limits<double>::infinity();
  Tensor out = scatter(segments.filled(cast(sign * infinity, dtype)), segments.ids, segments.data, 0);
  Tensor has_rows =
      scatter_update(zeros({segments.count}, DType::bool_), segments.ids, cast(ones_like(segments.ids), DType::bool_));
  return where(segments.over_rows(has_rows), out, cast(sign * largest_finite(dtype), dtype));
}

// --- counting

constexpr const char* count_names[] = {"x", "weights"};
constexpr const char* histogram_names[] = {"x", "bins", "weights"};
constexpr const char* digitize_names[] = {"x", "edges"};

/// How much falls into each of `length` bins; what has the number `length` is not counted.
Tensor counted(const Tensor& bin, const Dim& length, const Tensor& weights) {
  Tensor amounts = weights.defined() ? cast(weights, sum_type(weights.dtype())) : ones_like(bin);
  Tensor all = scatter_add(zeros({length + 1}, amounts.dtype()), bin, flattened(amounts));
  return slice(all, {0}, {length});
}

void require_same_sizes(const Composite& call, const Tensor& x, const Tensor& weights) {
  call.require(weights.rank() == x.rank(), text("'weights' have rank ", weights.rank(), ", not ", x.rank(), " as 'x'"),
               "give one weight for each value");
  for (int axis = 0; axis < x.rank(); ++axis)
    call.require_equal(x.dim(axis), weights.dim(axis), text("sizes of axis ", axis, " of 'x' and 'weights',"),
                       "give one weight for each value");
}

Tensor bins_of(const Composite& call, const Dim& length) {
  call.require_some(length + 1, sized_text("the length ", length, " is negative"));
  Tensor x = cast(flattened(call.integers(0)), DType::i64);
  return where(logical_and(greater_equal(x, 0), less(x, length)), x, length);
}

/// The smallest (largest) value; 0 (1) if there is none. One more element, which does not matter, makes that a question
/// that needs no answer before the program runs.
Tensor end_of(const Tensor& values, bool smallest) {
  const double infinity = std::numeric_limits<double>::infinity();
  Tensor none = full({1}, smallest ? infinity : -infinity, values.dtype());
  Tensor all = concat({values, none});
  return where(equal(tensor(values.size()), 0), smallest ? 0 : 1, smallest ? min(all) : max(all));
}

/// What a histogram goes by: x as a vector, in the type of the edges, and the edges.
struct Bins {
  Tensor values, edges;
  Dim count = 0;
};

Tensor even_edges(const Composite& call, const Tensor& values, const Dim& count, const HistogramOptions& options) {
  const DType type = values.dtype();
  for (const std::optional<double>& end : {options.low, options.high})
    call.require(!end || std::isfinite(*end), text("the range ends at ", end.value_or(0), ", which is no number"));
  call.require(!options.low || !options.high || *options.low <= *options.high,
               text("the range from ", options.low.value_or(0), " to ", options.high.value_or(0), " is backwards"),
               "low is the smaller one");
  Tensor low = options.low ? cast(*options.low, type) : end_of(values, true);
  Tensor high = options.high ? cast(*options.high, type) : end_of(values, false);
  Tensor single = equal(low, high);
  low = where(single, low - 0.5, low);
  high = where(single, high + 0.5, high);
  Tensor number = cast(arange(count + 1), type);
  return where(equal(number, count), high, low + number * ((high - low) / count));
}

Bins bins_of(const Composite& call, const HistogramOptions& options) {
  Bins out;
  Tensor x = flattened(call.tensor(0));
  const In& bins = call.in(1);
  DType type = is_floating(x.dtype()) ? compute_type(x.dtype()) : DType::f64;
  if (bins.kind() == In::Kind::tensor) {
    out.edges = call.tensor(1);
    call.require(out.edges.rank() == 1, text("'bins' have rank ", out.edges.rank()),
                 "give their number as a C++ integer or a Dim, or their edges as a vector");
    call.require_some(out.edges.dim(0) - 1, sized_text("the edges are ", out.edges.dim(0)),
                      "give two at least: the ends of one bin");
    type = promote(type, compute_type(floating_type(out.edges.dtype())));
    out.edges = cast(out.edges, type);
    out.count = out.edges.dim(0) - 1;
    out.values = cast(x, type);
    return out;
  }
  call.require(bins.kind() != In::Kind::real, "the number of bins is no integer");
  out.count = bins.kind() == In::Kind::size ? bins.size() : Dim(bins.integer());
  call.require_some(out.count, sized_text("the number of bins is ", out.count), "give at least one");
  out.values = cast(x, type);
  out.edges = even_edges(call, out.values, out.count, options);
  return out;
}

}  // namespace

Tensor segment_sum(In data, In segment_ids, const Dim& segments) {
  Segments by("segment_sum", data, segment_ids, segments);
  return scatter_add(by.filled(cast(0, by.data.dtype())), by.ids, by.data);
}

Tensor segment_mean(In data, In segment_ids, const Dim& segments) {
  Segments by("segment_mean", data, segment_ids, segments);
  // In f32 where the type is f16 or bf16, in which neither sums nor counts go far.
  const DType result = floating_type(by.data.dtype()), type = compute_type(result);
  Tensor sums = scatter_add(by.filled(cast(0, type)), by.ids, cast(by.data, type));
  Tensor counts = scatter_add(zeros({segments}, DType::i64), by.ids, cast(ones_like(by.ids), DType::i64));
  return cast(sums / cast(by.over_rows(maximum(counts, 1)), type), result);
}

Tensor segment_max(In data, In segment_ids, const Dim& segments) {
  return extreme(Segments("segment_max", data, segment_ids, segments), true);
}
Tensor segment_min(In data, In segment_ids, const Dim& segments) {
  return extreme(Segments("segment_min", data, segment_ids, segments), false);
}

Tensor segment_prod(In data, In segment_ids, const Dim& segments) {
  Segments by("segment_prod", data, segment_ids, segments);
  return scatter_multiply(by.filled(cast(1, by.data.dtype())), by.ids, by.data);
}

Tensor bincount(In x, const Dim& length) {
  Composite call("bincount", count_names, {x});
  return counted(bins_of(call, length), length, {});
}

Tensor bincount(In x, const Dim& length, In weights) {
  Composite call("bincount", count_names, {x, weights});
  Tensor amounts = call.tensor(1);
  require_same_sizes(call, call.tensor(0), amounts);
  return counted(bins_of(call, length), length, amounts);
}

Histogram histogram(In x, In bins, HistogramOptions options) {
  std::vector<In> operands{x, bins};
  if (options.weights.defined()) operands.emplace_back(options.weights, x.where());
  Composite call("histogram", histogram_names, operands);
  if (options.weights.defined()) require_same_sizes(call, call.tensor(0), options.weights);
  Bins by = bins_of(call, options);
  Tensor before = searchsorted(by.edges, by.values, {.right = true});  // edges that are not greater
  Tensor outside = logical_or(equal(before, 0), equal(before, by.count + 1));
  Tensor last = equal(by.values, slice(by.edges, {by.count}, {1}));
  Tensor bin = where(last, by.count - 1, where(outside, by.count, before - 1));
  Histogram out{counted(bin, by.count, options.weights), by.edges};
  if (options.density) {
    Tensor amounts = cast(out.counts, by.edges.dtype());
    out.counts = amounts / (sum(amounts) * diff(by.edges));
  }
  return out;
}

Tensor histogram_bin_edges(In x, In bins, HistogramOptions options) {
  Composite call("histogram_bin_edges", histogram_names, {x, bins});
  return bins_of(call, options).edges;
}

Tensor digitize(In x, In edges, DigitizeOptions options) {
  Composite call("digitize", digitize_names, {x, edges});
  Tensor sorted = call.tensor(1), values = call.tensor_beside(0, sorted);
  call.require(sorted.rank() == 1, text("'edges' have rank ", sorted.rank(), ", not 1"));
  const DType type = promote(values.dtype(), sorted.dtype());
  return searchsorted(cast(sorted, type), cast(values, type), {.right = !options.right});
}

}  // namespace stet
