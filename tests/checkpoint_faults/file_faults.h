// Faults of files, in this process: the C library's calls on files are defined by file_faults.cpp
// in the executable, and so are those that the shared library makes.
//
// Between start() and stop() each call on a path below a directory, or on a descriptor that was
// opened on one, is counted; the call of a given number meets with a fault. Calls of all threads
// count.
#pragma once

#include <string>
#include <vector>

namespace shardrec::file_faults {

enum class Fault {
  kNone,            // only counts
  kKill,            // SIGKILL to this process in place of the call
  kKillAfter,       // SIGKILL to this process after the call
  kStop,            // SIGSTOP to this process before the call; SIGCONT lets it go on
  kIoError,         // EIO
  kNoSpace,         // ENOSPC, where the call is one that may need space
  kShort,           // a write or read of half the bytes
  kShortThenError,  // the same, and EIO at the next call
  kDeadDisk,        // EIO at this call and at all later ones
};

// One that changed something, or made it durable.
struct Change {
  enum class Kind { kCreate, kAppend, kSync, kRename, kLink, kRemove, kMakeDirectory };
  Kind kind;
  std::string path;
  std::string to;     // of renamings and links
  std::string bytes;  // appended
};

// at: number of the call, from 1.
void start(const std::string& directory, Fault fault, long at);
// Returns how many calls were made. struck: whether the fault happened.
long stop(bool* struck = nullptr);

// As start, without a fault: the changes in the order in which they were made.
void start_recording(const std::string& directory);
std::vector<Change> stop_recording();

// "kill" and so on, as the programs of this test pass them on.
Fault fault_of(const std::string& name);
std::string name_of(Fault fault);

}  // namespace shardrec::file_faults
