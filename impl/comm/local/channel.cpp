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
  lanes_ = std::move(opened.lanes);
}

LocalChannel::~LocalChannel() {
  if (lanes_ != nullptr && lanes_->close(rank_)) group_->forget(number_);
}

Ticket LocalChannel::post(const Operation& operation, std::span<const ConstBytes> send,
                          std::shared_ptr<const void> owner) {
  const uint64_t sequence = next_;
  check({.rank = rank_, .operation = operation.name, .sequence = sequence});
  if (send.size() != static_cast<size_t>(lanes_->ranks())) {
    core::fail(SHARDREC_INTERNAL,
               core::sentence("post of \"", operation.name, "\" has ", send.size(),
                              " messages for ", lanes_->ranks(), " ranks"));
  }
  if (!lanes_->has_room(rank_, sequence)) {
    core::fail(SHARDREC_INTERNAL,
               core::sentence("post of \"", operation.name, "\" while exchange ",
                              sequence - kMostInFlight, " of its channel is still being read; at ",
                              "most ", kMostInFlight, " may be in flight"));
  }
  group_->set_last_seen(rank_, operation.name);
  lanes_->publish(rank_, sequence, operation, send, std::move(owner));
  ++next_;
  // Of two ranks that differ, the one that published later sees it here, before it arrives: nobody
  // can receive a mismatched exchange.
  compare(sequence);
  lanes_->arrive(rank_, sequence);
  return {.sequence = sequence};
}

std::optional<Cause> LocalChannel::difference(int left, int right, uint64_t sequence) const {
  const Operation& a = lanes_->operation(left, sequence);
  const Operation& b = lanes_->operation(right, sequence);
  if (lanes_->purpose(left) != lanes_->purpose(right)) return Cause::kPurpose;
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
  for (int rank = 0; rank < lanes_->ranks(); ++rank) {
    if (rank == rank_ || !lanes_->posted(rank, sequence)) continue;
    const std::optional<Cause> differs = difference(rank, rank_, sequence);
    ++(differs ? against_us : with_us);
    if (differs && !cause) {
      cause = differs;
      other = rank;
    }
  }
  if (!cause) return;
  // Third parties are pointed at the side that fewer ranks have taken.
  const bool we_are_odd = against_us > with_us + 1;
  const int culprit = we_are_odd ? rank_ : other;
  const int witness = we_are_odd ? other : rank_;
  const Operation& theirs = lanes_->operation(culprit, sequence);
  const Operation& ours = lanes_->operation(witness, sequence);
  group_->kill_and_throw(
      {.cause = *cause,
       .culprit = culprit,
       .witness = witness,
       .sequence = sequence,
       .operation = ours.name,
       .culprit_operation = theirs.name,
       .size = ours.size,
       .culprit_size = theirs.size},
      {.rank = rank_, .operation = lanes_->operation(rank_, sequence).name, .sequence = sequence});
}

void LocalChannel::receive(Ticket ticket, std::span<ConstBytes> received) {
  const uint64_t n = ticket.sequence;
  const Operation& operation = own_operation(ticket, "receive");
  wait({.wish = Wish::kArrival,
        .site = {.rank = rank_, .operation = operation.name, .sequence = n},
        .operation = operation,
        .done = [&] { return lanes_->arrived(n); },
        .late = [&](int rank) { return !lanes_->posted(rank, n); }});
  for (int from = 0; from < lanes_->ranks(); ++from) {
    received[static_cast<size_t>(from)] = lanes_->message(from, rank_, n);
  }
}

void LocalChannel::release(Ticket ticket) noexcept { lanes_->release(rank_, ticket.sequence); }

void LocalChannel::reclaim(Ticket ticket) {
  const uint64_t n = ticket.sequence;
  const Operation& operation = own_operation(ticket, "reclaim");
  wait({.wish = Wish::kRelease,
        .site = {.rank = rank_, .operation = operation.name, .sequence = n},
        .operation = operation,
        .done = [&] { return lanes_->drained(rank_, n); },
        .late = [&](int rank) { return !lanes_->released(rank, rank_, n); }});
}

const Operation& LocalChannel::own_operation(Ticket ticket, const char* call) const {
  if (ticket.sequence >= next_ || next_ - ticket.sequence > kMostInFlight) {
    core::fail(SHARDREC_INTERNAL,
               core::sentence(call, " of exchange ", ticket.sequence, " of a channel that has ",
                              "posted ", next_, " and keeps the last ", kMostInFlight));
  }
  return lanes_->operation(rank_, ticket.sequence);
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
      wait.operation.patience == Patience::kStep ? deadlines.step : deadlines.setup;
  const Clock::time_point start = Clock::now();
  const Clock::time_point deadline = after(start, seconds);
  Clock::time_point alarm = after(start, deadlines.warn);
  group_->set_last_seen(rank_, wait.site.operation);
  for (;;) {
    lanes_->bell(rank_).sleep(wait.wish, std::min(alarm, deadline),
                              [&] { return must_look(wait); });
    if (wait.done()) return;
    if (group_->departed(rank_)) {
      // Left from another thread: the peers must not take this rank's half of the exchange for
      // whole.
      group_->kill({.cause = Cause::kGaveUp,
                    .culprit = rank_,
                    .witness = rank_,
                    .sequence = wait.site.sequence,
                    .operation = wait.site.operation});
    }
    check(wait.site);
    for (int rank = 0; rank < lanes_->ranks(); ++rank) {
      if (cannot_arrive(wait, rank)) fail_cannot_arrive(wait, rank);
    }
    const Clock::time_point now = Clock::now();
    const int late = first_late(wait);
    if (late < 0) {  // the last one is between its deed and telling of it
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
  for (int rank = 0; rank < lanes_->ranks(); ++rank) {
    if (cannot_arrive(wait, rank)) return true;
  }
  return false;
}

// The rank is late and will stay so. What a rank did before it went counts: hence the order.
bool LocalChannel::cannot_arrive(const Wait& wait, int rank) const {
  const bool gone = group_->departed(rank);
  const bool stopped_receiving = lanes_->closed(rank) && wait.wish == Wish::kArrival;
  if (!gone && !stopped_receiving) return false;
  // What a closed end had not released is being released, by it or by the sender.
  if (wait.wish == Wish::kRelease && lanes_->closed(rank)) return false;
  return wait.late(rank);
}

int LocalChannel::first_late(const Wait& wait) const {
  for (int rank = 0; rank < lanes_->ranks(); ++rank) {
    if (wait.late(rank)) return rank;
  }
  return -1;
}

void LocalChannel::fail_cannot_arrive(const Wait& wait, int culprit) {
  const Presence presence = group_->presence(culprit);
  const Cause cause = presence == Presence::kDestroyed ? Cause::kDestroyed
                      : presence == Presence::kLeft    ? Cause::kLeft
                                                       : Cause::kAbandoned;
  group_->kill_and_throw({.cause = cause,
                          .culprit = culprit,
                          .witness = rank_,
                          .sequence = wait.site.sequence,
                          .operation = wait.site.operation},
                         wait.site);
}

void LocalChannel::fail_late(const Wait& wait, int culprit, double seconds) {
  group_->kill_and_throw({.cause = wait.wish == Wish::kArrival ? Cause::kLate : Cause::kUnread,
                          .culprit = culprit,
                          .witness = rank_,
                          .sequence = wait.site.sequence,
                          .operation = wait.site.operation,
                          .culprit_operation = group_->last_seen(culprit),
                          .seconds = seconds},
                         wait.site);
}

void LocalChannel::warn(const Wait& wait, double seconds) const {
  constexpr int kMostNamed = 8;
  std::string names;
  int late = 0;
  for (int rank = 0; rank < lanes_->ranks(); ++rank) {
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
