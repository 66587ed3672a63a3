// What ranks of a mesh hear of each other in syncs and checks: from a rank that is late, or sends what is wrong.
#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "core/error.h"
#include "objects/collection_object.h"
#include "objects/comm_object.h"
#include "replica/mesh_rank.h"
#include "support/ranks.h"
#include "training/overlapped_means.h"
#include "training/replica_check.h"

namespace shardrec::test {
namespace {

constexpr comm::Operation kExchange{
    .name = "exchange", .kind = 9, .detail = 0, .deadline_kind = comm::DeadlineKind::kStep};

std::shared_ptr<comm::Communicator> communicator_of(shardrec_comm* comm) {
  return capi::enter(comm, capi::Access::kShared)->membership->share();
}

std::shared_ptr<embedding::Collection> collection_of(shardrec_collection* tables) {
  return capi::enter(tables, capi::Access::kShared)->tables->shared_collection();
}

comm::Collectives collectives_on(comm::Communicator& group) {
  return {group.open_channel(comm::Purpose::kControl), group.rank(), group.size()};
}

// The other replica exchanges nothing until the step has been taken.
TEST(OverlappedExchange, GoesOnWhileStepsAreTaken) {
  std::barrier<> stepped(2);
  run_ranks(2, 2, [&](int number, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 30));
    MeshRank rank(comm, {.sharding = SHARDREC_SHARDING_TABLE_WISE, .group = 1});
    SR_EXPECT_OK(rank.status());
    rank.create();
    rank.step(number, 1);
    const auto world = communicator_of(comm);
    comm::Collectives replicas = collectives_on(*world);
    training::OverlappedMeans means(training::MeshGroups(world, world),
                                    world->open_channel(comm::Purpose::kControl),
                                    collection_of(rank.tables()));
    means.connect(replicas);
    means.gather(replicas, kExchange);
    means.prepare();
    if (number == 0) {
      means.start(kExchange);
      rank.step(7, 1);
    }
    stepped.arrive_and_wait();
    if (number == 1) {
      rank.step(7, 1);
      means.start(kExchange);
    }
    EXPECT_NO_THROW(means.wait());
    EXPECT_NO_THROW(means.apply());
  });
}

// As ranks of a check tell each other (training/replica_check.cpp).
struct Note {
  int64_t row;
  int64_t rank;
  int64_t first;
  int64_t part;
};
constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

// Rank 1 sends these: of the first table that differs, then of its first row. The last one is refused.
void expect_refused(std::span<const Note> notes) {
  run_ranks(2, 2, [&](int number, shardrec_comm* comm) {
    MeshRank rank(comm, {});
    SR_OK(rank.status());
    SR_OK(rank.create_collection(nullptr));
    comm::Collectives all = collectives_on(*communicator_of(comm));
    if (number == 0) {
      shardrec_status status = SHARDREC_OK;
      try {
        training::check_equal(*collection_of(rank.tables()), {.all = all, .replicas = nullptr},
                              kExchange);
      } catch (const core::Error& error) {
        status = error.status();
      }
      EXPECT_EQ(status, SHARDREC_CORRUPT_DATA);
      return;
    }
    const uint64_t hashes = 1;  // none but the rank's number
    EXPECT_NO_THROW(all.all_gather(kExchange, std::as_bytes(std::span(&hashes, 1))));
    for (const Note& note : notes) {
      EXPECT_NO_THROW(all.all_gather(kExchange, std::as_bytes(std::span(&note, 1))));
    }
  });
}

TEST(OverlappedExchange, OfChecksRefusesNotesOfWhatDoesNotExist) {
  constexpr Note kTable{0, 0, 0, 0};
  for (const int64_t table : {int64_t{1}, int64_t{-1}, kNone - 1}) {
    expect_refused(std::array{Note{table, 0, 0, 0}});
  }
  for (const Note& note :
       {Note{-1, 0, 0, SHARDREC_TABLE_WEIGHTS}, Note{MeshRank::kRows, 0, 0, SHARDREC_TABLE_WEIGHTS},
        Note{0, 2, 0, SHARDREC_TABLE_WEIGHTS}, Note{0, 0, -1, SHARDREC_TABLE_WEIGHTS},
        Note{0, 1, 0, SHARDREC_TABLE_STATE + 1}, Note{0, 1, 0, int64_t{1} << 40},
        Note{0, 1, 0, -1}}) {
    expect_refused(std::array{kTable, note});
  }
}

// Exchanges of the thread and of steps would be under way at once.
TEST(OverlappedSyncRefused, OverNcclOnAllRanksAndAllIsAsBefore) {
  if (comm::default_device_bodies() != comm::DeviceBodies::kNccl) {
    GTEST_SKIP() << "tables' rows do not go by NCCL";
  }
  run_ranks(4, 4, [&](int number, shardrec_comm* comm) {
    MeshRank rank(comm, {});
    SR_OK(rank.status());
    rank.create();
    rank.step(number, 1);
    const auto before = rank.read(SHARDREC_TABLE_WEIGHTS);
    for (int times = 0; times < 2; ++times) {
      EXPECT_EQ(shardrec_collection_sync_begin(rank.tables()), SHARDREC_UNSUPPORTED)
          << shardrec_last_error();
      EXPECT_EQ(rank.read(SHARDREC_TABLE_WEIGHTS), before);
    }
    EXPECT_EQ(shardrec_collection_sync_wait(rank.tables()), SHARDREC_INVALID_STATE);
    SR_OK(shardrec_collection_sync_replicas(rank.tables()));
    SR_OK(shardrec_collection_check_replicas(rank.tables()));
  });
}

}  // namespace
}  // namespace shardrec::test
