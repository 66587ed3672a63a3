// A commit to a root (store.h) in its parts, for one whose files are written while the caller goes on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "checkpoint/contents/contents.h"
#include "checkpoint/store/store.h"
#include "checkpoint/write/save.h"
#include "core/control.h"
#include "core/environment.h"
#include "core/function_ref.h"

namespace shardrec::checkpoint {

// After open(), one of close() and abandon() comes last. The lock of the root is held until then.
class StepCommit {
 public:
  // As commit_step() has them.
  StepCommit(std::string root, int64_t step, int64_t keep,
             core::Environment& environment = core::default_environment());
  ~StepCommit();
  StepCommit(const StepCommit&) = delete;
  StepCommit& operator=(const StepCommit&) = delete;

  // Collective: takes the lock, makes the directory. Throws what commit_step() does.
  void open(const Group& group, const Contents& contents, const Lineage& lineage);
  // Not collective, by any thread: as SaveInParts::write().
  std::string write(const Contents& contents, core::Control* control);
  // Collective: as SaveInParts::close(). The checkpoint is the newest when it returns, and the lineage that of
  // the commit.
  void close(const Group& group, core::FunctionRef<std::string()> written, Lineage& lineage);
  // Not collective, by any thread: there is no such commit.
  void abandon() noexcept;

 private:
  class Root;

  const std::string path_;
  const int64_t step_;
  const int64_t keep_;
  core::Environment& environment_;
  std::unique_ptr<Root> root_;  // rank 0's part beside the saving itself
  std::unique_ptr<SaveInParts> saving_;
  Lineage next_;
};

}  // namespace shardrec::checkpoint
