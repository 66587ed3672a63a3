#include "comm/nccl/stop_word.h"

#include <atomic>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

#include "comm/clock.h"
#include "core/error.h"

namespace shardrec::comm::nccl {

StopWord::StopWord(std::shared_ptr<const Communicator> communicator)
    : communicator_(std::move(communicator)),
      memory_(2 * sizeof(uint64_t)),
      word_(new(memory_.data()) uint64_t{0}),
      updates_(new(memory_.data() + sizeof(uint64_t)) uint64_t{0}) {}

void StopWord::check() const {
  if (!is_set()) return;
  try {
    communicator_->check();
  } catch (const core::Error& error) {
    if (!error.parts().operation.empty()) throw;
    const char* const known = operation_.load(std::memory_order_relaxed);
    core::ErrorParts parts = error.parts();
    parts.operation = known == nullptr ? "messages between devices" : known;
    core::fail(error.status(),
               core::sentence(error.sentence(), "; this breaks off \"", parts.operation,
                              "\" of this rank ", communicator_->rank()),
               parts);
  }
  core::fail(SHARDREC_INTERNAL, "messages between devices were broken off, and nothing has failed");
}

bool StopWord::is_dead() const noexcept {
  try {
    communicator_->check();
    return false;
  } catch (...) {
    return true;
  }
}

int64_t StopWord::left_out(int64_t counted) const noexcept {
  if (!is_set()) {
    if (!is_dead()) return 0;
    set();  // before the watchdog comes to it: operations from now on are no updates
  }
  constexpr auto kMost = std::chrono::seconds(10);  // a device that has failed comes to none
  const auto until = Clock::now() + kMost;
  for (;;) {
    const uint64_t seen = std::atomic_ref(*updates_).load(std::memory_order_acquire);
    const bool over = static_cast<uint32_t>(seen) == called_.load(std::memory_order_relaxed);
    if (!over && !is_waited_for_.load() && Clock::now() <= until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    is_waited_for_.store(true);
    const uint32_t applied = static_cast<uint32_t>(seen) - static_cast<uint32_t>(seen >> 32);
    return static_cast<int32_t>(static_cast<uint32_t>(counted) - applied);
  }
}

void StopWord::set(const char* operation) const noexcept {
  if (operation != nullptr) operation_.store(operation, std::memory_order_relaxed);
  std::atomic_ref(*word_).store(1, std::memory_order_seq_cst);
}

bool StopWord::is_set() const noexcept {
  return std::atomic_ref(*word_).load(std::memory_order_seq_cst) != 0;
}

}  // namespace shardrec::comm::nccl
