// Kernels as text: for people, and as keys of code that kernels can share.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "stet/base/dim_inside.h"
#include "stet/ir/kernel.h"

namespace stet {

/// Calls f for every Dim of an access, in a fixed order.
inline void for_each_dim(const Access& access, const std::function<void(const Dim&)>& f) {
  f(access.address.offset);
  for (const Dim& stride : access.address.strides) f(stride);
  for (const Guard& guard : access.guards) {
    f(guard.position.offset);
    for (const Dim& stride : guard.position.strides) f(stride);
    f(guard.extent);
  }
  for (const Indirection& indirection : access.indirections) {
    f(indirection.stride);
    f(indirection.extent);
  }
}

/// 0, 1 and -1 are part of a kernel's structure (a broadcast, a unit stride, one backwards); every other Dim is a
/// number.
inline bool is_structural(const Dim& dim) { return dim.is_constant() && dim.constant() >= -1 && dim.constant() <= 1; }

/// Prints Dims as the numbers they become, so that the text is equal for kernels that can share code.
class KeyWriter {
 public:
  std::string dim(const Dim& d) {
    if (is_structural(d)) return std::to_string(d.constant());
    for (std::size_t i = 0; i < seen_.size(); ++i)
      if (identical(seen_[i], d)) return text("n", i);
    seen_.push_back(d);
    return text("n", seen_.size() - 1);
  }
  std::string affine(const Affine& a) {
    std::string out = dim(a.offset);
    for (const Dim& stride : a.strides) out += text(",", dim(stride));
    return out;
  }
  std::string access(const Access& a) {
    std::string out = text(a.source == Access::memory ? "b" : "v", a.buffer, ":", a.dtype, "[", affine(a.address), "]");
    for (const Guard& g : a.guards) out += text("?(", affine(g.position), "<", dim(g.extent), ")");
    for (const Indirection& i : a.indirections)
      out += text("@", i.operand, "*", dim(i.stride), "<", dim(i.extent), "#", i.check);
    return out;
  }

 private:
  std::vector<Dim> seen_;
};

/// Every distinct Dim that is not structural, in the order of first use.
struct NumberList {
  std::vector<Dim> numbers;
  void add(const Dim& dim) {
    if (is_structural(dim)) return;
    for (const Dim& known : numbers)
      if (identical(known, dim)) return;
    numbers.push_back(dim);
  }
};

/// For people.
inline std::string affine_text(const Affine& a) {
  std::string out = text(a.offset);  // str() would pin the sizes of a trace
  for (std::size_t i = 0; i < a.strides.size(); ++i)
    if (!(a.strides[i].is_constant() && a.strides[i].constant() == 0)) out += text(" + i", i, "*(", a.strides[i], ")");
  return out;
}
inline std::string access_text(const Access& a) {
  if (a.source == Access::number) return text("number ", a.dtype, " ", a.address.offset);
  std::string out = text("buffer ", a.buffer, " ", a.dtype, " [", affine_text(a.address), "]");
  for (const Guard& g : a.guards) out += text(" where 0 <= ", affine_text(g.position), " < ", g.extent);
  for (const Indirection& i : a.indirections) out += text(" moved by x", i.operand, "*(", i.stride, ") < ", i.extent);
  return out;
}

}  // namespace stet
