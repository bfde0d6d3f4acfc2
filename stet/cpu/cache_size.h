// How much memory the last cache holds: what is larger is written past it.
#pragma once
#include <unistd.h>

#include <cstdint>

namespace stet::cpu {

inline std::int64_t last_level_cache() {
  static const std::int64_t bytes = [] {
    long size = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (size <= 0) size = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return std::int64_t{size > 0 ? size : 32 << 20};
  }();
  return bytes;
}

}  // namespace stet::cpu
