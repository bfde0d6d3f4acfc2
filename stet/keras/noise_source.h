// What layers that draw share. Not a public header.
#pragma once
#include <cstdint>
#include <optional>

#include "stet/base/where.h"
#include "stet/core/signature.h"
#include "stet/core/tensor.h"
#include "stet/core/variable.h"
#include "stet/ops/ops.h"

namespace stet::keras {

/// Where a layer draws from: with a seed from a generator of its own.
class NoiseSource {
 public:
  explicit NoiseSource(const std::optional<std::uint64_t>& seed, Where where) {
    if (seed) own_.emplace(*seed, where);
  }
  const random::Source& operator*() const {
    return own_ ? static_cast<const random::Source&>(*own_) : random::default_generator();
  }
  const random::Source* operator->() const { return &**this; }
  /// Undefined if there is none of its own.
  Variable generator() const { return own_ ? own_->variable() : Variable(); }

 private:
  std::optional<random::Generator> own_;
};

/// UserError unless it is a probability; `below_one`: less than 1.
void require_rate(const char* layer, double rate, Where where, bool below_one = false);

/// What is drawn for x: its shape, or `spec` with its sizes for those that are not known. UserError if it does not
/// broadcast against x.
Shape noise_shape(const char* layer, const Tensor& x, const ShapeSpec& spec, Where where);

/// x with values dropped, where one number of `noise` decides for all that it broadcasts to.
Tensor dropped(const Tensor& x, const Shape& noise, double rate, const NoiseSource& source, Where where);

}  // namespace stet::keras
