// What the messages of a rank go by between devices: a lane for each purpose, and a thread that watches over them.
// It looks for groups and sums that are late and for errors that NCCL tells of later, and hears what else has ended the
// communicator: NCCL notices no dead peer. Then it sets the stop, ends all lanes, and with that whatever the host
// waits for.
//
// Thread rule: one thread at a time.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "comm/nccl/lane.h"
#include "comm/nccl/stop_word.h"

namespace shardrec::comm::nccl {

// A lane for exchanges of inputs and one for all others; or one for all.
enum class LaneSet : uint8_t { kByPurpose, kOne };

class Lanes {
 public:
  // Loads the plug-in, and has what it takes of the device. Throws UNSUPPORTED (the plug-in, NCCL), INVALID_ARGUMENT
  // (the device), DEVICE_ERROR, OUT_OF_MEMORY.
  // stop: of the communicator's; what the lanes find out sets it.
  Lanes(std::shared_ptr<Communicator> communicator, int32_t device, std::shared_ptr<StopWord> stop,
        LaneSet set);
  // Ends all lanes: in order where peers do so at about the same time, or else without them.
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  int rank() const noexcept { return communicator_->rank(); }

  // Has the lanes of all ranks made. Collective; a rank that fails kills the communicator.
  void connect(Collectives& collectives);

  Lane& of(Purpose purpose) { return purpose == Purpose::kInput ? lanes_.front() : lanes_.back(); }
  // This rank does not take part in an operation that others wait for: kills the communicator.
  // Returns when the lanes have ended.
  void give_up(const char* operation) noexcept;
  // Operations are in lanes: the watchdog looks.
  void wake() noexcept;
  // Enqueues in a lane: bytes that its operations have written become zeros where those were broken off. bytes, count:
  // whole cache lines.
  void clear_if_stopped(Lane& lane, std::byte* bytes, size_t count) const;

 private:
  void watch() noexcept;
  bool is_alive() const noexcept;
  bool look() noexcept;  // false: the communicator is dead
  // The operation that has been under way longest; null if there is none.
  const char* under_way() noexcept;
  void end_all() noexcept;
  void close_all() noexcept;

  const std::shared_ptr<Communicator> communicator_;
  const std::shared_ptr<StopWord> stop_;
  std::deque<Lane> lanes_;  // one or two
  std::mutex mutex_;
  std::condition_variable changed_;
  bool sleeps_ = false;
  bool ended_ = false;  // all lanes
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace shardrec::comm::nccl
