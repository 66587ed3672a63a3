// What has come of an exchange, and whether it is the exchange that this rank is in.
#include <new>
#include <string_view>

#include "comm/remote/channel.h"
#include "core/error.h"

namespace shardrec::comm::remote {

bool RemoteChannel::settle_sends(InFlightExchange& exchange) {
  bool settled = true;
  for (int peer = 0; peer < size(); ++peer) {
    Leg& leg = exchange.legs[static_cast<size_t>(peer)];
    if (leg.sent()) continue;
    leg.ask_sending();
    if (leg.sent()) continue;
    if (group_->stopped_receiving(peer, number_, exchange.sequence)) {
      hub_->abandon_sending(leg, exchange.owner);
    } else {
      settled = false;
    }
  }
  return settled;
}

bool RemoteChannel::advance(InFlightExchange& exchange) {
  if (exchange.arrived()) return true;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != group_->rank()) advance_leg(exchange, peer);
  }
  if (!exchange.arrived()) return false;
  count_arrivals();
  return true;
}

bool RemoteChannel::advance_from(uint64_t sequence) {
  bool expecting = false;
  for (; sequence < posted_.load(); ++sequence) {
    if (at(sequence) != nullptr && !advance(*at(sequence))) expecting = true;
  }
  return expecting;
}

void RemoteChannel::advance_leg(InFlightExchange& exchange, int peer) {
  Leg& leg = exchange.legs[static_cast<size_t>(peer)];
  if (leg.inbound == Leg::Inbound::kEnvelope) {
    leg.receiving.wait(0);
    if (!leg.receiving.done()) return;
    leg.inbound = Leg::Inbound::kArrived;
  }
  if (leg.inbound == Leg::Inbound::kArrived) open(exchange, peer);
  if (leg.inbound == Leg::Inbound::kMessage) {
    leg.receiving.wait(0);
    if (leg.receiving.done()) leg.inbound = Leg::Inbound::kDone;
  }
}

void RemoteChannel::open(InFlightExchange& exchange, int peer) {
  Leg& leg = exchange.legs[static_cast<size_t>(peer)];
  std::string_view wrong = read_envelope(leg.incoming, leg.arrived);
  const Envelope& envelope = leg.arrived;
  if (wrong.empty() && (envelope.group != group_->id() || envelope.channel != number_ ||
                        envelope.sequence != exchange.sequence)) {
    wrong = "it belongs to another exchange";
  }
  if (!wrong.empty()) {
    hub_->kill_and_throw(*group_,
                         {.cause = Cause::kGarbled,
                          .culprit = peer,
                          .witness = group_->rank(),
                          .sequence = exchange.sequence,
                          .operation = exchange.operation.name,
                          .reason = std::string(wrong)},
                         call_site_of(exchange));
  }
  if (difference(exchange, peer)) mismatch(exchange);
  group_->set_last_seen(peer, exchange.operation.name);
  if (envelope.bytes <= kInlineBytes) {
    leg.view = ConstBytes(leg.incoming).subspan(kInlineAt, envelope.bytes);
    leg.inbound = Leg::Inbound::kDone;
    return;
  }
  try {
    std::byte* memory = leg.message.resize(envelope.bytes);
    leg.view = {memory, envelope.bytes};
    leg.receiving.start([&] {
      return hub_->carrier().receive(group_->on_link(peer),
                                     tag_of(number_, exchange.sequence, TransferKind::kMessage),
                                     {memory, envelope.bytes});
    });
    leg.inbound = Leg::Inbound::kMessage;
  } catch (...) {
    // This rank cannot take what it is sent, so that its peers must not go on.
    hub_->kill(*group_, {.cause = Cause::kGaveUp,
                         .culprit = group_->rank(),
                         .witness = group_->rank(),
                         .sequence = exchange.sequence,
                         .operation = exchange.operation.name});
    throw;
  }
}

std::optional<Cause> RemoteChannel::difference(const InFlightExchange& exchange, int peer) const {
  const Envelope& theirs = exchange.legs[static_cast<size_t>(peer)].arrived;
  const Operation& ours = exchange.operation;
  if (theirs.purpose != purpose_) return Cause::kPurpose;
  if (theirs.kind != ours.kind) return Cause::kOperation;
  if (theirs.size != ours.size) return Cause::kSize;
  if (theirs.detail != ours.detail) return Cause::kArguments;
  return std::nullopt;
}

void RemoteChannel::mismatch(InFlightExchange& exchange) {
  std::optional<Cause> cause;
  int other = 0;
  int with_us = 0;
  int against_us = 0;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == group_->rank()) continue;
    Leg& leg = exchange.legs[static_cast<size_t>(peer)];
    if (leg.inbound == Leg::Inbound::kEnvelope) {
      leg.receiving.wait(0);
      if (!leg.receiving.done()) continue;
      leg.inbound = Leg::Inbound::kArrived;
      if (!read_envelope(leg.incoming, leg.arrived).empty()) continue;
    }
    const std::optional<Cause> differs = difference(exchange, peer);
    ++(differs ? against_us : with_us);
    if (differs && !cause) {
      cause = differs;
      other = peer;
    }
  }
  // Third parties are pointed at the side that fewer ranks have taken.
  const Envelope& theirs = exchange.legs[static_cast<size_t>(other)].arrived;
  Failure failure{.cause = cause.value_or(Cause::kOperation),
                  .culprit = other,
                  .witness = group_->rank(),
                  .sequence = exchange.sequence,
                  .operation = exchange.operation.name,
                  .culprit_operation = std::string(theirs.name),
                  .size = exchange.operation.size,
                  .culprit_size = theirs.size};
  if (against_us > with_us + 1) {
    std::swap(failure.culprit, failure.witness);
    std::swap(failure.operation, failure.culprit_operation);
    std::swap(failure.size, failure.culprit_size);
  }
  hub_->kill_and_throw(*group_, failure, call_site_of(exchange));
}

}  // namespace shardrec::comm::remote
