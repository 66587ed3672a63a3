#include "comm/remote/group.h"

#include <algorithm>
#include <array>

#include "comm/remote/envelope.h"
#include "core/error.h"

namespace shardrec::comm::remote {
namespace {

// Bits of a range's size, by how often it was split.
constexpr std::array<int, 4> kBits = {kChannelBits, 13, 9, 5};
constexpr int kLast = static_cast<int>(kBits.size()) - 1;

constexpr uint32_t size_of(int level) noexcept { return 1U << kBits[static_cast<size_t>(level)]; }

}  // namespace

uint32_t Numbers::own() const noexcept {
  return level_ == kLast ? size_of(level_) : size_of(level_) / 2;
}

uint32_t Numbers::splits() const noexcept {
  return level_ == kLast ? 0 : size_of(level_) / 2 / size_of(level_ + 1);
}

std::optional<uint32_t> Numbers::opened(uint64_t n) const noexcept {
  if (n + 1 >= own()) return std::nullopt;
  return first_ + 1 + static_cast<uint32_t>(n);
}

std::optional<Numbers> Numbers::split(uint64_t n) const noexcept {
  if (n >= splits()) return std::nullopt;
  return Numbers(first_ + own() + static_cast<uint32_t>(n) * size_of(level_ + 1), level_ + 1);
}

Group::Group(Shape shape) : shape_(std::move(shape)), peers_(shape_.members.size()) {}

// Groups with the same numbers share no rank.
uint64_t Group::id() const noexcept {
  return uint64_t{shape_.numbers.splitting()} << 32 | static_cast<uint32_t>(on_link(0));
}

int Group::rank_of(int on_link) const noexcept {
  const auto& members = shape_.members;
  const auto found = std::find(members.begin(), members.end(), on_link);
  return found == members.end() ? -1 : static_cast<int>(found - members.begin());
}

bool Group::descends_from(const Group& other) const noexcept {
  for (const Group* up = shape_.parent.get(); up != nullptr; up = up->shape_.parent.get()) {
    if (up == &other) return true;
  }
  return false;
}

Deadlines Group::deadlines() const noexcept {
  return {.step = step_.load(std::memory_order_relaxed),
          .setup = setup_.load(std::memory_order_relaxed),
          .warn = warn_.load(std::memory_order_relaxed)};
}

void Group::set_deadlines(const Deadlines& deadlines) noexcept {
  step_.store(deadlines.step, std::memory_order_relaxed);
  setup_.store(deadlines.setup, std::memory_order_relaxed);
  warn_.store(deadlines.warn, std::memory_order_relaxed);
}

uint32_t Group::open_channel() {
  const std::lock_guard lock(mutex_);
  const std::optional<uint32_t> number = shape_.numbers.opened(opened_);
  if (!number) {
    core::fail(SHARDREC_UNSUPPORTED,
               core::sentence("this communicator has opened all ", opened_, " channels it can have",
                              " in its life; make a new one, or make fewer objects on it"),
               {.limit = static_cast<int64_t>(opened_)});
  }
  channels_.insert(*number);
  ++opened_;
  return *number;
}

uint32_t Group::open_splitting() {
  const std::lock_guard lock(mutex_);
  channels_.insert(shape_.numbers.splitting());
  return shape_.numbers.splitting();
}

void Group::close_channel(uint32_t number) noexcept {
  const std::lock_guard lock(mutex_);
  channels_.erase(number);
  progress_.erase(progress_.lower_bound({number, 0}), progress_.lower_bound({number + 1, 0}));
}

void Group::die(Failure failure) noexcept {
  if (dead_.load()) return;
  failure_ = std::move(failure);
  dead_.store(true);
}

void Group::check(const CallSite& site) const {
  if (dead()) throw_failure(failure_, site);
}

void Group::throw_dead(const CallSite& site) const { throw_failure(failure_, site); }

bool Group::depart(Presence how) noexcept {
  Presence expected = Presence::kMember;
  return presence_.compare_exchange_strong(expected, how);
}

void Group::hear_progress(int peer, const Progress& progress) {
  const std::lock_guard lock(mutex_);
  // Of a channel whose end here is gone nobody asks any more.
  const uint32_t first = shape_.numbers.splitting();
  const bool to_come = progress.channel == first || progress.channel > first + opened_;
  if (!to_come && !channels_.contains(progress.channel)) return;
  if (progress.channel < first || progress.channel - first >= shape_.numbers.own()) return;
  Progress& known = progress_[{progress.channel, peer}];
  known = {.channel = progress.channel,
           .closed = known.closed || progress.closed,
           .posted = std::max(known.posted, progress.posted),
           .received = std::max(known.received, progress.received)};
  news_.store(true);
}

void Group::hear_departure(int peer, Presence how) noexcept {
  const std::lock_guard lock(mutex_);
  Peer& heard = peers_[static_cast<size_t>(peer)];
  if (heard.presence == Presence::kMember) heard.presence = how;
  news_.store(true);
}

bool Group::hear_loss(int peer, const std::string& how) {
  const std::lock_guard lock(mutex_);
  Peer& heard = peers_[static_cast<size_t>(peer)];
  heard.lost = true;
  news_.store(true);
  heard.how = how;
  return heard.presence == Presence::kMember;
}

bool Group::somebody_left() const noexcept {
  if (!news_.load()) return false;
  const std::lock_guard lock(mutex_);
  return std::any_of(peers_.begin(), peers_.end(),
                     [](const Peer& heard) { return heard.presence == Presence::kLeft; });
}

int Group::departed_rank() const noexcept {
  const std::lock_guard lock(mutex_);
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank() && peers_[static_cast<size_t>(peer)].presence != Presence::kMember) {
      return peer;
    }
  }
  return -1;
}

bool Group::alone() const noexcept {
  const std::lock_guard lock(mutex_);
  for (int peer = 0; peer < size(); ++peer) {
    const Peer& heard = peers_[static_cast<size_t>(peer)];
    if (peer != rank() && heard.presence == Presence::kMember && !heard.lost) return false;
  }
  return true;
}

const Progress* Group::progress_of(int peer, uint32_t channel) const noexcept {
  const auto found = progress_.find({channel, peer});
  return found == progress_.end() ? nullptr : &found->second;
}

std::optional<Failure> Group::cannot_arrive(int peer, uint32_t channel, uint64_t sequence,
                                            WaitFor wait_for) const {
  if (!news_.load()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const Peer& heard = peers_[static_cast<size_t>(peer)];
  const Progress* progress = progress_of(peer, channel);
  const bool closed = progress != nullptr && progress->closed;
  if (heard.presence == Presence::kMember && !closed) return std::nullopt;
  if (wait_for == WaitFor::kRelease && closed) return std::nullopt;  // it has stopped receiving
  uint64_t came = 0;
  if (progress != nullptr) {
    came = wait_for == WaitFor::kArrival ? progress->posted : progress->received;
  }
  Failure failure{.failed_rank = peer, .observer = rank(), .sequence = sequence};
  if (sequence < came) {  // it is under way
    if (!heard.lost || wait_for == WaitFor::kRelease) return std::nullopt;
    failure.cause = Cause::kLost;
    failure.reason = heard.how;
    return failure;
  }
  failure.cause = heard.presence == Presence::kDestroyed ? Cause::kDestroyed
                  : heard.presence == Presence::kLeft    ? Cause::kLeft
                                                         : Cause::kAbandoned;
  return failure;
}

bool Group::stopped_receiving(int peer, uint32_t channel, uint64_t sequence) const noexcept {
  if (!news_.load()) return false;
  const std::lock_guard lock(mutex_);
  const Progress* progress = progress_of(peer, channel);
  if (progress == nullptr) return false;
  return progress->closed ||
         (peers_[static_cast<size_t>(peer)].lost && sequence < progress->received);
}

std::string Group::last_seen(int peer) const {
  const char* operation =
      peers_[static_cast<size_t>(peer)].last_seen.load(std::memory_order_relaxed);
  if (operation == nullptr) return "has sent nothing yet";
  return core::sentence("was last seen in \"", operation, "\"");
}

}  // namespace shardrec::comm::remote
