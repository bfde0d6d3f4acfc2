#include "stet/report/machine.h"

#include <cpuid.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>

#include "stet/cpu/cache_size.h"

namespace stet::reporting {
namespace {

/// What the processor calls itself.
std::string cpu_name() {
  constexpr unsigned name_begins = 0x80000002, parts = 3;
  unsigned highest = __get_cpuid_max(0x80000000, nullptr);
  if (highest < name_begins + parts - 1) return "unknown";
  char name[parts * 16 + 1] = {};
  for (unsigned part = 0; part < parts; ++part) {
    unsigned words[4];
    __cpuid(name_begins + part, words[0], words[1], words[2], words[3]);
    std::memcpy(name + part * 16, words, sizeof words);
  }
  std::istringstream words(name);
  std::string out, word;
  while (words >> word) out += (out.empty() ? "" : " ") + word;
  return out.empty() ? "unknown" : out;
}

/// Of those that generated and written code ask for.
std::vector<std::string> cpu_features() {
  std::vector<std::string> out;
  auto has = [&](bool here, const char* name) {
    if (here) out.push_back(name);
  };
  has(__builtin_cpu_supports("avx2"), "avx2");
  has(__builtin_cpu_supports("fma"), "fma");
  has(__builtin_cpu_supports("avx512f"), "avx512f");
  has(__builtin_cpu_supports("avx512bw"), "avx512bw");
  has(__builtin_cpu_supports("avx512dq"), "avx512dq");
  has(__builtin_cpu_supports("avx512vl"), "avx512vl");
  has(__builtin_cpu_supports("avx512bf16"), "avx512bf16");
  return out;
}

int allowed_cpus() {
  cpu_set_t cpus;
  return sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 0;
}

std::optional<double> number_in(const std::string& path) {
  double value;
  if (std::ifstream(path) >> value) return value;
  return std::nullopt;
}

/// Bytes of a limit of a control group; none for "max", and for the huge number that version 1 says instead.
std::optional<std::int64_t> limit_in(const std::string& path) {
  constexpr double no_limit = 1e18;
  std::optional<double> value = number_in(path);
  if (!value || *value >= no_limit || *value < 0) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

/// The control groups of the process, under both versions of the system, and what they allow.
class ControlGroups {
 public:
  ControlGroups(const std::string& root, Machine& machine) : machine_(machine) {
    const std::string mounted = root + "/sys/fs/cgroup";
    std::ifstream groups(root + "/proc/self/cgroup");
    // "0::/path" for version 2, "4:cpu,cpuacct:/path" for version 1.
    for (std::string line; std::getline(groups, line);) {
      std::size_t first = line.find(':'), second = line.find(':', first + 1);
      if (first == line.npos || second == line.npos) continue;
      std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",", path = line.substr(second + 1);
      if (controllers == ",,") around(mounted, path, &ControlGroups::version2);
      if (controllers.find(",cpu,") != controllers.npos) around(mounted + "/cpu", path, &ControlGroups::cpu_version1);
      if (controllers.find(",memory,") != controllers.npos)
        around(mounted + "/memory", path, &ControlGroups::memory_version1);
    }
  }

 private:
  /// Looks at a group and all those around it: the least limit holds. In a container the path may be one that only the
  /// host has; the container's own group is the mount itself then, which is looked at, too.
  void around(const std::string& mounted, std::string path, void (ControlGroups::*look)(const std::string&)) {
    for (; !path.empty() && path != "/"; path.resize(path.find_last_of('/'))) {
      (this->*look)(mounted + path);
      if (path.find('/') == path.npos) break;
    }
    (this->*look)(mounted);
  }

  void version2(const std::string& group) {
    double quota, period;
    if (std::ifstream(group + "/cpu.max") >> quota >> period && quota > 0 && period > 0) cpus(quota / period);
    memory(limit_in(group + "/memory.max"), group + "/memory.current");
  }
  void cpu_version1(const std::string& group) {
    std::optional<double> quota = number_in(group + "/cpu.cfs_quota_us"),
                          period = number_in(group + "/cpu.cfs_period_us");
    if (quota && period && *quota > 0 && *period > 0) cpus(*quota / *period);
  }
  void memory_version1(const std::string& group) {
    memory(limit_in(group + "/memory.limit_in_bytes"), group + "/memory.usage_in_bytes");
  }

  void cpus(double allowed) { machine_.cpu_quota = std::min(allowed, machine_.cpu_quota.value_or(allowed)); }
  void memory(std::optional<std::int64_t> limit, const std::string& used) {
    if (!limit || (machine_.memory_limit && *machine_.memory_limit <= *limit)) return;
    machine_.memory_limit = limit;
    machine_.memory_in_group = limit_in(used).value_or(0);
  }

  Machine& machine_;
};

}  // namespace

std::int64_t Machine::free_memory() const {
  std::int64_t out = available_memory > 0 ? available_memory : std::numeric_limits<std::int64_t>::max();
  if (memory_limit) out = std::min(out, std::max<std::int64_t>(*memory_limit - memory_in_group, 0));
  return out;
}

Machine look_at_machine(const std::string& root) {
  Machine out;
  out.cpu = cpu_name();
  out.features = cpu_features();
  out.cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  out.allowed_cpus = allowed_cpus();
  out.last_level_cache = cpu::last_level_cache();
  std::ifstream memory(root + "/proc/meminfo");
  std::int64_t kilobytes;
  for (std::string line; std::getline(memory, line);) {
    std::istringstream words(line);
    std::string name;
    if (!(words >> name >> kilobytes)) continue;
    if (name == "MemTotal:") out.memory = kilobytes << 10;
    if (name == "MemAvailable:") out.available_memory = kilobytes << 10;
  }
  ControlGroups(root, out);
  return out;
}

}  // namespace stet::reporting
