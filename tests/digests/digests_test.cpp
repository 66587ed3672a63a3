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

TEST(Configurations, AreManyAndOfEveryKind) {
  const auto all = configurations();
  EXPECT_GE(all.size(), 300U);
  std::set<std::string> names;
  std::map<std::string, int> parts;  // how many have them, by place in the name
  for (const Configuration& configuration : all) {
    names.insert(configuration.name);
    size_t place = 0;
    for (size_t at = 0; at != std::string::npos; ++place) {
      const size_t end = configuration.name.find_first_of("/+", at);
      ++parts[std::to_string(place) + " " + configuration.name.substr(at, end - at)];
      at = end == std::string::npos ? end : end + 1;
    }
  }
  EXPECT_EQ(names.size(), all.size());
  EXPECT_EQ(parts.size(), 8U + 9 + 5 + 4 + 5 + 9 + 4 + 4);
  for (const auto& [part, count] : parts) EXPECT_GE(count, 10) << part;
}

// One for each optimizer, so that it can be seen how far they are.
class RecordedDigests : public ::testing::TestWithParam<int> {
 protected:
  static constexpr size_t kOptimizers = 8;

  // Some where a sanitizer slows them down.
  bool takes(size_t index) const {
    return index % (SHARDREC_SANITIZED ? 5 * kOptimizers : kOptimizers) ==
           static_cast<size_t>(GetParam());
  }
};

TEST_P(RecordedDigests, AreWhatTheyWere) {
  const auto all = configurations();
  const auto recorded = recorded_digests();
  ASSERT_EQ(recorded.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(recorded[i].first, all[i].name);
    if (!takes(i)) continue;
    const uint64_t digest = digest_in_threads(all[i]);
    EXPECT_EQ(core::to_hex(digest), core::to_hex(recorded[i].second)) << all[i].name;
  }
}

// The least and the most that this processor has.
TEST_P(RecordedDigests, AreThoseOfTheScalarKernelsToo) {
  const auto all = configurations();
  const auto recorded = recorded_digests();
  ASSERT_EQ(recorded.size(), all.size());
  compute::force_cpu_kernels(&compute::cpu_kernels_at(0));
  for (size_t i = static_cast<size_t>(GetParam()); i < all.size(); i += kOptimizers * 3) {
    const uint64_t digest = digest_in_threads(all[i]);
    EXPECT_EQ(core::to_hex(digest), core::to_hex(recorded[i].second)) << all[i].name;
  }
  compute::force_cpu_kernels(nullptr);
}

TEST(DigestRecorder, WritesWhereItIsAsked) {
  const char* path = std::getenv("SHARDREC_RECORD_DIGESTS");
  if (path == nullptr) GTEST_SKIP() << "SHARDREC_RECORD_DIGESTS names no file";
  std::ofstream file(path);
  for (const Configuration& configuration : configurations()) {
    file << core::to_hex(digest_in_threads(configuration)) << ' ' << configuration.name << '\n';
  }
  EXPECT_TRUE(file.flush());
}

INSTANTIATE_TEST_SUITE_P(Turns, RecordedDigests, ::testing::Range(0, 8));

}  // namespace
}  // namespace shardrec::test
