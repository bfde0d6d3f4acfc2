// The host code of a function: run under a trace, compared with itself, and run again later to see whether it would
// still do the same. Private to core/.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stet/core/function.h"
#include "stet/core/retrace.h"
#include "stet/core/traced_run.h"

namespace stet {

class HostFunction {
 public:
  using Body = std::function<Leaves(const Leaves&)>;
  /// `name`, `arguments` and `options` outlive it.
  HostFunction(const std::string& name, const ArgumentNames& arguments, const FunctionOptions& options)
      : name_(name), arguments_(arguments), options_(options) {}
  Body body;
  Where where = {};  // the function's own line

  /// Traces the call: once more than it seems where Variables were made, and then a second time with everything changed
  /// that must not matter. TraceError if the two runs are not the same program, with the line and the likely cause.
  TracedRun traced(const Leaves& leaves, const std::vector<int>& owners, Where call_where) const;
  /// One run for the types of its results: nothing is compiled, and it is not compared. Variables may be made.
  TracedRun looked_at(const Leaves& leaves, const std::vector<int>& owners) const;
  /// What host code would do now that it did not when `known` was traced; nothing if it does the same. Has no effects
  /// on Variables, the generator or tapes. `turned`: sides of decisions in the other order.
  std::optional<RunDifference> changed_since(const TracedRun& known, const Leaves& leaves,
                                             const std::vector<int>& owners, bool turned) const;

 private:
  struct Settings {
    const std::vector<std::int64_t>* sizes = nullptr;  // of the arguments' symbols; null: the call's
    bool yes_first = true;
    bool audit = false;
    std::size_t* created = nullptr;  // Variables may be made, and their number is told
  };
  TracedRun run(const Leaves& leaves, const std::vector<int>& owners, const Settings& settings) const;
  Shape argument_shape(Trace& trace, const Tensor& tensor, std::size_t number, const std::string& symbol,
                       const Settings& settings, std::map<std::string, Dim>& named) const;
  /// Makes inputs of the trace of what the call brings, and lets `traced` refer to them; gives their number.
  int add_arguments(Trace& trace, const Leaves& given, const std::vector<int>& owners, const Settings& settings,
                    Leaves& traced) const;
  Dim argument_size(Trace& trace, const Dim& given, const std::string& symbol, const Settings& settings) const;
  [[noreturn]] void refuse(const TracedRun& first, const RunDifference& found, const Leaves& leaves,
                           const std::vector<int>& owners, Where call_where) const;

  const std::string& name_;
  const ArgumentNames& arguments_;
  const FunctionOptions& options_;
};

}  // namespace stet
