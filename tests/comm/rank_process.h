// Programs beside a test, for the tests of the rendezvous.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <utility>

#include "rendezvous.h"

namespace shardrec::comm::rendezvous {

// A rendezvous_rank; killed with this object.
class Process {
 public:
  Process(std::string what, std::string second, std::string third) {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    EXPECT_EQ(pipe2(in.data(), O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(out.data(), O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    std::string program =
        (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "rendezvous_rank")
            .string();
    std::array<char*, 5> arguments = {program.data(), what.data(), second.data(), third.data(),
                                      nullptr};
    EXPECT_EQ(posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    to_ = in[1];
    from_ = out[0];
  }
  ~Process() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    if (to_ >= 0) close(to_);
    close(from_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const { kill(pid_, number); }
  // The next line, or "" after some seconds.
  std::string line(double seconds = 20) {
    const auto deadline = in(seconds);
    std::string text;
    for (;;) {
      pollfd waited{.fd = from_, .events = POLLIN, .revents = 0};
      const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
      if (left <= 0 || poll(&waited, 1, static_cast<int>(left)) <= 0) return "";
      char letter = 0;
      if (::read(from_, &letter, 1) <= 0) return text;
      if (letter == '\n') return text;
      text += letter;
    }
  }
  // Ends its input; its exit status.
  int finish() {
    close(std::exchange(to_, -1));
    int state = 0;
    waitpid(std::exchange(pid_, -1), &state, 0);
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
  }

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
};

}  // namespace shardrec::comm::rendezvous
