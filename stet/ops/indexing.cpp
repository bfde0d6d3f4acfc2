// Brackets: x[{0, ellipsis, range(1, 5)}] as a slice, a reversal of axes walked backwards, and a change of shape.
#include <algorithm>

#include "stet/core/call.h"
#include "stet/core/tensor_node.h"
#include "stet/ops/ops.h"
#include "stet/ops/table.h"

namespace stet {
namespace {

constexpr const char* operand_names[] = {"x"};

struct IndexedAxis {
  std::int64_t begin = 0, size = 0, step = 1;
};

/// Python's rule: bounds are cut to the axis, a step may go backwards.
IndexedAxis resolve_range(const Range& range, std::int64_t extent, int axis) {
  if (range.step == 0) throw Problem(text("the step of axis ", axis, " is 0"), "use a positive or negative step");
  bool forward = range.step > 0;
  auto bound = [&](std::optional<std::int64_t> given, std::int64_t missing) {
    if (!given) return missing;
    std::int64_t at = *given < 0 ? (*given < -extent ? -1 - extent : *given) + extent : *given;
    std::int64_t low = forward ? 0 : -1, high = forward ? extent : extent - 1;
    return std::clamp(at, low, std::max(low, high));
  };
  std::int64_t begin = bound(range.begin, forward ? 0 : extent - 1), end = bound(range.end, forward ? extent : -1);
  std::int64_t distance = forward ? end - begin : begin - end;
  std::int64_t step = range.step == INT64_MIN ? INT64_MAX : forward ? range.step : -range.step;
  std::int64_t size = distance <= 0 ? 0 : (distance - 1) / step + 1;
  return {begin, size, forward ? step : -step};
}

/// What an indexing expression says about each axis of the tensor, and the shape that is left.
struct Selection {
  explicit Selection(const TensorNode& tensor) : node(tensor) {}

  void take(const Range& range, bool keep) {
    std::int64_t extent = node.sizes[axis];
    IndexedAxis one = resolve_range(range, extent, axis);
    if (one.step < 0) {
      // Forwards through the same elements, then reversed.
      backwards.push_back(axis);
      one.begin = one.size ? one.begin + (one.size - 1) * one.step : 0;
      one.step = -one.step;
    }
    begin.push_back(std::min(one.begin, extent));
    size.push_back(one.size);
    step.push_back(one.size <= 1 ? 1 : one.step);
    if (keep) shape.push_back(one.size);
    ++axis;
  }

  void take_position(std::int64_t position) {
    std::int64_t extent = node.sizes[axis], at = position < 0 ? position + extent : position;
    if (at < 0 || at >= extent)
      throw Problem(text("index ", position, " is out of range for axis ", axis, " of size ", extent),
                    extent ? text("allowed are ", -extent, " to ", extent - 1) : std::string("the axis is empty"));
    take(Range{at, at + 1, 1}, false);
  }

  void take_whole(int count) {
    for (int i = 0; i < count; ++i) take(Range{}, true);
  }

  const TensorNode& node;
  int axis = 0;  // the next one
  std::vector<Dim> begin, size;
  std::vector<std::int64_t> step;
  std::vector<int> backwards;
  std::vector<Dim> shape;
};

Selection select(const TensorNode& node, const std::vector<Index>& entries) {
  int named = 0, ellipses = 0;
  for (const Index& index : entries) {
    named += index.kind == Index::Kind::position || index.kind == Index::Kind::range;
    ellipses += index.kind == Index::Kind::ellipsis;
  }
  if (ellipses > 1) throw Problem("more than one ellipsis", "use one at most");
  if (named > node.rank)
    throw Problem(text(named, " indices for rank ", int{node.rank}), "give one index per axis at most");
  Selection out(node);
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
    Selection chosen = select(node, indices.entries);
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
