#include "nccl_ranks/job.h"

#include <thread>

#include "faults/table_digest.h"
#include "objects/collection_object.h"
#include "support/ranks.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

constexpr int64_t kRows = 40;
constexpr int64_t kDim = 8;
constexpr int kTables = 2;
constexpr int64_t kBatch = 16;
constexpr int64_t kIds = 3;  // of a bag
constexpr int32_t kDevices = 2;

class Rank {
 public:
  Rank(const Job& job, int rank, shardrec_local* group, bool look)
      : job_(job), rank_(rank), look_(look) {
    join(group);
    if (!::testing::Test::HasFatalFailure() && create()) run();
    finish();
  }
  ~Rank() {
    shardrec_lookup_destroy(&lookup_);
    shardrec_memory_destroy(&memory_);
    shardrec_collection_destroy(&tables_);
    shardrec_options_destroy(&options_);
    shardrec_plan_destroy(&plan_);
    shardrec_model_destroy(&model_);
    if (comm_ != nullptr && shardrec_comm_status(comm_) == SHARDREC_OK) shardrec_comm_close(comm_);
    shardrec_comm_destroy(&comm_);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  const Outcome& outcome() const { return outcome_; }

 private:
  void join(shardrec_local* group) {
    shardrec_options* options = nullptr;
    SR_OK(shardrec_comm_create_local(group, rank_, nullptr, &comm_));
    SR_OK(shardrec_comm_set_f64(comm_, SHARDREC_COMM_NCCL, job_.over_nccl ? 1 : 0));
    double over_nccl = -1;
    SR_OK(shardrec_comm_get_f64(comm_, SHARDREC_COMM_NCCL, &over_nccl));
    ASSERT_EQ(over_nccl, job_.over_nccl ? 1 : 0);
    ASSERT_EQ(shardrec_comm_set_f64(comm_, SHARDREC_COMM_NCCL, 0.5), SHARDREC_INVALID_ARGUMENT);
    SR_OK(shardrec_comm_set_f64(comm_, SHARDREC_COMM_STEP_SECONDS, job_.step_seconds));
    SR_OK(shardrec_comm_set_f64(comm_, SHARDREC_COMM_SETUP_SECONDS, job_.setup_seconds));
    SR_OK(shardrec_model_create(nullptr, &model_));
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, &options));
    SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_OPTIMIZER, job_.optimizer));
    SR_OK(shardrec_model_set_optimizer(model_, SHARDREC_ALL_TABLES, options));
    shardrec_options_destroy(&options);
    for (int t = 0; t < kTables; ++t) {
      const std::string name = "table" + std::to_string(t);
      SR_OK(shardrec_model_add_table(model_, name.c_str(), kRows, kDim, nullptr, nullptr));
      SR_OK(shardrec_model_add_feature(model_, t, name.c_str(),
                                       t % 2 == 0 ? SHARDREC_POOLING_SUM : SHARDREC_POOLING_MEAN));
    }
  }

  bool create() {
    shardrec_options* options = nullptr;
    EXPECT_EQ(shardrec_options_create(SHARDREC_OPTIONS_PLAN, &options), SHARDREC_OK);
    EXPECT_EQ(shardrec_options_set_i64(options, SHARDREC_OPTION_SHARDING, job_.kind), SHARDREC_OK);
    const bool planned = make(
        "plan", [&] { return shardrec_plan_collective(comm_, nullptr, model_, options, &plan_); });
    shardrec_options_destroy(&options);
    if (!planned) return false;
    const int32_t device = rank_ % kDevices;
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, &options_));
    SR_EXPECT_OK(shardrec_options_set_i64(options_, SHARDREC_OPTION_DEVICE, device));
    return make("create",
                [&] {
                  return shardrec_collection_create(comm_, nullptr, model_, plan_, options_,
                                                    &tables_);
                }) &&
           make("lookup_create",
                [&] { return shardrec_lookup_create(tables_, nullptr, &lookup_); }) &&
           make("memory", [&] { return place(device); });
  }

  shardrec_status place(int32_t device) {
    if (job_.of_host) {
      out_here_ = matrix(out_.data(), kBatch, kTables * kDim);
      gradient_here_ = matrix(gradient_.data(), kBatch, kTables * kDim);
      return SHARDREC_OK;
    }
    const int64_t bytes = kBatch * kTables * kDim * int64_t{sizeof(float)};
    shardrec_status status =
        shardrec_memory_create(SHARDREC_DEVICE_CUDA, device, 2 * bytes, nullptr, &memory_);
    const int64_t shape[2] = {kBatch, kTables * kDim};
    if (status == SHARDREC_OK) {
      status = shardrec_memory_tensor(memory_, 0, SHARDREC_FLOAT32, 2, shape, &out_here_);
    }
    if (status == SHARDREC_OK) {
      status = shardrec_memory_tensor(memory_, bytes, SHARDREC_FLOAT32, 2, shape, &gradient_here_);
    }
    if (status != SHARDREC_OK) return status;
    const shardrec_tensor host = matrix(gradient_.data(), kBatch, kTables * kDim);
    return shardrec_tensor_copy(&gradient_here_, &host, 0);
  }

  void run() {
    if (look_) note(0);
    for (int step = 0; step < kSteps; ++step) {
      if (job_.before_step && !job_.before_step(rank_, step)) {
        shardrec_comm_destroy(&comm_);
        return;
      }
      if (!take_step(step)) return;
      if (look_) note(step + 1);
    }
    make("wait_device", [&] { return shardrec_collection_wait_device(tables_); });
  }

  bool take_step(int step) {
    for (size_t i = 0; i < ids_.size(); ++i) {
      ids_[i] = static_cast<int64_t>(i * 7 + static_cast<size_t>(step) * 13 +
                                     static_cast<size_t>(rank_) * 5) %
                kRows;
    }
    values_ = vector_of(ids_);
    lengths_here_ = vector_of(lengths_);
    return make("begin",
                [&] {
                  return begin_batch(
                      lookup_,
                      {.batch_size = kBatch, .values = &values_, .lengths = &lengths_here_});
                }) &&
           make("forward", [&] { return shardrec_lookup_forward(lookup_, 0, &out_here_); }) &&
           make("set_gradient",
                [&] { return shardrec_lookup_set_gradient(lookup_, 0, &gradient_here_); }) &&
           make("backward",
                [&] { return shardrec_lookup_backward(lookup_, SHARDREC_UPDATE_APPLY); });
  }

  template <class Call>
  bool make(const char* what, Call call) {
    const auto start = std::chrono::steady_clock::now();
    const shardrec_status status = call();
    if (status == SHARDREC_OK) return true;
    outcome_.failed = what;
    outcome_.status = status;
    outcome_.sentence = shardrec_last_error();
    (void)shardrec_last_error_i64(SHARDREC_ERROR_RANK, &outcome_.rank);
    char* operation = nullptr;
    if (shardrec_last_error_text(SHARDREC_ERROR_OPERATION, &operation) == SHARDREC_OK) {
      outcome_.operation = operation;
      shardrec_text_free(operation);
    }
    outcome_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return false;
  }

  embedding::Collection& collection() {
    return capi::enter(tables_, capi::Access::kShared)->collection();
  }
  void note(int step) { outcome_.digests[static_cast<size_t>(step)] = digest(collection()); }
  void finish() {
    if (tables_ == nullptr) return;
    SR_EXPECT_OK(shardrec_collection_step(tables_, &outcome_.step));
    outcome_.digest = digest(collection());
  }

  const Job& job_;
  const int rank_;
  const bool look_;
  Outcome outcome_;
  shardrec_comm* comm_ = nullptr;
  shardrec_model* model_ = nullptr;
  shardrec_plan* plan_ = nullptr;
  shardrec_options* options_ = nullptr;
  shardrec_collection* tables_ = nullptr;
  shardrec_lookup* lookup_ = nullptr;
  shardrec_memory* memory_ = nullptr;
  std::vector<int64_t> ids_ = std::vector<int64_t>(kTables * kBatch * kIds);
  std::vector<int32_t> lengths_ = std::vector<int32_t>(kTables * kBatch, kIds);
  std::vector<float> out_ = std::vector<float>(kBatch * kTables * kDim);
  std::vector<float> gradient_ = std::vector<float>(kBatch * kTables * kDim, 0.25F);
  shardrec_tensor values_{};
  shardrec_tensor lengths_here_{};
  shardrec_tensor out_here_{};
  shardrec_tensor gradient_here_{};
};

}  // namespace

std::vector<Outcome> train(const Job& job, bool look) {
  std::vector<Outcome> outcomes(static_cast<size_t>(job.ranks));
  shardrec_local* group = nullptr;
  EXPECT_EQ(shardrec_local_create(job.ranks, job.ranks, nullptr, &group), SHARDREC_OK);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < job.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const Rank own(job, rank, group, look);
      outcomes[static_cast<size_t>(rank)] = own.outcome();
    });
  }
  for (std::thread& thread : threads) thread.join();
  shardrec_local_destroy(&group);
  return outcomes;
}

}  // namespace shardrec::test
