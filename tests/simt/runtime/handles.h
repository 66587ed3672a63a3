// Handles of streams, events and graphs: numbers that are never given twice, so that one that was destroyed is
// known as such.
//
// Thread rule: any thread; one may not use a handle that another destroys.
#pragma once

#include <memory>
#include <utility>

#include "shared_places.h"
#include "simt/runtime.h"
#include "stream.h"

namespace simt {

class Event {
 public:
  // places: of one that other processes may open, or have made; null: of this process.
  Event(int device, bool timed, bool spins, std::shared_ptr<SharedPlaces> places = nullptr)
      : device_(device), timed_(timed), spins_(spins), places_(std::move(places)) {}

  int device() const noexcept { return device_; }
  bool is_timed() const noexcept { return timed_; }
  // Without cudaEventBlockingSync.
  bool spins() const noexcept { return spins_; }
  const std::shared_ptr<SharedPlaces>& places() const noexcept { return places_; }
  bool is_of_another_process() const noexcept { return places_ && !places_->is_own(); }
  // The last one; none before the first cudaEventRecord().
  RecordingPointer recording() noexcept;
  void set_recording(RecordingPointer recording) noexcept;

 private:
  const int device_;
  const bool timed_;
  const bool spins_;
  const std::shared_ptr<SharedPlaces> places_;
  QuietMutex mutex_;
  RecordingPointer recording_;
};

cudaStream_t add_stream(Stream* stream);
// Null if there is no such stream.
Stream* find_stream(cudaStream_t handle) noexcept;
Stream* remove_stream(cudaStream_t handle) noexcept;
// The device's default stream, the calling thread's or the legacy one, made when it is first asked for. Only events are
// recorded and waited for there.
Stream* default_stream(int device, bool of_thread);
// Marks all that was enqueued on the device, and waits for it.
void wait_for_device(int device) noexcept;

cudaEvent_t add_event(std::unique_ptr<Event> event);
Event* find_event(cudaEvent_t handle) noexcept;
std::unique_ptr<Event> remove_event(cudaEvent_t handle) noexcept;

// Of graphs that were captured, and of those that were made to be launched.
uintptr_t add_graph(std::unique_ptr<const Captured> operations);
// Null if there is no such graph.
const Captured* find_graph(uintptr_t handle) noexcept;
std::unique_ptr<const Captured> remove_graph(uintptr_t handle) noexcept;

}  // namespace simt
