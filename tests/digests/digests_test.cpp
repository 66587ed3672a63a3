// Every bit of training is what it was when the digests were recorded, whatever has moved since.
//
// A change that means to change bits records them anew: SHARDREC_RECORD_DIGESTS=FILE test_digests,
// and says so in the changelog.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/kernels.h"
#include "core/hash.h"
#include "digests/digest.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

uint64_t digest_in_threads(const Configuration& configuration) {
  std::vector<uint64_t> digests(static_cast<size_t>(configuration.world));
  run_ranks(configuration.world, configuration.world, [&](int rank, shardrec_comm* comm) {
    SR_EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 60));
    digests[static_cast<size_t>(rank)] = digest_of(configuration, comm);
  });
  for (const uint64_t digest : digests) EXPECT_EQ(digest, digests[0]) << configuration.name;
  return digests[0];
}

// How many have each part of a name, by its place there.
std::map<std::string, int> count_parts(const std::vector<Configuration>& configurations) {
  std::map<std::string, int> parts;
  for (const Configuration& configuration : configurations) {
    size_t place = 0;
    for (size_t at = 0; at != std::string::npos; ++place) {
      const size_t end = configuration.name.find_first_of("/+", at);
      ++parts[std::to_string(place) + " " + configuration.name.substr(at, end - at)];
      at = end == std::string::npos ? end : end + 1;
    }
  }
  return parts;
}

constexpr size_t kParts = 8 + 9 + 5 + 4 + 5 + 9 + 4 + 4;

TEST(Configurations, AreManyAndOfEveryKind) {
  const auto all = configurations();
  EXPECT_GE(all.size(), 300U);
  std::set<std::string> names;
  for (const Configuration& configuration : all) names.insert(configuration.name);
  EXPECT_EQ(names.size(), all.size());
  const auto parts = count_parts(all);
  EXPECT_EQ(parts.size(), kParts);
  for (const auto& [part, count] : parts) EXPECT_GE(count, 10) << part;
}

TEST(Configurations, TheirSpreadIsSmallAndOfEveryKind) {
  const auto all = configurations();
  std::vector<Configuration> few;
  for (const size_t i : spread_of_configurations()) few.push_back(all[i]);
  EXPECT_EQ(few.size(), 30U);
  const auto parts = count_parts(few);
  EXPECT_EQ(parts.size(), kParts);
  for (const auto& [part, count] : parts) EXPECT_GE(count, 2) << part;
}

constexpr int kOptimizers = 8;
constexpr int kSpread = -1;

// The spread, and the others of each optimizer, so that it can be seen how far they are.
class RecordedDigests : public ::testing::TestWithParam<int> {
 protected:
  // Some of the others where a sanitizer slows them down.
  static std::vector<size_t> chosen(size_t count) {
    auto spread = spread_of_configurations();
    if (GetParam() == kSpread) return spread;
    std::vector<size_t> others;
    for (auto i = static_cast<size_t>(GetParam()); i < count;
         i += SHARDREC_SANITIZED ? 9 * kOptimizers : kOptimizers) {
      if (!std::binary_search(spread.begin(), spread.end(), i)) others.push_back(i);
    }
    return others;
  }
};

TEST_P(RecordedDigests, AreWhatTheyWere) {
  const auto all = configurations();
  const auto recorded = recorded_digests();
  ASSERT_EQ(recorded.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(recorded[i].first, all[i].name);
  for (const size_t i : chosen(all.size())) {
    const uint64_t digest = digest_in_threads(all[i]);
    EXPECT_EQ(core::to_hex(digest), core::to_hex(recorded[i].second)) << all[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Spread, RecordedDigests, ::testing::Values(kSpread));
INSTANTIATE_TEST_SUITE_P(Others, RecordedDigests, ::testing::Range(0, kOptimizers));

// The least and the most that this processor has.
class ScalarDigests : public ::testing::TestWithParam<int> {};

TEST_P(ScalarDigests, AreThoseOfAllKernels) {
  const auto all = configurations();
  const auto recorded = recorded_digests();
  ASSERT_EQ(recorded.size(), all.size());
  compute::force_cpu_kernels(&compute::cpu_kernels_at(0));
  for (auto i = static_cast<size_t>(GetParam()); i < all.size(); i += 3 * kOptimizers) {
    const uint64_t digest = digest_in_threads(all[i]);
    EXPECT_EQ(core::to_hex(digest), core::to_hex(recorded[i].second)) << all[i].name;
  }
  compute::force_cpu_kernels(nullptr);
}

INSTANTIATE_TEST_SUITE_P(Turns, ScalarDigests, ::testing::Range(0, kOptimizers));

TEST(DigestRecorder, WritesWhereItIsAsked) {
  const char* path = std::getenv("SHARDREC_RECORD_DIGESTS");
  if (path == nullptr) GTEST_SKIP() << "SHARDREC_RECORD_DIGESTS names no file";
  std::ofstream file(path);
  for (const Configuration& configuration : configurations()) {
    file << core::to_hex(digest_in_threads(configuration)) << ' ' << configuration.name << '\n';
  }
  EXPECT_TRUE(file.flush());
}

}  // namespace
}  // namespace shardrec::test
