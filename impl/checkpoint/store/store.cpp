#include "checkpoint/store/store.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "checkpoint/store/root_files.h"
#include "checkpoint/store/step_commit.h"
#include "comm/collective/agree.h"
#include "core/error.h"

namespace shardrec::checkpoint {
namespace {

using core::Environment;
using core::fail;
using core::join_path;
using core::sentence;

// Without LATEST the root may be a checkpoint itself; else open() says what is missing.
std::string directory_of_newest(const std::string& root, Environment& environment) {
  const std::string latest = read_latest(root, environment);
  return latest.empty() ? root : join_path(root, latest);
}

// The last one committed of the run that goes on here; another run's only where it has none.
std::string directory_of_step(const std::string& root, const Listing& listing, int64_t step,
                              Environment& environment) {
  if (!environment.exists(root)) {
    fail(SHARDREC_NOT_FOUND, sentence("there is no directory ", root), {.path = root});
  }
  const Entry* found = nullptr;
  std::string run;
  for (const Entry& entry : listing.entries) {
    if (entry.name == listing.latest) run = entry.run;
  }
  for (const Entry& entry : listing.entries) {
    if (entry.step != step) continue;
    if (found == nullptr || entry.run == run || found->run != run) found = &entry;
  }
  if (found == nullptr) {
    fail(SHARDREC_NOT_FOUND,
         sentence("the directory ", root, " holds no checkpoint of step ", step),
         {.value = step, .path = root});
  }
  return found->name.empty() ? root : join_path(root, found->name);
}

// Of the directories whose names are taken, and of the newest.
template <class Takes>
Listing list_some(const std::string& root, Environment& environment, Takes takes) {
  Listing listing;
  if (const auto own = try_manifest(root, environment)) {
    listing.entries.push_back(entry_of("", *own));
    listing.has_latest = true;
    return listing;
  }
  const auto add = [&](const std::string& name) {
    if (const auto manifest = try_manifest(join_path(root, name), environment)) {
      listing.entries.push_back(entry_of(name, *manifest));
    }
  };
  for (const std::string& name : environment.list(root)) {
    if (is_step_name(name) && takes(name)) add(name);
  }
  try {
    listing.latest = read_latest(root, environment);
  } catch (const core::Error& error) {
    if (error.status() != SHARDREC_CORRUPT_DATA) throw;  // a damaged one names none
  }
  if (!listing.latest.empty() && !takes(listing.latest)) add(listing.latest);
  std::sort(listing.entries.begin(), listing.entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.commit, a.name) < std::tie(b.commit, b.name);
  });
  listing.has_latest =
      std::any_of(listing.entries.begin(), listing.entries.end(),
                  [&](const Entry& entry) { return entry.name == listing.latest; });
  return listing;
}

}  // namespace

Listing list_checkpoints(const std::string& root, Environment& environment) {
  return list_some(root, environment, [](const std::string&) { return true; });
}

std::string find_step(const std::string& root, int64_t step, Environment& environment) {
  if (root.empty()) fail(SHARDREC_INVALID_ARGUMENT, "the directory of checkpoints has no name");
  if (step < 0) return directory_of_newest(root, environment);
  // Other directories have other steps: their manifests are not read.
  const std::string named = step_name(step);
  const auto is_of_step = [&](const std::string& name) {
    return name == named || name.starts_with(named + ".");
  };
  const Listing listing =
      environment.exists(root) ? list_some(root, environment, is_of_step) : Listing{};
  return directory_of_step(root, listing, step, environment);
}

Opened open_step(const Group& group, const std::string& root, int64_t step, Lineage& lineage,
                 Environment& environment) {
  const comm::Operation operation = operation_on("open", root, step);
  std::string directory;
  Listing listing;  // before the manifest is read: what is committed meanwhile is not known of
  comm::agree(group.collectives, operation, [&] {
    if (group.rank != 0) return;
    if (root.empty()) fail(SHARDREC_INVALID_ARGUMENT, "the directory of checkpoints has no name");
    if (environment.exists(root)) listing = list_checkpoints(root, environment);
    directory = step < 0 ? directory_of_newest(root, environment)
                         : directory_of_step(root, listing, step, environment);
  });
  directory = share_text(group, operation, directory);
  Opened opened = open(group, directory, environment);
  const int64_t known = std::max(opened.manifest.commit, newest_of(listing, opened.manifest.run));
  const bool deltas = std::ranges::any_of(listing.entries, [&](const Entry& entry) {
    return entry.run == opened.manifest.run && entry.base != 0;
  });
  const std::string shared = share_text(group, operation, sentence(deltas ? "d" : "w", known));
  lineage = {.run = opened.manifest.run,
             .commit = std::stoll(shared.substr(1)),
             .has_deltas = shared.front() == 'd'};
  return opened;
}

void commit_step(const Group& group, const std::string& root, int64_t step, int64_t keep,
                 const Contents& contents, Lineage& lineage, core::Control* control,
                 Environment& environment) {
  StepCommit commit(root, step, keep, environment);
  commit.open(group, contents, lineage);
  commit.close(group, [&] { return commit.write(contents, control); }, lineage);
}

}  // namespace shardrec::checkpoint
