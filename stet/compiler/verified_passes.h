// A switch for test programs: whether graphs are verified after every pass. No result depends on it.
#pragma once
#include "stet/base/export.h"

namespace stet {

/// What CompileOptions::verify is unless it is set. On in builds with checked kernels (the sanitizers'); every test
/// program switches it on, also those that see the library from outside, which is why it is exported.
STET_API bool verified_passes();
STET_API void set_verified_passes(bool verified);

}  // namespace stet
