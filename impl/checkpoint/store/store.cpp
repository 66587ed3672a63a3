#include "checkpoint/store/store.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "checkpoint/write/save.h"
#include "comm/collective/agree.h"
#include "core/error.h"
#include "core/function_ref.h"
#include "core/hash.h"
#include "core/log.h"

namespace shardrec::checkpoint {

namespace {

using core::Environment;
using core::fail;
using core::join_path;
using core::sentence;

constexpr const char* kLatestName = "LATEST";
constexpr const char* kLockName = "LOCK";
constexpr std::string_view kStepPrefix = "step_";
constexpr size_t kStepDigits = 12;
constexpr int64_t kMostLatestBytes = 512;
constexpr int64_t kMostManifestBytes = int64_t{1} << 32;

comm::Operation operation_on(const char* name, const std::string& root, int64_t step) {
  return {.name = name,
          .detail = core::hash64(static_cast<uint64_t>(step), root),
          .deadline_kind = comm::DeadlineKind::kSetup};
}

std::string step_name(int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < kStepDigits) digits.insert(0, kStepDigits - digits.size(), '0');
  return std::string(kStepPrefix) + digits;
}

bool is_step_name(std::string_view name) {
  if (!name.starts_with(kStepPrefix) || name.size() > 64) return false;
  name.remove_prefix(kStepPrefix.size());
  return !name.empty() && std::all_of(name.begin(), name.end(),
                                      [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

// What a commit that was killed has left of a new LATEST.
bool is_unpublished_latest(std::string_view name) {
  return name.starts_with(std::string(kLatestName) + ".") && name.ends_with(".tmp");
}

std::string latest_text(const std::string& name) {
  return name + " " + core::to_hex(core::hash64(0, name)) + "\n";
}

// Empty when there is none.
std::string read_latest(const std::string& root, Environment& environment) {
  const std::string path = join_path(root, kLatestName);
  if (!environment.exists(path)) return {};
  const std::string text = core::read_text_file(environment, path, kMostLatestBytes);
  const std::string name = text.substr(0, text.find(' '));
  if (!is_step_name(name) || text != latest_text(name)) {
    fail(SHARDREC_CORRUPT_DATA,
         sentence("the file ", path,
                  " is damaged; checkpoints beside it can be opened by their step"),
         {.path = path});
  }
  return name;
}

void write_latest(const std::string& root, const std::string& name, Environment& environment) {
  const std::string text = latest_text(name);
  core::write_file_atomically(environment, root, kLatestName, std::as_bytes(std::span(text)));
}

// Empty where there is none, or none that this release can read.
std::optional<Manifest> try_manifest(const std::string& directory, Environment& environment) {
  const std::string path = join_path(directory, kManifestName);
  try {
    if (!environment.exists(path)) return std::nullopt;
    return manifest_from_text(core::read_text_file(environment, path, kMostManifestBytes), path);
  } catch (const core::Error& error) {
    if (error.status() != SHARDREC_CORRUPT_DATA && error.status() != SHARDREC_UNSUPPORTED) throw;
    return std::nullopt;
  }
}

std::vector<std::string> step_names(const std::string& root, Environment& environment) {
  std::vector<std::string> names;
  if (!environment.exists(root)) return names;
  for (std::string& name : environment.list(root)) {
    if (is_step_name(name)) names.push_back(std::move(name));
  }
  return names;
}

Entry entry_of(const std::string& name, const Manifest& manifest) {
  Entry entry{.name = name, .step = manifest.step, .commit = manifest.commit, .run = manifest.run};
  for (const ManifestFile& file : manifest.files) entry.bytes += file.bytes;
  return entry;
}

// Removes a checkpoint, or what a killed commit left of one: the manifest first. Foreign files
// stay, and the directory with them.
void remove_step(const std::string& root, const std::string& name, Environment& environment) {
  const std::string directory = join_path(root, name);
  environment.remove(join_path(directory, kManifestName));
  for (const std::string& file : environment.list(directory)) {
    if (file.starts_with("rank_") || file.starts_with(std::string(kManifestName) + ".")) {
      environment.remove(join_path(directory, file));
    }
  }
  environment.remove_directory(directory);
}

// Rank 0's part of a commit beside the saving itself.
class Root {
 public:
  Root(const std::string& root, int64_t step, Environment& environment)
      : root_(root), step_(step), environment_(environment) {}

  // Takes the lock and chooses the directory.
  void prepare(const Lineage& lineage) {
    if (root_.empty()) fail(SHARDREC_INVALID_ARGUMENT, "the directory of checkpoints has no name");
    environment_.make_directories(root_);
    if (environment_.exists(join_path(root_, kManifestName))) {
      fail(SHARDREC_INVALID_ARGUMENT,
           sentence("the directory ", root_, " is itself a checkpoint, as a collection's save",
                    " writes it; commit to another one"),
           {.path = root_});
    }
    const std::string lock = join_path(root_, kLockName);
    const auto result = environment_.lock(lock, lock_);
    if (result == Environment::LockResult::kHeldByAnother) {
      fail(
          SHARDREC_INVALID_STATE,
          sentence("another job commits to ", root_, " now: each job needs a directory of its own"),
          {.path = lock});
    }
    locked_ = result == Environment::LockResult::kTaken;
    check_run(lineage);
    const std::vector<std::string> taken = environment_.list(root_);
    name_ = step_name(step_);
    for (int64_t i = 1; std::binary_search(taken.begin(), taken.end(), name_); ++i) {
      name_ = step_name(step_) + "." + std::to_string(i);
    }
  }

  const std::string& name() const { return name_; }

  // The moment from which the new checkpoint is the newest. After an error the one before is
  // again; where even that fails the new one stays, which is whole, and finish() tells.
  void publish() {
    try {
      write_latest(root_, name_, environment_);
    } catch (...) {
      if (take_back()) throw;
      failure_ = std::current_exception();
    }
  }

  // On all ranks, when the new checkpoint is there.
  void finish(const std::string& run, int64_t keep) {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    if (locked_) tidy(run, keep);
    lock_.reset();
  }

 private:
  // Removes what the run no longer wants. Nothing depends on it: errors are logged, and what cannot
  // be removed does not keep the rest.
  void tidy(const std::string& run, int64_t keep) noexcept {
    try_to_remove([&] {
      for (const std::string& name : environment_.list(root_)) {
        if (is_unpublished_latest(name)) {
          try_to_remove([&] { environment_.remove(join_path(root_, name)); });
        }
      }
      std::vector<Entry> whole;
      for (const std::string& name : step_names(root_, environment_)) {
        const auto manifest = try_manifest(join_path(root_, name), environment_);
        if (manifest && manifest->run == run) {
          whole.push_back(entry_of(name, *manifest));
        } else if (!manifest &&
                   !environment_.exists(join_path(join_path(root_, name), kManifestName))) {
          // A commit of this run that was killed.
          try_to_remove([&] { remove_step(root_, name, environment_); });
        }
      }
      std::sort(whole.begin(), whole.end(),
                [](const Entry& a, const Entry& b) { return a.commit > b.commit; });
      int64_t kept = 0;
      for (const Entry& entry : whole) {
        const bool replaced = entry.step == step_ && entry.name != name_;
        if (!replaced && (keep == 0 || kept < keep)) {
          ++kept;
        } else if (entry.name != name_) {
          try_to_remove([&] { remove_step(root_, entry.name, environment_); });
        }
      }
    });
  }

  void try_to_remove(core::FunctionRef<void()> work) const noexcept {
    try {
      work();
    } catch (const core::Error& error) {
      tell_leftovers(error);
    } catch (...) {  // NOLINT(bugprone-empty-catch): memory ran out; the next commit tries again
    }
  }

  void tell_leftovers(const core::Error& error) const noexcept {
    try {
      core::log(
          SHARDREC_LOG_WARNING, -1,
          sentence("old checkpoints in ", root_, " could not be removed: ", error.sentence()));
    } catch (...) {  // NOLINT(bugprone-empty-catch): there is no memory to tell
    }
  }

  void check_run(const Lineage& lineage) {
    latest_ = read_latest(root_, environment_);
    if (latest_.empty()) return;
    const auto manifest = try_manifest(join_path(root_, latest_), environment_);
    const std::string run = manifest ? manifest->run : "";
    if (!lineage.run.empty() && lineage.run == run) {
      return check_not_overtaken(lineage, manifest->commit);
    }
    fail(SHARDREC_INVALID_STATE,
         sentence("the directory ", root_, " holds checkpoints of another run, the newest ",
                  latest_, ": open one to go on from it, or commit to another directory"),
         {.path = join_path(root_, latest_)});
  }

  // Two jobs that went on from one checkpoint, one after the other: the first to commit goes on.
  // published: the commit that LATEST names. A checkpoint that stayed behind a commit of this job
  // that failed is not published.
  void check_not_overtaken(const Lineage& lineage, int64_t published) const {
    if (published <= lineage.commit) return;
    fail(SHARDREC_INVALID_STATE,
         sentence("another job has committed to ", root_, " since this one opened it: commit ",
                  published, " is there, this job knows of ", lineage.commit,
                  "; open a checkpoint to go on from it, or commit to another directory"),
         {.value = lineage.commit, .limit = published, .path = root_});
  }

  // True when LATEST is known to be as before.
  bool take_back() noexcept {
    try {
      if (read_latest(root_, environment_) != name_) return true;
      if (latest_.empty()) {
        environment_.remove(join_path(root_, kLatestName));
      } else {
        write_latest(root_, latest_, environment_);
      }
      return true;
    } catch (...) {
      return false;
    }
  }

  const std::string& root_;
  int64_t step_;
  Environment& environment_;
  std::unique_ptr<core::FileLock> lock_;
  bool locked_ = false;
  std::string latest_;  // before
  std::string name_;
  std::exception_ptr failure_;
};

// The text of rank 0, for all.
std::string share_text(const Group& group, const comm::Operation& operation,
                       const std::string& text) {
  const auto all = group.collectives.all_gather(
      operation, group.rank == 0 ? std::as_bytes(std::span(text)) : comm::ConstBytes{});
  std::string out(all[0].size(), '\0');
  std::copy(all[0].begin(), all[0].end(), std::as_writable_bytes(std::span(out)).begin());
  return out;
}

// The number of the last commit of a run; 0 where it has none.
int64_t newest_of(const Listing& listing, const std::string& run) {
  int64_t newest = 0;
  for (const Entry& entry : listing.entries) {
    if (entry.run == run) newest = std::max(newest, entry.commit);
  }
  return newest;
}

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

}  // namespace

Listing list_checkpoints(const std::string& root, Environment& environment) {
  Listing listing;
  if (const auto own = try_manifest(root, environment)) {
    listing.entries.push_back(entry_of("", *own));
    listing.has_latest = true;
    return listing;
  }
  for (const std::string& name : environment.list(root)) {
    if (!is_step_name(name)) continue;
    if (const auto manifest = try_manifest(join_path(root, name), environment)) {
      listing.entries.push_back(entry_of(name, *manifest));
    }
  }
  std::sort(listing.entries.begin(), listing.entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.commit, a.name) < std::tie(b.commit, b.name);
  });
  try {
    listing.latest = read_latest(root, environment);
  } catch (const core::Error& error) {
    if (error.status() != SHARDREC_CORRUPT_DATA) throw;  // a damaged one names none
  }
  listing.has_latest =
      std::any_of(listing.entries.begin(), listing.entries.end(),
                  [&](const Entry& entry) { return entry.name == listing.latest; });
  return listing;
}

std::string find_step(const std::string& root, int64_t step, Environment& environment) {
  if (root.empty()) fail(SHARDREC_INVALID_ARGUMENT, "the directory of checkpoints has no name");
  if (step < 0) return directory_of_newest(root, environment);
  const Listing listing =
      environment.exists(root) ? list_checkpoints(root, environment) : Listing{};
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
  lineage = {.run = opened.manifest.run,
             .commit = std::stoll(share_text(group, operation, std::to_string(known)))};
  return opened;
}

void commit_step(const Group& group, const std::string& root, int64_t step, int64_t keep,
                 const Contents& contents, Lineage& lineage, core::Control* control,
                 Environment& environment) {
  const comm::Operation operation = operation_on("commit", root, step);
  Root own(root, step, environment);
  Lineage next{.run = lineage.run, .commit = lineage.commit + 1};
  comm::agree(group.collectives, operation, [&] {
    if (group.rank != 0) return;
    own.prepare(lineage);
    if (next.run.empty()) next.run = core::unique_suffix();
    // Numbers of commits that failed are not used again.
    next.commit =
        std::max(next.commit, newest_of(list_checkpoints(root, environment), next.run) + 1);
  });
  const std::string shared =
      share_text(group, operation, sentence(own.name(), " ", next.run, " ", next.commit));
  const size_t first = shared.find(' ');
  const size_t second = shared.rfind(' ');
  next = {.run = shared.substr(first + 1, second - first - 1),
          .commit = std::stoll(shared.substr(second + 1))};
  const std::string directory = join_path(root, shared.substr(0, first));
  save(
      group,
      {.directory = directory,
       .step = step,
       .run = next.run,
       .commit = next.commit,
       .new_directory = true},
      contents, control, [&] { own.publish(); }, environment);
  lineage = next;
  comm::agree(group.collectives, operation, [&] { own.finish(next.run, keep); });
}

}  // namespace shardrec::checkpoint
