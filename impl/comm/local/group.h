// What the ranks of one group share: who is a member, the channels, and the failure that killed it.
// Owned by the communicators and channels of all ranks together; knows its children (by split) only
// weakly, and they do not know it.
//
// Thread rule: everything may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/failure.h"
#include "comm/local/rings.h"

namespace shardrec::comm::local {

enum class Presence : uint8_t { kAbsent, kMember, kLeft, kDestroyed };

class Group {
 public:
  Group(int ranks, int ranks_per_node);

  int ranks() const noexcept { return static_cast<int>(members_.size()); }
  int ranks_per_node() const noexcept { return ranks_per_node_; }

  void join(int rank);
  // how: kLeft or kDestroyed; the first one counts.
  void depart(int rank, Presence how) noexcept;
  Presence presence(int rank) const noexcept { return member(rank).state.load(); }
  bool departed(int rank) const noexcept { return presence(rank) >= Presence::kLeft; }

  Deadlines deadlines(int rank) const noexcept;
  void set_deadlines(int rank, const Deadlines& deadlines) noexcept;

  // The operation that a rank was last in; nullptr: none yet.
  void set_last_seen(int rank, const char* operation) noexcept {
    member(rank).last_seen.store(operation, std::memory_order_relaxed);
  }
  std::string last_seen(int rank) const;

  // The first failure counts, for children too. Returns when the group and they are dead.
  void kill(Failure failure) noexcept;
  // Throws the first failure, which may be another one.
  [[noreturn]] void kill_and_throw(Failure failure, const CallSite& site);
  bool dead() const noexcept { return dead_.load(); }
  // Throws the failure of a dead group.
  void check(const CallSite& site) const;

  // A channel that all ranks share. The split channel is apart from the numbered ones, so that
  // split and open_channel need no common order.
  struct Opened {
    uint64_t number;
    std::shared_ptr<Rings> rings;
  };
  static constexpr uint64_t kSplitChannel = UINT64_MAX;
  // Both make room for the rank's messages. Where memory runs out nothing has happened: the next
  // call opens the same channel.
  Opened open_next(int rank, Purpose purpose);
  Opened open(uint64_t number, int rank, Purpose purpose);
  // All ranks are done with it.
  void forget(uint64_t number) noexcept;

  // The one group that the `ranks` ranks with this color share, born in the split that is exchange
  // site.sequence of the split channel; each asks once.
  std::shared_ptr<Group> child(const CallSite& site, int color, int ranks, int ranks_per_node);

 private:
  struct Member {
    std::atomic<Presence> state{Presence::kAbsent};
    std::atomic<const char*> last_seen{nullptr};
    std::atomic<double> step{Deadlines{}.step};
    std::atomic<double> setup{Deadlines{}.setup};
    std::atomic<double> warn{Deadlines{}.warn};
    uint64_t next_channel = 0;  // under mutex_
  };
  struct Birth {
    std::shared_ptr<Group> group;
    int still_to_ask = 0;
  };

  Member& member(int rank) noexcept { return members_[static_cast<size_t>(rank)]; }
  const Member& member(int rank) const noexcept { return members_[static_cast<size_t>(rank)]; }
  Opened open_locked(uint64_t number, int rank, Purpose purpose);
  void wake_everybody() noexcept;  // under mutex_

  const int ranks_per_node_;
  std::vector<Member> members_;
  std::atomic<bool> dead_{false};
  Failure failure_;  // constant once dying_

  std::mutex death_;  // held by the first killer until dead_; before mutex_, and before children's
  std::mutex mutex_;  // no code of others runs under it
  bool dying_ = false;
  std::map<uint64_t, std::shared_ptr<Rings>> channels_;
  std::map<std::pair<uint64_t, int>, Birth> births_;
  std::vector<std::weak_ptr<Group>> children_;
};

}  // namespace shardrec::comm::local
