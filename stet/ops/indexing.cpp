// Brackets: x[{0, ellipsis, range(1, 5)}] as a slice, a reversal of axes walked backwards, and a change of shape.
#include <algorithm>

#include "stet/base/inside.h"
#include "stet/core/call.h"
#include "stet/core/tensor_node.h"
#include "stet/ops/ops.h"
#include "stet/ops/slice.h"
#include "stet/ops/table.h"

namespace stet {
namespace {

constexpr const char* operand_names[] = {"x"};

/// The part of an axis that a range takes, forwards: positions begin, begin + step, …; `size` of them.
struct IndexedAxis {
  Dim begin = 0, size = 0;
  std::int64_t step = 1;
  bool backwards = false;
};

/// One end of a part of an axis: so many positions after its begin, or (none or less) after its end.
struct RangeEnd {
  std::int64_t at = 0;
  bool from_end = false;

  /// The position itself, or for a walk backwards the one after it.
  static RangeEnd of(std::int64_t position, std::int64_t shift) {
    constexpr std::int64_t farthest = std::int64_t{1} << 61;
    return {std::clamp(position, -farthest, farthest) + shift, position < 0};
  }
  /// Cut to the axis. That is a size like any other (a minimum or maximum of sizes): nothing is asked, so one trace
  /// serves all extents.
  Dim cut_to(const Dim& extent) const {
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
  if (low.from_end == high.from_end)
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
  return out;
}

/// What an indexing expression says about each axis of the tensor, and the shape that is left.
struct Selection {
  Selection(const TensorNode& tensor, Where line) : node(tensor), whole(tensor.shape()), where(line) {}

  void take(const Range& range, bool keep) {
    IndexedAxis one = resolve_range(range, whole[axis], axis);
    if (one.backwards) backwards.push_back(axis);
    begin.push_back(one.begin);
    size.push_back(one.size);
    step.push_back(one.step);
    if (keep) shape.push_back(one.size);
    ++axis;
  }

  void take_position(std::int64_t position) {
    // Whether the position exists slice tests in every call, with its sizes.
    const Dim& extent = whole[axis];
    Dim at = position < 0 ? extent + position : Dim(position);
    begin.push_back(at);
    size.push_back(1);
    step.push_back(1);
    index.resize(static_cast<std::size_t>(axis));
    index.push_back(text(position));
    ++axis;
  }

  void take_whole(int count) {
    for (int i = 0; i < count; ++i) take(Range{}, true);
  }

  const TensorNode& node;
  const Shape whole;
  const Where where;
  int axis = 0;  // the next one
  std::vector<Dim> begin, size;
  std::vector<std::int64_t> step;
  std::vector<std::string> index;
  std::vector<int> backwards;
  std::vector<Dim> shape;
};

Selection select(const TensorNode& node, const std::vector<Index>& entries, Where where) {
  int named = 0, ellipses = 0;
  for (const Index& index : entries) {
    named += index.kind == Index::Kind::position || index.kind == Index::Kind::range;
    ellipses += index.kind == Index::Kind::ellipsis;
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
        out.take(index.range, true);
        break;
      case Index::Kind::position:
        out.take_position(index.position);
        break;
    }
  out.take_whole(node.rank - out.axis);
  return out;
}

}  // namespace

Tensor Tensor::operator[](const Indices& indices) const {
  Frame frame("indexing", indices.where);
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
    bool changes = false;
    for (const Index& index : indices.entries)
      changes |= index.kind == Index::Kind::newaxis || index.kind == Index::Kind::position;
    return changes ? reshape(In(out, indices.where), chosen.shape) : out;
  } catch (const Problem& problem) {
    throw_user_error("indexing", operand_names, {&self, 1}, problem, frame_where());
  }
}

}  // namespace stet
