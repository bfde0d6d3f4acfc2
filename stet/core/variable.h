// Variable: the one mutable thing. What you hold is a handle: copies share.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/tensor.h"

namespace stet {

class In;
struct VariableState;

struct VariableOptions {
  std::optional<DType> dtype = {};  // the initial value is cast to it
  bool trainable = true;            // GradientTape watches it by itself
  std::string name = {};
};

/// A place that holds a tensor and can be given another one of the same type and shape. Tensors that were read from it
/// keep their values. Safe to use from several threads; assign_add and assign_sub are atomic.
class STET_API Variable {
 public:
  /// Undefined: any use is a UserError.
  Variable() = default;
  explicit Variable(const Tensor& initial, VariableOptions options = {}, Where where = Where::here());

  bool defined() const { return state_ != nullptr; }
  /// The tensor it holds now. Shares memory, and does not change when the Variable does.
  Tensor read(Where where = Where::here()) const;
  Tensor value(Where where = Where::here()) const { return read(where); }
  /// What indexing the tensor gives: `v[0]`, `v[range(0, 8)]`.
  Tensor operator[](const inside::Indices& indices) const { return read(indices.where)[indices]; }
  /// Each gives the new value. Another type is a UserError, another shape too, unless assign_add or assign_sub can
  /// repeat it along the Variable's axes as NumPy's += does; then nothing is changed.
  Tensor assign(const In& value, Where where = Where::here()) const;
  Tensor assign_add(const In& value, Where where = Where::here()) const;
  Tensor assign_sub(const In& value, Where where = Where::here()) const;

  Shape shape(Where where = Where::here()) const;
  DType dtype(Where where = Where::here()) const;
  bool trainable() const;
  const std::string& name() const;
  /// Different for every Variable of the process, in the order they were made; 0 when undefined.
  std::uint64_t id() const;

 private:
  friend VariableState& state_of(const Variable&);
  Tensor update(const In& value, Tensor (*op)(In, In), const char* what, Where where) const;
  std::shared_ptr<VariableState> state_;
};

STET_API std::ostream& operator<<(std::ostream&, const Variable&);

}  // namespace stet
