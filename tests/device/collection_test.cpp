// Collections on a device, through the C API: the bits of the CPU's, with tensors on either, and what is
// refused.
#include <cstdlib>
#include <cstring>

#include "capi/capi_test.h"
#include "device/device_arrays.h"
#include "device/in_child.h"
#include "device/rank_on_device.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

class CollectionOnDevice : public DeviceTest {
 protected:
  void step(Rank& rank, Batch& batch, bool tensors_on_device) {
    if (!tensors_on_device) {
      rank.step(vector_at(batch.ids.data(), SHARDREC_INT64, batch.ids.size(), false),
                vector_at(batch.lengths.data(), SHARDREC_INT32, batch.lengths.size(), false),
                matrix_at(batch.out.data(), false), matrix_at(batch.gradient.data(), false));
      return;
    }
    Array ids(*this, batch.ids.data(), batch.ids.size() * sizeof(int64_t));
    Array lengths(*this, batch.lengths.data(), batch.lengths.size() * sizeof(int32_t));
    Array out(*this, batch.out.data(), batch.out.size() * sizeof(float));
    Array gradient(*this, batch.gradient.data(), batch.gradient.size() * sizeof(float));
    rank.step(vector_at(ids.data(), SHARDREC_INT64, batch.ids.size(), true),
              vector_at(lengths.data(), SHARDREC_INT32, batch.lengths.size(), true),
              matrix_at(out.data(), true), matrix_at(gradient.data(), true));
    ASSERT_OK(shardrec_collection_wait_device(rank.tables()));  // the arrays have another stream
    const std::vector<std::byte> bytes = out.bytes();
    std::memcpy(batch.out.data(), bytes.data(), bytes.size());
  }
};

TEST_F(CollectionOnDevice, HasTheBitsOfTheCpuWithTensorsOnEither) {
  for (const bool tensors_on_device : {false, true}) {
    Rank cpu(-1);
    Rank device(0);
    ASSERT_EQ(device.status(), SHARDREC_OK) << shardrec_last_error();
    EXPECT_EQ(cpu.rows(), device.rows());
    for (int s = 0; s < 3; ++s) {
      Batch here;
      Batch there;
      step(cpu, here, false);
      step(device, there, tensors_on_device);
      ASSERT_EQ(here.out, there.out) << "step " << s;
    }
    EXPECT_EQ(cpu.rows(), device.rows());
  }
}

TEST_F(CollectionOnDevice, RefusesDevicesThatThereAreNotAndTensorsOfOthers) {
  const Rank none(1000);
  EXPECT_EQ(none.status(), SHARDREC_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(shardrec_last_error(), "device 1000 does not exist"))
      << shardrec_last_error();
  Rank cpu(-1);
  Batch batch;
  shardrec_lookup* lookup = nullptr;
  ASSERT_OK(shardrec_lookup_create(cpu.tables(), nullptr, &lookup));
  const auto ids = vector_at(batch.ids.data(), SHARDREC_INT64, batch.ids.size(), true);
  const auto lengths = vector_at(batch.lengths.data(), SHARDREC_INT32, batch.lengths.size(), false);
  EXPECT_OK(begin_batch(lookup, {.batch_size = kBatch, .values = &ids, .lengths = &lengths}));
  const auto out = matrix_at(batch.out.data(), false);
  EXPECT_EQ(shardrec_lookup_forward(lookup, 0, &out), SHARDREC_INVALID_BATCH);
  shardrec_lookup_destroy(&lookup);
}

TEST_F(CollectionOnDevice, IsOnOneKindOfDeviceOnAllRanks) {
  run_ranks(2, [](shardrec_comm* comm, int rank) {
    Model model;
    Plan plan;
    int32_t table = 0;
    ASSERT_OK(shardrec_model_create(nullptr, model.out()));
    ASSERT_OK(shardrec_model_add_table(model, "t", kRows, kDim, nullptr, &table));
    ASSERT_OK(shardrec_model_add_feature(model, table, "f", SHARDREC_POOLING_SUM));
    ASSERT_OK(shardrec_plan_collective(comm, nullptr, model, nullptr, plan.out()));
    Options options;
    ASSERT_OK(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, options.out()));
    ASSERT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_DEVICE, rank - 1));
    shardrec_collection* tables = nullptr;
    EXPECT_EQ(shardrec_collection_create(comm, nullptr, model, plan, options, &tables),
              SHARDREC_DISAGREEMENT);
    EXPECT_TRUE(contains(shardrec_last_error(), "option DEVICE")) << shardrec_last_error();
    shardrec_collection_destroy(&tables);
  });
}

TEST_F(CollectionOnDevice, SaysThatMemoryOfTheDeviceRanOutAndLeaksNone) {
  auto* const fail_allocation = of_plugin<void(int64_t)>("simt_fail_allocation");
  auto* const live_allocations = of_plugin<int64_t()>("simt_live_allocations");
  if (fail_allocation == nullptr) GTEST_SKIP() << "only CUDA on the CPU fails on demand";
  const int64_t before = live_allocations();
  int64_t failures = 0;
  for (int64_t k = 1;; ++k) {
    fail_allocation(k);
    const Rank rank(0);
    fail_allocation(0);
    if (rank.status() == SHARDREC_OK) break;
    ++failures;
    ASSERT_EQ(rank.status(), SHARDREC_OUT_OF_MEMORY) << shardrec_last_error();
    ASSERT_TRUE(contains(shardrec_last_error(), "CUDA could not")) << shardrec_last_error();
  }
  EXPECT_GE(failures, 2);  // weights and states
  EXPECT_EQ(live_allocations(), before);
}

// What was told once is not told again: CUDA keeps errors for each thread.
TEST_F(CollectionOnDevice, TrainsAfterMemoryRanOut) {
  auto* const fail_allocation = of_plugin<void(int64_t)>("simt_fail_allocation");
  if (fail_allocation == nullptr) GTEST_SKIP() << "only CUDA on the CPU fails on demand";
  Rank rank(0);
  Batch batch;
  const auto ids = vector_at(batch.ids.data(), SHARDREC_INT64, batch.ids.size(), false);
  const auto lengths = vector_at(batch.lengths.data(), SHARDREC_INT32, batch.lengths.size(), false);
  const auto out = matrix_at(batch.out.data(), false);
  const auto gradient = matrix_at(batch.gradient.data(), false);
  fail_allocation(1);
  ASSERT_EQ(begin_batch(rank.lookup(), {.batch_size = kBatch, .values = &ids, .lengths = &lengths}),
            SHARDREC_OUT_OF_MEMORY);
  fail_allocation(0);
  for (int step = 0; step < 2; ++step) rank.step(ids, lengths, out, gradient);
}

// No memory of a device that nobody asked for: a context takes hundreds of megabytes.
TEST(CollectionOnOneOfDevices, UsesNoOther) {
  if (!is_on_cpu()) GTEST_SKIP() << "only CUDA on the CPU has as many devices as are asked for";
  expect_in_child("SHARDREC_SIMT_DEVICES", "3", [] {
    Rank rank(1);
    Batch batch;
    const auto ids = vector_at(batch.ids.data(), SHARDREC_INT64, batch.ids.size(), false);
    const auto lengths =
        vector_at(batch.lengths.data(), SHARDREC_INT32, batch.lengths.size(), false);
    const auto out = matrix_at(batch.out.data(), false);
    const auto gradient = matrix_at(batch.gradient.data(), false);
    for (int step = 0; step < 2; ++step) rank.step(ids, lengths, out, gradient);
    ASSERT_OK(shardrec_collection_wait_device(rank.tables()));
    EXPECT_EQ(of_plugin<uint64_t()>("simt_devices_with_contexts")(), 0b010U);
  });
}

// A device stays broken for its process: another one finds out.
TEST_F(CollectionOnDevice, SaysThatTheDeviceFailed) {
  if (of_plugin<void(int64_t, int)>("simt_fail_operation") == nullptr) {
    GTEST_SKIP() << "only CUDA on the CPU fails on demand";
  }
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Rank rank(0);
        Batch batch;
        const auto ids = vector_at(batch.ids.data(), SHARDREC_INT64, batch.ids.size(), false);
        const auto lengths =
            vector_at(batch.lengths.data(), SHARDREC_INT32, batch.lengths.size(), false);
        constexpr int kIllegalAddress = 700;
        of_plugin<void(int64_t, int)>("simt_fail_operation")(1, kIllegalAddress);
        const auto out = matrix_at(batch.out.data(), false);
        shardrec_status status =
            begin_batch(rank.lookup(), {.batch_size = kBatch, .values = &ids, .lengths = &lengths});
        // Begin does not wait for its operations.
        if (status == SHARDREC_OK) status = shardrec_lookup_forward(rank.lookup(), 0, &out);
        std::fprintf(stderr, "%s: %s\n", shardrec_status_name(status), shardrec_last_error());
        std::_Exit(status == SHARDREC_DEVICE_ERROR ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "SHARDREC_DEVICE_ERROR: CUDA could not .*illegal");
}

// In a process that has loaded none.
TEST(CollectionOnNoDevice, SaysWhatToInstallWhereThereIsNoPlugin) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("SHARDREC_PLUGIN_PATH", "/nowhere", 1);
        const Rank rank(0);
        std::fprintf(stderr, "%s\n", shardrec_last_error());
        std::_Exit(rank.status() == SHARDREC_UNSUPPORTED ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "CUDA devices need the CUDA plug-in .*install");
}

}  // namespace
}  // namespace shardrec::test
