// Where the profile of this machine is kept between processes: one file per machine in the user's
// cache directory. The library reads it once, at its first use; it never measures by itself.
//
// Thread rule: any thread.
#pragma once

#include <optional>
#include <string>

#include "compute/profile/memory_profile.h"
#include "core/environment.h"

namespace shardrec::compute {

// $SHARDREC_CACHE_DIR, else $XDG_CACHE_HOME/shardrec, else $HOME/.cache/shardrec; empty when none
// is set.
std::string profile_directory();

// "memory-<hash of the machine>.json"
std::string profile_file_name(const Machine& machine);

// Replaces the machine's file atomically; makes the directory. Throws IO_ERROR.
void store_profile(core::Environment& environment, const std::string& directory,
                   const MemoryProfile& profile);

// store_profile() where the profile is good enough to be read later, in profile_directory(). Where it
// cannot be kept, a warning in the log says why: the measurement is still worth its text.
void keep_profile(core::Environment& environment, const MemoryProfile& profile);

// Empty when there is none. A file that cannot be read, is larger than any profile, broken, of
// another version or of another machine counts as none, with a warning in the log.
std::optional<MemoryProfile> load_profile(core::Environment& environment,
                                          const std::string& directory, const Machine& machine);

// The profile of this machine in profile_directory(), as it is now. Throws NOT_FOUND when there is none.
MemoryProfile require_profile(core::Environment& environment);

// The profile of this machine as the cache had it at the first call in this process; without rows
// when there was none. Lives until the process ends; the first call makes it the one that kernels go by
// (profile/prefetch.h): whoever is about to use them calls this.
const MemoryProfile& memory_profile() noexcept;

}  // namespace shardrec::compute
