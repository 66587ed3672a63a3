// The state that all communicators of one link share: the carrier, the broadcast of group states, the
// group of all ranks and the groups split from it, the endpoints of their channels, and sends that
// outlive their channel. Every failure passes through here: it arrives in a group state, or a channel
// notices it and the other ranks are notified.
//
// The communicators and channels of this rank own it together. Groups have no reference to it, so
// that it is never destroyed on the thread of the broadcast.
//
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/clock.h"
#include "comm/remote/group.h"
#include "comm/remote/group_state.h"
#include "comm/remote/in_flight_exchange.h"
#include "comm/remote/link.h"

namespace shardrec::comm::remote {

// What the link state needs of a channel of this rank.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  virtual const Group& group() const noexcept = 0;
  // nullopt: it is not open yet.
  virtual std::optional<Progress> progress() const noexcept = 0;
  // Starts to receive the messages whose envelopes have arrived, unless the channel's thread is inside
  // a call. Returns true if more is to arrive.
  virtual bool poke() noexcept = 0;
  // Waits until what was posted is sent, unless the channel's thread is inside a call.
  virtual void flush(Clock::time_point until) noexcept = 0;
};

class LinkState {
 public:
  LinkState(const RankLayout& layout, std::shared_ptr<Carrier> carrier,
            std::shared_ptr<StateBroadcast> state_broadcast);
  // Waits briefly for sends that outlive their channel, and for peers that are also closing.
  ~LinkState();
  LinkState(const LinkState&) = delete;
  LinkState& operator=(const LinkState&) = delete;

  Carrier& carrier() noexcept { return *carrier_; }
  const std::shared_ptr<Group>& root() noexcept { return root_; }

  // A group made by a split, in exchange site.sequence. Throws where its parent is dead.
  void add(const std::shared_ptr<Group>& group, const CallSite& site);

  // The first failure counts, for groups split from it too, here and on the other ranks. Returns
  // when this rank's groups are dead.
  void kill(Group& group, const Failure& failure) noexcept;
  // Throws the first failure, which may be another one.
  [[noreturn]] void kill_and_throw(Group& group, const Failure& failure, const CallSite& site);
  // Ends this rank's membership and notifies the other ranks.
  void depart(Group& group, Presence how) noexcept;

  void enlist(Endpoint& endpoint);
  void delist(const Endpoint& endpoint) noexcept;
  // Advances the receives of the other channels while this rank waits on one. Returns true if it is
  // worth calling again soon.
  bool poke_others(const Endpoint& endpoint) noexcept;
  // Keeps an exchange of a closed channel until all its messages are sent.
  void defer_destroy(std::unique_ptr<InFlightExchange> exchange, std::shared_ptr<const Group> group,
                     uint32_t channel);
  // Abandons a transfer that nobody waits for any more. The transfer continues in the memory that it
  // uses until it is complete, because to cancel it may close the connection, which other groups use
  // too. It is cancelled if the group of all ranks is dead, or if the memory is only borrowed (no
  // keep_alive).
  void abandon_sending(PeerTransfers& transfers,
                       const std::shared_ptr<const void>& keep_alive) noexcept;
  void abandon_receiving(PeerTransfers& transfers) noexcept;
  // Notifies the other ranks of this rank's progress on a channel that it has closed.
  void tell(const Group& group, const Progress& progress) noexcept;

 private:
  struct Unsent {
    std::unique_ptr<InFlightExchange> exchange;
    std::shared_ptr<const Group> group;
    uint32_t channel = 0;
  };

  // The transfer is destroyed before its memory.
  struct Kept {
    std::shared_ptr<const void> keep_alive;
    core::Scratch memory;
    Transfer transfer;
  };

  void keep(Kept kept) noexcept;
  void listen(int from, ConstBytes bytes) noexcept;
  void listen_loss(int peer, const std::string& how) noexcept;
  void give_up() noexcept;
  void hear(int from, ConstBytes bytes);
  void hear(int from, const std::shared_ptr<Group>& group, const GroupState& group_state);
  void hear_loss(int peer, const std::string& how);
  // False: the group was dead already.
  bool fail_group(Group& group, const Failure& failure) noexcept;
  void fail_group_locked(Group& group, const Failure& failure) noexcept;
  void announce(const GroupState& group_state) noexcept;
  void sweep() noexcept;  // frees what of unsent_ has been sent

  const std::shared_ptr<Carrier> carrier_;
  const std::shared_ptr<StateBroadcast> state_broadcast_;
  std::shared_ptr<Group> root_;

  std::mutex mutex_;  // groups and their deaths; no code of others runs under it
  std::map<uint64_t, std::weak_ptr<Group>> groups_;
  std::vector<std::optional<std::string>> lost_;  // by rank on the link
  // Group states of groups that this rank is not in, or not yet.
  std::deque<std::pair<int, GroupState>> unclaimed_;

  std::mutex ends_mutex_;  // before a channel's own lock only where that one is tried
  std::vector<Endpoint*> ends_;
  std::vector<Unsent> unsent_;

  std::mutex kept_mutex_;  // guards what follows; no other lock is taken under it
  std::vector<Kept> kept_;
};

}  // namespace shardrec::comm::remote
