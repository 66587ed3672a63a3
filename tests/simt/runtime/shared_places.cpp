#include "shared_places.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace simt {
namespace {

constexpr uint64_t kEvents = 0x73696D742D657600;

uint64_t word_of(const uint64_t& word) noexcept { return __atomic_load_n(&word, __ATOMIC_ACQUIRE); }

}  // namespace

std::shared_ptr<SharedPlaces> SharedPlaces::of(int file, int device, bool own) noexcept {
  if (file < 0) return nullptr;
  if (void* const state = map_file(file, 0, sizeof(State)); state != nullptr) {
    if (auto* const places =
            new (std::nothrow) SharedPlaces(file, static_cast<State*>(state), device, own)) {
      return std::shared_ptr<SharedPlaces>(places);
    }
    munmap(state, sizeof(State));
  }
  close(file);
  return nullptr;
}

std::shared_ptr<SharedPlaces> SharedPlaces::make(int device) noexcept {
  return of(make_file(sizeof(State)), device, true);
}

std::shared_ptr<SharedPlaces> SharedPlaces::open(const FileHandle& handle) noexcept {
  return of(open_file(handle, kEvents), static_cast<int>(handle.device), false);
}

SharedPlaces::~SharedPlaces() {
  if (own_) __atomic_store_n(&state_->ended, 1, __ATOMIC_RELEASE);
  munmap(state_, sizeof(State));
  close(file_);
}

FileHandle SharedPlaces::handle() const noexcept {
  return handle_of(file_, kEvents, sizeof(State), device_);
}

uint64_t SharedPlaces::record() noexcept {
  return __atomic_add_fetch(&state_->recorded, 1, __ATOMIC_ACQ_REL);
}

void SharedPlaces::mark(uint64_t number) noexcept {
  uint64_t over = word_of(state_->over);
  while (over < number && !__atomic_compare_exchange_n(&state_->over, &over, number, false,
                                                       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
  }
  __atomic_fetch_add(&state_->changes, 1, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, &state_->changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void SharedPlaces::require_event() const noexcept {
  if (own_ || word_of(state_->ended) == 0) return;
  std::fputs("simt: an event of another process is used, which that has destroyed\n", stderr);
  std::abort();
}

uint64_t SharedPlaces::recorded() const noexcept {
  require_event();
  return word_of(state_->recorded);
}

bool SharedPlaces::is_marked(uint64_t number) const noexcept {
  return word_of(state_->over) >= number;
}

void SharedPlaces::wait(uint64_t number) const noexcept {
  for (;;) {
    const uint32_t changes = __atomic_load_n(&state_->changes, __ATOMIC_SEQ_CST);
    if (is_marked(number)) return;
    syscall(SYS_futex, &state_->changes, FUTEX_WAIT, changes, nullptr, nullptr, 0);
  }
}

}  // namespace simt
