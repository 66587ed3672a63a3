#include "comm/rendezvous/server/store.h"

#include <algorithm>

#include "comm/rendezvous/protocol/limits.h"

namespace shardrec::comm::rendezvous {
namespace {

// What an entry takes beside its bytes, about.
constexpr size_t kEntryBytes = 128;

}  // namespace

bool Store::set(const std::string& key, ConstBytes value, std::vector<Waiter>& woken) {
  const auto old = values_.find(key);
  const size_t freed = old == values_.end() ? 0 : old->second.size() + key.size() + kEntryBytes;
  const size_t taken = value.size() + key.size() + kEntryBytes;
  if (bytes_ - freed + taken > kMostStoreBytes) return false;
  values_[key].assign(value.begin(), value.end());
  bytes_ = bytes_ - freed + taken;
  if (const auto waiting = waiting_.find(key); waiting != waiting_.end()) {
    woken = std::move(waiting->second);
    waiting_.erase(waiting);
    for (const Waiter& waiter : woken) --waits_[waiter.rank];
  }
  return true;
}

const Bytes* Store::get(const std::string& key, Waiter waiter, bool& noted) {
  const auto found = values_.find(key);
  if (found != values_.end()) return &found->second;
  noted = waits_[waiter.rank] < kMostWaitingGets;
  if (noted) {
    waiting_[key].push_back(waiter);
    ++waits_[waiter.rank];
  }
  return nullptr;
}

template <class Gone>
void Store::drop_waiters(Gone gone) {
  for (auto entry = waiting_.begin(); entry != waiting_.end();) {
    std::erase_if(entry->second, [&](const Waiter& waiter) {
      if (!gone(waiter)) return false;
      --waits_[waiter.rank];
      return true;
    });
    entry = entry->second.empty() ? waiting_.erase(entry) : std::next(entry);
  }
}

void Store::forget(int rank, uint64_t id) {
  drop_waiters([=](const Waiter& waiter) { return waiter.rank == rank && waiter.id == id; });
}

void Store::forget_all(int rank) {
  drop_waiters([=](const Waiter& waiter) { return waiter.rank == rank; });
}

}  // namespace shardrec::comm::rendezvous
