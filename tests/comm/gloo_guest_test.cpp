// Ranks over Gloo as guests of a program: programs that it starts inherit nothing of theirs, and a
// setting that is none is said.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "comm/engines/engine.h"
#include "comm/remote/transport.h"
#include "comm/rendezvous/server/server.h"
#include "world.h"

namespace shardrec::comm {
namespace {

constexpr Operation kTest{.name = "test", .kind = 1};

class GlooGuest : public testing::Test {
 protected:
  void SetUp() override {
    if (!remote::transport_available("gloo")) GTEST_SKIP() << "the engine gloo is not built";
  }
};

// The descriptors of a program that this one starts, as ls -l lists them, but its own of the list.
std::vector<std::string> inherited() {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::string program = "/bin/ls";
  std::string how = "-l";
  std::string what = "/proc/self/fd";
  std::array<char*, 4> arguments = {program.data(), how.data(), what.data(), nullptr};
  pid_t child = -1;
  EXPECT_EQ(posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  std::array<char, 4096> bytes{};
  for (ssize_t got = 0; (got = read(ends[0], bytes.data(), bytes.size())) > 0;) {
    text.append(bytes.data(), static_cast<size_t>(got));
  }
  close(ends[0]);
  waitpid(child, nullptr, 0);
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    const size_t arrow = line.find(" -> ");
    if (arrow == std::string::npos || line.find("/fd", arrow) != std::string::npos) continue;
    lines.push_back(line.substr(line.rfind(' ', arrow - 1) + 1));
  }
  return lines;
}

TEST_F(GlooGuest, AProgramThatIsStartedInheritsNoDescriptor) {
  constexpr int kRanks = 3;
  const auto before = inherited();
  ASSERT_GE(before.size(), 3U);
  rendezvous::Server server({});
  const auto errors = run_joined(
      kRanks, [&](int rank) { return connect({.seconds = 60}, server.token(), rank, kRanks); },
      [&](Communicator& comm) {
        Collectives collectives(comm.open_channel(Purpose::kControl), comm.rank(), comm.size());
        collectives.barrier(kTest);
        if (comm.rank() == 0) {
          const auto now = inherited();
          std::string listed;
          for (const std::string& line : now) listed += line + "\n";
          EXPECT_EQ(now.size(), before.size()) << listed;
        }
        collectives.barrier(kTest);
      });
  for (const auto& error : errors) EXPECT_FALSE(error) << error->sentence();
}

TEST_F(GlooGuest, AMalformedSettingIsAnErrorBeforeAnybodyWaits) {
  rendezvous::Server server({});
  for (const char* const bad :
       {"1x", "-1", " 65536", "many", "1", "16384", "0x10000", "99999999999999999999"}) {
    ASSERT_EQ(setenv("SHARDREC_GLOO_DIRECT_BYTES", bad, 1), 0);
    // Rank 1 never comes: who did not look first would wait for it.
    const auto error = error_of([&] { connect({.seconds = 300}, server.token(), 0, 2); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), SHARDREC_INVALID_ARGUMENT) << error->sentence();
    EXPECT_NE(error->sentence().find("SHARDREC_GLOO_DIRECT_BYTES"), std::string::npos);
  }
  for (const char* const good : {"", "0", "16385", "18446744073709551615"}) {
    ASSERT_EQ(setenv("SHARDREC_GLOO_DIRECT_BYTES", good, 1), 0);
    const auto error = error_of([&] {
      rendezvous::Server alone({});
      connect({.seconds = 60}, alone.token(), 0, 1);
    });
    EXPECT_FALSE(error) << good << ": " << error->sentence();
  }
  unsetenv("SHARDREC_GLOO_DIRECT_BYTES");
}

}  // namespace
}  // namespace shardrec::comm
