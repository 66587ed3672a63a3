#include "comm/rendezvous/server/server_loop.h"

#include <algorithm>
#include <exception>
#include <new>

#include "core/error.h"
#include "core/log.h"

namespace shardrec::comm::rendezvous {
namespace {

constexpr size_t kScratchBytes = 65536;
constexpr milliseconds kAcceptPause{50};
// Between looks at deadlines of connections, while there are such.
constexpr milliseconds kLook{50};

void log_end(const std::exception& error) noexcept {
  try {
    core::log(SHARDREC_LOG_ERROR, -1, core::sentence("the rendezvous has ended: ", error.what()));
  } catch (const std::bad_alloc&) {  // then the peers get no reason
  }
}

}  // namespace

ServerLoop::ServerLoop(Listener listener, milliseconds silence)
    : listener_(std::move(listener)),
      job_(*this, silence),
      silence_(silence),
      beat_interval_(beat_interval(silence)),
      awake_(Clock::now(), 2 * beat_interval_),
      next_beat_(Clock::now()),
      scratch_(kScratchBytes) {
  poller_.add(alarm_.descriptor(), kAlarm);
  poller_.add(listener_.socket().descriptor(), kListener);
}

void ServerLoop::stop() noexcept {
  stopping_.store(true);
  alarm_.ring();
}

void ServerLoop::run() noexcept {
  try {
    while (!is_over(Clock::now())) turn();
  } catch (const std::exception& error) {
    // The ranks notice that their connections end, and who comes finds nobody listening.
    peers_.clear();
    listener_.end();
    log_end(error);
  }
}

void ServerLoop::turn() {
  for (const Poller::Event& event : poller_.wait(pause(Clock::now()))) {
    const Clock::time_point now = Clock::now();
    if (event.name == kAlarm) {
      alarm_.hush();
    } else if (event.name == kListener) {
      accept_connections(now);
    } else if (listener_.knows(event.name)) {
      if (auto arrival = listener_.receive_answer(event.name)) {
        welcome(event.name, std::move(*arrival), now);
      }
    } else if (const auto found = peers_.find(event.name); found != peers_.end()) {
      if (event.readable) hear(event.name, found->second);
      if (event.writable) mark(event.name, found->second);
    }
  }
  settle();
  const Clock::time_point now = Clock::now();
  awake_.tick(now);
  if (now >= next_beat_) {
    next_beat_ = now + beat_interval_;
    job_.beat(awake_.now(), listener_.turned_away());
    settle();
  }
  if (accepts_again_ && now >= *accepts_again_) {
    accepts_again_.reset();
    poller_.change(listener_.socket().descriptor(), kListener, {});
  }
  listener_.clear(now);
  drop_late_joins(now);
  joined_.store(job_.present());
  unauthenticated_.store(listener_.count());
  turned_away_.store(listener_.turned_away());
}

milliseconds ServerLoop::pause(Clock::time_point now) const {
  const bool hurried = listener_.count() > 0 || peers_.size() > members_.size() || accepts_again_ ||
                       stopping_.load();
  const auto until_beat = std::chrono::ceil<milliseconds>(next_beat_ - now);
  return hurried ? std::min(kLook, until_beat) : until_beat;
}

bool ServerLoop::is_over(Clock::time_point now) {
  if (!stopping_.load()) return false;
  if (!stop_began_) stop_began_ = now;
  const bool all_left = job_.present() == 0;
  if (!end_began_ && (all_left || now - *stop_began_ >= kGoodbyeTime)) {
    end_began_ = now;
    job_.end();
    settle();
  }
  return end_began_ && (peers_.empty() || now - *end_began_ >= kGoodbyeTime);
}

void ServerLoop::accept_connections(Clock::time_point now) {
  // Enough ranks for any group: the others wait outside.
  const bool room = peers_.size() < static_cast<size_t>(kMostRanks) + kMostUnauthenticated;
  try {
    if (room && listener_.accept_connections(poller_, next_name_, now)) return;
  } catch (const core::Error& error) {
    // A group that has formed does without.
    if (job_.formed()) return;
    job_.give_up(error.sentence());
    listener_.end();
    return settle();
  }
  accepts_again_ = now + kAcceptPause;
  poller_.change(listener_.socket().descriptor(), kListener, {.read = false});
}

void ServerLoop::welcome(uint64_t name, Listener::Authenticated arrival, Clock::time_point now) {
  Peer& peer = peers_
                   .emplace(name, Peer{.connection = Connection(std::move(arrival.socket)),
                                       .rank = arrival.rank,
                                       .since = now})
                   .first->second;
  peer.connection.socket().watch(silence_);
  queue(name, peer, arrival.verdict);
}

void ServerLoop::hear(uint64_t name, Peer& peer) {
  try {
    const bool open =
        peer.connection.receive(scratch_, [&](const Frame& frame) { handle(name, peer, frame); });
    if (!open) peer.broken = peer.connection.how();
  } catch (const core::Error& error) {
    peer.broken = error.sentence();
  } catch (const std::bad_alloc&) {
    peer.broken = "the rendezvous has no memory for what it sends";
  }
  if (!peer.broken.empty()) mark(name, peer);
}

void ServerLoop::handle(uint64_t name, Peer& peer, const Frame& frame) {
  if (peer.closing || !peer.broken.empty()) return;
  if (peer.member) return job_.hear(peer.rank, frame, awake_.now());
  const Join join = frame.kind == FrameKind::kJoin ? read<Join>(frame.payload) : Join{.rank = -1};
  if (join.rank != peer.rank) {
    core::fail(SHARDREC_CORRUPT_DATA, "a connection does not begin with its rank joining");
  }
  // A rank that is in keeps its way until the job has had its say.
  const auto before = members_.find(peer.rank);
  const bool first = before == members_.end();
  if (first) members_[peer.rank] = name;
  peer.member = true;
  const std::optional<Refused> refused = job_.join(join, awake_.now());
  if (!refused) return;
  peer.member = false;
  if (first) members_.erase(peer.rank);
  queue(name, peer, framed(*refused));
  close(name, peer);
}

ServerLoop::Peer* ServerLoop::peer_of(int rank, uint64_t& name) {
  const auto member = members_.find(rank);
  if (member == members_.end()) return nullptr;
  name = member->second;
  const auto peer = peers_.find(name);
  return peer == peers_.end() ? nullptr : &peer->second;
}

void ServerLoop::send(int rank, ConstBytes frame) {
  uint64_t name = 0;
  if (Peer* peer = peer_of(rank, name)) queue(name, *peer, frame);
}

void ServerLoop::close(int rank) {
  uint64_t name = 0;
  Peer* peer = peer_of(rank, name);
  members_.erase(rank);
  if (peer != nullptr) close(name, *peer);
}

void ServerLoop::close(uint64_t name, Peer& peer) {
  peer.closing = true;
  peer.member = false;
  peer.since = Clock::now();
  mark(name, peer);
}

void ServerLoop::queue(uint64_t name, Peer& peer, ConstBytes bytes) {
  if (peer.connection.queued() + bytes.size() > kMostUnread) {
    peer.broken = core::sentence("it has left more than ", kMostUnread, " bytes unread");
  } else {
    peer.connection.queue(bytes);
  }
  mark(name, peer);
}

void ServerLoop::mark(uint64_t name, Peer& peer) {
  if (peer.dirty) return;
  dirty_.push_back(name);
  peer.dirty = true;
}

void ServerLoop::settle() {
  for (size_t i = 0; i < dirty_.size(); ++i) {  // it grows on the way
    const uint64_t name = dirty_[i];
    const auto found = peers_.find(name);
    if (found == peers_.end()) continue;
    Peer& peer = found->second;
    peer.dirty = false;
    if (peer.broken.empty() && !peer.connection.flush()) peer.broken = peer.connection.how();
    if (!peer.broken.empty()) {
      drop(name);
      continue;
    }
    const size_t queued = peer.connection.queued();
    if (peer.closing && queued == 0 && !peer.finished) {
      peer.finished = true;
      peer.connection.socket().finish();
    }
    const Interest interest{.read = queued < kMuchUnread, .write = queued > 0};
    if (interest != peer.interest) {
      peer.interest = interest;
      poller_.change(peer.connection.socket().descriptor(), name, interest);
    }
  }
  dirty_.clear();
}

void ServerLoop::drop(uint64_t name) {
  const auto found = peers_.find(name);
  const bool member = found->second.member;
  const int rank = found->second.rank;
  const std::string how = found->second.broken;
  peers_.erase(found);
  if (!member) return;
  members_.erase(rank);
  job_.broken(rank, how);
}

void ServerLoop::drop_late_joins(Clock::time_point now) {
  if (peers_.size() == members_.size()) return;
  for (auto& [name, peer] : peers_) {
    if (peer.member) continue;
    const milliseconds most = peer.closing ? kGoodbyeTime : kHandshakeTime;
    if (now - peer.since <= most) continue;
    peer.broken = "it was late";
    mark(name, peer);
  }
  settle();
}

}  // namespace shardrec::comm::rendezvous
