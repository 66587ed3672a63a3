// Where the time of operations goes that are over later than their calls: what happens between two places
// of a back end's operations is of the kind that the first place begins.
//
// Thread rule: that of its back end.
#pragma once

#include <cstddef>

namespace shardrec::compute {

class OperationClock {
 public:
  virtual ~OperationClock() = default;
  OperationClock(const OperationClock&) = delete;
  OperationClock& operator=(const OperationClock&) = delete;

  // Counts from now on: before somebody wants to know the time, none is taken. Any thread.
  virtual void start() noexcept = 0;
  // Operations from now on are of this kind, and no longer of the one before; name: as profilers show it,
  // a string literal.
  virtual void enter(size_t kind, const char* name) noexcept = 0;
  // Operations from now on are of no kind. After an enter().
  virtual void leave() noexcept = 0;

 protected:
  OperationClock() = default;
};

}  // namespace shardrec::compute
