#include "comm/gloo/alarm.h"

#include <algorithm>
#include <utility>

namespace shardrec::comm::gloo_plugin {
namespace {

using plugin::Clock;

// A single wait is cut into pieces of so long; Gloo's own timeout is never reached.
constexpr std::chrono::hours kLongest{1};
constexpr std::chrono::hours kNever{1000};

}  // namespace

Alarm::Alarm(int peers) : lost_(static_cast<size_t>(peers)), why_(static_cast<size_t>(peers)) {
  entries_.reserve(16);
  thread_ = plugin::start_thread([this] { keep_time(); });
}

Alarm::~Alarm() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Ended Alarm::wait(gloo::transport::UnboundBuffer& buffer, Way way, int peer,
                  Clock::time_point deadline) {
  size_t tries = 0;
  for (;;) {
    const Clock::time_point now = Clock::now();
    Entry entry{.buffer = &buffer,
                .way = way,
                .peer = peer,
                .at = std::clamp(deadline, now + kShortest, now + kLongest)};
    bool lost = false;
    {
      const std::lock_guard lock(mutex_);
      if (cancelled_) return Ended::kCancelled;
      lost = lost_[static_cast<size_t>(peer)] != 0;
      if (lost) entry.at = now + kGrace[tries];
      entries_.push_back(&entry);
      wake_by(entry.at);
    }
    if (wait_once(entry)) return Ended::kDone;
    if (lost && ++tries == std::size(kGrace)) return Ended::kLost;
    if (!lost && Clock::now() >= deadline && !is_lost(peer))
      return is_cancelled() ? Ended::kCancelled : Ended::kTimeout;
  }
}

bool Alarm::wait_once(Entry& entry) {
  struct Leave {
    Alarm& alarm;
    Entry& entry;
    ~Leave() {
      const std::lock_guard lock(alarm.mutex_);
      std::erase(alarm.entries_, &entry);
    }
  } const leave{*this, entry};
  return entry.way == Way::kSend ? entry.buffer->waitSend(nullptr, kNever)
                                 : entry.buffer->waitRecv(nullptr, kNever);
}

void Alarm::lose(int peer, const std::string& why) noexcept {
  const std::lock_guard lock(mutex_);
  const auto at = static_cast<size_t>(peer);
  if (lost_[at] != 0) return;
  lost_[at] = 1;
  try {
    why_[at] = why;
  } catch (const std::bad_alloc&) {  // the reason stays empty
  }
  for (Entry* entry : entries_) {
    if (entry->peer != peer || entry->rung) continue;
    entry->at = std::min(entry->at, Clock::now() + kGrace[0]);
    wake_by(entry->at);
  }
}

bool Alarm::is_lost(int peer) const {
  const std::lock_guard lock(mutex_);
  return lost_[static_cast<size_t>(peer)] != 0;
}

std::string Alarm::why_lost(int peer) const {
  const std::lock_guard lock(mutex_);
  return why_[static_cast<size_t>(peer)];
}

void Alarm::cancel() noexcept {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  for (Entry* entry : entries_) ring(*entry);
}

bool Alarm::is_cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

// At most once per entry: an abort that no wait has met would end the buffer's next one.
void Alarm::ring(Entry& entry) noexcept {
  if (std::exchange(entry.rung, true)) return;
  if (entry.way == Way::kSend) {
    entry.buffer->abortWaitSend();
  } else {
    entry.buffer->abortWaitRecv();
  }
}

void Alarm::wake_by(Clock::time_point at) noexcept {
  if (at >= wake_) return;
  wake_ = at;
  changed_.notify_all();
}

// Sleeps until the earliest moment it was told of. That a wait has ended does not wake it: the next
// wait usually ends no earlier.
void Alarm::keep_time() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    const Clock::time_point now = Clock::now();
    wake_ = Clock::time_point::max();
    for (Entry* entry : entries_) {
      if (entry->at <= now) ring(*entry);
      if (!entry->rung) wake_ = std::min(wake_, entry->at);
    }
    if (wake_ == Clock::time_point::max()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, wake_);
    }
  }
}

}  // namespace shardrec::comm::gloo_plugin
