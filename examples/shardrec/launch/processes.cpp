// How ranks are started as processes, waited for and ended; signals are passed on.
#include "launch/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <shardrec/shardrec.hpp>
#include <utility>

#include "command/numbers.h"
#include "command/user_error.h"
#include "launch/engines.h"

extern char** environ;

namespace shardrec::cli {
namespace {

using Clock = std::chrono::steady_clock;

// After a failure the others have so long to notice it themselves, then so long to end when told.
constexpr std::chrono::seconds kGrace{5};
// mpirun has so long to end, with its ranks, after the first signal that is passed on to it.
constexpr std::chrono::seconds kLauncherGrace{10};
constexpr std::array kPassedOn{SIGINT, SIGTERM, SIGHUP};

std::string described(int status) {
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    return "was killed by signal " + std::to_string(number) + " (" + strsignal(number) + ")";
  }
  return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

int code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// What processes are started with, made before fork(): afterwards only calls that are safe there.
class Program {
 public:
  Program(std::vector<std::string> command, const std::map<std::string, std::string>& variables)
      : command_(std::move(command)) {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      if (!variables.contains(text.substr(0, text.find('=')))) environment_.push_back(text);
    }
    for (const auto& [name, value] : variables) {
      std::string text = name;
      text += '=';
      text += value;
      environment_.push_back(std::move(text));
    }
    for (std::string& text : command_) arguments_.push_back(text.data());
    for (std::string& text : environment_) entries_.push_back(text.data());
    arguments_.push_back(nullptr);
    entries_.push_back(nullptr);
  }

  // Returns the process; group: the processes' group, 0: a new one.
  pid_t start(pid_t group, int output, const sigset_t& mask) {
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child < 0) throw UserError(std::string("A process cannot be started: ") + strerror(errno));
    if (child != 0) {
      setpgid(child, group);
      return child;
    }
    setpgid(0, group);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    if (output >= 0) dup2(output, STDOUT_FILENO);
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    execvpe(arguments_[0], arguments_.data(), entries_.data());
    constexpr char kText[] = "shardrec: the program cannot be run\n";
    const ssize_t written = write(STDERR_FILENO, kText, sizeof kText - 1);
    _exit(written < 0 ? 126 : 127);
  }

 private:
  std::vector<std::string> command_;
  std::vector<std::string> environment_;
  std::vector<char*> arguments_;
  std::vector<char*> entries_;
};

// Signals wait in this process instead of ending it, for a scope.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigemptyset(&held_);
    sigaddset(&held_, SIGCHLD);
    for (const int number : kPassedOn) sigaddset(&held_, number);
    pthread_sigmask(SIG_BLOCK, &held_, &before_);
  }
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

  const sigset_t& before() const { return before_; }
  // The next signal, 0: none came in time.
  int wait(std::chrono::milliseconds time) const {
    const timespec limit{.tv_sec = time.count() / 1000,
                         .tv_nsec = static_cast<long>(time.count() % 1000) * 1000000};
    return std::max(sigtimedwait(&held_, nullptr, &limit), 0);
  }

 private:
  sigset_t held_{};
  sigset_t before_{};
};

// The process that started one, 0: there is none of this number.
pid_t parent_of(const std::string& process) {
  std::ifstream file("/proc/" + process + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // "number (name) state parent": the name may hold anything.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 4 >= text.size()) return 0;
  return static_cast<pid_t>(std::strtol(text.c_str() + name_end + 4, nullptr, 10));
}

// The processes that a process has started, and those that these have.
std::vector<pid_t> descendants_of(pid_t ancestor) {
  std::multimap<pid_t, pid_t> children;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    if (const auto number = parse_integer(name)) {
      children.emplace(parent_of(name), static_cast<pid_t>(*number));
    }
  }
  std::vector<pid_t> found{ancestor};
  for (size_t i = 0; i < found.size(); ++i) {
    const auto [first, last] = children.equal_range(found[i]);
    for (auto child = first; child != last; ++child) found.push_back(child->second);
  }
  found.erase(found.begin());
  return found;
}

// What one process writes, read so that it never waits.
class Capture {
 public:
  explicit Capture(bool wanted) {
    if (wanted && pipe2(ends_.data(), O_CLOEXEC) != 0) {
      throw UserError(std::string("A pipe cannot be made: ") + strerror(errno));
    }
  }
  ~Capture() {
    for (const int end : ends_) {
      if (end >= 0) close(end);
    }
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  int writer() const { return ends_[1]; }
  void started() {
    if (ends_[1] >= 0) close(std::exchange(ends_[1], -1));
  }
  void read_what_is_there(std::string& text) {
    if (ends_[0] < 0) return;
    for (;;) {
      pollfd ready{.fd = ends_[0], .events = POLLIN, .revents = 0};
      if (poll(&ready, 1, 0) <= 0) return;
      std::array<char, 4096> bytes{};
      const ssize_t count = read(ends_[0], bytes.data(), bytes.size());
      if (count <= 0) return;
      text.append(bytes.data(), static_cast<size_t>(count));
    }
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

class Launch {
 public:
  explicit Launch(bool capture) : capture_(capture) {}

  void start(Program& program, int rank, const SignalsHeld& signals) {
    const pid_t group = running_.empty() ? 0 : group_;
    const pid_t child = program.start(group, rank == 0 ? capture_.writer() : -1, signals.before());
    if (running_.empty()) group_ = child;
    running_[child] = rank;
    if (rank == 0) capture_.started();
  }

  LaunchEnd wait(const SignalsHeld& signals, bool one_for_all) {
    while (!running_.empty()) {
      const int number = signals.wait(std::chrono::milliseconds(100));
      if (number != 0 && number != SIGCHLD) {
        kill(-group_, number);
        if (one_for_all) expect_an_end();
      }
      capture_.read_what_is_there(end_.output);
      reap(one_for_all);
      end_the_others();
    }
    capture_.read_what_is_there(end_.output);
    return std::move(end_);
  }

  // Where not all could be started.
  void give_up() {
    for (const auto& [process, rank] : running_) kill(process, SIGKILL);
    for (const auto& [process, rank] : running_) waitpid(process, nullptr, 0);
    running_.clear();
  }

 private:
  void reap(bool one_for_all) {
    for (auto it = running_.begin(); it != running_.end();) {
      int status = 0;
      if (waitpid(it->first, &status, WNOHANG) != it->first) {
        ++it;
        continue;
      }
      if (status != 0) {
        // Who was killed failed before those who ended because of it.
        const bool killed = WIFSIGNALED(status) && !asked_to_end_;
        if (end_.code == 0 || (killed && !first_was_killed_)) {
          first_was_killed_ = killed;
          end_.code = code_of(status);
          end_.failure = one_for_all
                             ? "the ranks' launcher " + described(status)
                             : "rank " + std::to_string(it->second) + " " + described(status);
        }
        if (deadline_ == Clock::time_point::max()) deadline_ = Clock::now() + kGrace;
      }
      it = running_.erase(it);
    }
  }

  // A launcher was told to end, and its ranks by it.
  void expect_an_end() {
    if (asked_to_end_) return;
    asked_to_end_ = true;
    deadline_ = Clock::now() + kLauncherGrace;
  }

  void end_the_others() {
    if (running_.empty() || Clock::now() < deadline_) return;
    for (const auto& [process, rank] : running_) {
      // Those that a launcher has started would stay without it.
      const auto started = asked_to_end_ ? descendants_of(process) : std::vector<pid_t>();
      kill(process, asked_to_end_ ? SIGKILL : SIGTERM);
      for (const pid_t other : started) kill(other, SIGKILL);
    }
    asked_to_end_ = true;
    deadline_ = Clock::now() + kGrace;
  }

  Capture capture_;
  std::map<pid_t, int> running_;
  pid_t group_ = 0;
  LaunchEnd end_;
  bool first_was_killed_ = false;
  bool asked_to_end_ = false;
  Clock::time_point deadline_ = Clock::time_point::max();
};

std::vector<std::string> mpirun(const LaunchOptions& options) {
  std::vector<std::string> command{
      "mpirun", "--oversubscribe", "--bind-to", "none", "-n", std::to_string(options.ranks)};
  command.insert(command.end(), options.command.begin(), options.command.end());
  return command;
}

}  // namespace

LaunchEnd launch(const LaunchOptions& options) {
  std::map<std::string, std::string> variables{{"SHARDREC_ENGINE", options.engine}};
  const SignalsHeld signals;  // before the rendezvous has a thread, which has them blocked too
  Launch ranks(options.capture);
  if (find_engine(options.engine).by_mpirun) {
    if (geteuid() == 0) {  // Open MPI asks root for both
      variables["OMPI_ALLOW_RUN_AS_ROOT"] = "1";
      variables["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1";
    }
    Program program(mpirun(options), variables);
    ranks.start(program, 0, signals);
    return ranks.wait(signals, true);
  }
  const Rendezvous rendezvous;
  variables["SHARDREC_TOKEN"] = rendezvous.token();
  variables["WORLD_SIZE"] = std::to_string(options.ranks);
  const int per_node = options.ranks_per_node == 0 ? options.ranks : options.ranks_per_node;
  try {
    for (int rank = 0; rank < options.ranks; ++rank) {
      const int first = rank / per_node * per_node;
      variables["RANK"] = std::to_string(rank);
      variables["LOCAL_RANK"] = std::to_string(rank - first);
      variables["LOCAL_WORLD_SIZE"] = std::to_string(std::min(per_node, options.ranks - first));
      Program program(options.command, variables);
      ranks.start(program, rank, signals);
    }
  } catch (...) {
    ranks.give_up();
    throw;
  }
  return ranks.wait(signals, false);
}

int own_rank(const std::string& engine) {
  const char* rank = std::getenv(find_engine(engine).rank_variable);
  return rank == nullptr ? -1 : static_cast<int>(parse_integer(rank).value_or(-1));
}

std::vector<std::string> own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> command;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\0', begin), text.size());
    command.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (command.empty()) throw UserError("/proc/self/cmdline cannot be read.");
  command[0] = "/proc/self/exe";
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (length > 0) command[0] = std::string(path.data(), static_cast<size_t>(length));
  return command;
}

}  // namespace shardrec::cli
