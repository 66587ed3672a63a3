// A batch whose ids all stay on its rank: nobody waits for its check before its rows are looked up. It has the bits of
// the CPU, and where it is refused nothing was read or written that should not be.
#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>

#include "device/held_streams.h"
#include "device/rank_on_device.h"

namespace shardrec::test {
namespace {

// Tensors of a batch on the device, which a caller writes and reads in its own stream.
class LocalBatches : public HeldStreamsTest {
 protected:
  struct There {
    There(LocalBatches& test, const Batch& batch)
        : ids(test, batch.ids.data(), batch.ids.size() * sizeof(int64_t)),
          lengths(test, batch.lengths.data(), batch.lengths.size() * sizeof(int32_t)),
          out(test, batch.out.data(), batch.out.size() * sizeof(float)),
          gradient(test, batch.gradient.data(), batch.gradient.size() * sizeof(float)),
          values(vector_at(ids.data(), SHARDREC_INT64, batch.ids.size(), true)),
          bags(vector_at(lengths.data(), SHARDREC_INT32, batch.lengths.size(), true)),
          output(matrix_at(out.data(), true)),
          given(matrix_at(gradient.data(), true)) {}
    // When all operations of the rank are over.
    std::vector<float> output_of(const Rank& rank) {
      EXPECT_OK(shardrec_collection_wait_device(rank.tables()));
      const auto bytes = out.bytes();
      std::vector<float> values_now(bytes.size() / sizeof(float));
      std::memcpy(values_now.data(), bytes.data(), bytes.size());
      return values_now;
    }
    Array ids, lengths, out, gradient;
    shardrec_tensor values, bags, output, given;
  };

  static std::vector<float> outputs_on_cpu(const Batch& given) {
    Rank cpu(-1);
    Batch batch = given;
    cpu.step(vector_at(batch.ids.data(), SHARDREC_INT64, batch.ids.size(), false),
             vector_at(batch.lengths.data(), SHARDREC_INT32, batch.lengths.size(), false),
             matrix_at(batch.out.data(), false), matrix_at(batch.gradient.data(), false));
    return batch.out;
  }

  static shardrec_status begin(Rank& rank, const There& there) {
    return begin_batch(rank.lookup(),
                       {.batch_size = kBatch, .values = &there.values, .lengths = &there.bags});
  }

  static int64_t rows_of_output(Rank& rank) {
    int64_t rows = -1;
    EXPECT_OK(shardrec_lookup_output_shape(rank.lookup(), 0, &rows, nullptr));
    return rows;
  }

  static Batch refused() {
    Batch batch;
    batch.ids[7] = kRows + 5;
    return batch;
  }
};

TEST_F(LocalBatches, BeginWaitsForNothingAndRowsAreLookedUpBeforeTheCheckIsKnown) {
  const auto launches = of_plugin<int64_t()>("simt_launches");
  const Batch batch;
  There there(*this, batch);
  Rank rank(0);
  ASSERT_EQ(rank.status(), SHARDREC_OK) << shardrec_last_error();
  ASSERT_OK(shardrec_lookup_set_stream(rank.lookup(), caller_.number()));
  hold();
  EXPECT_TRUE(returns_while_held([&] { ASSERT_OK(begin(rank, there)); }));
  const int64_t before = launches();
  std::thread forward([&] { EXPECT_OK(shardrec_lookup_forward(rank.lookup(), 0, &there.output)); });
  EXPECT_TRUE(eventually([&] { return launches() == before + 1; })) << launches() - before;
  go_on_();
  forward.join();
  EXPECT_EQ(launches(), before + 1);
  caller_.wait();
  EXPECT_EQ(there.output_of(rank), outputs_on_cpu(batch));
}

TEST_F(LocalBatches, ARefusedOneWritesNoOutputAndTheNextIsAsIfItHadNotBeen) {
  const Batch good;
  There fine(*this, good);
  for (const int what : {0, 1, 2}) {
    Batch bad = what == 0 ? refused() : Batch();
    if (what == 1) bad.lengths[3] = -2;
    if (what == 2) ++bad.lengths[9];
    std::fill(bad.out.begin(), bad.out.end(), 3.5F);
    There there(*this, bad);
    Rank rank(0);
    ASSERT_OK(shardrec_lookup_set_stream(rank.lookup(), caller_.number()));
    for (int step = 0; step < 3; ++step) {  // rows are grouped ahead from the second on
      ASSERT_OK(begin(rank, there));
      ASSERT_EQ(shardrec_lookup_forward(rank.lookup(), 0, &there.output), SHARDREC_INVALID_BATCH);
      const char* const says[] = {"65", "-2", "add up to"};
      EXPECT_TRUE(contains(shardrec_last_error(), says[what])) << shardrec_last_error();
      EXPECT_EQ(there.output_of(rank), bad.out);
      ASSERT_OK(begin(rank, fine));
      ASSERT_OK(shardrec_lookup_forward(rank.lookup(), 0, &fine.output));
      caller_.wait();
      if (step == 0) {
        EXPECT_EQ(fine.output_of(rank), outputs_on_cpu(good));
      }
      ASSERT_OK(shardrec_lookup_set_gradient(rank.lookup(), 0, &fine.given));
      ASSERT_OK(shardrec_lookup_backward(rank.lookup(), SHARDREC_UPDATE_APPLY));
    }
    Rank cpu(-1);
    for (int step = 0; step < 3; ++step) {
      Batch batch;
      cpu.step(vector_at(batch.ids.data(), SHARDREC_INT64, batch.ids.size(), false),
               vector_at(batch.lengths.data(), SHARDREC_INT32, batch.lengths.size(), false),
               matrix_at(batch.out.data(), false), matrix_at(batch.gradient.data(), false));
    }
    EXPECT_EQ(rank.rows(), cpu.rows()) << what;
  }
}

TEST_F(LocalBatches, SeveralAreUnderWayEachWithItsOwnCheck) {
  const Batch batch;
  const Batch bad = refused();
  There there(*this, batch);
  There there_bad(*this, bad);
  Rank rank(0);
  std::optional<Owned<shardrec_lookup, shardrec_lookup_destroy>> other;
  other.emplace();
  ASSERT_OK(shardrec_lookup_create(rank.tables(), nullptr, other->out()));
  ASSERT_OK(begin_batch(
      *other, {.batch_size = kBatch, .values = &there_bad.values, .lengths = &there_bad.bags}));
  ASSERT_OK(begin(rank, there));
  ASSERT_OK(shardrec_lookup_forward(rank.lookup(), 0, &there.output));
  EXPECT_EQ(shardrec_lookup_forward(*other, 0, &there_bad.output), SHARDREC_INVALID_BATCH);
  EXPECT_TRUE(contains(shardrec_last_error(), "values[7]")) << shardrec_last_error();
  EXPECT_EQ(there.output_of(rank), outputs_on_cpu(batch));
  // One whose check nobody asks for, when its lookup goes.
  ASSERT_OK(begin_batch(
      *other, {.batch_size = kBatch, .values = &there_bad.values, .lengths = &there_bad.bags}));
  other.reset();
}

TEST_F(LocalBatches, AreWaitedForByWhoAsksForTheShape) {
  const Batch batch;
  const Batch bad = refused();
  There there(*this, batch);
  There there_bad(*this, bad);
  Rank rank(0);
  ASSERT_OK(begin(rank, there_bad));
  EXPECT_EQ(rows_of_output(rank), 0);
  EXPECT_EQ(shardrec_lookup_forward(rank.lookup(), 0, &there_bad.output), SHARDREC_INVALID_BATCH);
  // Also where another lookup that has begun is gone, and the communicator with it.
  Owned<shardrec_lookup, shardrec_lookup_destroy> other;
  Rank second(0);
  ASSERT_OK(shardrec_lookup_create(second.tables(), nullptr, other.out()));
  ASSERT_OK(
      begin_batch(other, {.batch_size = kBatch, .values = &there.values, .lengths = &there.bags}));
  ASSERT_OK(begin(second, there));
  shardrec_lookup_destroy(other.out());
  EXPECT_EQ(rows_of_output(second), kBatch);
  EXPECT_EQ(shardrec_lookup_forward(second.lookup(), 0, &there.output), SHARDREC_PEER_FAILED);
  // An output of no size will do for it.
  ASSERT_OK(begin(rank, there_bad));
  shardrec_tensor small = there_bad.output;
  small.shape[0] = 0;
  EXPECT_EQ(shardrec_lookup_forward(rank.lookup(), 0, &small), SHARDREC_INVALID_BATCH);
  ASSERT_OK(begin(rank, there));
  EXPECT_EQ(shardrec_lookup_forward(rank.lookup(), 0, &small), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(rows_of_output(rank), kBatch);
  ASSERT_OK(shardrec_lookup_forward(rank.lookup(), 0, &there.output));
  EXPECT_EQ(there.output_of(rank), outputs_on_cpu(batch));
}

// Memory that runs out does so in begin, which may be called again: what was begun is checked without more.
TEST_F(LocalBatches, AreCheckedWithoutMoreMemory) {
  auto* const fail_allocation = of_plugin<void(int64_t)>("simt_fail_allocation");
  const Batch batch;
  There there(*this, batch);
  int64_t failures = 0;
  for (bool failed = true; failed; failures += failed ? 1 : 0) {
    Rank rank(0);
    fail_allocation(failures + 1);
    const shardrec_status status = begin(rank, there);
    failed = status != SHARDREC_OK;
    if (failed) {
      EXPECT_EQ(status, SHARDREC_OUT_OF_MEMORY) << shardrec_last_error();
      fail_allocation(0);
      ASSERT_OK(begin(rank, there));
    }
    fail_allocation(1);
    EXPECT_EQ(rows_of_output(rank), kBatch);
    fail_allocation(0);
    ASSERT_OK(shardrec_lookup_forward(rank.lookup(), 0, &there.output));
    EXPECT_EQ(there.output_of(rank), outputs_on_cpu(batch));
  }
  EXPECT_GT(failures, 3);
}

}  // namespace
}  // namespace shardrec::test
