// A directory of checkpoints, the root:
//
//   ROOT/step_000000000042/   a checkpoint (save.h); ".1", ".2" behind the name where it is taken
//   ROOT/LATEST               the name of the newest and a checksum of it; a commit counts from the
//                             moment it is there
//   ROOT/LOCK                 locked while a commit is under way
//
// A root belongs to the run whose commit LATEST names: only who has opened a checkpoint of that
// run, or has made one, commits to it, and only while nobody else has committed since. Old
// checkpoints of the run, and directories that killed commits of it left, are removed by later
// commits, while they hold the lock; what a delta that stays is a change of stays, too.
//
// A directory with a manifest in it, as release 0.1 wrote of tables alone, is opened as its own only
// checkpoint.
//
// Collective, but where it says otherwise. Thread rule: one thread at a time per Group.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/contents/contents.h"
#include "checkpoint/read/load.h"
#include "core/control.h"
#include "core/environment.h"

namespace shardrec::checkpoint {

// A checkpoint below a root.
struct Entry {
  std::string name;  // of its directory; "" for the root itself
  int64_t step = 0;
  int64_t commit = 0;
  int64_t bytes = 0;
  std::string run;
  int64_t base = 0;    // of a delta: the commit that it is a change of; 0: it is whole
  bool states = true;  // does it have the states of optimizers?
};

struct Listing {
  std::vector<Entry> entries;  // by commit
  std::string latest;          // name of an entry; "" when there is none
  bool has_latest = false;
};

// Not collective. What is no whole checkpoint is left out. NOT_FOUND (no such directory), IO_ERROR.
Listing list_checkpoints(const std::string& root,
                         core::Environment& environment = core::default_environment());

// The directory of the checkpoint of a step, -1: the newest. Not collective. Where there is none that
// has been named newest it is the root itself. NOT_FOUND, CORRUPT_DATA (LATEST), IO_ERROR.
std::string find_step(const std::string& root, int64_t step,
                      core::Environment& environment = core::default_environment());

// What a job remembers of a root between its calls; the same on all ranks.
struct Lineage {
  std::string run;     // "" before the first open or commit
  int64_t commit = 0;  // number of the newest of the run that was there at the last open or commit
  bool has_deltas = false;  // were there any of the run at the last open?
  // The last commit of this job, as a delta names it; its checksum on rank 0, and the number of deltas in its chain.
  ManifestBase made = {.deltas = 0};
};

// step -1: the newest. Takes part in its run. NOT_FOUND, CORRUPT_DATA, UNSUPPORTED, IO_ERROR.
Opened open_step(const Group& group, const std::string& root, int64_t step, Lineage& lineage,
                 core::Environment& environment = core::default_environment());

// keep: how many checkpoints of the run stay, this one included, and what they are changes of; 0: all. Contents
// with a base are a delta of it; where that is not there any more, NOT_FOUND. After an error the root is
// as it was; where the disk does not let LATEST be written back, the new checkpoint stays, whole,
// and the status is IO_ERROR. INVALID_STATE (another run's root, another job's commit under way or
// since the last open), and the errors of save().
void commit_step(const Group& group, const std::string& root, int64_t step, int64_t keep,
                 const Contents& contents, Lineage& lineage, core::Control* control,
                 core::Environment& environment = core::default_environment());

}  // namespace shardrec::checkpoint
