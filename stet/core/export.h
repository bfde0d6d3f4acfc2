// Exported functions: a traced function as one file, which another program loads and calls without its host code.
//
//   Function serve = function("serve(x)", [=](Tensor x) { return softmax(matmul(x, w) + b); });
//   export_function("model.stet", serve, {f32, {dyn("batch"), 784}});
//
//   ExportedFunction serve = load_function("model.stet");   // in another program
//   Tensor y = serve({x})[0];
//
// A file holds what the function does as ops, what it relies on about sizes, and the values of the Variables and
// tensors that it uses. It is data: loading runs no code of the file, and nothing in it can name code or a path.
#pragma once
#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/function.h"
#include "stet/core/signature.h"
#include "stet/core/tensor.h"
#include "stet/core/variable.h"

namespace stet {

namespace inside {

/// A path or a name, and the user's line: it stands before lists of arguments, behind which no line could be passed.
struct TextAt {
  template <std::convertible_to<std::string> T>
  TextAt(const T& given, Where line = Where::here()) : text(given), where(line) {}
  std::string text;
  Where where;
};
template <class A>
using ExportSpec = typename SpecOf<std::remove_cvref_t<A>>::type;

}  // namespace inside

/// Collects functions for one file. They share the Variables that they share here: a `serve` sees what a `train_step`
/// of the same file has learned.
class STET_API Exporter {
 public:
  Exporter();

  /// Traces `f` for such arguments, as f.concrete(specs…) does, and keeps what it traced: for a tensor
  /// {dtype, {sizes}} with `dyn` where calls may have any size (and dyn("batch") where it is the same wherever the name
  /// stands), or a tensor; for all else the value, which is part of the function then. Inputs are named as in
  /// function("serve(x, y)", …), outputs as the parts of the result: "logits" of a struct or map, "output" of a tensor,
  /// "output_0" of a tuple.
  ///
  /// UserError if the name is taken, if `f` relies on a size that a spec leaves open, and for what no file can hold:
  /// host_call, with the line where it stands. print() and assert_that() are kept.
  template <class R, class... A>
  Exporter& add(const inside::TextAt& name, const Function<R(A...)>& f, inside::ExportSpec<A>... specs) {
    inside::CallLeaves call;
    (call.add(specs), ...);
    return add_call(name, f.body(), std::move(call), false);
  }
  /// The same of a function with a signature, which says what its arguments are.
  template <class R, class... A>
  requires(sizeof...(A) > 0) Exporter& add(const inside::TextAt& name, const Function<R(A...)>& f) {
    return add_call(name, f.body(), {}, true);
  }

  /// The same of a function whose types are not known here: of tensors alone, one for each argument.
  Exporter& add_untyped(const inside::TextAt& name, const FunctionBase& f, const std::vector<TensorSpec>& specs);

  /// What a Variable is called in the file, where that is not its own name.
  Exporter& name_variable(const Variable& variable, const std::string& name);

  /// Writes the file, complete or not at all: what stood there before stays until the new one is on the disk. The
  /// values of Variables are those of this moment.
  void write(const std::string& path, Where where = Where::here()) const;

  struct State;

 private:
  Exporter& add_call(const inside::TextAt& name, std::shared_ptr<inside::Body> function, inside::CallLeaves call,
                     bool by_signature);
  std::shared_ptr<State> state_;
};

/// One function as a file: see Exporter. Its name in it is the function's own.
template <class R, class... A>
void export_function(const inside::TextAt& path, const Function<R(A...)>& f, inside::ExportSpec<A>... specs) {
  Exporter().add({"", path.where}, f, specs...).write(path.text, path.where);
}
template <class R, class... A>
requires(sizeof...(A) > 0) void export_function(const inside::TextAt& path, const Function<R(A...)>& f) {
  Exporter().add({"", path.where}, f).write(path.text, path.where);
}

/// What a file may ask for before it is refused. No file makes a load take more memory for tensors than it has bytes.
struct ExportedLimits {
  std::int64_t max_head_bytes = std::int64_t{256} << 20;  // of all that is not elements of tensors
  std::int64_t max_nodes = 1'000'000;                     // ops, in all functions together
  int max_depth = 64;                                     // of branches and loops inside of each other
};

struct LoadFunctionOptions {
  std::string function = {};  // which one of the file; a file with one function needs no name
  ExportedLimits limits = {};
};

/// A function from a file. Copies share, and so do its Variables; any number of threads may call it. It is compiled
/// when it is loaded, once for all sizes that its inputs promise. Called inside of a traced function it becomes part of
/// that, and tapes follow it, to its inputs and to its Variables.
class STET_API ExportedFunction {
 public:
  /// Undefined: any use is a UserError.
  ExportedFunction() = default;
  bool defined() const { return state_ != nullptr; }

  /// What it gives for these tensors, one for each input. UserError, naming the input and what was promised of it,
  /// where types or sizes do not fit. Variables that the function writes are written; a call that throws has changed
  /// nothing. Random numbers are drawn from this process's generator, as functions that are traced here do.
  std::vector<Tensor> operator()(const std::vector<Tensor>& arguments, Where where = Where::here()) const;
  /// The same by names.
  std::map<std::string, Tensor> call(const std::map<std::string, Tensor>& arguments, Where where = Where::here()) const;

  const std::string& name(Where where = Where::here()) const;
  /// What it takes and gives, with names. Sizes that calls may choose have names, too: "f32[batch,10]".
  const std::vector<TensorSpec>& inputs(Where where = Where::here()) const;
  const std::vector<TensorSpec>& outputs(Where where = Where::here()) const;
  /// The Variables of its file, which may be read and assigned. Each has a name of its own.
  const std::vector<Variable>& variables(Where where = Where::here()) const;
  Variable variable(const std::string& name, Where where = Where::here()) const;

  /// What it takes and gives, what it relies on, what it holds, and how it was served.
  std::string explain(Where where = Where::here()) const;
  /// Its ops, as text.
  std::string graph(Where where = Where::here()) const;
  /// Always 1: sizes that are promised need no other trace.
  int trace_count(Where where = Where::here()) const;

  struct State;

 private:
  friend class ExportedFile;
  explicit ExportedFunction(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  const State& state(const char* what, Where where) const;
  std::shared_ptr<const State> state_;
};

/// All functions of a file, which share its Variables. Loading it twice gives Variables of two lives.
class STET_API ExportedFile {
 public:
  ExportedFile() = default;
  const std::vector<std::string>& functions(Where where = Where::here()) const;
  /// UserError, naming those that there are, for any other name.
  ExportedFunction function(const std::string& name, Where where = Where::here()) const;
  const std::vector<Variable>& variables(Where where = Where::here()) const;
  /// The version of stet that wrote the file.
  const std::string& written_by(Where where = Where::here()) const;

  struct State;

 private:
  friend STET_API ExportedFile load_exported(const std::string&, const ExportedLimits&, Where);
  friend STET_API ExportedFunction load_function(const std::string&, const LoadFunctionOptions&, Where);
  const State& state(const char* what, Where where) const;
  std::shared_ptr<const State> state_;
};

/// Reads a file that an Exporter wrote, checks all of it and compiles its functions. UserError with file, byte and
/// reason for a file that is damaged, that is none, that is newer than this library, or beyond the limits.
STET_API ExportedFile load_exported(const std::string& path, const ExportedLimits& limits = {},
                                    Where where = Where::here());
/// One function of it.
STET_API ExportedFunction load_function(const std::string& path, const LoadFunctionOptions& options = {},
                                        Where where = Where::here());

}  // namespace stet
