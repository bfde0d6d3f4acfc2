// The step of a loop: it runs a program again and again.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stet/runtime/program.h"

namespace stet {

/// What a loop runs, and over which buffers of the program around it.
struct LoopParts {
  std::shared_ptr<Program> body;       // inputs and results as LoopAttributes says
  std::shared_ptr<Program> condition;  // null: counted
  /// Turns, where they are known before; else the buffer of an i64 that says how many.
  std::optional<Dim> turns;
  int count = -1;
  bool reverse = false;
  std::vector<int> carried, sequences, captured;
  std::vector<int> next, stacked;  // results
  int turns_taken = -1;            // a buffer that receives their number, or -1
};

/// Nothing is copied from turn to turn: elements of sequences are read and those of stacked results written where they
/// lie; a carried value is updated in its place if the body can do that, and otherwise goes to and fro between two
/// places, the last of which is the result's.
class LoopStep : public Step {
 public:
  explicit LoopStep(LoopParts parts);
  std::unique_ptr<BoundStep> bind(const Bindings&) const override;
  std::string str() const override;
  std::vector<Program*> children() const override;
  Dim child_runs() const override { return parts_.turns ? *parts_.turns : Dim(1); }

 private:
  LoopParts parts_;
};

}  // namespace stet
