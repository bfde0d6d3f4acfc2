#include "stet/core/vmap.h"

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/inside.h"
#include "stet/base/text.h"
#include "stet/core/batch.h"
#include "stet/core/flat_loop.h"
#include "stet/core/tape.h"
#include "stet/core/tensor_node.h"

namespace stet::inside {
namespace {

[[noreturn]] void fail(const std::string& problem, const std::string& advice, Where where) {
  throw UserError(error_text(text("vmap: ", problem), where, advice));
}

bool is_tensor(const Leaf& leaf) { return leaf.kind == Leaf::tensor && leaf.value.defined(); }

/// The tensors of the arguments that hold examples, with their axis in front, and how many there are.
class Examples {
 public:
  Examples(const ArgumentLeaves& arguments, std::size_t count, const VmapAxes& axes, Where where) : where_(where) {
    if (!axes.empty() && axes.size() != count)
      fail(text(axes.size(), axes.size() == 1 ? " axis" : " axes", " for ", count,
                count == 1 ? " argument" : " arguments"),
           "give one for each, std::nullopt for an argument that all examples share; none at all: the first of every "
           "argument",
           where);
    for (std::size_t i = 0; i < arguments.leaves.size(); ++i) {
      const Leaf& leaf = arguments.leaves[i];
      const auto owner = static_cast<std::size_t>(arguments.owners[i]);
      const std::optional<int> axis = axes.empty() ? 0 : axes[owner];
      if (!axis || !is_tensor(leaf)) continue;
      add(leaf, *axis, text("argument ", owner, leaf.path));
      places_.push_back(i);
    }
    if (tensors_.empty()) fail("no argument is a tensor that holds examples", "give the axis of one of them", where);
  }

  const std::vector<Tensor>& tensors() const { return tensors_; }
  const Dim& size() const { return *size_; }
  /// The arguments of one example.
  Leaves with(Leaves leaves, std::span<const Tensor> elements) const {
    for (std::size_t k = 0; k < places_.size(); ++k) leaves[places_[k]].value = elements[k];
    return leaves;
  }

 private:
  void add(const Leaf& leaf, int axis, const std::string& place) {
    // A number that takes the type of what it meets is one like any other here.
    const Tensor x = leaf.value.node()->weak ? same_value(leaf.value) : leaf.value;
    if (axis < -x.rank() || axis >= x.rank())
      fail(text(place, " is ", type_text(x), ", which has no axis ", axis),
           "std::nullopt is the axis of an argument that all examples share", where_);
    const int from = axis < 0 ? axis + x.rank() : axis;
    const Dim size = x.dim(from);
    bool fits = true;
    if (size_) try {
        fits = require(size, Relation::equal, *size_, {"vmap", "examples", where_});
      } catch (const Problem&) {
        fits = false;
      }
    if (!fits)
      fail(text(place, ", ", type_text(x), ", holds ", size_text(size), " examples along axis ", axis, ", and ",
                first_place_, " ", size_text(*size_)),
           "all hold as many", where_);
    if (!size_) first_place_ = place;
    if (!size_) size_ = size;
    tensors_.push_back(moved_axis(x, from, 0));
  }

  Where where_;
  std::vector<Tensor> tensors_;
  std::vector<std::size_t> places_;  // among the leaves
  std::optional<Dim> size_;
  std::string first_place_;
};

}  // namespace

Leaves run_vmap(const ArgumentLeaves& arguments, std::size_t argument_count, const HostBody& f,
                const VmapOptions& options, Where where) {
  const Examples examples(arguments, argument_count, options.axes, where);
  Leaves form;
  FlatLoop loop;
  loop.name = "vmap";
  loop.where = where;
  loop.turns = examples.size();
  loop.sequences = examples.tensors();
  loop.at_once = true;
  loop.body = [&](std::span<const Tensor>, std::span<const Tensor> elements, const Tensor&) {
    form = f(examples.with(arguments.leaves, elements));
    FlatTurn left;
    for (Leaf& leaf : form) {
      if (leaf.kind == Leaf::variable)
        fail(text("the function gives a Variable", leaf.path.empty() ? "" : " in ", leaf.path), "return what it holds",
             where);
      if (!is_tensor(leaf)) continue;
      left.stacked.push_back(leaf.value.node()->weak ? same_value(leaf.value) : leaf.value);
    }
    return left;
  };
  std::vector<Tensor> results = run_flat_loop(loop).stacked;
  std::size_t next = 0;
  for (Leaf& leaf : form) {
    if (!is_tensor(leaf)) continue;
    const Tensor& result = results[next++];
    if (options.out_axis < -result.rank() || options.out_axis >= result.rank())
      fail(text("a result of ", type_text(result), ", the examples among its axes, has no axis ", options.out_axis),
           "out_axis is one of the result's axes", where);
    leaf.value = moved_axis(result, 0, options.out_axis < 0 ? options.out_axis + result.rank() : options.out_axis);
    leaf.weak = false;
  }
  return form;
}

}  // namespace stet::inside
