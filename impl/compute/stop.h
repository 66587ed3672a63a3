// A word that says: what comes from other ranks comes no more. A device may have operations in its stream behind
// the receipt of a message that was broken off; the word is set before the receipt is, so that they find it set.
// What such operations read is zeros then, and none of them changes a row of a table (RowOperations).
//
// Thread rule: any thread.
#pragma once

#include <cstdint>

namespace shardrec::compute {

class Stop {
 public:
  virtual ~Stop() = default;
  Stop(const Stop&) = delete;
  Stop& operator=(const Stop&) = delete;

  // Where operations of devices read it: 0, or 1 from some time on.
  virtual const uint64_t* word() const noexcept = 0;
  // Throws why it is set; returns where it is not.
  virtual void check() const = 0;

  // Updates of rows, as operations count them when they come to them: how many there were, and in the upper 32 bits
  // how many of these changed nothing. The host counts those that it calls.
  virtual uint64_t* updates() const noexcept = 0;
  virtual void count_update() const noexcept = 0;
  // How many of the updates that a host has counted changed nothing: 0 where what sets it has not happened. Else waits
  // for operations. -1: one changed rows that was not counted, because its call failed later.
  virtual int64_t left_out(int64_t counted) const noexcept = 0;

 protected:
  Stop() = default;
};

}  // namespace shardrec::compute
