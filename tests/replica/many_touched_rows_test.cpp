// Syncs of more changed rows than are listed or told of at once, and of rows that several threads have changed.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "replica/mesh_rank.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

double synced_rows(MeshRank& rank) {
  double rows = -1;
  SR_EXPECT_OK(shardrec_collection_stat(rank.tables(), SHARDREC_STAT_ROWS_SYNCED,
                                        SHARDREC_ALL_TABLES, &rows));
  return rows;
}

void write_range(MeshRank& rank, int64_t first, std::vector<float> values) {
  const auto rows = static_cast<int64_t>(values.size());
  const shardrec_tensor written = matrix(values.data(), rows, 1);
  SR_EXPECT_OK(shardrec_collection_write_range(rank.tables(), 0, SHARDREC_TABLE_WEIGHTS, first,
                                               rows, &written));
}

// The table's bits go to the others in two pieces (ChangedUnion): one replica's first piece is a few numbers, the other
// one's is all bits. A block lists as many rows as there are numbers of 64 bits in 4 MiB (ReplicaMeans).
TEST(ManyTouchedRows, AreToldOfInPiecesAndListedBlockByBlock) {
  constexpr int64_t kPiece = int64_t{1} << 21;
  constexpr int64_t kManyRows = kPiece + 1000;
  constexpr int64_t kWritten = 600'000;
  run_ranks(2, 2, [&](int number, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 60));
    MeshRank rank(comm, {.sharding = SHARDREC_SHARDING_TABLE_WISE,
                         .group = 1,
                         .optimizer = SHARDREC_OPTIMIZER_SGD,
                         .rows = kManyRows,
                         .dim = 1});
    SR_OK(rank.status());
    rank.create();
    std::vector<float> expected = rank.read(SHARDREC_TABLE_WEIGHTS);
    const auto written = [&](int64_t first, int64_t count) {
      std::vector<float> values;
      for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>((first + i) % 8191));
      for (size_t i = 0; i < values.size(); ++i) {
        float& mean = expected[static_cast<size_t>(first) + i];
        mean = (mean + values[i]) / 2;
      }
      return values;
    };
    const auto many = written(1000, kWritten);
    const auto at_border = written(kPiece - 2, 4);
    const auto last = written(kManyRows - 1, 1);
    if (number == 0) {
      write_range(rank, 1000, many);
    } else {
      write_range(rank, kPiece - 2, at_border);
      write_range(rank, kManyRows - 1, last);
    }
    SR_OK(shardrec_collection_sync_replicas(rank.tables()));
    EXPECT_EQ(synced_rows(rank), kWritten + 5);
    EXPECT_TRUE(rank.read(SHARDREC_TABLE_WEIGHTS) == expected);
  });
}

// One bag of more occurrences than a thread updates at once: neighbouring threads share words of the bits.
TEST(ManyTouchedRows, OfSeveralThreadsAreAllSynced) {
  constexpr int64_t kFewRows = 4000;
  constexpr int64_t kDim = 4;
  constexpr int64_t kOccurrences = 12'000;
  std::set<int64_t> touched;
  const auto ids_of = [](int number) {
    std::mt19937_64 random(static_cast<uint64_t>(number));
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < kOccurrences; ++i) {
      ids.push_back(3 * static_cast<int64_t>(random() % (kFewRows / 3)));
    }
    return ids;
  };
  for (const int number : {0, 1}) {
    for (const int64_t id : ids_of(number)) touched.insert(id);
  }
  run_ranks(2, 2, [&](int number, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 60));
    std::vector<std::vector<float>> after;
    for (const auto mode : {SHARDREC_REPLICA_SYNC_TOUCHED, SHARDREC_REPLICA_SYNC_FULL}) {
      MeshRank rank(comm,
                    {.sharding = SHARDREC_SHARDING_TABLE_WISE,
                     .group = 1,
                     .rows = kFewRows,
                     .dim = kDim,
                     .sync = mode,
                     .options = [](shardrec_options* options) {
                       SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_THREADS, 3));
                     }});
      SR_OK(rank.status());
      rank.create();
      std::vector<int64_t> ids = ids_of(number);
      std::vector<int64_t> lengths = {kOccurrences};
      std::vector<float> output(kDim);
      std::vector<float> slopes = {0.5F, -1, 0.25F, 2};
      const shardrec_tensor values = vector_of(ids);
      const shardrec_tensor length = vector_of(lengths);
      const shardrec_tensor out = matrix(output.data(), 1, kDim);
      const shardrec_tensor gradient = matrix(slopes.data(), 1, kDim);
      SR_OK(begin_batch(rank.lookup(), {.batch_size = 1, .values = &values, .lengths = &length}));
      SR_OK(shardrec_lookup_forward(rank.lookup(), 0, &out));
      SR_OK(shardrec_lookup_set_gradient(rank.lookup(), 0, &gradient));
      SR_OK(shardrec_lookup_backward(rank.lookup(), SHARDREC_UPDATE_APPLY));
      SR_OK(shardrec_collection_sync_replicas(rank.tables()));
      if (mode == SHARDREC_REPLICA_SYNC_TOUCHED) {
        EXPECT_EQ(synced_rows(rank), static_cast<double>(touched.size()));
      }
      after.push_back(rank.read(SHARDREC_TABLE_WEIGHTS));
    }
    EXPECT_EQ(after[0], after[1]);
  });
}

}  // namespace
}  // namespace shardrec::test
