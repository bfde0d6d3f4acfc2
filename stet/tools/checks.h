// What `stet doctor` looks at, and what it says of it. Looking and judging are apart, so that every judgement can be
// tested on machines that are not here.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stet/cpu/jit.h"
#include "stet/cpu/object_cache.h"
#include "stet/report/machine.h"
#include "stet/report/machine_limits.h"

namespace stet::tools {

enum class Level {
  fine,
  note,  // good to know: programs run, perhaps slower than they could
  wrong
};
const char* level_name(Level level);

struct Check {
  std::string subject;  // "object cache"
  Level level = Level::fine;
  std::string found;
  std::string fix;  // what to do; empty where it is fine
};

/// What `target` is compiled for here.
Check check_processor(const reporting::Machine& machine, const cpu::CodeTarget& target);
Check check_threads(const reporting::Machine& machine, int threads);
Check check_memory(const reporting::Machine& machine);
/// Of the build itself: one that checks its kernels is for tests.
Check check_build(bool checked_kernels);

/// A kernel and a product, compiled anew and run. Switches the process's object cache off.
struct CompilerRun {
  double milliseconds = 0;
  std::string error;  // what was thrown, if something was
  bool right_numbers = false;
};
CompilerRun run_compiler();
Check check_compiler(const CompilerRun& run);

struct CacheLook {
  std::string folder;
  cpu::CacheFolder found;
  std::string not_writable;  // why
  std::int64_t files = 0, bytes = 0, other_builds = 0, damaged = 0;
};
/// Makes the folder where it is missing, as programs do.
CacheLook look_at_cache(const std::string& folder);
Check check_cache(const CacheLook& look);

/// `best`: the most that was ever measured here. `load`: how many threads of all programs wanted to run in the last
/// minute.
Check check_limits(const reporting::MachineLimits& now, const reporting::MachineLimits& best, int threads, double load);

/// A variable of the environment that stet looks at.
struct Variable {
  std::string_view name, help;
};
std::vector<Variable> variables();
/// `entries` as environ has them: "STET_VERIFY=1".
Check check_environment(const std::vector<std::string>& entries);

}  // namespace stet::tools
