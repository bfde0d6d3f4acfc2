// What is read of machines that are not here: /proc and /sys as their kernels write them.
#include "stet/report/machine.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace stet::reporting {
namespace {

namespace fs = std::filesystem;

class MachineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/stet_machine_XXXXXX";
    root_ = mkdtemp(folder);
  }
  void TearDown() override { fs::remove_all(root_); }
  void file(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  Machine look() const { return look_at_machine(root_); }
  std::string root_;
};

constexpr std::int64_t mebibyte = 1 << 20;

TEST_F(MachineTest, OfNothingNothingIsKnown) {
  Machine machine = look();
  EXPECT_EQ(machine.memory, 0);
  EXPECT_EQ(machine.available_memory, 0);
  EXPECT_FALSE(machine.memory_limit);
  EXPECT_FALSE(machine.cpu_quota);
  EXPECT_EQ(machine.free_memory(), std::numeric_limits<std::int64_t>::max());
  // The processor is asked itself.
  EXPECT_NE(machine.cpu, "");
  EXPECT_GE(machine.cpus, machine.allowed_cpus);
  EXPECT_GE(machine.allowed_cpus, 1);
}

TEST_F(MachineTest, Memory) {
  file("/proc/meminfo", "MemTotal:        2048 kB\nMemFree:  1 kB\nMemAvailable:    1024 kB\nHugePages_Total:  0\n");
  EXPECT_EQ(look().memory, 2 * mebibyte);
  EXPECT_EQ(look().available_memory, mebibyte);
  EXPECT_EQ(look().free_memory(), mebibyte);
}

TEST_F(MachineTest, TheTightestGroupOfVersion2Holds) {
  file("/proc/self/cgroup", "0::/outer/inner\n");
  file("/proc/meminfo", "MemAvailable: 1048576 kB\n");
  file("/sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  file("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
  file("/sys/fs/cgroup/outer/cpu.max", "150000 100000\n");
  file("/sys/fs/cgroup/outer/memory.max", "104857600\n");
  file("/sys/fs/cgroup/outer/memory.current", "94371840\n");
  file("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  file("/sys/fs/cgroup/memory.max", "209715200\n");
  Machine machine = look();
  EXPECT_EQ(machine.cpu_quota, 1.5);
  EXPECT_EQ(machine.memory_limit, 100 * mebibyte);
  EXPECT_EQ(machine.memory_in_group, 90 * mebibyte);
  EXPECT_EQ(machine.free_memory(), 10 * mebibyte);
}

TEST_F(MachineTest, AContainersOwnGroupIsTheMount) {
  file("/proc/self/cgroup", "0::/what/the/host/calls/it\n");
  file("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  file("/sys/fs/cgroup/memory.max", "104857600\n");
  file("/sys/fs/cgroup/memory.current", "209715200\n");  // over its limit
  Machine machine = look();
  EXPECT_EQ(machine.cpu_quota, 0.5);
  EXPECT_EQ(machine.free_memory(), 0);
}

TEST_F(MachineTest, Version1) {
  file("/proc/self/cgroup", "7:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n1:name=systemd:/docker/x\n");
  file("/sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us", "200000\n");
  file("/sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us", "100000\n");
  file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  file("/sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "104857600\n");
  file("/sys/fs/cgroup/memory/docker/x/memory.usage_in_bytes", "1048576\n");
  file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");  // none
  Machine machine = look();
  EXPECT_EQ(machine.cpu_quota, 2);
  EXPECT_EQ(machine.memory_limit, 100 * mebibyte);
  EXPECT_EQ(machine.memory_in_group, mebibyte);
}

TEST_F(MachineTest, WhatIsNoNumberIsNoLimit) {
  for (const char* text : {"", "\n", "max", "many", "-5 100000", "100000 0", "100000", "nan nan", "1e400 1"}) {
    file("/proc/self/cgroup", "0::/\n");
    file("/sys/fs/cgroup/cpu.max", text);
    file("/sys/fs/cgroup/memory.max", "-1");
    Machine machine = look();
    EXPECT_TRUE(!machine.cpu_quota || *machine.cpu_quota > 0) << text;
    EXPECT_FALSE(machine.memory_limit) << text;
  }
  for (const char* groups :
       {"", ":", "::", "0:", "0::", "no group at all", "0::relative/path", "0::///", "::::\n::\n"}) {
    file("/proc/self/cgroup", groups);
    look();  // ends
  }
  file("/proc/meminfo", "MemTotal: many kB\nMemAvailable:\n\nMemAvailable 3\n");
  EXPECT_EQ(look().memory, 0);
}

}  // namespace
}  // namespace stet::reporting
