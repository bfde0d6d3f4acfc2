// vmap: a function of one example as a function of many.
#pragma once
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/differentiate.h"
#include "stet/core/structure.h"

namespace stet {

/// By argument: the axis along which its tensors hold the examples, from the end if it is negative; std::nullopt for an
/// argument that all examples share. Numbers and Variables are shared, whatever is said of them.
using VmapAxes = std::vector<std::optional<int>>;

struct VmapOptions {
  VmapAxes axes = {};  // empty: the first of every argument
  int out_axis = 0;    // along which the results hold the examples
};

namespace inside {

STET_API Leaves run_vmap(const ArgumentLeaves& arguments, std::size_t argument_count, const HostBody& f,
                         const VmapOptions& options, Where where);

template <class Signature>
class Vmapped;
template <class R, class... A>
class Vmapped<R(A...)> {
 public:
  Vmapped(HostBody f, VmapOptions options) : f_(std::move(f)), options_(std::move(options)) {}

  R operator()(A... arguments, Where where = Where::here()) const {
    ArgumentLeaves leaves = argument_leaves(std::tuple<std::remove_cvref_t<A>...>(arguments...));
    Leaves out = run_vmap(leaves, sizeof...(A), f_, options_, where);
    LeafReader reader(out);
    return structure::Of<R>::read(reader);
  }

 private:
  HostBody f_;
  VmapOptions options_;
};

template <class F>
auto vmapped(F f, VmapOptions options) {
  return Vmapped<SignatureOf<F>>(host_body(std::move(f)), std::move(options));
}

}  // namespace inside

/// The function for many examples at once: `f` is written for one, and what vmap gives takes arguments with one more
/// axis, along which the examples lie, and gives results with one more. The result is what a loop over the examples
/// would give, from ops that take all of them: `f` runs once, on tensors without the axis of the examples.
///
///   auto per_sample = vmap(grad(loss), {std::nullopt, 0, 0});   // weights shared, images and labels by example
///   Tensor gradients = per_sample(weights, images, labels);     // [examples, weights…]
///
/// Maps nest, and are differentiated, traced and looped over like other code. `if (tensor)` on a value that differs
/// from example to example, loops whose number of turns does, and a few rows for which there is no other way run
/// example by example; so does all of an `f` that draws random numbers, writes Variables, prints or calls the host, or
/// in which a size depends on the values of an example. A result of such a size is a TraceError.
template <PlainCallable F>
auto vmap(F f) {
  return inside::vmapped(std::move(f), {});
}
template <PlainCallable F>
auto vmap(F f, VmapAxes axes) {
  return inside::vmapped(std::move(f), {.axes = std::move(axes)});
}
template <PlainCallable F>
auto vmap(F f, VmapOptions options) {
  return inside::vmapped(std::move(f), std::move(options));
}

}  // namespace stet
