// Memory runs out at the k-th allocation of one rank of two, for every k, from the making of a set of sharded
// parameters to the end of its second step: the call that needed it says OUT_OF_MEMORY, the other rank goes on or is
// told, and nobody hangs.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>

#include "faults/failing_allocator.h"
#include "shardrec/shardrec.h"

namespace shardrec::test {
namespace {

struct Outcome {
  shardrec_status status = SHARDREC_OK;  // of the first call that failed
  std::string sentence;
  bool failed = false;  // did an allocation?
};

shardrec_status train_sharded(shardrec_comm* comm, shardrec_fsdp*& fsdp) {
  shardrec_status status = SHARDREC_OK;
  const auto done = [&status](shardrec_status its) {
    status = its;
    return its == SHARDREC_OK;
  };
  if (!done(shardrec_fsdp_create(comm, nullptr, nullptr, &fsdp))) return status;
  for (const int32_t unit : {0, 1}) {
    const std::string name(1, static_cast<char>('a' + unit));
    if (!done(shardrec_fsdp_add_unit(fsdp, name.c_str(), nullptr))) return status;
    if (!done(shardrec_fsdp_add_parameter(fsdp, unit, name.c_str(), 50, 3, nullptr))) return status;
  }
  if (!done(shardrec_fsdp_set_optimizer(fsdp, nullptr))) return status;
  if (!done(shardrec_fsdp_commit(fsdp))) return status;
  for (int step = 0; step < 2; ++step) {
    if (!done(shardrec_fsdp_begin(fsdp, 1))) return status;
    for (const int32_t unit : {0, 1}) {
      if (!done(shardrec_fsdp_unshard(fsdp, unit))) return status;
      if (!done(shardrec_fsdp_wait_unshard(fsdp, unit))) return status;
      if (!done(shardrec_fsdp_reshard(fsdp, unit))) return status;
    }
    for (const int32_t unit : {1, 0}) {
      shardrec_tensor view{};
      if (!done(shardrec_fsdp_unshard(fsdp, unit))) return status;
      if (!done(shardrec_fsdp_gradient(fsdp, unit, &view))) return status;
      if (!done(shardrec_fsdp_mark_ready(fsdp, unit))) return status;
    }
    if (!done(shardrec_fsdp_end(fsdp))) return status;
    if (!done(shardrec_fsdp_wait(fsdp))) return status;
    if (!done(shardrec_fsdp_step(fsdp))) return status;
  }
  return status;
}

std::array<Outcome, 2> train_with(int64_t k, Shortage shortage) {
  shardrec_local* group = nullptr;
  EXPECT_EQ(shardrec_local_create(2, 2, nullptr, &group), SHARDREC_OK);
  std::array<Outcome, 2> outcomes;
  std::array<std::thread, 2> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads[static_cast<size_t>(rank)] = std::thread([&, rank] {
      Outcome& own = outcomes[static_cast<size_t>(rank)];
      shardrec_comm* comm = nullptr;
      shardrec_fsdp* fsdp = nullptr;
      EXPECT_EQ(shardrec_comm_create_local(group, rank, nullptr, &comm), SHARDREC_OK);
      if (rank == 1) fail_allocation(k, shortage);
      own.status = train_sharded(comm, fsdp);
      if (rank == 1) own.failed = end_shortage();
      own.sentence = shardrec_last_error();
      // Where this rank cannot go on, the other one must not wait for it.
      if (own.status != SHARDREC_OK) shardrec_fsdp_destroy(&fsdp);
      if (own.status != SHARDREC_OK) shardrec_comm_destroy(&comm);
      shardrec_fsdp_destroy(&fsdp);
      shardrec_comm_destroy(&comm);
    });
  }
  for (std::thread& thread : threads) thread.join();
  shardrec_local_destroy(&group);
  return outcomes;
}

TEST(FsdpShortage, AtAnyAllocationIsOutOfMemoryOnThatRankAndToldToTheOther) {
  for (const Shortage shortage : {Shortage::kOnce, Shortage::kLasting}) {
    int64_t failures = 0;
    for (int64_t k = 1; k < 100000; ++k) {
      SCOPED_TRACE(testing::Message() << "allocation " << k);
      const auto [other, own] = train_with(k, shortage);
      if (!own.failed) break;
      ++failures;
      if (own.status == SHARDREC_OK) {  // what failed was not needed
        EXPECT_EQ(other.status, SHARDREC_OK) << other.sentence;
        continue;
      }
      EXPECT_EQ(own.status, SHARDREC_OUT_OF_MEMORY) << own.sentence;
      EXPECT_TRUE(other.status == SHARDREC_OUT_OF_MEMORY || other.status == SHARDREC_PEER_FAILED)
          << other.status << ": " << other.sentence;
    }
    EXPECT_GT(failures, 20);
  }
}

}  // namespace
}  // namespace shardrec::test
