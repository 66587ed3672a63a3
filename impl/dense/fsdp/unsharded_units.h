// The full parameters of units while the host uses them: all-gathers of shards into a ring of buffers,
// which are made once. A call posts what its order allows, takes what is waited for, and returns; while
// messages travel the host computes.
//
// Prefetch: the order in which the host asked for units in a step is kept. In the steps after it, the
// all-gathers of the next units in that order are posted before the host asks, as many as the option
// says and buffers are free. A step that asks in another order makes its order the one that is kept.
// Which exchanges are posted, and when, follows from the host's calls alone: ranks that make the same
// calls post the same exchanges.
//
// On a device (unit_device.h), the buffers are those that shards come into and go to the device from, each with a buffer
// there, which the host's user has.
//
//   sharded -- unshard --> held -- reshard --> sharded
//        \- prefetch --> prefetched -- unshard --> held
//
// Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/collective/all_gather.h"
#include "comm/collective/pipelined_channel.h"
#include "comm/communicator.h"
#include "core/memory.h"
#include "dense/fsdp/unit.h"
#include "dense/fsdp/unit_device.h"
#include "shardrec/tensor.h"

namespace shardrec::dense {

struct UnshardOptions {
  shardrec_dtype dtype = SHARDREC_FLOAT32;  // of full parameters, and of shards on their way
  int prefetch = 1;                         // units ahead of the host
  int held = 1;                             // units that the host holds at once
  bool keep =
      false;  // a unit stays from its first unshard() to forget() or end(), each with its own buffer
};

class UnshardedUnits {
 public:
  // sharding: the ranks that have the shards of a unit; null: this rank has all of it. device: where full parameters
  // are; null: on the CPU. units and device outlive this object.
  UnshardedUnits(comm::Communicator* sharding, const UnshardOptions& options, std::span<Unit> units,
                 UnitDevice* device);

  // step: equal on all ranks, else MISMATCH where they exchange something in it.
  void begin(uint64_t step);
  // Throws INVALID_STATE where the host holds the unit, or holds units in all buffers.
  void unshard(size_t unit);
  // Throws INVALID_STATE where the host does not hold it. Waits for peers. user: the stream that reads the parameters
  // on a device; null: the caller's.
  void wait(size_t unit, UnitDevice::Stream* user = nullptr);
  void reshard(size_t unit);
  // Nothing needs the unit any more in this step, whoever holds it.
  void forget(size_t unit);
  // Throws INVALID_STATE where the host holds a unit.
  void end();

  bool is_held(size_t unit) const noexcept { return states_[unit].is_held; }
  // Whether the host has asked for it in this step.
  bool was_asked(size_t unit) const noexcept { return states_[unit].was_asked; }
  // Units in the order in which the host asked for them first in this step.
  std::span<const size_t> asked() const noexcept { return asked_; }
  // The full parameters of a unit that the host holds and has waited for. Throws INVALID_STATE.
  std::byte* data(size_t unit) const;
  shardrec_dtype dtype() const noexcept { return options_.dtype; }

  // Before shards change, between steps: waits until peers have read them.
  void reclaim();

  int64_t buffer_bytes() const noexcept { return buffer_bytes_; }
  int64_t device_bytes() const noexcept { return device_ == nullptr ? 0 : buffer_bytes_; }
  int64_t message_bytes() const noexcept { return message_bytes_; }
  int64_t bytes_sent() const noexcept { return bytes_sent_; }
  int64_t gathers() const noexcept { return gathers_; }
  int64_t prefetched() const noexcept { return prefetched_; }
  double waited_seconds() const noexcept { return waited_seconds_; }

 private:
  static constexpr size_t kNoBuffer = SIZE_MAX;

  struct State {
    size_t buffer = kNoBuffer;
    bool is_posted = false;  // its shards have not been taken yet
    bool is_held = false;
    bool is_waited_for = false;  // since it is held
    bool was_asked = false;
    UnitDevice::Stream* user = nullptr;  // of the last wait()
  };
  struct Buffer {
    UnitBytes memory;
    std::optional<UnitCopy> copy{};  // on a device
    bool is_used = false;
    bool is_copied = false;  // the device has what memory has
  };

  bool in_place() const noexcept {
    return !sharding_ && options_.dtype == SHARDREC_FLOAT32 && device_ == nullptr;
  }
  bool is_resident(size_t unit) const noexcept { return states_[unit].buffer != kNoBuffer; }
  std::optional<size_t> free_buffer(size_t unit) const noexcept;
  bool evict_prefetched();
  void post(size_t unit, size_t buffer);
  void take_next();
  void take(size_t unit);
  void release(size_t unit);
  void prefetch();
  comm::ConstBytes message_of(size_t unit);
  // Of a buffer that is to be filled.
  std::byte* memory_to_fill(size_t buffer);
  void copy_to_device(size_t unit, UnitDevice::Stream* user);
  // What its user's stream holds is over before the buffer changes.
  void follow_user(size_t unit);
  [[noreturn]] void refuse_full(size_t unit) const;
  void require_held(size_t unit, const char* call) const;

  const UnshardOptions options_;
  const std::span<Unit> units_;
  UnitDevice* const device_;
  const bool sharding_;
  const int ranks_;
  std::optional<comm::PipelinedChannel> channel_;
  std::vector<std::unique_ptr<comm::AllGather>> gathers_of_;  // by unit
  std::vector<std::shared_ptr<core::Pages>> messages_;        // by unit: shards in 16 bits
  std::vector<char> is_stale_;  // by unit: its message is of an earlier step
  std::vector<Buffer> buffers_;
  std::vector<State> states_;
  std::vector<size_t> posted_;  // in order; from next_posted_ on they have not been taken
  size_t next_posted_ = 0;
  std::vector<size_t> order_;  // as the host asked
  uint64_t step_ = 0;
  size_t position_ = 0;  // in it: what the host asks for next
  std::vector<size_t> asked_;

  int64_t buffer_bytes_ = 0;
  int64_t message_bytes_ = 0;
  int64_t bytes_sent_ = 0;
  int64_t gathers_ = 0;
  int64_t prefetched_ = 0;
  double waited_seconds_ = 0;
};

}  // namespace shardrec::dense
