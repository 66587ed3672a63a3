// What the ranks of a process name to each other in messages: by a number, never by an address. Who receives a
// number asks for it here, so that one that no rank has given finds nothing, whatever a message says.
//
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace shardrec::comm {

template <class T>
class Registry {
 public:
  // The number of `object` until remove(): not 0, and no other object's, before or later.
  uint64_t add(const std::shared_ptr<T>& object) {
    const std::lock_guard lock(mutex_);
    objects_.emplace(++last_, object);
    return last_;
  }
  void remove(uint64_t number) noexcept {
    const std::lock_guard lock(mutex_);
    objects_.erase(number);
  }
  // Null where no object has the number, or the object is gone. It is held by who has found it.
  std::shared_ptr<T> find(uint64_t number) const {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(number);
    return found == objects_.end() ? nullptr : found->second.lock();
  }

 private:
  mutable std::mutex mutex_;
  uint64_t last_ = 0;
  std::unordered_map<uint64_t, std::weak_ptr<T>> objects_;
};

}  // namespace shardrec::comm
