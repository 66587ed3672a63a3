#include "comm/rendezvous/server_loop.h"

#include <algorithm>
#include <exception>
#include <new>

#include "core/error.h"
#include "core/log.h"

namespace shardrec::comm::rendezvous {
namespace {

constexpr size_t kScratchBytes = 65536;
constexpr milliseconds kShutDoor{50};
// Between looks at deadlines of connections, while there are such.
constexpr milliseconds kLook{50};

void log_end(const std::exception& error) noexcept {
  try {
    core::log(SHARDREC_LOG_ERROR, -1, core::sentence("the rendezvous has ended: ", error.what()));
  } catch (const std::bad_alloc&) {  // then nobody is told why
  }
}

}  // namespace

ServerLoop::ServerLoop(Reception reception, milliseconds silence)
    : reception_(std::move(reception)),
      job_(*this, silence),
      silence_(silence),
      beat_interval_(beat_interval(silence)),
      awake_(Clock::now(), 2 * beat_interval_),
      next_beat_(Clock::now()),
      scratch_(kScratchBytes) {
  poller_.add(alarm_.descriptor(), kAlarm);
  poller_.add(reception_.listener().descriptor(), kDoor);
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
    guests_.clear();
    reception_.end();
    log_end(error);
  }
}

void ServerLoop::turn() {
  for (const Poller::Event& event : poller_.wait(pause(Clock::now()))) {
    const Clock::time_point now = Clock::now();
    if (event.name == kAlarm) {
      alarm_.hush();
    } else if (event.name == kDoor) {
      open_door(now);
    } else if (reception_.knows(event.name)) {
      if (auto arrival = reception_.listen_to(event.name)) {
        welcome(event.name, std::move(*arrival), now);
      }
    } else if (const auto found = guests_.find(event.name); found != guests_.end()) {
      if (event.readable) hear(event.name, found->second);
      if (event.writable) mark(event.name, found->second);
    }
  }
  settle();
  const Clock::time_point now = Clock::now();
  awake_.tick(now);
  if (now >= next_beat_) {
    next_beat_ = now + beat_interval_;
    job_.beat(awake_.now(), reception_.turned_away());
    settle();
  }
  if (door_opens_ && now >= *door_opens_) {
    door_opens_.reset();
    poller_.change(reception_.listener().descriptor(), kDoor, {});
  }
  reception_.clear(now);
  drop_late_guests(now);
  joined_.store(job_.present());
  strangers_.store(reception_.count());
  turned_away_.store(reception_.turned_away());
}

milliseconds ServerLoop::pause(Clock::time_point now) const {
  const bool hurried =
      reception_.count() > 0 || guests_.size() > members_.size() || door_opens_ || stopping_.load();
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
  return end_began_ && (guests_.empty() || now - *end_began_ >= kGoodbyeTime);
}

void ServerLoop::open_door(Clock::time_point now) {
  // Enough ranks for any group: the others wait outside.
  const bool room = guests_.size() < static_cast<size_t>(kMostRanks) + kMostStrangers;
  try {
    if (room && reception_.open_door(poller_, next_name_, now)) return;
  } catch (const core::Error& error) {
    // A group that has formed does without.
    if (job_.formed()) return;
    job_.give_up(error.sentence());
    reception_.end();
    return settle();
  }
  door_opens_ = now + kShutDoor;
  poller_.change(reception_.listener().descriptor(), kDoor, {.read = false});
}

void ServerLoop::welcome(uint64_t name, Reception::Guest arrival, Clock::time_point now) {
  Guest& guest = guests_
                     .emplace(name, Guest{.connection = Connection(std::move(arrival.socket)),
                                          .rank = arrival.rank,
                                          .since = now})
                     .first->second;
  guest.connection.socket().watch(silence_);
  queue(name, guest, arrival.verdict);
}

void ServerLoop::hear(uint64_t name, Guest& guest) {
  try {
    const bool open =
        guest.connection.receive(scratch_, [&](const Frame& frame) { handle(name, guest, frame); });
    if (!open) guest.broken = guest.connection.how();
  } catch (const core::Error& error) {
    guest.broken = error.sentence();
  } catch (const std::bad_alloc&) {
    guest.broken = "the rendezvous has no memory for what it sends";
  }
  if (!guest.broken.empty()) mark(name, guest);
}

void ServerLoop::handle(uint64_t name, Guest& guest, const Frame& frame) {
  if (guest.closing || !guest.broken.empty()) return;
  if (guest.member) return job_.hear(guest.rank, frame, awake_.now());
  const Join join = frame.kind == FrameKind::kJoin ? read<Join>(frame.payload) : Join{.rank = -1};
  if (join.rank != guest.rank) {
    core::fail(SHARDREC_CORRUPT_DATA, "a connection does not begin with its rank joining");
  }
  // A rank that is in keeps its way until the job has had its say.
  const auto before = members_.find(guest.rank);
  const bool first = before == members_.end();
  if (first) members_[guest.rank] = name;
  guest.member = true;
  const std::optional<Refused> refused = job_.join(join, awake_.now());
  if (!refused) return;
  guest.member = false;
  if (first) members_.erase(guest.rank);
  queue(name, guest, framed(*refused));
  close(name, guest);
}

ServerLoop::Guest* ServerLoop::guest_of(int rank, uint64_t& name) {
  const auto member = members_.find(rank);
  if (member == members_.end()) return nullptr;
  name = member->second;
  const auto guest = guests_.find(name);
  return guest == guests_.end() ? nullptr : &guest->second;
}

void ServerLoop::send(int rank, ConstBytes frame) {
  uint64_t name = 0;
  if (Guest* guest = guest_of(rank, name)) queue(name, *guest, frame);
}

void ServerLoop::close(int rank) {
  uint64_t name = 0;
  Guest* guest = guest_of(rank, name);
  members_.erase(rank);
  if (guest != nullptr) close(name, *guest);
}

void ServerLoop::close(uint64_t name, Guest& guest) {
  guest.closing = true;
  guest.member = false;
  guest.since = Clock::now();
  mark(name, guest);
}

void ServerLoop::queue(uint64_t name, Guest& guest, ConstBytes bytes) {
  if (guest.connection.queued() + bytes.size() > kMostUnread) {
    guest.broken = core::sentence("it has left more than ", kMostUnread, " bytes unread");
  } else {
    guest.connection.queue(bytes);
  }
  mark(name, guest);
}

void ServerLoop::mark(uint64_t name, Guest& guest) {
  if (guest.dirty) return;
  dirty_.push_back(name);
  guest.dirty = true;
}

void ServerLoop::settle() {
  for (size_t i = 0; i < dirty_.size(); ++i) {  // it grows on the way
    const uint64_t name = dirty_[i];
    const auto found = guests_.find(name);
    if (found == guests_.end()) continue;
    Guest& guest = found->second;
    guest.dirty = false;
    if (guest.broken.empty() && !guest.connection.flush()) guest.broken = guest.connection.how();
    if (!guest.broken.empty()) {
      drop(name);
      continue;
    }
    const size_t queued = guest.connection.queued();
    if (guest.closing && queued == 0 && !guest.finished) {
      guest.finished = true;
      guest.connection.socket().finish();
    }
    const Interest interest{.read = queued < kMuchUnread, .write = queued > 0};
    if (interest != guest.interest) {
      guest.interest = interest;
      poller_.change(guest.connection.socket().descriptor(), name, interest);
    }
  }
  dirty_.clear();
}

void ServerLoop::drop(uint64_t name) {
  const auto found = guests_.find(name);
  const bool member = found->second.member;
  const int rank = found->second.rank;
  const std::string how = found->second.broken;
  guests_.erase(found);
  if (!member) return;
  members_.erase(rank);
  job_.broken(rank, how);
}

void ServerLoop::drop_late_guests(Clock::time_point now) {
  if (guests_.size() == members_.size()) return;
  for (auto& [name, guest] : guests_) {
    if (guest.member) continue;
    const milliseconds most = guest.closing ? kGoodbyeTime : kHandshakeTime;
    if (now - guest.since <= most) continue;
    guest.broken = "it was late";
    mark(name, guest);
  }
  settle();
}

}  // namespace shardrec::comm::rendezvous
