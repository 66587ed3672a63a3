// The full gradients of units while backward computes them, and their reduction into the shards of all
// ranks. Full gradients are in two buffers (one where nothing is prefetched), which units take in turn: a
// unit waits until the reduction of the one before the last is over. Units are reduced strictly in the
// reverse of the order in which a step asked for them first, so that ranks need not agree which is ready
// when; those that it asks for first after a mark come behind those before it.
//
// A step without sync sends nothing: a unit's full gradients get memory of their own, once, and keep what
// was added until the next step with sync has reduced it. So does a unit for which no buffer is free,
// because units that are reduced after it were asked for first.
//
// On a device (unit_device.h) full gradients are copied to the host when they are marked. A unit is posted at the mark
// of the next one, or at the end: until then its copy is on the way, and the device computes the next unit.
//
// Thread rule: one thread at a time. Progress is made inside calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "dense/fsdp/unit.h"
#include "dense/fsdp/unit_reduction.h"

namespace shardrec::dense {

struct ReductionOptions {
  shardrec_dtype dtype = SHARDREC_FLOAT32;  // of full gradients
  shardrec_dtype wire = SHARDREC_FLOAT32;   // of what ranks send
  GradientScale scale{};                    // of the sum over all ranks
  int buffers = 2;
};

// The first unit in the order of reduction that a rank had not marked ready.
struct RefusedUnit {
  int rank = -1;  // of the communicator; -1: all were ready
  size_t unit = 0;
};

class GradientReducer {
 public:
  // A group that is null has one rank. device: where full gradients are; null: on the CPU. units and device outlive
  // this object.
  GradientReducer(int world_rank, comm::Communicator* sharding, comm::Communicator* replicas,
                  const ReductionOptions& options, std::span<Unit> units, UnitDevice* device);

  // Waits until peers have read what the last step has sent. step: as of UnshardedUnits::begin().
  void begin(bool sync, uint64_t step);
  // The unit's full gradients: zeros, or what steps without sync have added. May wait for reductions of other
  // units. Throws INVALID_STATE for a unit that is ready in a step with sync. user: the stream that adds to them on a
  // device; null: the caller's.
  std::byte* gradients(size_t unit, UnitDevice::Stream* user = nullptr);
  // Whether these were asked for in this step, or are what other steps have added.
  bool has_gradients(size_t unit) const noexcept {
    return states_[unit].has_memory || states_[unit].has_kept;
  }
  // Throws INVALID_STATE for a unit that is ready already in a step with sync.
  void require_markable(size_t unit) const;
  // asked: the units of this step so far, in the order of asking. On a device, what was added to the gradients is in its
  // stream by now.
  void mark_ready(size_t unit, std::span<const size_t> asked);
  // Takes what has come, without waiting.
  void progress();
  // All marks are made: what is not ready is refused.
  void end(std::span<const size_t> asked);
  // Waits until all is reduced.
  RefusedUnit wait();

  // Forgets what steps without sync have kept.
  void zero() noexcept;

  int64_t buffer_bytes() const noexcept;
  int64_t kept_bytes() const noexcept;
  int64_t device_bytes() const noexcept;
  int64_t bytes_sent() const noexcept;
  double waited_seconds() const noexcept { return waited_seconds_; }

 private:
  static constexpr size_t kNoBuffer = SIZE_MAX;

  struct State {
    size_t buffer = kNoBuffer;
    bool has_memory = false;  // in this step
    bool is_ready = false;
    bool has_kept = false;               // gradients of steps without sync
    UnitDevice::Stream* user = nullptr;  // of the last gradients() of this step
    std::unique_ptr<GradientMemory> kept;
  };
  struct Buffer {
    GradientMemory memory;
    size_t unit = kNoBuffer;  // that it is, or was last, of in this step
    bool is_used = false;
  };

  GradientMemory& memory_of(size_t unit);
  GradientMemory& keep(size_t unit);
  bool take_buffer(size_t unit);
  void extend_order(std::span<const size_t> asked);
  // Posts what the order allows. kMarked: but for the unit that was marked last, on a device. kAll: also units that are
  // not ready.
  enum class Posting : uint8_t { kMarked, kReady, kAll };
  void post_ready(Posting posting);
  size_t bytes_of(size_t unit) const noexcept;
  // Waits for what a buffer may come of; false: for nothing.
  bool wait_for_buffer();
  bool step_one();
  void step_oldest();
  void finish(size_t unit);

  const ReductionOptions options_;
  const std::span<Unit> units_;
  UnitDevice* const device_;
  ReductionChannels channels_;
  RankSums sharding_sums_;
  RankSums replica_sums_;
  std::vector<std::unique_ptr<UnitReduction>> reductions_;  // by unit
  std::vector<State> states_;
  std::vector<Buffer> buffers_;
  bool sync_ = false;
  uint64_t step_ = 0;
  size_t marked_ = kNoBuffer;   // the unit that was marked last in this step
  std::vector<size_t> order_;   // of this step; grows with what the host asks for and marks
  std::vector<size_t> posted_;  // the first ones of order_
  size_t done_ = 0;             // of posted_, the first ones are
  RefusedUnit refused_;
  double waited_seconds_ = 0;
};

}  // namespace shardrec::dense
