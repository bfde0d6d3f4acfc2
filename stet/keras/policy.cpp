#include "stet/keras/policy.h"

#include <atomic>
#include <string_view>

#include "stet/base/error.h"
#include "stet/base/text.h"

namespace stet::keras {
namespace {

struct NamedPolicy {
  std::string_view name;
  DType compute, variable;
};
constexpr NamedPolicy named_policies[] = {
    {"float32", DType::f32, DType::f32},       {"float64", DType::f64, DType::f64},
    {"float16", DType::f16, DType::f16},       {"bfloat16", DType::bf16, DType::bf16},
    {"mixed_float16", DType::f16, DType::f32}, {"mixed_bfloat16", DType::bf16, DType::f32},
};

/// The process's, as its place in the table.
std::atomic<std::size_t> chosen{0};

}  // namespace

DTypePolicy::DTypePolicy()
    : compute_(named_policies[chosen.load(std::memory_order_relaxed)].compute),
      variable_(named_policies[chosen.load(std::memory_order_relaxed)].variable) {}

DTypePolicy::DTypePolicy(DType dtype, Where where) : compute_(dtype), variable_(dtype) {
  if (!is_floating(dtype))
    throw UserError(error_text(text("a layer cannot compute in ", dtype), where,
                               "weights are floating: f32, f64, bf16, f16, or a policy by name"));
}

DTypePolicy::DTypePolicy(const char* name, Where where) {
  std::string known;
  for (const NamedPolicy& one : named_policies) {
    if (one.name == name) {
      compute_ = one.compute;
      variable_ = one.variable;
      return;
    }
    known += text(known.empty() ? "" : ", ", one.name);
  }
  throw UserError(error_text(text("there is no dtype policy '", name, "'"), where, text("one of ", known)));
}

std::string DTypePolicy::name() const {
  for (const NamedPolicy& one : named_policies)
    if (one.compute == compute_ && one.variable == variable_) return std::string(one.name);
  return text(compute_);
}

void set_dtype_policy(const DTypePolicy& policy) {
  for (std::size_t i = 0; i < std::size(named_policies); ++i)
    if (named_policies[i].compute == policy.compute_dtype() && named_policies[i].variable == policy.variable_dtype())
      chosen.store(i, std::memory_order_relaxed);
}
DTypePolicy dtype_policy() { return {}; }

}  // namespace stet::keras
