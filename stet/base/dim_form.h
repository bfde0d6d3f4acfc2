// The form of a Dim as plain numbers, for files: what it is made of, and how it is made again over other symbols.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "stet/base/dim.h"

namespace stet {

/// A step of making a Dim on a stack: `constant` and `symbol` push, the others take two (`positive` one) and push one.
struct DimStep {
  enum Kind : std::uint8_t { constant, symbol, add, multiply, floor, modulo, positive } kind = constant;
  std::int64_t number = 0;  // constant: itself; symbol: its index
  bool operator==(const DimStep&) const = default;
};

/// How the Dim is made. The last step leaves it alone on the stack.
std::vector<DimStep> form_of(const Dim& dim);
/// The Dim that the steps make, `symbols` standing for those of the form. Canonical, whatever the steps are. Problem if
/// they are no form (a symbol that there is not, a stack that is empty or too deep, a division by 0), and where Dims
/// themselves refuse: numbers beyond 64 bits, more terms than any size needs.
Dim dim_of_form(std::span<const DimStep> steps, std::span<const Dim> symbols);

}  // namespace stet
