#include "stet/core/size_words.h"

#include <optional>

#include "stet/base/dim_inside.h"
#include "stet/base/text.h"

namespace stet {

std::string size_now(const Dim& size) {
  std::optional<std::int64_t> hint = size.hint();
  return hint ? text(*hint) : "?";
}

std::string size_always(const Dim& size) {
  Dim known = simplified(size);
  return known.is_constant() ? text(known.constant()) : "None";
}

bool is_always(const Dim& size, std::int64_t number) {
  return size.is_constant() ? size.constant() == number : simplified(size).is_constant(number);
}

DimSpec size_promised(const Dim& size, const std::map<std::string, Dim>& named) {
  const Dim known = simplified(size);
  if (known.is_constant()) return known.constant();
  for (const auto& [name, dim] : named)
    if (identical(simplified(dim), known)) return dyn(name);
  return dyn;
}

}  // namespace stet
