// Who enqueues for all communicators of one rank: in what order, and by one thread at a time.
//
// A rank is known by its device and the thread that made its communicators. Of two ranks that share several
// communicators, what both take part in has to be in the same order on both, or their streams wait for each other.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "quiet.h"

namespace fake_nccl {

class Issuer {
 public:
  Issuer(int its_device, uint64_t its_thread, uint64_t its_id)
      : device(its_device), thread(its_thread), id(its_id) {}

  // Of the operation or group that is called now.
  uint64_t next_sequence() { return ++sequence_; }
  // What both take part in: my and the peer's sequence of it. False if it is in another order than what matched before.
  bool match(uint64_t peer, uint64_t mine, uint64_t theirs);

  const int device;
  const uint64_t thread;
  const uint64_t id;       // among all processes; never 0
  simt::QuietMutex mutex;  // held by calls for its communicators
  int users = 0;           // communicators and calls; under the registry's lock

 private:
  uint64_t sequence_ = 0;
  std::map<uint64_t, std::deque<std::pair<uint64_t, uint64_t>>> matched_;  // by the peer's id
};

}  // namespace fake_nccl
