#include "stet/keras/merging.h"

#include <algorithm>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/layer_fields.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/library_layer.h"

namespace stet::keras {
namespace {

bool all_defined(const Tensors& masks) {
  return std::all_of(masks.begin(), masks.end(), [](const Tensor& mask) { return mask.defined(); });
}

/// Where one of them counts; undefined if one has no mask.
Tensors any_of_masks(const Tensors&, const Tensors& masks) {
  if (masks.empty() || !all_defined(masks)) return {};
  Tensor any = masks[0];
  for (std::size_t i = 1; i < masks.size(); ++i) any = logical_or(any, masks[i]);
  return {any};
}

/// With axes of size 1 after the first, up to as many as the others have.
Tensors of_equal_rank(const Tensors& inputs) {
  int most = 0;
  for (const Tensor& x : inputs) most = std::max(most, x.rank());
  Tensors out;
  for (const Tensor& x : inputs) {
    std::vector<int> axes;
    for (int axis = x.rank(); axis < most; ++axis) axes.push_back(axis - x.rank() + 1);
    out.push_back(axes.empty() ? x : expand_dims(x, Axes(axes)));
  }
  return out;
}

/// The mask of an input as one for its elements; undefined: none.
Tensor for_elements(const Tensor& mask) { return mask.defined() ? expand_dims(mask, -1) : mask; }

Tensor added(const Tensors& inputs, const Context&) {
  Tensor total = inputs[0];
  for (std::size_t i = 1; i < inputs.size(); ++i) total = total + inputs[i];
  return total;
}

Tensor averaged(const Tensors& inputs, const Context& context) {
  return added(inputs, context) / static_cast<double>(inputs.size());
}

Tensor subtracted(const Tensors& inputs, const Context&) { return inputs[0] - inputs[1]; }

Tensor multiplied(const Tensors& inputs, const Context& context) {
  Tensor product, counts;
  const bool masked = all_defined(context.masks);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor mask = for_elements(context.mask(i));
    const Tensor x = mask.defined() ? where(mask, inputs[i], 1) : inputs[i];
    product = product.defined() ? product * x : x;
    if (masked) counts = counts.defined() ? logical_or(counts, mask) : mask;
  }
  return masked ? where(counts, product, 0) : product;
}

/// Pairwise; what does not count in one of a pair is taken from the other.
template <Tensor (*op)(In, In)>
Tensor extreme(const Tensors& inputs, const Context& context) {
  Tensor out = inputs[0], counts = for_elements(context.mask(0));
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const Tensor mask = for_elements(context.mask(i));
    const Tensor x = mask.defined() ? where(mask, inputs[i], out) : inputs[i];
    if (counts.defined()) out = where(counts, out, x);
    counts = counts.defined() && mask.defined() ? logical_or(counts, mask) : Tensor();
    out = op(out, x);
  }
  return out;
}

using Merge = Tensor (*)(const Tensors& inputs, const Context& context);

Layer merging(const char* layer, Merge merge, MergeOptions options, int exactly = 0) {
  auto call = [=](const Tensors& inputs, const Context& context) {
    const auto count = static_cast<int>(inputs.size());
    if (exactly > 0 && count != exactly)
      throw UserError(error_text(text(layer, " takes ", exactly, " tensors and was given ", count), context.where,
                                 text("call it on a list of ", exactly, ": layer({a, b})")));
    return merge(of_equal_rank(inputs), context);
  };
  return plain_layer({.class_name = layer,
                      .name = std::move(options.name),
                      .takes = {.least = 1, .layout = "[batch, …]", .inputs = 0},
                      .call_many = call,
                      .supports_masking = true,
                      .compute_mask = any_of_masks,
                      .policy = options.dtype});
}

Layer concatenation(int axis, MergeOptions options) {
  auto mask = [=](const Tensors& inputs, const Tensors& masks) -> Tensors {
    if (std::none_of(masks.begin(), masks.end(), [](const Tensor& one) { return one.defined(); })) return {};
    Tensors all;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Tensor one = masks[i];
      if (!one.defined()) one = cast(ones_like(inputs[i]), DType::bool_);
      if (one.rank() < inputs[i].rank()) one = broadcast_to(expand_dims(one, -1), inputs[i].shape());
      all.push_back(one);
    }
    return {any(concat(all, axis), -1)};
  };
  return plain_layer({.class_name = "Concatenate",
                      .name = std::move(options.name),
                      .takes = {.least = 1, .layout = "[batch, …]", .inputs = 0},
                      .call_many =
                          [=](const Tensors& inputs, const Context& context) {
                            for (const Tensor& input : inputs)
                              if (input.rank() != inputs[0].rank())
                                throw UserError(error_text(text("Concatenate: ", described(inputs[0]), " and ",
                                                                described(input), " have different numbers of axes"),
                                                           context.where,
                                                           "keras::Flatten() or keras::Reshape({…}) makes them fit"));
                            return concat(inputs, axis, context.where);
                          },
                      .supports_masking = true,
                      .compute_mask = mask,
                      .policy = options.dtype});
}

/// Products along `axis` of the first and `other` of the second, for every sample; they are counted from 0.
Tensor batch_dot(Tensor a, Tensor b, int axis, int other) {
  const bool vector_a = a.rank() == 2, vector_b = b.rank() == 2;
  std::vector<Dim> sizes{a.dim(0)};
  Dim rows = 1, columns = 1;
  for (int k = 1; k < a.rank(); ++k)
    if (k != axis) rows = rows * a.dim(k), sizes.push_back(a.dim(k));
  for (int k = 1; k < b.rank(); ++k)
    if (k != other) columns = columns * b.dim(k), sizes.push_back(b.dim(k));
  if (vector_a && vector_b) sizes.push_back(1);
  Tensor left = reshape(moveaxis(a, axis, -1), {a.dim(0), rows, a.dim(axis)});
  Tensor right = reshape(moveaxis(b, other, 1), {b.dim(0), b.dim(other), columns});
  return reshape(matmul(left, right), sizes);
}

struct ConcatenateRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "Concatenate";
  int axis = -1;
  MergeOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f("axis", axis);
  }
  Layer make(Where where) const { return Concatenate(axis, options, where); }
};
struct DotRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "Dot";
  Axes axes = -1;
  DotOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f.required("axes");
    axes_field(f, "axes", axes);
    f("normalize", options.normalize);
  }
  Layer make(Where where) const { return Dot(axes, options, where); }
};
const Savable<ConcatenateRecipe> savable_concatenate;
const Savable<DotRecipe> savable_dot;

}  // namespace

#define STET_MERGING(Name, merge, exactly)                                            \
  Name::Name(MergeOptions options) : Layer(merging(#Name, merge, options, exactly)) { \
    note_recipe(*this, PlainRecipe<Name, #Name, MergeOptions>{std::move(options)});   \
  }                                                                                   \
  const Savable<PlainRecipe<Name, #Name, MergeOptions>> savable_##Name;
STET_MERGING(Add, added, 0)
STET_MERGING(Subtract, subtracted, 2)
STET_MERGING(Multiply, multiplied, 0)
STET_MERGING(Average, averaged, 0)
STET_MERGING(Maximum, extreme<maximum>, 0)
STET_MERGING(Minimum, extreme<minimum>, 0)
#undef STET_MERGING
Concatenate::Concatenate(int axis, MergeOptions options, Where where) : Layer(concatenation(axis, options)) {
  if (axis == 0)
    throw UserError(error_text("Concatenate: axis 0 is the batch", where, "give one from 1 on, or from the end: -1"));
  note_recipe(*this, ConcatenateRecipe{axis, std::move(options)});
}

Dot::Dot(Axes axes, DotOptions options, Where where) {
  const std::vector<std::int64_t> given = axes.axes;
  if (given.empty() || given.size() > 2 || std::count(given.begin(), given.end(), 0) > 0)
    throw UserError(error_text("Dot: axes that are not one number or two from 1 on", where,
                               "give one for both tensors, or {first's, second's}; axis 0 is the batch"));
  const bool normalize = options.normalize;
  auto call = [=](const Tensors& inputs, const Context& context) {
    if (inputs.size() != 2)
      throw UserError(error_text(text("Dot takes 2 tensors and was given ", inputs.size()), context.where,
                                 "call it on a list of two: Dot(1)({a, b})"));
    int at[2];
    for (std::size_t i = 0; i < 2; ++i) {
      const int rank = inputs[i].rank(), axis = static_cast<int>(given[given.size() == 1 ? 0 : i]);
      at[i] = axis < 0 ? axis + rank : axis;
      if (at[i] < 1 || at[i] >= rank)
        throw UserError(error_text(text("Dot: ", described(inputs[i]), " has no axis ", axis, " beside the batch"),
                                   context.where, text("give one from 1 to ", rank - 1)));
    }
    if (!inside::require(inputs[0].dim(at[0]), Relation::equal, inputs[1].dim(at[1]),
                         {"Dot", "sizes of the axes", context.where}))
      throw UserError(error_text(text("Dot: axis ", at[0], " of ", described(inputs[0]), " and axis ", at[1], " of ",
                                      described(inputs[1]), " have other sizes"),
                                 context.where, "give axes of equal sizes, Dot({1, 2})"));
    const L2NormalizeOptions tiny{.epsilon = 1e-24};
    return batch_dot(normalize ? l2_normalize(inputs[0], at[0], tiny) : inputs[0],
                     normalize ? l2_normalize(inputs[1], at[1], tiny) : inputs[1], at[0], at[1]);
  };
  Layer::operator=(plain_layer({.class_name = "Dot",
                                .name = options.name,
                                .takes = {.least = 2, .layout = "[batch, …, values]", .inputs = 0},
                                .call_many = call,
                                .supports_masking = true,
                                .compute_mask = [](const Tensors&, const Tensors&) { return Tensors{}; },
                                .policy = options.dtype}));
  note_recipe(*this, DotRecipe{axes, options});
}

}  // namespace stet::keras
