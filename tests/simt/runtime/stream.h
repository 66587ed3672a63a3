// Streams: threads that carry out operations in the order in which they were enqueued. Recordings: marks
// in that order, which streams and the host wait for.
//
// To the thread sanitizer, what the host did before it enqueued an operation happens before it; what a
// stream did before a recording happens before what waits for it; nothing else is ordered.
//
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "quiet.h"
#include "simt/runtime.h"

namespace simt {

// A mark in a stream, shared by the event, the operations and the host threads that wait for it.
class Recording {
 public:
  using Clock = std::chrono::steady_clock;

  void wait() noexcept;  // for mark()
  bool is_marked() noexcept;
  void mark() noexcept;
  Clock::time_point time() const noexcept { return time_; }  // once it is marked
  int device() const noexcept { return device_; }
  // Does the calling thread know that it was marked, because it has waited for this or a later one of the same
  // stream? Those that it waits for now, it will know.
  bool is_known_over() const noexcept;
  void will_be_known_over() const noexcept;

 private:
  friend class RecordingPointer;
  Recording(int device, const void* stream, uint64_t number)
      : device_(device), stream_(stream), number_(number) {}

  const int device_;
  const void* const stream_;
  const uint64_t number_;  // ascending in each stream
  uint32_t holders_ = 1;
  uint64_t word_ = 0;  // of the thread sanitizer
  QuietCounter marked_;
  Clock::time_point time_;
};

// std::shared_ptr would order the threads that hold it.
class RecordingPointer {
 public:
  RecordingPointer() = default;
  static RecordingPointer make(int device, const void* stream, uint64_t number) {
    return RecordingPointer(new Recording(device, stream, number));
  }
  RecordingPointer(const RecordingPointer& other) noexcept;
  RecordingPointer(RecordingPointer&& other) noexcept
      : recording_(std::exchange(other.recording_, nullptr)) {}
  RecordingPointer& operator=(RecordingPointer other) noexcept {
    std::swap(recording_, other.recording_);
    return *this;
  }
  ~RecordingPointer();

  Recording* operator->() const noexcept { return recording_; }
  explicit operator bool() const noexcept { return recording_ != nullptr; }

 private:
  explicit RecordingPointer(Recording* recording) noexcept : recording_(recording) {}
  Recording* recording_ = nullptr;
};

enum class Access : unsigned char {
  kMark,          // done before it runs: whoever hears of it finds the stream idle
  kWait,          // takes place on a broken device too, as kMark
  kHostFunction,  // touches memory of the host only
  kMemory,        // gets or gives back memory of devices; takes place on a broken one too
  kDevice,        // kernels, copies, memsets
};

class Operation {
 public:
  // counted: of operations that were enqueued; null: not counted.
  explicit Operation(Access access, std::atomic<int64_t>* counted = nullptr)
      : access_(access), counted_(counted) {}
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  virtual void run() = 0;
  // Null where it can take place once only.
  virtual std::unique_ptr<Operation> copy() const = 0;
  Access access() const noexcept { return access_; }
  std::atomic<int64_t>* counted() const noexcept { return counted_; }

 private:
  friend class Stream;
  const Access access_;
  std::atomic<int64_t>* const counted_;
  Operation* next_ = nullptr;
};

template <class Function>
class FunctionOperation final : public Operation {
 public:
  FunctionOperation(Access access, Function function, std::atomic<int64_t>* counted = nullptr)
      : Operation(access, counted), function_(std::move(function)) {}
  void run() override { function_(); }
  std::unique_ptr<Operation> copy() const override {
    if constexpr (std::is_copy_constructible_v<Function>) {
      return std::make_unique<FunctionOperation>(access(), function_, counted());
    } else {
      return nullptr;
    }
  }

 private:
  Function function_;
};

// What a capture has put down, in order.
using Captured = std::vector<std::unique_ptr<Operation>>;

class Runner;

class Stream {
 public:
  // Starts its thread. Throws std::bad_alloc, std::system_error.
  static Stream* make(int device);
  // The thread ends, and the object with it, once all that was enqueued is done.
  void close() noexcept;

  int device() const noexcept { return device_; }

  // counted: as Operation has it.
  template <class Function>
  void enqueue(Access access, Function function, std::atomic<int64_t>* counted = nullptr) {
    put(std::make_unique<FunctionOperation<Function>>(access, std::move(function), counted));
  }
  // Operations are put down, and do not take place, until the capture ends. By the one thread that enqueues.
  void begin_capture();
  bool is_capturing() const noexcept { return capture_ != nullptr; }
  // What is not allowed in a capture was called, and is refused until the capture ends.
  void invalidate_capture() noexcept { capture_is_invalid_ = true; }
  bool is_capture_invalid() const noexcept { return capture_is_invalid_; }
  // Null where it is invalid, or one of the operations can take place once only.
  // Throws bad_alloc: the capture has ended then, too.
  std::unique_ptr<Captured> end_capture();
  void enqueue(const Captured& operations);
  RecordingPointer record();
  void wait_for(RecordingPointer recording);
  void synchronize() {
    const RecordingPointer all = record();
    all->will_be_known_over();
    all->wait();
  }
  bool is_idle() noexcept;

  // What runs the kernels of the stream whose thread calls.
  static Runner& runner();
  static bool is_thread_of_stream() noexcept;

 private:
  explicit Stream(int device) : device_(device) {}
  ~Stream() = default;

  static void* thread_main(void* stream);
  void work();
  Operation* take() noexcept;
  void carry_out(Operation& operation);
  void count_done() noexcept;
  void put(std::unique_ptr<Operation> operation);
  void push(Operation* operation) noexcept;

  const int device_;
  std::unique_ptr<Captured> capture_;
  bool capture_is_invalid_ = false;
  QuietMutex mutex_;
  QuietCounter changed_;
  Operation* first_ = nullptr;
  Operation* last_ = nullptr;
  uint64_t pushed_ = 0;
  uint64_t done_ = 0;
  bool closed_ = false;
  uint64_t done_word_ = 0;  // of the thread sanitizer
};

// Streams, events and graphs that were not destroyed.
int64_t live_handles() noexcept;

}  // namespace simt
