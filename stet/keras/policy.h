// DTypePolicy: in which types layers compute, and keep their weights.
#pragma once
#include <string>

#include "stet/base/dtype.h"
#include "stet/base/export.h"
#include "stet/base/where.h"

namespace stet::keras {

/// What an option `.dtype` of a layer takes: a type, or a name as Keras has them. "mixed_bfloat16" and "mixed_float16"
/// compute in the narrow type with weights in f32: half the memory of activations, and updates that are not rounded
/// away.
class STET_API DTypePolicy {
 public:
  /// That of the process: set_dtype_policy, "float32" at first.
  DTypePolicy();
  DTypePolicy(DType dtype, Where where = Where::here());
  DTypePolicy(const char* name, Where where = Where::here());
  DTypePolicy(const std::string& name, Where where = Where::here()) : DTypePolicy(name.c_str(), where) {}

  DType compute_dtype() const { return compute_; }
  DType variable_dtype() const { return variable_; }
  std::string name() const;

 private:
  DType compute_ = DType::f32, variable_ = DType::f32;
};

/// For layers that are made from now on, by any thread.
STET_API void set_dtype_policy(const DTypePolicy& policy);
STET_API DTypePolicy dtype_policy();

}  // namespace stet::keras
