#pragma once
#include <vector>

#include "stet/base/dim.h"

namespace stet {

/// What the scope's equalities say about single symbols (ties and pins), as one substitution for all of them: for each
/// symbol what stands for it. A graph rewritten with it has fewer symbols, and loops that can be merged.
std::vector<Dim> solve_facts(const SymbolScope& scope);

}  // namespace stet
