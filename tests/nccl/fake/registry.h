// The communicators of this process by their handles, which are never given twice, and the calls that are under way.
//
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "communicator.h"

namespace fake_nccl {

using shardrec::comm::nccl::Comm;

enum class CallKind { kOperation, kPoll, kAbort, kDestroy };

// The handle of a new communicator on the device. Its creator is the calling thread.
Comm add_communicator(const Communicator::Place& place, int device);

// A call for a communicator, while it lives: the handle is good, and no other thread may call for the same rank. Holds
// the issuer's lock. What is wrong is counted as a violation.
class Call {
 public:
  Call(Comm handle, CallKind kind, const char* name);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Null: there is no such communicator, and the call returns InvalidArgument.
  Communicator* communicator() const { return communicator_; }
  // The communicator is in progress, where the call may not be: InvalidUsage.
  bool is_refused() const { return refused_; }
  // The handle is gone; the communicator is there until the last operation is over.
  void remove();

 private:
  void check_threads();
  void check_state(const char* name);

  const Comm handle_;
  const CallKind kind_;
  Communicator* communicator_ = nullptr;
  bool refused_ = false;
  uint64_t thread_ = 0;
  Call* next_ = nullptr;
};

}  // namespace fake_nccl
