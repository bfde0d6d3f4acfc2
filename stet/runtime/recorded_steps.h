// Spans of the steps of programs (recording.h).
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stet/base/bindings.h"
#include "stet/runtime/recording.h"

namespace stet {

class Program;
class Step;

/// What its spans are called: "matmul+add+relu: gemm f32 NN m=x_0 n=64 k=16, then …".
std::string recorded_name(const Step& step);

/// What the spans of a step say.
struct RecordedStep {
  recording::Name name = 0;
  double bytes = 0, flops = 0;  // of steps that run programs 0: those have spans of their own
};
RecordedStep recorded_step(const Program& program, std::size_t number, const Bindings& bindings);

/// Those of a program that is bound. Each recording is told once what they are made of.
class RecordedSteps {
 public:
  RecordedSteps(const Program& program, const Bindings& bindings);
  const RecordedStep& operator[](std::size_t number) const { return steps_[number]; }
  void tell(const Program& program) const;

 private:
  std::vector<RecordedStep> steps_;
  mutable std::atomic<std::uint64_t> told_{0};  // the recording that knows
};

/// The step that this thread runs, as its workers name it; 0 for none.
recording::Name running_step();

/// A step that runs from here to the end of the scope; one that throws is told too.
class StepClock {
 public:
  explicit StepClock(const RecordedStep& step);
  ~StepClock();
  StepClock(const StepClock&) = delete;
  StepClock& operator=(const StepClock&) = delete;

 private:
  const RecordedStep& step_;
  const recording::Name outer_;
  const std::uint64_t begin_;
};

}  // namespace stet
