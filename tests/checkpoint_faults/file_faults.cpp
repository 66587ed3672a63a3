#include "file_faults.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace shardrec::file_faults {
namespace {

constexpr int kMostDescriptors = 4096;

struct State {
  std::mutex
      mutex;  // held during calls too while changes are recorded, so that their order is true
  std::atomic<bool> active{false};
  bool recording = false;
  std::string directory;
  Fault fault = Fault::kNone;
  long at = 0;
  long count = 0;
  bool struck = false;
  bool error_next = false;
  std::array<std::string, kMostDescriptors> paths;  // of descriptors; "": not below the directory
  std::vector<Change> changes;
};

State& state() {
  static State* const state = new State;  // calls are made until the very end of the process
  return *state;
}

bool below(const char* path) {
  const State& own = state();
  const std::string text = path == nullptr ? "" : path;
  return text == own.directory || text.starts_with(own.directory + "/");
}

// What a call is to do.
enum class Verdict { kGoOn, kFail, kHalf, kDieAfter };
enum class Needs { kNothing, kSpace };

class Call {
 public:
  // concerned: whether the call is about the directory.
  Call(bool concerned, Needs needs) : lock_(state().mutex) {
    State& own = state();
    if (!concerned) {
      lock_.unlock();
      return;
    }
    concerned_ = true;
    ++own.count;
    const bool now = own.count == own.at;
    if (std::exchange(own.error_next, false)) {
      verdict_ = Verdict::kFail;
    } else if (own.fault == Fault::kDeadDisk && own.at > 0 && own.count >= own.at) {
      own.struck = true;
      verdict_ = Verdict::kFail;
    } else if (now) {
      strike(own, needs);
    }
    if (!own.recording) lock_.unlock();
  }

  bool concerned() const { return concerned_; }
  bool fails() const { return verdict_ == Verdict::kFail; }
  bool is_half() const { return verdict_ == Verdict::kHalf; }
  int fail() const {
    errno = error_;
    return -1;
  }
  // Passes on what the call returned.
  template <class Result>
  Result done(Result result) const {
    if (verdict_ == Verdict::kDieAfter) kill(getpid(), SIGKILL);
    return result;
  }
  void record(Change change) const {
    if (concerned_ && state().recording) state().changes.push_back(std::move(change));
  }

 private:
  void strike(State& own, Needs needs) {
    own.struck = true;
    switch (own.fault) {
      case Fault::kNone:
        own.struck = false;
        break;
      case Fault::kKill:
        kill(getpid(), SIGKILL);
        break;
      case Fault::kKillAfter:
        verdict_ = Verdict::kDieAfter;
        break;
      case Fault::kStop:
        // To this thread: one to the process may reach another thread first, and this one would go
        // on with the call, and take a lock, before the process stands still.
        raise(SIGSTOP);
        break;
      case Fault::kNoSpace:
        if (needs == Needs::kNothing) break;
        error_ = ENOSPC;
        verdict_ = Verdict::kFail;
        break;
      case Fault::kShortThenError:
        own.error_next = true;
        verdict_ = Verdict::kHalf;
        break;
      case Fault::kShort:
        verdict_ = Verdict::kHalf;
        break;
      case Fault::kIoError:
      case Fault::kDeadDisk:
        verdict_ = Verdict::kFail;
        break;
    }
  }

  std::unique_lock<std::mutex> lock_;
  bool concerned_ = false;
  Verdict verdict_ = Verdict::kGoOn;
  int error_ = EIO;
};

bool concerns(const char* path) { return state().active && below(path); }

bool concerns(int descriptor) {
  State& own = state();
  if (!own.active || descriptor < 0 || descriptor >= kMostDescriptors) return false;
  const std::lock_guard lock(own.mutex);
  return !own.paths[static_cast<size_t>(descriptor)].empty();
}

std::string path_of(int descriptor) { return state().paths[static_cast<size_t>(descriptor)]; }

template <class... Arguments>
long system_call(long number, Arguments... arguments) {
  return syscall(number, arguments...);
}

int open_at(int directory, const char* path, int flags, mode_t mode) {
  const auto open = [&] {
    return static_cast<int>(system_call(SYS_openat, directory, path, flags, mode));
  };
  if (!concerns(path)) return open();
  const bool creates = (flags & O_CREAT) != 0;
  const Call call(true, creates ? Needs::kSpace : Needs::kNothing);
  if (call.fails()) return call.fail();
  const bool was_there = system_call(SYS_faccessat, directory, path, F_OK) == 0;
  const int descriptor = open();
  if (descriptor >= 0 && descriptor < kMostDescriptors) {
    std::unique_lock<std::mutex> lock(state().mutex, std::defer_lock);
    if (!state().recording) lock.lock();
    state().paths[static_cast<size_t>(descriptor)] = path;
  }
  if (descriptor >= 0 && creates && !was_there) {
    call.record({Change::Kind::kCreate, path, {}, {}});
  }
  return call.done(descriptor);
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

ssize_t read_at(int descriptor, void* bytes, size_t count, off_t offset) {
  const Call call(concerns(descriptor), Needs::kNothing);
  if (call.fails()) return call.fail();
  if (call.is_half() && count > 1) count /= 2;
  return call.done(system_call(SYS_pread64, descriptor, bytes, count, offset));
}

// Calls on one or two paths.
template <class Run>
int on_paths(const char* first, const char* second, Needs needs, Change change, const Run& run) {
  const Call call(concerns(first) || (second != nullptr && concerns(second)), needs);
  if (call.fails()) return call.fail();
  const auto result = static_cast<int>(run());
  if (result == 0) call.record(std::move(change));
  return call.done(result);
}

constexpr const char* kNames[] = {"none",   "kill",  "kill-after",     "stop",     "eio",
                                  "enospc", "short", "short-then-eio", "dead-disk"};

}  // namespace

void start(const std::string& directory, Fault fault, long at) {
  State& own = state();
  const std::lock_guard lock(own.mutex);
  own.directory = directory;
  own.fault = fault;
  own.at = at;
  own.count = 0;
  own.struck = false;
  own.error_next = false;
  own.recording = false;
  own.active = true;
}

long stop(bool* struck) {
  State& own = state();
  own.active = false;
  const std::lock_guard lock(own.mutex);
  for (std::string& path : own.paths) path.clear();
  if (struck != nullptr) *struck = own.struck;
  return own.count;
}

void start_recording(const std::string& directory) {
  start(directory, Fault::kNone, 0);
  const std::lock_guard lock(state().mutex);
  state().changes.clear();
  state().recording = true;
}

std::vector<Change> stop_recording() {
  stop();
  const std::lock_guard lock(state().mutex);
  state().recording = false;
  return std::exchange(state().changes, {});
}

Fault fault_of(const std::string& name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<Fault>(i);
  }
  throw std::invalid_argument("no fault " + name);
}

std::string name_of(Fault fault) { return kNames[static_cast<size_t>(fault)]; }

}  // namespace shardrec::file_faults

using namespace shardrec::file_faults;  // NOLINT(google-build-using-namespace): C functions

#pragma GCC visibility push(default)  // in place of those of the C library
extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int directory, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_at(directory, path, flags, mode);
}

int close(int descriptor) {
  const Call call(concerns(descriptor), Needs::kNothing);
  if (call.concerned()) {
    std::unique_lock<std::mutex> lock(state().mutex, std::defer_lock);
    if (!state().recording) lock.lock();
    state().paths[static_cast<size_t>(descriptor)].clear();
  }
  // Whatever it says, the descriptor is gone.
  const auto result = static_cast<int>(system_call(SYS_close, descriptor));
  return call.fails() ? call.fail() : call.done(result);
}

ssize_t write(int descriptor, const void* bytes, size_t count) {
  const Call call(concerns(descriptor), Needs::kSpace);
  if (call.fails()) return call.fail();
  if (call.is_half() && count > 1) count /= 2;
  const ssize_t put = system_call(SYS_write, descriptor, bytes, count);
  if (put > 0 && call.concerned()) {
    call.record({Change::Kind::kAppend,
                 state().recording ? path_of(descriptor) : std::string(),
                 {},
                 std::string(static_cast<const char*>(bytes), static_cast<size_t>(put))});
  }
  return call.done(put);
}

ssize_t pread(int descriptor, void* bytes, size_t count, off_t offset) {
  return read_at(descriptor, bytes, count, offset);
}

ssize_t pread64(int descriptor, void* bytes, size_t count, off64_t offset) {
  return read_at(descriptor, bytes, count, offset);
}

int fsync(int descriptor) {
  const Call call(concerns(descriptor), Needs::kSpace);
  if (call.fails()) return call.fail();
  // A killed process leaves what it has written to the system, synced or not.
  const int result = call.concerned() ? 0 : static_cast<int>(system_call(SYS_fsync, descriptor));
  if (call.concerned()) {
    call.record({Change::Kind::kSync, state().recording ? path_of(descriptor) : "", {}, {}});
  }
  return call.done(result);
}

int flock(int descriptor, int operation) noexcept {
  const Call call(concerns(descriptor), Needs::kNothing);
  if (call.fails()) return call.fail();
  return call.done(static_cast<int>(system_call(SYS_flock, descriptor, operation)));
}

int rename(const char* from, const char* to) noexcept {
  return on_paths(from, to, Needs::kSpace, {Change::Kind::kRename, from, to, {}},
                  [&] { return system_call(SYS_rename, from, to); });
}

int renameat2(int from_directory, const char* from, int to_directory, const char* to,
              unsigned flags) noexcept {
  return on_paths(from, to, Needs::kSpace, {Change::Kind::kRename, from, to, {}}, [&] {
    return system_call(SYS_renameat2, from_directory, from, to_directory, to, flags);
  });
}

int link(const char* from, const char* to) noexcept {
  return on_paths(from, to, Needs::kSpace, {Change::Kind::kLink, from, to, {}},
                  [&] { return system_call(SYS_link, from, to); });
}

int unlink(const char* path) noexcept {
  return on_paths(path, nullptr, Needs::kNothing, {Change::Kind::kRemove, path, {}, {}},
                  [&] { return system_call(SYS_unlink, path); });
}

int rmdir(const char* path) noexcept {
  return on_paths(path, nullptr, Needs::kNothing, {Change::Kind::kRemove, path, {}, {}},
                  [&] { return system_call(SYS_rmdir, path); });
}

int mkdir(const char* path, mode_t mode) noexcept {
  return on_paths(path, nullptr, Needs::kSpace, {Change::Kind::kMakeDirectory, path, {}, {}},
                  [&] { return system_call(SYS_mkdir, path, mode); });
}

}  // extern "C"
#pragma GCC visibility pop
