// What events between processes have in common: how often the event was recorded, and which of these recordings are
// over. The process that made it records it; others ask and wait, and see what was recorded when they do.
//
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "shared_files.h"

namespace simt {

class SharedPlaces {
 public:
  // Null without room.
  static std::shared_ptr<SharedPlaces> make(int device) noexcept;
  // Null where the process that made it, or the event, is gone.
  static std::shared_ptr<SharedPlaces> open(const FileHandle& handle) noexcept;
  // Of the process that made it: the event is no more.
  ~SharedPlaces();
  SharedPlaces(const SharedPlaces&) = delete;
  SharedPlaces& operator=(const SharedPlaces&) = delete;

  bool is_own() const noexcept { return own_; }
  FileHandle handle() const noexcept;

  uint64_t record() noexcept;  // the number of the recording
  uint64_t recorded() const noexcept;
  void mark(uint64_t number) noexcept;  // this recording and all before it are over
  bool is_marked(uint64_t number) const noexcept;
  void wait(uint64_t number) const noexcept;

 private:
  struct State {
    uint64_t recorded;
    uint64_t over;
    uint64_t ended;    // 1: the event was destroyed
    uint32_t changes;  // of `over`
  };
  SharedPlaces(int file, State* state, int device, bool own) noexcept
      : file_(file), state_(state), device_(device), own_(own) {}
  static std::shared_ptr<SharedPlaces> of(int file, int device, bool own) noexcept;
  // The program ends where the event was destroyed.
  void require_event() const noexcept;

  int file_;
  State* state_;
  int device_;
  bool own_;
};

}  // namespace simt
