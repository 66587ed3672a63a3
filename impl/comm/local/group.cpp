#include "comm/local/group.h"

#include <algorithm>

#include "core/error.h"

namespace shardrec::comm::local {

Group::Group(int ranks, int ranks_per_node)
    : ranks_per_node_(ranks_per_node), members_(static_cast<size_t>(ranks)) {}

void Group::join(int rank) {
  if (rank < 0 || rank >= ranks()) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("rank ", rank, " is not in [0, ", ranks(), ")"),
               {.value = rank, .limit = ranks()});
  }
  Presence expected = Presence::kAbsent;
  if (!member(rank).state.compare_exchange_strong(expected, Presence::kMember)) {
    core::fail(
        SHARDREC_INVALID_STATE,
        core::sentence("rank ", rank, " of this group has been taken before; each rank joins",
                       " once, make a new group to start again"),
        {.rank = rank});
  }
}

void Group::depart(int rank, Presence how) noexcept {
  Presence expected = Presence::kMember;
  if (!member(rank).state.compare_exchange_strong(expected, how)) return;
  const std::lock_guard lock(mutex_);
  wake_everybody();
}

Deadlines Group::deadlines(int rank) const noexcept {
  const Member& m = member(rank);
  return {.step = m.step.load(std::memory_order_relaxed),
          .setup = m.setup.load(std::memory_order_relaxed),
          .warn = m.warn.load(std::memory_order_relaxed)};
}

void Group::set_deadlines(int rank, const Deadlines& deadlines) noexcept {
  Member& m = member(rank);
  m.step.store(deadlines.step, std::memory_order_relaxed);
  m.setup.store(deadlines.setup, std::memory_order_relaxed);
  m.warn.store(deadlines.warn, std::memory_order_relaxed);
}

std::string Group::last_seen(int rank) const {
  if (presence(rank) == Presence::kAbsent) return "has not joined yet";
  const char* operation = member(rank).last_seen.load(std::memory_order_relaxed);
  if (operation == nullptr) return "has joined but called nothing yet";
  return core::sentence("was last seen in \"", operation, "\"");
}

void Group::kill(Failure failure) noexcept {
  const std::lock_guard one_at_a_time(death_);
  {
    const std::lock_guard lock(mutex_);
    if (dying_) return;
    failure_ = std::move(failure);
    dying_ = true;
  }
  // Children first: who sees this group dead sees them dead. A dying group gets no more of them.
  for (;;) {
    std::weak_ptr<Group> next;
    {
      const std::lock_guard lock(mutex_);
      if (children_.empty()) break;
      next = std::move(children_.back());
      children_.pop_back();
    }
    const std::shared_ptr<Group> child = next.lock();
    if (child == nullptr) continue;
    Failure inherited{
        .cause = failure_.cause, .failed_rank = failure_.failed_rank, .inherited = true};
    try {
      inherited = failure_;
      inherited.inherited = true;
    } catch (...) {  // no memory for the words: the failure goes without them
    }
    child->kill(std::move(inherited));
  }
  const std::lock_guard lock(mutex_);
  dead_.store(true);
  wake_everybody();
}

void Group::kill_and_throw(Failure failure, const CallSite& site) {
  kill(std::move(failure));
  throw_failure(failure_, site);
}

void Group::check(const CallSite& site) const {
  if (dead()) throw_failure(failure_, site);
}

Group::Opened Group::open_next(int rank, Purpose purpose) {
  const std::lock_guard lock(mutex_);
  Opened opened = open_locked(member(rank).next_channel, rank, purpose);
  ++member(rank).next_channel;
  return opened;
}

Group::Opened Group::open(uint64_t number, int rank, Purpose purpose) {
  const std::lock_guard lock(mutex_);
  return open_locked(number, rank, purpose);
}

Group::Opened Group::open_locked(uint64_t number, int rank, Purpose purpose) {
  auto found = channels_.find(number);
  if (found == channels_.end()) {
    found = channels_.emplace(number, std::make_shared<Rings>(ranks())).first;
  }
  found->second->open(rank, purpose);
  return {.number = number, .rings = found->second};
}

void Group::forget(uint64_t number) noexcept {
  std::shared_ptr<Rings> last;  // dies after the lock
  const std::lock_guard lock(mutex_);
  const auto found = channels_.find(number);
  if (found == channels_.end()) return;
  last = std::move(found->second);
  channels_.erase(found);
}

void Group::wake_everybody() noexcept {
  for (const auto& [number, rings] : channels_) {
    for (int rank = 0; rank < ranks(); ++rank) rings->wake_up(rank).wake_in_any_case();
  }
}

std::shared_ptr<Group> Group::child(const CallSite& site, int color, int ranks,
                                    int ranks_per_node) {
  const std::lock_guard lock(mutex_);
  if (dying_) throw_failure(failure_, site);  // nobody would kill the child any more
  const auto key = std::pair(site.sequence, color);
  auto found = births_.find(key);
  if (found == births_.end()) {
    auto group = std::make_shared<Group>(ranks, ranks_per_node);
    std::erase_if(children_, [](const std::weak_ptr<Group>& old) { return old.expired(); });
    children_.push_back(group);
    found = births_.emplace(key, Birth{.group = std::move(group), .still_to_ask = ranks}).first;
  }
  std::shared_ptr<Group> group = found->second.group;
  if (--found->second.still_to_ask == 0) births_.erase(found);
  return group;
}

}  // namespace shardrec::comm::local
