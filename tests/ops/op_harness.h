// What the op tests share: tensors of any type from numbers, one-node programs, drawn inputs, distances in units in the
// last place.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stet/base/dim_inside.h"
#include "stet/base/text.h"
#include "stet/compiler/pipeline.h"
#include "stet/core/call.h"
#include "stet/core/eager.h"
#include "stet/core/tensor_node.h"
#include "stet/cpu/emit_kernel.h"
#include "stet/cpu/jit.h"
#include "stet/ir/graph.h"
#include "stet/ops/ops.h"
#include "stet/ops/samples.h"
#include "stet/ops/table.h"
#include "stet/runtime/guard.h"
#include "stet/runtime/parallel.h"

namespace stet::op_test {

/// 80 bits hold every element of every type exactly: doubles and 64-bit integers alike.
using Value = long double;
using Values = std::vector<Value>;
using Sizes = std::vector<std::int64_t>;

inline constexpr DType all_dtypes[] = {DType::bool_, DType::u8,  DType::i8,   DType::i16, DType::i32,
                                       DType::i64,   DType::f16, DType::bf16, DType::f32, DType::f64};
inline constexpr DType floating_dtypes[] = {DType::f16, DType::bf16, DType::f32, DType::f64};

inline std::int64_t count_of(const Sizes& sizes) {
  std::int64_t count = 1;
  for (std::int64_t size : sizes) count *= size;
  return count;
}

// --- tensors and numbers

inline void store_element(DType dtype, Value value, std::byte* to) {
  if (is_floating(dtype)) {
    auto real = static_cast<double>(value);
    convert_element(DType::f64, &real, dtype, to);
  } else {
    auto integer = static_cast<std::int64_t>(value);
    convert_element(DType::i64, &integer, dtype, to);
  }
}

inline Value load_element(DType dtype, const std::byte* from) {
  if (is_floating(dtype)) {
    double real = 0;
    convert_element(dtype, from, DType::f64, &real);
    return static_cast<Value>(real);
  }
  std::int64_t integer = 0;
  convert_element(dtype, from, DType::i64, &integer);
  return static_cast<Value>(integer);
}

/// The nearest element of the type.
inline Value rounded_to(DType dtype, Value value) {
  std::byte bytes[8] = {};
  store_element(dtype, value, bytes);
  return load_element(dtype, bytes);
}

inline Tensor make_tensor(DType dtype, const Values& values, const Sizes& sizes) {
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(size_of(dtype)) + 8);
  for (std::size_t i = 0; i < values.size(); ++i)
    store_element(dtype, values[i], bytes.data() + i * static_cast<std::size_t>(size_of(dtype)));
  return creation::copied(dtype, bytes.data(), values.size(), Shape(sizes), Where::here());
}
inline Tensor make_vector(DType dtype, const Values& values) {
  return make_tensor(dtype, values, {static_cast<std::int64_t>(values.size())});
}

inline Sizes sizes_of(const Tensor& tensor) { return tensor.shape().sizes(); }

/// The elements as they lie in memory, row-major.
inline std::string bytes_of(const Tensor& tensor) {
  Tensor dense = tensor.contiguous();
  std::size_t bytes = static_cast<std::size_t>(dense.node()->element_count() * size_of(dense.dtype()));
  return std::string(reinterpret_cast<const char*>(dense.node()->data), bytes);
}

inline Values values_of(const Tensor& tensor) {
  std::string bytes = bytes_of(tensor);
  auto size = static_cast<std::size_t>(size_of(tensor.dtype()));
  Values out;
  for (std::size_t at = 0; at < bytes.size(); at += size)
    out.push_back(load_element(tensor.dtype(), reinterpret_cast<const std::byte*>(bytes.data() + at)));
  return out;
}

/// Same type, shape and bits; any NaN equals any NaN.
inline testing::AssertionResult same_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !identical(a.shape(), b.shape()))
    return testing::AssertionFailure() << text(a.dtype(), a.shape()) << " is not " << text(b.dtype(), b.shape());
  std::string left = bytes_of(a), right = bytes_of(b);
  if (left == right) return testing::AssertionSuccess();
  auto size = static_cast<std::size_t>(size_of(a.dtype()));
  for (std::size_t at = 0; at < left.size(); at += size) {
    if (std::memcmp(left.data() + at, right.data() + at, size) == 0) continue;
    Value x = load_element(a.dtype(), reinterpret_cast<const std::byte*>(left.data() + at));
    Value y = load_element(b.dtype(), reinterpret_cast<const std::byte*>(right.data() + at));
    if (std::isnan(x) && std::isnan(y)) continue;
    return testing::AssertionFailure() << "element " << at / size << " of " << text(a.dtype(), a.shape()) << ": "
                                       << static_cast<double>(x) << " is not " << static_cast<double>(y)
                                       << " (difference " << static_cast<double>(x - y) << ")";
  }
  return testing::AssertionSuccess();
}

inline testing::AssertionResult same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return testing::AssertionFailure() << a.size() << " results and " << b.size();
  for (std::size_t r = 0; r < a.size(); ++r)
    if (testing::AssertionResult same = same_bits(a[r], b[r]); !same)
      return a.size() == 1 ? same : testing::AssertionFailure() << "result " << r << ": " << same.message();
  return testing::AssertionSuccess();
}

// --- distances

struct FloatFormat {
  int digits, lowest_exponent;
  double largest;
};
inline FloatFormat format_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return {11, -14, 65504};
    case DType::bf16:
      return {8, -126, 0x1.FEp127};
    case DType::f32:
      return {24, -126, 0x1.FFFFFEp127};
    default:
      return {53, -1022, 0x1.FFFFFFFFFFFFFp1023};
  }
}
/// Half the distance from 1 to the next number: the largest relative error of one rounding.
inline Value unit_roundoff(DType dtype) { return std::ldexp(Value{1}, -format_of(dtype).digits); }

/// How far `got` is from `truth`, in units in the last place of the type at `truth`. 0: `got` is the nearest element
/// (and has the truth's sign if it is zero).
inline double ulps(DType dtype, Value got, Value truth) {
  if (std::isnan(truth)) return std::isnan(got) ? 0 : INFINITY;
  Value nearest = rounded_to(dtype, truth);
  if (got == nearest) return got != 0 || std::signbit(got) == std::signbit(truth) ? 0 : INFINITY;
  if (std::isnan(got)) return INFINITY;
  FloatFormat format = format_of(dtype);
  // Overflow one step early or late is one unit.
  if (std::isinf(got) || std::isinf(nearest)) {
    Value finite = std::isinf(got) ? nearest : got;
    bool beside = std::abs(finite) == format.largest && std::signbit(got) == std::signbit(nearest);
    return beside ? 1 : INFINITY;
  }
  int exponent = truth == 0 ? format.lowest_exponent : std::max(std::ilogb(truth), format.lowest_exponent);
  return static_cast<double>(std::abs(got - truth) / std::ldexp(Value{1}, exponent - format.digits + 1));
}

// --- drawn inputs: repeated in tests/oracle/make_values.py

inline std::uint64_t drawn(std::uint64_t number, std::uint64_t operand) {
  std::uint64_t z = number * 0x9E3779B97F4A7C15u + (operand + 1) * 0xBF58476D1CE4E5B9u;
  z ^= z >> 31;
  z *= 0x94D049BB133111EBu;
  z ^= z >> 29;
  return z >> 33;
}

inline Value drawn_element(Draw draw, std::int64_t number, int operand, DType dtype, std::int64_t count) {
  std::uint64_t bits = drawn(static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(operand));
  if (draw == Draw::marks) return bits % 3 != 0;
  if (dtype == DType::bool_) return bits & 1;
  if (draw == Draw::factors) {
    if (!is_floating(dtype)) return 1 + 2 * (bits % 3);
    Value sign = bits & 1 ? -1 : 1;
    if (count > 1000) return sign * (bits % 64 < 2 ? 2 : bits % 64 < 4 ? Value{0.5} : 1);
    return rounded_to(dtype, static_cast<double>(sign) * (1 + static_cast<double>((bits >> 1) % 16) / 61));
  }
  if (dtype == DType::u8) return bits % 201;
  if (!is_floating(dtype)) return static_cast<Value>(bits % 201) - 100;
  return rounded_to(dtype, (static_cast<double>(bits % 257) - 128) / 61);
}

/// A value of a row's domain from 31 bits.
inline double drawn_from(const Domain& domain, std::uint64_t bits) {
  double unit = (static_cast<double>(bits) + 0.5) / 0x1p31;
  double x = domain.low + (domain.high - domain.low) * unit;
  return domain.without_zero && std::abs(x) < 0.5 ? std::copysign(0.5 + std::abs(x), x) : x;
}

/// Matrices of multiples of 1/64, which every floating type of linear algebra holds exactly: b b' + n (definite), or b
/// with n added along the diagonal (regular).
inline Values drawn_matrices(int operand, const SampleInput& input) {
  std::int64_t rows = input.sizes[input.sizes.size() - 2], columns = input.sizes.back();
  Values b, out;
  for (std::int64_t i = 0; i < count_of(input.sizes); ++i)
    b.push_back(
        (static_cast<Value>(drawn(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(operand)) % 9) - 4) / 8);
  std::int64_t matrices = rows * columns > 0 ? count_of(input.sizes) / (rows * columns) : 0;
  for (std::int64_t matrix = 0; matrix < matrices; ++matrix)
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        auto at = [&](std::int64_t row, std::int64_t column) {
          return b[static_cast<std::size_t>((matrix * rows + row) * columns + column)];
        };
        Value value = input.draw == Draw::regular ? at(i, j) : 0;
        if (input.draw == Draw::definite)
          for (std::int64_t k = 0; k < columns; ++k) value += at(i, k) * at(j, k);
        out.push_back(i == j ? value + static_cast<Value>(columns) : value);
      }
  return out;
}

inline Values drawn_values(int operand, DType dtype, const SampleInput& input) {
  if (input.draw == Draw::definite || input.draw == Draw::regular) return drawn_matrices(operand, input);
  Values out;
  std::int64_t count = count_of(input.sizes);
  for (std::int64_t i = 0; i < count; ++i) {
    if (input.below >= 0)
      out.push_back(drawn(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(operand)) %
                    static_cast<std::uint64_t>(std::max<std::int64_t>(input.below, 1)));
    else
      out.push_back(drawn_element(input.draw, i, operand, dtype, count));
  }
  if (input.draw == Draw::ordered && count > 0)
    for (auto line = out.begin(); line != out.end(); line += input.sizes.back())
      std::sort(line, line + input.sizes.back());
  return out;
}

/// The operands of a sample; those that hold indices in i64.
inline std::vector<Tensor> drawn_inputs(const Sample& sample, DType dtype) {
  std::vector<Tensor> out;
  for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
    const SampleInput& input = sample.inputs[k];
    out.push_back(make_tensor(input.below >= 0 ? DType::i64 : dtype, drawn_values(static_cast<int>(k), dtype, input),
                              input.sizes));
  }
  return out;
}

// --- samples

inline std::vector<Sample> samples_of(const OpDef& row) {
  SampleList list;
  if (row.samples) row.samples(list);
  return list.samples;
}

/// No operand is empty.
inline bool has_elements(const Sample& sample) {
  return std::ranges::none_of(sample.inputs, [](const SampleInput& input) { return count_of(input.sizes) == 0; });
}

/// A larger size: what was equal stays equal, what was different stays different and in the same order, 0 and 1 stay.
inline std::int64_t grown(std::int64_t size) {
  return size > 1 ? size + 1 + std::min<std::int64_t>(size, 16) / 2 : size;
}

/// The sample at other sizes, which must fit the same program.
inline Sample grown(const Sample& sample) {
  Sample out = sample;
  if (sample.grows == Grows::first) {
    if (out.inputs[0].sizes.empty()) return out;
    out.inputs[0].sizes[0] *= 2;
    int number = 0;
    out.attributes = sample.attributes.map_dims([&](const Dim& dim) { return number++ == 0 ? dim * 2 : dim; });
    return out;
  }
  for (SampleInput& input : out.inputs)
    if (input.grows)
      for (std::int64_t& size : input.sizes) size = grown(size);
  if (sample.grows == Grows::everything)
    out.attributes = sample.attributes.map_dims([](const Dim& dim) { return Dim(grown(dim.constant())); });
  return out;
}

/// The line that stands for the sample in tests/oracle/rows.txt and values.txt.
inline std::string sample_line(const OpDef& row, const Sample& sample) {
  std::string sizes;
  for (const SampleInput& input : sample.inputs) {
    if (&input != &sample.inputs.front()) sizes += ";";
    sizes += joined(input.sizes, ",");
    if (input.below >= 0) sizes += text(":", input.below);
    static constexpr const char* draws[] = {"", "~factors", "~marks", "~definite", "~regular", "~ordered"};
    sizes += draws[static_cast<int>(input.draw)];
  }
  return text("sample ", row.name, " ", sizes, " | ", sample.attributes.str());
}

// --- calls

inline std::vector<Tensor> eager_all(const OpDef& row, const std::vector<Tensor>& inputs,
                                     const Attributes& attributes = {}, Where where = Where::here()) {
  std::vector<In> operands;
  for (const Tensor& input : inputs) operands.emplace_back(input, where);
  std::vector<Tensor> results(row.result_count());
  call_into(row, operands, attributes.view(), results);
  return results;
}
/// Of a row with one result.
inline Tensor eager(const OpDef& row, const std::vector<Tensor>& inputs, const Attributes& attributes = {},
                    Where where = Where::here()) {
  std::vector<In> operands;
  for (const Tensor& input : inputs) operands.emplace_back(input, where);
  return call(row, operands, attributes.view());
}

/// A graph of one node, all of whose sizes (and sizes in attributes) are symbols, and its program: what a trace of one
/// op would be. Made from the sizes of one call; runs at every size that obeys the facts learned from it.
class OneNode {
 public:
  OneNode(const OpDef& row, const std::vector<Tensor>& inputs, const Attributes& attributes = {},
          const CompileOptions& options = {}) {
    auto scope = std::make_shared<RecordingScope>();
    graph_.scope = scope;
    std::vector<ValueId> ids;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const TensorNode& node = *inputs[i].node();
      Shape shape;
      std::vector<Dim> strides;
      for (int axis = 0; axis < node.rank; ++axis) {
        shape.push_back(scope->symbol(text("s", i, "_", axis), node.sizes[axis]));
        std::int64_t stride = node.strides[axis];
        // Repeated (0) and contiguous (1) are a kernel's form, other strides are numbers.
        if (!node.dense) strides.push_back(stride < 2 ? Dim(stride) : scope->symbol(text("t", i, "_", axis), stride));
      }
      ids.push_back(graph_.add_input({node.dtype, shape}, std::move(strides)));
    }
    std::vector<int> dim_symbols;
    Attributes symbolic = attributes.map_dims([&](const Dim& dim) {
      std::int64_t value = dim.constant();
      Dim symbol = scope->symbol(text("d", dim_symbols.size()), std::abs(value));
      dim_symbols.push_back(*symbol.as_symbol());
      return value < 0 ? Dim(0) - symbol : symbol;
    });
    graph_.results = graph_.add_parts(graph_.add_call(row, ids, symbolic, Where::here()));
    std::vector<ProgramInput> asked;
    for (ValueId id : graph_.inputs)
      asked.push_back(
          {graph_.type(id).dtype, graph_.type(id).shape, graph_.node(id).attributes.as<InputAttributes>().strides});
    program_ = compile(substitute(graph_, solved(*scope)), options);
    program_->inputs = std::move(asked);
    program_->dim_symbols = std::move(dim_symbols);
    program_->facts.assign(scope->facts().begin(), scope->facts().end());
  }

  /// Undefined if the program is for other sizes.
  Tensor run(const std::vector<Tensor>& inputs, const Attributes& attributes = {}) const {
    std::vector<Tensor> results = run_all(inputs, attributes);
    return results.empty() ? Tensor() : results[0];
  }
  /// All results; none if the program is for other sizes.
  std::vector<Tensor> run_all(const std::vector<Tensor>& inputs, const Attributes& attributes = {}) const {
    std::vector<ConcreteInput> concrete;
    std::vector<void*> memory;
    for (const Tensor& input : inputs) {
      const TensorNode& node = *input.node();
      concrete.push_back({node.size_span(), node.dense ? std::span<const std::int64_t>() : node.stride_span()});
      memory.push_back(node.data);
    }
    std::vector<std::int64_t> dims;
    attributes.map_dims([&](const Dim& dim) {
      dims.push_back(std::abs(dim.constant()));
      return dim;
    });
    std::optional<Bindings> bindings = program_->accepts(concrete, dims);
    if (!bindings) return {};
    std::shared_ptr<const BoundProgram> bound = program_->bind(std::move(*bindings));
    std::vector<Buffer> buffers(bound->result_count());
    std::vector<std::vector<std::int64_t>> sizes;
    if (bound->has_late_sizes()) {
      bound->run_late(memory.data(), buffers.data(), sizes);
    } else {
      bound->run(memory.data(), buffers.data());
      sizes = bound->result_sizes();
    }
    std::vector<Tensor> out;
    for (std::size_t r = 0; r < buffers.size(); ++r)
      out.push_back(dense_tensor(bound->result_type(r), sizes[r], std::move(buffers[r])));
    return out;
  }

  std::string str() const { return graph_.str() + program_->str(); }

 private:
  /// What the facts say about single symbols, as one substitution.
  static std::vector<Dim> solved(const SymbolScope& scope) {
    std::vector<Dim> symbols;
    for (int i = 0; i < scope.symbol_count(); ++i) symbols.push_back(scope.symbol_at(i));
    std::vector<Dim> out = symbols;
    for (const Fact& fact : scope.facts()) {
      if (fact.relation != Relation::equal) continue;
      Dim left = fact.left.substitute(out), right = fact.right.substitute(out);
      if (identical(left, right)) continue;
      if (!left.as_symbol()) std::swap(left, right);
      if (!left.as_symbol()) continue;
      std::vector<int> inside = right.symbols();
      if (std::find(inside.begin(), inside.end(), *left.as_symbol()) != inside.end()) continue;
      std::vector<Dim> one = symbols;
      one[static_cast<std::size_t>(*left.as_symbol())] = right;
      for (Dim& dim : out) dim = dim.substitute(one);
    }
    return out;
  }

  Graph graph_;
  std::shared_ptr<Program> program_;
};

/// Generated code that tests its accesses, for the life of the object.
class CheckedKernels {
 public:
  CheckedKernels() : before_(cpu::checked_kernels()) { cpu::set_checked_kernels(true); }
  ~CheckedKernels() { cpu::set_checked_kernels(before_); }
  CheckedKernels(const CheckedKernels&) = delete;
  CheckedKernels& operator=(const CheckedKernels&) = delete;

 private:
  bool before_;
};

/// The text of the UserError that `call` throws; fails the test if it throws none, or anything else.
template <class Call>
std::string message_of(Call&& call) {
  try {
    Tensor result = call();
    ADD_FAILURE() << "no error; the result is " << text(result.dtype(), result.shape());
  } catch (const UserError& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "not a UserError: " << error.what();
  }
  return {};
}

/// Every op test runs with guard bytes around every block, and compiled code in a folder of its own.
class OpTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_before_ = cpu::cache_folder();
    cpu::set_cache_folder(std::filesystem::temp_directory_path() / text("stet-op-tests-", getuid()));
    failures_before_ = guard_failures();
    set_guard_bytes(true);
  }
  void TearDown() override {
    set_guard_bytes(false);
    EXPECT_EQ(guard_failures(), failures_before_) << last_guard_failure();
    cpu::set_cache_folder(folder_before_);
  }

 private:
  std::string folder_before_;
  std::uint64_t failures_before_ = 0;
};

}  // namespace stet::op_test
