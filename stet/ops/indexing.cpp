// Brackets: x[{0, ellipsis, range(1, 5)}] as a slice, a reversal of axes walked backwards, and a change of shape.
#include <algorithm>

#include "stet/base/inside.h"
#include "stet/core/call.h"
#include "stet/core/dim_host.h"
#include "stet/core/tensor_node.h"
#include "stet/ops/ops.h"
#include "stet/ops/table.h"

namespace stet {
namespace {

constexpr const char* operand_names[] = {"x"};

struct IndexedAxis {
  Dim begin = 0, size = 0;
  std::int64_t step = 1;
};

/// Python's rule: bounds are cut to the axis, a step may go backwards. Whether a bound lies within the axis is a
/// question about sizes: of a traced tensor the answer is a fact.
IndexedAxis resolve_range(const Range& range, const Dim& extent, int axis, Where where) {
  if (range.step == 0) throw Problem(text("the step of axis ", axis, " is 0"), "use a positive or negative step");
  bool forward = range.step > 0;
  auto within = [&](const Dim& a, const Dim& b) { return compare(a, Relation::less_equal, b, where); };
  auto bound = [&](std::optional<std::int64_t> given, const Dim& missing) {
    if (!given) return missing;
    Dim low = forward ? 0 : -1, high = forward ? extent : extent - 1;
    if (*given < 0) {
      Dim at = extent + *given;
      return within(low, at) ? at : low;
    }
    return within(*given, high) ? Dim(*given) : within(low, high) ? high : low;
  };
  Dim begin = bound(range.begin, forward ? Dim(0) : extent - 1), end = bound(range.end, forward ? extent : Dim(-1));
  Dim distance = forward ? end - begin : begin - end;
  std::int64_t step = range.step == INT64_MIN ? INT64_MAX : forward ? range.step : -range.step;
  // A step past the end takes one element, however long it is; the arithmetic below must not overflow.
  if (extent.is_constant()) step = std::min(step, std::max<std::int64_t>(extent.constant(), 1));
  Dim size = 0;
  if (prove(0, Relation::less_equal, distance) == Proof::yes || within(1, distance))
    size = (distance + (step - 1)) / step;
  return {begin, size, forward ? step : -step};
}

/// What an indexing expression says about each axis of the tensor, and the shape that is left.
struct Selection {
  Selection(const TensorNode& tensor, Where line) : node(tensor), whole(tensor.shape()), where(line) {}

  void take(const Range& range, bool keep) {
    IndexedAxis one = resolve_range(range, whole[axis], axis, where);
    if (one.step < 0) {
      // Forwards through the same elements, then reversed.
      backwards.push_back(axis);
      one.begin = one.size.hint() == 0 ? Dim(0) : one.begin + (one.size - 1) * one.step;
      one.step = -one.step;
    }
    bool single = one.size.is_constant() && one.size.constant() <= 1;
    begin.push_back(one.begin);
    size.push_back(one.size);
    step.push_back(single ? 1 : one.step);
    if (keep) shape.push_back(one.size);
    ++axis;
  }

  void take_position(std::int64_t position) {
    // Whether a position exists is checked when it runs (slice does), and here where sizes are known.
    const Dim& extent = whole[axis];
    Dim at = position < 0 ? extent + position : Dim(position);
    if (extent.is_constant() && (at.constant() < 0 || at.constant() >= extent.constant()))
      throw Problem(text("index ", position, " is out of range for axis ", axis, " of size ", extent),
                    extent.constant() ? text("allowed are ", Dim(0) - extent, " to ", extent - 1)
                                      : std::string("the axis is empty"));
    begin.push_back(at);
    size.push_back(1);
    step.push_back(1);
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
    Tensor out = slice(self, chosen.begin, chosen.size, chosen.step);
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
