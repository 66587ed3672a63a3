// Gradients that ranks of one process read where their caller keeps them. They may be read until
// backward returns; it does when all have read, and when the step fails, not before nobody reads.
#pragma once

#include <mutex>
#include <shared_mutex>
#include <span>

#include "comm/communicator.h"

namespace shardrec::embedding {

// One rank's gradients of one lookup. Any thread.
class Lending {
 public:
  void lend();
  // From now on nobody reads. Waits for those who do.
  void take_back();

  // False: they have been taken back. Else stop() follows, on the same thread.
  bool read();
  void stop() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
  bool lent_ = false;
};

// Reads what the ranks have lent whose gradient messages it is given, until it is destroyed.
class Reading {
 public:
  // Where something was taken back, throws what killed the communicator.
  Reading(std::span<const comm::ConstBytes> gradients, const comm::Communicator& communicator);
  ~Reading();
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  void stop();
  std::span<const comm::ConstBytes> gradients_;
  size_t count_ = 0;  // of the messages, from the first on
};

// Does any of the gradient messages lend something to other ranks?
bool any_lent(std::span<const comm::ConstBytes> gradients);

}  // namespace shardrec::embedding
