#include "handles.h"

#include <sched.h>

#include <algorithm>
#include <map>
#include <new>
#include <thread>
#include <vector>

#include "simt/control.h"

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

struct GraphEntry {
  std::unique_ptr<const Captured> operations;
};

// A device's, of a thread; of no thread: the legacy one.
struct DefaultStream {
  int device = 0;
  std::thread::id thread;

  auto operator<=>(const DefaultStream&) const = default;
};

struct Table {
  QuietMutex mutex;
  uintptr_t next = 0x1000;  // above the handles that CUDA gives a meaning, as 1 and 2
  std::map<uintptr_t, StreamEntry> streams;
  std::map<uintptr_t, EventEntry> events;
  std::map<uintptr_t, GraphEntry> graphs;
  std::map<DefaultStream, StreamEntry> defaults;
};

// Streams that a test holds until it lets them go on.
struct Gate {
  QuietMutex mutex;
  std::vector<RecordingPointer> held;
};

// Never destroyed: threads of streams may outlive main().
Gate& gate() {
  static Gate& only = *new Gate;
  return only;
}
Table& table() {
  static Table& all = *new Table;
  return all;
}

bool is_idle(int device) noexcept {
  const QuietLock lock(table().mutex);
  return std::all_of(table().streams.begin(), table().streams.end(), [&](const auto& each) {
    return each.second.stream->device() != device || each.second.stream->is_idle();
  });
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

Stream* default_stream(int device, bool of_thread) {
  const DefaultStream key{device, of_thread ? std::this_thread::get_id() : std::thread::id()};
  const QuietLock lock(table().mutex);
  StreamEntry& entry = table().defaults[key];
  if (entry.stream == nullptr) entry.stream = Stream::make(device);
  return entry.stream;
}

void wait_for_device(int device) noexcept {
  try {
    std::vector<RecordingPointer> recordings;
    {
      const QuietLock lock(table().mutex);
      for (const auto& [handle, entry] : table().streams) {
        if (entry.stream->device() == device) recordings.push_back(entry.stream->record());
      }
    }
    for (const auto& recording : recordings) recording->wait();
  } catch (const std::bad_alloc&) {  // to give memory back takes none
    while (!is_idle(device)) sched_yield();
  }
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

uintptr_t add_graph(std::unique_ptr<const Captured> operations) {
  const QuietLock lock(table().mutex);
  const uintptr_t handle = table().next += 16;
  table().graphs.emplace(handle, GraphEntry{std::move(operations)});
  return handle;
}

const Captured* find_graph(uintptr_t handle) noexcept {
  const QuietLock lock(table().mutex);
  const auto found = table().graphs.find(handle);
  return found == table().graphs.end() ? nullptr : found->second.operations.get();
}

std::unique_ptr<const Captured> remove_graph(uintptr_t handle) noexcept {
  const QuietLock lock(table().mutex);
  const auto found = table().graphs.find(handle);
  if (found == table().graphs.end()) return nullptr;
  std::unique_ptr<const Captured> operations = std::move(found->second.operations);
  table().graphs.erase(found);
  return operations;
}

int64_t live_handles() noexcept {
  const QuietLock lock(table().mutex);
  return static_cast<int64_t>(table().streams.size() + table().events.size() +
                              table().graphs.size());
}

}  // namespace simt

void simt_hold_stream(int64_t stream) {
  simt::Stream* const held = simt::find_stream(reinterpret_cast<cudaStream_t>(stream));
  if (held == nullptr) return;
  simt::RecordingPointer place = simt::RecordingPointer::make(held->device(), nullptr, 0);
  held->wait_for(place);
  const simt::QuietLock lock(simt::gate().mutex);
  simt::gate().held.push_back(std::move(place));
}

void simt_go_on(void) {
  const simt::QuietLock lock(simt::gate().mutex);
  for (const simt::RecordingPointer& place : simt::gate().held) place->mark();
  simt::gate().held.clear();
}
