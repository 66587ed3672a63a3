// The flight recorder: the last 1,000 operations of one communicator on this rank, to be read at
// any time, and written to the log when a peer fails it. It wraps a communicator of any engine.
//
// An operation costs two looks at the clock and some stores: no lock, no allocation; 64 KiB per
// communicator.
//
// Thread rule: any thread.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "comm/communicator.h"

namespace shardrec::comm {

class Recorder {
 public:
  static constexpr size_t kOperations = 1000;
  enum class State : uint8_t { kPosted, kWaiting, kDone, kFailed };

  Recorder(int rank, int size) : rank_(rank), size_(size) {}

  // Before the first operation.
  void belong_to(int rank, int size) noexcept {
    rank_ = rank;
    size_ = size;
  }

  // Begins an operation. The number names it in the calls below, which change nothing once the
  // operation is no longer among the last kOperations.
  uint64_t begin(Purpose purpose, uint64_t sequence, const char* name, uint64_t bytes) noexcept;
  void wait(uint64_t number) noexcept { set_state(number, State::kWaiting); }
  void finish(uint64_t number) noexcept;
  // Writes the last operations to the log, the first time that a peer is to blame.
  void fail(uint64_t number, const core::Error& error) noexcept;

  // {"rank": 0, "size": 2, "operations": [{"number": ..., "state": "done", ...}, ...]}: the oldest
  // first.
  std::string json() const;

 private:
  struct Slot {
    std::atomic<uint64_t> number{0};  // + 1; 0: it is being written, or was never
    std::atomic<const char*> name{""};
    std::atomic<uint64_t> sequence{0};
    std::atomic<uint64_t> bytes{0};
    std::atomic<int64_t> start{0};  // nanoseconds since the recorder was made
    std::atomic<int64_t> end{0};
    std::atomic<int32_t> peer{-1};
    std::atomic<Purpose> purpose{Purpose::kControl};
    std::atomic<State> state{State::kPosted};
  };
  struct Entry {
    uint64_t number = 0;
    const char* name = "";
    uint64_t sequence = 0;
    uint64_t bytes = 0;
    int64_t start = 0;
    int64_t end = 0;
    int32_t peer = -1;
    Purpose purpose = Purpose::kControl;
    State state = State::kPosted;
  };

  Slot& slot(uint64_t number) noexcept { return ring_[number % kOperations]; }
  bool kept(uint64_t number) noexcept { return slot(number).number.load() == number + 1; }
  void set_state(uint64_t number, State state) noexcept;
  bool read(uint64_t number, Entry& entry) const noexcept;
  int64_t now() const noexcept;
  std::string text(size_t most) const;

  int rank_;
  int size_;
  const std::chrono::steady_clock::time_point made_ = std::chrono::steady_clock::now();
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> logged_{false};
  std::array<Slot, kOperations> ring_;
};

// The communicator, with its operations and those of what is split from it recorded: each has a
// recorder of its own.
std::shared_ptr<Communicator> recorded(std::shared_ptr<Communicator> communicator,
                                       std::shared_ptr<Recorder> recorder);

// The recorder of a communicator that recorded() made, or that was split from one.
std::shared_ptr<Recorder> recorder_of(const Communicator& communicator);

}  // namespace shardrec::comm
