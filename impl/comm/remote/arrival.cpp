// How messages of an exchange arrive, and whether peers are in the same exchange as this rank.
#include <new>
#include <string_view>

#include "comm/remote/channel.h"
#include "core/error.h"

namespace shardrec::comm::remote {

bool RemoteChannel::settle_sends(InFlightExchange& exchange) {
  bool settled = true;
  for (int peer = 0; peer < size(); ++peer) {
    PeerTransfers& transfers = exchange.by_peer[static_cast<size_t>(peer)];
    if (transfers.sent()) continue;
    transfers.ask_sending();
    if (transfers.sent()) continue;
    if (group_->stopped_receiving(peer, number_, exchange.sequence)) {
      link_state_->abandon_sending(transfers, exchange.keep_alive);
    } else {
      settled = false;
    }
  }
  return settled;
}

bool RemoteChannel::advance(InFlightExchange& exchange) {
  if (exchange.arrived()) return true;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != group_->rank()) advance_peer(exchange, peer);
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

void RemoteChannel::advance_peer(InFlightExchange& exchange, int peer) {
  PeerTransfers& transfers = exchange.by_peer[static_cast<size_t>(peer)];
  if (transfers.inbound == PeerTransfers::Inbound::kEnvelope) {
    transfers.receiving.wait(0);
    if (!transfers.receiving.done()) return;
    transfers.inbound = PeerTransfers::Inbound::kArrived;
  }
  if (transfers.inbound == PeerTransfers::Inbound::kArrived) parse_envelope(exchange, peer);
  if (transfers.inbound == PeerTransfers::Inbound::kMessage) {
    transfers.receiving.wait(0);
    if (transfers.receiving.done()) transfers.inbound = PeerTransfers::Inbound::kDone;
  }
}

void RemoteChannel::parse_envelope(InFlightExchange& exchange, int peer) {
  PeerTransfers& transfers = exchange.by_peer[static_cast<size_t>(peer)];
  std::string_view wrong = read_envelope(transfers.incoming, transfers.arrived);
  const Envelope& envelope = transfers.arrived;
  if (wrong.empty() && (envelope.group != group_->id() || envelope.channel != number_ ||
                        envelope.sequence != exchange.sequence)) {
    wrong = "it belongs to another exchange";
  }
  if (!wrong.empty()) {
    link_state_->kill_and_throw(*group_,
                                {.cause = Cause::kGarbled,
                                 .failed_rank = peer,
                                 .observer = group_->rank(),
                                 .sequence = exchange.sequence,
                                 .operation = exchange.operation.name,
                                 .reason = std::string(wrong)},
                                call_site_of(exchange));
  }
  if (difference(exchange, peer)) mismatch(exchange);
  group_->set_last_seen(peer, exchange.operation.name);
  if (envelope.bytes <= kInlineBytes) {
    transfers.view = ConstBytes(transfers.incoming).subspan(kInlineAt, envelope.bytes);
    transfers.inbound = PeerTransfers::Inbound::kDone;
    return;
  }
  try {
    std::byte* memory = transfers.message.resize(envelope.bytes);
    transfers.view = {memory, envelope.bytes};
    transfers.receiving.start([&] {
      return link_state_->carrier().receive(
          group_->on_link(peer), tag_of(number_, exchange.sequence, TransferKind::kMessage),
          {memory, envelope.bytes});
    });
    transfers.inbound = PeerTransfers::Inbound::kMessage;
  } catch (...) {
    // The group fails, because this rank cannot receive the message.
    link_state_->kill(*group_, {.cause = Cause::kGaveUp,
                                .failed_rank = group_->rank(),
                                .observer = group_->rank(),
                                .sequence = exchange.sequence,
                                .operation = exchange.operation.name});
    throw;
  }
}

std::optional<Cause> RemoteChannel::difference(const InFlightExchange& exchange, int peer) const {
  const Envelope& theirs = exchange.by_peer[static_cast<size_t>(peer)].arrived;
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
    PeerTransfers& transfers = exchange.by_peer[static_cast<size_t>(peer)];
    if (transfers.inbound == PeerTransfers::Inbound::kEnvelope) {
      transfers.receiving.wait(0);
      if (!transfers.receiving.done()) continue;
      transfers.inbound = PeerTransfers::Inbound::kArrived;
      if (!read_envelope(transfers.incoming, transfers.arrived).empty()) continue;
    }
    const std::optional<Cause> differs = difference(exchange, peer);
    ++(differs ? against_us : with_us);
    if (differs && !cause) {
      cause = differs;
      other = peer;
    }
  }
  // Other ranks report the rank of the smaller side as the failed one.
  const Envelope& theirs = exchange.by_peer[static_cast<size_t>(other)].arrived;
  Failure failure{.cause = cause.value_or(Cause::kOperation),
                  .failed_rank = other,
                  .observer = group_->rank(),
                  .sequence = exchange.sequence,
                  .operation = exchange.operation.name,
                  .failed_rank_operation = std::string(theirs.name),
                  .size = exchange.operation.size,
                  .failed_rank_size = theirs.size};
  if (against_us > with_us + 1) {
    std::swap(failure.failed_rank, failure.observer);
    std::swap(failure.operation, failure.failed_rank_operation);
    std::swap(failure.size, failure.failed_rank_size);
  }
  link_state_->kill_and_throw(*group_, failure, call_site_of(exchange));
}

}  // namespace shardrec::comm::remote
