// Memory runs out at the k-th allocation of one rank of two, for every k, from the planning of
// tables to the end of its second step: the call that needed it says OUT_OF_MEMORY, nobody
// hangs, the communicator is usable or dead on both ranks, tables are whole, nothing is left
// behind. Where tables are on a device (SHARDREC_TEST_BACKEND=cuda), so for memory of the device.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/threads.h"
#include "faults/device_shortage.h"
#include "faults/failing_allocator.h"
#include "faults/table_digest.h"
#include "objects/collection_object.h"
#include "support/ranks.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

constexpr int kRanks = 2;
constexpr int kSteps = 2;
constexpr int kMostSteps = 6;
constexpr int64_t kNever = int64_t{1} << 40;

struct Case {
  shardrec_sharding kind = SHARDREC_SHARDING_MIXED;
  int threads = 1;
  Shortage shortage = Shortage::kOnce;
  bool of_device = false;  // it is the device's memory that runs out
  bool of_rows = false;    // only while rows of a table are read and written
  int steps_before = 0;    // > 0: only in the step after so many, which are all alike

  int steps() const { return steps_before > 0 ? steps_before + 1 : of_rows ? 0 : kSteps; }
};

struct Handles {
  shardrec_model* model = nullptr;
  shardrec_plan* plan = nullptr;
  shardrec_options* plan_options = nullptr;
  shardrec_options* options = nullptr;
  shardrec_collection* tables = nullptr;
  shardrec_lookup* lookup = nullptr;
  ~Handles() {
    shardrec_lookup_destroy(&lookup);
    shardrec_collection_destroy(&tables);
    shardrec_options_destroy(&options);
    shardrec_options_destroy(&plan_options);
    shardrec_plan_destroy(&plan);
    shardrec_model_destroy(&model);
  }
};

uint64_t digest_of(shardrec_collection* tables) {
  return digest(capi::enter(tables, capi::Access::kShared)->collection());
}

// What became of one rank.
struct Outcome {
  std::string calls;                           // that failed, with their statuses
  bool fired = false;                          // the allocation failed
  bool alive = false;                          // the communicator, at the end
  std::array<uint64_t, kMostSteps> digests{};  // by step, of a run without failure
  int64_t step = -1;
  uint64_t digest = 0;
  bool lost = false;  // a part of a step, says the collection, which nobody reads any more
};

class Rank {
 public:
  Rank(int rank, shardrec_comm* comm, const Case& test, int64_t k) : rank_(rank), comm_(comm) {
    SR_EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 20));
    SR_EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_SETUP_SECONDS, 20));
    prepare(test);
    of_device_ = test.of_device;
    const auto begin = [&] {
      if (rank_ == 0) begin_shortage(k, test.shortage);
    };
    const bool from_start = !test.of_rows && test.steps_before == 0;
    if (from_start) begin();
    if (create()) {
      if (test.of_rows) begin();
      if (test.steps_before > 0) {
        repeat_step(test.steps_before, begin);
      } else if (read_and_write_rows(test.of_rows ? 1 : kTables) && !test.of_rows) {
        train();
      }
    }
    if (rank_ == 0) outcome_.fired = stop_shortage();
    finish();
  }
  const Outcome& outcome() const { return outcome_; }

 private:
  void begin_shortage(int64_t k, Shortage shortage) {
    if (of_device_) {
      fail_device_allocation(k, shortage);
    } else {
      fail_allocation(k, shortage);
    }
  }
  bool stop_shortage() { return of_device_ ? end_device_shortage() : end_shortage(); }

  void prepare(const Case& test) {
    SR_OK(shardrec_model_create(nullptr, &handles_.model));
    shardrec_options* options = nullptr;
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, &options));
    SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_OPTIMIZER,
                                   SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD));
    SR_OK(shardrec_model_set_optimizer(handles_.model, SHARDREC_ALL_TABLES, options));
    shardrec_options_destroy(&options);
    for (int t = 0; t < kTables; ++t) {
      const std::string name = "a table with a long name " + std::to_string(t);
      SR_OK(shardrec_model_add_table(handles_.model, name.c_str(), kRows, kDim, nullptr, nullptr));
      SR_OK(shardrec_model_add_feature(handles_.model, t, name.c_str(),
                                       t % 2 == 0 ? SHARDREC_POOLING_SUM : SHARDREC_POOLING_MEAN));
    }
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, &handles_.plan_options));
    SR_OK(shardrec_options_set_i64(handles_.plan_options, SHARDREC_OPTION_SHARDING, test.kind));
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, &handles_.options));
    SR_OK(shardrec_options_set_i64(handles_.options, SHARDREC_OPTION_THREADS, test.threads));
  }

  // Makes a call; once more when it failed and the communicator lives. False: it is dead.
  template <class Call>
  bool make(const char* what, Call call) {
    for (int attempt = 0; attempt < 2; ++attempt) {
      const shardrec_status status = call();
      if (status == SHARDREC_OK) return true;
      if (rank_ == 0) stop_shortage();
      const std::string sentence = shardrec_last_error();
      outcome_.calls += std::string(what) + " " + shardrec_status_name(status) + "; ";
      EXPECT_FALSE(sentence.empty());
      // The peer that could not tell of its failure kills the communicator a moment later.
      EXPECT_TRUE(attempt == 0 || status == SHARDREC_PEER_FAILED)
          << what << " failed twice: " << sentence;
      if (rank_ == 0 && attempt == 0) {
        EXPECT_EQ(status, SHARDREC_OUT_OF_MEMORY) << what << ": " << sentence;
        EXPECT_TRUE(of_device_ ? device_allocation_has_failed() : allocation_has_failed());
      } else if (status != SHARDREC_PEER_FAILED) {
        EXPECT_EQ(status, SHARDREC_OUT_OF_MEMORY) << what << ": " << sentence;
        int64_t failed_rank = -1;
        EXPECT_EQ(shardrec_last_error_i64(SHARDREC_ERROR_RANK, &failed_rank), SHARDREC_OK);
        EXPECT_EQ(failed_rank, 0) << sentence;
      }
      if (shardrec_comm_status(comm_) != SHARDREC_OK) return false;
    }
    return false;
  }

  bool create() {
    if (!make("plan", [&] {
          return shardrec_plan_collective(comm_, nullptr, handles_.model, handles_.plan_options,
                                          &handles_.plan);
        })) {
      return false;
    }
    if (!make("create", [&] {
          return shardrec_collection_create(comm_, nullptr, handles_.model, handles_.plan,
                                            handles_.options, &handles_.tables);
        })) {
      return false;
    }
    note(0);
    return make("lookup",
                [&] { return shardrec_lookup_create(handles_.tables, nullptr, &handles_.lookup); });
  }

  void train() {
    if (!exchange_tensors()) return;
    for (int step = 0; step < kSteps; ++step) {
      if (!train_step(step)) return;
      note(step + 1);
    }
  }

  // What comes again on a device becomes a graph of it.
  template <class Begin>
  void repeat_step(int steps_before, Begin begin) {
    for (int step = 0; step <= steps_before; ++step) {
      if (step == steps_before) begin();
      if (!train_step(0)) return;
      note(step + 1);
    }
  }

  // Writes back what was read: the tables stay as they are.
  bool read_and_write_rows(int32_t tables) {
    for (size_t i = 0; i < ids_.size(); ++i) {
      ids_[i] = static_cast<int64_t>(i * 5 + static_cast<size_t>(rank_)) % kRows;
    }
    const shardrec_tensor ids = vector_of(ids_);
    const shardrec_tensor rows = matrix(out_.data(), static_cast<int64_t>(ids_.size()), kDim);
    for (int32_t table = 0; table < tables; ++table) {
      if (!make("read_rows",
                [&] {
                  return shardrec_collection_read_rows(handles_.tables, table,
                                                       SHARDREC_TABLE_WEIGHTS, &ids, &rows);
                }) ||
          !make("write_rows", [&] {
            return shardrec_collection_write_rows(handles_.tables, table, SHARDREC_TABLE_WEIGHTS,
                                                  &ids, &rows);
          })) {
        return false;
      }
    }
    return true;
  }

  bool exchange_tensors() {
    const shardrec_tensor mine = vector_of(ids_);
    shardrec_tensor all = vector_of(values_);
    all.shape[0] = kRanks * mine.shape[0];
    shardrec_comm* part = nullptr;
    const bool good =
        make("all_gather", [&] { return shardrec_comm_all_gather(comm_, &mine, &all); }) &&
        make("broadcast", [&] { return shardrec_comm_broadcast(comm_, &all, 1); }) &&
        make("reduce_scatter",
             [&] {
               return shardrec_comm_reduce_scatter(comm_, &all, &mine, SHARDREC_REDUCTION_SUM);
             }) &&
        make("all_to_all",
             [&] { return shardrec_comm_all_to_all(comm_, &all, nullptr, &all, nullptr); }) &&
        make("split", [&] { return shardrec_comm_split(comm_, 0, 0, &part); });
    shardrec_comm_destroy(&part);
    return good;
  }

  bool train_step(int step) {
    const int64_t batch = 3 + 40 * step;
    const auto bags = static_cast<size_t>(batch * kTables);
    values_.resize(bags * 2);
    lengths_.assign(bags, 2);
    for (size_t i = 0; i < values_.size(); ++i) {
      values_[i] = static_cast<int64_t>(i * 7 + static_cast<size_t>(rank_) * 3) % kRows;
    }
    out_.resize(bags * kDim);
    gradient_.assign(bags * kDim, 0.5F);
    const shardrec_tensor values = vector_of(values_);
    const shardrec_tensor lengths = vector_of(lengths_);
    const shardrec_tensor out = matrix(out_.data(), batch, kTables * kDim);
    const shardrec_tensor gradient = matrix(gradient_.data(), batch, kTables * kDim);
    return make("begin",
                [&] {
                  return begin_batch(handles_.lookup,
                                     {.batch_size = batch, .values = &values, .lengths = &lengths});
                }) &&
           make("forward", [&] { return shardrec_lookup_forward(handles_.lookup, 0, &out); }) &&
           make("set_gradient",
                [&] { return shardrec_lookup_set_gradient(handles_.lookup, 0, &gradient); }) &&
           make("backward",
                [&] { return shardrec_lookup_backward(handles_.lookup, SHARDREC_UPDATE_APPLY); });
  }

  void note(int step) {
    const NoShortage pause;
    const NoDeviceShortage pause_of_device;
    outcome_.digests[static_cast<size_t>(step)] = digest_of(handles_.tables);
  }

  void finish() {
    outcome_.alive = shardrec_comm_status(comm_) == SHARDREC_OK;
    if (outcome_.alive) outcome_.alive = shardrec_comm_barrier(comm_) == SHARDREC_OK;
    if (handles_.tables == nullptr) return;
    SR_EXPECT_OK(shardrec_collection_step(handles_.tables, &outcome_.step));
    outcome_.digest = digest_of(handles_.tables);
    const bool reads = shardrec_collection_read_range(handles_.tables, 0, SHARDREC_TABLE_WEIGHTS, 0,
                                                      0, nullptr) == SHARDREC_OK;
    const std::string words = "did not take place on its device";
    outcome_.lost = !reads && std::string(shardrec_last_error()).find(words) != std::string::npos;
  }

  static constexpr int kTables = 7;
  static constexpr int64_t kRows = 24;
  static constexpr int64_t kDim = 8;

  int rank_;
  shardrec_comm* comm_;
  bool of_device_ = false;
  Handles handles_;
  Outcome outcome_;
  // Made before the shortage would hit them: the host's memory is not what is tested.
  std::vector<int64_t> ids_ = std::vector<int64_t>(30);
  std::vector<int64_t> values_ = std::vector<int64_t>(2000);
  std::vector<int64_t> lengths_ = std::vector<int64_t>(2000);
  std::vector<float> out_ = std::vector<float>(20000);
  std::vector<float> gradient_ = std::vector<float>(20000);
};

std::array<Outcome, kRanks> train(const Case& test, int64_t k) {
  int64_t before = 0;
  SR_EXPECT_OK(shardrec_live_objects(&before));
  std::array<Outcome, kRanks> outcomes;
  run_ranks(kRanks, 1, [&](int rank, shardrec_comm* comm) {
    outcomes[static_cast<size_t>(rank)] = Rank(rank, comm, test, k).outcome();
  });
  int64_t after = 0;
  SR_EXPECT_OK(shardrec_live_objects(&after));
  EXPECT_EQ(after, before) << "handles were left behind";
  return outcomes;
}

// Every allocation of rank 0 in turn; least: of the failures seen that the communicator survives, and
// that it does not.
void expect_out_of_memory_at_each(const Case& test, int64_t least_usable, int64_t least_dead) {
  const auto whole = train(test, kNever);
  for (const Outcome& outcome : whole) {
    ASSERT_TRUE(outcome.alive) << outcome.calls;
    ASSERT_EQ(outcome.step, test.steps());
  }
  if (!test.of_rows) {
    ASSERT_NE(whole[0].digests[0], whole[0].digests[1]);
  }
  // oneTBB does not survive a thread that cannot be started: they are started before.
  std::optional<core::Threads> started;
  if (test.threads > 1) started.emplace(2 * kRanks * test.threads);
  int64_t k = 1;
  int64_t seen_usable = 0;
  int64_t seen_dead = 0;
  for (bool fired = true; fired && !::testing::Test::HasFailure(); k += allocation_stride()) {
    const auto outcomes = train(test, k);
    fired = outcomes[0].fired;
    SCOPED_TRACE("allocation " + std::to_string(k) + ": rank 0: " + outcomes[0].calls +
                 " rank 1: " + outcomes[1].calls);
    EXPECT_EQ(outcomes[0].alive, outcomes[1].alive);
    for (size_t rank = 0; rank < kRanks; ++rank) {
      const Outcome& outcome = outcomes[rank];
      if (outcome.alive) {
        EXPECT_EQ(outcome.step, whole[rank].step);
      }
      EXPECT_FALSE(outcome.lost && outcome.alive);
      if (outcome.step >= 0 && !outcome.lost) {
        EXPECT_EQ(outcome.digest, whole[rank].digests[static_cast<size_t>(outcome.step)])
            << "tables of rank " << rank << " at step " << outcome.step;
      }
    }
    if (!outcomes[0].calls.empty()) ++(outcomes[0].alive ? seen_usable : seen_dead);
  }
  EXPECT_GT(seen_usable, least_usable / allocation_stride());
  EXPECT_GT(seen_dead, least_dead / allocation_stride());
  ::testing::Test::RecordProperty("allocations", std::to_string(k));
  ::testing::Test::RecordProperty("usable", std::to_string(seen_usable));
  ::testing::Test::RecordProperty("dead", std::to_string(seen_dead));
}

class AllocationFailure : public ::testing::TestWithParam<Case> {};

TEST_P(AllocationFailure, IsOutOfMemoryAndLeavesEverythingWhole) {
#ifdef SHARDREC_THREAD_SANITIZER
  GTEST_SKIP() << "the thread sanitizer's operator new cannot be replaced";
#endif
  expect_out_of_memory_at_each(GetParam(), 40, 10);
}

// Of the host, while rows are read and written: all ranks fail, or none.
class RowsAllocationFailure : public ::testing::TestWithParam<Case> {};

TEST_P(RowsAllocationFailure, IsOutOfMemoryAndLeavesEverythingWhole) {
#ifdef SHARDREC_THREAD_SANITIZER
  GTEST_SKIP() << "the thread sanitizer's operator new cannot be replaced";
#endif
  expect_out_of_memory_at_each(GetParam(), -allocation_stride(), 20);
}

// Of the host, in a step of a device whose like has come before: its operations are captured and launched as graphs.
class GraphAllocationFailure : public ::testing::TestWithParam<Case> {};

TEST_P(GraphAllocationFailure, IsOutOfMemoryAndLeavesEverythingWhole) {
  if (!tables_are_on_devices()) GTEST_SKIP() << "tables are not on a device";
  expect_out_of_memory_at_each(GetParam(), -allocation_stride(), 5);
}

class DeviceAllocationFailure : public ::testing::TestWithParam<Case> {};

TEST_P(DeviceAllocationFailure, IsOutOfMemoryAndLeavesEverythingWhole) {
  if (!tables_are_on_devices()) GTEST_SKIP() << "tables are not on a device";
  const DeviceAllocator allocator;
  expect_out_of_memory_at_each(GetParam(), 3, 3);
}

INSTANTIATE_TEST_SUITE_P(Cases, AllocationFailure,
                         ::testing::Values(Case{SHARDREC_SHARDING_MIXED, 1, Shortage::kOnce},
                                           Case{SHARDREC_SHARDING_MIXED, 1, Shortage::kLasting},
                                           Case{SHARDREC_SHARDING_MIXED, 2, Shortage::kOnce},
                                           Case{SHARDREC_SHARDING_COLUMN_WISE, 1,
                                                Shortage::kOnce}));

INSTANTIATE_TEST_SUITE_P(Cases, RowsAllocationFailure,
                         ::testing::Values(Case{SHARDREC_SHARDING_COLUMN_WISE, 1, Shortage::kOnce,
                                                false, true}));

INSTANTIATE_TEST_SUITE_P(
    Cases, GraphAllocationFailure,
    ::testing::Values(Case{.kind = SHARDREC_SHARDING_COLUMN_WISE, .steps_before = 1},
                      Case{.kind = SHARDREC_SHARDING_MIXED, .steps_before = 2},
                      Case{.kind = SHARDREC_SHARDING_COLUMN_WISE, .steps_before = 3}));

INSTANTIATE_TEST_SUITE_P(
    Cases, DeviceAllocationFailure,
    ::testing::Values(Case{SHARDREC_SHARDING_MIXED, 1, Shortage::kOnce, true},
                      Case{SHARDREC_SHARDING_MIXED, 1, Shortage::kLasting, true},
                      Case{SHARDREC_SHARDING_COLUMN_WISE, 1, Shortage::kOnce, true}));

TEST(FailingAllocator, FailsTheKthAllocationOfThisThreadOnly) {
  fail_allocation(2, Shortage::kOnce);
  void* volatile first = std::malloc(8);
  void* volatile second = std::malloc(8);
  void* volatile third = std::malloc(8);
  EXPECT_TRUE(end_shortage());
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(second, nullptr);
  EXPECT_NE(third, nullptr);
  std::free(first);
  std::free(third);
}

}  // namespace
}  // namespace shardrec::test
