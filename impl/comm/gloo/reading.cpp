// How a receiver reads messages in the memory of their senders (peer_memory.h).
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "comm/gloo/gloo_transport.h"
#include "comm/gloo/slots.h"
#include "core/held_signal.h"

namespace shardrec::comm::gloo_plugin {
namespace {

using plugin::Clock;
using plugin::Failure;
using plugin::sentence;

}  // namespace

void Transport::read_peer_memory(Request& request) {
  {
    const std::lock_guard lock(mutex_);
    Peer& peer = peers_[static_cast<size_t>(request.peer)];
    const auto early = peer.offered.find(request.slot);
    if (early == peer.offered.end()) {
      peer.wanted.insert_or_assign(request.slot, &request);
      return;
    }
    request.offer = early->second;
    request.reading = true;
    peer.offered.erase(early);
  }
  read(request);
}

// Of a request that is marked as being read; it is not any more when this returns. What cannot be
// read fails alone: whether the peer is lost its connection tells.
void Transport::read(Request& request) {
  std::string wrong;
  try {
    if (request.offer.bytes != request.bytes) {
      wrong = sentence("rank ", request.peer, " offered ", request.offer.bytes,
                       " bytes where this rank expects ", request.bytes);
    } else if (!read_offer(peers_[static_cast<size_t>(request.peer)].process, request.offer,
                           request.data)) {
      wrong = sentence("rank ", request.peer, " ended, or took a message back, before it was read");
    } else {
      answer(request);
    }
  } catch (const std::exception& thrown) {
    break_connection(request.peer, message_of(thrown));
    try {
      wrong = message_of(thrown);
    } catch (const std::bad_alloc& none) {
      wrong = message_of(none);  // needs no memory
    }
  }
  const std::lock_guard lock(mutex_);
  request.done = wrong.empty();
  request.wrong = std::move(wrong);
  request.reading = false;
  request.changed.notify_all();
}

// Tells the sender that its memory is its own again.
void Transport::answer(Request& request) {
  auto message = std::make_unique<Message>(mesh_.context, Direction::kSend, &request.answer,
                                           sizeof request.answer);
  {
    const std::lock_guard lock(mutex_);
    request.message = std::move(message);
  }
  const core::HeldSignal held(SIGPIPE);
  request.message->send(request.peer, kAnswers + request.slot, 0, sizeof request.answer);
}

void Transport::accept(int from, const Offer& offer) {
  Request* request = nullptr;
  Request* dropped = nullptr;
  {
    const std::lock_guard lock(mutex_);
    Peer& peer = peers_[static_cast<size_t>(from)];
    const auto wanted = peer.wanted.find(offer.slot);
    if (wanted == peer.wanted.end()) {
      peer.offered.insert_or_assign(offer.slot, offer);
      return;
    }
    request = wanted->second;
    peer.wanted.erase(wanted);
    if (request != nullptr) {
      request->offer = offer;
      request->reading = true;
    } else {
      dropped = &given_up_.emplace_back();
    }
  }
  if (request != nullptr) return read(*request);
  dropped->peer = from;
  dropped->slot = offer.slot;
  answer(*dropped);
}

// The thread of a peer on this machine.
void Transport::accept_offers(int from) {
  Peer& peer = peers_[static_cast<size_t>(from)];
  for (;;) {
    try {
      Offer offer;
      Message next(mesh_.context, Direction::kReceive, &offer, sizeof offer);
      {
        const std::lock_guard lock(mutex_);
        if (closing_ || peer.lost) return;
        peer.next_offer = &next;
      }
      std::string wrong;
      Ended ended = Ended::kFailed;
      try {
        next.recv(from, kOfferSlot, 0, sizeof offer);
        ended = next.wait(Clock::time_point::max());
        if (ended == Ended::kFailed) wrong = next.why();
      } catch (const std::exception& thrown) {
        wrong = message_of(thrown);
      }
      {
        const std::lock_guard lock(mutex_);
        peer.next_offer = nullptr;
      }
      if (ended == Ended::kFailed) break_connection(from, wrong);
      if (ended != Ended::kDone) return;
      accept(from, offer);
    } catch (const std::exception& thrown) {
      return break_connection(from, message_of(thrown));
    }
  }
}

void Transport::start_readers() {
  for (int peer = 0; peer < size_; ++peer) {
    Peer& near = peers_[static_cast<size_t>(peer)];
    if (near.least_read != UINT64_MAX)
      near.reader = plugin::start_thread([this, peer] { accept_offers(peer); });
  }
}

// The receiver reads it no more, or in vain.
void Transport::withdraw(Request& request) noexcept {
  if (request.guard != nullptr) guard_words_.take_away(*std::exchange(request.guard, nullptr));
}

int32_t Transport::wait_for_reader(Request& request, Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  const Peer& peer = peers_[static_cast<size_t>(request.peer)];
  const auto over = [&] {
    const bool ended = request.done || !request.wrong.empty() || peer.lost || cancelled_;
    return ended && !request.reading;
  };
  if (deadline != kNow) request.changed.wait_until(lock, deadline, over);
  if (!over()) return SHARDREC_TRANSPORT_TIMEOUT;
  if (request.done) return SHARDREC_TRANSPORT_OK;
  if (!request.wrong.empty()) throw Failure(SHARDREC_TRANSPORT_FAILED, request.peer, request.wrong);
  if (!peer.lost) return SHARDREC_TRANSPORT_CANCELLED;
  lock.unlock();
  fail(request.peer);
}

}  // namespace shardrec::comm::gloo_plugin
