// Where elements come from: slices of tensors, and ranges.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"
#include "stet/data/stack.h"
#include "stet/data/stage.h"

namespace stet::data {
namespace {

class Counting : public Positions {
 public:
  explicit Counting(std::int64_t count) : count_(count) {}
  bool next(std::int64_t& out) override {
    if (at_ == count_) return false;
    out = at_++;
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    const std::int64_t skipped = std::min(count, count_ - at_);
    at_ += skipped;
    return skipped;
  }

 private:
  std::int64_t at_ = 0, count_;
};

/// A source in the order of its positions: the first stage of a pipeline.
class SourceStage : public Stage, public Source {
 public:
  SourceStage(StageFacts facts, std::vector<StagePointer> upstreams = {})
      : Stage(std::move(facts), std::move(upstreams)) {
    source_ = this;
  }
  const Stage& stage() const override { return *this; }
  std::unique_ptr<Positions> positions(const Pass&) const override { return std::make_unique<Counting>(count()); }

 private:
  std::unique_ptr<Elements> open(const Pass& pass) const override { return elements_at(*this, positions(pass), pass); }
};

// --- slices

/// Rows of fixed size, for which the compiler knows a single move.
template <class Row>
void copy_rows(std::byte* to, const std::byte* from, std::span<const std::int64_t> positions) {
  for (std::int64_t position : positions) {
    std::memcpy(to, from + position * static_cast<std::int64_t>(sizeof(Row)), sizeof(Row));
    to += sizeof(Row);
  }
}

void gather_rows(std::byte* to, const std::byte* from, std::int64_t row_bytes,
                 std::span<const std::int64_t> positions) {
  switch (row_bytes) {
    case 0:
      return;
    case 1:
      return copy_rows<std::uint8_t>(to, from, positions);
    case 2:
      return copy_rows<std::uint16_t>(to, from, positions);
    case 4:
      return copy_rows<std::uint32_t>(to, from, positions);
    case 8:
      return copy_rows<std::uint64_t>(to, from, positions);
    default:
      for (std::int64_t position : positions) {
        std::memcpy(to, from + position * row_bytes, static_cast<std::size_t>(row_bytes));
        to += row_bytes;
      }
  }
}

class Slices : public SourceStage {
 public:
  /// Dense tensors with `count` rows each.
  Slices(std::int64_t count, Tensors tensors, std::string described, Where where)
      : SourceStage({.name = "from_tensor_slices", .arguments = std::move(described), .where = where, .count = count}),
        tensors_(std::move(tensors)) {}

  std::optional<std::vector<TensorSpec>> spec() const override {
    std::vector<TensorSpec> out;
    for (const Tensor& tensor : tensors_) {
      const TensorNode& node = *tensor.node();
      std::span<const std::int64_t> sizes = node.size_span().subspan(1);
      out.push_back({node.dtype, ShapeSpec(std::vector<DimSpec>(sizes.begin(), sizes.end()))});
    }
    return out;
  }

  void element(std::int64_t position, SourceDraws&, Tensors& out) const override {
    for (const Tensor& tensor : tensors_) {
      const TensorNode& node = *tensor.node();
      out.push_back(
          view_tensor(node, node.size_span().subspan(1), node.stride_span().subspan(1), position * row_elements(node)));
    }
  }

  void batch(std::span<const std::int64_t> positions, std::int64_t, SourceDraws&, Where where,
             Tensors& out) const override {
    const auto rows = static_cast<std::int64_t>(positions.size());
    bool consecutive = true;
    for (std::size_t i = 1; i < positions.size(); ++i) consecutive &= positions[i] == positions[i - 1] + 1;
    out.clear();
    for (const Tensor& tensor : tensors_) {
      const TensorNode& node = *tensor.node();
      std::span<const std::int64_t> row_sizes = node.size_span().subspan(1);
      if (consecutive) {
        // Tensors do not change, so the rows need not be copied.
        std::int64_t sizes[max_rank] = {rows};
        std::copy(row_sizes.begin(), row_sizes.end(), sizes + 1);
        out.push_back(view_tensor(node, {sizes, node.rank}, node.stride_span(), positions[0] * row_elements(node)));
        continue;
      }
      const std::int64_t row_bytes = row_elements(node) * size_of(node.dtype);
      Buffer buffer = memory_for_rows(rows, row_bytes, node.dtype, row_sizes, where);
      gather_rows(buffer.data(), node.data, row_bytes, positions);
      out.push_back(stacked(rows, node.dtype, row_sizes, std::move(buffer), where));
    }
  }

 private:
  static std::int64_t row_elements(const TensorNode& node) {
    std::int64_t count = 1;
    for (int axis = 1; axis < node.rank; ++axis) count *= node.sizes[axis];
    return count;
  }

  Tensors tensors_;
};

// --- ranges

class Indexed : public SourceStage {
 public:
  Indexed(std::int64_t count, std::function<void(std::int64_t, Tensors&)> function, const char* name, Where where)
      : SourceStage({.name = name, .arguments = text(count, " values"), .where = where, .count = count, .draws = true}),
        function_(std::move(function)),
        where_(where) {}

  bool calls_host_code() const override { return true; }
  void element(std::int64_t position, SourceDraws& draws, Tensors& out) const override {
    StageStatistics* statistics = draws.statistics();
    const std::uint64_t begin = statistics ? nanoseconds_now() : 0;
    {
      RandomStream::Use own = draws.next();
      function_(position, out);
    }
    require_values(out, position, facts().name.c_str(), where_);
    if (statistics) StageStatistics::add(statistics->nanoseconds, nanoseconds_now() - begin);
  }
  void batch(std::span<const std::int64_t> positions, std::int64_t before, SourceDraws& draws, Where where,
             Tensors& out) const override {
    Stack stack(static_cast<std::int64_t>(positions.size()), before, where);
    for (std::int64_t position : positions) {
      out.clear();
      element(position, draws, out);
      stack.add(out);
    }
    stack.finish(out);
  }

 private:
  std::function<void(std::int64_t, Tensors&)> function_;
  Where where_;
};

class WalkCursor : public Elements {
 public:
  /// `newest`: the Variable that was the last one before `next` was made.
  WalkCursor(std::function<bool(Tensors&)> next, std::uint64_t newest, const Pass& pass, const char* name, Where where)
      : next_(std::move(next)), newest_(newest), draws_(pass), name_(name), where_(where) {}
  bool next(Tensors& out) override {
    RandomStream::Use own = draws_.next(newest_);
    out.clear();
    if (!next_(out)) return false;
    require_values(out, position_++, name_, where_);
    return true;
  }

 private:
  std::function<bool(Tensors&)> next_;
  const std::uint64_t newest_;
  ElementDraws draws_;
  std::int64_t position_ = 0;
  const char* name_;
  Where where_;
};

class Walked : public Stage {
 public:
  Walked(std::int64_t count, std::function<std::function<bool(Tensors&)>()> open, const char* name, Where where)
      : Stage({.name = name,
               .arguments = count < 0 ? std::string() : text(count, " values"),
               .where = where,
               .count = count < 0 ? unknown_count : count,
               .draws = true},
              {}),
        open_(std::move(open)),
        where_(where) {}

 private:
  std::unique_ptr<Elements> open(const Pass& pass) const override {
    const std::uint64_t newest = latest_variable_id();
    return std::make_unique<WalkCursor>(open_(), newest, pass, facts().name.c_str(), where_);
  }
  std::function<std::function<bool(Tensors&)>()> open_;
  Where where_;
};

// --- numbers

class RangeStage : public SourceStage {
 public:
  RangeStage(std::int64_t start, std::int64_t step, std::int64_t count, std::string arguments, Where where)
      : SourceStage({.name = "range", .arguments = std::move(arguments), .where = where, .count = count}),
        start_(start),
        step_(step) {}
  std::optional<std::vector<TensorSpec>> spec() const override { return std::vector<TensorSpec>{{i64, {}}}; }
  void element(std::int64_t position, SourceDraws&, Tensors& out) const override {
    out.push_back(tensor(at(position)));
  }
  void batch(std::span<const std::int64_t> positions, std::int64_t, SourceDraws&, Where where,
             Tensors& out) const override {
    const auto rows = static_cast<std::int64_t>(positions.size());
    Buffer buffer = memory_for_rows(rows, 8, i64, {}, where);
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t value = at(positions[static_cast<std::size_t>(row)]);
      std::memcpy(buffer.data() + 8 * row, &value, 8);
    }
    out.clear();
    out.push_back(stacked(rows, i64, {}, std::move(buffer), where));
  }

 private:
  std::int64_t at(std::int64_t position) const {  // wraps, as sums of integers do
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(start_) +
                                     static_cast<std::uint64_t>(position) * static_cast<std::uint64_t>(step_));
  }
  std::int64_t start_, step_;
};

}  // namespace

void require_values(const Tensors& element, std::int64_t position, const char* name, Where where) {
  for (std::size_t i = 0; i < element.size(); ++i) {
    if (!element[i].defined())
      throw UserError(error_text(text(name, ": component ", i, " of element ", position, " is an undefined tensor"),
                                 where, "return a value for every component"));
    concrete_node(element[i], name, where);
  }
}

StagePointer range_stage(std::int64_t start, std::int64_t step, std::int64_t count, Where where) {
  std::string arguments = text("from ", start, ", step ", step, count == infinite ? "" : text(", ", count, " values"));
  return std::make_shared<RangeStage>(start, step, count, std::move(arguments), where);
}

Dataset<Tensor> range(std::int64_t start, std::int64_t stop, std::int64_t step, Where where) {
  if (step == 0) throw UserError(error_text("range: the step is 0", where, "give one above or below 0"));
  __extension__ using Wide = __int128;
  const Wide distance = Wide{stop} - start;
  const Wide count = step > 0 ? (distance + step - 1) / step : (distance + step + 1) / step;
  const Wide most = infinite - 1;
  return Dataset<Tensor>(range_stage(start, step, static_cast<std::int64_t>(std::clamp<Wide>(count, 0, most)), where));
}
Dataset<Tensor> range(std::int64_t stop, Where where) { return range(0, stop, 1, where); }

namespace source {

StagePointer slices(Tensors tensors, const std::vector<int>& arguments, Where where) {
  if (Trace* trace = current_trace())
    throw TraceError(error_text(text("from_tensor_slices: called while '", trace->function(), "' is being traced"),
                                where, "make datasets outside of traced functions"));
  auto name = [&](std::size_t number) {
    auto owner = arguments[number];
    auto first = std::find(arguments.begin(), arguments.end(), owner) - arguments.begin();
    bool several = std::count(arguments.begin(), arguments.end(), owner) > 1;
    return several ? text("argument ", owner, " (its tensor ", static_cast<std::int64_t>(number) - first, ")")
                   : text("argument ", owner);
  };
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined())
      throw UserError(error_text(text("from_tensor_slices: ", name(i), " is an undefined tensor"), where,
                                 "assign a value to it first"));
    const TensorNode& node = concrete_node(tensors[i], "from_tensor_slices", where);
    if (node.rank == 0)
      throw UserError(error_text(text("from_tensor_slices: ", name(i), " is a scalar, ", node.dtype, node.shape(),
                                      ": it has no first axis to slice along"),
                                 where, "the elements are x[0], x[1], …; pass a tensor with at least one axis"));
    const TensorNode& first = *tensors[0].node();
    if (node.sizes[0] != first.sizes[0])
      throw UserError(
          error_text(text("from_tensor_slices: ", name(i), ", ", node.dtype, node.shape(), ", has ", node.sizes[0],
                          " slices, ", name(0), ", ", first.dtype, first.shape(), ", has ", first.sizes[0]),
                     where, "all arguments need the same size of axis 0"));
    tensors[i] = on_host(tensors[i].contiguous(where));
  }
  std::int64_t count = tensors[0].node()->sizes[0];
  std::string described;
  for (const Tensor& one : tensors)
    described += text(described.empty() ? "" : ", ", one.node()->dtype, one.node()->shape());
  return std::make_shared<Slices>(count, std::move(tensors), std::move(described), where);
}

StagePointer indexed(std::int64_t count, std::function<void(std::int64_t, Tensors&)> element, Where where,
                     const char* name) {
  return std::make_shared<Indexed>(count, std::move(element), name, where);
}

StagePointer walked(std::int64_t count, std::function<std::function<bool(Tensors&)>()> open, Where where,
                    const char* name) {
  return std::make_shared<Walked>(count, std::move(open), name, where);
}

}  // namespace source
}  // namespace stet::data
