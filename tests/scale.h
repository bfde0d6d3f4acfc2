// How often tests repeat what they draw: less under sanitizers, where everything takes many times as long.
#pragma once
#include <algorithm>
#include <cstdint>

namespace stet {

constexpr std::uint64_t scaled(std::uint64_t count) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return std::max<std::uint64_t>(count / 8, 1);
#else
  return count;
#endif
}

}  // namespace stet
