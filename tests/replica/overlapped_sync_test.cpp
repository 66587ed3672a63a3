// Syncs in two halves, between which training goes on: what rows become is the mean, or what their copies have gained by it.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "embedding/tables/stored_pieces.h"
#include "objects/collection_object.h"
#include "plan/model/optimizer_step.h"
#include "replica/mesh_rank.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

constexpr int64_t kSyncRows = 200;
constexpr int64_t kSyncDim = 12;

struct SyncRun {
  const char* name;
  int world;
  int group;
  shardrec_sharding sharding = SHARDREC_SHARDING_ROW_WISE;
  shardrec_optimizer optimizer = SHARDREC_OPTIMIZER_SGD;
  shardrec_dtype dtype = SHARDREC_FLOAT32;
  shardrec_replica_sync sync = SHARDREC_REPLICA_SYNC_TOUCHED;
  int64_t rows = kSyncRows;
  bool replicated_too = false;

  int replicas() const { return world / group; }
};

Arrangement arrangement_of(const SyncRun& run) {
  return {.sharding = run.sharding,
          .group = run.group,
          .optimizer = run.optimizer,
          .rows = run.rows,
          .dim = kSyncDim,
          .dtype = run.dtype,
          .sync = run.sync,
          .replicated_too = run.replicated_too};
}

// A part of a table, as all ranks of a replica read it.
struct SyncPart {
  std::vector<float> numbers;
  bool of_weights = false;
  bool of_squares = false;
};

std::vector<SyncPart> sync_parts_of(MeshRank& rank, const SyncRun& run) {
  std::vector<SyncPart> parts;
  parts.push_back({.numbers = rank.read(SHARDREC_TABLE_WEIGHTS, kSyncDim), .of_weights = true});
  if (run.replicated_too) {
    parts.push_back(
        {.numbers = rank.read(SHARDREC_TABLE_WEIGHTS, kSyncDim, 1), .of_weights = true});
  }
  const auto states = plan::states_of(run.optimizer);
  for (size_t k = 0; k < states.size(); ++k) {
    const std::string name = states[k].name;
    parts.push_back(
        {.numbers = rank.read(static_cast<shardrec_table_part>(SHARDREC_TABLE_STATE + k),
                              states[k].by_row ? 1 : kSyncDim),
         .of_squares = name == "sum" || name == "exp_avg_sq"});
  }
  return parts;
}

void expect_same(const std::vector<SyncPart>& got, const std::vector<SyncPart>& expected,
                 const char* when) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t p = 0; p < got.size(); ++p) {
    EXPECT_EQ(got[p].numbers, expected[p].numbers) << when << ", part " << p;
  }
}

// Steps of the rank's own, the same number on all ranks.
void train(MeshRank& rank, std::mt19937_64& random, int steps, int64_t rows) {
  for (int step = 0; step < steps; ++step) {
    rank.step(static_cast<int64_t>(random() % static_cast<uint64_t>(rows)),
              0.5F + static_cast<float>(random() % 8));
  }
}

double synced_of(MeshRank& rank, shardrec_stat stat) {
  double value = -1;
  SR_EXPECT_OK(shardrec_collection_stat(rank.tables(), stat, SHARDREC_ALL_TABLES, &value));
  return value;
}

class OverlappedSync : public ::testing::TestWithParam<SyncRun> {
 protected:
  // Calls body(number of the rank, one, another): two of the same collection on one mesh.
  template <class Body>
  static void on_ranks(Body body) {
    run_ranks(GetParam().world, GetParam().world, [&](int number, shardrec_comm* comm) {
      SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 60));
      MeshRank rank(comm, arrangement_of(GetParam()));
      SR_OK(rank.status());
      rank.create();
      body(number, comm, rank);
    });
  }
};

TEST_P(OverlappedSync, WithNothingInBetweenIsTheBlockingOne) {
  const SyncRun run = GetParam();
  on_ranks([&](int number, shardrec_comm* comm, MeshRank& overlapped) {
    MeshRank blocking(comm, arrangement_of(run));
    SR_OK(blocking.status());
    blocking.create();
    std::mt19937_64 random(3000 + static_cast<uint64_t>(number));
    std::mt19937_64 same_random = random;
    for (int sync = 0; sync < 4; ++sync) {
      const int steps = sync == 2 ? 0 : 1 + sync;
      train(overlapped, random, steps, run.rows);
      train(blocking, same_random, steps, run.rows);
      SR_OK(shardrec_collection_sync_begin(overlapped.tables()));
      SR_OK(shardrec_collection_sync_wait(overlapped.tables()));
      SR_OK(shardrec_collection_sync_replicas(blocking.tables()));
      expect_same(sync_parts_of(overlapped, run), sync_parts_of(blocking, run), "after a sync");
      SR_OK(shardrec_collection_check_replicas(overlapped.tables()));
    }
    for (const auto stat : {SHARDREC_STAT_ROWS_SYNCED, SHARDREC_STAT_BYTES_SYNC}) {
      EXPECT_EQ(synced_of(overlapped, stat), synced_of(blocking, stat));
    }
  });
}

// The pairwise tree over two or four replicas, divided once.
float mean_of(const std::vector<float>& of_replicas) {
  float sum = of_replicas[0] + of_replicas[1];
  if (of_replicas.size() == 4) sum += of_replicas[2] + of_replicas[3];
  return sum / static_cast<float>(of_replicas.size());
}

// Of float32, and of as many replicas that the mean of equal numbers is that number.
class OverlappedTraining : public OverlappedSync {};

TEST_P(OverlappedTraining, GetsWhatTheCopiesOfItsRowsHaveGained) {
  const SyncRun run = GetParam();
  std::mutex mutex;
  std::barrier<> together(run.world);
  const auto replicas = static_cast<size_t>(run.replicas());
  std::vector<std::vector<SyncPart>> copies(replicas);
  std::vector<std::vector<SyncPart>> at_the_end(replicas);
  on_ranks([&](int number, shardrec_comm*, MeshRank& rank) {
    std::mt19937_64 random(4000 + static_cast<uint64_t>(number));
    const auto replica = static_cast<size_t>(rank.replica());
    const auto share = [&](std::vector<std::vector<SyncPart>>& by_replica) {
      std::vector<SyncPart> parts = sync_parts_of(rank, run);
      {
        const std::lock_guard lock(mutex);
        by_replica[replica] = std::move(parts);
      }
      together.arrive_and_wait();
    };
    for (int sync = 0; sync < 3; ++sync) {
      train(rank, random, 2, run.rows);
      share(copies);
      SR_EXPECT_OK(shardrec_collection_sync_begin(rank.tables()));
      train(rank, random, 3, run.rows);
      std::vector<SyncPart> expected = sync_parts_of(rank, run);
      int moved = 0;
      for (size_t p = 0; p < expected.size(); ++p) {
        for (size_t i = 0; i < expected[p].numbers.size(); ++i) {
          std::vector<float> of_replicas;
          for (const auto& each : copies) of_replicas.push_back(each[p].numbers[i]);
          const float mean = mean_of(of_replicas);
          const float copy = copies[replica][p].numbers[i];
          float& x = expected[p].numbers[i];
          moved += x != copy ? 1 : 0;
          x = x == copy ? mean : x + (mean - copy);
          if (expected[p].of_squares) x = std::max(x, 0.0F);
        }
      }
      EXPECT_GT(moved, 0);
      SR_EXPECT_OK(shardrec_collection_sync_wait(rank.tables()));
      expect_same(sync_parts_of(rank, run), expected, "after wait");
      EXPECT_EQ(shardrec_collection_check_replicas(rank.tables()), SHARDREC_DISAGREEMENT);
      together.arrive_and_wait();
    }
    // Rows that went on count as changed.
    share(at_the_end);
    SR_EXPECT_OK(shardrec_collection_sync_replicas(rank.tables()));
    std::vector<SyncPart> expected = at_the_end[replica];
    for (size_t p = 0; p < expected.size(); ++p) {
      for (size_t i = 0; i < expected[p].numbers.size(); ++i) {
        std::vector<float> of_replicas;
        for (const auto& each : at_the_end) of_replicas.push_back(each[p].numbers[i]);
        expected[p].numbers[i] = mean_of(of_replicas);
      }
    }
    expect_same(sync_parts_of(rank, run), expected, "after the blocking sync");
    SR_EXPECT_OK(shardrec_collection_check_replicas(rank.tables()));
  });
}

// Several blocks of an exchange: 60,000 rows are more than 4 MiB with their state.
constexpr SyncRun kManyRows{"ManyRows",
                            2,
                            1,
                            SHARDREC_SHARDING_TABLE_WISE,
                            SHARDREC_OPTIMIZER_ADAGRAD,
                            SHARDREC_FLOAT32,
                            SHARDREC_REPLICA_SYNC_FULL,
                            60000};
constexpr SyncRun kSgd{"Sgd", 2, 1, SHARDREC_SHARDING_TABLE_WISE};
constexpr SyncRun kRowwiseAdagrad{"RowwiseAdagradFull",
                                  4,
                                  2,
                                  SHARDREC_SHARDING_ROW_WISE,
                                  SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD,
                                  SHARDREC_FLOAT32,
                                  SHARDREC_REPLICA_SYNC_FULL};
constexpr SyncRun kAdam{"AdamOfColumns", 4, 2, SHARDREC_SHARDING_COLUMN_WISE,
                        SHARDREC_OPTIMIZER_ADAM};
constexpr SyncRun kAdagrad{"AdagradOfFourReplicas", 4, 1, SHARDREC_SHARDING_TABLE_WISE,
                           SHARDREC_OPTIMIZER_ADAGRAD};
constexpr SyncRun kLamb{
    "LambInFloat16", 2, 1, SHARDREC_SHARDING_TABLE_WISE, SHARDREC_OPTIMIZER_LAMB, SHARDREC_FLOAT16};
constexpr SyncRun kPartialAdam{"PartialAdamInBfloat16",
                               4,
                               2,
                               SHARDREC_SHARDING_COLUMN_WISE,
                               SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_ADAM,
                               SHARDREC_BFLOAT16,
                               SHARDREC_REPLICA_SYNC_FULL};
constexpr SyncRun kBesideReplicated{"BesideReplicated",
                                    4,
                                    2,
                                    SHARDREC_SHARDING_ROW_WISE,
                                    SHARDREC_OPTIMIZER_ADAM,
                                    SHARDREC_FLOAT32,
                                    SHARDREC_REPLICA_SYNC_TOUCHED,
                                    kSyncRows,
                                    true};
constexpr SyncRun kBesideReplicatedFull{"BesideReplicatedFull",
                                        4,
                                        2,
                                        SHARDREC_SHARDING_ROW_WISE,
                                        SHARDREC_OPTIMIZER_ADAM,
                                        SHARDREC_FLOAT32,
                                        SHARDREC_REPLICA_SYNC_FULL,
                                        kSyncRows,
                                        true};
constexpr SyncRun kLars{"LarsOfThreeReplicas", 3, 1, SHARDREC_SHARDING_TABLE_WISE,
                        SHARDREC_OPTIMIZER_LARS_SGD};

std::string name_of(const ::testing::TestParamInfo<SyncRun>& test) { return test.param.name; }

INSTANTIATE_TEST_SUITE_P(Worlds, OverlappedSync,
                         ::testing::Values(kSgd, kRowwiseAdagrad, kAdam, kAdagrad, kLamb,
                                           kPartialAdam, kLars, kManyRows, kBesideReplicated,
                                           kBesideReplicatedFull),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Worlds, OverlappedTraining,
                         ::testing::Values(kSgd, kRowwiseAdagrad, kAdam, kAdagrad, kManyRows,
                                           kBesideReplicated, kBesideReplicatedFull),
                         name_of);

constexpr SyncRun kTwo{"two", 2, 1, SHARDREC_SHARDING_TABLE_WISE, SHARDREC_OPTIMIZER_ADAM};

void write_all(MeshRank& rank, shardrec_table_part part, float value) {
  const std::vector<float> values(static_cast<size_t>(kSyncRows * kSyncDim), value);
  std::vector<float> copy = values;
  const shardrec_tensor written = matrix(copy.data(), kSyncRows, kSyncDim);
  SR_EXPECT_OK(shardrec_collection_write_range(rank.tables(), 0, part, 0, kSyncRows, &written));
}

// All states in the own memory: calls write no rows between the halves.
void overwrite_states(shardrec_collection* tables, float value) {
  const auto use = capi::enter(tables, capi::Access::kShared);
  embedding::Collection& collection = use->collection();
  for (const auto& piece : embedding::stored_pieces(collection.layout(), collection.shards(),
                                                    embedding::PieceUse::kLoad)) {
    if (piece.part == SHARDREC_TABLE_WEIGHTS) continue;
    const auto width = static_cast<size_t>(piece.row_width());
    const std::vector<float> values(static_cast<size_t>(piece.cells.rows) * width, value);
    const compute::RowTransfer transfer{.from = {values.data(), compute::Element::kFloat32, width},
                                        .to = {piece.at_row(0), piece.element, piece.stride},
                                        .rows = piece.cells.rows,
                                        .width = piece.row_width()};
    collection.backend().transfer().copy_from_host({&transfer, 1});
  }
}

// 100 on one replica and 0 on the other have the mean 50: what has come down to 1 meanwhile would be 1 + 50 - 100.
TEST(OverlappedSyncOfStates, LeavesNoSumOfSquaresBelowZero) {
  run_ranks(2, 2, [&](int number, shardrec_comm* comm) {
    MeshRank rank(comm, arrangement_of(kTwo));
    SR_OK(rank.status());
    rank.create();
    for (const auto part : {SHARDREC_TABLE_STATE, SHARDREC_TABLE_STATE_2}) {
      write_all(rank, part, number == 0 ? 100 : 0);
    }
    SR_OK(shardrec_collection_sync_begin(rank.tables()));
    if (number == 0) overwrite_states(rank.tables(), 1);
    SR_OK(shardrec_collection_sync_wait(rank.tables()));
    const std::vector<float> means = rank.read(SHARDREC_TABLE_STATE, kSyncDim);
    const std::vector<float> squares = rank.read(SHARDREC_TABLE_STATE_2, kSyncDim);
    for (size_t i = 0; i < means.size(); ++i) {
      EXPECT_EQ(means[i], number == 0 ? -49 : 50);
      EXPECT_EQ(squares[i], number == 0 ? 0 : 50);
    }
  });
}

// More rows than operations take numbers of at once, of states of one value per row.
TEST(OverlappedSyncOfStates, ListsMoreRowsThanOperationsTakeAtOnce) {
  constexpr int64_t kRows = 600000;
  run_ranks(2, 2, [&](int number, shardrec_comm* comm) {
    MeshRank rank(comm,
                  {.sharding = SHARDREC_SHARDING_TABLE_WISE, .group = 1, .rows = kRows, .dim = 4});
    SR_OK(rank.status());
    rank.create();
    for (const auto part : {SHARDREC_TABLE_WEIGHTS, SHARDREC_TABLE_STATE}) {
      const int64_t columns = part == SHARDREC_TABLE_WEIGHTS ? 4 : 1;
      std::vector<float> values(static_cast<size_t>((kRows - 1) * columns));
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] =
            static_cast<float>(i / static_cast<size_t>(columns)) + 2 * static_cast<float>(number);
      }
      const shardrec_tensor written = matrix(values.data(), kRows - 1, columns);
      SR_OK(shardrec_collection_write_range(rank.tables(), 0, part, 0, kRows - 1, &written));
    }
    SR_OK(shardrec_collection_sync_begin(rank.tables()));
    SR_OK(shardrec_collection_sync_wait(rank.tables()));
    EXPECT_EQ(synced_of(rank, SHARDREC_STAT_ROWS_SYNCED), kRows - 1);
    for (const auto part : {SHARDREC_TABLE_WEIGHTS, SHARDREC_TABLE_STATE}) {
      const size_t columns = part == SHARDREC_TABLE_WEIGHTS ? 4 : 1;
      const std::vector<float> got = rank.read(part, static_cast<int64_t>(columns));
      size_t wrong = 0;
      for (size_t i = 0; i < static_cast<size_t>(kRows - 1) * columns; ++i) {
        wrong += got[i] != static_cast<float>(i / columns) + 1 ? 1 : 0;
      }
      EXPECT_EQ(wrong, 0U);
    }
  });
}

// A directory of checkpoints, as long as this is there.
class SavedSyncs {
 public:
  SavedSyncs() { EXPECT_NE(::mkdtemp(path_.data()), nullptr); }
  ~SavedSyncs() { std::filesystem::remove_all(path_); }
  SavedSyncs(const SavedSyncs&) = delete;
  SavedSyncs& operator=(const SavedSyncs&) = delete;

  const char* path() const { return path_.c_str(); }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "shardrec-XXXXXX").string();
};

TEST(OverlappedSyncCalls, ThatDoNotGoBetweenItsHalvesAreRefusedAndHarmNothing) {
  const SavedSyncs saved;
  run_ranks(2, 2, [&](int number, shardrec_comm* comm) {
    MeshRank rank(comm, arrangement_of(kTwo));
    SR_OK(rank.status());
    rank.create();
    shardrec_checkpoint* checkpoint = nullptr;
    SR_OK(shardrec_checkpoint_create(comm, saved.path(), nullptr, &checkpoint));
    SR_OK(shardrec_checkpoint_add_collection(checkpoint, "tables", rank.tables()));
    SR_OK(shardrec_checkpoint_commit(checkpoint, 1, nullptr));
    shardrec_collection* const tables = rank.tables();
    EXPECT_EQ(shardrec_collection_sync_wait(tables), SHARDREC_INVALID_STATE);
    rank.step(10 * number, 1);
    SR_OK(shardrec_collection_sync_begin(tables));
    EXPECT_EQ(shardrec_collection_sync_begin(tables), SHARDREC_INVALID_STATE);
    EXPECT_EQ(shardrec_collection_sync_replicas(tables), SHARDREC_INVALID_STATE);
    EXPECT_EQ(shardrec_collection_check_replicas(tables), SHARDREC_INVALID_STATE);
    EXPECT_EQ(shardrec_collection_replica_fill(tables, 0), SHARDREC_INVALID_STATE);
    // The same on all replicas would become another number on each.
    const std::vector<SyncPart> before = sync_parts_of(rank, kTwo);
    std::vector<float> values(static_cast<size_t>(kSyncDim), 3);
    const shardrec_tensor written = matrix(values.data(), 1, kSyncDim);
    std::vector<int64_t> ids{0};
    const shardrec_tensor id = vector_of(ids);
    EXPECT_EQ(shardrec_collection_write_range(tables, 0, SHARDREC_TABLE_WEIGHTS, 0, 1, &written),
              SHARDREC_INVALID_STATE);
    EXPECT_EQ(shardrec_collection_write_rows(tables, 0, SHARDREC_TABLE_WEIGHTS, &id, &written),
              SHARDREC_INVALID_STATE);
    expect_same(sync_parts_of(rank, kTwo), before, "after the refusal");
    SR_OK(shardrec_checkpoint_open(checkpoint, 1));
    EXPECT_EQ(shardrec_checkpoint_load(checkpoint, nullptr), SHARDREC_INVALID_STATE)
        << shardrec_last_error();
    // Gradients that are under way are refused by both halves.
    SR_OK(rank.prepare_step(number, 1));
    SR_OK(shardrec_lookup_send_gradients(rank.lookup(), SHARDREC_UPDATE_APPLY));
    EXPECT_EQ(shardrec_collection_sync_wait(tables), SHARDREC_INVALID_STATE);
    SR_OK(shardrec_lookup_backward(rank.lookup(), SHARDREC_UPDATE_APPLY));
    SR_OK(shardrec_collection_sync_wait(tables));
    EXPECT_EQ(shardrec_collection_sync_wait(tables), SHARDREC_INVALID_STATE);
    SR_OK(shardrec_collection_sync_replicas(tables));
    SR_OK(shardrec_collection_check_replicas(tables));
    SR_OK(shardrec_checkpoint_load(checkpoint, nullptr));
    shardrec_checkpoint_destroy(&checkpoint);
  });
}

TEST(OverlappedSyncCalls, WaitMayBeCalledAgainWhereSettingsDiffer) {
  run_ranks(2, 2, [&](int number, shardrec_comm* comm) {
    MeshRank rank(comm, arrangement_of(kTwo));
    SR_OK(rank.status());
    rank.create();
    rank.step(10 * number, 1);
    SR_OK(shardrec_collection_set_frozen(rank.tables(), 0, number));
    EXPECT_EQ(shardrec_collection_sync_begin(rank.tables()), SHARDREC_DISAGREEMENT);
    SR_OK(shardrec_collection_set_frozen(rank.tables(), 0, 0));
    SR_OK(shardrec_collection_sync_begin(rank.tables()));
    SR_OK(shardrec_collection_set_learning_rate(rank.tables(), 0, number == 0 ? 0.1 : 0.2));
    const std::vector<SyncPart> before = sync_parts_of(rank, kTwo);
    EXPECT_EQ(shardrec_collection_sync_wait(rank.tables()), SHARDREC_DISAGREEMENT);
    expect_same(sync_parts_of(rank, kTwo), before, "after the refusal");
    SR_OK(shardrec_collection_set_learning_rate(rank.tables(), 0, 0.1));
    SR_OK(shardrec_collection_sync_wait(rank.tables()));
    SR_OK(shardrec_collection_check_replicas(rank.tables()));
  });
}

TEST(OverlappedSyncCalls, DoNothingWithoutAMeshOrWithOneReplica) {
  run_ranks(2, 2, [&](int number, shardrec_comm* comm) {
    for (const bool on_mesh : {false, true}) {
      MeshRank rank(comm, {.group = 2});
      SR_OK(rank.status());
      SR_OK(rank.create_collection(on_mesh ? rank.mesh() : nullptr));
      rank.create_lookup();
      rank.step(number, 1);
      const auto weights = rank.read(SHARDREC_TABLE_WEIGHTS);
      SR_EXPECT_OK(shardrec_collection_sync_begin(rank.tables()));
      SR_EXPECT_OK(shardrec_collection_sync_wait(rank.tables()));
      SR_EXPECT_OK(shardrec_collection_check_replicas(rank.tables()));
      SR_EXPECT_OK(shardrec_collection_replica_fill(rank.tables(), 0));
      EXPECT_EQ(shardrec_collection_replica_fill(rank.tables(), 1), SHARDREC_INVALID_ARGUMENT);
      EXPECT_EQ(rank.read(SHARDREC_TABLE_WEIGHTS), weights);
    }
  });
}

// Checkpoints know whether replicas are equal: after wait they are where no step came in between.
TEST(OverlappedSyncCalls, LeaveTablesThatAreSavedWhereNoStepCameInBetween) {
  const SavedSyncs saved;
  run_ranks(2, 2, [&](int number, shardrec_comm* comm) {
    MeshRank rank(comm, arrangement_of(kTwo));
    SR_OK(rank.status());
    rank.create();
    shardrec_checkpoint* checkpoint = nullptr;
    SR_OK(shardrec_checkpoint_create(comm, saved.path(), nullptr, &checkpoint));
    SR_OK(shardrec_checkpoint_add_collection(checkpoint, "tables", rank.tables()));
    rank.step(number, 1);
    EXPECT_EQ(shardrec_checkpoint_commit(checkpoint, 1, nullptr), SHARDREC_INVALID_STATE);
    SR_OK(shardrec_collection_sync_begin(rank.tables()));
    EXPECT_EQ(shardrec_checkpoint_commit(checkpoint, 1, nullptr), SHARDREC_INVALID_STATE);
    SR_OK(shardrec_collection_sync_wait(rank.tables()));
    SR_EXPECT_OK(shardrec_checkpoint_commit(checkpoint, 1, nullptr));
    SR_OK(shardrec_collection_sync_begin(rank.tables()));
    rank.step(number, 1);
    SR_OK(shardrec_collection_sync_wait(rank.tables()));
    EXPECT_EQ(shardrec_checkpoint_commit(checkpoint, 2, nullptr), SHARDREC_INVALID_STATE);
    shardrec_checkpoint_destroy(&checkpoint);
  });
}

// The other ranks do not wait for one that will not come.
TEST(OverlappedSyncCalls, DestroyingTheCollectionBetweenTheHalvesEndsTheMesh) {
  std::barrier<> destroyed(2);
  run_ranks(2, 2, [&](int number, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 500));
    MeshRank rank(comm, arrangement_of(kTwo));
    SR_EXPECT_OK(rank.status());
    rank.create();
    rank.step(number, 1);
    SR_EXPECT_OK(shardrec_collection_sync_begin(rank.tables()));
    if (number == 0) rank.destroy();
    destroyed.arrive_and_wait();
    if (number == 1) {
      EXPECT_EQ(shardrec_collection_sync_wait(rank.tables()), SHARDREC_PEER_FAILED)
          << shardrec_last_error();
      EXPECT_EQ(rank.try_step(number, 1), SHARDREC_PEER_FAILED) << shardrec_last_error();
      EXPECT_EQ(shardrec_collection_sync_replicas(rank.tables()), SHARDREC_PEER_FAILED);
    }
    destroyed.arrive_and_wait();
  });
}

// A rank that begins none keeps the others, whose deadline tells of it.
TEST(OverlappedSyncCalls, ARankThatIsInAnotherCallIsNotWaitedFor) {
  run_ranks(4, 2, [&](int number, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 500));
    MeshRank rank(comm, {});
    SR_OK(rank.status());
    rank.create();
    const shardrec_status status = number == 3 ? shardrec_collection_check_replicas(rank.tables())
                                               : shardrec_collection_sync_begin(rank.tables());
    EXPECT_NE(status, SHARDREC_OK);
    if (number % 2 == 1) {
      EXPECT_EQ(status, SHARDREC_MISMATCH) << shardrec_last_error();
    }
  });
}

}  // namespace
}  // namespace shardrec::test
