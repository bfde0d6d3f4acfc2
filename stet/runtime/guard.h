// A debugging aid for tests: guard bytes around every block of memory.
#pragma once
#include <cstdint>
#include <string>

namespace stet {

/// While on, every block allocated gets guard patterns before and after its bytes, which are looked at on release, and
/// its bytes start as 0xFF (NaN in every floating type), so that a kernel that forgets an element shows.
void set_guard_bytes(bool on);

/// How many blocks had a damaged guard when they were released, since the start. Nothing throws on release: tests
/// compare this before and after.
std::uint64_t guard_failures();

/// What was found last, for the message of a failed test; empty if nothing was.
std::string last_guard_failure();

}  // namespace stet
