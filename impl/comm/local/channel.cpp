#include "comm/local/channel.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/log.h"

namespace shardrec::comm::local {
namespace {

// A message between running ranks arrives in well under a microsecond; a rank that is not running
// needs the processor that a longer spin would take.
constexpr int kSpins = 16;

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

LocalChannel::LocalChannel(std::shared_ptr<Group> group, int rank)
    : group_(std::move(group)), rank_(rank) {}

void LocalChannel::attach(Group::Opened opened) noexcept {
  number_ = opened.number;
  rings_ = std::move(opened.rings);
}

LocalChannel::~LocalChannel() {
  if (rings_ != nullptr && rings_->close(rank_)) group_->forget(number_);
}

Ticket LocalChannel::post(const Operation& operation, std::span<const ConstBytes> send,
                          std::shared_ptr<const void> keep_alive) {
  const uint64_t sequence = next_;
  check({.rank = rank_, .operation = operation.name, .sequence = sequence});
  if (send.size() != static_cast<size_t>(rings_->ranks())) {
    core::fail(SHARDREC_INTERNAL,
               core::sentence("post of \"", operation.name, "\" has ", send.size(),
                              " messages for ", rings_->ranks(), " ranks"));
  }
  if (!rings_->has_room(rank_, sequence)) {
    core::fail(SHARDREC_INTERNAL,
               core::sentence("post of \"", operation.name, "\" while exchange ",
                              sequence - kMostInFlight, " of its channel is still being read; at ",
                              "most ", kMostInFlight, " may be in flight"));
  }
  rings_->prepare(rank_, sequence, send);
  group_->set_last_seen(rank_, operation.name);
  rings_->publish(rank_, sequence, operation, std::move(keep_alive));
  ++next_;
  // If two ranks differ, the one that publishes later notices it here, before it arrives. So no rank
  // can receive a mismatched exchange.
  compare(sequence);
  rings_->arrive(rank_, sequence);
  return {.sequence = sequence};
}

std::optional<Cause> LocalChannel::difference(int left, int right, uint64_t sequence) const {
  const Operation& a = rings_->operation(left, sequence);
  const Operation& b = rings_->operation(right, sequence);
  if (rings_->purpose(left) != rings_->purpose(right)) return Cause::kPurpose;
  if (a.kind != b.kind) return Cause::kOperation;
  if (a.size != b.size) return Cause::kSize;
  if (a.detail != b.detail) return Cause::kArguments;
  return std::nullopt;
}

void LocalChannel::compare(uint64_t sequence) {
  std::optional<Cause> cause;
  int other = 0;
  int with_us = 0;
  int against_us = 0;
  for (int rank = 0; rank < rings_->ranks(); ++rank) {
    if (rank == rank_ || !rings_->posted(rank, sequence)) continue;
    const std::optional<Cause> differs = difference(rank, rank_, sequence);
    ++(differs ? against_us : with_us);
    if (differs && !cause) {
      cause = differs;
      other = rank;
    }
  }
  if (!cause) return;
  // Other ranks report the rank of the smaller side as the failed one.
  const bool we_are_odd = against_us > with_us + 1;
  const int failed_rank = we_are_odd ? rank_ : other;
  const int observer = we_are_odd ? other : rank_;
  const Operation& theirs = rings_->operation(failed_rank, sequence);
  const Operation& ours = rings_->operation(observer, sequence);
  group_->kill_and_throw(
      {.cause = *cause,
       .failed_rank = failed_rank,
       .observer = observer,
       .sequence = sequence,
       .operation = ours.name,
       .failed_rank_operation = theirs.name,
       .size = ours.size,
       .failed_rank_size = theirs.size},
      {.rank = rank_, .operation = rings_->operation(rank_, sequence).name, .sequence = sequence});
}

void LocalChannel::receive(Ticket ticket, std::span<ConstBytes> received) {
  const uint64_t n = ticket.sequence;
  const Operation& operation = own_operation(ticket, "receive");
  wait({.wait_for = WaitFor::kArrival,
        .site = {.rank = rank_, .operation = operation.name, .sequence = n},
        .operation = operation,
        .done = [&] { return rings_->arrived(n); },
        .late = [&](int rank) { return !rings_->posted(rank, n); }});
  for (int from = 0; from < rings_->ranks(); ++from) {
    received[static_cast<size_t>(from)] = rings_->message(from, rank_, n);
  }
}

bool LocalChannel::has_arrived(Ticket ticket) noexcept {
  const uint64_t n = ticket.sequence;
  if (!keeps(ticket)) return true;
  return must_look({.wait_for = WaitFor::kArrival,
                    .site = {},
                    .operation = rings_->operation(rank_, n),
                    .done = [&] { return rings_->arrived(n); },
                    .late = [&](int rank) { return !rings_->posted(rank, n); }});
}

void LocalChannel::release(Ticket ticket) noexcept { rings_->release(rank_, ticket.sequence); }

void LocalChannel::reclaim(Ticket ticket) {
  const uint64_t n = ticket.sequence;
  const Operation& operation = own_operation(ticket, "reclaim");
  wait({.wait_for = WaitFor::kRelease,
        .site = {.rank = rank_, .operation = operation.name, .sequence = n},
        .operation = operation,
        .done = [&] { return rings_->drained(rank_, n); },
        .late = [&](int rank) { return !rings_->released(rank, rank_, n); }});
  rings_->reclaim(rank_, n);
}

bool LocalChannel::keeps(Ticket ticket) const noexcept {
  return ticket.sequence < next_ && next_ - ticket.sequence <= kMostInFlight;
}

const Operation& LocalChannel::own_operation(Ticket ticket, const char* call) const {
  if (!keeps(ticket)) {
    core::fail(SHARDREC_INTERNAL,
               core::sentence(call, " of exchange ", ticket.sequence, " of a channel that has ",
                              "posted ", next_, " and keeps the last ", kMostInFlight));
  }
  return rings_->operation(rank_, ticket.sequence);
}

void LocalChannel::check(const CallSite& site) const {
  if (group_->departed(rank_)) {
    core::fail(SHARDREC_CLOSED,
               core::sentence("rank ", rank_, " has closed or destroyed its communicator; \"",
                              site.operation, "\" needs it"),
               {.rank = rank_, .operation = site.operation});
  }
  group_->check(site);
}

void LocalChannel::wait(const Wait& wait) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (wait.done()) return;
    relax();
  }

  const Deadlines deadlines = group_->deadlines(rank_);
  const double seconds =
      wait.operation.deadline_kind == DeadlineKind::kStep ? deadlines.step : deadlines.setup;
  const Clock::time_point start = Clock::now();
  const Clock::time_point deadline = after(start, seconds);
  Clock::time_point alarm = after(start, deadlines.warn);
  group_->set_last_seen(rank_, wait.site.operation);
  for (;;) {
    rings_->wake_up(rank_).sleep(wait.wait_for, std::min(alarm, deadline),
                                 [&] { return must_look(wait); });
    if (wait.done()) return;
    if (group_->departed(rank_)) {
      // Left from another thread: the peers must not take this rank's half of the exchange for
      // whole.
      group_->kill({.cause = Cause::kGaveUp,
                    .failed_rank = rank_,
                    .observer = rank_,
                    .sequence = wait.site.sequence,
                    .operation = wait.site.operation});
    }
    check(wait.site);
    for (int rank = 0; rank < rings_->ranks(); ++rank) {
      if (cannot_arrive(wait, rank)) fail_cannot_arrive(wait, rank);
    }
    const Clock::time_point now = Clock::now();
    const int late = first_late(wait);
    if (late <
        0) {  // the last rank has published but not yet arrived, or read but not yet released
      std::this_thread::yield();
      continue;
    }
    if (now >= deadline) fail_late(wait, late, seconds);
    if (now >= alarm) {
      warn(wait, deadlines.warn);
      alarm = Clock::time_point::max();
    }
  }
}

bool LocalChannel::must_look(const Wait& wait) const {
  if (wait.done() || group_->dead() || group_->departed(rank_)) return true;
  for (int rank = 0; rank < rings_->ranks(); ++rank) {
    if (cannot_arrive(wait, rank)) return true;
  }
  return false;
}

// True if the rank is late and will stay late. What a rank did before it left counts, so `late` is
// evaluated after its departure was seen.
bool LocalChannel::cannot_arrive(const Wait& wait, int rank) const {
  const bool gone = group_->departed(rank);
  const bool stopped_receiving = rings_->closed(rank) && wait.wait_for == WaitFor::kArrival;
  if (!gone && !stopped_receiving) return false;
  // What a closed end had not released is being released, by it or by the sender.
  if (wait.wait_for == WaitFor::kRelease && rings_->closed(rank)) return false;
  return wait.late(rank);
}

int LocalChannel::first_late(const Wait& wait) const {
  for (int rank = 0; rank < rings_->ranks(); ++rank) {
    if (wait.late(rank)) return rank;
  }
  return -1;
}

void LocalChannel::fail_cannot_arrive(const Wait& wait, int failed_rank) {
  const Presence presence = group_->presence(failed_rank);
  const Cause cause = presence == Presence::kDestroyed ? Cause::kDestroyed
                      : presence == Presence::kLeft    ? Cause::kLeft
                                                       : Cause::kAbandoned;
  group_->kill_and_throw({.cause = cause,
                          .failed_rank = failed_rank,
                          .observer = rank_,
                          .sequence = wait.site.sequence,
                          .operation = wait.site.operation},
                         wait.site);
}

void LocalChannel::fail_late(const Wait& wait, int failed_rank, double seconds) {
  group_->kill_and_throw(
      {.cause = wait.wait_for == WaitFor::kArrival ? Cause::kLate : Cause::kUnread,
       .failed_rank = failed_rank,
       .observer = rank_,
       .sequence = wait.site.sequence,
       .operation = wait.site.operation,
       .failed_rank_operation = group_->last_seen(failed_rank),
       .seconds = seconds},
      wait.site);
}

void LocalChannel::warn(const Wait& wait, double seconds) const {
  constexpr int kMostNamed = 8;
  std::string names;
  int late = 0;
  for (int rank = 0; rank < rings_->ranks(); ++rank) {
    if (!wait.late(rank)) continue;
    if (++late > kMostNamed) continue;
    if (late > 1) names += ", ";
    names += core::sentence("rank ", rank, " (", group_->last_seen(rank), ")");
  }
  if (late > kMostNamed) names += core::sentence(" and ", late - kMostNamed, " more");
  core::log(
      SHARDREC_LOG_WARNING, rank_,
      core::sentence("rank ", rank_, " has waited ", decimal(seconds), " s in \"",
                     wait.site.operation, "\" (exchange ", wait.site.sequence, ") for ", names));
}

}  // namespace shardrec::comm::local
