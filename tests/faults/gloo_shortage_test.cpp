// Memory runs out at the k-th allocation, for many k, while two ranks meet over Gloo, reduce and
// end: on a thread of the library's, or on one rank's own. The host lives, nobody waits for a
// deadline, and every communicator can be destroyed.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/remote/transport.h"
#include "comm/rendezvous/server/server.h"
#include "faults/failing_allocator.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

constexpr int kRanks = 2;

enum class Where : uint8_t { kLibrary, kRank };

struct Case {
  Where where = Where::kLibrary;
  Shortage shortage = Shortage::kOnce;
};

// What the calls of one rank came to, until one failed.
struct Calls {
  shardrec_status status = SHARDREC_OK;
  std::string what{};  // failed, and why
  bool created = false;
};

shardrec_status reduce(shardrec_comm* comm, std::vector<float>& data) {
  const shardrec_tensor tensor = vector_of(data);
  return shardrec_comm_all_reduce(comm, &tensor, SHARDREC_REDUCTION_SUM);
}

// Of the host's memory, which is not what is tested.
struct Data {
  std::vector<float> few = std::vector<float>(100, 1.0F);
  std::vector<float> many = std::vector<float>(200000, 1.0F);
};

class Rank {
 public:
  Rank(int rank, const std::string& token) : rank_(rank), token_(token) {
    calls_.what.reserve(2000);
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_COMM, &options_));
    SR_EXPECT_OK(shardrec_options_set_f64(options_, SHARDREC_OPTION_COMM_SETUP_SECONDS, 30));
  }
  ~Rank() { shardrec_options_destroy(&options_); }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  void live() {
    shardrec_comm* comm = nullptr;
    calls_.created = made("create", shardrec_comm_create(SHARDREC_ENGINE_GLOO, rank_, kRanks,
                                                         token_.c_str(), options_, &comm));
    if (!calls_.created) return;
    static_cast<void>(
        made("set_f64", shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 30)) &&
        made("reduce few", reduce(comm, data_.few)) &&
        made("reduce many", reduce(comm, data_.many)) && made("close", shardrec_comm_close(comm)));
    shardrec_comm_destroy(&comm);
  }
  const Calls& calls() const { return calls_; }

 private:
  bool made(const char* what, shardrec_status status) {
    const NoShortage pause;
    calls_.status = status;
    if (status == SHARDREC_OK) return true;
    calls_.what =
        std::string(what) + ": " + shardrec_status_name(status) + ": " + shardrec_last_error();
    return false;
  }

  int rank_;
  std::string token_;
  shardrec_options* options_ = nullptr;
  Data data_;
  Calls calls_;
};

// False: no allocation failed.
bool run(const Case& test, int64_t k) {
  // Not of the C API, whose servers last as long as a communicator of their process needs them: the
  // end of this one is the end of the process that holds it.
  auto server = std::make_unique<comm::rendezvous::Server>(comm::rendezvous::ServerOptions{});
  std::mutex mutex;  // of the server
  const std::string token = server->token().text();
  std::array<Rank, kRanks> ranks{Rank(0, token), Rank(1, token)};
  bool fired = false;
  if (test.where == Where::kLibrary) fail_allocation_elsewhere(k, test.shortage);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      spare_this_thread();
      const bool mine = test.where == Where::kRank && rank == 0;
      if (mine) fail_allocation(k, test.shortage);
      ranks[rank].live();
      if (mine) fired = end_shortage();
      // Who cannot take part ends: else nobody would know of it.
      const std::lock_guard lock(mutex);
      if (!ranks[rank].calls().created) server.reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  server.reset();
  if (test.where == Where::kLibrary) fired = end_shortage_elsewhere();
  for (const Rank& rank : ranks) {
    const Calls& calls = rank.calls();
    // Gloo's own addresses and interfaces are the system's to look up, which does not say why it
    // could not.
    const bool gloo = calls.what.find("Gloo cannot listen") != std::string::npos;
    const bool fits =
        calls.status == SHARDREC_OK || (fired && (gloo || calls.status == SHARDREC_PEER_FAILED ||
                                                  calls.status == SHARDREC_OUT_OF_MEMORY));
    EXPECT_TRUE(fits) << "allocation " << k << ": " << ranks[0].calls().what << " | "
                      << ranks[1].calls().what;
  }
  return fired;
}

class GlooShortage : public ::testing::TestWithParam<Case> {};

TEST_P(GlooShortage, EndsNoHostAndHoldsNobodyUp) {
#ifdef SHARDREC_THREAD_SANITIZER
  GTEST_SKIP() << "the thread sanitizer's operator new cannot be replaced";
#endif
  if (!comm::remote::transport_available("gloo")) GTEST_SKIP() << "the engine gloo is not built";
  // Messages of this size are offered and read, too.
  ASSERT_EQ(setenv("SHARDREC_GLOO_DIRECT_BYTES", "65536", 1), 0);
  spare_this_thread();
  ASSERT_FALSE(run(GetParam(), int64_t{1} << 40));
  int64_t before = 0;
  SR_OK(shardrec_live_objects(&before));
  int64_t k = 1;
  int64_t tries = 0;
  while (run(GetParam(), k) && !HasFailure()) {
    ++tries;
    // Fewer of the later ones: a run takes as long as its deadlines.
    k += allocation_stride() + k / (every_allocation() ? 6 : 3);
  }
  EXPECT_GT(tries, 20 / allocation_stride()) << "the last was allocation " << k;
  int64_t after = 0;
  SR_OK(shardrec_live_objects(&after));
  EXPECT_EQ(after, before);
  unsetenv("SHARDREC_GLOO_DIRECT_BYTES");
}

INSTANTIATE_TEST_SUITE_P(Cases, GlooShortage,
                         ::testing::Values(Case{Where::kLibrary, Shortage::kOnce},
                                           Case{Where::kLibrary, Shortage::kLasting},
                                           Case{Where::kRank, Shortage::kOnce},
                                           Case{Where::kRank, Shortage::kLasting}));

}  // namespace
}  // namespace shardrec::test
