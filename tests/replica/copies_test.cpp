// Replicas that are compared (shardrec_collection_check_replicas) and filled from one of them
// (shardrec_collection_replica_fill).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "embedding/tables/stored_pieces.h"
#include "objects/collection_object.h"
#include "replica/mesh_rank.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

constexpr int64_t kCopiedRows = 70000;  // several blocks of hashes

std::string text_of(shardrec_error_part part) {
  char* text = nullptr;
  SR_EXPECT_OK(shardrec_last_error_text(part, &text));
  const std::string out = text == nullptr ? "" : text;
  shardrec_text_free(text);
  return out;
}

int64_t number_of(shardrec_error_part part) {
  int64_t number = -1;
  SR_EXPECT_OK(shardrec_last_error_i64(part, &number));
  return number;
}

void expect_differs(shardrec_collection* tables, int64_t row, int64_t rank, const char* part) {
  ASSERT_EQ(shardrec_collection_check_replicas(tables), SHARDREC_DISAGREEMENT)
      << shardrec_last_error();
  EXPECT_EQ(text_of(SHARDREC_ERROR_TABLE), "t");
  EXPECT_EQ(number_of(SHARDREC_ERROR_POSITION), row);
  EXPECT_EQ(number_of(SHARDREC_ERROR_RANK), rank);
  EXPECT_NE(std::string(shardrec_last_error()).find(part), std::string::npos)
      << shardrec_last_error();
}

// Writes some rows of the own replica: ranks of others write none.
void write_row(MeshRank& rank, shardrec_table_part part, int64_t row, int64_t columns, float value,
               bool writes) {
  std::vector<float> values(static_cast<size_t>(columns), value);
  const shardrec_tensor written = matrix(values.data(), 1, columns);
  SR_EXPECT_OK(shardrec_collection_write_range(rank.tables(), 0, part, row, writes ? 1 : 0,
                                               writes ? &written : nullptr));
}

struct Copied {
  const char* name;
  shardrec_sharding sharding;
  shardrec_optimizer optimizer = SHARDREC_OPTIMIZER_ADAM;
  shardrec_dtype dtype = SHARDREC_FLOAT32;
  shardrec_replica_sync sync = SHARDREC_REPLICA_SYNC_TOUCHED;
};

class ReplicaCopies : public ::testing::TestWithParam<Copied> {
 protected:
  static Arrangement arrangement() {
    return {.sharding = GetParam().sharding,
            .optimizer = GetParam().optimizer,
            .rows = kCopiedRows,
            .dim = 8,
            .dtype = GetParam().dtype,
            .sync = GetParam().sync};
  }
};

// Interleaved: ranks 0 and 2 hold replica 0, ranks 1 and 3 replica 1.
TEST_P(ReplicaCopies, ThatDifferAreToldOfByTheFirstRowOfTheFirstTableOnAllRanks) {
  run_ranks(4, 4, [&](int number, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_SETUP_SECONDS, 60));
    MeshRank rank(comm, arrangement());
    SR_OK(rank.status());
    rank.create();
    SR_OK(shardrec_collection_check_replicas(rank.tables()));
    const bool by_rows = GetParam().sharding == SHARDREC_SHARDING_ROW_WISE;
    // Of the second half of the rows where they are cut.
    write_row(rank, SHARDREC_TABLE_STATE_2, 69999, 8, 0.5F, number == 1);
    expect_differs(rank.tables(), 69999, by_rows ? 3 : 1, "exp_avg_sq");
    write_row(rank, SHARDREC_TABLE_WEIGHTS, 41000, 8, 3, number == 1);
    expect_differs(rank.tables(), 41000, by_rows ? 3 : 1, "weights");
    write_row(rank, SHARDREC_TABLE_STATE, 17, 8, 3, number == 0);
    expect_differs(rank.tables(), 17, 1, "\"exp_avg\"");
    // Nothing has changed, and the mesh lives: the same again, then equal.
    expect_differs(rank.tables(), 17, 1, "\"exp_avg\"");
    SR_OK(shardrec_collection_sync_replicas(rank.tables()));
    SR_OK(shardrec_collection_check_replicas(rank.tables()));
  });
}

TEST_P(ReplicaCopies, AreFilledFromOneBitForBitWithStepsAndSettings) {
  run_ranks(4, 4, [&](int number, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_SETUP_SECONDS, 60));
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 60));
    MeshRank rank(comm, arrangement());
    SR_OK(rank.status());
    rank.create();
    const bool source = number % 2 == 1;
    for (int step = 0; step < (source ? 3 : 1); ++step) rank.step(1000 * step + number, 1);
    if (source) {
      SR_OK(shardrec_collection_set_learning_rate(rank.tables(), 0, 0.25));
      SR_OK(shardrec_collection_set_frozen(rank.tables(), 0, 1));
    } else {
      // Gradients that wait for their step are dropped.
      SR_OK(rank.prepare_step(5, 1));
      SR_OK(shardrec_lookup_backward(rank.lookup(), SHARDREC_UPDATE_ACCUMULATE));
    }
    const std::vector<float> before = rank.read(SHARDREC_TABLE_WEIGHTS, 8);
    EXPECT_EQ(shardrec_collection_check_replicas(rank.tables()), SHARDREC_DISAGREEMENT);
    // What one rank gets wrong is every rank's error.
    EXPECT_EQ(shardrec_collection_replica_fill(rank.tables(), number == 3 ? 2 : 1),
              SHARDREC_INVALID_ARGUMENT)
        << shardrec_last_error();
    EXPECT_EQ(shardrec_collection_replica_fill(rank.tables(), number == 3 ? 0 : 1),
              SHARDREC_DISAGREEMENT)
        << shardrec_last_error();
    EXPECT_EQ(rank.read(SHARDREC_TABLE_WEIGHTS, 8), before);
    SR_OK(shardrec_collection_replica_fill(rank.tables(), 1));
    SR_OK(shardrec_collection_check_replicas(rank.tables()));
    if (source) {
      EXPECT_EQ(rank.read(SHARDREC_TABLE_WEIGHTS, 8), before);
    }
    int64_t step = 0;
    double rate = 0;
    int32_t frozen = 0;
    SR_OK(shardrec_collection_step(rank.tables(), &step));
    SR_OK(shardrec_collection_learning_rate(rank.tables(), 0, &rate));
    SR_OK(shardrec_collection_frozen(rank.tables(), 0, &frozen));
    EXPECT_EQ(step, 3);
    EXPECT_EQ(rate, 0.25);
    EXPECT_EQ(frozen, 1);
    // No row counts as changed, and equal steps keep the replicas equal.
    double synced = -1;
    SR_OK(shardrec_collection_sync_replicas(rank.tables()));
    SR_OK(shardrec_collection_stat(rank.tables(), SHARDREC_STAT_ROWS_SYNCED, SHARDREC_ALL_TABLES,
                                   &synced));
    if (GetParam().sync == SHARDREC_REPLICA_SYNC_TOUCHED) {
      EXPECT_EQ(synced, 0);
    }
    SR_OK(shardrec_collection_set_frozen(rank.tables(), 0, 0));
    rank.step(number / 2, 1);
    SR_OK(shardrec_collection_check_replicas(rank.tables()));
  });
}

INSTANTIATE_TEST_SUITE_P(Cut, ReplicaCopies,
                         ::testing::Values(Copied{"ByRows", SHARDREC_SHARDING_ROW_WISE},
                                           Copied{"ByColumns", SHARDREC_SHARDING_COLUMN_WISE},
                                           Copied{"ByRowsInBfloat16", SHARDREC_SHARDING_ROW_WISE,
                                                  SHARDREC_OPTIMIZER_ADAM, SHARDREC_BFLOAT16},
                                           Copied{"ByRowsInFloat16Full", SHARDREC_SHARDING_ROW_WISE,
                                                  SHARDREC_OPTIMIZER_ADAM, SHARDREC_FLOAT16,
                                                  SHARDREC_REPLICA_SYNC_FULL}),
                         [](const auto& test) { return std::string(test.param.name); });

// Gradients of the weights before are not those of what has come.
TEST(ReplicaFill, EndsBatchesBetweenForwardAndBackwardOnAllRanks) {
  run_ranks(2, 2, [&](int number, shardrec_comm* comm) {
    MeshRank rank(comm, {.sharding = SHARDREC_SHARDING_TABLE_WISE, .group = 1});
    SR_OK(rank.status());
    rank.create();
    rank.step(number, 1);
    SR_OK(rank.prepare_step(number, 1));
    SR_OK(shardrec_collection_replica_fill(rank.tables(), 1));
    const auto filled = rank.read(SHARDREC_TABLE_WEIGHTS);
    EXPECT_EQ(shardrec_lookup_backward(rank.lookup(), SHARDREC_UPDATE_APPLY),
              SHARDREC_INVALID_STATE)
        << shardrec_last_error();
    EXPECT_EQ(rank.read(SHARDREC_TABLE_WEIGHTS), filled);
    rank.step(4, 1);
    SR_OK(shardrec_collection_check_replicas(rank.tables()));
  });
}

// Replicated tables are equal before, and are as they were.
TEST(ReplicaFill, FillsCutTablesBesideReplicatedOnes) {
  for (const auto sync : {SHARDREC_REPLICA_SYNC_TOUCHED, SHARDREC_REPLICA_SYNC_FULL}) {
    run_ranks(4, 4, [&](int number, shardrec_comm* comm) {
      MeshRank rank(comm, {.rows = 300, .dim = 8, .sync = sync, .replicated_too = true});
      SR_OK(rank.status());
      rank.create();
      for (int64_t step = 0; step < 3; ++step) rank.step(10 * step + number, 1);
      EXPECT_EQ(shardrec_collection_check_replicas(rank.tables()), SHARDREC_DISAGREEMENT);
      const auto cut = rank.read(SHARDREC_TABLE_WEIGHTS, 8);
      const auto replicated = rank.read(SHARDREC_TABLE_WEIGHTS, 8, 1);
      SR_OK(shardrec_collection_replica_fill(rank.tables(), 1));
      SR_OK(shardrec_collection_check_replicas(rank.tables()));
      EXPECT_EQ(rank.read(SHARDREC_TABLE_WEIGHTS, 8, 1), replicated);
      EXPECT_EQ(rank.read(SHARDREC_TABLE_WEIGHTS, 8) == cut, rank.replica() == 1);
      for (int64_t step = 0; step < 2; ++step) rank.step(7 * step + rank.replica(), 1);
      SR_OK(shardrec_collection_sync_replicas(rank.tables()));
      SR_OK(shardrec_collection_check_replicas(rank.tables()));
    });
  }
}

// The bits of a row of the own memory: no call writes one of the copies of a replicated table alone.
void overwrite(shardrec_collection* tables, int64_t row, float value) {
  const auto use = capi::enter(tables, capi::Access::kShared);
  embedding::Collection& collection = use->collection();
  const auto pieces = embedding::stored_pieces(collection.layout(), collection.shards(),
                                               embedding::PieceUse::kLoad);
  const embedding::StoredPiece& piece = pieces[0];
  std::vector<float> values(static_cast<size_t>(piece.cells.cols), value);
  const compute::RowTransfer transfer{
      .from = {values.data(), compute::Element::kFloat32, values.size()},
      .to = {piece.at_row(row), piece.element, piece.stride},
      .rows = 1,
      .width = piece.cells.cols};
  collection.backend().transfer().copy_from_host({&transfer, 1});
}

TEST(ReplicatedTables, AreComparedOverAllRanks) {
  for (const bool on_mesh : {true, false}) {
    run_ranks(4, 4, [&](int number, shardrec_comm* comm) {
      MeshRank rank(comm, {.sharding = SHARDREC_SHARDING_DATA_PARALLEL,
                           .group = on_mesh ? 2 : 4,
                           .rows = 300,
                           .dim = 8});
      SR_OK(rank.status());
      SR_OK(rank.create_collection(on_mesh ? rank.mesh() : nullptr));
      rank.create_lookup();
      rank.step(number, 1);
      SR_OK(shardrec_collection_check_replicas(rank.tables()));
      if (number == 2) overwrite(rank.tables(), 250, 7);
      expect_differs(rank.tables(), 250, 2, "weights");
      if (number == 2) overwrite(rank.tables(), 250, std::numeric_limits<float>::quiet_NaN());
      if (number != 2) overwrite(rank.tables(), 250, -std::numeric_limits<float>::quiet_NaN());
      SR_OK(shardrec_collection_check_replicas(rank.tables()));
    });
  }
}

TEST(ReplicaCheck, KnowsTheZeroFromItsNegative) {
  run_ranks(2, 2, [&](int number, shardrec_comm* comm) {
    MeshRank rank(comm, {.sharding = SHARDREC_SHARDING_TABLE_WISE, .group = 1});
    SR_OK(rank.status());
    rank.create();
    write_row(rank, SHARDREC_TABLE_WEIGHTS, 4, MeshRank::kDim, number == 0 ? 0.0F : -0.0F, true);
    expect_differs(rank.tables(), 4, 1, "weights");
  });
}

}  // namespace
}  // namespace shardrec::test
