// Memory runs out at the k-th allocation of one rank of two, for every k, while a checkpoint is
// committed, opened and loaded: a status, a communicator that is usable or dead on both ranks, the old
// or the new checkpoint whole, tables as one of them has them or refused.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "faults/failing_allocator.h"
#include "faults/table_digest.h"
#include "objects/collection_object.h"
#include "support/layers.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

constexpr int kRanks = 2;

uint64_t digest_of(shardrec_collection* tables) {
  return digest(capi::enter(tables, capi::Access::kShared)->collection());
}

struct Outcome {
  bool fired = false;
  bool alive = false;
  std::string calls;    // that failed
  uint64_t first = 0;   // tables of step 1
  uint64_t second = 0;  // of step 2
  uint64_t at_end = 0;
  bool refused = false;  // at the end
};

struct Job {
  shardrec_model* model = nullptr;
  shardrec_plan* plan = nullptr;
  shardrec_topology* topology = nullptr;
  shardrec_collection* tables = nullptr;
  shardrec_mlp* layers = nullptr;
  shardrec_checkpoint* checkpoint = nullptr;
  ~Job() {
    shardrec_checkpoint_destroy(&checkpoint);
    shardrec_mlp_destroy(&layers);
    shardrec_collection_destroy(&tables);
    shardrec_plan_destroy(&plan);
    shardrec_topology_destroy(&topology);
    shardrec_model_destroy(&model);
  }

  void make(shardrec_comm* comm, const std::string& directory) {
    SR_EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 20));
    SR_EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_SETUP_SECONDS, 20));
    SR_OK(shardrec_model_create(nullptr, &model));
    SR_OK(shardrec_model_add_table(model, "a table with a long name", 12, 6, nullptr, nullptr));
    SR_OK(shardrec_model_add_feature(model, 0, "id", SHARDREC_POOLING_SUM));
    SR_OK(shardrec_topology_create(kRanks, kRanks, nullptr, &topology));
    shardrec_options* options = nullptr;
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, &options));
    SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_OPTIMIZER, SHARDREC_OPTIMIZER_ADAGRAD));
    SR_OK(shardrec_model_set_optimizer(model, SHARDREC_ALL_TABLES, options));
    shardrec_options_destroy(&options);
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, &options));
    SR_OK(
        shardrec_options_set_i64(options, SHARDREC_OPTION_SHARDING, SHARDREC_SHARDING_COLUMN_WISE));
    SR_OK(shardrec_plan_create(model, topology, options, &plan));
    shardrec_options_destroy(&options);
    SR_OK(shardrec_collection_create(comm, nullptr, model, plan, nullptr, &tables));
    SR_OK(shardrec_mlp_create(3, nullptr, &layers));
    SR_OK(add_linear(layers, 2, SHARDREC_ACTIVATION_RELU));
    SR_OK(shardrec_checkpoint_create(comm, directory.c_str(), nullptr, &checkpoint));
    SR_OK(shardrec_checkpoint_add_collection(checkpoint, "tables", tables));
    SR_OK(shardrec_checkpoint_add_mlp(checkpoint, "layers", layers));
  }

  void fill(float value) {
    std::vector<float> rows(12 * 6, value);
    const shardrec_tensor view = matrix(rows.data(), 12, 6);
    SR_OK(shardrec_collection_write_range(tables, 0, SHARDREC_TABLE_WEIGHTS, 0, 12, &view));
  }
};

enum class Phase {
  kCommit,
  kBackground,
  kDelta,
  kBackgroundDelta,
  kLoad,
  kLoadPartial,
  kLoadOfDelta
};

std::array<Outcome, kRanks> run(Phase phase, int64_t k, Shortage shortage,
                                const std::string& directory) {
  std::array<Outcome, kRanks> outcomes;
  run_ranks(kRanks, 1, [&](int rank, shardrec_comm* comm) {
    Outcome& out = outcomes[static_cast<size_t>(rank)];
    Job job;
    job.make(comm, directory);
    int32_t is_delta = 0;
    if (phase == Phase::kLoadOfDelta) {
      SR_OK(shardrec_checkpoint_commit_delta(job.checkpoint, 0, nullptr, &is_delta));  // whole
    }
    job.fill(1);
    out.first = digest_of(job.tables);
    if (phase == Phase::kDelta || phase == Phase::kBackgroundDelta ||
        phase == Phase::kLoadOfDelta) {
      SR_OK(shardrec_checkpoint_commit_delta(job.checkpoint, 1, nullptr, &is_delta));
      EXPECT_EQ(is_delta, phase == Phase::kLoadOfDelta ? 1 : 0);
    } else {
      SR_OK(shardrec_checkpoint_commit(job.checkpoint, 1, nullptr));
    }
    job.fill(2);
    out.second = digest_of(job.tables);
    const auto note = [&](const char* what, shardrec_status status) {
      if (status == SHARDREC_OK) return;
      const NoShortage pause;
      out.calls += std::string(what) + " " + shardrec_status_name(status) + "; ";
      const bool expected = status == SHARDREC_OUT_OF_MEMORY || status == SHARDREC_PEER_FAILED;
      EXPECT_TRUE(expected) << what << ": " << shardrec_last_error();
    };
    if (rank == 0) fail_allocation(k, shortage);
    if (phase == Phase::kCommit) {
      note("commit", shardrec_checkpoint_commit(job.checkpoint, 2, nullptr));
    } else if (phase == Phase::kDelta) {
      note("commit_delta", shardrec_checkpoint_commit_delta(job.checkpoint, 2, nullptr, &is_delta));
    } else if (phase == Phase::kBackground || phase == Phase::kBackgroundDelta) {
      const bool whole = phase == Phase::kBackground;
      const shardrec_status begun =
          whole ? shardrec_checkpoint_commit_begin(job.checkpoint, 2, nullptr)
                : shardrec_checkpoint_commit_delta_begin(job.checkpoint, 2, nullptr, &is_delta);
      note(whole ? "commit_begin" : "commit_delta_begin", begun);
      int32_t done = 0;
      if (begun == SHARDREC_OK) {
        note("commit_wait", shardrec_checkpoint_commit_wait(job.checkpoint, -1, &done));
      }
    } else {
      const shardrec_status opened = shardrec_checkpoint_open(job.checkpoint, 1);
      note("open", opened);
      if (opened == SHARDREC_OK && phase != Phase::kLoadPartial) {
        note("load", shardrec_checkpoint_load(job.checkpoint, nullptr));
      } else if (opened == SHARDREC_OK) {
        char* report = nullptr;
        const char* rules = R"({"version": 1, "state": "reset", "step": "keep"})";
        const shardrec_status loaded =
            shardrec_checkpoint_load_partial(job.checkpoint, rules, nullptr, &report);
        note("load_partial", loaded);
        EXPECT_EQ(report != nullptr, loaded == SHARDREC_OK);
        shardrec_text_free(report);
      }
    }
    if (rank == 0) out.fired = end_shortage();
    out.alive =
        shardrec_comm_status(comm) == SHARDREC_OK && shardrec_comm_barrier(comm) == SHARDREC_OK;
    out.at_end = digest_of(job.tables);
    if (out.alive) {
      std::vector<float> row(6);
      const shardrec_tensor view = matrix(row.data(), 1, 6);
      out.refused = shardrec_collection_read_range(job.tables, 0, SHARDREC_TABLE_WEIGHTS, 0, 1,
                                                   &view) == SHARDREC_INVALID_STATE;
    }
  });
  return outcomes;
}

// The tables of the newest checkpoint, which must load.
std::array<uint64_t, kRanks> newest(const std::string& directory) {
  std::array<uint64_t, kRanks> digests{};
  run_ranks(kRanks, 1, [&](int rank, shardrec_comm* comm) {
    Job job;
    job.make(comm, directory);
    SR_OK(shardrec_checkpoint_open(job.checkpoint, -1));
    SR_OK(shardrec_checkpoint_load(job.checkpoint, nullptr));
    digests[static_cast<size_t>(rank)] = digest_of(job.tables);
  });
  return digests;
}

class CheckpointShortage : public ::testing::TestWithParam<std::pair<Phase, Shortage>> {
 protected:
  CheckpointShortage() {
    // Files in memory, where there are such: a disk would be synced some thousand times.
    const std::filesystem::path place = std::filesystem::is_directory("/dev/shm")
                                            ? std::filesystem::path("/dev/shm")
                                            : std::filesystem::temp_directory_path();
    std::string pattern = (place / "shardrec-XXXXXX").string();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  ~CheckpointShortage() override { std::filesystem::remove_all(root_); }

  std::string root_;
};

TEST_P(CheckpointShortage, LeavesACheckpointAndTablesOrRefusesThem) {
#ifdef SHARDREC_THREAD_SANITIZER
  GTEST_SKIP() << "the thread sanitizer's operator new cannot be replaced";
#endif
  const auto [phase, shortage] = GetParam();
  int64_t failures = 0;
  bool fired = true;
  for (int64_t k = 1; fired && !HasFailure(); k += allocation_stride() + k / 64) {
    const std::string directory = root_ + "/" + std::to_string(k);
    const auto outcomes = run(phase, k, shortage, directory);
    fired = outcomes[0].fired;
    SCOPED_TRACE("allocation " + std::to_string(k) + ": rank 0: " + outcomes[0].calls +
                 " rank 1: " + outcomes[1].calls);
    EXPECT_EQ(outcomes[0].alive, outcomes[1].alive);
    if (!outcomes[0].calls.empty()) ++failures;
    for (const Outcome& outcome : outcomes) {
      if (!outcome.alive || outcome.refused) continue;
      EXPECT_TRUE(outcome.at_end == outcome.first || outcome.at_end == outcome.second);
    }
    EXPECT_EQ(outcomes[0].refused, outcomes[1].refused);
    if (outcomes[0].alive && !outcomes[0].refused) {
      EXPECT_EQ(outcomes[0].at_end == outcomes[0].first, outcomes[1].at_end == outcomes[1].first);
    }
    const auto digests = newest(directory);
    EXPECT_TRUE((digests[0] == outcomes[0].first && digests[1] == outcomes[1].first) ||
                (digests[0] == outcomes[0].second && digests[1] == outcomes[1].second));
    const bool commits = phase == Phase::kCommit || phase == Phase::kBackground ||
                         phase == Phase::kDelta || phase == Phase::kBackgroundDelta;
    if (commits && outcomes[0].calls.empty()) {
      EXPECT_EQ(digests[0], outcomes[0].second);
    }
    std::filesystem::remove_all(directory);
  }
  EXPECT_GT(failures, 20 / allocation_stride());
}

INSTANTIATE_TEST_SUITE_P(Phases, CheckpointShortage,
                         ::testing::Values(std::pair(Phase::kCommit, Shortage::kOnce),
                                           std::pair(Phase::kCommit, Shortage::kLasting),
                                           std::pair(Phase::kBackground, Shortage::kOnce),
                                           std::pair(Phase::kBackground, Shortage::kLasting),
                                           std::pair(Phase::kDelta, Shortage::kOnce),
                                           std::pair(Phase::kDelta, Shortage::kLasting),
                                           std::pair(Phase::kBackgroundDelta, Shortage::kOnce),
                                           std::pair(Phase::kBackgroundDelta, Shortage::kLasting),
                                           std::pair(Phase::kLoadOfDelta, Shortage::kOnce),
                                           std::pair(Phase::kLoadOfDelta, Shortage::kLasting),
                                           std::pair(Phase::kLoad, Shortage::kOnce),
                                           std::pair(Phase::kLoad, Shortage::kLasting),
                                           std::pair(Phase::kLoadPartial, Shortage::kOnce),
                                           std::pair(Phase::kLoadPartial, Shortage::kLasting)));

}  // namespace
}  // namespace shardrec::test
