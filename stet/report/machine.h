// The machine as this process sees it: its processor, and how much of it and of the memory may be used. Not a public
// header.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stet::reporting {

struct Machine {
  std::string cpu;                                // "AMD EPYC 9R14"
  std::vector<std::string> features;              // those that code is written for and that it has: "avx2", "fma", …
  int cpus = 0;                                   // online
  int allowed_cpus = 0;                           // that this process may run on
  std::optional<double> cpu_quota;                // processors' time that its control group has: 1.5
  std::int64_t memory = 0, available_memory = 0;  // bytes; 0: the system does not say
  std::optional<std::int64_t> memory_limit;       // of its control group, or of one around it
  std::int64_t memory_in_group = 0;               // what the group with that limit has taken
  std::int64_t last_level_cache = 0;

  /// What can be had at this moment.
  std::int64_t free_memory() const;
};

/// `root` stands before /proc and /sys: for tests.
Machine look_at_machine(const std::string& root = "");

}  // namespace stet::reporting
