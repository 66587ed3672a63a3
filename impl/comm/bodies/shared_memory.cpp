#include "comm/bodies/shared_memory.h"

#include <algorithm>
#include <map>
#include <utility>

namespace shardrec::comm {
namespace {

// Never destroyed: other threads may train while the process ends.
struct Registry {
  std::mutex mutex;
  std::map<const std::byte*, SharedMemory*> by_host;
};

Registry& registry() {
  static Registry& all = *new Registry;
  return all;
}

}  // namespace

SharedMemory::SharedMemory(const std::byte* host, std::unique_ptr<compute::Allocation> bodies,
                           size_t bytes, std::shared_ptr<compute::Mark> written)
    : host_(host), bodies_(std::move(bodies)), size_(bytes), written_(std::move(written)) {
  const std::lock_guard lock(registry().mutex);
  registry().by_host[host_] = this;
}

SharedMemory::~SharedMemory() {
  withdraw();
  for (const auto& read : readers_) read->wait();
}

void SharedMemory::withdraw() noexcept {
  const std::lock_guard lock(registry().mutex);
  const auto own = registry().by_host.find(host_);
  if (own != registry().by_host.end() && own->second == this) registry().by_host.erase(own);
}

std::shared_ptr<SharedMemory> SharedMemory::find(ConstBytes message) {
  const std::lock_guard lock(registry().mutex);
  const auto behind = registry().by_host.upper_bound(message.data());
  if (behind == registry().by_host.begin()) return nullptr;
  SharedMemory* const found = std::prev(behind)->second;
  const auto before = static_cast<size_t>(message.data() - found->host_);
  if (before > found->size_ || message.size() > found->size_ - before) return nullptr;
  return found->weak_from_this().lock();
}

void SharedMemory::add_body(const std::byte* begin, const std::byte* end) {
  if (begin != end) written_bodies_.emplace_back(begin, end);
}

void SharedMemory::forget_bodies() noexcept { written_bodies_.clear(); }

size_t SharedMemory::head_of(ConstBytes message) const {
  const std::byte* const begin = at(message.data());
  const std::byte* const end = begin + message.size();
  const std::byte* body = end;
  for (const auto written : written_bodies_) {
    if (written.data() < body && written.data() + written.size() > begin) {
      body = std::max(begin, written.data());
    }
  }
  return static_cast<size_t>(body - begin);
}

void SharedMemory::add_reader(std::shared_ptr<compute::Mark> read) {
  const std::lock_guard lock(mutex_);
  if (std::find(readers_.begin(), readers_.end(), read) == readers_.end()) {
    readers_.push_back(std::move(read));
  }
}

void SharedMemory::follow_readers(compute::Marks& marks) {
  const std::lock_guard lock(mutex_);
  for (const auto& read : readers_) marks.follow(*read);
  readers_.clear();
}

}  // namespace shardrec::comm
