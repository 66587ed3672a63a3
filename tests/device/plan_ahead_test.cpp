// Rows are grouped in a stream of their own, beside the lookup and what the caller does before backward, where the
// batch before was trained with: in time for backward, behind what they are made of and before anything writes there,
// and with the bits of the CPU.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <shardrec/shardrec.hpp>
#include <string_view>

#include "compute/cuda/host/rows/row_groups.h"
#include "device/held_streams.h"
#include "device/rank_on_device.h"
#include "shardrec/native.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

using compute::cuda::host::PinnedMemory;
using compute::cuda::host::SortedRows;
using compute::cuda::host::table;
using DeviceStream = compute::cuda::host::Stream;

// Of one rank for two tables with three features; another one for each rank and number, and larger ones.
struct NumberedBatch {
  static constexpr int64_t kFeatures = 3;
  static constexpr int64_t kWidth = kFeatures * kDim;

  NumberedBatch(int rank, int64_t number) : samples(8 + 9 * number), weighted(number % 3 == 2) {
    auto state = static_cast<uint32_t>(number * 16 + rank + 1);
    const auto next = [&](uint32_t below) {
      state = state * 1664525U + 1013904223U;
      return (state >> 8) % below;
    };
    for (int64_t b = 0; b < kFeatures * samples; ++b) {
      lengths.push_back(static_cast<int32_t>(next(5)));
      for (int32_t i = 0; i < lengths.back(); ++i) {
        ids.push_back(next(kRows));
        weights.push_back(static_cast<float>(next(100)) / 50);
      }
    }
    for (int64_t i = 0; i < samples * kWidth; ++i) {
      gradient.push_back(static_cast<float>(next(2001)) / 1000 - 1);
    }
    out.resize(gradient.size());
  }

  int64_t samples;
  bool weighted;
  std::vector<int64_t> ids;
  std::vector<int32_t> lengths;
  std::vector<float> weights;
  std::vector<float> gradient;
  std::vector<float> out;
};

struct Shape {
  int ranks = 1;
  int64_t device = -1;
  shardrec_sharding sharding = SHARDREC_SHARDING_ROW_WISE;
};

// The tables of a rank, and two lookups.
class Trainer {
 public:
  Trainer(shardrec::Comm& comm, const Shape& shape) : rank_(comm.rank()) {
    shardrec::Model model;
    model.set_optimizer(shardrec::OptimizerOptions().optimizer(SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD));
    const int32_t first = model.add_table("t", kRows, kDim);
    model.add_feature(first, "f");
    model.add_feature(first, "g");
    model.add_feature(model.add_table("u", kRows, kDim), "h");
    const auto plan =
        shardrec::Plan::collective(comm, model, shardrec::PlanOptions().sharding(shape.sharding));
    tables_ = std::make_unique<shardrec::Collection>(
        comm, model, plan, shardrec::CollectionOptions().device(shape.device));
    for (auto& lookup : lookups_) lookup = std::make_unique<shardrec::Lookup>(*tables_);
  }

  // Letters, each but for z and y with the number of a lookup behind it: begin, forward, backward in three ways
  // (apply, keep, skip); then, of the first table: freeze it (z), train it again.
  void run(std::string_view program) {
    for (size_t at = 0; at < program.size(); ++at) {
      const char what = program[at];
      if (what == ' ') continue;
      if (what == 'z' || what == 'y') {
        tables_->set_frozen(0, what == 'z');
        continue;
      }
      const auto lookup = static_cast<size_t>(program[++at] - '0');
      if (what == 'b') begin(lookup);
      if (what == 'f') forward(lookup);
      if (what == 'a') finish(lookup, SHARDREC_UPDATE_APPLY);
      if (what == 'k') finish(lookup, SHARDREC_UPDATE_ACCUMULATE);
      if (what == 's') finish(lookup, SHARDREC_UPDATE_SKIP);
    }
  }
  void destroy_lookup(size_t lookup) { lookups_[lookup].reset(); }
  const std::vector<float>& outputs() const { return outputs_; }  // of all forwards, in their order
  // Waits for the device, as it has to.
  std::vector<float> outputs_and_rows() {
    std::vector<float> all = outputs_;
    std::vector<float> rows(kRows * kDim);
    for (const int32_t t : {0, 1}) {
      tables_->read_range(t, SHARDREC_TABLE_WEIGHTS, 0, kRows, {rows.data(), kRows, kDim});
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }

 private:
  void begin(size_t lookup) {
    batches_.erase(lookup);
    NumberedBatch& batch = batches_.try_emplace(lookup, rank_, ++begun_).first->second;
    const auto ids = vector_at(batch.ids.data(), SHARDREC_INT64, batch.ids.size(), false);
    const auto lengths =
        vector_at(batch.lengths.data(), SHARDREC_INT32, batch.lengths.size(), false);
    const auto weights =
        vector_at(batch.weights.data(), SHARDREC_FLOAT32, batch.weights.size(), false);
    shardrec::check(
        begin_batch(lookups_[lookup]->get(), {.batch_size = batch.samples,
                                              .values = &ids,
                                              .lengths = &lengths,
                                              .weights = batch.weighted ? &weights : nullptr}));
  }
  void forward(size_t lookup) {
    NumberedBatch& batch = batches_.at(lookup);
    lookups_[lookup]->forward(0, {batch.out.data(), batch.samples, NumberedBatch::kWidth});
    outputs_.insert(outputs_.end(), batch.out.begin(), batch.out.end());
  }
  void finish(size_t lookup, shardrec_update update) {
    NumberedBatch& batch = batches_.at(lookup);
    lookups_[lookup]->set_gradient(0,
                                   {batch.gradient.data(), batch.samples, NumberedBatch::kWidth});
    lookups_[lookup]->backward(update);
  }

  int rank_;
  int64_t begun_ = 0;
  std::unique_ptr<shardrec::Collection> tables_;
  std::unique_ptr<shardrec::Lookup> lookups_[2];
  std::map<size_t, NumberedBatch> batches_;  // by lookup: the last one
  std::vector<float> outputs_;
};

// Of all ranks, one after another.
std::vector<float> result_of(const Shape& shape, std::string_view program) {
  std::vector<std::vector<float>> results(static_cast<size_t>(shape.ranks));
  run(shape.ranks, [&](shardrec::Comm& comm) {
    Trainer trainer(comm, shape);
    trainer.run(program);
    results[static_cast<size_t>(comm.rank())] = trainer.outputs_and_rows();
  });
  std::vector<float> all;
  for (const auto& result : results) all.insert(all.end(), result.begin(), result.end());
  return all;
}

// Hands CUDA's memory on, but for some streams, and remembers which have asked for it.
class StreamsOfMemory {
 public:
  // When all that it has given is given back.
  ~StreamsOfMemory() {
    end();
    for (void* memory : memory_) table().release(stream_.handle(), memory);
  }
  StreamsOfMemory(const StreamsOfMemory&) = delete;
  StreamsOfMemory& operator=(const StreamsOfMemory&) = delete;
  StreamsOfMemory() = default;

  // From now on, up to end(): it has nothing for these streams.
  void begin(const std::set<int64_t>& refused = {}) {
    refused_ = refused;
    EXPECT_OK(shardrec_device_set_allocator(allocate, release, this));
  }
  static void end() { EXPECT_OK(shardrec_device_set_allocator(nullptr, nullptr, nullptr)); }
  std::set<int64_t> seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }
  int64_t refusals() const { return refusals_; }

 private:
  static void* allocate(void* context, int32_t /*device*/, int64_t bytes, int64_t stream) {
    auto& own = *static_cast<StreamsOfMemory*>(context);
    const std::lock_guard lock(own.mutex_);
    own.seen_.insert(stream);
    if (own.refused_.contains(stream)) {
      ++own.refusals_;
      return nullptr;
    }
    void* memory = nullptr;
    compute::cuda::host::require(
        table().allocate(own.stream_.handle(), static_cast<uint64_t>(bytes), &memory),
        "allocate for the program");
    own.stream_.wait();  // for any stream
    own.memory_.push_back(memory);
    return memory;
  }
  // Nothing, since streams may still use it.
  static void release(void*, int32_t, void*, int64_t, int64_t) {}

  std::mutex mutex_;
  DeviceStream stream_{0};
  std::set<int64_t> refused_;
  std::set<int64_t> seen_;
  int64_t refusals_ = 0;
  std::vector<void*> memory_;
};

class PlanAhead : public HeldStreamsTest {
 protected:
  // body(comm, trainer) on each rank, whose trainer has taken a step, and so plans ahead.
  template <class Body>
  void with_trainers(int ranks, const Body& body) {
    streams_.begin();
    std::set<int64_t> of_operations;
    run(ranks, [&](shardrec::Comm& comm) {
      Trainer trainer(comm, {.ranks = ranks, .device = 0});
      const bool first = comm.rank() == 0;
      trainer.run("b0f0");
      comm.barrier();
      if (first) of_operations = streams_.seen();
      comm.barrier();
      trainer.run("a0");
      comm.barrier();
      if (first) {
        std::ranges::set_difference(streams_.seen(), of_operations,
                                    std::inserter(of_plans_, of_plans_.end()));
        EXPECT_EQ(std::ssize(of_plans_), ranks);
        streams_.end();
      }
      comm.barrier();
      body(comm, trainer);
    });
  }
  void hold_plans() {
    for (const int64_t stream : of_plans_) hold_(stream);
  }

  StreamsOfMemory streams_;
  std::set<int64_t> of_plans_;
};

TEST_F(PlanAhead, IsMadeBesideTheLookupAndWhatComesBeforeTheUpdate) {
  const std::vector<float> expected = result_of({}, "b0f0a0 b0f0a0 b0f0a0");
  with_trainers(1, [&](shardrec::Comm&, Trainer& trainer) {
    for (int step = 0; step < 2; ++step) {
      hold_plans();
      // The caller gets the output, which it waits for.
      EXPECT_TRUE(returns_while_held([&] { trainer.run("b0f0"); })) << "step " << step;
      const std::vector<float>& outputs = trainer.outputs();
      ASSERT_LT(outputs.size(), expected.size());
      EXPECT_TRUE(std::equal(outputs.begin(), outputs.end(), expected.begin())) << "step " << step;
      EXPECT_TRUE(returns_while_held([&] { trainer.run("a0"); })) << "step " << step;
      // The update waits.
      std::vector<float> result;
      EXPECT_TRUE(go_on_during([&] { result = trainer.outputs_and_rows(); })) << "step " << step;
      if (step == 1) {
        EXPECT_EQ(result, expected);
      }
    }
  });
}

TEST_F(PlanAhead, OfAnAbandonedBatchHoldsUpWhatWritesWhereItReads) {
  const std::vector<float> expected = result_of({}, "b0f0a0 b0f0 b0f0 b0f0a0");
  with_trainers(1, [&](shardrec::Comm&, Trainer& trainer) {
    hold_plans();
    trainer.run("b0f0");
    EXPECT_TRUE(returns_while_held([&] { trainer.run("b0"); }));
    EXPECT_TRUE(go_on_during([&] { trainer.run("f0"); })) << "it is behind the check of its batch";
    // The batch before was not trained with: nothing is planned ahead.
    hold_plans();
    EXPECT_TRUE(returns_while_held([&] { trainer.run("b0f0"); }));
    go_on_();
    trainer.run("a0");
    EXPECT_EQ(trainer.outputs_and_rows(), expected);
  });
}

TEST_F(PlanAhead, HoldsUpTheEndOfItsLookup) {
  with_trainers(1, [&](shardrec::Comm&, Trainer& trainer) {
    hold_plans();
    trainer.run("b0f0");
    EXPECT_TRUE(go_on_during([&] { trainer.destroy_lookup(0); }));
  });
}

TEST_F(PlanAhead, HoldsUpASkippedStep) {
  const std::vector<float> expected = result_of({}, "b0f0a0 b0f0s0 b0f0a0");
  with_trainers(1, [&](shardrec::Comm&, Trainer& trainer) {
    hold_plans();
    EXPECT_TRUE(returns_while_held([&] { trainer.run("b0f0s0"); }));
    EXPECT_TRUE(returns_while_held([&] { trainer.run("b0"); }));
    EXPECT_TRUE(go_on_during([&] { trainer.run("f0"); }));
    trainer.run("a0");
    EXPECT_EQ(trainer.outputs_and_rows(), expected);
  });
}

TEST_F(PlanAhead, OfEachLookupInFlightIsItsOwn) {
  const std::vector<float> expected = result_of({}, "b0f0a0 b1f1a1 b0f0b1f1a0a1 b1b0f0f1a1a0");
  with_trainers(1, [&](shardrec::Comm&, Trainer& trainer) {
    trainer.run("b1f1a1");
    hold_plans();
    EXPECT_TRUE(returns_while_held([&] { trainer.run("b0f0b1f1a0"); }));
    std::vector<float> result;
    EXPECT_TRUE(go_on_during([&] { trainer.outputs_and_rows(); }));
    trainer.run("a1");
    hold_plans();
    EXPECT_TRUE(returns_while_held([&] { trainer.run("b1b0f0f1"); }));
    go_on_();
    trainer.run("a1a0");
    EXPECT_EQ(trainer.outputs_and_rows(), expected);
  });
}

TEST_F(PlanAhead, OfTwoRanksHoldsUpWhatTheOtherWrites) {
  const std::vector<float> expected = result_of({.ranks = 2}, "b0f0a0 b0f0 b0f0a0 b0f0a0");
  std::vector<float> results[2];
  with_trainers(2, [&](shardrec::Comm& comm, Trainer& trainer) {
    const bool first = comm.rank() == 0;
    if (first) hold_plans();
    comm.barrier();
    trainer.run("b0f0");
    comm.barrier();
    trainer.run("b0");
    if (first) {
      EXPECT_TRUE(go_on_during([&] { trainer.run("f0"); }));
    } else {
      trainer.run("f0");
    }
    trainer.run("a0");
    comm.barrier();
    if (first) hold_plans();
    comm.barrier();
    trainer.run("b0f0a0");
    comm.barrier();
    if (first) go_on_();
    results[comm.rank()] = trainer.outputs_and_rows();
  });
  results[0].insert(results[0].end(), results[1].begin(), results[1].end());
  EXPECT_EQ(results[0], expected);
}

TEST_F(PlanAhead, IsMadeInBackwardWhereThereWasNoMemory) {
  const std::vector<float> expected = result_of({}, "b0f0a0 b0f0a0 b0f0 b0f0a0 b0f0a0");
  with_trainers(1, [&](shardrec::Comm&, Trainer& trainer) {
    for (const char* const behind : {"a0", "b0f0a0 b0f0a0"}) {
      trainer.run("b0");
      streams_.begin(of_plans_);
      const int64_t before = streams_.refusals();
      trainer.run("f0");
      EXPECT_EQ(streams_.refusals(), before + 1);
      streams_.end();
      trainer.run(behind);
    }
    EXPECT_EQ(trainer.outputs_and_rows(), expected);
  });
}

TEST_F(PlanAhead, CostsNothingWhereNothingIsTrained) {
  auto* const launches = of_plugin<int64_t()>("simt_launches");
  const auto of = [&](Trainer& trainer, std::string_view program) {
    const int64_t before = launches();
    trainer.run(program);
    return launches() - before;
  };
  run(1, [&](shardrec::Comm& comm) {
    Trainer trainer(comm, {.device = 0});
    const int64_t untrained = of(trainer, "b0f0");
    EXPECT_EQ(of(trainer, "b0f0"), untrained);
    trainer.run("a0");
    EXPECT_GT(of(trainer, "b0f0"), untrained) << "as if it were trained with";
    EXPECT_EQ(of(trainer, "b0f0"), untrained);
    EXPECT_EQ(of(trainer, "b1f1"), untrained);
  });
}

TEST_F(PlanAhead, HasTheBitsOfTheCpuHoweverBatchesEnd) {
  for (const char* const program : {
           "b0f0a0 b0f0a0 b0f0a0 b0f0a0",               // training
           "b0f0 b0f0 b0f0a0 b0f0 b0f0 b0f0a0 b0f0a0",  // evaluation in between, abandoned batches
           "b0f0a0 b0f0s0 b0f0a0 b0f0s0 b0f0a0",        // skipped steps
           "b0f0a0 b0f0k0 b0f0k0 b0f0a0 b0f0k0 b0f0 b0f0a0",             // gradients kept
           "b0f0a0 b1f1a1 b0b1f0f1a0a1 b0f0b1a0f1a1 b0f0b1f1 b0f0a1a0",  // two in flight
           "b0f0a0 b0f0za0 b0f0a0 b0f0ya0 b0f0a0",  // a table frozen and not behind forward
       }) {
    for (const shardrec_sharding sharding :
         {SHARDREC_SHARDING_ROW_WISE, SHARDREC_SHARDING_COLUMN_WISE,
          SHARDREC_SHARDING_TABLE_WISE}) {
      for (const int ranks : {1, 2}) {
        if (ranks == 1 && sharding != SHARDREC_SHARDING_ROW_WISE) continue;
        ASSERT_EQ(result_of({.ranks = ranks, .device = 0, .sharding = sharding}, program),
                  result_of({.ranks = ranks, .sharding = sharding}, program))
            << ranks << " ranks, sharding " << sharding << ", " << program;
      }
    }
  }
}

// The groups of a batch, with operations that read them in the stream of a caller.
class GroupsInUse : public HeldStreamsTest {
 protected:
  struct Ids {
    Ids(GroupsInUse& test, int32_t count, int32_t step)
        : lengths_(static_cast<size_t>(count), 1), ids_(static_cast<size_t>(count)) {
      for (int32_t i = 0; i < count; ++i) ids_[static_cast<size_t>(i)] = i * step;
      lengths_there_ = std::make_unique<Array>(test, lengths_.data(), lengths_.size() * 4);
      ids_there_ = std::make_unique<Array>(test, ids_.data(), ids_.size() * 4);
      bags_.ids = bags_.bags = bags_.samples = count;
      bags_.dense_lengths = static_cast<const uint32_t*>(lengths_there_->data());
      block_ = {.bags = &bags_, .ids = {.data = ids_there_->data(), .is_64 = false}};
    }
    void build(SortedRows& groups) {
      const compute::GroupedPart part{.rows = 1 << 20, .blocks = {&block_, 1}};
      groups.build({&part, 1}, false, bags_.samples);
    }
    std::vector<int64_t> rows() const { return {ids_.begin(), ids_.end()}; }

   private:
    std::vector<uint32_t> lengths_;
    std::vector<int32_t> ids_;
    std::unique_ptr<Array> lengths_there_;
    std::unique_ptr<Array> ids_there_;
    compute::Bags bags_;
    compute::GroupedBlock block_;
  };
};

TEST_F(GroupsInUse, AreNeitherOverwrittenNorGivenBack) {
  const std::shared_ptr<DeviceStream> operations(std::shared_ptr<void>(), &caller_);
  auto groups = std::make_unique<SortedRows>(std::make_shared<DeviceStream>(0), operations);
  Ids first(*this, 100, 3);
  Ids second(*this, 100, 7);
  Ids larger(*this, 90000, 1);
  PinnedMemory read(100 * sizeof(int64_t));
  const auto expect_read = [&](const Ids& of, const auto& meanwhile) {
    groups->join();
    compute::RowUpdate job;
    groups->describe(0, job);
    hold();
    caller_.copy(read.data(), job.rows, read.size());
    meanwhile();
    go_on_();
    caller_.wait();
    std::vector<int64_t> rows(100);
    std::memcpy(rows.data(), read.data(), read.size());
    EXPECT_EQ(rows, of.rows());
  };
  first.build(*groups);
  expect_read(first, [&] { second.build(*groups); });
  expect_read(second, [&] { larger.build(*groups); });
  groups->join();
  second.build(*groups);
  // To give pinned memory back, the host waits for the device.
  expect_read(second, [&] { go_on_during([&] { groups.reset(); }); });
}

}  // namespace
}  // namespace shardrec::test
