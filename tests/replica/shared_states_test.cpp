// REPLICA_SYNC SHARDED beside what ExactReplicas and SharedRuns hold: each replica has the optimizer states of its rows alone,
// gets their gradients alone, and what reads or stores states finds them where they are.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <latch>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "embedding/tables/stored_pieces.h"
#include "objects/collection_object.h"
#include "plan/model/optimizer_step.h"
#include "replica/mesh_rank.h"
#include "support/ranks.h"
#include "support/tables_alone.h"

namespace shardrec::test {
namespace {

constexpr int64_t kSharedRows = 61;
constexpr int64_t kSharedDim = 8;

struct SharedRun {
  int world = 6;
  int group = 2;
  shardrec_sharding sharding = SHARDREC_SHARDING_ROW_WISE;
  shardrec_optimizer optimizer = SHARDREC_OPTIMIZER_ADAM;
  shardrec_placement placement = SHARDREC_PLACEMENT_INTRA_NODE_SYNC;

  Arrangement as(shardrec_replica_sync sync) const {
    return {.placement = placement,
            .sharding = sharding,
            .group = group,
            .optimizer = optimizer,
            .rows = kSharedRows,
            .dim = kSharedDim,
            .sync = sync};
  }
};

constexpr SharedRun kSharedStateRuns[] = {
    {},
    {.world = 2, .group = 1, .sharding = SHARDREC_SHARDING_TABLE_WISE},
    {.world = 4,
     .sharding = SHARDREC_SHARDING_COLUMN_WISE,
     .optimizer = SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD},
    {.group = 3, .placement = SHARDREC_PLACEMENT_INTRA_NODE_SHARD}};

// Weights and all states, as this rank reads them.
std::vector<std::vector<float>> shared_parts(MeshRank& rank, shardrec_optimizer optimizer) {
  std::vector<std::vector<float>> parts = {rank.read(SHARDREC_TABLE_WEIGHTS, kSharedDim)};
  const auto states = plan::states_of(optimizer);
  for (size_t k = 0; k < states.size(); ++k) {
    parts.push_back(rank.read(static_cast<shardrec_table_part>(SHARDREC_TABLE_STATE + k),
                              states[k].by_row ? 1 : kSharedDim));
  }
  return parts;
}

void train_shared(MeshRank& rank, int number, int steps, uint64_t seed = 5) {
  std::mt19937_64 random(seed + static_cast<uint64_t>(number));
  for (int step = 0; step < steps; ++step) {
    rank.step(static_cast<int64_t>(random() % kSharedRows),
              0.5F + static_cast<float>(random() % 8));
  }
}

double shared_stat(MeshRank& rank, shardrec_stat stat) {
  double value = -1;
  SR_EXPECT_OK(shardrec_collection_stat(rank.tables(), stat, SHARDREC_ALL_TABLES, &value));
  return value;
}

// Of all ranks together.
double sum_over_ranks(shardrec_comm* comm, double value) {
  std::vector<int64_t> whole = {static_cast<int64_t>(value)};
  const shardrec_tensor tensor = vector_of(whole);
  SR_EXPECT_OK(shardrec_comm_all_reduce(comm, &tensor, SHARDREC_REDUCTION_SUM));
  return static_cast<double>(whole[0]);
}

class SharedTest {
 public:
  SharedTest() : directory_((std::filesystem::temp_directory_path() / "shardrec-XXXXXX").string()) {
    if (::mkdtemp(directory_.data()) == nullptr) ADD_FAILURE() << "no directory";
  }
  ~SharedTest() { std::filesystem::remove_all(directory_); }
  std::string run(const std::string& name) const { return directory_ + "/" + name; }

 private:
  std::string directory_;
};

TEST(SharedStates, TakeTheirShareOfTheMemoryAndOfTheGradients) {
  for (const SharedRun& run : kSharedStateRuns) {
    run_ranks(run.world, run.world, [&](int number, shardrec_comm* comm) {
      MeshRank exact(comm, run.as(SHARDREC_REPLICA_SYNC_EXACT));
      MeshRank shared(comm, run.as(SHARDREC_REPLICA_SYNC_SHARDED));
      for (MeshRank* each : {&exact, &shared}) {
        each->create();
        SR_OK(each->status());
        train_shared(*each, number, 12);
      }
      const int replicas = run.world / run.group;
      const int boxes_of_a_row = run.sharding == SHARDREC_SHARDING_COLUMN_WISE ? run.group : 1;
      const auto states = plan::states_of(run.optimizer);
      double floats = 0;  // of states, a replica's
      for (const auto& state : states) {
        // One value per row stands once in each box of columns.
        floats += static_cast<double>(kSharedRows) *
                  (state.by_row ? boxes_of_a_row : static_cast<double>(kSharedDim));
      }
      const double weights = kSharedRows * kSharedDim * 4.0 * replicas;
      const double of_exact = sum_over_ranks(comm, shared_stat(exact, SHARDREC_STAT_BYTES_TABLES));
      const double of_shared =
          sum_over_ranks(comm, shared_stat(shared, SHARDREC_STAT_BYTES_TABLES));
      // A back end may round up the two allocations of a box.
      const double rounding = 2 * 64 * run.world;
      EXPECT_GE(of_exact, weights + floats * 4 * replicas);
      EXPECT_LE(of_exact, weights + floats * 4 * replicas + rounding);
      EXPECT_GE(of_shared, weights + floats * 4);
      EXPECT_LE(of_shared, weights + floats * 4 + rounding);
      // No rank has more than a row above the share in each of its boxes.
      const double row = 4.0 * static_cast<double>(states.size() * kSharedDim);
      EXPECT_LE(shared_stat(shared, SHARDREC_STAT_BYTES_TABLES),
                (weights + floats * 4) / run.world + 2 * row + 4 * kSharedDim + 2 * 64);
      EXPECT_LT(sum_over_ranks(comm, shared_stat(shared, SHARDREC_STAT_BYTES_GRADIENT)),
                sum_over_ranks(comm, shared_stat(exact, SHARDREC_STAT_BYTES_GRADIENT)));
      // Each rank takes in the rows that other replicas have updated of its boxes.
      const double updated =
          sum_over_ranks(comm, shared_stat(shared, SHARDREC_STAT_TABLE_ROWS_UPDATED));
      EXPECT_EQ(sum_over_ranks(comm, shared_stat(shared, SHARDREC_STAT_ROWS_SYNCED)),
                updated * (replicas - 1));
      EXPECT_EQ(updated * replicas,
                sum_over_ranks(comm, shared_stat(exact, SHARDREC_STAT_TABLE_ROWS_UPDATED)));
      EXPECT_GT(sum_over_ranks(comm, shared_stat(shared, SHARDREC_STAT_BYTES_SYNC)), 0);
      EXPECT_EQ(shared_stat(exact, SHARDREC_STAT_BYTES_SYNC), 0);
      EXPECT_EQ(sum_over_ranks(comm, shared_stat(shared, SHARDREC_STAT_TABLE_IDS)),
                2.0 * 12 * run.world * boxes_of_a_row)
          << "ids are looked up in one replica";
    });
  }
}

// As the second replica's ranks write them; the others write nothing.
TEST(SharedStates, AreReadAndWrittenWhereTheyAre) {
  for (const SharedRun& run : kSharedStateRuns) {
    run_ranks(run.world, run.world, [&](int number, shardrec_comm* comm) {
      MeshRank shared(comm, run.as(SHARDREC_REPLICA_SYNC_SHARDED));
      shared.create();
      SR_OK(shared.status());
      train_shared(shared, number, 5);
      const bool per_row = run.optimizer == SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD;
      const int64_t columns = per_row ? 1 : kSharedDim;
      std::vector<float> expected = shared.read(SHARDREC_TABLE_STATE, columns);
      const bool writes = number == run.world - 1;
      std::vector<float> values(static_cast<size_t>(kSharedRows * columns));
      for (size_t i = 0; i < values.size(); ++i) values[i] = 1.0F + static_cast<float>(i);
      const int64_t first = 3;
      const int64_t count = writes ? kSharedRows - 2 * first : 0;
      const shardrec_tensor range = matrix(values.data(), count, columns);
      SR_OK(shardrec_collection_write_range(shared.tables(), 0, SHARDREC_TABLE_STATE, first, count,
                                            &range));
      std::vector<int64_t> ids;
      if (writes) ids = {0, kSharedRows - 1, 30};
      const shardrec_tensor list = vector_of(ids);
      const shardrec_tensor of_list = matrix(values.data(), std::ssize(ids), columns);
      SR_OK(shardrec_collection_write_rows(shared.tables(), 0, SHARDREC_TABLE_STATE, &list,
                                           &of_list));
      const auto write = [&](int64_t row, int64_t from) {
        for (int64_t c = 0; c < columns; ++c) {
          expected[static_cast<size_t>(row * columns + c)] =
              values[static_cast<size_t>(from * columns + c)];
        }
      };
      for (int64_t i = 0; i < kSharedRows - 2 * first; ++i) write(first + i, i);
      write(0, 0);
      write(kSharedRows - 1, 1);
      write(30, 2);
      EXPECT_EQ(shared.read(SHARDREC_TABLE_STATE, columns), expected);
      std::vector<int64_t> asked = {30, kSharedRows - 1, number};
      std::vector<float> read(asked.size() * static_cast<size_t>(columns));
      const shardrec_tensor asked_rows = vector_of(asked);
      const shardrec_tensor into = matrix(read.data(), std::ssize(asked), columns);
      SR_OK(shardrec_collection_read_rows(shared.tables(), 0, SHARDREC_TABLE_STATE, &asked_rows,
                                          &into));
      for (size_t i = 0; i < asked.size(); ++i) {
        for (int64_t c = 0; c < columns; ++c) {
          EXPECT_EQ(read[i * static_cast<size_t>(columns) + static_cast<size_t>(c)],
                    expected[static_cast<size_t>(asked[i] * columns + c)]);
        }
      }
    });
  }
}

// One copy of weights and states is saved, whoever has them; and whoever loads, has them all and trains on alike.
TEST(SharedStates, GoThroughCheckpointsIntoOtherPlansAndReplicasAndBack) {
  const SharedTest here;
  for (size_t r = 0; r < std::size(kSharedStateRuns); ++r) {
    const SharedRun& run = kSharedStateRuns[r];
    SharedRun other = run;
    other.group = run.group == 1 ? 2 : 1;
    other.sharding = SHARDREC_SHARDING_ROW_WISE;
    run_ranks(run.world, run.world, [&](int number, shardrec_comm* comm) {
      SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 60));
      const std::string name = here.run("back" + std::to_string(r));
      MeshRank shared(comm, run.as(SHARDREC_REPLICA_SYNC_SHARDED));
      shared.create();
      SR_OK(shared.status());
      train_shared(shared, number, 6);
      const auto trained = shared_parts(shared, run.optimizer);
      SR_OK(save_or_load_tables(comm, shared.tables(), name, true));
      std::vector<std::vector<std::vector<float>>> trained_on;
      for (const auto& [setup, sync] : {std::pair{run, SHARDREC_REPLICA_SYNC_SHARDED},
                                        std::pair{run, SHARDREC_REPLICA_SYNC_EXACT},
                                        std::pair{run, SHARDREC_REPLICA_SYNC_TOUCHED},
                                        std::pair{other, SHARDREC_REPLICA_SYNC_SHARDED}}) {
        MeshRank loaded(comm, setup.as(sync));
        loaded.create();
        SR_OK(loaded.status());
        SR_OK(save_or_load_tables(comm, loaded.tables(), name, false));
        EXPECT_EQ(shared_parts(loaded, run.optimizer), trained) << "REPLICA_SYNC " << sync;
        SR_EXPECT_OK(shardrec_collection_check_replicas(loaded.tables()));
        if (sync == SHARDREC_REPLICA_SYNC_TOUCHED) {  // and back
          const std::string back = name + "plain";
          SR_OK(save_or_load_tables(comm, loaded.tables(), back, true));
          SR_OK(save_or_load_tables(comm, shared.tables(), back, false));
          EXPECT_EQ(shared_parts(shared, run.optimizer), trained);
          continue;
        }
        if (setup.group != run.group) continue;
        train_shared(loaded, number, 4, 77);
        trained_on.push_back(shared_parts(loaded, run.optimizer));
      }
      train_shared(shared, number, 4, 77);
      trained_on.push_back(shared_parts(shared, run.optimizer));
      for (const auto& each : trained_on) EXPECT_EQ(each, trained_on[0]);
    });
  }
}

// What a commit that is written in the background holds is as it was when it began, of a delta too.
TEST(SharedStates, StayAsTheyWereInACommitInTheBackgroundAndDeltasHaveWhatHasChanged) {
  const SharedTest here;
  for (size_t r = 0; r < std::size(kSharedStateRuns); ++r) {
    const SharedRun& run = kSharedStateRuns[r];
    run_ranks(run.world, run.world, [&](int number, shardrec_comm* comm) {
      SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 60));
      MeshRank shared(comm, run.as(SHARDREC_REPLICA_SYNC_SHARDED));
      shared.create();
      SR_OK(shared.status());
      train_shared(shared, number, 6);
      std::vector<std::vector<std::vector<float>>> saved = {shared_parts(shared, run.optimizer)};
      shardrec_checkpoint* checkpoint = nullptr;
      const std::string name = here.run("deltas" + std::to_string(r));
      SR_OK(shardrec_checkpoint_create(comm, name.c_str(), nullptr, &checkpoint));
      SR_OK(shardrec_checkpoint_add_collection(checkpoint, "tables", shared.tables()));
      SR_OK(shardrec_checkpoint_commit_begin(checkpoint, 0, nullptr));
      train_shared(shared, number, 5, 31);
      int32_t done = 0;
      SR_OK(shardrec_checkpoint_commit_wait(checkpoint, -1, &done));
      EXPECT_EQ(done, 1);
      const auto commit = [&](int64_t step, int32_t wanted) {
        int32_t delta = 0;
        SR_OK(shardrec_checkpoint_commit_delta(checkpoint, step, nullptr, &delta));
        EXPECT_EQ(delta, wanted);
        saved.push_back(shared_parts(shared, run.optimizer));
      };
      commit(1, 0);
      train_shared(shared, number, 3, 47);
      commit(2, 1);
      // A state alone, of a row that no step has touched since.
      std::vector<float> state(static_cast<size_t>(kSharedDim), 0.25F);
      const int64_t rows = number == 1 ? 1 : 0;
      const int64_t columns = run.optimizer == SHARDREC_OPTIMIZER_ADAM ? kSharedDim : 1;
      const shardrec_tensor written = matrix(state.data(), rows, columns);
      SR_OK(shardrec_collection_write_range(shared.tables(), 0, SHARDREC_TABLE_STATE, 40, rows,
                                            &written));
      commit(3, 1);
      train_shared(shared, number, 3, 53);
      saved.push_back(shared_parts(shared, run.optimizer));
      int32_t delta = 0;
      SR_OK(shardrec_checkpoint_commit_delta_begin(checkpoint, 4, nullptr, &delta));
      EXPECT_EQ(delta, 1);
      train_shared(shared, number, 5, 53);  // the same rows, while they are written
      SR_OK(shardrec_checkpoint_commit_wait(checkpoint, -1, &done));
      for (int64_t step = 0; step < 5; ++step) {
        SR_OK(shardrec_checkpoint_open(checkpoint, step));
        SR_OK(shardrec_checkpoint_load(checkpoint, nullptr));
        EXPECT_EQ(shared_parts(shared, run.optimizer), saved[static_cast<size_t>(step)])
            << "step " << step;
      }
      shardrec_checkpoint_destroy(&checkpoint);
    });
  }
}

// What scorers take has no states: a load has those of the whole checkpoint behind it, where it is told so.
TEST(SharedStates, AreLeftOutOfDeltasForScorers) {
  const SharedTest here;
  for (size_t r = 0; r < std::size(kSharedStateRuns); ++r) {
    const SharedRun& run = kSharedStateRuns[r];
    run_ranks(run.world, run.world, [&](int number, shardrec_comm* comm) {
      SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 60));
      MeshRank shared(comm, run.as(SHARDREC_REPLICA_SYNC_SHARDED));
      shared.create();
      SR_OK(shared.status());
      shardrec_options* options = nullptr;
      SR_OK(shardrec_options_create(SHARDREC_OPTIONS_CHECKPOINT, &options));
      SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_DELTA_STATES, 0));
      shardrec_checkpoint* checkpoint = nullptr;
      const std::string name = here.run("scored" + std::to_string(r));
      SR_OK(shardrec_checkpoint_create(comm, name.c_str(), options, &checkpoint));
      shardrec_options_destroy(&options);
      SR_OK(shardrec_checkpoint_add_collection(checkpoint, "tables", shared.tables()));
      train_shared(shared, number, 6);
      int32_t delta = 0;
      SR_OK(shardrec_checkpoint_commit_delta(checkpoint, 0, nullptr, &delta));
      auto expected = shared_parts(shared, run.optimizer);  // with the states of the whole one
      train_shared(shared, number, 3, 47);
      SR_OK(shardrec_checkpoint_commit_delta(checkpoint, 1, nullptr, &delta));
      EXPECT_EQ(delta, 1);
      train_shared(shared, number, 3, 53);
      expected[0] = shared_parts(shared, run.optimizer)[0];
      SR_OK(shardrec_checkpoint_commit_delta_begin(checkpoint, 2, nullptr, &delta));
      EXPECT_EQ(delta, 1);
      train_shared(shared, number, 5, 53);
      int32_t done = 0;
      SR_OK(shardrec_checkpoint_commit_wait(checkpoint, -1, &done));
      SR_OK(shardrec_checkpoint_open(checkpoint, 2));
      char* report = nullptr;
      SR_OK(shardrec_checkpoint_load_partial(checkpoint, R"({"version": 1, "state": "base"})",
                                             nullptr, &report));
      shardrec_text_free(report);
      EXPECT_EQ(shared_parts(shared, run.optimizer), expected);
      shardrec_checkpoint_destroy(&checkpoint);
    });
  }
}

TEST(SharedStates, AreOfRowsThatMarksNameOnEachReplica) {
  run_ranks(6, 6, [&](int number, shardrec_comm* comm) {
    MeshRank shared(comm, SharedRun{}.as(SHARDREC_REPLICA_SYNC_SHARDED));
    MeshRank exact(comm, SharedRun{}.as(SHARDREC_REPLICA_SYNC_EXACT));
    std::vector<std::vector<int64_t>> changed;
    for (MeshRank* each : {&shared, &exact}) {
      each->create();
      SR_OK(each->status());
      train_shared(*each, number, 2);
      int64_t mark = 0;
      SR_OK(shardrec_collection_mark(each->tables(), &mark));
      train_shared(*each, number, 2, 91);
      std::vector<int64_t> rows(kSharedRows);
      const shardrec_tensor room = vector_of(rows);
      int64_t count = 0;
      SR_OK(shardrec_collection_changed_rows(each->tables(), mark, 0, 0, &room, &count));
      rows.resize(static_cast<size_t>(count));
      changed.push_back(rows);
    }
    EXPECT_EQ(changed[0], changed[1]);
    EXPECT_FALSE(changed[0].empty());
  });
}

// A row of the own copy of the weights, behind the back of the others.
void spoil_weights(shardrec_collection* tables) {
  const auto use = capi::enter(tables, capi::Access::kShared);
  embedding::Collection& collection = use->collection();
  const auto pieces = embedding::stored_pieces(collection.layout(), collection.shards(),
                                               embedding::PieceUse::kLoad);
  const embedding::StoredPiece& piece = pieces[0];
  std::vector<float> values(static_cast<size_t>(piece.cells.cols), 7.0F);
  const compute::RowTransfer transfer{
      .from = {values.data(), compute::Element::kFloat32, values.size()},
      .to = {piece.at_row(2), piece.element, piece.stride},
      .rows = 1,
      .width = piece.cells.cols};
  collection.backend().transfer().copy_from_host({&transfer, 1});
}

TEST(SharedStates, AreLeftAloneByAFillOfWeightsAndByTheirCheck) {
  run_ranks(6, 6, [&](int number, shardrec_comm* comm) {
    MeshRank shared(comm, SharedRun{}.as(SHARDREC_REPLICA_SYNC_SHARDED));
    shared.create();
    SR_OK(shared.status());
    train_shared(shared, number, 8);
    const auto trained = shared_parts(shared, SHARDREC_OPTIMIZER_ADAM);
    SR_OK(shardrec_collection_check_replicas(shared.tables()));
    if (number == 4) spoil_weights(shared.tables());
    EXPECT_EQ(shardrec_collection_check_replicas(shared.tables()), SHARDREC_DISAGREEMENT);
    SR_OK(shardrec_collection_replica_fill(shared.tables(), 0));
    SR_OK(shardrec_collection_check_replicas(shared.tables()));
    EXPECT_EQ(shared_parts(shared, SHARDREC_OPTIMIZER_ADAM), trained);
  });
}

TEST(SharedStates, EndWithTheMeshWhereAReplicaIsGone) {
  for (const bool in_background : {false, true}) {
    std::latch forward(6);  // of all ranks: what the abort ends is the step
    run_ranks(6, 6, [&](int number, shardrec_comm* comm) {
      MeshRank shared(comm, SharedRun{}.as(SHARDREC_REPLICA_SYNC_SHARDED));
      shared.create();
      SR_EXPECT_OK(shared.status());
      train_shared(shared, number, 2);
      SR_EXPECT_OK(shared.prepare_step(number, 1));
      forward.arrive_and_wait();
      if (number == 5) {
        SR_OK(shardrec_comm_abort(comm, "gone"));
        return;
      }
      shardrec_status status =
          in_background ? shardrec_lookup_backward_begin(shared.lookup(), SHARDREC_UPDATE_APPLY)
                        : shardrec_lookup_backward(shared.lookup(), SHARDREC_UPDATE_APPLY);
      if (in_background && status == SHARDREC_OK) {
        status = shardrec_lookup_backward_wait(shared.lookup());
      }
      EXPECT_TRUE(status == SHARDREC_ABORTED || status == SHARDREC_PEER_FAILED)
          << shardrec_last_error();
      EXPECT_NE(shared.try_read(), SHARDREC_OK);
    });
  }
}

}  // namespace
}  // namespace shardrec::test
