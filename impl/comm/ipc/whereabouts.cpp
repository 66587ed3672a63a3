#include "comm/ipc/whereabouts.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace shardrec::comm::ipc {

Whereabouts whereabouts() {
  Whereabouts here{.machine = core::machine_id(), .process = getpid()};
  struct stat of_namespace{};
  if (stat("/proc/self/ns/pid", &of_namespace) == 0) here.processes = of_namespace.st_ino;
  return here;
}

bool may_share(const Whereabouts& one, const Whereabouts& other) noexcept {
  return one.machine == other.machine && one.machine[0] != '\0' &&
         one.processes == other.processes && one.processes != 0 && one.process != other.process;
}

Process::Process(int64_t number) noexcept
    : file_(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(number), 0))) {}

Process::Process(Process&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

Process::~Process() {
  if (file_ >= 0) close(file_);
}

bool Process::has_ended() const noexcept {
  pollfd asked{.fd = file_, .events = POLLIN, .revents = 0};
  return file_ >= 0 && poll(&asked, 1, 0) == 1;
}

}  // namespace shardrec::comm::ipc
