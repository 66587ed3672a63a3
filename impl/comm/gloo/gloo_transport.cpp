#include "comm/gloo/gloo_transport.h"

#include <gloo/transport/pair.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "comm/gloo/slots.h"
#include "core/held_signal.h"

namespace shardrec::comm::gloo_plugin {
namespace {

using plugin::Clock;
using plugin::Failure;
using plugin::sentence;

constexpr std::chrono::seconds kAWhile{1};

}  // namespace

Transport::Transport(const shardrec_transport_job& job, const Peering& peering,
                     Clock::time_point deadline)
    : rank_(job.rank), size_(job.size), peers_(static_cast<size_t>(job.size)) {
  if (size_ == 1) return;
  try {
    meet(job, peering, deadline);
  } catch (...) {
    close_connections();
    throw;
  }
}

Transport::~Transport() { close_connections(); }

void Transport::close_connections() noexcept {
  cancel();
  if (!watcher_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    if (loss_check_ != nullptr) loss_check_->end();
    for (const Peer& peer : peers_) {
      if (peer.next_offer != nullptr) peer.next_offer->end();
    }
  }
  watcher_.join();
  for (Peer& peer : peers_) {
    if (peer.reader.joinable()) peer.reader.join();
  }
  for (Request& request : live_) withdraw(request);
  live_.clear();
  given_up_.clear();
  // Each takes up to 10 ms, a turn of Gloo's loop. Not close(), which drops what is still to be
  // sent.
  constexpr int kAtOnce = 16;
  std::vector<std::thread> threads;
  const auto close_some = [this](int first, int step) {
    for (int peer = first; peer < size_; peer += step) mesh_.context->getPair(peer).reset();
  };
  const int helpers = std::min(size_ / 8, kAtOnce);
  int started = 0;
  try {
    threads.reserve(static_cast<size_t>(helpers));  // so that none is lost once it runs
    for (; started < helpers; ++started)
      threads.push_back(plugin::start_thread([=] { close_some(started, helpers); }));
  } catch (const std::exception&) {  // no thread to be had: what is left is closed below
  }
  for (std::thread& thread : threads) thread.join();
  close_some(0, 1);
  mesh_.context.reset();
  mesh_.device.reset();
}

Request* Transport::send(int peer, uint64_t slot, const void* data, uint64_t bytes) {
  // Gloo has one type of buffer for both ways; it does not write to this one.
  return start(Direction::kSend, peer, slot, const_cast<void*>(data), bytes);
}

Request* Transport::receive(int peer, uint64_t slot, void* data, uint64_t bytes) {
  return start(Direction::kReceive, peer, slot, data, bytes);
}

Request* Transport::start(Direction direction, int peer, uint64_t slot, void* data,
                          uint64_t bytes) {
  if (peer < 0 || peer >= size_ || peer == rank_ || !is_peer(peer))
    throw Failure(SHARDREC_TRANSPORT_UNUSABLE, -1,
                  sentence("rank ", peer, " is not a peer of rank ", rank_, " of ", size_));
  std::list<Request> made(1);
  Request& request = made.front();
  request.peer = peer;
  request.direction = direction;
  request.slot = slot;
  request.data = data;
  request.bytes = bytes;
  request.place = made.begin();
  prepare(request);
  bool lost = false;
  {
    const std::lock_guard lock(mutex_);
    lost = peers_[static_cast<size_t>(peer)].lost;
    if (cancelled_ && request.message != nullptr) request.message->end();
    if (!lost) live_.splice(live_.end(), made);
  }
  if (lost) {
    withdraw(request);
    fail(peer);
  }
  try {
    if (request.in_peer_memory && direction == Direction::kReceive) {
      read_peer_memory(request);
    } else {
      const core::HeldSignal held(SIGPIPE);
      hand_over(request);
    }
  } catch (const std::exception& thrown) {
    // Gloo's books may not be right after it: nothing more goes over this connection.
    break_connection(peer, message_of(thrown));
    forget(request);
    if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr) throw;
    fail(peer);
  }
  return &request;
}

// Makes the messages that Gloo is to carry.
void Transport::prepare(Request& request) {
  const Peer& peer = peers_[static_cast<size_t>(request.peer)];
  const bool sends = request.direction == Direction::kSend;
  const auto message = [&](Direction direction, void* data, uint64_t bytes) {
    return std::make_unique<Message>(mesh_.context, direction, data, bytes);
  };
  request.in_peer_memory = request.bytes >= (sends ? peer.least_sent : peer.least_read);
  if (!request.in_peer_memory) {
    void* memory = request.data;
    if (request.bytes <= kShort) {
      request.copy.resize(request.bytes);
      memory = request.copy.data();
      if (sends && request.bytes > 0) std::memcpy(memory, request.data, request.bytes);
    }
    request.message = message(request.direction, memory, request.bytes);
  } else if (sends) {
    request.message = message(Direction::kReceive, &request.answer, sizeof request.answer);
    request.offering = message(Direction::kSend, &request.offer, sizeof request.offer);
    request.guard = &guard_words_.put();
    request.offer = {.slot = request.slot,
                     .bytes = request.bytes,
                     .data = std::bit_cast<uint64_t>(request.data),
                     .guard_at = std::bit_cast<uint64_t>(request.guard),
                     .guard = request.guard->load()};
  }
}

void Transport::hand_over(Request& request) {
  Message& message = *request.message;
  if (request.in_peer_memory) {
    message.recv(request.peer, kAnswers + request.slot, 0, sizeof request.answer);
    request.offering->send(request.peer, kOfferSlot, 0, sizeof request.offer);
  } else if (request.direction == Direction::kSend) {
    message.send(request.peer, request.slot, 0, request.bytes);
  } else {
    message.recv(request.peer, request.slot, 0, request.bytes);
  }
}

int32_t Transport::wait(Request& request, double seconds) {
  const Clock::time_point deadline = seconds > 0 ? plugin::after(seconds) : kNow;
  if (request.in_peer_memory && request.direction == Direction::kReceive)
    return wait_for_reader(request, deadline);
  if (request.done) return SHARDREC_TRANSPORT_OK;
  switch (request.message->wait(deadline)) {
    case Ended::kDone:
      request.done = true;
      if (request.direction == Direction::kReceive && !request.copy.empty())
        std::memcpy(request.data, request.copy.data(), request.copy.size());
      return SHARDREC_TRANSPORT_OK;
    case Ended::kTimeout:
      return SHARDREC_TRANSPORT_TIMEOUT;
    case Ended::kFailed:
      lose(request.peer, request.message->why());
      fail(request.peer);
    case Ended::kEnded:
      break;
  }
  if (is_lost(request.peer)) fail(request.peer);
  return SHARDREC_TRANSPORT_CANCELLED;
}

void Transport::forget(Request& request) noexcept {
  withdraw(request);
  bool stays = false;  // Gloo may still use its memory
  if (request.in_peer_memory) {
    std::unique_lock lock(mutex_);
    // Not wait(), which is younger than the oldest C++ library that a plug-in has to run with.
    const auto read = [&] { return !request.reading; };
    while (!request.changed.wait_for(lock, kAWhile, read)) {
    }
    Peer& peer = peers_[static_cast<size_t>(request.peer)];
    const auto wanted = peer.wanted.find(request.slot);
    const bool mine = wanted != peer.wanted.end() && wanted->second == &request;
    if (mine) wanted->second = nullptr;
    stays = !peer.lost && request.message != nullptr;
  } else {
    stays = !request.done && !is_lost(request.peer);
  }
  stays = stays && request.message->wait(kNow) != Ended::kDone;
  if (stays && !request.in_peer_memory && request.bytes > kShort) {
    break_connection(request.peer, "a message was given up before it was through");
    stays = false;
  }
  std::list<Request> gone;  // destroyed without the lock: Gloo may be in its message for a moment
  const std::lock_guard lock(mutex_);
  (stays ? given_up_ : gone).splice(stays ? given_up_.end() : gone.end(), live_, request.place);
}

void Transport::cancel() noexcept {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  for (Request& request : live_) end(request);
}

// Of waits for it.
void Transport::end(Request& request) noexcept {
  if (request.message != nullptr) request.message->end();
  request.changed.notify_all();
}

void Transport::break_connection(int peer, std::string_view why) noexcept {
  lose(peer, why);
  mesh_.context->getPair(peer)->close();
}

void Transport::lose(int peer, std::string_view why) noexcept {
  const std::lock_guard lock(mutex_);
  Peer& lost = peers_[static_cast<size_t>(peer)];
  if (lost.lost) return;
  lost.lost = true;
  try {
    lost.why = why;
  } catch (const std::bad_alloc&) {  // the reason stays empty
  }
  for (Request& request : live_) {
    if (request.peer == peer) end(request);
  }
}

bool Transport::reads_memory_of(int peer) const noexcept {
  const Peer& there = peers_[static_cast<size_t>(peer)];
  return there.least_sent != UINT64_MAX && there.least_read != UINT64_MAX;
}

bool Transport::is_lost(int peer) const {
  const std::lock_guard lock(mutex_);
  return peers_[static_cast<size_t>(peer)].lost;
}

void Transport::watch() {
  char nothing = 0;
  for (;;) {
    std::unique_ptr<Message> loss_check;
    try {
      loss_check =
          std::make_unique<Message>(mesh_.context, Direction::kReceive, &nothing, sizeof nothing);
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    {
      const std::lock_guard lock(mutex_);
      if (closing_) return;
      loss_check_ = loss_check.get();
    }
    if (loss_check == nullptr) continue;
    for (int peer = 0; peer < size_; ++peer) {
      if (!is_peer(peer) || is_lost(peer)) continue;
      try {
        loss_check->recv(peer, kLossCheckSlot, 0, sizeof nothing);
      } catch (const std::exception& thrown) {
        break_connection(peer, message_of(thrown));
      }
    }
    // Ends when some connection is lost: whose, the next round finds out.
    loss_check->wait(Clock::time_point::max());
    const std::lock_guard lock(mutex_);
    loss_check_ = nullptr;
  }
}

void Transport::fail(int peer) const {
  const std::lock_guard lock(mutex_);
  throw Failure(SHARDREC_TRANSPORT_FAILED, peer,
                sentence("the connection to rank ", peer,
                         " is lost: ", peers_[static_cast<size_t>(peer)].why));
}

}  // namespace shardrec::comm::gloo_plugin
