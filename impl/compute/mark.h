// A place in the operations of a back end, which the back ends of other ranks of the process wait for:
// theirs behind it take place when those before it are over. No host waits.
//
// Thread rule: set by the thread of its back end; followed by any.
#pragma once

#include <cstdint>

namespace shardrec::compute {

class Mark {
 public:
  virtual ~Mark() = default;
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  // Of the back end that made it.
  virtual int32_t device() const noexcept = 0;
  // The calling thread waits for the place; at once where the mark was never set, or the device failed.
  virtual void wait() const noexcept = 0;

 protected:
  Mark() = default;
};

}  // namespace shardrec::compute
