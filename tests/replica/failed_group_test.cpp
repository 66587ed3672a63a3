// A sharding group of a mesh has failed, in whichever call: with option NON_FINITE SKIP the ranks of the other groups,
// which wait for it in backward, are told, and do not wait until their deadline.
#include <gtest/gtest.h>

#include <latch>
#include <tuple>
#include <vector>

#include "replica/mesh_rank.h"
#include "support/ranks.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

// What ends rank 0's part in a step that has begun.
enum class FailsIn { kForward, kDestroy };

// Sharding groups are of the ranks 0 and 2, and 1 and 3; replica groups of 0 and 1, and 2 and 3.
class FailedGroup : public ::testing::TestWithParam<std::tuple<FailsIn, int>> {
 protected:
  static constexpr int kRanks = 4;
  static constexpr double kShort = 0.05;  // the deadline of rank 0, whose peer comes after it
  static constexpr double kLong = 10;

  // The lookup has a batch that rank 2 does not begin before this has returned.
  static void fail(shardrec_lookup** lookup, FailsIn call) {
    std::vector<int64_t> values = {1};
    std::vector<int64_t> lengths = {1};
    const shardrec_tensor v = vector_of(values);
    const shardrec_tensor l = vector_of(lengths);
    SR_EXPECT_OK(begin_batch(*lookup, {.batch_size = 1, .values = &v, .lengths = &l}));
    if (call == FailsIn::kDestroy) return shardrec_lookup_destroy(lookup);
    std::vector<float> output(MeshRank::kDim);
    const shardrec_tensor o = matrix(output.data(), 1, MeshRank::kDim);
    EXPECT_EQ(shardrec_lookup_forward(*lookup, 0, &o), SHARDREC_TIMEOUT) << shardrec_last_error();
  }
};

// Rank 1 waits for rank 0, or rank 3 for rank 2, which hears of rank 0's failure in its next call. The other rank of their
// group has sent its gradients, and does no more before the wait is over: it tells nobody of anything.
TEST_P(FailedGroup, IsToldToTheGroupsThatWaitForItInBackward) {
  const FailsIn call = std::get<0>(GetParam());
  const int waiting = std::get<1>(GetParam());
  std::latch failed(1);
  std::latch sent(1);
  std::latch told(1);
  std::latch over(kRanks);  // until then nothing is destroyed
  run_ranks(kRanks, 2, [&](int rank, shardrec_comm* comm) {
    SR_EXPECT_OK(
        shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, rank == 0 ? kShort : kLong));
    Arrangement setup;
    setup.options = [](shardrec_options* options) {
      SR_EXPECT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_NON_FINITE, "skip"));
    };
    MeshRank one(comm, setup);
    one.create();
    SR_EXPECT_OK(one.status());
    shardrec_lookup* lookup = nullptr;
    if (rank == 0) {
      SR_EXPECT_OK(shardrec_lookup_create(one.tables(), nullptr, &lookup));
      fail(&lookup, call);
      failed.count_down();
    } else if (rank == 2) {
      (waiting == 1 ? told : failed).wait();
      EXPECT_NE(one.prepare_step(rank, 1), SHARDREC_OK);
    } else {
      SR_EXPECT_OK(one.prepare_step(rank, 1));
      if (rank == waiting) {
        sent.wait();
      } else {
        SR_EXPECT_OK(shardrec_lookup_send_gradients(one.lookup(), SHARDREC_UPDATE_APPLY));
        sent.count_down();
        told.wait();
      }
      EXPECT_EQ(shardrec_lookup_backward(one.lookup(), SHARDREC_UPDATE_APPLY), SHARDREC_PEER_FAILED)
          << shardrec_last_error();
      if (rank == waiting) told.count_down();
    }
    over.arrive_and_wait();
    shardrec_lookup_destroy(&lookup);
  });
}

INSTANTIATE_TEST_SUITE_P(Calls, FailedGroup,
                         ::testing::Combine(::testing::Values(FailsIn::kForward, FailsIn::kDestroy),
                                            ::testing::Values(1, 3)));

}  // namespace
}  // namespace shardrec::test
