// Images of another size: composites of gathers and maps, one axis after the other.
#include "stet/core/call.h"
#include "stet/ops/ops.h"
#include "stet/ops/window_call.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- windows and images

struct ResizeOptions {
  /// "nearest", "bilinear" or "bicubic".
  std::string method = "bilinear";
};
/// Images [batch, height, width, channels] at another size, sampled as tf.image.resize does: centres of pixels lie at
/// halves, "bicubic" is Keys' with a = -0.5 and leaves out what is outside of the image. There is no antialias: to make
/// images much smaller, average_pool first. Integers become f32, but for "nearest".
/// Names: tf.image.resize, keras.ops.image.resize, jax.image.resize, torch.nn.functional.interpolate
/// Example: resize(reshape(tensor({0.f, 1.f}), {1, 1, 2, 1}), 1, 4)
STET_API Tensor resize(In x, const Dim& height, const Dim& width, const ResizeOptions& options = {});
/// Every position of [batch, one to three spatial axes, channels] repeated factors[0] times along the first spatial
/// axis, factors[1] times along the second, …: resize by "nearest" with whole factors.
/// Names: keras.layers.UpSampling1D, keras.layers.UpSampling2D, keras.layers.UpSampling3D
/// Example: up_sampling(reshape(tensor({1.f, 2.f}), {1, 1, 2, 1}), {2, 2})
STET_API Tensor up_sampling(In x, const std::vector<std::int64_t>& factors);
#endif

namespace {

constexpr const char* x_names[] = {"x"};

/// Where the elements of an axis of `size` come from in one of `input` elements; in f32, as in TensorFlow.
Tensor source_positions(const Dim& input, const Dim& size) {
  Tensor scale = cast(In(input), DType::f32) / cast(In(size), DType::f32);
  return (cast(arange(size), DType::f32) + 0.5f) * scale;
}

/// Positions as indices into an axis of `input` elements, the nearest ones of it.
Tensor clipped(const Tensor& positions, const Dim& input) {
  return cast(maximum(minimum(positions, cast(In(input - 1), DType::f32)), 0.f), DType::i64);
}

/// A vector that belongs to `axis` of four.
Tensor along(const Tensor& vector, int axis) {
  std::vector<Dim> sizes(static_cast<std::size_t>(4 - axis), Dim(1));
  sizes[0] = vector.dim(0);
  return reshape(vector, sizes);
}

Tensor nearest(const Tensor& x, int axis, const Dim& size) {
  return gather(x, clipped(floor(source_positions(x.dim(axis), size)), x.dim(axis)), axis);
}

Tensor bilinear(const Tensor& x, int axis, const Dim& size) {
  Tensor position = source_positions(x.dim(axis), size) - 0.5f, below = floor(position);
  Tensor low = gather(x, clipped(below, x.dim(axis)), axis),
         high = gather(x, clipped(ceil(position), x.dim(axis)), axis);
  Tensor weight = cast(along(position - below, axis), x.dtype());
  return low + (high - low) * weight;
}

/// Keys' cubic convolution kernel with a = -0.5, of distances up to 1 and from 1 to 2.
Tensor cubic_near(const Tensor& distance) { return (1.5f * distance - 2.5f) * distance * distance + 1.f; }
Tensor cubic_far(const Tensor& distance) { return ((-0.5f * distance + 2.5f) * distance - 4.f) * distance + 2.f; }

Tensor bicubic(const Tensor& x, int axis, const Dim& size) {
  Tensor position = source_positions(x.dim(axis), size) - 0.5f, below = floor(position), part = position - below;
  Tensor weights[] = {cubic_far(part + 1.f), cubic_near(part), cubic_near(1.f - part), cubic_far(2.f - part)};
  Tensor last = cast(In(x.dim(axis) - 1), DType::f32), total, sum;
  Tensor places[4];
  for (int tap = 0; tap < 4; ++tap) {
    places[tap] = below + static_cast<float>(tap - 1);
    Tensor inside = logical_and(places[tap] >= 0.f, places[tap] <= last);
    weights[tap] = where(inside, weights[tap], 0.f);
    total = total.defined() ? total + weights[tap] : weights[tap];
  }
  for (int tap = 0; tap < 4; ++tap) {
    Tensor weight = cast(along(weights[tap] / total, axis), x.dtype());
    Tensor term = gather(x, clipped(places[tap], x.dim(axis)), axis) * weight;
    sum = sum.defined() ? sum + term : term;
  }
  return sum;
}

}  // namespace

Tensor resize(In x, const Dim& height, const Dim& width, const ResizeOptions& options) {
  WindowCall call("resize", x_names, {&x, 1});
  call.require_rank(0, 4, "images are [batch, height, width, channels]");
  const Tensor& given = call.operand(0);
  DType dtype = given.dtype();
  for (const Dim& size : {height, width})
    call.require(check(0, Relation::less_equal, size, {"resize", "size", call.where()},
                       sized_text("size ", size, " is negative")),
                 text("size ", size_text(size), " is negative"));
  using Along = Tensor (*)(const Tensor&, int, const Dim&);
  Along method = options.method == "nearest"    ? nearest
                 : options.method == "bilinear" ? bilinear
                 : options.method == "bicubic"  ? bicubic
                                                : nullptr;
  call.require(method, text("method \"", options.method, "\" is not known"),
               "\"nearest\", \"bilinear\" or \"bicubic\"");
  if (method == nearest) return nearest(nearest(given, 2, width), 1, height);
  // f16 and bf16 are rounded once, at the end.
  DType computed = dtype == DType::f64 ? DType::f64 : DType::f32;
  Tensor result = method(method(dtype == computed ? given : cast(given, computed), 2, width), 1, height);
  return is_floating(dtype) && dtype != computed ? cast(result, dtype) : result;
}

Tensor up_sampling(In x, const std::vector<std::int64_t>& factors) {
  WindowCall call("up_sampling", x_names, {&x, 1});
  const Tensor& given = call.operand(0);
  int spatial = given.rank() - 2;
  call.require(spatial >= 1 && spatial <= 3, text("'x' has rank ", given.rank(), ", not 3, 4 or 5"),
               "[batch, one to three spatial axes, channels]");
  call.require_entries("factors", factors.size(), spatial);
  // [batch, height, 1, width, 1, channels], repeated along the ones.
  std::vector<Dim> apart{given.dim(0)}, repeated{given.dim(0)}, sizes{given.dim(0)};
  call.reporting([&] {
    for (int axis = 0; axis < spatial; ++axis) {
      std::int64_t factor = factors[static_cast<std::size_t>(axis)];
      call.require(factor >= 1, text("factor ", factor, " is less than 1"));
      Dim size = given.dim(axis + 1);
      apart.insert(apart.end(), {size, Dim(1)});
      repeated.insert(repeated.end(), {size, Dim(factor)});
      sizes.push_back(size * factor);
    }
  });
  for (auto* list : {&apart, &repeated, &sizes}) list->push_back(given.dim(-1));
  return reshape(broadcast_to(reshape(given, apart), Shape(repeated)), sizes);
}

}  // namespace stet
