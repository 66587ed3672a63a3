// The option NON_FINITE of collections on devices: what every rank is told, counts and holds is what it is on the CPU,
// wherever the tensors are and whatever carries the messages.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

#include "comm/collective/collectives.h"
#include "comm/local/local_group.h"
#include "compute/jobs.h"
#include "embedding/collection.h"
#include "embedding/lookup.h"
#include "faults/table_digest.h"
#include "nccl/ranks.h"
#include "planner/planner.h"
#include "support/device_bytes.h"
#include "support/forwarding.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

enum class Carrier : uint8_t { kShared, kCopied, kNccl };

// Which tensors of a rank are on its device: bits.
constexpr unsigned kIds = 1;
constexpr unsigned kWeights = 2;
constexpr unsigned kPooled = 4;
constexpr unsigned kRows = 8;
constexpr unsigned kAll = 15;

struct Setting {
  int ranks = 2;
  shardrec_non_finite how = SHARDREC_NON_FINITE_ERROR;
  unsigned on_device = kAll;
  bool borrow = false;
  int64_t gap = 0;  // elements between the rows of gradients
  shardrec_dtype dtype = SHARDREC_FLOAT32;
  Carrier carrier = Carrier::kShared;
  bool sequence = true;  // else a rank alone looks up before it knows whether its batch is good
  int32_t device = -1;   // of rank 0; -1: all are on the CPU

  Setting on_cpu() const {
    Setting same = *this;
    same.device = -1;
    same.on_device = 0;
    same.carrier = Carrier::kShared;
    return same;
  }
};

// Ranks that take each other for those of other processes.
class RemoteRank final : public ForwardingRank {
 public:
  using ForwardingRank::ForwardingRank;
  bool reads_in_place() const noexcept override { return false; }
};

std::shared_ptr<comm::Communicator> join(const std::shared_ptr<comm::local::Group>& group, int rank,
                                         Carrier carrier) {
  auto own = comm::local::join(group, rank);
  if (carrier == Carrier::kNccl) own->set_device_bodies(comm::DeviceBodies::kNccl);
  if (carrier != Carrier::kCopied) return own;
  return std::make_shared<RemoteRank>(own);
}

// A list of a rank as a tensor, on its device or here.
class Tensor {
 public:
  Tensor(const void* data, shardrec_dtype dtype, std::vector<int64_t> shape, int64_t stride,
         const std::shared_ptr<compute::cuda::host::Stream>& device)
      : bytes_(static_cast<const char*>(data),
               static_cast<size_t>(shape[0] * stride) * core::dtype_size(dtype)) {
    tensor_.data = bytes_.data();
    tensor_.device_type = SHARDREC_DEVICE_CPU;
    tensor_.dtype = dtype;
    tensor_.ndim = static_cast<int32_t>(shape.size());
    for (size_t d = 0; d < shape.size(); ++d) {
      tensor_.shape[d] = shape[d];
      tensor_.stride[d] = d + 1 == shape.size() ? 1 : stride;
    }
    if (device == nullptr) return;
    there_ = std::make_unique<DeviceBytes>(device, bytes_.size());
    there_->write(bytes_.data());
    tensor_.data = there_->data();
    tensor_.device_type = SHARDREC_DEVICE_CUDA;
    tensor_.device_id = device->device();
  }
  const shardrec_tensor* get() const { return &tensor_; }
  // What is in it when the device is done.
  std::string bytes() const { return there_ == nullptr ? bytes_ : there_->read(); }

 private:
  std::string bytes_;
  std::unique_ptr<DeviceBytes> there_;
  shardrec_tensor tensor_{};
};

// Two pooled features, of 2 and 3 columns, and perhaps a sequence of the second one's table.
plan::Model make_model(bool sequence) {
  plan::Model model;
  plan::add_table(model, {.name = "t", .rows = 10, .dim = 2});
  plan::add_table(model, {.name = "u", .rows = 10, .dim = 3});
  plan::add_feature(model, {.name = "f", .table = 0, .pooling = SHARDREC_POOLING_SUM});
  plan::add_feature(model, {.name = "g", .table = 1, .pooling = SHARDREC_POOLING_MEAN});
  if (!sequence) return model;
  plan::add_feature(model, {.name = "s", .table = 1, .pooling = SHARDREC_POOLING_NONE});
  return model;
}

// What is not finite in a step: numbers of the rank's weights and gradients.
struct Bad {
  int rank = 0;
  std::vector<size_t> weights;
  std::vector<size_t> pooled;
  std::vector<size_t> rows;
  bool weighted = true;
};

// rank -1: the last one.
const std::vector<Bad>& script() {
  static const std::vector<Bad> steps = {
      {},
      {.rank = -1, .weights = {5, 4}},
      {.rank = 0, .pooled = {8, 6}, .rows = {1}},
      // After a batch, of the same lookup, whose weights were bad.
      {.rank = -1, .rows = {5}, .weighted = false},
      {.rank = 0, .weights = {0}, .pooled = {3}, .rows = {0}},
      {},
      {.rank = 0, .weights = {5}},
      {},
  };
  return steps;
}

constexpr int64_t kSamples = 2;
constexpr int64_t kColumns = 5;
constexpr int64_t kSequenceColumns = 3;

// A rank, which writes down all that it sees.
class Trainer {
 public:
  Trainer(const Setting& setting, int rank, const std::shared_ptr<comm::local::Group>& group)
      : setting_(setting), rank_(rank), communicator_(join(group, rank, setting.carrier)) {
    const plan::Model model = make_model(setting.sequence);
    embedding::CollectionOptions options;
    options.backend = setting.device < 0 ? "cpu" : "cuda";
    options.device = setting.device < 0 ? -1 : (setting.device + rank) % 2;
    options.non_finite = setting.how;
    options.output_dtype = setting.dtype;
    if (setting.device >= 0) {
      stream_ = std::make_shared<compute::cuda::host::Stream>(options.device);
    }
    tables_ = std::make_shared<embedding::Collection>(
        communicator_, model,
        planner::make_plan(model, {.ranks = setting.ranks, .ranks_per_node = setting.ranks},
                           SHARDREC_SHARDING_ROW_WISE),
        options);
    for (auto& lookup : lookups_) {
      lookup = std::make_unique<embedding::Lookup>(
          tables_, embedding::LookupOptions{.borrow = setting.borrow});
    }
  }

  // Two batches are under way at once.
  std::string run() {
    const std::vector<Bad>& steps = script();
    for (size_t s = 0; s < steps.size(); s += 2) {
      const Batch first(*this, steps[s]);
      const Batch second(*this, steps[s + 1]);
      begin(*lookups_[0], first);
      begin(*lookups_[1], second);
      finish(*lookups_[0], first);
      finish(*lookups_[1], second);
      // When both are over: what is wrong with a batch may be known in forward only.
      seen_ << "step " << tables_->step() << " counted " << tables_->table_counters(0).non_finite
            << ' ' << tables_->table_counters(1).non_finite << '\n';
    }
    for (auto& lookup : lookups_) lookup.reset();
    tables_->collectives().barrier(
        {.name = "close", .kind = 1, .detail = 0, .deadline_kind = comm::DeadlineKind::kStep});
    communicator_->leave();
    return seen_.str();
  }

 private:
  using Floats = std::vector<float>;

  // f has {1, 2} and {3}, g {4} and {5, 6}, s {7} and {8}.
  struct Batch {
    Batch(Trainer& own, const Bad& bad)
        : weighted(bad.weighted),
          values(own.tensor(std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8}, SHARDREC_INT64, kIds,
                            own.setting_.sequence ? 8 : 6)),
          lengths(own.tensor(std::vector<int32_t>{2, 1, 1, 2, 1, 1}, SHARDREC_INT32, kIds,
                             own.setting_.sequence ? 6 : 4)),
          weights(own.tensor(own.numbers(8, bad, bad.weights), SHARDREC_FLOAT32, kWeights,
                             own.setting_.sequence ? 8 : 6)),
          pooled(
              own.matrix_of(own.numbers(kSamples * kColumns, bad, bad.pooled), kColumns, kPooled)),
          rows(own.matrix_of(own.numbers(kSamples * kSequenceColumns, bad, bad.rows),
                             kSequenceColumns, kRows)),
          out(own.matrix_of(Floats(kSamples * kColumns), kColumns, kPooled)) {}
    bool weighted;
    Tensor values, lengths, weights, pooled, rows, out;
  };

  std::shared_ptr<compute::cuda::host::Stream> place(unsigned what) const {
    return (setting_.on_device & what) != 0 ? stream_ : nullptr;
  }
  // The first ones of a list.
  template <class T>
  Tensor tensor(const std::vector<T>& list, shardrec_dtype dtype, unsigned what,
                int64_t count) const {
    return {list.data(), dtype, {count}, 1, place(what)};
  }
  // In the type of outputs; between its rows are NaN.
  Tensor matrix_of(const Floats& list, int64_t columns, unsigned what) const {
    const int64_t stride = columns + setting_.gap;
    Floats spread(static_cast<size_t>(kSamples * stride), std::nanf(""));
    for (size_t i = 0; i < list.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      spread[static_cast<size_t>(at / columns * stride + at % columns)] = list[i];
    }
    const compute::Elements elements(compute::element_of(setting_.dtype), spread);
    return {elements.data(), setting_.dtype, {kSamples, columns}, stride, place(what)};
  }
  Floats numbers(int64_t count, const Bad& bad, const std::vector<size_t>& at) const {
    Floats out(static_cast<size_t>(count));
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = 0.25F * static_cast<float>(i + 1 + static_cast<size_t>(rank_));
    }
    const int bad_rank = bad.rank < 0 ? setting_.ranks - 1 : bad.rank;
    const float kinds[] = {-HUGE_VALF, std::nanf(""), HUGE_VALF};
    for (size_t k = 0; rank_ == bad_rank && k < at.size(); ++k) out[at[k]] = kinds[(k + at[k]) % 3];
    return out;
  }

  // Calls, and writes down what it was refused for. False: the batch is over.
  template <class Call>
  bool see(const char* what, const Call& call) {
    try {
      call();
      return true;
    } catch (const core::Error& error) {
      seen_ << what << ": " << error.status() << ' ' << error.sentence() << ' '
            << error.parts().rank.value_or(-1) << ' ' << error.parts().position.value_or(-1) << ' '
            << error.parts().feature << ' ' << error.parts().table << '\n';
      return false;
    }
  }
  void begin(embedding::Lookup& lookup, const Batch& batch) {
    lookup.begin({.batch_size = kSamples,
                  .values = batch.values.get(),
                  .lengths = batch.lengths.get(),
                  .weights = batch.weighted ? batch.weights.get() : nullptr});
  }
  void finish(embedding::Lookup& lookup, const Batch& batch) {
    const bool looked_up = see("forward", [&] { lookup.forward(0, batch.out.get()); });
    if (looked_up) {
      lookup.set_gradient(0, batch.pooled.get());
      if (setting_.sequence) lookup.set_gradient(1, batch.rows.get());
      see("backward", [&] { lookup.backward(); });
    }
    tables_->synchronize();
    see_output(batch.out);
    seen_ << "tables " << digest(*tables_) << '\n';
  }
  // Numbers, but for which NaN they are.
  void see_output(const Tensor& out) {
    const std::string bytes = out.bytes();
    const size_t size = core::dtype_size(setting_.dtype);
    for (size_t at = 0; at < bytes.size(); at += size) {
      uint32_t word = 0;
      std::memcpy(&word, &bytes[at], size);
      const uint32_t infinity = setting_.dtype == SHARDREC_FLOAT32   ? 0x7F800000U
                                : setting_.dtype == SHARDREC_FLOAT16 ? 0x7C00U
                                                                     : 0x7F80U;
      const uint32_t magnitude = word & (size == 4 ? 0x7FFFFFFFU : 0x7FFFU);
      if (magnitude > infinity) {
        seen_ << "NaN ";
      } else {
        seen_ << word << ' ';
      }
    }
  }

  const Setting setting_;
  const int rank_;
  std::shared_ptr<comm::Communicator> communicator_;
  std::shared_ptr<compute::cuda::host::Stream> stream_;
  std::shared_ptr<embedding::Collection> tables_;
  std::array<std::unique_ptr<embedding::Lookup>, 2> lookups_;
  std::ostringstream seen_;
};

std::vector<std::string> train(const Setting& setting) {
  const auto group = comm::local::make_group(setting.ranks, setting.ranks);
  std::vector<std::string> seen(static_cast<size_t>(setting.ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < setting.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        seen[static_cast<size_t>(rank)] = Trainer(setting, rank, group).run();
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return seen;
}

class NonFiniteOnDevices : public ::testing::TestWithParam<shardrec_non_finite> {
 protected:
  // What the ranks see on devices is what they see on the CPU, where something is refused or counted.
  static void expect_as_on_cpu(Setting setting) {
    setting.how = GetParam();
    setting.device = 0;
    const auto here = train(setting.on_cpu());
    const auto there = train(setting);
    for (size_t rank = 0; rank < here.size(); ++rank) {
      EXPECT_EQ(there[rank], here[rank]) << setting.ranks << " ranks, rank " << rank;
    }
    const bool refuses = setting.how == SHARDREC_NON_FINITE_ERROR;
    EXPECT_EQ(here[0].find("forward: ") != std::string::npos, refuses) << here[0];
    EXPECT_EQ(here[0].find("backward: ") != std::string::npos, refuses) << here[0];
    for (const char* const what : {"weights[4] is NaN", "of output 0 at row 1, column 1"}) {
      EXPECT_EQ(here[0].find(what) != std::string::npos, refuses) << here[0];
    }
    // One of the steps is bad for its sequence only.
    const std::string last = setting.sequence ? "step 3 counted" : "step 4 counted";
    EXPECT_NE(here[0].find(last, here[0].rfind("step ")), std::string::npos) << here[0];
  }
};

TEST_P(NonFiniteOnDevices, AreFoundWhereTheyAreOnTheCpu) {
  for (const int ranks : {2, 4}) expect_as_on_cpu({.ranks = ranks});
}

TEST_P(NonFiniteOnDevices, AreFoundWhereRowsAreLookedUpFirst) {
  for (const unsigned on_device : {kAll, kIds | kPooled}) {
    expect_as_on_cpu({.ranks = 1, .on_device = on_device, .sequence = false});
  }
}

TEST_P(NonFiniteOnDevices, AreFoundInTensorsOnEitherSide) {
  for (const unsigned on_device : {kIds | kPooled, kWeights | kRows}) {
    SCOPED_TRACE(on_device);
    expect_as_on_cpu({.ranks = 1, .on_device = on_device});
  }
}

TEST_P(NonFiniteOnDevices, AreFoundInGradientsThatAreBorrowed) {
  expect_as_on_cpu({.on_device = kWeights | kPooled, .borrow = true, .gap = 1});
}

TEST_P(NonFiniteOnDevices, AreFoundInGradientsOf16Bits) {
  expect_as_on_cpu({.ranks = 1, .gap = 3, .dtype = SHARDREC_FLOAT16});
  expect_as_on_cpu({.ranks = 1, .borrow = true, .dtype = SHARDREC_BFLOAT16});
}

TEST_P(NonFiniteOnDevices, AreToldToRanksOfOtherProcesses) {
  expect_as_on_cpu({.ranks = 3, .carrier = Carrier::kCopied});
}

TEST_P(NonFiniteOnDevices, AreToldToRanksBehindNccl) {
  expect_as_on_cpu({.ranks = 3, .carrier = Carrier::kNccl});
  EXPECT_EQ(OF_FAKE(fake_nccl_violations)(), 0) << OF_FAKE(fake_nccl_last_violation)();
}

INSTANTIATE_TEST_SUITE_P(How, NonFiniteOnDevices,
                         ::testing::Values(SHARDREC_NON_FINITE_ERROR, SHARDREC_NON_FINITE_SKIP));

}  // namespace
}  // namespace shardrec::test
