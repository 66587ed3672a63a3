// A scorer that follows a training by its deltas: the bits of whole checkpoints, while calls go on, from the rows that
// have changed alone.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "serving/served.h"
#include "support/address_space.h"
#include "support/few_descriptors.h"

namespace shardrec_test {
namespace {

using shardrec::Scorer;
using shardrec::ScorerOptions;

std::vector<int64_t> steps_up_to(int64_t last) {
  std::vector<int64_t> steps(static_cast<size_t>(last) + 1);
  std::iota(steps.begin(), steps.end(), 0);
  return steps;
}

std::string step_directory(const Directory& directory, const char* root, int64_t step) {
  const std::string digits = std::to_string(step);
  return directory.path(root) + "/step_" + std::string(12 - digits.size(), '0') + digits;
}

struct Followed {
  int ranks;
  shardrec_sharding sharding;
  const char* kind;
};

class ScorerDeltas : public ::testing::TestWithParam<Followed> {};

// Opened at a delta, refreshed by one delta, and by many at once: as the whole checkpoints of those steps.
TEST_P(ScorerDeltas, AreServedWithTheBitsOfWholeCheckpoints) {
  const Followed& followed = GetParam();
  Directory directory;
  Trained job{.ranks = followed.ranks,
              .sharding = followed.sharding,
              .steps = steps_up_to(13),
              .samples = 1};
  train(directory.path("whole"), job);
  job.deltas = true;
  train(directory.path("deltas"), job);
  const ServedBatch batch = random_batch(5, 60);
  const auto expect_step = [&](const Scorer& scorer, int64_t step) {
    const Scorer whole(directory.path("whole"), step, ScorerOptions().tables(followed.kind));
    EXPECT_EQ(scorer.info().step, step);
    EXPECT_TRUE(same_bytes(look_up(scorer, batch, 0), look_up(whole, batch, 0))) << step;
    EXPECT_TRUE(same_bytes(look_up(scorer, batch, 1), look_up(whole, batch, 1))) << step;
    EXPECT_TRUE(same_bytes(predict(scorer, batch), predict(whole, batch))) << step;
  };
  Scorer scorer(directory.path("deltas"), 0, ScorerOptions().tables(followed.kind));
  for (const int64_t step : {0, 1, 2, 12, 13, 4, 5, 0}) {  // back, too, by reading it whole
    EXPECT_EQ(scorer.refresh(step), step);
    expect_step(scorer, step);
  }
  const Scorer late(directory.path("deltas"), -1, ScorerOptions().tables(followed.kind));
  expect_step(late, 13);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ScorerDeltas,
                         ::testing::Values(Followed{1, SHARDREC_SHARDING_TABLE_WISE, "memory"},
                                           Followed{2, SHARDREC_SHARDING_ROW_WISE, "memory"},
                                           Followed{2, SHARDREC_SHARDING_COLUMN_WISE, "memory"},
                                           Followed{3, SHARDREC_SHARDING_GRID, "memory"},
                                           Followed{2, SHARDREC_SHARDING_DATA_PARALLEL, "memory"},
                                           Followed{2, SHARDREC_SHARDING_ROW_WISE, "mapped"},
                                           Followed{3, SHARDREC_SHARDING_COLUMN_WISE, "mapped"},
                                           Followed{2, SHARDREC_SHARDING_ROW_WISE, "int8"},
                                           Followed{2, SHARDREC_SHARDING_COLUMN_WISE, "int8"}),
                         [](const ::testing::TestParamInfo<Followed>& given) {
                           return std::to_string(given.param.ranks) + "Kind" +
                                  std::to_string(static_cast<int>(given.param.sharding)) +
                                  given.param.kind;
                         });

// Nothing but the deltas is read: the whole checkpoint's rows are not there any more.
TEST(ScorerOfDeltas, ReadsTheRowsThatHaveChangedAlone) {
  for (const char* kind : {"memory", "int8"}) {
    Directory directory;
    train(directory.path("run"), {.steps = steps_up_to(3), .samples = 1, .deltas = true});
    Scorer scorer(directory.path("run"), 0, ScorerOptions().tables(kind));
    const Scorer last(directory.path("run"), 3, ScorerOptions().tables(kind));
    for (const auto& file :
         std::filesystem::directory_iterator(step_directory(directory, "run", 0))) {
      if (file.path().extension() == ".safetensors") std::filesystem::remove(file.path());
    }
    EXPECT_EQ(scorer.refresh(), 3);
    const ServedBatch batch = random_batch(5, 60);
    EXPECT_TRUE(same_bytes(predict(scorer, batch), predict(last, batch))) << kind;
  }
}

// However long the chain is, of which each delta has files of its own.
TEST(ScorerOfDeltas, AreReadWithFewDescriptors) {
  Directory directory;
  train(directory.path(), {.steps = steps_up_to(30), .samples = 1, .deltas = true});
  const ServedBatch batch = random_batch(5, 60);
  for (const char* kind : {"memory", "int8"}) {
    Scorer scorer(directory.path(), 0, ScorerOptions().tables(kind));
    const shardrec::test::FewDescriptors few(20);
    ASSERT_TRUE(few.set());
    EXPECT_EQ(scorer.refresh(), 30);
    const Scorer late(directory.path(), -1, ScorerOptions().tables(kind));
    EXPECT_TRUE(same_bytes(look_up(scorer, batch, 0), look_up(late, batch, 0))) << kind;
  }
}

// A table that fits in memory in 8 bits is opened where it does not in its own dtype.
TEST(ScorerOfDeltas, OfInt8AreReadWithoutAllRowsInTheirDtype) {
  constexpr int64_t kRows = 600'000, kColumns = 64;  // 154 MB; 43 MB in 8 bits
  Directory directory;
  run(1, [&](shardrec::Comm& comm, int) {
    shardrec::Model model;
    model.add_feature(model.add_table("t", kRows, kColumns), "f");
    shardrec::Collection tables(comm, model, make_plan(model, 1, SHARDREC_SHARDING_TABLE_WISE),
                                shardrec::CollectionOptions().threads(1));
    shardrec::Checkpoint checkpoint(comm, directory.path());
    checkpoint.add("tables", tables);
    for (int64_t step = 0; step < 2; ++step) {
      std::vector<float> rows(static_cast<size_t>(3 * kColumns), 0.5F + static_cast<float>(step));
      tables.write_range(0, SHARDREC_TABLE_WEIGHTS, 7, 3, {rows.data(), 3, kColumns});
      EXPECT_EQ(checkpoint.commit_delta(step), step != 0);
    }
  });
  const shardrec::test::AddressSpace few(uint64_t{100} << 20);
  const Scorer scorer(directory.path(), -1, ScorerOptions().tables("int8"));
  const std::vector<int64_t> values = {8};
  const std::vector<int64_t> lengths = {1};
  std::vector<float> out(static_cast<size_t>(kColumns));
  scorer.lookup(0, {.batch_size = 1, .values = values, .lengths = lengths},
                {out.data(), 1, kColumns});
  EXPECT_EQ(out, std::vector<float>(out.size(), 1.5F));
}

// The manifests of what is served, and of all before, are not read again: they are not there any more.
TEST(ScorerOfDeltas, ARefreshReadsTheManifestsOfNewDeltasAlone) {
  Directory directory;
  const Trained job{.steps = steps_up_to(9), .samples = 1, .deltas = true};
  train(directory.path("run"), job);
  const ServedBatch batch = random_batch(5, 60);
  const std::vector<float> expected = predict(Scorer(directory.path("run")), batch);
  Scorer scorer(directory.path("run"), 6);
  const auto manifest_of = [&](int64_t step) {
    return step_directory(directory, "run", step) + "/manifest.json";
  };
  for (int64_t step = 0; step <= 6; ++step) std::filesystem::remove(manifest_of(step));
  EXPECT_EQ(scorer.refresh(), 9);
  EXPECT_EQ(scorer.refresh(), 9);
  EXPECT_TRUE(same_bytes(predict(scorer, batch), expected));
  std::filesystem::remove(manifest_of(8));
  EXPECT_EQ(scorer.refresh(), 9);
  EXPECT_EQ(status_of([&] { (void)Scorer(directory.path("run")); }), SHARDREC_NOT_FOUND);
}

// A chain of more deltas than by default, from which a service that is late takes ten, a hundred and all of them.
TEST(ScorerOfDeltas, AChainOfMoreThanAHundredIsOpenedAndFollowed) {
  Directory directory;
  train(directory.path("run"),
        {.steps = steps_up_to(120), .samples = 1, .deltas = true, .most_deltas = 1000});
  const ServedBatch batch = random_batch(5, 60);
  Scorer from_start(directory.path("run"), 0);
  Scorer later(directory.path("run"), 10);
  EXPECT_EQ(later.refresh(20), 20);
  const Scorer at_20(directory.path("run"), 20);
  EXPECT_TRUE(same_bytes(predict(later, batch), predict(at_20, batch)));
  const Scorer whole(directory.path("run"));
  EXPECT_EQ(whole.info().step, 120);
  const std::vector<float> expected = predict(whole, batch);
  for (Scorer* scorer : {&from_start, &later}) {
    EXPECT_EQ(scorer->refresh(), 120);
    EXPECT_TRUE(same_bytes(predict(*scorer, batch), expected));
  }
  OneRank loaded(directory.path("run"));
  EXPECT_TRUE(same_bytes(look_up(whole, batch, 0), loaded.look_up(batch, 0)));
}

// Deltas of weights alone are to a scorer what those with states are.
TEST(ScorerOfDeltas, WithoutStatesAreServedAlike) {
  Directory directory;
  Trained job{.ranks = 2,
              .sharding = SHARDREC_SHARDING_ROW_WISE,
              .steps = steps_up_to(4),
              .samples = 3,
              .deltas = true};
  train(directory.path("states"), job);
  job.delta_states = false;
  train(directory.path("weights"), job);
  const ServedBatch batch = random_batch(5, 60);
  for (const char* kind : {"memory", "mapped", "int8"}) {
    const auto open = [&](const char* root, int64_t step) {
      return Scorer(directory.path(root), step, ScorerOptions().tables(kind));
    };
    Scorer scorer = open("weights", 0);
    for (const int64_t step : {1, 4}) {
      EXPECT_EQ(scorer.refresh(step), step);
      const Scorer other = open("states", step);
      const Scorer opened = open("weights", step);
      EXPECT_TRUE(same_bytes(predict(scorer, batch), predict(other, batch))) << kind << step;
      EXPECT_TRUE(same_bytes(predict(opened, batch), predict(other, batch))) << kind << step;
    }
  }
}

// A delta that cannot be read changes nothing of what is served.
TEST(ScorerOfDeltas, ADamagedDeltaLeavesWhatIsServed) {
  Directory directory;
  train(directory.path("run"), {.steps = steps_up_to(2), .samples = 1, .deltas = true});
  Scorer scorer(directory.path("run"), 0);
  const ServedBatch batch = random_batch(5, 60);
  const std::vector<float> expected = predict(scorer, batch);
  for (const auto& file :
       std::filesystem::directory_iterator(step_directory(directory, "run", 2))) {
    if (file.path().extension() == ".safetensors") {
      std::filesystem::resize_file(file.path(), std::filesystem::file_size(file.path()) - 1);
    }
  }
  EXPECT_EQ(status_of([&] { scorer.refresh(); }), SHARDREC_CORRUPT_DATA);
  EXPECT_EQ(scorer.info().step, 0);
  EXPECT_TRUE(same_bytes(predict(scorer, batch), expected));
  EXPECT_EQ(scorer.refresh(1), 1);
}

// Each answer is wholly of the checkpoint whose step it names, also while rows of the tables are replaced.
TEST(ScorerOfDeltas, AHundredRefreshesUnderLoadMixNothing) {
  for (const char* kind : {"memory", "int8"}) {
    // Under a sanitizer, where each takes ten times as long, the kinds have a fifth of them.
    const int64_t last = (std::string(kind) == "memory" ? 100 : 20) / (SHARDREC_SANITIZED ? 5 : 1);
    Directory directory;
    train(directory.path("run"), {.steps = steps_up_to(last), .samples = 1, .deltas = true});
    const ServedBatch batch = random_batch(77, 40);
    std::map<int64_t, std::vector<float>> pooled, scores;
    {
      Scorer alone(directory.path("run"), 0, ScorerOptions().tables(kind));
      for (int64_t step = 0; step <= last; ++step) {
        EXPECT_EQ(alone.refresh(step), step);
        pooled[step] = look_up(alone, batch, 0);
        scores[step] = predict(alone, batch);
      }
    }
    const Scorer whole(directory.path("run"), last, ScorerOptions().tables(kind));
    EXPECT_TRUE(same_bytes(look_up(whole, batch, 0), pooled[last]));
    Scorer scorer(directory.path("run"), 0, ScorerOptions().tables(kind));
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0}, calls{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
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
    for (int64_t step = 1; step <= last; ++step) EXPECT_EQ(scorer.refresh(step), step);
    stop = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0) << kind;
    EXPECT_GT(calls, 4) << kind;
  }
}

// A training publishes; a scorer that looks for the newest again and again serves each of its steps, and KEEP_LAST
// removes what nobody needs.
TEST(ScorerOfDeltas, FollowATrainingThatGoesOn) {
  Directory directory;
  train(directory.path(), {.steps = {0}});
  Scorer scorer(directory.path());
  std::atomic<bool> stop{false};
  std::thread trainer([&] {
    run(1, [&](shardrec::Comm& comm, int) {
      const shardrec::Model model = served_model();
      shardrec::Collection tables(comm, model, make_plan(model, 1, SHARDREC_SHARDING_TABLE_WISE));
      shardrec::Lookup lookup(tables);
      Net net;
      shardrec::Checkpoint checkpoint(comm, directory.path(),
                                      shardrec::CheckpointOptions().keep_last(1).most_deltas(7));
      checkpoint.add("tables", tables);
      checkpoint.add("bottom", net.bottom);
      checkpoint.add("top", net.top);
      checkpoint.open();
      checkpoint.load();
      for (int64_t step = 1; step <= 40; ++step) {
        const ServedBatch batch = random_batch(static_cast<uint64_t>(step), 1);
        std::vector<float> pooled(static_cast<size_t>(batch.size * kWidth));
        lookup.begin(batch.size, batch.values, batch.lengths);
        lookup.forward(0, {pooled.data(), batch.size, kWidth});
        std::vector<float> rows(static_cast<size_t>(batch.sequence_ids * kDim), 0.0F);
        lookup.set_gradient(0, {pooled.data(), batch.size, kWidth});
        lookup.set_gradient(1, {rows.data(), batch.sequence_ids, kDim});
        lookup.backward();
        checkpoint.commit_delta(step);
      }
    });
    stop = true;
  });
  const ServedBatch batch = random_batch(8, 20);
  int64_t before = 0;
  while (!stop) {
    const int64_t now = scorer.refresh();
    EXPECT_GE(now, before);
    before = now;
    (void)predict(scorer, batch);
  }
  trainer.join();
  EXPECT_EQ(scorer.refresh(), 40);
  const Scorer whole(directory.path());
  EXPECT_TRUE(same_bytes(predict(scorer, batch), predict(whole, batch)));
}

}  // namespace
}  // namespace shardrec_test
