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
  communicator_->check();
  core::fail(SHARDREC_INTERNAL, "messages between devices were broken off, and nothing has failed");
}

int64_t StopWord::left_out() const noexcept {
  if (!is_set()) return 0;
  constexpr auto kMost = std::chrono::seconds(10);  // a device that has failed comes to none
  const auto until = Clock::now() + kMost;
  for (;;) {
    const uint64_t seen = std::atomic_ref(*updates_).load(std::memory_order_acquire);
    if (static_cast<uint32_t>(seen) == called_.load(std::memory_order_relaxed) ||
        Clock::now() > until) {
      return static_cast<int64_t>(seen >> 32);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void StopWord::set() noexcept { std::atomic_ref(*word_).store(1, std::memory_order_seq_cst); }

bool StopWord::is_set() const noexcept {
  return std::atomic_ref(*word_).load(std::memory_order_seq_cst) != 0;
}

}  // namespace shardrec::comm::nccl
