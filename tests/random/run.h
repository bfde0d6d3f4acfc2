// Runs a program over stet's public interface, as a user's code would.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "program.h"
#include "stet/stet.h"

namespace stet::random_programs {

using Tensors = std::vector<Tensor>;
using MainFunction = Function<Tensors(Tensors, std::vector<Variable>)>;

/// A program with state of its own: Variables, layers, captured tensors, inner Functions. Made anew for each way to run
/// it.
class Instance {
 public:
  /// With `plain`, inner Functions are called as the C++ that they are.
  Instance(const Program& program, bool plain);
  ~Instance();
  Instance(const Instance&) = delete;

  /// The program as host code. Values that are drawn are written down where `draws` is given.
  Tensors run(const Tensors& arguments, const std::vector<Variable>& handed_in);
  std::vector<Variable> handed_in() const;
  /// Those that layers have made, which are not the program's own.
  std::vector<Variable> layer_variables() const;
  /// What is to be compared after a call.
  Tensors state() const;

  const Program& program;
  std::vector<Variable> variables;
  Tensors captured;
  std::vector<Tensor>* draws = nullptr;

 private:
  struct Machine;
  std::unique_ptr<Machine> machine_;
};

/// The arguments of call number `call`, some of them as views.
Tensors arguments_of(const Program& program, std::size_t call);

/// How a program is run.
enum class Way {
  call,      // one call after the other
  tape,      // every call under an eager tape that differentiates the results
  nested,    // called by another function
  thread,    // every other call on another thread
  clear,     // all traces are forgotten between calls
  verified,  // the inner functions are traced, the program is not
  exported,  // written to a file, and loaded
};
inline constexpr Way all_ways[] = {Way::call,  Way::tape,     Way::nested,  Way::thread,
                                   Way::clear, Way::verified, Way::exported};
std::string name_of(Way way);

/// What one call gave: shapes and elements of results, then of the state; or an error.
struct Outcome {
  std::vector<std::string> types;
  std::vector<std::vector<double>> values;
  std::string error;
  bool refused = false;
};
struct Run {
  std::vector<Outcome> calls;
  int traces = 0;
  std::string explanation;
};

/// All calls of the program, eagerly or traced.
Run run_all(const Program& program, Way way, bool traced);

}  // namespace stet::random_programs
