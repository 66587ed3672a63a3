// The stop (compute/stop.h) of a rank whose messages go by NCCL: what ended the communicator sets it.
//
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "comm/communicator.h"
#include "compute/cuda/host/memory.h"
#include "compute/stop.h"

namespace shardrec::comm::nccl {

class StopWord final : public compute::Stop {
 public:
  // Throws OUT_OF_MEMORY.
  explicit StopWord(std::shared_ptr<const Communicator> communicator);

  const uint64_t* word() const noexcept override { return word_; }
  // Throws what killed the communicator, with the operation that it ended on this rank.
  void check() const override;

  uint64_t* updates() const noexcept override { return updates_; }
  void count_update() const noexcept override { called_.fetch_add(1, std::memory_order_relaxed); }
  // Waits for a few seconds at most.
  int64_t left_out(int64_t counted) const noexcept override;

  // Operations that begin from now on find it set. operation: of messages that are broken off, a literal; null: unknown.
  void set(const char* operation = nullptr) const noexcept;

 private:
  bool is_set() const noexcept;
  bool is_dead() const noexcept;

  std::shared_ptr<const Communicator> communicator_;
  compute::cuda::host::PinnedMemory memory_;
  uint64_t* word_;
  uint64_t* updates_;
  mutable std::atomic<const char*> operation_{nullptr};
  mutable std::atomic<uint32_t> called_{0};         // updates
  mutable std::atomic<bool> is_waited_for_{false};  // a wait for operations was in vain
};

}  // namespace shardrec::comm::nccl
