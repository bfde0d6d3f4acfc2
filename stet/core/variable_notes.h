// VariableNotes: what Variables held when code began, for code that is to be run again from there. Private to core/.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "stet/core/tensor.h"

namespace stet {

/// While it lives, it notes the first value of every Variable that this thread reads or writes outside of traces; so do
/// those around it.
class VariableNotes {
 public:
  VariableNotes() : outer_(std::exchange(innermost(), this)) {}
  ~VariableNotes() { innermost() = outer_; }
  VariableNotes(const VariableNotes&) = delete;
  VariableNotes& operator=(const VariableNotes&) = delete;

  /// The Variable has this value now, before anything is done to it.
  static void note(std::uint64_t variable, const Tensor& value) {
    for (VariableNotes* notes = innermost(); notes; notes = notes->outer_) notes->first_.try_emplace(variable, value);
  }
  const std::unordered_map<std::uint64_t, Tensor>& first() const { return first_; }

 private:
  static VariableNotes*& innermost() {
    constinit thread_local VariableNotes* notes = nullptr;
    return notes;
  }
  VariableNotes* outer_;
  std::unordered_map<std::uint64_t, Tensor> first_;
};

}  // namespace stet
