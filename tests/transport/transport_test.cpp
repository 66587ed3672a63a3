// The promises of transport_plugin.h, kept by each plug-in between processes: this program starts
// the ranks (transport_ranks), for MPI through mpirun, and waits for them, not for ever.
#include "comm/remote/transport.h"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "support/eventually.h"
#include "transport/scenarios.h"

namespace shardrec::comm::remote {
namespace {

constexpr const char* kNotBuilt =
    "the plug-in was not built: its library is not installed, or is not instrumented for the "
    "sanitizer of this build";

using Clock = std::chrono::steady_clock;

// Status of waitpid of each; -1: ended here, because it ran out of time.
std::vector<int> run_all(const std::vector<std::vector<std::string>>& commands, double seconds) {
  std::vector<pid_t> children;
  for (const auto& command : commands) {
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    pid_t child = -1;
    EXPECT_EQ(posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ), 0)
        << command[0];
    children.push_back(child);
  }
  std::vector<int> statuses(children.size(), -1);
  std::vector<bool> ended(children.size(), false);
  const auto collect = [&] {
    bool over = true;
    for (size_t i = 0; i < children.size(); ++i) {
      if (!ended[i]) ended[i] = waitpid(children[i], &statuses[i], WNOHANG) == children[i];
      over = over && ended[i];
    }
    return over;
  };
  if (test::eventually(collect, seconds)) return statuses;
  for (size_t i = 0; i < children.size(); ++i) {
    if (ended[i]) continue;
    kill(children[i], SIGKILL);
    waitpid(children[i], &statuses[i], 0);
    statuses[i] = -1;
  }
  return statuses;
}

bool succeeded(int status) { return status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0; }

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "shardrec_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::vector<int> run_gloo(const std::string& scenario, int ranks, double seconds) {
  const Folder folder;
  std::vector<std::vector<std::string>> commands;
  for (int rank = 0; rank < ranks; ++rank) {
    commands.push_back({SHARDREC_TEST_RANKS, "gloo", scenario, std::to_string(rank),
                        std::to_string(ranks), folder.path()});
  }
  return run_all(commands, seconds);
}

// Open MPI takes the launch for one of root's in a container, and the ranks for more than there are
// processors.
int run_mpirun(int ranks, double seconds, const std::vector<std::string>& program,
               const std::vector<std::string>& more = {}) {
  // Open MPI's own memory at the end of a process is none of ours.
  std::vector<std::string> command{"mpirun", "--allow-run-as-root", "--oversubscribe", "-x",
                                   "ASAN_OPTIONS=detect_leaks=0"};
  command.insert(command.end(), more.begin(), more.end());
  command.insert(command.end(), {"-n", std::to_string(ranks)});
  command.insert(command.end(), program.begin(), program.end());
  return run_all({command}, seconds)[0];
}

int run_mpi(const std::string& scenario, int ranks, double seconds,
            const std::vector<std::string>& more = {}) {
  return run_mpirun(ranks, seconds, {SHARDREC_TEST_RANKS, "mpi", scenario}, more);
}

bool has_mpirun() {
  const char* path = std::getenv("PATH");
  std::string rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    if (access((rest.substr(0, colon) + "/mpirun").c_str(), X_OK) == 0) return true;
    rest.erase(0, colon + 1);
  }
  return false;
}

class Gloo : public testing::Test {
 protected:
  void SetUp() override {
    if (!transport_available("gloo")) GTEST_SKIP() << kNotBuilt;
  }
  static void expect_success(const std::string& scenario, int ranks, double seconds = 60) {
    const std::vector<int> statuses = run_gloo(scenario, ranks, seconds);
    for (size_t rank = 0; rank < statuses.size(); ++rank)
      EXPECT_TRUE(succeeded(statuses[rank]))
          << scenario << ": rank " << rank << ": status " << statuses[rank];
  }
  // Rank 0 kills itself, and no other may die of it.
  static void expect_only_rank_0_dies(const std::string& scenario, int ranks) {
    std::vector<int> statuses = run_gloo(scenario, ranks, 60);
    const auto too_late = [](int status) {
      return status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == kTooLate;
    };
    for (int tries = 1; tries < 5 && std::any_of(statuses.begin(), statuses.end(), too_late);
         ++tries)
      statuses = run_gloo(scenario, ranks, 60);
    EXPECT_TRUE(WIFSIGNALED(statuses[0]) && WTERMSIG(statuses[0]) == SIGKILL) << statuses[0];
    for (size_t rank = 1; rank < statuses.size(); ++rank)
      EXPECT_TRUE(succeeded(statuses[rank]))
          << scenario << ": rank " << rank << ": status " << statuses[rank];
  }
};

// Whether another process may read this one's memory: a security module or a sandbox may forbid it.
bool may_read_memory() {
  const pid_t reader = fork();
  if (reader == 0) {
    char byte = 0;
    static char there = 1;
    const iovec mine{.iov_base = &byte, .iov_len = 1};
    const iovec theirs{.iov_base = &there, .iov_len = 1};
    _exit(process_vm_readv(getppid(), &mine, 1, &theirs, 1, 0) == 1 ? 0 : 1);
  }
  int status = -1;
  return reader > 0 && waitpid(reader, &status, 0) == reader && succeeded(status);
}

// Which messages ranks of one machine read in each other's memory, for all of a test.
class GlooPeerMemory : public Gloo, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    Gloo::SetUp();
    if (IsSkipped()) return;
    if (std::string(GetParam()) != "0" && !may_read_memory())
      GTEST_SKIP() << "processes may not read each other's memory here";
    setenv("SHARDREC_GLOO_DIRECT_BYTES", GetParam(), 1);
  }
  void TearDown() override { unsetenv("SHARDREC_GLOO_DIRECT_BYTES"); }
};

class Mpi : public testing::Test {
 protected:
  void SetUp() override {
    if (!transport_available("mpi")) GTEST_SKIP() << kNotBuilt;
    if (!has_mpirun()) GTEST_SKIP() << "there is no mpirun (install openmpi-bin)";
    // What Open MPI itself leaks at its end would make every rank fail under the sanitizers.
    const char* options = std::getenv("ASAN_OPTIONS");
    const std::string more = (options != nullptr ? options : "") + std::string(":detect_leaks=0");
    setenv("ASAN_OPTIONS", more.c_str(), 1);
  }
  static void expect_success(const std::string& scenario, int ranks,
                             const std::vector<std::string>& more = {}, double seconds = 60) {
    const int status = run_mpi(scenario, ranks, seconds, more);
    EXPECT_TRUE(succeeded(status)) << scenario << ": status " << status;
  }
};

TEST_F(Gloo, MessagesOfAllSizesArriveWhole) {
  for (const int ranks : {1, 2, 3, 5}) expect_success("sizes", ranks);
}
TEST_F(Gloo, ManyMessagesAreUnderWayAtOnce) { expect_success("tags", 3); }
TEST_F(Gloo, ThreadsSendAtOnce) { expect_success("threads", 3); }
TEST_F(Gloo, AWaitThatTimesOutLeavesTheMessageUnderWay) { expect_success("late", 2); }
TEST_F(Gloo, TransportsOpenAgainAndBesideEachOther) { expect_success("reopen", 3); }
TEST_F(Gloo, CancelEndsWaitsOfOtherThreadsForGood) { expect_success("cancel", 2); }
TEST_F(Gloo, MemoryOfAForgottenReceiveIsNotTouched) { expect_success("forget", 2); }
TEST_F(Gloo, ClosesInTimeWhateverIsUnderWay) { expect_success("pending", 4); }
TEST_F(Gloo, ASilentRankHoldsNobodyUp) { expect_success("silent", 3); }
TEST_F(Gloo, ADeadPeerIsNamedAndOthersGoOn) { expect_only_rank_0_dies("killed", 4); }
TEST_F(Gloo, ADeadPeerEndsMessagesThatAreHalfThrough) {
  expect_only_rank_0_dies("killed_half_through", 3);
}
TEST_F(Gloo, WritingToADeadPeerRaisesNoSignal) {
  for (int i = 0; i < 6; ++i) expect_only_rank_0_dies("written_to", 3);
}
TEST_F(Gloo, ARankThatNeverComesIsNamedInTime) { expect_success("absent", 3); }
TEST_F(Gloo, WhatTheStoreThrowsEndsTheMeeting) { expect_success("store_fails", 3); }
// Which of two ranks connects to the other is up to chance.
TEST_F(Gloo, ALostConnectionIsNotTheReasonWhereTheStoreKnowsIt) {
  for (int i = 0; i < 6; ++i) expect_success("heard_later", 3);
}

TEST_P(GlooPeerMemory, KeepsThePromisesOfAllMessages) {
  for (const char* scenario : {"sizes", "tags", "threads", "reopen", "pending"})
    expect_success(scenario, 3);
  for (const char* scenario : {"late", "cancel", "forget"}) expect_success(scenario, 2);
  expect_only_rank_0_dies("killed_half_through", 3);
  expect_only_rank_0_dies("written_to", 3);
}
TEST_P(GlooPeerMemory, PeersThatCannotReadEachOtherHaveAConnectionForEachDirection) {
  expect_success("connections", 3);
}
TEST_P(GlooPeerMemory, ReadsMessagesOfARankThatIsStopped) {
  expect_success("read_while_stopped", 2);
}
TEST_P(GlooPeerMemory, WhatASenderTookBackNeverPassesForWhole) { expect_success("taken_back", 2); }
TEST_P(GlooPeerMemory, WhatAReceiverGaveUpHoldsNobodyUp) { expect_success("given_up", 2); }
TEST_P(GlooPeerMemory, MemoryThatIsGivenUpWhileItIsReadIntoIsNotTouched) {
  for (int i = 0; i < 4; ++i) expect_success("given_up_while_read", 2);
}
INSTANTIATE_TEST_SUITE_P(From, GlooPeerMemory, testing::Values("0", "16385"),
                         [](const auto& least) {
                           return std::string(least.param) == "0" ? "none" : "all";
                         });

TEST_F(Mpi, MessagesOfAllSizesArriveWhole) {
  for (const int ranks : {1, 2, 3, 5}) expect_success("sizes", ranks);
}
TEST_F(Mpi, ManyMessagesAreUnderWayAtOnce) { expect_success("tags", 3); }
TEST_F(Mpi, ThreadsSendAtOnce) { expect_success("threads", 3); }
TEST_F(Mpi, AWaitThatTimesOutLeavesTheMessageUnderWay) { expect_success("late", 2); }
TEST_F(Mpi, TransportsOpenAgainAndBesideEachOther) { expect_success("reopen", 3); }
TEST_F(Mpi, GroupStatesReachEveryRankInOrder) { expect_success("group_states", 4); }
TEST_F(Mpi, CancelEndsWaitsOfOtherThreadsForGood) { expect_success("cancel", 2); }
TEST_F(Mpi, MemoryOfAForgottenReceiveIsNotTouched) { expect_success("forget", 2); }
TEST_F(Mpi, ClosesInTimeWhateverIsUnderWay) { expect_success("pending", 4); }
TEST_F(Mpi, ASilentRankHoldsNobodyUp) { expect_success("silent", 3); }
TEST_F(Mpi, ADeadRankEndsTheJobWithinFiveSeconds) {
  const auto start = Clock::now();
  const int status = run_mpi("one_dies_on_mpi", 3, 30);
  EXPECT_TRUE(status != -1 && !succeeded(status)) << status;
  EXPECT_LT(std::chrono::duration<double>(Clock::now() - start).count(), 8);  // 3 s to start
}
TEST_F(Mpi, RanksMayBeMappedAnyWay) {
  expect_success("tags", 4, {"--map-by", "slot", "--rank-by", "slot", "--bind-to", "none"});
  expect_success("tags", 4, {"--map-by", "node", "--bind-to", "none"});
}
#ifdef SHARDREC_TEST_MPI_HOST
TEST_F(Mpi, AHostThatHasStartedMpiKeepsIt) {
  EXPECT_TRUE(succeeded(run_mpirun(3, 60, {SHARDREC_TEST_MPI_HOST, "multiple"})));
}
TEST_F(Mpi, AHostThatStartedMpiForOneThreadIsToldSo) {
  EXPECT_TRUE(succeeded(run_mpirun(2, 60, {SHARDREC_TEST_MPI_HOST, "single"})));
}
#endif
TEST_F(Mpi, SaysThatItNeedsALauncher) {
  EXPECT_TRUE(succeeded(run_all({{SHARDREC_TEST_RANKS, "mpi", "unlaunched"}}, 30)[0]));
}

// Run by the test with the label "long".
TEST_F(Gloo, DISABLED_MessagesLongerThan31BitsArrive) { expect_success("huge", 2, 300); }
TEST_F(Mpi, DISABLED_MessagesLongerThan31BitsArrive) { expect_success("huge", 2, {}, 300); }

void expect_refusal(const std::string& folder, const std::string& engine,
                    const std::string& scenario) {
  const int status = run_all(
      {{"env", "SHARDREC_PLUGIN_PATH=" + folder, SHARDREC_TEST_RANKS, engine, scenario}}, 30)[0];
  EXPECT_TRUE(succeeded(status)) << engine << ", " << scenario << ": status " << status;
}

TEST(TransportLoader, AMissingPluginNamesThePackageToInstall) {
  for (const char* engine : {"gloo", "mpi"}) expect_refusal("/nonexistent", engine, "missing");
}
TEST(TransportLoader, APluginOfAnotherAbiIsRefused) {
  expect_refusal(SHARDREC_TEST_OTHER_ABI, "gloo", "other_abi");
}
TEST(TransportLoader, AFileThatIsNoPluginIsRefused) {
  expect_refusal(SHARDREC_TEST_NO_PLUGIN, "gloo", "no_plugin");
}
TEST(TransportLoader, AnEngineThatIsNoPluginIsRefusedByName) {
  try {
    load_transport("carrier pigeon");
    FAIL();
  } catch (const core::Error& error) {
    EXPECT_EQ(error.status(), SHARDREC_UNSUPPORTED);
    EXPECT_NE(error.sentence().find("\"carrier pigeon\"; there are gloo and mpi"),
              std::string::npos)
        << error.sentence();
  }
}

}  // namespace
}  // namespace shardrec::comm::remote
