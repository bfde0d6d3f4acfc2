#include "tests/reference/reference_device.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/runtime/target.h"
#include "tests/reference/reference_linalg.h"

namespace stet {
namespace {

// --- memory

/// Added to real addresses: the sum is no address of any process.
constexpr std::uintptr_t hidden = std::uintptr_t{1} << 62;
void* hide(void* real) { return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(real) + hidden); }
std::byte* real(const void* address) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(address) - hidden);
}

/// Elements of one type in a device's buffer. Every access is tested against the buffer's extent.
class Elements {
 public:
  Elements(const void* address, DType dtype, std::int64_t extent)
      : data_(real(address)), dtype_(dtype), extent_(extent) {}
  ScalarValue operator[](std::int64_t at) const {
    ScalarBits bits = 0;
    std::memcpy(&bits, place(at), width());
    return value_of(bits, dtype_);
  }
  void set(std::int64_t at, ScalarValue value) const {
    ScalarBits bits = bits_of(value, dtype_);
    std::memcpy(place(at), &bits, width());
  }
  DType dtype() const { return dtype_; }

 private:
  std::size_t width() const { return static_cast<std::size_t>(size_of(dtype_)); }
  std::byte* place(std::int64_t at) const {
    if (at < 0 || at >= extent_) throw InternalError(text("element ", at, " of ", extent_, " is accessed"));
    return data_ + static_cast<std::size_t>(at) * width();
  }
  std::byte* data_;
  DType dtype_;
  std::int64_t extent_;
};

// --- steps

/// What a step does when its sizes are known.
using Action = std::function<void(void* const* table, const Bindings& bindings)>;

class ReferenceStep : public Step {
 public:
  ReferenceStep(std::string description, std::vector<int> read, std::vector<int> written, Action action)
      : description_(std::move(description)), action_(std::move(action)) {
    reads = std::move(read);
    writes = std::move(written);
  }
  std::unique_ptr<BoundStep> bind(const Bindings& bindings) const override {
    return std::make_unique<Bound>(action_, bindings);
  }
  std::string str() const override { return description_; }

 private:
  struct Bound : BoundStep {
    Bound(const Action& a, const Bindings& b) : action(a), bindings(b) {}
    void run(void* const* table) const override { action(table, bindings); }
    Action action;
    Bindings bindings;
  };
  std::string description_;
  Action action_;
};

using Index = std::vector<std::int64_t>;

/// Every position of a box, the last index fastest.
void for_each(const Index& sizes, const std::function<void(const Index&)>& f) {
  for (std::int64_t size : sizes)
    if (size == 0) return;
  Index index(sizes.size(), 0);
  while (true) {
    f(index);
    std::size_t axis = sizes.size();
    while (axis > 0 && ++index[axis - 1] == sizes[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

// --- kernels

/// What a reduction carries, exact to what doubles and 64-bit integers hold.
class Accumulator {
 public:
  Accumulator(Combine combine, DType dtype) : combine_(combine), dtype_(dtype) { start(); }
  void start() {
    started_ = false;
    sum_ = combine_ == Combine::product ? ScalarValue{1, 1} : ScalarValue{};
    bool largest = combine_ == Combine::maximum, smallest = combine_ == Combine::minimum;
    if (!largest && !smallest) return;
    double infinity = std::numeric_limits<double>::infinity();
    const DTypeRow& type = row(dtype_);
    sum_ = {largest ? -infinity : infinity, largest ? type.lowest : type.highest};
  }

  /// `position`: along the reduced loop, for argmax and argmin.
  void take(ScalarValue v, std::int64_t position) {
    bool is_real = is_floating(dtype_);
    auto nan = [](double x) { return x != x; };
    // NaN is above all numbers, and below all of them.
    auto above = [&](ScalarValue a, ScalarValue b) {
      return is_real ? a.real > b.real || (nan(a.real) && !nan(b.real)) : a.integer > b.integer;
    };
    auto below = [&](ScalarValue a, ScalarValue b) {  // NaN wins here, too
      return is_real ? a.real < b.real || (nan(a.real) && !nan(b.real)) : a.integer < b.integer;
    };
    auto as_unsigned = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
    switch (combine_) {
      case Combine::none:
        sum_ = v;
        break;
      case Combine::sum:
        sum_ = {sum_.real + v.real, static_cast<std::int64_t>(as_unsigned(sum_.integer) + as_unsigned(v.integer))};
        break;
      case Combine::product:
        sum_ = {sum_.real * v.real, static_cast<std::int64_t>(as_unsigned(sum_.integer) * as_unsigned(v.integer))};
        break;
      case Combine::maximum:
        if (above(v, sum_)) sum_ = v;
        break;
      case Combine::minimum:
        if (below(v, sum_)) sum_ = v;
        break;
      default: {
        bool better = combine_ == Combine::argmax ? above(v, best_) : below(v, best_);
        if (started_ && !better) break;
        best_ = v;
        sum_.integer = position;
      }
    }
    started_ = true;
  }
  /// Rounded to the accumulator's type; a position as it is.
  ScalarValue value() const {
    bool position = combine_ == Combine::argmax || combine_ == Combine::argmin;
    return position || combine_ == Combine::none ? sum_ : value_of(bits_of(sum_, dtype_), dtype_);
  }

 private:
  Combine combine_;
  DType dtype_;
  ScalarValue sum_, best_;
  bool started_ = false;
};

/// ir/kernel.h's meaning of a kernel.
class KernelRun {
 public:
  KernelRun(const KernelLaunch& launch, void* const* table, const Bindings& bindings)
      : launch_(launch), kernel_(launch.kernel), table_(table), bindings_(bindings) {}

  void run() {
    Index kept, reduced;
    for (const Loop& loop : kernel_.loops) {
      std::int64_t extent = loop.extent.evaluate(bindings_);
      kept.push_back(loop.reduced ? 1 : extent);
      reduced.push_back(loop.reduced ? extent : 1);
    }
    for_each(kept, [&](const Index& position) {
      Accumulator accumulator(kernel_.combine, kernel_.body.dtype());
      for_each(reduced, [&](const Index& inner) {
        Index at = position;
        std::int64_t along = 0;
        for (std::size_t i = 0; i < at.size(); ++i) {
          at[i] += inner[i];
          if (kernel_.loops[i].reduced) along = at[i];
        }
        accumulator.take(evaluate(kernel_.body, loaded(kernel_.operands, at), at, true), along);
      });
      store(position, accumulator.value());
    });
  }

 private:
  std::int64_t at(const Affine& affine, const Index& index) const {
    std::int64_t out = affine.offset.evaluate(bindings_);
    for (std::size_t i = 0; i < affine.strides.size(); ++i) out += affine.strides[i].evaluate(bindings_) * index[i];
    return out;
  }
  Elements elements(const Access& access) const {
    auto buffer = static_cast<std::size_t>(access.buffer);
    return {table_[launch_.buffers[buffer]], access.dtype, launch_.buffer_extents[buffer].evaluate(bindings_)};
  }
  std::int64_t address(const Access& access, const Index& index) const {
    std::int64_t out = at(access.address, index);
    for (const Indirection& moved : access.indirections) {
      const Access& by = kernel_.operands[static_cast<std::size_t>(moved.operand)];
      std::int64_t value = load(by, index).integer, extent = moved.extent.evaluate(bindings_);
      if (value < 0 || value >= extent) {
        const KernelCheck& check = launch_.checks[static_cast<std::size_t>(moved.check - 1)];
        std::int64_t position = 0;
        for (std::size_t i = 0; i < index.size(); ++i)
          if (!by.address.strides[i].is_constant(0))
            position = position * kernel_.loops[i].extent.evaluate(bindings_) + index[i];
        throw_failed_check(check, {moved.check, value, position}, check.extent.evaluate(bindings_));
      }
      out += moved.stride.evaluate(bindings_) * value;
    }
    return out;
  }
  ScalarValue load(const Access& access, const Index& index) const {
    if (access.source == Access::number)
      return convert({.integer = access.address.offset.evaluate(bindings_)}, DType::i64, access.dtype);
    for (const Guard& guard : access.guards) {
      std::int64_t position = at(guard.position, index);
      if (position < 0 || position >= guard.extent.evaluate(bindings_)) return {};
    }
    return elements(access)[address(access, index)];
  }
  std::vector<ScalarValue> loaded(const std::vector<Access>& accesses, const Index& index) const {
    std::vector<ScalarValue> out;
    for (const Access& access : accesses) out.push_back(load(access, index));
    return out;
  }

  void store(const Index& index, ScalarValue value) {
    if (kernel_.epilogue.defined()) {
      std::vector<ScalarValue> operands = loaded(kernel_.epilogue_operands, index);
      operands.insert(operands.begin(), value);
      value = evaluate(kernel_.epilogue, operands, index, true);
    }
    std::vector<ScalarValue> further;  // all is read before anything is stored
    for (const FurtherResult& one : kernel_.further)
      further.push_back(evaluate(one.body, loaded(kernel_.operands, index), index, true));
    for (std::size_t i = 0; i < further.size(); ++i)
      elements(kernel_.further[i].to).set(at(kernel_.further[i].to.address, index), further[i]);
    Elements to = elements(kernel_.result);
    std::int64_t place = address(kernel_.result, index);
    if (kernel_.accumulate) value = {to[place].real + value.real, to[place].integer + value.integer};
    to.set(place, value);
  }

  const KernelLaunch& launch_;
  const Kernel& kernel_;
  void* const* table_;
  const Bindings& bindings_;
};

/// Stages as row_kernel.h says what they mean.
class RowsRun {
 public:
  RowsRun(const RowLaunch& launch, void* const* table, const Bindings& bindings)
      : launch_(launch), kernel_(launch.kernel), table_(table), bindings_(bindings) {}

  void run() {
    Index outer;
    for (const Dim& extent : kernel_.outer) outer.push_back(extent.evaluate(bindings_));
    length_ = kernel_.length.evaluate(bindings_);
    for_each(outer, [&](const Index& row) {
      scratch_.assign(kernel_.scratch.size(), std::vector<ScalarValue>(static_cast<std::size_t>(length_)));
      run_row(row);
    });
  }

 private:
  void run_row(const Index& row) {
    values_.clear();
    for (const RowKernel::Stage& stage : kernel_.stages) {
      Index at = row;
      at.push_back(0);
      for (const RowKernel::Scalar& one : stage.scalars) {
        ScalarValue value = evaluate(one.value, operands(at, true), row, true);
        if (one.to) set(*one.to, at, value);
        values_.push_back(value);
      }
      std::vector<Accumulator> accumulators;
      for (const RowKernel::Reduction& one : stage.reductions) accumulators.emplace_back(one.combine, one.body.dtype());
      for (; stage.walks() && at.back() < length_; ++at.back()) {
        std::vector<ScalarValue> loaded = operands(at, false), lines;
        for (std::size_t r = 0; r < accumulators.size(); ++r)
          accumulators[r].take(evaluate(stage.reductions[r].body, loaded, at, true), at.back());
        for (const RowKernel::Line& one : stage.lines) lines.push_back(evaluate(one.value, loaded, at, true));
        for (std::size_t l = 0; l < lines.size(); ++l) set(stage.lines[l].to, at, lines[l]);
      }
      for (const Accumulator& one : accumulators) values_.push_back(one.value());
    }
  }

  /// All values by number; those that move along the row are left out where there is no element.
  std::vector<ScalarValue> operands(const Index& at, bool once) const {
    std::vector<ScalarValue> out;
    for (const Access& access : kernel_.operands)
      if (access.source == Access::number)
        out.push_back(convert({.integer = access.address.offset.evaluate(bindings_)}, DType::i64, access.dtype));
      else
        out.push_back(once && RowKernel::moves(access) ? ScalarValue{} : get(access, at));
    out.insert(out.end(), values_.begin(), values_.end());
    return out;
  }
  std::int64_t address(const Access& access, const Index& at) const {
    std::int64_t out = access.address.offset.evaluate(bindings_);
    for (std::size_t i = 0; i < at.size(); ++i) out += access.address.strides[i].evaluate(bindings_) * at[i];
    return out;
  }
  Elements elements(const Access& access) const {
    auto buffer = static_cast<std::size_t>(access.buffer);
    return {table_[launch_.buffers[buffer]], access.dtype, launch_.buffer_extents[buffer].evaluate(bindings_)};
  }
  ScalarValue get(const Access& access, const Index& at) const {
    int scratch = access.buffer - kernel_.first_scratch();
    if (scratch < 0) return elements(access)[address(access, at)];
    return scratch_[static_cast<std::size_t>(scratch)].at(static_cast<std::size_t>(address(access, at)));
  }
  void set(const Access& access, const Index& at, ScalarValue value) {
    int scratch = access.buffer - kernel_.first_scratch();
    if (scratch < 0)
      elements(access).set(address(access, at), value);
    else
      scratch_[static_cast<std::size_t>(scratch)].at(static_cast<std::size_t>(address(access, at))) =
          value_of(bits_of(value, access.dtype), access.dtype);
  }

  const RowLaunch& launch_;
  const RowKernel& kernel_;
  void* const* table_;
  const Bindings& bindings_;
  std::int64_t length_ = 0;
  std::vector<ScalarValue> values_;  // scalars and reductions so far
  std::vector<std::vector<ScalarValue>> scratch_;
};

// --- products and windows

/// A matrix of a batch: element (row, column) of matrix number (batch…).
class Matrix {
 public:
  Matrix(const MatrixPlace& place, DType dtype, void* const* table, const Bindings& bindings)
      : elements_(table[place.buffer], dtype, place.extent.evaluate(bindings)),
        offset_(place.offset.evaluate(bindings)),
        leading_(place.leading.evaluate(bindings)) {
    for (const Dim& stride : place.batch_strides) strides_.push_back(stride.evaluate(bindings));
  }
  std::int64_t at(const Index& batch, std::int64_t row, std::int64_t column) const {
    std::int64_t out = offset_ + row * leading_ + column;
    for (std::size_t i = 0; i < strides_.size(); ++i) out += batch[i] * strides_[i];
    return out;
  }
  const Elements& elements() const { return elements_; }

 private:
  Elements elements_;
  std::int64_t offset_, leading_;
  Index strides_;
};

DType operand_type(Expr expression, int number, DType otherwise) {
  for (Expr part : topological(expression))
    if (part.is(Primitive::operand) && part->number == number) return part.dtype();
  return otherwise;
}

void contract(const ContractionSpec& spec, void* const* table, const Bindings& bindings) {
  Matrix left(spec.left, spec.dtype, table, bindings), right(spec.right, spec.dtype, table, bindings);
  const Expr& epilogue = spec.epilogue.expression;
  Matrix result(spec.result, epilogue.defined() ? epilogue.dtype() : spec.dtype, table, bindings);
  std::vector<Matrix> operands;
  for (std::size_t i = 0; i < spec.operands.size(); ++i)
    operands.emplace_back(spec.operands[i], operand_type(epilogue, static_cast<int>(i) + 1, spec.dtype), table,
                          bindings);
  Index sizes;
  for (const Dim& extent : spec.batch) sizes.push_back(extent.evaluate(bindings));
  std::int64_t k = spec.k.evaluate(bindings);
  sizes.push_back(spec.m.evaluate(bindings));
  sizes.push_back(spec.n.evaluate(bindings));
  for_each(sizes, [&](const Index& at) {
    std::int64_t row = at[at.size() - 2], column = at.back();
    ScalarValue sum;
    for (std::int64_t i = 0; i < k; ++i)
      sum.real += left.elements()[spec.transpose_left ? left.at(at, i, row) : left.at(at, row, i)].real *
                  right.elements()[spec.transpose_right ? right.at(at, column, i) : right.at(at, i, column)].real;
    sum = value_of(bits_of(sum, spec.dtype), spec.dtype);
    std::vector<ScalarValue> values{sum};
    for (std::size_t i = 0; i < operands.size(); ++i) {
      EpilogueOperand kind = spec.epilogue.operands[i];
      std::int64_t position = kind == EpilogueOperand::full         ? operands[i].at(at, row, column)
                              : kind == EpilogueOperand::per_column ? operands[i].at(at, 0, column)
                              : kind == EpilogueOperand::per_row    ? operands[i].at(at, 0, row)
                                                                    : operands[i].at(at, 0, 0);
      values.push_back(operands[i].elements()[position]);
    }
    result.elements().set(result.at(at, row, column), epilogue.defined() ? evaluate(epilogue, values, {}, true) : sum);
  });
}

/// Sums that are stored as one type when they are complete.
class Sums {
 public:
  explicit Sums(std::int64_t count) : sums_(static_cast<std::size_t>(count), 0.0) {}
  double& operator[](std::int64_t at) { return sums_.at(static_cast<std::size_t>(at)); }
  void store(const Elements& to) const {
    for (std::size_t i = 0; i < sums_.size(); ++i) to.set(static_cast<std::int64_t>(i), {.real = sums_[i]});
  }

 private:
  std::vector<double> sums_;
};

void convolve(const ConvolutionSpec& spec, void* const* table, const Bindings& bindings) {
  auto value = [&](const Dim& dim) { return dim.evaluate(bindings); };
  std::int64_t groups = value(spec.groups), channels = value(spec.channels), features = value(spec.features);
  Index sizes{value(spec.batch)};  // batch, output…, window…, groups, channels, features
  std::int64_t inputs = sizes[0], outputs = sizes[0], windows = 1;
  for (const ConvolutionAxis& axis : spec.axes) {
    sizes.push_back(value(axis.output));
    inputs *= value(axis.input);
    outputs *= value(axis.output);
    windows *= value(axis.filter);
  }
  for (const ConvolutionAxis& axis : spec.axes) sizes.push_back(value(axis.filter));
  sizes.insert(sizes.end(), {groups, channels, features});
  Elements input(table[spec.input], spec.dtype, inputs * groups * channels),
      filter(table[spec.filter], spec.dtype, windows * channels * groups * features),
      output(table[spec.output], spec.dtype, outputs * groups * features);
  bool to_input = spec.result == ConvolutionResult::input, to_filter = spec.result == ConvolutionResult::filter;
  Sums sums((to_input ? inputs * channels : to_filter ? windows * channels * features : outputs * features) * groups);
  std::size_t rank = spec.axes.size();
  for_each(sizes, [&](const Index& at) {
    std::int64_t i = at[0], o = at[0], k = 0, g = at[2 * rank + 1], c = at[2 * rank + 2], f = at[2 * rank + 3];
    for (std::size_t a = 0; a < rank; ++a) {
      const ConvolutionAxis& axis = spec.axes[a];
      std::int64_t position = at[1 + a] * axis.stride + at[1 + rank + a] * axis.dilation - value(axis.low);
      if (position < 0 || position >= value(axis.input)) return;
      i = i * value(axis.input) + position;
      o = o * value(axis.output) + at[1 + a];
      k = k * value(axis.filter) + at[1 + rank + a];
    }
    i = (i * groups + g) * channels + c;
    o = (o * groups + g) * features + f;
    k = ((k * channels + c) * groups + g) * features + f;
    if (to_input)
      sums[i] += filter[k].real * output[o].real;
    else if (to_filter)
      sums[k] += input[i].real * output[o].real;
    else
      sums[o] += input[i].real * filter[k].real;
  });
  sums.store(to_input ? input : to_filter ? filter : output);
}

/// One window: the positions of the input it covers, with their numbers in the window.
struct WindowElement {
  std::int64_t number, place;
};
std::vector<WindowElement> window_at(const PoolSpec& spec, const Index& at, const Bindings& bindings) {
  Index window;
  for (const PoolAxis& axis : spec.axes) window.push_back(axis.window);
  std::vector<WindowElement> out;
  std::int64_t number = 0;
  for_each(window, [&](const Index& k) {
    std::int64_t mine = number++, place = at[0];
    for (std::size_t a = 0; a < k.size(); ++a) {
      const PoolAxis& axis = spec.axes[a];
      std::int64_t size = axis.input.evaluate(bindings);
      std::int64_t position = at[1 + a] * axis.stride - axis.low.evaluate(bindings) + k[a];
      if (position < 0 || position >= size) return;
      place = place * size + position;
    }
    out.push_back({mine, place});
  });
  return out;
}

void pool(const PoolSpec& spec, void* const* table, const Bindings& bindings) {
  Index sizes{spec.batch.evaluate(bindings)};
  std::int64_t channels = spec.channels.evaluate(bindings), inputs = sizes[0] * channels, outputs = inputs;
  for (const PoolAxis& axis : spec.axes) {
    sizes.push_back(axis.output.evaluate(bindings));
    inputs *= axis.input.evaluate(bindings);
    outputs *= sizes.back();
  }
  sizes.push_back(channels);
  bool backwards = spec.result == PoolResult::placed || spec.result == PoolResult::spread;
  Elements x(table[spec.x], spec.dtype, backwards ? outputs : inputs),
      to(table[spec.to], spec.dtype, backwards ? inputs : outputs),
      positions(table[spec.positions >= 0 ? spec.positions : spec.to], spec.position_type, outputs);
  auto above = [&](ScalarValue a, ScalarValue b) {
    if (!is_floating(spec.dtype)) return a.integer > b.integer;
    return a.real > b.real || (a.real != a.real && b.real == b.real);
  };
  Sums sums(backwards ? inputs : 0);
  std::int64_t o = -1;
  for_each(sizes, [&](const Index& at) {
    std::vector<WindowElement> window = window_at(spec, at, bindings);
    ScalarValue value = spec.result == PoolResult::largest
                            ? ScalarValue{-std::numeric_limits<double>::infinity(), row(spec.dtype).lowest}
                            : ScalarValue{};
    std::int64_t first = 0;
    auto count = static_cast<double>(window.size());
    ++o;
    for (const WindowElement& element : window) {
      std::int64_t i = element.place * channels + at.back();
      bool mine = spec.result == PoolResult::largest || spec.positions < 0 || positions[o].integer == element.number;
      if (spec.result == PoolResult::largest && (&element == &window.front() || above(x[i], value))) {
        value = x[i];
        first = element.number;
      } else if (spec.result == PoolResult::mean) {
        value.real += x[i].real;
      } else if (spec.result == PoolResult::spread) {
        sums[i] += x[o].real / count;
      } else if (spec.result == PoolResult::picked && mine) {
        value = x[i];
      } else if (spec.result == PoolResult::placed && mine) {
        sums[i] += x[o].real;
      }
    }
    if (backwards) return;
    if (spec.result == PoolResult::mean && count > 0) value.real /= count;
    to.set(o, value);
    if (spec.result == PoolResult::largest && spec.positions >= 0) positions.set(o, {.integer = first});
  });
  if (backwards) sums.store(to);
}

void find_positions(const PositionsSpec& spec, void* const* table, const Bindings& bindings) {
  Index sizes = spec.shape.evaluate(bindings);
  std::int64_t count = 1, next = 0, found = 0;
  for (std::int64_t size : sizes) count *= size;
  Elements flags(table[spec.flags], DType::bool_, count);
  for (std::int64_t i = 0; i < count; ++i) found += flags[i].integer;
  Elements positions(table[spec.positions], DType::i64, found * static_cast<std::int64_t>(sizes.size()));
  std::int64_t flat = 0;
  for_each(sizes, [&](const Index& at) {
    if (flags[flat++].integer == 0) return;
    for (std::int64_t position : at) positions.set(next++, {.integer = position});
  });
}

// --- lines

struct LineSizes {
  std::int64_t outer, length, inner;
  LineSizes(const Lines& lines, const Bindings& bindings)
      : outer(lines.outer.evaluate(bindings)),
        length(lines.length.evaluate(bindings)),
        inner(lines.inner.evaluate(bindings)) {}
  std::int64_t count() const { return outer * length * inner; }
};

void scan_lines(const ScanSpec& spec, const Lines& lines, int from, int to, void* const* table,
                const Bindings& bindings) {
  LineSizes s(lines, bindings);
  Elements x(table[from], spec.stored, s.count()), y(table[to], spec.result, s.count());
  DType type = spec.combine.dtype();
  for (std::int64_t o = 0; o < s.outer; ++o)
    for (std::int64_t i = 0; i < s.inner; ++i) {
      ScalarValue so_far = evaluate(spec.identity, {});
      for (std::int64_t step = 0; step < s.length; ++step) {
        std::int64_t k = spec.reverse ? s.length - 1 - step : step, at = (o * s.length + k) * s.inner + i;
        ScalarValue values[] = {so_far, convert(x[at], spec.stored, type)};
        ScalarValue next = evaluate(spec.combine, values, {}, true);
        y.set(at, convert(spec.exclusive ? so_far : next, type, spec.result));
        so_far = next;
      }
    }
}

/// Numbers by value, NaN last and equal to NaN.
bool comes_before(ScalarValue a, ScalarValue b, bool floating) {
  if (!floating) return a.integer < b.integer;
  return a.real < b.real || (a.real == a.real && b.real != b.real);
}

void sort_lines(const SortSpec& spec, void* const* table, const Bindings& bindings) {
  LineSizes s(spec.lines, bindings);
  std::int64_t kept = spec.kept.evaluate(bindings);
  bool floating = is_floating(spec.dtype);
  Elements x(table[spec.from], spec.dtype, s.count());
  for (std::int64_t o = 0; o < s.outer; ++o)
    for (std::int64_t i = 0; i < s.inner; ++i) {
      auto element = [&](std::int64_t k) { return x[(o * s.length + k) * s.inner + i]; };
      Index order;
      for (std::int64_t k = 0; k < s.length; ++k) order.push_back(k);
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        return spec.descending ? comes_before(element(b), element(a), floating)
                               : comes_before(element(a), element(b), floating);
      });
      for (std::int64_t k = 0; k < kept; ++k) {
        std::int64_t at = (o * kept + k) * s.inner + i, position = order[static_cast<std::size_t>(k)];
        std::int64_t count = s.outer * kept * s.inner;
        if (spec.values >= 0) Elements(table[spec.values], spec.dtype, count).set(at, element(position));
        if (spec.positions >= 0) Elements(table[spec.positions], DType::i64, count).set(at, {.integer = position});
      }
    }
}

void search_lines(const SearchSpec& spec, void* const* table, const Bindings& bindings) {
  std::int64_t outer = spec.outer.evaluate(bindings), length = spec.length.evaluate(bindings),
               count = spec.count.evaluate(bindings);
  bool floating = is_floating(spec.dtype);
  Elements lines(table[spec.lines], spec.dtype, outer * length);
  Elements elements(table[spec.elements], spec.dtype, outer * count);
  Elements positions(table[spec.positions], DType::i64, outer * count);
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t k = 0; k < count; ++k) {
      ScalarValue wanted = elements[o * count + k];
      std::int64_t at = 0;
      auto passes = [&](ScalarValue here) {
        return spec.right ? !comes_before(wanted, here, floating) : comes_before(here, wanted, floating);
      };
      while (at < length && passes(lines[o * length + at])) ++at;
      positions.set(o * count + k, {.integer = at});
    }
}

ScalarValue combined(Combine combine, DType dtype, ScalarValue old, ScalarValue next) {
  auto as_unsigned = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
  bool floating = is_floating(dtype), nan = floating && (old.real != old.real || next.real != next.real);
  switch (combine) {
    case Combine::sum:
      return {old.real + next.real, static_cast<std::int64_t>(as_unsigned(old.integer) + as_unsigned(next.integer))};
    case Combine::product:
      return {old.real * next.real, static_cast<std::int64_t>(as_unsigned(old.integer) * as_unsigned(next.integer))};
    case Combine::maximum:
      return nan ? ScalarValue{std::nan(""), 0} : comes_before(old, next, floating) ? next : old;
    case Combine::minimum:
      return nan ? ScalarValue{std::nan(""), 0} : comes_before(next, old, floating) ? next : old;
    default:
      return next;
  }
}

void scatter_lines(const ScatterSpec& spec, const KernelCheck& check, void* const* table, const Bindings& bindings) {
  LineSizes s(spec.lines, bindings);
  std::int64_t count = spec.count.evaluate(bindings);
  Index strides;
  for (const Dim& stride : spec.index_layout.strides) strides.push_back(stride.evaluate(bindings));
  Elements indices(table[spec.indices], spec.index_type, spec.index_extent.evaluate(bindings));
  Elements updates(table[spec.updates], spec.dtype, s.outer * count * s.inner);
  Elements result(table[spec.result], spec.dtype, s.count());
  for (bool test : {true, false})  // nothing is written before all indices have been looked at
    for (std::int64_t o = 0; o < s.outer; ++o)
      for (std::int64_t k = 0; k < count; ++k)
        for (std::int64_t i = 0; i < s.inner; ++i) {
          std::int64_t place =
              indices[spec.index_layout.offset.evaluate(bindings) + o * strides[0] + k * strides[1] + i * strides[2]]
                  .integer;
          if (test) {
            std::int64_t position = strides[2] == 0 ? k : (o * count + k) * s.inner + i;
            if (place < 0 || place >= s.length)
              throw_failed_check(check, {1, place, position}, check.extent.evaluate(bindings));
            continue;
          }
          std::int64_t at = (o * s.length + place) * s.inner + i;
          result.set(at, combined(spec.combine, spec.dtype, result[at], updates[(o * count + k) * s.inner + i]));
        }
}

// --- linear algebra

/// One matrix of a batch through a LinalgSpec's routine.
class LinalgRun {
 public:
  LinalgRun(const LinalgSpec& spec, void* const* table, const Bindings& bindings)
      : spec_(spec), table_(table), bindings_(bindings) {
    for (const Dim& extent : spec.batch) sizes_.push_back(extent.evaluate(bindings));
    for (std::int64_t size : sizes_) count_ *= size;
    m_ = spec.m.evaluate(bindings);
    n_ = spec.n.evaluate(bindings);
    right_ = spec.right.evaluate(bindings);
  }

  void run() {
    for_each(sizes_, [&](const Index& at) {
      std::int64_t failed = run_one(at);
      if (failed >= 0) throw_failed_matrix(spec_, sizes_, entry_, failed);
      ++entry_;
    });
  }

 private:
  reference::Matrix operand(std::size_t number, const Index& at, std::int64_t rows, std::int64_t columns) const {
    std::int64_t offset = 0, last = 0;
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      std::int64_t stride = spec_.operands[number].batch_strides[axis].evaluate(bindings_);
      offset += at[axis] * stride;
      last += (sizes_[axis] - 1) * stride;
    }
    Elements elements(table_[spec_.operands[number].buffer], spec_.dtype, last + rows * columns);
    reference::Matrix out(rows, columns);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) out(i, j) = elements[offset + i * columns + j].real;
    return out;
  }
  /// Element `position` of this matrix's part of a result.
  void set(std::size_t number, std::int64_t position, std::int64_t elements, double value) const {
    if (spec_.results[number] < 0) return;
    Elements(table_[spec_.results[number]], spec_.dtype, count_ * elements)
        .set(entry_ * elements + position, {.real = value});
  }
  /// The first rows and columns of a matrix.
  void store(std::size_t number, const reference::Matrix& m, std::int64_t rows, std::int64_t columns) const {
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) set(number, i * columns + j, rows * columns, m(i, j));
  }

  std::int64_t run_one(const Index& at) {
    reference::Matrix x = operand(0, at, m_, n_);
    std::int64_t failed = -1;
    switch (spec_.routine) {
      case LinalgRoutine::cholesky: {
        reference::Matrix l(n_, n_);
        failed = reference::cholesky(x, l);
        store(0, l, n_, n_);
        break;
      }
      case LinalgRoutine::triangular_solve: {
        reference::Matrix y = operand(1, at, n_, right_);
        failed = reference::substitute(x, y, spec_.lower, spec_.transpose, spec_.unit_diagonal);
        store(0, y, n_, right_);
        break;
      }
      case LinalgRoutine::solve:
        failed = solve(x, operand(1, at, n_, right_));
        break;
      case LinalgRoutine::lu:
        lu(x);
        break;
      case LinalgRoutine::determinant: {
        double det = reference::determinant(x);
        set(0, 0, 1, det);
        set(1, 0, 1, (det > 0) - (det < 0));
        set(2, 0, 1, std::log(std::abs(det)));
        break;
      }
      case LinalgRoutine::adjugate:
        store(0, reference::adjugate(x), n_, n_);
        break;
      case LinalgRoutine::qr: {
        auto [q, r] = reference::qr(x);
        std::int64_t kept = spec_.full ? m_ : std::min(m_, n_);
        store(0, q, m_, kept);
        store(1, r, kept, n_);
        break;
      }
      case LinalgRoutine::svd:
        svd(x);
        break;
      case LinalgRoutine::eigh: {
        auto [values, vectors] = reference::eigh(x);
        for (std::int64_t i = 0; i < n_; ++i) set(0, i, n_, values[static_cast<std::size_t>(i)]);
        store(1, vectors, n_, n_);
      }
    }
    return failed;
  }

  std::int64_t solve(const reference::Matrix& x, const reference::Matrix& b) const {
    reference::Elimination e = reference::eliminate(x);
    for (std::int64_t i = 0; i < n_; ++i)
      if (e.factors(i, i) == 0) return i;
    reference::Matrix y(n_, right_);
    for (std::int64_t i = 0; i < n_; ++i)
      for (std::int64_t j = 0; j < right_; ++j) y(i, j) = b(e.rows[static_cast<std::size_t>(i)], j);
    reference::substitute(e.factors, y, true, false, true);
    reference::substitute(e.factors, y, false, false, false);
    store(0, y, n_, right_);
    return -1;
  }

  void lu(const reference::Matrix& x) const {
    reference::Elimination e = reference::eliminate(x);
    std::int64_t k = std::min(m_, n_);
    if (spec_.results[0] >= 0) {
      Elements rows(table_[spec_.results[0]], DType::i64, count_ * m_);
      for (std::int64_t i = 0; i < m_; ++i) rows.set(entry_ * m_ + i, {.integer = e.rows[static_cast<std::size_t>(i)]});
    }
    for (std::int64_t i = 0; i < m_; ++i)
      for (std::int64_t j = 0; j < k; ++j) set(1, i * k + j, m_ * k, i == j ? 1 : j < i ? e.factors(i, j) : 0);
    for (std::int64_t i = 0; i < k; ++i)
      for (std::int64_t j = 0; j < n_; ++j) set(2, i * n_ + j, k * n_, j < i ? 0 : e.factors(i, j));
  }

  void svd(const reference::Matrix& x) const {
    reference::Singular parts = reference::svd(x);
    std::int64_t k = std::min(m_, n_);
    for (std::int64_t j = 0; j < m_; ++j)
      if (reference::points_down(parts.u, j)) {
        reference::turn(parts.u, j);
        if (j < k) reference::turn(parts.v, j);
      }
    for (std::int64_t j = k; j < n_; ++j)
      if (reference::points_down(parts.v, j)) reference::turn(parts.v, j);
    store(0, parts.u, m_, spec_.full ? m_ : k);
    for (std::int64_t i = 0; i < k; ++i) set(1, i, k, parts.s[static_cast<std::size_t>(i)]);
    store(2, parts.v.transposed(), spec_.full ? n_ : k, n_);
  }

  const LinalgSpec& spec_;
  void* const* table_;
  const Bindings& bindings_;
  Index sizes_;
  std::int64_t count_ = 1, m_ = 0, n_ = 0, right_ = 0, entry_ = 0;
};

// --- target and device

class ReferenceTarget : public Target {
 public:
  std::unique_ptr<Step> kernel(KernelLaunch launch) const override {
    verify(launch.kernel);
    std::vector<int> written;
    for (const Access* result : launch.kernel.results())
      written.push_back(launch.buffers[static_cast<std::size_t>(result->buffer)]);
    std::string description = launch.kernel.str();
    std::vector<int> read = launch.buffers;
    return step(std::move(description), std::move(read), std::move(written),
                [launch = std::move(launch)](void* const* table, const Bindings& bindings) {
                  KernelRun(launch, table, bindings).run();
                });
  }
  std::unique_ptr<Step> rows(RowLaunch launch) const override {
    verify(launch.kernel);
    std::vector<int> written;
    for (const RowKernel::Stage& stage : launch.kernel.stages) {
      auto stores = [&](const Access& to) {
        if (to.buffer < launch.kernel.first_scratch())
          written.push_back(launch.buffers[static_cast<std::size_t>(to.buffer)]);
      };
      for (const RowKernel::Scalar& one : stage.scalars)
        if (one.to) stores(*one.to);
      for (const RowKernel::Line& one : stage.lines) stores(one.to);
    }
    std::string description = launch.kernel.str();
    std::vector<int> read = launch.buffers;
    return step(std::move(description), std::move(read), std::move(written),
                [launch = std::move(launch)](void* const* table, const Bindings& bindings) {
                  RowsRun(launch, table, bindings).run();
                });
  }
  std::unique_ptr<Step> contraction(ContractionSpec spec) const override {
    std::vector<int> read{spec.left.buffer, spec.right.buffer};
    for (const MatrixPlace& operand : spec.operands) read.push_back(operand.buffer);
    int written = spec.result.buffer;
    return step(
        "contraction\n", std::move(read), {written},
        [spec = std::move(spec)](void* const* table, const Bindings& bindings) { contract(spec, table, bindings); });
  }
  std::unique_ptr<Step> convolution(ConvolutionSpec spec) const override {
    int written = spec.result == ConvolutionResult::output  ? spec.output
                  : spec.result == ConvolutionResult::input ? spec.input
                                                            : spec.filter;
    std::vector<int> read;
    for (int buffer : {spec.input, spec.filter, spec.output})
      if (buffer != written) read.push_back(buffer);
    return step(
        "convolution\n", std::move(read), {written},
        [spec = std::move(spec)](void* const* table, const Bindings& bindings) { convolve(spec, table, bindings); });
  }
  std::unique_ptr<Step> scan(ScanSpec spec, Lines lines, int from, int to) const override {
    return step(
        "scan\n", {from}, {to},
        [spec = std::move(spec), lines = std::move(lines), from, to](void* const* table, const Bindings& bindings) {
          scan_lines(spec, lines, from, to, table, bindings);
        });
  }
  std::unique_ptr<Step> sort(SortSpec spec) const override {
    std::vector<int> written;
    for (int buffer : {spec.values, spec.positions})
      if (buffer >= 0) written.push_back(buffer);
    int read = spec.from;
    return step(
        "sort\n", {read}, std::move(written),
        [spec = std::move(spec)](void* const* table, const Bindings& bindings) { sort_lines(spec, table, bindings); });
  }
  std::unique_ptr<Step> search(SearchSpec spec) const override {
    std::vector<int> read{spec.lines, spec.elements};
    int written = spec.positions;
    return step("search\n", std::move(read), {written},
                [spec = std::move(spec)](void* const* table, const Bindings& bindings) {
                  search_lines(spec, table, bindings);
                });
  }
  std::unique_ptr<Step> scatter(ScatterSpec spec, KernelCheck check) const override {
    std::vector<int> read{spec.indices, spec.updates, spec.result};
    int written = spec.result;
    return step("scatter\n", std::move(read), {written},
                [spec = std::move(spec), check = std::move(check)](void* const* table, const Bindings& bindings) {
                  scatter_lines(spec, check, table, bindings);
                });
  }
  std::unique_ptr<Step> pool(PoolSpec spec) const override {
    std::vector<int> read{spec.x}, written{spec.to};
    if (spec.positions >= 0) (spec.result == PoolResult::largest ? written : read).push_back(spec.positions);
    return step(
        "pool\n", std::move(read), std::move(written),
        [spec = std::move(spec)](void* const* table, const Bindings& bindings) { stet::pool(spec, table, bindings); });
  }
  std::unique_ptr<Step> positions(PositionsSpec spec) const override {
    int read = spec.flags, written = spec.positions;
    return step("positions\n", {read}, {written},
                [spec = std::move(spec)](void* const* table, const Bindings& bindings) {
                  find_positions(spec, table, bindings);
                });
  }
  std::unique_ptr<Step> linalg(LinalgSpec spec) const override {
    std::vector<int> read, written;
    for (const LinalgOperand& operand : spec.operands) read.push_back(operand.buffer);
    for (int buffer : spec.results)
      if (buffer >= 0) written.push_back(buffer);
    return step("linear algebra\n", std::move(read), std::move(written),
                [spec = std::move(spec)](void* const* table, const Bindings& bindings) {
                  LinalgRun(spec, table, bindings).run();
                });
  }
  bool contracts(DType dtype) const override { return dtype == DType::f32 || dtype == DType::f64; }
  void provide_code(std::span<Step* const>) const override {}

 private:
  static std::unique_ptr<Step> step(std::string description, std::vector<int> read, std::vector<int> written,
                                    Action action) {
    return std::make_unique<ReferenceStep>(std::move(description), std::move(read), std::move(written),
                                           std::move(action));
  }
};

class ReferenceDevice : public Device {
 public:
  const char* name() const override { return "reference"; }
  const Target& target() const override { return target_; }
  Buffer allocate(std::size_t bytes) override {
    void* memory = std::malloc(bytes + 64);
    std::memset(memory, 0x5C, bytes + 64);  // what a step forgets to write shows
    return Buffer::of_device(*this, hide(memory), bytes, std::free, memory);
  }
  void copy_in(void* to, const void* from_host, std::size_t bytes) override { std::memcpy(real(to), from_host, bytes); }
  void copy_out(void* to_host, const void* from, std::size_t bytes) override {
    std::memcpy(to_host, real(from), bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override { std::memmove(real(to), real(from), bytes); }
  void wait() override {}

 private:
  ReferenceTarget target_;
};

}  // namespace

Device& reference_device() {
  static ReferenceDevice device;
  return device;
}

}  // namespace stet
