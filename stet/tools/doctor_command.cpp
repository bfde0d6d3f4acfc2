// stet doctor: what this machine is to stet, whether all works, and what to do where it does not.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "stet/base/text.h"
#include "stet/base/version.h"
#include "stet/cpu/emit_kernel.h"
#include "stet/cpu/library_versions.h"
#include "stet/files/utf8.h"
#include "stet/runtime/parallel.h"
#include "stet/tools/cache_words.h"
#include "stet/tools/checks.h"
#include "stet/tools/commands.h"
#include "stet/tools/output.h"
#include "stet/tools/words.h"

namespace stet::tools {
namespace {

using files::Json;
using reporting::Machine;
using reporting::MachineLimits;

/// All that is looked at.
struct Examination {
  Machine machine;
  int threads = 0;
  CacheLook cache;
  CompilerRun compiler;
  MachineLimits now, best;
  double load = 0;
};

Examination examine() {
  Examination out{.machine = reporting::look_at_machine(),
                  .threads = thread_count(),
                  .cache = look_at_cache(cpu::default_cache_folder()),
                  .compiler = run_compiler(),
                  .now = {},
                  .best = {}};
  if (::getloadavg(&out.load, 1) != 1) out.load = 0;
  // Of a folder that is not used the library would say so, too.
  cpu::set_cache_folder(out.cache.found.state == cpu::CacheFolder::State::usable ? out.cache.folder : std::string());
  out.now = reporting::measured_again();
  out.best = reporting::machine_limits();
  return out;
}

std::vector<Check> checks_of(const Examination& seen) {
  std::vector<std::string> entries;
  for (char** entry = environ; entry && *entry; ++entry) entries.emplace_back(*entry);
  return {check_build(cpu::checked_kernels()),
          check_processor(seen.machine, cpu::code_target()),
          check_threads(seen.machine, seen.threads),
          check_memory(seen.machine),
          check_compiler(seen.compiler),
          check_cache(seen.cache),
          check_limits(seen.now, seen.best, seen.threads, seen.load),
          check_environment(entries)};
}

Json limits_json(const MachineLimits& limits) {
  return Json::Object{{"bytes_per_second", limits.bytes}, {"flops_per_second", limits.flops}};
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json examination_json(const Examination& seen, const std::vector<Check>& checks) {
  Json::Object libraries;
  for (const auto& [name, version] : cpu::library_versions()) libraries.push_back({name, version});
  Json::List features, list;
  for (const std::string& feature : seen.machine.features) features.push_back(feature);
  bool fine = true;
  for (const Check& check : checks) {
    list.push_back(Json::Object{
        {"subject", check.subject}, {"level", level_name(check.level)}, {"found", check.found}, {"fix", check.fix}});
    fine = fine && check.level != Level::wrong;
  }
  const Machine& machine = seen.machine;
  return Json::Object{
      {"version", STET_VERSION},
      {"build", cpu::code_build()},
      {"libraries", libraries},
      {"processor", Json::Object{{"name", machine.cpu}, {"target", cpu::code_target().name}, {"features", features}}},
      {"processors",
       Json::Object{
           {"online", machine.cpus}, {"allowed", machine.allowed_cpus}, {"quota", or_null(machine.cpu_quota)}}},
      {"threads", seen.threads},
      {"memory", Json::Object{{"bytes", machine.memory},
                              {"free_bytes", machine.free_memory()},
                              {"limit_bytes", or_null(machine.memory_limit)},
                              {"last_level_cache_bytes", machine.last_level_cache}}},
      {"object_cache", Json::Object{{"folder", files::shown_name(seen.cache.folder)},
                                    {"state", state_name(seen.cache.found.state)},
                                    {"files", seen.cache.files},
                                    {"bytes", seen.cache.bytes},
                                    {"most_bytes", cpu::ObjectCache::usual_bound},
                                    {"files_of_other_builds", seen.cache.other_builds},
                                    {"damaged", seen.cache.damaged}}},
      {"limits", limits_json(seen.now)},
      {"best_limits", limits_json(seen.best)},
      {"checks", list},
      {"fine", fine}};
}

void print_check(const Check& check) {
  constexpr std::size_t mark_columns = 7, subject_columns = 14;
  static constexpr Color colors[] = {Color::green, Color::yellow, Color::red};
  const std::string mark = level_name(check.level);
  const std::string before(2 + mark_columns + subject_columns, ' ');
  auto behind_margin = [&](const std::string& words) {
    return wrapped(words, help_width(), before.size()).substr(before.size());
  };
  std::cout << "  " << in_color(colors[static_cast<int>(check.level)], mark)
            << padded("", mark_columns - columns_of(mark)) << padded(check.subject, subject_columns)
            << behind_margin(check.found);
  if (!check.fix.empty()) std::cout << before << behind_margin("fix: " + check.fix);
}

int run(const Words& words) {
  words.at_most(0);
  const Examination seen = examine();
  const std::vector<Check> checks = checks_of(seen);
  const auto count =
      std::count_if(checks.begin(), checks.end(), [](const Check& c) { return c.level == Level::wrong; });
  const auto notes = std::count_if(checks.begin(), checks.end(), [](const Check& c) { return c.level == Level::note; });
  if (words.has(json_option.name)) {
    print_json(examination_json(seen, checks));
    return count > 0 ? 1 : 0;
  }
  std::vector<std::string> libraries;
  for (const auto& [name, version] : cpu::library_versions()) libraries.push_back(text(name, " ", version));
  std::cout << in_color(Color::bold, text("stet ", STET_VERSION)) << " with " << joined(libraries, ", ") << "\n";
  for (const Check& check : checks) print_check(check);
  if (count > 0)
    std::cout << counted(count, "thing") << (count == 1 ? " is wrong\n" : " are wrong\n");
  else
    std::cout << "nothing is wrong" << (notes > 0 ? text("; ", counted(notes, "note")) : std::string()) << "\n";
  return count > 0 ? 1 : 0;
}

}  // namespace

const Command doctor_command{
    .name = "doctor",
    .help = "whether all works on this machine, and what it can do at most",
    .forms = {{"", "looks, measures, and says what is wrong and what to do; 1 if something is"}},
    .options = {json_option},
    .text =
        "It looks at the processor and what of it may be used, at memory and the object cache, compiles kernels and "
        "compares what they give, and measures for some tenths of a second how fast memory and arithmetic are: by "
        "STREAM's triad in arrays that no cache holds, and by fused multiply-adds of f32. The best that was measured "
        "is kept beside the compiled code, for profiles to compare with. Other work meanwhile makes the figures "
        "smaller.\n"
        "\n"
        "What is noted, programs can live with; what is wrong makes them fail, or lose much of their speed.",
    .run = run};

}  // namespace stet::tools
