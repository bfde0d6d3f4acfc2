#include "stet/tools/checks.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "stet/base/text.h"
#include "stet/files/utf8.h"
#include "stet/ops/ops.h"
#include "stet/tools/cache_words.h"
#include "stet/tools/output.h"
#include "stet/tools/words.h"

namespace stet::tools {
namespace {

using reporting::Machine;
using reporting::MachineLimits;

bool has(const Machine& machine, std::string_view feature) {
  return std::find(machine.features.begin(), machine.features.end(), feature) != machine.features.end();
}

/// "1.5", and "2" without a fraction.
std::string processors_text(double count) { return text(std::round(count * 100) / 100); }

}  // namespace

const char* level_name(Level level) {
  static constexpr const char* names[] = {"fine", "note", "wrong"};
  return names[static_cast<int>(level)];
}

Check check_processor(const Machine& machine, const cpu::CodeTarget& target) {
  Check out{"processor", Level::fine, text(machine.cpu, ", code for ", target.name), {}};
  if (!machine.features.empty()) out.found += text(" with ", joined(machine.features, " "));
  if (!has(machine, "avx2") || !has(machine, "fma")) {
    out.level = Level::note;
    out.found +=
        text(": no ", has(machine, "avx2") ? "" : "AVX2", !has(machine, "avx2") && !has(machine, "fma") ? ", no " : "",
             has(machine, "fma") ? "" : "FMA", ", so four numbers at a time");
    out.fix =
        "in a virtual machine, let it see the processor of its host (QEMU: -cpu host); otherwise a newer processor";
  }
  return out;
}

Check check_threads(const Machine& machine, int threads) {
  Check out{"threads",
            Level::fine,
            text(counted(threads, "thread"), " on ", machine.allowed_cpus, " of ", counted(machine.cpus, "processor")),
            {}};
  const double allowed = machine.cpu_quota.value_or(machine.allowed_cpus);
  if (machine.cpu_quota) out.found += text(", with the time of ", processors_text(*machine.cpu_quota));
  const int fitting = std::max(1, static_cast<int>(std::ceil(allowed - 0.01)));
  if (allowed > 0 && threads > fitting) {
    out.level = Level::wrong;
    out.found += ": threads wait for each other while the control group holds them";
    out.fix = text("set_thread_count(", fitting,
                   ") at the start of the program, or more processor time for the "
                   "container (docker --cpus)");
  }
  return out;
}

Check check_memory(const Machine& machine) {
  constexpr std::int64_t little = 512 << 20;
  Check out{"memory", Level::fine, {}, {}};
  if (machine.memory == 0) {
    out.level = Level::note;
    out.found = "the system does not say how much there is";
    out.fix = "mount /proc";
    return out;
  }
  out.found = text(bytes_text(machine.free_memory()), " free of ", bytes_text(machine.memory));
  if (machine.memory_limit)
    out.found += text(", limited to ", bytes_text(*machine.memory_limit), " by a control group");
  if (machine.free_memory() < little) {
    out.level = Level::note;
    out.found += ": a larger model will not find room";
    out.fix = machine.memory_limit && *machine.memory_limit - machine.memory_in_group < machine.available_memory
                  ? "more memory for the container (docker --memory)"
                  : "end what else uses memory";
  }
  return out;
}

Check check_build(bool checked_kernels) {
  if (!checked_kernels) return {"build", Level::fine, "optimised kernels", {}};
  return {"build", Level::note, "its kernels check every access, and are slow for it",
          "cmake --preset release makes the build to work with; this one is for tests"};
}

CompilerRun run_compiler() {
  using Clock = std::chrono::steady_clock;
  CompilerRun out;
  cpu::set_cache_folder("");
  cpu::forget_loaded_code();
  try {
    constexpr int count = 100, size = 12;
    const Clock::time_point begin = Clock::now();
    Tensor x = linspace(-3, 3, count);
    std::vector<float> curve = (tanh(x) * 2 + 1).to_vector<float>();
    Tensor a = cast(reshape(arange(size * size), {size, size}), DType::f32);
    std::vector<float> product = matmul(a, transpose(a)).to_vector<float>();
    out.milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    out.right_numbers = true;
    for (int i = 0; i < count; ++i) {
      const double right = std::tanh(-3 + 6. * i / (count - 1)) * 2 + 1;
      if (!(std::abs(curve[static_cast<std::size_t>(i)] - right) < 1e-5)) out.right_numbers = false;
    }
    for (int row = 0; row < size; ++row)
      for (int column = 0; column < size; ++column) {
        int right = 0;  // f32 holds it exactly
        for (int i = 0; i < size; ++i) right += (row * size + i) * (column * size + i);
        if (product[static_cast<std::size_t>(row * size + column)] != static_cast<float>(right))
          out.right_numbers = false;
      }
  } catch (const std::exception& error) {
    out.error = error.what();
  }
  return out;
}

Check check_compiler(const CompilerRun& run) {
  Check out{"compiler", Level::fine, {}, {}};
  if (!run.error.empty()) {
    out.level = Level::wrong;
    out.found = text("compiling and running a kernel failed: ", run.error);
    out.fix =
        "a system that allows no memory that is written and then run (SELinux's execmem, say) has to allow it here";
  } else if (!run.right_numbers) {
    out.level = Level::wrong;
    out.found = "compiled code gives wrong numbers";
    out.fix = "report it with the lines above; a virtual machine may show features that its processor does not have";
  } else {
    char milliseconds[32];
    std::snprintf(milliseconds, sizeof milliseconds, "%.0f", run.milliseconds);
    out.found = text("compiled kernels in ", milliseconds, " ms, and they give the right numbers");
  }
  return out;
}

CacheLook look_at_cache(const std::string& folder) {
  CacheLook out{.folder = folder, .found = cpu::look_at_cache_folder(folder), .not_writable = {}};
  using enum cpu::CacheFolder::State;
  if (out.found.state == off || out.found.state == unusable) return out;
  out.not_writable = cpu::why_not_writable(folder);
  out.found = cpu::look_at_cache_folder(folder);
  if (out.found.state != usable) return out;
  const cpu::ObjectCache cache(folder);
  for (const cpu::CachedFile& file : cache.files()) {
    ++out.files;
    out.bytes += file.bytes;
    out.other_builds += kind_of(file) == FileKind::other_code;
  }
  out.damaged = static_cast<std::int64_t>(cpu::verify_cache(cache).damaged.size());
  return out;
}

Check check_cache(const CacheLook& look) {
  using enum cpu::CacheFolder::State;
  Check out{"object cache", Level::wrong, {}, {}};
  if (!look.not_writable.empty()) {
    out.found =
        text(files::shown_name(look.folder), ": ", look.not_writable, ", so every start compiles everything again");
    out.fix = "make room or give yourself the right to write there, or set STET_CACHE_DIR to another folder of yours";
    return out;
  }
  if (look.found.state != usable) {
    StateWords words = state_words(look.folder, look.found);
    // Whoever set the variable to nothing knows.
    const bool wanted = look.found.state == off && std::getenv("STET_CACHE_DIR");
    return {"object cache", wanted ? Level::note : Level::wrong, words.what, words.fix};
  }
  out.found = text(files::shown_name(look.folder), ", ", counted(look.files, "file"), ", ", bytes_text(look.bytes),
                   " of at most ", bytes_text(cpu::ObjectCache::usual_bound));
  if (look.other_builds > 0) out.found += text(", ", look.other_builds, " of other builds");
  out.level = Level::fine;
  if (look.damaged > 0) {
    out.level = Level::wrong;
    out.found += text("; ", look.damaged, look.damaged == 1 ? " is damaged" : " are damaged");
    out.fix =
        "stet cache verify shows which, stet cache verify --remove removes them; if it happens again, look at the disk";
  }
  return out;
}

Check check_limits(const MachineLimits& now, const MachineLimits& best, int threads, double load) {
  constexpr double much_less = 0.6;
  Check out{"limits", Level::fine, {}, {}};
  if (!(now.bytes > 0) || !(now.flops > 0)) {
    out.level = Level::note;
    out.found = "could not be measured: there is no memory for three arrays";
    out.fix = "look again when more memory is free";
    return out;
  }
  out.found = text("memory ", prefixed(now.bytes), "B/s, arithmetic ", prefixed(now.flops), "FLOP/s in f32, on ",
                   counted(threads, "thread"));
  if (now.bytes < much_less * best.bytes || now.flops < much_less * best.flops) {
    out.level = Level::note;
    char loaded[32];
    std::snprintf(loaded, sizeof loaded, "%.1f", load);
    out.found += text("; the best here was ", prefixed(best.bytes), "B/s and ", prefixed(best.flops),
                      "FLOP/s: something else uses the machine (its load is ", loaded, ")");
    out.fix = "look again when nothing else runs, and measure nothing until then";
  }
  return out;
}

std::vector<Variable> variables() {
  return {{"STET_CACHE_DIR", "the folder of compiled code; set to nothing: none is kept"},
          {"STET_STEP_TIMES", "1: what each step of compiled programs took, on stderr when the program ends"},
          {"STET_VERIFY", "1: the first call of every trace is compared with the same code run eagerly"}};
}

Check check_environment(const std::vector<std::string>& entries) {
  Check out{"environment", Level::fine, {}, {}};
  std::vector<std::string> known, set, fixes;
  for (const Variable& variable : variables()) known.emplace_back(variable.name);
  for (const std::string& entry : entries) {
    if (!entry.starts_with("STET_")) continue;
    const std::string name = entry.substr(0, entry.find('='));
    const std::string value = name.size() < entry.size() ? entry.substr(name.size() + 1) : std::string();
    set.push_back(files::shown_name(entry));
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const std::string near = nearest(name, known);
      fixes.push_back(near.empty() ? text("stet does not look at ", files::shown_name(name))
                                   : text("stet does not look at ", files::shown_name(name), "; it does at ", near));
    } else if (name != "STET_CACHE_DIR" && !value.empty() && value != "0") {
      fixes.push_back(text("unset ", name, " for full speed"));
    }
  }
  std::sort(set.begin(), set.end());
  out.found = set.empty() ? "no variable of stet's is set" : joined(set, ", ");
  std::sort(fixes.begin(), fixes.end());
  out.fix = joined(fixes, "; ");
  if (!fixes.empty()) out.level = Level::note;
  return out;
}

}  // namespace stet::tools
