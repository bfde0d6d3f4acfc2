// Graphs built by hand, compiled and run on plain arrays: for tests of passes, programs and the compiler as a whole.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/compiler/pipeline.h"
#include "stet/ir/graph.h"
#include "stet/ops/samples.h"
#include "stet/ops/table.h"
#include "stet/runtime/program.h"

namespace stet {

/// A dense array of any type.
struct Array {
  DType dtype = DType::f32;
  std::vector<std::int64_t> sizes;
  std::vector<unsigned char> bytes;

  std::int64_t count() const {
    std::int64_t out = 1;
    for (std::int64_t size : sizes) out *= size;
    return out;
  }
  ScalarBits bits(std::int64_t at) const {
    ScalarBits out = 0;
    auto size = static_cast<std::size_t>(size_of(dtype));
    std::memcpy(&out, bytes.data() + static_cast<std::size_t>(at) * size, size);
    return out;
  }
  ScalarValue value(std::int64_t at) const { return value_of(bits(at), dtype); }
  double real(std::int64_t at) const {
    ScalarValue v = value(at);
    return is_floating(dtype) ? v.real : static_cast<double>(v.integer);
  }
  void set(std::int64_t at, ScalarValue v) {
    ScalarBits b = bits_of(v, dtype);
    auto size = static_cast<std::size_t>(size_of(dtype));
    std::memcpy(bytes.data() + static_cast<std::size_t>(at) * size, &b, size);
  }
  static Array zeros(DType dtype, std::vector<std::int64_t> sizes) {
    Array out{dtype, std::move(sizes), {}};
    out.bytes.assign(static_cast<std::size_t>(out.count()) * static_cast<std::size_t>(size_of(dtype)), 0);
    return out;
  }
  /// value(i) at flat position i, converted to the type.
  template <class F>
  static Array filled(DType dtype, std::vector<std::int64_t> sizes, F value) {
    Array out = zeros(dtype, std::move(sizes));
    for (std::int64_t i = 0; i < out.count(); ++i)
      out.set(i, convert({.real = static_cast<double>(value(i))}, DType::f64, dtype));
    return out;
  }
  std::vector<double> reals() const {
    std::vector<double> out;
    for (std::int64_t i = 0; i < count(); ++i) out.push_back(real(i));
    return out;
  }
};

inline const OpDef& row_of(std::string_view name) {
  for (const OpDef* row : all_rows())
    if (name == row->name) return *row;
  throw std::runtime_error("there is no row " + std::string(name));
}

/// Attribute structs are private to their rows, but samples carry them: sample `number`'s with its sizes replaced.
inline Attributes sampled(const OpDef& row, std::size_t number, const std::vector<Dim>& dims = {}) {
  SampleList list;
  row.samples(list);
  std::size_t next = 0;
  return list.samples.at(number).attributes.map_dims(
      [&](const Dim& dim) { return next < dims.size() ? dims[next++] : dim; });
}

inline Attributes reduce_over(std::vector<int> axes, bool keepdims = false) {
  ReduceAttributes attributes{std::move(axes), keepdims, {}, {}, {}};
  return Attributes(view_of(attributes));
}
inline Attributes contract_as(bool transpose_left, bool transpose_right) {
  ContractAttributes attributes{transpose_left, transpose_right, {}, {}};
  return Attributes(view_of(attributes));
}

/// A graph over a recording scope.
struct SymbolicGraph {
  std::shared_ptr<RecordingScope> scope = std::make_shared<RecordingScope>();
  Graph graph;
  SymbolicGraph() { graph.scope = scope; }

  Dim symbol(const char* name, std::int64_t hint) { return scope->symbol(name, hint); }
  ValueId input(DType dtype, Shape shape) { return graph.add_input({dtype, std::move(shape)}); }
  ValueId call(std::string_view row, std::vector<ValueId> inputs, Attributes attributes = {}) {
    return graph.add_call(row_of(row), std::move(inputs), std::move(attributes));
  }
  ValueId cast(ValueId x, DType dtype) { return graph.add_call(cast_rows()[static_cast<std::size_t>(dtype)], {x}); }
};

/// `substituted`: what symbols of the graph were replaced by, if they were; facts still speak of the old ones.
inline std::shared_ptr<Program> compile_with_facts(const Graph& graph, const CompileOptions& options = {},
                                                   std::span<const Dim> substituted = {}) {
  std::shared_ptr<Program> program = compile(graph, options);
  if (graph.scope) program->facts.assign(graph.scope->facts().begin(), graph.scope->facts().end());
  if (substituted.empty()) return program;
  for (Fact& fact : program->facts) {
    fact.left = fact.left.substitute(substituted);
    fact.right = fact.right.substitute(substituted);
  }
  return program;
}

inline CompileOptions without(std::vector<std::string> passes) {
  CompileOptions options;
  options.without = std::move(passes);
  options.verify = true;
  return options;
}
inline CompileOptions all_passes() { return without({}); }
inline CompileOptions no_passes() {
  std::vector<std::string> names;
  for (const Pass& pass : passes()) names.push_back(pass.name);
  names.push_back("plan");
  return without(names);
}

inline std::shared_ptr<const BoundProgram> bind_to(const Program& program, std::span<const Array> inputs) {
  std::vector<ConcreteInput> concrete;
  for (const Array& input : inputs) concrete.push_back({input.sizes, {}});
  std::optional<Bindings> bindings = program.accepts(concrete, {});
  if (!bindings) throw std::runtime_error("the program is for other sizes");
  return program.bind(std::move(*bindings));
}

inline std::vector<Array> run_bound(const Program& program, const BoundProgram& bound, std::span<const Array> inputs) {
  std::vector<void*> pointers;
  for (const Array& input : inputs) pointers.push_back(const_cast<unsigned char*>(input.bytes.data()));
  std::vector<Buffer> buffers(program.results.size());
  std::vector<std::vector<std::int64_t>> sizes;
  if (bound.has_late_sizes()) {
    bound.run_late(pointers.data(), buffers.data(), sizes);
  } else {
    bound.run(pointers.data(), buffers.data());
    sizes = bound.result_sizes();
  }
  std::vector<Array> out;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    Array array = Array::zeros(program.results[i].dtype, sizes[i]);
    if (!array.bytes.empty()) std::memcpy(array.bytes.data(), buffers[i].data(), array.bytes.size());
    out.push_back(std::move(array));
  }
  return out;
}

inline std::vector<Array> run_on(const Program& program, std::span<const Array> inputs) {
  return run_bound(program, *bind_to(program, inputs), inputs);
}

/// Bit for bit, but any NaN equals any NaN.
inline bool same_values(const Array& a, const Array& b) {
  if (a.dtype != b.dtype || a.sizes != b.sizes) return false;
  if (a.bytes == b.bytes) return true;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    if (a.bits(i) == b.bits(i)) continue;
    if (!is_floating(a.dtype) || a.real(i) == a.real(i) || b.real(i) == b.real(i)) return false;
  }
  return true;
}

inline int temporaries(const Program& program) {
  int count = 0;
  for (const ProgramBuffer& buffer : program.buffers) count += buffer.role == ProgramBuffer::temporary;
  return count;
}

}  // namespace stet
