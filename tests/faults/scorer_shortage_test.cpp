// Memory runs out at the k-th allocation, for every k, while a scorer is opened, refreshed and called: a
// status, and what was served before is served on.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "faults/failing_allocator.h"
#include "serving/served.h"

namespace shardrec::test {
namespace {

using namespace shardrec_test;  // NOLINT(google-build-using-namespace): what is served
using shardrec_test::predict;

struct Answer {
  std::vector<float> pooled, scores;
  shardrec_status status = SHARDREC_OK;
};

Answer call(const shardrec_scorer* scorer, const ServedBatch& batch) {
  Answer answer;
  {
    const NoShortage pause;
    answer.pooled.assign(static_cast<size_t>(batch.size * kWidth), -7.0F);
    answer.scores.assign(static_cast<size_t>(batch.size), -7.0F);
  }
  const shardrec::Vector values(batch.values), lengths(batch.lengths);
  const shardrec::Matrix dense(batch.dense.data(), batch.size, kDense);
  const shardrec::Matrix pooled(answer.pooled.data(), batch.size, kWidth);
  const shardrec::Vector scores(answer.scores);
  const shardrec_batch given{.struct_size = sizeof given,
                             .batch_size = batch.size,
                             .values = values.get(),
                             .lengths = lengths.get()};
  answer.status = shardrec_scorer_lookup(scorer, 0, &given, pooled.get(), nullptr);
  if (answer.status != SHARDREC_OK) return answer;
  answer.status = shardrec_scorer_predict(scorer, &given, dense.get(), scores.get(), nullptr);
  return answer;
}

class ScorerShortage : public ::testing::TestWithParam<Shortage> {};

TEST_P(ScorerShortage, OpenRefreshAndCallsEndInAStatusAndServeOn) {
  Directory directory;
  train(directory.path(), {.ranks = 2, .sharding = SHARDREC_SHARDING_ROW_WISE, .steps = {1, 2}});
  const std::string path = directory.path();
  const ServedBatch batch = random_batch(1, 70);
  Answer expected[3];
  for (const int64_t step : {1, 2}) {
    const shardrec::Scorer scorer(path, step);
    expected[step] = call(scorer.get(), batch);
    ASSERT_EQ(expected[step].status, SHARDREC_OK);
  }
  const auto right = [&](const Answer& answer, int64_t step) {
    return same_bytes(answer.pooled, expected[step].pooled) &&
           same_bytes(answer.scores, expected[step].scores);
  };
  bool fired = true;
  int failures = 0;
  for (int64_t k = 1; fired; k += allocation_stride()) {
    shardrec_scorer* scorer = nullptr;
    fail_allocation(k, GetParam());
    shardrec_status status = shardrec_scorer_open(path.c_str(), 1, nullptr, nullptr, &scorer);
    Answer answer;
    shardrec_status refreshed = SHARDREC_OK;
    if (status == SHARDREC_OK) answer = call(scorer, batch);
    if (status == SHARDREC_OK) refreshed = shardrec_scorer_refresh(scorer, 2, nullptr, nullptr);
    fired = end_shortage();
    for (const shardrec_status each : {status, answer.status, refreshed}) {
      if (each == SHARDREC_OK) continue;
      EXPECT_EQ(each, SHARDREC_OUT_OF_MEMORY)
          << "allocation " << k << ": " << shardrec_last_error();
      ++failures;
    }
    if (status != SHARDREC_OK) {
      EXPECT_EQ(scorer, nullptr);
      continue;
    }
    if (answer.status == SHARDREC_OK) {
      EXPECT_TRUE(right(answer, 1)) << "allocation " << k;
    }
    // With memory again, all is as it should be.
    const Answer now = call(scorer, batch);
    EXPECT_EQ(now.status, SHARDREC_OK) << "allocation " << k << ": " << shardrec_last_error();
    EXPECT_TRUE(right(now, refreshed == SHARDREC_OK ? 2 : 1)) << "allocation " << k;
    shardrec_scorer_destroy(&scorer);
  }
  EXPECT_GT(failures * allocation_stride(), 20);
  EXPECT_EQ(shardrec::live_objects(), 0);
}

INSTANTIATE_TEST_SUITE_P(Both, ScorerShortage,
                         ::testing::Values(Shortage::kOnce, Shortage::kLasting));

}  // namespace
}  // namespace shardrec::test
