// What a function promises about its tensor arguments: {.signature = {{f32, {dyn("batch"), 10}}, {i32, {dyn}}}}.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stet/base/dtype.h"
#include "stet/base/export.h"
#include "stet/base/shape.h"

namespace stet {

/// A size that is not known yet. `dyn` alone is any size; dyn("batch") is the same size wherever the name stands.
struct Dyn {
  std::string_view name = {};
  constexpr Dyn operator()(std::string_view n) const { return {n}; }
};
inline constexpr Dyn dyn{};

/// A size of a promised shape: an integer, `dyn` or dyn("name").
class DimSpec {
 public:
  DimSpec(Dyn unknown) : name(unknown.name) {}
  template <std::integral I>
  requires(!std::same_as<I, bool>) DimSpec(I known) : size(static_cast<std::int64_t>(known)) {}

  std::optional<std::int64_t> size = {};  // none: unknown
  std::string name = {};
};

/// A promised shape.
class ShapeSpec {
 public:
  ShapeSpec() = default;
  ShapeSpec(std::initializer_list<DimSpec> sizes) : dims(sizes) {}
  explicit ShapeSpec(std::vector<DimSpec> sizes) : dims(std::move(sizes)) {}

  int rank() const { return static_cast<int>(dims.size()); }
  STET_API std::string str() const;  // "[batch,10,?]"
  std::vector<DimSpec> dims = {};
};

/// A promised tensor. The name is for messages.
struct TensorSpec {
  DType dtype = DType::f32;
  ShapeSpec shape = {};
  std::string name = {};
  STET_API std::string str() const;  // "f32[batch,10]"
};

STET_API std::ostream& operator<<(std::ostream&, const ShapeSpec&);
STET_API std::ostream& operator<<(std::ostream&, const TensorSpec&);

}  // namespace stet
