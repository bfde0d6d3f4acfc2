// Program: what a compiled graph does, a flat list of steps over numbered buffers.
//
// Life of a call: accepts(sizes) binds the symbols, or says that this program is for other sizes; bind() evaluates
// every size and plans memory, once per set of sizes; BoundProgram::run() runs it, from any number of threads at once.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stet/base/bindings.h"
#include "stet/base/dtype.h"
#include "stet/base/inside.h"
#include "stet/base/shape.h"
#include "stet/ir/op.h"
#include "stet/runtime/buffer.h"
#include "stet/runtime/device.h"

namespace stet {

/// A step whose sizes are known. Immutable, so that threads can share it.
class BoundStep {
 public:
  virtual ~BoundStep() = default;
  /// `buffers` is the program's table. Throws Problem when a run-time check fails.
  virtual void run(void* const* buffers) const = 0;
  /// Of a step that brings memory itself (Step::brings): runs, and gives it.
  virtual void run_bringing(void* const* buffers, std::span<Buffer> brought) const;
};

/// What of a graph a step does, for people who look at a program.
struct StepOrigin {
  std::vector<const char*> ops;                   // that it is made of, one or more
  std::shared_ptr<const std::string> name_scope;  // null: none
  std::string apart;                              // why its reader is another step; empty where nobody knows
  Where where;
};

class Step {
 public:
  virtual ~Step() = default;
  virtual std::unique_ptr<BoundStep> bind(const Bindings&) const = 0;
  virtual std::string str() const = 0;
  /// In a few words, the same for all sizes that it is bound to; the first line of str() unless told.
  virtual std::string title() const;
  /// Programs that it may run.
  virtual std::vector<class Program*> children() const { return {}; }
  /// Steps that it hands its work to, whose code it needs.
  virtual std::vector<Step*> parts() const { return {}; }
  /// May run() throw: a check, memory that it allocates? Not counting checked mode, which finds errors of ours.
  virtual bool may_throw() const { return true; }
  /// How often it runs such a program; 1 where only a run tells.
  virtual Dim child_runs() const { return 1; }
  /// The arithmetic that a run does, not counting what programs do that it may run.
  virtual Dim flops() const { return 0; }
  /// What it does is seen outside of the program: such steps run once, and in their order.
  virtual bool runs_host_code() const { return false; }
  /// Every element that it reads of buffer `from` is the one it writes of `to` at that moment, and it reads all it
  /// needs of a position before it writes any of it: the two may be the same memory.
  virtual bool pointwise(int from, int to) const {
    static_cast<void>(from), static_cast<void>(to);
    return false;
  }
  std::vector<int> reads, writes;  // program buffers
  std::vector<int> brings;         // of `writes`: those whose sizes are known when it has run, and with them the memory
  bool overwrites = false;         // planned: what it writes may be the memory of state that it replaces
  std::shared_ptr<const StepOrigin> origin;  // null: a copy that the program makes
};

/// The step or a program that it may run runs host code.
bool has_effect(const Step&);

struct ProgramBuffer {
  enum Role : std::uint8_t { input, result, temporary, constant } role = temporary;
  DType dtype = DType::f32;
  Dim elements = 0;
  std::string bytes = {};  // of a constant
  Buffer memory = {};      // of a constant: where a device other than the host reads it
};

struct ProgramInput {
  DType dtype = DType::f32;
  Shape shape;
  std::vector<Dim> strides = {};  // empty: dense
};

struct ProgramResult {
  DType dtype = DType::f32;
  Shape shape;
  int buffer = 0;
};

/// After step `after`, the i64 in `buffer` is the value of a late symbol.
struct LateSize {
  int after = 0;
  int buffer = 0;
  int symbol = 0;
};

/// The sizes of an input and, where it is not dense, its strides in elements.
struct ConcreteInput {
  std::span<const std::int64_t> sizes;
  std::span<const std::int64_t> strides;  // empty: dense
};

class BoundProgram;
class RecordedSteps;

class Program : public std::enable_shared_from_this<Program> {
 public:
  Device* device = &Device::host();
  std::shared_ptr<SymbolScope> scope;
  std::vector<ProgramInput> inputs;
  std::vector<int> dim_symbols;  // symbols bound by integers that come with the call (sizes in attributes)
  std::vector<ProgramResult> results;
  /// Per result: the input whose memory it may be written to, or -1. See BoundProgram::run.
  std::vector<int> in_place;
  std::vector<ProgramBuffer> buffers;  // inputs first, in order, then results, then the rest
  std::vector<std::unique_ptr<Step>> steps;
  std::vector<LateSize> late;
  std::vector<Fact> facts;        // beyond what the inputs' shapes say
  std::vector<SizeCheck> checks;  // Problems when they fail
  std::exception_ptr raises;      // a run ends in it

  /// The symbols' values if the sizes fit this program: every input's sizes equal its shape, and all facts hold.
  std::optional<Bindings> accepts(std::span<const ConcreteInput> inputs, std::span<const std::int64_t> dims) const;
  /// Throws Problem if a check fails or a size is too large.
  std::shared_ptr<const BoundProgram> bind(Bindings bindings) const;
  /// Inputs, buffers and steps, for people.
  std::string str() const;
};

class BoundProgram {
 public:
  BoundProgram();
  ~BoundProgram();
  BoundProgram(const BoundProgram&) = delete;
  BoundProgram& operator=(const BoundProgram&) = delete;

  /// Sizes of the results; not of a program with late sizes.
  const std::vector<std::vector<std::int64_t>>& result_sizes() const { return result_sizes_; }
  DType result_type(std::size_t number = 0) const { return program_->results[number].dtype; }
  bool has_late_sizes() const { return !program_->late.empty(); }
  std::size_t result_count() const { return program_->results.size(); }

  std::size_t result_bytes(std::size_t number) const { return result_bytes_[number]; }

  /// Runs the program on the inputs' memory; `results` receives one buffer per result: fresh memory where it comes in
  /// empty. Where results[r] comes in with memory, the result is written there. That must be the memory of input
  /// Program::in_place[r] (inputs[in_place[r]] == results[r].data()), which nobody else can see or use, and every
  /// result may come in so or not, call by call. Until the first such memory is written, a run that throws has changed
  /// nothing; after that, it does not throw. Other inputs may share memory with each other, but not with that one.
  void run(void* const* inputs, Buffer* results) const;
  /// The same with all results in memory of the caller's, fresh or as above; of a program with late sizes, memory of
  /// the size that they turn out to have.
  void run_into(void* const* inputs, void* const* results) const;
  /// The same for a program that is run again and again: `arena` is what make_arena() gave.
  void run_into(void* const* inputs, void* const* results, const Buffer& arena) const;
  Buffer make_arena() const;
  std::size_t input_count() const { return program_->inputs.size(); }
  /// The same for programs with late sizes, which also tell the results' sizes; all of `results` come in empty.
  void run_late(void* const* inputs, Buffer* results, std::vector<std::vector<std::int64_t>>& sizes) const;

  std::size_t arena_bytes() const { return arena_bytes_; }

 private:
  friend class Program;
  void run_table(void* const* inputs, void* const* results, const Buffer& arena) const;
  /// The same steps, each with a span.
  void run_recorded(void* const* table) const;

  std::shared_ptr<const Program> program_;
  Bindings bindings_;
  std::vector<std::unique_ptr<BoundStep>> steps_;  // up to the first late size
  std::vector<std::vector<std::int64_t>> result_sizes_;
  std::vector<std::size_t> result_bytes_;
  std::vector<std::size_t> offsets_;  // of temporaries in the arena, by buffer number
  std::size_t arena_bytes_ = 0;
  mutable std::atomic<const RecordedSteps*> recorded_{nullptr};  // made when it is first recorded
};

/// Blocks with lifetimes placed in one arena: no two that live at the same time overlap.
struct PlannedBlock {
  std::size_t bytes = 0;
  int first = 0, last = 0;  // steps, inclusive
  std::size_t offset = 0;   // filled in
};
/// Greedy by size; returns the arena's size.
std::size_t plan_memory(std::span<PlannedBlock> blocks);

}  // namespace stet
