// WindowSizes: what options such as `.strides` and `.pool_size` take.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "stet/base/export.h"

namespace stet::keras {

/// One number for all spatial axes, or one for each: `3`, `{3, 5}`. Not given: the layer's own choice.
class STET_API WindowSizes {
 public:
  WindowSizes() = default;
  template <std::integral I>
  WindowSizes(I all) : numbers_{static_cast<std::int64_t>(all)}, same_(true) {}
  WindowSizes(std::initializer_list<std::int64_t> each) : numbers_(each) {}
  WindowSizes(std::vector<std::int64_t> each) : numbers_(std::move(each)) {}

  bool given() const { return !numbers_.empty(); }
  /// True: one number was given, for all axes.
  bool same() const { return same_; }
  const std::vector<std::int64_t>& numbers() const { return numbers_; }

 private:
  std::vector<std::int64_t> numbers_;
  bool same_ = false;
};

}  // namespace stet::keras
