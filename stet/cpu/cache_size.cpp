#include "stet/cpu/cache_size.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <string>

namespace stet::cpu {
namespace {

std::atomic<std::int64_t> set_bytes{0};

/// What the kernel says of a cache of the first core; 0 if it says nothing.
std::int64_t cache_of_first_core(int index) {
  std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/", type, unit;
  std::int64_t size = 0;
  if (!(std::ifstream(folder + "type") >> type) || type == "Instruction") return 0;
  std::ifstream file(folder + "size");
  if (!(file >> size)) return 0;
  file >> unit;
  return unit == "K" ? size << 10 : unit == "M" ? size << 20 : size;
}

std::int64_t find_last_level_cache() {
  std::int64_t largest = 0;
  for (int index = 0; index < 8; ++index) largest = std::max(largest, cache_of_first_core(index));
  // The C library is asked last: on AMD's processors it adds up the caches of all groups of cores.
  if (largest == 0) largest = sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (largest <= 0) largest = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return largest > 0 ? largest : std::int64_t{32} << 20;
}

}  // namespace

std::int64_t last_level_cache() {
  if (const std::int64_t bytes = set_bytes.load(std::memory_order_relaxed)) return bytes;
  static const std::int64_t bytes = find_last_level_cache();
  return bytes;
}

void set_last_level_cache(std::int64_t bytes) { set_bytes.store(bytes, std::memory_order_relaxed); }

}  // namespace stet::cpu
