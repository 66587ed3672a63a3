// Structs that grow: one that is smaller than this release's, as of a program that was built with an earlier one, still
// works; of a larger one what is not known must be zero; one without a size is refused, and nothing is touched.
#include "support/structs.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "capi/capi_test.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

class Structs : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(shardrec_model_create(nullptr, model_.out()));
    ASSERT_OK(shardrec_model_add_table(model_, "t", 10, 4, nullptr, nullptr));
    ASSERT_OK(shardrec_model_add_feature(model_, 0, "f", SHARDREC_POOLING_SUM));
    ASSERT_OK(shardrec_topology_create(2, 2, nullptr, topology_.out()));
    ASSERT_OK(shardrec_plan_create_empty(model_, topology_, nullptr, plan_.out()));
    ASSERT_OK(add_box(plan_, 0, 1, 0, 10, 0, 4));
  }

  Model model_;
  Topology topology_;
  Plan plan_;
};

// What is not there of an output is not written, and its size stays the caller's.
TEST_F(Structs, AnOutputIsWrittenAsFarAsItGoes) {
  for (const size_t size : {offsetof(shardrec_box, row), offsetof(shardrec_box, rows),
                            offsetof(shardrec_box, cols), sizeof(shardrec_box)}) {
    std::array<std::byte, sizeof(shardrec_box)> memory{};
    memory.fill(std::byte{0x5a});
    const auto given = static_cast<int64_t>(size);
    std::memcpy(memory.data(), &given, sizeof given);
    ASSERT_OK(shardrec_plan_box(plan_, 0, 0, reinterpret_cast<shardrec_box*>(memory.data())));
    const shardrec_box whole{
        .struct_size = given, .rank = 1, .row = 0, .rows = 10, .col = 0, .cols = 4};
    EXPECT_EQ(std::memcmp(memory.data(), &whole, size), 0) << size;
    EXPECT_TRUE(std::all_of(memory.begin() + static_cast<int64_t>(size), memory.end(),
                            [](std::byte byte) { return byte == std::byte{0x5a}; }))
        << size;
  }
}

TEST_F(Structs, ALargerOutputIsWrittenAsFarAsThisReleaseGoes) {
  struct Later {
    shardrec_box box;
    int64_t more;
  } later{.box = {.struct_size = sizeof(Later)}, .more = 7};
  ASSERT_OK(shardrec_plan_box(plan_, 0, 0, &later.box));
  EXPECT_EQ(later.box.struct_size, static_cast<int64_t>(sizeof(Later)));
  EXPECT_EQ(later.box.cols, 4);
  EXPECT_EQ(later.more, 7);
}

TEST_F(Structs, WithoutASizeAreRefused) {
  for (const int64_t size : {int64_t{0}, int64_t{-1}, int64_t{7}, int64_t{1} << 40, INT64_MAX}) {
    shardrec_box box{.struct_size = size, .rank = 0, .row = 0, .rows = 1, .col = 0, .cols = 1};
    EXPECT_EQ(shardrec_plan_add_box(plan_, 0, &box), SHARDREC_INVALID_ARGUMENT) << size;
    EXPECT_TRUE(contains(shardrec_last_error(), "box.struct_size is ")) << shardrec_last_error();
    EXPECT_TRUE(contains(shardrec_last_error(), "48 bytes")) << shardrec_last_error();
    EXPECT_EQ(shardrec_plan_box(plan_, 0, 0, &box), SHARDREC_INVALID_ARGUMENT) << size;
    EXPECT_EQ(box.rows, 1);
  }
  EXPECT_EQ(shardrec_plan_add_box(plan_, 0, nullptr), SHARDREC_INVALID_ARGUMENT);
}

TEST_F(Structs, OfALaterReleaseAreTakenWhereTheySetNothingNew) {
  struct Later {
    shardrec_box box;
    int64_t more;
  } later{
      .box = {.struct_size = sizeof(Later), .rank = 0, .row = 0, .rows = 5, .col = 0, .cols = 4},
      .more = 1};
  Plan plan;
  ASSERT_OK(shardrec_plan_create_empty(model_, topology_, nullptr, plan.out()));
  EXPECT_EQ(shardrec_plan_add_box(plan, 0, &later.box), SHARDREC_UNSUPPORTED);
  EXPECT_TRUE(contains(shardrec_last_error(), "of a later release with 56 bytes"))
      << shardrec_last_error();
  later.more = 0;
  EXPECT_OK(shardrec_plan_add_box(plan, 0, &later.box));
  later.box.reserved = 1;
  later.box.row = 5;
  EXPECT_EQ(shardrec_plan_add_box(plan, 0, &later.box), SHARDREC_INVALID_ARGUMENT);
  later.box.reserved = 0;
  EXPECT_OK(shardrec_plan_add_box(plan, 0, &later.box));
  EXPECT_OK(shardrec_plan_check(plan));
}

// Of a batch: a program that knows no offsets, weights and batch sizes gives values and lengths.
TEST(BatchStruct, OfAnEarlierReleaseHasWhatItKnows) {
  run_ranks(1, 1, [](int, shardrec_comm* comm) {
    Model model;
    ASSERT_OK(shardrec_model_create(nullptr, model.out()));
    ASSERT_OK(shardrec_model_add_table(model, "t", 10, 4, nullptr, nullptr));
    ASSERT_OK(shardrec_model_add_feature(model, 0, "f", SHARDREC_POOLING_SUM));
    Plan plan;
    ASSERT_OK(shardrec_plan_collective(comm, nullptr, model, nullptr, plan.out()));
    Owned<shardrec_collection, shardrec_collection_destroy> tables;
    ASSERT_OK(shardrec_collection_create(comm, nullptr, model, plan, nullptr, tables.out()));
    Owned<shardrec_lookup, shardrec_lookup_destroy> lookup;
    ASSERT_OK(shardrec_lookup_create(tables, nullptr, lookup.out()));
    std::array<int64_t, 3> ids = {1, 2, 3};
    std::array<int64_t, 2> lengths = {1, 2};
    std::array<float, 8> pooled{}, by_offsets{};
    shardrec_tensor values, bags, out;
    ASSERT_OK(shardrec_tensor_vector(ids.data(), SHARDREC_INT64, 3, &values));
    ASSERT_OK(shardrec_tensor_vector(lengths.data(), SHARDREC_INT64, 2, &bags));
    ASSERT_OK(shardrec_tensor_matrix(pooled.data(), SHARDREC_FLOAT32, 2, 4, &out));
    // What lies behind is no part of the struct: it is not read.
    shardrec_batch earlier{.struct_size = offsetof(shardrec_batch, offsets),
                           .batch_size = 2,
                           .values = &values,
                           .lengths = &bags};
    earlier.offsets = earlier.weights = &out;
    ASSERT_OK(shardrec_lookup_begin(lookup, &earlier));
    ASSERT_OK(shardrec_lookup_forward(lookup, 0, &out));

    std::array<int32_t, 3> ends = {0, 1, 3};
    shardrec_tensor offsets;
    ASSERT_OK(shardrec_tensor_vector(ends.data(), SHARDREC_INT32, 3, &offsets));
    ASSERT_OK(shardrec_tensor_matrix(by_offsets.data(), SHARDREC_FLOAT32, 2, 4, &out));
    ASSERT_OK(begin_batch(lookup, {.batch_size = 2, .values = &values, .offsets = &offsets}));
    ASSERT_OK(shardrec_lookup_forward(lookup, 0, &out));
    EXPECT_EQ(pooled, by_offsets);

    // Both are one too many; the batch is refused by forward, and the next one goes its way.
    ASSERT_OK(begin_batch(
        lookup, {.batch_size = 2, .values = &values, .lengths = &bags, .offsets = &offsets}));
    EXPECT_EQ(shardrec_lookup_forward(lookup, 0, &out), SHARDREC_INVALID_BATCH);
    EXPECT_TRUE(contains(shardrec_last_error(), "lengths and offsets are both given"))
        << shardrec_last_error();
    // Refused before anything is begun.
    EXPECT_EQ(begin_batch(nullptr, {}), SHARDREC_INVALID_HANDLE);
    EXPECT_EQ(shardrec_lookup_begin(lookup, nullptr), SHARDREC_INVALID_ARGUMENT);
    shardrec_batch sizeless{};
    EXPECT_EQ(shardrec_lookup_begin(lookup, &sizeless), SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(shardrec_lookup_forward(lookup, 0, &out), SHARDREC_INVALID_STATE);
    ASSERT_OK(begin_batch(lookup, {.batch_size = 2, .values = &values, .lengths = &bags}));
    EXPECT_OK(shardrec_lookup_forward(lookup, 0, &out));
  });
}

// Offsets beside batch sizes of features: as with lengths, bit for bit.
TEST(BatchStruct, TakesOffsetsAndBatchSizesTogether) {
  run_ranks(1, 1, [](int, shardrec_comm* comm) {
    Model model;
    ASSERT_OK(shardrec_model_create(nullptr, model.out()));
    ASSERT_OK(shardrec_model_add_table(model, "t", 10, 4, nullptr, nullptr));
    ASSERT_OK(shardrec_model_add_feature(model, 0, "f", SHARDREC_POOLING_SUM));
    ASSERT_OK(shardrec_model_add_feature(model, 0, "g", SHARDREC_POOLING_MEAN));
    Plan plan;
    ASSERT_OK(shardrec_plan_collective(comm, nullptr, model, nullptr, plan.out()));
    Owned<shardrec_collection, shardrec_collection_destroy> tables;
    ASSERT_OK(shardrec_collection_create(comm, nullptr, model, plan, nullptr, tables.out()));
    Owned<shardrec_lookup, shardrec_lookup_destroy> lookup;
    ASSERT_OK(shardrec_lookup_create(tables, nullptr, lookup.out()));
    std::array<int64_t, 5> ids = {1, 2, 3, 4, 5};
    std::array<int64_t, 3> lengths = {2, 1, 2};
    std::array<int64_t, 4> ends = {0, 2, 3, 5};
    std::array<int64_t, 2> sizes = {1, 2};
    std::array<int64_t, 6> inverse = {0, 0, 0, 1, 0, 1};
    std::array<float, 24> first{}, second{};
    shardrec_tensor values, bags, offsets, batch_sizes, back, out;
    ASSERT_OK(shardrec_tensor_vector(ids.data(), SHARDREC_INT64, 5, &values));
    ASSERT_OK(shardrec_tensor_vector(lengths.data(), SHARDREC_INT64, 3, &bags));
    ASSERT_OK(shardrec_tensor_vector(ends.data(), SHARDREC_INT64, 4, &offsets));
    ASSERT_OK(shardrec_tensor_vector(sizes.data(), SHARDREC_INT64, 2, &batch_sizes));
    ASSERT_OK(shardrec_tensor_vector(inverse.data(), SHARDREC_INT64, 6, &back));
    shardrec_batch batch{.batch_size = 3,
                         .values = &values,
                         .lengths = &bags,
                         .batch_sizes = &batch_sizes,
                         .inverse = &back};
    ASSERT_OK(shardrec_tensor_matrix(first.data(), SHARDREC_FLOAT32, 3, 8, &out));
    ASSERT_OK(begin_batch(lookup, batch));
    ASSERT_OK(shardrec_lookup_forward(lookup, 0, &out));
    batch.lengths = nullptr;
    batch.offsets = &offsets;
    ASSERT_OK(shardrec_tensor_matrix(second.data(), SHARDREC_FLOAT32, 3, 8, &out));
    ASSERT_OK(begin_batch(lookup, batch));
    ASSERT_OK(shardrec_lookup_forward(lookup, 0, &out));
    EXPECT_EQ(first, second);
    EXPECT_NE(first[0], 0);
    // One of both alone is a bad batch.
    batch.inverse = nullptr;
    ASSERT_OK(begin_batch(lookup, batch));
    EXPECT_EQ(shardrec_lookup_forward(lookup, 0, &out), SHARDREC_INVALID_BATCH);
    EXPECT_TRUE(contains(shardrec_last_error(), "inverse is NULL")) << shardrec_last_error();
  });
}

}  // namespace
}  // namespace shardrec::test
