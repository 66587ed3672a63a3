// A commit whose files a thread of its own writes, while the caller goes on. What the ranks do together is
// in begin() and wait(), on the caller's thread: no exchange meets those of steps.
//
// Thread rule: one thread at a time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "checkpoint/contents/contents.h"
#include "checkpoint/contents/frozen.h"
#include "checkpoint/store/step_commit.h"
#include "checkpoint/store/store.h"
#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "core/control.h"
#include "core/function_ref.h"

namespace shardrec::checkpoint {

// What a commit in the background writes; it keeps it until it is over.
struct FrozenContents {
  Contents contents;
  std::unique_ptr<Frozen> frozen;  // null: the contents stay as they are without
};

class BackgroundCommit {
 public:
  // Starts the thread, which waits for begin(). control may be null. Throws OUT_OF_MEMORY.
  BackgroundCommit(std::unique_ptr<StepCommit> commit, FrozenContents contents,
                   std::shared_ptr<core::Control> control);
  // A commit that is not over is given up: its thread removes what it wrote, and is not waited for.
  ~BackgroundCommit();
  BackgroundCommit(const BackgroundCommit&) = delete;
  BackgroundCommit& operator=(const BackgroundCommit&) = delete;

  // Collective: the ranks prepare the commit, then their threads write. Throws what commit_step() does before it
  // writes.
  void begin(const Group& group, const Lineage& lineage);
  // Collective: waits until this rank's files are written, or, with a timeout of 0 or more, so many milliseconds.
  // Where those of all ranks are, the checkpoint becomes the newest. False: those of some rank are not,
  // and it is to be called again. Else the commit is over, also when this throws what commit_step() does.
  bool wait(const Group& group, comm::Communicator& communicator, const comm::Operation& operation,
            int64_t timeout_ms, Lineage& lineage);

 private:
  class Work;

  // The commit is over: its thread ends.
  void end() noexcept;

  std::shared_ptr<Work> work_;  // the thread's too
  std::thread thread_;
};

}  // namespace shardrec::checkpoint
