// What this rank knows of one group of ranks: who they are, which channels it has opened, how far
// peers came before they ended, and what killed the group. Passive: link_state.h hears and kills,
// channel.h waits.
//
// Every channel of every group of a link has a number of its own on each rank, the same on all
// members, without anybody asking: a group owns a range of numbers. It takes the lower half for its
// own channels, in the order of their opening, and lends ranges of the upper half to its splits, in
// the order of these; the groups that one split makes share a range, for they share no rank.
//
// Thread rule: any thread, but for what is said.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/failure.h"
#include "comm/remote/group_state.h"

namespace shardrec::comm::remote {

// A range of channel numbers; how large it is follows from how often it was split.
class Numbers {
 public:
  Numbers() = default;
  uint32_t splitting() const noexcept { return first_; }  // the channel of the group's splits
  // The n-th channel that is opened; nullopt: there are not so many.
  std::optional<uint32_t> opened(uint64_t n) const noexcept;
  // Of the n-th split's parts.
  std::optional<Numbers> split(uint64_t n) const noexcept;
  uint32_t own() const noexcept;
  uint32_t splits() const noexcept;

 private:
  Numbers(uint32_t first, int level) : first_(first), level_(level) {}
  uint32_t first_ = 0;
  int level_ = 0;  // 0: of the link's whole group
};

// What a wait expects from a peer.
enum class WaitFor : uint8_t {
  kArrival,  // its message
  kRelease,  // that it takes this rank's
};

class Group {
 public:
  struct Shape {
    std::shared_ptr<const Group> parent{};  // null: all ranks of the link
    std::vector<int> members{};             // their ranks on the link
    int rank = 0;
    int ranks_per_node = 1;
    int ranks_in_process = 1;
    Numbers numbers{};
  };
  explicit Group(Shape shape);

  const Shape& shape() const noexcept { return shape_; }
  // Tells it from all groups of the link, also from those that this rank is not in. Above that of
  // the group that it was split from.
  uint64_t id() const noexcept;
  int rank() const noexcept { return shape_.rank; }
  int size() const noexcept { return static_cast<int>(shape_.members.size()); }
  int on_link(int rank) const noexcept { return shape_.members[static_cast<size_t>(rank)]; }
  // -1: no member.
  int rank_of(int on_link) const noexcept;
  bool descends_from(const Group& other) const noexcept;

  Deadlines deadlines() const noexcept;
  void set_deadlines(const Deadlines& deadlines) noexcept;

  // The next channel's number, or that of the splits. UNSUPPORTED when all are used up.
  uint32_t open_channel();
  uint32_t open_splitting();
  void close_channel(uint32_t number) noexcept;

  // Keeps the first failure. Called by the link state, under its lock.
  void die(Failure failure) noexcept;
  bool dead() const noexcept { return dead_.load(); }
  void check(const CallSite& site) const;                    // throws the failure of a dead group
  [[noreturn]] void throw_dead(const CallSite& site) const;  // it is dead

  // The end of this rank's membership; the first one counts. False: there was one.
  bool depart(Presence how) noexcept;
  Presence presence() const noexcept { return presence_.load(); }
  bool departed() const noexcept { return presence() != Presence::kMember; }

  // What is heard of peers.
  void hear_progress(int peer, const Progress& progress);
  void hear_departure(int peer, Presence how) noexcept;
  // True: it had not departed, so that the group is to die.
  bool hear_loss(int peer, const std::string& how);

  // True if a peer has left in order: the last exchange, which all ranks take part in, is complete
  // there.
  bool somebody_left() const noexcept;
  // A peer that has departed, in order or not; -1: none.
  int departed_rank() const noexcept;
  // True if every peer has departed or is lost.
  bool alone() const noexcept;

  // The failure if a wait for this exchange can never end; else nullopt.
  std::optional<Failure> cannot_arrive(int peer, uint32_t channel, uint64_t sequence,
                                       WaitFor wait_for) const;
  // True if the peer no longer receives on this channel, so that a send to it need not be waited for.
  bool stopped_receiving(int peer, uint32_t channel, uint64_t sequence) const noexcept;

  // The operation that a peer was last seen in; a string literal.
  void set_last_seen(int peer, const char* operation) noexcept {
    peers_[static_cast<size_t>(peer)].last_seen.store(operation, std::memory_order_relaxed);
  }
  std::string last_seen(int peer) const;

 private:
  struct Peer {
    std::atomic<const char*> last_seen{nullptr};
    Presence presence = Presence::kMember;
    bool lost = false;
    std::string how{};  // it was lost
  };

  const Progress* progress_of(int peer, uint32_t channel) const noexcept;  // under mutex_

  const Shape shape_;
  std::atomic<double> step_{Deadlines{}.step};
  std::atomic<double> setup_{Deadlines{}.setup};
  std::atomic<double> warn_{Deadlines{}.warn};
  std::atomic<Presence> presence_{Presence::kMember};
  std::atomic<bool> dead_{false};
  Failure failure_;  // constant once dead_

  mutable std::mutex mutex_;       // no code of others runs under it
  std::atomic<bool> news_{false};  // something was heard
  std::vector<Peer> peers_;
  std::map<std::pair<uint32_t, int>, Progress> progress_;  // by channel and peer
  std::set<uint32_t> channels_;                            // open ones
  uint64_t opened_ = 0;
};

}  // namespace shardrec::comm::remote
