// What host.h reads, from files laid out as the kernel shows them.
#include "core/host.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/threads.h"

namespace shardrec::core {
namespace {

namespace fs = std::filesystem;

// A /proc and a /sys/fs/cgroup of a test's own.
class HostFiles : public testing::Test {
 protected:
  HostFiles() {
    std::string pattern = testing::TempDir() + "host.XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~HostFiles() override { fs::remove_all(root_); }

  void write(const std::string& path, std::string_view text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  // This process is in /jobs/mine of version 2.
  void version_2() const {
    write("/proc/self/cgroup", "0::/jobs/mine\n");
    write("/proc/self/mountinfo",
          "24 1 0:22 / /proc rw - proc proc rw\n"
          "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  // The same in version 1, controllers mounted one by one.
  void version_1() const {
    write("/proc/self/cgroup",
          "4:memory:/jobs/mine\n2:cpu,cpuacct:/jobs/mine\n1:pids:/jobs/mine\n0::/\n");
    write("/proc/self/mountinfo",
          "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
          "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
          "36 31 0:33 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n");
  }

  std::string root_;
};

constexpr const char* kV2 = "/sys/fs/cgroup";

TEST_F(HostFiles, ProcessorQuotaIsTheLeastOnTheWayUp) {
  version_2();
  EXPECT_EQ(processor_limits(root_).quota, 0);
  write(std::string(kV2) + "/jobs/mine/cpu.max", "max 100000\n");
  EXPECT_EQ(processor_limits(root_).quota, 0);
  write(std::string(kV2) + "/jobs/cpu.max", "350000 100000\n");
  EXPECT_EQ(processor_limits(root_).quota, 3.5);
  const CgroupId outer = processor_limits(root_).quota_cgroup;
  write(std::string(kV2) + "/jobs/mine/cpu.max", "100000 50000\n");
  EXPECT_EQ(processor_limits(root_).quota, 2);
  EXPECT_NE(processor_limits(root_).quota_cgroup, outer);
}

TEST_F(HostFiles, ProcessorQuotaOfVersion1) {
  version_1();
  const std::string jobs = "/sys/fs/cgroup/cpu,cpuacct/jobs";
  write(jobs + "/mine/cpu.cfs_quota_us", "-1\n");
  write(jobs + "/mine/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(processor_limits(root_).quota, 0);
  write(jobs + "/cpu.cfs_quota_us", "150000\n");
  write(jobs + "/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(processor_limits(root_).quota, 1.5);
}

TEST_F(HostFiles, ACgroupMountedIntoAContainerIsFound) {
  // The hierarchy's directory /docker/abc is mounted as if it were the top.
  write("/proc/self/cgroup", "0::/docker/abc/inner\n");
  write("/proc/self/mountinfo", "31 23 0:28 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n");
  write(std::string(kV2) + "/cpu.max", "400000 100000\n");
  write(std::string(kV2) + "/inner/cpu.max", "300000 100000\n");
  EXPECT_EQ(processor_limits(root_).quota, 3);
  // Of another namespace: what is mounted is all that is seen.
  write("/proc/self/cgroup", "0::/../../elsewhere\n");
  EXPECT_EQ(processor_limits(root_).quota, 4);
  write("/proc/self/cgroup", "0::/kubepods/pod1\n");
  EXPECT_EQ(processor_limits(root_).quota, 4);
}

TEST_F(HostFiles, MemoryRoomIsWhatTheMachineHasAndTheCgroupsLeave) {
  version_2();
  write("/proc/meminfo", "MemTotal:  900 kB\nMemAvailable:    700 kB\n");
  EXPECT_EQ(memory_room(root_).machine, 700U * 1024);
  EXPECT_EQ(memory_room(root_).least(), 700U * 1024);
  EXPECT_EQ(memory_room(root_).cgroup, MemoryRoom::kUnknown);

  const std::string mine = std::string(kV2) + "/jobs/mine";
  write(mine + "/memory.max", "max\n");
  write(mine + "/memory.current", "100000\n");
  EXPECT_EQ(memory_room(root_).cgroup, MemoryRoom::kUnknown);
  write(mine + "/memory.max", "500000\n");
  EXPECT_EQ(memory_room(root_).cgroup, 400000U);
  write(mine + "/memory.stat", "anon 60000\nfile 50000\ninactive_file 30000\nactive_file 10000\n");
  EXPECT_EQ(memory_room(root_).cgroup, 440000U) << "files in memory can be dropped";
  write(std::string(kV2) + "/jobs/memory.max", "600000\n");
  write(std::string(kV2) + "/jobs/memory.current", "450000\n");
  const MemoryRoom room = memory_room(root_);
  EXPECT_EQ(room.cgroup, 150000U) << "a neighbour uses the rest";
  EXPECT_EQ(room.least(), 150000U);
  EXPECT_TRUE(room.cgroup_path.ends_with("/jobs"));
  write(std::string(kV2) + "/jobs/memory.current", "700000\n");
  EXPECT_EQ(memory_room(root_).cgroup, 0U);
}

TEST_F(HostFiles, MemoryRoomOfVersion1) {
  version_1();
  const std::string mine = "/sys/fs/cgroup/memory/jobs/mine";
  write(mine + "/memory.limit_in_bytes", "9223372036854771712\n");
  write(mine + "/memory.usage_in_bytes", "1000\n");
  EXPECT_EQ(memory_room(root_).cgroup, MemoryRoom::kUnknown);
  write(mine + "/memory.limit_in_bytes", "5000\n");
  write(mine + "/memory.stat", "active_file 9\ntotal_active_file 300\ntotal_inactive_file 200\n");
  EXPECT_EQ(memory_room(root_).cgroup, 4500U);
  write(mine + "/memory.stat", "hierarchical_memory_limit 3000\n");
  EXPECT_EQ(memory_room(root_).cgroup, 2000U) << "a cgroup that is not seen from here";
}

TEST_F(HostFiles, TooMuchMemoryIsRefusedWithTheLimit) {
  version_2();
  write("/proc/meminfo", "MemAvailable:    700 kB\n");
  write(std::string(kV2) + "/jobs/mine/memory.max", "500000\n");
  write(std::string(kV2) + "/jobs/mine/memory.current", "0\n");
  require_memory(500000, "the tables", root_);
  try {
    require_memory(500001, "the tables", root_);
    ADD_FAILURE() << "was allowed";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), SHARDREC_OUT_OF_MEMORY);
    EXPECT_EQ(error.parts().value, 500001);
    EXPECT_EQ(error.parts().limit, 500000);
    EXPECT_NE(error.sentence().find("/jobs/mine"), std::string::npos) << error.sentence();
  }
}

TEST_F(HostFiles, WhatIsMissingOrGarbledIsNoLimit) {
  for (const char* text : {"", "max", "-1", "x y z\n", "0 0\n", "\n\n", "7"}) {
    version_2();
    write(std::string(kV2) + "/jobs/mine/cpu.max", text);
    write(std::string(kV2) + "/jobs/mine/memory.max", "max");
    write(std::string(kV2) + "/jobs/mine/memory.stat", text);
    EXPECT_EQ(processor_limits(root_).quota, 0) << text;
    EXPECT_EQ(memory_room(root_).cgroup, MemoryRoom::kUnknown) << text;
    write("/proc/self/cgroup", text);
    write("/proc/self/mountinfo", text);
    EXPECT_EQ(processor_limits(root_).quota, 0) << text;
  }
}

TEST_F(HostFiles, LimitsOfThreadsAreNamed) {
  version_2();
  write(std::string(kV2) + "/jobs/pids.max", "64\n");
  write(std::string(kV2) + "/jobs/pids.current", "63\n");
  const std::string text = thread_limits(root_);
  EXPECT_NE(text.find("RLIMIT_NPROC"), std::string::npos) << text;
  EXPECT_NE(text.find("/jobs allows 64 tasks and has 63"), std::string::npos) << text;
}

TEST_F(HostFiles, MachinesAreToldApartByTheirBoot) {
  write("/proc/sys/kernel/random/boot_id", "0f0cd8a6-0000-0000-0000-000000000001\n");
  const MachineId one = machine_id(root_);
  EXPECT_EQ(one, machine_id(root_));
  write("/proc/sys/kernel/random/boot_id", "0f0cd8a6-0000-0000-0000-000000000002\n");
  EXPECT_NE(one, machine_id(root_));
}

// Processors by number.
ProcessorLimits on(const std::vector<unsigned>& processors) {
  ProcessorLimits limits;
  for (const unsigned p : processors) {
    if (limits.affinity.size() <= p / 8) limits.affinity.resize(p / 8 + 1);
    limits.affinity[p / 8] = static_cast<uint8_t>(limits.affinity[p / 8] | 1U << p % 8);
  }
  return limits;
}

TEST(ProcessorShare, RanksThatMayRunEverywhereDivideTheProcessors) {
  const std::vector<ProcessorLimits> two(2, on({0, 1, 2, 3, 4}));
  EXPECT_EQ(processor_share(two, 0), 2);
  EXPECT_EQ(processor_share(two, 1), 2);
  const std::vector<ProcessorLimits> many(9, on({0, 1, 2, 3, 4}));
  EXPECT_EQ(processor_share(many, 8), 1);
  const std::vector<ProcessorLimits> three(3, on({3, 70, 1000}));
  EXPECT_EQ(processor_share(three, 1), 1) << "three thirds";
}

TEST(ProcessorShare, RanksThatAreBoundKeepTheirProcessors) {
  const std::vector<ProcessorLimits> bound = {on({0, 1, 2}), on({3, 4, 5}), on({6})};
  EXPECT_EQ(processor_share(bound, 0), 3);
  EXPECT_EQ(processor_share(bound, 1), 3);
  EXPECT_EQ(processor_share(bound, 2), 1);
  const std::vector<ProcessorLimits> overlapping = {on({0, 1, 2, 3}), on({2, 3, 4, 5})};
  EXPECT_EQ(processor_share(overlapping, 0), 3) << "1 + 1 + 1/2 + 1/2";
}

TEST(ProcessorShare, AQuotaIsDividedByTheRanksOfItsCgroup) {
  std::vector<ProcessorLimits> ranks(3, on({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  for (ProcessorLimits& rank : ranks) rank.quota_cgroup = {.device = 1, .inode = 2};
  ranks[0].quota = ranks[1].quota = 4;
  EXPECT_EQ(processor_share(ranks, 0), 2);
  EXPECT_EQ(processor_share(ranks, 2), 4) << "without a quota";
  ranks[1].quota_cgroup.inode = 3;
  EXPECT_EQ(processor_share(ranks, 0), 4);
  ranks[0].quota = 0.5;
  EXPECT_EQ(processor_share(ranks, 0), 1);
}

TEST(ProcessorShare, TheDefaultFollowsTheAffinityOfTheCaller) {
  std::thread([] {
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    if (processor_limits().quota == 0) {
      EXPECT_EQ(default_thread_count(1), CPU_COUNT(&allowed));
    }
    int first = 0;
    while (!CPU_ISSET(first, &allowed)) ++first;
    CPU_ZERO(&allowed);
    CPU_SET(first, &allowed);
    ASSERT_EQ(sched_setaffinity(0, sizeof(allowed), &allowed), 0);
    EXPECT_EQ(default_thread_count(1), 1);
  }).join();
}

}  // namespace
}  // namespace shardrec::core
