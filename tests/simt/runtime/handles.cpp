#include "handles.h"

#include <map>
#include <vector>

namespace simt {
namespace {

// Types of this file, so that their maps are too: the same maps of a test would be built with the thread
// sanitizer.
struct StreamEntry {
  Stream* stream = nullptr;
};
struct EventEntry {
  std::unique_ptr<Event> event;
};

struct Table {
  QuietMutex mutex;
  uintptr_t next = 0x1000;  // above the handles that CUDA gives a meaning, as 1 and 2
  std::map<uintptr_t, StreamEntry> streams;
  std::map<uintptr_t, EventEntry> events;
};

// Never destroyed: threads of streams may outlive main().
Table& table() {
  static Table& all = *new Table;
  return all;
}

}  // namespace

RecordingPointer Event::recording() noexcept {
  const QuietLock lock(mutex_);
  return recording_;
}

void Event::set_recording(RecordingPointer recording) noexcept {
  const QuietLock lock(mutex_);
  recording_ = std::move(recording);
}

cudaStream_t add_stream(Stream* stream) {
  const QuietLock lock(table().mutex);
  const uintptr_t handle = table().next += 16;
  table().streams.emplace(handle, StreamEntry{stream});
  return reinterpret_cast<cudaStream_t>(handle);
}

Stream* find_stream(cudaStream_t handle) noexcept {
  const QuietLock lock(table().mutex);
  const auto found = table().streams.find(reinterpret_cast<uintptr_t>(handle));
  return found == table().streams.end() ? nullptr : found->second.stream;
}

Stream* remove_stream(cudaStream_t handle) noexcept {
  const QuietLock lock(table().mutex);
  const auto found = table().streams.find(reinterpret_cast<uintptr_t>(handle));
  if (found == table().streams.end()) return nullptr;
  Stream* stream = found->second.stream;
  table().streams.erase(found);
  return stream;
}

void wait_for_device(int device) {
  std::vector<RecordingPointer> recordings;
  {
    const QuietLock lock(table().mutex);
    for (const auto& [handle, entry] : table().streams) {
      if (entry.stream->device() == device) recordings.push_back(entry.stream->record());
    }
  }
  for (const auto& recording : recordings) recording->wait();
}

cudaEvent_t add_event(std::unique_ptr<Event> event) {
  const QuietLock lock(table().mutex);
  const uintptr_t handle = table().next += 16;
  table().events.emplace(handle, EventEntry{std::move(event)});
  return reinterpret_cast<cudaEvent_t>(handle);
}

Event* find_event(cudaEvent_t handle) noexcept {
  const QuietLock lock(table().mutex);
  const auto found = table().events.find(reinterpret_cast<uintptr_t>(handle));
  return found == table().events.end() ? nullptr : found->second.event.get();
}

std::unique_ptr<Event> remove_event(cudaEvent_t handle) noexcept {
  const QuietLock lock(table().mutex);
  const auto found = table().events.find(reinterpret_cast<uintptr_t>(handle));
  if (found == table().events.end()) return nullptr;
  std::unique_ptr<Event> event = std::move(found->second.event);
  table().events.erase(found);
  return event;
}

int64_t live_handles() noexcept {
  const QuietLock lock(table().mutex);
  return static_cast<int64_t>(table().streams.size() + table().events.size());
}

}  // namespace simt
