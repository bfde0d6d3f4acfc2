// Order along an axis: sorting, the largest, searching, what stands in the middle.
#include "stet/compiler/lower.h"
#include "stet/core/batch.h"
#include "stet/core/call.h"
#include "stet/core/gradient.h"
#include "stet/ir/graph.h"
#include "stet/ops/axis.h"
#include "stet/ops/ops.h"
#include "stet/ops/samples.h"
#include "stet/ops/saved_rows.h"
#include "stet/ops/table.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- scans, order and search

struct SortOptions {
  bool descending = false;  // from the largest; equal elements keep their order either way
};
/// The elements in order along an axis. Stable; NaN is larger than everything.
/// Names: numpy.sort, array_api.sort, tf.sort
/// Example: sort(tensor({3, 1, 2}))
STET_API Tensor sort(In x, int axis = -1, SortOptions options = {});
/// The positions, i64, that the elements in order have along an axis.
/// Names: numpy.argsort, array_api.argsort, tf.argsort
/// Example: argsort(tensor({3, 1, 2}))
STET_API Tensor argsort(In x, int axis = -1, SortOptions options = {});
struct Sorted {
  Tensor values, positions;  // positions are i64
};
/// The elements in order along an axis, and the positions that they had.
/// Names: torch.sort
/// Example: sort_with_positions(tensor({30, 10, 20})).positions
STET_API Sorted sort_with_positions(In x, int axis = -1, SortOptions options = {});
/// The `k` largest elements along an axis, from the largest, and their positions; of equal ones the first.
/// Names: tf.math.top_k, torch.topk, jax.lax.top_k
/// Example: top_k(tensor({3, 1, 2}), 2).values
STET_API Sorted top_k(In x, const Dim& k, int axis = -1);

struct SearchOptions {
  bool right = false;  // after elements that are equal, instead of before
};
/// Where elements would go into `sorted` to keep it in order, i64: a vector, or lines along the last axis with values
/// of the same leading sizes.
/// Names: numpy.searchsorted, array_api.searchsorted, tf.searchsorted
/// Example: searchsorted(tensor({10, 20, 30}), tensor({5, 20, 99}))
STET_API Tensor searchsorted(In sorted, In values, SearchOptions options = {});
#endif

namespace {

constexpr const char* operand_names[] = {"x"};
constexpr const char* sorted_names[] = {"values", "positions"};
constexpr const char* search_names[] = {"sorted", "values"};

struct SortAttributes {
  int axis = 0;  // from 0
  bool descending = false;
  STET_ATTRIBUTES(axis, descending)
};
struct TopAttributes {
  int axis = 0;  // from 0
  Dim k = 0;
  STET_ATTRIBUTES(axis, k)
};
struct SearchAttributes {
  bool right = false;
  STET_ATTRIBUTES(right)
};

void require_axis(InferCall& call, int axis) {
  call.require(call.rank(0) >= 1, "a scalar has no axis to sort along", "reshape(x, {1}) makes it a vector");
  call.require(axis >= 0 && axis < call.rank(0), text("axis ", axis, " is out of range for rank ", call.rank(0)));
}

void infer_sort(InferCall& call) {
  require_axis(call, call.attributes<SortAttributes>().axis);
  call.result(call.dtype(0), call.shape(0));
  call.result(DType::i64, call.shape(0));
}

void infer_top_k(InferCall& call) {
  const auto& a = call.attributes<TopAttributes>();
  require_axis(call, a.axis);
  const Dim& size = call.shape(0)[a.axis];
  SizedText problem = sized_text("the ", a.k, " largest of ", size, " elements");
  call.check(0, Relation::less_equal, a.k, problem, "k is from 0 to the size of the axis");
  call.check(a.k, Relation::less_equal, size, problem, "k is from 0 to the size of the axis");
  Shape result = call.shape(0);
  result.set(a.axis, a.k);
  call.result(call.dtype(0), result);
  call.result(DType::i64, result);
}

void lower_lines(LowerCall& call, int axis, bool descending, const Dim& kept) {
  std::vector<Place> results = call.results();
  SortSpec spec;
  spec.dtype = call.in(0).dtype;
  spec.descending = descending;
  spec.lines = lines_of(call.in(0).shape, axis);
  spec.kept = kept;
  spec.from = call.dense(0).buffer;
  spec.values = results[0].buffer;
  spec.positions = results[1].buffer;
  call.step(call.target().sort(std::move(spec)));
}
void lower_sort(LowerCall& call) {
  const auto& a = call.attributes<SortAttributes>();
  lower_lines(call, a.axis, a.descending, call.in(0).shape[a.axis]);
}
void lower_top_k(LowerCall& call) {
  const auto& a = call.attributes<TopAttributes>();
  lower_lines(call, a.axis, true, a.k);
}

/// Back to where the values came from.
void gradient_along(GradientCall& g, int axis) {
  if (!g.wants(0) || !g.ds()[0].defined()) return;
  g.set(0, put_along_axis(zeros_like(g.in(0)), g.out(1), g.d(), axis, {.combine = ScatterCombine::add}));
}

void infer_searchsorted(InferCall& call) {
  call.require(call.rank(0) >= 1, "'sorted' has no axis to search along");
  call.require(call.dtype(0) == call.dtype(1), text("'sorted' is ", call.dtype(0), " and 'values' are ", call.dtype(1)),
               "cast one of them first");
  if (call.rank(0) > 1) {
    call.require(call.rank(1) == call.rank(0),
                 text("'values' have rank ", call.rank(1), ", not ", call.rank(0), " as 'sorted'"),
                 "a vector is searched for values of any shape; lines for as many lines of values");
    for (int k = 0; k + 1 < call.rank(0); ++k)
      call.require_equal(call.shape(0)[k], call.shape(1)[k], text("sizes of axis ", k, " of 'sorted' and 'values',"));
  }
  call.result(DType::i64, call.shape(1));
}

void lower_searchsorted(LowerCall& call) {
  const Shape &sorted = call.in(0).shape, &values = call.in(1).shape;
  SearchSpec spec;
  spec.dtype = call.in(0).dtype;
  spec.right = call.attributes<SearchAttributes>().right;
  spec.length = sorted[-1];
  if (sorted.rank() > 1) {
    spec.outer = lines_of(sorted, sorted.rank() - 1).outer;
    spec.count = values[-1];
  } else {
    spec.count = values.element_count();
  }
  spec.lines = call.dense(0).buffer;
  spec.elements = call.dense(1).buffer;
  spec.positions = call.result().buffer;
  call.step(call.target().search(std::move(spec)));
}

template <class Attributes>
void batch_along(BatchCall& call) {
  Attributes attributes = call.attributes<Attributes>();
  attributes.axis = BatchCall::shifted(attributes.axis);
  call.set(call.call({call.in(0)}, view_of(attributes)));
}
void batch_sort(BatchCall& call) { batch_along<SortAttributes>(call); }
void batch_top_k(BatchCall& call) { batch_along<TopAttributes>(call); }
void batch_searchsorted(BatchCall& call) {
  // Lines are searched for lines of values, one vector for values of any shape.
  const bool vector = call.rank(0) == 1;
  if (vector && !call.has_batch(0)) {
    call.set(call.call({call.in(0), call.in(1)}, call.attributes_view()));
    return;
  }
  Tensor values = call.with_batch(1);
  if (vector) values = reshape(values, {call.size(), call.shape(1).element_count()});
  Tensor found = call.call({call.with_batch(0), values}, call.attributes_view())[0];
  call.set({vector ? reshape(found, call.sizes_with_batch(call.result_shape())) : found});
}

}  // namespace

constinit const AttributeCodec sort_codec = attribute_codec<SortAttributes>;
constinit const AttributeCodec top_k_codec = attribute_codec<TopAttributes>;
constinit const AttributeCodec search_codec = attribute_codec<SearchAttributes>;

constinit const OpDef sort_row{
    .name = "sort",
    .kind = Kind::sort,
    .summary = "Elements in order along an axis, and the positions they had.",
    .operands = operand_names,
    .results = sorted_names,
    .infer = infer_sort,
    .lower = lower_sort,
    .gradient = [](GradientCall& g) { gradient_along(g, g.attributes<SortAttributes>().axis); },
    .samples =
        [](SampleList& s) {
          s.add({{{7}}}, SortAttributes{0, false})
              .add({{{3, 70}}}, SortAttributes{1, true})
              .add({{{17, 5}}}, SortAttributes{0, false})
              .add({{{2, 33, 4}}}, SortAttributes{1, true})
              .add({{{300}}}, SortAttributes{0, false})
              .add({{{1}}}, SortAttributes{0, true})
              .add({{{0, 3}}}, SortAttributes{0, false});
        },
    .errors =
        [](ErrorList& e) {
          e.add("axis 2 is out of range", {{DType::f32, {3, 4}}}, SortAttributes{2, false})
              .add("a scalar has no axis", {{DType::f32, {}}}, SortAttributes{0, false});
        },
    .batch = batch_sort};

constinit const OpDef top_k_row{
    .name = "top_k",
    .kind = Kind::sort,
    .summary = "The largest elements along an axis, and their positions.",
    .operands = operand_names,
    .results = sorted_names,
    .infer = infer_top_k,
    .lower = lower_top_k,
    .gradient = [](GradientCall& g) { gradient_along(g, g.attributes<TopAttributes>().axis); },
    .samples =
        [](SampleList& s) {
          s.add({{{7}}}, TopAttributes{0, 3})
              .add({{{3, 70}}}, TopAttributes{1, 1})
              .add({{{17, 5}}}, TopAttributes{0, 17})
              .add({{{2, 33, 4}}}, TopAttributes{1, 5})
              .add({{{90}}}, TopAttributes{0, 5})
              .add({{{1}}}, TopAttributes{0, 1})
              .add({{{4, 3}}}, TopAttributes{1, 0});
        },
    .errors =
        [](ErrorList& e) {
          e.add("the 5 largest of 4 elements", {{DType::f32, {3, 4}}}, TopAttributes{1, 5})
              .add("the -1 largest of 4 elements", {{DType::f32, {3, 4}}}, TopAttributes{1, -1})
              .add("axis 2 is out of range", {{DType::f32, {3, 4}}}, TopAttributes{2, 1});
        },
    .batch = batch_top_k};

constinit const OpDef searchsorted_row{
    .name = "searchsorted",
    .kind = Kind::sort,
    .summary = "Positions that keep a sorted axis sorted.",
    .operands = search_names,
    .infer = infer_searchsorted,
    .lower = lower_searchsorted,
    .samples =
        [](SampleList& s) {
          s.add({{{9}, -1, Draw::ordered}, {{4, 5}}}, SearchAttributes{false})
              .add({{{9}, -1, Draw::ordered}, {{40}}}, SearchAttributes{true})
              .add({{{3, 70}, -1, Draw::ordered}, {{3, 20}}}, SearchAttributes{false})
              .add({{{0}, -1, Draw::ordered}, {{3}}}, SearchAttributes{false})
              .add({{{5}, -1, Draw::ordered}, {{}}}, SearchAttributes{false})
              .add({{{5}, -1, Draw::ordered}, {{0}}}, SearchAttributes{true});
        },
    .errors =
        [](ErrorList& e) {
          e.add("'sorted' is f32 and 'values' are i32", {{DType::f32, {3}}, {DType::i32, {3}}}, SearchAttributes{})
              .add("'values' have rank 1, not 2", {{DType::f32, {3, 4}}, {DType::f32, {3}}}, SearchAttributes{})
              .add("3 and 2 differ", {{DType::f32, {3, 4}}, {DType::f32, {2, 5}}}, SearchAttributes{})
              .add("'sorted' has no axis", {{DType::f32, {}}, {DType::f32, {5}}}, SearchAttributes{});
        },
    .batch = batch_searchsorted};

Sorted sort_with_positions(In x, int axis, SortOptions options) {
  SortAttributes attributes{counted_axis(sort_row, x, axis), options.descending};
  std::vector<Tensor> results = call_all(sort_row, {x}, view_of(attributes));
  return {std::move(results[0]), std::move(results[1])};
}
Tensor sort(In x, int axis, SortOptions options) { return sort_with_positions(x, axis, options).values; }
Tensor argsort(In x, int axis, SortOptions options) {
  Frame frame("argsort", x.where());
  return sort_with_positions(x, axis, options).positions;
}

Sorted top_k(In x, const Dim& k, int axis) {
  TopAttributes attributes{counted_axis(top_k_row, x, axis), k};
  std::vector<Tensor> results = call_all(top_k_row, {x}, view_of(attributes));
  return {std::move(results[0]), std::move(results[1])};
}

Tensor searchsorted(In sorted, In values, SearchOptions options) {
  return call(searchsorted_row, {sorted, values}, view_of(SearchAttributes{options.right}));
}

}  // namespace stet
