// Many threads on one scorer, also while it is refreshed and destroyed.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "serving/served.h"

namespace shardrec_test {
namespace {

using shardrec::Scorer;
using shardrec::ScorerOptions;

constexpr int kThreads = 16;

TEST(ScorerThreads, SixteenThreadsGetTheBitsOfOne) {
  Directory directory;
  train(directory.path(), {.ranks = 2, .sharding = SHARDREC_SHARDING_ROW_WISE});
  for (const char* kind : {"memory", "mapped", "int8"}) {
    const Scorer scorer(directory.path(), -1, ScorerOptions().tables(kind));
    std::vector<ServedBatch> batches;
    std::vector<std::vector<float>> pooled, scores;
    for (int i = 0; i < 8; ++i) {
      batches.push_back(random_batch(static_cast<uint64_t>(i), 1 + 40 * i));
      pooled.push_back(look_up(scorer, batches.back(), 0));
      scores.push_back(predict(scorer, batches.back()));
    }
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 25; ++i) {
          const auto b = static_cast<size_t>((t + i) % 8);
          const auto status = status_of([&] {
            if (!same_bytes(look_up(scorer, batches[b], 0), pooled[b])) ++wrong;
            if (!same_bytes(predict(scorer, batches[b]), scores[b])) ++wrong;
          });
          if (status != SHARDREC_OK) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0) << kind;
  }
}

// Each answer is wholly of the checkpoint whose step it names.
TEST(ScorerThreads, ARefreshNeverMixesCheckpoints) {
  Directory directory;
  const std::vector<int64_t> steps = {1, 2, 3};
  train(directory.path(), {.ranks = 2, .steps = steps});
  const ServedBatch batch = random_batch(77, 30);
  std::map<int64_t, std::vector<float>> pooled, scores;
  for (const int64_t step : steps) {
    const Scorer one(directory.path(), step);
    pooled[step] = look_up(one, batch, 0);
    scores[step] = predict(one, batch);
  }
  ASSERT_FALSE(same_bytes(pooled[1], pooled[2]));
  ASSERT_FALSE(same_bytes(scores[2], scores[3]));
  for (const char* kind : {"memory", "mapped"}) {
    Scorer scorer(directory.path(), 1, ScorerOptions().tables(kind));
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0}, calls{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        while (!stop) {
          int64_t step = 0;
          const std::vector<float> sums = look_up(scorer, batch, 0, false, &step);
          if (!same_bytes(sums, pooled.at(step))) ++wrong;
          const std::vector<float> probabilities = predict(scorer, batch, &step);
          if (!same_bytes(probabilities, scores.at(step))) ++wrong;
          ++calls;
        }
      });
    }
    for (int i = 0; i < 100; ++i) {
      const int64_t step = steps[static_cast<size_t>(i) % 3];
      EXPECT_EQ(scorer.refresh(step), step);
      EXPECT_EQ(scorer.info().step, step);
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0) << kind;
    EXPECT_GT(calls, 4) << kind;
  }
}

// While a training commits and removes what is old, the newest is always there to be opened; and what is
// served from files is still served when they have been removed.
TEST(ScorerThreads, TheNewestIsServedWhileATrainingCommits) {
  for (const char* kind : {"memory", "mapped"}) {
    Directory directory;
    train(directory.path(), {.steps = {0}});
    Scorer scorer(directory.path(), -1, ScorerOptions().tables(kind));
    const Scorer first(directory.path(), -1, ScorerOptions().tables(kind));
    const ServedBatch batch = random_batch(8, 20);
    const std::vector<float> expected = predict(first, batch);
    std::atomic<bool> stop{false};
    std::thread trainer([&] {
      run(1, [&](shardrec::Comm& comm, int) {
        const shardrec::Model model = served_model();
        shardrec::Collection tables(comm, model, make_plan(model, 1, SHARDREC_SHARDING_TABLE_WISE));
        shardrec::Checkpoint checkpoint(comm, directory.path(),
                                        shardrec::CheckpointOptions().keep_last(1));
        Net net;
        checkpoint.add("tables", tables);
        checkpoint.add("bottom", net.bottom);
        checkpoint.add("top", net.top);
        checkpoint.open();
        for (int64_t step = 1; step <= 40; ++step) checkpoint.commit(step);
      });
      stop = true;
    });
    int64_t before = 0;
    while (!stop) {
      const int64_t now = scorer.refresh();
      EXPECT_GE(now, before);
      before = now;
      (void)predict(scorer, batch);
    }
    trainer.join();
    EXPECT_EQ(scorer.refresh(), 40);
    EXPECT_TRUE(same_bytes(predict(first, batch), expected)) << kind;
    EXPECT_EQ(status_of([&] { Scorer(directory.path(), 0); }), SHARDREC_NOT_FOUND);
  }
}

TEST(ScorerThreads, ADestroyedScorerEndsCallsInOrder) {
  Directory directory;
  train(directory.path(), {});
  const ServedBatch batch = random_batch(3, 200);
  for (int i = 0; i < 20; ++i) {
    shardrec_scorer* scorer = nullptr;
    ASSERT_EQ(shardrec_scorer_open(directory.path().c_str(), -1, nullptr, nullptr, &scorer),
              SHARDREC_OK);
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0}, begun{0};
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, copy = scorer] {
        std::vector<float> out(static_cast<size_t>(batch.size * kWidth));
        const shardrec::Matrix to(out.data(), batch.size, kWidth);
        const shardrec::Vector values(batch.values), lengths(batch.lengths);
        const shardrec_batch given{.struct_size = sizeof given,
                                   .batch_size = batch.size,
                                   .values = values.get(),
                                   .lengths = lengths.get()};
        for (;;) {
          ++begun;
          const shardrec_status status = shardrec_scorer_lookup(copy, 0, &given, to.get(), nullptr);
          if (status == SHARDREC_CLOSED) return;
          if (status != SHARDREC_OK) ++wrong;
        }
      });
    }
    while (begun < 6) std::this_thread::yield();
    shardrec_scorer_destroy(&scorer);
    EXPECT_EQ(scorer, nullptr);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  }
  EXPECT_EQ(shardrec::live_objects(), 0);
}

TEST(ScorerThreads, ARefreshThatFailsLeavesWhatIsServed) {
  Directory directory;
  train(directory.path("a"), {.steps = {1}});
  Scorer scorer(directory.path("a"));
  const ServedBatch batch = random_batch(6, 20);
  const std::vector<float> expected = predict(scorer, batch);
  EXPECT_EQ(status_of([&] { scorer.refresh(55); }), SHARDREC_NOT_FOUND);
  // Another model in its place.
  run(1, [&](shardrec::Comm& comm, int) {
    shardrec::Model model;
    model.add_feature(model.add_table("other", 10, 4), "f");
    shardrec::Collection tables(comm, model, make_plan(model, 1, SHARDREC_SHARDING_TABLE_WISE));
    shardrec::Checkpoint checkpoint(comm, directory.path("a"));
    checkpoint.open();
    checkpoint.add("tables", tables);
    checkpoint.commit(2);
  });
  std::string sentence;
  EXPECT_EQ(status_of([&] { scorer.refresh(); }, &sentence), SHARDREC_INVALID_ARGUMENT);
  EXPECT_NE(sentence.find("another model"), std::string::npos) << sentence;
  EXPECT_EQ(scorer.info().step, 1);
  EXPECT_TRUE(same_bytes(predict(scorer, batch), expected));
}

}  // namespace
}  // namespace shardrec_test
