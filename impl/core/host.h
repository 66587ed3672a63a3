// What the operating system lets this process use of its machine: processors (affinity, cgroup
// quotas), memory (what the machine and the cgroups have left), threads.
//
// Everything is read anew by each call. `root` stands before every path that is read, for tests
// that lay out a /proc and a /sys/fs/cgroup of their own; empty: this machine's. What cannot be
// read is no limit, and nothing here throws but bad_alloc. Thread rule: any thread.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace shardrec::core {

// Names the boot of this machine, equal in all its containers; the machine's name where the kernel
// does not tell.
using MachineId = std::array<char, 40>;
MachineId machine_id(const std::string& root = {});

// Tells a cgroup from the others of its machine; both 0: none.
struct CgroupId {
  uint64_t device = 0;
  uint64_t inode = 0;
  friend bool operator==(const CgroupId&, const CgroupId&) = default;
};

// The processors that the calling thread may run on, and how much of their time it gets.
struct ProcessorLimits {
  std::vector<uint8_t> affinity = {};  // bit p % 8 of byte p / 8: processor p; empty: unknown
  double quota = 0;                    // processors' worth of time in the narrowest cgroup; 0: all
  CgroupId quota_cgroup = {};          // which shares the quota
};
ProcessorLimits processor_limits(const std::string& root = {});

// How many threads ranks[own] takes so that all these ranks, all of one machine, together occupy
// what they may use once: a processor that k of them may run on counts 1 / k for each, a quota is
// divided by the ranks of its cgroup; rounded down, at least 1.
int processor_share(std::span<const ProcessorLimits> ranks, size_t own);

// Bytes that can still be allocated and touched.
struct MemoryRoom {
  static constexpr uint64_t kUnknown = std::numeric_limits<uint64_t>::max();
  uint64_t machine = kUnknown;  // without swapping
  uint64_t cgroup = kUnknown;   // up to the limit of the cgroup that has the least left
  CgroupId cgroup_id = {};
  std::string cgroup_path = {};

  uint64_t least() const noexcept { return machine < cgroup ? machine : cgroup; }
};
MemoryRoom memory_room(const std::string& root = {});

// Throws OUT_OF_MEMORY when this process alone, taking `bytes` more, would exceed the room; `what`
// begins the sentence: "a buffer".
void require_memory(uint64_t bytes, const char* what, const std::string& root = {});

// The limits on the number of threads, for the sentence of a thread that could not be started:
// "RLIMIT_NPROC is 4096; the cgroup /sys/fs/cgroup/a allows 64 tasks and has 64".
std::string thread_limits(const std::string& root = {});

}  // namespace shardrec::core
