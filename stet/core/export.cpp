// Writing exported functions.
#include "stet/core/export.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <shared_mutex>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/base/version.h"
#include "stet/compiler/pipeline.h"
#include "stet/core/exported_format.h"
#include "stet/core/exported_names.h"
#include "stet/core/function_state.h"
#include "stet/core/saved_graph.h"
#include "stet/core/symbolic_program.h"
#include "stet/core/tape.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"
#include "stet/core/variable_state.h"
#include "stet/files/file.h"

namespace stet {
namespace {

struct TracedExport {
  std::string name;
  TracedRun run;
  std::vector<TensorSpec> inputs;
  std::vector<std::int64_t> hints;
  struct Output {
    std::string name;
    int result = -1;
    Tensor number = {};
  };
  std::vector<Output> outputs;
};

/// The parts of a path, joined by dots: ".pair[2]" is "pair.2".
std::string name_of_path(const std::string& path) {
  std::string out;
  bool fresh = true;
  for (char c : path) {
    const bool between = c == '.' || c == '[' || c == ']' || c == '<' || c == '>' || c == '"';
    if (!between && fresh && !out.empty()) out += '.';
    fresh = between;
    if (!between) out += c;
  }
  return out;
}

TensorSpec spec_of(const Tensor& tensor) {
  TensorSpec out{tensor.dtype(), {}, {}};
  for (std::int64_t size : tensor.node()->size_span()) out.shape.dims.emplace_back(size);
  return out;
}

[[noreturn]] void refuse(const std::string& what, Where where, const std::string& advice) {
  throw UserError(error_text(text("export_function: ", what), where, advice));
}

/// What is promised of every tensor among the leaves: by the call's specs, or by the function's signature, or the
/// sizes that the tensor has.
std::vector<TensorSpec> promises(const FunctionBase::State& function, const inside::CallLeaves& call, Where where) {
  std::vector<TensorSpec> out;
  for (std::size_t i = 0; i < call.leaves.size(); ++i) {
    const Leaf& leaf = call.leaves[i];
    const std::string argument = function.arguments.of(call.owners[i], leaf.path);
    if (leaf.kind == Leaf::size)
      refuse(text(argument, " of '", function.name, "' is a size, which a file cannot take as an argument"), where,
             "pass a tensor of that size, or a number, which becomes part of the function");
    if (leaf.kind != Leaf::tensor) continue;
    if (!leaf.value.defined())
      refuse(text(argument, " of '", function.name, "' is undefined"), where,
             "give its type and sizes: {dtype, {sizes}}");
    auto spec = std::find(call.spec_leaves.begin(), call.spec_leaves.end(), i);
    if (spec != call.spec_leaves.end())
      out.push_back(call.specs[static_cast<std::size_t>(spec - call.spec_leaves.begin())]);
    else if (out.size() < function.options.signature.size())
      out.push_back(function.options.signature[out.size()]);
    else
      out.push_back(spec_of(leaf.value));
  }
  return out;
}

inside::CallLeaves call_of_signature(const FunctionBase::State& function, Where where) {
  inside::CallLeaves out;
  if (function.options.signature.size() != function.arity)
    refuse(text("'", function.name, "' has no signature that says what its ", function.arity,
                function.arity == 1 ? " argument is" : " arguments are"),
           where, "say it here: export_function(path, f, {dtype, {sizes}}, …)");
  for (const TensorSpec& spec : function.options.signature) out.add(ArgumentSpec(spec, where));
  return out;
}

/// The inputs as calls are to bring them: what was learned about single sizes is part of the promise.
std::vector<TensorSpec> learned_inputs(const TracedRun& run, const std::vector<std::string>& names) {
  const std::vector<Dim> known = solve_facts(*run.graph.scope);
  std::map<int, std::string> symbol_names;
  exported::UniqueNames unique;
  std::vector<TensorSpec> out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const ValueType& type = run.graph.type(run.graph.inputs[i]);
    TensorSpec spec{type.dtype, {}, names[i]};
    for (const Dim& dim : type.shape) {
      Dim size = dim.substitute(known);
      if (size.is_constant()) {
        spec.shape.dims.emplace_back(size.constant());
        continue;
      }
      // A size that follows from others is named by itself; what it follows from is a fact.
      const int symbol = size.as_symbol() ? *size.as_symbol() : *dim.as_symbol();
      auto [found, added] = symbol_names.try_emplace(symbol);
      if (added) found->second = unique.made(run.graph.scope->symbol_name(symbol), "size");
      spec.shape.dims.emplace_back(Dyn{found->second});
    }
    out.push_back(std::move(spec));
  }
  return out;
}

/// The tensors, sizes and numbers among the results, by name.
std::vector<TracedExport::Output> outputs_of(const TracedRun& run, const std::string& function, Where where) {
  std::vector<TracedExport::Output> out;
  exported::UniqueNames unique;
  int result = 0;
  for (const Leaf& leaf : run.result_form) {
    TracedExport::Output one;
    switch (leaf.kind) {
      case Leaf::tensor:
        if (leaf.undefined) continue;
        one.result = result++;
        break;
      case Leaf::size:
        if (leaf.undefined)
          one.number = tensor(leaf.length.constant());
        else
          one.result = result++;
        break;
      case Leaf::number: {
        // Integers of all kinds are kept in 64 bits, floating ones in their own.
        one.number = creation::copied(leaf.dtype, &leaf.bits, 1, Shape(), where);
        break;
      }
      case Leaf::count:
      case Leaf::text:
        continue;  // the structure, of which the names tell
      default:
        refuse(text("'", function, "' gives a Variable or an object, which a file cannot give"), where,
               "give tensors; Variables that it uses are in the file");
    }
    std::string name = name_of_path(leaf.path);
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name = name.empty() ? "output" : "output_" + name;
    one.name = unique.made(name, "output");
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

struct Exporter::State {
  std::vector<TracedExport> functions;
  std::map<std::uint64_t, std::string> names;  // of Variables, where they were given
};

Exporter::Exporter() : state_(std::make_shared<State>()) {}

Exporter& Exporter::name_variable(const Variable& variable, const std::string& name) {
  state_->names[variable.id()] = name;
  return *this;
}

Exporter& Exporter::add_untyped(const inside::TextAt& name, const FunctionBase& f,
                                const std::vector<TensorSpec>& specs) {
  inside::CallLeaves call;
  for (const TensorSpec& spec : specs) call.add(ArgumentSpec(spec, name.where));
  return add_call(name, f.body(), std::move(call), false);
}

Exporter& Exporter::add_call(const inside::TextAt& given, std::shared_ptr<inside::Body> body, inside::CallLeaves call,
                             bool by_signature) {
  const Where where = given.where;
  if (!body) refuse("this Function was moved from and holds nothing", where, "use the one that it was moved to");
  FunctionBase::State& function = *std::static_pointer_cast<FunctionBase::State>(body);
  if (current_trace())
    throw TraceError(
        error_text(text("export_function: '", function.name, "' cannot be exported while a function is traced"), where,
                   "export it outside of traced code"));
  if (by_signature) call = call_of_signature(function, where);
  TracedExport made;
  made.name = exported::clean_name(given.text.empty() ? function.name : given.text, "function");
  for (const TracedExport& other : state_->functions)
    if (other.name == made.name)
      refuse(text("there are two functions '", made.name, "' for one file"), where, "give them different names");
  function.prepare_arguments(call.leaves, call.owners, where);
  if (!function.options.signature.empty()) function.check_signature(call.leaves, call.owners, where);
  FunctionOptions options;
  options.signature = promises(function, call, where);
  HostFunction host(function.name, function.arguments, options);
  host.body = function.host.body;
  host.where = function.host.where;
  try {
    made.run = host.traced(call.leaves, call.owners, where);
  } catch (const UserError& error) {
    const bool open = std::any_of(options.signature.begin(), options.signature.end(), [](const TensorSpec& spec) {
      return std::any_of(spec.shape.dims.begin(), spec.shape.dims.end(), [](const DimSpec& dim) { return !dim.size; });
    });
    if (!open) throw;
    throw UserError(text(error.what(), "\n  while '", function.name,
                         "' was traced to export it: sizes that specs leave open were taken to be 60 or a multiple"));
  }
  std::vector<std::string> names;
  exported::UniqueNames unique;
  for (std::size_t i = 0; i < call.leaves.size(); ++i) {
    const Leaf& leaf = call.leaves[i];
    if (leaf.kind != Leaf::tensor) continue;
    std::string name = function.arguments.in(call.owners[i]);
    if (const std::string path = name_of_path(leaf.path); !path.empty()) name += "." + path;
    names.push_back(unique.made(name, "input"));
    for (std::int64_t size : leaf.value.node()->size_span()) made.hints.push_back(size);
  }
  made.run.graph = merge_loops(made.run.graph);
  made.inputs = learned_inputs(made.run, names);
  made.outputs = outputs_of(made.run, made.name, where);
  state_->functions.push_back(std::move(made));
  return *this;
}

namespace {

/// What all functions of a file hold together.
class Holdings {
 public:
  void add(const TracedRun& run) {
    for (const Trace::HiddenInput& hidden : run.hidden) {
      if (!hidden.variable.defined()) {
        const TensorNode& node = *hidden.captured.node();
        if (constant_numbers.emplace(&node, constants.size()).second) constants.push_back(hidden.captured);
        continue;
      }
      by_age_.emplace(hidden.variable.id(), hidden.variable);
    }
  }
  /// All are there. Variables stand as they were made, whichever the functions met first.
  void number_variables(const std::map<std::uint64_t, std::string>& given_names) {
    exported::UniqueNames unique;
    for (const auto& [id, variable] : by_age_) {
      auto given = given_names.find(id);
      variable_numbers.emplace(id, variables.size());
      variables.push_back(variable);
      names.push_back(unique.made(given == given_names.end() ? variable.name() : given->second, "variable"));
    }
  }

  std::vector<Variable> variables;
  std::vector<std::string> names;
  std::vector<Tensor> constants;
  std::unordered_map<std::uint64_t, std::size_t> variable_numbers;
  std::unordered_map<const TensorNode*, std::size_t> constant_numbers;

 private:
  std::map<std::uint64_t, Variable> by_age_;
};

/// What Variables, in the order of their age, hold at one moment: no call stands between two of them.
std::vector<Tensor> values_at_once(const std::vector<Variable>& variables, Where where) {
  std::vector<Tensor> out;
  std::vector<std::shared_lock<SharedLock>> locks;
  for (const Variable& variable : variables) {
    HeldVariables::refuse(state_of(variable), "export_function", where);
    locks.emplace_back(state_of(variable).guard);
  }
  for (const Variable& variable : variables) out.push_back(state_of(variable).value);
  return out;
}

/// Tensors of a file, one after the other.
class Elements {
 public:
  void add(SavedWriter& head, const Tensor& given, Where where) {
    HiddenTapes unseen;
    Tensor tensor = on_host(given).contiguous(where);
    const TensorNode& node = *tensor.node();
    const auto bytes =
        static_cast<std::uint64_t>(node.element_count()) * static_cast<std::uint64_t>(size_of(node.dtype));
    head.dtype(node.dtype);
    head.u8(node.rank);
    for (std::int64_t size : node.size_span()) head.i64(size);
    offset_ = exported::aligned(offset_);
    head.u64(offset_);
    head.u64(bytes);
    head.u32(files::crc32c({node.data, static_cast<std::size_t>(bytes)}));
    places_.push_back({offset_, bytes, std::move(tensor)});
    offset_ += bytes;
  }
  /// From the first byte of the elements on.
  std::uint64_t bytes() const { return offset_; }
  void write(files::Output& file, std::uint64_t base) const {
    for (const Place& place : places_) {
      pad(file, base + place.offset);
      file.write(place.tensor.node()->data, static_cast<std::size_t>(place.bytes));
    }
  }
  static void pad(files::Output& file, std::uint64_t until) {
    static constexpr char zeros[exported::alignment] = {};
    file.write(zeros, static_cast<std::size_t>(until - file.written()));
  }

 private:
  struct Place {
    std::uint64_t offset, bytes;
    Tensor tensor;
  };
  std::vector<Place> places_;
  std::uint64_t offset_ = 0;
};

void write_function(GraphWriter& writer, const TracedExport& function, const Holdings& holdings) {
  SavedWriter& to = writer.to;
  const TracedRun& run = function.run;
  to.text(function.name);
  to.u32(function.inputs.size());
  for (const TensorSpec& input : function.inputs) {
    to.text(input.name);
    to.dtype(input.dtype);
    to.u8(static_cast<std::uint8_t>(input.shape.rank()));
    for (const DimSpec& dim : input.shape.dims) {
      to.u8(dim.size.has_value());
      if (dim.size)
        to.i64(*dim.size);
      else
        to.text(dim.name);
    }
  }
  to.u32(function.hints.size());
  for (std::int64_t size : function.hints) to.i64(size);
  const SymbolScope& scope = *run.graph.scope;
  to.u32(static_cast<std::uint64_t>(scope.symbol_count()));
  for (int i = 0; i < scope.symbol_count(); ++i) {
    to.text(scope.symbol_name(i));
    to.u8(scope.symbol_hint(i).has_value());
    if (scope.symbol_hint(i)) to.i64(*scope.symbol_hint(i));
  }
  to.u32(scope.facts().size());
  for (const Fact& fact : scope.facts()) write_check(to, SizeCheck(fact, {}, {}));
  to.u32(run.hidden.size());
  for (const Trace::HiddenInput& hidden : run.hidden) {
    to.u8(hidden.variable.defined());
    to.u32(hidden.variable.defined() ? holdings.variable_numbers.at(hidden.variable.id())
                                     : holdings.constant_numbers.at(hidden.captured.node()));
  }
  writer.write(run.graph);
  to.u32(run.graph.updates.size());
  for (const Update& update : run.graph.updates) {
    to.u32(static_cast<std::uint64_t>(update.input));
    to.u32(static_cast<std::uint64_t>(update.result));
  }
  to.u32(function.outputs.size());
  for (const TracedExport::Output& output : function.outputs) {
    to.text(output.name);
    to.u8(output.result >= 0);
    if (output.result >= 0) {
      to.u32(static_cast<std::uint64_t>(output.result));
      continue;
    }
    const TensorNode& node = *output.number.node();
    to.dtype(node.dtype);
    to.text({reinterpret_cast<const char*>(node.data), static_cast<std::size_t>(size_of(node.dtype))});
  }
}

}  // namespace

void Exporter::write(const std::string& path, Where where) const {
  if (state_->functions.empty()) refuse("there is no function to write", where, "add() one first");
  Holdings holdings;
  for (const TracedExport& function : state_->functions) holdings.add(function.run);
  holdings.number_variables(state_->names);
  GraphWriter graphs;
  graphs.where = where;
  graphs.variables = holdings.variable_numbers;
  for (const TracedExport& function : state_->functions) {
    graphs.function = function.name;
    write_function(graphs, function, holdings);
  }
  SavedWriter head;
  Elements elements;
  graphs.ops.write(head);
  graphs.sources.write(head);
  head.u32(holdings.variables.size());
  const std::vector<Tensor> values = values_at_once(holdings.variables, where);
  const std::uint64_t generator = exported::process_generator().id();
  for (std::size_t i = 0; i < holdings.variables.size(); ++i) {
    const Variable& variable = holdings.variables[i];
    head.text(holdings.names[i]);
    head.u8(variable.trainable());
    head.u8(variable.id() == generator);
    if (variable.id() != generator) elements.add(head, values[i], where);
  }
  head.u32(holdings.constants.size());
  for (const Tensor& constant : holdings.constants) elements.add(head, constant, where);
  head.u32(state_->functions.size());
  head.bytes += graphs.to.bytes;

  exported::Header header;
  header.head_bytes = head.bytes.size();
  const std::uint64_t base = exported::aligned(sizeof header + header.head_bytes);
  header.file_bytes = base + elements.bytes();
  header.head_checksum = files::crc32c(std::as_bytes(std::span(head.bytes)));
  std::strncpy(header.writer.data(), STET_VERSION, header.writer.size() - 1);
  header.checksum = files::crc32c(std::as_bytes(std::span(&header, 1)).first(sizeof header - sizeof header.checksum));
  files::Output file(path, "export_function", where);
  file.write(&header, sizeof header);
  file.write(head.bytes);
  Elements::pad(file, base);
  elements.write(file, base);
  file.commit();
}

}  // namespace stet
