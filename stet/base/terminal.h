// Whether stdout is a terminal, how wide it is, and whether it wants colours. Not a public header.
#pragma once
#include <optional>

#include "stet/base/export.h"

namespace stet {

/// What COLUMNS says, if that is a width.
STET_API std::optional<int> asked_width();
/// Columns of the terminal that is written to (COLUMNS, where it is set); 0: it is none, and lines are as long as they
/// are.
STET_API int terminal_width();
/// Whether colours are wanted: on a terminal that has them, unless NO_COLOR is set.
STET_API bool colored();

}  // namespace stet
