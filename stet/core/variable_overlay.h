// VariableOverlay: what a thread does to Variables, kept apart from them. Private to core/.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stet/core/variable.h"

namespace stet {

/// While it lives, Variables written on this thread keep their values, and reads on this thread see what was written.
/// The innermost counts, on top of those around it. Dropped at its end, unless committed.
class VariableOverlay {
 public:
  enum Functions : bool { compiled, eager };  // how functions that are called meanwhile run
  explicit VariableOverlay(Functions functions = compiled);
  ~VariableOverlay();
  VariableOverlay(const VariableOverlay&) = delete;
  VariableOverlay& operator=(const VariableOverlay&) = delete;

  /// Values that reads see from here on, without being writes.
  void show(const Variable& variable, Tensor value) { show(variable.id(), std::move(value)); }
  void show(std::uint64_t variable, Tensor value) { shown_[variable] = std::move(value); }
  /// The writes happen, to the overlay around this one or to the Variables.
  void commit();
  /// What was written, by number.
  const std::unordered_map<std::uint64_t, Tensor>& written() const { return written_; }

  static VariableOverlay* current();
  bool runs_functions_eagerly() const { return functions_ == eager; }
  /// As the thread sees it; undefined: as it is.
  Tensor find(std::uint64_t variable) const;
  void write(const Variable& variable, Tensor value);

 private:
  VariableOverlay* outer_;
  Functions functions_;
  std::unordered_map<std::uint64_t, Tensor> shown_, written_;
  std::vector<Variable> order_;
};

}  // namespace stet
