// The steps of a branch: which of two programs runs is decided by a value.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "stet/runtime/program.h"

namespace stet {

struct BranchPrograms {
  std::shared_ptr<Program> yes, no;
};

/// Runs one of two programs over the same inputs into the same results. What is wrong with the sizes of a program
/// counts only when it is chosen.
class BranchStep : public Step {
 public:
  BranchStep(BranchPrograms programs, int condition, std::vector<int> inputs, std::vector<int> results);
  std::unique_ptr<BoundStep> bind(const Bindings&) const override;
  std::string str() const override;
  std::vector<Program*> children() const override { return {programs_.yes.get(), programs_.no.get()}; }

 private:
  BranchPrograms programs_;
  int condition_;
  std::vector<int> inputs_, results_;
};

/// Writes the sizes that the chosen program's results will have.
class BranchSizes : public Step {
 public:
  struct Size {
    Dim yes, no;
    int buffer;  // receives the chosen one, i64
  };
  BranchSizes(Device& device, int condition, std::vector<Size> sizes);
  std::unique_ptr<BoundStep> bind(const Bindings&) const override;
  std::string str() const override;

 private:
  Device& device_;
  int condition_;
  std::vector<Size> sizes_;
};

/// A branch whose results have sizes that are known only when the chosen program has run: it tells them, and brings the
/// results' memory.
class LateBranchStep : public Step {
 public:
  struct Size {
    std::size_t result;
    std::size_t axis;
    int buffer;  // receives it, i64
  };
  LateBranchStep(BranchPrograms programs, int condition, std::vector<int> inputs, std::vector<int> results,
                 std::vector<Size> sizes);
  std::unique_ptr<BoundStep> bind(const Bindings&) const override;
  std::string str() const override;
  std::vector<Program*> children() const override { return {programs_.yes.get(), programs_.no.get()}; }

 private:
  BranchPrograms programs_;
  int condition_;
  std::vector<int> inputs_;
  std::vector<Size> sizes_;
};

}  // namespace stet
