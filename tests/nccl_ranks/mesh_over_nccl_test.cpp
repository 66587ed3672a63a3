// Meshes whose communicator has NCCL between devices: its groups have it too, their lookups and syncs have the bits of
// tables on the CPU, and rows that are averaged go from device to device.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "faults/table_digest.h"
#include "nccl/ranks.h"
#include "objects/collection_object.h"
#include "replica/mesh_rank.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

// What a rank has seen, in its order: outputs, and weights and states before and behind each sync.
using Seen = std::vector<std::vector<float>>;

enum class Tables : uint8_t { kOnCpu, kOnDevices, kOnDevicesOverNccl };

double bodies_of(shardrec_comm* comm) {
  double by_nccl = -1;
  SR_EXPECT_OK(shardrec_comm_get_f64(comm, SHARDREC_COMM_NCCL, &by_nccl));
  return by_nccl;
}

Seen train(int rank, shardrec_comm* comm, Arrangement setup, Tables where, int syncs) {
  Seen seen;
  SR_EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 20));
  const double by_nccl = where == Tables::kOnDevicesOverNccl ? 1 : 0;
  SR_EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_NCCL, by_nccl));
  if (where != Tables::kOnCpu) {
    setup.options = [rank](shardrec_options* options) {
      SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_DEVICE, rank % 2));
    };
  }
  MeshRank one(comm, setup);
  if (one.status() == SHARDREC_OK) one.create();
  SR_EXPECT_OK(one.status());
  if (one.status() != SHARDREC_OK) return seen;
  for (int sync = 0; sync < syncs; ++sync) {
    for (int step = 0; step < 2; ++step) {
      one.step((3 * rank + 5 * step + sync) % setup.rows, 0.5F + static_cast<float>(rank) * 0.37F);
      seen.push_back(one.output());
    }
    seen.push_back(one.read(SHARDREC_TABLE_WEIGHTS));
    SR_EXPECT_OK(shardrec_collection_sync_replicas(one.tables()));
    seen.push_back(one.read(SHARDREC_TABLE_WEIGHTS));
    seen.push_back(one.read(SHARDREC_TABLE_STATE));
  }
  return seen;
}

uint64_t table_digest(MeshRank& one) {
  return digest(capi::enter(one.tables(), capi::Access::kShared)->collection());
}

// By rank.
std::vector<Seen> train_all(const Arrangement& setup, int ranks, Tables where, int syncs = 3) {
  std::vector<Seen> all(static_cast<size_t>(ranks));
  run_ranks(ranks, setup.group, [&](int rank, shardrec_comm* comm) {
    all[static_cast<size_t>(rank)] = train(rank, comm, setup, where, syncs);
  });
  return all;
}

class MeshOverNccl : public ::testing::Test {
 protected:
  ~MeshOverNccl() override {
    OF_FAKE(fake_nccl_set_hang)(-1, 0);
    EXPECT_EQ(OF_FAKE(fake_nccl_violations)(), 0) << OF_FAKE(fake_nccl_last_violation)();
    EXPECT_EQ(OF_FAKE(fake_nccl_live)(), 0);
  }

  static void expect_bits_of_the_cpu(const Arrangement& setup, int ranks) {
    const auto expected = train_all(setup, ranks, Tables::kOnCpu);
    ASSERT_FALSE(expected[0].empty());
    const int64_t before = OF_FAKE(fake_nccl_bytes_sent)();
    const auto over_nccl = train_all(setup, ranks, Tables::kOnDevicesOverNccl);
    EXPECT_GT(OF_FAKE(fake_nccl_bytes_sent)(), before);
    const auto in_process = train_all(setup, ranks, Tables::kOnDevices);
    for (size_t rank = 0; rank < expected.size(); ++rank) {
      EXPECT_TRUE(over_nccl[rank] == expected[rank]) << "over NCCL, rank " << rank;
      EXPECT_TRUE(in_process[rank] == expected[rank]) << "in a process, rank " << rank;
    }
  }
};

TEST_F(MeshOverNccl, ItsGroupsHaveTheBodiesOfItsCommunicator) {
  for (const double by_nccl : {1.0, 0.0}) {
    run_ranks(4, 4, [&](int, shardrec_comm* comm) {
      SR_EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_NCCL, by_nccl));
      shardrec_mesh* mesh = nullptr;
      SR_OK(shardrec_mesh_create(comm, 2, nullptr, &mesh));
      for (const shardrec_mesh_group kind :
           {SHARDREC_MESH_GROUP_SHARDING, SHARDREC_MESH_GROUP_REPLICA}) {
        shardrec_comm* group = nullptr;
        SR_OK(shardrec_mesh_comm(mesh, kind, &group));
        EXPECT_EQ(bodies_of(group), by_nccl);
        shardrec_comm* part = nullptr;
        SR_OK(shardrec_comm_split(group, 0, 0, &part));
        EXPECT_EQ(bodies_of(part), by_nccl);
        shardrec_comm_destroy(&part);
        shardrec_comm_destroy(&group);
      }
      shardrec_mesh_destroy(&mesh);
      SR_OK(shardrec_comm_barrier(comm));
    });
  }
}

TEST_F(MeshOverNccl, LookupsAndSyncsHaveTheBitsOfTheCpu) {
  for (const shardrec_placement placement :
       {SHARDREC_PLACEMENT_INTRA_NODE_SYNC, SHARDREC_PLACEMENT_INTRA_NODE_SHARD}) {
    for (const shardrec_sharding sharding :
         {SHARDREC_SHARDING_ROW_WISE, SHARDREC_SHARDING_COLUMN_WISE, SHARDREC_SHARDING_TABLE_WISE,
          SHARDREC_SHARDING_DATA_PARALLEL}) {
      for (const int replicas : {2, 3}) {
        SCOPED_TRACE(std::to_string(replicas) + " replicas, sharding " + std::to_string(sharding));
        expect_bits_of_the_cpu({.placement = placement, .sharding = sharding}, 2 * replicas);
      }
    }
  }
}

// Then nobody follows the marks of the tables' own operations.
TEST_F(MeshOverNccl, AShardingGroupOfOneRankIsAveragedToo) {
  expect_bits_of_the_cpu({.sharding = SHARDREC_SHARDING_TABLE_WISE, .group = 1}, 3);
}

TEST_F(MeshOverNccl, RowsOf16BitsAreAveragedAsTheyAreStored) {
  for (const shardrec_dtype dtype : {SHARDREC_FLOAT16, SHARDREC_BFLOAT16}) {
    for (const shardrec_optimizer optimizer :
         {SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD, SHARDREC_OPTIMIZER_ADAM}) {
      expect_bits_of_the_cpu({.optimizer = optimizer, .rows = 61, .dim = 9, .dtype = dtype}, 6);
    }
  }
}

// More than one block on a device, and on the CPU.
TEST_F(MeshOverNccl, TablesOfManyBlocksAreAveragedBlockByBlock) {
  const Arrangement setup{.sharding = SHARDREC_SHARDING_TABLE_WISE,
                          .group = 1,
                          .rows = 9001,
                          .dim = 600,
                          .sync = SHARDREC_REPLICA_SYNC_FULL};
  const auto expected = train_all(setup, 2, Tables::kOnCpu, 1);
  const auto over_nccl = train_all(setup, 2, Tables::kOnDevicesOverNccl, 1);
  for (size_t rank = 0; rank < 2; ++rank) EXPECT_TRUE(over_nccl[rank] == expected[rank]) << rank;
}

// Each element goes to the rank that adds it up, and its mean to all others.
TEST_F(MeshOverNccl, RowsOfASyncGoFromDeviceToDevice) {
  const Arrangement setup{.sync = SHARDREC_REPLICA_SYNC_FULL};
  const auto bytes_of = [&](int syncs) {
    const int64_t before = OF_FAKE(fake_nccl_bytes_sent)();
    run_ranks(6, 2, [&](int rank, shardrec_comm* comm) {
      SR_EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_NCCL, 1));
      Arrangement own = setup;
      own.options = [rank](shardrec_options* options) {
        SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_DEVICE, rank % 2));
      };
      MeshRank one(comm, own);
      one.create();
      SR_EXPECT_OK(one.status());
      for (int sync = 0; sync < syncs; ++sync) {
        SR_EXPECT_OK(shardrec_collection_sync_replicas(one.tables()));
      }
    });
    return OF_FAKE(fake_nccl_bytes_sent)() - before;
  };
  const int64_t replicas = 3;
  const int64_t table = setup.rows * (setup.dim + 1) * int64_t{sizeof(float)};
  const int64_t none = bytes_of(0);
  EXPECT_EQ(bytes_of(1) - none, 2 * (replicas - 1) * table);
  EXPECT_EQ(bytes_of(2) - none, 4 * (replicas - 1) * table);
}

// The rank's part of the first block is never sent: the others' tables are as before, and every rank hears of it.
TEST_F(MeshOverNccl, ASyncThatHangsIsATimeoutOnAllRanksAndChangesNoRow) {
  const Arrangement setup{.sharding = SHARDREC_SHARDING_TABLE_WISE, .group = 1};
  OF_FAKE(fake_nccl_set_hang)(1, 1);
  run_ranks(2, 2, [&](int rank, shardrec_comm* comm) {
    SR_EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_NCCL, 1));
    SR_EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 1));
    Arrangement own = setup;
    own.options = [rank](shardrec_options* options) {
      SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_DEVICE, rank % 2));
    };
    MeshRank one(comm, own);
    one.create();
    SR_EXPECT_OK(one.status());
    one.step(rank, 1);
    const auto before = table_digest(one);
    EXPECT_EQ(shardrec_collection_sync_replicas(one.tables()), SHARDREC_TIMEOUT)
        << shardrec_last_error();
    EXPECT_EQ(table_digest(one), before);
  });
}

}  // namespace
}  // namespace shardrec::test
