#include "comm/gloo/gloo_transport.h"

#include <gloo/transport/pair.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "comm/gloo/sigpipe.h"

namespace shardrec::comm::gloo_plugin {
namespace {

using plugin::Clock;
using plugin::Failure;
using plugin::sentence;

constexpr uint64_t kShort = 16 << 10;  // messages up to here are copied: giving them up is harmless
// Slots above those of tags.
constexpr uint64_t kGreetingSlot = uint64_t{1} << SHARDREC_TRANSPORT_TAG_BITS;
constexpr uint64_t kCanarySlot = kGreetingSlot + 1;
constexpr double kGlance = 0.1;  // seconds

// Connections are lost because somebody has given the meeting up: whoever knows of the death of a
// third rank first. The job tells all ranks of it, if a little later. Throws what it says.
void hear_why(const shardrec_transport_job& job) {
  constexpr std::chrono::milliseconds kGrace{500};
  const Clock::time_point until = Clock::now() + kGrace;
  while (Clock::now() < until) {
    check_job(job);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

Transport::Transport(const shardrec_transport_job& job)
    : rank_(job.rank), size_(job.size), peers_(static_cast<size_t>(job.size)) {
  if (size_ == 1) return;
  try {
    meet(job, plugin::after(job.seconds));
  } catch (const Failure& failure) {
    if (failure.status() == SHARDREC_TRANSPORT_FAILED) hear_why(job);
    throw;
  }
}

void Transport::meet(const shardrec_transport_job& job, Clock::time_point deadline) {
  mesh_ = connect_mesh(job, deadline);
  watcher_ = plugin::start_thread([this] { watch(); });
  try {
    greet(job, deadline);
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
    if (canary_ != nullptr) canary_->end();
  }
  watcher_.join();
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
    for (; started < helpers; ++started)
      threads.push_back(plugin::start_thread([=] { close_some(started, helpers); }));
  } catch (const std::exception&) {  // no thread to be had: what is left is closed below
  }
  for (std::thread& thread : threads) thread.join();
  close_some(0, 1);
  mesh_.context.reset();
  mesh_.device.reset();
}

// Both ends of each connection show that they have read the job's store.
void Transport::greet(const shardrec_transport_job& job, Clock::time_point deadline) {
  const auto peers = static_cast<size_t>(size_);
  std::vector<Secret> received(peers);
  std::vector<Request*> requests;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    const auto at = static_cast<size_t>(peer);
    requests.push_back(receive(peer, kGreetingSlot, received[at].data(), sizeof(Secret)));
    requests.push_back(send(peer, kGreetingSlot, mesh_.presented[at].data(), sizeof(Secret)));
  }
  for (Request* request : requests) {
    for (;;) {
      const int32_t status = wait(*request, kGlance);
      if (status == SHARDREC_TRANSPORT_OK) break;
      if (status != SHARDREC_TRANSPORT_TIMEOUT) fail(request->peer);
      check_job(job);
      if (Clock::now() >= deadline)
        throw Failure(SHARDREC_TRANSPORT_TIMEOUT, request->peer,
                      sentence("rank ", request->peer, " did not greet in time"));
    }
    const auto at = static_cast<size_t>(request->peer);
    if (request->way == Way::kReceive && received[at] != mesh_.expected[at])
      throw Failure(SHARDREC_TRANSPORT_FAILED, request->peer,
                    sentence("a stranger connected in place of rank ", request->peer));
  }
  for (Request* request : requests) forget(*request);
}

Request* Transport::send(int peer, uint64_t slot, const void* data, uint64_t bytes) {
  // Gloo has one type of buffer for both ways; it does not write to this one.
  return start(Way::kSend, peer, slot, const_cast<void*>(data), bytes);
}

Request* Transport::receive(int peer, uint64_t slot, void* data, uint64_t bytes) {
  return start(Way::kReceive, peer, slot, data, bytes);
}

Request* Transport::start(Way way, int peer, uint64_t slot, void* data, uint64_t bytes) {
  if (peer < 0 || peer >= size_ || peer == rank_)
    throw Failure(SHARDREC_TRANSPORT_UNUSABLE, -1,
                  sentence("rank ", peer, " is not a peer of rank ", rank_, " of ", size_));
  std::list<Request> made(1);
  Request& request = made.front();
  request.peer = peer;
  request.way = way;
  request.data = data;
  request.place = made.begin();
  void* memory = data;
  if (bytes <= kShort) {
    request.copy.resize(bytes);
    if (way == Way::kSend && bytes > 0) std::memcpy(request.copy.data(), data, bytes);
    memory = request.copy.data();
  }
  request.message = std::make_unique<Message>(mesh_.context, way, memory, bytes);
  bool lost = false;
  {
    const std::lock_guard lock(mutex_);
    lost = peers_[static_cast<size_t>(peer)].lost;
    if (cancelled_) request.message->end();
    if (!lost) live_.splice(live_.end(), made);
  }
  if (lost) fail(peer);
  try {
    const SigpipeHeld held;
    if (way == Way::kSend) {
      request.message->send(peer, slot, 0, bytes);
    } else {
      request.message->recv(peer, slot, 0, bytes);
    }
  } catch (const std::exception& thrown) {
    // Gloo's books may not be right after it: nothing more goes over this connection.
    lose(peer, message_of(thrown));
    mesh_.context->getPair(peer)->close();
    forget(request);
    if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr) throw;
    fail(peer);
  }
  return &request;
}

int32_t Transport::wait(Request& request, double seconds) {
  if (request.done) return SHARDREC_TRANSPORT_OK;
  switch (request.message->wait(seconds > 0 ? plugin::after(seconds) : kNow)) {
    case Ended::kDone:
      request.done = true;
      if (request.way == Way::kReceive && !request.copy.empty())
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
  const bool is_short = request.message->size <= kShort;
  const bool under_way =
      !request.done && !is_lost(request.peer) && request.message->wait(kNow) != Ended::kDone;
  if (under_way && !is_short) {
    lose(request.peer, "a message was given up before it was through");
    mesh_.context->getPair(request.peer)->close();
  }
  std::list<Request> gone;  // destroyed without the lock: Gloo may be in its message for a moment
  const std::lock_guard lock(mutex_);
  if (under_way && is_short) {
    given_up_.splice(given_up_.end(), live_, request.place);
  } else {
    gone.splice(gone.end(), live_, request.place);
  }
}

void Transport::cancel() noexcept {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  for (Request& request : live_) request.message->end();
}

void Transport::lose(int peer, const std::string& why) noexcept {
  const std::lock_guard lock(mutex_);
  Peer& lost = peers_[static_cast<size_t>(peer)];
  if (lost.lost) return;
  lost.lost = true;
  try {
    lost.why = why;
  } catch (const std::bad_alloc&) {  // the reason stays empty
  }
  for (Request& request : live_) {
    if (request.peer == peer) request.message->end();
  }
}

bool Transport::is_lost(int peer) const {
  const std::lock_guard lock(mutex_);
  return peers_[static_cast<size_t>(peer)].lost;
}

void Transport::watch() {
  char nothing = 0;
  for (;;) {
    std::unique_ptr<Message> canary;
    try {
      canary = std::make_unique<Message>(mesh_.context, Way::kReceive, &nothing, sizeof nothing);
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    {
      const std::lock_guard lock(mutex_);
      if (closing_) return;
      canary_ = canary.get();
    }
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_ || is_lost(peer)) continue;
      try {
        canary->recv(peer, kCanarySlot, 0, sizeof nothing);
      } catch (const std::exception& thrown) {
        lose(peer, message_of(thrown));
      }
    }
    // Ends when some connection is lost: whose, the next round finds out.
    canary->wait(Clock::time_point::max());
    const std::lock_guard lock(mutex_);
    canary_ = nullptr;
  }
}

void Transport::fail(int peer) const {
  const std::lock_guard lock(mutex_);
  throw Failure(SHARDREC_TRANSPORT_FAILED, peer,
                sentence("the connection to rank ", peer,
                         " is lost: ", peers_[static_cast<size_t>(peer)].why));
}

}  // namespace shardrec::comm::gloo_plugin
