// What is in a root of checkpoints, by name: its directories of steps, LATEST, LOCK, manifests.
//
// Thread rule: any thread, as the environment.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/contents/contents.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/store/store.h"
#include "comm/communicator.h"
#include "core/environment.h"

namespace shardrec::checkpoint {

inline constexpr const char* kLatestName = "LATEST";
inline constexpr const char* kLockName = "LOCK";

std::string step_name(int64_t step);
bool is_step_name(std::string_view name);
// What a commit that was killed has left of a new LATEST.
bool is_unpublished_latest(std::string_view name);

// Empty when there is none. Throws CORRUPT_DATA.
std::string read_latest(const std::string& root, core::Environment& environment);
void write_latest(const std::string& root, const std::string& name, core::Environment& environment);
// Empty where there is none, or none that this release can read.
std::optional<Manifest> try_manifest(const std::string& directory, core::Environment& environment);
std::vector<std::string> step_names(const std::string& root, core::Environment& environment);
Entry entry_of(const std::string& name, const Manifest& manifest);
// The commits, and those that they are changes of, and so on. entries: of one run.
std::set<int64_t> with_bases(std::span<const Entry> entries, std::set<int64_t> commits);
// Throws NOT_FOUND where the base of a delta is not there as it was.
void require_base(const std::string& root, const ManifestBase& base,
                  core::Environment& environment);
// The number of the last commit of a run; 0 where it has none.
int64_t newest_of(const Listing& listing, const std::string& run);
// Removes a checkpoint, or what a killed commit left of one: the manifest first. Foreign files
// stay, and the directory with them.
void remove_step(const std::string& root, const std::string& name, core::Environment& environment);

// The operation of all ranks on a root.
comm::Operation operation_on(const char* name, const std::string& root, int64_t step);
// The text of rank 0, for all. Collective.
std::string share_text(const Group& group, const comm::Operation& operation,
                       const std::string& text);

}  // namespace shardrec::checkpoint
