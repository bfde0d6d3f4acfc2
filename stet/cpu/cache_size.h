// How much memory the last cache holds: what is larger is written past it.
#pragma once
#include <cstdint>

namespace stet::cpu {

/// Bytes of the largest cache that a core has, alone or with others.
std::int64_t last_level_cache();
/// What a test wants that to be, before a program is bound; 0: the machine's again.
void set_last_level_cache(std::int64_t bytes);

}  // namespace stet::cpu
