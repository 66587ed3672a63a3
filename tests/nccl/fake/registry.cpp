#include "registry.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <utility>

#include "emulated.h"
#include "knobs.h"
#include "quiet.h"

namespace fake_nccl {
namespace {

struct Registry {
  simt::QuietMutex mutex;
  std::map<uint64_t, Communicator*> communicators;
  std::map<std::pair<int, uint64_t>, Issuer*> issuers;  // by device and thread
  uint64_t next_handle = 1;
  uint64_t next_issuer = 1;
  Call* calls = nullptr;  // under way
};

Registry& registry() {
  static Registry& all = *new Registry;
  return all;
}

constexpr uint64_t kStep = 64;  // between the handles, which look like addresses

Comm handle_of(uint64_t number) { return reinterpret_cast<Comm>(number * kStep); }
uint64_t number_of(Comm handle) { return reinterpret_cast<uint64_t>(handle) / kStep; }

uint64_t this_thread() {
  static std::atomic<uint64_t> threads{0};
  thread_local const uint64_t number = threads.fetch_add(1) + 1;
  return number;
}

Issuer& issuer_of(Registry& all, int device) {
  Issuer*& issuer = all.issuers[{device, this_thread()}];
  if (issuer == nullptr) {
    const uint64_t id = (static_cast<uint64_t>(getpid()) << 32) | all.next_issuer++;
    issuer = new Issuer(device, this_thread(), id);
  }
  ++issuer->users;
  return *issuer;
}

// Do two ranks of one communicator have it?
bool is_shared(const Registry& all, int device) {
  for (const auto& [a, first] : all.communicators) {
    for (const auto& [b, second] : all.communicators) {
      if (a < b && first->place.number == second->place.number && first->issuer.device == device &&
          second->issuer.device == device) {
        return true;
      }
    }
  }
  return false;
}

// Issues no operation: it may run beside what other threads call for other communicators, and has to where it waits for
// the device until they have ended too.
bool ends(CallKind kind) { return kind == CallKind::kAbort || kind == CallKind::kDestroy; }

}  // namespace

Comm add_communicator(const Communicator::Place& place, int device) {
  Registry& all = registry();
  const simt::QuietLock lock(all.mutex);
  const uint64_t number = all.next_handle++;
  all.communicators[number] = new Communicator(place, issuer_of(all, device));
  live.fetch_add(1);
  return handle_of(number);
}

Call::Call(Comm handle, CallKind kind, const char* name)
    : handle_(handle), kind_(kind), thread_(this_thread()) {
  Registry& all = registry();
  {
    const simt::QuietLock lock(all.mutex);
    const auto found = all.communicators.find(number_of(handle));
    if (found == all.communicators.end()) {
      const bool was_there = number_of(handle) != 0 && number_of(handle) < all.next_handle;
      violation("%s for a communicator that %s", name,
                was_there ? "was aborted or destroyed" : "never was");
      return;
    }
    communicator_ = found->second;
    communicator_->hold();
    ++communicator_->issuer.users;
    check_threads();
    next_ = std::exchange(all.calls, this);
  }
  if (const int ms = knobs().call_ms.load(); ms > 0) {
    poll(nullptr, 0, ms);  // so that two calls are under way at the same time whenever they may be
  }
  communicator_->issuer.mutex.lock();
  check_state(name);
}

// The registry's lock is held.
void Call::check_threads() {
  const Registry& all = registry();
  const Issuer& mine = communicator_->issuer;
  for (const Call* other = all.calls; other != nullptr; other = other->next_) {
    const Issuer& theirs = other->communicator_->issuer;
    if (other->thread_ == thread_ || theirs.device != mine.device) continue;
    if (&theirs != &mine && is_shared(all, mine.device)) continue;
    if (other->communicator_ != communicator_ && (ends(kind_) || ends(other->kind_))) continue;
    violation("two threads are in calls for communicators of device %d", mine.device);
  }
}

void Call::check_state(const char* name) {
  const int current = simt::emulated()->current_device();
  if (current != communicator_->issuer.device) {
    violation("%s for a communicator of device %d from a thread whose device is %d", name,
              communicator_->issuer.device, current);
  }
  if (communicator_->is_aborted()) {  // by another thread, while this one waited for its turn
    refused_ = true;
    return;
  }
  const bool waits = kind_ == CallKind::kOperation || kind_ == CallKind::kDestroy;
  if (waits && communicator_->is_in_progress()) {
    violation("%s for a communicator that is in progress", name);
    refused_ = true;
  } else if (kind_ == CallKind::kOperation && communicator_->is_finalized()) {
    violation("%s for a communicator that is finalized", name);
    refused_ = true;
  }
}

Call::~Call() {
  if (communicator_ == nullptr) return;
  Issuer& issuer = communicator_->issuer;
  issuer.mutex.unlock();
  Registry& all = registry();
  Issuer* unused = nullptr;
  {
    const simt::QuietLock lock(all.mutex);
    Call** link = &all.calls;
    while (*link != this) link = &(*link)->next_;
    *link = next_;
    if (--issuer.users == 0) {
      unused = &issuer;
      all.issuers.erase({issuer.device, issuer.thread});
    }
  }
  communicator_->let_go();
  delete unused;
}

void Call::remove() {
  Registry& all = registry();
  const simt::QuietLock lock(all.mutex);
  all.communicators.erase(number_of(handle_));
  --communicator_->issuer.users;
  live.fetch_sub(1);
  communicator_->let_go();
}

}  // namespace fake_nccl
