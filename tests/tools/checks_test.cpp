// What stet doctor says of machines that are not here.
#include "stet/tools/checks.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace stet::tools {
namespace {

using reporting::Machine;
using reporting::MachineLimits;

constexpr std::int64_t gibibyte = 1 << 30;

Machine good_machine() {
  Machine out;
  out.cpu = "Test CPU";
  out.features = {"avx2", "fma"};
  out.cpus = out.allowed_cpus = 8;
  out.memory = 16 * gibibyte;
  out.available_memory = 8 * gibibyte;
  return out;
}

void expect(const Check& check, Level level, const std::string& found, const std::string& fix = "") {
  EXPECT_STREQ(level_name(check.level), level_name(level));
  EXPECT_EQ(check.found, found);
  EXPECT_EQ(check.fix, fix);
}

TEST(Checks, Processor) {
  Machine machine = good_machine();
  const cpu::CodeTarget target{"znver4", "+avx2"};
  expect(check_processor(machine, target), Level::fine, "Test CPU, code for znver4 with avx2 fma");
  const char* fix =
      "in a virtual machine, let it see the processor of its host (QEMU: -cpu host); otherwise a newer processor";
  machine.features = {"avx2"};
  expect(check_processor(machine, target), Level::note,
         "Test CPU, code for znver4 with avx2: no FMA, so four numbers at a time", fix);
  machine.features = {};
  expect(check_processor(machine, target), Level::note,
         "Test CPU, code for znver4: no AVX2, no FMA, so four numbers at a time", fix);
}

TEST(Checks, ThreadsFitTheProcessors) {
  Machine machine = good_machine();
  expect(check_threads(machine, 8), Level::fine, "8 threads on 8 of 8 processors");
  machine.allowed_cpus = 1;
  expect(check_threads(machine, 1), Level::fine, "1 thread on 1 of 8 processors");
  machine = good_machine();
  machine.cpu_quota = 7.5;
  expect(check_threads(machine, 8), Level::fine, "8 threads on 8 of 8 processors, with the time of 7.5");
  machine.cpu_quota = 8;
  EXPECT_EQ(check_threads(machine, 8).level, Level::fine);
}

TEST(Checks, ThreadsThatAControlGroupHoldsAreWrong) {
  Machine machine = good_machine();
  machine.cpu_quota = 1.5;
  expect(
      check_threads(machine, 8), Level::wrong,
      "8 threads on 8 of 8 processors, with the time of 1.5: threads wait for each other while the control group holds "
      "them",
      "set_thread_count(2) at the start of the program, or more processor time for the container (docker --cpus)");
  machine.cpu_quota = 0.001;
  EXPECT_NE(check_threads(machine, 2).fix.find("set_thread_count(1)"), std::string::npos);
  EXPECT_EQ(check_threads(machine, 1).level, Level::fine);
  machine = good_machine();
  machine.allowed_cpus = 0;  // unknown
  EXPECT_EQ(check_threads(machine, 8).level, Level::fine);
}

TEST(Checks, Memory) {
  Machine machine = good_machine();
  expect(check_memory(machine), Level::fine, "8.0 GiB free of 16.0 GiB");
  machine.available_memory = gibibyte / 4;
  expect(check_memory(machine), Level::note, "256.0 MiB free of 16.0 GiB: a larger model will not find room",
         "end what else uses memory");
  machine = good_machine();
  machine.memory_limit = gibibyte;
  machine.memory_in_group = gibibyte / 4 * 3;
  expect(check_memory(machine), Level::note,
         "256.0 MiB free of 16.0 GiB, limited to 1.0 GiB by a control group: a larger model will not find room",
         "more memory for the container (docker --memory)");
  machine = Machine();
  expect(check_memory(machine), Level::note, "the system does not say how much there is", "mount /proc");
}

TEST(Checks, Build) {
  expect(check_build(false), Level::fine, "optimised kernels");
  expect(check_build(true), Level::note, "its kernels check every access, and are slow for it",
         "cmake --preset release makes the build to work with; this one is for tests");
}

TEST(Checks, Compiler) {
  expect(check_compiler({12.4, "", true}), Level::fine, "compiled kernels in 12 ms, and they give the right numbers");
  expect(check_compiler({0, "mprotect: Permission denied", false}), Level::wrong,
         "compiling and running a kernel failed: mprotect: Permission denied",
         "a system that allows no memory that is written and then run (SELinux's execmem, say) has to allow it here");
  expect(check_compiler({12, "", false}), Level::wrong, "compiled code gives wrong numbers",
         "report it with the lines above; a virtual machine may show features that its processor does not have");
}

TEST(Checks, Limits) {
  const MachineLimits best{30e9, 200e9};
  expect(check_limits({29e9, 190e9}, best, 2, 0), Level::fine,
         "memory 29.0 GB/s, arithmetic 190 GFLOP/s in f32, on 2 threads");
  const char* fix = "look again when nothing else runs, and measure nothing until then";
  expect(check_limits({17e9, 190e9}, best, 2, 3.26), Level::note,
         "memory 17.0 GB/s, arithmetic 190 GFLOP/s in f32, on 2 threads; the best here was 30.0 GB/s and 200 GFLOP/s: "
         "something else uses the machine (its load is 3.3)",
         fix);
  EXPECT_EQ(check_limits({29e9, 110e9}, best, 2, 0).fix, fix);
  expect(check_limits({0, 100e9}, best, 2, 0), Level::note,
         "could not be measured: there is no memory for three arrays", "look again when more memory is free");
}

TEST(Checks, Cache) {
  using enum cpu::CacheFolder::State;
  CacheLook look{.folder = "/c", .found = {usable, {}, {}}, .not_writable = {}};
  look.files = 1;
  look.bytes = 2048;
  expect(check_cache(look), Level::fine, "/c, 1 file, 2.0 KiB of at most 256.0 MiB");
  look.other_builds = 3;
  look.files = 5;
  expect(check_cache(look), Level::fine, "/c, 5 files, 2.0 KiB of at most 256.0 MiB, 3 of other builds");
  look.damaged = 2;
  expect(
      check_cache(look), Level::wrong, "/c, 5 files, 2.0 KiB of at most 256.0 MiB, 3 of other builds; 2 are damaged",
      "stet cache verify shows which, stet cache verify --remove removes them; if it happens again, look at the disk");
  look.not_writable = "no file can be made there: Read-only file system";
  expect(check_cache(look), Level::wrong,
         "/c: no file can be made there: Read-only file system, so every start compiles everything again",
         "make room or give yourself the right to write there, or set STET_CACHE_DIR to another folder of yours");
}

TEST(Checks, Environment) {
  expect(check_environment({}), Level::fine, "no variable of stet's is set");
  expect(check_environment({"HOME=/", "XSTET_VERIFY=1"}), Level::fine, "no variable of stet's is set");
  expect(check_environment({"STET_VERIFY=0", "STET_CACHE_DIR=/c"}), Level::fine, "STET_CACHE_DIR=/c, STET_VERIFY=0");
  expect(check_environment({"STET_VERIFY=1", "STET_STEP_TIMES=1"}), Level::note, "STET_STEP_TIMES=1, STET_VERIFY=1",
         "unset STET_STEP_TIMES for full speed; unset STET_VERIFY for full speed");
  expect(check_environment({"STET_VERFIY=1"}), Level::note, "STET_VERFIY=1",
         "stet does not look at STET_VERFIY; it does at STET_VERIFY");
  expect(check_environment({"STET_FRIES=\033[31m"}), Level::note, "STET_FRIES=\\x1b[31m",
         "stet does not look at STET_FRIES");
  expect(check_environment({"STET_CACHE_DIR"}), Level::fine, "STET_CACHE_DIR");  // no '=': not an assignment
}

TEST(Checks, TheCompilerIsAskedAnewAndIsRight) {
  const std::string folder = cpu::cache_folder();
  const cpu::CodeStatistics before = cpu::code_statistics();
  CompilerRun run = run_compiler();
  EXPECT_EQ(cpu::cache_folder(), "");
  cpu::set_cache_folder(folder);
  EXPECT_EQ(run.error, "");
  EXPECT_TRUE(run.right_numbers);
  EXPECT_GT(run.milliseconds, 0);
  EXPECT_EQ(cpu::code_statistics().loaded, before.loaded);
}

}  // namespace
}  // namespace stet::tools
