// Tables for which there is no memory are refused before anything is allocated, whoever shares the
// machine and the cgroup.
#include "embedding/room.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "comm/local/local_group.h"
#include "comm/world.h"
#include "compute/backends/registry.h"
#include "core/threads.h"
#include "embedding/collection.h"
#include "embedding/tables/changed_rows.h"

namespace shardrec::embedding {
namespace {

namespace fs = std::filesystem;

MemoryNeed need(char machine, uint64_t cgroup, uint64_t bytes) {
  MemoryNeed rank{.cgroup = {.device = 1, .inode = cgroup}, .bytes = bytes};
  rank.machine[0] = machine;
  return rank;
}

bool fits(const std::vector<MemoryNeed>& ranks, size_t own, const core::MemoryRoom& room) {
  const auto error = comm::error_of([&] { check_room(ranks, own, room); });
  EXPECT_TRUE(!error || error->status() == SHARDREC_OUT_OF_MEMORY) << error->sentence();
  return !error;
}

TEST(Room, TheRanksOfAMachineShareWhatItHas) {
  const std::vector<MemoryNeed> ranks = {need('a', 1, 300), need('b', 1, 900), need('a', 2, 300)};
  EXPECT_TRUE(fits(ranks, 0, {.machine = 600}));
  EXPECT_FALSE(fits(ranks, 0, {.machine = 599}));
  EXPECT_FALSE(fits(ranks, 2, {.machine = 599}));
  EXPECT_TRUE(fits(ranks, 1, {.machine = 900}));
}

TEST(Room, TheRanksOfACgroupShareWhatItLeaves) {
  const std::vector<MemoryNeed> ranks = {need('a', 1, 300), need('a', 1, 200), need('a', 2, 900),
                                         need('b', 1, 900)};
  const auto left = [](uint64_t bytes) {
    return core::MemoryRoom{.machine = 2000, .cgroup = bytes, .cgroup_path = "/x"};
  };
  EXPECT_TRUE(fits(ranks, 0, left(500)));
  EXPECT_FALSE(fits(ranks, 0, left(499)));
  EXPECT_FALSE(fits(ranks, 1, left(499)));
  EXPECT_TRUE(fits(ranks, 2, left(900)));
}

TEST(Room, ARankThatNeedsNothingIsNotRefused) {
  const std::vector<MemoryNeed> ranks = {need('a', 1, 0), need('a', 1, 200)};
  EXPECT_TRUE(fits(ranks, 0, {.machine = 1}));
  EXPECT_FALSE(fits(ranks, 1, {.machine = 1}));
}

TEST(Room, SumsDoNotOverflow) {
  const std::vector<MemoryNeed> ranks = {need('a', 1, UINT64_MAX - 5), need('a', 1, 200)};
  EXPECT_FALSE(fits(ranks, 1, {.machine = 1000}));
}

// One table per rank, of rows x 16 floats with SGD.
plan::Model two_tables(int64_t rows) {
  plan::Model model;
  for (const char* name : {"a", "b"}) {
    const int32_t table = plan::add_table(model, {.name = name, .rows = rows, .dim = 16});
    plan::add_feature(model, {.name = name, .table = table, .pooling = SHARDREC_POOLING_SUM});
  }
  model.optimizer.kind = SHARDREC_OPTIMIZER_SGD;
  return model;
}

plan::Plan one_each(const plan::Model& model) {
  plan::Plan plan{.topology = {.ranks = 2, .ranks_per_node = 2}};
  for (int32_t t = 0; t < 2; ++t) {
    plan.tables.push_back({});
    const int64_t rows = model.tables[static_cast<size_t>(t)].rows;
    plan.tables.back().boxes.push_back({.rank = t, .cells = {.rows = rows, .cols = 16}});
  }
  return plan;
}

// What both ranks got from making collections of `rows` rows each.
comm::Errors make(int64_t rows) {
  const auto group = comm::local::make_group(2, 2);
  const plan::Model model = two_tables(rows);
  const plan::Plan plan = one_each(model);
  return comm::run_joined(
      2, [&](int rank) { return comm::local::join(group, rank); },
      [&](comm::Communicator& comm) {
        const std::shared_ptr<comm::Communicator> same(&comm, [](comm::Communicator*) {});
        const Collection made(same, model, plan, {.threads = 1});
      });
}

TEST(Room, RanksThatTogetherNeedMoreThanTheMachineHasAreRefusedAlike) {
  std::string root = testing::TempDir() + "room.XXXXXX";
  ASSERT_NE(::mkdtemp(root.data()), nullptr);
  fs::create_directories(root + "/proc");
  constexpr uint64_t kEach = 256 << 10;
  for (const auto& [kibibytes, enough] : {std::pair(511, false), std::pair(512, true)}) {
    std::ofstream(root + "/proc/meminfo") << "MemAvailable: " << kibibytes << " kB\n";
    for (const auto& error : comm::run_ranks(2, [&](comm::Communicator& comm) {
           comm::Collectives collectives(comm.open_channel(comm::Purpose::kControl), comm.rank(),
                                         comm.size());
           GatheredNeeds(collectives, {.name = "create"}, comm.rank(), kEach, root).check();
         })) {
      EXPECT_EQ(error.has_value(), !enough) << (error ? error->sentence() : "");
      if (!error) continue;
      EXPECT_EQ(error->status(), SHARDREC_OUT_OF_MEMORY);
      EXPECT_EQ(error->parts().value, 2 * kEach);
      EXPECT_EQ(error->parts().limit, kibibytes * 1024);
    }
  }
  fs::remove_all(root);
}

// Each rank's table would have room, both together have none by far.
TEST(Room, TablesThatTogetherNeedMoreThanThisMachineHasAreRefusedAlike) {
  const uint64_t left = core::memory_room().least();
  if (left == core::MemoryRoom::kUnknown) GTEST_SKIP() << "the system does not say what is left";
  const auto rows = static_cast<int64_t>(left / 10 * 9 / 64);
  for (const auto& error : make(rows)) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), SHARDREC_OUT_OF_MEMORY) << error->sentence();
    EXPECT_GE(error->parts().value, 2 * rows * 64);
    EXPECT_LT(error->parts().value, 2 * rows * 64 + (1 << 20)) << "steps of two ranks take little";
  }
}

// A table of 8 bytes a rank, whose steps take far more where the ranks are many.
TEST(Room, WhatStepsNeedOfEachPeerIsCounted) {
  const auto needed = [](int ranks, int lookups) {
    plan::Model model;
    plan::add_table(model, {.name = "t", .rows = ranks, .dim = 2});
    plan::add_feature(model, {.name = "f", .table = 0});
    plan::Plan plan{{ranks, ranks}, std::vector<plan::TablePlan>(1)};
    for (int32_t rank = 0; rank < ranks; ++rank) {
      plan.tables[0].boxes.push_back({rank, {rank, 1, 0, 2}});
    }
    const Layout layout(model, plan, 0);
    const uint64_t bytes = host_bytes(layout, {.threads = 1, .lookups = lookups}, 1);
    EXPECT_EQ(bytes, shard_bytes(layout) + step_bytes(layout, lookups));
    return bytes;
  };
  EXPECT_GT(needed(1000, 2), 1000 * uint64_t{1000});
  EXPECT_GT(needed(1000, 2), 9 * needed(100, 2));
  EXPECT_GT(needed(1000, 4), 3 * needed(1000, 2) / 2);
  EXPECT_LT(needed(1, 2), uint64_t{10000});
}

// Where several replicas are synced row by row; a table that is replicated has none.
TEST(Room, TheBitsOfChangedRowsAreCounted) {
  constexpr int64_t kRows = 1'000'000;
  plan::Model model;
  for (const char* const name : {"cut", "replicated"}) {
    const int32_t table = plan::add_table(model, {.name = name, .rows = kRows, .dim = 1});
    plan::add_feature(model, {.name = name, .table = table});
  }
  plan::Plan plan{{1, 1}, std::vector<plan::TablePlan>(2)};
  plan.tables[0].boxes.push_back({0, {0, kRows, 0, 1}});
  plan.tables[1].replicated = true;
  const Layout layout(model, plan, 0);
  CollectionOptions options{.threads = 1, .backend = "cpu"};
  const uint64_t without = host_bytes(layout, options, 1);
  core::Threads threads(1);
  const auto booked = std::make_shared<std::atomic<int64_t>>(0);
  const auto backend = compute::backend_named("cpu").make({.threads = threads, .booked = booked});
  std::vector<Shard> shards;
  for (const int32_t part : layout.parts_of(0)) {
    shards.emplace_back(layout, part, *backend->memory());
  }
  const int64_t before = *booked;
  ChangedRows changed;
  changed.begin(layout, shards, *backend, booked);
  const int64_t taken = *booked - before;
  const uint64_t counted = host_bytes(layout, options, 2) - without;
  EXPECT_GT(counted, 2 * uint64_t{kRows} / 8);
  EXPECT_LE(counted, static_cast<uint64_t>(taken));
  EXPECT_GE(counted, static_cast<uint64_t>(taken) / 2);
  options.replica_sync = SHARDREC_REPLICA_SYNC_FULL;
  EXPECT_EQ(host_bytes(layout, options, 2), without);
}

// Runs in a cgroup of 128 MiB: two ranks of 100 MiB each would be killed.
TEST(RoomInCgroup, DISABLED_TablesBeyondTheLimitAreRefused) {
  constexpr int64_t kRows = (int64_t{100} << 20) / 64;
  for (const auto& error : make(kRows)) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), SHARDREC_OUT_OF_MEMORY) << error->sentence();
    EXPECT_NE(error->sentence().find("cgroup"), std::string::npos) << error->sentence();
  }
  for (const auto& error : make(kRows / 10)) {
    EXPECT_FALSE(error) << error->sentence();
  }
}

// A new cgroup with a limit of memory; empty where this process may make none.
std::string make_cgroup(uint64_t bytes) {
  for (const char* top : {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"}) {
    const std::string path = std::string(top) + "/shardrec_room_" + std::to_string(getpid());
    if (::mkdir(path.c_str(), 0755) != 0) continue;
    for (const char* limit : {"/memory.limit_in_bytes", "/memory.max"}) {
      std::ofstream file;
      if (!fs::exists(path + limit)) continue;
      file.open(path + limit);
      if (file << bytes << std::flush) return path;
    }
    ::rmdir(path.c_str());
  }
  return "";
}

TEST(Room, ARealCgroupIsRespected) {
  const std::string cgroup = make_cgroup(uint64_t{128} << 20);
  if (cgroup.empty()) GTEST_SKIP() << "cgroups with a limit of memory cannot be made here";
  const std::string command = "echo $$ > " + cgroup + "/cgroup.procs && exec " +
                              fs::read_symlink("/proc/self/exe").string() +
                              " --gtest_also_run_disabled_tests --gtest_filter=RoomInCgroup.* >&2";
  const int ended = std::system(command.c_str());  // NOLINT(cert-env33-c): its own program
  EXPECT_TRUE(WIFEXITED(ended) && WEXITSTATUS(ended) == 0) << "ended with " << ended;
  ::rmdir(cgroup.c_str());
}

}  // namespace
}  // namespace shardrec::embedding
