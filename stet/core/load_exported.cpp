// Loading exported functions.
#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/base/version.h"
#include "stet/core/ambient.h"
#include "stet/core/export.h"
#include "stet/core/exported_format.h"
#include "stet/core/exported_names.h"
#include "stet/core/exported_run.h"
#include "stet/core/function_state.h"
#include "stet/core/saved_graph.h"
#include "stet/core/scope.h"
#include "stet/core/symbolic_program.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"
#include "stet/core/variable_watch.h"
#include "stet/files/file.h"

namespace stet {
namespace {

constexpr std::size_t most_symbols = 1 << 20, most_facts = 1 << 14;
constexpr int deepest = 256;  // whatever the limits say: graphs inside of graphs are read by recursion

/// What functions of one file share.
struct Shared {
  std::string path, writer;
  std::vector<Variable> variables;  // without the process's generator
};

/// A traced function whose host code is the file.
class LoadedFunction : public FunctionBase {
 public:
  LoadedFunction(const std::string& name, std::size_t arity, HostCode code, FunctionOptions options, Where where)
      : FunctionBase(name, arity, std::move(code), std::move(options), where) {}

  std::shared_ptr<Entry> made_for(const std::vector<Tensor>& like, Where where) const {
    AmbientScope none(0);  // what host code around it may depend on is nothing to a file
    VariableWatch nobody(nullptr, nullptr);
    inside::CallLeaves call;
    for (const Tensor& tensor : like) call.add(ArgumentSpec(tensor, where));
    return trace_for(call, "load_function", where);
  }

  std::vector<Tensor> run(const std::vector<Tensor>& arguments, Where where) const {
    AmbientScope none(0);
    inside::LeafViews views;
    for (const Tensor& argument : arguments) structure::Of<Tensor>::view(argument, views);
    Results results;
    if (!hit(views, results, where)) {
      inside::Leaves leaves;
      std::vector<int> owners;
      for (const Tensor& argument : arguments) {
        structure::Of<Tensor>::write(argument, leaves);
        owners.push_back(static_cast<int>(owners.size()));
      }
      call(std::move(leaves), std::move(owners), results, where);
    }
    inside::LeafReader reader(*results.form, results.tensors.begin());
    std::vector<Tensor> out;
    for (std::size_t i = 0; i < results.form->size(); ++i) out.push_back(reader.next_tensor());
    return out;
  }
};

}  // namespace

struct ExportedFunction::State {
  std::shared_ptr<const Shared> file;
  std::shared_ptr<const PortableFunction> portable;
  std::vector<TensorSpec> outputs;
  std::size_t nodes = 0;
  std::unique_ptr<const LoadedFunction> function;
};

struct ExportedFile::State {
  std::shared_ptr<const Shared> file;
  std::vector<std::string> names;
  std::vector<std::shared_ptr<const ExportedFunction::State>> functions;
};

namespace {

/// Reads the head, and the elements of tensors as it says.
class FileReader {
 public:
  FileReader(const files::Input& file, const ExportedLimits& limits, Where where)
      : file_(file), limits_(limits), where_(where) {
    read_header();
    head_ = file.read(sizeof(exported::Header), static_cast<std::size_t>(header_.head_bytes), "head");
    if (files::crc32c(head_) != header_.head_checksum)
      file.reading().fail("its head does not have its checksum", sizeof(exported::Header));
    base_ = exported::aligned(sizeof(exported::Header) + header_.head_bytes);
    check_zeros(sizeof(exported::Header) + header_.head_bytes, base_);
  }

  std::vector<PortableFunction> read(Shared& shared) {
    SavedReader from(head_, file_.reading(), sizeof(exported::Header));
    std::vector<std::string> ops = names(from, "ops"), sources = names(from, "source files");
    shared.path = file_.reading().path;
    shared.writer = writer_;
    read_variables(from, shared);
    for (std::size_t i = from.count(20, "tensors"); i > 0; --i) constants_.push_back(read_tensor(from));
    std::vector<PortableFunction> out;
    std::set<std::string> taken;
    std::size_t nodes = static_cast<std::size_t>(std::max<std::int64_t>(limits_.max_nodes, 0));
    for (std::size_t i = from.count(20, "functions"); i > 0; --i) {
      out.push_back(read_function(from, ops, sources, nodes));
      if (!taken.insert(out.back().name).second) from.fail(text("there are two functions '", out.back().name, "'"));
    }
    if (out.empty()) from.fail("there is no function");
    if (!from.at_end()) from.fail("the head goes on after its end");
    if (base_ + next_ != file_.size()) file_.reading().fail("the file goes on after its last tensor", base_ + next_);
    return out;
  }

 private:
  void read_header() {
    const files::Reading& reading = file_.reading();
    if (file_.size() < sizeof header_)
      reading.fail(text("has ", file_.size(), " bytes, less than the header of an exported function"),
                   "give a file that export_function wrote");
    file_.read(0, &header_, sizeof header_, "header");
    if (header_.magic != exported::magic)
      reading.fail("is no exported function: it does not begin as one", 0, "give a file that export_function wrote");
    const auto bytes = std::as_bytes(std::span(&header_, 1)).first(sizeof header_ - sizeof header_.checksum);
    if (files::crc32c(bytes) != header_.checksum) reading.fail("its header does not have its checksum", 0);
    header_.writer.back() = 0;
    writer_ = exported::clean_name(header_.writer.data(), "unknown");
    if (header_.oldest_reader > exported::version)
      reading.fail(text("was written by stet ", writer_, " in version ", header_.version,
                        " of the format, which readers of version ", header_.oldest_reader,
                        " understand; this is stet ", STET_VERSION, ", which reads version ", exported::version),
                   "load it with a newer stet, or export it with this one");
    if (header_.file_bytes != file_.size())
      reading.fail(text("has ", file_.size(), " bytes, but should have ", header_.file_bytes), file_.size());
    if (header_.head_bytes > file_.size() - sizeof header_)
      reading.fail(text("its head of ", header_.head_bytes, " bytes does not fit into it"), 16);
    if (limits_.max_head_bytes < 0 || header_.head_bytes > static_cast<std::uint64_t>(limits_.max_head_bytes))
      reading.fail(text("its head has ", header_.head_bytes, " bytes, more than the limit of ", limits_.max_head_bytes),
                   16, "raise .limits.max_head_bytes if you trust the file");
    for (char c : header_.zeros)
      if (c != 0) reading.fail("its header is not followed by zeros", 64);
  }

  void check_zeros(std::uint64_t from, std::uint64_t until) {
    if (until > file_.size()) until = file_.size();
    for (std::byte byte : file_.read(from, static_cast<std::size_t>(until - from), "padding"))
      if (byte != std::byte{0}) file_.reading().fail("what stands between two tensors is not zero", from);
  }

  std::vector<std::string> names(SavedReader& from, const char* what) {
    std::vector<std::string> out;
    for (std::size_t i = from.count(4, what); i > 0; --i) out.push_back(from.text(what));
    return out;
  }

  std::string name(SavedReader& from, const char* what) {
    std::string out = from.text(what);
    if (!exported::is_name(out)) from.fail(text("the ", what, " is not a name"));
    return out;
  }

  /// Memory is taken after the file was found to have as many bytes.
  Tensor read_tensor(SavedReader& from) {
    const DType dtype = from.dtype("dtype of a tensor");
    const std::uint8_t rank = from.u8("rank of a tensor");
    if (rank > max_rank) from.fail(text("a tensor has ", int{rank}, " axes"));
    std::vector<std::int64_t> sizes;
    std::uint64_t bytes = static_cast<std::uint64_t>(size_of(dtype));
    bool empty = false, too_many = false;
    for (int axis = 0; axis < rank; ++axis) {
      sizes.push_back(from.i64("size of a tensor"));
      if (sizes.back() < 0) from.fail(text("a tensor has a size ", sizes.back()));
      empty = empty || sizes.back() == 0;
      too_many = too_many || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(sizes.back()), &bytes);
    }
    if (empty) bytes = 0;
    const std::uint64_t offset = from.u64("place of a tensor"), said = from.u64("bytes of a tensor");
    const std::uint32_t checksum = from.u32("checksum of a tensor");
    if ((too_many && !empty) || said != bytes)
      from.fail(text("a tensor of ", said, " bytes does not have its ", dtype, "[", joined(texts(sizes), ","), "]"));
    if (offset != exported::aligned(next_)) from.fail(text("a tensor at ", offset, " does not follow the last one"));
    if (offset > file_.size() - base_ || bytes > file_.size() - base_ - offset)
      from.fail(text("a tensor of ", bytes, " bytes does not fit into the file"));
    check_zeros(base_ + next_, base_ + offset);
    next_ = offset + bytes;
    try {
      Shape::of(sizes);  // Problem if they are too large even where there is no element
    } catch (const Problem& problem) {
      from.fail(problem.text());
    }
    Buffer memory = Buffer::allocate(static_cast<std::size_t>(bytes));
    Tensor out = dense_tensor(dtype, sizes, std::move(memory));
    std::byte* data = const_cast<TensorNode*>(out.node())->data;
    if (bytes > 0) file_.read(base_ + offset, data, static_cast<std::size_t>(bytes), "tensors");
    if (files::crc32c({data, static_cast<std::size_t>(bytes)}) != checksum)
      file_.reading().fail("a tensor does not have its checksum", base_ + offset);
    if (dtype == DType::bool_)
      for (std::uint64_t i = 0; i < bytes; ++i)
        if (data[i] > std::byte{1}) file_.reading().fail("a bool is neither true nor false", base_ + offset + i);
    return out;
  }
  static std::vector<std::string> texts(const std::vector<std::int64_t>& sizes) {
    std::vector<std::string> out;
    for (std::int64_t size : sizes) out.push_back(std::to_string(size));
    return out;
  }

  void read_variables(SavedReader& from, Shared& shared) {
    std::set<std::string> taken;
    for (std::size_t i = from.count(6, "Variables"); i > 0; --i) {
      std::string own = name(from, "name of a Variable");
      const bool trainable = from.boolean("trainable"), generator = from.boolean("generator");
      if (!taken.insert(own).second) from.fail(text("there are two Variables '", own, "'"));
      if (generator) {
        variables_.push_back(exported::process_generator());
        continue;
      }
      Tensor value = read_tensor(from);
      variables_.push_back(Variable(value, {.trainable = trainable, .name = std::move(own)}, where_));
      shared.variables.push_back(variables_.back());
    }
  }

  PortableFunction read_function(SavedReader& from, const std::vector<std::string>& ops,
                                 const std::vector<std::string>& sources, std::size_t& nodes) {
    PortableFunction out;
    out.name = name(from, "name of a function");
    read_inputs(from, out);
    auto scope = std::make_shared<RecordingScope>(out.name);
    from.symbols.clear();
    const std::size_t symbols = from.count(5, "sizes");
    if (symbols > most_symbols) from.fail(text("there are ", symbols, " sizes"));
    for (std::size_t i = 0; i < symbols; ++i) {
      std::string own = from.text("name of a size");
      std::optional<std::int64_t> hint;
      if (from.boolean("hint")) hint = from.i64("hint");
      if (hint && *hint < 0) from.fail(text("a size is taken to be ", *hint));
      from.symbols.push_back(scope->symbol(exported::clean_name(own, "size"), hint));
    }
    const std::size_t facts = from.count(20, "facts");
    if (facts > most_facts) from.fail(text("there are ", facts, " facts about sizes"));
    for (std::size_t i = 0; i < facts; ++i) out.facts.push_back(read_check(from));
    for (std::size_t i = from.count(5, "hidden inputs"); i > 0; --i) {
      PortableInput input;
      if (from.boolean("kind of an input"))
        input.variable = variables_[from.below(variables_.size(), "Variable")];
      else
        input.constant = constants_[from.below(constants_.size(), "tensor")];
      out.hidden.push_back(std::move(input));
    }
    std::vector<std::uint64_t> numbers;
    for (const Variable& variable : variables_) numbers.push_back(variable.id());
    GraphReader graphs{from,
                       ops,
                       sources,
                       std::move(scope),
                       std::move(numbers),
                       writer_,
                       {nodes, std::min(limits_.max_depth, deepest)}};
    out.graph = graphs.read();
    nodes = graphs.limits.nodes;
    if (out.graph.inputs.size() != out.inputs.size() + out.hidden.size())
      from.fail("the graph has other inputs than the function");
    read_updates(from, out);
    read_outputs(from, out);
    return out;
  }

  void read_inputs(SavedReader& from, PortableFunction& out) {
    std::set<std::string> taken;
    std::size_t axes = 0;
    for (std::size_t i = from.count(6, "inputs"); i > 0; --i) {
      TensorSpec input;
      input.name = name(from, "name of an input");
      if (!taken.insert(input.name).second) from.fail(text("there are two inputs '", input.name, "'"));
      input.dtype = from.dtype("dtype of an input");
      const std::uint8_t rank = from.u8("rank of an input");
      if (rank > max_rank) from.fail(text("an input has ", int{rank}, " axes"));
      axes += rank;
      for (int axis = 0; axis < rank; ++axis) {
        if (!from.boolean("kind of a size")) {
          input.shape.dims.emplace_back(Dyn{name(from, "name of a size")});
          continue;
        }
        input.shape.dims.emplace_back(from.i64("size of an input"));
        if (*input.shape.dims.back().size < 0) from.fail("a size of an input is below 0");
      }
      out.inputs.push_back(std::move(input));
    }
    for (std::size_t i = from.count(8, "sizes that facts hold for"); i > 0; --i)
      out.hints.push_back(from.i64("size that facts hold for"));
    if (out.hints.size() != axes) from.fail("there is not one size that facts hold for by axis");
    for (std::int64_t size : out.hints)
      if (size < 0) from.fail("a size that facts hold for is below 0");
  }

  void read_updates(SavedReader& from, PortableFunction& out) {
    std::set<std::uint64_t> written;
    for (std::size_t i = from.count(8, "updates"); i > 0; --i) {
      const std::size_t input = from.below(out.graph.inputs.size(), "input that is updated"),
                        result = from.below(out.graph.results.size(), "result that updates");
      if (input < out.inputs.size() || !out.hidden[input - out.inputs.size()].variable.defined())
        from.fail("an update of what is no Variable");
      if (!written.insert(out.hidden[input - out.inputs.size()].variable.id()).second)
        from.fail("two updates of one Variable");
      out.graph.updates.push_back({static_cast<int>(input), static_cast<int>(result)});
    }
  }

  void read_outputs(SavedReader& from, PortableFunction& out) {
    std::set<std::string> taken;
    for (std::size_t i = from.count(6, "outputs"); i > 0; --i) {
      TensorSpec spec;
      spec.name = name(from, "name of an output");
      if (!taken.insert(spec.name).second) from.fail(text("there are two outputs '", spec.name, "'"));
      PortableOutput output;
      if (from.boolean("kind of an output")) {
        output.result = static_cast<int>(from.below(out.graph.results.size(), "result"));
      } else {
        const DType dtype = from.dtype("dtype of an output");
        const std::string bytes = from.text("number");
        if (bytes.size() != static_cast<std::size_t>(size_of(dtype)))
          from.fail("a number has other bytes than its type");
        output.number = creation::copied(dtype, bytes.data(), 1, Shape(), where_);
      }
      out.outputs.push_back(std::move(spec));
      out.gives.push_back(std::move(output));
    }
  }

  const files::Input& file_;
  const ExportedLimits& limits_;
  Where where_;
  exported::Header header_;
  std::string writer_;
  files::Bytes head_;
  std::uint64_t base_ = 0, next_ = 0;  // of the elements: where they begin, and where the next tensor may
  std::vector<Variable> variables_;
  std::vector<Tensor> constants_;
};

/// A tensor of these sizes that takes no memory.
Tensor sized_like(DType dtype, std::span<const std::int64_t> sizes) {
  Shape::of(sizes);  // Problem if they are too large
  static constexpr std::byte zeros[8] = {};
  const Tensor one = creation::copied(dtype, zeros, 1, Shape(), {});
  const std::vector<std::int64_t> strides(sizes.size(), 0);
  return view_tensor(*one.node(), sizes, strides, 0);
}

std::vector<TensorSpec> output_specs(const PortableFunction& portable, const Entry& entry) {
  const std::vector<Dim> known = solve_facts(*entry.graph.scope);
  std::vector<TensorSpec> out;
  for (std::size_t i = 0; i < portable.outputs.size(); ++i) {
    const ValueType& type = entry.graph.type(entry.graph.results[i]);
    TensorSpec spec{type.dtype, {}, portable.outputs[i].name};
    for (const Dim& dim : type.shape.substitute(known)) {
      DimSpec one(dyn);
      if (dim.is_constant())
        one.size = dim.constant();
      else
        one.name = text(dim);
      spec.shape.dims.push_back(std::move(one));
    }
    out.push_back(std::move(spec));
  }
  return out;
}

/// Traces the function anew, which checks every type, and compiles it.
std::shared_ptr<const ExportedFunction::State> made_ready(std::shared_ptr<const Shared> file, PortableFunction given,
                                                          Where where) {
  auto out = std::make_shared<ExportedFunction::State>();
  auto portable = std::make_shared<const PortableFunction>(std::move(given));
  out->file = file;
  out->portable = portable;
  std::vector<std::string> names;
  std::vector<Tensor> like;
  const files::Reading reading{"load_function", file->path, where};
  auto fail = [&](std::string what) {
    // The lines of an error of an op are about the program that exported it.
    for (char& c : what)
      if (c == '\n') c = ' ';
    reading.fail(text("the function '", portable->name, "' cannot be: ", what),
                 "the file is damaged: export the function again");
  };
  FunctionOptions options;
  options.signature = portable->inputs;
  options.max_bytes = INT64_MAX;
  options.audit = Audit::never;
  try {
    std::size_t axis = 0;
    for (const TensorSpec& input : portable->inputs) {
      names.push_back(input.name);
      const auto rank = static_cast<std::size_t>(input.shape.rank());
      like.push_back(sized_like(input.dtype, std::span(portable->hints).subspan(axis, rank)));
      axis += rank;
    }
    out->function = std::make_unique<const LoadedFunction>(
        text(portable->name, "(", joined(names, ", "), ")"), names.size(),
        [portable](const inside::Leaves& leaves) { return portable->run(leaves); }, std::move(options),
        Where{});  // a file that is loaded again at a line is no function that is traced anew
    portable->check_ways_back();
    const std::shared_ptr<Entry> entry = out->function->made_for(like, where);
    out->outputs = output_specs(*portable, *entry);
    out->nodes = entry->graph.nodes.size();
  } catch (const UserError& error) {
    fail(error.what());
  } catch (const TraceError& error) {
    fail(error.what());
  } catch (const InternalError& error) {
    fail(error.what());
  }
  return out;
}

void refuse_in_trace(Where where) {
  if (Tracing now = tracing())
    throw TraceError(
        error_text(text("load_function: '", now.function, "' is being traced, and would load at every call"), where,
                   "load it before, and call it in the function"));
}

}  // namespace

// --- ExportedFile

ExportedFile load_exported(const std::string& path, const ExportedLimits& limits, Where where) {
  refuse_in_trace(where);
  files::Input file(path, "load_function", where);
  auto shared = std::make_shared<Shared>();
  FileReader reader(file, limits, where);
  std::vector<PortableFunction> functions;
  try {
    functions = reader.read(*shared);
  } catch (const Problem& problem) {
    file.reading().fail(problem.text(), problem.advice());
  }
  auto state = std::make_shared<ExportedFile::State>();
  state->file = shared;
  for (PortableFunction& function : functions) {
    state->names.push_back(function.name);
    state->functions.push_back(made_ready(shared, std::move(function), where));
  }
  ExportedFile out;
  out.state_ = std::move(state);
  return out;
}

ExportedFunction load_function(const std::string& path, const LoadFunctionOptions& options, Where where) {
  const ExportedFile file = load_exported(path, options.limits, where);
  const ExportedFile::State& state = *file.state_;
  if (options.function.empty() && state.names.size() > 1)
    throw UserError(error_text(
        text("load_function: '", path, "' has ", state.names.size(), " functions: ", joined(state.names, ", ")), where,
        "say which one: {.function = \"" + state.names[0] + "\"}"));
  return file.function(options.function.empty() ? state.names[0] : options.function, where);
}

const ExportedFile::State& ExportedFile::state(const char* what, Where where) const {
  if (!state_)
    throw UserError(error_text(text(what, ": the ExportedFile is undefined"), where, "load_exported() gives one"));
  return *state_;
}
const std::vector<std::string>& ExportedFile::functions(Where where) const { return state("functions", where).names; }
const std::vector<Variable>& ExportedFile::variables(Where where) const {
  return state("variables", where).file->variables;
}
const std::string& ExportedFile::written_by(Where where) const { return state("written_by", where).file->writer; }

ExportedFunction ExportedFile::function(const std::string& name, Where where) const {
  const State& file = state("function", where);
  for (std::size_t i = 0; i < file.names.size(); ++i)
    if (file.names[i] == name) return ExportedFunction(file.functions[i]);
  throw UserError(error_text(text("load_function: '", file.file->path, "' has no function '", name, "'"), where,
                             text("it has ", joined(file.names, ", "))));
}

// --- ExportedFunction

const ExportedFunction::State& ExportedFunction::state(const char* what, Where where) const {
  if (!state_)
    throw UserError(error_text(text(what, ": the ExportedFunction is undefined"), where, "load_function() gives one"));
  return *state_;
}

std::vector<Tensor> ExportedFunction::operator()(const std::vector<Tensor>& arguments, Where where) const {
  const std::shared_ptr<const State> kept = state_;
  const State& own = state("call", where);
  const std::vector<TensorSpec>& inputs = own.portable->inputs;
  if (arguments.size() != inputs.size()) {
    std::vector<std::string> wanted;
    for (const TensorSpec& input : inputs) wanted.push_back(text("'", input.name, "' ", input));
    throw UserError(
        error_text(text(own.portable->name, ": takes ", inputs.size(), inputs.size() == 1 ? " tensor, " : " tensors, ",
                        arguments.size(), arguments.size() == 1 ? " is given" : " are given"),
                   where, text("give ", inputs.empty() ? "none" : joined(wanted, ", "))));
  }
  return own.function->run(arguments, where);
}

std::map<std::string, Tensor> ExportedFunction::call(const std::map<std::string, Tensor>& arguments,
                                                     Where where) const {
  const State& own = state("call", where);
  std::vector<Tensor> ordered;
  std::vector<std::string> names;
  for (const TensorSpec& input : own.portable->inputs) names.push_back(input.name);
  for (const auto& [name, tensor] : arguments)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw UserError(error_text(text(own.portable->name, ": there is no input '", name, "'"), where,
                                 names.empty() ? "it takes none" : text("it takes ", joined(names, ", "))));
  for (const TensorSpec& input : own.portable->inputs) {
    auto given = arguments.find(input.name);
    if (given == arguments.end())
      throw UserError(error_text(text(own.portable->name, ": the input '", input.name, "' is missing"), where,
                                 text("give {\"", input.name, "\", a tensor ", input, "}")));
    ordered.push_back(given->second);
  }
  std::vector<Tensor> results = (*this)(ordered, where);
  std::map<std::string, Tensor> out;
  for (std::size_t i = 0; i < results.size(); ++i) out.emplace(own.outputs[i].name, std::move(results[i]));
  return out;
}

const std::string& ExportedFunction::name(Where where) const { return state("name", where).portable->name; }
const std::vector<TensorSpec>& ExportedFunction::inputs(Where where) const {
  return state("inputs", where).portable->inputs;
}
const std::vector<TensorSpec>& ExportedFunction::outputs(Where where) const { return state("outputs", where).outputs; }
const std::vector<Variable>& ExportedFunction::variables(Where where) const {
  return state("variables", where).file->variables;
}

Variable ExportedFunction::variable(const std::string& name, Where where) const {
  const State& own = state("variable", where);
  std::vector<std::string> names;
  for (const Variable& variable : own.file->variables) {
    if (variable.name() == name) return variable;
    names.push_back(variable.name());
  }
  throw UserError(error_text(text("variable: '", own.portable->name, "' has no Variable '", name, "'"), where,
                             names.empty() ? "it has none" : text("it has ", joined(names, ", "))));
}

std::string ExportedFunction::explain(Where where) const {
  const State& own = state("explain", where);
  std::string out = text(own.portable->name, ", from '", own.file->path, "', written by stet ", own.file->writer, "\n");
  for (const TensorSpec& input : own.portable->inputs) out += text("  takes ", input.name, " ", input, "\n");
  for (const TensorSpec& output : own.outputs) out += text("  gives ", output.name, " ", output, "\n");
  for (const Variable& variable : own.file->variables)
    out += text("  holds ", variable.name(), " ", variable.dtype(), variable.shape(), "\n");
  return out + own.function->explain();
}

std::string ExportedFunction::graph(Where where) const { return state("graph", where).function->graph(); }
int ExportedFunction::trace_count(Where where) const { return state("trace_count", where).function->trace_count(); }

}  // namespace stet
