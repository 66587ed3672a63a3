// A place in the operations of a back end, which the back ends of other ranks of the process wait for:
// theirs behind it take place when those before it are over. No host waits.
//
// Thread rule: set by the thread of its back end; followed by any.
#pragma once

#include <cstdint>
#include <memory>

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

// Makes and sets the marks of a back end, and has it follow those of others.
//
// Thread rule: that of the back end.
class Marks {
 public:
  virtual ~Marks() = default;
  Marks(const Marks&) = delete;
  Marks& operator=(const Marks&) = delete;

  // One that was never set.
  virtual std::shared_ptr<Mark> make() = 0;
  // One of its own: behind the operations so far.
  virtual void set(Mark& mark) = 0;
  // Any one of a back end of this kind: operations from now on take place behind it.
  virtual void follow(const Mark& mark) = 0;

 protected:
  Marks() = default;
};

}  // namespace shardrec::compute
