// File names that stay when the library they came from is gone.
#pragma once
#include "stet/base/where.h"

namespace stet {

/// The same place, with a file name that stays: the given one may lie in a library that is unloaded (dlclose). For
/// whatever is kept longer than the call that brought it.
Where kept(Where where);
/// The same of a name.
const char* kept(const char* name);

}  // namespace stet
