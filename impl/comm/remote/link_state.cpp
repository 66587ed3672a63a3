#include "comm/remote/link_state.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <numeric>
#include <thread>

#include "core/error.h"

namespace shardrec::comm::remote {
namespace {

// How long the end of a membership waits for what was posted to be sent: peers that are well take
// it at once.
constexpr double kLinger = 1;

// The most group states of unknown groups that are kept. They arrive if a peer leaves a split earlier.
constexpr size_t kMostUnclaimed = 64;

Group::Shape whole(const RankLayout& layout) {
  std::vector<int> members(static_cast<size_t>(layout.size));
  std::iota(members.begin(), members.end(), 0);
  return {.members = std::move(members),
          .rank = layout.rank,
          .ranks_per_node = layout.ranks_per_node,
          .ranks_in_process = layout.ranks_in_process};
}

bool sensible(const Failure& failure, const Group& group) noexcept {
  return failure.failed_rank < group.size() && failure.observer < group.size() &&
         !failure.inherited;
}

Failure loss_of(int rank, const Group& group, const std::string& how) {
  return {.cause = Cause::kLost, .failed_rank = rank, .observer = group.rank(), .reason = how};
}

}  // namespace

LinkState::LinkState(const RankLayout& layout, std::shared_ptr<Carrier> carrier,
                     std::shared_ptr<StateBroadcast> state_broadcast)
    : carrier_(std::move(carrier)),
      state_broadcast_(std::move(state_broadcast)),
      root_(std::make_shared<Group>(whole(layout))),
      lost_(static_cast<size_t>(layout.size)) {
  groups_.emplace(root_->id(), root_);
  state_broadcast_->listen(
      {.heard = [this](int from, ConstBytes bytes) { listen(from, bytes); },
       .lost = [this](int peer, const std::string& how) { listen_loss(peer, how); }});
}

LinkState::~LinkState() {
  const Clock::time_point until = after(Clock::now(), kLinger);
  for (sweep(); !unsent_.empty() && Clock::now() < until; sweep()) {
    for (PeerTransfers& transfers : unsent_.front().exchange->by_peer) {
      for (Transfer& transfer : transfers.sending) {
        if (!transfer.pending()) continue;
        try {
          transfer.wait(0.01);
        } catch (...) {
          transfer.drop();
        }
      }
    }
  }
  if (!unsent_.empty()) announce({.sort = GroupState::Sort::kEnd, .group = root_->id()});
  // A peer that is about to leave too may still be reading what this rank has sent last.
  const bool orderly = root_->presence() == Presence::kLeft && !root_->dead();
  while (orderly && !root_->dead() && !root_->alone() && Clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  state_broadcast_->listen({});
}

void LinkState::add(const std::shared_ptr<Group>& group, const CallSite& site) {
  std::vector<std::pair<int, GroupState>> missed;
  {
    const std::lock_guard lock(mutex_);
    group->shape().parent->check(site);  // nobody would kill the child any more
    const auto mine = [&](const auto& item) { return item.second.group == group->id(); };
    std::copy_if(unclaimed_.begin(), unclaimed_.end(), std::back_inserter(missed), mine);
    groups_[group->id()] = group;
    std::erase_if(unclaimed_, mine);
    for (int rank = 0; rank < group->size(); ++rank) {
      const auto& how = lost_[static_cast<size_t>(group->on_link(rank))];
      if (how && group->hear_loss(rank, *how))
        fail_group_locked(*group, loss_of(rank, *group, *how));
    }
  }
  for (const auto& [from, group_state] : missed) hear(from, group, group_state);
}

void LinkState::fail_group_locked(Group& group, const Failure& failure) noexcept {
  if (group.dead()) return;
  // No memory for the words: the failure goes without them.
  const auto die = [&](Group& dying, bool inherited) {
    Failure last{
        .cause = failure.cause, .failed_rank = failure.failed_rank, .observer = failure.observer};
    try {
      last = failure;
    } catch (...) {
    }
    last.inherited = inherited;
    dying.die(std::move(last));
  };
  // What was split from a group has a higher number than it, and dies first: who sees a group dead
  // sees its parts dead.
  for (auto known = groups_.rbegin(); known != groups_.rend(); ++known) {
    const std::shared_ptr<Group> part = known->second.lock();
    if (part != nullptr && part->descends_from(group)) die(*part, true);
  }
  die(group, false);
}

bool LinkState::fail_group(Group& group, const Failure& failure) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (group.dead()) return false;
    fail_group_locked(group, failure);
  }
  return true;
}

void LinkState::kill(Group& group, const Failure& failure) noexcept {
  if (!fail_group(group, failure)) return;
  if (group.size() == 1) return;
  GroupState group_state{.sort = GroupState::Sort::kFailure, .group = group.id()};
  try {
    group_state.failure = failure;
  } catch (...) {
    group_state.failure.cause = failure.cause;
    group_state.failure.failed_rank = failure.failed_rank;
    group_state.failure.observer = failure.observer;
  }
  announce(group_state);
  if (&group == root_.get()) carrier_->cancel();
}

void LinkState::kill_and_throw(Group& group, const Failure& failure, const CallSite& site) {
  kill(group, failure);
  group.throw_dead(site);
}

void LinkState::announce(const GroupState& group_state) noexcept {
  state_broadcast_->announce(write_group_state(group_state).view());
}

void LinkState::tell(const Group& group, const Progress& progress) noexcept {
  GroupState group_state{.sort = GroupState::Sort::kProgress, .group = group.id(), .count = 1};
  group_state.progress[0] = progress;
  announce(group_state);
}

void LinkState::depart(Group& group, Presence how) noexcept {
  if (!group.depart(how)) return;
  if (group.dead() || group.size() == 1) return;
  {
    const std::lock_guard lock(ends_mutex_);
    GroupState group_state{.sort = GroupState::Sort::kProgress, .group = group.id()};
    const Clock::time_point until = after(Clock::now(), kLinger);
    for (Endpoint* end : ends_) {
      if (&end->group() != &group) continue;
      if (how == Presence::kLeft) end->flush(until);
      const std::optional<Progress> progress = end->progress();
      if (!progress) continue;
      group_state.progress[group_state.count++] = *progress;
      if (group_state.count < kMostProgress) continue;
      announce(group_state);
      group_state.count = 0;
    }
    if (group_state.count != 0) announce(group_state);
  }
  announce({.sort = GroupState::Sort::kDeparture, .group = group.id(), .presence = how});
}

void LinkState::enlist(Endpoint& endpoint) {
  sweep();
  const std::lock_guard lock(ends_mutex_);
  ends_.push_back(&endpoint);
}

void LinkState::delist(const Endpoint& endpoint) noexcept {
  const std::lock_guard lock(ends_mutex_);
  std::erase(ends_, &endpoint);
}

bool LinkState::poke_others(const Endpoint& endpoint) noexcept {
  const std::unique_lock lock(ends_mutex_, std::try_to_lock);
  if (!lock) return false;
  bool expecting = false;
  for (Endpoint* end : ends_) {
    if (end != &endpoint && end->poke()) expecting = true;
  }
  return expecting;
}

void LinkState::defer_destroy(std::unique_ptr<InFlightExchange> exchange,
                              std::shared_ptr<const Group> group, uint32_t channel) {
  const std::lock_guard lock(ends_mutex_);
  unsent_.push_back(
      {.exchange = std::move(exchange), .group = std::move(group), .channel = channel});
}

void LinkState::keep(Kept kept) noexcept {
  if (!kept.transfer.pending() || root_->dead()) return;
  std::vector<Kept> over;  // end after the lock: what they own may be anything
  const std::lock_guard lock(kept_mutex_);
  try {
    for (Kept& each : kept_) each.transfer.wait(0);
    const auto first_over = std::partition(
        kept_.begin(), kept_.end(), [](const Kept& each) { return each.transfer.pending(); });
    over.assign(std::make_move_iterator(first_over), std::make_move_iterator(kept_.end()));
    kept_.erase(first_over, kept_.end());
    kept_.push_back(std::move(kept));
  } catch (...) {  // no memory: it is given up
  }
}

void LinkState::abandon_sending(PeerTransfers& transfers,
                                const std::shared_ptr<const void>& keep_alive) noexcept {
  // Envelopes are short, and harmless to give up.
  if (keep_alive != nullptr) {
    keep({.keep_alive = keep_alive, .memory = {}, .transfer = std::move(transfers.sending[1])});
  }
  transfers.drop_sending();
}

void LinkState::abandon_receiving(PeerTransfers& transfers) noexcept {
  if (transfers.inbound != PeerTransfers::Inbound::kMessage) return;
  keep({.keep_alive = nullptr,
        .memory = std::move(transfers.message),
        .transfer = std::move(transfers.receiving)});
}

void LinkState::sweep() noexcept {
  std::vector<Unsent> over;  // ends after the lock: what it owns may be anything
  const std::lock_guard lock(ends_mutex_);
  for (Unsent& unsent : unsent_) {
    const Group& group = *unsent.group;
    for (int rank = 0; rank < group.size(); ++rank) {
      PeerTransfers& transfers = unsent.exchange->by_peer[static_cast<size_t>(rank)];
      try {
        transfers.ask_sending();
      } catch (...) {
        transfers.drop_sending();
      }
      const bool failed = transfers.sending[0].failed() || transfers.sending[1].failed();
      if (failed || group.dead() ||
          group.stopped_receiving(rank, unsent.channel, unsent.exchange->sequence)) {
        abandon_sending(transfers, unsent.exchange->keep_alive);
      }
    }
  }
  const auto first_over = std::partition(unsent_.begin(), unsent_.end(), [](const Unsent& unsent) {
    return !unsent.exchange->sent();
  });
  try {
    over.assign(std::make_move_iterator(first_over), std::make_move_iterator(unsent_.end()));
    unsent_.erase(first_over, unsent_.end());
  } catch (...) {  // no memory: the next time
  }
}

// If memory runs out on the thread of the broadcast, no channel would notice: every group ends.
void LinkState::listen(int from, ConstBytes bytes) noexcept {
  try {
    hear(from, bytes);
  } catch (...) {
    give_up();
  }
}

void LinkState::listen_loss(int peer, const std::string& how) noexcept {
  try {
    hear_loss(peer, how);
  } catch (...) {
    give_up();
  }
}

void LinkState::give_up() noexcept {
  fail_group(*root_, {.cause = Cause::kGaveUp, .failed_rank = root_->rank()});
  carrier_->cancel();
}

void LinkState::hear(int from, ConstBytes bytes) {
  std::optional<GroupState> group_state = read_group_state(bytes);
  if (!group_state || from < 0 || from >= root_->size()) return;
  std::shared_ptr<Group> group;
  {
    const std::lock_guard lock(mutex_);
    const auto found = groups_.find(group_state->group);
    if (found == groups_.end()) {
      if (unclaimed_.size() == kMostUnclaimed) unclaimed_.pop_front();
      unclaimed_.emplace_back(from, *std::move(group_state));
      return;
    }
    group = found->second.lock();
  }
  if (group != nullptr) hear(from, group, *group_state);
}

void LinkState::hear(int from, const std::shared_ptr<Group>& group, const GroupState& group_state) {
  const int peer = group->rank_of(from);
  if (peer < 0 || peer == group->rank()) return;
  switch (group_state.sort) {
    case GroupState::Sort::kFailure:
      if (!sensible(group_state.failure, *group)) return;
      if (fail_group(*group, group_state.failure) && group == root_) carrier_->cancel();
      return;
    case GroupState::Sort::kProgress:
      for (size_t i = 0; i < group_state.count; ++i) {
        group->hear_progress(peer, group_state.progress[i]);
      }
      return;
    case GroupState::Sort::kDeparture:
      return group->hear_departure(peer, group_state.presence);
    case GroupState::Sort::kEnd:
      return hear_loss(from, "it ended before all that it had posted was sent");
  }
}

// Every rank receives this loss from its own broadcast, so this rank does not announce it.
void LinkState::hear_loss(int peer, const std::string& how) {
  if (peer < 0 || peer >= root_->size()) return;
  bool cancel = false;
  {
    const std::lock_guard lock(mutex_);
    lost_[static_cast<size_t>(peer)] = how;
    // The link's own group comes first: its number is the lowest.
    for (const auto& [id, known] : groups_) {
      const std::shared_ptr<Group> group = known.lock();
      const int rank = group == nullptr ? -1 : group->rank_of(peer);
      if (rank < 0 || rank == group->rank() || !group->hear_loss(rank, how)) continue;
      fail_group_locked(*group, loss_of(rank, *group, how));
      cancel = cancel || group == root_;
    }
  }
  if (cancel) carrier_->cancel();
}

}  // namespace shardrec::comm::remote
