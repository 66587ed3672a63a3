// Structs that grow: one that is smaller than this release's, as of a program that was built with an earlier one, still
// works; of a larger one what is not known must be zero; one without a size is refused, and nothing is touched.
#include "support/structs.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <typeinfo>

#include "capi/capi_test.h"
#include "shardrec/checkpoint.h"
#include "support/layers.h"
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
  for (const size_t size :
       {offsetof(shardrec_box, row), offsetof(shardrec_box, rows), offsetof(shardrec_box, cols),
        offsetof(shardrec_box, weight_bytes), sizeof(shardrec_box)}) {
    std::array<std::byte, sizeof(shardrec_box)> memory{};
    memory.fill(std::byte{0x5a});
    const auto given = static_cast<int64_t>(size);
    std::memcpy(memory.data(), &given, sizeof given);
    ASSERT_OK(shardrec_plan_box(plan_, 0, 0, reinterpret_cast<shardrec_box*>(memory.data())));
    const shardrec_box whole{.struct_size = given,
                             .rank = 1,
                             .row = 0,
                             .rows = 10,
                             .col = 0,
                             .cols = 4,
                             .weight_bytes = 160,
                             .state_bytes = 0};
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
    EXPECT_TRUE(contains(shardrec_last_error(), "64 bytes")) << shardrec_last_error();
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
  EXPECT_TRUE(contains(shardrec_last_error(), "of a later release with 72 bytes"))
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

// An earlier release's struct ends before its last members, and a later one's has more: of every struct that a call
// fills, what fits is written, and nothing behind it. Without a size nothing is written at all.
template <class Struct, class Call>
void expect_filled_as_far_as_it_goes(const Call& call, size_t some) {
  SCOPED_TRACE(typeid(Struct).name());
  Struct whole{};
  whole.struct_size = sizeof whole;
  ASSERT_OK(call(&whole));
  struct Later {
    Struct known;
    std::array<std::byte, 16> more;
  };
  for (const size_t size : {sizeof(int64_t), some, sizeof(Struct), sizeof(Later)}) {
    Later memory{};
    std::memset(&memory, 0x5a, sizeof memory);
    memory.known.struct_size = static_cast<int64_t>(size);
    ASSERT_OK(call(&memory.known)) << size;
    EXPECT_EQ(memory.known.struct_size, static_cast<int64_t>(size));
    const auto* bytes = reinterpret_cast<const std::byte*>(&memory);
    const size_t filled = std::min(size, sizeof(Struct));
    EXPECT_EQ(std::memcmp(bytes + sizeof(int64_t),
                          reinterpret_cast<const std::byte*>(&whole) + sizeof(int64_t),
                          filled - sizeof(int64_t)),
              0)
        << size;
    EXPECT_TRUE(std::all_of(bytes + filled, bytes + sizeof memory, [](std::byte byte) {
      return byte == std::byte{0x5a};
    })) << size;
  }
  for (const int64_t size : {int64_t{0}, int64_t{-1}, int64_t{7}, int64_t{1} << 40}) {
    Struct refused;
    std::memset(&refused, 0x5a, sizeof refused);
    refused.struct_size = size;
    EXPECT_EQ(call(&refused), SHARDREC_INVALID_ARGUMENT) << size;
    EXPECT_TRUE(contains(shardrec_last_error(), "out.struct_size is ")) << shardrec_last_error();
    const auto* bytes = reinterpret_cast<const std::byte*>(&refused);
    EXPECT_TRUE(std::all_of(bytes + sizeof(int64_t), bytes + sizeof refused,
                            [](std::byte byte) { return byte == std::byte{0x5a}; }));
  }
  EXPECT_EQ(call(nullptr), SHARDREC_INVALID_ARGUMENT);
}

TEST_F(Structs, OfModelsLayersAndCheckpointsAreFilledAsFarAsTheyGo) {
  expect_filled_as_far_as_it_goes<shardrec_model_size>(
      [&](shardrec_model_size* out) { return shardrec_model_info(model_, out); },
      offsetof(shardrec_model_size, width));
  expect_filled_as_far_as_it_goes<shardrec_table>(
      [&](shardrec_table* out) { return shardrec_model_table(model_, 0, out, nullptr); },
      offsetof(shardrec_table, learning_rate));
  expect_filled_as_far_as_it_goes<shardrec_feature>(
      [&](shardrec_feature* out) { return shardrec_model_feature(model_, 0, out, nullptr); },
      offsetof(shardrec_feature, column));
  Owned<shardrec_mlp, shardrec_mlp_destroy> mlp;
  ASSERT_OK(shardrec_mlp_create(3, nullptr, mlp.out()));
  ASSERT_OK(add_linear(mlp, 2, SHARDREC_ACTIVATION_NONE));
  expect_filled_as_far_as_it_goes<shardrec_layers>(
      [&](shardrec_layers* out) { return shardrec_mlp_info(mlp, out); },
      offsetof(shardrec_layers, step));
  std::string directory = testing::TempDir() + "/structs-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  run_ranks(1, 1, [&](int, shardrec_comm* comm) {
    Owned<shardrec_checkpoint, shardrec_checkpoint_destroy> checkpoint;
    ASSERT_OK(shardrec_checkpoint_create(comm, directory.c_str(), nullptr, checkpoint.out()));
    shardrec_opened none{.struct_size = sizeof none, .step = -7};
    EXPECT_EQ(shardrec_checkpoint_info(checkpoint, &none), SHARDREC_INVALID_STATE);
    EXPECT_EQ(none.step, -7);
    std::array<int64_t, 3> numbers = {4, 5, 6};
    shardrec_tensor tensor{};
    ASSERT_OK(shardrec_tensor_vector(numbers.data(), SHARDREC_INT64, 3, &tensor));
    ASSERT_OK(shardrec_checkpoint_set_tensor(checkpoint, "numbers", &tensor));
    ASSERT_OK(shardrec_checkpoint_add_mlp(checkpoint, "layers", mlp));
    ASSERT_OK(shardrec_checkpoint_commit(checkpoint, 9, nullptr));
    ASSERT_OK(shardrec_checkpoint_open(checkpoint, -1));
    expect_filled_as_far_as_it_goes<shardrec_opened>(
        [&](shardrec_opened* out) { return shardrec_checkpoint_info(checkpoint, out); },
        offsetof(shardrec_opened, collections));
    expect_filled_as_far_as_it_goes<shardrec_saved_tensor>(
        [&](shardrec_saved_tensor* out) {
          return shardrec_checkpoint_tensor_info(checkpoint, "numbers", 0, out);
        },
        offsetof(shardrec_saved_tensor, tensor));
    shardrec_opened opened{};
    opened.struct_size = sizeof opened;
    ASSERT_OK(shardrec_checkpoint_info(checkpoint, &opened));
    EXPECT_EQ(opened.step, 9);
    EXPECT_EQ(opened.commit, 1);
    EXPECT_EQ(opened.format, 2);
    EXPECT_EQ(opened.ranks, 1);
    EXPECT_EQ(opened.collections, 0);
    EXPECT_EQ(opened.layers, 1);
    EXPECT_EQ(opened.parameters, 0);
    EXPECT_EQ(opened.tensors, 1);
    int64_t bytes = 0;
    for (const auto& file : std::filesystem::recursive_directory_iterator(directory)) {
      if (file.path().extension() == ".safetensors")
        bytes += static_cast<int64_t>(file.file_size());
    }
    EXPECT_EQ(opened.bytes, bytes);
    shardrec_saved_tensor saved{};
    saved.struct_size = sizeof saved;
    ASSERT_OK(shardrec_checkpoint_tensor_info(checkpoint, "numbers", 0, &saved));
    EXPECT_EQ(saved.bytes, 24);
    EXPECT_EQ(saved.tensor.dtype, SHARDREC_INT64);
    EXPECT_EQ(saved.tensor.shape[0], 3);
  });
  std::filesystem::remove_all(directory);
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
