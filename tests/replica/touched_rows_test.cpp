// Syncs that move only the rows that have changed (option REPLICA_SYNC): what comes out is what syncs of all rows
// give, over random traces of steps and writes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "plan/model/optimizer_step.h"
#include "replica/mesh_rank.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

constexpr int64_t kTraceRows = 300;
constexpr int64_t kTraceDim = 12;

struct Trace {
  int world;
  int group;
  shardrec_sharding sharding = SHARDREC_SHARDING_ROW_WISE;
  shardrec_optimizer optimizer = SHARDREC_OPTIMIZER_SGD;
  shardrec_dtype dtype = SHARDREC_FLOAT32;
  double max_norm = 0;
  int64_t rows = kTraceRows;

  int replicas() const { return world / group; }
};

Arrangement arrangement_of(const Trace& trace, shardrec_replica_sync mode) {
  return {.sharding = trace.sharding,
          .group = trace.group,
          .optimizer = trace.optimizer,
          .rows = trace.rows,
          .dim = kTraceDim,
          .dtype = trace.dtype,
          .max_norm = trace.max_norm,
          .sync = mode};
}

// Weights, then the states.
std::vector<float> all_of(MeshRank& rank, const Trace& trace) {
  std::vector<float> all = rank.read(SHARDREC_TABLE_WEIGHTS, kTraceDim);
  const auto states = plan::states_of(trace.optimizer);
  for (size_t k = 0; k < states.size(); ++k) {
    const auto state = rank.read(static_cast<shardrec_table_part>(SHARDREC_TABLE_STATE + k),
                                 states[k].by_row ? 1 : kTraceDim);
    all.insert(all.end(), state.begin(), state.end());
  }
  return all;
}

double stat_of(MeshRank& rank, shardrec_stat stat) {
  double value = -1;
  SR_EXPECT_OK(shardrec_collection_stat(rank.tables(), stat, SHARDREC_ALL_TABLES, &value));
  return value;
}

// Writes rows of the own replica: each rank some, by a range or by their ids.
void write_rows(MeshRank& rank, shardrec_table_part part, int64_t columns, bool by_range,
                int64_t rows, std::mt19937_64& random) {
  const auto count = static_cast<int64_t>(random() % 3);
  std::vector<int64_t> ids;
  const auto first = static_cast<int64_t>(random() % static_cast<uint64_t>(rows - 3));
  for (int64_t i = 0; i < count; ++i) {
    ids.push_back(by_range ? first + i
                           : static_cast<int64_t>(random() % static_cast<uint64_t>(rows)));
  }
  std::vector<float> values;
  for (int64_t i = 0; i < count * columns; ++i) {
    values.push_back(static_cast<float>(random() % 64) / 64);
  }
  const shardrec_tensor matrix_of_values = matrix(values.data(), count, columns);
  if (by_range) {
    SR_EXPECT_OK(shardrec_collection_write_range(rank.tables(), 0, part, first, count,
                                                 count == 0 ? nullptr : &matrix_of_values));
  } else {
    const shardrec_tensor list = vector_of(ids);
    SR_EXPECT_OK(shardrec_collection_write_rows(rank.tables(), 0, part,
                                                count == 0 ? nullptr : &list,
                                                count == 0 ? nullptr : &matrix_of_values));
  }
}

struct TraceOutcome {
  std::vector<std::vector<float>> after_syncs;
  double bytes = 0;
  double rows = 0;
};

// The same trace for the same seed, whatever the mode.
TraceOutcome run_trace(int number, shardrec_comm* comm, const Trace& trace,
                       shardrec_replica_sync mode, uint64_t seed) {
  constexpr int kSyncs = 5;
  TraceOutcome outcome;
  MeshRank rank(comm, arrangement_of(trace, mode));
  if (rank.status() == SHARDREC_OK) rank.create();
  EXPECT_EQ(rank.status(), SHARDREC_OK) << shardrec_last_error();
  if (rank.status() != SHARDREC_OK) return outcome;
  std::mt19937_64 of_all(seed);
  std::mt19937_64 of_replica(seed + 1000 + static_cast<uint64_t>(rank.replica()));
  std::mt19937_64 own(seed + 2000 + static_cast<uint64_t>(number));
  const auto states = plan::states_of(trace.optimizer);
  for (int sync = 0; sync < kSyncs; ++sync) {
    // The third sync follows the second one at once.
    const int acts = sync == 2 ? 0 : 1 + static_cast<int>(of_all() % 3);
    for (int act = 0; act < acts; ++act) {
      const auto id = static_cast<int64_t>(own() % static_cast<uint64_t>(trace.rows));
      SR_EXPECT_OK(rank.prepare_step(id, 0.5F + static_cast<float>(own() % 8)));
      SR_EXPECT_OK(shardrec_lookup_backward(
          rank.lookup(), of_all() % 4 == 0 ? SHARDREC_UPDATE_ACCUMULATE : SHARDREC_UPDATE_APPLY));
      // The replicas write rows, or do not, on their own.
      if (of_replica() % 3 != 0) continue;
      const size_t part = of_replica() % (states.size() + 1);
      const bool by_row = part != 0 && states[part - 1].by_row;
      write_rows(rank,
                 part == 0 ? SHARDREC_TABLE_WEIGHTS
                           : static_cast<shardrec_table_part>(SHARDREC_TABLE_STATE + part - 1),
                 by_row ? 1 : kTraceDim, of_replica() % 2 == 0, trace.rows, own);
    }
    SR_EXPECT_OK(shardrec_collection_sync_replicas(rank.tables()));
    outcome.after_syncs.push_back(all_of(rank, trace));
  }
  outcome.bytes = stat_of(rank, SHARDREC_STAT_BYTES_SYNC);
  outcome.rows = stat_of(rank, SHARDREC_STAT_ROWS_SYNCED);
  return outcome;
}

void expect_near(const std::vector<float>& touched, const std::vector<float>& full, double most) {
  ASSERT_EQ(touched.size(), full.size());
  for (size_t i = 0; i < full.size(); ++i) {
    ASSERT_NEAR(touched[i], full[i], most * (1 + std::abs(full[i]))) << i;
  }
}

class TouchedRows : public ::testing::TestWithParam<Trace> {};

TEST_P(TouchedRows, AreAllThatASyncNeedsToMove) {
  const Trace trace = GetParam();
  constexpr uint64_t kSeed = 1;
  std::mutex mutex;
  std::vector<std::vector<std::vector<float>>> by_replica(static_cast<size_t>(trace.replicas()));
  // Of all ranks: one whose boxes have none of the rows moves none.
  TraceOutcome all_touched;
  TraceOutcome all_full;
  run_ranks(trace.world, trace.world, [&](int number, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 60));
    const TraceOutcome touched =
        run_trace(number, comm, trace, SHARDREC_REPLICA_SYNC_TOUCHED, kSeed);
    const TraceOutcome full = run_trace(number, comm, trace, SHARDREC_REPLICA_SYNC_FULL, kSeed);
    ASSERT_EQ(touched.after_syncs.size(), full.after_syncs.size());
    for (size_t sync = 0; sync < full.after_syncs.size(); ++sync) {
      if (trace.replicas() % 3 != 0) {
        EXPECT_EQ(touched.after_syncs[sync], full.after_syncs[sync]) << "sync " << sync;
      } else {
        expect_near(touched.after_syncs[sync], full.after_syncs[sync], 1e-5);
      }
    }
    const std::lock_guard lock(mutex);
    all_touched.bytes += touched.bytes;
    all_touched.rows += touched.rows;
    all_full.bytes += full.bytes;
    all_full.rows += full.rows;
    // Interleaved: the ranks of a replica leave its number.
    by_replica[static_cast<size_t>(number % trace.replicas())] = touched.after_syncs;
  });
  EXPECT_GT(all_touched.rows, 0);
  EXPECT_LT(all_touched.rows, all_full.rows / 3);
  EXPECT_LT(all_touched.bytes, all_full.bytes / 2);
  for (size_t replica = 1; replica < by_replica.size(); ++replica) {
    EXPECT_EQ(by_replica[replica], by_replica[0]) << "replica " << replica;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, TouchedRows,
    ::testing::Values(Trace{2, 1, SHARDREC_SHARDING_TABLE_WISE, SHARDREC_OPTIMIZER_SGD},
                      Trace{2, 1, SHARDREC_SHARDING_TABLE_WISE, SHARDREC_OPTIMIZER_LAMB,
                            SHARDREC_FLOAT16},
                      Trace{4, 2, SHARDREC_SHARDING_ROW_WISE, SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD},
                      Trace{4, 2, SHARDREC_SHARDING_COLUMN_WISE,
                            SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_ADAM, SHARDREC_BFLOAT16},
                      Trace{4, 2, SHARDREC_SHARDING_COLUMN_WISE, SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD,
                            SHARDREC_FLOAT32, 0.25}));

// On the CPU only, for emulated devices take long.
INSTANTIATE_TEST_SUITE_P(
    ManyRanks, TouchedRows,
    ::testing::Values(
        Trace{6, 3, SHARDREC_SHARDING_GRID, SHARDREC_OPTIMIZER_ADAM},
        Trace{6, 2, SHARDREC_SHARDING_ROW_WISE, SHARDREC_OPTIMIZER_ADAGRAD},
        Trace{6, 2, SHARDREC_SHARDING_COLUMN_WISE, SHARDREC_OPTIMIZER_SGD, SHARDREC_FLOAT16},
        Trace{8, 2, SHARDREC_SHARDING_ROW_WISE, SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_LAMB},
        Trace{8, 2, SHARDREC_SHARDING_TABLE_WISE, SHARDREC_OPTIMIZER_LARS_SGD, SHARDREC_BFLOAT16}));

// Of the world's ranks each names two rows in a step, and one replica writes a third one.
TEST(TouchedRowsOfASync, AreCountedOnceAndSentInProportion) {
  constexpr int64_t kRows = 5000;
  const Trace trace{
      .world = 2, .group = 1, .sharding = SHARDREC_SHARDING_TABLE_WISE, .rows = kRows};
  run_ranks(2, 2, [&](int number, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 60));
    MeshRank rank(comm, arrangement_of(trace, SHARDREC_REPLICA_SYNC_TOUCHED));
    SR_OK(rank.status());
    rank.create();
    rank.step(100 + number, 1);  // and five rows further
    rank.step(105, 1);
    std::vector<int64_t> ids = {7};
    std::vector<float> values(kTraceDim, 1);
    const shardrec_tensor list = vector_of(ids);
    const shardrec_tensor row = matrix(values.data(), 1, kTraceDim);
    if (number == 1) {
      SR_EXPECT_OK(
          shardrec_collection_write_rows(rank.tables(), 0, SHARDREC_TABLE_WEIGHTS, &list, &row));
    }
    SR_OK(shardrec_collection_sync_replicas(rank.tables()));
    const std::set<int64_t> changed = {7, 100, 101, 105, 106, 110};
    EXPECT_EQ(stat_of(rank, SHARDREC_STAT_ROWS_SYNCED), static_cast<double>(changed.size()));
    // The list of the own rows; half of the block to the other, and its mean to it.
    const double block = static_cast<double>(changed.size()) * kTraceDim * sizeof(float);
    EXPECT_LT(stat_of(rank, SHARDREC_STAT_BYTES_SYNC), 2 * block + 64);
    EXPECT_GT(stat_of(rank, SHARDREC_STAT_BYTES_SYNC), 0);
    // Nothing has changed since.
    SR_OK(shardrec_collection_sync_replicas(rank.tables()));
    EXPECT_EQ(stat_of(rank, SHARDREC_STAT_ROWS_SYNCED), static_cast<double>(changed.size()));
  });
}

// More of them than are exchanged at once (ReplicaMeans), all of which one replica has written.
TEST(TouchedRowsOfASync, AreTheMeansOfTheReplicasBlockByBlock) {
  constexpr int64_t kRows = 5400;
  constexpr int64_t kWritten = 4400;
  constexpr int64_t kDim = 256;
  run_ranks(2, 2, [&](int number, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 60));
    MeshRank rank(comm, {.sharding = SHARDREC_SHARDING_TABLE_WISE,
                         .group = 1,
                         .optimizer = SHARDREC_OPTIMIZER_SGD,
                         .rows = kRows,
                         .dim = kDim});
    SR_OK(rank.status());
    rank.create();
    std::vector<float> expected = rank.read(SHARDREC_TABLE_WEIGHTS);
    std::vector<float> values(static_cast<size_t>(kWritten * kDim));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(i % 8191);
      float& mean = expected[i + static_cast<size_t>(1000 * kDim)];
      mean = (mean + values[i]) / 2;
    }
    const shardrec_tensor written = matrix(values.data(), kWritten, kDim);
    if (number == 1) {
      SR_EXPECT_OK(shardrec_collection_write_range(rank.tables(), 0, SHARDREC_TABLE_WEIGHTS, 1000,
                                                   kWritten, &written));
    }
    SR_OK(shardrec_collection_sync_replicas(rank.tables()));
    EXPECT_EQ(stat_of(rank, SHARDREC_STAT_ROWS_SYNCED), kWritten);
    EXPECT_EQ(rank.read(SHARDREC_TABLE_WEIGHTS), expected);
  });
}

// All rows but two of each box, and then all of them: bits take fewer bytes than the numbers.
TEST(TouchedRowsOfASync, AreAllOfThemWhereAllHaveChanged) {
  constexpr int64_t kRows = 20;
  const Trace trace{.world = 4, .group = 2, .rows = kRows};
  run_ranks(4, 4, [&](int number, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 60));
    std::vector<std::vector<float>> after;
    for (const auto mode : {SHARDREC_REPLICA_SYNC_TOUCHED, SHARDREC_REPLICA_SYNC_FULL}) {
      MeshRank rank(comm, arrangement_of(trace, mode));
      SR_OK(rank.status());
      rank.create();
      double synced = 0;
      // A step names a row and the one five rows further: none at first names rows 4, 9, 14 and 19.
      for (const bool all_named : {false, true}) {
        for (int64_t id = 0; id < kRows; ++id) {
          const bool left_out = !all_named && id % 5 == 4;
          rank.step(left_out ? 0 : id, 0.5F + static_cast<float>(number));
        }
        SR_OK(shardrec_collection_sync_replicas(rank.tables()));
        const bool all = all_named || mode == SHARDREC_REPLICA_SYNC_FULL;
        synced += static_cast<double>(kRows / 2 - (all ? 0 : 2));
        EXPECT_EQ(stat_of(rank, SHARDREC_STAT_ROWS_SYNCED), synced);
        after.push_back(all_of(rank, trace));
      }
    }
    EXPECT_EQ(after[0], after[2]);
    EXPECT_EQ(after[1], after[3]);
  });
}

// What a load fills is the same on all replicas, and rows that are changed before and after it are synced.
TEST(TouchedRowsOfASync, AreThoseBehindALoadToo) {
  const Trace trace{.world = 4, .group = 2, .optimizer = SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD};
  std::string directory = (std::filesystem::temp_directory_path() / "shardrec-XXXXXX").string();
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  run_ranks(4, 4, [&](int number, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 60));
    std::vector<std::vector<float>> after;
    for (const auto mode : {SHARDREC_REPLICA_SYNC_TOUCHED, SHARDREC_REPLICA_SYNC_FULL}) {
      MeshRank rank(comm, arrangement_of(trace, mode));
      SR_OK(rank.status());
      rank.create();
      const std::string run =
          directory + (mode == SHARDREC_REPLICA_SYNC_FULL ? "/full" : "/touched");
      shardrec_checkpoint* checkpoint = nullptr;
      SR_OK(shardrec_checkpoint_create(comm, run.c_str(), nullptr, &checkpoint));
      SR_OK(shardrec_checkpoint_add_collection(checkpoint, "tables", rank.tables()));
      rank.step(10 * number, 1);
      SR_OK(shardrec_collection_sync_replicas(rank.tables()));
      SR_OK(shardrec_checkpoint_commit(checkpoint, 1, nullptr));
      rank.step(200 + number, 2);
      SR_OK(shardrec_checkpoint_open(checkpoint, 1));
      SR_OK(shardrec_checkpoint_load(checkpoint, nullptr));
      after.push_back(all_of(rank, trace));
      rank.step(100 + 10 * number, 1);
      SR_OK(shardrec_collection_sync_replicas(rank.tables()));
      after.push_back(all_of(rank, trace));
      shardrec_checkpoint_destroy(&checkpoint);
    }
    EXPECT_EQ(after[0], after[2]);
    EXPECT_EQ(after[1], after[3]);
    EXPECT_NE(after[0], after[1]);
  });
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace shardrec::test
