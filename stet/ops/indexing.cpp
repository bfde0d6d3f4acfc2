// Brackets: x[{0, ellipsis, range(1, 5), positions}]. Positions, ranges and new axes are a slice, a reversal of axes
// that are walked backwards, and a change of shape; tensors of positions, and masks, are a gather.
#include <algorithm>

#include "stet/base/inside.h"
#include "stet/core/call.h"
#include "stet/core/tensor_node.h"
#include "stet/ops/ops.h"
#include "stet/ops/slice.h"
#include "stet/ops/table.h"

namespace stet {
namespace {

using inside::Index;
using inside::Indices;

constexpr const char* operand_names[] = {"x"};

/// The part of an axis that a range takes, forwards: positions begin, begin + step, …; `size` of them.
struct IndexedAxis {
  Dim begin = 0, size = 0;
  std::int64_t step = 1;
  bool backwards = false;
};

/// One end of a part of an axis: so many positions after its begin, or (none or less) after its end. A size counts from
/// the begin, whatever its value.
struct RangeEnd {
  std::int64_t at = 0;
  bool from_end = false;
  std::optional<Dim> size = {};

  /// The position itself, or for a walk backwards the one after it.
  static RangeEnd of(const RangeBound& bound, std::int64_t shift) {
    if (bound.size) return {0, false, *bound.size + shift};
    constexpr std::int64_t farthest = std::int64_t{1} << 61;
    return {std::clamp(bound.position, -farthest, farthest) + shift, bound.position < 0, {}};
  }
  /// Cut to the axis. That is a size like any other (a minimum or maximum of sizes): nothing is asked, so one trace
  /// serves all extents.
  Dim cut_to(const Dim& extent) const {
    if (size) return smaller_of(larger_of(*size, 0), extent);
    if (at == 0) return from_end ? extent : Dim(0);
    return from_end ? larger_of(extent + at, 0) : smaller_of(at, extent);
  }
};

/// Python's rule: bounds are cut to the axis, a step may go backwards.
IndexedAxis resolve_range(const Range& range, const Dim& extent, int axis) {
  if (range.step == 0) throw Problem(text("the step of axis ", axis, " is 0"), "use a positive or negative step");
  IndexedAxis out;
  out.backwards = range.step < 0;
  RangeEnd low, high{.at = 0, .from_end = true};
  if (const auto& given = out.backwards ? range.end : range.begin) low = RangeEnd::of(*given, out.backwards);
  if (const auto& given = out.backwards ? range.begin : range.end) high = RangeEnd::of(*given, out.backwards);
  Dim begin = low.cut_to(extent), end = high.cut_to(extent), length = 0;
  // Ends that are counted from the same side are in order or not, whatever the extent. Others may cross.
  if (low.size || high.size)
    length = larger_of(end - begin, 0);
  else if (low.from_end == high.from_end)
    length = low.at < high.at ? end - begin : Dim(0);
  else if (low.from_end)
    length = larger_of(end - begin, 0);
  else
    length = low.at == 0 ? end : larger_of(extent + high.at - low.at, 0);
  // A step past the end takes one element, however long it is; the arithmetic below must not overflow.
  constexpr std::int64_t longest = std::int64_t{1} << 61;
  out.step = out.backwards ? -std::max(range.step, -longest) : std::min(range.step, longest);
  out.size = (length + (out.step - 1)) / out.step;
  // Backwards the last position of the part is taken for certain, forwards the first: what is left over lies at the
  // other end. (Of an empty part nothing is left over, and it begins where it ends.)
  out.begin = out.backwards && out.step > 1 ? smaller_of(begin + (length - 1) % out.step, end) : begin;
  // An empty part of a range whose ends have crossed begins within the axis all the same.
  if (low.size || high.size) out.begin = smaller_of(out.begin, extent);
  return out;
}

/// What an indexing expression says about each axis of the tensor, and the shape that is left.
struct Selection {
  Selection(const TensorNode& tensor, Where line) : whole(tensor.shape()), where(line) {}

  void take(const Range& range) {
    IndexedAxis one = resolve_range(range, whole[axis], axis);
    if (one.backwards) backwards.push_back(axis);
    add(one.begin, one.size, one.step);
    shape.push_back(one.size);
  }

  void take_position(const RangeBound& position) {
    // Whether the position exists slice tests in every call, with its sizes.
    const Dim& extent = whole[axis];
    bool from_end = !position.size && position.position < 0;
    Dim at = position.size ? *position.size : from_end ? extent + position.position : Dim(position.position);
    index.resize(static_cast<std::size_t>(axis));
    index.push_back(position.size ? size_text(*position.size) : text(position.position));
    add(at, 1, 1);
  }

  void take_whole(int count) {
    for (int i = 0; i < count; ++i) take(Range{});
  }
  /// An axis along which a tensor of positions chooses: whole for now, and where it will be.
  void take_by(Tensor positions) {
    chosen_axes.push_back(static_cast<int>(shape.size()));
    chosen_by.push_back(std::move(positions));
    chosen_from.push_back(axis);
    take(Range{});
  }

  const Shape whole;
  const Where where;
  int axis = 0;  // the next one
  std::vector<Dim> begin, size;
  std::vector<std::int64_t> step;
  std::vector<std::string> index;
  std::vector<int> backwards;
  std::vector<Dim> shape;
  // Tensors of positions, the axes of `shape` that they choose along, and the axes of the tensor.
  std::vector<Tensor> chosen_by;
  std::vector<int> chosen_axes, chosen_from;

 private:
  void add(const Dim& at, const Dim& count, std::int64_t by) {
    begin.push_back(at);
    size.push_back(count);
    step.push_back(by);
    ++axis;
  }
};

/// How many axes of the tensor an entry speaks of.
int axes_of(const Index& index) {
  switch (index.kind) {
    case Index::Kind::newaxis:
    case Index::Kind::ellipsis:
      return 0;
    case Index::Kind::tensor:
      if (!index.tensor.defined()) throw Problem("an index is an undefined tensor", advice_for_undefined(index.tensor));
      return index.tensor.dtype() == DType::bool_ ? index.tensor.rank() : 1;
    default:
      return 1;
  }
}

/// A mask stands for the positions of its true elements, one tensor of them per axis.
void take_mask(Selection& out, const Tensor& mask) {
  if (mask.rank() == 0) throw Problem("a mask without axes", "use where() to choose by one condition");
  for (int k = 0; k < mask.rank(); ++k)
    if (!require(mask.dim(k), Relation::equal, out.whole[out.axis + k], {"indexing", "size of a mask", out.where}))
      throw Problem(text("axis ", k, " of the mask has ", size_text(mask.dim(k)), " elements, axis ", out.axis + k,
                         " of 'x' ", size_text(out.whole[out.axis + k])),
                    "a mask has the sizes of the axes that it chooses from");
  Tensor positions = nonzero(mask);
  for (int k = 0; k < mask.rank(); ++k) out.take_by(positions[{Range{}, k}]);
}

void take_tensor(Selection& out, const Tensor& index) {
  if (index.dtype() == DType::bool_) return take_mask(out, index);
  if (!is_integer(index.dtype()))
    throw Problem(text("an index is a tensor of ", index.dtype(), ", not of integers or bool"),
                  "cast(index, i64), or compare to make a mask");
  // Negative positions count from the end.
  const Dim& extent = out.whole[out.axis];
  Tensor wide = cast(index, DType::i64);
  out.take_by(where(less(wide, 0), wide + extent, wide));
}

Selection select(const TensorNode& node, const std::vector<Index>& entries, Where where) {
  int named = 0, ellipses = 0;
  bool tensors = false;
  for (const Index& index : entries) {
    named += axes_of(index);
    ellipses += index.kind == Index::Kind::ellipsis;
    tensors = tensors || index.kind == Index::Kind::tensor;
  }
  if (ellipses > 1) throw Problem("more than one ellipsis", "use one at most");
  if (named > node.rank)
    throw Problem(text(named, " indices for rank ", int{node.rank}), "give one index per axis at most");
  Selection out(node, where);
  for (const Index& index : entries) switch (index.kind) {
      case Index::Kind::newaxis:
        out.shape.push_back(1);
        break;
      case Index::Kind::ellipsis:
        out.take_whole(node.rank - named);
        break;
      case Index::Kind::range:
        out.take(index.range);
        break;
      case Index::Kind::tensor:
        take_tensor(out, index.tensor);
        break;
      case Index::Kind::position:
        // Beside tensors a position is one of them, as in NumPy.
        if (tensors)
          take_tensor(out, index.position.size ? tensor(*index.position.size) : tensor(index.position.position));
        else
          out.take_position(index.position);
        break;
    }
  out.take_whole(node.rank - out.axis);
  return out;
}

/// What tensors of positions choose: they broadcast against each other, and their axes stand where the first of them
/// stood if they are neighbours, otherwise in front.
Tensor choose(Tensor x, const Selection& by) {
  std::vector<Tensor> checked;
  for (std::size_t i = 0; i < by.chosen_by.size(); ++i) {
    // A position that does not exist is refused here, even if together they name an element.
    Dim extent = by.whole[by.chosen_from[i]];
    checked.push_back(by.chosen_by.size() == 1 ? by.chosen_by[i] : gather(arange(extent), by.chosen_by[i]));
  }
  int count = static_cast<int>(checked.size()), first = by.chosen_axes[0];
  if (count == 1) return gather(x, checked[0], first);
  bool neighbours = by.chosen_axes.back() - first == count - 1;
  if (!neighbours) {
    Axes order(0);
    order.axes.assign(by.chosen_axes.begin(), by.chosen_axes.end());
    for (int axis = 0; axis < x.rank(); ++axis)
      if (std::find(by.chosen_axes.begin(), by.chosen_axes.end(), axis) == by.chosen_axes.end())
        order.axes.push_back(axis);
    x = transpose(x, order);
    first = 0;
  }
  std::vector<Dim> flat;
  Dim elements = 1;
  for (int axis = 0; axis < x.rank(); ++axis) {
    bool inside = axis >= first && axis < first + count;
    if (inside) elements = elements * x.dim(axis);
    if (!inside) flat.push_back(x.dim(axis));
    if (axis == first + count - 1) flat.push_back(elements);
  }
  Tensor position;
  for (int i = 0; i < count; ++i) {
    const Tensor& one = checked[static_cast<std::size_t>(i)];
    position = position.defined() ? position * x.dim(first + i) + one : one;
  }
  return gather(reshape(x, flat), position, first);
}

}  // namespace

Tensor Tensor::operator[](const inside::Indices& indices) const {
  static constexpr IndexWords position_words{"index", "at flat position", "positions",
                                             "positions count from 0; negative ones count from the end", true};
  Frame frame("indexing", indices.where, &position_words);
  In self(*this, indices.where);
  const TensorNode& node = defined_node(*this, "indexing", frame_where());
  try {
    Selection chosen = select(node, indices.entries, indices.where);
    Tensor out = indexed_slice(self, chosen.begin, chosen.size, chosen.step, chosen.index);
    if (!chosen.backwards.empty()) {
      Axes axes(0);
      axes.axes.assign(chosen.backwards.begin(), chosen.backwards.end());
      out = reverse(In(out, indices.where), axes);
    }
    // Positions drop axes of size 1 and newaxis adds some: nothing moves.
    if (static_cast<int>(chosen.shape.size()) != out.rank() ||
        std::any_of(indices.entries.begin(), indices.entries.end(), [](const Index& index) {
          return index.kind == Index::Kind::newaxis || index.kind == Index::Kind::position;
        }))
      out = reshape(In(out, indices.where), chosen.shape);
    return chosen.chosen_by.empty() ? out : choose(out, chosen);
  } catch (const Problem& problem) {
    throw_user_error("indexing", operand_names, {&self, 1}, problem, frame_where());
  }
}

}  // namespace stet
