// One rank's membership of a communicator, shared by the communicator's handle and everything made
// on it, in whatever order the host destroys them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/communicator.h"
#include "comm/recorder.h"

namespace shardrec::comm {

// Any thread.
class Membership {
  class Split {  // a tag: only a membership makes one from a split
    friend class Membership;
    Split() = default;
  };

 public:
  // Records the communicator's operations.
  explicit Membership(std::shared_ptr<Communicator> communicator);
  Membership(Split, std::shared_ptr<Communicator> communicator);
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  Communicator& communicator() const noexcept { return *communicator_; }
  const std::shared_ptr<Communicator>& share() const noexcept { return communicator_; }
  const Recorder& recorder() const noexcept { return *recorder_; }
  // Numbers the memberships of this process, in the order of their making.
  uint64_t number() const noexcept { return number_; }
  // Numbers the collections on it; the same on all ranks.
  uint32_t next_collection() noexcept { return collections_.fetch_add(1); }

  // Throws CLOSED after close(). Every call on something made on the communicator asks.
  void require_open() const;
  bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }
  // Whether it is open and the communicator has not failed.
  bool is_up() const noexcept;

  // Two threads that change different deadlines do not undo each other.
  void set_deadline(double Deadlines::* field, double seconds);

  // A communicator that was split from this one and has no handle: it has the same deadlines and
  // end.
  void add_part(const std::shared_ptr<Communicator>& part);

  // Collective over `group`, which is this communicator or a part of it: as Communicator::split.
  // The new membership has deadlines of its own and the same end as this one. Null: this rank's
  // color is negative, it is in no part.
  std::shared_ptr<Membership> split(Communicator& group, int color, int key);

  // The orderly end, after the closing barrier.
  void close() noexcept;
  void disconnect() noexcept;

 private:
  std::shared_ptr<Recorder> recorder_;
  std::shared_ptr<Communicator> communicator_;
  const uint64_t number_;
  std::atomic<uint32_t> collections_{0};
  std::atomic<bool> closed_{false};
  std::mutex mutex_;  // guards what follows, and changes of deadlines
  bool disconnected_ = false;
  std::vector<std::weak_ptr<Communicator>> parts_;
  std::vector<std::weak_ptr<Membership>> children_;
};

}  // namespace shardrec::comm
