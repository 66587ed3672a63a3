// Ranks that are processes of a machine: they are this program again, each with the test that is a rank.
#include <spawn.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>

#include "core/error.h"
#include "exchange.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): of POSIX, in no header

namespace shardrec::test {
namespace {

constexpr const char* kJob = "SHARDREC_TEST_NCCL_RANK";  // "RANK SIZE ID"

std::string to_text(const Id& id) {
  std::string text;
  for (const uint8_t byte : id) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

Id from_text(const std::string& text) {
  Id id{};
  for (size_t i = 0; i < id.size(); ++i) {
    id[i] = static_cast<uint8_t>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  return id;
}

void be_rank(const char* job, const std::function<void(Rank&, const Id&)>& act) {
  int number = 0;
  int size = 0;
  char id[2 * SHARDREC_NCCL_ID_BYTES + 1] = "";
  ASSERT_EQ(std::sscanf(job, "%d %d %256s", &number, &size, id), 3);
  std::thread([&] {
    Rank rank(number, size, number);
    act(rank, from_text(id));
  }).join();
}

class NcclProcesses : public NcclTest {
 protected:
  // In the process of ctest, starts ranks, which run the same test; in theirs, acts.
  static void run(int size, const std::function<void(Rank&, const Id&)>& act) {
    if (const char* const job = std::getenv(kJob)) {
      be_rank(job, act);
      return;
    }
    const std::string id = to_text(make_id());
    std::vector<pid_t> processes;
    for (int rank = 0; rank < size; ++rank) processes.push_back(start(rank, size, id));
    for (const pid_t process : processes) {
      int status = -1;
      EXPECT_EQ(waitpid(process, &status, 0), process);
      EXPECT_EQ(status, 0);
    }
  }

 private:
  static pid_t start(int rank, int size, const std::string& id) {
    std::string job = core::sentence(kJob, "=", rank, " ", size, " ", id);
    std::vector<char*> environment{job.data()};
    for (char** variable = environ; *variable != nullptr; ++variable) {
      // Reports of the tests of this process are not written by the ranks.
      if (std::strncmp(*variable, "GTEST_", 6) != 0) environment.push_back(*variable);
    }
    environment.push_back(nullptr);
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string filter =
        core::sentence("--gtest_filter=", test->test_suite_name(), ".", test->name());
    std::string name = "rank";
    char* arguments[] = {name.data(), filter.data(), nullptr};
    pid_t process = 0;
    EXPECT_EQ(
        posix_spawn(&process, "/proc/self/exe", nullptr, nullptr, arguments, environment.data()),
        0);
    return process;
  }
};

void exchange_and_reduce(Rank& rank, const Id& id) {
  shardrec_nccl_comm* const comm = rank.join(id);
  exchange_rounds(rank, comm, 4);
  const DeviceBytes data = rank.list(std::vector<int64_t>(1000, int64_t{1} << (8 * rank.rank)));
  const shardrec_nccl_vector vector{data.data(), data.data(), 1000, SHARDREC_NCCL_INT64,
                                    SHARDREC_NCCL_SUM};
  EXPECT_EQ(settled(comm, nccl().all_reduce(comm, rank.in(), &vector)), SHARDREC_NCCL_OK);
  const int64_t sum = 0x01010101 & ((int64_t{1} << (8 * rank.size)) - 1);
  EXPECT_EQ(Rank::values<int64_t>(data), std::vector<int64_t>(1000, sum));
  Rank::leave(comm);
}

// Rank 1 aborts when it has heard of rank 0, which waits for it and learns of that.
void abort_on_both(Rank& rank, const Id& id) {
  OF_FAKE(fake_nccl_set_abort_is_seen)(1);
  shardrec_nccl_comm* const comm = rank.join(id);
  const DeviceBytes sent = rank.bytes("before");
  const DeviceBytes received = rank.bytes("behind");
  const shardrec_nccl_part send{sent.data(), 6, 1};
  const shardrec_nccl_part receive{received.data(), 6, 1 - rank.rank};
  const int32_t sends = rank.rank == 0 ? 1 : 0;
  EXPECT_EQ(nccl().exchange(comm, rank.in(), &send, sends, &receive, 1), SHARDREC_NCCL_OK);
  std::string expected("before");
  if (rank.rank == 0) {
    EXPECT_TRUE(eventually([&] { return nccl().progress(comm) == 6; }));  // ncclRemoteError
    expected.assign(6, static_cast<char>(0xA5));
  } else {
    EXPECT_EQ(received.read(), expected);
  }
  EXPECT_EQ(nccl().abort(comm), SHARDREC_NCCL_OK);
  EXPECT_EQ(received.read(), expected);
}

TEST_F(NcclProcesses, TwoExchangeAndReduce) { run(2, exchange_and_reduce); }
TEST_F(NcclProcesses, FourExchangeAndReduce) { run(4, exchange_and_reduce); }
TEST_F(NcclProcesses, GoOnWithGarbageAfterAbort) { run(2, abort_on_both); }

}  // namespace
}  // namespace shardrec::test
