// For the library's own files: what installed headers keep out of users' sight, in stet::inside, is named here as if it
// stood in stet. No installed header includes this (a test looks), so that `using namespace stet` leaves those names to
// the user.
#pragma once

namespace stet {
namespace inside {}
using namespace inside;
}  // namespace stet
