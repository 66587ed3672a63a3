// Batches of the host's on a device, two lookups in flight: the next batch begins while the device has not come to the
// step of the batch before, and the caller overwrites its tensors at once. Outputs, tables and counters are the CPU's bit
// by bit, refusals are its refusals; for every kind of batch, on one rank and on ranks that share tables.
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <shardrec/shardrec.hpp>
#include <string>
#include <vector>

#include "device/held_streams.h"
#include "device/rank_on_device.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

struct BatchKind {
  const char* name;
  bool by_offsets = false;
  bool weighted = false;
  bool variable = false;  // features have batch sizes of their own
  shardrec_out_of_range out_of_range = SHARDREC_OUT_OF_RANGE_ERROR;
  shardrec_non_finite non_finite = SHARDREC_NON_FINITE_ALLOW;
  bool deduplicates = false;  // ids, of which there are few different ones
};

constexpr BatchKind kKinds[] = {
    {.name = "lengths"},
    {.name = "offsets", .by_offsets = true},
    {.name = "weights", .weighted = true},
    {.name = "weights that are looked through",
     .weighted = true,
     .non_finite = SHARDREC_NON_FINITE_ERROR},
    {.name = "batch sizes", .variable = true},
    {.name = "ids that are dropped", .out_of_range = SHARDREC_OUT_OF_RANGE_DROP},
    {.name = "ids that travel once", .weighted = true, .deduplicates = true},
    {.name = "ids that are dropped, weights and offsets",
     .by_offsets = true,
     .weighted = true,
     .out_of_range = SHARDREC_OUT_OF_RANGE_DROP},
};

enum class Flaw : uint8_t { kNone, kId, kLength, kSum, kInverse, kWeight };

// Of one rank, by chance; others have other sizes.
struct HostBatch {
  static constexpr int64_t kFeatures = 3;
  static constexpr int64_t kWidth = kFeatures * kDim;

  HostBatch(const BatchKind& of_kind, int rank, int number)
      : kind(of_kind), samples(number % 4 == 3 ? 0 : 50 - 17 * (number % 3) + rank) {
    auto state = static_cast<uint32_t>(number * 16 + rank + 1);
    const auto next = [&](int64_t below) {
      state = state * 1664525U + 1013904223U;
      return static_cast<int64_t>(state >> 8) % below;
    };
    offsets.push_back(0);
    for (int64_t f = 0; f < kFeatures; ++f) {
      sizes.push_back(kind.variable ? samples / (f + 1) : samples);
      for (int64_t b = 0; b < sizes.back(); ++b) {
        lengths.push_back(static_cast<int32_t>(next(5)));
        offsets.push_back(offsets.back() + lengths.back());
      }
      for (int64_t s = 0; s < samples; ++s) inverse.push_back(next(std::max<int64_t>(sizes[f], 1)));
    }
    const bool strays = kind.out_of_range != SHARDREC_OUT_OF_RANGE_ERROR;
    for (int64_t i = 0; i < offsets.back(); ++i) {
      ids.push_back(kind.deduplicates ? next(4) * (kRows / 4) : next(kRows + (strays ? 9 : 0)));
      weights.push_back(static_cast<float>(next(100)) / 50);
    }
    for (int64_t i = 0; i < samples * kWidth; ++i) {
      gradient.push_back(static_cast<float>(next(2001)) / 1000 - 1);
    }
    out.resize(gradient.size());
  }

  void spoil(Flaw flaw) {
    if (flaw == Flaw::kId) ids[5] = kRows + 3;
    if (flaw == Flaw::kLength && kind.by_offsets) offsets[4] = 0;
    if (flaw == Flaw::kLength && !kind.by_offsets) lengths[4] = -2;
    if (flaw == Flaw::kSum) ++lengths[3];
    if (flaw == Flaw::kInverse) inverse[7] = sizes[0];
    if (flaw == Flaw::kWeight) weights[6] = std::numeric_limits<float>::quiet_NaN();
  }

  shardrec_status begin(shardrec_lookup* lookup) {
    const auto values = vector_at(ids.data(), SHARDREC_INT64, ids.size(), false);
    const auto bags = vector_at(lengths.data(), SHARDREC_INT32, lengths.size(), false);
    const auto ends = vector_at(offsets.data(), SHARDREC_INT64, offsets.size(), false);
    const auto factors = vector_at(weights.data(), SHARDREC_FLOAT32, weights.size(), false);
    const auto own = vector_at(sizes.data(), SHARDREC_INT64, sizes.size(), false);
    const auto bag_of = vector_at(inverse.data(), SHARDREC_INT64, inverse.size(), false);
    return begin_batch(lookup, {.batch_size = samples,
                                .values = &values,
                                .lengths = kind.by_offsets ? nullptr : &bags,
                                .offsets = kind.by_offsets ? &ends : nullptr,
                                .weights = kind.weighted ? &factors : nullptr,
                                .batch_sizes = kind.variable ? &own : nullptr,
                                .inverse = kind.variable ? &bag_of : nullptr});
  }
  void overwrite() {
    std::ranges::fill(ids, -1);
    std::ranges::fill(lengths, -1);
    std::ranges::fill(offsets, -1);
    std::ranges::fill(weights, std::numeric_limits<float>::infinity());
    std::ranges::fill(inverse, -1);
  }

  BatchKind kind;
  int64_t samples;
  std::vector<int64_t> ids;
  std::vector<int32_t> lengths;
  std::vector<int64_t> offsets;
  std::vector<float> weights;
  std::vector<int64_t> sizes;
  std::vector<int64_t> inverse;
  std::vector<float> gradient;
  std::vector<float> out;
};

// Two lookups of a rank for two tables with three features.
class InFlight {
 public:
  InFlight(shardrec::Comm& comm, const BatchKind& kind, int64_t device) {
    shardrec::Model model;
    model.set_optimizer(shardrec::OptimizerOptions().optimizer(SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD));
    shardrec::TableOptions table;
    table.out_of_range(kind.out_of_range);
    const int32_t first = model.add_table("t", kRows, kDim, table);
    model.add_feature(first, "f");
    model.add_feature(first, "g", SHARDREC_POOLING_MEAN);
    model.add_feature(model.add_table("u", kRows, kDim, table), "h");
    const auto plan = shardrec::Plan::collective(
        comm, model, shardrec::PlanOptions().sharding(SHARDREC_SHARDING_ROW_WISE));
    tables = std::make_unique<shardrec::Collection>(comm, model, plan,
                                                    shardrec::CollectionOptions()
                                                        .device(device)
                                                        .deduplicate(kind.deduplicates)
                                                        .non_finite(kind.non_finite));
    for (auto& lookup : lookups) lookup = std::make_unique<shardrec::Lookup>(*tables);
  }
  shardrec_lookup* lookup(int number) { return lookups[number % 2]->get(); }
  // Of the tables, and what was counted.
  void add_state_to(std::vector<float>& all) {
    std::vector<float> rows(kRows * kDim);
    for (const int32_t t : {0, 1}) {
      tables->read_range(t, SHARDREC_TABLE_WEIGHTS, 0, kRows, {rows.data(), kRows, kDim});
      all.insert(all.end(), rows.begin(), rows.end());
    }
    for (const shardrec_stat stat :
         {SHARDREC_STAT_STEPS, SHARDREC_STAT_IDS_SENT, SHARDREC_STAT_IDS_RECEIVED,
          SHARDREC_STAT_TABLE_OUT_OF_RANGE, SHARDREC_STAT_TABLE_IDS, SHARDREC_STAT_BYTES_INPUT}) {
      all.push_back(static_cast<float>(tables->stat(stat)));
    }
  }

  std::unique_ptr<shardrec::Collection> tables;
  std::unique_ptr<shardrec::Lookup> lookups[2];
};

class HostBatches : public HeldStreamsTest {
 protected:
  static constexpr int kSteps = 9;

  // Outputs and gradients of a batch: on the device where streams are held.
  struct Matrices {
    Matrices(HostBatches& test, HostBatch& batch, bool on_device) : of(batch) {
      if (!on_device) return;
      out_there = std::make_unique<Array>(test, batch.out.data(), batch.out.size() * 4);
      gradient_there =
          std::make_unique<Array>(test, batch.gradient.data(), batch.gradient.size() * 4);
    }
    shardrec_tensor out() { return matrix(out_there.get(), of.out); }
    shardrec_tensor gradient() { return matrix(gradient_there.get(), of.gradient); }
    shardrec_tensor matrix(Array* there, std::vector<float>& here) const {
      shardrec_tensor tensor{};
      void* const data = there == nullptr ? here.data() : there->data();
      EXPECT_OK(
          shardrec_tensor_matrix(data, SHARDREC_FLOAT32, of.samples, HostBatch::kWidth, &tensor));
      if (there != nullptr) tensor.device_type = SHARDREC_DEVICE_CUDA;
      return tensor;
    }
    void add_output_to(std::vector<float>& all) {
      if (out_there != nullptr && !of.out.empty()) {
        std::memcpy(of.out.data(), out_there->bytes().data(), of.out.size() * 4);
      }
      all.insert(all.end(), of.out.begin(), of.out.end());
    }
    HostBatch& of;
    std::unique_ptr<Array> out_there;
    std::unique_ptr<Array> gradient_there;
  };

  // Outputs, tables and counters of all ranks, one after another. On a device the caller's streams are held from forward
  // on, until the next batch has begun.
  std::vector<float> train(const BatchKind& kind, int ranks, int64_t device) {
    const bool holds = device >= 0;
    std::vector<std::vector<std::unique_ptr<HostBatch>>> batches(static_cast<size_t>(ranks));
    std::vector<std::vector<std::unique_ptr<Matrices>>> matrices(batches.size());
    for (int rank = 0; rank < ranks; ++rank) {
      const auto r = static_cast<size_t>(rank);
      for (int step = 0; step <= kSteps; ++step) {
        batches[r].push_back(std::make_unique<HostBatch>(kind, rank, step));
        matrices[r].push_back(std::make_unique<Matrices>(*this, *batches[r].back(), holds));
      }
    }
    compute::cuda::host::Stream* const streams[] = {&caller_, &others_};
    std::vector<std::vector<float>> states(batches.size());
    run(ranks, [&](shardrec::Comm& comm) {
      const auto r = static_cast<size_t>(comm.rank());
      InFlight trained(comm, kind, device);
      for (const int lookup : {0, 1}) {
        shardrec::check(shardrec_lookup_set_stream(trained.lookup(lookup), streams[r]->number()));
      }
      const auto begin = [&](int step) {
        shardrec::check(batches[r][static_cast<size_t>(step)]->begin(trained.lookup(step)));
        batches[r][static_cast<size_t>(step)]->overwrite();
      };
      begin(0);
      for (int step = 0; step < kSteps; ++step) {
        Matrices& own = *matrices[r][static_cast<size_t>(step)];
        const auto out = own.out();
        const auto gradient = own.gradient();
        shardrec::check(shardrec_lookup_forward(trained.lookup(step), 0, &out));
        const auto backward = [&] {
          shardrec::check(shardrec_lookup_set_gradient(trained.lookup(step), 0, &gradient));
          shardrec::check(shardrec_lookup_backward(trained.lookup(step), SHARDREC_UPDATE_APPLY));
        };
        // Where backward waits for gradients, to look through them, the output is written again in its place.
        const bool waits = kind.non_finite != SHARDREC_NON_FINITE_ALLOW;
        const auto go_ahead = [&] {
          if (!waits) backward();
          if (waits) shardrec::check(shardrec_lookup_forward(trained.lookup(step), 0, &out));
          if (step + 1 < kSteps) begin(step + 1);
        };
        const bool held = holds && step >= kGrowing && !HasFailure();
        comm.barrier();
        if (held) hold_(streams[r]->number());
        comm.barrier();
        if (held) {
          EXPECT_TRUE(returns_while_held(go_ahead)) << kind.name << ", step " << step;
        } else {
          go_ahead();
        }
        comm.barrier();
        if (held && r == 0) go_on_();
        if (waits) backward();
        comm.barrier();
      }
      trained.add_state_to(states[r]);
    });
    std::vector<float> all;
    for (size_t r = 0; r < batches.size(); ++r) {
      for (int step = 0; step < kSteps; ++step) {
        matrices[r][static_cast<size_t>(step)]->add_output_to(all);
      }
      all.insert(all.end(), states[r].begin(), states[r].end());
    }
    return all;
  }

  // What forward says on all ranks of a batch that the last rank has spoilt, and then the tables behind a good one.
  std::string refusal(const BatchKind& kind, Flaw flaw, int ranks, int64_t device,
                      std::vector<float>& state) {
    std::mutex mutex;
    std::string said;
    run(ranks, [&](shardrec::Comm& comm) {
      const int rank = comm.rank();
      InFlight trained(comm, kind, device);
      const auto step = [&](int number, Flaw own) {
        HostBatch batch(kind, rank, number);
        batch.spoil(own);
        shardrec::check(batch.begin(trained.lookup(number)));
        batch.overwrite();
        trained.lookups[number % 2]->forward(0, {batch.out.data(), batch.samples, batch.kWidth});
        trained.lookups[number % 2]->set_gradient(
            0, {batch.gradient.data(), batch.samples, batch.kWidth});
        trained.lookups[number % 2]->backward();
      };
      step(0, Flaw::kNone);
      try {
        step(1, rank == ranks - 1 ? flaw : Flaw::kNone);
        ADD_FAILURE() << "not refused";
      } catch (const shardrec::Error& error) {
        EXPECT_EQ(error.status(), SHARDREC_INVALID_BATCH);
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(said.empty() || said == error.what()) << said << ", " << error.what();
        said = error.what();
      }
      step(2, Flaw::kNone);
      std::vector<float> own;
      trained.add_state_to(own);
      if (rank == 0) state = own;
    });
    return said;
  }

  static constexpr int kGrowing = 4;  // so many steps buffers grow
  compute::cuda::host::Stream others_{0};
};

TEST_F(HostBatches, BeginWhileTheStepBeforeIsHeldAndHaveTheBitsOfTheCpu) {
  for (const BatchKind& kind : kKinds) {
    for (const int ranks : {1, 2}) {
      EXPECT_EQ(train(kind, ranks, 0), train(kind, ranks, -1)) << kind.name << ", " << ranks;
    }
  }
}

// Of two ranks, which wait in begin alone: what the next batch of the same lookup is copied to is read by then.
TEST_F(HostBatches, BeginBehindTheOneOfTheirLookupWhereTheDeviceIsTwoStepsBehind) {
  const auto result_of = [&](int64_t device) {
    const bool holds = device >= 0;
    std::vector<std::unique_ptr<HostBatch>> batches[2];
    std::vector<std::unique_ptr<Matrices>> matrices[2];
    for (const int rank : {0, 1}) {
      for (int step = 0; step < 12; ++step) {
        batches[rank].push_back(std::make_unique<HostBatch>(kKinds[0], rank, 4 * step));
        matrices[rank].push_back(std::make_unique<Matrices>(*this, *batches[rank].back(), holds));
      }
    }
    compute::cuda::host::Stream* const streams[] = {&caller_, &others_};
    std::vector<float> states[2];
    run(2, [&](shardrec::Comm& comm) {
      const int rank = comm.rank();
      InFlight trained(comm, kKinds[0], device);
      for (const int lookup : {0, 1}) {
        shardrec::check(
            shardrec_lookup_set_stream(trained.lookup(lookup), streams[rank]->number()));
      }
      const auto begin = [&](size_t step) {
        shardrec::check(batches[rank][step]->begin(trained.lookup(static_cast<int>(step))));
        batches[rank][step]->overwrite();
      };
      const auto forward = [&](size_t step) {
        const auto out = matrices[rank][step]->out();
        shardrec::check(shardrec_lookup_forward(trained.lookup(static_cast<int>(step)), 0, &out));
      };
      const auto backward = [&](size_t step) {
        const auto gradient = matrices[rank][step]->gradient();
        shardrec_lookup* const lookup = trained.lookup(static_cast<int>(step));
        shardrec::check(shardrec_lookup_set_gradient(lookup, 0, &gradient));
        shardrec::check(shardrec_lookup_backward(lookup, SHARDREC_UPDATE_APPLY));
      };
      for (size_t step = 0; step < 8; ++step) {  // buffers grow
        begin(step);
        forward(step);
        backward(step);
      }
      begin(8);
      forward(8);
      trained.tables->wait_device();
      comm.barrier();
      if (holds) hold_(streams[rank]->number());
      comm.barrier();
      const auto two_steps = [&] {
        backward(8);
        begin(9);
        forward(9);
        backward(9);
        begin(10);
      };
      if (holds) {
        EXPECT_TRUE(returns_while_held(two_steps));
      } else {
        two_steps();
      }
      comm.barrier();
      if (holds && rank == 0) {
        EXPECT_TRUE(go_on_during([&] { begin(11); }));
      } else {
        begin(11);
      }
      for (const size_t step : {10, 11}) {
        forward(step);
        backward(step);
      }
      trained.add_state_to(states[rank]);
    });
    std::vector<float> all;
    for (const int rank : {0, 1}) {
      for (const auto& of_step : matrices[rank]) of_step->add_output_to(all);
      all.insert(all.end(), states[rank].begin(), states[rank].end());
    }
    return all;
  };
  EXPECT_EQ(result_of(0), result_of(-1));
}

TEST_F(HostBatches, AreRefusedAsOnTheCpu) {
  const struct {
    Flaw flaw;
    BatchKind kind;
  } cases[] = {{Flaw::kId, kKinds[0]},     {Flaw::kLength, kKinds[0]}, {Flaw::kSum, kKinds[0]},
               {Flaw::kLength, kKinds[1]}, {Flaw::kWeight, kKinds[3]}, {Flaw::kInverse, kKinds[4]},
               {Flaw::kId, kKinds[4]}};
  for (const auto& one : cases) {
    for (const int ranks : {1, 2}) {
      std::vector<float> here;
      std::vector<float> there;
      EXPECT_EQ(refusal(one.kind, one.flaw, ranks, 0, there),
                refusal(one.kind, one.flaw, ranks, -1, here))
          << one.kind.name << ", " << ranks;
      EXPECT_EQ(here, there) << one.kind.name << ", " << ranks;
    }
  }
}

// Where memory runs out in begin, it may be called again.
TEST_F(HostBatches, BeginAgainWhereMemoryRanOut) {
  auto* const fail_allocation = of_plugin<void(int64_t)>("simt_fail_allocation");
  for (const BatchKind& kind : {kKinds[0], kKinds[4], kKinds[5]}) {
    // failing: which allocation of begin does; 0: none. Returns what begin did first.
    const auto look_up = [&](int64_t device, int64_t failing, std::vector<float>& out) {
      HostBatch batch(kind, 0, 0);
      shardrec_status status = SHARDREC_OK;
      run(1, [&](shardrec::Comm& comm) {
        InFlight tables(comm, kind, device);
        fail_allocation(failing);
        status = batch.begin(tables.lookup(0));
        fail_allocation(0);
        if (status != SHARDREC_OK) shardrec::check(batch.begin(tables.lookup(0)));
        batch.overwrite();
        tables.lookups[0]->forward(0, {batch.out.data(), batch.samples, batch.kWidth});
      });
      out = batch.out;
      return status;
    };
    std::vector<float> expected;
    ASSERT_EQ(look_up(-1, 0, expected), SHARDREC_OK);
    int64_t failures = 0;
    for (bool failed = true; failed; failures += failed ? 1 : 0) {
      std::vector<float> found;
      const shardrec_status status = look_up(0, failures + 1, found);
      failed = status != SHARDREC_OK;
      ASSERT_EQ(found, expected) << kind.name << ", failure " << failures;
      ASSERT_TRUE(!failed || status == SHARDREC_OUT_OF_MEMORY) << shardrec_last_error();
    }
    EXPECT_GT(failures, 3) << kind.name;
  }
}

// Memory of the device for copies is counted with the buffers, grows with the largest batch, and then is had.
TEST_F(HostBatches, AreCopiedToMemoryThatIsCountedAndKept) {
  auto* const fail_allocation = of_plugin<void(int64_t)>("simt_fail_allocation");
  run(1, [&](shardrec::Comm& comm) {
    InFlight trained(comm, kKinds[0], 0);
    const double before = trained.tables->stat(SHARDREC_STAT_BYTES_BUFFERS);
    const auto step = [&](int number) {
      HostBatch batch(kKinds[0], 0, number);
      shardrec::check(batch.begin(trained.lookup(number)));
      const size_t bytes = batch.ids.size() * 8 + batch.lengths.size() * 4;
      trained.lookups[number % 2]->forward(0, {batch.out.data(), batch.samples, batch.kWidth});
      return static_cast<double>(bytes);
    };
    const double given = step(0);
    EXPECT_GE(trained.tables->stat(SHARDREC_STAT_BYTES_BUFFERS), before + 2 * given)
        << "ids and lengths as they were given, and as they are looked up";
    for (int number = 1; number < 13; ++number) step(number);
    fail_allocation(1);
    for (int number = 0; number < 13; ++number) step(number);
    fail_allocation(0);
  });
}

}  // namespace
}  // namespace shardrec::test
