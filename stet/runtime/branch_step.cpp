#include "stet/runtime/branch_step.h"

#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/short_array.h"
#include "stet/base/text.h"
#include "stet/runtime/scalar_memory.h"

namespace stet {
namespace {

void write(Device& device, void* to, std::int64_t value) { device.copy_in(to, &value, sizeof value); }

bool chosen(Device& device, void* const* table, int condition) {
  return read_scalar<unsigned char>(device, table[condition]) != 0;
}

/// A program bound to its sizes, or what is wrong with them.
struct Child {
  std::shared_ptr<const BoundProgram> program;
  std::exception_ptr problem;
};

Child bound(const Program& program, const Bindings& bindings) {
  try {
    return {program.bind(bindings), nullptr};
  } catch (const Problem&) {
    return {nullptr, std::current_exception()};
  }
}

class BoundBranch : public BoundStep {
 public:
  BoundBranch(Device& device, Child yes, Child no, int condition, const std::vector<int>& inputs,
              const std::vector<int>& results)
      : device_(device),
        yes_(std::move(yes)),
        no_(std::move(no)),
        condition_(condition),
        inputs_(inputs),
        results_(results) {}
  void run(void* const* table) const override {
    const Child& child = chosen(device_, table, condition_) ? yes_ : no_;
    if (child.problem) std::rethrow_exception(child.problem);
    ShortArray<void*, 16> inputs(inputs_.size()), results(results_.size());
    for (std::size_t i = 0; i < inputs_.size(); ++i) inputs[i] = table[inputs_[i]];
    for (std::size_t r = 0; r < results_.size(); ++r) results[r] = table[results_[r]];
    child.program->run_into(inputs.data(), results.data());
  }

 private:
  Device& device_;
  Child yes_, no_;
  int condition_;
  std::vector<int> inputs_, results_;
};

class BoundSizes : public BoundStep {
 public:
  struct Size {
    std::int64_t yes, no;
    int buffer;
  };
  BoundSizes(Device& device, int condition, std::vector<Size> sizes)
      : device_(device), condition_(condition), sizes_(std::move(sizes)) {}
  void run(void* const* table) const override {
    bool yes = chosen(device_, table, condition_);
    for (const Size& size : sizes_) write(device_, table[size.buffer], yes ? size.yes : size.no);
  }

 private:
  Device& device_;
  int condition_;
  std::vector<Size> sizes_;
};

class BoundLateBranch : public BoundStep {
 public:
  BoundLateBranch(Device& device, Child yes, Child no, int condition, const std::vector<int>& inputs,
                  const std::vector<LateBranchStep::Size>& sizes)
      : device_(device),
        yes_(std::move(yes)),
        no_(std::move(no)),
        condition_(condition),
        inputs_(inputs),
        sizes_(sizes) {}
  void run(void* const*) const override { throw InternalError("a branch with late sizes brings its results"); }
  void run_bringing(void* const* table, std::span<Buffer> results) const override {
    const Child& child = chosen(device_, table, condition_) ? yes_ : no_;
    if (child.problem) std::rethrow_exception(child.problem);
    ShortArray<void*, 16> inputs(inputs_.size());
    for (std::size_t i = 0; i < inputs_.size(); ++i) inputs[i] = table[inputs_[i]];
    std::vector<std::vector<std::int64_t>> found;
    child.program->run_late(inputs.data(), results.data(), found);
    for (const LateBranchStep::Size& size : sizes_) write(device_, table[size.buffer], found[size.result][size.axis]);
  }

 private:
  Device& device_;
  Child yes_, no_;
  int condition_;
  std::vector<int> inputs_;
  std::vector<LateBranchStep::Size> sizes_;
};

std::string branch_text(const BranchPrograms& programs, int condition) {
  std::string out = text("if buffer ", condition, "\n");
  auto indented = [&](const std::string& lines) {
    std::string line = "  ";
    for (char c : lines) {
      line += c;
      if (c == '\n') out += std::exchange(line, "  ");
    }
  };
  indented(programs.yes->str());
  out += "else\n";
  indented(programs.no->str());
  return out;
}

}  // namespace

LateBranchStep::LateBranchStep(BranchPrograms programs, int condition, std::vector<int> inputs,
                               std::vector<int> results, std::vector<Size> sizes)
    : programs_(std::move(programs)), condition_(condition), inputs_(std::move(inputs)), sizes_(std::move(sizes)) {
  reads = inputs_;
  reads.push_back(condition_);
  brings = std::move(results);
  writes = brings;
  for (const Size& size : sizes_) writes.push_back(size.buffer);
}

std::unique_ptr<BoundStep> LateBranchStep::bind(const Bindings& bindings) const {
  return std::make_unique<BoundLateBranch>(*programs_.yes->device, bound(*programs_.yes, bindings),
                                           bound(*programs_.no, bindings), condition_, inputs_, sizes_);
}

std::string LateBranchStep::str() const { return text("with late sizes, ", branch_text(programs_, condition_)); }

BranchStep::BranchStep(BranchPrograms programs, int condition, std::vector<int> inputs, std::vector<int> results)
    : programs_(std::move(programs)), condition_(condition), inputs_(std::move(inputs)), results_(std::move(results)) {
  reads = inputs_;
  reads.push_back(condition_);
  writes = results_;
}

std::unique_ptr<BoundStep> BranchStep::bind(const Bindings& bindings) const {
  return std::make_unique<BoundBranch>(*programs_.yes->device, bound(*programs_.yes, bindings),
                                       bound(*programs_.no, bindings), condition_, inputs_, results_);
}

std::string BranchStep::str() const { return branch_text(programs_, condition_); }

BranchSizes::BranchSizes(Device& device, int condition, std::vector<Size> sizes)
    : device_(device), condition_(condition), sizes_(std::move(sizes)) {
  reads = {condition_};
  for (const Size& size : sizes_) writes.push_back(size.buffer);
}

std::unique_ptr<BoundStep> BranchSizes::bind(const Bindings& bindings) const {
  std::vector<BoundSizes::Size> sizes;
  for (const Size& size : sizes_)
    sizes.push_back({size.yes.evaluate(bindings), size.no.evaluate(bindings), size.buffer});
  return std::make_unique<BoundSizes>(device_, condition_, std::move(sizes));
}

std::string BranchSizes::str() const { return text("sizes of a branch by buffer ", condition_, "\n"); }

}  // namespace stet
