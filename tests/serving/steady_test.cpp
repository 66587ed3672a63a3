// A scorer that is warm allocates nothing, on any of its threads.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "serving/served.h"
#include "support/counted_allocations.h"

namespace shardrec_test {
namespace {

TEST(ScorerSteady, CallsAllocateNothing) {
  Directory directory;
  train(directory.path(), {.ranks = 2, .sharding = SHARDREC_SHARDING_ROW_WISE});
  for (const char* kind : {"memory", "mapped", "int8"}) {
    const shardrec::Scorer scorer(directory.path(), -1, shardrec::ScorerOptions().tables(kind));
    const ServedBatch batches[] = {random_batch(1, 300), random_batch(2, 17), random_batch(3, 290)};
    constexpr int kThreads = 4;
    std::atomic<int> warm{0};
    std::atomic<bool> go{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        std::vector<float> pooled(300 * kWidth), scores(300);
        const auto call = [&](const ServedBatch& batch) {
          scorer.lookup(
              0, {.batch_size = batch.size, .values = batch.values, .lengths = batch.lengths},
              {pooled.data(), batch.size, kWidth});
          scorer.predict(
              {.batch_size = batch.size, .values = batch.values, .lengths = batch.lengths},
              {batch.dense.data(), batch.size, kDense},
              shardrec::Vector(scores.data(), static_cast<size_t>(batch.size)));
        };
        // All inside at once, so that there is a workspace for each.
        for (int i = 0; i < 300; ++i) call(batches[0]);
        ++warm;
        while (!go) std::this_thread::yield();
        for (int i = 0; i < 100; ++i) call(batches[i % 3]);
      });
    }
    while (warm < kThreads) std::this_thread::yield();
    allocations = 0;
    counting = true;
    go = true;
    for (std::thread& thread : threads) thread.join();
    counting = false;
    EXPECT_EQ(allocations.load(), 0) << kind;
  }
#ifndef SHARDREC_COUNTS_ALLOCATIONS
  GTEST_SKIP() << "the calls ran, but the sanitizer's allocator is in place of the counted one";
#endif
}

}  // namespace
}  // namespace shardrec_test
