#include "comm/remote/channel.h"

#include <algorithm>
#include <new>
#include <utility>

#include "core/error.h"

namespace shardrec::comm::remote {

RemoteChannel::RemoteChannel(std::shared_ptr<LinkState> link_state, std::shared_ptr<Group> group,
                             Purpose purpose)
    : link_state_(std::move(link_state)), group_(std::move(group)), purpose_(purpose) {
  pool_.reserve(kRing);
  link_state_->enlist(*this);
}

void RemoteChannel::attach(uint32_t number) noexcept { number_.store(number); }

RemoteChannel::~RemoteChannel() {
  link_state_->delist(*this);
  close();
  // Nobody waits for what is still under way.
  for (auto& exchange : ring_) {
    if (exchange == nullptr) continue;
    for (PeerTransfers& transfers : exchange->by_peer) {
      link_state_->abandon_sending(transfers, exchange->keep_alive);
      link_state_->abandon_receiving(transfers);
    }
  }
}

void RemoteChannel::close() noexcept {
  std::optional<Progress> last = progress();
  if (!last) return;
  last->closed = true;
  for (uint64_t n = last->posted - std::min<uint64_t>(last->posted, kRing); n < last->posted; ++n) {
    if (group_->dead() || at(n) == nullptr || at(n)->sequence != n) continue;
    try {
      if (settle_sends(*at(n))) continue;
      const bool borrowed =
          at(n)->keep_alive == nullptr && std::any_of(at(n)->by_peer.begin(), at(n)->by_peer.end(),
                                                      [](const PeerTransfers& transfers) {
                                                        return transfers.sending[1].pending();
                                                      });
      if (!borrowed) {
        for (PeerTransfers& transfers : at(n)->by_peer) link_state_->abandon_receiving(transfers);
        link_state_->defer_destroy(std::move(at(n)), group_, last->channel);
        continue;
      }
    } catch (...) {  // no memory: as if borrowed
    }
    // The memory may be freed after this call, so this exchange and later ones are not sent.
    last->posted = n;
    break;
  }
  if (!group_->dead() && size() > 1) link_state_->tell(*group_, *last);
  group_->close_channel(last->channel);
}

std::optional<Progress> RemoteChannel::progress() const noexcept {
  const uint32_t number = number_.load();
  if (number == UINT32_MAX) return std::nullopt;
  return Progress{.channel = number, .posted = posted_.load(), .received = arrived_.load()};
}

CallSite RemoteChannel::call_site_of(const InFlightExchange& exchange) const noexcept {
  return {
      .rank = group_->rank(), .operation = exchange.operation.name, .sequence = exchange.sequence};
}

void RemoteChannel::check(const CallSite& site) const {
  if (group_->departed()) {
    core::fail(SHARDREC_CLOSED,
               core::sentence("rank ", site.rank, " has closed or destroyed its communicator; \"",
                              site.operation, "\" needs it"),
               {.rank = site.rank, .operation = site.operation});
  }
  group_->check(site);
}

void RemoteChannel::check_post(const Operation& operation, std::span<const ConstBytes> send) {
  const uint64_t n = posted_.load();
  check({.rank = group_->rank(), .operation = operation.name, .sequence = n});
  if (send.size() != static_cast<size_t>(size())) {
    core::fail(SHARDREC_INTERNAL, core::sentence("post of \"", operation.name, "\" has ",
                                                 send.size(), " messages for ", size(), " ranks"));
  }
  if (n < kMostInFlight || at(n - kMostInFlight) == nullptr) return;
  InFlightExchange& oldest = *at(n - kMostInFlight);
  if (!oldest.released || !oldest.arrived() || !settle_sends(oldest)) {
    core::fail(SHARDREC_INTERNAL,
               core::sentence("post of \"", operation.name, "\" while exchange ", n - kMostInFlight,
                              " of its channel is still being read; at most ", kMostInFlight,
                              " may be in flight"));
  }
  recycle(oldest.sequence);
}

InFlightExchange& RemoteChannel::find_or_make(uint64_t sequence) {
  std::unique_ptr<InFlightExchange>& slot = at(sequence);
  if (slot == nullptr) {
    if (pool_.empty()) {
      slot = std::make_unique<InFlightExchange>(size());
    } else {
      slot = std::move(pool_.back());
      pool_.pop_back();
    }
    slot->sequence = sequence;
    slot->by_peer[static_cast<size_t>(group_->rank())].inbound = PeerTransfers::Inbound::kDone;
  }
  return *slot;
}

void RemoteChannel::recycle_if_over(InFlightExchange& exchange) noexcept {
  if (exchange.released && exchange.reclaimed && exchange.arrived()) recycle(exchange.sequence);
}

void RemoteChannel::recycle(uint64_t sequence) noexcept {
  at(sequence)->clear();
  pool_.push_back(std::move(at(sequence)));
}

InFlightExchange* RemoteChannel::find(Ticket ticket, const char* call) {
  const uint64_t n = ticket.sequence;
  const uint64_t next = posted_.load();
  if (n >= next || next - n > kMostInFlight) {
    core::fail(SHARDREC_INTERNAL,
               core::sentence(call, " of exchange ", n, " of a channel that has posted ", next,
                              " and keeps the last ", kMostInFlight));
  }
  return at(n).get();
}

void RemoteChannel::ask_envelopes(InFlightExchange& exchange) {
  for (int i = 1; i < size(); ++i) {
    const int peer = (group_->rank() + i) % size();
    PeerTransfers& transfers = exchange.by_peer[static_cast<size_t>(peer)];
    if (transfers.inbound != PeerTransfers::Inbound::kNothing) continue;
    transfers.receiving.start([&] {
      return link_state_->carrier().receive(
          group_->on_link(peer), tag_of(number_, exchange.sequence, TransferKind::kEnvelope),
          transfers.incoming);
    });
    transfers.inbound = PeerTransfers::Inbound::kEnvelope;
  }
}

void RemoteChannel::send(InFlightExchange& exchange, std::span<const ConstBytes> messages) {
  Envelope envelope{.purpose = purpose_,
                    .group = group_->id(),
                    .channel = number_,
                    .sequence = exchange.sequence,
                    .kind = exchange.operation.kind,
                    .detail = exchange.operation.detail,
                    .size = exchange.operation.size,
                    .name = exchange.operation.name};
  for (int i = 1; i < size(); ++i) {
    const int peer = (group_->rank() + i) % size();
    if (group_->stopped_receiving(peer, number_, exchange.sequence)) continue;
    PeerTransfers& transfers = exchange.by_peer[static_cast<size_t>(peer)];
    const ConstBytes message = messages[static_cast<size_t>(peer)];
    envelope.bytes = message.size();
    write_envelope(envelope, message, transfers.outgoing);
    const auto start = [&](TransferKind kind, ConstBytes bytes) {
      transfers.sending[static_cast<size_t>(kind)].start([&] {
        return link_state_->carrier().send(group_->on_link(peer),
                                           tag_of(number_, exchange.sequence, kind), bytes);
      });
    };
    start(TransferKind::kEnvelope, transfers.outgoing);
    if (message.size() > kInlineBytes) start(TransferKind::kMessage, message);
  }
}

// A message without a keep_alive is in memory that is only borrowed, and the transfer may outlive the
// group. So a group that was made by a split sends copies of its long messages.
std::shared_ptr<const void> RemoteChannel::copy_of(std::span<const ConstBytes> send_to,
                                                   std::vector<ConstBytes>& copies) const {
  const auto is_long = [](ConstBytes message) { return message.size() > kInlineBytes; };
  if (group_ == link_state_->root() || std::none_of(send_to.begin(), send_to.end(), is_long)) {
    return nullptr;
  }
  const auto memory = std::make_shared<std::vector<std::vector<std::byte>>>();
  for (const ConstBytes message : send_to) {
    memory->emplace_back(message.begin(), message.end());
    copies.emplace_back(memory->back());
  }
  copies[static_cast<size_t>(group_->rank())] = send_to[static_cast<size_t>(group_->rank())];
  return memory;
}

Ticket RemoteChannel::post(const Operation& operation, std::span<const ConstBytes> send_to,
                           std::shared_ptr<const void> keep_alive) {
  const std::lock_guard lock(turn_);
  check_post(operation, send_to);
  std::vector<ConstBytes> copies;
  if (keep_alive == nullptr) keep_alive = copy_of(send_to, copies);
  if (!copies.empty()) send_to = copies;
  const uint64_t n = posted_.load();
  InFlightExchange& exchange = find_or_make(n);
  InFlightExchange& ahead = find_or_make(n + 1);
  exchange.operation = operation;
  exchange.keep_alive = std::move(keep_alive);
  exchange.own = send_to[static_cast<size_t>(group_->rank())];
  try {
    ask_envelopes(exchange);
    send(exchange, send_to);
    ask_envelopes(ahead);
  } catch (...) {
    // The group fails, because only some peers have the message.
    link_state_->kill(*group_, {.cause = Cause::kGaveUp,
                                .failed_rank = group_->rank(),
                                .observer = group_->rank(),
                                .sequence = n,
                                .operation = operation.name});
    throw;
  }
  posted_.store(n + 1);
  count_arrivals();
  link_state_->poke_others(*this);
  return {.sequence = n};
}

void RemoteChannel::release(Ticket ticket) noexcept {
  const std::lock_guard lock(turn_);
  InFlightExchange* exchange = at(ticket.sequence).get();
  if (exchange == nullptr || exchange->sequence != ticket.sequence) return;
  if (ticket.sequence >= posted_.load()) return;
  exchange->released = true;
  recycle_if_over(*exchange);
}

void RemoteChannel::count_arrivals() noexcept {
  uint64_t n = arrived_.load();
  while (n < posted_.load() && (at(n) == nullptr || at(n)->arrived())) ++n;
  arrived_.store(n);
}

bool RemoteChannel::poke() noexcept {
  if (arrived_.load() == posted_.load() || group_->dead()) return false;
  const std::unique_lock lock(turn_, std::try_to_lock);
  if (!lock) return false;
  try {
    return advance_from(arrived_.load());
  } catch (...) {  // it is on record, or its own thread will find it
    return false;
  }
}

void RemoteChannel::flush(Clock::time_point until) noexcept {
  const std::unique_lock lock(turn_, std::try_to_lock);
  if (!lock) return;
  try {
    for (const auto& exchange : ring_) {
      if (exchange == nullptr) continue;
      while (!settle_sends(*exchange)) {
        const auto slow =
            std::find_if(exchange->by_peer.begin(), exchange->by_peer.end(),
                         [](const PeerTransfers& transfers) { return !transfers.sent(); });
        Transfer& transfer = slow->sending[slow->sending[0].done() ? 1 : 0];
        if (transfer.failed() || group_->dead() || Clock::now() >= until) break;
        transfer.wait(0.01);
      }
    }
  } catch (...) {  // it is on record
  }
}

}  // namespace shardrec::comm::remote
