#include "namespaces.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "cli/command.h"
#include "process.h"

namespace shardrec::hosts {
namespace {

std::string refusal;

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + strerror(errno));
}

// A process without rights gets those over what it makes itself.
bool take_own_users() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWUSER) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
  std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
  return geteuid() == 0;
}

int open_namespace(pid_t process, const char* kind) {
  const std::string path = "/proc/" + std::to_string(process) + "/ns/" + kind;
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(path);
  return descriptor;
}

// The first process of a host: it ends when nobody holds the other end of the pipe any more, which
// is when the test program has ended.
[[noreturn]] void hold(int number, int pipe) noexcept {
  const std::array<char, 6> name{'h', 'o', 's', 't', '-', static_cast<char>('0' + number)};
  static_cast<void>(sethostname(name.data(), name.size()));
  signal(SIGCHLD, SIG_IGN);  // whom nobody waits for is not kept
  char byte = 0;
  while (read(pipe, &byte, 1) < 0) {
  }
  _exit(0);
}

std::string script_of(const std::string& commands) {
  std::string script = "set -e; ";
  for (size_t begin = 0; begin < commands.size();) {
    const size_t end = std::min(commands.find(';', begin), commands.size());
    script += "ip " + commands.substr(begin, end - begin) + "; ";
    begin = end + 1;
  }
  return script;
}

void check(const cli::test::Finished& finished, const std::string& commands) {
  if (finished.exit_code != 0) {
    throw std::runtime_error("ip " + commands + ": " + finished.err);
  }
}

}  // namespace

void take_own_network() {
  if (geteuid() != 0 && !take_own_users()) {
    refusal = std::string("a user namespace was refused: ") + strerror(errno);
  } else if (unshare(CLONE_NEWNET) != 0) {
    refusal = std::string("a network namespace was refused: ") + strerror(errno);
  }
}

const std::string& refused() {
  static const bool tried = [] {
    if (!refusal.empty()) return true;
    try {
      ip("link set lo up");
      const Host host(1);
      const Bridge bridge({&host});
    } catch (const std::runtime_error& error) {
      refusal = error.what();
    }
    return true;
  }();
  static_cast<void>(tried);
  return refusal;
}

Host::Host(int number) : number_(number) {
  std::array<int, 2> pipe{};
  if (pipe2(pipe.data(), O_CLOEXEC) != 0) fail("pipe");
  constexpr unsigned long kOwn = CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWPID;
  holder_ = static_cast<pid_t>(syscall(SYS_clone, kOwn | SIGCHLD, 0, 0, 0, 0));
  if (holder_ == 0) {
    close(pipe[1]);
    hold(number, pipe[0]);
  }
  close(pipe[0]);
  alive_ = pipe[1];
  if (holder_ < 0) fail("namespaces for a network, a name and processes were refused");
  network_ = open_namespace(holder_, "net");
  uts_ = open_namespace(holder_, "uts");
  processes_ = open_namespace(holder_, "pid");
  ip("link set lo up");
}

Host::~Host() {
  for (const int descriptor : {network_, uts_, processes_, alive_}) {
    if (descriptor >= 0) close(descriptor);
  }
  if (holder_ <= 0) return;
  kill(holder_, SIGKILL);
  waitpid(holder_, nullptr, 0);
}

void Host::ip(const std::string& commands) const {
  const cli::test::Scratch scratch;
  Process process(*this, {"sh", "-c", script_of(commands)}, {}, scratch.path("ip"));
  check(*process.wait(Clock::time_point::max()), commands);
}

bool Host::enter_network() const noexcept { return setns(network_, CLONE_NEWNET) == 0; }

pid_t Host::run(const std::function<void()>& in_child) const {
  pid_t child = -1;
  int error = 0;
  // A thread that has joined a host's processes may not be let out again; its end does not matter.
  std::thread starter([&] {
    if (setns(processes_, CLONE_NEWPID) == 0) child = fork();
    error = errno;
    if (child != 0) return;
    if (enter_network() && setns(uts_, CLONE_NEWUTS) == 0) in_child();
    _exit(127);
  });
  starter.join();
  errno = error;
  if (child < 0) fail("a process on a host");
  return child;
}

void ip(const std::string& commands) {
  const cli::test::Scratch scratch;
  check(cli::test::Running(scratch, {"-c", script_of(commands)}, "", "/bin/sh").wait(), commands);
}

Bridge::Bridge(const std::vector<const Host*>& hosts) {
  static int made = 0;  // a device's name may be free only some time after its host's end
  devices_.push_back("bridge" + std::to_string(++made));
  ip("link add " + devices_[0] + " type bridge; link set " + devices_[0] + " up");
  for (const Host* host : hosts) {
    devices_.push_back("cable" + std::to_string(++made));
    const std::string& cable = devices_.back();
    ip("link add " + cable + " type veth peer name eth0 netns " + std::to_string(host->holder()) +
       "; link set " + cable + " master " + devices_[0] + " up");
    host->ip("addr add " + host->address() + "/24 dev eth0; link set eth0 up");
  }
}

void Bridge::part(const std::vector<size_t>& hosts) const {
  for (const size_t host : hosts) {
    ip("link set " + devices_[1 + host] + " type bridge_slave isolated on");
  }
}

Bridge::~Bridge() {
  for (const std::string& device : devices_) {
    try {
      ip("link del " + device);
    } catch (const std::runtime_error&) {  // a cable that has gone with its host
    }
  }
}

}  // namespace shardrec::hosts
