#include "comm/collective/processors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <vector>

namespace shardrec::comm {
namespace {

RankProcessors rank_on(char machine, uint8_t processors) {
  RankProcessors rank;
  rank.machine[0] = machine;
  rank.limits.affinity = {processors};
  return rank;
}

TEST(RankProcessors, OnlyRanksOfTheSameMachineShare) {
  const std::vector<RankProcessors> ranks = {rank_on('a', 0xFF), rank_on('b', 0xFF),
                                             rank_on('a', 0xFF), rank_on('a', 0x0F)};
  EXPECT_EQ(threads_of(ranks, 0), 3);  // 4 / 3 + 4 / 2
  EXPECT_EQ(threads_of(ranks, 1), 8);
  EXPECT_EQ(threads_of(ranks, 2), 3);
  EXPECT_EQ(threads_of(ranks, 3), 1);
}

TEST(RankProcessors, AreReadAsTheyWereWritten) {
  RankProcessors rank = rank_on('a', 0x5A);
  rank.limits.quota = 2.5;
  rank.limits.quota_cgroup = {.device = 7, .inode = 8};
  const RankProcessors read = read_processors(write_processors(rank));
  EXPECT_EQ(read.machine, rank.machine);
  EXPECT_EQ(read.limits.affinity, rank.limits.affinity);
  EXPECT_EQ(read.limits.quota, 2.5);
  EXPECT_EQ(read.limits.quota_cgroup, rank.limits.quota_cgroup);
}

TEST(RankProcessors, WhatNoRankWritesIsOfAnotherMachine) {
  const RankProcessors own = rank_on('a', 0xFF);
  std::vector<std::byte> bytes = write_processors(own);
  bytes.resize(bytes.size() - 2);
  for (const std::vector<std::byte>& garbled :
       {bytes, std::vector<std::byte>{}, std::vector<std::byte>(size_t{1} << 20)}) {
    const std::vector<RankProcessors> ranks = {own, read_processors(garbled)};
    EXPECT_EQ(threads_of(ranks, 0), 8);
  }
  // A quota that is no number.
  RankProcessors bad = rank_on('a', 0xFF);
  bad.limits.quota = std::nan("");
  const std::vector<RankProcessors> ranks = {own, read_processors(write_processors(bad))};
  EXPECT_EQ(threads_of(ranks, 0), 4);
  EXPECT_EQ(threads_of(ranks, 1), 4);
}

}  // namespace
}  // namespace shardrec::comm
