#include "comm/remote/hub.h"

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

// Bulletins about unknown groups that are kept: a peer may leave a split a little earlier.
constexpr size_t kMostUnclaimed = 64;

Group::Shape whole(const Roster& roster) {
  std::vector<int> members(static_cast<size_t>(roster.size));
  std::iota(members.begin(), members.end(), 0);
  return {.members = std::move(members),
          .rank = roster.rank,
          .ranks_per_node = roster.ranks_per_node,
          .ranks_in_process = roster.ranks_in_process};
}

bool sensible(const Failure& failure, const Group& group) noexcept {
  return failure.culprit < group.size() && failure.witness < group.size() && !failure.inherited;
}

Failure loss_of(int rank, const Group& group, const std::string& how) {
  return {.cause = Cause::kLost, .culprit = rank, .witness = group.rank(), .reason = how};
}

}  // namespace

Hub::Hub(const Roster& roster, std::shared_ptr<Carrier> carrier, std::shared_ptr<Board> board)
    : carrier_(std::move(carrier)),
      board_(std::move(board)),
      root_(std::make_shared<Group>(whole(roster))),
      lost_(static_cast<size_t>(roster.size)) {
  groups_.emplace(root_->id(), root_);
  board_->listen({.heard = [this](int from, ConstBytes bytes) { listen(from, bytes); },
                  .lost = [this](int peer, const std::string& how) { listen_loss(peer, how); }});
}

Hub::~Hub() {
  const Clock::time_point until = after(Clock::now(), kLinger);
  for (sweep(); !unsent_.empty() && Clock::now() < until; sweep()) {
    for (Leg& leg : unsent_.front().exchange->legs) {
      for (Transfer& transfer : leg.sending) {
        if (!transfer.pending()) continue;
        try {
          transfer.wait(0.01);
        } catch (...) {
          transfer.drop();
        }
      }
    }
  }
  if (!unsent_.empty()) announce({.sort = Bulletin::Sort::kEnd, .group = root_->id()});
  // A peer that is about to leave too may still be reading what this rank has sent last.
  const bool orderly = root_->presence() == Presence::kLeft && !root_->dead();
  while (orderly && !root_->dead() && !root_->alone() && Clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  board_->listen({});
}

void Hub::add(const std::shared_ptr<Group>& group, const CallSite& site) {
  std::vector<std::pair<int, Bulletin>> missed;
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
  for (const auto& [from, bulletin] : missed) hear(from, group, bulletin);
}

void Hub::fail_group_locked(Group& group, const Failure& failure) noexcept {
  if (group.dead()) return;
  // No memory for the words: the failure goes without them.
  const auto die = [&](Group& dying, bool inherited) {
    Failure last{.cause = failure.cause, .culprit = failure.culprit, .witness = failure.witness};
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

bool Hub::fail_group(Group& group, const Failure& failure) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (group.dead()) return false;
    fail_group_locked(group, failure);
  }
  return true;
}

void Hub::kill(Group& group, const Failure& failure) noexcept {
  if (!fail_group(group, failure)) return;
  if (group.size() == 1) return;
  Bulletin bulletin{.sort = Bulletin::Sort::kFailure, .group = group.id()};
  try {
    bulletin.failure = failure;
  } catch (...) {
    bulletin.failure.cause = failure.cause;
    bulletin.failure.culprit = failure.culprit;
    bulletin.failure.witness = failure.witness;
  }
  announce(bulletin);
  if (&group == root_.get()) carrier_->cancel();
}

void Hub::kill_and_throw(Group& group, const Failure& failure, const CallSite& site) {
  kill(group, failure);
  group.throw_dead(site);
}

void Hub::announce(const Bulletin& bulletin) noexcept {
  board_->announce(write_bulletin(bulletin).view());
}

void Hub::tell(const Group& group, const Progress& progress) noexcept {
  Bulletin bulletin{.sort = Bulletin::Sort::kProgress, .group = group.id(), .count = 1};
  bulletin.progress[0] = progress;
  announce(bulletin);
}

void Hub::depart(Group& group, Presence how) noexcept {
  if (!group.depart(how)) return;
  if (group.dead() || group.size() == 1) return;
  {
    const std::lock_guard lock(ends_mutex_);
    Bulletin bulletin{.sort = Bulletin::Sort::kProgress, .group = group.id()};
    const Clock::time_point until = after(Clock::now(), kLinger);
    for (Endpoint* end : ends_) {
      if (&end->group() != &group) continue;
      if (how == Presence::kLeft) end->flush(until);
      const std::optional<Progress> progress = end->progress();
      if (!progress) continue;
      bulletin.progress[bulletin.count++] = *progress;
      if (bulletin.count < kMostProgress) continue;
      announce(bulletin);
      bulletin.count = 0;
    }
    if (bulletin.count != 0) announce(bulletin);
  }
  announce({.sort = Bulletin::Sort::kDeparture, .group = group.id(), .presence = how});
}

void Hub::enlist(Endpoint& endpoint) {
  sweep();
  const std::lock_guard lock(ends_mutex_);
  ends_.push_back(&endpoint);
}

void Hub::delist(const Endpoint& endpoint) noexcept {
  const std::lock_guard lock(ends_mutex_);
  std::erase(ends_, &endpoint);
}

bool Hub::poke_others(const Endpoint& endpoint) noexcept {
  const std::unique_lock lock(ends_mutex_, std::try_to_lock);
  if (!lock) return false;
  bool expecting = false;
  for (Endpoint* end : ends_) {
    if (end != &endpoint && end->poke()) expecting = true;
  }
  return expecting;
}

void Hub::defer_destroy(std::unique_ptr<InFlightExchange> exchange,
                        std::shared_ptr<const Group> group, uint32_t channel) {
  const std::lock_guard lock(ends_mutex_);
  unsent_.push_back(
      {.exchange = std::move(exchange), .group = std::move(group), .channel = channel});
}

void Hub::keep(Kept kept) noexcept {
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

void Hub::abandon_sending(Leg& leg, const std::shared_ptr<const void>& owner) noexcept {
  // Envelopes are short, and harmless to give up.
  if (owner != nullptr) {
    keep({.owner = owner, .memory = {}, .transfer = std::move(leg.sending[1])});
  }
  leg.drop_sending();
}

void Hub::abandon_receiving(Leg& leg) noexcept {
  if (leg.inbound != Leg::Inbound::kMessage) return;
  keep({.owner = nullptr, .memory = std::move(leg.message), .transfer = std::move(leg.receiving)});
}

void Hub::sweep() noexcept {
  std::vector<Unsent> over;  // ends after the lock: what it owns may be anything
  const std::lock_guard lock(ends_mutex_);
  for (Unsent& unsent : unsent_) {
    const Group& group = *unsent.group;
    for (int rank = 0; rank < group.size(); ++rank) {
      Leg& leg = unsent.exchange->legs[static_cast<size_t>(rank)];
      try {
        leg.ask_sending();
      } catch (...) {
        leg.drop_sending();
      }
      const bool failed = leg.sending[0].failed() || leg.sending[1].failed();
      if (failed || group.dead() ||
          group.stopped_receiving(rank, unsent.channel, unsent.exchange->sequence)) {
        abandon_sending(leg, unsent.exchange->owner);
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

// Where memory runs out on the board's thread, nobody else would tell: all of it ends.
void Hub::listen(int from, ConstBytes bytes) noexcept {
  try {
    hear(from, bytes);
  } catch (...) {
    give_up();
  }
}

void Hub::listen_loss(int peer, const std::string& how) noexcept {
  try {
    hear_loss(peer, how);
  } catch (...) {
    give_up();
  }
}

void Hub::give_up() noexcept {
  fail_group(*root_, {.cause = Cause::kGaveUp, .culprit = root_->rank()});
  carrier_->cancel();
}

void Hub::hear(int from, ConstBytes bytes) {
  std::optional<Bulletin> bulletin = read_bulletin(bytes);
  if (!bulletin || from < 0 || from >= root_->size()) return;
  std::shared_ptr<Group> group;
  {
    const std::lock_guard lock(mutex_);
    const auto found = groups_.find(bulletin->group);
    if (found == groups_.end()) {
      if (unclaimed_.size() == kMostUnclaimed) unclaimed_.pop_front();
      unclaimed_.emplace_back(from, *std::move(bulletin));
      return;
    }
    group = found->second.lock();
  }
  if (group != nullptr) hear(from, group, *bulletin);
}

void Hub::hear(int from, const std::shared_ptr<Group>& group, const Bulletin& bulletin) {
  const int peer = group->rank_of(from);
  if (peer < 0 || peer == group->rank()) return;
  switch (bulletin.sort) {
    case Bulletin::Sort::kFailure:
      if (!sensible(bulletin.failure, *group)) return;
      if (fail_group(*group, bulletin.failure) && group == root_) carrier_->cancel();
      return;
    case Bulletin::Sort::kProgress:
      for (size_t i = 0; i < bulletin.count; ++i) {
        group->hear_progress(peer, bulletin.progress[i]);
      }
      return;
    case Bulletin::Sort::kDeparture:
      return group->hear_departure(peer, bulletin.presence);
    case Bulletin::Sort::kEnd:
      return hear_loss(from, "it ended before all that it had posted was sent");
  }
}

// The board tells every rank, so that nobody needs to be told by this one.
void Hub::hear_loss(int peer, const std::string& how) {
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
