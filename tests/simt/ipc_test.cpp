// Memory and events between processes: another process is this program again, with the test that is its part.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "queue.h"
#include "simt/control.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): of POSIX, in no header

namespace shardrec::test {
namespace {

constexpr const char* kPart =
    "SHARDREC_TEST_SIMT_PART";  // "WHAT READ WRITE", files to the other process
constexpr size_t kSharedBytes = 5000;

struct Handles {
  cudaIpcMemHandle_t memory;
  cudaIpcEventHandle_t event;
};

std::vector<unsigned char> numbers(int first) {
  std::vector<unsigned char> bytes(kSharedBytes);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(first));
  return bytes;
}

struct Stream {
  Stream() { check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); }
  ~Stream() { check(cudaStreamDestroy(stream)); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  void copy(void* to, const void* from) const {
    check(cudaMemcpyAsync(to, from, kSharedBytes, cudaMemcpyDefault, stream));
  }
  std::vector<unsigned char> read(const void* from) const {
    std::vector<unsigned char> bytes(kSharedBytes);
    copy(bytes.data(), from);
    check(cudaStreamSynchronize(stream));
    return bytes;
  }
  cudaStream_t stream = nullptr;
};

// The process that owns the memory: makes it, tells of it, and does what it is for when it is told to go on.
class Owner {
 public:
  explicit Owner(const char* what) {
    int to[2];
    int from[2];
    EXPECT_EQ(pipe2(to, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(from, O_CLOEXEC), 0);
    const int read = dup(to[0]);
    const int write = dup(from[1]);
    char part[128];
    std::snprintf(part, sizeof part, "%s=%s %d %d", kPart, what, read, write);
    std::vector<char*> environment{part};
    for (char** variable = environ; *variable != nullptr; ++variable) {
      if (std::strncmp(*variable, "GTEST_", 6) != 0) environment.push_back(*variable);
    }
    environment.push_back(nullptr);
    std::string name = "owner";
    std::string filter = "--gtest_filter=BetweenProcesses.TheOwnersPart";
    char* arguments[] = {name.data(), filter.data(), nullptr};
    EXPECT_EQ(
        posix_spawn(&process_, "/proc/self/exe", nullptr, nullptr, arguments, environment.data()),
        0);
    for (const int file : {to[0], from[1], read, write}) close(file);
    go_ = to[1];
    notified_ = from[0];
    EXPECT_EQ(::read(notified_, &handles, sizeof handles), static_cast<ssize_t>(sizeof handles));
  }
  ~Owner() {
    close(go_);
    close(notified_);
    if (process_ > 0) waitpid(process_, nullptr, 0);
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  void go_on() const {
    EXPECT_EQ(::write(go_, "g", 1), 1);
    char answer = 0;
    EXPECT_EQ(::read(notified_, &answer, 1), 1);
  }
  void kill() const { ::kill(process_, SIGKILL); }
  // As waitpid() has it.
  int end() {
    EXPECT_EQ(::write(go_, "e", 1), 1);
    return wait();
  }
  int wait() {
    int status = -1;
    EXPECT_EQ(waitpid(std::exchange(process_, 0), &status, 0) > 0, true);
    return status;
  }

  Handles handles{};

 private:
  pid_t process_ = 0;
  int go_ = -1;
  int notified_ = -1;
};

TEST(BetweenProcesses, TheOwnersPart) {
  const char* const part = std::getenv(kPart);
  if (part == nullptr) return;
  char what[32] = "";
  int read = -1;
  int write = -1;
  ASSERT_EQ(std::sscanf(part, "%31s %d %d", what, &read, &write), 3);
  const std::string does = what;
  Stream stream;
  void* memory = nullptr;
  check(cudaMalloc(&memory, kSharedBytes));
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
  if (does == "late") simt_hold_stream(reinterpret_cast<intptr_t>(stream.stream));
  const auto bytes = numbers(3);
  stream.copy(memory, bytes.data());
  check(cudaEventRecord(event, stream.stream));
  if (does != "late") check(cudaStreamSynchronize(stream.stream));
  Handles handles{};
  check(cudaIpcGetMemHandle(&handles.memory, memory));
  check(cudaIpcGetEventHandle(&handles.event, event));
  ASSERT_EQ(::write(write, &handles, sizeof handles), static_cast<ssize_t>(sizeof handles));
  char letter = 0;
  while (::read(read, &letter, 1) == 1 && letter == 'g') {
    if (does == "late") simt_go_on();
    if (does == "destroys") check(cudaEventDestroy(event));
    if (does == "written") {
      EXPECT_EQ(stream.read(memory), numbers(9));
    }
    ASSERT_EQ(::write(write, "a", 1), 1);
  }
  if (does == "late") simt_go_on();
  check(cudaFree(memory));
  if (does != "destroys") check(cudaEventDestroy(event));
}

TEST(BetweenProcesses, MemoryIsReadAndWrittenByBoth) {
  Owner owner("written");
  Stream stream;
  void* opened = nullptr;
  check(cudaIpcOpenMemHandle(&opened, owner.handles.memory, cudaIpcMemLazyEnablePeerAccess));
  void* again = nullptr;
  check(cudaIpcOpenMemHandle(&again, owner.handles.memory, cudaIpcMemLazyEnablePeerAccess));
  EXPECT_EQ(again, opened);
  check(cudaIpcCloseMemHandle(again));
  EXPECT_EQ(stream.read(opened), numbers(3));
  stream.copy(opened, numbers(9).data());
  check(cudaStreamSynchronize(stream.stream));
  owner.go_on();
  EXPECT_EQ(cudaFree(opened), cudaErrorInvalidValue) << "it is the owner's";
  cudaGetLastError();
  check(cudaIpcCloseMemHandle(opened));
  EXPECT_EQ(cudaIpcCloseMemHandle(opened), cudaErrorInvalidValue) << "a second time";
  cudaGetLastError();
  EXPECT_EQ(owner.end(), 0);
  EXPECT_EQ(simt_live_allocations(), 0);
}

TEST(BetweenProcesses, AnEventIsWaitedForAndAskedForInAnotherProcess) {
  Owner owner("late");
  Stream stream;
  cudaEvent_t event = nullptr;
  check(cudaIpcOpenEventHandle(&event, owner.handles.event));
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  cudaGetLastError();
  EXPECT_EQ(cudaEventRecord(event, stream.stream), cudaErrorNotSupported);
  cudaGetLastError();
  check(cudaStreamWaitEvent(stream.stream, event));
  EXPECT_EQ(cudaStreamQuery(stream.stream), cudaErrorNotReady);
  cudaGetLastError();
  owner.go_on();
  check(cudaStreamSynchronize(stream.stream));
  check(cudaEventSynchronize(event));
  check(cudaEventQuery(event));
  check(cudaEventDestroy(event));
  EXPECT_EQ(owner.end(), 0);
}

// Its memory stays for those who have it open; its event does not take place any more.
TEST(BetweenProcesses, AnOwnerThatIsKilledLeavesItsMemory) {
  Owner owner("late");
  Stream stream;
  void* opened = nullptr;
  cudaEvent_t event = nullptr;
  check(cudaIpcOpenMemHandle(&opened, owner.handles.memory, cudaIpcMemLazyEnablePeerAccess));
  check(cudaIpcOpenEventHandle(&event, owner.handles.event));
  owner.kill();
  EXPECT_TRUE(WIFSIGNALED(owner.wait()));
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  cudaGetLastError();
  (void)stream.read(opened);
  void* other = nullptr;
  check(cudaIpcCloseMemHandle(opened));
  check(cudaEventDestroy(event));
  EXPECT_EQ(cudaIpcOpenMemHandle(&other, owner.handles.memory, cudaIpcMemLazyEnablePeerAccess),
            cudaErrorMapBufferObjectFailed);
  cudaGetLastError();
}

TEST(BetweenProcesses, MemoryIsNotFreedWhileAnotherProcessHasItOpen) {
  Owner owner("frees");
  void* opened = nullptr;
  check(cudaIpcOpenMemHandle(&opened, owner.handles.memory, cudaIpcMemLazyEnablePeerAccess));
  const int status = owner.end();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
  check(cudaIpcCloseMemHandle(opened));
}

TEST(BetweenProcesses, HandlesAreOpenedInOtherProcesses) {
  void* memory = nullptr;
  cudaIpcMemHandle_t handle;
  check(cudaMalloc(&memory, kSharedBytes));
  check(cudaIpcGetMemHandle(&handle, memory));
  void* opened = nullptr;
  EXPECT_EQ(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess),
            cudaErrorDeviceUninitialized);
  cudaGetLastError();
  Stream stream;
  void* of_pool = nullptr;
  check(cudaMallocAsync(&of_pool, kSharedBytes, stream.stream));
  EXPECT_EQ(cudaIpcGetMemHandle(&handle, of_pool), cudaErrorInvalidValue);
  cudaGetLastError();
  check(cudaFreeAsync(of_pool, stream.stream));
  check(cudaFree(memory));
}

using BetweenProcessesDeathTest = testing::Test;

TEST(BetweenProcessesDeathTest, MemoryIsNotClosedWhileAnOperationUsesIt) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(
      {
        Owner owner("closed");
        Stream stream;
        void* opened = nullptr;
        void* own = nullptr;
        check(cudaIpcOpenMemHandle(&opened, owner.handles.memory, cudaIpcMemLazyEnablePeerAccess));
        check(cudaMalloc(&own, kSharedBytes));
        simt_hold_stream(reinterpret_cast<intptr_t>(stream.stream));
        stream.copy(own, opened);
        cudaIpcCloseMemHandle(opened);
      },
      "closed while 1 operations use it");
}

TEST(BetweenProcessesDeathTest, AnEventIsNotUsedThatItsOwnerHasDestroyed) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(
      {
        Owner owner("destroys");
        cudaEvent_t event = nullptr;
        check(cudaIpcOpenEventHandle(&event, owner.handles.event));
        owner.go_on();
        cudaEventQuery(event);
      },
      "which that has destroyed");
}

}  // namespace
}  // namespace shardrec::test
