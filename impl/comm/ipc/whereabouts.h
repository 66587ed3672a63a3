// Where a rank is, for peers that are to open memory of its device.
//
// Thread rule: any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "core/host.h"

namespace shardrec::comm::ipc {

// Bytes of a message: the same build is on all ranks (the rendezvous compares).
struct Whereabouts {
  core::MachineId machine{};
  uint64_t processes = 0;  // the namespace of `process`; 0: unknown
  int64_t process = 0;
};

Whereabouts whereabouts();
// May processes there open each other's memory? Not where it is one process: CUDA refuses that.
bool may_share(const Whereabouts& one, const Whereabouts& other) noexcept;

// A process that may end at any time, told from a later one of its number.
class Process {
 public:
  explicit Process(int64_t number) noexcept;
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;

  // False where that cannot be known.
  bool has_ended() const noexcept;

 private:
  int file_;
};

}  // namespace shardrec::comm::ipc
