// Pools: the largest element or the mean of windows, and what their gradients need.
#include "stet/compiler/lower.h"
#include "stet/core/batch.h"
#include "stet/core/call.h"
#include "stet/core/gradient.h"
#include "stet/ir/graph.h"
#include "stet/ops/ops.h"
#include "stet/ops/samples.h"
#include "stet/ops/saved_rows.h"
#include "stet/ops/table.h"
#include "stet/ops/window_call.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- windows and images

struct PoolOptions {
  /// One entry per spatial axis; empty: the window, so that windows lie side by side.
  std::vector<std::int64_t> strides = {};
  WindowPadding padding = "valid";
};
/// The largest element of every window of [batch, one to three spatial axes, channels]; what is outside does not count.
/// NaN where there is one. The gradient goes to the first of the largest.
/// Names: tf.nn.max_pool, keras.ops.max_pool, torch.nn.functional.max_pool2d
/// Example: max_pool(reshape(cast(arange(16), f32), {1, 4, 4, 1}), {2, 2})
STET_API Tensor max_pool(In x, const std::vector<std::int64_t>& window, const PoolOptions& options = {});
/// The mean of every window, of the elements that are there: padding is not counted, as in TensorFlow.
/// Names: tf.nn.avg_pool, keras.ops.average_pool, torch.nn.functional.avg_pool2d
/// Example: average_pool(reshape(cast(arange(16), f32), {1, 4, 4, 1}), {2, 2})
STET_API Tensor average_pool(In x, const std::vector<std::int64_t>& window, const PoolOptions& options = {});
/// The largest element of every channel, over all spatial axes: [batch, channels], or with keepdims the axes in place.
/// Names: keras.layers.GlobalMaxPooling2D
/// Example: global_max_pool(reshape(cast(arange(8), f32), {1, 2, 2, 2}))
STET_API Tensor global_max_pool(In x, ReduceOptions options = {});
/// The mean of every channel, over all spatial axes.
/// Names: keras.layers.GlobalAveragePooling2D
/// Example: global_average_pool(reshape(cast(arange(8), f32), {1, 2, 2, 2}))
STET_API Tensor global_average_pool(In x, ReduceOptions options = {});

struct PatchOptions {
  std::vector<std::int64_t> strides = {};  // one entry per spatial axis; empty: 1 for each
  std::vector<std::int64_t> rates = {};    // the distance between a window's elements; empty: 1 for each
  WindowPadding padding = "valid";
};
/// The windows of [batch, one to three spatial axes, channels], each laid out in the last axis: window elements
/// row-major, each with all of its channels, 0 outside.
/// Names: tf.image.extract_patches, keras.ops.image.extract_patches, torch.nn.functional.unfold
/// Example: extract_patches(reshape(arange(9), {1, 3, 3, 1}), {2, 2})
STET_API Tensor extract_patches(In x, const std::vector<std::int64_t>& window, const PatchOptions& options = {});
#endif

namespace {

constexpr const char* x_names[] = {"x"};
constexpr const char* positions_names[] = {"x", "positions"};
constexpr const char* max_pool_results[] = {"values", "positions"};

/// One entry per spatial axis: window o has positions o * stride - low + k of the input, k < window.
struct PoolAttributes {
  std::vector<std::int64_t> window, strides;
  std::vector<Dim> low;
  std::vector<Dim> sizes;  // spatial ones of the result; any will do
  STET_ATTRIBUTES(window, strides, low, sizes)
};

/// Numbers of a window's elements: narrow where they fit, for they are stored for every window.
DType position_type(const PoolAttributes& a) {
  std::int64_t count = 1;
  for (std::int64_t length : a.window)
    if (__builtin_mul_overflow(count, length, &count) || count > 256) return DType::i32;
  return DType::u8;
}

Shape result_shape(InferCall& call) {
  const auto& a = call.attributes<PoolAttributes>();
  std::size_t spatial = a.window.size();
  call.require(spatial >= 1 && spatial <= 3, text("there are ", spatial, " spatial axes"), "1, 2 or 3 are possible");
  call.require(a.strides.size() == spatial && a.low.size() == spatial && a.sizes.size() == spatial,
               "window, strides, padding and sizes are for different numbers of axes");
  std::int64_t count = 1;
  for (std::int64_t length : a.window) {
    call.require(length >= 1, text("window ", length, " is less than 1"));
    call.require(!__builtin_mul_overflow(count, length, &count) && count < (std::int64_t{1} << 31),
                 "a window has too many elements");
  }
  for (std::int64_t stride : a.strides) call.require(stride >= 1, text("stride ", stride, " is less than 1"));
  call.check_sizes(a.sizes);
  int rank = static_cast<int>(spatial) + 2;
  call.require(call.rank(0) == rank, text("'x' has rank ", call.rank(0), ", not ", rank),
               "[batch, spatial axes, channels]");
  Shape out{call.shape(0)[0]};
  for (const Dim& size : a.sizes) out.push_back(size);
  out.push_back(call.shape(0)[-1]);
  return out;
}

void infer_max_pool(InferCall& call) {
  call.require(call.dtype(0) != DType::bool_, "max_pool does not take bool", "cast(x, u8) first");
  Shape out = result_shape(call);
  call.result(call.dtype(0), out);
  call.result(position_type(call.attributes<PoolAttributes>()), out);
}

void require_floating(InferCall& call) {
  call.require(is_floating(call.dtype(0)), text(call.dtype(0), " is not a floating type"), "cast to f32 first");
}

void infer_mean(InferCall& call) {
  require_floating(call);
  call.result(call.dtype(0), result_shape(call));
}

/// Positions are of the windows: of the result's shape for picked, of x's for placed.
void infer_positions(InferCall& call, bool of_result) {
  require_floating(call);
  call.require(is_integer(call.dtype(1)), text("'positions' are ", call.dtype(1), ", not integers"),
               "cast(positions, i64) first");
  Shape out = result_shape(call);
  const Shape &expected = of_result ? out : call.shape(0), &given = call.shape(1);
  call.require(given.rank() == expected.rank(),
               text("'positions' have rank ", given.rank(), ", not ", expected.rank()));
  for (int axis = 0; axis < expected.rank(); ++axis)
    call.require_equal(given[axis], expected[axis], text("sizes of axis ", axis, " of 'positions' and the windows,"));
  call.result(call.dtype(0), out);
}

// --- lowering

Place converted(LowerCall& call, int number, DType to) {
  const ValueType& type = call.in(number);
  if (type.dtype == to) return call.dense(number);
  Place out = call.temporary(to, type.shape), operands[] = {call.place(number)};
  DType dtypes[] = {type.dtype};
  AxisMap axes[] = {identity_axes(type.shape.rank())};
  call.map(type.shape, operands, dtypes, axes, scalar::cast(operand(0, type.dtype), to), out, "convert");
  return out;
}

void lower_pool(LowerCall& call, PoolResult result) {
  const auto& a = call.attributes<PoolAttributes>();
  bool largest = result == PoolResult::largest,
       backwards = result == PoolResult::placed || result == PoolResult::spread;
  const ValueType& type = call.node().results[0];
  PoolSpec spec;
  spec.result = result;
  spec.dtype = compute_type(type.dtype);
  spec.position_type = position_type(a);
  const Shape &windows = backwards ? call.in(0).shape : type.shape, &input = backwards ? type.shape : call.in(0).shape;
  for (std::size_t axis = 0; axis < a.window.size(); ++axis)
    spec.axes.push_back({.input = input[static_cast<int>(axis) + 1],
                         .output = windows[static_cast<int>(axis) + 1],
                         .low = a.low[axis],
                         .window = a.window[axis],
                         .stride = a.strides[axis]});
  spec.batch = type.shape[0];
  spec.channels = type.shape[-1];
  spec.x = converted(call, 0, spec.dtype).buffer;
  Place to;
  if (largest) {
    std::vector<Place> places = call.results();
    spec.positions = places[1].buffer;
    to = places[0];
  } else {
    if (result == PoolResult::picked || result == PoolResult::placed)
      spec.positions = converted(call, 1, spec.position_type).buffer;
    to = call.result();
  }
  bool rounds = type.dtype != spec.dtype;
  Place sums = rounds || to.buffer < 0 ? call.temporary(spec.dtype, type.shape) : to;
  spec.to = sums.buffer;
  call.step(call.target().pool(std::move(spec)));
  if (!rounds || to.buffer < 0) return;
  DType computed = compute_type(type.dtype);
  Place operands[] = {sums};
  DType dtypes[] = {computed};
  AxisMap axes[] = {identity_axes(type.shape.rank())};
  call.map(type.shape, operands, dtypes, axes, scalar::cast(operand(0, computed), type.dtype), to, "round");
}

// --- gradients

Tensor pooled(const OpDef& row, std::initializer_list<In> operands, const PoolAttributes& of, const Shape& result) {
  PoolAttributes attributes = of;
  attributes.sizes.clear();
  for (int axis = 1; axis + 1 < result.rank(); ++axis) attributes.sizes.push_back(result[axis]);
  return call(row, operands, view_of(attributes));
}

void gradient_of_max_pool(GradientCall& g) {
  if (!g.wants(0)) return;
  Tensor d = g.d_of(0);
  g.set(0, pooled(pool_place_row, {In(d), In(g.out(1))}, g.attributes<PoolAttributes>(), g.in(0).shape()));
}

/// Between rows that are each other's transposes: the other one, of what comes in.
void gradient_by(GradientCall& g, const OpDef& transposed, bool with_positions) {
  if (!g.wants(0)) return;
  const auto& a = g.attributes<PoolAttributes>();
  Shape x = g.in(0).shape();
  g.set(0, with_positions ? pooled(transposed, {In(g.d()), In(g.in(1))}, a, x) : pooled(transposed, {In(g.d())}, a, x));
}

// --- patches

/// As PoolAttributes, elements of a window `rates` apart.
struct PatchAttributes {
  std::vector<std::int64_t> window, strides, rates;
  std::vector<Dim> low, sizes;
  STET_ATTRIBUTES(window, strides, rates, low, sizes)
  std::int64_t elements() const {
    std::int64_t count = 1;
    for (std::int64_t length : window) count *= length;
    return count;
  }
};

/// Beyond this a gradient, which has a term for each element of a window, would be no use.
constexpr std::int64_t most_patch_elements = 4096;

void infer_extract_patches(InferCall& call) {
  const auto& a = call.attributes<PatchAttributes>();
  std::size_t spatial = a.window.size();
  call.require(spatial >= 1 && spatial <= 3, text("there are ", spatial, " spatial axes"), "1, 2 or 3 are possible");
  call.require(
      a.strides.size() == spatial && a.rates.size() == spatial && a.low.size() == spatial && a.sizes.size() == spatial,
      "window, strides, rates, padding and sizes are for different numbers of axes");
  for (std::int64_t length : a.window)
    call.require(length >= 1 && length <= most_patch_elements,
                 text("window ", length, " is not between 1 and ", most_patch_elements));
  call.require(a.elements() <= most_patch_elements, text("a window has more than ", most_patch_elements, " elements"));
  for (std::int64_t stride : a.strides) call.require(stride >= 1, text("stride ", stride, " is less than 1"));
  for (std::int64_t rate : a.rates) call.require(rate >= 1, text("rate ", rate, " is less than 1"));
  call.check_sizes(a.sizes);
  int rank = static_cast<int>(spatial) + 2;
  call.require(call.rank(0) == rank, text("'x' has rank ", call.rank(0), ", not ", rank),
               "[batch, spatial axes, channels]");
  Shape out{call.shape(0)[0]};
  for (const Dim& size : a.sizes) out.push_back(size);
  out.push_back(call.shape(0)[-1] * a.elements());
  call.result(call.dtype(0), out);
}

void lower_extract_patches(LowerCall& call) {
  const auto& a = call.attributes<PatchAttributes>();
  const ValueType& x = call.in(0);
  std::size_t spatial = a.window.size(), loops = 2 * spatial + 2;
  Kernel kernel;
  kernel.name = "extract_patches";
  kernel.loops.push_back({x.shape[0], false});
  for (const Dim& size : a.sizes) kernel.loops.push_back({size, false});
  for (std::int64_t length : a.window) kernel.loops.push_back({Dim(length), false});
  kernel.loops.push_back({x.shape[-1], false});
  const Layout& layout = call.place(0).layout;
  Access read;
  read.dtype = x.dtype;
  read.buffer = call.place(0).buffer;
  read.address.offset = layout.offset;
  read.address.strides.assign(loops, Dim(0));
  read.address.strides.front() = layout.strides.front();
  read.address.strides.back() = layout.strides.back();
  for (std::size_t axis = 0; axis < spatial; ++axis) {
    const Dim& step = layout.strides[axis + 1];
    read.address.offset = read.address.offset - a.low[axis] * step;
    read.address.strides[1 + axis] = step * a.strides[axis];
    read.address.strides[1 + spatial + axis] = step * a.rates[axis];
    Guard guard{{Dim(0) - a.low[axis], std::vector<Dim>(loops, Dim(0))}, x.shape[static_cast<int>(axis) + 1]};
    guard.position.strides[1 + axis] = a.strides[axis];
    guard.position.strides[1 + spatial + axis] = a.rates[axis];
    read.guards.push_back(std::move(guard));
  }
  kernel.operands = {std::move(read)};
  kernel.body = operand(0, x.dtype);
  kernel.result.dtype = x.dtype;
  kernel.result.buffer = call.result().buffer;
  kernel.result.address.strides.assign(loops, Dim(0));
  Dim step = 1;
  for (std::size_t loop = loops; loop-- > 0; step = step * kernel.loops[loop].extent)
    kernel.result.address.strides[loop] = step;
  call.kernel(std::move(kernel));
}

/// Each element of the window, from its patches back to its places: a pool of windows of one element.
void gradient_of_extract_patches(GradientCall& g) {
  if (!g.wants(0)) return;
  const auto& a = g.attributes<PatchAttributes>();
  Shape x = g.in(0).shape(), patches = g.out().shape();
  std::vector<std::int64_t> element(a.window.size(), 0);
  Tensor sum;
  for (std::int64_t number = 0; number < a.elements(); ++number) {
    std::vector<Dim> begin(static_cast<std::size_t>(patches.rank()), Dim(0)), size(patches.begin(), patches.end());
    begin.back() = x[-1] * number;
    size.back() = x[-1];
    Tensor mine = slice(g.d(), begin, size);
    PoolAttributes back{std::vector<std::int64_t>(a.window.size(), 1), a.strides, a.low, {}};
    for (std::size_t axis = 0; axis < element.size(); ++axis)
      back.low[axis] = back.low[axis] - element[axis] * a.rates[axis];
    Tensor placed = pooled(pool_spread_row, {In(mine)}, back, x);
    sum = sum.defined() ? sum + placed : placed;
    for (std::size_t axis = element.size(); axis-- > 0 && ++element[axis] == a.window[axis];) element[axis] = 0;
  }
  g.set(0, sum);
}

void samples_of_extract_patches(SampleList& list) {
  list.add({{{2, 4, 3, 3}}}, PatchAttributes{{2, 3}, {1, 1}, {1, 1}, {0, 0}, {3, 1}})
      .add({{{1, 7, 7, 2}}}, PatchAttributes{{3, 3}, {2, 3}, {1, 2}, {1, 1}, {4, 2}})
      .add({{{2, 9, 17}}}, PatchAttributes{{3}, {4}, {1}, {0}, {2}})
      .add({{{1, 1, 1}}}, PatchAttributes{{1}, {1}, {1}, {0}, {1}})
      .add({{{1, 3, 3, 2, 2}}}, PatchAttributes{{2, 1, 2}, {1, 1, 1}, {1, 1, 1}, {0, 0, 1}, {2, 3, 3}})
      .add({{{0, 4, 4, 2}}}, PatchAttributes{{2, 2}, {2, 2}, {1, 1}, {0, 0}, {2, 2}});
}

// --- samples

struct PoolSample {
  std::vector<std::int64_t> input, windows;
  PoolAttributes attributes;
};
/// Side by side, apart, overlapping, with padding on either side, with a last window cut off; one to three axes; few
/// and many channels; empty.
const std::vector<PoolSample>& pool_samples() {
  static const auto* samples =
      new std::vector<PoolSample>{{{2, 4, 6, 3}, {2, 2, 3, 3}, {{2, 2}, {2, 2}, {0, 0}, {}}},
                                  {{1, 3, 5, 16}, {1, 2, 3, 16}, {{2, 2}, {2, 2}, {0, 0}, {}}},
                                  {{1, 3, 2, 33}, {1, 3, 2, 33}, {{3, 3}, {1, 1}, {1, 1}, {}}},
                                  {{2, 7, 7, 2}, {2, 2, 3, 2}, {{2, 3}, {4, 2}, {0, 1}, {}}},
                                  {{2, 5, 17}, {2, 2, 17}, {{3}, {2}, {0}, {}}},
                                  {{1, 1, 4}, {1, 1, 4}, {{1}, {1}, {0}, {}}},
                                  {{2, 3, 4, 5, 2}, {2, 2, 2, 3, 2}, {{2, 2, 2}, {2, 2, 2}, {1, 0, 0}, {}}},
                                  {{1, 20, 20, 2}, {1, 2, 2, 2}, {{17, 17}, {3, 3}, {0, 0}, {}}},
                                  {{0, 4, 4, 2}, {0, 2, 2, 2}, {{2, 2}, {2, 2}, {0, 0}, {}}},
                                  {{2, 4, 4, 0}, {2, 2, 2, 0}, {{2, 2}, {2, 2}, {0, 0}, {}}}};
  return *samples;
}

void add_pool_samples(SampleList& list, bool backwards, bool positions) {
  for (const PoolSample& sample : pool_samples()) {
    PoolAttributes attributes = sample.attributes;
    std::int64_t elements = 1;
    for (std::int64_t length : attributes.window) elements *= length;
    const auto &from = backwards ? sample.windows : sample.input, &to = backwards ? sample.input : sample.windows;
    attributes.sizes.assign(to.begin() + 1, to.end() - 1);
    std::vector<SampleInput> inputs{{from}};
    if (positions) inputs.push_back({sample.windows, elements});
    list.add(std::move(inputs), attributes);
  }
}

void errors_of_pool(ErrorList& list) {
  PoolAttributes plain{{2, 2}, {2, 2}, {0, 0}, {2, 2}}, none{{2, 0}, {2, 2}, {0, 0}, {2, 2}},
      stuck{{2, 2}, {2, 0}, {0, 0}, {2, 2}}, uneven{{2, 2}, {2}, {0, 0}, {2, 2}};
  list.add("'x' has rank 3, not 4", {{DType::f32, {4, 4, 3}}}, plain)
      .add("window 0 is less than 1", {{DType::f32, {1, 4, 4, 3}}}, none)
      .add("stride 0 is less than 1", {{DType::f32, {1, 4, 4, 3}}}, stuck)
      .add("different numbers of axes", {{DType::f32, {1, 4, 4, 3}}}, uneven)
      .add("bool", {{DType::bool_, {1, 4, 4, 3}}}, plain);
}
void errors_of_positions(ErrorList& list) {
  PoolAttributes plain{{2, 2}, {2, 2}, {0, 0}, {2, 2}};
  list.add("'positions' are f32, not integers", {{DType::f32, {1, 2, 2, 3}}, {DType::f32, {1, 2, 2, 3}}}, plain)
      .add("'positions' have rank 3, not 4", {{DType::f32, {1, 2, 2, 3}}, {DType::i64, {2, 2, 3}}}, plain)
      .add("of 'positions' and the windows, 3 and 2 differ", {{DType::f32, {1, 2, 2, 3}}, {DType::i64, {1, 3, 2, 3}}},
           plain)
      .add("i32 is not a floating type", {{DType::i32, {1, 2, 2, 3}}, {DType::i64, {1, 2, 2, 3}}}, plain);
}

/// All operands are batches themselves.
void batch_windows(BatchCall& call) {
  std::vector<Tensor> operands;
  for (int i = 0; i < call.input_count(); ++i) operands.push_back(call.folded(i));
  std::vector<Tensor> results = call.call(operands, call.attributes_view());
  for (std::size_t r = 0; r < results.size(); ++r) results[r] = call.unfolded(results[r], static_cast<int>(r));
  call.set(std::move(results));
}

}  // namespace

constinit const AttributeCodec pool_codec = attribute_codec<PoolAttributes>;
constinit const AttributeCodec patch_codec = attribute_codec<PatchAttributes>;

constinit const OpDef max_pool_row{.name = "max_pool",
                                   .kind = Kind::window,
                                   .summary = "Largest element of each window, and its number in the window.",
                                   .operands = x_names,
                                   .results = max_pool_results,
                                   .infer = infer_max_pool,
                                   .lower = [](LowerCall& call) { lower_pool(call, PoolResult::largest); },
                                   .gradient = gradient_of_max_pool,
                                   .samples = [](SampleList& list) { add_pool_samples(list, false, false); },
                                   .errors = errors_of_pool,
                                   .batch = batch_windows};

constinit const OpDef pool_pick_row{
    .name = "pool_pick",
    .kind = Kind::window,
    .summary = "The element of each window that has the given number.",
    .operands = positions_names,
    .infer = [](InferCall& call) { infer_positions(call, true); },
    .lower = [](LowerCall& call) { lower_pool(call, PoolResult::picked); },
    .gradient = [](GradientCall& g) { gradient_by(g, pool_place_row, true); },
    .samples = [](SampleList& list) { add_pool_samples(list.growing(Grows::everything), false, true); },
    .errors = errors_of_positions,
    .batch = batch_windows};

constinit const OpDef pool_place_row{
    .name = "pool_place",
    .kind = Kind::window,
    .summary = "Added to the element of each window that has the given number.",
    .operands = positions_names,
    .infer = [](InferCall& call) { infer_positions(call, false); },
    .lower = [](LowerCall& call) { lower_pool(call, PoolResult::placed); },
    .gradient = [](GradientCall& g) { gradient_by(g, pool_pick_row, true); },
    .samples = [](SampleList& list) { add_pool_samples(list.rounded(Rounding::sums), true, true); },
    .errors = errors_of_positions,
    .batch = batch_windows};

constinit const OpDef average_pool_row{
    .name = "average_pool",
    .kind = Kind::window,
    .summary = "Mean of each window.",
    .operands = x_names,
    .infer = infer_mean,
    .lower = [](LowerCall& call) { lower_pool(call, PoolResult::mean); },
    .gradient = [](GradientCall& g) { gradient_by(g, pool_spread_row, false); },
    .samples = [](SampleList& list) { add_pool_samples(list.rounded(Rounding::sums), false, false); },
    .errors = errors_of_pool,
    .batch = batch_windows};

constinit const OpDef pool_spread_row{
    .name = "pool_spread",
    .kind = Kind::window,
    .summary = "Spread evenly over each window and added up: the gradient of average_pool.",
    .operands = x_names,
    .infer = infer_mean,
    .lower = [](LowerCall& call) { lower_pool(call, PoolResult::spread); },
    .gradient = [](GradientCall& g) { gradient_by(g, average_pool_row, false); },
    .samples = [](SampleList& list) { add_pool_samples(list.rounded(Rounding::sums), true, false); },
    .errors = errors_of_pool,
    .batch = batch_windows};

constinit const OpDef extract_patches_row{
    .name = "extract_patches",
    .kind = Kind::window,
    .summary = "Windows laid out in the last axis.",
    .operands = x_names,
    .infer = infer_extract_patches,
    .lower = lower_extract_patches,
    .gradient = gradient_of_extract_patches,
    .samples = samples_of_extract_patches,
    .errors =
        [](ErrorList& e) {
          e.add("window 0 is not between 1 and", {{DType::f32, {1, 4, 3}}}, PatchAttributes{{0}, {1}, {1}, {0}, {2}})
              .add("rate 0 is less than 1", {{DType::f32, {1, 4, 3}}}, PatchAttributes{{2}, {1}, {0}, {0}, {2}})
              .add("stride 0 is less than 1", {{DType::f32, {1, 4, 3}}}, PatchAttributes{{2}, {0}, {1}, {0}, {2}})
              .add("'x' has rank 2, not 3", {{DType::f32, {4, 3}}}, PatchAttributes{{2}, {1}, {1}, {0}, {2}})
              .add("different numbers of axes", {{DType::f32, {1, 4, 3}}}, PatchAttributes{{2}, {1}, {1, 1}, {0}, {2}});
        },
    .batch = batch_windows};

// --- callables

namespace {

constexpr const char* data_layout = "[batch, one to three spatial axes, channels]";

/// The options of a pool as attributes, checked.
PoolAttributes pool_attributes(const WindowCall& call, const std::vector<std::int64_t>& window,
                               const PoolOptions& options) {
  const Tensor& x = call.operand(0);
  int spatial = x.rank() - 2;
  call.require(spatial >= 1 && spatial <= 3, text("'x' has rank ", x.rank(), ", not 3, 4 or 5"), data_layout);
  call.require_entries("windows", window.size(), spatial);
  for (std::int64_t length : window) call.require(length >= 1, text("window ", length, " is less than 1"));
  PoolAttributes out{window, options.strides.empty() ? window : options.strides, {}, {}};
  call.require_entries("strides", out.strides.size(), spatial);
  call.require_padding(options.padding, spatial);
  call.reporting([&] {
    for (int axis = 0; axis < spatial; ++axis) {
      auto at = static_cast<std::size_t>(axis);
      if (!options.padding.pairs.empty())
        call.require(options.padding.pairs[at].first < window[at] && options.padding.pairs[at].second < window[at],
                     text("padding {", options.padding.pairs[at].first, ", ", options.padding.pairs[at].second,
                          "} leaves windows of ", window[at], " without an element"),
                     "pad less than the window on either side");
      WindowAxis windows = call.axis(axis, x.dim(axis + 1), window[at], out.strides[at], 1, options.padding);
      out.low.push_back(windows.low);
      out.sizes.push_back(windows.size);
    }
  });
  return out;
}

Axes spatial_axes(const WindowCall& call) {
  int rank = call.operand(0).rank();
  call.require(rank >= 3, text("'x' has rank ", rank, ", not 3 or more"), data_layout);
  std::vector<int> axes;
  for (int axis = 1; axis + 1 < rank; ++axis) axes.push_back(axis);
  return axes;
}

}  // namespace

Tensor max_pool(In x, const std::vector<std::int64_t>& window, const PoolOptions& options) {
  WindowCall call("max_pool", x_names, {&x, 1});
  PoolAttributes attributes = pool_attributes(call, window, options);
  return call_all(max_pool_row, {x}, view_of(attributes))[0];
}

Tensor average_pool(In x, const std::vector<std::int64_t>& window, const PoolOptions& options) {
  WindowCall call("average_pool", x_names, {&x, 1});
  call.require_floating();
  PoolAttributes attributes = pool_attributes(call, window, options);
  return stet::call(average_pool_row, {x}, view_of(attributes));
}

Tensor extract_patches(In x, const std::vector<std::int64_t>& window, const PatchOptions& options) {
  WindowCall call("extract_patches", x_names, {&x, 1});
  const Tensor& data = call.operand(0);
  int spatial = data.rank() - 2;
  call.require(spatial >= 1 && spatial <= 3, text("'x' has rank ", data.rank(), ", not 3, 4 or 5"), data_layout);
  std::vector<std::int64_t> ones(static_cast<std::size_t>(spatial), 1);
  PatchAttributes attributes{
      window, options.strides.empty() ? ones : options.strides, options.rates.empty() ? ones : options.rates, {}, {}};
  call.require_entries("windows", window.size(), spatial);
  call.require_entries("strides", attributes.strides.size(), spatial);
  call.require_entries("rates", attributes.rates.size(), spatial);
  call.require_padding(options.padding, spatial);
  call.reporting([&] {
    for (int axis = 0; axis < spatial; ++axis) {
      auto at = static_cast<std::size_t>(axis);
      WindowAxis windows = call.axis(axis, data.dim(axis + 1), window[at], attributes.strides[at], attributes.rates[at],
                                     options.padding);
      attributes.low.push_back(windows.low);
      attributes.sizes.push_back(windows.size);
    }
  });
  return stet::call(extract_patches_row, {x}, view_of(attributes));
}

Tensor global_max_pool(In x, ReduceOptions options) {
  WindowCall call("global_max_pool", x_names, {&x, 1});
  return max(x, spatial_axes(call), options);
}

Tensor global_average_pool(In x, ReduceOptions options) {
  WindowCall call("global_average_pool", x_names, {&x, 1});
  return mean(x, spatial_axes(call), options);
}

}  // namespace stet
