#include "segment.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>
#include <utility>

namespace fake_nccl {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kStateBytes = (sizeof(SharedState) + kPage - 1) / kPage * kPage;

}  // namespace

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kAllReduce:
      return "an all-reduce";
    case Kind::kReduceScatter:
      return "a reduce-scatter";
    default:
      return "an all-gather";
  }
}

// All ranks give the file the same size: it begins as zeros, whoever comes first.
Segment::Segment(std::string name, int size)
    : name_(std::move(name)), bytes_(kStateBytes + static_cast<size_t>(size) * kArenaBytes) {
  const int file = shm_open(name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  if (ftruncate(file, static_cast<off_t>(bytes_)) == 0) {
    void* const memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (memory != MAP_FAILED) state_ = static_cast<SharedState*>(memory);
  }
  close(file);
}

Segment::~Segment() {
  if (state_ != nullptr) munmap(state_, bytes_);
}

std::byte* Segment::arena(int rank) const noexcept {
  void* const begin = state_;
  return static_cast<std::byte*>(begin) + kStateBytes + static_cast<size_t>(rank) * kArenaBytes;
}

void Segment::forget_name() noexcept { shm_unlink(name_.c_str()); }

void Segment::notify() noexcept {
  state_->changes.fetch_add(1);
  syscall(SYS_futex, &state_->changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Segment::wait_past(uint32_t changes) noexcept {
  const timespec moment{.tv_sec = 0, .tv_nsec = 20'000'000};
  syscall(SYS_futex, &state_->changes, FUTEX_WAIT, changes, &moment, nullptr, 0);
}

}  // namespace fake_nccl
