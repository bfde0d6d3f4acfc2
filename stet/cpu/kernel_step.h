// A generated kernel as a step of a program: which machine code, how it is cut into chunks, which checks it can fail.
#pragma once
#include <mutex>
#include <string>
#include <vector>

#include "stet/cpu/emit_kernel.h"
#include "stet/ir/kernel.h"
#include "stet/runtime/kernel_abi.h"
#include "stet/runtime/program.h"

namespace stet::cpu {

/// What a failed check means: "index 7 at position 3 of 'indices' is out of range; allowed are 0 to 4".
struct KernelCheck {
  std::string operand;  // whose value it was
  Dim extent = 0;       // allowed are 0 to extent - 1
  const char* op = "";  // that the kernel is of, who called it, and the user's line
  Caller caller = {};
  Where where = {};
};

class KernelStep : public Step {
 public:
  /// `buffers`: the program's buffer for each of the kernel's. Checks are numbered from 1.
  KernelStep(Kernel kernel, std::vector<int> buffers, std::vector<KernelCheck> checks = {});

  /// Elements that each of the kernel's buffers holds; for checked mode.
  std::vector<Dim> buffer_extents;

  std::unique_ptr<BoundStep> bind(const Bindings&) const override;
  std::string str() const override { return kernel_.str(); }
  /// Long reductions allocate.
  bool may_throw() const override { return !checks_.empty() || kernel_.has_reduction(); }
  bool pointwise(int from, int to) const override;
  const Kernel& kernel() const { return kernel_; }

  /// The code it needs for ordinary sizes; variants for huge ones are fetched when first bound.
  CodeRequest code() const { return kernel_code(kernel_, {.checked = checked_}); }
  void set_code(void* function) { function_ = reinterpret_cast<KernelFunction>(function); }

 private:
  friend class BoundKernel;
  Kernel kernel_;
  std::vector<int> buffers_;
  std::vector<KernelCheck> checks_;
  std::vector<Dim> numbers_;
  bool checked_;
  KernelFunction function_ = nullptr;
};

/// The two halves of a long reduction: blocks of the outermost reduced loop into a scratch buffer [blocks, kept…],
/// which are then combined. Cut by sizes only, so that results do not depend on threads.
struct SplitReduction {
  Kernel partial, combine;
};
SplitReduction split_reduction(const Kernel& kernel);

}  // namespace stet::cpu
