// What a step on a device costs the host: how often it waits for the device, how many kernels and copies it
// enqueues, and how many calls of the runtime it makes with events and questions, once buffers have grown. The
// figures are those of today: whoever adds a wait or a launch sees it here, and whoever saves one writes down the new
// figure.
#include <atomic>
#include <deque>
#include <shardrec/shardrec.hpp>

#include "device/device_arrays.h"
#include "device/of_plugin.h"
#include "device/rank_on_device.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

// Per rank and step.
struct Counts {
  int64_t waits = 0;
  int64_t launches = 0;
  int64_t copies = 0;
  int64_t calls = 0;  // of the runtime: those, and events; a few depend on how quick the device is
  int64_t event_waits = 0;
  int64_t spinning_waits = 0;  // among them
  int64_t plugin_waits = 0;
  int64_t plugin_launches = 0;
  int64_t plugin_calls = 0;

  bool are_within(const Counts& most) const {
    return waits == most.waits && launches == most.launches && copies == most.copies &&
           calls <= most.calls;
  }
  friend std::ostream& operator<<(std::ostream& out, const Counts& counts) {
    return out << counts.waits << " waits, " << counts.launches << " launches, " << counts.copies
               << " copies, " << counts.calls << " calls";
  }
};

class StepCounts : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    stream_waits_ = of_plugin<int64_t()>("simt_stream_waits");
    if (stream_waits_ == nullptr) GTEST_SKIP() << "only CUDA on the CPU counts calls";
    event_waits_ = of_plugin<int64_t()>("simt_event_waits");
    spinning_waits_ = of_plugin<int64_t()>("simt_spinning_waits");
    launches_ = of_plugin<int64_t()>("simt_launches");
    copies_ = of_plugin<int64_t()>("simt_copies");
    calls_ = of_plugin<int64_t()>("simt_calls");
  }

  Counts now() const {
    shardrec_cuda_calls of_plugin_itself{};
    compute::cuda::host::table().count_calls(&of_plugin_itself);
    return {.waits = stream_waits_() + event_waits_(),
            .launches = launches_(),
            .copies = copies_(),
            .calls = calls_(),
            .event_waits = event_waits_(),
            .spinning_waits = spinning_waits_(),
            .plugin_waits = of_plugin_itself.waits,
            .plugin_launches = of_plugin_itself.launches,
            .plugin_calls = of_plugin_itself.calls};
  }

  // Of steps of a table on device 0 that `ranks` ranks of this process share by rows. batches: so many take turns,
  // each with tensors of its own.
  Counts of_a_step(int ranks, bool deduplicate = false,
                   shardrec_device_wait wait = SHARDREC_DEVICE_WAIT_SLEEP, size_t batches = 1) {
    constexpr int64_t kSteps = 4;
    Batch batch;
    if (deduplicate) {
      for (int64_t& id : batch.ids) id = id % 4 * (kRows / 4);
    }
    std::deque<Array> arrays;
    std::vector<shardrec_tensor> values;
    std::vector<shardrec_tensor> bags;
    for (size_t b = 0; b < batches; ++b) {
      Array& ids = arrays.emplace_back(*this, batch.ids.data(), batch.ids.size() * sizeof(int64_t));
      Array& lengths =
          arrays.emplace_back(*this, batch.lengths.data(), batch.lengths.size() * sizeof(int32_t));
      void* const of_ids = ids_on_host_ ? batch.ids.data() : ids.data();
      void* const of_lengths = ids_on_host_ ? batch.lengths.data() : lengths.data();
      values.push_back(vector_at(of_ids, SHARDREC_INT64, batch.ids.size(), !ids_on_host_));
      bags.push_back(vector_at(of_lengths, SHARDREC_INT32, batch.lengths.size(), !ids_on_host_));
    }
    Array gradient(*this, batch.gradient.data(), batch.gradient.size() * sizeof(float));
    std::vector<std::unique_ptr<Array>> outputs;
    for (int rank = 0; rank < ranks; ++rank) {
      outputs.push_back(
          std::make_unique<Array>(*this, batch.out.data(), batch.out.size() * sizeof(float)));
    }
    const auto given = matrix_at(gradient.data(), true);
    Counts before;
    Counts after;
    run(ranks, [&](shardrec::Comm& comm) {
      shardrec::Model model;
      model.set_optimizer(
          shardrec::OptimizerOptions().optimizer(SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD));
      model.add_feature(model.add_table("t", kRows, kDim), "f");
      const auto plan = shardrec::Plan::collective(
          comm, model, shardrec::PlanOptions().sharding(SHARDREC_SHARDING_ROW_WISE));
      shardrec::Collection tables(comm, model, plan,
                                  shardrec::CollectionOptions()
                                      .device(0)
                                      .deduplicate(deduplicate)
                                      .device_wait(wait)
                                      .non_finite(non_finite_));
      shardrec::Lookup step(tables);
      const auto out = matrix_at(outputs[static_cast<size_t>(comm.rank())]->data(), true);
      size_t next = 0;
      const auto take_steps = [&] {
        for (int64_t s = 0; s < kSteps; ++s) {
          const size_t b = next++ % batches;
          shardrec::check(begin_batch(
              step.get(), {.batch_size = kBatch, .values = &values[b], .lengths = &bags[b]}));
          shardrec::check(shardrec_lookup_forward(step.get(), 0, &out));
          shardrec::check(shardrec_lookup_set_gradient(step.get(), 0, &given));
          step.backward();
        }
        tables.wait_device();
      };
      const auto count = [&](Counts& into) {
        comm.barrier();
        if (comm.rank() == 0) into = now();
        comm.barrier();
      };
      // Buffers grow, and what comes again becomes graphs: arguments take turns with four pieces of memory.
      for (size_t s = 0; s < 4 * batches; ++s) take_steps();
      count(before);
      take_steps();
      count(after);
    });
    // The plug-in's own count. CUDA on the CPU counts no wait for what it knows
    // to be over.
    EXPECT_EQ(after.plugin_launches - before.plugin_launches, after.launches - before.launches);
    EXPECT_EQ(after.plugin_calls - before.plugin_calls, after.calls - before.calls);
    EXPECT_GE(after.plugin_waits - before.plugin_waits, after.waits - before.waits);
    EXPECT_LT(after.plugin_waits - before.plugin_waits, after.calls - before.calls);
    const auto each = [&](int64_t all) { return all / (kSteps * ranks); };
    // The wait of synchronize() is the test's, one per rank.
    return {.waits = each(after.waits - before.waits - ranks),
            .launches = each(after.launches - before.launches),
            .copies = each(after.copies - before.copies),
            .calls = each(after.calls - before.calls - ranks),
            .event_waits = each(after.event_waits - before.event_waits),
            .spinning_waits = each(after.spinning_waits - before.spinning_waits)};
  }

  static void expect(const Counts& counted, const Counts& most) {
    EXPECT_TRUE(counted.are_within(most)) << counted << ", where there were " << most;
  }

  shardrec_non_finite non_finite_ = SHARDREC_NON_FINITE_ALLOW;  // of the collections
  bool ids_on_host_ = false;
  int64_t (*stream_waits_)() = nullptr;
  int64_t (*event_waits_)() = nullptr;
  int64_t (*spinning_waits_)() = nullptr;
  int64_t (*launches_)() = nullptr;
  int64_t (*copies_)() = nullptr;
  int64_t (*calls_)() = nullptr;
};

// A wait for whether the batch is good, behind the lookups (compute/local_batch.h). Arguments are those of steps
// before, and not copied again.
TEST_F(StepCounts, OfOneRank) {
  expect(of_a_step(1), Counts{.waits = 1, .launches = 10, .copies = 5, .calls = 25});
}

// What lists say of a batch does not depend on where it lies: they are not sent again.
TEST_F(StepCounts, OfOneRankWhoseBatchesLieElsewhereInEachStep) {
  expect(of_a_step(1, false, SHARDREC_DEVICE_WAIT_SLEEP, 3),
         Counts{.waits = 1, .launches = 10, .copies = 5, .calls = 25});
}

// A wait for what the owners of the batch's ids get; what a rank of the process has sent is not checked again.
TEST_F(StepCounts, OfTwoRanksThatShareADevice) {
  expect(of_a_step(2), Counts{.waits = 1, .launches = 17, .copies = 7, .calls = 46});
}

// Option NON_FINITE: gradients are looked through by a kernel, between a fill and a copy of its answer, for which
// backward waits.
TEST_F(StepCounts, OfOneRankWhoseGradientsAreLookedThrough) {
  non_finite_ = SHARDREC_NON_FINITE_SKIP;
  expect(of_a_step(1), Counts{.waits = 2, .launches = 11, .copies = 7, .calls = 28});
}

// Ids and lengths of the host's are one copy more, in a stream of their own.
TEST_F(StepCounts, OfOneRankWhoseBatchesLieOnTheHost) {
  ids_on_host_ = true;
  expect(of_a_step(1), Counts{.waits = 1, .launches = 10, .copies = 6, .calls = 25});
}

// What the host waits for is counted in that stream too. As it does not wait for the step before, it waits in backward
// for how many rows that has updated.
TEST_F(StepCounts, OfTwoRanksWhoseBatchesLieOnTheHost) {
  ids_on_host_ = true;
  expect(of_a_step(2), Counts{.waits = 2, .launches = 20, .copies = 9, .calls = 46});
}

// Option DEVICE_WAIT: all that a step waits for is an event, which says how.
TEST_F(StepCounts, AStepWaitsAsTheCollectionIsTold) {
  const Counts asleep = of_a_step(2);
  EXPECT_EQ(asleep.event_waits, 1);
  EXPECT_EQ(asleep.spinning_waits, 0);
  const Counts spinning = of_a_step(2, false, SHARDREC_DEVICE_WAIT_SPIN);
  EXPECT_EQ(spinning.event_waits, 1);
  EXPECT_EQ(spinning.spinning_waits, 1);
}

// Two waits more: for how many different ids each block has, and for the check of the codes that arrive.
TEST_F(StepCounts, OfTwoRanksWhoseRepeatedIdsTravelOnce) {
  expect(of_a_step(2, true), Counts{.waits = 3, .launches = 21, .copies = 13, .calls = 50});
}

}  // namespace
}  // namespace shardrec::test
