// How a rank waits on a channel, and why it stops waiting: a peer is late, a peer can never send, the
// group is dead, or this rank has left.
//
// A wait blocks in one request at a time, for a short time, and looks at the received group states in
// between. Only the death of the group of all ranks wakes a waiting rank at once (Carrier::cancel).
#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "comm/remote/channel.h"
#include "core/error.h"
#include "core/log.h"

namespace shardrec::comm::remote {
namespace {

// If several envelopes are awaited, here or on other channels, another one may arrive first, and the
// receive of its message must then be started. So each wait is short.
constexpr double kShortest = 0.0001;
constexpr double kShort = 0.002;
constexpr double kLong = 0.01;

// A broken connection is noticed before the group state arrives that says why it broke.
constexpr auto kGrace = std::chrono::milliseconds(400);

}  // namespace

void RemoteChannel::receive(Ticket ticket, std::span<ConstBytes> received) {
  const std::lock_guard lock(turn_);
  InFlightExchange* exchange = find(ticket, "receive");
  if (exchange == nullptr) {
    core::fail(SHARDREC_INTERNAL, core::sentence("receive of exchange ", ticket.sequence,
                                                 ", which is over: it was reclaimed"));
  }
  wait(*exchange, WaitFor::kArrival);
  for (int peer = 0; peer < size(); ++peer) {
    const auto at = static_cast<size_t>(peer);
    received[at] = peer == group_->rank() ? exchange->own : exchange->by_peer[at].view;
  }
}

bool RemoteChannel::has_arrived(Ticket ticket) noexcept {
  const std::lock_guard lock(turn_);
  try {
    InFlightExchange* exchange = find(ticket, "has_arrived");
    if (exchange == nullptr || done(*exchange, WaitFor::kArrival)) return true;
    if (group_->departed() || group_->dead()) return true;
    const Wait wait{
        .wait_for = WaitFor::kArrival, .exchange = *exchange, .site = call_site_of(*exchange)};
    for (int peer = 0; peer < size(); ++peer) {
      if (late(wait, peer) && failure_of(wait, peer)) return true;
    }
    // As a wait does: the rank may have no other call in which later messages would advance.
    advance_from(ticket.sequence + 1);
    link_state_->poke_others(*this);
    return false;
  } catch (...) {  // receive() finds the same
    return true;
  }
}

void RemoteChannel::reclaim(Ticket ticket) {
  const std::lock_guard lock(turn_);
  InFlightExchange* exchange = find(ticket, "reclaim");
  if (exchange == nullptr || exchange->reclaimed) return;
  wait(*exchange, WaitFor::kRelease);
  exchange->keep_alive.reset();
  exchange->reclaimed = true;
  recycle_if_over(*exchange);
}

bool RemoteChannel::done(InFlightExchange& exchange, WaitFor wait_for) {
  if (wait_for == WaitFor::kArrival ? advance(exchange) : settle_sends(exchange)) return true;
  return exchange.operation.last && group_->somebody_left();
}

void RemoteChannel::wait(InFlightExchange& exchange, WaitFor wait_for) {
  if (done(exchange, wait_for)) return;

  const Deadlines deadlines = group_->deadlines();
  const Clock::time_point start = Clock::now();
  const double seconds =
      exchange.operation.deadline_kind == DeadlineKind::kStep ? deadlines.step : deadlines.setup;
  Wait wait{.wait_for = wait_for,
            .exchange = exchange,
            .site = call_site_of(exchange),
            .deadline = after(start, seconds),
            .alarm = after(start, deadlines.warn),
            .seconds = seconds,
            .warn = deadlines.warn};
  double longest = kShortest;
  do {
    look(wait);
    const bool own = advance_from(wait.site.sequence + 1);
    nap(wait, link_state_->poke_others(*this) || own, longest);
  } while (!done(exchange, wait_for));
}

const Transfer& RemoteChannel::awaited(const Wait& wait, int peer) const {
  const PeerTransfers& transfers = wait.exchange.by_peer[static_cast<size_t>(peer)];
  if (wait.wait_for == WaitFor::kArrival) return transfers.receiving;
  return transfers.sending[transfers.sending[0].done() ? 1 : 0];
}

bool RemoteChannel::late(const Wait& wait, int peer) const {
  const PeerTransfers& transfers = wait.exchange.by_peer[static_cast<size_t>(peer)];
  if (peer == group_->rank()) return false;
  return wait.wait_for == WaitFor::kArrival ? transfers.inbound != PeerTransfers::Inbound::kDone
                                            : !transfers.sent();
}

void RemoteChannel::nap(const Wait& wait, bool expecting, double& longest) {
  int chosen = -1;
  int envelopes = 0;
  for (int peer = 0; peer < size(); ++peer) {
    if (!late(wait, peer) || awaited(wait, peer).failed()) continue;
    const PeerTransfers& transfers = wait.exchange.by_peer[static_cast<size_t>(peer)];
    const bool envelope = wait.wait_for == WaitFor::kArrival &&
                          transfers.inbound == PeerTransfers::Inbound::kEnvelope;
    if (chosen < 0 || (envelope && envelopes == 0)) chosen = peer;
    envelopes += envelope ? 1 : 0;
  }
  double seconds = expecting ? kShort : kLong;
  if (envelopes > 1) {
    seconds = longest;
    longest = std::min(2 * longest, kShort);
  }
  const Clock::time_point now = Clock::now();
  seconds = std::min(seconds, seconds_until(std::min(wait.deadline, wait.alarm), now));
  if (seconds <= 0) return;
  if (chosen < 0) {  // only failed ones are left
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(seconds, kShort)));
    return;
  }
  PeerTransfers& transfers = wait.exchange.by_peer[static_cast<size_t>(chosen)];
  if (wait.wait_for == WaitFor::kArrival) {
    transfers.receiving.wait(seconds);
  } else {
    transfers.sending[transfers.sending[0].done() ? 1 : 0].wait(seconds);
  }
}

void RemoteChannel::fail(const Wait& wait, Failure failure) {
  failure.observer = group_->rank();
  failure.sequence = wait.site.sequence;
  failure.operation = wait.site.operation;
  link_state_->kill_and_throw(*group_, failure, wait.site);
}

std::optional<Failure> RemoteChannel::failure_of(const Wait& wait, int peer) const {
  if (auto failure = group_->cannot_arrive(peer, number_, wait.site.sequence, wait.wait_for)) {
    return failure;
  }
  const Transfer& transfer = awaited(wait, peer);
  if (!transfer.failed() || Clock::now() < transfer.failed_at() + kGrace) return std::nullopt;
  return Failure{.cause = Cause::kTransport, .failed_rank = peer, .reason = transfer.why()};
}

void RemoteChannel::look(Wait& wait) {
  if (group_->departed()) {
    // Left from another thread: the peers must not take this rank's half of the exchange for whole.
    link_state_->kill(*group_, {.cause = Cause::kGaveUp,
                                .failed_rank = group_->rank(),
                                .observer = group_->rank(),
                                .sequence = wait.site.sequence,
                                .operation = wait.site.operation});
  }
  check(wait.site);
  const Clock::time_point now = Clock::now();
  int first_late = -1;
  for (int peer = 0; peer < size(); ++peer) {
    if (!late(wait, peer)) continue;
    if (first_late < 0) first_late = peer;
    if (auto failure = failure_of(wait, peer)) fail(wait, *std::move(failure));
  }
  if (first_late < 0) return;
  if (now >= wait.deadline) {
    fail(wait, {.cause = wait.wait_for == WaitFor::kArrival ? Cause::kLate : Cause::kUnread,
                .failed_rank = first_late,
                .failed_rank_operation = describe(wait, first_late),
                .seconds = wait.seconds});
  }
  if (now >= wait.alarm) {
    warn(wait);
    wait.alarm = Clock::time_point::max();
  }
}

std::string RemoteChannel::describe(const Wait& wait, int peer) const {
  const PeerTransfers& transfers = wait.exchange.by_peer[static_cast<size_t>(peer)];
  if (wait.wait_for == WaitFor::kArrival && transfers.inbound == PeerTransfers::Inbound::kMessage) {
    return core::sentence("came, but not all of its ", transfers.arrived.bytes,
                          " bytes have arrived");
  }
  return group_->last_seen(peer);
}

void RemoteChannel::warn(const Wait& wait) const {
  constexpr int kMostNamed = 8;
  std::string names;
  int count = 0;
  for (int peer = 0; peer < size(); ++peer) {
    if (!late(wait, peer) || ++count > kMostNamed) continue;
    if (count > 1) names += ", ";
    names += core::sentence("rank ", peer, " (", describe(wait, peer), ")");
  }
  if (count > kMostNamed) names += core::sentence(" and ", count - kMostNamed, " more");
  core::log(
      SHARDREC_LOG_WARNING, group_->rank(),
      core::sentence("rank ", group_->rank(), " has waited ", decimal(wait.warn), " s in \"",
                     wait.site.operation, "\" (exchange ", wait.site.sequence, ") for ", names));
}

}  // namespace shardrec::comm::remote
